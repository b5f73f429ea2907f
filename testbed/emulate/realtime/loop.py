"""The loop that joins doors and model: what hosts send goes in, time goes on to now, what has arrived goes out.

Times within the model are exact whenever they are computed; only the doors must be looked at in time. So the loop
sleeps for a grain between two looks, however much happens meanwhile, and measures how late it was.
"""

from __future__ import annotations

import platform
from typing import Any

from numba.core import types

from testbed.emulate.realtime.doors import (
    AHEAD,
    BIN,
    BINS,
    DELIVERY,
    FRAME,
    GRAIN,
    KEPT,
    LOOP,
    PS_A_NS,
    QUEUE,
    READING,
    REFUSED_BY_HOST,
    STALLED_NS,
    STOP,
    TAP,
    Doors,
)
from testbed.kernels.events import NEVER
from testbed.kernels.jit import jit, jit_inner
from testbed.kernels.packets import advance
from testbed.kernels.packets_links import release
from testbed.kernels.packets_live import offer
from testbed.kernels.packets_state import FREE, LANES, PacketFabric, PacketLive, PacketState

# Symbols of libc, which are found when the machine code is loaded, so that it can be kept on disk.
_read: Any = types.ExternalFunction("read", types.intp(types.int32, types.intp, types.intp))
_recv: Any = types.ExternalFunction("recv", types.intp(types.int32, types.intp, types.intp, types.int32))
_send: Any = types.ExternalFunction("send", types.intp(types.int32, types.intp, types.intp, types.int32))
_write: Any = types.ExternalFunction("write", types.intp(types.int32, types.intp, types.intp))
_clock_gettime: Any = types.ExternalFunction("clock_gettime", types.int32(types.int32, types.intp))
_nanosleep: Any = types.ExternalFunction("nanosleep", types.int32(types.intp, types.intp))
_epoll_pwait2: Any = types.ExternalFunction(
    "epoll_pwait2", types.int32(types.int32, types.intp, types.int32, types.intp, types.intp)
)

# What epoll says is packed on one architecture: 12 bytes an event, else 16.
_EVENT, _DATA = (3, 1) if platform.machine() == "x86_64" else (4, 2)
_MONOTONIC = 1
_BILLION = 1_000_000_000
# linux/netfilter/nfnetlink_queue.h: where attributes begin, and which are looked at.
_QUEUE_SUBSYSTEM, _ATTRIBUTES, _PACKET_HEADER, _PAYLOAD = 3, 20, 1, 10
_ETHERNET, _IP_HEADER, _DONT_WAIT = 14, 20, 0x40
_FEW = 6  # frames under way for which the loop wakes at each event: a lone one is then not late for a grain
_IDLE = 5_000_000  # ns that the loop sleeps at most


@jit_inner
def _now(doors: Doors) -> int:
    """Nanoseconds since the model's time 0."""
    _clock_gettime(_MONOTONIC, doors.clock.ctypes.data)
    return int(doors.clock[0] * _BILLION + doors.clock[1] - doors.zero[0])


@jit_inner
def _count(doors: Doors, row: int, late: int) -> None:
    place = max(late, 0) // BIN
    doors.late[row, place if place < BINS else BINS - 1] += 1


