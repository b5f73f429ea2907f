"""Packages that are calls of the library as well: `testbed.plan` holds modules, `testbed.plan(…)` plans a fabric."""

from __future__ import annotations

import inspect
import sys
from importlib import import_module
from types import ModuleType
from typing import Any


class _CalledPackage(ModuleType):
    """A package that, called, does what the library's function of its name does."""

    def __call__(self, *args: Any, **options: Any) -> Any:
        """Call the function of testbed.api, which is only imported then."""
        return getattr(import_module("testbed.api"), self.__name__.rpartition(".")[2])(*args, **options)

    @property
    def __signature__(self) -> inspect.Signature:
        """Of that function, for help in notebooks."""
        return inspect.signature(getattr(import_module("testbed.api"), self.__name__.rpartition(".")[2]))


def called(package: str) -> None:
    """Let a package, while it is imported, be called as well; `package` is its `__name__`."""
    sys.modules[package].__class__ = _CalledPackage
