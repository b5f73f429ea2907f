"""Topologies, routings, assignments, patterns and loads that are not the project's own; they enter the same tables.

Two ways lead in: a Python file that a scenario names under `plugins:`, which has tables of its own called like ours
(ROUTINGS = {"mine": RoutingKind(...)}), and packages that are installed with entry points in the groups
`testbed.routings`, `testbed.topologies`, `testbed.assignments`, `testbed.patterns` and `testbed.workloads`, each with
the name of a kind and the object of the table. What a plug-in does wrong is a sentence that names it.

A file that a scenario names runs only where its content is trusted (testbed/base/trust.py): scenarios come from others.
"""

from __future__ import annotations

import dataclasses
import hashlib
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import ModuleType
from typing import Any

from testbed.base.errors import InputError, Problem, did_you_mean
from testbed.base.trust import PluginFile, may_run, read_plugin, why_not
from testbed.fabric.routing import ROUTINGS, RoutingKind
from testbed.fabric.topologies import TOPOLOGIES, TopologyKind
from testbed.fabric.traffic import PATTERNS
from testbed.fabric.vlans import ASSIGNMENTS, AssignmentKind
from testbed.scenario.fabric_file import TOPOLOGY_BLOCKS, TopologyBlock
from testbed.scenario.parameter_models import format_value, model_of
from testbed.scenario.plugin_guards import describe_exception, guard_function, guarded_pattern
from testbed.scenario.workloads import WORKLOADS, WorkloadKind


@dataclasses.dataclass(frozen=True, slots=True)
class Group:
    """A table that plug-ins add to."""

    table: dict[str, Any]
    kind: type[Any] | None  # of its entries; None = functions
    noun: str
    spec: str  # attribute of an entry with the dataclass of its parameters


# What plug-ins import, by its place in release 1.0 → its place now.
_MOVED = {
    "testbed.errors": "testbed.base.errors",
    "testbed.model": "testbed.base.model",
    "testbed.plan": "testbed.planning",
    "testbed.routing": "testbed.fabric.routing",
    "testbed.topologies": "testbed.fabric.topologies",
    "testbed.traffic": "testbed.fabric.traffic",
    "testbed.units": "testbed.base.units",
    "testbed.vlans": "testbed.fabric.vlans",
    "testbed.workloads": "testbed.scenario.workloads",
}
GROUPS: dict[str, Group] = {
    "topologies": Group(TOPOLOGIES, TopologyKind, "topology", "spec"),
    "routings": Group(ROUTINGS, RoutingKind, "routing", "options"),
    "assignments": Group(ASSIGNMENTS, AssignmentKind, "assignment", "options"),
    "patterns": Group(PATTERNS, None, "pattern", ""),
    "workloads": Group(WORKLOADS, WorkloadKind, "workload", "spec"),
}
_NAME = re.compile(r"[a-z][a-z0-9_]*")


@dataclasses.dataclass(frozen=True, slots=True)
class Owner:
    """Whose a name is."""

    origin: str  # a file or a package
    digest: str  # of its content


# What plug-ins have added in this program, by group and name; and why others of installed packages are not there.
_OWNERS: dict[tuple[str, str], Owner] = {}
_BROKEN: dict[tuple[str, str], str] = {}
# Files that have been taken in, by path.
_LOADED: dict[str, PluginFile] = {}


def origin_of(group: str, name: str) -> str:
    """The file or package that a name is from; empty for the project's own."""
    owner = _OWNERS.get((group, name))
    return owner.origin if owner is not None else ""


def broken_plugins() -> dict[str, str]:
    """Names of installed plug-ins that cannot be used, each with the reason."""
    load_installed()
    return {f"{group}: {name}": why for (group, name), why in _BROKEN.items()}


def why_broken(group: str, name: object) -> str:
    """Why an installed plug-in of that name is not in its table; empty where there is none."""
    return _BROKEN.get((group, name), "") if isinstance(name, str) else ""


def load_files(files: object, folder: Path, problems: list[Problem], *, trust: bool = False) -> tuple[str, ...] | None:
    """Take in what files offer, and return their absolute paths; every problem found is added.

    Args:
        files: what a scenario says under `plugins:`.
        folder: that of the scenario, from which they are looked for.
        problems: to which those found are added.
        trust: whether the caller has said that these may run.

    Returns:
        None where one of them may not run. Then none does, and nothing can be said of kinds that the tables lack.
    """
    if not isinstance(files, list) or not all(isinstance(file, str) for file in files):
        sentence = f"should be a list of Python files such as [my_routing.py], not {format_value(files)}"
        problems.append(Problem("plugins", sentence))
        return ()
    paths = [(folder / name).resolve() for name in files]
    read: list[PluginFile | None] = []
    refused = []
    for number, path in enumerate(paths):
        try:
            found = _read(path)
        except InputError as error:
            problems += _of_plugin(number, files[number], error)
            read.append(None)
            continue
        read.append(found)
        if not (trust or may_run(found)):
            refused.append(Problem(f"plugins.{number}", _not_trusted(files[number], found)))
    if refused:
        problems += refused
        return None
    for number, (name, file) in enumerate(zip(files, read, strict=True)):
        try:
            if file is not None:
                take_file(file)
        except InputError as error:
            problems += _of_plugin(number, name, error)
    return tuple(map(str, paths))


