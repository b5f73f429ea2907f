"""What `make fuzz` feeds: each target takes an input made of texts and may raise nothing but a sentence."""

from __future__ import annotations

import contextlib
import json
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import yaml

from benchmarks.command import ROOT
from benchmarks.fuzz_excess import drawn, feed_excess
from benchmarks.fuzz_inputs import ODD, as_json, changed_files, changed_text, changed_tree, word
from benchmarks.fuzz_shown import drawn_records, feed_page, feed_progress, feed_records, theirs
from testbed.base.errors import TestbedError, reading
from testbed.base.model import Sample
from testbed.devices import DIALECTS, Options, export_plan
from testbed.devices.audit import audit
from testbed.devices.audit.read_folder import read_network
from testbed.experiments.report import render_report, rich_table
from testbed.experiments.sweep.read_sweep import parse_sweep
from testbed.planning import Plan, make_plan
from testbed.planning.prove_stored import proved_plan
from testbed.planning.store import plan_to_json
from testbed.planning.summary import summary
from testbed.results import load_run
from testbed.results.samples import samples_from_csv
from testbed.scenario import parse_scenario
from testbed.scenario.fabric_file import READERS, read_fabric
from testbed.scenario.workloads import mpi
from testbed.scenario.workloads.link_settings import read_words
from testbed.scenario.workloads.mpi_output import JobOutputError
from testbed.scenario.workloads.mpi_placement import Ranks
from testbed.ui.teaching import student_config
from tests.runs import goodput, run_of, stored

_MESH = "topology: {kind: mesh, sizes: [2, 2]}\nlab: {dilation: 50}\n"
_MOST = 40  # switches and hosts, about: larger plans take their time, which is no fault
_FORMS = ("json", "imb", "osu", "hpl", "npb", "free")


@dataclass(frozen=True)
class Target:
    """One way in.

    Attributes:
        draw: an input, which can be written as JSON.
        feed: reads one.
        share: of all inputs, as a weight; slow targets have small ones.
    """

    draw: Callable[[Random], Any]
    feed: Callable[[Any], object]
    share: int


@cache
def _scenarios() -> tuple[str, ...]:
    files = sorted(ROOT.glob("scenarios/*.yaml")) + sorted(ROOT.glob("scenarios/invalid/*.yaml"))
    return tuple(file.read_text(errors="replace") for file in files)


@cache
def _trees() -> tuple[Any, ...]:
    found = []
    for text in _scenarios():
        try:
            tree = yaml.safe_load(text)
        except (yaml.YAMLError, ValueError, IndexError, RecursionError):
            continue
        if isinstance(tree, dict):
            found.append(json.loads(json.dumps(tree, default=str)))
    return tuple(found)


@cache
def _plan(text: str = _MESH) -> Plan:
    return make_plan(parse_scenario(text, "fuzz.yaml"))


def _small(part: Any) -> bool:
    """Whether a block names no number, and no list of numbers, that makes a large fabric."""
    product, left = 1.0, [part]
    while left:
        one = left.pop()
        if isinstance(one, dict | list):
            left += one.values() if isinstance(one, dict) else one
        elif isinstance(one, int | float) and not isinstance(one, bool) and one > 1:
            product *= one
            if product > _MOST:
                return False
    return True


def _scenario(text: str) -> None:
    made = parse_scenario(text, "fuzz.yaml")
    raw = yaml.safe_load(text)
    if made.topology_kind != "file" and _small(raw.get("topology")) and _small(raw.get("routing")):
        plan = make_plan(made)
        summary(plan)
        if plan.is_proved:
            proved_plan(plan_to_json(plan), "fuzz.json")


def _setting(settings: list[str]) -> None:
    parse_scenario(_MESH, "fuzz.yaml", settings)


_KEYS = ("topology", "sizes", "kind", "lab", "dilation", "routing", "workloads", "links", "rate", "0", "1", "", "vm")


def _settings(chance: Random) -> list[str]:
    key = ".".join(chance.choice((*_KEYS, word(chance))) for _ in range(chance.randint(1, 4)))
    value = chance.choice((*ODD, word(chance), chance.randint(-9, 99)))
    return [chance.choice((f"{key}={value}", f"{key}={json.dumps(value)}", key, str(value)))]


def _fabric(given: Mapping[str, str]) -> None:
    read_fabric(given["text"], "fabric", given["form"], None)


@cache
def _fabrics() -> tuple[str, ...]:
    files = sorted(file for file in ROOT.glob("scenarios/**/fabrics/*") if file.is_file())
    return tuple(file.read_text(errors="replace")[:4000] for file in files)


@cache
def _saved() -> tuple[dict[str, str], ...]:
    found = []
    for text in (_MESH, "topology: {kind: ring, switches: 4}\nrouting: {kind: stp}\n"):
        for dialect in DIALECTS:
            try:
                found.append(dict(export_plan(_plan(text), Options(dialect)).files))
            except TestbedError:
                continue  # this dialect cannot express it
    texts = [file.read_text() for file in sorted(ROOT.glob("tests/data/saved/*.txt"))]
    found += [{**found[0], "s1.txt": text} for text in texts]
    return tuple(found)


