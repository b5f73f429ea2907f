"""What a packet-level simulation is made of: switches that store and forward whole frames, and their events.

With C channels, P priorities, V = P·C virtual channels and H hosts, node v < V is a virtual channel, V + h the way from
host h to its switch, V + H + h the one from its switch to host h. Each node has a queue at its sending end. A link
carries one frame at a time: links are the C channels, then the H from hosts, then the H to hosts. Times are
picoseconds.

Frames are of one size, and with TCP acknowledgements of another. Memory is counted in frames, or with TCP in a unit of
which each kind of frame takes so many.

With flow control, a frame takes memory of the node it arrived by, at its far end, until it has left that switch, and
the switch pauses the sender of a node by that memory. Without, it takes memory of the queue it waits in.
"""

from __future__ import annotations

from typing import NamedTuple

from testbed.base.model import Bools, Floats, Ints, Longs, Octets
from testbed.dataplane.kernels.dcqcn import DcqcnRates
from testbed.dataplane.kernels.events import FifoLanes, Heap
from testbed.dataplane.kernels.flits_state import FlitFabric, Randoms
from testbed.dataplane.kernels.packets_clock import ModelClock
from testbed.dataplane.kernels.tcp_ends import TcpEnds

# Delays there are, each a lane of events; those of acknowledgements are there with TCP only.
FRAME_ON_CHANNEL, FRAME_ON_EDGE, CONTROL_ON_CHANNEL, CONTROL_ON_EDGE, FRAME_ARRIVES, CONTROL_ARRIVES, LANES = range(7)
ACK_ON_CHANNEL, ACK_ON_EDGE, TCP_LANES = range(LANES, LANES + 3)

# Places in `counts`.
NOW, MADE, DELIVERED, DROPPED, FREE, PAUSES, RESUMES, COUNTS = range(8)
# Places in `tally` of PacketRdma.
MARKED, NOTIFIED, TALLIES = range(3)

# Why switches do not forward a frame of a real host, or the fabric loses it outside a queue; places in `refused`.
REFUSED = (
    "tagged frame at a host's port", "not a member of the VLAN", "no entry for the address", "reserved group address",
    "PAUSE from a host", "shorter than a header", "link down", "no room in the engine", "lost as asked",
)  # fmt: skip
(
    TAGGED_AT_HOST, NOT_MEMBER, NO_ENTRY, RESERVED, PAUSE_OF_HOST, RUNT, LINK_DOWN, NO_ROOM, AS_ASKED,
) = range(len(REFUSED))  # fmt: skip
# Kinds of tables, see PacketTables.
GLOBAL_VLANS, LOCAL_VLANS, PRIORITIES = range(3)
# Places in `edition`.
ASKED, TAKEN = range(2)
# In place of a node that a frame is sent by.
FLOOD, DISCARD = -1, -2

ANYWHERE = -1  # goal of a flow that draws a destination for each frame


class PacketFabric(NamedTuple):
    """What does not change while a simulation runs. N nodes, K links, S switches, F flows."""

    paths: FlitFabric  # the paths, as the flit level has them
    channels: int  # C
    priorities: int  # P
    virtual: int  # V
    hosts: int  # H
    frame_time: Longs  # (K,) that a frame takes on a link
    control_time: Longs  # (K,) that a PAUSE frame takes
    delay: int  # from a link's sending a last bit to the frame's standing in its next queue, or taking effect
    lossless: bool  # whether receivers pause senders
    buffer: int  # frames, or units, that a node has memory for
    xoff: int  # those at which a node's sender is paused
    xon: int  # those at which it may go on
    shared: bool  # whether the nodes of a switch share memory; thresholds then follow what is free of it
    place: Ints  # (N,) switch whose memory a node takes, or -1
    pool: Longs  # (S,) frames, or units, of shared memory that thresholds divide
    memory: Longs  # (S,) all shared memory
    near: Longs  # (S + 1,) offsets of the nodes that take a switch's memory
    node: Ints  # those nodes
    flows: Longs  # (H + 1,) offsets of the flows of a host
    goal: Ints  # (F,) host that a flow goes to, or ANYWHERE
    gap: Floats  # (F,) time between two frames, on average
    paced: bool  # whether that is the time always, or the mean of an exponential distribution
    tie_order: int  # of events of one time, see ties


