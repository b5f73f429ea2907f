"""One pair's path, hop by hop: ports, VLANs, the rules that forward, and why it is no shorter."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from testbed.base.errors import InputError, Problem, did_you_mean
from testbed.base.model import Entries, HostTaggedPlan, LocalPlan, Rule, Topology, VlanPlan
from testbed.experiments.analyse.channel_load import shortest_hops
from testbed.experiments.analyse.why_not_shorter import Shorter, shorter_path
from testbed.fabric.openflow.compile import compile_rules
from testbed.fabric.openflow.oracle import matched_rules
from testbed.fabric.openflow.rule_text import format_rule
from testbed.fabric.routing.channel_lookup import leaving_channels
from testbed.fabric.routing.paths import end_index, hops
from testbed.planning import Plan

_AGGREGATED = (
    "links are aggregated: ports and rules are those of the first member of each bundle, and a hash of addresses and "
    "ports chooses the member that a frame takes"
)


@dataclass(frozen=True, slots=True)
class Step:
    """One switch on a path."""

    switch: str  # its name
    in_port: int  # port by which the frame comes
    came_from: str  # host or switch at the other end of that port
    out_port: int  # port by which it leaves
    goes_to: str  # host or switch at the other end of that port
    channel: str  # name of the channel it leaves by; empty at the last switch
    # layer of that channel, which frames carry as 802.1Q priority under `openflow`; None under any other assignment,
    # and at the last switch
    layer: int | None
    vlan: int | None  # VLAN of the frame inside the switch; None where the plan gives it none
    # the rule of each table that it matches, as installed; empty where a rule walk does not come here
    rules: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Explanation:
    """The path of one pair."""

    scenario: str  # name of the scenario
    routing: str  # key of the routing
    assignment: str  # key of the assignment
    source: str  # name of the host that sends
    destination: str  # name of the host that receives
    steps: tuple[Step, ...]  # switches on the path, in order
    hops: int  # links between switches on it
    shortest: int  # fewest links there are between the two
    shorter: Shorter | None  # a path with fewer hops and why it is not taken; None where the path is a shortest
    backup: tuple[str, ...] | None  # names of the channels of the backup path; None where the pair has none
    shared_links: int  # links that path and backup path have in common
    notes: tuple[str, ...]  # what was taken for granted, one sentence each


def explain(plan: Plan, source: str, destination: str) -> Explanation:
    """Explain the path between two hosts, or between the first hosts of two switches.

    Raises:
        InputError: there is no such host or switch, a switch has no host, or both are the same host.
    """
    topology, routes = plan.topology, plan.routes
    (start, end), notes = find_hosts(topology, source, destination)
    taken = hops(topology, routes, start, end)
    switches = topology.host_switch[[start, end]]
    backup = _backup(plan, start, end)
    channels = max(len(topology.channel_source), 1)
    own, other = ({hop % channels // 2 for hop in path or ()} for path in (taken, backup))
    return Explanation(
        scenario=plan.scenario.name,
        routing=plan.scenario.routing_kind,
        assignment=plan.scenario.assignment_kind,
        source=topology.host_name(start),
        destination=topology.host_name(end),
        steps=_steps(plan, start, end, taken),
        hops=len(taken),
        shortest=int(shortest_hops(topology, switches[:1])[0, switches[1]]),
        shorter=shorter_path(plan, start, end, taken),
        backup=None if backup is None else tuple(_hop_name(plan, hop) for hop in backup),
        shared_links=len(own & other),
        notes=(*notes, *routes.notes, *([_AGGREGATED] if plan.bundles is not None else [])),
    )


def _backup(plan: Plan, source: int, destination: int) -> tuple[int, ...] | None:
    routes = plan.routes
    if routes.backup is None:
        return None
    ends = end_index(plan.topology, routes)
    pair = int(ends[source]) * len(routes.ends) + int(ends[destination])
    found: list[int] = routes.backup.hop[routes.backup.start[pair] : routes.backup.start[pair + 1]].tolist()
    return tuple(found) or None


def _hop_name(plan: Plan, hop: int) -> str:
    layer, channel = divmod(hop, len(plan.topology.channel_source))
    name = plan.topology.channel_name(channel)
    return f"{name}@{layer}" if plan.routes.layers > 1 else name


def _steps(plan: Plan, source: int, destination: int, taken: Sequence[int]) -> tuple[Step, ...]:
    topology = plan.topology
    layered = isinstance(plan.vlans, LocalPlan) and plan.vlans.kind == "openflow"
    channels = max(len(topology.channel_source), 1)
    rules = _rules(plan, source, destination)
    tag = plan.vlans.host_tag(source, destination)
    visits = matched_rules(topology, rules, source, destination, plan.bundles, plan.groups, tag)
    at, in_port, came_from = (
        int(topology.host_switch[source]),
        int(topology.host_port[source]),
        topology.host_name(source),
    )
    arrived = -1
    steps: list[Step] = []
    for place, hop in enumerate([*taken, -1]):
        channel = hop % channels
        last = hop < 0
        met = visits[place] if place < len(visits) and visits[place][0].switch == at else []
        after = destination if last else int(topology.channel_target[channel])
        steps.append(
            Step(
                switch=topology.switch_name(at),
                in_port=in_port,
                came_from=came_from,
                out_port=int(topology.host_port[destination] if last else topology.out_port[channel]),
                goes_to=topology.host_name(after) if last else topology.switch_name(after),
                channel="" if last else topology.channel_name(channel),
                layer=hop // channels if layered and not last else None,
                vlan=_vlan(plan.vlans, source, destination, arrived),
                rules=tuple(format_rule(rule) for rule in met),
            )
        )
        if not last:
            in_port, came_from, at, arrived = int(topology.out_port[channel ^ 1]), topology.switch_name(at), after, hop
    return tuple(steps)


def _vlan(vlans: VlanPlan | LocalPlan, source: int, destination: int, arrived: int) -> int | None:
    """Identifier of the VLAN of a frame of a pair that came by a virtual channel, or from the host (-1)."""
    if isinstance(vlans, VlanPlan):
        return int(vlans.vlan_ids[vlans.vlan_between(source, destination)])
    local = int(vlans.host_vlan[source] if arrived < 0 else vlans.channel_vlan[arrived])
    return int(vlans.vlan_id[local]) if local >= 0 else None


def _rules(plan: Plan, source: int, destination: int) -> tuple[Rule, ...]:
    """The rules that a frame of this pair can meet, and some others; a large fabric has too many to make all."""
    topology, vlans, bundles = plan.topology, plan.vlans, plan.bundles
    if isinstance(vlans, LocalPlan):
        wanted = vlans.entry_key == vlans.host_key[destination]
        few = dataclasses.replace(
            vlans,
            entry_vlan=vlans.entry_vlan[wanted],
            entry_key=vlans.entry_key[wanted],
            entry_hop=vlans.entry_hop[wanted],
        )
        return compile_rules(topology, few, bundles)
    vlan = vlans.vlan_between(source, destination)
    one = dataclasses.replace(
        vlans,
        vlan_ids=vlans.vlan_ids[vlan : vlan + 1],
        pvid=np.zeros_like(vlans.pvid),
        tagged_links=vlans.tagged_links[vlan : vlan + 1],
        untagged_hosts=vlans.untagged_hosts[vlan : vlan + 1],
        entry_rule="listed",
        entries=_entries(topology, vlans, vlan, destination),
    )
    if isinstance(one, HostTaggedPlan):
        one = dataclasses.replace(
            one, pair_vlan=np.zeros_like(one.pair_vlan), tagged_hosts=one.tagged_hosts[vlan : vlan + 1]
        )
    of_others = {
        (int(switch), int(port)) for switch, port in zip(topology.host_switch, topology.host_port, strict=True)
    } - {(int(topology.host_switch[source]), int(topology.host_port[source]))}
    # Hosts of other VLANs would be given this one's tag.
    return tuple(
        rule
        for rule in compile_rules(topology, one, bundles)
        if (rule.switch, dict(rule.match).get("in_port")) not in of_others
    )


def _entries(topology: Topology, vlans: VlanPlan, vlan: int, host: int) -> Entries:
    """The static entries of one host in one VLAN, which becomes number 0."""
    if vlans.entries is not None:
        kept = (vlans.entries.vlan == vlan) & (vlans.entries.host == host)
        rows = [vlans.entries.switch[kept], vlans.entries.host[kept], vlans.entries.port[kept]]
    else:
        from testbed.fabric.kernels.vlans import used_entries

        start, leaving = leaving_channels(topology)
        senders = np.flatnonzero(vlans.senders(topology)[vlan]).astype(np.int32)
        end = topology.host_switch[host : host + 1]
        listed = used_entries(
            senders, vlans.tagged_links[vlan], start, leaving, topology.channel_target, end, vlans.entry_rule == "all"
        )
        channel = listed[:, 2]
        port = np.full(len(listed), topology.host_port[host], dtype=np.int32)
        port[channel >= 0] = topology.out_port[channel[channel >= 0]]
        rows = [listed[:, 0], np.full(len(listed), host, dtype=np.int32), port]
    return Entries(np.zeros(len(rows[0]), dtype=np.int32), *rows)


def find_hosts(topology: Topology, source: str, destination: str) -> tuple[tuple[int, int], tuple[str, ...]]:
    """Find two different hosts.

    Each is named by itself, or by its switch or the switch's label, which means the first host on it.

    Returns:
        both host numbers, and a sentence for each switch that was named instead of a host.

    Raises:
        InputError: everything that is wrong with the names.
    """
    problems: list[Problem] = []
    notes: list[str] = []
    hosts = [_find(topology, place, name, problems, notes) for place, name in (("SRC", source), ("DST", destination))]
    if not problems and hosts[0] == hosts[1]:
        problems.append(Problem("DST", f"both are {topology.host_name(hosts[0])}; name two different hosts"))
    if problems:
        raise InputError(problems)
    return (hosts[0], hosts[1]), tuple(dict.fromkeys(notes))


def _meant(name: str, hosts: Iterable[str], switches: Iterable[str], labels: Iterable[str]) -> str:
    """What may be meant; a bare number is a host's sooner than a switch's."""
    own = [*hosts, *switches, *labels]
    return f' Did you mean "h{name}"?' if name.isdecimal() and f"h{name}" in own else did_you_mean(name, own)


def _find(topology: Topology, place: str, name: str, problems: list[Problem], notes: list[str]) -> int:
    hosts = {topology.host_name(host): host for host in range(topology.host_count)}
    if name in hosts:
        return hosts[name]
    switches = {topology.switch_name(switch): switch for switch in range(topology.switch_count)}
    labels = {label: switch for switch, label in enumerate(topology.switch_labels)}
    if name not in switches and name not in labels:
        known = f"{_range(list(hosts))}, switches {_range(list(switches))}"
        problems.append(
            Problem(
                place,
                f'there is no host or switch "{name}".{_meant(name, hosts, switches, labels)} '
                f"Known: hosts {known}{', and the names of the fabric file' * bool(labels)}",
            )
        )
        return -1
    switch = switches[name] if name in switches else labels[name]
    there = np.flatnonzero(topology.host_switch == switch)
    if not len(there):
        problems.append(Problem(place, f"{name} has no host, so no path begins or ends there; name another switch"))
        return -1
    host = int(there[0])
    notes.append(
        f"{topology.host_name(host)} is taken for {name}, the first of its {len(there)} hosts"
        if len(there) > 1
        else f"{topology.host_name(host)} is the host on {name}"
    )
    return host


def _range(names: list[str]) -> str:
    return f"{names[0]} to {names[-1]}" if len(names) > 2 else " and ".join(names)
