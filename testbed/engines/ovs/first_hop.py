"""Frames of hosts end at their first switch, which sends a copy on: where the kernel's Open vSwitch forwards them.

A frame counts against the buffer of the socket that sent it for as long as it is the same piece of memory, also in the
queues of switches. TCP would keep a few frames in the whole fabric and lose none, and a UDP sender would wait where
frames are dropped. On a wire the sender is done with a frame when its card has sent it. (What passes on a socket's
frames in user space copies them anyway, and the fast path does it by itself.)
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from testbed.base.errors import LabError
from testbed.engines.ovs import bpf
from testbed.engines.ovs.bpf import Assembler
from testbed.engines.ovs.fast_programs import INTERFACE, SOCKET

# Before that which counts pairs of hosts, so that it sees each frame once.
_RANK = 1
_ARRIVES = 1  # BPF_F_INGRESS


def copying_program() -> bytes:
    """The classifier: of a frame that has a socket a copy without one arrives at the same port in its place."""
    p = Assembler()
    frame = 6
    p.op(bpf.COPY, frame, 1)
    p.op(bpf.LOAD_64, 1, frame, SOCKET)
    p.jump("of a socket", bpf.IF_NOT, 1, 0)
    p.leave(bpf.GO_ON)
    p.label("of a socket")
    p.op(bpf.COPY, 1, frame)
    p.op(bpf.LOAD_32, 2, frame, INTERFACE)
    p.op(bpf.SET, 3, value=_ARRIVES)
    p.call(bpf.REDIRECT_COPY)
    p.leave(bpf.TAKEN)
    return p.assemble()


def copy_at(ports: Sequence[str]) -> str:
    """Put the classifier on ports with hosts; returns why this kernel does not take it, or nothing."""
    try:
        program = bpf.load(copying_program())
    except OSError as error:
        return str(error.strerror)
    try:
        bpf.attach(program, ports, rank=_RANK)
    except LabError as error:
        return str(error)
    finally:
        os.close(program)
    return ""
