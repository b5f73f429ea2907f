"""What a flit-level simulation is made of: virtual channels, their buffers, the packets in them, and statistics.

With C channels, layers·C virtual ones in the plan, n copies of each, V = n·layers·C, and H hosts, node v < V is a
virtual channel, the copy v // (layers·C) of that of the plan; V + i·H + h is copy i of the channel from host h to its
switch, and V + n·H + h the one from its switch to host h. A packet takes whichever copy of its virtual channel is free;
where something waits for any of them, the first copy stands for all. The buffer of a node is at its far end, in the
switch it enters; hosts take everything at once. A link carries one flit a clock: links are the C channels, then the H
from hosts, then the H to hosts.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from testbed.base.model import Ints, Longs

Randoms = npt.NDArray[np.uint64]
Bits = npt.NDArray[np.uint64]
Records = Any  # a np.recarray, whose fields no type checker knows

# A flit leaves a buffer, crosses the crossbar in one clock and the link in another. From a host there is only the link.
HOP = 2
SLOTS = 4  # a power of two above HOP

# Places in `counts`.
CLOCK, SENDING, TRYING, FREE, DELIVERED, LATENCIES, COUNTS = range(7)

# Latencies below EXACT have a place each in the histogram; above, OCTAVE places for each doubling.
EXACT, OCTAVE, OCTAVES = 2048, 1024, 40


# What a node and its buffer have. What a flit touches comes first.
NODE = np.dtype(
    [
        ("used", np.int64),  # of the first node of a link: clock at which one of the link's buffers last sent a flit
        ("port", np.int32),  # that first node
        ("room", np.int32),  # flits for which the buffer has room and that are promised to no packet
        ("stored", np.int32),  # flits in the buffer
        ("left", np.int32),  # flits of the packet at the front that have yet to leave, once it has an output
        ("output", np.int32),  # node that the packet at the front holds, if it holds one
        ("beside", np.int32),  # buffer whose turn on the link of that node comes next
        ("link", np.int32),
        ("wants", np.int32),  # first copy of the node that the packet at the front waits for, or -1
        ("waiting", np.int32),  # of a first copy: first of the buffers that wait for any of its copies, or -1
        ("after", np.int32),  # the next of those that wait for what this one waits for
        ("served", np.int32),  # of a first copy: buffer whose packet was the last to be given one
        ("front", np.int32),  # place of the first packet in its `queue`
        ("queued", np.int32),  # packets in the buffer
        ("held", np.bool_),  # whether a packet holds the node as its output
        ("tried", np.bool_),  # of a first copy: whether it is in `trying`
    ],
    align=True,
)

# What a link has.
LINK = np.dtype(
    [
        ("sent", np.int64),  # flits that went over it
        ("sharing", np.int32),  # buffers whose packets hold a node of it, which take turns
        ("last", np.int32),  # the one whose turn it was last
    ],
    align=True,
)


class FlitFabric(NamedTuple):
    """What does not change while a simulation runs."""

    channels: int  # C
    copies: int  # n
    single: int  # layers·C
    virtual: int  # V
    hosts: int  # H
    packet: int  # flits of a packet
    routing: int  # clocks that a header waits at the front of a buffer before it asks for an output
    buffer_gap: (
        int  # clocks after the last flit of a packet has left a buffer in which the one behind it does not leave
    )
    output_gap: int  # clocks after the last flit of a packet in which its virtual channel is given to no other
    start: Longs  # (P + 1,) offsets of explicit paths, or empty
    hop: Ints  # their virtual channels
    tree: Ints  # (T, S) trees where there are no explicit paths
    nearer: Ints  # (C,) end of each channel nearer to the root of a tree
    from_source: bool  # True where trees are those of sources
    key: Ints  # (H,) tree of each host; with explicit paths the index of its switch among the end switches
    ends: int  # number of end switches
    switch: Ints  # (H,) switch of each host
    root: Ints  # (T,) root of each tree
    chance: float  # for each clock, the chance that a host makes a packet
    # (H,) where each host sends; UNIFORM for a new draw each packet, IDLE for nowhere, LISTED for the list of a replay
    target: Ints
    listed: Ints  # (M,) destination of each entry of a replay; empty without one
    # of a replay in steps, else empty: the host that sends an entry; the entries that wait for one to arrive, and those
    # that wait for one to be released
    sender: Ints  # (M,)
    arrived_start: Longs  # (M + 1,)
    arrived: Ints
    released_start: Longs  # (M + 1,)
    released: Ints


UNIFORM, IDLE, LISTED = -1, -2, -3
NEVER = 1 << 62  # clock of the next packet of a host that has sent all it has


class State(NamedTuple):
    """Everything that changes. N nodes, K links, Q packets at most in the network at a time."""

    # (N,) NODE of each node, `link`, `room`, …; what a flit or a header touches at once lies side by side, since on
    # large networks it is memory that takes the time
    nodes: Records
    links: Records  # (K,) LINK of each link
    # (N, B // packet + 2) packets of a buffer, the ring they stand in. A packet may stand in several buffers.
    queue: Ints
    trying: Ints  # (N,) first copies of which one may be given away
    busy: Bits  # (⌈K / 64⌉,) a bit for each link, whether it has an active buffer
    line: Ints  # (SLOTS, K) nodes whose buffers get a flit, by clock of arrival
    lines: Ints  # (SLOTS,) how many
    head_node: Ints  # (SLOTS, K) nodes that get the first flit of a packet
    head_packet: Ints  # (SLOTS, K) that packet
    heads: Ints  # (SLOTS,) how many
    ready: Ints  # (max(routing, buffer_gap) + 2, N) buffers whose front asks for an output, by clock
    readies: Ints  # as long: how many
    letting: Ints  # (output_gap + 2, K) nodes that are free again, by clock
    lettings: Ints  # (output_gap + 2,) how many
    birth: Longs  # (Q,) clock at which a packet was made
    came: Longs  # (Q,) clock at which its header came into the buffer it is in; (0,) where no gap is short enough
    step: Ints  # (Q,) hops it has asked for
    hops: Ints  # (Q,) hops of its path
    way: Ints  # (Q, longest path) its path
    goal: Ints  # (Q,) the host it goes to
    free: Ints  # (Q,) packets that are free
    due: Longs  # (H,) clock at which a host makes, or made, its next packet
    to_send: Ints  # (H,) flits of the packet on its way out of the host
    current: Ints  # (H,) that packet
    through: Ints  # (H,) copy of the host's channel that it takes
    sending: Ints  # (H,) hosts that send a packet
    wheel: Ints  # (W,) first host of those that make a packet at a clock, modulo W; W a power of two
    wheel_next: Ints  # (H,) the next of them
    random: Randoms  # (H,) state of the random numbers of each host
    histogram: Longs  # latencies of packets that have arrived
    counts: Longs  # (COUNTS,) scalars, see above
    unsent: Longs  # (M,) packets that an entry of a replay has yet to send; M = 0 without one, and likewise below
    ring: Ints  # (M,) entry after each, of one host and with packets to send, in a ring
    ring_at: Ints  # (H,) entry that a host has sent of last
    entry: Ints  # (Q,) entry of each packet, or (0,)
    finished: Longs  # (M,) clock at which the last flit of an entry has arrived so far
    missing: Longs  # (M,) packets of an entry of a replay in steps that have not arrived; (0,) without steps
    blocked: Longs  # (M,) how many arrivals and releases an entry waits for
    releasing: Ints  # (M,) entries that are being released
