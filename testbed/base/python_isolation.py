"""No Python of this program takes code or settings from the folder that it is called in.

Python looks for modules in the current folder first, wherever it is started with `-m` or `-c`, and some libraries read
files of settings there. That folder may hold somebody else's scenario, and the program may be root. So this is the one
place that says how a Python is started: isolated (`-I`: no current folder, no folder of the user's own packages, no
variables PYTHON…), with the project's packages on its path. It imports what Python itself has loaded already.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from importlib.machinery import ModuleSpec, PathFinder
from types import CodeType, ModuleType

FOLDER = "/"  # where Pythons of our own work
# Not by pathlib, which is not loaded yet.
_PACKAGES = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))  # noqa: PTH100, PTH120
# The project comes after Python's own modules, and before those of the environment, where another version may be.
# No single quotes: it also stands in scripts of batch jobs.
_START = (
    'import sys; places = ("site-packages", "dist-packages"); '
    "sys.path.insert(next((n for n, one in enumerate(sys.path) if one.endswith(places)), len(sys.path)), sys.argv[1]); "
    "from testbed.base.python_isolation import run_module; run_module(sys.argv[3:])"
)
# What a library would read in the current folder: its module → the name of the file, and what it finds in its place.
_NO_FILE = ""
_SETTINGS = {"numba.core.config": (".numba_config.yaml", _NO_FILE)}
_SETTINGS_OF_PROGRAM = {"matplotlib": ("matplotlibrc", "mpl-data/matplotlibrc")}  # the latter beside the module


def make_module_command(module: str, *words: str, unbuffered: bool = False) -> tuple[str, ...]:
    """The command that runs a module, as `python -m` does, but isolated."""
    return (*_python(unbuffered=unbuffered), "-c", _START, _PACKAGES, "-m", module, *words)


def make_file_command(file: str | os.PathLike[str], *words: str) -> tuple[str, ...]:
    """The command that runs a file of our own, which imports nothing of the project."""
    return (*_python(), os.fspath(file), *words)


def make_code_command(code: str, *words: str) -> tuple[str, ...]:
    """The command that runs code of our own, which imports nothing of the project."""
    return (*_python(), "-c", code, *words)


def make_module_prefix() -> tuple[str, ...]:
    """What a command begins with that goes on with `-m MODULE`."""
    return (*_python(), "-c", _START, _PACKAGES)


def find_python() -> str:
    """Path of this Python, for programs of users, which get it as it is."""
    return sys.executable


def clean_environment(environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """An environment without what changes a Python, also one that programs of ours start in turn."""
    return {name: value for name, value in environment.items() if not name.startswith("PYTHON")}


def run_module(words: Sequence[str]) -> None:
    """Become what the words of a command line name: a module and its arguments."""
    import runpy  # noqa: PLC0415 - others need none

    isolate()
    sys.argv = list(words)
    runpy.run_module(words[0], run_name="__main__", alter_sys=True)


def isolate() -> None:
    """Take the current folder out of this program's path, and let no library read settings there.

    What Python has imported before, it has: `python -m` loads some modules of its own before it comes here.
    """
    try:
        here = os.getcwd()  # noqa: PTH109 - pathlib is not loaded
    except OSError:
        here = ""  # it is gone
    if sys.path and sys.path[0] == here != _PACKAGES:
        del sys.path[0]  # put there by `python -m`
    sys.path[:] = [one for one in sys.path if one]  # by a colon too many in PYTHONPATH
    ignore_settings({**_SETTINGS, **_SETTINGS_OF_PROGRAM})


def ignore_settings(settings: Mapping[str, tuple[str, str]] = _SETTINGS) -> None:
    """Let libraries that are still to be imported not find their files of settings in the current folder.

    A program of a user that uses ours as a library keeps those of other libraries than numba, which are its own.
    """
    finder = next((one for one in sys.meta_path if isinstance(one, _WithoutSettings)), None)
    if finder is None:
        finder = _WithoutSettings()
        sys.meta_path.insert(0, finder)
    finder.settings |= settings


def _python(*, unbuffered: bool = False) -> tuple[str, ...]:
    return (sys.executable, "-I", *(("-u",) if unbuffered else ()))


class _WithoutSettings:
    """Finds a few modules as Python does, and loads them with another name for their file of settings."""

    def __init__(self) -> None:
        self.settings: dict[str, tuple[str, str]] = {}

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """As importlib asks."""
        if name not in self.settings:
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None and spec.origin is not None:
            file, instead = self.settings[name]
            place = os.path.join(os.path.dirname(spec.origin), instead) if instead else instead  # noqa: PTH118, PTH120
            spec.loader = _Loader(spec.loader, file, place)  # type: ignore[assignment]
        return spec


class _Loader:
    """Loads a module with a constant changed."""

    def __init__(self, loader: object, constant: str, instead: str) -> None:
        self._loader, self._constant, self._instead = loader, constant, instead

    def create_module(self, spec: ModuleSpec) -> None:
        """As importlib asks: a module as all."""
        del spec

    def exec_module(self, module: ModuleType) -> None:
        """As importlib asks."""
        code = self._loader.get_code(module.__name__)  # type: ignore[attr-defined]
        exec(self._rewrite_code(code), module.__dict__)

    def _rewrite_code(self, code: CodeType) -> CodeType:
        constants: list[object] = []
        for one in code.co_consts:
            if isinstance(one, CodeType):
                constants.append(self._rewrite_code(one))
            else:
                constants.append(self._instead if one == self._constant else one)
        return code.replace(co_consts=tuple(constants))

    def __getattr__(self, name: str) -> object:
        return getattr(self._loader, name)  # such as importlib.resources asks
