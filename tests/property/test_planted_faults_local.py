"""Faults planted in a sound plan of local VLANs: verification names them, and following frames shows the same."""

from __future__ import annotations

import dataclasses
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from testbed.base.model import LocalPlan, Paths, Routes, SwitchModel, Topology, Violation
from testbed.fabric.openflow.compile import compile_rules
from testbed.fabric.openflow.oracle import Oracle
from testbed.fabric.routing import ROUTINGS
from testbed.fabric.routing.paths import destination_keys, hops, source_keys
from testbed.fabric.verify import verify
from testbed.fabric.vlans import ASSIGNMENTS
from tests.fabrics import topology_of


@dataclasses.dataclass(frozen=True)
class Fabric:
    topology: Topology
    routes: Routes
    plan: LocalPlan

    def violations(self, plan: LocalPlan, model: SwitchModel | None = None) -> tuple[Violation, ...]:
        return verify(self.topology, self.routes, plan, model)


def in_two_layers(topology: Topology, routes: Routes) -> Routes:
    """The same paths, all but their last two hops in layer 1: the layer goes down on the way, as in DL."""
    assert routes.paths is not None
    left = np.repeat(routes.paths.start[1:], np.diff(routes.paths.start)) - np.arange(len(routes.paths.hop))
    hop = routes.paths.hop + np.where(left > 2, len(topology.channel_source), 0).astype(np.int32)
    return dataclasses.replace(routes, layers=2, paths=Paths(routes.paths.start, hop), allowed=None)


# Two hosts a switch: whatever floods because an entry is gone reaches somebody it should not.
FABRICS: dict[str, tuple[str, str, dict[str, Any], dict[str, Any]]] = {
    "renamed mesh": ("renamed", "dor", {}, {"kind": "mesh", "sizes": (3, 3)}),
    "renamed mesh, fewest": ("renamed", "dor", {"merge": "entries"}, {"kind": "mesh", "sizes": (3, 3)}),
    "renamed ring": ("renamed", "dor", {}, {"kind": "ring", "switches": 5, "parallel_links": 2}),
    "renamed random": ("renamed", "updown", {}, {"kind": "random", "switches": 9, "degree": 4, "seed": 1}),
    "static mesh": ("static", "dor", {}, {"kind": "mesh", "sizes": (3, 2)}),
    "static tree": ("static", "tree", {}, {"kind": "tree", "switches": 6, "arity": 2}),
    "static by destination": ("static", "updown", {}, {"kind": "random", "switches": 9, "degree": 4, "seed": 1}),
    "openflow random": ("openflow", "updown", {}, {"kind": "random", "switches": 9, "degree": 3, "seed": 2}),
    "openflow layers": ("openflow", "updown", {}, {"kind": "mesh", "sizes": (4, 3)}),
}


@cache
def sound(name: str) -> Fabric:
    assignment, routing, options, parameters = FABRICS[name]
    topology = topology_of(**parameters, hosts_per_switch=2)
    by = {"next_hop": "destination"} if name == "static by destination" else {}
    routes = ROUTINGS[routing].route(topology, ROUTINGS[routing].options(**by))
    if name == "openflow layers":
        routes = in_two_layers(topology, routes)
    kind = ASSIGNMENTS[assignment]
    plan = kind.assign(topology, routes, kind.options(**options))
    assert isinstance(plan, LocalPlan)
    fabric = Fabric(topology, routes, plan)
    assert fabric.violations(fabric.plan) == ()
    assert misled(fabric, fabric.plan) == set()
    return fabric


fabrics = st.sampled_from(sorted(FABRICS)).map(sound)
layered = st.sampled_from(["openflow layers"]).map(sound)
renamed = st.sampled_from([name for name in sorted(FABRICS) if name.startswith("renamed")]).map(sound)
tagged = st.sampled_from([name for name in sorted(FABRICS) if name.startswith("openflow")]).map(sound)
untagged = st.sampled_from([name for name in sorted(FABRICS) if not name.startswith("openflow")]).map(sound)


