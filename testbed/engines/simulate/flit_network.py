"""A plan as the arrays of the flit-level kernels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from testbed.base.errors import InputError, argument
from testbed.base.model import Ints, Routes, Topology
from testbed.dataplane.kernels import flits_state
from testbed.dataplane.kernels.flits import schedule
from testbed.dataplane.kernels.flits_state import (
    COUNTS,
    EXACT,
    FREE,
    HOP,
    IDLE,
    LINK,
    LISTED,
    NODE,
    OCTAVE,
    OCTAVES,
    SLOTS,
    FlitFabric,
    State,
)
from testbed.dataplane.kernels.flits_traffic import gap
from testbed.engines.simulate.flit_settings import UNIFORM, Settings, destinations
from testbed.fabric.routing.paths import destination_keys, end_index, hop_counts, source_keys, toward_root

_ENDLESS = 1 << 30  # room in front of a host
_WHEEL = 1 << 12
MOST_BYTES = 4 << 30


@dataclass(frozen=True, slots=True, eq=False)
class Network:
    """What every run of a simulation starts from."""

    topology: Topology  # the network
    routes: Routes  # its paths
    settings: Settings  # of the switches and the traffic
    pattern_seed: int  # draws the pattern where that is drawn
    longest: int  # hops of the longest path

    @classmethod
    def from_routes(cls, topology: Topology, routes: Routes, settings: Settings, pattern_seed: int) -> Network:
        """Look at the paths once.

        Raises:
            InputError: a run takes too much memory; says how much.
        """
        made = cls(topology, routes, settings, pattern_seed, int(hop_counts(topology, routes).max(initial=0)))
        if made.size > MOST_BYTES:
            raise InputError.one(
                argument("buffer"),
                f"a run of {made.nodes:,} virtual channels with {settings.buffer} flits each takes "
                f"{made.size / 2**30:.1f} GiB and may take {MOST_BYTES / 2**30:.0f}; give fewer layers or switches, "
                "shorter buffers or longer packets",
            )
        return made

    @property
    def nodes(self) -> int:
        """Virtual channels with their copies, and those from and to hosts."""
        copies, hosts = self.settings.channels, self.topology.host_count
        return copies * (self.routes.layers * len(self.topology.channel_source) + hosts) + hosts

    @property
    def packets(self) -> int:
        """Packets that can be in the network at a time: each has room promised to it, or taken, in some buffer."""
        return (self.nodes - self.topology.host_count) * (self.settings.buffer // self.settings.packet + 1)

    @property
    def size(self) -> int:
        """Bytes that a run takes, about."""
        nodes, packets = self.nodes, self.packets
        queue = self.settings.buffer // self.settings.packet + 2
        ready = max(self.settings.header, self.settings.idle_cycles + 2)
        links = len(self.topology.channel_source) + 2 * self.topology.host_count
        a_node = NODE.itemsize + 4 * (queue + ready + 1)
        a_link = LINK.itemsize + 4 * (3 * SLOTS + self.settings.output_gap + 2)
        a_packet = 8 if self.settings.idle_cycles >= self.settings.header - HOP else 16
        a_packet += 4 * (4 + max(self.longest, 1))
        once = 8 * (EXACT + OCTAVES * OCTAVE) + 4 * (_WHEEL + ready + self.settings.output_gap)
        return nodes * a_node + links * a_link + packets * a_packet + once

    @property
    def senders(self) -> int:
        """Hosts that send."""
        return len(destinations(self.settings.pattern, self.topology, self.pattern_seed))


def fabric_of(network: Network, load: float) -> FlitFabric:
    """What does not change in a run. `load`: flits for each host that sends and clock."""
    topology, routes, settings = network.topology, network.routes, network.settings
    paths = routes.paths
    none, nothing = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int32)
    from_source = routes.relation == "source_trees"
    if paths is not None:
        key = end_index(topology, routes)
    else:
        key = (source_keys if from_source else destination_keys)(topology, routes)
    target = np.full(topology.host_count, IDLE, dtype=np.int32)
    for source, goal in destinations(settings.pattern, topology, network.pattern_seed):
        target[source] = flits_state.UNIFORM if settings.pattern == UNIFORM else goal
    channels = len(topology.channel_source)
    return FlitFabric(
        channels=channels,
        copies=settings.channels,
        single=routes.layers * channels,
        virtual=settings.channels * routes.layers * channels,
        hosts=topology.host_count,
        packet=settings.packet,
        routing=settings.header - HOP,
        buffer_gap=settings.idle_cycles,
        output_gap=settings.output_gap,
        start=none if paths is None else paths.start,
        hop=nothing if paths is None else paths.hop,
        tree=routes.tree_channel.astype(np.int32, copy=False).reshape(-1, topology.switch_count),
        nearer=toward_root(topology, routes).astype(np.int32, copy=False),
        from_source=from_source,
        key=key.astype(np.int32, copy=False),
        ends=len(routes.ends),
        switch=topology.host_switch.astype(np.int32, copy=False),
        root=routes.tree_root.astype(np.int32, copy=False),
        chance=load / settings.packet,
        target=target,
        listed=nothing,
        sender=nothing,
        arrived_start=none,
        arrived=nothing,
        released_start=none,
        released=nothing,
    )


def new_state(network: Network, fabric: FlitFabric, seed: int) -> State:
    """An empty network at clock 0, every host with its first packet due. Equal seeds give equal runs."""
    hosts, channels, nodes, packets = fabric.hosts, fabric.channels, network.nodes, network.packets
    links, depth = channels + 2 * hosts, network.settings.buffer
    node = np.arange(nodes)
    virtual = node < fabric.virtual
    of_node = np.recarray(nodes, dtype=NODE)
    of_node[:] = 0
    of_node.port = np.where(virtual, node % max(channels, 1), node)
    leaving = node >= fabric.virtual + fabric.copies * hosts
    enters = fabric.virtual + (node - fabric.virtual) % max(hosts, 1)
    of_node.port = np.where(virtual | leaving, of_node.port, enters)
    first_link = channels - fabric.virtual + np.where(leaving, hosts, 0)
    of_node.link = np.where(virtual, of_node.port, enters + first_link)
    of_node.room = np.where(leaving, _ENDLESS, depth)
    for field in ("used", "wants", "waiting", "after", "served"):
        of_node[field] = -1
    of_link = np.recarray(links, dtype=LINK)
    of_link[:] = 0

    def zeros(*shape: int) -> Ints:
        return np.zeros(shape, dtype=np.int32)

    def no_index(count: int) -> Ints:
        return np.full(count, -1, dtype=np.int32)

    counts = np.zeros(COUNTS, dtype=np.int64)
    counts[FREE] = packets
    state = State(
        nodes=of_node,
        links=of_link,
        queue=zeros(nodes, depth // fabric.packet + 2),
        trying=zeros(nodes),
        busy=np.zeros((links + 63) // 64, dtype=np.uint64),
        line=zeros(SLOTS, links),
        lines=zeros(SLOTS),
        head_node=zeros(SLOTS, links),
        head_packet=zeros(SLOTS, links),
        heads=zeros(SLOTS),
        ready=zeros(max(fabric.routing, fabric.buffer_gap) + 2, nodes),
        readies=zeros(max(fabric.routing, fabric.buffer_gap) + 2),
        letting=zeros(fabric.output_gap + 2, links),
        lettings=zeros(fabric.output_gap + 2),
        birth=np.zeros(packets, dtype=np.int64),
        came=np.zeros(packets if fabric.buffer_gap < fabric.routing else 0, dtype=np.int64),
        step=zeros(packets),
        hops=zeros(packets),
        way=zeros(packets, max(network.longest, 1)),
        goal=zeros(packets),
        free=np.arange(packets, dtype=np.int32)[::-1].copy(),
        due=np.zeros(hosts, dtype=np.int64),
        to_send=zeros(hosts),
        current=zeros(hosts),
        through=zeros(hosts),
        sending=zeros(hosts),
        wheel=no_index(_WHEEL),
        wheel_next=no_index(hosts),
        # Only raw bits are the same in all versions of numpy.
        random=np.random.PCG64(seed).random_raw(hosts),
        histogram=np.zeros(EXACT + OCTAVES * OCTAVE, dtype=np.int64),
        counts=counts,
        unsent=np.zeros(0, dtype=np.int64),
        ring=zeros(0),
        ring_at=zeros(0),
        entry=zeros(0),
        finished=np.zeros(0, dtype=np.int64),
        missing=np.zeros(0, dtype=np.int64),
        blocked=np.zeros(0, dtype=np.int64),
        releasing=zeros(0),
    )
    for host in np.flatnonzero((fabric.target != IDLE) & (fabric.target != LISTED)).tolist():
        state.due[host] = gap(state.random, host, fabric.chance) - 1
        schedule(state, host)
    return state
