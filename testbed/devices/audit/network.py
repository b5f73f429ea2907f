"""Configured switches, cables and hosts as arrays."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from testbed.base.errors import InputError
from testbed.base.limits import AUDITED_HOSTS, scaled_limit, too_much
from testbed.base.model import Bools, Ints, Longs
from testbed.devices.audit.spanning_tree import SpanningTrees, block_ports, compute_spanning_trees
from testbed.devices.bridge import Bridge, BridgePort, Place
from testbed.devices.vlan_set import VlanSet, as_row, from_numbers

if TYPE_CHECKING:
    from testbed.devices.audit.follow_kernel import Ports

_OFF = BridgePort(None, VlanSet(), VlanSet())


@dataclass(frozen=True, slots=True, eq=False)
class Network:
    """Ports P of S switches, V VLANs, H hosts. Ports that lead nowhere are left out; see kernels.audit for the rest."""

    switches: tuple[str, ...]  # (S,) names
    places: tuple[Place, ...]  # (P,) switch and name of each port
    hosts: tuple[str, ...]  # (H,) names
    macs: tuple[str, ...]  # (H,) address of each, empty where nothing tells it
    stands_for: Ints  # (H,) ports of its switch that have no neighbour and are set alike, of which it is one
    alike: tuple[VlanSet, ...]  # (V,) VLANs that every port treats alike: a column stands for all of them
    bridges: Mapping[str, Bridge]  # switch → its settings, without what the spanning tree protocol blocks
    configured: Mapping[str, Bridge]  # likewise, with it
    trees: SpanningTrees  # what the spanning tree protocol does
    case: str  # in words, which of the trees that addresses leave possible it is; empty where there is but one
    others: tuple[Network, ...]  # the same network with each other such tree
    stp: tuple[str, ...]  # switches that run the spanning tree protocol, and whose blocked ports are not known
    switch_of: Ints  # (P,)
    peer: Ints  # (P,) port at the other end, -1 for a host
    host_at: Ints  # (P,) -1 for a switch
    host_port: Ints  # (H,)
    pvid: Ints  # (P,) index into vlans, -1 for none
    member: Bools  # (P, V)
    untagged: Bools  # (P, V)
    filters: Bools  # (P,)
    floods: Bools  # (P,) whether unknown unicast frames may leave
    broadcasts: Bools  # (P,) whether broadcasts may
    multicasts: Bools  # (P,) whether multicasts may
    port_start: Longs  # (S + 1,)
    ports: Ints  # (P,)
    rank: Ints  # (P,)
    entry_start: Longs  # (H + 1,) entries by the host they are for
    entry_switch: Ints  # (N,)
    entry_vlan: Ints  # (N,)
    entry_port: Ints  # (N,) DEAD for a port that leads nowhere
    doubts: tuple[str, ...]  # what does not go together, one sentence each
    notes: tuple[str, ...]  # what cabling leaves out, likewise
    unclear: tuple[str, ...]  # what may decide where frames go and is not understood, likewise

    @property
    def vlans(self) -> tuple[int, ...]:
        """Identifiers of all VLANs, ascending."""
        bits = 0
        for vlans in self.alike:
            bits |= vlans.bits
        return tuple(VlanSet(bits))

    def carries(self, host: str) -> bool:
        """Whether frames of a host enter any VLAN."""
        return bool(self.pvid[self.host_port[self.hosts.index(host)]] >= 0)

    def by_port(self, sends: Bools) -> Ports:
        """What kernels take; `sends` (P,) tells by which ports floods may leave."""
        from testbed.devices.audit.follow_kernel import Ports

        return Ports(
            self.switch_of, self.peer, self.host_at, self.pvid, self.member, self.untagged, self.filters, sends,
            self.port_start, self.ports, self.rank,
        )  # fmt: skip

    @property
    def links(self) -> int:
        """How many links there are between switches."""
        return int((self.peer >= 0).sum()) // 2

    @property
    def degree(self) -> int:
        """Ports of the switch that has most."""
        return int(np.diff(self.port_start).max(initial=1))


def network_of(
    bridges: Mapping[str, Bridge],
    cables: Mapping[Place, Place],
    hosts: Mapping[str, Place],
    *,
    complete: bool | None = None,
    notes: Sequence[str] = (),
    unclear: Sequence[str] = (),
) -> Network:
    """Put settings and cables together.

    Args:
        bridges: by the name of the switch.
        cables: port → port at the other end, both ways.
        hosts: host → its port.
        complete: whether these are all hosts; otherwise every other port that has a PVID and no cable leads to one,
            called by its place. None for complete if there are any.
        notes: what the cabling leaves out.
        unclear: what of the cabling is not understood.

    Raises:
        InputError: there is no switch, or no port that leads to a host.
    """
    if not bridges:
        raise InputError.one("configurations", "there is no switch in them")
    stands_for: dict[str, int] = {}
    if not (bool(hosts) if complete is None else complete):
        silent, stands_for = _silent_hosts(bridges, {*cables, *hosts.values()})
        hosts = {**hosts, **silent}
    if not hosts:
        sentence = "no port leads to a host: every one that is named is cabled to a switch, is down, or has no PVID"
        raise InputError.one("cabling", sentence)
    most = scaled_limit(AUDITED_HOSTS)
    if len(hosts) > most:
        raise InputError.one("cabling", too_much(f"leads to {len(hosts):,} hosts", most, "hosts"))
    trees = compute_spanning_trees(bridges, cables)
    unclear = (*unclear, *(str(one) for bridge in bridges.values() for one in bridge.reading.unclear), *trees.unclear)
    found = [
        replace(
            _assemble(block_ports(bridges, trees, case), cables, hosts, stands_for, trees),
            configured=bridges, trees=trees, case=case.words, notes=(*notes, *trees.notes), unclear=tuple(unclear),
        )
        for case in trees.cases
    ]  # fmt: skip
    return replace(found[0], others=tuple(found[1:]))


def _assemble(
    bridges: Mapping[str, Bridge], cables: Mapping[Place, Place], hosts: Mapping[str, Place],
    stands_for: Mapping[str, int], trees: SpanningTrees,
) -> Network:  # fmt: skip
    """One network, by how its bridges forward; what else is told of it is left out."""
    switches = tuple(bridges)
    number = {name: place for place, name in enumerate(switches)}
    places = sorted({*cables, *hosts.values()}, key=lambda place: (number[place[0]], place[1]))
    port_of = {place: index for index, place in enumerate(places)}
    said = [bridges[switch].ports.get(port, _OFF) for switch, port in places]
    alike = _group_vlans(bridges, said)
    first = [min(vlans) for vlans in alike] or [0]
    column = {min(vlans): index for index, vlans in enumerate(alike) if len(vlans) == 1}  # PVIDs and VLANs of entries
    member, untagged = (np.zeros((len(places), len(first)), dtype=bool) for _ in range(2))
    for row, port in enumerate(said):
        member[row] = as_row(port.members)[first]
        untagged[row] = as_row(port.untagged)[first]
    host_at = np.full(len(places), -1, dtype=np.int32)
    host_at[[port_of[place] for place in hosts.values()]] = np.arange(len(hosts))
    switch_of = np.array([number[switch] for switch, _ in places], dtype=np.int32)
    start = np.searchsorted(switch_of, np.arange(len(switches) + 1)).astype(np.int64)
    table = _table(bridges, column, port_of)
    owned, doubts = _owners(table, host_at, hosts)
    host_of = np.full(len(table.macs) + 1, -1, dtype=np.int64)
    for host, mac in enumerate(owned):
        if mac >= 0:
            host_of[mac] = host
    entry_host = host_of[table.mac]
    kept = np.flatnonzero((entry_host >= 0) & (table.vlan >= 0))
    kept = kept[np.argsort(entry_host[kept], kind="stable")]
    doubts += [
        f"{host}'s port, {switch} {port}, {_why_off(bridges[switch], port)}, so {host} is cut off"
        for host, (switch, port) in hosts.items()
        if not bridges[switch].ports.get(port, _OFF).members
    ]
    doubts += [f"{name} does not filter VLANs" for name, bridge in bridges.items() if not bridge.vlan_filtering]
    return Network(
        switches=switches,
        places=tuple(places),
        hosts=tuple(hosts),
        macs=tuple(table.macs[mac] if mac >= 0 else "" for mac in owned),
        stands_for=np.array([stands_for.get(host, 1) for host in hosts], dtype=np.int32),
        alike=alike,
        bridges=bridges,
        configured=bridges,
        trees=trees,
        case="",
        others=(),
        stp=tuple(name for name in bridges if name in trees.uncomputed and not bridges[name].reading.shows_states),
        switch_of=switch_of,
        peer=np.array([port_of[cables[place]] if place in cables else -1 for place in places], dtype=np.int32),
        host_at=host_at,
        host_port=np.array([port_of[place] for place in hosts.values()], dtype=np.int32),
        pvid=np.array([-1 if port.pvid is None else column[port.pvid] for port in said], dtype=np.int32),
        member=member,
        untagged=untagged,
        filters=np.array([port.filters for port in said], dtype=bool),
        floods=np.array([port.flood for port in said], dtype=bool),
        broadcasts=np.array([port.bcast_flood for port in said], dtype=bool),
        multicasts=np.array([port.mcast_flood for port in said], dtype=bool),
        port_start=start,
        ports=np.arange(len(places), dtype=np.int32),
        rank=(np.arange(len(places)) - start[switch_of]).astype(np.int32),
        entry_start=np.searchsorted(entry_host[kept], np.arange(len(hosts) + 1)).astype(np.int64),
        entry_switch=table.switch[kept].astype(np.int32),
        entry_vlan=table.vlan[kept].astype(np.int32),
        entry_port=table.port[kept].astype(np.int32),
        doubts=(*trees.doubts, *doubts),
        notes=(),
        unclear=(),
    )


def _why_off(bridge: Bridge, port: str) -> str:
    return bridge.reading.down.get(port, "is in no VLAN")


def _silent_hosts(bridges: Mapping[str, Bridge], taken: Set[Place]) -> tuple[dict[str, Place], dict[str, int]]:
    """Hosts that say nothing of themselves: one at each other port with a PVID; and how many ports each stands for.

    Of ports of a switch that have its defaults one is enough, since they are all alike.
    """
    hosts: dict[str, Place] = {}
    stands_for: dict[str, int] = {}
    for name, bridge in bridges.items():
        seen: dict[tuple[object, ...], str] = {}
        for port, said in bridge.ports.items():
            if said.pvid is None or (name, port) in taken:
                continue
            host = f"{name}:{port}"
            if port in bridge.reading.silent and port in bridge.reading.inside:
                continue
            if port in bridge.reading.silent:
                host = seen.setdefault((said.pvid, VlanSet.from_ids(said.members).bits), host)
                stands_for[host] = stands_for.get(host, 0) + 1
            hosts.setdefault(host, (name, port))
    return hosts, stands_for


def _group_vlans(bridges: Mapping[str, Bridge], said: Sequence[BridgePort]) -> tuple[VlanSet, ...]:
    """VLANs by how ports treat them, each that is some port's PVID or has an entry by itself; by their first."""
    used, single = VlanSet(), VlanSet()
    rows: dict[tuple[int, int], tuple[VlanSet, VlanSet]] = {}
    for port in said:
        members, untagged = VlanSet.from_ids(port.members), VlanSet.from_ids(port.untagged)
        rows[members.bits, untagged.bits] = members, untagged
        used |= members
        single |= VlanSet.from_ids({port.pvid} if port.pvid else ())
    for bridge in bridges.values():
        single |= VlanSet.from_ids({vlan for vlan, _ in bridge.fdb})
    used |= VlanSet.from_ids({port.pvid for port in said if port.pvid})
    off = {VlanSet.from_ids(bridge.without_stp).bits for bridge in bridges.values()}
    sets = [one for pair in rows.values() for one in pair] + [VlanSet(bits) for bits in off]
    several = np.flatnonzero(as_row(used - single))
    groups = [VlanSet.from_ids({vlan}) for vlan in used & single]
    if len(several):
        columns = np.packbits(np.stack([as_row(one)[several] for one in sets], axis=1), axis=1)
        keys = np.ascontiguousarray(columns).view(np.dtype((np.void, columns.shape[1])))[:, 0]
        _, group = np.unique(keys, return_inverse=True)
        groups += [from_numbers(several[group == number]) for number in range(int(group.max()) + 1)]
    return tuple(sorted(groups, key=min))


