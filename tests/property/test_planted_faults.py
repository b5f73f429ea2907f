"""Faults planted in a sound VLAN plan: verification names them, and following frames through the rules shows them."""

from __future__ import annotations

import dataclasses
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from testbed.base.model import SwitchModel, Violation, VlanPlan
from testbed.fabric.openflow.compile import compile_rules
from testbed.fabric.openflow.oracle import Oracle
from testbed.fabric.routing.paths import path
from testbed.fabric.verify import verify
from testbed.fabric.vlans.mac_entries import entries_of
from testbed.planning import Plan
from tests.fabrics import plan_of

# Two hosts a switch: whatever floods because an entry is gone reaches somebody it should not.
FABRICS: dict[str, tuple[str, dict[str, Any]]] = {
    "torus4x4": ("torus", {"sizes": [4, 4], "hosts_per_switch": 2}),
    "mesh3x2": ("mesh", {"sizes": [3, 2], "hosts_per_switch": 2}),
    "ring5": ("ring", {"switches": 5, "hosts_per_switch": 2, "parallel_links": 2}),
    "complete4": ("complete", {"switches": 4, "hosts_per_switch": 2}),
    # Routed by next hops from the destination, the other relation of routes.
    "dest4x3": (
        "torus",
        {"sizes": [4, 3], "hosts_per_switch": 2, "parallel_links": 2, "routing": {"kind": "dor", "planes": "dest"}},
    ),
}


@cache
def sound(name: str) -> Plan:
    kind, parameters = FABRICS[name]
    plan = plan_of(kind, **parameters)
    assert plan.violations == ()
    return plan


@cache
def listed(name: str) -> Plan:
    """The same with its static entries written out, so that one can be wrong."""
    plan = sound(name)
    assert isinstance(plan.vlans, VlanPlan)
    entries = entries_of(plan.topology, plan.vlans)
    return dataclasses.replace(plan, vlans=dataclasses.replace(plan.vlans, entry_rule="listed", entries=entries))


names_of_fabrics = st.sampled_from(sorted(FABRICS))
written_out = names_of_fabrics.map(listed)
COLUMNS = ("vlan", "switch", "host", "port")
plans = st.one_of(names_of_fabrics.map(sound), written_out)


def with_entries(vlans: VlanPlan, **columns: Any) -> VlanPlan:
    assert vlans.entries is not None
    return dataclasses.replace(vlans, entries=dataclasses.replace(vlans.entries, **columns))


def found(plan: Plan, vlans: VlanPlan, invariant: str) -> list[Violation]:
    return [v for v in verify(plan.topology, plan.routes, vlans, None) if v.invariant == invariant]


def oracle_of(plan: Plan, vlans: VlanPlan) -> Oracle:
    return Oracle(plan.topology, compile_rules(plan.topology, vlans))


def misled(plan: Plan, oracle: Oracle) -> set[tuple[int, int]]:
    """Pairs whose frame does not arrive once, alone, and along its path."""
    hosts = range(plan.topology.host_count)
    return {
        (source, end)
        for source in hosts
        for end in hosts
        if source != end
        and (oracle.unicast(source, end).received, oracle.unicast(source, end).channels)
        != ({end: 1}, path(plan.topology, plan.routes, source, end))
    }


def users(plan: Plan, entry: int) -> set[tuple[int, int]]:
    """Pairs whose frame looks an entry up: of its VLAN, to its host, through its switch."""
    topology, vlans, entries = plan.topology, plan.vlans, plan.vlans.entries
    vlan, switch, end = (int(c[entry]) for c in (entries.vlan, entries.switch, entries.host))
    pairs = set()
    for source in np.flatnonzero(vlans.pvid == vlan).tolist():
        taken = path(topology, plan.routes, source, end)
        passed = {int(topology.host_switch[source]), *topology.channel_target[list(taken)].tolist()}
        if source != end and switch in passed:
            pairs.add((source, end))
    return pairs


def names(plan: Plan, pairs: set[tuple[int, int]]) -> set[str]:
    return {f"{plan.topology.host_name(source)}→{plan.topology.host_name(end)}" for source, end in pairs}


def without_entry(vlans: VlanPlan, entry: int) -> VlanPlan:
    return with_entries(vlans, **{c: np.delete(getattr(vlans.entries, c), entry) for c in COLUMNS})


