"""Hypothesis: the same examples in every run, so that a change is judged by itself.

TESTBED_EXPLORE=1 draws new and more examples instead, for a search by hand.
"""

import os

from hypothesis import settings

settings.register_profile("same", max_examples=80, derandomize=True, deadline=None, database=None)
settings.register_profile("explore", max_examples=2000, deadline=None)
settings.load_profile("explore" if os.environ.get("TESTBED_EXPLORE") == "1" else "same")
