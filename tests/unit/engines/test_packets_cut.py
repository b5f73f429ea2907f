"""Packets that netfilter hands over, cut into frames: what a network card and a router would have made of them."""

from __future__ import annotations

import random
import struct

import numba
import numpy as np
import pytest

from testbed.base.model import Octets
from testbed.engines.realtime import segmentation
from testbed.engines.realtime.segmentation import HELD, SIZE, SUM

_FIN, _SYN, _PUSH, _ACK, _REDUCED = 0x01, 0x02, 0x08, 0x10, 0x80


@numba.njit
def _unwrap(message, got, held):
    return segmentation.unwrap(message, got, held)


@numba.njit
def _asked(message, held):
    return segmentation.asked_segment(message, held)


@numba.njit
def _cut(message, held, segment, mtu, data):
    return segmentation.cut(message, held, segment, mtu, data)


def _checksum(data: bytes) -> int:
    """RFC 1071, word by word."""
    total: int = sum(struct.unpack(f"!{(len(data) + 1) // 2}H", data + b"\0" * (len(data) % 2)))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total


def _ip(protocol: int, payload: bytes, number: int = 7) -> bytes:
    addresses = bytes([10, 0, 0, 1, 10, 0, 0, 2])
    return struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(payload), number, 0x4000, 64, protocol, 0) + addresses + payload