@given(written_out, st.data())
def test_entry_with_a_wrong_port(plan, data):
    vlans = plan.vlans
    entry = data.draw(st.integers(0, len(vlans.entries.port) - 1), "entry")
    harmed = users(plan, entry)
    assume(harmed)
    last = int(plan.topology.port_count[vlans.entries.switch[entry]])
    right = int(vlans.entries.port[entry])
    wrong = data.draw(st.integers(-1, last + 3).filter(lambda port: port != right), "port")
    ports = vlans.entries.port.copy()
    ports[entry] = wrong
    broken = with_entries(vlans, port=ports)
    lost = {pair for violation in found(plan, broken, "delivery") for pair in violation.witness}
    astray = found(plan, broken, "path")
    assert lost <= names(plan, harmed)
    assert lost or astray
    assert all(any(violation.sentence.startswith(f"{name} ") for name in names(plan, harmed)) for violation in astray)
    assert misled(plan, oracle_of(plan, broken)) == harmed
    if not 1 <= wrong <= last:
        place = f"in VLAN {vlans.vlan_ids[vlans.entries.vlan[entry]]} on s{vlans.entries.switch[entry] + 1}"
        (violation,) = found(plan, broken, "entries")
        assert place in violation.sentence
        assert f"port {wrong}," in violation.sentence


@given(written_out, st.data())
def test_missing_entry(plan, data):
    entry = data.draw(st.integers(0, len(plan.vlans.entries.port) - 1), "entry")
    harmed = users(plan, entry)
    assume(harmed)
    broken = without_entry(plan.vlans, entry)
    (violation,) = found(plan, broken, "delivery")
    assert set(violation.witness) == names(plan, harmed)
    assert f"{len(harmed)} of " in violation.sentence
    assert violation.witness[0] in violation.sentence
    assert misled(plan, oracle_of(plan, broken)) == harmed