class PacketState(NamedTuple):
    """Everything that changes. Q frames at most in the network at a time."""

    first: Ints  # (N,) the frame that waits at the head of a node's queue, or -1
    last: Ints  # (N,) the one at its end
    held: Ints  # (N,) frames, or units, of a node's memory that are taken
    most: Ints  # (N,) the most there ever were
    used: Longs  # (S,) those of a switch's memory
    off: Bools  # (N,) whether the receiver wants a node's sender to pause
    stopped: Bools  # (N,) whether the sender does
    since: Longs  # (N,) time of its last change
    still: Longs  # (N,) time that it paused, up to that
    told: Longs  # (K,) priorities that the last PAUSE frame over a link stopped, a bit each
    pending: Bools  # (K,) whether a link has to send another
    under_way: Ints  # (K,) PAUSE frames sent over a link that have not taken effect
    busy: Bools  # (K,) whether a link sends
    sending: Ints  # (K,) the frame that it sends
    turn: Ints  # (K,) priority that may send next
    sent: Longs  # (K,) frames that went over a link
    lanes: FifoLanes  # events of the delays above: a link, a frame, or a link and priorities
    heap: Heap  # of hosts that wake when they have a frame to send; with TCP of timers, see packets_tcp
    waking: Bools  # (H,) whether a host is in it
    behind: Ints  # (Q,) the next frame in a queue, or -1
    by: Ints  # (Q,) node that a frame was sent by last
    holds: Ints  # (Q,) node whose memory it takes, or -1
    birth: Longs  # (Q,) when it was made
    flow: Longs  # (Q,) the flow it belongs to
    step: Ints  # (Q,) hops it has asked for
    hops: Ints  # (Q,) hops of its path
    way: Ints  # (Q, longest path) its path
    goal: Ints  # (Q,) the host it goes to
    free: Ints  # (Q,) frames that are free
    due: Longs  # (F,) when a flow makes, or made, its next frame
    made: Longs  # (F,) frames of a flow that were sent
    delivered: Longs  # (F,) that arrived
    dropped: Longs  # (F,) that were dropped
    transit: Longs  # (F,) time that the last one took; -1 before the first
    jitter: Floats  # (F,) as RFC 3550 defines it
    random: Randoms  # (F,) state of the random numbers of each flow
    tie_random: Randoms  # (1,) that of a random order of events of one time
    histogram: Longs  # latencies of frames that have arrived
    latencies: Floats  # (1,) their sum
    counts: Longs  # (COUNTS,) scalars, see above


class PacketTcp(NamedTuple):
    """What TCP adds to frames, hosts and queues; F flows, 2 events a flow at most, and one an acknowledgement."""

    ends: TcpEnds  # senders and receivers; they count in seconds
    source: Longs  # (F,) host that a flow comes from
    goal: Longs  # (F,) host that it goes to
    ack_time: Longs  # (K,) ps that an acknowledgement takes on a link
    size: Longs  # (2,) units of memory that a segment's frame takes, and an acknowledgement
    limit: int  # acknowledgements that are lost in a host's own queue if so many frames wait there
    spread: int  # ps within which a host hears of an acknowledgement that has arrived
    heard: Longs  # (H,) when a host hears of the last one
    unheard: Longs  # (1,) acknowledgements that have arrived and not been heard of
    acks: Longs  # (K,) acknowledgements that went over a link
    segment: Longs  # (Q,) segment of a frame, or the one that an acknowledgement is sent for
    wanted: Longs  # (Q,) an acknowledgement's next segment wanted; -1 for segments
    waiting: Longs  # (N,) frames that wait in a node's queue
    peak: Longs  # (N,) the most there were
    area: Longs  # (N,) their number times ps, up to the last change
    changed: Longs  # (N,) ps of that
    drops: Longs  # (N,) frames that found no memory on their way into a node's queue


class PacketRdma(NamedTuple):
    """Messages of network cards, see packets_rdma; F flows, each of one message, those of a host by time of begin."""

    rates: DcqcnRates  # at which flows send
    begin: Longs  # (F,) ps at which a host has a message to send
    size: Longs  # (F,) its frames
    finished: Longs  # (F,) ps at which the last of them had arrived; -1 before
    sending: Longs  # (F,) of each host, at its place in `flows`, those that have begun and not been sent as a whole
    open: Longs  # (H,) how many these are
    upcoming: Longs  # (H,) the next flow of a host to begin
    k_min: int  # frames in a queue up to which none is marked
    k_max: int  # those above which every one is
    p_max: float  # chance of a mark at `k_max`
    interval: int  # ps between two notifications of a flow
    back: Longs  # (F,) ps that a notification takes to the sender
    next_notice: Longs  # (F,) ps before which a flow's receiver sends no further one
    marked: Bools  # (Q,) frames that are marked
    waiting: Longs  # (N,) frames that wait in a node's queue
    peak: Longs  # (N,) the most there were
    next_hop: int  # how switches choose among next hops, see packets_rdma
    key: Longs  # (H,) column of `table` of each host
    table: Ints  # (S, K) set of next hops by switch and destination, below 0 at the destination's switch
    start: Longs  # (G + 1,) offset of the first channel of each set
    channel: Ints  # channels of all sets
    turn: Longs  # (G,) place in a set that is next, round robin
    tally: Longs  # (TALLIES,) frames that were marked, notifications that were sent


