"""Hosts that send datagrams: when their flows make frames, and which one a host sends next."""

from __future__ import annotations

import math

import numpy as np

from testbed.base.jit import jit, jit_inner
from testbed.base.model import Floats
from testbed.dataplane.kernels.events import NEVER, pop, push
from testbed.dataplane.kernels.flits_traffic import draw, lay_path
from testbed.dataplane.kernels.packets_state import ANYWHERE, FREE, MADE, PacketFabric, PacketState

_11 = np.uint64(11)


@jit
def begin(fabric: PacketFabric, state: PacketState, phase: Floats) -> None:
    """Let every flow have its first frame due: a paced one at its phase, a share of the time between two frames."""
    for host in range(fabric.hosts):
        soonest = NEVER
        for flow in range(fabric.flows[host], fabric.flows[host + 1]):
            state.due[flow] = int(phase[flow] * fabric.gap[flow]) if fabric.paced else _interval(fabric, state, flow)
            soonest = min(soonest, state.due[flow])
        if soonest < NEVER:
            sleep_until(state, host, soonest)


@jit_inner
def sleep_until(state: PacketState, host: int, time: int) -> None:
    """Wake a host at a time, unless it is to be woken already."""
    if not state.waking[host]:
        state.waking[host] = True
        push(state.heap, time, host)


@jit_inner
def wake(state: PacketState) -> int:
    """Take the host that wakes first."""
    host = pop(state.heap)
    state.waking[host] = False
    return host


@jit_inner
def _interval(fabric: PacketFabric, state: PacketState, flow: int) -> int:
    """Time to the next frame of a flow."""
    mean: float = fabric.gap[flow]
    if fabric.paced:
        return round(mean)
    share: float = np.float64(draw(state.random, flow) >> _11) * 2.0**-53
    return round(-math.log1p(-share) * mean)


@jit_inner
def make_frame(fabric: PacketFabric, state: PacketState, host: int, now: int) -> int:
    """The frame that a host sends next, or -1: the host then sleeps until it has one."""
    flow, soonest = -1, NEVER
    for other in range(fabric.flows[host], fabric.flows[host + 1]):
        if state.due[other] < soonest:
            flow, soonest = other, state.due[other]
    if flow < 0:
        return -1
    if soonest > now:
        sleep_until(state, host, soonest)
        return -1
    counts = state.counts
    counts[FREE] -= 1
    frame = state.free[counts[FREE]]
    goal = fabric.goal[flow]
    if goal == ANYWHERE:
        goal = int(np.int64(draw(state.random, flow) % np.uint64(fabric.hosts - 1)))
        if goal >= host:
            goal += 1
    lay_path(fabric.paths, state, frame, host, goal)
    state.birth[frame] = soonest
    state.flow[frame] = flow
    state.holds[frame] = -1
    state.by[frame] = fabric.virtual + host
    state.due[flow] = soonest + _interval(fabric, state, flow)
    state.made[flow] += 1
    counts[MADE] += 1
    return int(frame)
