"""probe → build → check paths → load → measure → store."""

from testbed.run.run import Outcome, run_scenario

__all__ = ["Outcome", "run_scenario"]