@dataclass(frozen=True, slots=True, eq=False)
class _Table:
    """Every static entry of every switch."""

    macs: tuple[str, ...]  # every address, once
    mac: Longs  # (N,) index into them
    switch: Longs  # (N,)
    vlan: Longs  # (N,) index, -1 for a VLAN without ports
    port: Longs  # (N,) DEAD for a port that leads nowhere


def _table(bridges: Mapping[str, Bridge], column: Mapping[int, int], port_of: Mapping[Place, int]) -> _Table:
    from testbed.devices.audit.follow_kernel import DEAD

    index: dict[str, int] = {}
    columns: tuple[list[int], list[int], list[int], list[int]] = ([], [], [], [])
    for number, (name, bridge) in enumerate(bridges.items()):
        here = {port: port_of[name, port] for port in set(bridge.fdb.values()) if (name, port) in port_of}
        columns[0].extend([index.setdefault(mac, len(index)) for _, mac in bridge.fdb])
        columns[1].extend([number] * len(bridge.fdb))
        columns[2].extend([column.get(vlan, -1) for vlan, _ in bridge.fdb])
        columns[3].extend([here.get(port, DEAD) for port in bridge.fdb.values()])
    return _Table(tuple(index), *(np.array(values, dtype=np.int64) for values in columns))