def misled(fabric: Fabric, plan: LocalPlan) -> set[str]:
    """Pairs whose frame, on the compiled rules, does not arrive once, alone, along its path and in its layers."""
    topology = fabric.topology
    oracle, channels = Oracle(topology, compile_rules(topology, plan)), len(topology.channel_source)
    wrong = set()
    for source in range(topology.host_count):
        for end in range(topology.host_count):
            if source == end:
                continue
            sent, wanted = oracle.unicast(source, end), hops(topology, fabric.routes, source, end)
            layers = [hop // channels if plan.kind == "openflow" else 0 for hop in wanted]
            if (
                sent.received != {end: 1}
                or sent.tagged
                or sent.channels != tuple(hop % channels for hop in wanted)
                or [priority for _, priority in sent.tags] != layers
            ):
                wrong.add(f"{topology.host_name(source)}→{topology.host_name(end)}")
    return wrong


def blamed(violations: tuple[Violation, ...]) -> set[str]:
    """Pairs that verification names."""
    lost = {pair for violation in violations if violation.invariant == "delivery" for pair in violation.witness}
    return lost | {violation.sentence.split(" ")[0] for violation in violations if violation.invariant == "path"}


def of(violations: tuple[Violation, ...], invariant: str) -> list[Violation]:
    return [violation for violation in violations if violation.invariant == invariant]


def users(fabric: Fabric, entry: int) -> set[str]:
    """Pairs whose frame looks an entry up."""
    topology, plan = fabric.topology, fabric.plan
    vlan, key = int(plan.entry_vlan[entry]), int(plan.entry_key[entry])
    pairs = set()
    for source in range(topology.host_count):
        for end in np.flatnonzero(plan.host_key == key).tolist():
            taken = hops(topology, fabric.routes, source, end)
            if source != end and vlan in {int(plan.host_vlan[source]), *plan.channel_vlan[list(taken)].tolist()}:
                pairs.add(f"{topology.host_name(source)}→{topology.host_name(end)}")
    return pairs


@given(fabrics, st.data())
def test_entry_with_a_wrong_next_hop(fabric, data):
    plan = fabric.plan
    entry = data.draw(st.integers(0, len(plan.entry_hop) - 1), "entry")
    right = int(plan.entry_hop[entry])
    hop = data.draw(st.integers(-1, len(plan.channel_vlan) - 1).filter(lambda hop: hop != right), "next hop")
    harmed = users(fabric, entry)
    assume(harmed)
    hops_now = plan.entry_hop.copy()
    hops_now[entry] = hop
    broken = dataclasses.replace(plan, entry_hop=hops_now)
    violations = fabric.violations(broken)
    assert blamed(violations) == misled(fabric, broken) == harmed
    switch = fabric.topology.switch_name(int(plan.vlan_switch[plan.entry_vlan[entry]]))
    channel = hop % len(fabric.topology.channel_source)
    if hop >= 0 and fabric.topology.channel_source[channel] != plan.vlan_switch[plan.entry_vlan[entry]]:
        (violation,) = of(violations, "entries")
        assert violation.witness == (fabric.topology.channel_name(channel),)
        assert switch in violation.sentence
        assert "does not leave that switch" in violation.sentence


@pytest.mark.parametrize("channel", [0, 1, 2])
def test_a_switch_that_would_have_to_send_back_loses_the_frame(channel):
    """Frames of a host to its neighbour on the same switch go out by a channel, and entries want them to come back."""
    fabric = sound("renamed random")
    plan, topology = fabric.plan, fabric.topology
    there = int(topology.channel_source[channel])
    source, end = np.flatnonzero(topology.host_switch == there).tolist()
    key = int(plan.host_key[end])
    away, back = int(plan.host_vlan[source]), int(plan.channel_vlan[channel])
    planted = {(away, key): channel, (back, key): channel ^ 1}
    rows = list(zip(plan.entry_vlan.tolist(), plan.entry_key.tolist(), plan.entry_hop.tolist(), strict=True))
    entries = sorted(({(vlan, to): hop for vlan, to, hop in rows} | planted).items())
    columns = np.array([(vlan, to, hop) for (vlan, to), hop in entries], dtype=np.int32).T
    broken = dataclasses.replace(plan, entry_vlan=columns[0], entry_key=columns[1], entry_hop=columns[2])
    violations = fabric.violations(broken)
    assert blamed(violations) == misled(fabric, broken)
    assert f"{topology.host_name(source)}→{topology.host_name(end)}" in of(violations, "delivery")[0].witness
    assert of(violations, "path") == []


@given(fabrics, st.data())
def test_missing_entry(fabric, data):
    plan = fabric.plan
    entry = data.draw(st.integers(0, len(plan.entry_hop) - 1), "entry")
    harmed = users(fabric, entry)
    assume(harmed)
    columns = {name: np.delete(getattr(plan, name), entry) for name in ("entry_vlan", "entry_key", "entry_hop")}
    broken = dataclasses.replace(plan, **columns)
    (violation,) = fabric.violations(broken)
    assert violation.invariant == "delivery"
    assert set(violation.witness) == misled(fabric, broken) == harmed


@given(fabrics, st.data())
def test_entry_that_stands_twice(fabric, data):
    plan = fabric.plan
    entry = data.draw(st.integers(0, len(plan.entry_hop) - 1), "entry")
    columns = {
        name: np.insert(getattr(plan, name), entry, getattr(plan, name)[entry])
        for name in ("entry_vlan", "entry_key", "entry_hop")
    }
    (violation,) = fabric.violations(dataclasses.replace(plan, **columns))
    assert violation.invariant == "entries"
    assert violation.sentence.endswith("is listed more than once")
    assert f"h{plan.entry_key[entry] * 2 + 1}" in violation.sentence


@given(untagged, st.data())
def test_member_removed(fabric, data):
    plan, topology = fabric.plan, fabric.topology
    index = data.draw(st.integers(0, len(plan.member_port) - 1), "member")
    vlan = int(np.searchsorted(plan.member_start, index, side="right")) - 1
    start = plan.member_start.copy()
    start[vlan + 1 :] -= 1
    broken = dataclasses.replace(plan, member_start=start, member_port=np.delete(plan.member_port, index))
    violations = fabric.violations(broken)
    found = of(violations, "members") + of(violations, "entries")
    assert found
    switch = topology.switch_name(int(plan.vlan_switch[vlan]))
    port = int(plan.member_port[index])
    assert all(switch in violation.sentence for violation in found)
    if of(violations, "members"):
        (violation,) = of(violations, "members")
        assert violation.sentence.startswith(f"port {port} of {switch} is not a member of its own PVID, ")
    assert blamed(violations) == misled(fabric, broken)


@given(renamed, st.data())
def test_vlans_merged_that_do_not_agree(fabric, data):
    """Two VLANs of a switch made one, as the paper's Step 4 alone would where members are the same."""
    plan = fabric.plan
    several = np.flatnonzero(np.bincount(plan.vlan_switch) > 1).tolist()
    assume(several)
    switch = data.draw(st.sampled_from(several), "switch")
    here = np.flatnonzero(plan.vlan_switch == switch).tolist()
    kept, gone = data.draw(st.lists(st.sampled_from(here), min_size=2, max_size=2, unique=True), "VLANs")
    vlan = np.where(plan.entry_vlan == gone, kept, plan.entry_vlan).astype(np.int32)
    order = np.lexsort((plan.entry_vlan == gone, plan.entry_key, vlan))  # the kept VLAN's entry first
    key = vlan[order].astype(np.int64) * len(plan.host_key) + plan.entry_key[order]
    first = order[np.concatenate([[True], np.diff(key) > 0])]
    ports = [plan.member_port[plan.member_start[v] : plan.member_start[v + 1]] for v in range(plan.class_count)]
    ports[kept] = np.union1d(ports[kept], ports[gone]).astype(np.int32)
    broken = dataclasses.replace(
        plan,
        host_vlan=np.where(plan.host_vlan == gone, kept, plan.host_vlan).astype(np.int32),
        channel_vlan=np.where(plan.channel_vlan == gone, kept, plan.channel_vlan).astype(np.int32),
        entry_vlan=vlan[first], entry_key=plan.entry_key[first], entry_hop=plan.entry_hop[first],
        member_start=np.cumsum([0, *(len(p) for p in ports)]).astype(np.int64),
        member_port=np.concatenate(ports),
    )  # fmt: skip
    wanted: dict[int, set[int]] = {}
    for each, entry_key, hop in zip(plan.entry_vlan, plan.entry_key, plan.entry_hop, strict=True):
        if each in (kept, gone):
            wanted.setdefault(int(entry_key), set()).add(int(hop))
    disagree = any(len(ways) > 1 for ways in wanted.values())
    violations = fabric.violations(broken)
    assert blamed(violations) == misled(fabric, broken)
    assert bool(violations) == disagree
    if disagree:
        (violation,) = of(violations, "merge")
        name = f"local VLAN {plan.vlan_id[kept]} of {fabric.topology.switch_name(switch)}"
        assert violation.witness == (name,)
        assert "must go to" in violation.sentence


@given(layered, st.data())
def test_wrong_priority(fabric, data):
    plan, channels = fabric.plan, len(fabric.topology.channel_source)
    entry = data.draw(st.sampled_from(np.flatnonzero(plan.entry_hop >= 0).tolist()), "entry")
    harmed = users(fabric, entry)
    assume(harmed)
    hops_now = plan.entry_hop.copy()
    hops_now[entry] = (hops_now[entry] + channels) % (2 * channels)
    broken = dataclasses.replace(plan, entry_hop=hops_now)
    violations = fabric.violations(broken)
    assert blamed(violations) == misled(fabric, broken) == harmed
    name = f"{fabric.topology.channel_name(int(hops_now[entry]) % channels)}@{int(hops_now[entry]) // channels}"
    assert all(name in violation.witness for violation in of(violations, "path"))


@given(fabrics, st.data())
def test_class_of_another_arrival(fabric, data):
    """A channel's frames are taken for those of another class, of this switch or of another."""
    plan = fabric.plan
    used = np.flatnonzero(plan.channel_vlan >= 0).tolist()
    hop = data.draw(st.sampled_from(used), "channel")
    right = int(plan.channel_vlan[hop])
    wrong = data.draw(st.integers(-1, plan.class_count - 1).filter(lambda vlan: vlan != right), "class")
    classes = plan.channel_vlan.copy()
    classes[hop] = wrong
    broken = dataclasses.replace(plan, channel_vlan=classes)
    violations = fabric.violations(broken)
    if wrong >= 0 and plan.vlan_switch[wrong] != plan.vlan_switch[right]:
        (violation,) = of(violations, "members")
        assert "belongs to another switch" in violation.sentence
    if plan.kind != "openflow":  # where rules match the in-port, another port's rules are not looked at
        assert blamed(violations) == misled(fabric, broken)
    if wrong == -1:
        assert blamed(violations)


@given(fabrics, st.data())
def test_hosts_with_each_others_pvid(fabric, data):
    plan = fabric.plan
    hosts = st.integers(0, fabric.topology.host_count - 1)
    pairs = st.tuples(hosts, hosts).filter(lambda pair: plan.host_vlan[pair[0]] != plan.host_vlan[pair[1]])
    a, b = data.draw(pairs, "hosts")
    vlans = plan.host_vlan.copy()
    vlans[[a, b]] = vlans[[b, a]]
    broken = dataclasses.replace(plan, host_vlan=vlans)
    violations = fabric.violations(broken)
    assert len(of(violations, "members")) == 2
    names = {fabric.topology.host_name(host) for host in (a, b)}
    assert {pair.split("→")[0] for pair in blamed(violations)} == names
    assert blamed(violations) == misled(fabric, broken)


@given(fabrics, st.data())
def test_host_without_a_pvid(fabric, data):
    host = data.draw(st.integers(0, fabric.topology.host_count - 1), "host")
    vlans = fabric.plan.host_vlan.copy()
    vlans[host] = -1
    broken = dataclasses.replace(fabric.plan, host_vlan=vlans)
    violations = fabric.violations(broken)
    name = fabric.topology.host_name(host)
    (violation,) = of(violations, "members")
    assert violation.witness == (name,)
    assert {pair.split("→")[0] for pair in blamed(violations)} == {name}
    if fabric.plan.kind != "openflow":
        assert blamed(violations) == misled(fabric, broken)


@given(fabrics, st.data())
def test_keys_of_two_destinations_swapped(fabric, data):
    plan = fabric.plan
    a, b = data.draw(st.lists(st.integers(0, int(plan.host_key.max())), min_size=2, max_size=2, unique=True), "keys")
    keys = np.where(plan.host_key == a, b, np.where(plan.host_key == b, a, plan.host_key)).astype(np.int32)
    broken = dataclasses.replace(plan, host_key=keys)
    violations = fabric.violations(broken)
    assert blamed(violations) == misled(fabric, broken) != set()
    assert all(violation.witness for violation in of(violations, "entries"))


@given(fabrics, st.data())
def test_link_missing_from_the_tree_of_broadcasts(fabric, data):
    plan, topology = fabric.plan, fabric.topology
    link = data.draw(st.sampled_from(np.flatnonzero(plan.flood_links).tolist()), "link")
    links = plan.flood_links.copy()
    links[link] = False
    broken = dataclasses.replace(plan, flood_links=links)
    (violation,) = fabric.violations(broken)
    assert violation.invariant == "flood"
    a, b = (topology.switch_name(switch) for switch in topology.links[link].tolist())
    assert (a in violation.witness) != (b in violation.witness)
    oracle = Oracle(topology, compile_rules(topology, broken))
    assert all(len(oracle.broadcast(host).received) < topology.host_count - 1 for host in range(topology.host_count))


@given(fabrics, st.data())
def test_link_added_to_the_tree_of_broadcasts(fabric, data):
    plan, topology = fabric.plan, fabric.topology
    more = np.flatnonzero(~plan.flood_links).tolist()
    assume(more)
    link = data.draw(st.sampled_from(more), "link")
    links = plan.flood_links.copy()
    links[link] = True
    broken = dataclasses.replace(plan, flood_links=links)
    (violation,) = fabric.violations(broken)
    assert violation.sentence == "the links of broadcasts contain a loop; a broadcast would circulate"
    assert topology.channel_name(2 * link) in violation.witness
    oracle = Oracle(topology, compile_rules(topology, broken))
    assert all(oracle.broadcast(host).endless for host in range(topology.host_count))


@given(renamed, st.data())
def test_identifier_given_to_two_vlans_of_a_switch(fabric, data):
    plan = fabric.plan
    several = np.flatnonzero(np.bincount(plan.vlan_switch) > 1).tolist()
    assume(several)
    switch = data.draw(st.sampled_from(several), "switch")
    here = np.flatnonzero(plan.vlan_switch == switch)
    identifiers = plan.vlan_id.copy()
    identifiers[here[1]] = identifiers[here[0]]
    violations = fabric.violations(dataclasses.replace(plan, vlan_id=identifiers))
    name = fabric.topology.switch_name(switch)
    assert [v.witness for v in of(violations, "vlan id")] == [(name, str(identifiers[here[0]]))]


@given(fabrics, st.sampled_from([0, -3, 4095]), st.data())
def test_identifier_that_802_1q_does_not_have(fabric, identifier, data):
    identifiers = fabric.plan.vlan_id.copy()
    identifiers[data.draw(st.integers(0, len(identifiers) - 1), "class")] = identifier
    violations = fabric.violations(dataclasses.replace(fabric.plan, vlan_id=identifiers))
    assert (str(identifier),) in [v.witness for v in of(violations, "vlan id")]


@given(tagged, st.data())
def test_switches_that_tag_with_different_vlans(fabric, data):
    identifiers = fabric.plan.vlan_id.copy()
    identifiers[data.draw(st.integers(0, len(identifiers) - 1), "class")] = 7
    (violation,) = fabric.violations(dataclasses.replace(fabric.plan, vlan_id=identifiers))
    assert violation.witness == ("1", "7")


@given(untagged, st.sampled_from(["ports", "max_vlans", "mac_table"]), st.booleans())
def test_switch_model_with_one_too_few(fabric, limit, enough):
    plan, topology = fabric.plan, fabric.topology
    entries = np.zeros(topology.switch_count, dtype=int)
    for vlan, key in zip(plan.entry_vlan, plan.entry_key, strict=True):
        entries[plan.vlan_switch[vlan]] += int((plan.host_key == key).sum())
    needs = {
        "ports": int(topology.port_count.max()),
        "max_vlans": int(np.bincount(plan.vlan_switch).max()),
        "mac_table": int(entries.max()),
    }
    model = SwitchModel("test", **{name: need - (name == limit and not enough) for name, need in needs.items()})
    violations = fabric.violations(plan, model)
    if enough:
        assert violations == ()
    else:
        (violation,) = violations
        assert f"needs {needs[limit]} " in violation.sentence


@given(tagged)
def test_no_plain_switch_carries_out_openflow(fabric):
    (violation,) = fabric.violations(fabric.plan, SwitchModel("plain", 99, 4094, 1 << 20))
    assert violation.sentence.startswith("a plain forwards by VLAN and MAC address alone; ")


NUMBERS = {
    "vlan_switch": -1, "host_vlan": -2, "channel_vlan": -2, "host_key": -1, "entry_vlan": -1, "entry_key": -1,
    "entry_hop": -2, "member_start": -1,
}  # fmt: skip


@given(fabrics, st.sampled_from(sorted(NUMBERS)), st.booleans(), st.data())
def test_a_number_of_something_that_does_not_exist(fabric, name, low, data):
    array = getattr(fabric.plan, name).copy()
    assume(low or name != "host_key")  # a new destination key is one
    wrong = NUMBERS[name] if low else 1 << 20
    array[data.draw(st.integers(0, len(array) - 1), "place")] = wrong
    violations = of(fabric.violations(dataclasses.replace(fabric.plan, **{name: array})), "plan")
    assert violations[0].witness == (name,)
    assert f"{name} holds {wrong}, and goes from" in violations[0].sentence


@given(fabrics, st.sampled_from(sorted({*NUMBERS, "vlan_id", "flood_links"})))
def test_an_array_of_a_wrong_length(fabric, name):
    array = getattr(fabric.plan, name)
    broken = dataclasses.replace(fabric.plan, **{name: np.concatenate([array, array[:1]])})
    found = of(fabric.violations(broken), "plan")
    assert found
    assert name in found[0].witness or name.startswith(("vlan_switch", "entry_vlan"))


def test_the_users_of_an_entry_are_found():
    """The pairs that the tests above expect to be harmed are not empty by mistake."""
    fabric = sound("renamed mesh")
    assert sum(bool(users(fabric, entry)) for entry in range(len(fabric.plan.entry_hop))) == len(fabric.plan.entry_hop)
    keys = source_keys(fabric.topology, fabric.routes), destination_keys(fabric.topology, fabric.routes)
    assert [int(k.max()) for k in keys] == [8, 8]
