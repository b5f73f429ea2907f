"""Read what `show running-config` of a Cisco Catalyst prints, or a file of commands for one.

Only what decides where frames go is read. Lines of other things pass; a `switchport` line that is not known is a
problem, since nobody can say what follows from it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from testbed.errors import Problem
from testbed.export.bridge import Bridge
from testbed.export.read_lines import (
    ALL_VLANS,
    LineError,
    PortLines,
    SwitchLines,
    is_pager,
    mac_of,
    nothing,
    text_of,
    vlans_of,
)

_KINDS = {
    "fa": "FastEthernet", "gi": "GigabitEthernet", "te": "TenGigabitEthernet", "tw": "TwentyFiveGigE",
    "fo": "FortyGigabitEthernet", "hu": "HundredGigE", "eth": "Ethernet",
}  # fmt: skip
_PORT = re.compile(r"([A-Za-z]+)\s*(\d+(?:/\d+)*)")
_CHANNEL = re.compile(r"po(?:rt-channel)?\s*(\d+)", re.IGNORECASE)
_HARMLESS = {"nonegotiate", "voice", "priority"}
_ALL = ALL_VLANS


def port_of(text: str) -> str:
    """A port by its whole name: GigabitEthernet1/0/1 for Gi1/0/1.

    Raises:
        LineError: it is no port of a switch.
    """
    channel = _CHANNEL.fullmatch(text.strip())
    if channel:
        return f"Port-channel{channel[1]}"
    found = _PORT.fullmatch(text.strip())
    for short, whole in _KINDS.items():
        if found and len(found[1]) >= 2 and (whole.lower().startswith(found[1].lower()) or found[1].lower() == short):
            return f"{whole}{found[2]}"
    raise LineError(f'"{text}" is not the name of a port, such as GigabitEthernet1/0/1')


def read_ios(name: str, files: Mapping[str, str]) -> tuple[Bridge, list[Problem]]:
    """Read the file of one switch; see Dialect.read."""
    file = text_of(name, dict(files))
    if file is None:
        return nothing(name, Problem(f"{name}.txt", f"is not there, so {name} cannot be checked"))
    reader = _Reader(SwitchLines(file))
    lines = files[file].splitlines()
    for number, line in enumerate(lines, 1):
        reader.line(number, line)
    return reader.finish(name, len(lines))


class _Reader:
    """Lines one after the other."""

    def __init__(self, switch: SwitchLines) -> None:
        self.switch = switch
        self._port: PortLines | None = None
        self._name = ""  # of that port
        self._indented = False  # whether what was said of the port is indented
        self._interfaces, self._ended = 0, False
        self._without_stp: frozenset[int] = frozenset()

    def line(self, number: int, line: str) -> None:
        """Carry a line out, or note why it cannot be."""
        text = " ".join(line.split())
        if text.startswith("!"):
            self._port = None
        if not text or text.startswith("!"):
            return
        if is_pager(text):
            self.switch.wrong(number, "the terminal stopped between two pages here; save it with terminal length 0")
            return
        try:
            self._carry_out(text, indented=line[:1] in (" ", "\t"))
        except LineError as error:
            self.switch.wrong(number, str(error))

    def finish(self, name: str, lines: int) -> tuple[Bridge, list[Problem]]:
        """The bridge, and what is wrong; a file without its end is cut off."""
        if not self._interfaces:
            sentence = "has no interface of a Catalyst, such as interface GigabitEthernet1/0/1; is it another switch's?"
            self.switch.problems.append(Problem(self.switch.file, sentence))
        elif not self._ended:
            self.switch.wrong(lines, "ends without end, so the file is cut off")
        made = frozenset(self.switch.vlans) if self.switch.lists_vlans else _ALL
        self.switch.stp = bool(made - self._without_stp)
        return self.switch.finish(name)

    def _carry_out(self, text: str, *, indented: bool) -> None:
        words = text.lower().split(" ")
        if self._port is not None and self._indented and not indented:
            self._port = None
        if words == ["exit"]:
            self._port = None
        elif words == ["end"]:
            self._ended, self._port = True, None
        elif words[0] == "interface":
            self._interface(text, words)
        elif self._port is not None:
            self._indented = self._indented or indented
            self._of_port(self._port, words)
        elif words[0] == "vlan" and len(words) == 2 and words[1][0].isdigit():
            self.switch.vlans |= vlans_of(words[1])
            self.switch.lists_vlans = True
        elif words[:3] == ["no", "spanning-tree", "vlan"] and len(words) == 4:
            self._without_stp |= vlans_of(words[3])
        elif words[:1] == ["mac"] and "static" in words[:3]:
            self._entry(words)
        elif words[0] == "switchport":
            raise LineError(f'"{text}" is outside of any interface')

    def _interface(self, text: str, words: list[str]) -> None:
        self._port, self._indented = None, False
        if len(words) < 2:
            raise LineError(f'"{text}" names no interface')
        name = text.split(" ", 1)[1]
        if name.lower().startswith(("vlan", "loopback", "null", "mgmt")):
            return
        if words[1] == "range":
            raise LineError("ranges are for typing; save what show running-config prints")
        self._name = port_of(name)
        self._port = self.switch.port(self._name)
        self._interfaces += 1

    def _of_port(self, port: PortLines, words: list[str]) -> None:
        negated = words[0] == "no"
        said = words[1:] if negated else words
        match said:
            case ["shutdown"]:
                port.shut = not negated
            case ["switchport"] if negated:
                raise LineError("no switchport makes it a routed port, which is not read")
            case ["switchport"]:
                port.said = True
            case ["switchport", *rest]:
                port.said = True
                self._switchport(port, rest)
            case ["channel-group", *_] if negated:
                self.switch.channels.pop(self._name, None)
            case ["channel-group", number, "mode", _] if number.isdigit():
                self.switch.channels[self._name] = f"Port-channel{number}"
            case ["channel-group", *_]:
                raise LineError("a port should join a port channel by channel-group NUMBER mode MODE")
            case _:
                pass

    def _switchport(self, port: PortLines, words: list[str]) -> None:
        match words:
            case ["mode", ("access" | "trunk") as mode]:
                port.mode = mode
            case ["mode", *_]:
                raise LineError(
                    f'"switchport {" ".join(words)}" leaves open whether it is a trunk; set access or trunk'
                )
            case ["access", "vlan", vlan]:
                port.access = min(vlans_of(vlan))
            case ["trunk", "encapsulation", "dot1q"]:
                pass
            case ["trunk", "native", "vlan", vlan]:
                port.native = min(vlans_of(vlan))
            case ["trunk", "allowed", "vlan", *rest]:
                self._allow(port, rest)
            case [("block" | "protected"), *_]:
                raise LineError(f'"switchport {" ".join(words)}" is not read: what it keeps from a port is not known')
            case [first, *_] if first in _HARMLESS:
                pass
            case _:
                raise LineError(f'"switchport {" ".join(words)}" is not a known setting of a port')

    def _allow(self, port: PortLines, words: list[str]) -> None:
        """VLANs of a trunk; without a verb they take the place of what was there."""
        match words:
            case ["none"]:
                port.allowed = frozenset()
            case ["all"]:
                port.allowed = None
            case ["add", vlans]:
                port.allowed = (port.allowed or frozenset()) | vlans_of(vlans)
            case ["remove", vlans]:
                port.allowed = (_ALL if port.allowed is None else port.allowed) - vlans_of(vlans)
            case ["except", vlans]:
                port.allowed = _ALL - vlans_of(vlans)
            case [vlans]:
                port.allowed = vlans_of(vlans)
            case _:
                raise LineError(f'"switchport trunk allowed vlan {" ".join(words)}" is not a list of VLANs')

    def _entry(self, words: list[str]) -> None:
        """`mac address-table static MAC vlan N interface PORT`, or with `mac-address-table`."""
        place = words.index("static")
        match words[place + 1 :]:
            case [mac, "vlan", vlan, "interface", *port] if port:
                entry = (min(vlans_of(vlan)), mac_of(mac))
                if entry in self.switch.fdb:
                    raise LineError(f"VLAN {entry[0]} has an entry of {entry[1]} already")
                self.switch.fdb[entry] = port_of("".join(port))
            case _:
                raise LineError("an entry should be mac address-table static MAC vlan N interface PORT")
