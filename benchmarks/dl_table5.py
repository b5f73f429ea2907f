"""Throughput on the mesh of the RHiNET-2 cluster, ours beside Koibuchi et al. 2003, Table 5.

The paper draws its three topologies and lists none. The mesh is taken to be 4×4 with 4 hosts a switch, which makes
the 64 hosts of the cluster. Two virtual channels (section 4.1.2). The paper gives different hosts of a switch different
paths where there are several; here a pair of switches has one path. Beside the throughput is the accepted traffic
at the onset of saturation: of a permutation, accepted traffic rises far beyond, by those pairs that share no channel.
"""

from __future__ import annotations

from operator import attrgetter

from benchmarks.curves import Curve, Effort, curve
from benchmarks.dl_table6 import Case, routes_of
from benchmarks.table import Figure, progress
from testbed.simulate import Settings
from testbed.topologies import TOPOLOGIES

DOCUMENTED, FULL = Effort(60_000, 1), Effort(1_000_000, 1)
LAYERS = 2
PATTERNS = ("bit_reversal", "transpose", "butterfly", "complement")
PAPER = {None: (0.124, 0.080, 0.085, 0.049), "ud": (0.139, 0.102, 0.089, 0.073)}
SELECTIONS = ("low_port", "sancho", "high_physical")
LOADS = (*(number / 100 for number in range(3, 21)), 0.25, 0.3, 0.4, 0.6, 1.0)
_KEPT_UP = 0.95


def dl_table5(effort: Effort, buffer: int) -> list[Figure]:
    """Two lines a pattern and path selection: up*/down*, descending layers and their ratio, beside the paper's."""
    kind = TOPOLOGIES["mesh"]
    mesh = kind.build(kind.spec(sizes=(4, 4), hosts_per_switch=4))
    figures = []
    for column, pattern in enumerate(PATTERNS):
        settings = Settings(pattern, effort.clocks, effort.clocks // 20, 128, buffer)
        for selection in SELECTIONS:
            progress(f"mesh, {pattern}, {selection}")
            found = {
                variant: curve("", [(mesh, routes_of(mesh, Case("", variant, selection, {}), LAYERS))], settings, LOADS)
                for variant in ("ud", None)
            }
            title = f"4×4 mesh, {pattern}, {selection}"
            tree, layers = PAPER[None][column], PAPER["ud"][column]
            for name, measured in (("throughput", attrgetter("throughput")), ("onset of saturation", _onset)):
                of_tree, of_layers = measured(found[None]), measured(found["ud"])
                text = (
                    f"up*/down* {of_tree:.3f}, paper {tree:.3f}; DL {of_layers:.3f}, paper {layers:.3f}; "
                    f"DL/up*/down* {of_layers / of_tree:.2f}, paper {layers / tree:.2f}"
                )
                figures.append(Figure(f"{title}, {name}", text))
    return figures


def _onset(found: Curve) -> float:
    """Most accepted traffic of the loads of which nearly all was accepted."""
    accepted = [(load, point.accepted) for load, (point,) in zip(found.loads, found.points, strict=True)]
    return max(rate for load, rate in accepted if rate is not None and rate >= _KEPT_UP * load)
