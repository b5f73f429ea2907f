"""A plan as the switches of the packet level that forward frames of real hosts: their tables, and an empty network."""

from __future__ import annotations

import numpy as np

from testbed.base.errors import InputError, Problem
from testbed.base.ethernet import CHECK_SEQUENCE, HEADER, MIN_FRAME, VLAN_TAG
from testbed.base.model import Ints, Longs, Topology
from testbed.dataplane.kernels.packets_clock import ModelClock
from testbed.dataplane.kernels.packets_live import set_byte_times
from testbed.dataplane.kernels.packets_state import (
    LANES,
    REFUSED,
    PacketFabric,
    PacketLive,
    PacketModel,
    PacketTables,
)
from testbed.dataplane.kernels.tie_breaking import DOCUMENTED
from testbed.dataplane.switch_tables import switch_tables, table_cells
from testbed.engines.simulate.flit_network import Network, fabric_of
from testbed.engines.simulate.flit_settings import Settings
from testbed.engines.simulate.packet_network import empty_state, memory_of
from testbed.engines.simulate.packet_settings import (
    PICOSECONDS,
    PacketSettings,
    fabric_problems,
    in_scenario,
    packet_problems,
    settings_of,
    thresholds,
)
from testbed.planning import Plan
from testbed.planning.failover.model_tables import all_tables
from testbed.planning.failures import first_tables

# Ethernet header, and a tag that a host may send; rows of frames begin where a cache line does.
_LINE = 64
# A table of next hops has so many cells at most.
_MAX_CELLS = 1 << 28
# Copies of broadcasts that are under way need frames, too.
_SPARE = 4096
_SEEN = 1 << 15  # frames that who listens to links may be behind


def live_settings(plan: Plan) -> PacketSettings:
    """The settings of the scenario for its switches.

    Raises:
        InputError: all that is wrong, by keys of the scenario.
    """
    scenario, links = plan.scenario, plan.scenario.links
    settings = settings_of(
        scenario, links.mtu + HEADER + CHECK_SEQUENCE + (VLAN_TAG if plan.vlans.tagged_trunks else 0)
    )
    problems = packet_problems(settings, 1) or fabric_problems(
        settings, plan.routes, links.rate, links.edge_rate, mixed=True
    )
    if scenario.simulator.watchdog is not None and not settings.lossless:
        sentence = "watches for pauses that do not end, and without flow control there are none; take it out"
        problems.append(Problem("simulator.watchdog", sentence))
    if problems:
        raise InputError(in_scenario(problems, scenario))
    return settings


