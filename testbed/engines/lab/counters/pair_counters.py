"""The traffic matrix: bytes and frames that each host sent to each other one, counted by the kernel.

A small program sits at the ingress of every port with a host and sees each frame that enters the fabric, whatever
switches it afterwards. It finds source and destination in the MAC addresses, which hold the hosts' numbers, and adds
to one array that this process has in its memory; reading the matrix costs no system call. Frames to no host in
particular (broadcasts) are not counted.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Sequence

import numpy as np

from testbed.base.errors import LabError
from testbed.base.model import Longs, host_mac
from testbed.engines.ovs import bpf
from testbed.engines.ovs.bpf import Assembler, array_map, attach, load

_RANK = 2  # before what takes frames away, and after what sends copies on
_ENTRY = 16  # bytes, frames: two numbers of eight bytes
# A host's address is this and its number, counted from 1, in four bytes.
_PREFIX = int(host_mac(0).replace(":", "")[:4], 16)
_LENGTH = 0  # place of the frame's length in the program's view of it
_DESTINATION, _SOURCE = 0, 6  # places in a frame


class PairCounters:
    """Counts from when it is made until the lab ends.

    Args:
        ports: interfaces that hosts hang on.
        hosts: how many there are, those elsewhere included.

    Raises:
        LabError: this kernel cannot count so; says what fails.
    """

    def __init__(self, ports: Sequence[str], hosts: int) -> None:
        self._hosts = hosts
        size = self._hosts**2 * _ENTRY
        try:
            array = array_map(_ENTRY, self._hosts**2)
            program = load(counting_program(self._hosts, array))
            self._memory = mmap.mmap(array, -(-size // mmap.PAGESIZE) * mmap.PAGESIZE, access=mmap.ACCESS_READ)
            attach(program, ports, rank=_RANK)
        except OSError as error:
            raise LabError(f"pairs of hosts cannot be counted: {error.strerror}") from error
        os.close(program)
        os.close(array)

    def read(self) -> Longs:
        """Return (2, H, H): bytes, Ethernet header included, and frames from each source (row) to each destination."""
        counts = np.frombuffer(self._memory, dtype=np.int64, count=2 * self._hosts**2)
        return counts.reshape(self._hosts, self._hosts, 2).transpose(2, 0, 1).copy()


def why_not() -> str:
    """Why this kernel cannot count pairs, as far as can be told without a port; empty if it can."""
    try:
        array = array_map(_ENTRY, 1)
        os.close(load(counting_program(1, array)))
        os.close(array)
    except OSError as error:
        return str(error.strerror)
    return ""


def counting_program(hosts: int, array: int) -> bytes:
    """Return the program: `array[source * hosts + destination] += (length, 1)`, then let the frame pass.

    `array` is the descriptor of the map.
    """
    program = Assembler()
    op = program.op
    op(bpf.COPY, 6, 1)  # r6 = the frame, where LOAD_PACKET_* look for it
    op(bpf.LOAD_32, 7, 6, _LENGTH)
    for place in (_DESTINATION, _SOURCE):
        op(bpf.LOAD_PACKET_16, value=place)  # r0
        program.jump("end", bpf.IF_NOT, 0, _PREFIX)  # not a host's
        op(bpf.LOAD_PACKET_32, value=place + 2)  # r0 = the host's number, from 1
        op(bpf.SUBTRACT_32, 0, value=1)
        program.jump("end", bpf.IF_NOT_LESS, 0, hosts)  # there is no such host
        if place == _DESTINATION:
            op(bpf.COPY_32, 8, 0)
    op(bpf.MULTIPLY_32, 0, value=hosts)
    op(bpf.ADD_REGISTER_32, 0, 8)  # r0 = source · hosts + destination
    op(bpf.STORE_32, 10, 0, -4)  # is the key, on the stack
    op(bpf.COPY, 2, 10)
    op(bpf.ADD, 2, value=-4)
    program.map(1, array)
    program.call(bpf.LOOK_UP)
    program.jump("end", bpf.IF_EQUAL, 0, 0)
    op(bpf.ADD_TO_MEMORY, 0, 7, 0)  # bytes
    op(bpf.SET, 1, value=1)
    op(bpf.ADD_TO_MEMORY, 0, 1, 8)  # frames
    program.label("end")
    program.leave(bpf.GO_ON)
    return program.assemble()
