"""The folder of a simulation: a result folder like a run's, and a file for each point that is done, to resume by."""

from __future__ import annotations

import dataclasses
import json
import os
import platform
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from testbed.base.errors import InputError, Problem, argument, reading
from testbed.base.files import read_text, write_whole
from testbed.base.limits import parse_json
from testbed.base.model import Sample
from testbed.base.version import __version__
from testbed.dataplane.predict.wire_overhead import transport
from testbed.engines.simulate.flit_point import TELLING, Latency, Links, Point, TieOrder, rows_of, tie_spread
from testbed.engines.simulate.flit_settings import UNIFORM
from testbed.planning import Plan
from testbed.planning.proof import deadlock_word
from testbed.results import SIMULATION, ResultFolder, Run
from testbed.results.store import LoadEntry, dated_folder
from testbed.scenario.workloads.spec import Iperf3

RECORD = "simulation.json"
POINTS = "points"
SCHEMA_VERSION = 1
_ALL = 1.0  # of what a host can send


def new_folder(root: Path, name: str, asked: dict[str, object], word: str = "simulate") -> Path:
    """Make a simulation's folder.

    `asked` is what all points have in common, for simulation.json; `word` that of the level.

    Raises:
        InputError: it cannot be made.
    """
    folder = dated_folder(root, f"{word}-{name}", POINTS)
    record = {"schema_version": SCHEMA_VERSION, "scenario": name, **asked}
    write_whole(folder / RECORD, _json(record))
    return folder


def newest_folder(root: Path, name: str, asked: dict[str, object], word: str = "simulate") -> Path:
    """The folder of the newest simulation of a scenario, to resume.

    Raises:
        InputError: there is none, it is damaged, or it asked for something else; every difference.
    """
    found = sorted(file.parent for file in root.glob(f"*-{word}-{name}*/{RECORD}"))
    found = [folder for folder in found if _read(folder, RECORD).get("scenario") == name]
    if not found:
        sentence = f"there is no simulation of {name} in {root}; leave {argument('resume')} out to start one"
        raise InputError.one(argument("resume"), sentence)
    folder = found[-1]
    record = read_record(folder)
    problems = [
        Problem(
            str(folder), f"{key} was {record.get(key)} and is {value} now; leave {argument('resume')} out to start anew"
        )
        for key, value in asked.items()
        if record.get(key) != value
    ]
    if problems:
        raise InputError(problems)
    return folder


def read_record(folder: Path) -> dict[str, object]:
    """What all points of a simulation have in common.

    Raises:
        InputError: it is damaged, or of another schema version.
    """
    record = _read(folder, RECORD)
    if record.get("schema_version") != SCHEMA_VERSION:
        sentence = f"has schema version {record.get('schema_version')}; this program reads {SCHEMA_VERSION}"
        raise InputError.one(str(folder / RECORD), sentence)
    missing = [key for key in ("scenario", "digest", "pattern") if key not in record]
    if missing:
        raise InputError.one(str(folder / RECORD), f"is damaged: it lacks {', '.join(missing)}")
    return record


def write_point(folder: Path, point: Point) -> None:
    """Keep what is done."""
    file = folder / POINTS / f"load-{point.load!r}-seed-{point.seed}.json"
    write_whole(file, _json(dataclasses.asdict(point)), below=folder)


def read_points(folder: Path) -> list[Point]:
    """The points that are done, by load and seed.

    Raises:
        InputError: a file is damaged.
    """
    found = []
    for file in (folder / POINTS).glob("load-*.json"):
        raw = _read(folder, f"{POINTS}/{file.name}")
        try:
            latency = None if raw["latency"] is None else Latency(**raw["latency"])
            lists = {"cycle": tuple(raw["cycle"]), "channel_flits": tuple(raw["channel_flits"])}
            links = None if raw.get("links") is None else Links(**raw["links"])
            ties = tuple(TieOrder(**one) for one in raw.get("ties", ()))
            found.append(Point(**{**raw, **lists, "latency": latency, "links": links, "ties": ties}))
        except (LookupError, TypeError) as error:
            raise InputError.one(str(file), f"is damaged: {error!r}; delete it to have that run again") from error
    return sorted(found, key=lambda point: (point.load, point.seed))


def store(
    folder: Path, plan: Plan, asked: Mapping[str, Any], points: Sequence[Point], samples: Iterable[Sample]
) -> None:
    """Write what every result folder has, so that a simulation is read, reported and compared like a run."""
    result = ResultFolder.open_existing(folder, plan)
    result.write_plan(environment(simulator=dict(asked)))
    result.write_samples(samples)
    result.write_manifest(
        *_judge_points(plan, str(asked["pattern"]), points), {"dilation": 1.0, "engine": "simulate", "kind": SIMULATION}
    )


def environment(**more: Any) -> dict[str, object]:
    """What a simulation was made with."""
    return {
        "testbed": __version__,
        "engine": "simulate",
        "python": platform.python_version(),
        "machine": platform.machine(),
        "processors": os.cpu_count(),
        **more,
    }


class _Judged(NamedTuple):
    verdict: str
    reasons: list[str]
    loads: list[LoadEntry]


