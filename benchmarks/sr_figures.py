"""Latency over accepted traffic on meshes, tori and random networks, beside Mejia et al. 2007, Fig. 3 and 4.

One host a switch; packets stand for frames of 1,522 bytes. The paper simulates switches that store and forward, share
their memory among ports and pause links; here packets cut through buffers of eight packets a port. The paper prints no
figure but the ratios of the throughputs under uniform traffic.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.curves import Curve, Effort, curve, keep
from benchmarks.table import Figure, progress
from testbed.model import Routes, Topology
from testbed.plan import make_plan
from testbed.scenario import parse_scenario
from testbed.simulate import Settings
from testbed.simulate.settings import UNIFORM

DOCUMENTED, FULL = Effort(40_000, 4), Effort(400_000, 10)
PACKET, BUFFER = 32, 256
LOADS = (0.02, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.5, 0.6, 0.8, 1.0)
ROUTINGS = {"SR": "sr, backup: false", "UD": "updown", "TBTP": "tbtp", "STP": "stp"}
PATTERNS = (UNIFORM, "pairwise")
_DEGREE = 4


@dataclass(frozen=True)
class Place:
    """A column of a figure.

    Attributes:
        name: of the topology.
        topology: lines of the scenario; {seed} stands for the number of the drawing.
        paper: ratio of the throughputs of two routings under uniform traffic, as printed.
    """

    name: str
    topology: str
    paper: dict[tuple[str, str], float]


def _random(switches: int, paper: dict[tuple[str, str], float]) -> Place:
    text = f"topology: {{{{kind: random, switches: {switches}, degree: {_DEGREE}, seed: {{seed}}}}}}"
    return Place(f"random, {switches} switches", text, paper)


_MESH = "topology: {{kind: mesh, sizes: [8, 8]}}"
PLACES = {
    "sr-fig3": (
        Place("8×8 torus", "topology: {{kind: torus, sizes: [8, 8]}}", {("SR", "UD"): 2.2}),
        Place("8×8 mesh", _MESH, {("SR", "UD"): 1.2}),
        Place("8×8 mesh, 5 % dead links", _MESH + "\nfaults: {{percent: 5, seed: {seed}}}", {("SR", "UD"): 2.0}),
    ),
    "sr-fig4": (
        _random(16, {("SR", "UD"): 1.5}),
        _random(32, {("SR", "UD"): 1.84, ("SR", "TBTP"): 2.4}),
        _random(64, {("SR", "UD"): 2.0, ("SR", "TBTP"): 3.2}),
    ),
}


def sr_figure(name: str, effort: Effort) -> list[Figure]:
    """One line a topology and traffic: the throughput of each routing, and ratios beside the paper's."""
    figures, panels = [], []
    for pattern in PATTERNS:
        settings = Settings(pattern, effort.clocks, effort.clocks // 5, PACKET, BUFFER)
        for place in PLACES[name]:
            progress(f"{name}: {place.name}, {pattern}")
            curves = [
                curve(label, [planned(place, routing, seed) for seed in range(1, effort.drawings + 1)], settings, LOADS)
                for label, routing in ROUTINGS.items()
            ]
            panels.append((f"{place.name}, {pattern}", curves))
            figures.append(Figure(f"{place.name}, {pattern}", line(place, pattern, curves)))
    folder = keep(name, panels, columns=len(PLACES[name]), unit="clocks")
    return [*figures, Figure("figure and points", str(folder))]


def planned(place: Place, routing: str, seed: int) -> tuple[Topology, Routes]:
    """A drawing of a place with proved routes."""
    text = f"{place.topology.format(seed=seed)}\nrouting: {{kind: {routing}}}\nassignment: {{kind: openflow}}\n"
    plan = make_plan(parse_scenario(text, "figure"))
    plan.require_proof()
    return plan.topology, plan.routes


def line(place: Place, pattern: str, curves: Sequence[Curve]) -> str:
    """Throughputs, then ratios: mean over drawings, (least – most), and what the paper prints."""
    by_name = {one.name: one for one in curves}
    words = [f"{one.name} {one.throughput:.3f}" for one in curves]
    pairs = dict.fromkeys([("SR", "UD"), ("UD", "STP"), *place.paper])
    for above, below in pairs:
        ratios = [high / low for high, low in zip(by_name[above].throughputs, by_name[below].throughputs, strict=True)]
        spread = f" ({min(ratios):.2f} – {max(ratios):.2f})" if len(ratios) > 1 else ""
        printed = place.paper.get((above, below)) if pattern == UNIFORM else None
        beside = "" if printed is None else f", paper {printed:g}"
        words.append(f"{above}/{below} {statistics.fmean(ratios):.2f}{spread}{beside}")
    return "; ".join(words)
