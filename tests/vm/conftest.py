"""Tests that need Debian's kernel: `make vm-test` runs them inside the virtual machine, and nothing else does."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    inside = os.environ.get("TESTBED_IN_VM") == "1"
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.vm)
            if not inside:
                item.add_marker(pytest.mark.skip(reason="part of `make vm-test`, which runs it in the virtual machine"))
