"""A plan as the switches of the packet level that forward frames of real hosts: their tables, and an empty network.

The tables are read off the VLANs themselves (PVIDs, members, entries, classes), not off the OpenFlow rules: what the
pipeline compiles and what this makes of the same plan can be held against each other.
"""

from __future__ import annotations

import numpy as np

from testbed.errors import InputError, Problem
from testbed.kernels.packets_state import (
    DISCARD,
    FLOOD,
    GLOBAL_VLANS,
    LANES,
    LOCAL_VLANS,
    PRIORITIES,
    REFUSED,
    PacketFabric,
    PacketLive,
    PacketModel,
    PacketTables,
)
from testbed.model import Ints, LearningPlan, LocalPlan, Longs, Topology, VlanPlan
from testbed.plan import Plan
from testbed.simulate.network import Network, fabric_of
from testbed.simulate.packet_network import empty_state, memory_of
from testbed.simulate.packet_settings import (
    PICOSECONDS,
    PacketSettings,
    fabric_problems,
    in_scenario,
    packet_problems,
    settings_of,
    thresholds,
)
from testbed.simulate.settings import Settings
from testbed.vlans.entries import entries_of
from testbed.vlans.local import member_matrix

MTU = 1500
# Ethernet header, and a tag that a host may send; rows of frames begin where a cache line does.
_ROW = 1536
_HEADER, _CHECK, _TAG = 14, 4, 4
# A table of next hops has so many cells at most.
_MAX_CELLS = 1 << 28
# Copies of broadcasts that are under way need frames, too; and the shortest frame that fills a memory.
_SPARE, _SHORT = 4096, 64
_SEEN = 1 << 15  # frames that who listens to links may be behind


def live_settings(plan: Plan) -> PacketSettings:
    """The settings of the scenario for its switches.

    Raises:
        InputError: all that is wrong, by keys of the scenario.
    """
    scenario, links = plan.scenario, plan.scenario.links
    settings = settings_of(scenario, MTU + _HEADER + _CHECK + (_TAG if plan.vlans.tagged_trunks else 0))
    problems = packet_problems(settings, 1) or fabric_problems(
        settings, plan.routes, links.rate, links.edge_rate, mixed=True
    )
    if plan.bundles is not None:
        sentence = "needs the hash of a real switch, which this engine has not; take it out, or set engine: ovs"
        problems.append(Problem("links.aggregate", sentence))
    if scenario.simulator.watchdog is not None and not settings.lossless:
        sentence = "watches for pauses that do not end, and without flow control there are none; take it out"
        problems.append(Problem("simulator.watchdog", sentence))
    if problems:
        raise InputError(in_scenario(problems, scenario))
    return settings


def live_model(plan: Plan) -> PacketModel:
    """The plan's switches, at the rates of the real world.

    Raises:
        InputError: the settings are not sound, or the tables too large.
    """
    settings = live_settings(plan)
    fabric = _fabric(plan, settings)
    frames = _frames(fabric, settings)
    nodes, links, hosts = len(fabric.place), len(fabric.frame_time), fabric.hosts
    ring = 1 << frames.bit_length()
    state = empty_state(
        fabric, switches=plan.topology.switch_count, frames=frames, longest=1, ring=ring, lanes=LANES,
        events=2 * links + frames, random=np.random.PCG64(0).random_raw(1),
    )  # fmt: skip
    tables = live_tables(plan)
    longest = int(np.diff(tables.flood_start).max(initial=1)) + 1

    def longs(*shape: int) -> Longs:
        return np.zeros(shape, dtype=np.int64)

    def ints(*shape: int) -> Ints:
        return np.zeros(shape, dtype=np.int32)

    rate, edge_rate = plan.scenario.links.rate, plan.scenario.links.edge_rate
    byte_time = np.full(links, round(8 * PICOSECONDS / edge_rate), dtype=np.int64)
    byte_time[: fabric.channels] = round(8 * PICOSECONDS / rate)
    if plan.speeds is not None:
        byte_time[: fabric.channels] = np.rint(8 * PICOSECONDS / (rate * np.repeat(plan.speeds, 2)))
    live = PacketLive(
        tables=tables,
        byte_time=byte_time,
        delay=np.full(1, fabric.delay, dtype=np.int64),
        down=np.zeros(links, dtype=np.bool_),
        shut=np.zeros(nodes, dtype=np.bool_),
        longer=longs(links),
        loss=longs(links),
        data=np.zeros((frames, _ROW), dtype=np.uint8),
        length=ints(frames),
        tag=np.full(frames, -1, dtype=np.int32),
        memory=ints(frames),
        unit=1 if settings.lossless else 0,
        chosen=ints(longest),
        given=ints(ring),
        given_at=longs(ring),
        ends=longs(2),
        waiting=ints(nodes),
        waiting_bytes=longs(nodes),
        drops=longs(nodes),
        sent_bytes=longs(links),
        pauses=longs(links),
        pairs=longs(2, hosts, hosts),
        refused=longs(len(REFUSED)),
        watched=ints(links),
        seen=longs(1),
        seen_at=longs(_SEEN),
        seen_link=ints(_SEEN),
        seen_tag=ints(_SEEN),
        seen_length=ints(_SEEN),
        seen_data=np.zeros((_SEEN, _ROW), dtype=np.uint8),
        flooded=longs(1),
        admitted=longs(plan.topology.switch_count),
    )
    return PacketModel(fabric, state, live)


