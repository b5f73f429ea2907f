"""What saved configurations of commands have in common: words, VLAN lists, addresses, ports and the end of the file."""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass, field

from testbed.errors import Problem
from testbed.export.bridge import Bridge, BridgePort, Entry
from testbed.limits import SWITCH_PORTS, allowed, too_much
from testbed.vlans.fixed import LAST_VLAN_ID

_DIGITS = re.compile(r"[0-9a-f]{12}")
_PAGER = re.compile(r"-+ ?more ?-+", re.IGNORECASE)


ALL_VLANS = frozenset(range(1, LAST_VLAN_ID + 1))


class LineError(ValueError):
    """A line that cannot be carried out; the text says why."""


def mac_of(text: str) -> str:
    """An address in any of its spellings as 02:00:00:00:00:01.

    Raises:
        LineError: it is none.
    """
    digits = re.sub(r"[.:-]", "", text.lower())
    if not _DIGITS.fullmatch(digits):
        raise LineError(f'"{text}" is not a MAC address')
    return ":".join(digits[place : place + 2] for place in range(0, 12, 2))


@functools.lru_cache(maxsize=1024)
def vlans_of(text: str) -> frozenset[int]:
    """VLANs of a list such as `10-17,20`; thousands of ports with one list have one set.

    Raises:
        LineError: it is none.
    """
    found: set[int] = set()
    for part in text.split(","):
        first, dash, last = (word.strip() for word in part.partition("-"))
        if not (first.isascii() and first.isdigit()) or (dash and not (last.isascii() and last.isdigit())):
            raise LineError(f'"{text}" is not a list of VLANs such as 10-17,20')
        low, high = int(first), int(last or first)
        if not 1 <= low <= high <= LAST_VLAN_ID:
            raise LineError(f'"{part}" is not a range of VLANs from 1 to {LAST_VLAN_ID}')
        found.update(range(low, high + 1))
    return frozenset(found)


@dataclass(slots=True)
class PortLines:
    """What was said of one port."""

    mode: str = "access"  # `access`, `trunk` or `general`
    access: int = 1  # VLAN of an access port
    native: int = 1  # untagged VLAN of a trunk
    allowed: frozenset[int] | None = None  # VLANs of a trunk; None for all there are
    tagged: frozenset[int] = frozenset()  # of general mode
    untagged: frozenset[int] = frozenset({1})  # likewise
    pvid: int = 1  # likewise
    tagged_only: bool = False  # likewise: untagged frames are dropped
    filters: bool = True  # likewise: whether frames of VLANs without this port are dropped as they arrive
    shut: bool = False  # whether it is switched off
    said: bool = False  # whether anything was said of its VLANs

    def as_port(self, vlans: frozenset[int] | None) -> BridgePort:
        """The port, of a switch that has these VLANs; None where that is not known."""
        if self.mode == "general":
            members, untagged = self.tagged | self.untagged, self.untagged - self.tagged
            pvid: int | None = None if self.tagged_only else self.pvid
        elif self.mode == "trunk":
            there = ALL_VLANS if vlans is None else vlans
            members = there if self.allowed is None or self.allowed >= there else self.allowed & there
            untagged, pvid = members & {self.native}, self.native
        else:
            members = untagged = frozenset({self.access})
            pvid = self.access
        if self.filters and pvid not in members:
            pvid = None  # what is taken for that VLAN is dropped at once
        return BridgePort(pvid, members, untagged, filters=self.filters)


@dataclass(slots=True)
class SwitchLines:
    """A switch under construction."""

    file: str  # that is read
    ports: dict[str, PortLines] = field(default_factory=dict)  # by name
    vlans: set[int] = field(default_factory=lambda: {1})  # those that were made
    lists_vlans: bool = False  # whether the file says which VLANs there are
    stp: bool = True  # until it is switched off, as when it comes out of its box
    fdb: dict[Entry, str] = field(default_factory=dict)  # static entries
    problems: list[Problem] = field(default_factory=list)  # what is wrong, each with its line
    pauses: set[str] = field(default_factory=set)  # ports that obey pauses
    channels: dict[str, str] = field(default_factory=dict)  # port → the port channel it is part of

    def port(self, name: str) -> PortLines:
        """A port by its name.

        Raises:
            LineError: the switch would have more ports than any has.
        """
        most = allowed(SWITCH_PORTS)
        if len(self.ports) >= most and name not in self.ports:
            raise LineError(too_much("is one port more than can be read", most, "ports of a switch"))
        return self.ports.setdefault(name, PortLines())

    def wrong(self, number: int, sentence: str) -> None:
        """Note what is wrong with a line."""
        self.problems.append(Problem(f"{self.file} line {number}", sentence))

    def finish(self, name: str) -> tuple[Bridge, list[Problem]]:
        """The bridge, and what is wrong.

        A port of whose VLANs nothing is said is left out, as is one that is shut. Parts of a channel have its VLANs.
        """
        vlans = frozenset(self.vlans) if self.lists_vlans else None
        for port, channel in self.channels.items():
            if channel not in self.ports:
                sentence = f"{port} is part of {channel}, of which nothing is said; save the whole configuration"
                self.problems.append(Problem(self.file, sentence))
        channels = {port: channel for port, channel in self.channels.items() if not self.ports[port].shut}
        used = {*self.ports} - {*self.channels}
        used -= {*self.channels.values()} - {*channels.values()}  # without a part that is up
        ports = {
            port: said.as_port(vlans)
            for port, said in self.ports.items()
            if port in used and said.said and not said.shut
        }
        return Bridge(name, True, self.stp, ports, self.fdb, channels), self.problems


def is_pager(line: str) -> bool:
    """Whether a line is what a terminal shows between two pages."""
    return bool(_PAGER.search(line))


def nothing(name: str, problem: Problem) -> tuple[Bridge, list[Problem]]:
    """A switch of which nothing could be read."""
    return Bridge(name, True, False, {}, {}), [problem]


def text_of(name: str, files: dict[str, str]) -> str | None:
    """The file of a switch: its name and any of the usual endings."""
    for ending in (".txt", ".cfg", ".conf", "", ".log", "/running-config", "/startup-config", "/running-config.txt"):
        if f"{name}{ending}" in files:
            return f"{name}{ending}"
    return None
