"""`testbed verify --routes` on fabrics of 10,000 switches: a file of next hops is read and proved, over all choices."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from benchmarks.table import Figure, median_text, progress
from testbed.base.model import Ints, Topology
from testbed.fabric.routing.channel_lookup import leaving_channels
from testbed.fabric.routing.stp import StpOptions, route_stp
from testbed.planning.scenario_fabric import build_fabric
from testbed.scenario import parse_scenario

ROOT = Path(__file__).resolve().parents[1]
_HEAD = "switch,destination,next_hop"
_UP = 58  # links up of each switch of the fat tree: 3 · 58² switches
_SWITCHES, _DEGREE = 10_000, 16


def routes(runs: int) -> list[Figure]:
    """Seconds of the whole command, in fresh processes."""
    return [
        _case(
            f"ECMP on a three-level fat tree of {3 * _UP**2:,} switches",
            f"topology: {{kind: fat_tree, up: {_UP}, down: {_UP}, rounds: 2, hosts_per_leaf: 1}}\n",
            _ecmp_rows,
            runs,
        ),
        _case(
            f"one tree on {_SWITCHES:,} switches of degree {_DEGREE} at random",
            f"topology: {{kind: random, switches: {_SWITCHES}, degree: {_DEGREE}, seed: 1}}\nrouting: {{kind: stp}}\n",
            _tree_rows,
            runs,
        ),
    ]


def _case(name: str, scenario: str, rows: Callable[[Topology], Iterator[str]], runs: int) -> Figure:
    topology = build_fabric(parse_scenario(scenario, "benchmark"))
    with tempfile.TemporaryDirectory() as folder:
        fabric, table = Path(folder, "fabric.yaml"), Path(folder, "routes.csv")
        fabric.write_text(scenario)
        table.write_text("\n".join([_HEAD, *rows(topology), ""]))
        progress(f"{name}: {table.stat().st_size / 1e6:.0f} MB")
        seconds = []
        for _ in range(runs):
            started = time.perf_counter()
            subprocess.run(
                [sys.executable, "-m", "testbed", "verify", fabric, "--routes", table],
                cwd=ROOT, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            )  # fmt: skip
            seconds.append(time.perf_counter() - started)
    return Figure(f"verify --routes, {name}", median_text(seconds, "s"))


def _ecmp_rows(topology: Topology) -> Iterator[str]:
    """Up by any link, down by the only one: leaves 0 to n - 1, each level in groups of equal leaves."""
    start, leaving = leaving_channels(topology)
    level, names = topology.levels, [topology.switch_name(switch) for switch in range(topology.switch_count)]
    below: list[list[int]] = [[] for _ in names]
    for switch in np.argsort(level, kind="stable").tolist():
        near = topology.channel_target[leaving[start[switch] : start[switch + 1]]]
        for child in near[level[near] < level[switch]].tolist():
            found = [child] if level[child] == 0 else below[child]
            below[switch] += found
            yield f"{names[switch]},{';'.join(names[leaf] for leaf in found)},{names[child]}"
        up = near[level[near] > level[switch]].tolist()
        if up:
            yield f"{names[switch]},*,{';'.join(names[other] for other in up)}"


def _tree_rows(topology: Topology) -> Iterator[str]:
    """The way up for all, and each subtree's destinations down."""
    tree: Ints = route_stp(topology, StpOptions()).tree_channel[0]
    names = [topology.switch_name(switch) for switch in range(topology.switch_count)]
    parent = np.where(tree >= 0, topology.channel_source[tree], -1).tolist()
    inside: list[list[int]] = [[switch] for switch in range(len(names))]
    depth = [0] * len(names)
    for switch in range(len(names)):
        at = switch
        while parent[at] >= 0:
            at, depth[switch] = parent[at], depth[switch] + 1
    for switch in sorted(range(len(names)), key=lambda one: -depth[one]):
        above = parent[switch]
        if above >= 0:
            inside[above] += inside[switch]
            yield f"{names[above]},{';'.join(names[one] for one in inside[switch])},{names[switch]}"
            yield f"{names[switch]},*,{names[above]}"
