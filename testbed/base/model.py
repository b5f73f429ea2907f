"""Core types shared by every layer. Frozen, array-backed, no I/O.

Shapes use these letters: S switches, E of them with hosts, H hosts, L physical links, C = 2 L channels, V VLANs,
T trees.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int32]
Longs = npt.NDArray[np.int64]
Codes = npt.NDArray[np.int8]
Bools = npt.NDArray[np.bool_]
Octets = npt.NDArray[np.uint8]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Topology:
    """Switches, hosts and links with deterministic port numbers.

    Channel `2 l` is link l from `links[l, 0]` to `links[l, 1]`, channel `2 l + 1` the other direction, so
    `c ^ 1` is the reverse of c. Parallel links of a pair are consecutive rows: plane p of the channel c of
    plane 0 is `c + 2 p`. Ports count from 1: first the hosts of a switch, then its links in link order.
    """

    kind: str  # name of the topology
    switch_count: int  # S
    links: Ints  # (L, 2) the two switches of each physical link
    plane: Ints  # (L,) 0 for the first link of a pair, 1 for the second parallel one, and so on
    host_switch: Ints  # (H,) the switch of each host
    sizes: tuple[int, ...]  # extent of each dimension for grids, empty otherwise
    coordinates: Ints  # (S, len(sizes)) position in the grid, first-routed dimension first
    levels: Ints  # (S,) 0 for leaves and for every switch of a direct network, 1.. upward in trees.
    positions: Floats  # (S, 2) where to draw each switch
    host_port: Ints  # (H,) port of each host on its switch
    channel_source: Ints  # (C,) switch a channel leaves
    channel_target: Ints  # (C,) switch a channel enters
    out_port: Ints  # (C,) port by which a channel leaves its source; it enters its target by `out_port[c ^ 1]`
    port_count: Ints  # (S,) number of ports in use
    # name of each switch, for fabrics some of whose switches are dead; empty for s1, s2, …
    switch_names: tuple[str, ...] = ()
    host_names: tuple[str, ...] = ()  # likewise for hosts; empty for h1, h2, …
    # what each switch is called in the file the fabric was read from; empty without one
    switch_labels: tuple[str, ...] = ()
    faults: tuple[str, ...] = ()  # the dead links and switches that were taken out, in words; empty for a whole fabric

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
        """`s1` for switch 0, unless the fabric gives it another name."""
        return self.switch_names[switch] if self.switch_names else f"s{switch + 1}"

    def host_name(self, host: int) -> str:
        """`h1` for host 0, unless the fabric gives it another name."""
        return self.host_names[host] if self.host_names else f"h{host + 1}"

    def channel_name(self, channel: int) -> str:
        """`s1→s2`, with `#p` appended on planes above the first."""
        plane = int(self.plane[channel // 2])
        source, target = int(self.channel_source[channel]), int(self.channel_target[channel])
        ends = f"{self.switch_name(source)}→{self.switch_name(target)}"
        return f"{ends}#{plane}" if plane else ends


@dataclass(frozen=True, slots=True, eq=False)
class Bundles:
    """Parallel links that count as one logical link each (link aggregation, IEEE 802.1AX, formerly 802.3ad).

    A topology with bundles has one link a pair of neighbours. Its link l stands for the physical links `start[l]` to
    `start[l + 1] - 1`, the members, all in the direction of l; its ports are those of the first member.
    """

    wiring: Topology  # every physical link and port, with the same switches and hosts
    start: Longs  # (L + 1,) offset of the first member of each logical link

    @property
    def sizes(self) -> Longs:
        """(L,) members of each logical link."""
        return np.diff(self.start)

    def channels(self, channel: int) -> tuple[int, ...]:
        """Physical channels of a logical channel, first member first."""
        link, direction = divmod(channel, 2)
        return tuple(range(2 * int(self.start[link]) + direction, 2 * int(self.start[link + 1]), 2))

    @property
    def of_channel(self) -> Longs:
        """(physical C,) logical channel that each physical channel belongs to."""
        link = np.repeat(np.arange(len(self.start) - 1), self.sizes)
        logical: Longs = (2 * link[:, None] + np.arange(2)).reshape(-1)
        return logical


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
class Paths:
    """One explicit path for every ordered pair of end switches (N×N→P).

    Pair (a, b) of end indices 0..E-1 is row `a * E + b`. A hop is a virtual channel: `layer * C + channel`.
    """

    start: Longs  # (E·E + 1,) offset of the first hop of each pair; a pair without hops has none
    hop: Ints  # (N,) virtual channels of all paths, one pair after the other


@dataclass(frozen=True, slots=True, eq=False)
class NextHops:
    """What switches may do with a frame: a set of next hops by switch, destination and class, any of which they choose.

    A class is what a frame carries that switches tell frames apart by: VLAN and layer (priority). VLANs share the
    memory of a link, layers have their own. A state is `class * S + switch`, a hop `class * C + channel`: the class of
    the frame on that channel and at its end.
    """

    goal: Ints  # (K,) switch where frames of each destination key leave the fabric
    host: Ints  # (K,) the one host that a key stands for, or -1: all hosts of its switch without a key of their own
    class_vlan: Ints  # (N,) VLAN of each class, 0 where frames have none
    class_layer: Ints  # (N,) layer of each class
    table: Ints  # (N·S, K) number of a set, DELIVER at the goal, or NEVER where there is no entry
    start: Longs  # (G + 1,) offset of the first hop of each set
    hop: Ints  # (A,) hops of all sets, ascending within one; those of a set leave one switch

    @property
    def layers(self) -> int:
        """Layers that frames are in."""
        return int(self.class_layer.max(initial=0)) + 1


@dataclass(frozen=True, slots=True, eq=False)
class AllowedTurns:
    """Every turn that a routing allows, whether a path takes it or not: a graph of virtual channels.

    That graph without a cycle is the exact deadlock property of a routing by turns (Dally and Seitz 1987).
    """

    start: Longs  # (layers·C + 1,) offset of the first virtual channel that may follow each
    following: Ints  # (A,) virtual channels; those that follow v are `following[start[v]:start[v + 1]]`, ascending
    entry: Bools  # (layers·C,) True where a path may begin with that virtual channel


@dataclass(frozen=True, slots=True, eq=False)
class PairTrees:
    """Trees that together hold the path of every pair of switches with hosts, as a set of VLANs does."""

    links: Bools  # (T, L) links of each tree
    of_pair: Ints  # (E, E) tree that holds the path of each pair; 0 for a switch and itself


@dataclass(frozen=True, slots=True, eq=False)
class Routes:
    """A path for every ordered pair of hosts, as arrays.

    Three relations of Koibuchi et al. 2011, section 3.2, with Dally and Towles' names:
    `source_trees` (N×N→P, the paths of every source are one tree): `tree_channel[t, s]` is the channel by which
    tree t enters switch s, -1 at its root and where it does not go; `host_tree` is the tree of a host that sends.
    `destination_trees` (N×N→C, next hop from switch and destination): `tree_channel[t, s]` is the channel by which
    a frame to a host of tree t leaves switch s, -1 at its root; `host_tree` is the tree of a host that receives.
    `paths` (N×N→P, one by one, in one or more layers): `paths` holds them; the trees are empty.
    """

    relation: Literal["source_trees", "destination_trees", "paths"]  # `source_trees`, `destination_trees` or `paths`
    ends: Ints  # (E,) switches that have hosts, ascending
    tree_channel: Ints  # (T, S)
    tree_root: Ints  # (T,) the switch a tree starts from or ends at
    host_tree: Ints  # (H,)
    layers: int = 1  # number of layers; a virtual channel is `layer * C + channel`
    paths: Paths | None = None  # the explicit paths, or None
    backup: Paths | None = None  # a second path for pairs that have one, link-disjoint where possible, or None
    allowed: AllowedTurns | None = None  # all turns the routing allows, or None where it is no routing by turns
    # all next hops that switches may choose among, of which `paths` has one choice; None where there is one path a pair
    choices: NextHops | None = None
    trees: PairTrees | None = None  # trees that the paths were chosen in; None where they were not
    notes: tuple[str, ...] = ()  # choices that were made for the user, one sentence each


@dataclass(frozen=True, slots=True, eq=False)
class Entries:
    """Static MAC entries of global VLANs, one a row."""

    vlan: Ints  # (N,) index into vlan_ids
    switch: Ints  # (N,) switch that holds it
    host: Ints  # (N,) host whose MAC address it is
    port: Ints  # (N,) port it points to


@dataclass(frozen=True, slots=True, eq=False)
class VlanPlan:
    """Pure 802.1Q intent of VLANs known to the whole fabric (fixed assignment).

    Any switch with PVID, member sets and static MAC entries can carry it out. In a VLAN whose tagged links are a
    tree, the entry of a host at a switch follows from the tree; `entries` is then None and `entry_rule` gives the
    rule. A 64×64 torus has 500 million of them.
    """

    vlan_ids: Ints  # (V,) 802.1Q VLAN identifiers, 1..4094
    pvid: Ints  # (H,) index into vlan_ids: the PVID of each host's port
    tagged_links: Bools  # (V, L) True where both ends of a link are tagged members of the VLAN
    # (V, H) True where a host's port is an untagged member of the VLAN; (V, 1) for all hosts alike
    untagged_hosts: Bools
    # which entries a switch holds: those a path `used`, `all` of its VLANs, or those that are `listed`
    entry_rule: Literal["used", "all", "listed"]
    entries: Entries | None = None  # the listed ones, else None

    @property
    def vlan_count(self) -> int:
        """V."""
        return len(self.vlan_ids)

    @property
    def tagged_trunks(self) -> bool:
        """Whether frames between switches carry a VLAN tag."""
        return True

    @property
    def member_hosts(self) -> Bools:
        """(V, H) True where a host's port is a member of the VLAN, tagged or untagged; (V, 1) for all hosts alike."""
        return self.untagged_hosts

    def vlan_between(self, source: int, destination: int) -> int:
        """Index of the VLAN that frames of a host for another are in."""
        del destination
        return int(self.pvid[source])

    def host_tag(self, source: int, destination: int) -> int | None:
        """Identifier of the tag that a host itself puts on its frames for another; None = it sends untagged ones."""
        del source, destination
        return None

    def takes_tags(self, host: int) -> bool:
        """Whether frames for a host leave its switch with their tag."""
        del host
        return False

    def sending_hosts(self, vlan: int) -> Bools:
        """(H,) True for hosts that send in a VLAN, by its index."""
        return np.asarray(self.pvid == vlan, dtype=bool)

    def senders(self, topology: Topology) -> Bools:
        """(V, S) True where a host of a switch sends in a VLAN."""
        sends = np.zeros((self.vlan_count, topology.switch_count), dtype=bool)
        sends[self.pvid, topology.host_switch] = True
        return sends