@jit_inner
def _give(fabric: PacketFabric, state: PacketState, live: PacketLive, doors: Doors) -> None:
    """Give hosts what has arrived at them."""
    first_exit = fabric.virtual + fabric.hosts
    while live.ends[1] != live.ends[0]:
        place = live.ends[1] & (len(live.given) - 1)
        frame = int(live.given[place])
        host = int(state.by[frame]) - first_exit
        _count(doors, DELIVERY, _now(doors) - live.given_at[place] // PS_A_NS)
        if _write(doors.taps[host], live.data[frame].ctypes.data, int(live.length[frame])) < 0:
            doors.control[REFUSED_BY_HOST] += 1
        live.ends[1] += 1
        release(state, frame)


@jit_inner
def _receive(live: PacketLive, doors: Doors, host: int, frame: int) -> int:
    """Receive a packet that netfilter holds, and make a frame of it, to the host whose number is in its address.

    Returns:
        bytes; 0 = no packet, but there may be others; -1 = there is nothing.
    """
    message, data = doors.message, live.data[frame]
    if doors.queues[host] < 0:
        return -1
    got = _recv(doors.queues[host], message.ctypes.data, len(message), _DONT_WAIT)
    if got < 0:
        return -1
    if got < _ATTRIBUTES or message[4] != 0 or message[5] != _QUEUE_SUBSYSTEM:
        return 0
    place, size = _ATTRIBUTES, 0
    while place + 4 <= got:
        length = int(message[place]) | int(message[place + 1]) << 8
        kind = int(message[place + 2]) | (int(message[place + 3]) & 0x3F) << 8
        if length < 4:
            break
        if kind == _PACKET_HEADER:
            for byte in range(4):
                doors.verdict[28 + byte] = message[place + 4 + byte]
        elif kind == _PAYLOAD:
            size = min(length - 4, len(data) - _ETHERNET)
            for byte in range(size):
                data[_ETHERNET + byte] = message[place + 4 + byte]
        place += length + 3 & ~3
    if size < _IP_HEADER:
        return 0
    # Host n has address 10.0.0.0 + n and 02:00:00:00:00:00 + n, see model.py.
    data[0], data[1], data[2] = 0x02, 0, 0
    for byte in range(3):
        data[3 + byte] = data[_ETHERNET + 17 + byte]
    number = host + 1
    data[6] = 0x02
    data[7], data[8], data[9] = 0, (number >> 24) & 0xFF, (number >> 16) & 0xFF
    data[10], data[11] = (number >> 8) & 0xFF, number & 0xFF
    data[12], data[13] = 0x08, 0x00
    return _ETHERNET + size


@jit_inner
def _take(fabric: PacketFabric, state: PacketState, live: PacketLive, doors: Doors, last: int) -> None:
    """Take what hosts want to send, as far as their cards have room."""
    for host in range(fabric.hosts):
        node, taken = fabric.virtual + host, False
        while doors.ready[host] and live.waiting[node] < AHEAD and state.counts[FREE] > KEPT:
            frame = int(state.free[state.counts[FREE] - 1])
            if doors.ready[host] & TAP:
                size = _read(doors.taps[host], live.data[frame].ctypes.data, live.data.shape[1])
                if size <= 0:
                    doors.ready[host] &= ~TAP
                    continue
            else:
                size = _receive(live, doors, host, frame)
                if size < 0:
                    doors.ready[host] &= ~QUEUE
                    break
                taken = True
                if size == 0:
                    continue
            now = _now(doors)
            if not state.busy[fabric.channels + host]:
                _count(doors, READING, now - last)  # it may have waited since the last look
            # The model's time is that of its last event; a frame is never put in before.
            offer(fabric, state, live, host, size, now * PS_A_NS)
        if taken:
            _send(doors.queues[host], doors.verdict.ctypes.data, len(doors.verdict), 0)


@jit_inner
def _next_event(state: PacketState) -> int:
    """The time at which the model goes on, ns."""
    soonest = NEVER
    for lane in range(LANES):
        soonest = min(soonest, state.lanes.soonest[lane])
    if state.heap.count[0]:
        soonest = min(soonest, state.heap.time[0])
    return int(soonest // PS_A_NS)


@jit
def serve(fabric: PacketFabric, state: PacketState, live: PacketLive, doors: Doors, until: int) -> None:
    """Go on until a time, in ns since the model's time 0, or until `control[STOP]` is set."""
    control, clock = doors.control, doors.clock
    now = _now(doors)
    last = now
    while now < until and not control[STOP]:
        advance(fabric, state, None, live, now * PS_A_NS)
        _give(fabric, state, live, doors)
        _take(fabric, state, live, doors, last)
        last = now
        now = _now(doors)
        wait = _next_event(state) - now
        grain = control[GRAIN]
        clock[2] = 0
        timeout = _IDLE
        if wait < _IDLE:
            # Busy: sleep for the grain at least, then look at the doors.
            timeout = 0
            clock[3] = max(grain, wait)
            if wait > grain or len(state.free) - state.counts[FREE] < _FEW:
                timeout = max(wait, 0)
            else:
                _nanosleep(clock.ctypes.data + 16, 0)
        clock[3] = timeout
        count = _epoll_pwait2(
            doors.epoll, doors.events.ctypes.data, len(doors.events) // _EVENT, clock.ctypes.data + 16, 0
        )
        for number in range(count):
            which = doors.events[_EVENT * number + _DATA]
            doors.ready[which >> 1] |= QUEUE if which & 1 else TAP
        now = _now(doors)
        late = now - last - (timeout if timeout > 0 else grain)
        if count == 0 or timeout == 0:
            _count(doors, LOOP, late)
        control[STALLED_NS] += max(0, late - AHEAD * FRAME * grain)