def live_model(plan: Plan) -> PacketModel:
    """The plan's switches, at the rates of the real world.

    Raises:
        InputError: the settings are not sound, or the tables too large.
    """
    settings = live_settings(plan)
    fabric = _fabric(plan, settings)
    frames = _frames(fabric, settings)
    row = -(-(plan.scenario.links.mtu + HEADER + VLAN_TAG) // _LINE) * _LINE
    nodes, links, hosts = len(fabric.place), len(fabric.frame_time), fabric.hosts
    ring = 1 << frames.bit_length()
    state = empty_state(
        fabric, switches=plan.topology.switch_count, frames=frames, longest=1, ring=ring, lanes=LANES,
        events=2 * links + frames, random=np.random.PCG64(0).random_raw(1),
    )  # fmt: skip
    tables = live_tables(plan)
    longest = _most_ports(plan.wiring)

    def longs(*shape: int) -> Longs:
        return np.zeros(shape, dtype=np.int64)

    def ints(*shape: int) -> Ints:
        return np.zeros(shape, dtype=np.int32)

    rate, edge_rate = plan.scenario.links.rate, plan.scenario.links.edge_rate
    byte_time = np.full(links, round(8 * PICOSECONDS / edge_rate), dtype=np.int64)
    byte_time[: fabric.channels] = round(8 * PICOSECONDS / rate)
    if plan.speeds is not None:
        byte_time[: fabric.channels] = np.rint(8 * PICOSECONDS / (rate * np.repeat(plan.speeds, 2)))
    live = PacketLive(
        tables=tables,
        clock=ModelClock(longs(1), longs(2), longs(2), np.ones(2)),
        edition=longs(2),
        byte_time=byte_time,
        cut_through=plan.scenario.simulator.cut_through,
        cuts=np.zeros(links, dtype=np.bool_),
        early=np.zeros(links, dtype=np.bool_),
        delay=np.full(1, fabric.delay, dtype=np.int64),
        down=np.zeros(links, dtype=np.bool_),
        spared=np.zeros(fabric.channels, dtype=np.bool_),
        shut=np.zeros(nodes, dtype=np.bool_),
        longer=longs(links),
        loss=longs(links),
        data=np.zeros((frames, row), dtype=np.uint8),
        length=ints(frames),
        tag=np.full(frames, -1, dtype=np.int32),
        memory=ints(frames),
        unit=1 if settings.lossless else 0,
        chosen=ints(longest),
        given=ints(ring),
        given_at=longs(ring),
        ends=longs(2),
        waiting=ints(nodes),
        waiting_bytes=longs(nodes),
        drops=longs(nodes),
        sent_bytes=longs(links),
        pauses=longs(links),
        pairs=longs(2, hosts, hosts),
        refused=longs(len(REFUSED)),
        watched=ints(links),
        seen=longs(1),
        seen_at=longs(_SEEN),
        seen_link=ints(_SEEN),
        seen_tag=ints(_SEEN),
        seen_length=ints(_SEEN),
        seen_data=np.zeros((_SEEN, row), dtype=np.uint8),
        flooded=longs(1),
        admitted=longs(plan.topology.switch_count),
    )
    set_byte_times(fabric, live, byte_time)
    return PacketModel(fabric, state, live)


def _most_ports(topology: Topology) -> int:
    """Ports of the switch that has most of them: a frame is sent by no more."""
    ends = np.concatenate([topology.channel_source, topology.host_switch])
    return int(np.bincount(ends).max(initial=1))


def _fabric(plan: Plan, settings: PacketSettings) -> PacketFabric:
    """As packet_fabric() makes it, for frames of any size: memory is in bytes with flow control, else in frames."""
    topology, links = plan.wiring, plan.scenario.links
    channels, hosts = len(topology.channel_source), topology.host_count
    priorities = plan.routes.layers if settings.flow_control == "pfc" else 1
    limits = thresholds(settings, links.rate, links.edge_rate, mixed=True)
    unit = settings.frame if settings.lossless else 1
    no_times = np.zeros(channels + 2 * hosts, dtype=np.int64)
    return PacketFabric(
        paths=fabric_of(Network(plan.topology, plan.routes, Settings(), 1, 1), 1.0),
        channels=channels,
        priorities=priorities,
        virtual=priorities * channels,
        hosts=hosts,
        frame_time=no_times,
        control_time=no_times,
        delay=round(settings.delay * 1e6),
        lossless=settings.lossless,
        shared=settings.shared,
        flows=np.zeros(hosts + 1, dtype=np.int64),
        goal=np.zeros(0, dtype=np.int32),
        gap=np.zeros(0, dtype=np.float64),
        paced=True,
        tie_order=DOCUMENTED,
        **memory_of(topology, limits, priorities, unit, lossless=settings.lossless)._asdict(),
    )


def _frames(fabric: PacketFabric, settings: PacketSettings) -> int:
    """Frames that can be in the network at a time; memory in bytes may be full of the shortest."""
    each = fabric.buffer // MIN_FRAME if settings.lossless else fabric.buffer
    return int((len(fabric.place) - fabric.hosts) * each + 4 * len(fabric.frame_time) + _SPARE)


def live_tables(plan: Plan) -> PacketTables:
    """What the plan's switches do with frames; backup VLANs are among their tables where a segment manager wants some.

    Raises:
        InputError: there are more classes and hosts than a table of next hops may have cells.
    """
    managed = first_tables(plan)
    cells = table_cells(plan.topology, plan.vlans)
    if managed is not None:
        cells += table_cells(plan.topology, managed.backups)
    if cells > _MAX_CELLS:
        sentence = f"needs a table of {cells:,} next hops and may have {_MAX_CELLS:,}; take a smaller fabric"
        raise InputError.one("topology", sentence, plan.scenario.source)
    if managed is not None:
        return all_tables(plan.topology, managed)
    return switch_tables(plan.topology, plan.vlans, plan.bundles)