@dataclass(frozen=True, slots=True, eq=False)
class HostTaggedPlan(VlanPlan):
    """VLANs of the whole fabric among which hosts choose: each has an 802.1Q interface in every VLAN.

    A host sends to another one by the interface of the VLAN that holds their path (Kudoh et al. 2004; Koibuchi et al.
    2011, section 2). Its switch's port is a tagged member of all VLANs and takes no untagged frame. Hosts that do not
    tag hang on ports with a PVID, as in a VlanPlan. What `pvid` says of a host that tags is the VLAN that it sends in
    to most others; its port has no PVID.
    """

    pair_vlan: Ints = field(kw_only=True)  # (H, H) index into vlan_ids, by source and destination
    tagged_hosts: Bools = field(kw_only=True)  # (V, H) True where a host's port is a tagged member of the VLAN

    @property
    def tagging(self) -> Bools:
        """(H,) True for hosts that tag their frames."""
        return np.asarray(self.tagged_hosts.any(axis=0), dtype=bool)

    @property
    def member_hosts(self) -> Bools:
        """(V, H) True where a host's port is a member of the VLAN, tagged or untagged."""
        return np.asarray(self.untagged_hosts | self.tagged_hosts, dtype=bool)

    def vlan_between(self, source: int, destination: int) -> int:
        """Index of the VLAN that frames of a host for another are in."""
        return int(self.pair_vlan[source, destination])

    def host_tag(self, source: int, destination: int) -> int | None:
        """Identifier of the tag that a host itself puts on its frames for another; None = it sends untagged ones."""
        if not self.takes_tags(source):
            return None
        return int(self.vlan_ids[self.pair_vlan[source, destination]])

    def takes_tags(self, host: int) -> bool:
        """Whether frames for a host leave its switch with their tag."""
        return bool(self.tagged_hosts[:, host].any())

    def sending_hosts(self, vlan: int) -> Bools:
        """(H,) True for hosts that send in a VLAN, by its index."""
        others = ~np.eye(len(self.pair_vlan), dtype=bool)
        return np.asarray(((self.pair_vlan == vlan) & others).any(axis=1), dtype=bool)

    def senders(self, topology: Topology) -> Bools:
        """(V, S) True where a host of a switch sends in a VLAN."""
        sends = np.zeros((self.vlan_count, topology.switch_count), dtype=bool)
        source, end = (~np.eye(topology.host_count, dtype=bool)).nonzero()
        sends[self.pair_vlan[source, end], topology.host_switch[source]] = True
        return sends


