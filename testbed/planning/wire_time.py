"""How long messages take on a plan's links while these carry nothing else."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from testbed.dataplane.predict import Wires, transport
from testbed.dataplane.predict.round_trip import frame_sizes, one_way
from testbed.planning import Plan
from testbed.planning.rates import logical_ways, wire_rates, wires_of


def zero_load_latency(
    plan: Plan, source: int, destination: int, size: int, protocol: str = "udp", *, held: bool = True
) -> float:
    """Least real-world seconds from a host's sending a message until another has all of it.

    It is the time on the wires, each switch sending a frame on when it has all of it, or its head if it cuts
    through. Cables, switching and programs take no time.

    Args:
        plan: with its links' rates.
        source: host.
        destination: host; 0 s if it is the same.
        size: bytes of payload.
        protocol: `udp`, one datagram, which echo requests are alike; or `tcp`, as many segments as it takes.
        held: whether each frame keeps a port busy before it leaves, see predict.round_trip.one_way().
    """
    if source == destination:
        return 0.0
    ((there, _),) = logical_ways(plan, [(source, destination)])
    frames = frame_sizes(protocol, size, plan.scenario.links.mtu)
    return one_way(message_wires(plan), (source, destination), there, frames, held=held)


def message_wires(plan: Plan) -> Wires:
    """The wires that one message meets: of a bundle of links the fastest member. Real-world rates."""
    wires = replace(wires_of(plan, transport("udp", 1)), cut_through=plan.scenario.simulator.cut_through)
    if plan.bundles is None:
        return wires
    rates = np.broadcast_to(wire_rates(plan), 2 * int(plan.bundles.start[-1]))
    fastest = [rates[list(plan.bundles.channels(channel))].max() for channel in range(len(plan.topology.out_port))]
    return replace(wires, link_rate=np.array(fastest))
