"""Read a result folder, and the loads that its manifest tells of."""

from __future__ import annotations

import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from testbed.base.errors import InputError, did_you_mean, reading
from testbed.base.files import read_text
from testbed.base.limits import parse_json
from testbed.base.model import Sample
from testbed.planning import Plan
from testbed.planning.store import plan_from_json
from testbed.planning.validate_arrays import validate_arrays
from testbed.results.samples import SAMPLES, samples_from_csv
from testbed.results.store import INCOMPLETE, MANIFEST_KEYS, SCHEMA_VERSION
from testbed.scenario.engines import engine_name

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Run:
    """A finished run as read from its folder."""

    path: Path  # the folder
    manifest: dict[str, Any]  # verdict, reasons, loads, plan summary
    environment: dict[str, Any]  # machine, versions, capabilities
    plan: Plan  # the plan it ran
    samples: tuple[Sample, ...]  # every figure, in real-world units

    @property
    def dilation(self) -> float:
        """Dilation of the lab, also where the scenario left the choice of it to the machine."""
        return float(self.manifest["dilation"])

    @property
    def dilations(self) -> tuple[float, ...]:
        """That and those of loads that ran at another, each once."""
        others = sorted({head.dilation for head in load_heads(self.manifest, ()) if head.dilation is not None})
        return tuple(dict.fromkeys([self.dilation, *others]))

    @property
    def is_simulated(self) -> bool:
        """Whether no lab was built for it."""
        return str(self.manifest.get("engine", self.plan.scenario.engine)) == "simulate"


def load_run(path: Path, *, unfinished: bool = False, below: Path | None = None) -> Run:
    """Read a run; what is behind a link in its folder, or from the folder `below` on, is not read.

    An `unfinished` one may still be marked incomplete.

    Raises:
        InputError: no result folder, incomplete, damaged, or of another schema version; names the file.
    """
    with reading(path):
        try:
            there = stat.S_ISDIR(path.stat().st_mode)
        except FileNotFoundError as error:
            beside = [other.name for other in path.parent.iterdir()] if path.parent.is_dir() else []
            near = did_you_mean(path.name, beside)
            sentence = f"is not a result folder: there is nothing of that name{near and '.'}{near}"
            raise InputError.one(str(path), sentence) from error
        if not there:
            raise InputError.one(str(path), "is not a result folder")
    if path.name.endswith(INCOMPLETE) and not unfinished:
        raise InputError.one(str(path), "is the folder of a run that did not end; its raw output may still help")
    place, below = str(path / "manifest.json"), below or path
    manifest = _read(path / "manifest.json", below, _object)
    version = manifest.get("schema_version")
    if version != SCHEMA_VERSION:
        raise InputError.one(place, f"has schema version {version}; this program reads {SCHEMA_VERSION}")
    missing = [key for key in MANIFEST_KEYS if key not in manifest]
    if missing:
        raise InputError.one(place, f"is damaged: it lacks {', '.join(missing)}")
    for key in ("dilation", "seconds"):
        if _number(manifest[key]) is None:
            raise InputError.one(place, f"is damaged: its {key} is not a number but {str(manifest[key])[:_SHOWN]!r}")
    plan = _read(path / "plan.json", below, _plan)
    environment = _read(path / "environment.json", below, _object)
    if plan.digest != manifest["digest"]:
        raise InputError.one(place, f"is of plan {manifest['digest']} and plan.json holds {plan.digest}")
    return Run(
        path,
        _of_today(manifest),
        _of_today(environment),
        plan,
        _read(path / SAMPLES, below, samples_from_csv),
    )


def _of_today(facts: dict[str, object]) -> dict[str, object]:
    """What is stored of a run, with the name that its engine has now."""
    return {**facts, "engine": engine_name(facts["engine"])} if "engine" in facts else facts


def _read(file: Path, below: Path, parse: Callable[[str], _T]) -> _T:
    with reading(file):
        try:
            text = read_text(file, below)
        except FileNotFoundError:
            text = None
        if text is not None:
            return parse(text)
    raise InputError.one(str(file.parent), f"is not a result folder: {file.name} is missing")


def _plan(text: str) -> Plan:
    plan = plan_from_json(text)
    wrong = validate_arrays(plan.topology, plan.routes, plan.vlans, plan.bundles)
    if wrong:
        raise ValueError(wrong[0])
    return plan


def _object(text: str) -> dict[str, object]:
    value = parse_json(text)
    if not isinstance(value, dict):
        raise TypeError("it holds no JSON object")
    return value


UNFAITHFUL = ("invalid", "fail")
_LARGEST = 1e300
_SHOWN = 60


@dataclass(frozen=True, slots=True)
class Attempt:
    """A load that ran, and whose figures do not count, since it ran again."""

    dilation: float  # of the lab
    verdict: str  # as of a load
    reasons: tuple[str, ...]  # of the verdict


@dataclass(frozen=True, slots=True)
class LoadHead:
    """What a load is called and how it went."""

    label: str  # the `load` label of its samples
    title: str  # in words
    verdict: str = ""  # empty where none is given
    reasons: tuple[str, ...] = ()  # of the verdict
    no_matrix: str = ""  # why its telemetry has no traffic matrix; empty where it has one, or none was wanted
    dilation: float | None = None  # of the lab while it ran; None = that of the run
    attempts: tuple[Attempt, ...] = ()  # of it before this one, at other dilations
    too_slow: bool = False  # whether its figures are void only because the lab was too slow for it
    short_of_time: bool = False  # whether they have a reserve, and only because the lab had little time left
    # laboratory s that times of different machines may be off beside each other; None on one machine
    clock_error: float | None = None

    @property
    def is_unfaithful(self) -> bool:
        """Whether its figures must not be used."""
        return self.verdict in UNFAITHFUL


def load_heads(manifest: Mapping[str, object], labels: Iterable[str]) -> list[LoadHead]:
    """Return the loads in the order of a manifest, then those that only samples name by their labels."""
    listed = manifest.get("loads")
    heads = [
        LoadHead(
            str(entry.get("load", "")),
            str(entry.get("title") or entry.get("kind") or "load"),
            str(entry.get("verdict") or ""),
            texts(entry.get("reasons")),
            str(entry.get("no_traffic_matrix") or ""),
            _number(entry.get("dilation")),
            tuple(_attempts(entry.get("attempts"))),
            entry.get("too_slow") is True,
            entry.get("short_of_time") is True,
            _number(entry.get("clock_error")),
        )
        for entry in (listed if isinstance(listed, list) else [])
        if isinstance(entry, Mapping)
    ]
    known = {head.label for head in heads}
    return heads + [
        LoadHead(label, "load" if label else "whole run") for label in dict.fromkeys(labels) if label not in known
    ]


def _number(value: object) -> float | None:
    """What is a number of the usual size; JSON knows others, too."""
    return float(value) if isinstance(value, int | float) and abs(value) < _LARGEST else None


def _attempts(value: object) -> Iterator[Attempt]:
    for one in value if isinstance(value, list) else []:
        if isinstance(one, Mapping) and (dilation := _number(one.get("dilation"))) is not None:
            yield Attempt(dilation, str(one.get("verdict") or ""), texts(one.get("reasons")))


def texts(value: object) -> tuple[str, ...]:
    """A list of a manifest as texts; empty where there is none."""
    return tuple(map(str, value)) if isinstance(value, list | tuple) else ()
