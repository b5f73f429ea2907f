"""Many runs from one file: scenarios × settings × repeats, resumable, compared at the end."""

from testbed.sweep.plans import Planned, prepare
from testbed.sweep.read import find_sweep
from testbed.sweep.results import Outcome
from testbed.sweep.run import run_sweep

__all__ = ["Outcome", "Planned", "find_sweep", "prepare", "run_sweep"]