def _fabric(plan: Plan, settings: PacketSettings) -> PacketFabric:
    """As packet_fabric() makes it, for frames of any size: memory is in bytes with flow control, else in frames."""
    topology, links = plan.topology, plan.scenario.links
    channels, hosts = len(topology.channel_source), topology.host_count
    priorities = plan.routes.layers if settings.flow_control == "pfc" else 1
    limits = thresholds(settings, links.rate, links.edge_rate, mixed=True)
    unit = settings.frame if settings.lossless else 1
    no_times = np.zeros(channels + 2 * hosts, dtype=np.int64)
    return PacketFabric(
        paths=fabric_of(Network(topology, plan.routes, Settings(), 1, 1), 1.0),
        channels=channels,
        priorities=priorities,
        virtual=priorities * channels,
        hosts=hosts,
        frame_time=no_times,
        control_time=no_times,
        delay=round(settings.delay * 1e6),
        lossless=settings.lossless,
        shared=settings.shared,
        flows=np.zeros(hosts + 1, dtype=np.int64),
        goal=np.zeros(0, dtype=np.int32),
        gap=np.zeros(0, dtype=np.float64),
        paced=True,
        **memory_of(topology, limits, priorities, unit, lossless=settings.lossless)._asdict(),
    )


def _frames(fabric: PacketFabric, settings: PacketSettings) -> int:
    """Frames that can be in the network at a time; memory in bytes may be full of the shortest."""
    each = fabric.buffer // _SHORT if settings.lossless else fabric.buffer
    return int((len(fabric.place) - fabric.hosts) * each + 4 * len(fabric.frame_time) + _SPARE)


# --------------------------------------------------------------------------------------------------------------- tables


def live_tables(plan: Plan) -> PacketTables:
    """What the plan's switches do with frames.

    Raises:
        InputError: there are more classes and hosts than a table of next hops may have cells.
    """
    vlans = plan.vlans
    classes = vlans.class_count if isinstance(vlans, LocalPlan) else vlans.vlan_count * plan.topology.switch_count
    cells = classes * plan.topology.host_count
    if cells > _MAX_CELLS:
        sentence = f"needs a table of {cells:,} next hops and may have {_MAX_CELLS:,}; take a smaller fabric"
        raise InputError.one("topology", sentence, plan.scenario.source)
    return _local(plan.topology, vlans) if isinstance(vlans, LocalPlan) else _global(plan.topology, vlans)


def _switch_of(topology: Topology) -> Ints:
    return np.concatenate([topology.channel_target, topology.host_switch]).astype(np.int32)


def _global(topology: Topology, vlans: VlanPlan) -> PacketTables:
    switches, hosts, channels = topology.switch_count, topology.host_count, len(topology.channel_source)
    member = np.repeat(vlans.tagged_links, 2, axis=1)  # (V, C)
    untagged = np.broadcast_to(vlans.untagged_hosts, (vlans.vlan_count, hosts))
    next_hop = np.full((vlans.vlan_count * switches, hosts), FLOOD, dtype=np.int32)
    learns = isinstance(vlans, LearningPlan)
    if not learns:
        channel_at = {(int(topology.channel_source[c]), int(topology.out_port[c])): c for c in range(channels)}
        host_at = {(int(topology.host_switch[h]), int(topology.host_port[h])): h for h in range(hosts)}
        entries = entries_of(topology, vlans)
        for vlan, switch, host, port in zip(
            entries.vlan.tolist(), entries.switch.tolist(), entries.host.tolist(), entries.port.tolist(), strict=True
        ):
            hop = DISCARD  # the entry's port is no member of the VLAN
            if (switch, port) in channel_at and member[vlan, channel_at[switch, port]]:
                hop = channel_at[switch, port]
            elif (switch, port) in host_at and untagged[vlan, host_at[switch, port]]:
                hop = channels + host_at[switch, port]
            next_hop[vlan * switches + switch, host] = hop
    floods: list[list[int]] = [[] for _ in range(vlans.vlan_count * switches)]
    for vlan, channel in zip(*member.nonzero(), strict=True):
        floods[int(vlan) * switches + int(topology.channel_source[channel])].append(int(channel))
    for vlan, host in zip(*untagged.nonzero(), strict=True):
        floods[int(vlan) * switches + int(topology.host_switch[host])].append(channels + int(host))
    vlan_of = np.full(4096, -1, dtype=np.int32)
    vlan_of[vlans.vlan_ids] = np.arange(vlans.vlan_count)
    start, flat = _rows(floods)
    return PacketTables(
        kind=GLOBAL_VLANS,
        switches=switches,
        host_class=(vlans.pvid * switches + topology.host_switch).astype(np.int32),
        channel_class=np.full((1, channels), -1, dtype=np.int32),
        vlan_of=vlan_of,
        vlan_id=vlans.vlan_ids.astype(np.int32),
        member=np.ascontiguousarray(member.T),
        floods=np.zeros(channels, dtype=np.bool_),
        next_hop=next_hop,
        arrive=channels,
        flood_start=start,
        flood_channel=flat,
        by_class=True,
        switch_of=_switch_of(topology),
        learns=learns,
        ageing=int(vlans.ageing * PICOSECONDS) if isinstance(vlans, LearningPlan) else 0,
        learned=np.full(next_hop.shape if learns else (1, 1), -1, dtype=np.int64),
    )


