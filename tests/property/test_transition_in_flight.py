"""Frames on their way while rules change one at a time: none is lost or doubled by a transition that is accepted.

Frames are followed by an interpreter of rules of its own, a switch at a time, and between two of its steps rules may
change. So a frame can meet some rules of before and some of after, which walks of single states do not show.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from functools import cache
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from testbed.base.model import LocalPlan, Rule, Topology, VlanPlan, host_mac
from testbed.fabric.openflow.compile import compile_rules
from testbed.fabric.transition import Transition, local_successor, successor, transition_between, transition_problems
from testbed.planning import Plan, make_plan
from tests.fabrics import scenario_of

Place = tuple[object, ...]
FABRICS: tuple[dict[str, Any], ...] = (
    {"kind": "mesh", "sizes": [4, 2]},
    {"kind": "mesh", "sizes": [3, 2], "hosts_per_switch": 2},
    {"kind": "ring", "switches": 5},
)
ROUTINGS: dict[str, dict[str, Any]] = {
    "dor": {"kind": "dor"}, "updown": {"kind": "updown", "selection": "tree"}, "stp": {"kind": "stp"},
    "sr": {"kind": "sr", "selection": "tree"}, "north_last": {"kind": "north_last"},
}  # fmt: skip
EVERYONE = "ff:ff:ff:ff:ff:ff"


@cache
def planned(fabric: int, routing: str, first: int, kind: str = "fixed") -> Plan:
    assignment = {"kind": kind, "first_vlan": first}
    return make_plan(scenario_of({"topology": FABRICS[fabric], "routing": ROUTINGS[routing], "assignment": assignment}))


class InFlight:
    """A fabric in which frames are on their way.

    Attributes:
        received: frame and host → how often it got it.
    """

    def __init__(self, topology: Topology, rules: list[Rule]) -> None:
        self._by_table: defaultdict[tuple[int, int], dict[Place, Rule]] = defaultdict(dict)
        for rule in rules:
            self.put(rule)
        ends = list(zip(topology.channel_source.tolist(), topology.out_port.tolist(), strict=True))
        self._leads = {end: ends[channel ^ 1] for channel, end in enumerate(ends)}
        self._hosts = list(zip(topology.host_switch.tolist(), topology.host_port.tolist(), strict=True))
        self.frames: list[tuple[int, int, int, int, str]] = []  # number, switch, port, VLAN (-1 = none), destination
        self.received: Counter[tuple[int, int]] = Counter()
        self.sent = 0

    def put(self, rule: Rule) -> None:
        self._by_table[rule.switch, rule.table][rule.priority, rule.match] = rule

    def take_away(self, rule: Rule) -> None:
        del self._by_table[rule.switch, rule.table][rule.priority, rule.match]

    def send(self, source: int, destination: str) -> None:
        switch, port = self._hosts[source]
        self.frames.append((self.sent, switch, port, -1, destination))
        self.sent += 1

    def hop(self, draw: Random) -> None:
        """One frame goes through the switch that it has come to."""
        number, switch, port, vlan, destination = self.frames.pop(draw.randrange(len(self.frames)))
        assert self.received.total() < 10_000, "frames multiply"
        table: int | None = 0
        while table is not None:
            rule, table = self._lookup(switch, table, port, vlan, destination), None
            for action, value in rule.actions if rule else ():
                if action == "push_vlan":
                    vlan = value
                elif action == "pop_vlan":
                    vlan = -1
                elif action == "goto_table":
                    table = value
                else:
                    assert action == "output"
                    self._leave(number, switch, port, value, vlan, destination)

    def _leave(self, number: int, switch: int, came: int, port: int, vlan: int, destination: str) -> None:
        if port == came:
            return  # OpenFlow sends no frame back
        if (switch, port) in self._hosts:
            assert vlan == -1, "a host gets a tag"
            self.received[number, self._hosts.index((switch, port))] += 1
        else:
            self.frames.append((number, *self._leads[switch, port], vlan, destination))

    def _lookup(self, switch: int, table: int, port: int, vlan: int, destination: str) -> Rule | None:
        frame = {"in_port": port, "dl_vlan": vlan, "dl_dst": destination}
        those = self._by_table[switch, table].values()
        # Masks match no frame of a host.
        found = [rule for rule in those if all(frame.get(key) == value for key, value in rule.match)]
        return max(found, key=lambda rule: rule.priority, default=None)


def carried_out(topology: Topology, transition: Transition, seed: int) -> list[str]:
    """Carry a transition out rule by rule, with frames of all kinds under way; returns what went wrong."""
    draw = Random(seed)
    net = InFlight(topology, list(compile_rules(topology, transition.old)))
    hosts = range(topology.host_count)
    wanted: list[dict[int, int]] = []

    def send_some() -> None:
        source = draw.randrange(topology.host_count)
        if draw.random() < 0.6:
            net.send(source, EVERYONE)
            wanted.append({host: 1 for host in hosts if host != source})
        else:
            end = draw.choice([host for host in hosts if host != source])
            net.send(source, host_mac(end))
            wanted.append({end: 1})

    for step in transition.steps:
        if step.action == "drain":
            while net.frames:
                net.hop(draw)
        for rule in draw.sample(step.rules, len(step.rules)):
            for _ in range(draw.randrange(3)):
                send_some()
            for _ in range(draw.randrange(6)):
                if net.frames:
                    net.hop(draw)
            if step.action == "remove":
                net.take_away(rule)
            else:
                net.put(rule)
    while net.frames:
        net.hop(draw)
    got: list[dict[int, int]] = [{} for _ in wanted]
    for (number, host), count in net.received.items():
        got[number][host] = count
    return [f"frame {number}: {got[number]}" for number in range(len(wanted)) if got[number] != wanted[number]]


def transition(old: Plan, new: Plan, vlans: VlanPlan | LocalPlan) -> tuple[Transition, list[str]]:
    """The steps, and why they are refused if they are."""
    topology = old.topology
    way = transition_between(topology, (old.routes, old.vlans), (new.routes, vlans))
    return way, [found.sentence for found in transition_problems(topology, way, old.routes, new.routes)]


@settings(deadline=None, max_examples=20)
@given(st.integers(0, len(FABRICS) - 1), st.permutations(sorted(ROUTINGS)), st.sampled_from((8, 10, 11, 60)), st.data())
def test_what_is_accepted_loses_and_doubles_no_frame_under_way(
    fabric: int, routings: list[str], first: int, data: st.DataObject
):
    old, new = planned(fabric, routings[0], 10), planned(fabric, routings[1], first)
    assert isinstance(old.vlans, VlanPlan)
    assert isinstance(new.vlans, VlanPlan)
    own = data.draw(st.booleans())
    way, refusals = transition(old, new, successor(old.vlans, new.vlans) if own else new.vlans)
    assert not (own and refusals)
    if not refusals:
        assert not carried_out(old.topology, way, data.draw(st.integers(0, 1 << 32)))


@pytest.mark.parametrize("after", ["dor", "updown", "sr"])
def test_a_vlan_that_is_another_tree_in_the_new_plan_is_refused(after: str):
    old, new = planned(0, "dor", 10), planned(0, after, 11)
    way, refusals = transition(old, new, new.vlans)
    assert any(carried_out(old.topology, way, seed) for seed in range(9))  # it would have lost or doubled frames
    assert refusals == [
        "VLAN 11 has other links or hosts in the new plan, so frames under way in it would be lost or doubled; give "
        "the new plan's VLANs identifiers of their own (assignment.first_vlan=12), or those of transition.successor()"
    ]
    there = planned(0, after, 12)
    assert not transition(old, there, there.vlans)[1]


def test_vlans_of_one_switch_that_forward_otherwise_are_refused():
    old, new = planned(2, "stp", 10, "renamed"), planned(2, "updown", 10, "renamed")
    assert isinstance(old.vlans, LocalPlan)
    assert isinstance(new.vlans, LocalPlan)
    _, refusals = transition(old, new, new.vlans)
    assert any("forwards VLAN 1" in one and "transition.local_successor()" in one for one in refusals)
    way, refusals = transition(old, new, local_successor(old.topology, old.vlans, new.vlans))
    assert not refusals
    assert not carried_out(old.topology, way, 1)


def test_steps_that_do_not_lead_to_the_new_plan_are_refused():
    old, new = planned(0, "dor", 10), planned(0, "stp", 60)
    way, refusals = transition(old, new, new.vlans)
    assert not refusals
    less = Transition(way.old, way.new, tuple(step for step in way.steps if step.action != "remove"))
    told = transition_problems(old.topology, less, old.routes, new.routes)
    assert told[0].sentence.endswith("does not have the rules of the new plan")
