"""What else engineers ask of a network: what breaks without a link or a switch, and what changes from old to new."""

from __future__ import annotations

from collections.abc import Iterator, Set
from dataclasses import dataclass, replace

from testbed.base.errors import InputError, argument, did_you_mean
from testbed.devices.audit.assumptions import shorten_names
from testbed.devices.audit.cabling import port_in
from testbed.devices.audit.findings import Audit
from testbed.devices.audit.network import Network, network_of
from testbed.devices.bridge import Bridge, Place


@dataclass(frozen=True, slots=True)
class Change:
    """What differs between two audits."""

    lost: tuple[str, ...]  # pairs whose frames arrived before, and do not now; of hosts that are in both
    gained: tuple[str, ...]  # pairs whose frames arrive now, and did not before; likewise
    loops: tuple[int, ...]  # VLANs that loop now and did not
    loops_gone: tuple[int, ...]  # VLANs that looped and do not now
    new: tuple[str, ...]  # findings that were not there
    gone: tuple[str, ...]  # findings that are no more
    hosts: tuple[str, ...]  # those that are in one of both only
    vlans: tuple[int, ...]  # likewise

    def as_object(self) -> dict[str, object]:
        """With whole lists."""
        return {
            "lost": list(self.lost), "gained": list(self.gained),
            "loops": list(self.loops), "loops_gone": list(self.loops_gone),
            "new": list(self.new), "gone": list(self.gone), "hosts": list(self.hosts), "vlans": list(self.vlans),
        }  # fmt: skip


def compare_audits(old: Audit, new: Audit) -> Change:
    """What differs, by names of hosts and sentences of findings."""
    before, after = _arriving(old), _arriving(new)
    both = {*old.network.hosts} & {*new.network.hosts}
    lost, gained = (
        tuple(f"{a}→{b}" for a, b in sorted(one - other) if a in both and b in both)
        for one, other in ((before, after), (after, before))
    )
    looped, loops = {*old.looping_vlans}, {*new.looping_vlans}
    said, says = ({str(finding): None for finding in one.findings} for one in (old, new))
    return Change(
        lost, gained, tuple(sorted(loops - looped)), tuple(sorted(looped - loops)),
        tuple(one for one in says if one not in said), tuple(one for one in said if one not in says),
        tuple(sorted({*old.network.hosts} ^ {*new.network.hosts})),
        tuple(sorted({*old.network.vlans} ^ {*new.network.vlans})),
    )  # fmt: skip


def _arriving(found: Audit) -> set[tuple[str, str]]:
    hosts = found.network.hosts
    return {(hosts[a], hosts[b]) for a, b in zip(*(axis.tolist() for axis in found.arrives.nonzero()), strict=True)}


def require_known_states(network: Network, asked: str) -> None:
    """Refuse to take something away where the spanning tree protocol would then open ports that were saved as blocked.

    `asked`: the argument that asks for it.

    Raises:
        InputError: some switch runs it, and shows the ports as it had blocked them.
    """
    saved = [
        name
        for name, bridge in network.configured.items()
        if bridge.stp and bridge.reading.shows_states and bridge.reading.spanning_tree is None
    ]
    if saved:
        sentence = (
            f"the spanning tree protocol of {shorten_names(saved)} would open ports that are saved as blocked, and "
            "which ones is not computed; save the network in that state, or audit a network that does not run it"
        )
        raise InputError.one(argument(asked), sentence)


def list_links(network: Network) -> Iterator[Place]:
    """One end of each link between switches."""
    for port, peer in enumerate(network.peer.tolist()):
        if peer > port:
            yield network.places[port]


def find_place(network: Network, text: str) -> Place:
    """A port that a cable leads from, or a switch with no port named, of `s1:PORT` or `s1`.

    Raises:
        InputError: there is none.
    """
    switch, _, port = text.partition(":")
    if switch not in network.bridges:
        remedy = did_you_mean(switch, network.bridges)
        raise InputError.one(argument("without"), f'"{text}" names no switch; write s1 or s1:PORT.{remedy}')
    if not port:
        return switch, ""
    bridge = network.bridges[switch]
    name = port_in(bridge, port) or port
    place = (switch, bridge.channels.get(name, name))
    if place not in network.places:
        there = [name for other, name in network.places if other == switch]
        raise InputError.one(argument("without"), f"no cable of {switch} leads from {port}.{did_you_mean(port, there)}")
    return place


def take_away(network: Network, place: Place) -> Network:
    """The network without a cable, or without a switch and its hosts where the place names no port.

    Raises:
        InputError: nothing would be left to audit.
    """
    switch, port = place
    peers = network.peer.tolist()
    ends = {place}
    if port and peers[network.places.index(place)] >= 0:
        ends.add(network.places[peers[network.places.index(place)]])
    gone = _ports_of(network, switch) if not port else ends
    cables = {
        one: network.places[peer]
        for one, peer in zip(network.places, peers, strict=True)
        if peer >= 0 and one not in gone and network.places[peer] not in gone
    }
    hosts = {
        host: network.places[at]
        for host, at in zip(network.hosts, network.host_port.tolist(), strict=True)
        if network.places[at] not in gone
    }
    bridges = {name: _unblock(bridge) for name, bridge in network.configured.items() if port or name != switch}
    own = {str(one) for bridge in network.configured.values() for one in bridge.reading.unclear}
    own |= {*network.trees.unclear}
    unclear = [sentence for sentence in network.unclear if sentence not in own]
    return network_of(bridges, cables, hosts, complete=True, unclear=unclear)


def _unblock(bridge: Bridge) -> Bridge:
    """A bridge that shows what its spanning tree has blocked as one whose tree is computed anew."""
    reading = bridge.reading
    if not reading.shows_states or reading.spanning_tree is None:
        return bridge
    down = {port: why for port, why in reading.down.items() if port not in reading.blocked}
    left = replace(reading, down=down, blocked={}, shows_states=False)
    return replace(bridge, ports={**bridge.ports, **reading.blocked}, reading=left)


def _ports_of(network: Network, switch: str) -> Set[Place]:
    return {place for place in network.places if place[0] == switch}
