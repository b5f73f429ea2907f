"""The two ends of TCP connections: Reno with selective acknowledgements (RFC 5681, 6298, 6675, 8985), as in Linux.

What lies between them is up to the simulation: kernels/tcp.py has shaped ports, kernels/packets_tcp.py switches with or
without flow control. Times are seconds. Segments are numbered from 0; those that are under way or lost stand in rings
of W places, W a power of two; no more than W - 1 are ever between the first one missing and the last one sent, as a
receiver's window bounds them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from testbed.base.jit import jit_inner
from testbed.base.model import Bools, Floats, Ints, Longs

# What becomes of a segment.
DONE, UNDER_WAY, ARRIVED, LOST = range(4)

# What a receiver does about a segment.
NOTHING, ACKNOWLEDGE, ACKNOWLEDGE_LATER = range(3)

NOWHERE = -1  # end of recovery, while there is none
DELAYED = 0.04  # seconds that Linux keeps an acknowledgement for the next segment
_SEGMENTS_TO_SAY = 2
_AT_HOME = 2  # frames of a flow in its host's own queue at most: TCP small queues
_OVERTAKEN = 3  # later transmissions that have arrived when one is taken for lost
_LEAST_WAIT = 0.2  # seconds, as in Linux
_FIRST_ROUND_TRIP = 0.8
_MOST_DOUBLED = 6
_FIRST_WINDOW = 10.0
_PLACES = 1 << 22  # for the segments of all flows


class TcpEnds(NamedTuple):
    """Senders and receivers of F flows."""

    fate: Ints  # (F, W) of segments
    number: Longs  # (F, W) a transmission's place in the order of the flow's transmissions
    sent: Floats  # (F, W) its time
    oldest: Longs  # (F,) first segment not yet acknowledged
    next: Longs  # (F,) first segment never sent
    made: Longs  # (F,) transmissions
    newest: Longs  # (F,) number of the latest transmission that is known to have arrived
    flying: Longs  # (F,) segments under way
    lost: Longs  # (F,) segments that are known to be lost
    limited: Longs  # (F,) first segment never sent when the window last kept one back
    at_home: Longs  # (F,) frames of segments in the host's own queue
    window: Floats  # (F,) congestion window, in segments
    threshold: Floats  # (F,) of slow start
    recovery: Longs  # (F,) segment at whose acknowledgement recovery ends, or NOWHERE
    round_trip: Floats  # (F,) smoothed (RFC 6298); negative before the first
    variation: Floats  # (F,) of it
    deadline: Floats  # (F,) time at which a flow gives up waiting
    doubled: Longs  # (F,) time-outs since the last acknowledgement
    got: Bools  # (F, W) whether a segment has arrived before one that is missing
    wanted: Longs  # (F,) first segment that has not arrived
    unsaid: Longs  # (F,) segments that have arrived since the last acknowledgement
    to_say: Bools  # (F,) whether the timer for these runs
    arrived: Longs  # (F,) segments that have arrived, each counted once


def new_ends(flows: int, queue: int) -> TcpEnds:
    """Connections that have not begun.

    Args:
        flows: F.
        queue: frames that a queue on their paths holds; places are for more than all of a path hold, as far as memory
            reaches.
    """
    wished, possible = 8 * queue + 64, max(256, _PLACES // flows)
    ring = (flows, 1 << int(np.log2(min(2 * wished, possible))))

    def zeros(size: int | tuple[int, int] = flows) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
        return np.zeros(size, dtype=np.int64)

    return TcpEnds(
        fate=np.zeros(ring, dtype=np.int32), number=zeros(ring), sent=np.zeros(ring),
        oldest=zeros(), next=zeros(), made=zeros(), newest=zeros(),
        flying=zeros(), lost=zeros(), limited=zeros(), at_home=zeros(),
        window=np.full(flows, _FIRST_WINDOW), threshold=np.full(flows, np.inf),
        recovery=np.full(flows, NOWHERE, dtype=np.int64),
        round_trip=np.full(flows, -1.0), variation=np.zeros(flows), deadline=np.zeros(flows), doubled=zeros(),
        got=np.zeros(ring, dtype=np.bool_), wanted=zeros(), unsaid=zeros(),
        to_say=np.zeros(flows, dtype=np.bool_), arrived=zeros(),
    )  # fmt: skip


@jit_inner
def next_segment(ends: TcpEnds, flow: int, now: float) -> int:
    """The segment that a flow sends next, which counts as sent: one that was lost, or a new one; -1 for none now."""
    ring = ends.fate.shape[1] - 1
    full = ends.flying[flow] >= int(ends.window[flow])
    if full:
        ends.limited[flow] = ends.next[flow]
    if full or ends.at_home[flow] >= _AT_HOME:
        return -1
    if ends.lost[flow]:
        segment = ends.oldest[flow]
        while ends.fate[flow, segment & ring] != LOST:
            segment += 1
        ends.lost[flow] -= 1
    elif ends.next[flow] - ends.oldest[flow] < ring:
        segment = ends.next[flow]
        ends.next[flow] += 1
    else:
        return -1
    place = segment & ring
    ends.fate[flow, place] = UNDER_WAY
    ends.made[flow] += 1
    ends.number[flow, place] = ends.made[flow]
    ends.sent[flow, place] = now
    if not ends.flying[flow]:
        ends.deadline[flow] = now + compute_rto(ends, flow)
    ends.flying[flow] += 1
    ends.at_home[flow] += 1
    return int(segment)


@jit_inner
def compute_rto(ends: TcpEnds, flow: int) -> float:
    """Seconds that a flow waits for an acknowledgement."""
    round_trip = ends.round_trip[flow] if ends.round_trip[flow] > 0 else _FIRST_ROUND_TRIP
    wait = round_trip + max(4 * ends.variation[flow], _LEAST_WAIT)
    return float(wait * 2 ** min(ends.doubled[flow], _MOST_DOUBLED))


@jit_inner
def acknowledge(ends: TcpEnds, flow: int, segment: int, wanted: int, now: float) -> None:
    """An acknowledgement says that a segment has arrived, and which is the first that has not."""
    ring = ends.fate.shape[1] - 1
    fresh = 0
    if ends.oldest[flow] <= segment < ends.next[flow]:
        place = segment & ring
        fate = ends.fate[flow, place]
        if fate in (UNDER_WAY, LOST):
            fresh += _arrived(ends, flow, place)
            ends.fate[flow, place] = ARRIVED
            _measure(ends, flow, now - ends.sent[flow, place])
    while ends.oldest[flow] < wanted:
        place = ends.oldest[flow] & ring
        if ends.fate[flow, place] in (UNDER_WAY, LOST):
            fresh += _arrived(ends, flow, place)
        ends.fate[flow, place] = DONE
        ends.oldest[flow] += 1
    if not fresh:
        return
    ends.doubled[flow] = 0
    ends.deadline[flow] = now + compute_rto(ends, flow)
    if ends.recovery[flow] != NOWHERE and ends.oldest[flow] >= ends.recovery[flow]:
        ends.recovery[flow] = NOWHERE
    _find_losses(ends, flow)
    if ends.recovery[flow] != NOWHERE:
        return
    slow_start = ends.window[flow] < ends.threshold[flow]
    # Else it is not the window that limits (RFC 7661); in slow start Linux lets it be twice what is under way.
    if ends.oldest[flow] <= ends.limited[flow] or (slow_start and ends.window[flow] < 2 * (ends.flying[flow] + fresh)):
        ends.window[flow] += fresh if slow_start else fresh / int(ends.window[flow])


@jit_inner
def _arrived(ends: TcpEnds, flow: int, place: int) -> int:
    if ends.fate[flow, place] == UNDER_WAY:
        ends.flying[flow] -= 1
        ends.newest[flow] = max(ends.newest[flow], ends.number[flow, place])
    else:
        ends.lost[flow] -= 1
    return 1


@jit_inner
def _measure(ends: TcpEnds, flow: int, seconds: float) -> None:
    if ends.round_trip[flow] < 0:
        ends.round_trip[flow] = seconds
        ends.variation[flow] = seconds / 2
        return
    ends.variation[flow] += (abs(seconds - ends.round_trip[flow]) - ends.variation[flow]) / 4
    ends.round_trip[flow] += (seconds - ends.round_trip[flow]) / 8


@jit_inner
def _find_losses(ends: TcpEnds, flow: int) -> None:
    """Take for lost what later transmissions have overtaken; halve the window once in a round trip for it."""
    ring = ends.fate.shape[1] - 1
    found = False
    for segment in range(ends.oldest[flow], ends.next[flow]):
        place = segment & ring
        if ends.fate[flow, place] == UNDER_WAY and ends.number[flow, place] <= ends.newest[flow] - _OVERTAKEN:
            ends.fate[flow, place] = LOST
            ends.flying[flow] -= 1
            ends.lost[flow] += 1
            found = True
    if found and ends.recovery[flow] == NOWHERE:
        ends.recovery[flow] = ends.next[flow]
        ends.threshold[flow] = ends.window[flow] = max(int(ends.window[flow]) >> 1, 2)


@jit_inner
def time_out(ends: TcpEnds, flow: int, now: float) -> None:
    """Nothing was heard for too long: all that is under way counts as lost."""
    ring = ends.fate.shape[1] - 1
    for segment in range(ends.oldest[flow], ends.next[flow]):
        place = segment & ring
        if ends.fate[flow, place] == UNDER_WAY:
            ends.fate[flow, place] = LOST
            ends.flying[flow] -= 1
            ends.lost[flow] += 1
    ends.threshold[flow] = max(int(ends.window[flow]) >> 1, 2)
    ends.window[flow] = 1.0
    ends.recovery[flow] = NOWHERE
    ends.doubled[flow] += 1
    ends.deadline[flow] = now + compute_rto(ends, flow)


@jit_inner
def receive(ends: TcpEnds, flow: int, segment: int) -> int:
    """A segment arrives: every second one is acknowledged, and at once where one is missing (RFC 5681, section 4.2)."""
    ring = ends.got.shape[1] - 1
    in_order = segment == ends.wanted[flow]
    if segment >= ends.wanted[flow] and not ends.got[flow, segment & ring]:
        ends.got[flow, segment & ring] = True
        ends.arrived[flow] += 1
        while ends.got[flow, ends.wanted[flow] & ring]:
            ends.got[flow, ends.wanted[flow] & ring] = False
            ends.wanted[flow] += 1
    ends.unsaid[flow] += 1
    if not in_order or ends.unsaid[flow] >= _SEGMENTS_TO_SAY:
        return ACKNOWLEDGE
    if ends.to_say[flow]:
        return NOTHING
    ends.to_say[flow] = True
    return ACKNOWLEDGE_LATER