def _judge_points(plan: Plan, pattern: str, points: Sequence[Point]) -> _Judged:
    """Verdict, reasons and loads: the pattern at all its rates, and each of the scenario's loads that it represents."""
    deadlocks = [point for point in points if point.cycle]
    reasons = [
        f"{deadlock_word(plan.scenario)} at injection rate {point.load:g}, seed {point.seed}: {' → '.join(point.cycle)}"
        for point in deadlocks
    ]
    reasons += [
        f"at load {row.load:g} figures depend on which of simultaneous events comes first: accepted "
        f"{row.ties.accepted_min:.4f} – {row.ties.accepted_max:.4f}, a spread of {row.ties.spread:.1%} over "
        f"{row.ties.orders} orders"
        for row in rows_of(points)
        if row.ties is not None and row.ties.spread > TELLING
    ]
    verdict = "fail" if deadlocks and plan.scenario.expect != "deadlock" else "pass"
    loads = [_entry(SIMULATION, pattern, f"simulated {pattern}")]
    if any(point.load == _ALL for point in points if not point.cycle):
        for number, spec in _loads_meant(plan, pattern):
            loads.append(_entry("iperf3", str(number), f"iperf3 {spec.protocol} {spec.pattern}"))
    return _Judged(verdict, reasons, loads)


def _entry(kind: str, load: str, title: str) -> LoadEntry:
    return {"kind": kind, "verdict": "pass", "reasons": [], "load": load, "title": title}


def _loads_meant(plan: Plan, pattern: str) -> Iterator[tuple[int, Iperf3]]:
    """Loads of the scenario that give the fabric all it can carry, as simulated hosts do at rate 1."""
    for number, load in enumerate(plan.scenario.workloads, 1):
        spec = load.spec
        same = isinstance(spec, Iperf3) and spec.pattern == pattern != UNIFORM
        if isinstance(spec, Iperf3) and same and (spec.protocol == "tcp" or spec.offered_load >= 1):
            yield number, spec


def samples_of(plan: Plan, pattern: str, points: Iterable[Point]) -> list[Sample]:
    """Figures of all points that did not deadlock; use of the channels at the highest rate of each seed.

    What a simulated flit is on the wire, a lab's frames are; so the goodput of a load follows from accepted traffic by
    the bytes of a frame.
    """
    flowing = [point for point in points if not point.cycle and point.accepted is not None]
    found = []
    for point in flowing:
        labels = {
            "load": pattern,
            "kind": SIMULATION,
            "pattern": pattern,
            "repeat": str(point.seed),
            "rate": f"{point.load:g}",
        }
        found += [Sample(metric, value, unit, labels) for metric, value, unit in _figures(point)]
        if point.load == max(other.load for other in flowing if other.seed == point.seed):
            found += _channel_samples(plan, point, labels)
    for number, spec in _loads_meant(plan, pattern):
        for point in flowing:
            if point.load == _ALL:
                labels = {"load": str(number), "repeat": str(point.seed)}
                found.append(Sample("goodput", _goodput(plan, spec, point), "bit/s", labels))
                found += _channel_samples(plan, point, labels)
    return found


def _figures(point: Point) -> Iterator[tuple[str, float, str]]:
    assert point.accepted is not None
    yield "accepted", point.accepted, "ratio"
    if point.latency is not None:
        unit = "cycles" if point.links is None else "s"
        yield "latency_mean", point.latency.mean, unit
        yield "latency_p99", point.latency.p99, unit
    if point.links is not None:
        yield "loss", point.links.drops / max(point.links.drops + point.packets, 1), "ratio"
        yield "host_paused", point.links.hosts_paused, "ratio"
        yield "channel_paused", point.links.channels_paused, "ratio"
    spread = tie_spread([point])
    if spread is not None:
        yield "tie_spread", spread.spread, "ratio"


def _channel_samples(plan: Plan, point: Point, labels: Mapping[str, str]) -> list[Sample]:
    return [
        Sample("link_use", share, "ratio", {**labels, "channel": plan.topology.channel_name(channel)})
        for channel, share in enumerate(point.channel_use)
    ]


def _goodput(plan: Plan, spec: Iperf3, point: Point) -> float:
    """Bit/s of the mean flow."""
    assert point.accepted is not None
    links = plan.scenario.links
    # A flit's cycle is that of the slower link; frames have a rate of their own on each.
    rate = min(links.rate, links.edge_rate) if point.links is None else links.edge_rate
    return point.accepted * rate / transport(spec.protocol, spec.payload).cost(tagged=False)


def is_old(folder: Path) -> bool:
    """Whether a folder is of an older simulation, or of one that did not end: it holds no plan."""
    return (folder / RECORD).is_file() and not (folder / "manifest.json").is_file()


def old_run(folder: Path, runs: Iterable[Run]) -> Run:
    """Read a simulation without a plan, as they were stored once, by the plan of another run.

    Raises:
        InputError: there is no such run, or the simulation did not end or is damaged.
    """
    record, points = read_record(folder), read_points(folder)
    if not (folder / "points.csv").is_file():
        sentence = "is of a simulation that did not end; go on with `testbed simulate --resume`"
        raise InputError.one(str(folder), sentence)
    same = next((run for run in runs if run.plan.digest == record["digest"]), None)
    if same is None:
        sentence = (
            f"simulates {record['scenario']} with plan {record['digest']}, which it does not hold; give a run of the "
            "same plan with it, or simulate again"
        )
        raise InputError.one(str(folder), sentence)
    pattern = str(record["pattern"])
    manifest = {
        **same.manifest,
        **_judge_points(same.plan, pattern, points)._asdict(),
        "dilation": 1.0,
        "kind": SIMULATION,
    }
    samples = samples_of(same.plan, pattern, points)
    return Run(folder, manifest, environment(), same.plan, tuple(samples))


def _json(value: dict[str, object]) -> bytes:
    return (json.dumps(value, ensure_ascii=False) + "\n").encode()


def _read(folder: Path, name: str) -> dict[str, Any]:
    file = folder / name
    with reading(file):
        value = parse_json(read_text(file, folder))
        if not isinstance(value, dict):
            raise TypeError("it holds no JSON object")
        return value
