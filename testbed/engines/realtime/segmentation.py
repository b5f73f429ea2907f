"""What netfilter hands over, cut into what goes on a wire: a TCP's large segments come whole.

A host's TCP makes segments of up to 64 kbyte and leaves it to its card to cut them (TSO). One that is taken whole costs
two system calls instead of two for each frame. RFC 9293 3.7.1 says how long a segment may be, RFC 791 3.2 how other
packets are cut into fragments, RFC 1071 what their checksums are.
"""

from __future__ import annotations

import numpy as np

from testbed.base.jit import jit_inner
from testbed.base.model import Longs, Octets

# linux/netfilter/nfnetlink_queue.h: where attributes begin, and which are looked at.
_QUEUE_SUBSYSTEM, _ATTRIBUTES, _PACKET_HEADER, _PAYLOAD, _ABOUT = 3, 20, 1, 10, 14
_UNSUMMED = 1  # the checksum is still to be made
# Columns of `held`: number of netfilter's queue, the packet's number there, where it begins in the message, bytes,
# those of its payload that went into frames already, whether its checksum is to be made.
NUMBER, PACKET, PLACE, SIZE, SENT, SUM, HELD = range(7)

ETHERNET = 14
_IP, _TCP = 20, 20
TCP_HEADERS = _IP + _TCP  # without options
_TCP_NUMBER = 6
_FIN, _SYN, _PUSH, _REDUCED = 0x01, 0x02, 0x08, 0x80
_MORE = 0x20


@jit_inner
def _read_two(data: Octets, place: int) -> int:
    return int(data[place]) << 8 | int(data[place + 1])


@jit_inner
def _read_four(data: Octets, place: int) -> int:
    return _read_two(data, place) << 16 | _read_two(data, place + 2)


@jit_inner
def _put_two(data: Octets, place: int, value: int) -> None:
    data[place], data[place + 1] = (value >> 8) & 0xFF, value & 0xFF


@jit_inner
def _sum(data: Octets, start: int, end: int) -> int:
    """The sum of 16-bit words, RFC 1071, not yet folded."""
    high, low, first = 0, 0, np.uintp(start)
    for byte in range(np.uintp(0), np.uintp(max(end - start, 0) & ~1), np.uintp(2)):
        high += int(data[first + byte])
        low += int(data[first + byte + np.uintp(1)])
    if (end - start) & 1:
        high += int(data[end - 1])
    return (high << 8) + low


@jit_inner
def _copy(source: Octets, start: int, target: Octets, place: int, count: int) -> None:
    """Copy bytes, many at once: places that cannot be negative need not be looked at one by one."""
    read, write = np.uintp(start), np.uintp(place)
    for byte in range(np.uintp(max(count, 0))):
        target[write + byte] = source[read + byte]


@jit_inner
def _fold_checksum(total: int) -> int:
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


@jit_inner
def unwrap(message: Octets, got: int, held: Longs) -> bool:
    """Find the packet in a message of netfilter's.

    Args:
        message: (B,) its bytes.
        got: how many.
        held: (HELD,) filled.

    Returns:
        False where there is none.
    """
    held[SIZE] = 0
    if got < _ATTRIBUTES or message[4] != 0 or message[5] != _QUEUE_SUBSYSTEM:
        return False
    held[NUMBER], held[SUM], held[SENT] = _read_two(message, 18), 0, 0
    place = _ATTRIBUTES
    while place + 4 <= got:
        length = int(message[place]) | int(message[place + 1]) << 8
        kind = int(message[place + 2]) | (int(message[place + 3]) & 0x3F) << 8
        if length < 4:
            break
        if kind == _PACKET_HEADER:
            held[PACKET] = _read_four(message, place + 4)
        elif kind == _PAYLOAD:
            held[PLACE], held[SIZE] = place + 4, length - 4
        elif kind == _ABOUT:
            held[SUM] = _read_four(message, place + 4) & _UNSUMMED
        place += length + 3 & ~3
    return bool(held[SIZE] >= _IP)


@jit_inner
def asked_segment(message: Octets, held: Longs) -> int:
    """The longest segment (bytes, without options) that a TCP's first packet asks for; 0 = it is no such packet."""
    start = int(held[PLACE])
    tcp = start + (int(message[start]) & 15) * 4
    end = start + int(held[SIZE])
    if message[start + 9] != _TCP_NUMBER or tcp + _TCP > end or not message[tcp + 13] & _SYN:
        return 0
    option, end = tcp + _TCP, min(end, tcp + (int(message[tcp + 12]) >> 4) * 4)
    while option + 4 <= end and message[option]:
        if message[option] == 2:
            return _read_two(message, option + 2)
        option += 1 if message[option] == 1 else max(int(message[option + 1]), 2)
    return 0


@jit_inner
def cut(message: Octets, held: Longs, segment: int, mtu: int, data: Octets) -> int:
    """Make the next frame's packet of a packet; when none of it is left, held[SIZE] is 0.

    Args:
        message: (B,) with the packet.
        held: (HELD,) as unwrap() left it.
        segment: bytes of a TCP's segment at most, its options included.
        mtu: bytes of a packet that a frame takes at most.
        data: (B,) the frame; its Ethernet header stays free.

    Returns:
        bytes of the frame.
    """
    start, size, sent = int(held[PLACE]), int(held[SIZE]), int(held[SENT])
    ip = min((int(message[start]) & 15) * 4, size)
    tcp = message[start + 9] == _TCP_NUMBER and size >= ip + _TCP and not _read_two(message, start + 6) & 0x3FFF
    header = ip
    if tcp:
        header += (int(message[start + ip + 12]) >> 4) * 4
        tcp = ip + _TCP <= header <= size
    whole = size <= mtu
    if not tcp:
        header = ip
    room = size - header if whole else (segment - (header - ip - _TCP) if tcp else (mtu - ip) & ~7)
    taken = min(size - header - sent, room)
    last = sent + taken == size - header
    _copy(message, start, data, ETHERNET, header)
    _copy(message, start + header + sent, data, ETHERNET + header, taken)
    if not whole:
        _put_two(data, ETHERNET + 2, header + taken)
        if tcp:
            _put_two(data, ETHERNET + 4, _read_two(message, start + 4) + sent // room)
            at = ETHERNET + ip
            number = _read_four(message, start + ip + 4) + sent
            _put_two(data, at + 4, number >> 16)
            _put_two(data, at + 6, number)
            if not last:
                data[at + 13] &= ~(_FIN | _PUSH) & 0xFF
            if sent:
                data[at + 13] &= ~_REDUCED & 0xFF
        else:
            _put_two(data, ETHERNET + 6, (_read_two(message, start + 6) + (sent >> 3)) & 0x1FFF)
            if not last:
                data[ETHERNET + 6] |= _MORE
        _put_two(data, ETHERNET + 10, 0)
        _put_two(data, ETHERNET + 10, _fold_checksum(_sum(data, ETHERNET, ETHERNET + ip)))
    if tcp and (held[SUM] or not whole):
        at, end = ETHERNET + ip, ETHERNET + header + taken
        _put_two(data, at + 16, 0)
        pseudo = _sum(data, ETHERNET + 12, ETHERNET + 20) + _TCP_NUMBER + end - at
        _put_two(data, at + 16, _fold_checksum(pseudo + _sum(data, at, end)))
    held[SENT] = sent + taken
    if last:
        held[SIZE] = 0
    return ETHERNET + header + taken