def _configurations(files: dict[str, str]) -> None:
    audit(read_network(files))


@cache
def _plans() -> tuple[Any, ...]:
    texts = (
        _MESH, "topology: {kind: ring, switches: 4}\nassignment: {kind: renamed}\n",
        "topology: {kind: complete, switches: 3, parallel_links: 2}\nlinks: {aggregate: true}\n",
        "topology: {kind: mesh, sizes: [2]}\nassignment: {kind: fixed, registration: learning}\n",
        "topology: {kind: torus, sizes: [3]}\nrouting: {kind: dl, layers: 2}\nassignment: {kind: openflow}\n",
    )  # fmt: skip
    return tuple(json.loads(plan_to_json(_plan(text))) for text in texts)


@cache
def _runs() -> tuple[dict[str, str], ...]:
    samples = [
        *goodput(1e9, 9e8), Sample("rtt", 1e-3, "s", {"load": "1", "src": "h1", "dst": "h2"}, 1e-3),
        Sample("link_use", 0.5, "ratio", {"load": "1", "repeat": "1", "channel": "s1→s2"}, 0.4),
    ]  # fmt: skip
    with tempfile.TemporaryDirectory() as root:
        folder = stored(
            Path(root), run_of(_MESH + "workloads: [{kind: iperf3, protocol: udp}]\n", samples, name="fuzz")
        )
        return ({file.name: file.read_text() for file in sorted(folder.iterdir()) if file.is_file()},)


def _results(files: dict[str, str]) -> None:
    with tempfile.TemporaryDirectory(prefix="fuzz-") as root:
        for name, text in files.items():
            if name not in (".", ".."):
                (Path(root) / name).write_text(text, errors="surrogatepass")
        run = load_run(Path(root))
        render_report(run)
        rich_table(run, 80)


def _printed(given: Mapping[str, str]) -> None:
    job = mpi.MpiJob("job", "/job", "", output=given["form"])  # type: ignore[arg-type]
    try:
        mpi.check(job, given["text"], Ranks((0, 1, 2, 3)))
    except JobOutputError:
        return


@cache
def _outputs() -> tuple[str, ...]:
    files = sorted(file for file in ROOT.glob("tests/data/mpi/*") if file.is_file())
    return tuple(file.read_text(errors="replace")[:6000] for file in files)


def _exercise(text: str) -> None:
    student_config.parse(text, _plan().topology, "switches.txt")


_CONFIGURED = (
    "switch s1\n interface h1\n  pvid 1\n  untagged 1,2\n interface s2\n  tagged 1-3\n mac 00:00:00:00:00:01 vlan 1 s2",
    "switch s2\nvlan 10\ninterface s1\npvid 10\ntagged 1,2,3\n# nothing\nswitch s3\n",
)


def _csv(text: str) -> None:
    with reading("samples.csv"):
        samples_from_csv(text)


def _sweep(text: str) -> None:
    parse_sweep(text, ROOT / "scenarios/sweeps/fuzz.yaml")


@cache
def _sweeps() -> tuple[Any, ...]:
    files = sorted(ROOT.glob("scenarios/sweeps/*.yaml"))
    return tuple(json.loads(json.dumps(yaml.safe_load(file.read_text()), default=str)) for file in files)


_LINK_WORDS = ("rate=100M", "delay=1ms", "loss=1%", "down", "up", "reset")


def _words(words: list[str]) -> None:
    with contextlib.suppress(ValueError):  # which the command makes a sentence of
        read_words(words)


def _drawn_scenario(chance: Random) -> str:
    return changed_text(chance, _scenarios()) if chance.random() < 0.4 else as_json(changed_tree(chance, _trees()))


TARGETS: dict[str, Target] = {
    "scenario": Target(_drawn_scenario, _scenario, 20),
    "setting": Target(_settings, _setting, 20),
    "fabric": Target(
        lambda chance: {"text": changed_text(chance, _fabrics()), "form": chance.choice(("auto", *READERS))},
        _fabric,
        20,
    ),
    "configurations": Target(lambda chance: changed_files(chance, _saved()), _configurations, 8),
    "plan": Target(
        lambda chance: as_json(changed_tree(chance, _plans())), lambda text: proved_plan(text, "plan.json"), 12
    ),
    "results": Target(lambda chance: changed_files(chance, _runs()), _results, 2),
    "output": Target(
        lambda chance: {"text": changed_text(chance, _outputs()), "form": chance.choice(_FORMS)}, _printed, 10
    ),
    "exercise": Target(lambda chance: changed_text(chance, _CONFIGURED), _exercise, 10),
    "samples": Target(lambda chance: changed_text(chance, [_runs()[0]["samples.csv"]]), _csv, 10),
    "sweep": Target(lambda chance: as_json(changed_tree(chance, _sweeps())), _sweep, 10),
    "excess": Target(drawn, feed_excess, 2),
    "record": Target(drawn_records, feed_records, 2),
    "page": Target(theirs, feed_page, 1),
    "progress": Target(theirs, feed_progress, 1),
    "link": Target(lambda chance: [changed_text(chance, _LINK_WORDS) for _ in range(chance.randrange(4))], _words, 10),
}
