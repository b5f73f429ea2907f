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

from testbed.kernels.events import Heap, Lanes
from testbed.kernels.flits_state import Fabric, Randoms
from testbed.kernels.tcp_ends import TcpEnds
from testbed.model import Bools, Floats, Ints, Longs, Octets

# Delays there are, each a lane of events; those of acknowledgements are there with TCP only.
FRAME_ON_CHANNEL, FRAME_ON_EDGE, CONTROL_ON_CHANNEL, CONTROL_ON_EDGE, FRAME_ARRIVES, CONTROL_ARRIVES, LANES = range(7)
ACK_ON_CHANNEL, ACK_ON_EDGE, TCP_LANES = range(LANES, LANES + 3)

# Places in `counts`.
NOW, MADE, DELIVERED, DROPPED, FREE, PAUSES, RESUMES, COUNTS = range(8)

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
    """What does not change while a simulation runs. N nodes, K links, S switches, F flows.

    Attributes:
        paths: the paths, as the flit level has them.
        channels: C.
        priorities: P.
        virtual: V.
        hosts: H.
        frame_time: (K,) that a frame takes on a link.
        control_time: (K,) that a PAUSE frame takes.
        delay: from a link's sending a last bit to the frame's standing in its next queue, or taking effect.
        lossless: whether receivers pause senders.
        buffer: frames, or units, that a node has memory for.
        xoff: those at which a node's sender is paused.
        xon: those at which it may go on.
        shared: whether the nodes of a switch share memory; thresholds then follow what is free of it.
        place: (N,) switch whose memory a node takes, or -1.
        pool: (S,) frames, or units, of shared memory that thresholds divide.
        memory: (S,) all shared memory.
        near: (S + 1,) offsets of the nodes that take a switch's memory.
        node: those nodes.
        flows: (H + 1,) offsets of the flows of a host.
        goal: (F,) host that a flow goes to, or ANYWHERE.
        gap: (F,) time between two frames, on average.
        paced: whether that is the time always, or the mean of an exponential distribution.
    """

    paths: Fabric
    channels: int
    priorities: int
    virtual: int
    hosts: int
    frame_time: Longs
    control_time: Longs
    delay: int
    lossless: bool
    buffer: int
    xoff: int
    xon: int
    shared: bool
    place: Ints
    pool: Longs
    memory: Longs
    near: Longs
    node: Ints
    flows: Longs
    goal: Ints
    gap: Floats
    paced: bool


class PacketState(NamedTuple):
    """Everything that changes. Q frames at most in the network at a time.

    Attributes:
        first: (N,) the frame that waits at the head of a node's queue, or -1.
        last: (N,) the one at its end.
        held: (N,) frames, or units, of a node's memory that are taken.
        most: (N,) the most there ever were.
        used: (S,) those of a switch's memory.
        off: (N,) whether the receiver wants a node's sender to pause.
        stopped: (N,) whether the sender does.
        since: (N,) time of its last change.
        still: (N,) time that it paused, up to that.
        told: (K,) priorities that the last PAUSE frame over a link stopped, a bit each.
        pending: (K,) whether a link has to send another.
        under_way: (K,) PAUSE frames sent over a link that have not taken effect.
        busy: (K,) whether a link sends.
        sending: (K,) the frame that it sends.
        turn: (K,) priority that may send next.
        sent: (K,) frames that went over a link.
        lanes: events of the delays above: a link, a frame, or a link and priorities.
        heap: of hosts that wake when they have a frame to send; with TCP of timers, see packets_tcp.
        waking: (H,) whether a host is in it.
        behind: (Q,) the next frame in a queue, or -1.
        by: (Q,) node that a frame was sent by last.
        holds: (Q,) node whose memory it takes, or -1.
        birth: (Q,) when it was made.
        flow: (Q,) the flow it belongs to.
        step: (Q,) hops it has asked for.
        hops: (Q,) hops of its path.
        way: (Q, longest path) its path.
        goal: (Q,) the host it goes to.
        free: (Q,) frames that are free.
        due: (F,) when a flow makes, or made, its next frame.
        made: (F,) frames of a flow that were sent.
        delivered: (F,) that arrived.
        dropped: (F,) that were dropped.
        transit: (F,) time that the last one took; -1 before the first.
        jitter: (F,) as RFC 3550 defines it.
        random: (F,) state of the random numbers of each flow.
        histogram: latencies of frames that have arrived.
        latencies: (1,) their sum.
        counts: (COUNTS,) scalars, see above.
    """

    first: Ints
    last: Ints
    held: Ints
    most: Ints
    used: Longs
    off: Bools
    stopped: Bools
    since: Longs
    still: Longs
    told: Longs
    pending: Bools
    under_way: Ints
    busy: Bools
    sending: Ints
    turn: Ints
    sent: Longs
    lanes: Lanes
    heap: Heap
    waking: Bools
    behind: Ints
    by: Ints
    holds: Ints
    birth: Longs
    flow: Longs
    step: Ints
    hops: Ints
    way: Ints
    goal: Ints
    free: Ints
    due: Longs
    made: Longs
    delivered: Longs
    dropped: Longs
    transit: Longs
    jitter: Floats
    random: Randoms
    histogram: Longs
    latencies: Floats
    counts: Longs


