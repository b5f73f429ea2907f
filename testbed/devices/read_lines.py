"""What saved configurations of commands have in common: words, VLAN lists, addresses, ports and the end of the file."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from testbed.base.errors import Problem
from testbed.base.limits import SWITCH_PORTS, scaled_limit, too_much
from testbed.devices.bridge import Bridge, BridgePort, Dtp, Entry, Reading, Unmentioned
from testbed.devices.stp_settings import BY_KIND, StpSettings
from testbed.devices.vlan_set import ALL_VLANS, VlanSet
from testbed.fabric.vlans.fixed import LAST_VLAN_ID

_NO_VLANS, _VLAN_1 = VlanSet(), VlanSet.from_ids({1})
_DIGITS = re.compile(r"[0-9a-f]{12}")
_PAGER = re.compile(r"-+ ?more ?-+", re.IGNORECASE)


class LineError(ValueError):
    """A line that cannot be carried out; the text says why."""


class UnclearLineError(LineError):
    """A line that may decide where frames go, and is not understood; the text says why."""


def mac_of(text: str) -> str:
    """An address in any of its spellings as 02:00:00:00:00:01.

    Raises:
        LineError: it is none.
    """
    digits = re.sub(r"[.:-]", "", text.lower())
    if not _DIGITS.fullmatch(digits):
        raise LineError(f'"{text}" is not a MAC address')
    return ":".join(digits[place : place + 2] for place in range(0, 12, 2))


@lru_cache(maxsize=1024)
def vlans_of(text: str) -> VlanSet:
    """VLANs of a list such as `10-17,20`.

    Raises:
        LineError: it is none.
    """
    bits = 0
    for part in text.split(","):
        first, dash, last = (word.strip() for word in part.partition("-"))
        if not (first.isascii() and first.isdigit()) or (dash and not (last.isascii() and last.isdigit())):
            raise LineError(f'"{text}" is not a list of VLANs such as 10-17,20')
        low, high = int(first[:6]), int((last or first)[:6])
        if not 1 <= low <= high <= LAST_VLAN_ID:
            raise LineError(f'"{part}" is not a range of VLANs from 1 to {LAST_VLAN_ID}')
        bits |= VlanSet.span(low, high).bits
    return VlanSet(bits)


def vlan_of(text: str) -> int:
    """One VLAN.

    Raises:
        LineError: it is none, or several.
    """
    found = vlans_of(text)
    if len(found) != 1:
        raise LineError(f'"{text}" should be one VLAN')
    return min(found)


@dataclass(slots=True)
class PortLines:
    """What was said of one port. None is what was not said."""

    mode: str | None = None  # `access`, `trunk`, `general`, `auto` or `desirable`
    access: int | None = None  # VLAN of an access port
    native: int | None = None  # untagged VLAN of a trunk
    allowed_vlans: VlanSet | None = None  # VLANs of a trunk; None for all there are
    voice: int | None = None  # VLAN of telephones on an access port, tagged
    tagged: VlanSet = _NO_VLANS  # of general mode
    untagged: VlanSet = _VLAN_1  # likewise
    pvid: int = 1  # likewise
    tagged_only: bool = False  # likewise: untagged frames are dropped
    filters: bool = True  # likewise: whether frames of VLANs without this port are dropped as they arrive
    negotiates: bool = True  # whether it speaks DTP, where the switch does
    tags_native: bool = False  # whether a trunk tags its native VLAN, too
    floods: bool = True  # whether unknown unicast frames leave by it
    shut: bool = False  # whether it is switched off
    mbits: int | None = None  # its speed in Mbit/s, where it says one
    outside: str = ""  # why it is no port of the bridge, empty where it is one
    said: bool = False  # whether anything was said of its VLANs
    lines: list[str] = field(default_factory=list)  # lines that were said of it

    def as_access(self, made: VlanSet) -> BridgePort:
        """The port as an access port of a switch that has these VLANs."""
        own = VlanSet.from_ids({self.access or 1}) & made
        voice = VlanSet() if self.voice is None else VlanSet.from_ids({self.voice}) & made
        return self._port(self.access or 1, own | voice, own)

    def as_trunk(self, made: VlanSet) -> BridgePort:
        """The port as a trunk of a switch that has these VLANs."""
        members = made if self.allowed_vlans is None else self.allowed_vlans & made
        native = self.native or 1
        return self._port(native, members, VlanSet() if self.tags_native else members & VlanSet.from_ids({native}))

    def as_general(self) -> BridgePort:
        """The port in general mode."""
        members = self.tagged | self.untagged
        pvid = None if self.tagged_only else self.pvid
        if self.filters and pvid not in members:
            pvid = None  # what is taken for that VLAN is dropped at once
        return BridgePort(pvid, members, self.untagged - self.tagged, filters=self.filters)

    def _port(self, pvid: int, members: VlanSet, untagged: VlanSet) -> BridgePort:
        # An untagged frame of a VLAN that the port does not have, or tags, is dropped at once.
        return BridgePort(pvid if pvid in untagged else None, members, untagged, flood=self.floods)


@dataclass(slots=True)
class SwitchLines:
    """A switch under construction."""

    file: str  # that is read
    kind: str  # such as `ios`, by which DEFAULTS are named
    ports: dict[str, PortLines] = field(default_factory=dict)  # by name
    vlans: VlanSet = _VLAN_1  # those that were made
    without: VlanSet = _NO_VLANS  # those that are suspended or shut
    lists_vlans: bool = False  # whether the file says which VLANs there are
    stp: bool = True  # until it is switched off, as when it comes out of its box
    without_stp: VlanSet = _NO_VLANS  # VLANs in which it is switched off
    tree: StpSettings = field(default_factory=StpSettings)  # what is said of the spanning tree protocol
    says_mode: bool = False  # whether its mode is among that
    access_edges: set[str] = field(default_factory=set)  # edge ports that are such as access ports alone
    opened: str = ""  # section of the switch that lines are in, such as `region`
    tags_native: bool = False  # whether trunks tag their native VLAN
    domain: str = ""  # of VTP
    fdb: dict[Entry, str] = field(default_factory=dict)  # static entries
    problems: list[Problem] = field(default_factory=list)  # what is wrong, each with its line
    unclear: list[Problem] = field(default_factory=list)  # what is not understood, likewise
    passed: dict[str, int] = field(default_factory=dict)  # what moves no frame, and on how many lines
    pauses: set[str] = field(default_factory=set)  # ports that obey pauses
    channels: dict[str, str] = field(default_factory=dict)  # port → the port channel it is part of

    def __post_init__(self) -> None:
        """Take the defaults of the kind."""
        self.tree = BY_KIND.get(self.kind, self.tree)

    def port(self, name: str) -> PortLines:
        """A port by its name.

        Raises:
            LineError: the switch would have more ports than any has.
        """
        most = scaled_limit(SWITCH_PORTS)
        if len(self.ports) >= most and name not in self.ports:
            raise LineError(too_much("is one port more than can be read", most, "ports of a switch"))
        return self.ports.setdefault(name, PortLines())

    def add_problem(self, number: int, sentence: str) -> None:
        """Note what is wrong with a line."""
        self.problems.append(Problem(f"{self.file} line {number}", sentence))

    def not_understood(self, number: int, sentence: str) -> None:
        """Note a line that may decide where frames go."""
        self.unclear.append(Problem(f"{self.file} line {number}", sentence))

    def pass_over(self, setting: str) -> None:
        """Count a line that moves no frame."""
        self.passed[setting] = self.passed.get(setting, 0) + 1

    @property
    def active_vlans(self) -> VlanSet:
        """VLANs that carry frames. Only IOS keeps them elsewhere, where no line tells of any."""
        there = self.vlans if self.lists_vlans or self.kind != "ios" else ALL_VLANS
        return there - self.without

    def finish(self, name: str) -> tuple[Bridge, list[Problem]]:
        """The bridge, and what is wrong.

        A port of whose VLANs nothing is said has the default of its kind; one that is shut carries nothing. Parts of a
        channel have its VLANs.
        """
        for port, channel in self.channels.items():
            if channel not in self.ports and self.kind != "ios":
                self.port(channel)
            elif channel not in self.ports:
                sentence = f"{port} is part of {channel}, of which nothing is said; save the whole configuration"
                self.problems.append(Problem(self.file, sentence))
        channels = {port: channel for port, channel in self.channels.items() if not self.ports[port].shut}
        dead = {*self.channels.values()} - {*channels.values()}
        made, ports, down, dtp = self.active_vlans, {}, {}, {}
        for port, said in self.ports.items():
            if said.outside:
                down[port] = said.outside
            elif said.shut:
                down[port] = "is shut"
            elif port in dead:
                down[port] = "has no port that is up"
            elif port not in self.channels:
                ports[port] = self._as_port(said, made)
                if not _carries(ports[port]):
                    down[port] = _in_no_vlan(said)
                if self.kind == "ios" and said.negotiates and said.mode != "access":
                    mode: Any = said.mode or "auto"
                    dtp[port] = Dtp(mode, said.as_trunk(made), self.domain, self._defaults(said, "trunk"))
        stp = self.stp and bool(made - self.without_stp)
        reading = Reading(
            down=down,
            unclear=tuple(self.unclear),
            origins={port: tuple(said.lines) for port, said in self.ports.items()},
            defaults={
                port: (*self._defaults(self.ports[port], self.ports[port].mode), *self._tree_defaults(stp=stp))
                for port in ports
            },
            silent=frozenset(port for port in ports if not self.ports[port].said),
            inside=frozenset(port for port in ports if port.startswith("AppGigabitEthernet")),
            passed=self.passed,
            dtp=dtp,
            unmentioned=self._make_unmentioned(made),
            spanning_tree=self._settle_tree() if stp else None,
        )
        bridge = Bridge(
            name, True, stp, {port: said for port, said in ports.items() if _carries(said)}, self.fdb, channels,
            self.without_stp if stp else frozenset(), reading,
        )  # fmt: skip
        return bridge, self.problems

    def _settle_tree(self) -> StpSettings:
        """What is said of the spanning tree protocol; speeds as the ports say them."""
        tree = self.tree
        for name in self.access_edges:
            if self.ports.get(name, PortLines()).mode == "trunk":
                tree = tree.with_port(name, edge=False)
        for name, port in self.ports.items():
            if port.mbits is not None:
                tree = tree.with_port(name, mbits=port.mbits)
        return tree

    def _as_port(self, said: PortLines, made: VlanSet) -> BridgePort:
        if said.mode == "general":
            return said.as_general()
        said.tags_native = said.tags_native or self.tags_native
        return said.as_trunk(made) if said.mode == "trunk" else said.as_access(made)

    def _defaults(self, said: PortLines, mode: str | None) -> tuple[str, ...]:
        """Keys of DEFAULTS that a port relies on in a mode."""
        found = [f"{self.kind}-mode"] if said.mode is None else []
        if mode == "trunk":
            trunks = self.kind != "powerconnect"
            found += [f"{self.kind}-native-vlan"] if trunks and said.native is None else []
            found += [f"{self.kind}-allowed-vlans"] if trunks and said.allowed_vlans is None else []
        elif mode != "general" and said.access is None:
            found.append(f"{self.kind}-access-vlan")
        unlisted = not self.lists_vlans and ((said.access or 1) > 1 or mode == "trunk")
        return (*found, f"{self.kind}-vlans") if unlisted else tuple(found)

    def _tree_defaults(self, *, stp: bool) -> tuple[str, ...]:
        return (f"{self.kind}-spanning-tree",) if stp and not self.says_mode and self.kind in BY_KIND else ()

    def _make_unmentioned(self, made: VlanSet) -> Unmentioned:
        plain = PortLines(tags_native=self.tags_native)
        dtp = Dtp("auto", plain.as_trunk(made), self.domain) if self.kind == "ios" else None
        return Unmentioned(plain.as_access(made), f"{self.kind}-port", dtp)


def _carries(port: BridgePort) -> bool:
    """Whether frames of any VLAN can leave or enter by a port: one that filters nothing takes them in all the same."""
    return bool(port.members) or not port.filters


def _in_no_vlan(said: PortLines) -> str:
    if said.mode in (None, "access", "auto", "desirable"):
        return f"is in VLAN {said.access or 1}, which this switch does not have or which is shut"
    return "is in no VLAN that this switch has"


def is_pager(line: str) -> bool:
    """Whether a line is what a terminal shows between two pages."""
    return bool(_PAGER.search(line))


def make_empty_bridge(name: str, problem: Problem) -> tuple[Bridge, list[Problem]]:
    """A switch of which nothing could be read."""
    return Bridge(name, True, False, {}, {}), [problem]


def text_of(name: str, files: dict[str, str]) -> str | None:
    """The file of a switch: its name and any of the usual endings."""
    for ending in (".txt", ".cfg", ".conf", "", ".log", "/running-config", "/startup-config", "/running-config.txt"):
        if f"{name}{ending}" in files:
            return f"{name}{ending}"
    return None
