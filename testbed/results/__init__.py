"""One folder a run. While it is written its name ends in `.incomplete`; the last step takes that away."""

from testbed.results.read_run import Run, load_run
from testbed.results.store import INCOMPLETE, SIMULATION, ResultFolder

__all__ = ["INCOMPLETE", "SIMULATION", "ResultFolder", "Run", "load_run"]
