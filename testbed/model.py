"""Core types shared by every layer. Frozen, array-backed, no I/O.

Shapes use these letters: S switches, H hosts, L physical links, C = 2 L channels, V VLANs, T source trees.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int32]
Bools = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Topology:
    """Switches, hosts and links with deterministic port numbers.

    Channel `2 l` is link l from `links[l, 0]` to `links[l, 1]`, channel `2 l + 1` the other direction, so
    `c ^ 1` is the reverse of c. Parallel links of a pair are consecutive rows: plane p of the channel c of
    plane 0 is `c + 2 p`. Ports count from 1: first the hosts of a switch, then its links in link order.

    Attributes:
        kind: name of the topology.
        switch_count: S.
        links: (L, 2) the two switches of each physical link.
        plane: (L,) 0 for the first link of a pair, 1 for the second parallel one, and so on.
        host_switch: (H,) the switch of each host.
        sizes: extent of each dimension for grids, empty otherwise.
        coordinates: (S, len(sizes)) position in the grid, first-routed dimension first.
        levels: (S,) 0 for leaves and for every switch of a direct network, 1.. upward in trees.
        positions: (S, 2) where to draw each switch.
        host_port: (H,) port of each host on its switch.
        channel_source: (C,) switch a channel leaves.
        channel_target: (C,) switch a channel enters.
        out_port: (C,) port by which a channel leaves its source; it enters its target by `out_port[c ^ 1]`.
        port_count: (S,) number of ports in use.
    """

    kind: str
    switch_count: int
    links: Ints
    plane: Ints
    host_switch: Ints
    sizes: tuple[int, ...]
    coordinates: Ints
    levels: Ints
    positions: Floats
    host_port: Ints
    channel_source: Ints
    channel_target: Ints
    out_port: Ints
    port_count: Ints

    @property
    def host_count(self) -> int:
        """H."""
        return len(self.host_switch)

    @property
    def link_count(self) -> int:
        """L, physical links between switches."""
        return len(self.links)

    @property
    def parallel_links(self) -> int:
        """Links of the neighbour pair that has most of them; 0 without links."""
        return int(self.plane.max()) + 1 if len(self.plane) else 0

    def switch_name(self, switch: int) -> str:
        """`s1` for switch 0."""
        return f"s{switch + 1}"

    def host_name(self, host: int) -> str:
        """`h1` for host 0."""
        return f"h{host + 1}"

    def channel_name(self, channel: int) -> str:
        """`s1→s2`, with `#p` appended on planes above the first."""
        plane = int(self.plane[channel // 2])
        ends = f"s{self.channel_source[channel] + 1}→s{self.channel_target[channel] + 1}"
        return f"{ends}#{plane}" if plane else ends


def host_mac(host: int) -> str:
    """MAC address of a host: locally administered, its number in the low four bytes."""
    number = host + 1
    return "02:00:" + ":".join(f"{(number >> shift) & 0xFF:02x}" for shift in (24, 16, 8, 0))


def host_ip(host: int) -> str:
    """IPv4 address of a host inside 10.0.0.0/8."""
    number = host + 1
    return f"10.{(number >> 16) & 0xFF}.{(number >> 8) & 0xFF}.{number & 0xFF}"


IP_PREFIX = 8


@dataclass(frozen=True, slots=True, eq=False)
class Routes:
    """A path for every ordered pair of hosts, as arrays.

    Two relations of Koibuchi et al. 2011, section 3.2, are represented:
    `source_trees` (N×N→P, every source's paths are one tree): `parent_channel` (T, S) is the channel by which
    tree t enters a switch, -1 at its root and where it does not go; `host_tree` (H,) is the tree of a host.
    `destination` (N×N→C, next hop from switch and destination switch): `next_channel` (S, S), -1 at the end.

    Attributes:
        relation: `source_trees` or `destination`.
        parent_channel: (T, S), empty (0, S) for `destination`.
        tree_root: (T,) the switch a tree starts from.
        host_tree: (H,).
        next_channel: (S, S), empty (0, S) for `source_trees`.
        notes: choices that were made for the user, one sentence each.
    """

    relation: str
    parent_channel: Ints
    tree_root: Ints
    host_tree: Ints
    next_channel: Ints
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class VlanPlan:
    """Pure 802.1Q intent; any switch with PVID, member sets and static MAC entries can carry it out.

    Attributes:
        vlan_ids: (V,) 802.1Q VLAN identifiers, 1..4094.
        pvid: (H,) index into vlan_ids: the PVID of each host's port.
        tagged_links: (V, L) True where both ends of a link are tagged members of the VLAN.
        untagged_hosts: (V, H) True where a host's port is an untagged member of the VLAN.
        entry_vlan: (E,) index into vlan_ids of each static MAC entry.
        entry_switch: (E,) switch that holds it.
        entry_host: (E,) host whose MAC address it is.
        entry_port: (E,) port it points to.
    """

    vlan_ids: Ints
    pvid: Ints
    tagged_links: Bools
    untagged_hosts: Bools
    entry_vlan: Ints
    entry_switch: Ints
    entry_host: Ints
    entry_port: Ints

    @property
    def vlan_count(self) -> int:
        """V."""
        return len(self.vlan_ids)


@dataclass(frozen=True, slots=True)
class Rule:
    """One OpenFlow 1.3 rule, free of any library's types.

    Attributes:
        switch: switch number.
        table: table number.
        priority: higher wins.
        match: (field, value) pairs; fields are `in_port`, `dl_vlan` (-1 = untagged) and `dl_dst`.
        actions: (action, value) pairs; actions are `push_vlan`, `pop_vlan`, `output`, `goto_table`.
    """

    switch: int
    table: int
    priority: int
    match: tuple[tuple[str, int | str], ...]
    actions: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class SwitchModel:
    """Limits of a switch that can be bought.

    Attributes:
        name: as printed on it.
        ports: number of ports.
        max_vlans: VLANs that can be configured.
        mac_table: MAC table entries.
    """

    name: str
    ports: int
    max_vlans: int
    mac_table: int


@dataclass(frozen=True, slots=True)
class Violation:
    """An invariant that does not hold.

    Attributes:
        invariant: its short name.
        sentence: what is wrong.
        witness: the cycle, the lost pair, the port.
    """

    invariant: str
    sentence: str
    witness: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Sample:
    """One measured figure. Results are tables of these.

    Attributes:
        metric: what was measured, such as `goodput`.
        value: the figure, in `unit`.
        unit: an SI unit, `ratio`, or empty for a count.
        labels: what it belongs to, such as workload, src, dst, repeat.
        predicted: what the plan predicts for it, in the same unit, or None where there is no prediction.
    """

    metric: str
    value: float
    unit: str
    labels: Mapping[str, str] = field(default_factory=dict)
    predicted: float | None = None
