"""probe → build → check paths → load → measure → store."""

from testbed.run.engines import run_scenario
from testbed.run.run import Outcome

__all__ = ["Outcome", "run_scenario"]
