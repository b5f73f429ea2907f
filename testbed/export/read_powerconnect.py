"""Read what `show running-config` of a Dell PowerConnect 53xx or 62xx prints, or a file of commands for one.

Only what decides where frames go is read. Lines of other things (management, users, clocks) pass; a line about VLANs
of a port that is not known here is a problem, since nobody can say what follows from it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from testbed.errors import Problem
from testbed.export.bridge import Bridge
from testbed.export.read_lines import LineError, PortLines, SwitchLines, is_pager, mac_of, nothing, text_of, vlans_of
from testbed.limits import SWITCH_PORTS, allowed, too_much

_IN_BRACKETS = re.compile(r"(.*?)\(([\d,\s-]+)\)(.*)")
_NAME = re.compile(r"(?:\d+/)?(?:x?g)\d+", re.IGNORECASE)
_OPENS = re.compile(r"(interface |vlan database$|line |stack$|radius-server host |ip vlan$|router )")


def _numbers(first: str, last: str, text: str) -> range:
    """Those of a range of ports.

    Raises:
        LineError: no switch has so many.
    """
    most = allowed(SWITCH_PORTS)
    if max(len(first), len(last)) > len(str(most)) or int(last) - int(first) >= most:
        raise LineError(too_much(f'"{text}" are more ports than can be read', most, "ports of a switch"))
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
        return nothing(name, Problem(f"{name}.txt", f"is not there, so {name} cannot be checked"))
    reader = _Reader(SwitchLines(file))
    for number, line in enumerate(files[file].splitlines(), 1):
        reader.line(number, line.strip())
    return reader.finish(name, len(files[file].splitlines()))


class _Reader:
    """Lines one after the other."""

    def __init__(self, switch: SwitchLines) -> None:
        self.switch = switch
        self._context: list[str] = []  # the line that opened what is being said
        self._ports: list[PortLines] = []
        self._names: list[str] = []
        self._vlan: int | None = None
        self._interfaces = 0

    def line(self, number: int, text: str) -> None:
        """Carry a line out, or note why it cannot be."""
        if not text or text.startswith(("!", "#")):
            return
        if is_pager(text):
            self.switch.wrong(number, "the terminal stopped between two pages here; save it with terminal length 0")
            return
        try:
            self._carry_out(" ".join(text.split()))
        except LineError as error:
            self.switch.wrong(number, str(error))

    def finish(self, name: str, lines: int) -> tuple[Bridge, list[Problem]]:
        """The bridge, and what is wrong; a file that ends in the middle is cut off."""
        if not self._interfaces:
            sentence = "has no interface of a PowerConnect, such as interface ethernet 1/g1; is it another switch's?"
            self.switch.problems.append(Problem(self.switch.file, sentence))
        elif self._context:
            self.switch.wrong(lines, f'ends inside "{self._context[-1]}" without exit, so the file is cut off')
        for port in self.switch.ports.values():
            missing = (port.tagged | port.untagged) - self.switch.vlans if port.mode == "general" else frozenset()
            if self.switch.lists_vlans and missing and port.said:
                vlans = ", ".join(map(str, sorted(missing)))
                label = next(key for key, value in self.switch.ports.items() if value is port)
                sentence = f"{label} is in VLAN {vlans}, which the VLAN database does not have"
                self.switch.problems.append(Problem(self.switch.file, sentence))
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
            if words[0] == "vlan" and len(words) == 2:
                self.switch.vlans |= vlans_of(words[1])
                self.switch.lists_vlans = True
        elif self._ports:
            for port, name in zip(self._ports, self._names, strict=True):
                self._of_port(port, name, words)
        elif self._vlan is not None:
            if words[:2] == ["bridge", "address"]:
                self._entry(words[2:])
        elif words in (["no", "spanning-tree"], ["spanning-tree", "disable"]):
            self.switch.stp = False
        elif words[0] == "switchport":
            raise LineError(f'"{text}" is outside of any interface')

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
            self._vlan = min(vlans_of(rest[1]))
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
        elif said[0] == "channel-group":
            if negated:
                self.switch.channels.pop(name, None)
            else:
                self.switch.channels[name] = channel_of(said[1] if len(said) > 1 else "")
        elif said[0] == "switchport":
            port.said = True
            self._switchport(port, said[1:], negated=negated)
        elif said[0] == "spanning-tree" and said[1:2] == ["disable"]:
            pass

    def _switchport(self, port: PortLines, words: list[str], *, negated: bool) -> None:
        match words:
            case ["mode", ("access" | "trunk" | "general") as mode]:
                port.mode = mode
            case ["access", "vlan", vlan]:
                port.access = min(vlans_of(vlan))
            case ["trunk", "allowed", "vlan", ("add" | "remove") as verb, vlans]:
                before = port.allowed or frozenset()
                port.allowed = before | vlans_of(vlans) if verb == "add" else before - vlans_of(vlans)
            case ["trunk", "native", "vlan", vlan]:
                port.native = min(vlans_of(vlan))
            case ["general", *rest]:
                self._general_mode(port, rest, negated=negated)
            case _:
                raise LineError(f'"switchport {" ".join(words)}" is not a known setting of a port')

    def _general_mode(self, port: PortLines, words: list[str], *, negated: bool) -> None:
        match words:
            case ["allowed", "vlan", "add", vlans, *how]:
                self._general(port, vlans_of(vlans), how)
            case ["allowed", "vlan", "remove", vlans]:
                port.tagged, port.untagged = port.tagged - vlans_of(vlans), port.untagged - vlans_of(vlans)
            case ["pvid", vlan]:
                port.pvid = 1 if negated else min(vlans_of(vlan))
            case ["acceptable-frame-type", "tagged-only"]:
                port.tagged_only = not negated
            case ["acceptable-frame-type", "all"]:
                port.tagged_only = False
            case ["ingress-filtering", "disable"]:
                port.filters = negated
            case _:
                raise LineError(f'"switchport general {" ".join(words)}" is not a known setting of a port')

    def _general(self, port: PortLines, vlans: frozenset[int], how: list[str]) -> None:
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
