"""Words that people type lead somewhere: to what they are called here, or to a sentence."""

from __future__ import annotations

import pytest

from testbed.base import synonyms
from testbed.base.errors import InputError
from testbed.fabric.collectives import COLLECTIVES
from testbed.fabric.routing import ROUTINGS
from testbed.fabric.topologies import TOPOLOGIES
from testbed.fabric.traffic import FAMILIES, PATTERNS, no_pattern
from tests.fabrics import scenario_of


@pytest.mark.parametrize(
    ("block", "word", "sentence"),
    [
        ("topology", "leafspine", 'Did you mean "leaf_spine"?'), ("topology", "clos", 'Did you mean "leaf_spine"?'),
        ("topology", "Dragonfly+", 'Did you mean "dragonfly_plus"?'), ("topology", "star", 'Did you mean "flat"?'),
        ("routing", "ECMP", 'Did you mean "ecmp"?'), ("routing", "mstp", 'Did you mean "stp"?'),
        ("routing", "spraying", "SPRAYING is not planned"), ("routing", "dcqcn", "DCQCN is simulated by testbed flows"),
    ],
)  # fmt: skip
def test_kinds_by_other_names(block, word, sentence):
    blocks = {"topology": {"kind": "ring", "switches": 4}, block: {"kind": word}}
    with pytest.raises(InputError, match=f"there is no {block}") as error:
        scenario_of(blocks)
    assert sentence in str(error.value)


def test_keys_and_patterns_by_other_names():
    with pytest.raises(InputError, match="ECN is simulated by testbed flows, on any scenario, and not in labs"):
        scenario_of({"topology": {"kind": "ring", "switches": 4}, "simulator": {"ecn": True}})
    assert 'Did you mean "hotspot"?' in no_pattern("incast")
    assert 'Did you mean "all_to_all"?' in no_pattern("alltoall")
    assert "RDMA is not modelled" in no_pattern("rdma")


def test_what_words_lead_to_is_there():
    assert set(synonyms._CALLED.values()) <= {*TOPOLOGIES, *ROUTINGS, *PATTERNS, *FAMILIES, *COLLECTIVES}
