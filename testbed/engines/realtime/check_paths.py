"""The path of every pair, walked on the tables of a running model, against that of the plan."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from testbed.base.messages import PathTrace
from testbed.base.model import Bools, Bundles, Ints, Topology
from testbed.dataplane.kernels.packets_state import GLOBAL_VLANS, LOCAL_VLANS, PRIORITIES, PacketTables
from testbed.fabric.routing.paths import path
from testbed.fabric.transition.member_steps import select_bundled_links
from testbed.planning import Plan

_SHOWN = 20


def walked_problems(plan: Plan, tables: PacketTables) -> list[str]:
    """One sentence for each pair of hosts whose frames would not take the plan's path; no more than twenty."""
    topology, problems = plan.topology, []
    logical = range(len(topology.channel_source)) if plan.bundles is None else plan.bundles.of_channel.tolist()
    for source in range(topology.host_count):
        for destination in range(topology.host_count):
            if source == destination:
                continue
            wanted = list(path(topology, plan.routes, source, destination))
            links, end = walk(tables, plan.wiring, source, destination, plan.vlans.host_tag(source, destination))
            taken = [logical[channel] for channel in links]
            if taken != wanted or end != destination:
                pair = f"{topology.host_name(source)}→{topology.host_name(destination)}"
                by = " ".join(topology.channel_name(channel) for channel in taken) or "no link"
                ends = "nowhere" if end < 0 else f"at {topology.host_name(end)}"
                problems.append(f"{pair} goes by {by} and ends {ends}, which is not the plan's path")
                if len(problems) == _SHOWN:
                    return problems
    return problems


def spared_problems(bundles: Bundles, spared: Bools, off: Collection[int]) -> list[str]:
    """One sentence for each end of a link of a bundle that hashes choose though it is off, or do not though it is on.

    `spared` is that of the running model.
    """
    wrong = []
    wanted = {2 * link + way for link in select_bundled_links(bundles, off) for way in (0, 1)}
    for channel in sorted(wanted ^ set(np.flatnonzero(spared).tolist())):
        state, chosen = ("off", "still chosen") if channel in wanted else ("on", "chosen no more")
        wrong.append(f"{bundles.wiring.channel_name(channel)} is {state} and is {chosen} by the hash of its bundle")
    return wrong[:_SHOWN]


def trace_path(
    tables: PacketTables, spared: Bools, topology: Topology, source: int, destination: int, tag: int | None = None
) -> PathTrace:
    """Where a frame of a host for another would go, see Session.way; hashes pass over the (C,) `spared` channels."""
    hops, end = _hops(tables, topology, source, destination, tag)
    channels = len(topology.channel_source)
    kind, vlan = _class_of_host(tables, source, tag), -1
    if tables.kind == GLOBAL_VLANS:
        vlan = int(tables.vlan_id[kind // tables.switches])
    elif tables.kind == PRIORITIES:
        vlan = int(tables.vlan_id[0])
    members = [[hop % channels + 2 * number for number in range(int(tables.members[hop % channels]))] for hop in hops]
    return PathTrace(
        hops=tuple(tuple(one for one in those if not spared[one]) for those in members),
        vlans=(vlan,) * len(hops),
        priorities=tuple(hop // channels for hop in hops),
        arrives=end == destination,
    )


def walk(
    tables: PacketTables, topology: Topology, source: int, destination: int, tag: int | None = None
) -> tuple[list[int], int]:
    """The channels that a frame would take by next hops alone, and the host where it would end; -1 = none.

    `tag` is the VLAN that the host itself tags it with, if it does; a host that tags takes no frame without a tag.
    Of aggregated links the first of each bundle stands for all; a frame that fares differently by another ends there.
    """
    hops, end = _hops(tables, topology, source, destination, tag)
    return [hop % len(topology.channel_source) for hop in hops], end


def _class_of_host(tables: PacketTables, source: int, tag: int | None) -> int:
    """The class of what a host sends, by the tag it puts on it or by its port's PVID; below 0 where it has none."""
    if tag is None:
        return int(tables.host_class[source])
    vlan = int(tables.vlan_of[tag])
    if vlan < 0 or not tables.host_tags[source, vlan]:
        return -1
    return vlan * tables.switches + int(tables.switch_of[len(tables.member) + source])


def _hops(
    tables: PacketTables, topology: Topology, source: int, destination: int, tag: int | None
) -> tuple[list[int], int]:
    """As walk(), in virtual channels."""
    channels = len(topology.channel_source)
    taken: list[int] = []
    kind = _class_of_host(tables, source, tag)
    while kind >= 0 and len(taken) <= topology.switch_count:
        hop = int(tables.next_hop[kind, destination])
        if hop >= tables.arrive:
            host = hop - tables.arrive
            tags = tables.host_tags[host]
            if tags.any() and not tags[kind // tables.switches]:
                return taken, -1
            return taken, host
        if hop < 0:
            break
        layer, channel = divmod(hop, channels)
        taken.append(hop)
        kinds = {
            _class_after(tables, kind, layer, channel + 2 * number) for number in range(int(tables.members[channel]))
        }
        kind = kinds.pop() if len(kinds) == 1 else -1
    return taken, -1


def _class_after(tables: PacketTables, kind: int, layer: int, channel: int) -> int:
    """The class of a frame at the switch that a channel enters; -1 = it is not admitted there."""
    if tables.kind == GLOBAL_VLANS:
        vlan = kind // tables.switches
        if not tables.member[channel, vlan]:
            return -1
        return int(vlan * tables.switches + tables.switch_of[channel])
    classes: Ints = tables.channel_class
    return int(classes[0 if tables.kind == LOCAL_VLANS else layer, channel])
