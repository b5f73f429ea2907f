"""Read what `show running-config` of a Dell PowerConnect 53xx or 62xx prints, or a file of commands for one.

Only what decides where frames go is read, and what is not said has the switch's default. Lines of other things
(management, users, clocks) pass; one of a port that may decide which frames it carries, and that is not understood, is
told as such.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from testbed.base.errors import Problem
from testbed.base.limits import SWITCH_PORTS, scaled_limit, too_much
from testbed.devices.bridge import Bridge
from testbed.devices.command_rules import mbits_of
from testbed.devices.port_names import format_ranges
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
from testbed.devices.stp_keywords import read_port_words, read_switch_words
from testbed.devices.vlan_set import VlanSet

_IN_BRACKETS = re.compile(r"(.*?)\(([\d,\s-]+)\)(.*)")
_NAME = re.compile(r"(?:\d+/)?(?:x?g)\d+", re.IGNORECASE)
# First words of lines of a port that move no frame.
_PASSED = frozenset({
    "auto", "description", "duplex", "flowcontrol", "garp", "gmrp", "gvrp", "ip", "ipv6", "keepalive", "lacp", "lldp",
    "mdix", "mtu", "negotiation", "no", "port", "power", "priority", "qos", "rmon", "snmp",
    "storm-control", "traffic-shape", "udld", "voice", "wrr-queue", "classofservice", "cos-queue", "iscsi", "isdp",
    "service-policy", "sflow", "name", "asf", "logging", "back-pressure", "class-map", "conform-color", "macro",
    "igmp", "bridge", "dvlan-tunnel", "dot1x", "green-mode", "clear", "sntp", "management",
})  # fmt: skip
# Of these, beginnings of lines that do decide which frames pass.
_FILTERS = (
    "ip access-group", "ipv6 traffic-filter", "mac access-group", "service-acl", "dot1x port-control", "dvlan-tunnel",
    "gvrp enable", "voice vlan", "ip verify", "port monitor", "port security", "bridge",
)  # fmt: skip
_OPENS = re.compile(r"(interface |vlan database$|line |stack$|radius-server host |ip vlan$|router )")


def _numbers(first: str, last: str, text: str) -> range:
    """Those of a range of ports.

    Raises:
        LineError: no switch has so many, or they run backwards.
    """
    most = scaled_limit(SWITCH_PORTS)
    if max(len(first), len(last)) > len(str(most)) or int(last) - int(first) >= most:
        raise LineError(too_much(f'"{text}" are more ports than can be read', most, "ports of a switch"))
    if int(first) > int(last):
        raise LineError(f'"{text}" runs backwards, from {first} to {last}; the lower number stands first')
    return range(int(first), int(last) + 1)


def ports_of(text: str) -> list[str]:
    """Names of ports of `1/g1-1/g4,1/g7`, `g(1-4)` or `1/g1`.

    Raises:
        LineError: a name is no port.
    """
    found: list[str] = []
    for part in re.split(r",(?![^(]*\))", text.replace(" ", "").lower()):
        bracket = _IN_BRACKETS.fullmatch(part)
        if bracket:
            before, numbers, after = bracket.groups()
            for piece in numbers.split(","):
                first, _, last = piece.partition("-")
                if not first.isdigit() or not (last or first).isdigit():
                    raise LineError(f'"{text}" is not a list of ports')
                found += [f"{before}{number}{after}" for number in _numbers(first, last or first, text)]
            continue
        first, _, last = part.partition("-")
        if not last:
            found.append(first)
            continue
        stem, low = re.fullmatch(r"(.*?)(\d*)", first).groups()  # type: ignore[union-attr]
        high = re.fullmatch(r"(.*?)(\d+)", last)
        if not low or high is None or high[1] not in ("", stem):
            raise LineError(f'"{text}" is not a list of ports')
        found += [f"{stem}{number}" for number in _numbers(low, high[2], text)]
    for name in found:
        if not _NAME.fullmatch(name):
            raise LineError(f'"{name}" is not the name of a port, such as 1/g1 or g1')
    return found


def port_called(text: str) -> str:
    """A port or port channel as it is called in configurations: 1/g1 for 1/G1.

    Raises:
        LineError: it is none.
    """
    if re.fullmatch(r"ch\d+", text, re.IGNORECASE):
        return text.lower()
    names = ports_of(text)
    if len(names) != 1:
        raise LineError(f'"{text}" is not the name of a port, such as 1/g1 or g1')
    return names[0]


def channel_of(number: str) -> str:
    """The name of a port channel.

    Raises:
        LineError: it has no number.
    """
    if not number.isdigit():
        raise LineError(f'"{number}" is not the number of a port channel')
    return f"ch{number}"


def read_powerconnect(name: str, files: Mapping[str, str]) -> tuple[Bridge, list[Problem]]:
    """Read the file of one switch; see Dialect.read."""
    file = text_of(name, dict(files))
    if file is None:
        return make_empty_bridge(name, Problem(f"{name}.txt", f"is not there, so {name} cannot be checked"))
    reader = _PowerConnectReader(SwitchLines(file, "powerconnect"))
    for number, line in enumerate(files[file].splitlines(), 1):
        reader.line(number, line.strip())
    return reader.finish(name, len(files[file].splitlines()))


class _PowerConnectReader:
    """Lines one after the other."""

    def __init__(self, switch: SwitchLines) -> None:
        self.switch = switch
        self._context: list[str] = []  # the line that opened what is being said
        self._ports: list[PortLines] = []
        self._names: list[str] = []
        self._vlan: int | None = None
        self._interfaces = 0
        self._number = 0

    def line(self, number: int, text: str) -> None:
        """Carry a line out, or note why it cannot be."""
        self._number = number
        if not text or text.startswith(("!", "#")):
            return
        if is_pager(text):
            self.switch.add_problem(
                number, "the terminal stopped between two pages here; save it with terminal length 0"
            )
            return
        try:
            self._carry_out(" ".join(text.split()))
        except LineError as error:
            self.switch.add_problem(number, str(error))

    def finish(self, name: str, lines: int) -> tuple[Bridge, list[Problem]]:
        """The bridge, and what is wrong; a file that ends in the middle is cut off."""
        if not self._interfaces:
            sentence = "has no interface of a PowerConnect, such as interface ethernet 1/g1; is it another switch's?"
            self.switch.problems.append(Problem(self.switch.file, sentence))
        elif self._context:
            self.switch.add_problem(lines, f'ends inside "{self._context[-1]}" without exit, so the file is cut off')
        for label, port in self.switch.ports.items():
            missing = (port.tagged | port.untagged) - self.switch.vlans if port.mode == "general" else VlanSet()
            if missing:
                sentence = f"{label} is in VLAN {format_ranges(missing)}, which the VLAN database does not have"
                self.switch.problems.append(Problem(self.switch.file, sentence))
            if (
                port.mode == "trunk"
                and port.allowed_vlans is None
                and not port.shut
                and label not in self.switch.channels
            ):
                sentence = f"{label} is a trunk without a line of its VLANs; which it has then depends on the series"
                self.switch.unclear.append(Problem(self.switch.file, sentence))
        return self.switch.finish(name)

    def _carry_out(self, text: str) -> None:
        words = text.lower().split(" ")
        if words in (["exit"], ["end"]):
            if self._context:
                self._context.pop()
            self._ports, self._names, self._vlan = [], [], None
        elif _OPENS.match(text.lower()):
            self._open(text, words)
        elif self._context and self._context[-1] == "vlan database":
            self._of_database(text, words)
        elif self._ports:
            for port, name in zip(self._ports, self._names, strict=True):
                if any(word in ("switchport", "shutdown", "channel-group") for word in words[:2]):
                    port.lines.append(f"{self.switch.file} line {self._number}: {text}")
                self._of_port(port, name, words)
        elif self._vlan is not None:
            if words[:2] == ["bridge", "address"]:
                self._entry(words[2:])
        elif "spanning-tree" in words[:2]:
            self._of_tree(text, words)
        elif words[0] == "switchport":
            raise LineError(f'"{text}" is outside of any interface')

    def _of_tree(self, text: str, words: list[str]) -> None:
        negated = words[0] == "no"
        said = words[2:] if negated else words[1:]
        if said in ([], ["disable"]):
            self.switch.stp = (not said) != negated
        elif not read_switch_words(self.switch, said, negated=negated):
            self.switch.not_understood(self._number, f'"{text}" may decide what is blocked, and is not understood')

    def _of_database(self, text: str, words: list[str]) -> None:
        if words[0] == "vlan" and len(words) == 2:
            self.switch.vlans |= vlans_of(words[1])
            self.switch.lists_vlans = True
        elif words[:2] == ["no", "vlan"] and len(words) == 3:
            self.switch.vlans -= vlans_of(words[2])
        elif words[:2] in (["vlan", "association"], ["vlan", "protocol"]):
            sentence = f'"{text}" puts frames into a VLAN by their addresses or protocol, and is not understood'
            self.switch.not_understood(self._number, sentence)

    def _open(self, text: str, words: list[str]) -> None:
        # an interface that follows another without exit takes its place
        if words[0] == "interface" and self._context and self._context[-1].startswith("interface"):
            self._context.pop()
        self._context.append(text.lower() if words[0] == "vlan" else text)
        self._ports, self._names, self._vlan = [], [], None
        rest = words[1:]
        if rest[:1] == ["range"]:
            rest = rest[1:]
        if words[0] == "interface" and rest[:1] == ["ethernet"]:
            self._interfaces += 1
            self._names = ports_of("".join(rest[1:]))
            self._ports = [self.switch.port(name) for name in self._names]
        elif words[0] == "interface" and rest[:1] == ["vlan"] and len(rest) == 2 and rest[1].isdigit():
            self._vlan = vlan_of(rest[1])
        elif words[0] == "interface" and rest[:1] == ["port-channel"]:
            self._names = [channel_of("".join(rest[1:]))]
            self._ports = [self.switch.port(name) for name in self._names]

    def _of_port(self, port: PortLines, name: str, words: list[str]) -> None:
        negated = words[0] == "no"
        said = words[1:] if negated else words
        if said == ["shutdown"]:
            port.shut = not negated
        elif not said:
            raise LineError('"no" of what? The rest of the line is missing')
        elif said[0] == "flowcontrol":
            (self.switch.pauses.discard if negated or said[1:] == ["off"] else self.switch.pauses.add)(name)
        elif said[0] == "channel-group" and negated:
            self.switch.channels.pop(name, None)
        elif said[0] == "channel-group":
            self.switch.channels[name] = channel_of(said[1] if len(said) > 1 else "")
        elif said[0] == "spanning-tree" and read_port_words(self.switch, name, said[1:], negated=negated):
            pass
        elif said[0] == "speed":
            port.mbits = None if negated else mbits_of(said[1:])
        elif said[0] == "switchport":
            port.said = True
            self._switchport(port, name, said[1:], negated=negated)
        elif " ".join(said).startswith(_FILTERS) or said[0] not in _PASSED:
            if not negated:
                self._not_understood(name, " ".join(said))
        else:
            self.switch.pass_over(said[0])

    def _not_understood(self, name: str, said: str) -> None:
        sentence = f'{name}: "{said}" may decide which frames the port carries, and is not understood'
        self.switch.not_understood(self._number, sentence)

    def _switchport(self, port: PortLines, name: str, words: list[str], *, negated: bool) -> None:
        match words:
            case ["mode", *_] if negated:
                port.mode = None
            case ["mode", ("access" | "trunk" | "general") as mode]:
                port.mode = mode
            case ["mode", ("customer" | "private-vlan"), *_]:
                self._not_understood(name, f"switchport {' '.join(words)}")
            case ["access", "vlan", *_] if negated:
                port.access = None
            case ["access", "vlan", vlan]:
                port.access = vlan_of(vlan)
            case ["trunk", "allowed", "vlan", ("add" | "remove") as verb, vlans]:
                before = port.allowed_vlans or VlanSet()
                port.allowed_vlans = before | vlans_of(vlans) if verb == "add" else before - vlans_of(vlans)
            case ["trunk", "native", "vlan", *_] if negated:
                port.native = None
            case ["trunk", "native", "vlan", vlan]:
                port.native = vlan_of(vlan)
            case ["general", *rest]:
                self._general_mode(port, rest, negated=negated)
            case [("mode" | "access" | "trunk"), *_]:
                raise LineError(f'"switchport {" ".join(words)}" is not a known setting of a port')
            case _:
                self._not_understood(name, f"switchport {' '.join(words)}")

    def _general_mode(self, port: PortLines, words: list[str], *, negated: bool) -> None:
        match words:
            case ["allowed", "vlan", "add", vlans, *how]:
                self._general(port, vlans_of(vlans), how)
            case ["allowed", "vlan", "remove", vlans]:
                port.tagged, port.untagged = port.tagged - vlans_of(vlans), port.untagged - vlans_of(vlans)
            case ["pvid", *_] if negated:
                port.pvid = 1
            case ["pvid", vlan]:
                port.pvid = vlan_of(vlan)
            case ["acceptable-frame-type", "tagged-only"]:
                port.tagged_only = not negated
            case ["acceptable-frame-type", "all"]:
                port.tagged_only = False
            case ["ingress-filtering", "disable"]:
                port.filters = negated
            case _:
                raise LineError(f'"switchport general {" ".join(words)}" is not a known setting of a port')

    def _general(self, port: PortLines, vlans: VlanSet, how: list[str]) -> None:
        """Add VLANs; those that are listed without a word are untagged."""
        if how not in ([], ["tagged"], ["untagged"]):
            raise LineError(f'"{" ".join(how)}" should be tagged or untagged')
        if how == ["tagged"]:
            port.tagged, port.untagged = port.tagged | vlans, port.untagged - vlans
        else:
            port.tagged, port.untagged = port.tagged - vlans, port.untagged | vlans

    def _entry(self, words: list[str]) -> None:
        """`bridge address MAC ethernet PORT permanent`, or in the order that the switch itself prints."""
        kind = next((word for word in words[1:-1] if word in ("ethernet", "port-channel")), None)
        if kind is None:
            raise LineError("an entry should name its port: bridge address MAC ethernet PORT permanent")
        place = words.index(kind)
        rest = [*words[1:place], *words[place + 2 :]]
        if rest != ["permanent"]:
            raise LineError(f"the entry of {words[0]} is not permanent, so the switch forgets it")
        assert self._vlan is not None
        entry = (self._vlan, mac_of(words[0]))
        (port,) = ports_of(words[place + 1]) if kind == "ethernet" else [channel_of(words[place + 1])]
        if entry in self.switch.fdb:
            raise LineError(f"VLAN {self._vlan} has an entry of {entry[1]} already")
        self.switch.fdb[entry] = port
