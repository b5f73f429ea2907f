"""Small programs for the kernel (eBPF): assembled, loaded, and the maps that they share with this process."""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import struct
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from testbed.base.errors import LabError
from testbed.engines.lab.hosts.commands import run

_libc = ctypes.CDLL(None, use_errno=True)
# System call numbers differ by architecture; those that came after x86 share one table.
_NUMBERS = {"x86_64": 321, "i686": 357, "ppc64le": 361, "s390x": 351}
_NEWER = 280
# linux/bpf.h
_MAP_CREATE, _PROG_LOAD, _OBJ_PIN = 0, 5, 6
_MAP_BY_ID, _OBJECT_INFO, _LOOKUP_BATCH, _UPDATE_BATCH, _DELETE_BATCH = 14, 15, 24, 26, 27
HASH, ARRAY, ARRAY_A_PROCESSOR = 1, 2, 6
_NOT_BEFOREHAND, _MMAPABLE = 1 << 0, 1 << 10
SOCKET_FILTER, CLASSIFIER = 1, 3
_ATTRIBUTE_SIZE = 128
_LOG_SIZE = 1 << 16
_LICENSE = b"Apache-2.0"
_TRIES, _BETWEEN = 8, 0.05  # of putting a classifier to ports; s
_BATCH = 4096
_COUNT_AT = 32  # in the attributes of a batch

# Operation codes (linux/bpf.h, linux/bpf_common.h); registers are 64 bits wide.
SET, COPY, ADD, AND, OR = 0xB7, 0xBF, 0x07, 0x57, 0x47
LOAD_8, LOAD_16, LOAD_32, LOAD_64 = 0x71, 0x69, 0x61, 0x79
STORE_16, STORE_32, STORE_64, STORE_VALUE_32, STORE_VALUE_64 = 0x6B, 0x63, 0x7B, 0x62, 0x7A
ADD_TO_MEMORY = 0xDB  # atomically, 64 bits
JUMP, IF_EQUAL, IF_NOT, IF_BITS, IF_REGISTERS_DIFFER = 0x05, 0x15, 0x55, 0x45, 0x5D
_CALL, _EXIT, _MAP_ADDRESS = 0x85, 0x95, 0x18
COPY_32, SUBTRACT_32, MULTIPLY_32, ADD_REGISTER_32 = 0xBC, 0x14, 0x24, 0x0C  # these clear the upper half
IF_NOT_LESS = 0x35  # unsigned
LOAD_PACKET_16, LOAD_PACKET_32 = 0x28, 0x20  # from the frame in register 6 into register 0; changes 1 to 5
# Functions of the kernel that programs call.
LOOK_UP, REDIRECT_COPY, PUSH_VLAN, POP_VLAN, REDIRECT, LOAD_BYTES = 1, 13, 18, 19, 23, 26
# What a classifier says of a frame (TC_ACT_STOLEN, TC_ACT_UNSPEC).
TAKEN, GO_ON = 4, -1


def instruction(code: int, to: int = 0, of: int = 0, offset: int = 0, value: int = 0) -> bytes:
    """Encode one instruction: operation code, the two registers, jump or memory offset, immediate value."""
    return struct.pack("=BBhi", code, of << 4 | to, offset, value)


class Assembler:
    """A program, written from its first instruction to its last; jumps go forward, to labels by name."""

    def __init__(self) -> None:
        self._words: list[tuple[int, int, int, int | str, int]] = []
        self._labels: dict[str, int] = {}

    def op(self, code: int, to: int = 0, of: int = 0, offset: int = 0, value: int = 0) -> None:
        """Add an instruction; fields as of instruction()."""
        self._words.append((code, to, of, offset, value))

    def jump(self, label: str, code: int = JUMP, register: int = 0, value: int = 0, of: int = 0) -> None:
        """Jump to a label; unless the code is JUMP, if a register compares so with a value or another register."""
        self._words.append((code, register, of, label, value))

    def label(self, name: str) -> None:
        """Name the next instruction."""
        self._labels[name] = len(self._words)

    def call(self, function: int) -> None:
        """Call a function of the kernel, with registers 1 to 5; register 0 has what it returns."""
        self.op(_CALL, value=function)

    def map(self, register: int, descriptor: int) -> None:
        """Put the address of a map into a register."""
        self._words += [(_MAP_ADDRESS, register, 1, 0, descriptor), (0, 0, 0, 0, 0)]

    def leave(self, value: int) -> None:
        """Return a value."""
        self.op(SET, 0, value=value)
        self.exit()

    def exit(self) -> None:
        """Return register 0."""
        self.op(_EXIT)

    def assemble(self) -> bytes:
        """The program."""
        return b"".join(
            instruction(code, to, of, self._labels[offset] - at - 1 if isinstance(offset, str) else offset, value)
            for at, (code, to, of, offset, value) in enumerate(self._words)
        )


