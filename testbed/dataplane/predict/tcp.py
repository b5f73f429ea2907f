"""Goodput of TCP flows that share channels, simulated frame by frame.

What Reno's equilibrium (reno.py) leaves out counts in a lab: queues lose frames in bursts and not each by itself, a
flow does not grow while it recovers, acknowledgements wait and are lost, and a load ends before long cycles have evened
out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from testbed.base.ethernet import MAX_WIRE_FRAME
from testbed.base.jit import INTERPRETED
from testbed.base.model import Floats, Longs
from testbed.base.units import LATE_AT_ONCE
from testbed.dataplane.predict.reno import reno_goodput
from testbed.dataplane.predict.shared_links import Ways, Wires

if TYPE_CHECKING:
    from testbed.dataplane.kernels.tcp import TcpFabric, TcpState

_REPEATS = 16
_HOPS = 20_000_000  # of frames, simulated in all; some seconds
_LONGEST_QUEUE = 4096


@dataclass(frozen=True, slots=True)
class TcpLoad:
    """What a load is, and the ports that it meets."""

    omit: float  # seconds that are not counted
    seconds: float  # seconds that are
    slower: float  # how many times slower the links of the lab are; TCP's timers are not
    queue_frames: int  # frames that wait at a port before one is lost
    head_drop: bool  # whether a full queue of a switch loses its first frame, else the new one
    starts: float = 1.0  # seconds within which the programs of the load start; each counts from its own start


def tcp_goodput(wires: Wires, flows: Sequence[tuple[int, int]], ways: Ways, load: TcpLoad) -> Floats:
    """Goodput in bit/s (real world) of each flow over the seconds counted from its own start.

    Arguments and result as for fair_goodput(); the same for the same arguments. Where kernels are not compiled, it is
    Reno's equilibrium.
    """
    if INTERPRETED:
        return reno_goodput(wires, flows, ways)
    from testbed.dataplane.kernels.tcp import run

    fabric = _fabric(wires, flows, ways, load)
    whole = load.starts + load.omit + load.seconds
    room = _HOPS / (float((1 / fabric.frame_time).sum()) * whole)
    repeats, part = max(1, min(_REPEATS, int(room))), min(1.0, room)
    fabric = fabric._replace(omit=load.omit * part, seconds=load.seconds * part)
    segments = np.zeros(len(flows))
    for repeat in range(repeats):
        state = _state(fabric, len(flows), repeat, load.starts * part)
        run(fabric, state, whole * part)
        segments += state.counted
    # A flow of which nothing arrived would have got less than one segment; that is more than nothing.
    some = np.maximum(segments, 1.0)
    return np.asarray(
        some / (repeats * load.seconds * part) * wires.transport.payload * 8 * load.slower, dtype=np.float64
    )


def _fabric(wires: Wires, flows: Sequence[tuple[int, int]], ways: Ways, load: TcpLoad) -> TcpFabric:
    from testbed.dataplane.kernels.tcp import TcpFabric

    wire, channels, hosts = wires.transport, len(wires.topology.channel_source), wires.topology.host_count
    ends = [*flows, *((end, start) for start, end in flows)]
    between = [*(there for there, _ in ways), *(back for _, back in ways)]
    walks = [[channels + a, *way, channels + hosts + b] for (a, b), way in zip(ends, between, strict=True)]
    rate = wires.rates / load.slower
    frame = np.full(len(rate), float(wire.forward))
    frame += wires.tags
    used, number = np.unique(np.concatenate([np.array(walk) for walk in walks]), return_inverse=True)
    way = np.zeros((len(walks), max(map(len, walks))), dtype=np.int32)
    hops = np.array([len(walk) for walk in walks], dtype=np.int32)
    way[np.arange(way.shape[1]) < hops[:, None]] = number
    return TcpFabric(
        way, hops,
        frame_time=frame[used] * 8 / rate[used],
        burst=LATE_AT_ONCE * MAX_WIRE_FRAME / frame[used],
        acknowledgement=wire.ack / wire.forward,
        queue=min(load.queue_frames, _LONGEST_QUEUE),
        head_drop=load.head_drop,
        # One type whatever is written, or all is compiled once more.
        omit=float(load.omit),
        seconds=float(load.seconds),
    )  # fmt: skip


def _state(fabric: TcpFabric, flows: int, seed: int, spread: float = 1.0) -> TcpState:
    from testbed.dataplane.kernels.events import Heap
    from testbed.dataplane.kernels.tcp import BEGINS, KINDS, TcpState
    from testbed.dataplane.kernels.tcp_ends import new_ends

    channels = len(fabric.frame_time)
    at_home = int(np.bincount(fabric.way[:flows, 0]).max(initial=0))
    queue = (channels, fabric.queue + 3 * at_home + 1)
    events = channels + 4 * flows + 1

    def zeros(size: int | tuple[int, int]) -> Longs:
        return np.zeros(size, dtype=np.int64)

    # Programs start one after the other, within `spread` seconds; in order of time they are a heap.
    starts = spread * np.random.PCG64([seed, 1]).random_raw(flows) / 2.0**64
    heap = Heap(np.zeros(events), zeros(events), np.array([flows]))
    heap.time[:flows] = np.sort(starts)
    heap.what[:flows] = np.argsort(starts) * KINDS + BEGINS
    return TcpState(
        heap=heap, random=np.random.PCG64(seed).random_raw(1),
        walk=np.zeros(queue, dtype=np.int32), segment=zeros(queue),
        note=zeros(queue), hop=np.zeros(queue, dtype=np.int32),
        head=zeros(channels), waiting=zeros(channels), leaving=np.zeros(channels, dtype=np.bool_),
        tokens=fabric.burst.copy(), filled=np.zeros(channels),
        counted=zeros(flows), ends=new_ends(flows, fabric.queue),
    )  # fmt: skip
