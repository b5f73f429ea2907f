"""Throughput on the mesh of the RHiNET-2 cluster, ours beside Koibuchi et al. 2003, Table 5.

The paper draws its three topologies and lists none. The mesh is taken to be 4×4 with 4 hosts a switch, which makes
the 64 hosts of the cluster. Two virtual channels (section 4.1.2). The paper gives different hosts of a switch different
paths where there are several; here a pair of switches has one path.
"""

from __future__ import annotations

from benchmarks.curves import Effort, curve
from benchmarks.dl_table6 import Case, routes_of
from benchmarks.table import Figure, progress
from testbed.simulate import Settings
from testbed.topologies import TOPOLOGIES

DOCUMENTED, FULL = Effort(60_000, 1), Effort(1_000_000, 1)
LAYERS = 2
PATTERNS = ("bit_reversal", "transpose", "butterfly", "complement")
PAPER = {None: (0.124, 0.080, 0.085, 0.049), "ud": (0.139, 0.102, 0.089, 0.073)}
SELECTIONS = ("low_port", "sancho", "high_physical")
LOADS = (0.03, 0.06, 0.08, 0.1, 0.12, 0.14, 0.16, 0.2, 0.25, 0.3, 0.4, 0.6, 1.0)


def dl_table5(effort: Effort, buffer: int) -> list[Figure]:
    """One line a pattern and path selection: up*/down*, descending layers and their ratio, beside the paper's."""
    kind = TOPOLOGIES["mesh"]
    mesh = kind.build(kind.spec(sizes=(4, 4), hosts_per_switch=4))
    figures = []
    for column, pattern in enumerate(PATTERNS):
        settings = Settings(pattern, effort.clocks, effort.clocks // 20, 128, buffer)
        for selection in SELECTIONS:
            progress(f"mesh, {pattern}, {selection}")
            found = {}
            for variant in ("ud", None):
                routes = routes_of(mesh, Case("", variant, selection, {}), LAYERS)
                found[variant] = curve("", [(mesh, routes)], settings, LOADS).throughput
            printed = PAPER["ud"][column], PAPER[None][column]
            text = (
                f"up*/down* {found[None]:.3f}, paper {printed[1]:.3f}; DL {found['ud']:.3f}, paper {printed[0]:.3f}; "
                f"DL/up*/down* {found['ud'] / found[None]:.2f}, paper {printed[0] / printed[1]:.2f}"
            )
            figures.append(Figure(f"4×4 mesh, {pattern}, {selection}", text))
    return figures