def _of_plugin(number: int, name: str, error: InputError) -> list[Problem]:
    return [Problem(f"plugins.{number}", f"{name}: {problem.sentence}") for problem in error.problems]


def _not_trusted(name: str, file: PluginFile) -> str:
    """What stands between a plug-in and its being run."""
    what = f"{name} is a program of {file.owner} (SHA-256 {file.digest[:16]}…) that would run with your rights"
    return why_not(what, file)


def load_file(path: Path) -> dict[str, list[str]]:
    """Take in what a file offers that the caller has named: group → names.

    Raises:
        InputError: see take_file().
    """
    return take_file(_read(path))


def _read(path: Path) -> PluginFile:
    """Read a plug-in.

    Raises:
        InputError: it cannot be read; suggests the nearest name.
    """
    try:
        return read_plugin(path)
    except OSError as error:
        beside = [other.name for other in path.parent.glob("*.py")] if path.parent.is_dir() else []
        near = did_you_mean(path.name, beside)
        raise InputError.one("", f"cannot be read: {error.strerror or error}.{near}") from error


def take_file(file: PluginFile) -> dict[str, list[str]]:
    """Run a plug-in, once in a program, and take in what it offers: group → names.

    A file that has changed since replaces what it offered.

    Raises:
        InputError: it cannot be run, offers nothing, or what it offers cannot be taken; all of it.
    """
    owner = Owner(file.path, file.digest)
    offered = _tables_of(_run(file))
    problems: list[Problem] = []
    for group, entries in offered.items():
        for name, entry in entries.items():
            wrong = _take(group, name, entry, owner)
            problems += [Problem("", wrong)] if wrong else []
    if problems:
        raise InputError(problems)
    _LOADED[file.path] = file
    return {group: [*entries] for group, entries in offered.items()}


def loaded_files(paths: Iterable[str]) -> tuple[PluginFile, ...]:
    """Of plug-ins of a scenario those that run in this program, as they were when they were run."""
    return tuple(_LOADED[path] for path in paths if path in _LOADED)


@cache
def load_installed() -> None:
    """Take in what installed packages offer, once in a program; what cannot be taken is noted in broken_plugins()."""
    points = entry_points()  # once: each call reads those of every package
    take_installed([(group, point) for group in GROUPS for point in points.select(group=f"testbed.{group}")])


def take_installed(points: Iterable[tuple[str, EntryPoint]]) -> None:
    """Take in entry points, each with its group."""
    for group, point in points:
        package = point.dist.name if point.dist is not None else point.value
        try:
            entry = point.load()
        except Exception as error:  # a package of someone else may raise anything
            _BROKEN[group, point.name] = f"{package} cannot be imported: {type(error).__name__}: {error}"
            continue
        version = point.dist.version if point.dist is not None else ""
        wrong = _take(group, point.name, entry, Owner(f"the package {package}", f"{point.value} {version}"))
        if wrong:
            _BROKEN[group, point.name] = f"{package}: {wrong}"


def forget(origin: str) -> None:
    """Take what a file or package has added out of the tables again."""
    for (group, name), owner in [*_OWNERS.items()]:
        if owner.origin == origin:
            del _OWNERS[group, name]
            GROUPS[group].table.pop(name, None)
            if group == "topologies":
                TOPOLOGY_BLOCKS.pop(name, None)


def _run(file: PluginFile) -> ModuleType:
    """Run a file as a module; dataclasses in it, and pickles of their values, look it up by its name.

    The name says where the file is and what is in it, so it is the same in another process, and there is one class
    of each in a process however many scenarios name the file.
    """
    number = hashlib.sha256(file.path.encode("utf-8", "surrogateescape") + b"\0" + file.content).hexdigest()[:16]
    name = f"testbed_plugin_{re.sub(r'[^0-9a-zA-Z]', '_', Path(file.path).stem)}_{number}"
    if name in sys.modules:
        return sys.modules[name]
    module = ModuleType(name)
    module.__file__ = file.path
    sys.modules[name] = module
    try:
        exec(compile(file.content.decode("utf-8"), file.path, "exec"), module.__dict__)
    except BaseException as error:
        del sys.modules[name]
        if isinstance(error, UnicodeDecodeError):
            raise InputError.one("", "cannot be read: it is not UTF-8 text") from error
        if isinstance(error, SyntaxError):
            raise InputError.one("", f"line {error.lineno}: {error.msg}") from error
        if isinstance(error, Exception | SystemExit):
            raise InputError.one("", f"raised {describe_exception(error, file.path)}{_suggest_place(error)}") from error
        raise
    return module


