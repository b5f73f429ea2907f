"""What a message, and a request with its response, take on a network that carries nothing else."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from testbed.base.ethernet import CUT_THROUGH, GAP, HEADER, MAX_WIRE_FRAME, wire_bytes
from testbed.base.model import Floats
from testbed.base.units import LATE_AT_ONCE
from testbed.dataplane.predict.shared_links import Ways, Wires
from testbed.dataplane.predict.wire_overhead import MTU, TCP_HEADERS, UDP_HEADERS


def frame_sizes(protocol: str, payload: int, mtu: int = MTU) -> tuple[int, ...]:
    """Bytes that each frame of a message takes on an untagged wire, preamble, frame check sequence and gap included."""
    part, headers = (payload, UDP_HEADERS) if protocol == "udp" else (mtu - TCP_HEADERS, TCP_HEADERS)
    parts = [min(part, payload - start) for start in range(0, max(payload, 1), part)]
    return tuple(wire_bytes(one + headers + HEADER) for one in parts)


def round_trips(
    wires: Wires,
    pairs: Sequence[tuple[int, int]],
    ways: Ways,
    request: Sequence[int],
    response: Sequence[int],
    *,
    held: bool = True,
) -> Floats:
    """Seconds from the start of a request to the end of its response, at zero load, by store and forward.

    `request` and `response` are sizes of frames, as frame_sizes() gives them; `held` as for one_way().

    Returns:
        (F,) of each pair.
    """
    return np.array(
        [
            one_way(wires, (source, end), there, request, held=held)
            + one_way(wires, (end, source), back, response, held=held)
            for (source, end), (there, back) in zip(pairs, ways, strict=True)
        ]
    )


def one_way(
    wires: Wires, pair: tuple[int, int], channels: Sequence[int], frames: Sequence[int], *, held: bool = True
) -> float:
    """Seconds until the last frame of a message is there; all are ready at the beginning.

    Every switch sends a frame on when it has all of it, or its head where it cuts through (Dally and Towles, Principles
    and Practices of Interconnection Networks, section 11.1). Cables, switching and the programs at both ends take no
    time.

    Args:
        wires: of the network.
        pair: source and destination, hosts.
        channels: between them.
        frames: bytes of each, as frame_sizes() gives them.
        held: whether a port keeps each frame for its time on the wire, as links do. Else one that finds the port idle
            leaves it at once, and only the next one waits, as in a lab that shapes by token buckets; by LATE_AT_ONCE of
            a full frame less.
    """
    first, tags, rates = len(wires.topology.channel_source), wires.tags, wires.rates
    links = [first + pair[0], *channels, first + wires.topology.host_count + pair[1]]
    there, cuts = [0.0] * len(frames), wires.cuts
    for link in links:
        byte, free, more = 8 / float(rates[link]), 0.0, int(tags[link])
        for number, size in enumerate(frames):
            start = max(there[number], free)
            early = 0.0 if held or number else LATE_AT_ONCE * MAX_WIRE_FRAME
            whole = (size + more - GAP) * held
            there[number] = start + byte * (min(CUT_THROUGH, whole) if cuts[link] else whole)
            free = start + byte * (size + more - early)
    return there[-1]
