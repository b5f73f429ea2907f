"""The link of a bundle that a frame takes: as a select group of Open vSwitch with `selection_method=hash` has it.

The fields of `pipeline.compile.HASH_FIELDS` that a frame has are hashed one after the other, in the order in which Open
vSwitch numbers them, by the 32-bit MurmurHash3 (Appleby 2011); each link that works then has a score by its number, and
the last of the best takes the frame (rendezvous hashing, Thaler and Ravishankar 1998). This holds for Open vSwitch as
distributions build it; where it is built for one kind of processor it may hash by the processor's CRC instead.
"""

from __future__ import annotations

from testbed.base.jit import jit, jit_inner
from testbed.base.model import Octets
from testbed.dataplane.kernels.packets_state import PacketLive

_MASK = 0xFFFFFFFF
_C1, _C2, _STEP = 0xCC9E2D51, 0x1B873593, 0xE6546B64
_F1, _F2 = 0x85EBCA6B, 0xC2B2AE35
_TARGET, _SENDER, _TYPE, _PACKET = 0, 6, 12, 14
_TCP, _UDP = 6, 17
_IP4_PROTOCOL, _IP4_SOURCE, _IP4_GOAL, _IP4_FRAGMENT = 9, 12, 16, 6
_IP6_NEXT, _IP6_SIZE = 6, 40
_SCORE = 0xFFFF


@jit_inner
def _add(basis: int, word: int) -> int:
    word = word * _C1 & _MASK
    word = (word << 15 | word >> 17) & _MASK
    mixed = basis ^ (word * _C2 & _MASK)
    mixed = (mixed << 13 | mixed >> 19) & _MASK
    return (mixed * 5 + _STEP) & _MASK


@jit_inner
def _finish(mixed: int, size: int) -> int:
    mixed ^= size
    mixed = (mixed ^ mixed >> 16) * _F1 & _MASK
    mixed = (mixed ^ mixed >> 13) * _F2 & _MASK
    return mixed ^ mixed >> 16


@jit_inner
def _field(data: Octets, place: int, size: int, basis: int) -> int:
    """Add a field, whose bytes make words as they do in memory, the first byte the lowest."""
    mixed, word = basis, 0
    for byte in range(size):
        word |= int(data[place + byte]) << 8 * (byte & 3)
        if byte & 3 == 3 or byte == size - 1:
            mixed = _add(mixed, word)
            word = 0
    return _finish(mixed, size)


@jit_inner
def _hash_of(data: Octets, length: int) -> int:
    mixed = _finish(_add(_add(0, 0), 0), 8)  # of the group's parameter, which is 0
    mixed = _field(data, _SENDER, 6, mixed)
    mixed = _field(data, _TARGET, 6, mixed)
    ports = -1
    if data[_TYPE] == 0x08 and data[_TYPE + 1] == 0x00 and length >= _PACKET + 20:
        mixed = _field(data, _PACKET + _IP4_SOURCE, 4, mixed)
        mixed = _field(data, _PACKET + _IP4_GOAL, 4, mixed)
        place = _PACKET + _IP4_FRAGMENT
        later = (int(data[place]) & 0x1F) << 8 | int(data[place + 1])
        protocol = int(data[_PACKET + _IP4_PROTOCOL])
        if later == 0:
            ports = _PACKET + 4 * (int(data[_PACKET]) & 0xF)
    elif data[_TYPE] == 0x86 and data[_TYPE + 1] == 0xDD and length >= _PACKET + _IP6_SIZE:
        protocol = int(data[_PACKET + _IP6_NEXT])
        ports = _PACKET + _IP6_SIZE
    else:
        return mixed
    if ports >= 0 and protocol in (_TCP, _UDP) and length >= ports + 4:
        mixed = _field(data, ports, 2, mixed)
        mixed = _field(data, ports + 2, 2, mixed)
    return mixed


@jit
def frame_hash(data: Octets, length: int) -> int:
    """The hash of a frame without a tag, of a length in bytes."""
    return _hash_of(data, length)


@jit_inner
def member_of(live: PacketLive, frame: int, first: int) -> int:
    """The channel of a bundle, given by its first one, that a frame is sent by; -1 where none works."""
    return _pick_member(live, _hash_of(live.data[frame], int(live.length[frame])), first)


@jit
def member_by_hash(live: PacketLive, mixed: int, first: int) -> int:
    """As the switches choose it for frames of a hash."""
    return _pick_member(live, mixed, first)


@jit_inner
def _pick_member(live: PacketLive, mixed: int, first: int) -> int:
    size = int(live.tables.members[first])
    if size == 1:
        return first
    best, highest = -1, 0
    for number in range(size):
        channel = first + 2 * number
        # A switch does not send by a port whose link is down at either end.
        if live.down[channel] or live.down[channel ^ 1] or live.spared[channel]:
            continue
        score = _finish(_add(_add(number, 0), mixed), 8) & _SCORE
        if score >= highest:
            best, highest = channel, score
    return best