class PacketTcp(NamedTuple):
    """What TCP adds to frames, hosts and queues; F flows, 2 events a flow at most, and one an acknowledgement.

    Attributes:
        ends: senders and receivers; they count in seconds.
        source: (F,) host that a flow comes from.
        goal: (F,) host that it goes to.
        ack_time: (K,) ps that an acknowledgement takes on a link.
        size: (2,) units of memory that a segment's frame takes, and an acknowledgement.
        limit: acknowledgements that are lost in a host's own queue if so many frames wait there.
        spread: ps within which a host hears of an acknowledgement that has arrived.
        heard: (H,) when a host hears of the last one.
        unheard: (1,) acknowledgements that have arrived and not been heard of.
        acks: (K,) acknowledgements that went over a link.
        segment: (Q,) segment of a frame, or the one that an acknowledgement is sent for.
        wanted: (Q,) an acknowledgement's next segment wanted; -1 for segments.
        waiting: (N,) frames that wait in a node's queue.
        peak: (N,) the most there were.
        area: (N,) their number times ps, up to the last change.
        changed: (N,) ps of that.
        drops: (N,) frames that found no memory on their way into a node's queue.
    """

    ends: TcpEnds
    source: Longs
    goal: Longs
    ack_time: Longs
    size: Longs
    limit: int
    spread: int
    heard: Longs
    unheard: Longs
    acks: Longs
    segment: Longs
    wanted: Longs
    waiting: Longs
    peak: Longs
    area: Longs
    changed: Longs
    drops: Longs


class PacketTables(NamedTuple):
    """How switches forward frames, as 802.1Q has it; S switches, V VLANs, C channels, H hosts.

    A class is what a switch has decided about a frame when it has come in: with GLOBAL_VLANS, `vlan * S + switch`; with
    LOCAL_VLANS the VLAN inside the switch, which the port of arrival gives it; with PRIORITIES that port and its
    priority.

    Where links are aggregated, channels are those of the links themselves. A next hop is then the first channel of its
    bundle, whose others follow it in steps of two.

    Attributes:
        kind: GLOBAL_VLANS (tagged on links between switches), LOCAL_VLANS (untagged everywhere), or PRIORITIES (one
            VLAN, tagged on links between switches, with the layer as priority).
        switches: S.
        host_class: (H,) class of an untagged frame of a host: its port's PVID.
        channel_class: (layers, C) class of a frame by channel and priority; -1 = none. LOCAL_VLANS and PRIORITIES.
        vlan_of: (4096,) VLAN by identifier, -1 = there is none.
        vlan_id: (V,) identifiers.
        member: (C, V) whether both ends of a channel are tagged members of a VLAN; (C, 1) whether it carries any frame.
        floods: (C,) whether what has no class may come by a channel, to be flooded.
        next_hop: (classes, H) virtual channel to send by, FLOOD, DISCARD, or `arrive` + host.
        arrive: a number above all virtual channels.
        flood_start: (classes or S, + 1) offsets of what a frame is flooded to.
        flood_channel: virtual channels, or `arrive` + host.
        by_class: whether floods are of a class, or else of a switch.
        switch_of: (C + H,) switch that a channel enters, and a host hangs on.
        bundled: whether links are aggregated.
        first: (C,) first channel of the bundle that a channel is of.
        members: (C,) links of that bundle.
        learns: whether switches learn addresses.
        ageing: ps after which they forget one; 0 = never.
        learned: (classes, H) ps at which a switch last saw a frame of a host, -1 = never.
    """

    kind: int
    switches: int
    host_class: Ints
    channel_class: Ints
    vlan_of: Ints
    vlan_id: Ints
    member: Bools
    floods: Bools
    next_hop: Ints
    arrive: int
    flood_start: Longs
    flood_channel: Ints
    by_class: bool
    switch_of: Ints
    bundled: bool
    first: Ints
    members: Ints
    learns: bool
    ageing: int
    learned: Longs


