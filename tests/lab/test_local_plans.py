"""Labs whose switches decide by the port of arrival: rules, paths, priorities, pings, broadcasts, shaping."""

from __future__ import annotations

import re

import pytest

from testbed.base.errors import LabError
from testbed.base.model import LocalPlan, host_mac
from testbed.engines.lab.control.build import build_lab
from testbed.engines.lab.hosts.commands import in_host
from testbed.engines.ovs.check_paths import installed_problems
from testbed.experiments.run.in_session import check_paths
from testbed.fabric.openflow.rule_text import parse_rule
from testbed.fabric.routing.paths import hops

from .conftest import broadcasts_seen, captured, daemon_of, each, execute, mended, named_plan, plan_of, sharing

_NAMED = ["mesh4x4-renamed", "fattree-renamed", "updown-irregular16", "sr-irregular16", "dl-ud3-irregular16"]
_FABRICS = {
    "static mesh": "topology: {kind: mesh, sizes: [4, 2], hosts_per_switch: 2}\nassignment: {kind: static}",
    "renamed torus": "topology: {kind: torus, sizes: [5, 2], parallel_links: 2}\nassignment: {kind: renamed}",
    "openflow, two hosts a switch": (
        "topology: {kind: torus, sizes: [4, 2], hosts_per_switch: 2}\nassignment: {kind: openflow, vlan: 100}"
    ),
    "static spanning tree": (
        "topology: {kind: mesh, sizes: [3, 3]}\nrouting: {kind: stp}\nassignment: {kind: static, flood: none}"
    ),
}


@pytest.mark.vm
@pytest.mark.parametrize("name", each([*_NAMED, *_FABRICS]))
def test_running_switches_carry_out_the_plan(name, standing):
    plan = plan_of(_FABRICS[name]) if name in _FABRICS else named_plan(name)
    lab = standing(plan)
    dumped = lab.flows()
    installed = {parse_rule(number, line) for number, switch in enumerate(dumped) for line in dumped[switch]}
    assert installed == set(plan.rules)
    assert installed_problems(plan, dumped) == []
    assert lab.reach() == []
    assert lab.shaping_problems() == []


