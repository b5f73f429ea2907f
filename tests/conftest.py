"""Hypothesis: the same examples in every run, so that a change is judged by itself.

TESTBED_EXPLORE=1 draws new and more examples instead, for a search by hand.
"""

import os

from hypothesis import HealthCheck, settings

# Times say nothing on a machine that others use too; plans are made, and kernels compiled, while examples are drawn.
UNTIMED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("same", UNTIMED, max_examples=80, derandomize=True, database=None)
settings.register_profile("explore", UNTIMED, max_examples=2000)
settings.load_profile("explore" if os.environ.get("TESTBED_EXPLORE") == "1" else "same")
