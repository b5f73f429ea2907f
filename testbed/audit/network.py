"""Configured switches, cables and hosts as arrays."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np

from testbed.errors import InputError
from testbed.export.bridge import Bridge, BridgePort, Place
from testbed.limits import AUDITED_HOSTS, allowed, too_much
from testbed.model import Bools, Ints, Longs

if TYPE_CHECKING:
    from testbed.kernels.audit import Ports

_OFF = BridgePort(None, frozenset(), frozenset())


@dataclass(frozen=True, slots=True, eq=False)
class Network:
    """Ports P of S switches, V VLANs, H hosts. Ports that lead nowhere are left out; see kernels.audit for the rest."""

    switches: tuple[str, ...]  # (S,) names
    places: tuple[Place, ...]  # (P,) switch and name of each port
    hosts: tuple[str, ...]  # (H,) names
    macs: tuple[str, ...]  # (H,) address of each, empty where nothing tells it
    vlans: tuple[int, ...]  # (V,) identifiers
    stp: tuple[str, ...]  # switches that run the spanning tree protocol
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
    port_start: Longs  # (S + 1,)
    ports: Ints  # (P,)
    rank: Ints  # (P,)
    entry_start: Longs  # (H + 1,) entries by the host they are for
    entry_switch: Ints  # (N,)
    entry_vlan: Ints  # (N,)
    entry_port: Ints  # (N,) DEAD for a port that leads nowhere
    doubts: tuple[str, ...]  # what does not go together, one sentence each

    def by_port(self, sends: Bools) -> Ports:
        """What kernels take; `sends` (P,) tells by which ports floods may leave."""
        from testbed.kernels.audit import Ports

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


def network_of(bridges: Mapping[str, Bridge], cables: Mapping[Place, Place], hosts: Mapping[str, Place]) -> Network:
    """Put settings and cables together.

    Without hosts in the cabling every port that has a PVID and no cable leads to one, called by its place.

    Raises:
        InputError: there is no switch, or no port that leads to a host.
    """
    if not bridges:
        raise InputError.one("configurations", "there is no switch in them")
    if not hosts:
        hosts = {
            f"{name}:{port}": (name, port)
            for name, bridge in bridges.items()
            for port, said in bridge.ports.items()
            if said.pvid is not None and (name, port) not in cables
        }
    if not hosts:
        sentence = "no port leads to a host: every one is cabled to a switch, or has no PVID"
        raise InputError.one("cabling", sentence)
    most = allowed(AUDITED_HOSTS)
    if len(hosts) > most:
        raise InputError.one("cabling", too_much(f"leads to {len(hosts):,} hosts", most, "hosts"))
    switches = tuple(bridges)
    number = {name: place for place, name in enumerate(switches)}
    places = sorted({*cables, *hosts.values()}, key=lambda place: (number[place[0]], place[1]))
    port_of = {place: index for index, place in enumerate(places)}
    said = [bridges[switch].ports.get(port, _OFF) for switch, port in places]
    listed = {port.members for port in said}  # thousands of ports have the same
    vlans = tuple(sorted({*chain.from_iterable(listed), *(port.pvid for port in said if port.pvid)}))
    column = {vlan: index for index, vlan in enumerate(vlans)}
    columns = {members: [column[vlan] for vlan in members] for members in listed}
    member, untagged = (np.zeros((len(places), max(len(vlans), 1)), dtype=bool) for _ in range(2))
    for row, port in enumerate(said):
        member[row, columns[port.members]] = True
        untagged[row, [column[vlan] for vlan in port.untagged if vlan in column]] = True
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
        f"{host}'s port, {switch} {port}, is in no VLAN or shut, so {host} is cut off"
        for host, (switch, port) in hosts.items()
        if not bridges[switch].ports.get(port, _OFF).members
    ]
    doubts += [f"{name} does not filter VLANs" for name, bridge in bridges.items() if not bridge.vlan_filtering]
    return Network(
        switches=switches,
        places=tuple(places),
        hosts=tuple(hosts),
        macs=tuple(table.macs[mac] if mac >= 0 else "" for mac in owned),
        vlans=vlans,
        stp=tuple(name for name, bridge in bridges.items() if bridge.stp),
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
        port_start=start,
        ports=np.arange(len(places), dtype=np.int32),
        rank=(np.arange(len(places)) - start[switch_of]).astype(np.int32),
        entry_start=np.searchsorted(entry_host[kept], np.arange(len(hosts) + 1)).astype(np.int64),
        entry_switch=table.switch[kept].astype(np.int32),
        entry_vlan=table.vlan[kept].astype(np.int32),
        entry_port=table.port[kept].astype(np.int32),
        doubts=tuple(doubts),
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Table:
    """Every static entry of every switch."""

    macs: tuple[str, ...]  # every address, once
    mac: Longs  # (N,) index into them
    switch: Longs  # (N,)
    vlan: Longs  # (N,) index, -1 for a VLAN without ports
    port: Longs  # (N,) DEAD for a port that leads nowhere


def _table(bridges: Mapping[str, Bridge], column: Mapping[int, int], port_of: Mapping[Place, int]) -> _Table:
    from testbed.kernels.audit import DEAD

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
