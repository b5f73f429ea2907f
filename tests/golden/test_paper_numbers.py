"""`testbed paper --quick`: every number that is obtained without a lab or a long simulation stays what it is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from testbed.paper.judge import Result
from testbed.paper.run import Store, run_items
from testbed.paper.simulated import Layered, mean_hops
from testbed.paper.table import load_tables

TORUS = {"kind": "torus", "sizes": (8, 8), "hosts_per_switch": 4}


@pytest.fixture(scope="module")
def results(tmp_path_factory) -> Mapping[str, tuple[Result, ...]]:
    return run_items(load_tables(), Store(tmp_path_factory.mktemp("values")), lambda text: None, quick=True)


@pytest.mark.slow
def test_no_number_is_out_of_its_tolerance_without_a_reason(results):
    unexplained = [result for of_item in results.values() for result in of_item if result.unexplained]
    assert [(result.row.item, result.row.name, result.ours, result.error) for result in unexplained] == []


def test_most_numbers_of_plans_are_reproduced(results):
    obtained = [result for of_item in results.values() for result in of_item if result.ours is not None]
    reproduced = sum(result.state == "reproduced" for result in obtained)
    assert len(obtained) > 130
    assert reproduced / len(obtained) > 0.85


@pytest.mark.parametrize("variant", ["ud", "ud_du", "ud_below_du"])
def test_descending_layers_on_the_torus_take_as_many_hops_as_printed(variant):
    assert mean_hops(Layered(TORUS, variant, drawings=1)) == pytest.approx([4.0157], abs=5e-5)


def test_up_down_takes_more_hops_than_descending_layers_everywhere():
    fabrics: list[dict[str, Any]] = [
        TORUS,
        *({"kind": "random", "switches": n, "degree": 4, "hosts_per_switch": 4, "seed": 1} for n in (16, 64)),
    ]
    for topology in fabrics:
        for pattern in ("uniform", "bit_reversal"):
            (more,) = mean_hops(Layered(topology, "updown", pattern=pattern, drawings=1))
            (less,) = mean_hops(Layered(topology, "ud", pattern=pattern, drawings=1))
            assert more > 1.02 * less
