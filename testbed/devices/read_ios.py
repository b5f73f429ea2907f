"""Read what `show running-config` of a Cisco Catalyst prints, or a file of commands for one.

Only what decides where frames go is read, and what is not said has the switch's default. Lines that are known to move
no frame pass; one of an interface that may, and that is not understood, is told as such.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from testbed.base.errors import Problem
from testbed.devices import ios_keywords
from testbed.devices.bridge import Bridge
from testbed.devices.command_rules import mbits_of
from testbed.devices.ios_keywords import is_other, port_of
from testbed.devices.read_lines import (
    LineError,
    PortLines,
    SwitchLines,
    is_pager,
    mac_of,
    make_empty_bridge,
    text_of,
    vlan_of,
    vlans_of,
)
from testbed.devices.stp_keywords import read_port_words, read_region_words, read_switch_words
from testbed.devices.vlan_set import ALL_VLANS, VlanSet

__all__ = ["port_of", "read_ios"]

_TELLING = ("switchport", "shutdown", "channel-group", "ip", "vrf")  # words of lines that --explain shows
# First words of lines of a VLAN, which may stand without indentation.
_OF_VLAN = (["name"], ["state"], ["shutdown"], ["private-vlan"], ["remote-span"], ["mtu"], ["media"], ["said"])
_RANGE = re.compile(r"(.*?)(\d+)\s*-\s*(\d+)")


def read_ios(name: str, files: Mapping[str, str]) -> tuple[Bridge, list[Problem]]:
    """Read the file of one switch; see Dialect.read."""
    file = text_of(name, dict(files))
    if file is None:
        return make_empty_bridge(name, Problem(f"{name}.txt", f"is not there, so {name} cannot be checked"))
    reader = _IosReader(SwitchLines(file, "ios"))
    lines = files[file].splitlines()
    for number, line in enumerate(lines, 1):
        reader.line(number, line)
    return reader.finish(name, len(lines))


class _IosReader:
    """Lines one after the other."""

    def __init__(self, switch: SwitchLines) -> None:
        self.switch = switch
        self._ports: dict[str, PortLines] = {}  # what lines are of, by name
        self._vlans = VlanSet()  # likewise
        self._indented = False  # whether what was said of the port is indented
        self._interfaces, self._ended = 0, False
        self._number = 0

    def line(self, number: int, line: str) -> None:
        """Carry a line out, or note why it cannot be."""
        text = " ".join(line.split())
        self._number = number
        if text.startswith("!"):
            self._leave()
        if not text or text.startswith("!"):
            return
        if is_pager(text):
            self.switch.add_problem(
                number, "the terminal stopped between two pages here; save it with terminal length 0"
            )
            return
        try:
            self._carry_out(text, indented=line[:1] in (" ", "\t"))
        except LineError as error:
            self.switch.add_problem(number, str(error))

    def finish(self, name: str, lines: int) -> tuple[Bridge, list[Problem]]:
        """The bridge, and what is wrong; a file without its end may be cut off."""
        if not self._interfaces:
            sentence = "has no interface of a Catalyst, such as interface GigabitEthernet1/0/1; is it another switch's?"
            self.switch.problems.append(Problem(self.switch.file, sentence))
        elif not self._ended:
            sentence = 'ends without "end", so it may be cut off; save it whole, or add that line if nothing is missing'
            self.switch.not_understood(lines, sentence)
        return self.switch.finish(name)

    def _leave(self) -> None:
        self._ports, self._vlans, self._indented = {}, VlanSet(), False

    def _carry_out(self, text: str, *, indented: bool) -> None:
        words = text.lower().split(" ")
        if (self._ports or self._vlans) and self._indented and not indented:
            self._leave()
        if not indented and not words[0].startswith(("instance", "name", "revision", "no")):
            self.switch.opened = ""
        if words == ["exit"]:
            self._leave()
        elif words == ["end"]:
            self._ended = True
            self._leave()
        elif words[0] == "interface":
            self._interface(text, words)
        elif words[0] == "vlan" and len(words) == 2 and words[1][0].isdigit():
            self._leave()
            self._vlans = vlans_of(words[1])
            self.switch.vlans |= self._vlans
            self.switch.lists_vlans = True
        elif self._ports and (indented or not _is_of_switch(words)):
            self._indented = self._indented or indented
            for name, port in self._ports.items():
                if any(word in _TELLING for word in words[:2]):
                    port.lines.append(f"{self.switch.file} line {self._number}: {text}")
                self._of_port(name, port, words)
        elif self._vlans and (indented or words[words[0] == "no" :][:1] in _OF_VLAN):
            self._indented = self._indented or indented
            self._of_vlan(words)
        else:
            self._of_switch(text, words)

    def _read_tree(self, text: str, words: list[str]) -> bool:
        """Carry out a line of the spanning tree protocol, and say whether it is one."""
        negated = words[0] == "no"
        said = words[1:] if negated else words
        if said[:1] == ["spanning-tree"]:
            self._leave()
            understood = read_switch_words(self.switch, said[1:], negated=negated)
        elif self.switch.opened == "region":
            understood = read_region_words(self.switch, said, text, negated=negated)
        else:
            return False
        if not understood:
            self.switch.not_understood(self._number, f'"{text}" may decide what is blocked, and is not understood')
        return True

    def _of_switch(self, text: str, words: list[str]) -> None:
        switch = self.switch
        if self._read_tree(text, words):
            return
        match words:
            case ["no", "vlan", vlans] if vlans[:1].isdigit():
                switch.vlans -= vlans_of(vlans)
            case ["vlan", "dot1q", "tag", "native"]:
                switch.tags_native = True
            case ["no", "vlan", "dot1q", "tag", "native"]:
                switch.tags_native = False
            case ["shutdown", "vlan", vlans]:
                switch.without |= vlans_of(vlans)
            case ["vtp", "domain", domain]:
                switch.domain = domain
            case ["vlan", "filter", *_] | ["bridge", *_] | ["l2", "vfi", *_]:
                switch.not_understood(self._number, f'"{text}" may decide where frames go, and is not understood')
            case ["monitor", "session", _, "destination", *_]:
                sentence = f'"{text}": what the port still carries beside what it mirrors is not understood'
                switch.not_understood(self._number, sentence)
            case ["mac", *_] | ["mac-address-table", *_] if "static" in words[:3]:
                self._entry(words)
            case ["switchport", *_]:
                raise LineError(f'"{text}" is outside of any interface')
            case _:
                pass

    def _of_vlan(self, words: list[str]) -> None:
        """Lines of a VLAN: one that is suspended or shut carries nothing."""
        match words:
            case ["state", "suspend"] | ["shutdown"]:
                self.switch.without |= self._vlans
            case ["state", "active"] | ["no", "shutdown"] | ["no", "state", *_]:
                self.switch.without -= self._vlans
            case ["private-vlan", *_] | ["remote-span"]:
                vlans = ", ".join(map(str, self._vlans))
                self.switch.not_understood(self._number, f'"{" ".join(words)}" of VLAN {vlans} is not understood')
            case _:
                pass

    def _interface(self, text: str, words: list[str]) -> None:
        self._leave()
        if len(words) < 2:
            raise LineError(f'"{text}" names no interface')
        name = text.split(" ", 1)[1]
        if words[1] == "range":
            names = _names(name.split(" ", 1)[1] if len(words) > 2 else "")
        elif is_other(name):
            self.switch.pass_over("interfaces that are no ports of the bridge")
            return
        else:
            names = [port_of(name)]
        self._ports = {one: self.switch.port(one) for one in names}
        for port in self._ports.values():
            port.lines.append(f"{self.switch.file} line {self._number}: {text}")
        self._interfaces += 1

    def _of_port(self, name: str, port: PortLines, words: list[str]) -> None:
        negated = words[0] == "no"
        said = words[1:] if negated else words
        match said:
            case []:
                raise LineError('"no" of what? The rest of the line is missing')
            case ["shutdown"]:
                port.shut = not negated
            case ["switchport"]:
                port.outside = "is a routed port" if negated else ""
                port.said = True
            case ["switchport", *rest]:
                self._switchport(name, port, rest, negated=negated)
            case ["spanning-tree", *rest]:
                if not read_port_words(self.switch, name, rest, negated=negated):
                    self._not_understood(name, f"{'no ' * negated}{' '.join(said)}")
            case ["speed", *rest]:
                port.mbits = None if negated else mbits_of(rest)
            case ["channel-group", *_] if negated:
                self.switch.channels.pop(name, None)
            case ["channel-group", number, "mode", *_] if number.isdigit():
                self.switch.channels[name] = f"Port-channel{number}"
            case ["channel-group", *_]:
                raise LineError("a port should join a port channel by channel-group NUMBER mode MODE")
            case _:
                self._read_other_line(name, port, " ".join(said), negated=negated)

    def _read_other_line(self, name: str, port: PortLines, said: str, *, negated: bool) -> None:
        """A line that is not about VLANs: it moves no frame, or makes a routed port, or is not understood."""
        if negated and said.startswith((*ios_keywords.ROUTED, *ios_keywords.FILTERS)):
            return
        if said.startswith(ios_keywords.ROUTED):
            port.outside = "is a routed port"
        elif said.startswith(ios_keywords.FILTERS) or said.partition(" ")[0] not in ios_keywords.PASSED:
            self._not_understood(name, f"{'no ' * negated}{said}")
        else:
            self.switch.pass_over(said.partition(" ")[0])

    def _not_understood(self, name: str, said: str) -> None:
        sentence = f'{name}: "{said}" may decide which frames the port carries, and is not understood'
        self.switch.not_understood(self._number, sentence)

    def _switchport(self, name: str, port: PortLines, words: list[str], *, negated: bool) -> None:
        text = f"switchport {' '.join(words)}"
        if words[0] in ios_keywords.SWITCHPORT_PASSED or words[:2] == ["trunk", "pruning"]:
            self.switch.pass_over(f"switchport {words[0]}")
            return
        port.said = True
        known = {"mode": _set_mode, "access": _set_access, "trunk": _set_trunk}.get(words[0], _set_other)
        if known(port, words[1:] if known is not _set_other else words, negated=negated):
            return
        if text.startswith(ios_keywords.SWITCHPORT_UNCLEAR) or known is _set_other:
            if not negated:
                self._not_understood(name, text)
        else:
            raise LineError(f'"{text}" is not a known setting of a port')

    def _entry(self, words: list[str]) -> None:
        """`mac address-table static MAC vlan N interface PORT`, or with `mac-address-table`."""
        place = words.index("static")
        match words[place + 1 :]:
            case [mac, "vlan", vlan, "interface", *port] if port:
                entry = (vlan_of(vlan), mac_of(mac))
                if entry in self.switch.fdb:
                    raise LineError(f"VLAN {entry[0]} has an entry of {entry[1]} already")
                self.switch.fdb[entry] = port_of("".join(port))
            case _:
                raise LineError("an entry should be mac address-table static MAC vlan N interface PORT")


def _set_mode(port: PortLines, words: list[str], *, negated: bool) -> bool:
    """Carry out what follows `switchport mode`, and say whether that could be done; likewise below."""
    match words:
        case _ if negated:
            port.mode = None
        case [("access" | "trunk") as mode] | ["dynamic", ("auto" | "desirable") as mode]:
            port.mode = mode
        case _:
            return False
    return True


def _set_access(port: PortLines, words: list[str], *, negated: bool) -> bool:
    match words:
        case ["vlan", *_] if negated:
            port.access = None
        case ["vlan", ("dynamic" | "name"), *_]:
            return False
        case ["vlan", vlan]:
            port.access = vlan_of(vlan)
        case _:
            return False
    return True


def _set_trunk(port: PortLines, words: list[str], *, negated: bool) -> bool:
    match words:
        case ["encapsulation", *how]:
            return negated or how in (["dot1q"], ["negotiate"])
        case ["native", "vlan", "tag"]:
            port.tags_native = not negated
        case ["native", "vlan", *_] if negated:
            port.native = None
        case ["native", "vlan", vlan]:
            port.native = vlan_of(vlan)
        case ["allowed", "vlan", *_] if negated:
            port.allowed_vlans = None
        case ["allowed", "vlan", *rest]:
            _allow(port, rest)
        case _:
            return False
    return True


def _set_other(port: PortLines, words: list[str], *, negated: bool) -> bool:
    match words:
        case ["nonegotiate"]:
            port.negotiates = negated
        case ["voice", "vlan", *how]:
            port.voice = vlan_of(how[0]) if how and how[0].isdigit() and not negated else None
        case ["block", "unicast"]:
            port.floods = negated
        case ["block", "multicast"]:
            pass  # it keeps some multicasts from the port, not those of IP: followed as if it kept none
        case _:
            return False
    return True


def _is_of_switch(words: list[str]) -> bool:
    """Whether a line that is not indented is known to be of the whole switch, whatever stands before it."""
    said = words[1:] if words[0] == "no" else words
    return (
        said[:1] in (["vtp"], ["monitor"], ["vlan"], ["l2"], ["bridge"], ["mac-address-table"], ["hostname"], ["line"])
        or said[:2]
        in (
            ["mac", "address-table"],
            ["mac", "static"],
            ["shutdown", "vlan"],
            ["spanning-tree", "mode"],
            ["spanning-tree", "extend"],
            ["spanning-tree", "pathcost"],
        )
        or (said[:2] == ["spanning-tree", "mst"] and said[3:4] not in (["cost"], ["port-priority"]))
        or (said[:2] == ["spanning-tree", "vlan"] and said[3:4] not in (["cost"], ["port-priority"]))
    )


def _names(text: str) -> list[str]:
    """Ports of `Gi1/0/1 - 4 , Gi1/0/7`.

    Raises:
        LineError: it is no list of ports.
    """
    found = []
    for part in text.split(","):
        span = _RANGE.fullmatch(part.strip())
        if span is None:
            found.append(port_of(part))
            continue
        low, high = int(span[2]), int(span[3])
        if not low <= high < low + 1000:
            raise LineError(f'"{part.strip()}" is not a range of ports, such as Gi1/0/1 - 4')
        found += [port_of(f"{span[1]}{number}") for number in range(low, high + 1)]
    return found


def _allow(port: PortLines, words: list[str]) -> None:
    """VLANs of a trunk; without a verb they take the place of what was there."""
    match words:
        case ["none"]:
            port.allowed_vlans = VlanSet()
        case ["all"]:
            port.allowed_vlans = None
        case [("add" | "remove" | "except") as verb, *vlans] if vlans:
            port.allowed_vlans = _change_allowed(port.allowed_vlans, verb, vlans_of("".join(vlans)))
        case [_, *_]:
            port.allowed_vlans = vlans_of("".join(words))
        case _:
            raise LineError(f'"switchport trunk allowed vlan {" ".join(words)}" is not a list of VLANs')


def _change_allowed(before: VlanSet | None, verb: Any, vlans: VlanSet) -> VlanSet | None:
    if verb == "except":
        return ALL_VLANS - vlans
    if verb == "add":
        return None if before is None else before | vlans
    return (ALL_VLANS if before is None else before) - vlans