@dataclass(frozen=True, slots=True, eq=False)
class LearningPlan(VlanPlan):
    """VLANs of the whole fabric whose switches learn addresses by themselves, each VLAN for itself.

    There are no static entries: `entry_rule` is `all`, which is what switches know when each host has sent a
    broadcast in every VLAN (Koibuchi et al. 2011, section 3.3). Until then frames are flooded in their VLAN's tree.
    """

    ageing: int = 0  # s after which a switch forgets an address that has sent it nothing in a VLAN; 0 = never


@dataclass(frozen=True, slots=True, eq=False)
class LocalPlan:
    """Forwarding by the port of arrival: VLANs that mean something inside one switch only, or in-port and priority.

    `renamed` and `static` (Koibuchi et al. 2011, section 3.2.2): frames are untagged on every link, the PVID of the
    port of arrival is their VLAN inside the switch, all member ports are untagged ones. `static` has one VLAN a
    switch. `openflow`: frames carry their layer as 802.1Q priority in the tag of one VLAN, and a switch decides by
    in-port, priority and destination; each such pair of in-port and priority is a class of its own. `model`: there are
    no tables at all, and only what follows the routes themselves can use the plan.

    V counts all classes of all switches, K destination keys (see `host_key`). Broadcasts do not follow the classes:
    they go along a tree of their own, or nowhere.
    """

    kind: Literal["renamed", "static", "openflow", "model"]
    vlan_switch: Ints  # (V,) switch of each local VLAN
    vlan_id: Ints  # (V,) its identifier inside the switch; for `openflow` the one all frames carry
    host_vlan: Ints  # (H,) local VLAN of frames that a host sends
    channel_vlan: Ints  # (layers·C,) local VLAN of frames that arrive by a virtual channel; -1 where none ever does
    host_key: Ints  # (H,) destination key of each host; hosts of one key share their entries
    entry_vlan: Ints  # (N,) local VLAN of each forwarding entry
    entry_key: Ints  # (N,) destination key it is for
    entry_hop: Ints  # (N,) virtual channel to send by, or -1: the destination hangs on this switch
    member_start: Longs  # (V + 1,) offset of the first member port of each local VLAN; `openflow` has no members
    member_port: Ints  # (M,) untagged member ports, ascending within a VLAN
    flood_links: Bools | None  # (L,) links of the tree that carries broadcasts; None where they are dropped

    @property
    def class_count(self) -> int:
        """V."""
        return len(self.vlan_switch)

    @property
    def tagged_trunks(self) -> bool:
        """Whether frames between switches carry a VLAN tag."""
        return self.kind == "openflow"

    def host_tag(self, source: int, destination: int) -> int | None:
        """Identifier of the tag that a host itself puts on its frames for another: None, for hosts here do not tag."""
        del source, destination
        return None

    def takes_tags(self, host: int) -> bool:
        """Whether frames for a host leave its switch with their tag."""
        del host
        return False


