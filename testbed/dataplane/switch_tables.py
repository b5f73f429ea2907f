"""What the switches of a plan do with frames, as tables: PVIDs, members, entries, classes, floods.

They are read off the VLANs themselves, not off the OpenFlow rules: what the pipeline compiles and what this makes of
the same plan can be held against each other.
"""

from __future__ import annotations

import numpy as np

from testbed.base.model import (
    Bools,
    Bundles,
    Entries,
    HostTaggedPlan,
    Ints,
    LearningPlan,
    LocalPlan,
    Longs,
    Topology,
    VlanPlan,
)
from testbed.dataplane.kernels.packets_state import DISCARD, FLOOD, GLOBAL_VLANS, LOCAL_VLANS, PRIORITIES, PacketTables
from testbed.fabric.vlans.local_vlans import member_matrix
from testbed.fabric.vlans.mac_entries import entries_of

_PICOSECONDS = 1e12


def table_cells(topology: Topology, vlans: VlanPlan | LocalPlan) -> int:
    """Next hops that the tables of a plan have."""
    classes = vlans.class_count if isinstance(vlans, LocalPlan) else vlans.vlan_count * topology.switch_count
    return classes * topology.host_count


def switch_tables(topology: Topology, vlans: VlanPlan | LocalPlan, bundles: Bundles | None) -> PacketTables:
    """What the switches of a plan do with frames, for links that are aggregated where there are bundles."""
    tables = _local(topology, vlans) if isinstance(vlans, LocalPlan) else _global(topology, vlans)
    return tables if bundles is None else _with_members(tables, bundles)


def flooding_tables(topology: Topology) -> PacketTables:
    """Switches without VLANs and without a spanning tree: each sends every frame to every other port."""
    hosts, none = topology.host_count, np.zeros(0, dtype=np.int32)
    return _global(
        topology,
        VlanPlan(
            vlan_ids=np.ones(1, dtype=np.int32),
            pvid=np.zeros(hosts, dtype=np.int32),
            tagged_links=np.ones((1, topology.link_count), dtype=np.bool_),
            untagged_hosts=np.ones((1, hosts), dtype=np.bool_),
            entry_rule="listed",
            entries=Entries(none, none, none, none),
        ),
    )


def silent_tables(tables: PacketTables) -> PacketTables:
    """The same switches, which forward nothing any more."""
    return tables._replace(
        host_class=np.full_like(tables.host_class, DISCARD),
        host_tags=np.zeros_like(tables.host_tags),
        channel_class=np.full_like(tables.channel_class, -1),
        member=np.zeros_like(tables.member),
        floods=np.zeros_like(tables.floods),
    )


def _with_members(tables: PacketTables, bundles: Bundles) -> PacketTables:
    """Tables of logical channels as those of the links behind them: a hop goes to the first member of its bundle."""
    logical, first = bundles.of_channel, (2 * bundles.start[:-1, None] + np.arange(2)).reshape(-1)
    channels, layers = len(first), tables.arrive // len(first)
    arrive = layers * len(logical)
    hops = np.concatenate([(layer * len(logical) + first) for layer in range(layers)])

    def physical(hop: Ints) -> Ints:
        reached = np.where(hop < tables.arrive, hops[np.clip(hop, 0, len(hops) - 1)], hop - tables.arrive + arrive)
        return np.where(hop < 0, hop, reached).astype(np.int32)

    return tables._replace(
        channel_class=np.ascontiguousarray(tables.channel_class[:, logical]),
        member=np.ascontiguousarray(tables.member[logical]),
        floods=tables.floods[logical],
        next_hop=physical(tables.next_hop),
        arrive=arrive,
        flood_channel=physical(tables.flood_channel),
        switch_of=np.concatenate([tables.switch_of[:channels][logical], tables.switch_of[channels:]]),
        bundled=True,
        first=first[logical].astype(np.int32),
        members=np.repeat(bundles.sizes, 2)[logical].astype(np.int32),
    )


