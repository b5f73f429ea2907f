"""The loop that joins doors and model: what hosts send goes in, time goes on to now, what has arrived goes out.

Times within the model are exact whenever they are computed; only the doors must be looked at in time. So the loop
sleeps for a grain between two looks, however much happens meanwhile, and measures how late it was.
"""

from __future__ import annotations

import platform
from typing import Any

import numpy as np
from numba.core import types

from testbed.base.jit import jit, jit_inner
from testbed.base.model import Octets
from testbed.dataplane.kernels.events import NEVER
from testbed.dataplane.kernels.packets import advance
from testbed.dataplane.kernels.packets_links import release
from testbed.dataplane.kernels.packets_live import enqueue_frame, put_tag_in
from testbed.dataplane.kernels.packets_state import FREE, LANES, PacketFabric, PacketLive, PacketState
from testbed.engines.realtime.segmentation import (
    ETHERNET,
    NUMBER,
    PACKET,
    PLACE,
    SIZE,
    asked_segment,
    cut,
    unwrap,
)
from testbed.engines.realtime.taps import (
    BIN,
    BINS,
    DELIVERY,
    FRAME_NS,
    GRAIN,
    LOOP,
    MTU,
    PART,
    PS_A_NS,
    QUEUE,
    READING,
    REFUSED_BY_HOST,
    RESERVED,
    STALLED_NS,
    STOP,
    TAP,
    TX_AHEAD,
    VLAN_HOSTS,
    HostPorts,
)

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
_DONT_WAIT = 0x40
_TO = 16  # place of the destination's address in a packet
_OF_HOSTS = 10  # first byte of hosts' own addresses
_SHORTEST = 88  # bytes; Linux lets no program ask for shorter segments
_FEW = 6  # frames under way for which the loop wakes at each event: a lone one is then not late for a grain
_IDLE = 5_000_000  # ns that the loop sleeps at most
# Frames that are taken between two looks at what has arrived, of all hosts: room for three long frames is room for
# seventy acknowledgements, and those of sixteen hosts took two milliseconds.
_A_LOOK = 64


@jit_inner
def _read_clock(doors: HostPorts) -> int:
    """Nanoseconds since the model's time 0."""
    _clock_gettime(_MONOTONIC, doors.clock.ctypes.data)
    return int(doors.clock[0] * _BILLION + doors.clock[1] - doors.zero[0])


@jit_inner
def _count(doors: HostPorts, row: int, late: int) -> None:
    place = max(late, 0) // BIN
    doors.late[row, place if place < BINS else BINS - 1] += 1


