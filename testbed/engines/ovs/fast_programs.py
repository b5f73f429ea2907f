"""The two programs of the fast path, and the form of what they share with the lab.

Linux shows a frame that arrives at a port first to the packet sockets there, among them Open vSwitch's, and then to the
port's classifiers. So the first program is the filter of Open vSwitch's socket: it decides whether the frame is Open
vSwitch's or has an entry, notes the entry, and keeps the frame from the socket then. The second is a classifier that
carries out what was noted, on the same processor before any other frame comes. So one of both takes each frame,
whatever happens to the entries meanwhile; and where no Open vSwitch listens at a port, nothing is forwarded there.

Of a host's frame the first switch sends a copy on (see first_hop).
"""

from __future__ import annotations

import socket
import struct
from typing import NamedTuple

from testbed.engines.ovs import bpf
from testbed.engines.ovs.bpf import GO_ON, TAKEN, Assembler
from testbed.fabric.openflow.flow_cache_entry import Entry
from testbed.fabric.openflow.tables import UNTAGGED

Tag = tuple[int, int]  # VLAN and priority, or (UNTAGGED, 0)

# A port, by the number of its interface: its generation, which begins all keys of its entries (0 = it has none), and
# frames that its entries took.
PORT = struct.Struct("=IIQ")
FRAMES_AT = 8
# Generation, tag, address.
_KEY = struct.Struct("=II6sxx")
# Number of the interface to leave by, what is to be done to the tag, and the tag then pushed.
_VALUE = struct.Struct("=IHH")
# What the first program notes for the second: the value, and the interface that the frame came by.
NOTE_SIZE = 16
KEY_SIZE, VALUE_SIZE = _KEY.size, _VALUE.size
_TAGGED = 1 << 16  # in a key, beside the tag; an untagged frame has 0 there
_POP, _PUSH = 1, 2
_8021Q, _8021AD = socket.htons(0x8100), socket.htons(0x88A8)

# Places in a program's view of a frame (struct __sk_buff).
_PACKET_TYPE, _PROTOCOL, VLAN_PRESENT, VLAN_TCI, _VLAN_PROTOCOL, INTERFACE, SOCKET = 4, 16, 20, 24, 28, 40, 168
_OUTGOING = socket.PACKET_OUTGOING
_DROP = 2  # TC_ACT_SHOT
_WHOLE = 0x40000  # a socket gets so many bytes of a frame

# The stack, seen from its end: what of a frame's header is read, keys.
_HEADER, _KEY_AT, _SMALL_KEY = -40, -24, -4


class Maps(NamedTuple):
    """File descriptors."""

    ports: int  # array of PORT
    entries: int  # hash map
    note: int  # array of one a processor


def _tci(tag: Tag) -> int:
    return 0 if tag[0] == UNTAGGED else tag[1] << 13 | tag[0]


def encode_entry(entry: Entry, generation: int, interface: int) -> tuple[bytes, bytes]:
    """Key and value of an entry that leaves by the interface with this number."""
    came, leaves = _tci(entry.tag), _tci(entry.out_tag)
    work = 0 if came == leaves else (_POP if came else 0) | (_PUSH if leaves else 0)
    address = bytes.fromhex(entry.destination.replace(":", ""))
    return _KEY.pack(generation, came | _TAGGED if came else 0, address), _VALUE.pack(interface, work, leaves)


class Decoded(NamedTuple):
    """What a key and a value say."""

    generation: int
    tag: Tag
    destination: str
    interface: int
    out_tag: Tag


def decode_entry(key: bytes, value: bytes) -> Decoded:
    """Read a key and its value; a tag that is kept as it is, is not in the value, whatever else stands there."""
    generation, came, address = _KEY.unpack(key)
    interface, work, leaves = _VALUE.unpack(value)
    tag = _tag(came & 0xFFFF) if came else (UNTAGGED, 0)
    out_tag = _tag(leaves) if work & _PUSH else (UNTAGGED, 0) if work & _POP else tag
    return Decoded(generation, tag, address.hex(":"), interface, out_tag)


def _tag(tci: int) -> Tag:
    return tci & 0xFFF, tci >> 13


