"""Which switches run the spanning tree protocol together, and which cables their BPDUs take."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from testbed.devices.bridge import Bridge, BridgePort, Place
from testbed.devices.stp_settings import ANY, StpSettings, cost_by_speed, speed_of
from testbed.devices.vlan_set import ALL_VLANS, VlanSet, as_row, from_numbers

_FLAGS = ("flood", "bcast_flood", "mcast_flood", "filters")


class Segments:
    """Ports that hear each other, as sets that grow together."""

    def __init__(self) -> None:
        self._parent: dict[Place, Place] = {}

    def join(self, *places: Place) -> None:
        """These ports hear each other."""
        for place in places:
            self._parent.setdefault(place, place)
            self._parent[self._find(place)] = self._find(places[0])

    def _find(self, place: Place) -> Place:
        while self._parent[place] != place:
            self._parent[place] = self._parent[self._parent[place]]
            place = self._parent[place]
        return place

    def list_places(self) -> list[tuple[Place, int]]:
        """Each port, and the number of its segment."""
        numbers: dict[Place, int] = {}
        return [(place, numbers.setdefault(self._find(place), len(numbers))) for place in self._parent]


def find_core(ports: Sequence[tuple[Place, int]]) -> set[Place]:
    """Ports of the circles of a network and of what joins them: all but those of branches, which no tree can block."""
    left = set(ports)
    while True:
        on: dict[object, int] = defaultdict(int)
        for (switch, _), segment in left:
            on[switch] += 1
            on[segment] += 1
        loose = {one for one in left if on[one[0][0]] == 1 or on[one[1]] == 1}
        if not loose:
            return {place for place, _ in left}
        left -= loose


@dataclass(slots=True)
class Links:
    """Cables, and who runs what."""

    bridges: Mapping[str, Bridge]
    cables: list[tuple[Place, Place]]  # each once, without those that the protocol has shut
    computed: dict[str, StpSettings]  # switch → its settings, of those whose trees are computed
    uncomputed: set[str] = field(default_factory=set)
    down: dict[Place, str] = field(default_factory=dict)
    inconsistent: dict[Place, VlanSet] = field(default_factory=dict)  # native VLANs that PVST+ blocks
    doubts: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    unclear: list[str] = field(default_factory=list)
    members: dict[str, list[str]] = field(default_factory=dict)  # switch:channel → its ports
    mixed: set[str] = field(default_factory=set)  # switches that hear others whose protocol is another kind
    _peers: dict[Place, Place] = field(default_factory=dict)

    def port(self, place: Place) -> BridgePort | None:
        """Settings of a port."""
        return self.bridges[place[0]].ports.get(place[1])

    def carries(self, place: Place, vlan: int) -> bool:
        """Whether a port is in a VLAN."""
        port = self.port(place)
        return port is not None and vlan in port.members

    def runs_pvst_in(self, name: str, vlan: int) -> bool:
        """Whether a switch has a tree of a VLAN."""
        settings = self.computed.get(name)
        return settings is not None and settings.protocol == "pvst" and vlan not in self.bridges[name].without_stp

    def ignores_bpdus(self, place: Place) -> bool:
        """Whether a port neither sends nor hears BPDUs."""
        settings = self.computed.get(place[0])
        return settings is None or settings.port(place[1]).filters is True

    def is_edge(self, place: Place) -> bool:
        """Whether a port takes itself for one that leads to hosts."""
        settings = self.computed[place[0]]
        edge = settings.port(place[1]).edge
        port = self.port(place)
        access = port is not None and len(port.members) < 2
        return settings.edges and access if edge is None else edge

    def cost_of(self, place: Place, tree: int) -> int | None:
        """Path cost of a port; None where nothing tells its speed."""
        switch, name = place
        said = self.computed[switch].port(name)
        cost = said.costs.get(tree, said.costs.get(ANY))
        if cost is not None:
            return cost
        settings = self.computed[switch]
        long = True if settings.protocol == "mstp" and settings.long_costs is not None else settings.long_costs
        if long is None:
            return None
        ends = [self._speed(one) for one in (place, self.peer(place)) if one is not None]
        known = [speed for speed in ends if speed]
        return cost_by_speed(min(known), long=long) if known else None

    def peer(self, place: Place) -> Place | None:
        """The other end of a port's cable."""
        if not self._peers:
            self._peers = {**dict(self.cables), **{other: one for one, other in self.cables}}
        return self._peers.get(place)

    def joins(self, one: Place, other: Place, vlan: int) -> bool:
        """Whether a cable carries BPDUs of a VLAN: both ends are in it, and tag it alike."""
        ports = [self.port(place) for place in (one, other)]
        if vlan in self.inconsistent.get(one, ()) or any(port is None or vlan not in port.members for port in ports):
            return False
        return len({port is not None and vlan in port.untagged for port in ports}) == 1

    def _speed(self, place: Place) -> int | None:
        switch, name = place
        settings = self.computed.get(switch)
        parts = self.members.get(f"{switch}:{name}", [name])
        speeds = [(settings.port(one).mbits if settings else None) or speed_of(one) for one in parts]
        known = [one for one in speeds if one]
        if not known:
            return None
        return sum(known) if settings is None or settings.adds_speeds else min(known)

    def kind_of(self, place: Place, vlans: VlanSet) -> tuple[object, ...] | None:
        """What of some VLANs a port and its cable carry; None where a VLAN becomes another."""
        peer = self.peer(place)
        port, other = self.port(place), self.port(peer) if peer else None
        if port is None or other is None:
            return (0,)
        tags = [VlanSet.from_ids(one.untagged) & vlans for one in (port, other)]
        if tags[0].bits != tags[1].bits or any(one.pvid not in (None, *one.untagged) for one in (port, other)):
            return None
        if any(untagged and one.pvid not in untagged for one, untagged in zip((port, other), tags, strict=True)):
            return None
        both = VlanSet.from_ids(port.members) & VlanSet.from_ids(other.members) & vlans
        flags = tuple(getattr(one, flag) for one in (port, other) for flag in _FLAGS)
        return (both.bits, flags if not all(flags) else ())

    def list_untagged_groups(self, bridge: Bridge) -> Iterator[list[str]]:
        """Ports of a switch among which frames without a tag pass."""
        if not bridge.vlan_filtering:
            yield list(bridge.ports)
            return
        groups: dict[int, list[str]] = defaultdict(list)
        for name, port in bridge.ports.items():
            if port.pvid is not None and port.pvid in port.untagged:
                groups[port.pvid].append(name)
        yield from groups.values()

    def group_vlans(self) -> list[VlanSet]:
        """VLANs of PVST+ by how all switches treat them."""
        names = [name for name, settings in self.computed.items() if settings.protocol == "pvst"]
        used, sets = VlanSet(), set[int]()
        places = {place for cable in self.cables for place in cable}
        for switch, port in places:
            said = self.bridges[switch].ports.get(port)
            if said is not None:
                members = VlanSet.from_ids(said.members)
                sets |= {members.bits, VlanSet.from_ids(said.untagged).bits}
                used |= members if switch in names else VlanSet()
        for name in names:
            settings = self.computed[name]
            sets.add(VlanSet.from_ids(self.bridges[name].without_stp).bits)
            said_of = [
                settings.priorities,
                *(one for port in settings.ports.values() for one in (port.costs, port.priorities)),
            ]
            for said_by_tree in said_of:
                by_value: dict[int, int] = defaultdict(int)
                for tree, value in said_by_tree.items():
                    by_value[value] |= 1 << tree if tree > 0 else 0
                sets |= set(by_value.values())
        sets |= {VlanSet.from_ids({vlan}).bits for bridge in self.bridges.values() for vlan, _ in bridge.fdb}
        return split_vlans(used & ALL_VLANS, [VlanSet(bits) for bits in sets])


