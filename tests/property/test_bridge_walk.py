"""Bridges as exported, followed by the rules of 802.1Q, carry every plan out; what is changed in them is found."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st

from testbed.base.errors import InputError
from testbed.base.model import LocalPlan, VlanPlan, host_mac
from testbed.devices import Options, compare_files, export_plan
from testbed.devices.bridge import BROADCAST, Bridge, Walker
from testbed.devices.compare import planned_bridges, setting_differences
from testbed.devices.port_names import port_names
from testbed.devices.settings import settings_of
from testbed.devices.walks import walk_differences, wiring_of
from testbed.fabric.power.select import subfabric_without
from testbed.fabric.routing import ROUTINGS
from testbed.fabric.transition import successor
from testbed.fabric.vlans.fixed import assign_fixed
from testbed.planning import Plan, make_plan
from tests.fabrics import fabrics, random_fabric, scenario_of

PORTS = port_names("swp{}")
LINUX = ("linux-bridge-iproute2", "linux-networkd", "ifupdown2")


def macs_of(plan: Plan) -> list[str]:
    return [host_mac(host) for host in range(plan.topology.host_count)]


def bridges_of(plan: Plan) -> dict[str, Bridge]:
    return planned_bridges(settings_of(plan), PORTS, macs_of(plan))


def assignments() -> st.SearchStrategy[dict[str, Any]]:
    fixed = st.fixed_dictionaries({"kind": st.just("fixed"), "entries": st.sampled_from(["used", "all"])})
    renamed = st.fixed_dictionaries(
        {
            "kind": st.just("renamed"),
            "merge": st.sampled_from(["members", "entries"]),
            "flood": st.sampled_from(["tree", "none"]),
        }
    )
    static = st.fixed_dictionaries({"kind": st.just("static"), "flood": st.sampled_from(["tree", "none"])})
    return fixed | renamed | static


@given(fabrics(), assignments(), st.sampled_from(LINUX))
@settings(max_examples=120)
def test_what_is_written_and_read_back_carries_the_plan_out(blocks, assignment, dialect):
    try:
        plan = make_plan(scenario_of({**blocks, "assignment": assignment}))
    except InputError:
        reject()
    made = export_plan(plan, Options(dialect))
    found = compare_files(plan, made.manifest, made.files)
    assert (found.unread, found.settings, found.walks, found.other_plan) == ((), (), (), None)
    assert found.is_same


def random_plan(seed: int, assignment: str) -> Plan:
    """Sparse or dense, with bridges, parallel links, switches without hosts; asymmetric paths in local VLANs."""
    topology = random_fabric(seed)
    hosts = np.bincount(topology.host_switch, minlength=topology.switch_count).tolist()
    graph = {
        "kind": "graph",
        "switches": [f"n{switch}" for switch in range(topology.switch_count)],
        "links": [[f"n{a}", f"n{b}"] for a, b in topology.links.tolist()],
        "hosts": {f"n{switch}": count for switch, count in enumerate(hosts)},
    }
    routing = {"kind": "updown", "selection": "tree" if assignment == "fixed" else "balanced"}
    plan = make_plan(scenario_of({"topology": graph, "routing": routing, "assignment": {"kind": assignment}}))
    assert plan.violations == ()
    return plan


@pytest.mark.parametrize("seed", range(0, 60, 6))
@pytest.mark.parametrize("assignment", ["renamed", "fixed"])
def test_random_fabrics(seed, assignment):
    plan = random_plan(seed, assignment)
    assert walk_differences(plan, bridges_of(plan), PORTS, macs_of(plan)) == []


@pytest.mark.parametrize("seed", [1, 2, 4, 7, 60, 61])
def test_copies_flooded_to_all_members_are_those_of_each(seed):
    plan = random_plan(seed, "renamed")
    assert isinstance(plan.vlans, LocalPlan)
    bridges = planned_bridges(settings_of(plan, "members"), PORTS, macs_of(plan))
    walker = Walker(bridges, wiring_of(plan.topology, PORTS))
    for host in range(plan.topology.host_count):
        walk = walker.walk(plan.topology.host_name(host), BROADCAST)
        assert not walk.endless
        assert sum(walk.sent.values()) == brute_copies(plan, plan.vlans, host)


def brute_copies(plan: Plan, vlans: LocalPlan, host: int) -> int:
    """Send each copy on, one after the other."""
    topology = plan.topology
    members = [set(vlans.member_port[a:b].tolist()) for a, b in pairwise(vlans.member_start)]
    ports = list(zip(topology.channel_source.tolist(), topology.out_port.tolist(), strict=True))
    count, waiting = 0, [(int(vlans.host_vlan[host]), -1)]
    while waiting:
        vlan, back = waiting.pop()
        for channel, (switch, port) in enumerate(ports):
            if switch == vlans.vlan_switch[vlan] and port in members[vlan] and channel != back:
                count += 1
                waiting.append((int(vlans.channel_vlan[channel]), channel ^ 1))
    return count


@cache
def known(which: str) -> Plan:
    return make_plan(scenario_of(TORUS if which == "fixed" else RENAMED))


TORUS = {"topology": {"kind": "torus", "sizes": [4, 4]}}
RENAMED = {"topology": {"kind": "mesh", "sizes": [3, 3]}, "assignment": {"kind": "renamed"}}


def test_plans_that_follow_another_are_carried_out():
    """The VLANs of a successor plan have identifiers with gaps, in no order."""
    blocks = {**TORUS, "routing": {"kind": "updown", "selection": "tree"}, "assignment": {"kind": "fixed"}}
    plan = make_plan(scenario_of(blocks))
    assert isinstance(plan.vlans, VlanPlan)
    off = np.zeros(plan.topology.link_count, dtype=bool)
    off[[3, 9]] = True
    part = subfabric_without(plan.topology, off)
    assert part is not None
    routes = part.to_whole(ROUTINGS["updown"].route(part.topology, plan.scenario.routing))
    vlans = successor(plan.vlans, assign_fixed(plan.topology, routes, plan.scenario.assignment))
    after = replace(plan, routes=routes, vlans=vlans)
    assert walk_differences(after, bridges_of(after), PORTS, macs_of(after)) == []
    assert not any(port.used for switch in settings_of(after) for port in switch.ports if is_off(after, switch, port))
    # Bridges of the old plan do not carry the new one out.
    assert walk_differences(after, bridges_of(plan), PORTS, macs_of(plan))


def is_off(plan: Plan, switch: Any, port: Any) -> bool:
    topology = plan.topology
    for link in (3, 9):
        for channel in (2 * link, 2 * link + 1):
            if topology.switch_name(int(topology.channel_source[channel])) == switch.name:
                return bool(topology.out_port[channel] == port.number)
    return False


def drop_member(bridge: Bridge, port: str, vlan: int) -> Bridge:
    settings = bridge.ports[port]
    return with_port(bridge, port, members=settings.members - {vlan}, untagged=settings.untagged - {vlan})


def with_port(bridge: Bridge, port: str, **changes: Any) -> Bridge:
    return replace(bridge, ports={**bridge.ports, port: replace(bridge.ports[port], **changes)})


def tagged_not_untagged(bridge: Bridge, port: str, vlan: int) -> Bridge:
    return with_port(bridge, port, untagged=bridge.ports[port].untagged ^ {vlan})


def other_pvid(bridge: Bridge, port: str, vlan: int) -> Bridge:
    settings = bridge.ports[port]
    others = [other for other in (None, *sorted(settings.members)) if other != settings.pvid]
    return with_port(bridge, port, pvid=others[vlan % len(others)])


def other_way(bridge: Bridge, port: str, vlan: int) -> Bridge:
    entries = sorted(bridge.fdb)
    entry = entries[vlan % len(entries)]
    others = [name for name in bridge.ports if name != bridge.fdb[entry]]
    return replace(bridge, fdb={**bridge.fdb, entry: others[vlan % len(others)]})


def without_entry(bridge: Bridge, port: str, vlan: int) -> Bridge:
    entries = sorted(bridge.fdb)
    return replace(bridge, fdb={key: to for key, to in bridge.fdb.items() if key != entries[vlan % len(entries)]})


def learning(bridge: Bridge, port: str, vlan: int) -> Bridge:
    return with_port(bridge, port, learning=True)


def flooding(bridge: Bridge, port: str, vlan: int) -> Bridge:
    return with_port(bridge, port, bcast_flood=not bridge.ports[port].bcast_flood)


def spanning_tree(bridge: Bridge, port: str, vlan: int) -> Bridge:
    return replace(bridge, stp=True)


def no_filtering(bridge: Bridge, port: str, vlan: int) -> Bridge:
    return replace(bridge, vlan_filtering=False)


Fault = Callable[[Bridge, str, int], Bridge]
FAULTS: tuple[Fault, ...] = (
    drop_member, tagged_not_untagged, other_pvid, other_way, without_entry, no_filtering, learning, flooding,
    spanning_tree,
)  # fmt: skip


@given(st.data(), st.sampled_from(FAULTS), st.sampled_from(["fixed", "renamed"]))
@settings(max_examples=150)
def test_a_planted_fault_is_a_difference_in_that_bridge_only(data, fault, which):
    planned = bridges_of(known(which))
    name = data.draw(st.sampled_from(sorted(planned)))
    port = data.draw(st.sampled_from(sorted(planned[name].ports)))
    vlan = data.draw(st.sampled_from(sorted(planned[name].ports[port].members)))
    struck = {**planned, name: fault(planned[name], port, vlan)}
    found = setting_differences(struck, planned)
    assert found
    assert {difference.switch for difference in found} == {name}
    assert all(difference.found != difference.planned for difference in found)


@pytest.mark.parametrize("which", ["fixed", "renamed"])
def test_faults_that_frames_meet_are_found_by_walking_alone(which):
    """Entries of VLANs that no frame uses there change no walk; so each fault strikes where a known path passes."""
    plan = known(which)
    planned = bridges_of(plan)
    macs = macs_of(plan)
    bridge = planned["s1"]
    (to_h2,) = {to for (vlan, mac), to in bridge.fdb.items() if mac == macs[1] and vlan == bridge.ports["swp1"].pvid}
    pvid = bridge.ports["swp1"].pvid
    assert pvid is not None
    struck = {
        "missing member": drop_member(bridge, to_h2, pvid),
        "missing PVID": with_port(bridge, "swp1", pvid=None),
        "wrong PVID": with_port(bridge, "swp1", pvid=max(bridge.ports["swp1"].members - {pvid})),
        "wrong port": replace(bridge, fdb={**bridge.fdb, (pvid, macs[1]): "swp1"}),
        "no filtering": no_filtering(bridge, "", 0),
        "flood": with_port(bridge, to_h2, bcast_flood=False),
    }
    other = planned["s2"].ports["swp1"]
    arrives = pvid if which == "fixed" else planned["s2"].ports[far_end(plan, to_h2)].pvid
    assert arrives is not None
    assert arrives in other.untagged
    cases = {what: {**planned, "s1": found} for what, found in struck.items()}
    cases["tagged"] = {**planned, "s2": tagged_not_untagged(planned["s2"], "swp1", arrives)}
    cases["no switch"] = {name: found for name, found in planned.items() if name != "s2"}
    for what, bridges in cases.items():
        found = walk_differences(plan, bridges, PORTS, macs)
        assert any(difference.source == "h1" for difference in found), what


def far_end(plan: Plan, port: str) -> str:
    return wiring_of(plan.topology, PORTS).cables["s1", port][1]
