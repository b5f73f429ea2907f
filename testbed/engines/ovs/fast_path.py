"""A fast path under Open vSwitch's userspace datapath: frames with an entry stay in the kernel.

What forwards is in fast_programs; this keeps the entries of each switch. A switch is on once its entries are there, and
clear() takes it off with one write to memory that the kernel looks at for each frame.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import socket
import threading
import time
from collections.abc import Callable, Collection, Iterable, Sequence

from testbed.base.errors import LabError
from testbed.engines.lab.build_order import BuildOrder
from testbed.engines.ovs import bpf
from testbed.engines.ovs.fast_programs import (
    FRAMES_AT,
    KEY_SIZE,
    NOTE_SIZE,
    PORT,
    VALUE_SIZE,
    Maps,
    decode_entry,
    encode_entry,
    make_socket_filter,
    make_tc_classifier,
)
from testbed.fabric.openflow.flow_cache_entry import Entry

# In the environment, with 1: no lab gets one.
_NONE = "TESTBED_NO_FAST_PATH"
_SO_ATTACH_BPF = 50
_MOST_ENTRIES = 1 << 18
# After that which counts pairs of hosts, which lets all frames go on.
RANK = 3
# A frame that was looked up before a switch was taken off has left a processor by then, s.
_UNDER_WAY = 0.001


def open_fast_path(
    order: BuildOrder, datapath: str, ports: Sequence[tuple[str, str, int]]
) -> tuple[FastPath | None, str]:
    """Give a lab a fast path where it may have one; else say why not, if it was asked for.

    Args:
        order: of the lab.
        datapath: `kernel` or `userspace`.
        ports: as of FastPath.
    """
    why = why_slow(order, datapath)
    if order.fast_path != "auto" or datapath == "kernel" or why:
        return None, why
    try:
        return FastPath(ports), ""
    except LabError as error:
        return None, str(error)


def why_slow(order: BuildOrder, datapath: str) -> str:
    """Why a lab has no fast path by what it is; empty where it may have one, or where nobody asked for it."""
    if order.fast_path != "auto" or datapath == "kernel":
        return ""
    if order.stock:
        return "Open vSwitch runs as it is installed"
    if os.environ.get(_NONE) == "1":
        return f"{_NONE}=1 is set"
    if order.controller is not None:
        return f"the controller {order.controller} changes rules while frames are on their way"
    if order.port_security or any("learn(" in line for lines in order.rules.values() for line in lines):
        return f"switches that {'look where frames are from' if order.port_security else 'learn'} must see every frame"
    return ""


def why_not() -> str:
    """Why this kernel does not take the programs, as far as can be told without a port; empty if it does."""
    opened: list[int] = []
    try:
        maps = _maps(1, 1)
        opened += maps
        opened += [bpf.load(make_socket_filter(maps), bpf.SOCKET_FILTER), bpf.load(make_tc_classifier(maps))]
    except OSError as error:
        return str(error.strerror)
    finally:
        for one in opened:
            os.close(one)
    return ""


def _maps(ports: int, entries: int) -> Maps:
    return Maps(
        bpf.array_map(PORT.size, ports),
        bpf.hash_map(KEY_SIZE, VALUE_SIZE, entries),
        bpf.create_map(bpf.ARRAY_A_PROCESSOR, 4, NOTE_SIZE, 1),
    )


class FastPath:
    """The fast path of a lab; no switch is on at first.

    Args:
        ports: switch, interface and number of each port of all switches.

    Raises:
        LabError: this kernel cannot do it; says what fails.
    """

    def __init__(self, ports: Sequence[tuple[str, str, int]]) -> None:
        index = {name: number for number, name in socket.if_nameindex()}
        self._place = {interface: (switch, port, index[interface]) for switch, interface, port in ports}
        self._interfaces: dict[str, dict[int, int]] = {}  # switch → port → number of its interface
        for switch, port, number in self._place.values():
            self._interfaces.setdefault(switch, {})[port] = number
        self._keys: dict[str, list[bytes]] = {switch: [] for switch in self._interfaces}
        self._on: dict[str, dict[int, int]] = {}  # switch → generation → port
        self._generation = 0
        self._lock = threading.Lock()
        try:
            count = max(index.values()) + 1
            self._maps = _maps(count, _MOST_ENTRIES)
            self._memory = mmap.mmap(self._maps.ports, -(-count * PORT.size // mmap.PAGESIZE) * mmap.PAGESIZE)
            self._filter = bpf.load(make_socket_filter(self._maps), bpf.SOCKET_FILTER)
            self._classifier = bpf.load(make_tc_classifier(self._maps))
            self.map_id = bpf.map_id(self._maps.entries)
        except OSError as error:
            raise LabError(f"the kernel refuses it: {error.strerror}") from error
        self.attach(self._interfaces)

    @property
    def switches(self) -> dict[str, list[int]]:
        """Numbers of its ports, for each switch."""
        return {switch: list(ports) for switch, ports in self._interfaces.items()}

    def switch_at(self, interface: int) -> str | None:
        """The switch that has a port with this number of an interface."""
        return next((switch for switch, its in self._interfaces.items() if interface in its.values()), None)

    def attach(self, switches: Collection[str]) -> None:
        """Put the classifier on all ports of switches, whose Open vSwitch has just taken them over."""
        ports = [name for name, (switch, _, _) in self._place.items() if switch in switches]
        if ports:
            bpf.attach(self._classifier, ports, rank=RANK)

    def listen(self, one: socket.socket) -> None:
        """Put the filter on a packet socket of Open vSwitch, if it hears one of the ports.

        Raises:
            OSError: the kernel refuses it.
        """
        if one.getsockname()[0] in self._place:
            one.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_BPF, self._filter)

    def clear(self, switch: str) -> None:
        """Take a switch off: from now on Open vSwitch gets all its frames."""
        with self._lock:
            was_on = self._on.pop(switch, None)
            for number in self._interfaces[switch].values():
                self._set_generation(number, 0)
            if was_on is not None:
                time.sleep(_UNDER_WAY)
            keys, self._keys[switch] = self._keys[switch], []
            bpf.delete(self._maps.entries, keys)

    def fill(self, switch: str, entries: Iterable[Entry], valid: Callable[[], bool]) -> None:
        """Give a switch that is off entries, and put it on unless they are not valid any more then.

        Raises:
            OSError: there is no room for them.
        """
        interfaces = self._interfaces[switch]
        generations = {port: self._generation + number for number, port in enumerate(interfaces, 1)}
        self._generation += len(interfaces)
        coded = dict(encode_entry(e, generations[e.in_port], interfaces[e.out_port]) for e in entries)
        bpf.update(self._maps.entries, coded)
        with self._lock:
            if not valid():
                bpf.delete(self._maps.entries, list(coded))
                return
            self._keys[switch] = list(coded)
            self._on[switch] = {generation: port for port, generation in generations.items()}
            for port, number in interfaces.items():
                self._set_generation(number, generations[port])

    def frames(self) -> dict[str, int]:
        """Frames that the entries of each switch have sent."""
        return {
            switch: sum(
                ctypes.c_uint64.from_buffer(self._memory, number * PORT.size + FRAMES_AT).value
                for number in interfaces.values()
            )
            for switch, interfaces in self._interfaces.items()
        }

    def dump(self) -> dict[str, tuple[str, ...]]:
        """The entries of all switches that are on, as the kernel has them: lines of Entry.

        An entry that leaves by a port of no switch, or of another one, leaves by port 0.
        """
        with self._lock:
            ports = {generation: (switch, port) for switch, its in self._on.items() for generation, port in its.items()}
            content = bpf.content(self._maps.entries, KEY_SIZE, VALUE_SIZE, _MOST_ENTRIES)
        found: dict[str, list[str]] = {switch: [] for switch in self._on}
        leaving = {(switch, number): port for switch, its in self._interfaces.items() for port, number in its.items()}
        for key, value in content.items():
            entry = decode_entry(key, value)
            if entry.generation in ports:
                switch, port = ports[entry.generation]
                out_port = leaving.get((switch, entry.interface), 0)
                found[switch].append(Entry(port, entry.tag, entry.destination, out_port, entry.out_tag).line())
        return {switch: tuple(lines) for switch, lines in found.items()}

    def _set_generation(self, interface: int, generation: int) -> None:
        ctypes.c_uint32.from_buffer(self._memory, interface * PORT.size).value = generation