def _switch_of(topology: Topology) -> Ints:
    return np.concatenate([topology.channel_target, topology.host_switch]).astype(np.int32)


def _global(topology: Topology, vlans: VlanPlan) -> PacketTables:
    switches, hosts, channels = topology.switch_count, topology.host_count, len(topology.channel_source)
    member = np.repeat(vlans.tagged_links, 2, axis=1)  # (V, C)
    on = np.broadcast_to(vlans.member_hosts, (vlans.vlan_count, hosts))
    tags: Bools = np.zeros((hosts, vlans.vlan_count), dtype=np.bool_)
    host_class = vlans.pvid * switches + topology.host_switch
    if isinstance(vlans, HostTaggedPlan):
        tags = np.ascontiguousarray(vlans.tagged_hosts.T)
        host_class = np.where(vlans.tagging, DISCARD, host_class)
    next_hop = np.full((vlans.vlan_count * switches, hosts), FLOOD, dtype=np.int32)
    learns = isinstance(vlans, LearningPlan)
    if not learns:
        entries = entries_of(topology, vlans)
        ports = max(int(topology.port_count.max(initial=0)), int(entries.port.max(initial=0))) + 1
        channel_at = np.full((switches, ports), -1, dtype=np.int32)
        channel_at[topology.channel_source, topology.out_port] = np.arange(channels)
        host_at = np.full((switches, ports), -1, dtype=np.int32)
        host_at[topology.host_switch, topology.host_port] = np.arange(hosts)
        to, here = channel_at[entries.switch, entries.port], host_at[entries.switch, entries.port]
        by_channel = (to >= 0) & _cells(member, entries.vlan, to)
        by_host = (here >= 0) & _cells(on, entries.vlan, here)
        # Neither where the entry's port is no member of the VLAN.
        hop = np.where(by_channel, to, np.where(by_host, channels + here, DISCARD))
        next_hop[entries.vlan * switches + entries.switch, entries.host] = hop
    (in_vlan, channel), (on_vlan, host) = member.nonzero(), on.nonzero()
    row = np.concatenate([in_vlan * switches + topology.channel_source[channel],
                          on_vlan * switches + topology.host_switch[host]])  # fmt: skip
    order = np.argsort(row, kind="stable")
    flat = np.concatenate([channel, channels + host])[order].astype(np.int32)
    start = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=vlans.vlan_count * switches))]).astype(np.int64)
    vlan_of = np.full(4096, -1, dtype=np.int32)
    vlan_of[vlans.vlan_ids] = np.arange(vlans.vlan_count)
    return PacketTables(
        kind=GLOBAL_VLANS,
        switches=switches,
        host_class=host_class.astype(np.int32),
        host_tags=tags,
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
        bundled=False,
        first=np.arange(channels, dtype=np.int32),
        members=np.ones(channels, dtype=np.int32),
        learns=learns,
        ageing=int(vlans.ageing * _PICOSECONDS) if isinstance(vlans, LearningPlan) else 0,
        learned=np.full(next_hop.shape if learns else (1, 1), -1, dtype=np.int64),
    )


def _cells(matrix: Bools, rows: Ints, columns: Ints) -> Bools:
    """The cells of a matrix in some rows and columns; False where it has no column."""
    if not matrix.shape[1]:
        return np.zeros(len(rows), dtype=np.bool_)
    found: Bools = matrix[rows, np.maximum(columns, 0)]
    return found


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
        host_tags=np.zeros((hosts, 1), dtype=np.bool_),
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
        bundled=False,
        first=np.arange(channels, dtype=np.int32),
        members=np.ones(channels, dtype=np.int32),
        learns=False,
        ageing=0,
        learned=np.full((1, 1), -1, dtype=np.int64),
    )


def _rows(lists: list[list[int]]) -> tuple[Longs, Ints]:
    """Offsets of rows, and what stands in them one after the other."""
    start = np.concatenate([[0], np.cumsum([len(row) for row in lists])]).astype(np.int64)
    return start, np.array([value for row in lists for value in row], dtype=np.int32)
