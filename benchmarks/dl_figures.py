"""Latency over accepted traffic under descending layers, beside Koibuchi et al. 2003, Fig. 6 and 7.

Fig. 6: typical irregular networks of 16 and 64 switches, paths by high physical channel first. Fig. 7: an 8×8 torus, of
whose up to 266 % the abstract speaks: the highest ratio of DL to up*/down* with one path selection, less one.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from benchmarks.curves import Curve, Effort, curve, keep
from benchmarks.dl_table6 import SIZES, Case, routes_of, topology_of
from benchmarks.dl_table7 import torus
from benchmarks.table import Figure, progress
from testbed.model import Topology
from testbed.simulate import Settings
from testbed.simulate.settings import UNIFORM

DOCUMENTED, FULL = Effort(60_000, 1), Effort(1_000_000, 1)
PACKET = 128
MOST = 266  # percent
_LOADS = {16: (0.02, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4), 64: (0.01, 0.02, 0.03, 0.05, 0.08, 0.12, 0.15, 0.2, 0.3)}
_VARIANTS = (("DL (UD)*", "ud"), ("DL (UD-DU)*", "ud_du"), ("DL UD-(DU)*", "ud_below_du"))
_SELECTIONS = {"low_port": "low port", "sancho": "Sancho", "high_physical": "high physical"}


def dl_fig6(effort: Effort, buffer: int) -> list[Figure]:
    """One line a size and routing: throughput, and its relation to up*/down* beside that of the paper's Table 6."""
    figures, panels = [], []
    cases = [Case("up*/down*", None, "high_physical", {})]
    cases += [Case(name, variant, "high_physical", {}) for name, variant in _VARIANTS]  # type: ignore[arg-type]
    paper = {16: (0.176, 0.290, 0.282, 0.289), 64: (0.037, 0.164, 0.158, 0.170)}
    for switches in SIZES:
        progress(f"dl-fig6: {switches} switches")
        curves = _curves(topology_of(switches, 1), cases, _LOADS[switches], effort, buffer)
        panels.append((f"{switches} switches, uniform", curves))
        for one, printed in zip(curves, paper[switches], strict=True):
            ratio = one.throughput / curves[0].throughput
            text = f"{one.throughput:.3f}, {ratio:.2f} of up*/down*; paper {printed / paper[switches][0]:.2f}"
            figures.append(Figure(f"{switches} switches, {one.name}", text))
    return [*figures, Figure("figure and points", str(keep("dl-fig6", panels, columns=2, unit="clocks")))]


def dl_fig7(effort: Effort, buffer: int) -> list[Figure]:
    """One line a routing and path selection on the torus, with its relation to up*/down* under the same selection."""
    cases = [
        Case(f"{name}, {words}", variant, selection, {})  # type: ignore[arg-type]
        for selection, words in _SELECTIONS.items()
        for name, variant in (("up*/down*", None), *_VARIANTS)
    ]
    progress("dl-fig7: 8×8 torus")
    curves = _curves(torus(), cases, _LOADS[64], effort, buffer)
    base = {case.selection: one for case, one in zip(cases, curves, strict=True) if case.variant is None}
    ratios = [one.throughput / base[case.selection].throughput for case, one in zip(cases, curves, strict=True)]
    figures = [
        Figure(f"8×8 torus, {one.name}", f"{one.throughput:.3f}, {ratio:.2f} of up*/down*")
        for one, ratio in zip(curves, ratios, strict=True)
    ]
    figures.append(Figure("8×8 torus, most above up*/down*", f"{100 * (max(ratios) - 1):.0f} %, paper {MOST} %"))
    panels = [
        (f"8×8 torus, {words}", [dataclasses.replace(one, name=one.name.split(",")[0]) for one in part])
        for words, part in zip(_SELECTIONS.values(), _thirds(curves), strict=True)
    ]
    return [*figures, Figure("figure and points", str(keep("dl-fig7", panels, columns=3, unit="clocks")))]


def _curves(
    topology: Topology, cases: Sequence[Case], loads: Sequence[float], effort: Effort, buffer: int
) -> list[Curve]:
    settings = Settings(UNIFORM, effort.clocks, effort.clocks // 20, PACKET, buffer)
    return [curve(case.name, [(topology, routes_of(topology, case))], settings, loads) for case in cases]


def _thirds(curves: Sequence[Curve]) -> list[Sequence[Curve]]:
    each = len(_VARIANTS) + 1
    return [curves[start : start + each] for start in range(0, len(curves), each)]
