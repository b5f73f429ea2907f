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
from typing import NamedTuple

import numpy as np

from testbed.emulate.bpf import array_map, attach, instruction, load
from testbed.errors import LabError
from testbed.model import Longs, host_mac

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
    op = instruction
    steps: list[bytes | _ToEnd] = [op(0xBF, 6, 1), op(0x61, 7, 6, _LENGTH)]  # r6 = the frame, r7 = its length
    for place in (_DESTINATION, _SOURCE):
        steps += [
            op(0xBC, 8, 0),  # the one before, if any, to r8: at last the destination
            op(0x28, value=place),  # r0 = two bytes of the address
            _ToEnd(0x55, 0, _PREFIX),  # not a host's
            op(0x20, value=place + 2),  # r0 = the host's number, from 1
            op(0x14, 0, value=1),
            _ToEnd(0x35, 0, hosts),  # there is no such host
        ]
    steps[2:3] = []  # there is nothing before the first
    steps += [
        op(0x24, 0, value=hosts),  # r0 = source · hosts + destination
        op(0x0C, 0, 8),
        op(0x63, 10, 0, -4),  # is the key, on the stack
        op(0xBF, 2, 10),
        op(0x07, 2, value=-4),
        op(0x18, 1, 1, 0, array),  # r1 = the map (an instruction of two words)
        op(0),
        op(0x85, value=1),  # r0 = place of the entry
        _ToEnd(0x15, 0, 0),  # there is none
        op(0xDB, 0, 7, 0),  # atomically: bytes += length
        op(0xB7, 1, value=1),
        op(0xDB, 0, 1, 8),  # frames += 1
    ]
    words = [
        step if isinstance(step, bytes) else op(step.code, step.register, 0, len(steps) - at - 1, step.value)
        for at, step in enumerate(steps)
    ]
    return b"".join([*words, op(0xB7, 0, value=-1), op(0x95)])  # no verdict: the frame goes on


class _ToEnd(NamedTuple):
    """A jump to the end if the comparison of a register with a value holds."""

    code: int
    register: int
    value: int