def split_vlans(used: VlanSet, sets: Sequence[VlanSet]) -> list[VlanSet]:
    """VLANs by which of some sets they are in."""
    several = np.flatnonzero(as_row(used))
    if not len(several) or not sets:
        return [used] if used else []
    columns = np.packbits(np.stack([as_row(one)[several] for one in sets], axis=1), axis=1)
    keys = np.ascontiguousarray(columns).view(np.dtype((np.void, columns.shape[1])))[:, 0]
    _, group = np.unique(keys, return_inverse=True)
    return [from_numbers(several[group == number]) for number in range(int(group.max()) + 1)]


def is_connected(bridge: Bridge, port: str) -> bool:
    """Whether a port is up, though it may be in no VLAN."""
    return port in bridge.ports or bridge.reading.down.get(port, "").startswith("is in ")


def gather_links(bridges: Mapping[str, Bridge], cables: Mapping[Place, Place]) -> Links:
    """Find out who runs the protocol with whom."""
    up = [
        (one, other)
        for one, other in cables.items()
        if one < other and all(is_connected(bridges[place[0]], place[1]) for place in (one, other))
    ]
    known = {
        name: bridge.reading.spanning_tree
        for name, bridge in bridges.items()
        if bridge.stp and bridge.reading.spanning_tree is not None and not bridge.reading.shows_states
    }
    links = Links(bridges, up, known)
    for name, bridge in bridges.items():
        for port, channel in bridge.channels.items():
            links.members.setdefault(f"{name}:{channel}", []).append(port)
    links.uncomputed = {name for name, one in bridges.items() if one.stp and name not in known}
    _leave_out_mixed(links)
    _shut_guarded(links)
    _find_filters(links)
    _find_inconsistent(links)
    return links


