"""From one plan to the next on switches that are in use: make before break (Koibuchi et al. 2011, section 3.6)."""

from testbed.transition.check import transition_deadlock, transition_problems
from testbed.transition.steps import Step, Transition, make_transition, successor

__all__ = ["Step", "Transition", "make_transition", "successor", "transition_deadlock", "transition_problems"]