@given(plans, st.data())
def test_missing_tagged_link(plan, data):
    vlans = plan.vlans
    vlan, link = data.draw(st.sampled_from(np.argwhere(vlans.tagged_links).tolist()), "VLAN and link")
    links = vlans.tagged_links.copy()
    links[vlan, link] = False
    broken = dataclasses.replace(vlans, tagged_links=links)
    (violation,) = found(plan, broken, "tree")
    assert violation.sentence.startswith(f"VLAN {vlans.vlan_ids[vlan]} does not connect ")
    a, b = (plan.topology.switch_name(switch) for switch in plan.topology.links[link].tolist())
    assert (a in violation.witness) != (b in violation.witness)
    members = np.flatnonzero(vlans.pvid == vlan).tolist()
    hosts = range(plan.topology.host_count)
    lost = {
        (source, end)
        for source in members
        for end in hosts
        if any(channel // 2 == link for channel in path(plan.topology, plan.routes, source, end))
    }
    assert {pair for violation in found(plan, broken, "delivery") for pair in violation.witness} == names(plan, lost)
    oracle = oracle_of(plan, broken)
    assert misled(plan, oracle) == lost
    for source in members:
        assert len(oracle.broadcast(source).received) < plan.topology.host_count - 1


@given(plans, st.data())
def test_link_added_to_a_vlan(plan, data):
    vlans = plan.vlans
    vlan, link = data.draw(st.sampled_from(np.argwhere(~vlans.tagged_links).tolist()), "VLAN and link")
    links = vlans.tagged_links.copy()
    links[vlan, link] = True
    broken = dataclasses.replace(vlans, tagged_links=links)
    (violation,) = found(plan, broken, "tree")
    assert violation.sentence == f"VLAN {vlans.vlan_ids[vlan]} contains a loop; a broadcast would circulate"
    assert plan.topology.channel_name(2 * link) in violation.witness
    oracle = oracle_of(plan, broken)
    for source in range(plan.topology.host_count):
        assert oracle.broadcast(source).endless == (vlans.pvid[source] == vlan)


@given(plans, st.data())
def test_swapped_pvids(plan, data):
    vlans = plan.vlans
    hosts = st.integers(0, plan.topology.host_count - 1)
    a, b = data.draw(st.tuples(hosts, hosts).filter(lambda pair: vlans.pvid[pair[0]] != vlans.pvid[pair[1]]), "hosts")
    pvid = vlans.pvid.copy()
    pvid[[a, b]] = pvid[[b, a]]
    broken = dataclasses.replace(vlans, pvid=pvid)
    blamed = {witness for violation in found(plan, broken, "delivery") for witness in violation.witness}
    blamed |= {violation.sentence.split(" ")[0] for violation in found(plan, broken, "path")}
    assert blamed
    assert {name.split("→")[0] for name in blamed} <= {plan.topology.host_name(a), plan.topology.host_name(b)}
    wrong = misled(plan, oracle_of(plan, broken))
    assert blamed == names(plan, wrong)


@given(plans, st.data())
def test_untagged_member_removed(plan, data):
    vlans = plan.vlans
    vlan = data.draw(st.integers(0, vlans.vlan_count - 1), "VLAN")
    host = data.draw(st.integers(0, plan.topology.host_count - 1), "host")
    members = vlans.untagged_hosts.copy()
    members[vlan, host] = False
    broken = dataclasses.replace(vlans, untagged_hosts=members)
    (violation,) = found(plan, broken, "members")
    assert violation.witness == (plan.topology.host_name(host),)
    assert f"VLAN {vlans.vlan_ids[vlan]}," in violation.sentence
    # No frame of the VLAN leaves by the port, and none that would be tagged with it comes in.
    hosts = set(range(plan.topology.host_count))
    lost = {(source, host) for source in hosts - {host} if vlans.pvid[source] == vlan}
    lost |= {(host, end) for end in hosts - {host} if vlans.pvid[host] == vlan}
    assert {pair for found_one in found(plan, broken, "delivery") for pair in found_one.witness} == names(plan, lost)
    oracle = oracle_of(plan, broken)
    for source in hosts:
        others = hosts - {source}
        reached = others - {host} if vlans.pvid[source] == vlan else others
        assert set(oracle.broadcast(source).received) == reached


@given(plans, st.data())
def test_identifier_given_to_two_vlans(plan, data):
    vlans = plan.vlans
    several = st.lists(st.integers(0, vlans.vlan_count - 1), min_size=2, max_size=2, unique=True)
    first, second = data.draw(several, "VLANs")
    identifiers = vlans.vlan_ids.copy()
    identifiers[second] = identifiers[first]
    broken = dataclasses.replace(vlans, vlan_ids=identifiers)
    (violation,) = found(plan, broken, "vlan id")
    assert violation.witness == (str(identifiers[first]),)
    before, after = oracle_of(plan, vlans), oracle_of(plan, broken)
    hosts = range(plan.topology.host_count)
    changed = {source for source, _ in misled(plan, after)}
    # A broadcast may still reach everyone, but by the links of the other VLAN.
    changed |= {source for source in hosts if after.broadcast(source).channels != before.broadcast(source).channels}
    assert changed
    assert changed <= set(np.flatnonzero(np.isin(vlans.pvid, [first, second])).tolist())


@pytest.mark.parametrize("identifier", [0, 4095, -1])
def test_identifier_that_8021q_does_not_have(identifier):
    plan = sound("mesh3x2")
    assert isinstance(plan.vlans, VlanPlan)
    identifiers = plan.vlans.vlan_ids.copy()
    identifiers[0] = identifier
    (violation,) = found(plan, dataclasses.replace(plan.vlans, vlan_ids=identifiers), "vlan id")
    assert violation.sentence == f"VLAN {identifier} is outside 1..4094, the identifiers of 802.1Q"


@given(written_out, st.data())
def test_entry_that_stands_twice(plan, data):
    vlans = plan.vlans
    entry = data.draw(st.integers(0, len(vlans.entries.port) - 1), "entry")
    twice = {c: np.append(getattr(vlans.entries, c), getattr(vlans.entries, c)[entry]) for c in COLUMNS}
    (violation,) = found(plan, with_entries(vlans, **twice), "entries")
    host, switch = vlans.entries.host[entry] + 1, vlans.entries.switch[entry] + 1
    vlan = vlans.vlan_ids[vlans.entries.vlan[entry]]
    assert violation.sentence == f"the entry of h{host} in VLAN {vlan} on s{switch} is listed more than once"


@pytest.mark.parametrize(
    ("limit", "sentence"),
    [
        ({"ports": 3}, "s2 needs 5 ports and a tiny has 3; PC5324 or PC6224 or PC6248 or SF-420 would do"),
        ({"max_vlans": 1}, "s1 needs 2 VLANs and a tiny has 1; PC5324 or PC6224 or PC6248 or SF-420 would do"),
        ({"mac_table": 7}, "s1 needs 14 MAC entries and a tiny has 7; PC5324 or PC6224 or PC6248 or SF-420 would do"),
    ],
)
def test_switch_that_is_too_small(limit, sentence):
    plan = sound("mesh3x2")
    roomy = SwitchModel("tiny", ports=100, max_vlans=100, mac_table=10000)
    assert verify(plan.topology, plan.routes, plan.vlans, roomy) == ()
    model = dataclasses.replace(roomy, **limit)
    (violation,) = verify(plan.topology, plan.routes, plan.vlans, model)
    assert (violation.invariant, violation.sentence) == ("switch model", sentence)
    assert violation.witness == (sentence.split(" ")[0],)
