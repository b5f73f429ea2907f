"""Routing on Ethernet fabrics that contain loops: plan, prove, build, measure.

    import testbed as tb

    plan = tb.plan("torus4x4", {"routing.kind": "updown"})
    plan.path("h1", "h9")

docs/python.md tells of all names here. They are imported when they are used, so that `import testbed` takes no time.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
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
# Calls of testbed.api whose names packages of ours have as well.
_CALLS = ("plan", "run", "simulate")


class _Library(ModuleType):
    """This package, whose attributes `plan`, `run` and `simulate` are functions, and stay so.

    Importing `testbed.plan` sets the attribute of that name to the package. Here that changes nothing, so that
    `tb.plan` is a plain function for help(), notebooks and editors, whatever was imported before. Imports find the
    package where Python keeps modules, and a function has the package's attributes: `import testbed.plan.store as
    store` goes by them.
    """


def _call(name: str) -> property:
    def get(library: ModuleType) -> Any:
        if name in library.__dict__:
            return library.__dict__[name]
        function = getattr(import_module("testbed.api"), name)
        function.__dict__ = import_module(f"testbed.{name}").__dict__
        return function

    def put(library: ModuleType, value: Any) -> None:
        if not isinstance(value, ModuleType):
            library.__dict__[name] = value  # tests put something else in its place

    return property(get, put)


for _name in _CALLS:
    setattr(_Library, _name, _call(_name))
sys.modules[__name__].__class__ = _Library


def __getattr__(name: str) -> Any:
    if name == "testing":
        return import_module("testbed.testing")
    if name in __all__:
        return getattr(import_module("testbed.errors" if name.endswith("Error") else "testbed.api"), name)
    raise AttributeError(f"module 'testbed' has no attribute {name!r}; there are {', '.join(__all__)}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