class PacketTables(NamedTuple):
    """How switches forward frames, as 802.1Q has it; S switches, V VLANs, C channels, H hosts.

    A class is what a switch has decided about a frame when it has come in: with GLOBAL_VLANS, `vlan * S + switch`; with
    LOCAL_VLANS the VLAN inside the switch, which the port of arrival gives it; with PRIORITIES that port and its
    priority.

    Where links are aggregated, channels are those of the links themselves. A next hop is then the first channel of its
    bundle, whose others follow it in steps of two.
    """

    # GLOBAL_VLANS (tagged on links between switches), LOCAL_VLANS (untagged everywhere), or PRIORITIES (one VLAN,
    # tagged on links between switches, with the layer as priority)
    kind: int
    switches: int  # S
    host_class: Ints  # (H,) class of an untagged frame of a host: its port's PVID; DISCARD where its port has none
    # (H, V) whether a host's port is a tagged member of a VLAN: it takes in what the host tags, and sends with the tag
    host_tags: Bools
    channel_class: Ints  # (layers, C) class of a frame by channel and priority; -1 = none. LOCAL_VLANS and PRIORITIES.
    vlan_of: Ints  # (4096,) VLAN by identifier, -1 = there is none
    vlan_id: Ints  # (V,) identifiers
    # (C, V) whether both ends of a channel are tagged members of a VLAN; (C, 1) whether it carries any frame
    member: Bools
    floods: Bools  # (C,) whether what has no class may come by a channel, to be flooded
    next_hop: Ints  # (classes, H) virtual channel to send by, FLOOD, DISCARD, or `arrive` + host
    arrive: int  # a number above all virtual channels
    flood_start: Longs  # (classes or S, + 1) offsets of what a frame is flooded to
    flood_channel: Ints  # virtual channels, or `arrive` + host
    by_class: bool  # whether floods are of a class, or else of a switch
    switch_of: Ints  # (C + H,) switch that a channel enters, and a host hangs on
    bundled: bool  # whether links are aggregated
    first: Ints  # (C,) first channel of the bundle that a channel is of
    members: Ints  # (C,) links of that bundle
    learns: bool  # whether switches learn addresses
    ageing: int  # ps after which they forget one; 0 = never
    learned: Longs  # (classes, H) ps at which a switch last saw a frame of a host, -1 = never


class PacketLive(NamedTuple):
    """Frames of real hosts; Q frames, K links, N nodes, B bytes a frame at most."""

    tables: PacketTables  # how switches forward
    clock: ModelClock  # by which frames are stamped that somebody listens to
    edition: Longs  # (2,) numbers of the other tables that are to take their place, and of those that have; 0 = these
    byte_time: Longs  # (K,) ps that a byte takes on a link
    cut_through: bool  # whether switches send on what has not arrived as a whole
    cuts: Bools  # (K,) links whose frames they do so with: those that are no slower than the links it may go on by
    early: Bools  # (K,) whether the frame that a link sends is at its next switch already, by a copy
    delay: Longs  # (1,) ps from a link's sending a last bit to the frame's standing in its next queue
    down: Bools  # (K,) links that lose what they carry
    spared: Bools  # (C,) links of bundles that no frame is sent by any more, since they are to go off
    shut: Bools  # (N,) nodes that drop what comes for them, since they were paused too long
    longer: Longs  # (K,) ps by which a link takes longer than the others beside
    loss: Longs  # (K,) chance of a frame to be lost on a link, in 2^32nds
    data: Octets  # (Q, B) frames as hosts sent them, without a tag
    length: Ints  # (Q,) their bytes, without check sequence, 60 at least
    tag: Ints  # (Q,) priority and VLAN (`pcp << 12 | vid`) on the link that a frame is on, -1 = untagged
    memory: Ints  # (Q,) units of memory that a frame takes
    unit: int  # bytes that count as one; 0 = each frame counts as one
    chosen: Ints  # (longest flood,) nodes of one frame
    given: Ints  # (R,) ring of frames that hosts are to be given, R a power of two
    given_at: Longs  # (R,) ps at which each has arrived
    ends: Longs  # (2,) frames that were ever put into the ring, and taken out of it
    waiting: Ints  # (N,) frames that wait in a node's queue
    waiting_bytes: Longs  # (N,) their bytes
    drops: Longs  # (N,) frames that found no memory on their way into a node's queue
    sent_bytes: Longs  # (K,) of frames that went over a link, tags included; the frames are in PacketState
    pauses: Longs  # (K,) PAUSE frames that were sent over a link
    pairs: Longs  # (2, H, H) bytes and frames that hosts sent to each other
    refused: Longs  # (len(REFUSED),) frames
    watched: Ints  # (K,) how many listen to a link
    seen: Longs  # (1,) frames that links with listeners have begun to carry; of each, in a ring of E, E a power of two:
    seen_at: Longs  # (E,) ns of the clock at which its first bit left
    seen_link: Ints  # (E,) the link
    seen_tag: Ints  # (E,) its tag, -1 = untagged, -2 = a PAUSE frame
    seen_length: Ints  # (E,) its bytes; of a PAUSE frame the priorities that it stops, a bit each
    seen_data: Octets  # (E, B) what they are
    flooded: Longs  # (1,) copies that switches made of frames along trees
    admitted: Longs  # (S,) frames that a switch took in


class PacketModel(NamedTuple):
    """Everything that a network of real hosts is, at time 0."""

    fabric: PacketFabric  # what does not change
    state: PacketState  # what does
    live: PacketLive  # frames and tables
