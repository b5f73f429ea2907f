"""A VLAN-filtering bridge as its configuration leaves it, and frames that follow the rules of IEEE 802.1Q through some.

The walk is written from the standard. It is a second opinion on a plan: it shares nothing with the OpenFlow pipeline or
its oracle. References are to IEEE 802.1Q-2018. A bridge does, in this order:

1. Classify (6.9.1): a frame with a VID other than 0 belongs to that VLAN, any other to the port's PVID; a port without
   a PVID drops it.
2. Filter at ingress (8.6.2): the port must be in the member set of the VLAN.
3. Look up (8.6.3, 8.8): the entry of VLAN and destination address, each VLAN with addresses of its own (independent
   learning); without an entry, and for group addresses, all ports.
4. Send (8.6.1, 8.6.2, 8.8.10): by those ports in the member set, never by the port of arrival.
5. Untag (8.6.2, 6.9.2): without a tag where the port is in the untagged set of the VLAN.

Of Linux's own it knows the flags that keep floods from a port (bridge(8): flood, mcast_flood, bcast_flood); a known
unicast frame is no flood. Nothing is learned: a bridge whose ports learn is a difference that the comparison reports.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Set
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from typing import Literal

from testbed.base.errors import Problem
from testbed.devices.stp_settings import StpSettings

Entry = tuple[int, str]  # VLAN, MAC address


@dataclass(frozen=True, slots=True)
class BridgePort:
    """One port of a bridge."""

    pvid: int | None = None  # VLAN of untagged frames that arrive; None = they are dropped
    members: Set[int] = frozenset()  # VLANs whose frames may pass
    untagged: Set[int] = frozenset()  # those whose frames leave without a tag
    learning: bool = True  # whether source addresses are learned here
    flood: bool = True  # whether unknown unicast frames leave by it
    bcast_flood: bool = True  # whether broadcasts do
    mcast_flood: bool = True  # whether multicasts do
    filters: bool = True  # whether frames of VLANs that the port is not a member of are dropped as they arrive


@dataclass(frozen=True, slots=True)
class Dtp:
    """How a port negotiates by Cisco's Dynamic Trunking Protocol whether it is a trunk."""

    mode: Literal["trunk", "auto", "desirable"]
    trunk: BridgePort  # what it is as a trunk
    domain: str = ""  # VTP domain, which both ends must share; empty where none is said
    defaults: tuple[str, ...] = ()  # keys of DEFAULTS that it relies on as a trunk


@dataclass(frozen=True, slots=True)
class Unmentioned:
    """What a port is that a configuration does not mention."""

    port: BridgePort
    default: str  # key of DEFAULTS
    dtp: Dtp | None = None  # None where it does not negotiate


@dataclass(frozen=True, slots=True)
class Reading:
    """What a reader knows of a configuration besides the settings that it came to."""

    down: Mapping[str, str] = field(default_factory=dict)  # port → why it carries nothing
    unclear: tuple[Problem, ...] = ()  # lines that may decide where frames go, and are not understood
    origins: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # port → lines that its settings came from
    defaults: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # port → keys of DEFAULTS that it relies on
    silent: Set[str] = frozenset()  # ports of whose VLANs nothing is said
    inside: Set[str] = frozenset()  # of these, those that no cable can be plugged into
    passed: Mapping[str, int] = field(default_factory=dict)  # settings that move no frame → number of lines
    addresses: Mapping[str, str] = field(default_factory=dict)  # a port's own MAC address → the port
    dtp: Mapping[str, Dtp] = field(default_factory=dict)  # port → how it negotiates; others do not
    unmentioned: Unmentioned | None = None  # None where such a port is no part of the bridge
    blocked: Mapping[str, BridgePort] = field(default_factory=dict)  # port that STP has blocked → its settings
    shows_states: bool = False  # whether ports that the spanning tree protocol blocks are among those down
    spanning_tree: StpSettings | None = None  # what is said of the protocol; None where that is not read


@dataclass(frozen=True, slots=True)
class Bridge:
    """One bridge."""

    name: str  # of the switch it represents
    vlan_filtering: bool  # whether it looks at VLANs at all
    stp: bool  # whether it runs the spanning tree protocol
    ports: Mapping[str, BridgePort]  # by name
    fdb: Mapping[Entry, str]  # static entries, (VLAN, MAC address) → port
    channels: Mapping[str, str] = field(default_factory=dict)  # port → the port channel it is part of, one of `ports`
    without_stp: Set[int] = frozenset()  # VLANs in which the spanning tree protocol is off although it runs
    reading: Reading = field(default_factory=Reading, compare=False)


IN_NO_VLAN = "is in no VLAN"  # why a port of a bridge that filters VLANs carries nothing
BROADCAST = "ff:ff:ff:ff:ff:ff"
NO_TAG = 0
Place = tuple[str, str]  # switch, port


@dataclass(frozen=True, slots=True)
class Wiring:
    """What is plugged in where."""

    cables: Mapping[Place, Place]  # port → port at the other end, both ways
    hosts: Mapping[str, Place]  # host → its port


