"""What LLDP frames say is joined, and how that differs from the plan."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbed.base.model import Topology
from testbed.planning.failover.lldp_topology import CollectedTopology
from tests.fabrics import plan_of, topology_of

RING = plan_of("ring", switches=4).topology  # ports 1 of hosts; 2 and 3 of links
TORUS = plan_of("torus", sizes=[3, 3]).topology


def heard(topology: Topology, at: int = 0, lasts: int = 4) -> CollectedTopology:
    found = CollectedTopology(topology, lasts)
    found.assume_up((), at)
    return found


def swap(found: CollectedTopology, one: tuple[int, int], other: tuple[int, int]) -> None:
    """The cables in two ports are swapped, and all is heard anew."""
    cables = found.planned
    a, b = cables[one], cables[other]
    for here, there in ((one, b), (b, one), (other, a), (a, other)):
        found.on_lldp(here, there, 0)


def test_what_is_as_planned_agrees():
    found = heard(RING)
    assert found.differences() == []
    assert found.silent_ends() == set()
    assert found.links() == [
        "s1-eth2 – s2-eth2", "s1-eth3 – s4-eth3", "s2-eth3 – s3-eth2", "s3-eth3 – s4-eth2",
    ]  # fmt: skip


def test_two_swapped_cables_are_two_sentences_and_silent_ends():
    found = heard(RING)
    swap(found, (0, 2), (2, 3))
    assert found.differences() == [
        "s1-eth2 is joined to s4-eth2; in the plan s1-eth2 leads to s2-eth2, and s4-eth2 leads to s3-eth3",
        "s2-eth2 is joined to s3-eth3; in the plan s2-eth2 leads to s1-eth2, and s3-eth3 leads to s4-eth2",
    ]
    assert found.silent_ends() == {(0, 2), (1, 1 + 1), (2, 3), (3, 2)}


def test_a_cable_between_a_link_and_a_hosts_port():
    found = heard(RING)
    found.forget([(0, 2)])
    found.on_lldp((0, 2), (2, 1), 0)
    found.on_lldp((2, 1), (0, 2), 0)
    assert found.differences() == [
        "s1-eth2 is joined to s3-eth1; in the plan s1-eth2 leads to s2-eth2, and s3-eth1 is the port of h3",
        "s1-eth2 is not joined to s2-eth2",
    ]
    found.on_lldp((1, 9), (3, 9), 0)
    assert found.differences()[1] == (
        "s2-eth9 is joined to s4-eth9, in one direction; in the plan s2-eth9 leads nowhere, and s4-eth9 leads nowhere"
    )


def test_a_fault_in_one_direction_is_told_by_who_still_hears():
    found = heard(RING)
    for here, there in found.planned.items():
        if here != (1, 2):
            found.on_lldp(here, there, 5)
    found.expire(5)
    assert found.differences() == ["s2-eth2 hears nothing of s1-eth2, which hears it"]
    assert found.silent_ends() == {(1, 2)}


def test_what_is_late_holds_until_it_is_too_late_or_kept():
    found = heard(RING)
    assert found.list_late(2) == []
    assert sorted(found.list_late(3)) == sorted(found.planned)
    found.expire(4)
    assert found.silent_ends() == set()
    found.extend((0, 2), 4)
    found.expire(5)
    assert found.silent_ends() == set(found.planned) - {(0, 2)}


def test_what_was_silent_before_is_not_presumed():
    found = CollectedTopology(RING, 4)
    found.assume_up({(0, 2)}, 0)
    assert found.silent_ends() == {(0, 2)}


@pytest.mark.slow
@given(st.data())
def test_differences_name_every_end_that_is_silent_and_no_other(data: st.DataObject):
    """Any number of cables are pulled, and their ends joined anew at random, or not at all."""
    topology = data.draw(st.sampled_from([RING, TORUS, topology_of("tree", switches=7, arity=2)]))
    found = heard(topology)
    ends = sorted(found.planned)
    pulled = sorted({end for link in data.draw(st.sets(st.sampled_from(ends))) for end in (link, found.planned[link])})
    found.forget(pulled)
    shuffled = data.draw(st.permutations(pulled))
    joined = data.draw(st.integers(0, len(shuffled) // 2))
    for one, other in list(zip(shuffled[::2], shuffled[1::2], strict=True))[:joined]:
        found.on_lldp(one, other, 0)
        found.on_lldp(other, one, 0)
    silent, sentences = found.silent_ends(), " ".join(found.differences()).replace(";", "").replace(",", "").split()
    names = {f"{topology.switch_name(switch)}-eth{port}" for switch, port in silent}
    assert names <= set(sentences)
    assert (not silent) == (not sentences)
    planned = {end for end in found.planned if found.neighbours.get(end) == found.planned[end]}
    assert {f"{topology.switch_name(switch)}-eth{port}" for switch, port in planned}.isdisjoint(sentences)
    assert len(found.links()) == len({frozenset(pair) for pair in found.neighbours.items()})