def _owners(table: _Table, host_at: Ints, hosts: Mapping[str, Place]) -> tuple[list[int], list[str]]:
    """Address of each host as an index, -1 for none: that of most entries that point to its port; and doubts."""
    names = list(hosts)
    at = np.where(table.port >= 0, host_at[np.maximum(table.port, 0)], -1)
    here = at >= 0
    pairs, counts = np.unique(table.mac[here] * len(names) + at[here], return_counts=True)
    votes: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for pair, count in zip(pairs.tolist(), counts.tolist(), strict=True):
        votes[pair // len(names)].append((count, pair % len(names)))
    doubts = []
    best: dict[int, tuple[int, int]] = {}  # host → votes and address
    for mac, found in votes.items():
        if len(found) > 1:
            where = " and ".join(f"{names[host]} ({' '.join(hosts[names[host]])})" for _, host in found)
            doubts.append(
                f"{table.macs[mac]} is registered at the ports of {where}; its frames end wrong at one of them"
            )
        count, host = max(found)
        best[host] = max(best.get(host, (0, -1)), (count, mac))
    for mac, text in enumerate(table.macs):
        if mac not in votes:
            doubts.append(f"{text} is registered, and at no host's port: its frames end nowhere")
    return [best.get(host, (0, -1))[1] for host in range(len(names))], doubts