class PacketLive(NamedTuple):
    """Frames of real hosts; Q frames, K links, N nodes, B bytes a frame at most.

    Attributes:
        tables: how switches forward.
        edition: (2,) numbers of the other tables that are to take their place, and of those that have; 0 = these.
        byte_time: (K,) ps that a byte takes on a link.
        cut_through: whether switches send on what has not arrived as a whole.
        cuts: (K,) links whose frames they do so with: those that are no slower than the links it may go on by.
        early: (K,) whether the frame that a link sends is at its next switch already, by a copy.
        delay: (1,) ps from a link's sending a last bit to the frame's standing in its next queue.
        down: (K,) links that lose what they carry.
        shut: (N,) nodes that drop what comes for them, since they were paused too long.
        longer: (K,) ps by which a link takes longer than the others beside.
        loss: (K,) chance of a frame to be lost on a link, in 2^32nds.
        data: (Q, B) frames as hosts sent them, without a tag.
        length: (Q,) their bytes, without check sequence.
        tag: (Q,) priority and VLAN (`pcp << 12 | vid`) on the link that a frame is on, -1 = untagged.
        memory: (Q,) units of memory that a frame takes.
        unit: bytes that count as one; 0 = each frame counts as one.
        chosen: (longest flood,) nodes of one frame.
        given: (R,) ring of frames that hosts are to be given, R a power of two.
        given_at: (R,) ps at which each has arrived.
        ends: (2,) frames that were ever put into the ring, and taken out of it.
        waiting: (N,) frames that wait in a node's queue.
        waiting_bytes: (N,) their bytes.
        drops: (N,) frames that found no memory on their way into a node's queue.
        sent_bytes: (K,) of frames that went over a link, tags included; the frames are in PacketState.
        pauses: (K,) PAUSE frames that were sent over a link.
        pairs: (2, H, H) bytes and frames that hosts sent to each other.
        refused: (len(REFUSED),) frames.
        watched: (K,) how many listen to a link.
        seen: (1,) frames that passed links with listeners; of each, in a ring of E, E a power of two:
        seen_at: (E,) ps at which its last bit left.
        seen_link: (E,) the link.
        seen_tag: (E,) its tag, -1 = untagged, -2 = a PAUSE frame.
        seen_length: (E,) its bytes; of a PAUSE frame the priorities that it stops, a bit each.
        seen_data: (E, B) what they are.
        flooded: (1,) copies that switches made of frames along trees.
        admitted: (S,) frames that a switch took in.
    """

    tables: PacketTables
    edition: Longs
    byte_time: Longs
    cut_through: bool
    cuts: Bools
    early: Bools
    delay: Longs
    down: Bools
    shut: Bools
    longer: Longs
    loss: Longs
    data: Octets
    length: Ints
    tag: Ints
    memory: Ints
    unit: int
    chosen: Ints
    given: Ints
    given_at: Longs
    ends: Longs
    waiting: Ints
    waiting_bytes: Longs
    drops: Longs
    sent_bytes: Longs
    pauses: Longs
    pairs: Longs
    refused: Longs
    watched: Ints
    seen: Longs
    seen_at: Longs
    seen_link: Ints
    seen_tag: Ints
    seen_length: Ints
    seen_data: Octets
    flooded: Longs
    admitted: Longs


class PacketModel(NamedTuple):
    """Everything that a network of real hosts is, at time 0.

    Attributes:
        fabric: what does not change.
        state: what does.
        live: frames and tables.
    """

    fabric: PacketFabric
    state: PacketState
    live: PacketLive
