"""What a reader of configurations came to, for comparison."""

from __future__ import annotations

from typing import Any

from testbed.base.errors import Problem
from testbed.devices.bridge import Bridge


def strip_origins(found: tuple[Bridge, list[Problem]]) -> tuple[Any, ...]:
    """All that decides where frames go, without the lines it came from."""
    bridge, problems = found
    said = bridge.reading
    return bridge, problems, said.down, said.unclear, said.silent, said.spanning_tree
