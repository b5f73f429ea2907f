"""Routing on Ethernet fabrics that contain loops: plan, prove, build, measure.

    import testbed as tb

    plan = tb.plan("torus4x4", {"routing.kind": "updown"})
    plan.path("h1", "h9")

docs/python.md tells of all names here. They are imported when they are used, so that `import testbed` takes no time.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

__version__ = "1.0.0"

__all__ = [
    "CapabilityError",
    "FinishedRun",
    "InputError",
    "LabError",
    "PlannedFabric",
    "RunningLab",
    "Simulation",
    "TestbedError",
    "VerificationError",
    "WorkloadError",
    "__version__",
    "lab",
    "load",
    "plan",
    "run",
    "scenarios",
    "simulate",
    "testing",
]
# Modules; the first three are called as well: see testbed/called.py.
_MODULES = ("plan", "run", "simulate", "testing")


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"testbed.{name}")
    if name in __all__:
        return getattr(import_module("testbed.errors" if name.endswith("Error") else "testbed.api"), name)
    raise AttributeError(f"module 'testbed' has no attribute {name!r}; there are {', '.join(__all__)}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