def _tcp(payload: bytes, flags: int = _ACK, sequence: int = 1000, options: bytes = b"") -> bytes:
    head = struct.pack("!HHIIBBHHH", 40000, 5201, sequence, 5, (5 + len(options) // 4) << 4, flags, 500, 0xBEEF, 0)
    return _ip(6, head + options + payload)


def _message(packet: bytes, *, unsummed: bool, queue: int = 0, number: int = 0x01020304) -> Octets:
    """As nfnetlink_queue sends it: head, packet header, what is to be known of it, payload; padded to four bytes."""

    def attribute(kind: int, value: bytes) -> bytes:
        return struct.pack("=HH", 4 + len(value), kind) + value + b"\0" * (-len(value) % 4)

    body = attribute(1, struct.pack("!IHB", number, 0x0800, 4)) + attribute(5, struct.pack("!I", 2))
    body += attribute(14, struct.pack("!I", int(unsummed))) + attribute(10, packet)
    head = struct.pack(
        "=IHHIIBBH", 20 + len(body), 0x300, 0, 0, 0, 2, 0, int.from_bytes(struct.pack("!H", queue), "little")
    )
    return np.frombuffer(head + body, dtype=np.uint8)


def _frames(packet: bytes, *, unsummed: bool = True, segment: int = 0, mtu: int = 1500) -> list[bytes]:
    message, held = _message(packet, unsummed=unsummed), np.zeros(HELD, dtype=np.int64)
    assert _unwrap(message, len(message), held)
    found = []
    while held[SIZE]:
        data = np.zeros(9024, dtype=np.uint8)
        size = _cut(message, held, segment or mtu - segmentation.TCP_HEADERS, mtu, data)
        found.append(data[segmentation.ETHERNET : size].tobytes())
        assert len(found) < 100
    return found


def _is_sound(packet: bytes) -> bool:
    """Whether both checksums hold, and the length."""
    whole = _checksum(packet[:20]) == 0xFFFF and int.from_bytes(packet[2:4], "big") == len(packet)
    return whole and _checksum(packet[12:20] + struct.pack("!HH", 6, len(packet) - 20) + packet[20:]) == 0xFFFF


@pytest.mark.parametrize(
    ("size", "mtu"), [(1461, 1500), (2 * 1448, 1500), (2 * 1448 + 1, 1500), (64000, 1500), (8961, 9000), (64000, 9000)]
)
@pytest.mark.parametrize("options", [b"", b"\x01\x01\x08\x0a" + bytes(8)])
def test_a_large_segment_becomes_full_frames_in_their_order(size: int, options: bytes, mtu: int) -> None:
    payload = random.Random(size).randbytes(size)
    found = _frames(_tcp(payload, _ACK | _PUSH | _FIN | _REDUCED, 2**32 - 3000, options), mtu=mtu)
    head = 40 + len(options)
    assert b"".join(one[head:] for one in found) == payload
    assert all(_is_sound(one) for one in found)
    assert {len(one) for one in found[:-1]} <= {mtu}
    assert len(found) == -(-size // (mtu - head))
    sequences = [int.from_bytes(one[24:28], "big") for one in found]
    assert sequences == [(2**32 - 3000 + (mtu - head) * number) % 2**32 for number in range(len(found))]
    assert [int.from_bytes(one[4:6], "big") for one in found] == list(range(7, 7 + len(found)))
    flags = [one[33] for one in found]
    assert flags[-1] == _ACK | _PUSH | _FIN | (_REDUCED if len(found) == 1 else 0)
    assert [flag & _REDUCED for flag in flags[:2]] == [_REDUCED, 0][: len(flags)]
    assert not any(flag & (_PUSH | _FIN) for flag in flags[:-1])


def test_segments_are_no_longer_than_a_host_asked_for() -> None:
    message = _message(_tcp(b"", _SYN, options=b"\x01\x03\x03\x07\x02\x04\x02\x18"), unsummed=True)
    held = np.zeros(HELD, dtype=np.int64)
    assert _unwrap(message, len(message), held)
    assert _asked(message, held) == 0x218
    options = b"\x01\x01\x08\x0a" + bytes(8)
    assert {len(one) for one in _frames(_tcp(bytes(5240), options=options), segment=0x218)} == {40 + 0x218}
    for other in (_tcp(b"", _ACK, options=b"\x02\x04\x02\x18"), _ip(17, bytes(40)), _tcp(b"", _SYN, options=b"\0" * 4)):
        message = _message(other, unsummed=True)
        assert _unwrap(message, len(message), held)
        assert _asked(message, held) == 0


def test_what_fits_stays_as_it_is_but_for_its_checksum() -> None:
    packet = _tcp(b"abc")
    (whole,) = _frames(packet, unsummed=False)
    assert whole == packet
    (summed,) = _frames(packet)
    assert summed[:36] + summed[38:] == packet[:36] + packet[38:]
    assert _checksum(summed[12:20] + struct.pack("!HH", 6, 23) + summed[20:]) == 0xFFFF
    datagram = _ip(17, b"\x9c\x40\x14\x51\x00\x0b\x12\x34abc")
    assert _frames(datagram) == [datagram]


def test_a_long_datagram_becomes_fragments() -> None:
    payload = random.Random(1).randbytes(4000)
    found = _frames(_ip(17, payload), unsummed=False)
    assert b"".join(one[20:] for one in found) == payload
    assert [len(one) for one in found] == [1500, 1500, 1060]
    assert all(_checksum(one[:20]) == 0xFFFF for one in found)
    assert {one[4:6] for one in found} == {b"\x00\x07"}
    assert [int.from_bytes(one[6:8], "big") for one in found] == [0x2000, 0x2000 | 185, 370]


@pytest.mark.parametrize("seed", range(20))
def test_garbage_that_claims_to_be_tcp_is_cut_and_ends(seed: int) -> None:
    random.seed(seed)
    payload = random.randbytes(random.choice((1, 19, 20, 60, 1480, 3000, 40000)))
    found = _frames(_ip(6, payload))
    assert 0 < len(found) < 100
    assert all(20 < len(one) <= 1500 for one in found)


def test_a_message_without_a_packet_has_none() -> None:
    held = np.zeros(HELD, dtype=np.int64)
    message = _message(b"short", unsummed=False)
    assert not _unwrap(message, len(message), held)
    assert not _unwrap(message, 8, held)
    message = _message(_tcp(b"abc"), unsummed=True, queue=1)
    assert _unwrap(message, len(message), held)
    assert (held[segmentation.NUMBER], held[segmentation.PACKET], held[SUM]) == (1, 0x01020304, 1)


@pytest.mark.parametrize("protocol", [6, 17])
def test_a_packet_shorter_than_its_header_says_goes_as_it_is(protocol):
    packet = bytearray(_ip(protocol, bytes(range(4))))
    packet[0] = 0x4F  # 60 bytes of header, of which there are 24
    assert _frames(bytes(packet), unsummed=False) == [bytes(packet)]
