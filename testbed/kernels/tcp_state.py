"""What a simulation of TCP Reno over shaped ports is made of.

With F flows, walk f < F is the way of flow f's segments, walk F + f that of its acknowledgements. Each of the K
channels has one queue at its sending end. Times are seconds. Segments are numbered from 0; those that are under way or
lost stand in rings of W places, W a power of two.
"""

from __future__ import annotations

from typing import NamedTuple

from testbed.kernels.flits_state import Randoms
from testbed.model import Bools, Floats, Ints, Longs

# Events.
LEAVES, TIMES_OUT, ACKNOWLEDGES, BEGINS, COUNTS, ENDS = range(6)

# What becomes of a segment.
DONE, UNDER_WAY, ARRIVED, LOST = range(4)

NOWHERE = -1  # end of recovery, while there is none


class TcpFabric(NamedTuple):
    """What does not change while a simulation runs.

    Attributes:
        way: (2F, longest) channels of a walk; the first is its host's own.
        hops: (2F,) how many.
        frame_time: (K,) of a full segment's frame.
        burst: (K,) frames that a port lets go at once after a rest.
        acknowledgement: length of an acknowledgement's frame, as a share of a full one.
        queue: frames that wait at a port before one is lost.
        head_drop: whether that is the first in the queue of a switch, else the new one.
        omit: from a flow's beginning until it counts.
        seconds: for which it does.
    """

    way: Ints
    hops: Ints
    frame_time: Floats
    burst: Floats
    acknowledgement: float
    queue: int
    head_drop: bool
    omit: float
    seconds: float


class TcpState(NamedTuple):
    """Everything that changes. R frames at most in a queue.

    Attributes:
        time: (E,) heap of events, the next one first.
        kind: (E,) what happens.
        what: (E,) to which channel or flow.
        events: (1,) how many.
        random: (1,) state of the random numbers.
        walk: (K, R) whose frame waits; each queue is a ring.
        segment: (K, R) its segment, or the one that an acknowledgement is sent for.
        note: (K, R) an acknowledgement's next segment wanted.
        hop: (K, R) channels that it has passed.
        head: (K,) place of the first frame.
        waiting: (K,) how many.
        leaving: (K,) whether an event for the first one stands in the heap.
        tokens: (K,) frames that a port may let go at once, and one more; below 0 it has to wait.
        filled: (K,) time at which that was so.
        fate: (F, W) of segments.
        number: (F, W) a transmission's place in the order of the flow's transmissions.
        sent: (F, W) its time.
        oldest: (F,) first segment not yet acknowledged.
        next: (F,) first segment never sent.
        made: (F,) transmissions.
        newest: (F,) number of the latest transmission that is known to have arrived.
        flying: (F,) segments under way.
        lost: (F,) segments that are known to be lost.
        limited: (F,) first segment never sent when the window last kept one back.
        at_home: (F,) frames of segments in the host's own queue.
        window: (F,) congestion window, in segments.
        threshold: (F,) of slow start.
        recovery: (F,) segment at whose acknowledgement recovery ends, or NOWHERE.
        round_trip: (F,) smoothed (RFC 6298); negative before the first.
        variation: (F,) of it.
        deadline: (F,) time at which a flow gives up waiting.
        doubled: (F,) time-outs since the last acknowledgement.
        got: (F, W) whether a segment has arrived before one that is missing.
        wanted: (F,) first segment that has not arrived.
        unsaid: (F,) segments that have arrived since the last acknowledgement.
        to_say: (F,) whether the timer for these runs.
        arrived: (F,) segments that have arrived, each counted once.
        counted: (F,) of these, in the seconds that count; below 0 those before.
    """

    time: Floats
    kind: Ints
    what: Ints
    events: Longs
    random: Randoms
    walk: Ints
    segment: Longs
    note: Longs
    hop: Ints
    head: Longs
    waiting: Longs
    leaving: Bools
    tokens: Floats
    filled: Floats
    fate: Ints
    number: Longs
    sent: Floats
    oldest: Longs
    next: Longs
    made: Longs
    newest: Longs
    flying: Longs
    lost: Longs
    limited: Longs
    at_home: Longs
    window: Floats
    threshold: Floats
    recovery: Longs
    round_trip: Floats
    variation: Floats
    deadline: Floats
    doubled: Longs
    got: Bools
    wanted: Longs
    unsaid: Longs
    to_say: Bools
    arrived: Longs
    counted: Longs
