"""What each machine builds of a fabric: switches, hosts, the links between them, and ends of those that are cut."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from testbed.base.ethernet import HEADER, MAX_WIRE_FRAME
from testbed.engines.lab.build_order import BuildOrder, FarLink
from testbed.engines.lab.fabric_part import Part
from testbed.scenario.workloads.mpi_machines import control_address

# Ethernet header of the frame within, VXLAN, UDP and IPv4 (RFC 7348); and what a frame within may have for it.
TUNNEL_OVERHEAD = HEADER + 8 + 8 + 20
LEAST_MTU = 1504 + TUNNEL_OVERHEAD
# Bytes of a full frame with its tag on a wire of the fabric, and of what carries it on one between machines.
_WITHIN = MAX_WIRE_FRAME
_BETWEEN = MAX_WIRE_FRAME + TUNNEL_OVERHEAD


@dataclass(frozen=True, slots=True)
class Cut:
    """A link between two parts; numbers of parts are in the order of the machines."""

    link: int  # of the whole fabric
    parts: tuple[int, int]  # of its two ends
    tunnel: str  # interface at either end


def divide(order: BuildOrder, part_of: Sequence[int], machines: Sequence[str]) -> tuple[list[Part], list[Cut]]:
    """Divide what is to be built among machines.

    Args:
        order: the whole.
        part_of: (S,) number of the machine of each switch.
        machines: their names.
    """
    where = dict(zip(order.switches, part_of, strict=True))
    sides = [(where[link.switch_a], where[link.switch_b]) for link in order.links]
    cuts = [Cut(link, side, f"tunnel{link}") for link, side in enumerate(sides) if side[0] != side[1]]
    parts = []
    for number, machine in enumerate(machines):
        hosts = [host for host, one in enumerate(order.hosts) if where[one.switch] == number]
        switches = [switch for switch, part in enumerate(part_of) if part == number]
        whole = [link for link, side in enumerate(sides) if side == (number, number)]
        mine = [(one, side) for one in cuts for side in (0, 1) if one.parts[side] == number]
        links = [*whole, *(one.link for one, _ in mine)]
        names = [order.switches[switch] for switch in switches]
        part = replace(
            order,
            hosts=tuple(order.hosts[host] for host in hosts),
            others=tuple(one for one in order.hosts if where[one.switch] != number),
            switches=tuple(names),
            links=tuple(order.links[link] for link in whole),
            far=tuple(FarLink(*order.links[one.link].ends[side], one.tunnel) for one, side in mine),
            rules={name: order.rules[name] for name in names},
            groups={name: order.groups[name] for name in names},
            speeds={here: order.speeds[link] for here, link in enumerate(links) if link in order.speeds},
            alone=tuple(name for name in order.alone if where[name] == number),
            everywhere=order.switches,
            controller_at=control_address(0),
            controller_here=number == 0,
        )
        channels = [2 * link + side for link in whole for side in (0, 1)]
        channels += [2 * one.link + side for one, side in mine]
        parts.append(Part(machine, part, tuple(hosts), tuple(switches), tuple(links), tuple(channels)))
    return parts, cuts


def needed_rates(order: BuildOrder, cuts: Sequence[Cut]) -> dict[tuple[int, int], float]:
    """Bit/s that must get from one machine to another for full frames on all links that are cut between them.

    Either direction takes as much. Frames of a tunnel are longer than those that they carry.
    """
    found: dict[tuple[int, int], float] = {}
    for one in cuts:
        pair = (min(one.parts), max(one.parts))
        rate = order.link_rate * order.speeds.get(one.link, 1.0)
        found[pair] = found.get(pair, 0.0) + rate * _BETWEEN / _WITHIN
    return found
