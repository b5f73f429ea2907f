"""Counters and queues of all ports over one rtnetlink socket: cheap enough to be read many times a second.

`ip -s` and `tc -s` give the same figures, but start a process and print text each time: ten
times the work.
"""

from __future__ import annotations

import os
import socket
import struct
import time
from collections.abc import Iterator, Sequence

import numpy as np

from testbed.base.errors import LabError
from testbed.base.model import Longs

LINK_FIGURES = ("rx_packets", "tx_packets", "rx_bytes", "tx_bytes", "rx_dropped", "tx_dropped")
FIGURES = (*LINK_FIGURES, "queue_frames", "queue_bytes", "queue_drops")
GAUGES = (FIGURES.index("queue_frames"), FIGURES.index("queue_bytes"))  # what is no counter

# linux/netlink.h, linux/rtnetlink.h, linux/if_link.h, linux/gen_stats.h
_HEADER = struct.Struct("=IHHII")
_DUMP = 0x301  # NLM_F_REQUEST | NLM_F_ROOT | NLM_F_MATCH
_ERROR, _DONE = 2, 3
_GET_STATS, _GET_QDISC, _GET_CLASS = 94, 38, 42
_STATS_LINK_64 = 1
_STATS_AT = _HEADER.size + 12 + 4  # behind if_stats_msg and the header of its one attribute
_NO_LINK = bytes(64)  # the first eight figures of rtnl_link_stats64
_LINK_ORDER = [0, 1, 2, 3, 6, 7]  # packets, bytes, (errors,) drops
_NO_QUEUE = bytes(12)  # the first three of gnet_stats_queue
_INDEX = struct.Struct("=I")
_QDISC = struct.Struct("=BxxxiIII")  # tcmsg
_ROOT = 0xFFFFFFFF
_ATTRIBUTE = struct.Struct("=HH")
_TCA_STATS2, _STATS_QUEUE = 7, 3
_NESTED = 0x7FFF
_BUFFER = 1 << 20
_LIMIT = 10.0
# s in which the counters of a quiet machine are there, and how often they are asked for at most until they are.
_SOON, _ASKED = 0.01, 8


class PortCounters:
    """Reads all ports of the network namespace it is made in, also from another thread.

    `ports` are names of interfaces, the rows of what read() returns.

    Raises:
        LabError: an interface is not there.
    """

    def __init__(self, ports: Sequence[str]) -> None:
        self.ports = tuple(ports)
        index = {name: number for number, name in socket.if_nameindex()}
        missing = [name for name in ports if name not in index]
        if missing:
            raise LabError(f"there is no interface {missing[0]}")
        self._index = [index[name] for name in ports]
        self._row = {number: row for row, number in enumerate(self._index)}
        self._socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _BUFFER)
        self._socket.settimeout(_LIMIT)
        self._socket.bind((0, 0))
        self._queue_at: dict[tuple[int, bytes], int] = {}

    def read(self) -> Longs:
        """Return (P, len(FIGURES)): the counters of each port since it was made, and its queue now."""
        link, queues = self._links(), [_NO_QUEUE] * len(self.ports)
        for part, at, length in self._dump(_GET_QDISC, _QDISC.pack(0, 0, 0, 0, 0)):
            _, index, _, parent, _ = _QDISC.unpack_from(part, at + _HEADER.size)
            row = self._row.get(index)
            if row is not None and parent == _ROOT:
                place = self._queue_place(part, at, length)
                if place:
                    queues[row] = part[at + place : at + place + len(_NO_QUEUE)]
        queue = np.frombuffer(b"".join(queues), dtype=np.uint32).reshape(len(queues), -1)
        return np.concatenate([link, queue], axis=1)

    def read_at(self) -> tuple[Longs, float]:
        """The counters of read() without the queues, (P, len(LINK_FIGURES)), and when they were so; s, monotonic.

        A machine that is busy may leave this process waiting amid an answer. It is then asked for anew, and the one
        that was there soonest counts: the time is off by half of what that took at most.
        """
        best, least, at = None, float("inf"), 0.0
        for _ in range(_ASKED):
            began = time.monotonic()
            figures = self._links()
            took = time.monotonic() - began
            if took < least:
                best, least, at = figures, took, began + took / 2
            if took <= _SOON:
                break
        assert best is not None
        return best, at

    def _links(self) -> Longs:
        """(P, len(LINK_FIGURES)) counters of each port since it was made."""
        links = [_NO_LINK] * len(self.ports)
        mask = struct.pack("=BxHII", 0, 0, 0, 1 << (_STATS_LINK_64 - 1))
        for part, at, _ in self._dump(_GET_STATS, mask):
            row = self._row.get(_INDEX.unpack_from(part, at + _HEADER.size + 4)[0])
            if row is not None:
                links[row] = part[at + _STATS_AT : at + _STATS_AT + len(_NO_LINK)]
        return np.frombuffer(b"".join(links), dtype=np.int64).reshape(len(links), -1)[:, _LINK_ORDER]

    def read_backlog(self, port: int) -> int:
        """Frames that wait at the shaped port of a row now; asks for its class alone, where read() asks for all."""
        ask = _QDISC.pack(0, self._index[port], 0, 0, 0)
        waiting = 0
        for part, at, length in self._dump(_GET_CLASS, ask):
            place = self._queue_place(part, at, length)
            waiting += int(_INDEX.unpack_from(part, at + place)[0]) if place else 0
        return waiting

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()

    def _dump(self, kind: int, body: bytes) -> Iterator[tuple[bytes, int, int]]:
        """Ask for a dump; yields each message as a buffer, where it begins in it, and its length."""
        self._socket.send(_HEADER.pack(_HEADER.size + len(body), kind, _DUMP, 0, 0) + body)
        while True:
            try:
                part, at = self._socket.recv(_BUFFER), 0
            except TimeoutError:
                raise LabError(f"the kernel gave no counters in {_LIMIT:g} s") from None
            while at < len(part):
                length, answer = _HEADER.unpack_from(part, at)[:2]
                if answer == _DONE:
                    return
                if answer == _ERROR:
                    raise LabError(f"the kernel does not show the counters of the ports: {_reason(part, at)}")
                yield part, at, length
                at += length + 3 & ~3

    def _queue_place(self, part: bytes, at: int, length: int) -> int:
        """Offset of the figures of the queue in a message; the same for each queue of a kind. 0 = nowhere."""
        start = at + _HEADER.size + _QDISC.size
        key = (length, part[start : start + 12])
        if key not in self._queue_at:
            self._queue_at[key] = 0
            for kind, begin, end in _attributes(part, start, at + length):
                if kind == _TCA_STATS2:
                    for inner, inside, _ in _attributes(part, begin, end):
                        if inner == _STATS_QUEUE:
                            self._queue_at[key] = inside - at
        return self._queue_at[key]


def _reason(part: bytes, at: int) -> str:
    return os.strerror(-struct.unpack_from("=i", part, at + _HEADER.size)[0])


def _attributes(part: bytes, start: int, end: int) -> Iterator[tuple[int, int, int]]:
    """Kind, begin and end of the content of each attribute."""
    while start + _ATTRIBUTE.size <= end:
        length, kind = _ATTRIBUTE.unpack_from(part, start)
        yield kind & _NESTED, start + _ATTRIBUTE.size, start + length
        start += length + 3 & ~3
