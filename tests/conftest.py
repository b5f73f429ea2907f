"""Hypothesis: the same examples in every run, so that a change is judged by itself.

TESTBED_EXPLORE=1 draws new and more examples instead, for a search by hand. TESTBED_SHARE=1/2 leaves every second one
of the tests that are selected, from the second on.
"""

import os

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers

# Times say nothing on a machine that others use too; plans are made, and kernels compiled, while examples are drawn.
UNTIMED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("same", UNTIMED, max_examples=80, derandomize=True, database=None)
settings.register_profile("explore", UNTIMED, max_examples=2000)
if os.environ.get("TESTBED_EXPLORE") == "1":
    settings.load_profile("explore")
else:
    settings.load_profile("same")
    # Otherwise Hypothesis also draws what stands in the modules that are imported: examples would be others with any
    # change of the project, and with any choice of tests.
    providers._get_local_constants = lambda: providers._local_constants


@pytest.hookimpl(trylast=True)  # of what -m and -k have left
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    share, shares = map(int, os.environ.get("TESTBED_SHARE", "0/1").split("/"))
    config.hook.pytest_deselected(items=[item for n, item in enumerate(items) if n % shares != share])
    items[:] = items[share::shares]
