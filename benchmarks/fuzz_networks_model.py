"""Frames through switches by IEEE 802.1Q, written for `make fuzz` alone: it shares no code with what it judges."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

KINDS = ("broadcast", "multicast", "unknown unicast")
Place = tuple[int, int]  # switch and port, by their numbers
State = tuple[int, int, int]  # where a frame has arrived, and its VLAN


@dataclass
class Port:
    """What a port does, whatever made it so.

    Attributes:
        up: whether it carries anything.
        pvid: VLAN of untagged frames, 0 where they are dropped.
        members: VLANs that may pass.
        untagged: those that leave without a tag.
        filters: whether frames of other VLANs are dropped as they arrive.
        stops: kinds of flooded frames that do not leave by it.
    """

    up: bool = True
    pvid: int = 0
    members: set[int] = field(default_factory=set)
    untagged: set[int] = field(default_factory=set)
    filters: bool = True
    stops: set[str] = field(default_factory=set)


@dataclass
class Net:
    """A network.

    Attributes:
        ports: every port that leads somewhere.
        cables: port → port at the other end, both ways.
        hosts: name → port.
        entries: (switch, VLAN, host) → port that frames for it leave by.
        vlans: those that are looked at.
    """

    ports: dict[Place, Port]
    cables: dict[Place, Place]
    hosts: dict[str, Place]
    entries: dict[tuple[int, int, str], int]
    vlans: tuple[int, ...]

    def arrival(self, place: Place, tag: int) -> int:
        """VLAN of a frame that arrives by a port, 0 where it is dropped."""
        port = self.ports[place]
        vlan = tag or port.pvid
        return vlan if port.up and vlan and (vlan in port.members or not port.filters) else 0

    def onward(self, state: State, kind: str, to: str = "") -> Iterator[tuple[Place, int]]:
        """Ports by which a frame leaves the switch that it has come to, with its tag; `to` a host or to nobody."""
        switch, port, vlan = state
        known = self.entries.get((switch, vlan, to)) if to else None
        for (there, number), out in self.ports.items():
            if there != switch or number == port or not out.up or vlan not in out.members:
                continue
            if number == known or (known is None and kind not in out.stops):
                yield (there, number), 0 if vlan in out.untagged else vlan

    def loops(self, kind: str) -> set[int]:
        """VLANs in which a frame of a kind that has come in somehow can come back to where it was."""
        after: dict[State, list[State]] = {}
        for place in self.cables:
            for vlan in self.vlans:
                if self.arrival(place, vlan):
                    state = (*place, vlan)
                    after[state] = []
                    for out, tag in self.onward(state, kind):
                        peer = self.cables.get(out)
                        there = self.arrival(peer, tag) if peer else 0
                        if peer and there:
                            after[state].append((*peer, there))
        return {state[2] for state in after if self._comes_back(state, after)}

    @staticmethod
    def _comes_back(state: State, after: dict[State, list[State]]) -> bool:
        seen: set[State] = set()
        waiting = list(after[state])
        while waiting:
            one = waiting.pop()
            if one == state:
                return True
            if one not in seen:
                seen.add(one)
                waiting += after.get(one, [])
        return False

    def copies(self, source: str, kind: str, to: str = "") -> Counter[str] | None:
        """Untagged copies that each host gets of a frame of one, None where it never ends."""
        place = self.hosts[source]
        vlan = self.arrival(place, 0)
        if not vlan:
            return Counter()
        host_at = {port: host for host, port in self.hosts.items()}
        known: dict[State, Counter[str]] = {}
        under_way: set[State] = set()

        def follow(state: State) -> bool:
            """Fill `known`; False where the frame comes back."""
            if state in known:
                return True
            if state in under_way:
                return False
            under_way.add(state)
            got: Counter[str] = Counter()
            for out, tag in self.onward(state, kind, to):
                peer = self.cables.get(out)
                if peer is None:
                    if out in host_at and not tag:
                        got[host_at[out]] += 1
                    continue
                there = self.arrival(peer, tag)
                if there:
                    following = (*peer, there)
                    if not follow(following):
                        return False
                    got += known[following]
            under_way.discard(state)
            known[state] = got
            return True

        first = (*place, vlan)
        return known[first] if follow(first) else None

    def meant(self, one: str, other: str) -> bool:
        """Whether two hosts are meant to reach each other: their ports leave a VLAN in common untagged."""
        first, second = (self.ports[self.hosts[name]] for name in (one, other))
        if not (first.up and second.up):
            return False
        both = [port.untagged | ({port.pvid} if port.pvid else set()) for port in (first, second)]
        return bool(both[0] & both[1])
