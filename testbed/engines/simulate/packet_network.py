"""A plan as the arrays of the packet-level kernels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from testbed.base.errors import InputError, argument
from testbed.base.model import Floats, Ints, Longs, Routes, Topology
from testbed.dataplane.kernels.events import NEVER, FifoLanes, Heap
from testbed.dataplane.kernels.flits_state import EXACT, OCTAVE, OCTAVES, Randoms
from testbed.dataplane.kernels.packets_hosts import begin
from testbed.dataplane.kernels.packets_state import (
    ANYWHERE,
    COUNTS,
    FREE,
    LANES,
    TCP_LANES,
    PacketFabric,
    PacketState,
    PacketTcp,
)
from testbed.dataplane.kernels.packets_tcp import BEGINS, KINDS
from testbed.dataplane.kernels.tcp_ends import new_ends
from testbed.dataplane.kernels.tie_breaking import DOCUMENTED
from testbed.engines.simulate.flit_network import MOST_BYTES, Network, fabric_of
from testbed.engines.simulate.flit_settings import UNIFORM, Settings, destinations
from testbed.engines.simulate.packet_settings import (
    CONTROL_BYTES,
    PICOSECONDS,
    PacketSettings,
    Thresholds,
    thresholds,
    time_of,
)
from testbed.fabric.routing.paths import hop_counts


@dataclass(frozen=True, slots=True)
class TcpFrames:
    """What TCP sends beside full segments."""

    ack: int  # bytes of an acknowledgement's frame between switches, in memory
    edge_ack: int  # bytes of one on a host's link
    flows: int  # connections
    host_queue: int  # frames in a host's own queue at which it loses acknowledgements


@dataclass(frozen=True, slots=True, eq=False)
class PacketNetwork:
    """What every run of a packet-level simulation starts from."""

    topology: Topology  # the network
    routes: Routes  # its paths
    settings: PacketSettings  # of the switches and the traffic
    rate: float  # of a link between switches, bit/s
    edge_rate: float  # of a host's link, bit/s
    pattern_seed: int  # draws the pattern where that is drawn
    edge_frame: int  # bytes of a frame on a host's link, where frames have no tag yet
    longest: int  # hops of the longest path
    tcp: TcpFrames | None = None  # what TCP sends, where hosts speak it

    @classmethod
    def from_routes(
        cls, topology: Topology, routes: Routes, settings: PacketSettings, rate: float, edge_rate: float,
        pattern_seed: int, edge_frame: int | None = None, tcp: TcpFrames | None = None,
    ) -> PacketNetwork:  # fmt: skip
        """Look at the paths once; `edge_frame` None = frames have one size everywhere.

        Raises:
            InputError: a run takes too much memory; says how much.
        """
        longest = int(hop_counts(topology, routes).max(initial=0))
        frame = settings.frame if edge_frame is None else edge_frame
        made = cls(topology, routes, settings, rate, edge_rate, pattern_seed, frame, longest, tcp)
        if made.size > MOST_BYTES:
            raise InputError.one(
                argument("buffer"),
                f"a run with room for {made.frames:,} frames takes {made.size / 2**30:.1f} GiB and may take "
                f"{MOST_BYTES / 2**30:.0f}; give fewer layers or switches, or smaller buffers",
            )
        return made

    @property
    def priorities(self) -> int:
        """Priorities of a link between switches; PAUSE knows one."""
        return 1 if self.settings.flow_control == "pause" else self.routes.layers

    @property
    def nodes(self) -> int:
        """Virtual channels, and those from and to hosts."""
        return self.priorities * len(self.topology.channel_source) + 2 * self.topology.host_count

    @property
    def links(self) -> int:
        """Directions of links, those of hosts included."""
        return len(self.topology.channel_source) + 2 * self.topology.host_count

    @property
    def thresholds(self) -> Thresholds:
        """Memory of each port and priority, in frames."""
        return thresholds(self.settings, self.rate, self.edge_rate, mixed=self.tcp is not None)

    @property
    def frame_memory(self) -> int:
        """Units of memory that a full frame takes: with TCP and flow control its bytes, else one."""
        return self.settings.frame if self.tcp is not None and self.settings.lossless else 1

    @property
    def ack_memory(self) -> int:
        """Likewise an acknowledgement; a queue that drops counts frames, as those of a lab do."""
        return self.tcp.ack if self.tcp is not None and self.settings.lossless else 1

    @property
    def ack_times(self) -> tuple[int, int]:
        """Picoseconds that an acknowledgement takes on a link between switches, and on a host's."""
        if self.tcp is None:
            return self.channel_time, self.edge_time
        return time_of(self.tcp.ack, self.rate), time_of(self.tcp.edge_ack, self.edge_rate)

    @property
    def delay(self) -> int:
        """Picoseconds from a link's sending a frame's last bit to its standing in the next queue."""
        return round(self.settings.delay * 1e6)

    @property
    def edge_time(self) -> int:
        """Picoseconds that a frame takes on a host's link."""
        return time_of(self.edge_frame, self.edge_rate)

    @property
    def channel_time(self) -> int:
        """Picoseconds that a frame takes on a link between switches."""
        return time_of(self.settings.frame, self.rate)

    @property
    def on_the_wire(self) -> int:
        """Frames that a link can have sent, and not delivered, at a time; one that it is sending included."""
        return self.delay // min(self.edge_time, self.channel_time, *self.ack_times) + 2

    @property
    def unread_acks(self) -> int:
        """Acknowledgements that hosts can have received and not heard of."""
        hosts = self.topology.host_count
        return 0 if self.tcp is None else hosts * (self.edge_time // self.ack_times[1] + 2)

    @property
    def frames(self) -> int:
        """Frames that can be in the network at a time, hosts included."""
        holders, buffer = self.nodes - self.topology.host_count, self.thresholds.buffer
        in_hosts = 0 if self.tcp is None else 3 * self.tcp.flows + self.topology.host_count * (self.tcp.host_queue + 1)
        in_memory = holders * (buffer * self.frame_memory // self.ack_memory)
        return in_memory + self.links * self.on_the_wire + in_hosts + self.unread_acks

    @property
    def ring(self) -> int:
        """Events that a lane must have room for; a link sends two PAUSE frames at most for each frame it carries."""
        return 1 << (2 * self.links * (self.on_the_wire + 1)).bit_length()

    @property
    def size(self) -> int:
        """Bytes that a run takes, about."""
        a_frame = 12 + 4 * (7 + max(self.longest, 1)) + (0 if self.tcp is None else 16)
        return self.frames * a_frame + LANES * self.ring * 16 + self.nodes * 40 + 8 * (EXACT + OCTAVES * OCTAVE)

    @property
    def senders(self) -> int:
        """Hosts that send."""
        return len(destinations(self.settings.pattern, self.topology, self.pattern_seed))

    def pattern_flows(self) -> list[tuple[int, int]]:
        """(source, goal) of a flow for each host that sends; ANYWHERE for a destination drawn for each frame."""
        uniform = self.settings.pattern == UNIFORM
        pairs = destinations(self.settings.pattern, self.topology, self.pattern_seed)
        return [(source, ANYWHERE if uniform else goal) for source, goal in pairs]


class Memory(NamedTuple):
    """The memory of all nodes and switches; each as in PacketFabric."""

    buffer: int
    xoff: int
    xon: int
    place: Ints
    pool: Longs
    memory: Longs
    near: Longs
    node: Ints


def memory_of(topology: Topology, limits: Thresholds, priorities: int, unit: int, *, lossless: bool) -> Memory:
    """Share memory out: frames take it of the switch where their node ends, or without flow control where it begins.

    Args:
        topology: the network.
        limits: in frames.
        priorities: of a link between switches.
        unit: units of memory that a full frame takes.
        lossless: whether receivers pause senders.
    """
    nowhere = np.full(topology.host_count, -1)
    ends = topology.channel_target if lossless else topology.channel_source
    of_hosts = [topology.host_switch, nowhere] if lossless else [nowhere, topology.host_switch]
    place = np.concatenate([*([ends] * priorities), *of_hosts]).astype(np.int32)
    holders = np.flatnonzero(place >= 0)
    order = holders[np.argsort(place[holders], kind="stable")]
    at_switch = np.bincount(place[holders], minlength=topology.switch_count)
    reserve = limits.headroom + 1 if lossless else 0
    return Memory(
        buffer=unit * limits.buffer,
        xoff=unit * limits.xoff,
        xon=unit * limits.xon,
        place=place,
        pool=(at_switch * unit * (limits.buffer - reserve)).astype(np.int64),
        memory=(at_switch * unit * limits.buffer).astype(np.int64),
        near=np.concatenate([[0], np.cumsum(at_switch)]).astype(np.int64),
        node=order.astype(np.int32),
    )


def packet_fabric(
    network: PacketNetwork,
    flows: Sequence[tuple[int, int]],
    gaps: Floats,
    *,
    paced: bool = False,
    tie_order: int = DOCUMENTED,
) -> PacketFabric:
    """What does not change in a run.

    Args:
        network: the plan and its settings.
        flows: (source, goal) hosts, sources ascending; goal ANYWHERE for one drawn for each frame.
        gaps: (F,) picoseconds between two frames of a flow, on average.
        paced: whether that is the time always, or the mean of an exponential distribution.
        tie_order: of events of one time, see kernels.ties.
    """
    topology, settings = network.topology, network.settings
    channels, hosts = len(topology.channel_source), topology.host_count
    virtual = network.priorities * channels
    paths = fabric_of(Network(topology, network.routes, Settings(), 1, network.longest), 1.0)
    if network.priorities < network.routes.layers:
        paths = paths._replace(hop=paths.hop % channels, virtual=virtual)
    source = np.array([flow[0] for flow in flows], dtype=np.int64)
    memory = memory_of(
        topology, network.thresholds, network.priorities, network.frame_memory, lossless=settings.lossless
    )
    return PacketFabric(
        paths=paths,
        channels=channels,
        priorities=network.priorities,
        virtual=virtual,
        hosts=hosts,
        frame_time=_by_link(network, network.channel_time, network.edge_time),
        control_time=_by_link(network, *(time_of(CONTROL_BYTES, rate) for rate in (network.rate, network.edge_rate))),
        delay=network.delay,
        lossless=settings.lossless,
        shared=settings.shared,
        flows=np.searchsorted(source, np.arange(hosts + 1)).astype(np.int64),
        goal=np.array([flow[1] for flow in flows], dtype=np.int32),
        gap=gaps.astype(np.float64),
        paced=paced,
        tie_order=tie_order,
        **memory._asdict(),
    )


def _by_link(network: PacketNetwork, on_channel: int, on_edge: int) -> Longs:
    channels = len(network.topology.channel_source)
    return np.where(np.arange(network.links) < channels, on_channel, on_edge).astype(np.int64)


def new_packet_state(network: PacketNetwork, fabric: PacketFabric, seed: int) -> PacketState:
    """An empty network at time 0, every flow with its first frame due; with TCP, see start_tcp(), nothing is.

    Args:
        network: the plan and its settings.
        fabric: as packet_fabric() made it.
        seed: equal seeds give equal runs.
    """
    flows = len(fabric.goal)
    events = fabric.hosts if network.tcp is None else 2 * flows + network.unread_acks
    state = empty_packet_state(network, fabric, seed, events)
    if network.tcp is None:
        # Senders that keep time begin somewhere in it.
        begin(fabric, state, np.random.PCG64([seed, 1]).random_raw(flows) / 2.0**64)
    return state


def empty_packet_state(network: PacketNetwork, fabric: PacketFabric, seed: int, events: int) -> PacketState:
    """An empty network at time 0, in which nothing is due; `events` are those that the heap has room for."""
    # Only raw bits are the same in all versions of numpy.
    random = np.random.PCG64(seed).random_raw(len(fabric.goal))
    state = empty_state(
        fabric, switches=network.topology.switch_count, frames=network.frames, longest=network.longest,
        ring=network.ring, lanes=LANES if network.tcp is None else TCP_LANES, events=events, random=random,
    )  # fmt: skip
    state.tie_random[:] = np.random.PCG64([seed, 2, fabric.tie_order]).random_raw(1)
    return state


def empty_state(
    fabric: PacketFabric, *, switches: int, frames: int, longest: int, ring: int, lanes: int, events: int,
    random: Randoms,
) -> PacketState:  # fmt: skip
    """An empty network at time 0.

    Args:
        fabric: the network.
        switches: S.
        frames: that can be in it at a time.
        longest: hops of the longest path.
        ring: events that a lane has room for, a power of two.
        lanes: their number.
        events: that the heap has room for.
        random: (F,) state of the random numbers of each flow.
    """
    nodes, links, hosts, flows = len(fabric.place), len(fabric.frame_time), fabric.hosts, len(fabric.goal)

    def zeros(*shape: int) -> Ints:
        return np.zeros(shape, dtype=np.int32)

    def longs(*shape: int) -> Longs:
        return np.zeros(shape, dtype=np.int64)

    def minus_ones(count: int) -> Ints:
        return np.full(count, -1, dtype=np.int32)

    counts = longs(COUNTS)
    counts[FREE] = frames
    return PacketState(
        first=minus_ones(nodes),
        last=minus_ones(nodes),
        held=zeros(nodes),
        most=zeros(nodes),
        used=longs(switches),
        off=np.zeros(nodes, dtype=np.bool_),
        stopped=np.zeros(nodes, dtype=np.bool_),
        since=longs(nodes),
        still=longs(nodes),
        told=longs(links),
        pending=np.zeros(links, dtype=np.bool_),
        under_way=zeros(links),
        busy=np.zeros(links, dtype=np.bool_),
        sending=zeros(links),
        turn=zeros(links),
        sent=longs(links),
        lanes=FifoLanes(
            time=longs(lanes, ring),
            what=longs(lanes, ring),
            start=longs(lanes),
            length=longs(lanes),
            soonest=np.full(lanes, NEVER, dtype=np.int64),
        ),
        heap=Heap(longs(events), longs(events), longs(1)),
        waking=np.zeros(hosts, dtype=np.bool_),
        behind=minus_ones(frames),
        by=zeros(frames),
        holds=minus_ones(frames),
        birth=longs(frames),
        flow=longs(frames),
        step=zeros(frames),
        hops=zeros(frames),
        way=zeros(frames, max(longest, 1)),
        goal=zeros(frames),
        free=np.arange(frames, dtype=np.int32)[::-1].copy(),
        due=longs(flows),
        made=longs(flows),
        delivered=longs(flows),
        dropped=longs(flows),
        transit=np.full(flows, -1, dtype=np.int64),
        jitter=np.zeros(flows, dtype=np.float64),
        random=random,
        tie_random=np.zeros(1, dtype=np.uint64),
        histogram=longs(EXACT + OCTAVES * OCTAVE),
        latencies=np.zeros(1, dtype=np.float64),
        counts=counts,
    )


def start_tcp(
    network: PacketNetwork, fabric: PacketFabric, state: PacketState, sources: Sequence[int], seed: int, spread: float
) -> PacketTcp:
    """Let every flow begin at random.

    Args:
        network: with TCP.
        fabric: as packet_fabric() made it.
        state: as new_packet_state() made it.
        sources: (F,) hosts.
        seed: equal seeds give equal runs.
        spread: seconds within which all begin.
    """
    assert network.tcp is not None
    nodes, frames, flows = network.nodes, network.frames, len(sources)
    starts = (spread * PICOSECONDS * (np.random.PCG64([seed, 1]).random_raw(flows) / 2.0**64)).astype(np.int64)
    # In order of time they are a heap.
    order = np.argsort(starts, kind="stable")
    state.heap.time[:flows] = starts[order]
    state.heap.what[:flows] = order * KINDS + BEGINS
    state.heap.count[0] = flows

    def longs(*shape: int) -> Longs:
        return np.zeros(shape, dtype=np.int64)

    return PacketTcp(
        ends=new_ends(flows, network.thresholds.buffer),
        source=np.array(sources, dtype=np.int64),
        goal=fabric.goal.astype(np.int64),
        ack_time=_by_link(network, *network.ack_times),
        size=np.array([network.frame_memory, network.ack_memory]),
        limit=network.tcp.host_queue,
        spread=network.edge_time,
        heard=longs(fabric.hosts),
        unheard=longs(1),
        acks=longs(network.links),
        segment=longs(frames),
        wanted=longs(frames),
        waiting=longs(nodes),
        peak=longs(nodes),
        area=longs(nodes),
        changed=longs(nodes),
        drops=longs(nodes),
    )