def _leave_out_mixed(links: Links) -> None:
    """Do not compute where switches of PVST+ and of others, or of unknown settings, are on one circle of cables."""
    core = find_core([(place, number) for number, cable in enumerate(links.cables) for place in cable])
    part = Segments()
    for one, other in links.cables:
        part.join((one[0], ""), (other[0], ""))
    of = dict(part.list_places())
    inside: dict[int, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for name in dict.fromkeys(place[0] for place in sorted(core)):
        settings = links.computed.get(name)
        if settings is not None:
            inside[of[name, ""]]["PVST+" if settings.protocol == "pvst" else "RSTP or MSTP"].append(name)
        elif name in links.uncomputed:
            inside[of[name, ""]]["settings that are not read"].append(name)
    everywhere: dict[int, set[object]] = defaultdict(set)
    for (name, _), number in part.list_places():
        settings = links.computed.get(name)
        if settings is not None or name in links.uncomputed:
            everywhere[number].add(settings.protocol == "pvst" if settings is not None else "unknown")
    links.mixed = {name for (name, _), number in part.list_places() if len(everywhere[number]) > 1}
    for number, families in inside.items():
        if len(families) < 2:
            continue
        told = " and ".join(f"{names[0]}{' …' * (len(names) > 1)} ({family})" for family, names in families.items())
        links.unclear.append(
            f"the spanning tree protocols of {told} meet on a circle of cables, and what they block together is not "
            "computed; it is followed as if nothing were blocked"
        )
        for (name, _), there in part.list_places():
            if there != number:
                continue
            if links.computed.pop(name, None) is not None:
                links.uncomputed.add(name)
    # A switch of another kind on a branch blocks nothing; those that stay are computed without it.
    links.uncomputed -= {name for name in links.uncomputed if name not in {place[0] for place in core}}


def _shut_guarded(links: Links) -> None:
    """BPDU guard shuts a port that hears a BPDU."""
    left = []
    for cable in links.cables:
        shut = []
        for here, there in (cable, cable[::-1]):
            settings = links.computed.get(here[0])
            if settings is None or links.ignores_bpdus(here) or there[0] not in links.computed:
                continue
            said = settings.port(here[1]).guards
            guards = settings.guards_edges and links.is_edge(here) if said is None else said
            if guards and not links.ignores_bpdus(there) and _speak_together(links, here, there):
                shut.append((here, there))
        for here, there in shut:
            links.down[here] = f"is shut by its BPDU guard, since it hears {there[0]}"
            links.doubts.append(
                f"BPDU guard shuts {' '.join(here)}, since it hears the BPDUs of {there[0]}; take it, and portfast, "
                "from ports between switches"
            )
        if not shut:
            left.append(cable)
        else:
            for place in cable:
                links.down.setdefault(place, f"has no link, since {' '.join(shut[0][0])} is shut by its BPDU guard")
    links.cables = left


def _speak_together(links: Links, here: Place, there: Place) -> bool:
    """Whether BPDUs of one switch reach the other: PVST+ sends them in VLANs, the others without."""
    if links.computed[there[0]].protocol != "pvst":
        return True
    port = links.port(there)
    return port is not None and any(links.runs_pvst_in(there[0], vlan) for vlan in port.members)


def _find_filters(links: Links) -> None:
    for cable in links.cables:
        filtering = [place for place in cable if place[0] in links.computed and links.ignores_bpdus(place)]
        if filtering and all(place[0] in links.computed for place in cable):
            links.doubts.append(
                f"{' and '.join(' '.join(place) for place in filtering)}: BPDU filter hides the cable from "
                f"{cable[0][0]} to {cable[1][0]} from the spanning tree protocol, so it blocks nothing there; take it "
                "from ports between switches"
            )
        edges = [
            place for place in cable
            if place[0] in links.computed and place not in filtering and links.computed[place[0]].port(place[1]).edge
        ]  # fmt: skip
        if edges and not filtering:
            links.notes.append(
                f"{' and '.join(' '.join(place) for place in edges)}: a port between switches is set as one to hosts "
                "(portfast, edge), so it forwards before the tree is known, and may loop for a moment"
            )


def _find_inconsistent(links: Links) -> None:
    """PVST+ blocks both native VLANs of a trunk whose ends do not agree on it."""
    for cable in links.cables:
        ports = [links.port(place) for place in cable]
        both = [place[0] for place in cable if getattr(links.computed.get(place[0]), "protocol", "") == "pvst"]
        natives = [port.pvid for port in ports if port is not None and port.pvid is not None]
        if len(both) < 2 or any(links.ignores_bpdus(place) for place in cable) or None in ports:
            continue
        if len(natives) == 1 and all(port is not None and natives[0] in port.members for port in ports):
            tagging = cable[[port is not None and port.pvid is None for port in ports].index(True)]
            links.unclear.append(
                f"{' '.join(tagging)} tags its native VLAN, {natives[0]}, and the other end does not; what PVST+ makes "
                "of it is not known"
            )
        if len(natives) < 2 or natives[0] == natives[1]:
            continue
        trunks = [port is not None and len(port.members) > 1 for port in ports]
        told = " and ".join(f"{' '.join(place)} ({native})" for place, native in zip(cable, natives, strict=True))
        if not all(trunks):
            links.unclear.append(
                f"{told} have different VLANs without a tag, and what PVST+ does of it at an access port is not known"
            )
            continue
        blocked = VlanSet.from_ids(natives)
        for place in cable:
            links.inconsistent[place] = blocked
        links.doubts.append(
            f"the native VLANs of {told} differ, so PVST+ blocks both VLANs there; give both ends the same one"
        )
