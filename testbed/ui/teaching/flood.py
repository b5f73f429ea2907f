"""Follow frames through switches as IEEE 802.1Q has them, with ingress filtering, before they have learned anything.

A frame to an address that a switch does not know, or to all, leaves by every member port of its VLAN but the one it
came by. Where that never ends, it is a storm. Where it ends, the copy that reaches a host shows the path that frames
to this host take in this VLAN.
"""

from __future__ import annotations

from dataclasses import dataclass

from testbed.ui.teaching.student_config import Port, Switches

# A copy that has arrived at a switch: the port it came by, and its VLAN there.
Copy = tuple[int, int, int]  # switch, port, VLAN


@dataclass(frozen=True, slots=True)
class Flooding:
    """What becomes of a broadcast of one host."""

    copies: dict[int, list[tuple[int, ...]]]  # of each host: channels of each copy that it got without a tag
    tagged: tuple[tuple[int, str], ...]  # hosts that got copies with a tag, which they drop, and the port that sent it
    refused: tuple[str, ...]  # what was dropped on the way, in words
    loop: tuple[int, ...]  # channels round which copies go for ever; empty where there are none


def flood(switches: Switches, host: int) -> Flooding:
    """Let a host send one broadcast, and follow every copy until it ends or comes by again."""
    start = _receive_frame(switches.of_host(host), 0, switches)
    if start is None:
        port = switches.of_host(host)
        why = "is shut down" if not port.up else f"has PVID {port.pvid} and is no member of that VLAN"
        return Flooding({}, (), (f"{port.name} {why}, so what the host sends is dropped there",), ())
    copies: dict[int, list[tuple[int, ...]]] = {}
    tagged: dict[tuple[int, str], None] = {}
    refused: dict[str, None] = {}
    trail: list[tuple[Copy, int]] = []  # copies under way, each with the channel it came by
    on_trail: set[Copy] = set()

    def visit(copy: Copy, channel: int) -> tuple[int, ...]:
        if copy in on_trail:
            first = next(index for index, (one, _) in enumerate(trail) if one == copy)
            return (*(taken for _, taken in trail[first + 1 :]), channel)
        trail.append((copy, channel))
        on_trail.add(copy)
        for port in _egress(switches, copy):
            vlan = copy[2]
            if port.host >= 0:
                if vlan in port.tagged:
                    tagged[port.host, port.name] = None
                else:
                    copies.setdefault(port.host, []).append(tuple(taken for _, taken in trail[1:]))
                continue
            far = switches.ingress_interface(port.channel)
            following = _receive_frame(far, vlan if vlan in port.tagged else 0, switches)
            if following is None:
                refused[_why(port, far, vlan)] = None
                continue
            loop = visit(following, port.channel)
            if loop:
                return loop
        trail.pop()
        on_trail.discard(copy)
        return ()

    loop = visit(start, -1)
    return Flooding(copies, tuple(tagged), tuple(refused), loop)


def on_links(switches: Switches, host: int, hops: int) -> int:
    """Copies of one broadcast on links between switches in its hop of that number; the first hop is 1."""
    start = _receive_frame(switches.of_host(host), 0, switches)
    now: dict[Copy, int] = {} if start is None else {start: 1}
    count = 0
    for _ in range(hops):
        following: dict[Copy, int] = {}
        count = 0
        for copy, many in now.items():
            for port in _egress(switches, copy):
                if port.channel < 0:
                    continue
                count += many
                entered = _receive_frame(
                    switches.ingress_interface(port.channel), copy[2] if copy[2] in port.tagged else 0, switches
                )
                if entered is not None:
                    following[entered] = following.get(entered, 0) + many
        now = following
    return count


def _receive_frame(port: Port, tag: int, switches: Switches) -> Copy | None:
    """The copy that a frame becomes which comes in by a port with a tag, 0 for none; None where it is dropped."""
    vlan = tag or port.pvid
    if not port.up or vlan not in port.members:
        return None
    topology = switches.topology
    if port.host >= 0:
        return int(topology.host_switch[port.host]), int(topology.host_port[port.host]), vlan
    return int(topology.channel_source[port.channel]), int(topology.out_port[port.channel]), vlan


def _egress(switches: Switches, copy: Copy) -> list[Port]:
    switch, came_by, vlan = copy
    return [
        port
        for (at, number), port in switches.ports.items()
        if at == switch and number != came_by and port.up and vlan in port.members
    ]


def _why(port: Port, far: Port, vlan: int) -> str:
    if not far.up:
        return f"{far.name} is shut down"
    if vlan in port.tagged:
        return f"{port.name} sends VLAN {vlan} with its tag, and {far.name} is no member of VLAN {vlan}"
    return (
        f"{port.name} sends VLAN {vlan} without a tag; {far.name} then takes it for its PVID {far.pvid}, and is no "
        "member of that VLAN"
    )