def _suggest_place(error: BaseException) -> str:
    """Where the module is now that could not be imported; empty where it never was one of ours."""
    old = (error.name or "") if isinstance(error, ModuleNotFoundError) else ""
    place = next((new + old[len(was) :] for was, new in _MOVED.items() if old == was or old.startswith(f"{was}.")), "")
    return f"; it is {place} now" if place else ""


def _tables_of(module: ModuleType) -> dict[str, Mapping[str, Any]]:
    """The tables of a module, by group.

    Raises:
        InputError: there is none.
    """
    found = {}
    for group, kind in GROUPS.items():
        table = module.__dict__.get(group.upper())
        if table is not None and table is not kind.table:
            if not isinstance(table, Mapping) or not all(isinstance(name, str) for name in table):
                raise InputError.one("", f"{group.upper()} should be a dictionary by name, not {type(table).__name__}")
            found[group] = table
    if not any(found.values()):
        tables = ", ".join(group.upper() for group in GROUPS)
        raise InputError.one("", f"offers nothing: it has none of the dictionaries {tables}")
    return found


def _take(group: str, name: str, entry: Any, owner: Owner) -> str:
    """Add an entry to its table; returns why it cannot be, empty where it was."""
    kind = GROUPS[group]
    before = _OWNERS.get((group, name))
    if not _NAME.fullmatch(name):
        return f'the {kind.noun} "{name}" should be called by small letters, digits and "_"'
    if before is None and (name in kind.table or (group == "topologies" and name in TOPOLOGY_BLOCKS)):
        return f'there is a {kind.noun} "{name}" in testbed already; choose another name'
    if before is not None and before.origin != owner.origin and before.digest != owner.digest:
        return f'the {kind.noun} "{name}" is offered by {before.origin} already; choose another name'
    wrong = next(_list_faults(kind, entry), "")
    if wrong:
        return f'the {kind.noun} "{name}" {wrong}'
    made = _guard_entry(group, name, entry, owner.origin)
    kind.table[name] = made
    if group == "topologies":
        TOPOLOGY_BLOCKS[name] = TopologyBlock(made.spec, made.summary)
    _OWNERS[group, name] = owner
    return ""


def _list_faults(kind: Group, entry: Any) -> Iterator[str]:
    """Why an object is no entry of a table."""
    if kind.kind is None:
        if not callable(entry):
            yield f"should be a function of a topology and a seed, not {type(entry).__name__}"
        return
    if not isinstance(entry, kind.kind):
        yield f"should be a {kind.kind.__name__}, not {type(entry).__name__}"
    spec = getattr(entry, kind.spec)
    if not isinstance(spec, type) or not dataclasses.is_dataclass(spec):
        yield f"should have a dataclass as {kind.spec}"
    try:
        model_of(spec)
    except Exception as error:  # pydantic has many
        yield f"has {kind.spec} that cannot be checked: {type(error).__name__}: {str(error).partition(chr(10))[0]}"
    if isinstance(entry, TopologyKind):
        if not callable(getattr(spec, "extent", None)):
            yield "should have a method extent() in its spec, which counts switches, links and hosts"
        yield from _check_known("routing", entry.routing, ROUTINGS)
    if isinstance(entry, RoutingKind):
        yield from _check_known("assignment", entry.assignment, ASSIGNMENTS)
    if isinstance(entry, WorkloadKind) and (entry.pairs is None or not _has_pattern(spec)):
        yield "should measure pairs: it needs pairs=PairTool(...), and a pattern in its spec"


def _check_known(noun: str, name: str, table: Mapping[str, Any]) -> Iterator[str]:
    if name not in table:
        yield f'names the {noun} "{name}", which there is not.{did_you_mean(name, table)}'


def _has_pattern(spec: type[Any]) -> bool:
    return any(field.name == "pattern" for field in dataclasses.fields(spec))


def _guard_entry(group: str, name: str, entry: Any, origin: str) -> Any:
    """The entry with functions whose faults are sentences."""
    watch: Callable[..., Any] = lambda place, call, check: guard_function(  # noqa: E731 - partial takes no order of these
        place, f'"{name}" of {origin}', origin, call, check
    )
    if group == "patterns":
        return guarded_pattern(f'"{name}" of {origin}', origin, entry)
    if group == "routings":
        return dataclasses.replace(entry, route=watch("routing.kind", entry.route, "routes"))
    if group == "topologies":
        return dataclasses.replace(
            entry, build=watch("topology.kind", entry.build, "topology"), check=watch("topology.kind", entry.check, "")
        )
    if group == "assignments":
        return dataclasses.replace(entry, assign=watch("assignment.kind", entry.assign, "vlans"))
    return entry
