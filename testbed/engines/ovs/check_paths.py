"""The path of every pair, walked on the rules that running switches dumped, against that of the plan.

The rules come back from Open vSwitch as text and are walked by an oracle that knows OpenFlow and the wiring but no
plan; only the comparison looks at the plan's routes.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from testbed.base.messages import PathTrace
from testbed.base.model import Bundles, Group, HostTaggedPlan, LocalPlan, Rule, Topology, host_mac
from testbed.fabric.openflow.compile import groups_without
from testbed.fabric.openflow.flow_cache_entry import Entry
from testbed.fabric.openflow.oracle import BROADCAST, Delivery, Oracle, Tag
from testbed.fabric.openflow.rule_text import FlowSyntaxError, parse_group, parse_rule
from testbed.fabric.openflow.tables import UNTAGGED
from testbed.fabric.routing.paths import hops, path
from testbed.planning import Plan

_STRANGE = "02:ff:00:00:00:01"  # no host's
_SOMEBODY = host_mac(0)  # what an entry takes does not depend on who sent it


def installed_problems(
    plan: Plan,
    dumped: Mapping[str, Sequence[str]],
    groups: Mapping[str, Sequence[str]] | None = None,
    off: Collection[int] = (),
) -> list[str]:
    """Compare dumped rules with the plan; one sentence a difference. No group may send by physical links `off`.

    `dumped` is switch → lines of `ovs-ofctl --no-stats --no-names dump-flows`, `groups` likewise of `dump-groups`,
    needed where links are aggregated.
    """
    topology = plan.topology
    rules, problems = dumped_rules(topology, dumped)
    found, others = _groups(topology, groups)
    problems += others
    if plan.bundles is not None:
        problems += _group_problems(plan.bundles, found, off)
    oracle = Oracle(topology, rules, plan.bundles, found)
    return [*problems, *_walk_problems(plan, oracle, off), *_security_problems(plan, oracle)]


def _group_problems(bundles: Bundles, found: Sequence[Group], off: Collection[int]) -> list[str]:
    """A sentence for each group that does not send by the links of its bundle that are on, by their numbers."""
    there = {(group.switch, group.number): group for group in found}
    problems = []
    for group in groups_without(bundles, off):
        is_there = there.get((group.switch, group.number))
        if is_there != group:
            ports = "is not there" if is_there is None else f"sends by {_buckets(is_there)}"
            name = bundles.wiring.switch_name(group.switch)
            problems.append(f"group {group.number} of {name} {ports} instead of {_buckets(group)}")
    return problems


def _buckets(group: Group) -> str:
    numbers = group.numbers or range(len(group.ports))
    return " ".join(f"{n}:{port}" for n, port in zip(numbers, group.ports, strict=True)) or "no port"


def follow_frame(
    plan: Plan,
    dumped: Mapping[str, Sequence[str]],
    groups: Mapping[str, Sequence[str]] | None,
    source: int,
    destination: int,
) -> PathTrace:
    """Follow a frame of a host for another by dumped rules; `dumped` and `groups` as of installed_problems()."""
    topology = plan.topology
    oracle = Oracle(topology, dumped_rules(topology, dumped)[0], plan.bundles, _groups(topology, groups)[0])
    found = send_between(plan, oracle, source, destination)
    return PathTrace(
        hops=found.members,
        vlans=tuple(vlan for vlan, _ in found.tags),
        priorities=tuple(priority for _, priority in found.tags),
        arrives=(
            found.received == {destination: 1}
            and found.tagged == _find_tagged(plan, [destination])
            and not found.endless
        ),
    )


def state_problems(plans: Sequence[Plan], dumped: Mapping[str, Sequence[str]], off: Collection[int] = ()) -> list[str]:
    """What is wrong with a state between plans, in which each host's paths are those of any one of them.

    `dumped` is as for installed_problems(); links `off` carry nothing now. The plans are of one fabric, without
    aggregated links.

    Returns:
        one sentence for each pair that is not delivered once by its path in one of the plans, for each broadcast
        that does not reach every other host once, and for what would take a link that is off.
    """
    topology = plans[0].topology
    rules, problems = dumped_rules(topology, dumped)
    oracle = Oracle(topology, rules)
    everyone = set(range(topology.host_count))
    for source in range(topology.host_count):
        for destination in sorted(everyone - {source}):
            pair = f"{topology.host_name(source)}→{topology.host_name(destination)}"
            found = oracle.unicast(source, destination)
            paths = {path(topology, plan.routes, source, destination) for plan in plans}
            if found.received != {destination: 1} or found.tagged or found.channels not in paths:
                problems.append(f"{pair} takes none of its paths")
            problems += _find_off_links(plans[0], pair, found, off)
        flood, name = oracle.broadcast(source), f"a broadcast of {topology.host_name(source)}"
        if flood.endless or flood.tagged or flood.received != dict.fromkeys(everyone - {source}, 1):
            problems.append(f"{name} {'circulates' if flood.endless else 'does not reach every other host once'}")
        problems += _find_off_links(plans[0], name, flood, off)
    return problems


def short_cut_problems(
    plan: Plan,
    dumped: Mapping[str, Sequence[str]],
    entries: Mapping[str, Sequence[str]],
    groups: Mapping[str, Sequence[str]] | None = None,
) -> list[str]:
    """A sentence for each entry of the fast path that is not what the switch's rules do.

    Args:
        plan: of the lab, for its wiring.
        dumped: as of installed_problems().
        entries: for each switch that has some, lines of pipeline.entry.Entry.
        groups: as of installed_problems().
    """
    topology = plan.topology
    rules, _ = dumped_rules(topology, dumped)
    oracle = Oracle(topology, rules, plan.bundles, _groups(topology, groups)[0])
    number = {topology.switch_name(switch): switch for switch in range(topology.switch_count)}
    problems = []
    for name, lines in entries.items():
        for line in lines:
            entry = Entry.read(line)
            copies = oracle.at_switch(number[name], entry.in_port, entry.tag, _SOMEBODY, entry.destination)
            if copies != [((entry.out_port,), entry.out_tag)]:
                way = " and ".join(_way(ports, tag) for ports, tag in copies) or "to no port"
                problems.append(
                    f"the fast path of {name} sends frames for {entry.destination} that come by port {entry.in_port}, "
                    f"{_describe_tag(entry.tag)}, {_way((entry.out_port,), entry.out_tag)}, and its rules {way}"
                )
    return problems


def _way(ports: tuple[int, ...], tag: Tag) -> str:
    return f"to port {' or '.join(map(str, ports))} {_describe_tag(tag)}"


def _describe_tag(tag: Tag) -> str:
    return "untagged" if tag[0] == UNTAGGED else f"in VLAN {tag[0]} with priority {tag[1]}"


def _groups(topology: Topology, dumped: Mapping[str, Sequence[str]] | None) -> tuple[list[Group], list[str]]:
    """The groups in dumped lines, by switch name, and a sentence for each line that this pipeline never writes."""
    found: list[Group] = []
    problems: list[str] = []
    for switch in range(topology.switch_count):
        name = topology.switch_name(switch)
        for line in (dumped or {}).get(name, ()):
            try:
                found.append(parse_group(switch, line))
            except FlowSyntaxError as error:
                problems.append(f"{name} has a group that is not ours: {error}")
    return found, problems


def dumped_rules(topology: Topology, dumped: Mapping[str, Sequence[str]]) -> tuple[list[Rule], list[str]]:
    """The rules in dumped lines, by switch name, and a sentence for each line that this pipeline never writes."""
    rules: list[Rule] = []
    problems: list[str] = []
    for switch in range(topology.switch_count):
        name = topology.switch_name(switch)
        for line in dumped.get(name, ()):
            try:
                rules.append(parse_rule(switch, line))
            except FlowSyntaxError as error:
                problems.append(f"{name} has a rule that is not ours: {error}")
    return rules, problems


def _walk_problems(plan: Plan, oracle: Oracle, off: Collection[int]) -> list[str]:
    topology = plan.topology
    problems = []
    everyone = set(range(topology.host_count))
    channels = max(len(topology.channel_source), 1)
    silent = isinstance(plan.vlans, LocalPlan) and plan.vlans.flood_links is None
    for source in range(topology.host_count):
        for destination in sorted(everyone - {source}):
            pair = f"{topology.host_name(source)}→{topology.host_name(destination)}"
            wanted = hops(topology, plan.routes, source, destination)
            wanted_path, layers = (tuple(hop % channels for hop in wanted), tuple(hop // channels for hop in wanted))
            found = send_between(plan, oracle, source, destination)
            if found.channels != wanted_path:
                problems.append(f"{pair} takes {_names(plan, found.channels)} instead of {_names(plan, wanted_path)}")
            elif found.received != {destination: 1} or found.tagged != _find_tagged(plan, [destination]):
                problems.append(f"{pair} reaches {_receivers(plan, found.received)} instead of its destination once")
            else:
                problems += [*_tag_problems(plan, pair, found, layers), *_member_problems(plan, pair, found, off)]
        for vlan in broadcast_tags(plan, source):
            flood = oracle.send(source, BROADCAST, vlan)
            reached = set() if silent else everyone - {source}
            name = f"a broadcast of {topology.host_name(source)}{'' if vlan == UNTAGGED else f' in VLAN {vlan}'}"
            wrong_tags = sorted(flood.tagged) != sorted(_find_tagged(plan, flood.received))
            if flood.endless or flood.received != dict.fromkeys(reached, 1) or wrong_tags:
                how = "circulates" if flood.endless else f"reaches {_receivers(plan, flood.received)}"
                instead = "no host" if silent else "every other host once"
                problems.append(f"{name} {how} instead of {instead}")
            else:
                problems += [*_find_needless_hops(plan, source, name, flood), *_member_problems(plan, name, flood, off)]
    return problems


def send_between(plan: Plan, oracle: Oracle, source: int, destination: int) -> Delivery:
    """Let a host send to another as it does in this plan: with the tag of their VLAN, or untagged."""
    tag = plan.vlans.host_tag(source, destination)
    return oracle.send(source, host_mac(destination), UNTAGGED if tag is None else tag)


def broadcast_tags(plan: Plan, source: int) -> list[int]:
    """Tags with which a host sends broadcasts: those of its interfaces, or none."""
    if not isinstance(plan.vlans, HostTaggedPlan) or not plan.vlans.takes_tags(source):
        return [UNTAGGED]
    own: list[int] = plan.vlans.vlan_ids[plan.vlans.tagged_hosts[:, source]].tolist()
    return own


def _find_tagged(plan: Plan, hosts: Collection[int]) -> tuple[int, ...]:
    """Those of hosts that are to get their frames with a tag."""
    return tuple(host for host in hosts if plan.vlans.takes_tags(host))


def _security_problems(plan: Plan, oracle: Oracle) -> list[str]:
    """With port security, a sentence for each host whose frames from another address get anywhere."""
    if not plan.scenario.lab.port_security:
        return []
    topology, problems = plan.topology, []
    for host in range(topology.host_count):
        other = host_mac((host + 1) % topology.host_count)
        for source, to in ((other, BROADCAST), (_STRANGE, BROADCAST), (_STRANGE, other)):
            found = oracle.send(host, to, source_mac=source)
            if found.received or found.channels:
                problems.append(f"{topology.host_name(host)} can send from the address {source}, which is not its own")
                break
    return problems


def _find_needless_hops(plan: Plan, source: int, what: str, flood: Delivery) -> list[str]:
    """In a tree each switch gets a broadcast once; what comes to one again and ends there has loaded links in vain."""
    topology, entered = plan.topology, {int(plan.topology.host_switch[source])}
    for channel in flood.channels:
        switch = int(topology.channel_target[channel])
        if switch in entered:
            way = topology.channel_name(channel)
            return [f"{what} comes to {topology.switch_name(switch)} again by {way} and is dropped there"]
        entered.add(switch)
    return []


def _tag_problems(plan: Plan, pair: str, found: Delivery, layers: tuple[int, ...]) -> list[str]:
    """Frames must have a tag between switches, or none; the priority must be the layer where that is its meaning."""
    tagged = plan.vlans.tagged_trunks
    if any((vlan != UNTAGGED) != tagged for vlan, _ in found.tags):
        return [f"{pair} is {'not ' if tagged else ''}tagged on links between switches"]
    priorities = tuple(priority for _, priority in found.tags)
    if isinstance(plan.vlans, LocalPlan) and tagged and priorities != layers:
        return [f"{pair} has the priorities {_numbers(priorities)} on its way instead of {_numbers(layers)}"]
    return []


def _member_problems(plan: Plan, what: str, found: Delivery, off: Collection[int]) -> list[str]:
    """A frame must be free to take every member of each bundle on its way that is on, and fare the same by all."""
    if plan.bundles is None:
        return []
    if found.uneven:
        name = plan.topology.switch_name(found.uneven[0])
        return [f"{what} fares differently at {name} by the member of a bundle that it comes by"]
    for channel, members in zip(found.channels, found.members, strict=True):
        wanted = [member for member in plan.bundles.channels(channel) if member // 2 not in off]
        if set(members) != set(wanted):
            name = plan.topology.channel_name(channel)
            return [f"{what} can take {len(members)} of the {len(wanted)} members of {name}"]
    return []


def _numbers(values: Sequence[int]) -> str:
    return " ".join(map(str, values))


def _names(plan: Plan, channels: Sequence[int]) -> str:
    return " ".join(plan.topology.channel_name(channel) for channel in channels[:12]) or "no link"


def _receivers(plan: Plan, received: Mapping[int, int]) -> str:
    shown = ", ".join(f"{plan.topology.host_name(h)}×{n}" for h, n in sorted(received.items())[:4])
    return f"{len(received)} hosts ({shown}{' …' if len(received) > 4 else ''})" if received else "no host"


def _find_off_links(plan: Plan, what: str, found: Delivery, off: Collection[int]) -> list[str]:
    used = [channel for channel in found.channels if channel // 2 in off]
    return [f"{what} takes {plan.topology.channel_name(used[0])}, which is off"] if used else []
