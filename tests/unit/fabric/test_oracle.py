"""The oracle on rules written by hand: two switches s1, s2 with hosts h1 and h2 on port 1, joined at port 2."""

from __future__ import annotations

import pytest

from testbed.base.model import Rule, host_mac
from testbed.engines.ovs.check_paths import installed_problems
from testbed.fabric.openflow.oracle import BROADCAST, Oracle
from testbed.fabric.openflow.rule_text import format_rule, parse_rule
from tests.fabrics import plan_of, topology_of

PAIR = topology_of("mesh", sizes=(2,))


def oracle(*lines: str, topology=PAIR) -> Oracle:
    """Rules as `switch|line`."""
    return Oracle(topology, [parse_rule(int(line[1]) - 1, line.partition("|")[2]) for line in lines])


def test_tag_forward_untag():
    sent = oracle(
        "s1|in_port=1,vlan_tci=0x0000/0x1fff,actions=push_vlan:0x8100,set_field:4106->vlan_vid,goto_table:1",
        "s1|table=1,dl_vlan=10,actions=output:2",
        "s2|in_port=2,dl_vlan=10,actions=pop_vlan,output:1",
    ).unicast(0, 1)
    assert (sent.received, sent.tagged, sent.channels, sent.dropped, sent.endless) == ({1: 1}, (), (0,), (), False)


def test_no_rule_drops_the_frame_where_it_is():
    assert oracle().unicast(0, 1).dropped == (0,)
    assert oracle("s1|in_port=1,actions=output:2").unicast(0, 1).dropped == (1,)
    assert oracle("s1|in_port=1,actions=drop").unicast(0, 1).dropped == (0,)


def test_a_frame_that_arrives_with_its_tag_is_told_apart():
    sent = oracle(
        "s1|in_port=1,actions=push_vlan:0x8100,set_field:4106->vlan_vid,output:2", "s2|in_port=2,actions=output:1"
    ).unicast(0, 1)
    assert (sent.received, sent.tagged) == ({1: 1}, (1,))


def test_the_highest_priority_wins_whatever_the_order():
    low, high = "s1|priority=1,actions=drop", "s1|priority=2,in_port=1,actions=output:2"
    for rules in ((low, high), (high, low)):
        assert oracle(*rules).unicast(0, 1).channels == (0,)


def test_a_rule_matches_only_when_all_its_fields_do():
    matching = f"s1|priority=2,in_port=1,dl_dst={host_mac(1)},actions=output:2"
    assert oracle(matching).unicast(0, 1).channels == (0,)
    assert oracle(matching).broadcast(0).channels == ()
    assert oracle("s1|in_port=2,actions=output:2").unicast(0, 1).channels == ()


def test_nothing_goes_back_out_of_its_in_port():
    assert oracle("s1|actions=output:1,output:2").broadcast(0).received == {}
    assert oracle("s1|actions=output:1,output:2").broadcast(0).channels == (0,)


def test_actions_take_effect_in_order():
    """What is sent before the tag is taken off keeps it."""
    topology = topology_of("mesh", sizes=(2,), hosts_per_switch=3)
    sent = oracle(
        "s1|in_port=1,actions=push_vlan:0x8100,set_field:4106->vlan_vid,output:2,pop_vlan,output:3", topology=topology
    ).broadcast(0)
    assert (sent.received, sent.tagged) == ({1: 1, 2: 1}, (1,))


def test_a_tag_that_a_host_puts_on_is_seen():
    admit_untagged = "s1|in_port=1,vlan_tci=0x0000/0x1fff,actions=output:2"
    assert oracle(admit_untagged).send(0, BROADCAST).channels == (0,)
    assert oracle(admit_untagged).send(0, BROADCAST, vlan=10).channels == ()


def test_a_port_without_a_wire_loses_the_frame():
    assert oracle("s1|actions=output:9").unicast(0, 1).dropped == (0,)


def test_copies_are_counted():
    topology = topology_of("mesh", sizes=(2,), parallel_links=2)
    sent = oracle("s1|actions=output:2,output:3", "s2|actions=output:1", topology=topology).broadcast(0)
    assert (sent.received, sent.channels) == ({1: 2}, (0, 2))


def test_a_broadcast_that_returns_and_is_dropped_is_a_difference():
    """No host gets it twice; the links have carried it in vain."""
    plan = plan_of("mesh", sizes=[2], parallel_links=2)
    dumped = {f"s{switch + 1}": [format_rule(r) for r in plan.rules if r.switch == switch] for switch in range(2)}
    assert installed_problems(plan, dumped) == []
    dumped["s1"] = [
        line.replace("output:2", "output:2,output:3") if "priority=100,dl_vlan=10" in line else line
        for line in dumped["s1"]
    ]
    (problem,) = installed_problems(plan, dumped)
    assert problem.startswith("a broadcast of h1 comes to s2 again by s1→s2")
    assert problem.endswith(" and is dropped there")


@pytest.mark.parametrize("copies", [1, 2])
def test_circulation_is_noticed_and_ended(copies):
    """Three switches that pass everything on around the ring; with two copies a hop the number doubles."""
    topology = topology_of("ring", switches=3, parallel_links=2)
    rules = []
    for switch in range(3):
        onward = [
            int(topology.out_port[c])
            for c in range(12)
            if topology.channel_source[c] == switch and topology.channel_target[c] == (switch + 1) % 3
        ]
        rules.append(Rule(switch, 0, 1, (), tuple(("output", port) for port in onward[:copies])))
    sent = Oracle(topology, rules).broadcast(0)
    assert sent.endless
    assert len(sent.channels) < 100 * copies


def test_priority_is_set_matched_and_seen():
    def sent(priority: int):
        return oracle(
            f"s1|in_port=1,actions=push_vlan:0x8100,set_field:4097->vlan_vid,set_field:{priority}->vlan_pcp,output:2",
            "s2|in_port=2,dl_vlan=1,dl_vlan_pcp=3,actions=pop_vlan,output:1",
        ).unicast(0, 1)

    assert (sent(3).received, sent(3).tagged, sent(3).tags) == ({1: 1}, (), ((1, 3),))
    assert (sent(2).received, sent(2).tags, sent(2).dropped) == ({}, ((1, 2),), (1,))


def test_a_frame_without_a_tag_has_no_priority():
    assert oracle("s1|in_port=1,dl_vlan_pcp=0,actions=output:2").unicast(0, 1).channels == ()
    untagged = oracle("s1|in_port=1,actions=set_field:5->vlan_pcp,output:2", "s2|actions=output:1").unicast(0, 1)
    assert (untagged.tags, untagged.tagged) == (((-1, 0),), ())


def test_a_new_tag_starts_with_priority_0():
    sent = oracle(
        "s1|in_port=1,actions=push_vlan:0x8100,set_field:4097->vlan_vid,set_field:7->vlan_pcp,output:2",
        "s2|in_port=2,dl_vlan=1,actions=pop_vlan,goto_table:1",
        "s2|table=1,actions=push_vlan:0x8100,set_field:4097->vlan_vid,goto_table:2",
        "s2|table=2,dl_vlan_pcp=0,actions=pop_vlan,output:1",
    ).unicast(0, 1)
    assert sent.received == {1: 1}
