"""The process that computes the model: it has its memory file, the taps, and a processor before all others.

    python -m testbed.engines.realtime.process MODEL DOORS

It gets the doors by the socket that is its standard input, says one line of JSON when it is ready, and ends with the
lab, or when it is told to in `control`.
"""

from __future__ import annotations

import ctypes
import json
import os
import select
import signal
import socket
import sys
import time
from pathlib import Path

import numpy as np

from testbed.base.jit import tell_of_compiling
from testbed.dataplane.kernels.events import NEVER
from testbed.dataplane.kernels.packets import drain_port, restart_links
from testbed.dataplane.kernels.packets_check import waiting_cycle
from testbed.dataplane.kernels.packets_state import ASKED, FREE, NOW, TAKEN, PacketModel, PacketTables
from testbed.engines.realtime.frame_loop import serve
from testbed.engines.realtime.shared_memory import attach
from testbed.engines.realtime.taps import (
    DEADLOCKED,
    EMPTY,
    KICK,
    PS_A_NS,
    STOP,
    WATCHDOG_NS,
    HostPorts,
    receive_descriptors,
)

_TURN = 100_000_000  # nsampling interval, s at what is beside frames
_PR_SET_TIMERSLACK = 29
_PRIORITY = 10
# A node that has been paused for so long, in ps of the laboratory, may be so for ever.
_PATIENCE = 200_000_000_000


def main() -> None:
    """Attach, get ready, serve."""
    model = attach(Path(sys.argv[1]), PacketModel)
    with socket.socket(fileno=os.dup(0)) as sender:
        doors = receive_descriptors(sender, Path(sys.argv[2]))
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(_PR_SET_TIMERSLACK, 1, 0, 0, 0)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    epoll = select.epoll()
    for kind, descriptors in enumerate((doors.taps, doors.queues)):
        for host, door in enumerate(descriptors.tolist()):
            if door >= 0:
                event = select.EPOLLIN | select.EPOLLET
                epoll.register(door, event)
                # The kernel gives back which host's which door it is, not the descriptor.
                _modify(libc, epoll.fileno(), door, event, 2 * host + kind)
    doors = doors._replace(epoll=epoll.fileno())
    doors.zero[0] = time.monotonic_ns()
    tell_of_compiling(lambda: print(json.dumps({"compiles": True}), flush=True))
    load_machine_code(model, doors)
    print(json.dumps({"pace": _take_precedence()}), flush=True)
    while not doors.control[STOP]:
        serve(model.fabric, model.state, model.live, doors, time.monotonic_ns() - int(doors.zero[0]) + _TURN)
        if model.fabric.lossless:
            _watch(model, doors)
        if model.live.edition[TAKEN] != (asked := int(model.live.edition[ASKED])):
            tables = attach(Path(sys.argv[1]).with_name(f"tables-{asked}"), PacketTables)
            model = model._replace(live=model.live._replace(tables=tables))
            model.live.edition[TAKEN] = asked
        if doors.control[KICK]:
            doors.control[KICK] = 0
            restart_links(model.fabric, model.state, model.live)
        if doors.control[EMPTY]:
            empty(model)
            doors.control[[DEADLOCKED, EMPTY]] = 0


def load_machine_code(model: PacketModel, doors: HostPorts) -> None:
    """Load the machine code of all that is called while frames flow, or compile it; nothing happens to the model."""
    serve(model.fabric, model.state, model.live, doors, 0)
    restart_links(model.fabric, model.state, model.live)
    if model.fabric.lossless:  # where nobody pauses nobody asks who waits for whom, which takes 5 s to compile
        waiting_cycle(model.fabric, model.state, None, model.live)
        drain_port(model.fabric, model.state, model.live, 0)
        model.live.shut[0] = False


def _modify(libc: ctypes.CDLL, epoll: int, door: int, event: int, which: int) -> None:
    packed = np.zeros(4, dtype=np.int32)
    packed[0] = np.array([event], dtype=np.uint32).view(np.int32)[0]
    packed[1 if os.uname().machine == "x86_64" else 2] = which
    if libc.epoll_ctl(epoll, 3, door, packed.ctypes.data_as(ctypes.c_void_p)) != 0:
        raise OSError(ctypes.get_errno(), "epoll_ctl")


def _take_precedence() -> str:
    """Get a processor before all others; says how, or why not."""
    processor = max(os.sched_getaffinity(0))
    os.sched_setaffinity(0, [processor])
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(_PRIORITY))
    except OSError as error:
        return (
            f"no real-time priority ({error.strerror}), so a busy machine makes frames late; allow it "
            "(CAP_SYS_NICE, or ulimit -r)"
        )
    return f"SCHED_FIFO {_PRIORITY} on processor {processor}"


def empty(model: PacketModel) -> None:
    """Take every frame out of a network, and every pause back; counters and what was learned stay."""
    state, live = model.state, model.live
    for nobody in (state.first, state.last, state.holds):
        nobody[:] = -1
    for zero in (state.held, state.used, state.told, state.under_way, live.waiting, live.waiting_bytes):
        zero[:] = 0
    for no in (state.off, state.stopped, state.pending, state.busy, live.shut, live.early):
        no[:] = False
    state.heap.count[0] = 0
    state.lanes.length[:] = 0
    state.lanes.soonest[:] = NEVER
    live.ends[1] = live.ends[0]
    state.free[:] = np.arange(len(state.free))
    state.counts[FREE] = len(state.free)


def _watch(model: PacketModel, doors: HostPorts) -> None:
    """Look for nodes that are paused for too long, and for those that wait for each other for ever."""
    state, live = model.state, model.live
    watchdog = int(doors.control[WATCHDOG_NS]) * PS_A_NS
    if watchdog:
        np.logical_and(live.shut, state.stopped, out=live.shut)  # whose pause has ended forwards again
        for node in np.flatnonzero(state.stopped & ~live.shut & (state.counts[NOW] - state.since > watchdog)).tolist():
            drain_port(model.fabric, state, live, node)
        return
    paused = state.stopped & (state.counts[NOW] - state.since > _PATIENCE)
    if not paused.any():
        return
    cycle = waiting_cycle(model.fabric, state, None, live)
    doors.cycle[: len(cycle)] = cycle
    doors.cycle[len(cycle) :] = -1
    doors.control[DEADLOCKED] = len(cycle)


if __name__ == "__main__":
    main()
