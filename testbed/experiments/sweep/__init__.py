"""Many runs from one file: scenarios × settings × repeats, resumable, compared at the end."""

from testbed.experiments.sweep.plan_combinations import Planned, prepare
from testbed.experiments.sweep.read_sweep import find_sweep
from testbed.experiments.sweep.results import SweepOutcome
from testbed.experiments.sweep.run import run_sweep

__all__ = ["Planned", "SweepOutcome", "find_sweep", "prepare", "run_sweep"]
