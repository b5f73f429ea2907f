"""Switches that learn addresses, each VLAN for itself (IEEE 802.1Q, 8.7; Koibuchi et al. 2011, section 3.3).

A rule that takes a frame in also notes, by Open vSwitch's action `learn`, that the frame's source is reached in its
VLAN by the port of arrival: a rule of the forwarding table, of the same form and priority as a static entry. What is
not known yet is flooded in the tree of the VLAN, like a broadcast.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from testbed.model import LearningPlan, Rule, Topology, host_mac
from testbed.pipeline.oracle import Delivery, Frame, Oracle
from testbed.pipeline.tables import FORWARDING, INGRESS, LEARN_AT_HOST, LEARN_AT_TRUNK, UNTAGGED, Priority


def learning_rules(topology: Topology, vlans: LearningPlan, arriving: Iterable[Rule]) -> list[Rule]:
    """The rules that take frames in, made to learn, and those for tagged frames of hosts.

    A host's port is a member of every VLAN, and so takes in a frame that the host itself has tagged with any of them:
    that is how switches learn the host in VLANs that are not its PVID.
    """
    rules = [*arriving]
    members = np.broadcast_to(vlans.untagged_hosts, (vlans.vlan_count, topology.host_count))
    for vlan, host in zip(*members.nonzero(), strict=True):
        match = (("in_port", int(topology.host_port[host])), ("dl_vlan", int(vlans.vlan_ids[vlan])))
        to = (("goto_table", FORWARDING.number),)
        rules.append(Rule(int(topology.host_switch[host]), INGRESS.number, Priority.ADMIT, match, to))
    hosts = set(zip(topology.host_switch.tolist(), topology.host_port.tolist(), strict=True))
    return [_learning(rule, vlans.ageing, hosts) for rule in rules]


def _learning(rule: Rule, ageing: int, hosts: set[tuple[int, int]]) -> Rule:
    action = LEARN_AT_HOST if (rule.switch, dict(rule.match)["in_port"]) in hosts else LEARN_AT_TRUNK
    *before, last = rule.actions
    return replace(rule, actions=(*before, (action, ageing), last))


class LearningOracle(Oracle):
    """An oracle whose switches learn from every frame that it follows, and forget nothing."""

    def send(self, source: int, destination_mac: str, vlan: int = UNTAGGED) -> Delivery:
        """Let host `source` send one frame; switches learn its address on the way."""
        self._sender = host_mac(source)
        return super().send(source, destination_mac, vlan)

    def _learn(self, switch: int, action: str, frame: Frame) -> None:
        send: tuple[tuple[str, int], ...] = (("output", frame.in_port),)
        if action == LEARN_AT_HOST:
            send = (("pop_vlan", 0), *send)
        match = (("dl_vlan", frame.tag[0]), ("dl_dst", self._sender))
        self.add(Rule(switch, FORWARDING.number, Priority.STATIC_ENTRY, match, send))
