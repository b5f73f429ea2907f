"""What planning takes is foretold, and a plan that does not fit is refused before anything is computed."""

from __future__ import annotations

import json
import resource
import subprocess
import sys

import pytest

from testbed.base.errors import EXIT_NOTHING_RAN, CapabilityError
from testbed.engines.lab.hosts import available_memory
from testbed.fabric.routing import ROUTINGS
from testbed.planning import make_plan, size
from testbed.planning.scenario_fabric import logical_fabric
from testbed.scenario import find_scenario, load_scenario
from testbed.ui.cli.output import plan_scenario
from tests.fabrics import scenario_of

_MEASURED = """
import ctypes, json, sys
from pathlib import Path
from testbed.planning import make_plan
from testbed.scenario import parse_scenario
from testbed.planning.size import size_of
from testbed.planning.scenario_fabric import logical_fabric
def status(name):
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * int(next(line for line in lines if line.startswith(name)).split()[1])
make_plan(parse_scenario(sys.argv[1].replace("416", "64"), "x"))  # loads compiled code
scenario = parse_scenario(sys.argv[1], "x")
foretold = size_of(scenario, logical_fabric(scenario)[0]).memory
ctypes.CDLL(None).malloc_trim(0)
Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
before = status("VmRSS")
make_plan(scenario)
print(json.dumps([foretold, status("VmHWM") - before]))
"""


def size_of(text: str) -> size.Size:
    scenario = scenario_of(text)
    return size.size_of(scenario, logical_fabric(scenario)[0])


def random_fabric(switches: int, routing: str = "updown", degree: int = 8) -> str:
    return (
        f"topology: {{kind: random, switches: {switches}, degree: {degree}, seed: 1}}\nrouting: {{kind: {routing}}}\n"
        "assignment: {kind: openflow}\n"
    )


BY_DESTINATION = (
    "topology: {{kind: random, switches: {}, degree: 16, seed: 1}}\nrouting: {{kind: updown, next_hop: destination}}\n"
    "assignment: {{kind: static}}\n"
)


@pytest.mark.slow
@pytest.mark.parametrize("text", [random_fabric(416), BY_DESTINATION.format(416)])
def test_the_memory_of_a_plan_is_what_was_foretold(text):
    command = [sys.executable, "-c", _MEASURED, text]
    foretold, taken = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    assert foretold / 2 < taken < 2 * foretold


@pytest.mark.slow
@pytest.mark.parametrize(("text", "gigabytes"), [
    (random_fabric(2048), (0.7, 1.1)),  # 0.88 were measured
    ("topology: {kind: torus, sizes: [64, 64], parallel_links: 2}", (0.3, 0.6)),  # 0.4
    ("topology: {kind: torus, sizes: [4, 4]}", (0, 0.001)),
    (BY_DESTINATION.format(2048), (0.18, 0.26)),  # 0.23
    (BY_DESTINATION.format(10_000), (4.2, 5.2)),  # 4.5
])  # fmt: skip
def test_what_was_measured_is_foretold(text, gigabytes):
    least, most = gigabytes
    assert least < size_of(text).memory / 1e9 < most


def test_routings_by_trees_are_taken_for_such():
    by_trees = {}
    for name in ("torus4x4", "mesh4x4", "fattree14", "flat16", "complete8", "updown-irregular16", "sr-irregular16"):
        scenario = load_scenario(find_scenario(name))
        routes = ROUTINGS[scenario.routing_kind].route(logical_fabric(scenario)[0], scenario.routing)
        by_trees[scenario.routing_kind] = routes.paths is None
    assert {kind for kind, found in by_trees.items() if found} == size.BY_TREES & {*by_trees}
    assert len(by_trees) >= 5


def test_a_large_plan_is_told_before_it_is_made(monkeypatch, capsys):
    plan_scenario("torus4x4")
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(size, "_LARGE", 1 << 10)
    plan_scenario("torus4x4")
    assert " ".join(capsys.readouterr().err.split()) == (
        "planning 16 switches and 256 pairs of them takes some 0.0 GB of memory, and 0 s on an idle machine"
    )


def test_a_plan_that_does_not_fit_is_refused(monkeypatch):
    monkeypatch.setattr(available_memory, "free_memory", lambda: 5 * 10**8)
    with pytest.raises(CapabilityError) as caught:
        make_plan(scenario_of(random_fabric(2048)), available_memory.require_room)
    assert caught.value.exit_code == EXIT_NOTHING_RAN
    assert str(caught.value).startswith("test.yaml: planning 2,048 switches and 4,194,304 pairs of them takes some 0.")
    assert "; 0.5 GB are free here, so nothing was planned. Take fewer switches, a routing by trees" in str(
        caught.value
    )


def test_memory_is_what_machine_group_and_limits_leave(monkeypatch, tmp_path):
    for name, text in (("meminfo", "MemTotal: 99 kB\nMemAvailable: 50 kB\n"), ("max", "40000\n"), ("now", "10000\n")):
        (tmp_path / name).write_text(text)
    monkeypatch.setattr(available_memory, "_MEMORY", tmp_path / "meminfo")
    monkeypatch.setattr(available_memory, "_GROUPS", [(tmp_path / "max", tmp_path / "now")])
    assert available_memory.free_memory() == 30_000
    (tmp_path / "memory.stat").write_text("anon 6000\ninactive_file 4000\n")  # files that it has read
    assert available_memory.free_memory() == 34_000
    (tmp_path / "max").write_text("max\n")
    assert available_memory.free_memory() == 50 * 1024
    monkeypatch.setattr(resource, "getrlimit", lambda kind: (20_000, 20_000))
    assert available_memory.free_memory() == 20_000