@dataclass(frozen=True, slots=True)
class Walk:
    """What became of one frame."""

    received: dict[str, int]  # host → untagged copies it got
    tagged: dict[str, int]  # host → copies it got with a tag, which it does not understand unless it tags itself
    # ports between switches that sent a copy → number of copies; for a unicast frame in the order of its path
    sent: dict[Place, int]
    endless: bool  # whether copies circulate forever; the numbers are then those of one round


# A copy on its way into a switch: the port it arrives by, and its tag.
_Copy = tuple[Place, int]


class Walker:
    """Bridges and the cables between them.

    What a switch does with an arrival is remembered until another destination is asked for, so walk all sources to
    one destination before the next.
    """

    def __init__(self, bridges: Mapping[str, Bridge], wiring: Wiring) -> None:
        self._bridges = bridges
        self._wiring = wiring
        self._host_at = {place: host for host, place in wiring.hosts.items()}
        self._destination = ""
        self._onward: dict[_Copy, list[tuple[Place, int]]] = {}

    def egress_ports(self, switch: str, port: str, tag: int, destination: str) -> list[tuple[str, int]]:
        """Ports by which a frame leaves a switch, each with the tag it carries then.

        `tag` is a VID, or NO_TAG; `destination` a MAC address.
        """
        bridge = self._bridges.get(switch)
        arrival = bridge.ports.get(port) if bridge is not None else None
        if bridge is None or arrival is None:
            return []
        vlan = tag or arrival.pvid
        if not bridge.vlan_filtering or vlan is None or (arrival.filters and vlan not in arrival.members):
            return []
        group = int(destination[:2], 16) & 1
        registered = None if group else bridge.fdb.get((vlan, destination))
        found = []
        for name, to in bridge.ports.items() if registered is None else [(registered, bridge.ports.get(registered))]:
            if to is None or name == port or vlan not in to.members:
                continue
            sends = to.flood if not group else to.bcast_flood if destination == BROADCAST else to.mcast_flood
            if registered is None and not sends:
                continue
            found.append((name, NO_TAG if vlan in to.untagged else vlan))
        return found

    def walk(self, source: str, destination: str, tag: int = NO_TAG) -> Walk:
        """Let a host send one frame, untagged or with a tag of its own, and follow every copy.

        Copies that arrive alike go on alike, so they are followed once and counted. They circulate forever exactly
        where that graph of arrivals has a cycle.

        `destination` is a MAC address.
        """
        if destination != self._destination:
            self._destination, self._onward = destination, {}
        start: _Copy = (self._wiring.hosts[source], tag)
        return self._follow_unicast(start) or self._all_copies(start)

    def _goes_on(self, copy: _Copy) -> list[tuple[Place, int]]:
        """Ports by which an arrival leaves its switch, each with the tag."""
        if copy not in self._onward:
            (switch, port), tag = copy
            out = self.egress_ports(switch, port, tag, self._destination)
            self._onward[copy] = [((switch, name), left) for name, left in out]
        return self._onward[copy]

    def _follow_unicast(self, copy: _Copy) -> Walk | None:
        """The walk of a frame that never becomes two or none and reaches a host; else None."""
        sent: dict[Place, int] = {}
        while True:
            out = self._goes_on(copy)
            if len(out) != 1:
                return None
            place, tag = out[0]
            following = self._wiring.cables.get(place)
            if following is None:
                host = self._host_at.get(place)
                if host is None:
                    return None
                return Walk({host: 1}, {}, sent, endless=False) if tag == NO_TAG else Walk({}, {host: 1}, sent, False)
            if place in sent:
                return None
            sent[place] = 1
            copy = following, tag

    def _all_copies(self, start: _Copy) -> Walk:
        onward: dict[_Copy, list[tuple[Place, int]]] = {}
        waiting = [start]
        while waiting:
            copy = waiting.pop()
            if copy in onward:
                continue
            onward[copy] = self._goes_on(copy)
            waiting += [
                (self._wiring.cables[place], left) for place, left in onward[copy] if place in self._wiring.cables
            ]
        order, endless = self._order(onward)
        copies: dict[_Copy, int] = defaultdict(int, {start: 1})
        received: dict[str, int] = defaultdict(int)
        tagged: dict[str, int] = defaultdict(int)
        sent: dict[Place, int] = defaultdict(int)
        for copy in order:
            for place, tag in onward[copy]:
                count = 1 if endless else copies[copy]
                if place in self._wiring.cables:
                    sent[place] += count
                    copies[self._wiring.cables[place], tag] += count
                elif place in self._host_at:
                    (received if tag == NO_TAG else tagged)[self._host_at[place]] += count
        return Walk(dict(received), dict(tagged), dict(sent), endless)

    def _order(self, onward: dict[_Copy, list[tuple[Place, int]]]) -> tuple[list[_Copy], bool]:
        """Arrivals in topological order; in any order where there is a cycle."""
        before: dict[_Copy, set[_Copy]] = {copy: set() for copy in onward}
        for copy, out in onward.items():
            for place, tag in out:
                if place in self._wiring.cables:
                    before[self._wiring.cables[place], tag].add(copy)
        try:
            return list(TopologicalSorter(before).static_order()), False
        except CycleError:
            return list(onward), True
