"""The walker, rule by rule, on one or two bridges."""

from __future__ import annotations

import pytest

from testbed.devices.bridge import BROADCAST, NO_TAG, Bridge, BridgePort, Walk, Walker, Wiring

A, B = "02:00:00:00:00:01", "02:00:00:00:00:02"


def port(pvid: int | None, untagged: tuple[int, ...] = (), tagged: tuple[int, ...] = (), **flags: bool) -> BridgePort:
    return BridgePort(pvid, frozenset(untagged) | frozenset(tagged), frozenset(untagged), **flags)


def one(ports: dict[str, BridgePort], fdb: dict[tuple[int, str], str] | None = None, **other: bool) -> Walker:
    settings = {"vlan_filtering": True, "stp": False, **other}
    bridge = Bridge("s1", settings["vlan_filtering"], settings["stp"], ports, fdb or {})
    return Walker({"s1": bridge}, Wiring({}, {"a": ("s1", "p1"), "b": ("s1", "p2"), "c": ("s1", "p3")}))


def leaves(walker: Walker, tag: int = NO_TAG, to: str = B) -> list[tuple[str, int]]:
    return walker.egress_ports("s1", "p1", tag, to)


def test_an_untagged_frame_belongs_to_the_pvid():
    ports = {"p1": port(10, (10,), (20,)), "p2": port(None, (), (10,)), "p3": port(None, (), (20,))}
    assert leaves(one(ports)) == [("p2", 10)]
    assert leaves(one(ports), tag=20) == [("p3", 20)]
    assert leaves(one(ports), tag=10) == [("p2", 10)]


def test_without_a_pvid_untagged_frames_are_dropped():
    ports = {"p1": port(None, (10,)), "p2": port(10, (10,))}
    assert leaves(one(ports)) == []
    assert leaves(one(ports), tag=10) == [("p2", NO_TAG)]


def test_ingress_filtering_drops_frames_of_vlans_of_others():
    ports = {"p1": port(10, (11,)), "p2": port(10, (10, 11, 12))}
    assert leaves(one(ports)) == []  # not even a member of its own PVID
    assert leaves(one(ports), tag=12) == []
    assert leaves(one(ports), tag=11) == [("p2", NO_TAG)]


def test_a_port_untags_what_it_is_an_untagged_member_of():
    ports = {"p1": port(10, (10,)), "p2": port(11, (10, 11)), "p3": port(11, (11,), (10,))}
    assert leaves(one(ports)) == [("p2", NO_TAG), ("p3", 10)]


def test_entries_belong_to_one_vlan():
    ports = {"p1": port(10, (10, 11)), "p2": port(10, (10, 11)), "p3": port(10, (10, 11))}
    walker = one(ports, {(10, B): "p3"})
    assert leaves(walker) == [("p3", NO_TAG)]
    assert leaves(walker, tag=11) == [("p2", NO_TAG), ("p3", NO_TAG)]  # unknown there, so flooded
    assert leaves(walker, to=BROADCAST) == [("p2", NO_TAG), ("p3", NO_TAG)]


def test_a_frame_never_goes_back_and_no_entry_leaves_its_vlan():
    ports = {"p1": port(10, (10,)), "p2": port(10, (11,)), "p3": port(10, (10,))}
    assert leaves(one(ports, {(10, B): "p1"})) == []
    assert leaves(one(ports, {(10, B): "p2"})) == []
    assert leaves(one(ports, {(10, B): "p9"})) == []


def test_a_group_address_has_no_entry():
    ports = {"p1": port(10, (10,)), "p2": port(10, (10,)), "p3": port(10, (10,))}
    group = "01:00:5e:00:00:01"
    assert leaves(one(ports, {(10, group): "p3"}), to=group) == [("p2", NO_TAG), ("p3", NO_TAG)]


def test_flags_keep_floods_from_a_port_but_no_known_address():
    ports = {"p1": port(10, (10,)), "p2": port(10, (10,), flood=False), "p3": port(10, (10,), bcast_flood=False)}
    assert leaves(one(ports)) == [("p3", NO_TAG)]
    assert leaves(one(ports), to=BROADCAST) == [("p2", NO_TAG)]
    assert leaves(one(ports, {(10, B): "p2"})) == [("p2", NO_TAG)]


def test_a_bridge_that_does_not_filter_carries_no_plan_out():
    ports = {"p1": port(10, (10,)), "p2": port(10, (10,))}
    assert leaves(one(ports, vlan_filtering=False)) == []
    assert one(ports).egress_ports("s9", "p1", NO_TAG, B) == []
    assert one(ports).egress_ports("s1", "p9", NO_TAG, B) == []


RING = Wiring(
    {
        ("s1", "p2"): ("s2", "p3"), ("s2", "p3"): ("s1", "p2"),
        ("s2", "p2"): ("s3", "p3"), ("s3", "p3"): ("s2", "p2"),
        ("s3", "p2"): ("s1", "p3"), ("s1", "p3"): ("s3", "p2"),
    },
    {"a": ("s1", "p1"), "b": ("s2", "p1"), "c": ("s3", "p1")},
)  # fmt: skip


def ring(*names: str, **trunk: bool) -> Walker:
    ports = {"p1": port(10, (10,)), "p2": port(None, (), (10,)), "p3": port(None, (), (10,))}
    cut = {"p1": ports["p1"], "p2": ports["p2"], "p3": port(None)}
    return Walker({n: Bridge(n, True, False, cut if n in names else ports, {}) for n in ("s1", "s2", "s3")}, RING)


def test_a_broadcast_in_a_ring_circulates_for_ever():
    assert ring().walk("a", BROADCAST).endless
    assert ring().walk("a", B).endless  # nobody knows the address


def test_a_broadcast_in_a_tree_reaches_everybody_once():
    walk = ring("s1").walk("a", BROADCAST)
    assert walk == Walk({"b": 1, "c": 1}, {}, {("s1", "p2"): 1, ("s2", "p2"): 1, ("s3", "p2"): 1}, endless=False)


def test_copies_that_meet_are_counted():
    """Two ways from s1 to s3: s1–s3 and s1–s2–s3, neither of which comes back."""
    none = port(None)
    trunk_in, trunk_out = port(10, (10,)), port(None, (10,))
    bridges = {
        "s1": Bridge("s1", True, False, {"p1": trunk_in, "p2": trunk_out, "p3": trunk_out}, {}),
        "s2": Bridge("s2", True, False, {"p1": none, "p2": trunk_out, "p3": trunk_in}, {}),
        "s3": Bridge("s3", True, False, {"p1": trunk_in, "p2": trunk_in, "p3": trunk_in}, {}),
    }
    walk = Walker(bridges, RING).walk("a", BROADCAST)
    assert walk.received["c"] == 2
    assert not walk.endless


def test_a_host_that_gets_a_tag_has_not_received_the_frame():
    walk = one({"p1": port(10, (10,)), "p2": port(None, (), (10,))}).walk("a", B)
    assert (walk.received, walk.tagged) == ({}, {"b": 1})


@pytest.mark.parametrize("destination", [A, B])
def test_a_frame_to_oneself_or_to_nobody_is_flooded(destination):
    walk = one({"p1": port(10, (10,)), "p2": port(10, (10,)), "p3": port(10, (10,))}).walk("a", destination)
    assert walk.received == {"b": 1, "c": 1}
