"""The lab: the only package that touches the machine.

`launch` and `client` run on the user's side; `agent` and what it imports run as process 1 inside the lab's own
PID, network, mount and UTS namespaces, and import neither planner nor numpy so that a lab starts at once.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType

_SYSTEM = ["/usr/lib/python3/dist-packages", "/usr/lib/python3/site-packages"]


class _SystemMininet:
    """Finds the Mininet that the system's package installed, for Pythons that see no packages of the system.

    It is pure Python, and in no registry in a form that works.
    """

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> ModuleSpec | None:
        """As importlib asks; of Mininet's own modules Python then knows the place."""
        del path, target
        return PathFinder.find_spec(name, _SYSTEM) if name == "mininet" else None


# Last, so that a Mininet of the environment itself comes first.
sys.meta_path.append(_SystemMininet)