def array_map(entry_size: int, entries: int) -> int:
    """Make an array that user space can map into its memory; returns its file descriptor.

    Raises:
        OSError: the kernel cannot, or does not allow it.
    """
    return create_map(ARRAY, 4, entry_size, entries, _MMAPABLE)


def hash_map(key_size: int, entry_size: int, entries: int) -> int:
    """Make a hash map that takes memory for what is in it; returns its file descriptor, and raises as array_map()."""
    return create_map(HASH, key_size, entry_size, entries, _NOT_BEFOREHAND)


def create_map(kind: int, key_size: int, entry_size: int, entries: int, flags: int = 0) -> int:
    """Make a map; returns its file descriptor, and raises as array_map()."""
    return _call(_MAP_CREATE, struct.pack("=IIIII", kind, key_size, entry_size, entries, flags))


def update(descriptor: int, entries: Mapping[bytes, bytes]) -> None:
    """Put entries into a hash map.

    Raises:
        OSError: it is full, or the kernel cannot (before Linux 5.6).
    """
    items = list(entries.items())
    for at in range(0, len(items), _BATCH):
        part = items[at : at + _BATCH]
        _batch(_UPDATE_BATCH, descriptor, b"".join(k for k, _ in part), b"".join(v for _, v in part), len(part))


def delete(descriptor: int, keys: Sequence[bytes]) -> None:
    """Take entries that are in a hash map out of it; what somebody else has taken out already is passed over."""
    at = 0
    while at < len(keys):
        part = keys[at : at + _BATCH]
        gone = _batch(_DELETE_BATCH, descriptor, b"".join(part), b"", len(part))
        at += gone if gone == len(part) else gone + 1


def _batch(command: int, descriptor: int, keys: bytes, values: bytes, count: int) -> int:
    """Work on many entries; returns with how many, which are fewer where the next one is not there."""
    memory = [ctypes.create_string_buffer(what, max(len(what), 1)) for what in (keys, values)]
    places = (ctypes.addressof(one) for one in memory)
    return _call_counting(command, struct.pack("=QQQQIIQQ", 0, 0, *places, count, descriptor, 0, 0))


def content(descriptor: int, key_size: int, entry_size: int, most: int) -> dict[bytes, bytes]:
    """All entries of a hash map that has room for `most`.

    Raises:
        OSError: the kernel cannot tell.
    """
    # A batch ends between two buckets, so there is room for all at once.
    keys, values = ctypes.create_string_buffer(key_size * most), ctypes.create_string_buffer(entry_size * most)
    where, next_place = ctypes.addressof, ctypes.create_string_buffer(8)
    attributes = struct.pack("=QQQQIIQQ", 0, where(next_place), where(keys), where(values), most, descriptor, 0, 0)
    count = _call_counting(_LOOKUP_BATCH, attributes)
    raw_keys, raw_values = keys.raw, values.raw
    return {
        raw_keys[n * key_size : (n + 1) * key_size]: raw_values[n * entry_size : (n + 1) * entry_size]
        for n in range(count)
    }


def map_id(descriptor: int) -> int:
    """The number by which other processes find a map."""
    info = ctypes.create_string_buffer(64)
    _call(_OBJECT_INFO, struct.pack("=IIQ", descriptor, len(info), ctypes.addressof(info)))
    return int(struct.unpack_from("=II", info)[1])


