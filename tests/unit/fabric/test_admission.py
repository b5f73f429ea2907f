"""What a host's port takes in, as IEEE 802.1Q has it, and that compiled rules do the same with any frame."""

from __future__ import annotations

import itertools

import pytest

from testbed.base.model import host_mac
from testbed.fabric.openflow.admission import GROUP_SOURCE, RESERVED_GROUP, admit, matches
from testbed.fabric.openflow.compile import LearningOracle
from testbed.fabric.openflow.oracle import BROADCAST, Oracle
from testbed.fabric.openflow.rule_text import FlowSyntaxError, format_rule, parse_rule
from testbed.fabric.openflow.tables import UNTAGGED
from testbed.planning import make_plan
from tests.fabrics import scenario_of

HOST, OTHER = host_mac(0), host_mac(1)
BPDU, PAUSE, LLDP = (f"01:80:c2:00:00:{last}" for last in ("00", "01", "0e"))


@pytest.mark.parametrize(
    ("mac", "masked", "expected"),
    [
        (BPDU, RESERVED_GROUP, True),
        ("01:80:C2:00:00:0F", RESERVED_GROUP, True),
        ("01:80:c2:00:00:10", RESERVED_GROUP, False),
        ("01:00:5e:00:00:01", RESERVED_GROUP, False),
        (BROADCAST, GROUP_SOURCE, True),
        ("03:00:00:00:00:01", GROUP_SOURCE, True),
        (HOST, GROUP_SOURCE, False),
    ],
)
def test_addresses_with_a_mask(mac, masked, expected):
    assert matches(mac, masked) is expected


@pytest.mark.parametrize(
    ("frame", "expected"),
    [
        ((HOST, OTHER, None, 10), 10),
        ((HOST, OTHER, 0, 10), 10),
        ((HOST, OTHER, 10, 10), None),
        ((HOST, OTHER, 11, 10, {10, 11}), 11),
        ((HOST, OTHER, 12, 10, {10, 11}), None),
        ((BROADCAST, OTHER, None, 10), None),
        *(((HOST, reserved, None, 10), None) for reserved in (BPDU, PAUSE, LLDP)),
        ((HOST, "01:80:c2:00:00:10", None, 10), 10),
        ((HOST, BROADCAST, 0, 10), 10),
    ],
)
def test_the_vlan_of_a_frame_at_a_host_s_port(frame, expected):
    assert admit(*frame) == expected


_KINDS = {
    "fixed": "{kind: fixed}",
    "learning": "{kind: fixed, registration: learning}",
    "renamed": "{kind: renamed}",
    "openflow": "{kind: openflow}",
}


@pytest.mark.parametrize("kind", _KINDS)
def test_rules_deliver_what_is_admitted_and_nothing_else(kind):
    plan = make_plan(scenario_of(f"topology: {{kind: mesh, sizes: [2, 2]}}\nassignment: {_KINDS[kind]}\n"))
    vlans = plan.vlans.vlan_ids.tolist() if kind in ("fixed", "learning") else [10]
    tagged = vlans if kind == "learning" else []
    oracle = (LearningOracle if kind == "learning" else Oracle)(plan.topology, plan.rules)
    sources, destinations = (HOST, BROADCAST, "01:00:5e:00:00:01"), (OTHER, BROADCAST, BPDU, PAUSE, LLDP)
    for source, destination, vlan in itertools.product(sources, destinations, (None, 0, vlans[0], 4000)):
        given = oracle.send(0, destination, UNTAGGED if vlan is None else vlan, source)
        everyone = {OTHER: {1: 1}, BROADCAST: {1: 1, 2: 1, 3: 1}}
        wanted = everyone[destination] if admit(source, destination, vlan, vlans[0], tagged) else {}
        reached = {host: given.received.get(host, 0) for host in wanted}
        assert reached == wanted, (source, destination, vlan)
        assert bool(given.received) is bool(wanted), (source, destination, vlan)
        assert given.tagged == ()


def test_a_broadcast_from_a_broadcast_address_is_not_learned():
    plan = make_plan(
        scenario_of("topology: {kind: mesh, sizes: [2, 2]}\nassignment: {kind: fixed, registration: learning}")
    )
    oracle = LearningOracle(plan.topology, plan.rules)
    oracle.send(0, BROADCAST, source_mac=BROADCAST)
    assert oracle.broadcast(1).received == {0: 1, 2: 1, 3: 1}


def test_the_rules_survive_their_text_and_other_masks_do_not():
    plan = make_plan(scenario_of("topology: {kind: mesh, sizes: [2]}"))
    filters = [rule for rule in plan.rules if rule.priority == 700]
    assert len(filters) == 3 * 2
    assert [parse_rule(rule.switch, format_rule(rule)) for rule in filters] == filters
    with pytest.raises(FlowSyntaxError, match="unexpected match"):
        parse_rule(0, "table=0,priority=700,dl_dst=01:80:c2:00:00:00/ff:ff:ff:00:00:00,actions=drop")
