"""What can be said of a plan without building it: its figures, and why a path is as it is."""

from testbed.experiments.analyse.explain import Explanation, explain
from testbed.experiments.analyse.plan_figures import Analysis, analyse, check_patterns

__all__ = ["Analysis", "Explanation", "analyse", "check_patterns", "explain"]