def map_by_id(number: int) -> int:
    """Open the map that has a number; returns its file descriptor."""
    return _call(_MAP_BY_ID, struct.pack("=I", number))


def load(program: bytes, kind: int = CLASSIFIER) -> int:
    """Load a program that looks at frames; returns its file descriptor.

    Raises:
        OSError: the kernel refuses it; the text ends with what its verifier says.
    """
    code, license_text = ctypes.create_string_buffer(program, len(program)), ctypes.create_string_buffer(_LICENSE)
    log = ctypes.create_string_buffer(_LOG_SIZE)
    count, where = len(program) // 8, ctypes.addressof
    try:
        head = struct.pack("=IIQQ", kind, count, where(code), where(license_text))
        return _call(_PROG_LOAD, head + struct.pack("=IIQI", 1, _LOG_SIZE, where(log), 0))
    except OSError as error:
        said = log.value.decode(errors="replace").strip().splitlines()
        raise OSError(error.errno, f"{error.strerror}: {said[-1]}" if said else error.strerror) from error


def attach(program: int, ports: Sequence[str], *, rank: int) -> None:
    """Let a classifier look at all frames that ports take in, after those of a lower rank that let them go on.

    Open vSwitch takes the place of classifiers off a port whenever its link changes, also while this puts them there;
    then it is tried again.

    Raises:
        LabError: the kernel does not take it, or Open vSwitch never leaves the ports alone.
    """
    with pinned([program]) as (name,):
        for tries_left in range(_TRIES - 1, -1, -1):
            try:
                _attach(f"bpf direct-action object-pinned {name}", ports, rank)
                return
            except LabError:
                if not tries_left:
                    raise
                time.sleep(_BETWEEN)


@contextmanager
def pinned(programs: Sequence[int]) -> Iterator[list[Path]]:
    """Give programs names in a file system of their own, by which `tc` finds them."""
    with tempfile.TemporaryDirectory() as folder:
        run(["mount", "-t", "bpf", "bpf", folder])
        try:
            names = [Path(folder) / f"program{number}" for number in range(len(programs))]
            for program, name in zip(programs, names, strict=True):
                _pin(program, name)
            yield names
        finally:
            run(["umount", folder])


def _attach(classifier: str, ports: Sequence[str], rank: int) -> None:
    have = {line.split()[4] for line in run(["tc", "qdisc", "show"]).splitlines() if line.startswith("qdisc ingress")}
    lines = [f"qdisc add dev {port} ingress\n" for port in ports if port not in have]
    lines += [f"filter replace dev {port} ingress pref {rank} handle 1 {classifier}\n" for port in ports]
    run(["tc", "-batch", "-"], "".join(lines))


def _pin(descriptor: int, path: Path) -> None:
    """Give a program a name in a mounted file system of type `bpf`, by which `tc` finds it."""
    name = ctypes.create_string_buffer(os.fsencode(path))
    _call(_OBJ_PIN, struct.pack("=QI", ctypes.addressof(name), descriptor))


def _call(command: int, attributes: bytes) -> int:
    result, code, _ = _system_call(command, attributes)
    if result < 0:
        raise OSError(code, os.strerror(code))
    return result


def _call_counting(command: int, attributes: bytes) -> int:
    """As _call(), for many entries; returns with how many it has worked up to the end, or to a missing one."""
    result, code, after = _system_call(command, attributes)
    if result < 0 and code != errno.ENOENT:
        raise OSError(code, os.strerror(code))
    return int(struct.unpack_from("=I", after, _COUNT_AT)[0])


def _system_call(command: int, attributes: bytes) -> tuple[int, int, bytes]:
    number = _NUMBERS.get(platform.machine(), _NEWER)
    buffer = ctypes.create_string_buffer(attributes, max(len(attributes), _ATTRIBUTE_SIZE))
    result = int(_libc.syscall(number, command, buffer, len(buffer)))
    return result, ctypes.get_errno(), buffer.raw