@pytest.mark.parametrize("name", each(["mesh4x4-renamed", "dl-ud3-irregular16"]))
def test_ofproto_trace_takes_the_planned_path_and_layers(name, standing):
    plan = named_plan(name)
    topology, channels = plan.topology, len(plan.topology.channel_source)
    pairs = [(0, 15), (5, 10), (3, 12), (7, 1), (8, 6), (14, 2)]
    if name.startswith("dl"):  # among them paths that change their layer
        wanted = {(a, b): hops(topology, plan.routes, a, b) for a in range(16) for b in range(16)}
        pairs += [pair for pair, way in wanted.items() if len({hop // channels for hop in way}) > 1][:4]
        assert len(pairs) > 6
    lab = standing(plan)
    for source, destination in pairs:
        switch, in_port = int(topology.host_switch[source]), int(topology.host_port[source])
        tag, taken = "", []
        while True:
            flow = f"in_port={in_port},dl_src={host_mac(source)},dl_dst={host_mac(destination)}{tag}"
            text = execute(lab, "ovs-appctl", "-t", daemon_of(lab, switch), "ofproto/trace", f"s{switch + 1}", flow)
            (port,) = {int(found) for found in re.findall(r"^ +output:(\d+)$", text, re.MULTILINE)}
            leaving = [
                c for c in range(channels) if topology.channel_source[c] == switch and topology.out_port[c] == port
            ]
            if not leaving:
                assert (switch, port) == (topology.host_switch[destination], topology.host_port[destination])
                break
            layer = 0
            if plan.vlans.tagged_trunks:
                layer = int(re.findall(r"set_field:(\d)->vlan_pcp", text)[-1])
                tag = f",dl_vlan=1,dl_vlan_pcp={layer}"
            taken.append(layer * channels + leaving[0])
            switch, in_port = int(topology.channel_target[leaving[0]]), int(topology.out_port[leaving[0] ^ 1])
        assert tuple(taken) == hops(topology, plan.routes, source, destination)


def _captured(plan, kind: str) -> str:
    """What tcpdump sees on a link between two switches while the hosts beside it ping each other."""
    with build_lab(plan) as lab:
        port = f"s1-eth{int(plan.topology.out_port[0])}"
        ping = [*in_host(lab.facts.holders["h1"], []), "ping", "-c", "3", "-i", "0.2", "10.0.0.2"]
        program = f"import subprocess; subprocess.run({ping}, check=True)"
        found = captured(lab, {"capture": (None, ("-i", port, "-e", "-n", "-l", kind))}, program)
        assert "3 received" in found["meanwhile"]
        return found["capture"]


@pytest.mark.vm
def test_frames_are_untagged_on_links_of_a_renamed_fabric(untouched):
    seen = _captured(plan_of("topology: {kind: mesh, sizes: [2]}\nassignment: {kind: renamed}"), "ip or vlan")
    assert seen.count("ICMP echo request") == 3
    assert "802.1Q" not in seen


def test_frames_carry_their_layer_as_priority(untouched):
    seen = _captured(plan_of("topology: {kind: mesh, sizes: [2]}\nassignment: {kind: openflow, vlan: 9}"), "ip or vlan")
    assert seen.count("ICMP echo request") == 3
    assert seen.count("vlan 9, p 0,") == 6


@pytest.mark.parametrize("kind", ["renamed", "static", "openflow"])
def test_arp_by_broadcast_along_the_tree(kind, untouched):
    routing = "{kind: stp}" if kind == "static" else "{kind: updown}"
    plan = plan_of(
        f"topology: {{kind: random, switches: 9, degree: 4, seed: 2}}\nrouting: {routing}\n"
        f"assignment: {{kind: {kind}}}\nlab: {{arp: broadcast}}"
    )
    with build_lab(plan) as lab:
        assert execute(lab, "ip", "neigh", "show", host="h1") == ""
        assert lab.reach() == []
        assert "10.0.0.9" in execute(lab, "ip", "neigh", "show", host="h1")


@pytest.mark.parametrize(
    ("text", "copies"),
    [
        ("kind: renamed", 1),
        ("kind: openflow", 1),
        ("kind: renamed, flood: none", 0),
        ("kind: openflow, flood: none", 0),
    ],
)
def test_a_broadcast_reaches_every_other_host_once_or_nobody(text, copies, untouched):
    plan = plan_of(f"topology: {{kind: random, switches: 8, degree: 4, seed: 3}}\nassignment: {{{text}}}")
    with build_lab(plan) as lab:
        captures = broadcasts_seen(plan, lab)
    for receiver, seen in enumerate(captures):
        assert "802.1Q" not in seen
        found = {sender: len(re.findall(rf"{host_mac(sender)} > ff:ff", seen)) for sender in range(8)}
        assert found == {sender: copies * (sender != receiver) for sender in range(8)}


@pytest.mark.parametrize("name", each(["mesh4x4-renamed", "dl-ud3-irregular16"]))
def test_one_rule_changed_on_a_running_switch_is_noticed(name, standing):
    plan = named_plan(name)
    assert isinstance(plan.vlans, LocalPlan)
    topology, source, destination = plan.topology, 0, 15
    first = hops(topology, plan.routes, source, destination)[0] % len(topology.channel_source)
    other = next(
        int(topology.out_port[c])
        for c in range(len(topology.channel_source))
        if topology.channel_source[c] == topology.channel_source[first] and c != first
    )
    if plan.vlans.kind == "renamed":
        match = f"dl_vlan={plan.vlans.vlan_id[plan.vlans.host_vlan[source]]}"
        actions = f"pop_vlan,output:{other}"
    else:
        match = f"in_port={topology.host_port[source]},vlan_tci=0x0000/0x1fff"
        actions = f"push_vlan:0x8100,set_field:4097->vlan_vid,set_field:0->vlan_pcp,output:{other}"
    lab = standing(plan)
    with mended(plan, lab, 0):
        rule = f"table=1,priority=200,{match},dl_dst={host_mac(destination)},actions={actions}"
        execute(lab, "ovs-ofctl", "-O", "OpenFlow13", "--strict", "mod-flows", "s1", rule)
        problems = installed_problems(plan, lab.flows())
        assert any(problem.startswith("h1→h16 ") for problem in problems)
        assert all(re.match(r"h\d+→h16 ", problem) for problem in problems)
        with pytest.raises(LabError, match="no load was run"):
            check_paths(plan, lab)


@sharing("dl-ud3-irregular16")
def test_a_wrong_priority_on_a_running_switch_is_noticed(standing):
    plan = named_plan("dl-ud3-irregular16")
    rule = next(rule for rule in plan.rules if rule.table == 1 and ("set_pcp", 1) in rule.actions)
    fields = dict(rule.match)
    match = ",".join(f"{name}={value}" for name, value in fields.items() if (name, value) != ("dl_vlan", -1))
    if fields["dl_vlan"] == -1:
        match += ",vlan_tci=0x0000/0x1fff"
    port = next(value for action, value in rule.actions if action == "output")
    push = "push_vlan:0x8100,set_field:4097->vlan_vid," if fields["dl_vlan"] == -1 else ""
    lab = standing(plan)
    with mended(plan, lab, rule.switch):
        text = f"table=1,priority=200,{match},actions={push}set_field:7->vlan_pcp,output:{port}"
        execute(lab, "ovs-ofctl", "-O", "OpenFlow13", "--strict", "mod-flows", f"s{rule.switch + 1}", text)
        problems = installed_problems(plan, lab.flows())
        end = next(h for h in range(16) if host_mac(h) == fields["dl_dst"]) + 1
        assert problems
        assert all(f"→h{end} " in problem for problem in problems)