@dataclass(frozen=True, slots=True)
class Rule:
    """One OpenFlow 1.3 rule, free of any library's types."""

    switch: int  # switch number
    table: int  # table number
    priority: int  # higher wins
    # (field, value) pairs; fields are `bundle` (chosen by an earlier rule), `in_port`, `dl_vlan` (-1 = untagged),
    # `dl_vlan_pcp`, `dl_src` and `dl_dst`, addresses perhaps with a mask behind a slash
    match: tuple[tuple[str, int | str], ...]
    # (action, value) pairs; actions are `push_vlan`, `set_pcp`, `pop_vlan`, `output`, `goto_table`, `resubmit`
    # (to a table), and for link aggregation `set_in_port`, `set_bundle` and `group`
    actions: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class Group:
    """A select group: a frame leaves by one of several ports, chosen by a hash of its addresses."""

    switch: int  # switch number
    number: int  # OpenFlow group number
    ports: tuple[int, ...]  # the ports, one a bucket; a bucket whose port is down is passed over
    numbers: tuple[int, ...] = ()  # of the buckets, by which frames are hashed; none = from 0 on


@dataclass(frozen=True, slots=True)
class SwitchModel:
    """Limits of a switch that can be bought."""

    name: str  # as printed on it
    ports: int  # number of ports
    max_vlans: int  # VLANs that can be configured
    mac_table: int  # MAC table entries


@dataclass(frozen=True, slots=True)
class Violation:
    """An invariant that does not hold."""

    invariant: str  # its short name
    sentence: str  # what is wrong
    witness: tuple[str, ...] = ()  # the cycle, the lost pair, the port


@dataclass(frozen=True, slots=True)
class Sample:
    """One measured figure. Results are tables of these."""

    metric: str  # what was measured, such as `goodput`
    value: float  # the figure, in `unit`
    unit: str  # an SI unit, `ratio`, or empty for a count
    labels: Mapping[str, str] = field(default_factory=dict)  # what it belongs to, such as workload, src, dst, repeat
    # what the plan predicts for it, in the same unit, or None where there is no prediction
    predicted: float | None = None