def _local(topology: Topology, plan: LocalPlan) -> PacketTables:
    hosts, channels = topology.host_count, len(topology.channel_source)
    layers = max(1, len(plan.channel_vlan) // max(channels, 1))
    arrive, tagged = layers * channels, plan.kind == "openflow"
    members = None if tagged else member_matrix(topology, plan)
    unknown = DISCARD if plan.flood_links is None else FLOOD
    next_hop = np.full((plan.class_count, hosts), unknown, dtype=np.int32)
    hosts_of_key: dict[int, list[int]] = {}
    for host, key in enumerate(plan.host_key.tolist()):
        hosts_of_key.setdefault(key, []).append(host)
    columns = (plan.entry_vlan, plan.entry_key, plan.entry_hop)
    for vlan, key, hop in zip(*(column.tolist() for column in columns), strict=True):
        switch = int(plan.vlan_switch[vlan])
        for host in hosts_of_key.get(key, []):
            here = topology.host_switch[host] if hop < 0 else topology.channel_source[hop % channels]
            port = topology.host_port[host] if hop < 0 else topology.out_port[hop % channels]
            allowed = here == switch and (members is None or members[vlan, port])
            next_hop[vlan, host] = (arrive + host if hop < 0 else hop) if allowed else DISCARD

    def port_class(vlan: int, switch: int, port: int) -> int:
        """The class of a port whose PVID is a VLAN, if it is a member of it."""
        sound = vlan >= 0 and plan.vlan_switch[vlan] == switch and (members is None or members[vlan, port])
        return vlan if sound else -1

    host_class = [
        port_class(vlan, int(topology.host_switch[host]), int(topology.host_port[host]))
        for host, vlan in enumerate(plan.host_vlan.tolist())
    ]
    channel_class = [
        port_class(vlan, int(topology.channel_target[hop % channels]), int(topology.out_port[hop % channels ^ 1]))
        for hop, vlan in enumerate(plan.channel_vlan.tolist())
    ]
    tree = np.zeros(channels, dtype=np.bool_) if plan.flood_links is None else np.repeat(plan.flood_links, 2)
    floods: list[list[int]] = [[] for _ in range(topology.switch_count)]
    for channel in np.flatnonzero(tree).tolist():
        floods[int(topology.channel_source[channel])].append(channel)
    if plan.flood_links is not None:
        for host, switch in enumerate(topology.host_switch.tolist()):
            floods[switch].append(arrive + host)
    start, flat = _rows(floods)
    classes = np.array(channel_class, dtype=np.int32).reshape(layers, channels)
    # With layers a trunk takes in every priority of the VLAN, if it takes in any.
    takes_in = tree | (classes >= 0).any(axis=0) if tagged else tree & (plan.kind == "renamed")
    return PacketTables(
        kind=PRIORITIES if tagged else LOCAL_VLANS,
        switches=topology.switch_count,
        host_class=np.where(np.array(host_class) >= 0, host_class, FLOOD if tagged else DISCARD).astype(np.int32),
        channel_class=classes,
        vlan_of=np.full(4096, -1, dtype=np.int32),
        vlan_id=plan.vlan_id[:1].astype(np.int32) if tagged else plan.vlan_id.astype(np.int32),
        member=np.ones((channels, 1), dtype=np.bool_),
        floods=takes_in,
        next_hop=next_hop,
        arrive=arrive,
        flood_start=start,
        flood_channel=flat,
        by_class=False,
        switch_of=_switch_of(topology),
        learns=False,
        ageing=0,
        learned=np.full((1, 1), -1, dtype=np.int64),
    )


def _rows(lists: list[list[int]]) -> tuple[Longs, Ints]:
    """Offsets of rows, and what stands in them one after the other."""
    start = np.concatenate([[0], np.cumsum([len(row) for row in lists])]).astype(np.int64)
    return start, np.array([value for row in lists for value in row], dtype=np.int32)
