"""Settings of each switch of a plan, in the words of 802.1Q: PVIDs, member sets, static MAC entries.

Dialects write this down, and what is read back is compared with it.

A plan with VLANs local to a switch sends broadcasts along a tree of its own, from whatever port and VLAN. Switches that
can keep floods from a port carry that out exactly: the ports of hosts and of the tree become members of every local
VLAN, which changes no unicast path since every address is registered, and floods are kept from all other ports. Other
switches flood to the members that the paths need, no more.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal

import numpy as np

from testbed.base.errors import InputError, Problem
from testbed.base.model import HostTaggedPlan, Ints, LocalPlan, Longs, Topology, VlanPlan
from testbed.fabric.routing.channel_lookup import runs
from testbed.fabric.vlans.fixed import LAST_VLAN_ID
from testbed.fabric.vlans.mac_entries import entries_of
from testbed.planning import Plan

Floods = Literal["plan", "members"]


@dataclass(frozen=True, slots=True)
class PortSettings:
    """One port."""

    number: int  # in the plan, from 1
    peer: str  # name of the host or switch at the other end
    peer_port: int  # port of that switch; 0 for a host
    pvid: int | None  # VLAN of untagged frames that arrive; None = they are dropped
    tagged: tuple[int, ...]  # VLANs it is a tagged member of, ascending
    untagged: tuple[int, ...]  # VLANs it is an untagged member of, ascending
    floods: bool = True  # whether frames that are flooded may leave by it

    @property
    def used(self) -> bool:
        """Whether it carries any frame."""
        return bool(self.tagged or self.untagged)


@dataclass(frozen=True, slots=True, eq=False)
class MacTable:
    """Static MAC entries of one switch, by VLAN and host."""

    vlan: Ints  # (N,) VLAN identifier
    host: Ints  # (N,) host whose address it is
    port: Ints  # (N,) port it points to

    def rows(self) -> list[tuple[int, int, int]]:
        """(VLAN, host, port) of each entry."""
        return list(zip(self.vlan.tolist(), self.host.tolist(), self.port.tolist(), strict=True))


@dataclass(frozen=True, slots=True, eq=False)
class SwitchSettings:
    """One switch."""

    name: str  # in the plan
    ports: tuple[PortSettings, ...]  # those in use, by number
    table: MacTable  # its static MAC entries

    @property
    def vlans(self) -> tuple[int, ...]:
        """Every VLAN with a member port, ascending."""
        return tuple(sorted({vlan for port in self.ports for vlan in (*port.tagged, *port.untagged)}))


def settings_of(plan: Plan, floods: Floods = "plan") -> tuple[SwitchSettings, ...]:
    """Settings of every switch, in the order of the plan.

    With `floods` = `members` broadcasts go to all members of a VLAN, with `plan` by the ports that may flood.

    Raises:
        InputError: no switch that forwards by VLAN and address can carry the plan out, or a switch has no identifier
            left for the VLAN of broadcasts.
    """
    problems = [Problem(plan.scenario.source, sentence) for sentence in _beyond_vlans(plan)]
    if problems:
        raise InputError(problems)
    if isinstance(plan.vlans, VlanPlan):
        return _of_fixed(plan.topology, plan.vlans)
    settings = _of_local(plan.topology, plan.vlans)
    return settings if floods == "members" else _confine_floods(plan, plan.vlans, settings)


def _beyond_vlans(plan: Plan) -> list[str]:
    found = []
    if isinstance(plan.vlans, LocalPlan) and plan.vlans.kind == "openflow":
        found.append(
            "the assignment openflow decides by in-port and priority, which no VLAN or MAC table holds; use fixed, "
            "renamed or static"
        )
    if plan.bundles is not None:
        bundle = int(np.argmax(plan.bundles.sizes))
        first = plan.bundles.channels(2 * bundle)[0]
        wiring = plan.wiring
        name, port = wiring.switch_name(int(wiring.channel_source[first])), int(wiring.out_port[first])
        found.append(
            f"port {port} of {name} is one of {int(plan.bundles.sizes[bundle])} aggregated links, and no dialect "
            "writes link aggregation yet; leave links.aggregate out"
        )
    return found


def _peers(topology: Topology) -> list[dict[int, tuple[str, int]]]:
    """Of each switch: port → (name at the other end, its port or 0)."""
    peers: list[dict[int, tuple[str, int]]] = [{} for _ in range(topology.switch_count)]
    for host, (switch, port) in enumerate(zip(topology.host_switch.tolist(), topology.host_port.tolist(), strict=True)):
        peers[switch][port] = (topology.host_name(host), 0)
    for channel, port in enumerate(topology.out_port.tolist()):
        target = topology.switch_name(int(topology.channel_target[channel]))
        peers[int(topology.channel_source[channel])][port] = (target, int(topology.out_port[channel ^ 1]))
    return peers


def _tables(topology: Topology, switch: Ints, vlan: Ints, host: Ints, port: Ints) -> list[MacTable]:
    """Entries of the fabric, divided by switch and sorted."""
    order = np.lexsort((host, vlan, switch))
    cut = np.searchsorted(switch[order], np.arange(topology.switch_count + 1))
    columns = [column[order] for column in (vlan, host, port)]
    return [MacTable(*(column[a:b] for column in columns)) for a, b in pairwise(cut)]


def _of_fixed(topology: Topology, vlans: VlanPlan) -> tuple[SwitchSettings, ...]:
    """Tagged members where the trees run; every host's port an untagged member of what can be sent to it.

    A host that tags has a port without a PVID, tagged in all VLANs.
    """
    ids = vlans.vlan_ids
    order = np.argsort(ids, kind="stable")
    tagged: dict[tuple[int, int], tuple[int, ...]] = {}
    for link in range(topology.link_count):
        member = tuple(ids[order[vlans.tagged_links[order, link]]].tolist())
        for channel in (2 * link, 2 * link + 1):
            tagged[int(topology.channel_source[channel]), int(topology.out_port[channel])] = member
    untagged: dict[tuple[int, int], tuple[tuple[int, ...], int | None]] = {}
    hosts = np.broadcast_to(vlans.untagged_hosts, (vlans.vlan_count, topology.host_count))
    for host in range(topology.host_count):
        member = tuple(ids[order[hosts[order, host]]].tolist())
        place = int(topology.host_switch[host]), int(topology.host_port[host])
        untagged[place] = member, None if vlans.takes_tags(host) else int(ids[vlans.pvid[host]])
        if isinstance(vlans, HostTaggedPlan):
            tagged[place] = tuple(ids[order[vlans.tagged_hosts[order, host]]].tolist())
    entries = entries_of(topology, vlans)
    tables = _tables(topology, entries.switch, ids[entries.vlan], entries.host, entries.port)
    return tuple(
        SwitchSettings(
            topology.switch_name(switch),
            tuple(
                PortSettings(
                    port, *peer, untagged.get((switch, port), ((), None))[1],
                    tagged.get((switch, port), ()), untagged.get((switch, port), ((), None))[0],
                )
                for port, peer in sorted(peers.items())
            ),
            tables[switch],
        )
        for switch, peers in enumerate(_peers(topology))
    )  # fmt: skip


def _of_local(topology: Topology, plan: LocalPlan) -> tuple[SwitchSettings, ...]:
    """Untagged members as the paths need them, the PVID of a port by what arrives there."""
    pvid: dict[tuple[int, int], int] = {}
    for host, vlan in enumerate(plan.host_vlan.tolist()):
        pvid[int(topology.host_switch[host]), int(topology.host_port[host])] = int(plan.vlan_id[vlan])
    for channel, vlan in enumerate(plan.channel_vlan.tolist()):
        if vlan >= 0:
            pvid[int(topology.channel_target[channel]), int(topology.out_port[channel ^ 1])] = int(plan.vlan_id[vlan])
    members: dict[tuple[int, int], list[int]] = defaultdict(list)
    for vlan, switch in enumerate(plan.vlan_switch.tolist()):
        for port in plan.member_port[plan.member_start[vlan] : plan.member_start[vlan + 1]].tolist():
            members[switch, port].append(int(plan.vlan_id[vlan]))
    row, host_of = _hosts_of_entries(plan)
    hop = plan.entry_hop[row]
    out = topology.out_port[np.maximum(hop, 0)] if len(topology.out_port) else np.zeros(len(hop), dtype=np.int32)
    port_of = np.where(hop < 0, topology.host_port[host_of], out).astype(np.int32)
    vlan_of = plan.entry_vlan[row]
    tables = _tables(topology, plan.vlan_switch[vlan_of], plan.vlan_id[vlan_of], host_of, port_of)
    return tuple(
        SwitchSettings(
            topology.switch_name(switch),
            tuple(
                PortSettings(port, *peer, pvid.get((switch, port)), (), tuple(sorted(members[switch, port])))
                for port, peer in sorted(peers.items())
            ),
            tables[switch],
        )
        for switch, peers in enumerate(_peers(topology))
    )


def _hosts_of_entries(plan: LocalPlan) -> tuple[Longs, Ints]:
    """(N,) row and (N,) destination host of every entry; hosts of one key share a row."""
    by_key = np.argsort(plan.host_key, kind="stable").astype(np.int32)
    start = np.searchsorted(plan.host_key[by_key], np.arange(int(plan.host_key.max()) + 2))
    row, index = runs(start[plan.entry_key], np.diff(start)[plan.entry_key])
    return row, by_key[index]


def _confine_floods(plan: Plan, vlans: LocalPlan, settings: tuple[SwitchSettings, ...]) -> tuple[SwitchSettings, ...]:
    """Floods along the tree of broadcasts, or nowhere."""
    if vlans.flood_links is None:
        return tuple(
            replace(switch, ports=tuple(replace(port, floods=False) for port in switch.ports)) for switch in settings
        )
    topology = plan.topology
    channels = np.flatnonzero(np.repeat(vlans.flood_links, 2))
    floods: list[set[int]] = [set() for _ in settings]
    for switches, ports in (
        (topology.channel_source[channels], topology.out_port[channels]),
        (topology.host_switch, topology.host_port),
    ):
        for switch, port in zip(switches.tolist(), ports.tolist(), strict=True):
            floods[switch].add(port)
    return tuple(_flooding_by(switch, ports) for switch, ports in zip(settings, floods, strict=True))


def _flooding_by(switch: SwitchSettings, floods: set[int]) -> SwitchSettings:
    """All local VLANs flood by these ports and no others; a port by which only floods arrive gets a VLAN for them."""
    vlans = list(switch.vlans)
    for_floods = max(vlans, default=0) + 1
    if any(port.pvid is None for port in switch.ports if port.number in floods):
        if for_floods > LAST_VLAN_ID:
            raise InputError.one(
                "assignment.first_vlan",
                f"{switch.name} needs one more local VLAN, for ports by which only broadcasts arrive, and 802.1Q has "
                f"identifiers up to {LAST_VLAN_ID}; start lower, or use flood: none",
            )
        vlans.append(for_floods)
    ports = []
    for port in switch.ports:
        if port.number not in floods:
            ports.append(replace(port, floods=False))
            continue
        pvid = for_floods if port.pvid is None else port.pvid
        ports.append(replace(port, pvid=pvid, untagged=tuple(vlans)))
    return replace(switch, ports=tuple(ports))