def make_socket_filter(maps: Maps) -> bytes:
    """The filter of Open vSwitch's socket at a port: returns 0 for a frame that an entry takes."""
    p = Assembler()
    frame, port, end = 6, 7, 10
    p.op(bpf.COPY, frame, 1)
    # What the port sends is not for the socket either.
    p.op(bpf.LOAD_32, 1, frame, _PACKET_TYPE)
    p.jump("none of both", bpf.IF_EQUAL, 1, _OUTGOING)
    # The port, if it has entries.
    p.op(bpf.LOAD_32, 1, frame, INTERFACE)
    p.op(bpf.STORE_32, end, 1, _SMALL_KEY)
    _look_up(p, maps.ports, _SMALL_KEY, "open vswitch")
    p.op(bpf.COPY, port, 0)
    p.op(bpf.LOAD_32, 1, port, 0)
    p.jump("open vswitch", bpf.IF_EQUAL, 1, 0)
    p.op(bpf.STORE_32, end, 1, _KEY_AT)
    # The tag; a second one inside, or one of another kind, is not for entries.
    p.op(bpf.LOAD_32, 1, frame, _PROTOCOL)
    p.jump("open vswitch", bpf.IF_EQUAL, 1, _8021Q)
    p.jump("open vswitch", bpf.IF_EQUAL, 1, _8021AD)
    p.op(bpf.SET, 2, value=0)
    p.op(bpf.LOAD_32, 1, frame, VLAN_PRESENT)
    p.jump("tag known", bpf.IF_EQUAL, 1, 0)
    p.op(bpf.LOAD_32, 1, frame, _VLAN_PROTOCOL)
    p.jump("open vswitch", bpf.IF_NOT, 1, _8021Q)
    p.op(bpf.LOAD_32, 2, frame, VLAN_TCI)
    p.op(bpf.OR, 2, value=_TAGGED)
    p.label("tag known")
    p.op(bpf.STORE_32, end, 2, _KEY_AT + 4)
    # The addresses; no station is a group, so what comes from one is Open vSwitch's to drop.
    p.op(bpf.COPY, 1, frame)
    p.op(bpf.SET, 2, value=0)
    p.op(bpf.COPY, 3, end)
    p.op(bpf.ADD, 3, value=_HEADER)
    p.op(bpf.SET, 4, value=12)
    p.call(bpf.LOAD_BYTES)
    p.jump("open vswitch", bpf.IF_NOT, 0, 0)
    p.op(bpf.LOAD_8, 1, end, _HEADER + 6)
    p.jump("open vswitch", bpf.IF_BITS, 1, 1)
    p.op(bpf.LOAD_32, 1, end, _HEADER)
    p.op(bpf.STORE_32, end, 1, _KEY_AT + 8)
    p.op(bpf.STORE_VALUE_32, end, 0, _KEY_AT + 12, 0)
    p.op(bpf.LOAD_16, 1, end, _HEADER + 4)
    p.op(bpf.STORE_16, end, 1, _KEY_AT + 12)
    _look_up(p, maps.entries, _KEY_AT, "open vswitch")
    p.op(bpf.LOAD_64, 8, 0, 0)
    # Note it.
    p.op(bpf.STORE_VALUE_32, end, 0, _SMALL_KEY, 0)
    _look_up(p, maps.note, _SMALL_KEY, "open vswitch")
    p.op(bpf.STORE_64, 0, 8, 0)
    p.op(bpf.LOAD_32, 1, frame, INTERFACE)
    p.op(bpf.STORE_64, 0, 1, 8)
    p.label("none of both")
    p.leave(0)
    p.label("open vswitch")
    p.leave(_WHOLE)
    return p.assemble()


def make_tc_classifier(maps: Maps) -> bytes:
    """The classifier of a port: sends the frame for which something is noted, and lets others go on."""
    p = Assembler()
    frame, note, came, end = 6, 8, 9, 10
    p.op(bpf.COPY, frame, 1)
    p.op(bpf.STORE_VALUE_32, end, 0, _SMALL_KEY, 0)
    _look_up(p, maps.note, _SMALL_KEY, "go on")
    p.op(bpf.LOAD_64, note, 0, 0)
    p.jump("go on", bpf.IF_EQUAL, note, 0)
    p.op(bpf.STORE_VALUE_64, 0, 0, 0, 0)
    p.op(bpf.LOAD_64, came, 0, 8)
    p.op(bpf.LOAD_32, 1, frame, INTERFACE)
    p.jump("go on", bpf.IF_REGISTERS_DIFFER, came, of=1)  # noted for a frame that never came to its classifier
    p.op(bpf.STORE_64, end, note, -16)
    # Count it.
    p.op(bpf.STORE_32, end, 1, _SMALL_KEY)
    _look_up(p, maps.ports, _SMALL_KEY, "drop")
    p.op(bpf.SET, 1, value=1)
    p.op(bpf.ADD_TO_MEMORY, 0, 1, FRAMES_AT)
    # The tag.
    p.op(bpf.LOAD_16, 7, end, -12)
    p.op(bpf.COPY, 1, 7)
    p.op(bpf.AND, 1, value=_POP)
    p.jump("popped", bpf.IF_EQUAL, 1, 0)
    p.op(bpf.COPY, 1, frame)
    p.call(bpf.POP_VLAN)
    p.jump("drop", bpf.IF_NOT, 0, 0)
    p.label("popped")
    p.op(bpf.AND, 7, value=_PUSH)
    p.jump("pushed", bpf.IF_EQUAL, 7, 0)
    p.op(bpf.COPY, 1, frame)
    p.op(bpf.SET, 2, value=_8021Q)
    p.op(bpf.LOAD_16, 3, end, -10)
    p.call(bpf.PUSH_VLAN)
    p.jump("drop", bpf.IF_NOT, 0, 0)
    p.label("pushed")
    p.op(bpf.LOAD_64, 1, frame, SOCKET)
    p.jump("of a socket", bpf.IF_NOT, 1, 0)
    p.op(bpf.LOAD_32, 1, end, -16)
    p.op(bpf.SET, 2, value=0)
    p.call(bpf.REDIRECT)
    p.exit()
    p.label("of a socket")
    p.op(bpf.COPY, 1, frame)
    p.op(bpf.LOAD_32, 2, end, -16)
    p.op(bpf.SET, 3, value=0)
    p.call(bpf.REDIRECT_COPY)
    p.leave(TAKEN)
    p.label("drop")
    p.leave(_DROP)
    p.label("go on")
    p.leave(GO_ON)
    return p.assemble()


def _look_up(p: Assembler, descriptor: int, key: int, otherwise: str) -> None:
    """Put the address of a map's entry into register 0; the key is on the stack. Without an entry, jump."""
    p.map(1, descriptor)
    p.op(bpf.COPY, 2, 10)
    p.op(bpf.ADD, 2, value=key)
    p.call(bpf.LOOK_UP)
    p.jump(otherwise, bpf.IF_EQUAL, 0, 0)
