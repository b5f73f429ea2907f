"""Send one frame between every two hosts and one broadcast from each, and note every port they leave by."""

from __future__ import annotations

import select
import socket
import struct
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from testbed.base.model import host_mac
from testbed.engines.lab.control.client import LabClient
from testbed.engines.lab.hosts.commands import in_network_of
from testbed.engines.lab.hosts.interface_names import port_interface
from testbed.fabric.routing.paths import path
from testbed.planning import Plan

BROADCAST = "ff:ff:ff:ff:ff:ff"
EVERYBODY = -1
UNTAGGED = 0
# Switch, port it leaves by, VID of its tag there.
Crossing = tuple[int, int, int]
# Sender and receiver, the latter EVERYBODY for a broadcast → each port it left by, as often as it did.
Crossings = dict[tuple[int, int], Counter[Crossing]]

_TYPE = 0x88B5  # experimental; nothing else on the machine sends it
_ALL_PROTOCOLS = 3
_SOL_PACKET, _AUXDATA, _TAG_VALID = 263, 8, 0x10
_PACE, _SILENCE, _LIMIT = 0.001, 1.5, 60.0


@dataclass(frozen=True)
class Network:
    """Where the hosts and switches of a fabric are.

    Attributes:
        host: process in the network namespace of each host.
        ports: process in a network namespace with switches → interface there → (switch, port).
    """

    host: list[int]
    ports: dict[int, dict[str, tuple[int, int]]] = field(default_factory=dict)


def lab_network(plan: Plan, lab: LabClient) -> Network:
    """Of a lab, whose switches are all in one namespace."""
    inside = Path(f"/proc/{lab.namespaces.init}/ns/pid").readlink()
    outer = {}
    for entry in Path("/proc").iterdir():
        with suppress(FileNotFoundError, ProcessLookupError):  # a process that has ended meanwhile
            if entry.name.isdigit() and (entry / "ns" / "pid").readlink() == inside:
                (row,) = (line for line in (entry / "status").read_text().splitlines() if line.startswith("NSpid:"))
                outer[int(row.split()[-1])] = int(entry.name)
    topology = plan.wiring
    hosts = [outer[lab.facts.holders[topology.host_name(host)]] for host in range(topology.host_count)]
    names = {port_interface(topology.switch_name(s), port): (s, port) for s, port in switch_ports(plan)}
    return Network(hosts, {lab.namespaces.init: names})


def switch_ports(plan: Plan) -> Iterator[tuple[int, int]]:
    """Every (switch, port) with a link or a host."""
    topology = plan.wiring
    for channel in range(len(topology.out_port)):
        yield int(topology.channel_source[channel]), int(topology.out_port[channel])
    for host in range(topology.host_count):
        yield int(topology.host_switch[host]), int(topology.host_port[host])


def planned_crossings(plan: Plan) -> Crossings:
    """What the plan says of every pair's frame, without tags, which are not compared with it."""
    topology = plan.topology
    found: Crossings = {}
    for source in range(topology.host_count):
        for destination in range(topology.host_count):
            if source != destination:
                channels = path(topology, plan.routes, source, destination)
                ports = [(int(topology.channel_source[c]), int(topology.out_port[c]), UNTAGGED) for c in channels]
                last = (int(topology.host_switch[destination]), int(topology.host_port[destination]), UNTAGGED)
                found[source, destination] = Counter([*ports, last])
    return found


def without_tags(crossings: Crossings) -> Crossings:
    """The same with every tag taken off."""
    return {
        pair: Counter({(switch, port, UNTAGGED): count for (switch, port, _), count in left.items()})
        for pair, left in crossings.items()
    }


def observe(plan: Plan, network: Network) -> Crossings:
    """Send every frame once, and return by which ports it left, with which tag, until no more of them move."""
    hosts = range(plan.topology.host_count)
    pairs = [(s, d) for s in hosts for d in (*hosts, EVERYBODY) if s != d]
    found: Crossings = {pair: Counter() for pair in pairs}
    with ExitStack() as stack:
        ears = {stack.enter_context(_listening(pid)): interfaces for pid, interfaces in network.ports.items()}
        mouths = [stack.enter_context(_sending(pid)) for pid in network.host]
        for source, destination in pairs:
            target = BROADCAST if destination == EVERYBODY else host_mac(destination)
            head = bytes.fromhex((target + host_mac(source)).replace(":", "")) + struct.pack("!H", _TYPE)
            mouths[source].send(head + struct.pack("!hh", source, destination) + bytes(42))
            _hear(ears, found, _PACE, 0.0)
        _hear(ears, found, _SILENCE, _LIMIT)
    return found


def _hear(
    ears: dict[socket.socket, dict[str, tuple[int, int]]], found: Crossings, silence: float, limit: float
) -> None:
    until = time.monotonic() + limit
    while ready := select.select(list(ears), [], [], silence)[0]:
        for ear in ready:
            frame, extra, _, address = ear.recvmsg(2048, socket.CMSG_SPACE(20))
            place = ears[ear].get(address[0])
            if place is None or address[2] != socket.PACKET_OUTGOING:
                continue
            tag, kind = _tag(extra), frame[12:14]
            if kind == b"\x81\x00":
                tag, frame = int.from_bytes(frame[14:16], "big") & 0xFFF, frame[4:]
            if int.from_bytes(frame[12:14], "big") == _TYPE:
                seen = (*place, tag)
                found[struct.unpack("!hh", frame[14:18])][seen] += 1
        assert not limit or time.monotonic() < until, "frames do not come to rest"


def _tag(extra: list[tuple[int, int, bytes]]) -> int:
    """VID that the kernel has taken off the frame and put beside it."""
    for level, kind, content in extra:
        if (level, kind) == (_SOL_PACKET, _AUXDATA):
            status, _, _, _, _, tag, _ = struct.unpack("=IIIHHHH", content)
            return tag & 0xFFF if status & _TAG_VALID else UNTAGGED
    return UNTAGGED


@contextmanager
def _listening(pid: int) -> Iterator[socket.socket]:
    def make() -> socket.socket:
        ear = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(_ALL_PROTOCOLS))
        ear.setsockopt(socket.SOL_SOCKET, 33, 64 << 20)  # SO_RCVBUFFORCE: none may be missed
        ear.setsockopt(_SOL_PACKET, _AUXDATA, 1)
        return ear

    with in_network_of(pid, make) as ear:
        yield ear


@contextmanager
def _sending(pid: int) -> Iterator[socket.socket]:
    def make() -> socket.socket:
        mouth = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
        mouth.bind(("eth0", 0))
        return mouth

    with in_network_of(pid, make) as mouth:
        yield mouth
