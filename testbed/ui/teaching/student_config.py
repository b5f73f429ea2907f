"""What students tell switches, in a file that looks like a switch's configuration.

    switch s1
      interface h1
        pvid 10
        untagged 10,20
      interface s2
        tagged 10-12

An interface is called by what is at its other end; `s2#1` is the second of parallel links. An interface that the file
does not name is as switches are delivered: an untagged member of VLAN 1, with PVID 1. One that is named is a member of
nothing but what is said.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from testbed.base.errors import InputError, Problem, did_you_mean
from testbed.base.model import Topology

LAST_VLAN = 4094
_WORDS = ("switch", "interface", "pvid", "untagged", "tagged", "shutdown")
_MAX_PROBLEMS = 10
_SHOWN = 40  # letters of a word that is wrong
_SHOWN_NAMES = 16
_NUMBER = re.compile(r"\d{1,9}")
_COMMENT = re.compile(r"(^|\s)#.*")  # s2#1 is a name


@dataclass(slots=True)
class Port:
    """One interface: `channel` leads to the neighbour, or `host` hangs on it."""

    name: str  # `s1:h1`
    pvid: int = 1
    untagged: set[int] = field(default_factory=set)
    tagged: set[int] = field(default_factory=set)
    up: bool = True
    channel: int = -1  # that leaves by it; -1 for a host's
    host: int = -1  # -1 for a link's

    @property
    def members(self) -> set[int]:
        """VLANs it is a member of."""
        return self.untagged | self.tagged


@dataclass(frozen=True, slots=True)
class Switches:
    """All switches of a fabric as a file configures them."""

    topology: Topology
    ports: dict[tuple[int, int], Port]  # by switch and port number

    @property
    def vlans(self) -> set[int]:
        """VLANs that frames of hosts are in."""
        return {port.pvid for port in self.ports.values() if port.host >= 0}

    def of_host(self, host: int) -> Port:
        """The interface a host hangs on."""
        return self.ports[int(self.topology.host_switch[host]), int(self.topology.host_port[host])]

    def ingress_interface(self, channel: int) -> Port:
        """The interface by which a channel enters its target."""
        topology = self.topology
        return self.ports[int(topology.channel_target[channel]), int(topology.out_port[channel ^ 1])]


def make_factory_default(topology: Topology) -> Switches:
    """Switches that nobody has told anything."""
    ports = {}
    for switch, name, number, channel, host in _interfaces(topology):
        ports[switch, number] = Port(f"{topology.switch_name(switch)}:{name}", untagged={1}, channel=channel, host=host)
    return Switches(topology, ports)


def _interfaces(topology: Topology) -> Iterator[tuple[int, str, int, int, int]]:
    """Switch, name of the interface, port, and the channel that leaves by it or the host on it."""
    for host in range(topology.host_count):
        switch, port = int(topology.host_switch[host]), int(topology.host_port[host])
        yield switch, topology.host_name(host), port, -1, host
    for channel in range(2 * topology.link_count):
        plane = int(topology.plane[channel // 2])
        name = topology.switch_name(int(topology.channel_target[channel])) + (f"#{plane}" if plane else "")
        yield int(topology.channel_source[channel]), name, int(topology.out_port[channel]), channel, -1


def parse(text: str, topology: Topology, source: str) -> Switches:
    """Read a file.

    Raises:
        InputError: every line that is wrong, up to ten.
    """
    reader = _Reader(make_factory_default(topology), source)
    for number, line in enumerate(text.splitlines(), start=1):
        words = _COMMENT.sub("", line).split()
        if words:
            reader.line(number, words)
    if not reader.said and not reader.problems:
        reader.problems.append(Problem("", "says nothing; begin with a line such as: switch s1", source))
    if reader.problems:
        raise InputError(reader.problems[:_MAX_PROBLEMS])
    return reader.switches


class _Reader:
    """Carries the switch and interface of the lines above."""

    def __init__(self, switches: Switches, source: str) -> None:
        self.switches = switches
        self.problems: list[Problem] = []
        self.said = False
        self._source = source
        topology = switches.topology
        self._numbers = {topology.switch_name(switch): switch for switch in range(topology.switch_count)}
        self._ports: dict[int, dict[str, Port]] = {}
        for switch, name, number, _, _ in _interfaces(topology):
            self._ports.setdefault(switch, {})[name] = switches.ports[switch, number]
        self._switch: int | None = None
        self._port: Port | None = None
        self._no_switch = self._no_port = False
        self._named: set[str] = set()

    def line(self, number: int, words: list[str]) -> None:
        """Carry out one line."""
        self.said = True
        verb, *rest = words
        if self._is_skipped(verb.lower()):
            return
        problem = self._carry_out(verb.lower(), rest)
        if problem:
            self.problems.append(Problem(f"line {number}", problem, self._source))

    def _is_skipped(self, verb: str) -> bool:
        """Whether a line belongs to a switch or interface that there is not, which was said at its own line."""
        return (self._no_switch and verb in _WORDS[1:]) or (self._no_port and verb in _WORDS[2:])

    def _carry_out(self, verb: str, rest: list[str]) -> str:
        if verb not in _WORDS:
            return f'"{verb[:_SHOWN]}" is no word of a switch.{did_you_mean(verb, _WORDS)} Known: {", ".join(_WORDS)}'
        if verb == "switch":
            return self._enter_switch(rest)
        if verb == "interface":
            return self._enter_interface(rest)
        if self._port is None:
            return f"{verb} belongs to an interface; write a line such as: interface h1 above it"
        if verb == "shutdown":
            self._port.up = False
            return "" if not rest else f"shutdown stands alone, not before {' '.join(rest)}"
        return self._membership(self._port, verb, rest)

    def _enter_switch(self, rest: list[str]) -> str:
        self._port, self._switch = None, self._numbers.get(rest[0]) if len(rest) == 1 else None
        self._no_switch, self._no_port = self._switch is None, False
        if len(rest) != 1:
            return "write one name, such as: switch s1"
        if self._switch is None:
            known = ", ".join([*self._numbers][:_SHOWN_NAMES])
            return f'there is no switch "{rest[0][:_SHOWN]}".{did_you_mean(rest[0], self._numbers)} Known: {known}'
        return ""

    def _enter_interface(self, rest: list[str]) -> str:
        self._port, self._no_port = None, True
        if self._switch is None:
            self._no_switch = True  # said once
            return "belongs to a switch; write a line such as: switch s1 above it"
        known = self._ports.get(self._switch, {})
        if len(rest) != 1:
            return f"write what is at its other end, one of {', '.join(known)}"
        port = known.get(rest[0])
        if port is None:
            name = self.switches.topology.switch_name(self._switch)
            return f'{name} has no interface to "{rest[0][:_SHOWN]}", only to {", ".join(known)}'
        if port.name in self._named:
            return f"{port.name} is configured twice; put its lines together"
        self._named.add(port.name)
        self._port, self._no_port = port, False
        port.untagged, port.pvid = set(), 1
        return ""

    def _membership(self, port: Port, verb: str, rest: list[str]) -> str:
        vlans, problem = _numbers("".join(rest) if rest and rest[-1].startswith(",") else ",".join(rest))
        if problem:
            return f"{verb}: {problem}"
        if verb == "pvid":
            if len(vlans) != 1:
                return "pvid: a port has one PVID, the VLAN of frames that arrive without a tag"
            port.pvid = vlans.pop()
            return ""
        mine, other = (port.untagged, port.tagged) if verb == "untagged" else (port.tagged, port.untagged)
        both = sorted(vlans & other)
        if both:
            return (
                f"{port.name} is a tagged and an untagged member of VLAN {both[0]}; a frame leaves one way or the other"
            )
        mine |= vlans
        return ""


def _numbers(text: str) -> tuple[set[int], str]:
    """VLANs of a list such as 10,20-22, or what is wrong with it."""
    found: set[int] = set()
    for part in text.split(","):
        if not part:
            continue
        first, dash, last = part.partition("-")
        if not _NUMBER.fullmatch(first) or (dash and not _NUMBER.fullmatch(last)):
            return set(), f'"{part[:_SHOWN]}" is no VLAN; write numbers such as 10 or 10,20-22'
        numbers = int(first), int(last or first)
        if not 1 <= numbers[0] <= numbers[1] <= LAST_VLAN:
            return set(), f"VLANs are numbers from 1 to {LAST_VLAN}, not {part}"
        found |= set(range(numbers[0], numbers[1] + 1))
    return found, "" if found else "write at least one VLAN"