@jit_inner
def _deliver(fabric: PacketFabric, state: PacketState, live: PacketLive, doors: HostPorts) -> None:
    """Give hosts what has arrived at them."""
    first_exit = fabric.virtual + fabric.hosts
    while live.ends[1] != live.ends[0]:
        place = live.ends[1] & (len(live.given) - 1)
        frame = int(live.given[place])
        host = int(state.by[frame]) - first_exit
        _count(doors, DELIVERY, _read_clock(doors) - live.given_at[place] // PS_A_NS)
        if _write(doors.taps[host], live.data[frame].ctypes.data, put_tag_in(live, frame)) < 0:
            doors.control[REFUSED_BY_HOST] += 1
        live.ends[1] += 1
        release(state, frame)


@jit_inner
def _receive(live: PacketLive, doors: HostPorts, host: int) -> bool:
    """Receive a packet that netfilter holds, which is then there in part; False where there is none."""
    if doors.queues[host] < 0:
        return False
    message = doors.message[host]
    got = _recv(doors.queues[host], message.ctypes.data, len(message), _DONT_WAIT)
    if got < 0:
        return False
    if unwrap(message, got, doors.held[host]):
        doors.ready[host] |= PART
        asked = asked_segment(message, doors.held[host])
        if asked:
            _clamp_mss(doors, host, asked)
            # Host n has address 10.0.0.0 + n, see model.py.
            place = int(doors.held[host, PLACE]) + _TO
            number = int(message[place + 1]) << 16 | int(message[place + 2]) << 8 | int(message[place + 3])
            mask = int(doors.control[VLAN_HOSTS]) if message[place] != _OF_HOSTS else 0xFFFFFF
            other: Any = (np.int64(number) & mask) - 1
            if 0 <= other < len(doors.segment):
                _clamp_mss(doors, other, asked)
    return True


@jit_inner
def _clamp_mss(doors: HostPorts, host: int, asked: int) -> None:
    doors.segment[host] = min(doors.segment[host], max(asked, _SHORTEST))


@jit_inner
def _make(doors: HostPorts, host: int, data: Octets) -> int:
    """Make the next frame of the packet that is there in part; returns its bytes."""
    size = cut(doors.message[host], doors.held[host], doors.segment[host], doors.control[MTU], data)
    # Host n has 02:00:00:00:00:00 + n, and n in the lower bits of its addresses; those of a VLAN's network are fewer.
    data[0], data[1], data[2] = 0x02, 0, 0
    for byte in range(3):
        data[3 + byte] = data[ETHERNET + _TO + 1 + byte]
    if data[ETHERNET + _TO] != _OF_HOSTS:
        for byte in range(3):
            data[3 + byte] &= (doors.control[VLAN_HOSTS] >> (16 - 8 * byte)) & 0xFF
    number = host + 1
    data[6] = 0x02
    data[7], data[8], data[9] = 0, (number >> 24) & 0xFF, (number >> 16) & 0xFF
    data[10], data[11] = (number >> 8) & 0xFF, number & 0xFF
    data[12], data[13] = 0x08, 0x00
    return size


@jit_inner
def _poll_host(fabric: PacketFabric, state: PacketState, live: PacketLive, doors: HostPorts, last: int) -> bool:
    """Take what hosts want to send, as far as their cards have room; True where there is more of it."""
    ahead, most, more = TX_AHEAD * (ETHERNET + doors.control[MTU]), max(1, _A_LOOK // fabric.hosts), False
    for host in range(fabric.hosts):
        node, answers, taken = fabric.virtual + host, 0, 0
        while doors.ready[host] and live.waiting_bytes[node] < ahead and state.counts[FREE] > RESERVED and taken < most:
            frame, vlan = int(state.free[state.counts[FREE] - 1]), -1
            if doors.ready[host] & TAP:
                size = _read(doors.taps[host], live.data[frame].ctypes.data, live.data.shape[1])
                if size <= 0:
                    doors.ready[host] &= ~TAP
                    continue
            elif doors.ready[host] & PART:
                size = _make(doors, host, live.data[frame])
                vlan = int(doors.vlans[host, doors.held[host, NUMBER] >> 1])
                if doors.held[host, SIZE] == 0:
                    # Only now is its host to hear that the packet has gone.
                    doors.ready[host] &= ~PART
                    queue, number = int(doors.held[host, NUMBER]), int(doors.held[host, PACKET])
                    for byte in range(4):
                        doors.verdict[queue, 28 + byte] = (number >> (24 - 8 * byte)) & 0xFF
                    doors.answers[queue], answers = True, answers + 1
            else:
                if not _receive(live, doors, host):
                    doors.ready[host] &= ~QUEUE
                continue
            now = _read_clock(doors)
            if not state.busy[fabric.channels + host]:
                _count(doors, READING, now - last)  # it may have waited since the last look
            # The model's time is that of its last event; a frame is never put in before.
            enqueue_frame(fabric, state, live, host, size, now * PS_A_NS, vlan)
            taken += 1
        more = more or (taken == most and doors.ready[host] != 0 and live.waiting_bytes[node] < ahead)
        for queue in range(len(doors.answers) if answers else 0):
            if doors.answers[queue]:
                doors.answers[queue] = False
                _send(doors.queues[host], doors.verdict[queue].ctypes.data, doors.verdict.shape[1], 0)
    return more


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
def serve(fabric: PacketFabric, state: PacketState, live: PacketLive, doors: HostPorts, until: int) -> None:
    """Go on until a time, in ns since the model's time 0, or until `control[STOP]` is set."""
    control, clock = doors.control, doors.clock
    now = _read_clock(doors)
    last = now
    while now < until and not control[STOP]:
        advance(fabric, state, None, live, None, now * PS_A_NS)
        _deliver(fabric, state, live, doors)
        more = _poll_host(fabric, state, live, doors, last)
        last = now
        now = _read_clock(doors)
        wait, under_way = _next_event(state) - now, len(state.free) - state.counts[FREE]
        grain = control[GRAIN]
        clock[2] = 0
        timeout = _IDLE
        if more:
            timeout = 0
        elif wait < _IDLE:
            # Busy: sleep for the grain at least, then look at the doors.
            timeout = 0
            clock[3] = grain
            if wait > grain or under_way < _FEW:
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
        now = _read_clock(doors)
        late = now - last - (timeout if timeout > 0 else grain)
        if count == 0 or timeout == 0:
            _count(doors, LOOP, late)
        control[STALLED_NS] += max(0, late - TX_AHEAD * control[FRAME_NS])
