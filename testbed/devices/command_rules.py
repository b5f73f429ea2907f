"""Tables of commands: what a line of a configuration says, and what it does to a switch, a port or a VLAN.

A rule's words in capitals stand for values: N a VLAN, VLANS a list of them, PORTS a list of ports, MAC an address, WORD
any word, REST whatever follows. A reader is its rules; they are also what the documentation lists.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from testbed.base.errors import Problem
from testbed.devices.bridge import Bridge
from testbed.devices.read_lines import (
    LineError,
    PortLines,
    SwitchLines,
    UnclearLineError,
    is_pager,
    mac_of,
    make_empty_bridge,
    text_of,
    vlan_of,
    vlans_of,
)
from testbed.devices.stp_keywords import read_port_words, read_region_words, read_switch_words
from testbed.devices.vlan_set import ALL_VLANS, VlanSet

PASSED_OVER: Final = "passed over"
NOT_UNDERSTOOD: Final = "not understood"
_TAIL = "REST"


@dataclass(frozen=True, slots=True)
class Rule:
    """What one command means."""

    of: Literal["switch", "port", "vlan"]  # where it stands
    says: str  # its words
    does: Callable[..., None] | Literal["passed over", "not understood"]  # with what it is about and its values

    @property
    def outcome(self) -> str:
        """What becomes of it, in a word or two."""
        return self.does if isinstance(self.does, str) else "read"


@dataclass(slots=True)
class Section:
    """What a line is about."""

    switch: SwitchLines
    ports: Mapping[str, PortLines]  # by name; none outside of an interface
    vlans: VlanSet  # none outside of a VLAN


@dataclass(frozen=True, slots=True)
class Commands:
    """A dialect of commands."""

    kind: str  # by which DEFAULTS are named
    rules: tuple[Rule, ...]  # the first that fits counts
    ports_of: Callable[[str], list[str]]  # ports of a list; LineError where it is none
    outside: str  # pattern of interfaces that are no ports of the bridge
    stp: bool = True  # whether the spanning tree protocol runs until it is switched off
    comment: str = "!"  # how lines begin that say nothing
    settle: Callable[[SwitchLines, str], None] | None = None  # what the whole text decides of its ports

    def read(self, name: str, files: Mapping[str, str]) -> tuple[Bridge, list[Problem]]:
        """Read the file of one switch; see Dialect.read."""
        file = text_of(name, dict(files))
        if file is None:
            return make_empty_bridge(name, Problem(f"{name}.txt", f"is not there, so {name} cannot be checked"))
        reader = _CommandReader(self, SwitchLines(file, self.kind, stp=self.stp))
        for number, line in enumerate(files[file].splitlines(), 1):
            reader.read_line(number, line)
        return reader.finish(name, files[file])


class _CommandReader:
    """Lines one after the other."""

    def __init__(self, commands: Commands, switch: SwitchLines) -> None:
        self._commands, self._switch = commands, switch
        self._section = Section(switch, {}, VlanSet())
        self._skips, self._seen = False, 0  # whether the section is of no port of the bridge; sections of ports
        self._rules = {
            of: [(rule.says.split(), rule) for rule in commands.rules if rule.of == of]
            for of in ("switch", "port", "vlan")
        }

    def read_line(self, number: int, line: str) -> None:
        """Carry a line out, or note why it cannot be."""
        text = " ".join(line.split())
        if not text or text.startswith(self._commands.comment):
            return
        if is_pager(text):
            self._switch.add_problem(number, "the terminal stopped between two pages here; save it without paging")
            return
        try:
            self._carry_out(number, text, indented=line[:1] in (" ", "\t"))
        except UnclearLineError as error:
            self._switch.not_understood(number, str(error))
        except LineError as error:
            self._switch.add_problem(number, str(error))

    def finish(self, name: str, text: str) -> tuple[Bridge, list[Problem]]:
        """The bridge, and what is wrong."""
        if self._commands.settle is not None:
            self._commands.settle(self._switch, text)
        if not self._switch.ports:
            sentence = f"names no port of a switch of the dialect {self._commands.kind}; is it another switch's?"
            self._switch.problems.append(Problem(self._switch.file, sentence))
        return self._switch.finish(name)

    def _carry_out(self, number: int, text: str, *, indented: bool) -> None:
        words = text.split(" ")
        lower = text.lower().split(" ")
        if not indented:
            self._section, self._skips, self._switch.opened = Section(self._switch, {}, VlanSet()), False, ""
        if not indented and lower[0] == "interface" and len(words) > 1:
            self._open_interface(number, text, " ".join(words[1:]))
        elif not indented and lower[0] == "vlan" and len(words) == 2 and words[1][:1].isdigit():
            self._open_vlans(vlans_of(words[1]))
        elif self._skips:
            pass
        elif self._section.ports:
            self._apply("port", number, text, lower)
        elif self._section.vlans:
            self._apply("vlan", number, text, lower)
        elif self._switch.opened == "region":
            self._read_region(text)
        else:
            self._apply("switch", number, text, lower)

    def _read_region(self, text: str) -> None:
        words = text.lower().split(" ")
        negated = words[0] == "no"
        if not read_region_words(self._switch, words[1:] if negated else words, text, negated=negated):
            raise UnclearLineError(f'"{text[:80]}" of an MST region may decide what is blocked, and is not understood')

    def _open_interface(self, number: int, text: str, named: str) -> None:
        if re.match(self._commands.outside, named, re.IGNORECASE):
            self._skips = True
            self._switch.pass_over("interfaces that are no ports of the bridge")
            return
        ports = {name: self._switch.port(name) for name in self._commands.ports_of(named)}
        for port in ports.values():
            port.lines.append(f"{self._switch.file} line {number}: {text}")
        self._section = Section(self._switch, ports, VlanSet())

    def _open_vlans(self, vlans: VlanSet) -> None:
        self._section = Section(self._switch, {}, vlans)
        self._switch.vlans |= vlans
        self._switch.lists_vlans = True

    def _apply(self, of: str, number: int, text: str, words: Sequence[str]) -> None:
        switch, section = self._switch, self._section
        found = next(((rule, said) for said, rule in self._rules[of] if _fits(said, words)), None)
        if found is None and of == "port":
            sentence = f'{", ".join(section.ports)[:60]}: "{text}" may decide which frames pass, and is not understood'
            switch.not_understood(number, sentence)
        elif found is None and self._is_indented_elsewhere(words):
            sentence = f'"{text[:80]}" is of a port or a VLAN and stands below none; keep the indentation of the file'
            switch.not_understood(number, sentence)
        elif found is None:
            switch.pass_over("lines that are not of ports")
        elif found[0].does == PASSED_OVER:
            switch.pass_over(found[0].says.removesuffix(f" {_TAIL}"))
        elif isinstance(found[0].does, str):
            switch.not_understood(number, f'"{text}" may decide which frames pass, and is not understood')
        else:
            for port in section.ports.values():
                port.lines.append(f"{switch.file} line {number}: {text}")
            values = _values(found[1], words, self._commands.ports_of)
            self._do(found[0].does, of, values)

    def _is_indented_elsewhere(self, words: Sequence[str]) -> bool:
        """Whether a line at the beginning of its line says something of ports or VLANs."""
        return any(
            rule.does != PASSED_OVER and _fits(said, words) for of in ("port", "vlan") for said, rule in self._rules[of]
        )

    def _do(self, does: Callable[..., None], of: str, values: Sequence[Any]) -> None:
        if of == "port":
            for name, port in self._section.ports.items():
                does(self._section, name, port, *values)
        else:
            does(self._section, *values)


def _fits(said: Sequence[str], words: Sequence[str]) -> bool:
    if said[-1] == _TAIL:
        said, words = said[:-1], words[: len(said) - 1]
    return len(said) == len(words) and all(
        one.isupper() or one == other for one, other in zip(said, words, strict=True)
    )


def _values(said: Sequence[str], words: Sequence[str], ports_of: Callable[[str], list[str]]) -> list[Any]:
    """What stands in the places of a rule's capitals.

    Raises:
        LineError: something else stands there.
    """
    read: dict[str, Callable[[str], Any]] = {
        "N": vlan_of, "VLANS": vlans_of, "PORTS": ports_of, "MAC": mac_of, "WORD": str,
    }  # fmt: skip
    found = [read[one](words[place]) for place, one in enumerate(said) if one in read]
    return [*found, list(words[len(said) - 1 :])] if said[-1] == _TAIL else found


# What rules of ports do that several dialects have alike.


def set_mode(mode: str) -> Callable[..., None]:
    """The mode of a port: `access` or `trunk`."""

    def does(section: Section, name: str, port: PortLines) -> None:
        del section, name
        port.mode, port.said, port.outside = mode, True, ""

    return does


def set_field(field: str, value: Any = None) -> Callable[..., None]:
    """A field of PortLines that gets a value: that of the line, where the rule has none."""

    def does(section: Section, name: str, port: PortLines, *values: Any) -> None:
        del section, name
        setattr(port, field, values[0] if value is None and values else value)
        port.said = port.said or field != "shut"

    return does


def set_allowed(section: Section, name: str, port: PortLines, words: Sequence[str]) -> None:
    """VLANs of a trunk: a list, `none`, `all`, or a change by `add`, `remove`, `except`."""
    del section, name
    port.said = True
    before = ALL_VLANS if port.allowed_vlans is None else port.allowed_vlans
    verb, rest = (words[0], "".join(words[1:])) if words else ("", "")
    if verb in ("none", "all") and not rest:
        port.allowed_vlans = VlanSet() if verb == "none" else None
    elif verb in ("add", "remove", "except"):
        vlans = vlans_of(rest)
        changed = {"add": before | vlans, "remove": before - vlans, "except": ALL_VLANS - vlans}
        port.allowed_vlans = changed[verb]
    else:
        port.allowed_vlans = vlans_of("".join(words))


def join_channel(section: Section, name: str, port: PortLines, number: str, rest: Sequence[str] = ()) -> None:
    """A port becomes part of a port channel."""
    del port, rest
    section.switch.channels[name] = f"Port-Channel{number}"


def set_tree(negated: bool) -> Callable[..., None]:
    """What a line of the switch says of the spanning tree protocol."""

    def does(section: Section, words: Sequence[str]) -> None:
        if not read_switch_words(section.switch, words, negated=negated):
            raise UnclearLineError(
                f'"spanning-tree {" ".join(words)[:60]}" may decide what is blocked, and is not understood'
            )

    return does


def set_tree_of_port(negated: bool) -> Callable[..., None]:
    """Likewise a line of a port."""

    def does(section: Section, name: str, port: PortLines, words: Sequence[str]) -> None:
        del port
        if not read_port_words(section.switch, name, words, negated=negated):
            raise UnclearLineError(
                f'{name}: "spanning-tree {" ".join(words)[:60]}" may decide what is blocked, and is not understood'
            )

    return does


SPANNING_TREE = (
    Rule("switch", "spanning-tree REST", set_tree(False)),
    Rule("switch", "no spanning-tree REST", set_tree(True)),
    Rule("port", "spanning-tree REST", set_tree_of_port(False)),
    Rule("port", "no spanning-tree REST", set_tree_of_port(True)),
)


def set_speed(section: Section, name: str, port: PortLines, words: Sequence[str]) -> None:
    """Speed of a port: `1000`, `forced 10gfull`, `10g`; `auto` says none."""
    del section, name
    port.mbits = mbits_of(words)


_SPEED = re.compile(r"(\d{1,6})(m|g)?(bps)?-?(full|half|gbps|mbps)?(-\d)?", re.IGNORECASE)


def mbits_of(words: Sequence[str]) -> int | None:
    """Mbit/s of the words of a speed; None where they tell none."""
    for word in words:
        found = _SPEED.fullmatch(word)
        if found is not None:
            return int(found[1]) * (1000 if (found[2] or found[4] or "")[:1].lower() == "g" else 1) or None
    return None
