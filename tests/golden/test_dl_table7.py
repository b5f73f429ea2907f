"""Koibuchi et al. 2003, Table 7: mean hops of packets."""

from __future__ import annotations

from statistics import mean

import pytest

from benchmarks.dl_table6 import routes_of, topology_of
from benchmarks.dl_table7 import ROWS, mean_hops, torus

LAYERED = [case for case, _ in ROWS if case.variant is not None]


@pytest.mark.parametrize("case", LAYERED, ids=lambda case: case.name)
def test_descending_layers_take_as_many_hops_as_printed(case):
    """In the torus exactly; in networks drawn at random, which are not the paper's, within 2 %."""
    assert round(mean_hops(torus(), routes_of(torus(), case), "uniform"), 2) == 4.02
    for switches, printed in ((16, 1.89), (64, 3.14)):
        drawn = [topology_of(switches, seed) for seed in range(1, 6)]
        found = mean(mean_hops(topology, routes_of(topology, case), "uniform") for topology in drawn)
        assert found == pytest.approx(printed, rel=0.02)


def test_up_down_takes_more_hops_than_descending_layers_everywhere():
    up_down, layered = ROWS[0][0], LAYERED[0]
    for topology in (torus(), topology_of(16, 1), topology_of(64, 1)):
        for pattern in ("uniform", "bit_reversal"):
            more, less = (mean_hops(topology, routes_of(topology, case), pattern) for case in (up_down, layered))
            assert more > 1.02 * less
