"""Mean hops of packets, ours beside Koibuchi et al. 2003, Table 7.

Over ordered pairs of different hosts, 0 for two hosts of one switch: so the 8×8 torus comes out as printed. The
number of hops does not depend on which of the shortest paths is selected.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence

import numpy as np

from benchmarks.dl_table6 import SIZES, Case, routes_of, topology_of
from benchmarks.table import Figure, progress
from testbed.analyse.load import hops_of
from testbed.model import Routes, Topology
from testbed.routing.paths import switches_on_path
from testbed.simulate.settings import UNIFORM
from testbed.topologies import TOPOLOGIES
from testbed.traffic import flows

TORUS = "8×8 torus"
_PLACES = [(place, pattern) for place in (*SIZES, TORUS) for pattern in (UNIFORM, "bit_reversal")]
ROWS: tuple[tuple[Case, tuple[float, ...]], ...] = (
    (Case("up*/down*", None, "low_port", {}), (2.01, 1.98, 3.72, 3.48, 4.36, 3.80)),
    (Case("DL (UD)*", "ud", "low_port", {}), (1.89, 1.94, 3.14, 3.14, 4.02, 3.50)),
    (Case("DL (UD-DU)*", "ud_du", "low_port", {}), (1.89, 1.94, 3.15, 3.13, 4.02, 3.50)),
    (Case("DL UD-(DU)*", "ud_below_du", "low_port", {}), (1.89, 1.93, 3.14, 3.13, 4.02, 3.50)),
)


def torus() -> Topology:
    """64 switches with 4 hosts each (section 5.2.3)."""
    kind = TOPOLOGIES["torus"]
    return kind.build(kind.spec(sizes=(8, 8), hosts_per_switch=4))


def dl_table7(topologies: int) -> list[Figure]:
    """One line a topology, pattern and routing: mean, least and most of the topologies beside the paper's."""
    fabrics: dict[int | str, Sequence[Topology]] = {
        switches: [topology_of(switches, seed) for seed in range(1, topologies + 1)] for switches in SIZES
    }
    fabrics[TORUS] = [torus()]
    figures = []
    for number, (place, pattern) in enumerate(_PLACES):
        progress(f"{place}, {pattern}: {len(fabrics[place])} topologies")
        name = f"{place} switches" if isinstance(place, int) else place
        for case, paper in ROWS:
            found = [mean_hops(topology, routes_of(topology, case), pattern) for topology in fabrics[place]]
            spread = f" ({min(found):.2f} – {max(found):.2f})" if len(found) > 1 else ""
            text = f"{statistics.fmean(found):.2f}{spread}, paper {paper[number]:.2f}"
            figures.append(Figure(f"{name}, {pattern}, {case.name}", text))
        shortest = [hops_of(topology, routes_of(topology, ROWS[0][0])).mean_shortest for topology in fabrics[place]]
        if pattern == UNIFORM:
            figures.append(Figure(f"{name}, {pattern}, by the fewest links", f"{statistics.fmean(shortest):.2f}"))
    return figures


def mean_hops(topology: Topology, routes: Routes, pattern: str) -> float:
    """Links on the path of a packet, on average over those that the pattern sends."""
    if pattern == UNIFORM:
        return hops_of(topology, routes).mean
    pairs = np.asarray(flows(pattern, topology, 1))
    return float((switches_on_path(topology, routes)[pairs[:, 0], pairs[:, 1]] - 1).mean())
