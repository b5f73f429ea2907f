"""Read what `show configuration` of Juniper's EX and QFX switches prints, in braces or as `display set`.

By the Junos "Ethernet Switching User Guide" for switches with Enhanced Layer 2 Software, and its older words. Braces
become lines of `set` first; a rule is such a line, with WORD for any word and REST for what follows.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Literal

from testbed.base.errors import Problem
from testbed.base.limits import SWITCH_PORTS, scaled_limit, too_much
from testbed.devices.bridge import Bridge
from testbed.devices.junos_ports import junos_port, list_members, list_span
from testbed.devices.junos_text import statements_of
from testbed.devices.junos_tree import read_junos_tree
from testbed.devices.read_lines import (
    LineError,
    SwitchLines,
    UnclearLineError,
    make_empty_bridge,
    text_of,
    vlans_of,
)
from testbed.devices.stp_settings import Protocol
from testbed.devices.vlan_set import VlanSet

_OUTSIDE = re.compile(
    r"(irb|vlan|lo|me|em|fxp|vme|gr|ip|st|lt|pp|reth|fab|fti|vtep|dsc|esi|jsrv|pime|bme|cbp|lsi|mtun)\d*"
)


@dataclass(slots=True)
class _Port:
    """What was said of one port."""

    switched: bool = False
    routed: bool = False
    trunk: bool = False
    older: bool = False  # whether `port-mode` says it, where the native VLAN is no member by name
    native: int | None = None
    members: list[str] = field(default_factory=list)  # names, numbers, ranges or `all`
    shut: bool = False
    lines: list[str] = field(default_factory=list)


@dataclass(slots=True)
class _JunosSettings:
    """A switch under construction."""

    switch: SwitchLines
    ports: dict[str, _Port] = field(default_factory=dict)
    ranges: dict[str, dict[str, None]] = field(default_factory=dict)  # interface-range → ports, in order
    vlans: dict[str, VlanSet] = field(default_factory=lambda: {"default": VlanSet.from_ids({1})})
    line: str = ""  # that is carried out, with its place
    tree_ports: set[str] = field(default_factory=set)  # ports that run the spanning tree protocol, or `all`


def _list_ports(said: _JunosSettings, name: str) -> list[str]:
    """Names of the ports that a name stands for: that of a port, or of an interface range."""
    return list(said.ranges[name]) if name in said.ranges else [junos_port(name)]


def _take_port(said: _JunosSettings, name: str) -> _Port:
    most = scaled_limit(SWITCH_PORTS)
    if len(said.ports) >= most and name not in said.ports:
        raise LineError(too_much("is one port more than can be read", most, "ports of a switch"))
    return said.ports.setdefault(name, _Port())


def _take_ports(said: _JunosSettings, name: str) -> Iterator[_Port]:
    """Ports that a name stands for."""
    for one in _list_ports(said, name):
        port = _take_port(said, one)
        port.lines.append(said.line)
        yield port


def _set(**values: object) -> Callable[..., None]:
    def does(said: _JunosSettings, name: str, *rest: object) -> None:
        del rest
        for port in _take_ports(said, name):
            for key, value in values.items():
                setattr(port, key, value)

    return does


def _add_member(said: _JunosSettings, name: str, member: str) -> None:
    for port in _take_ports(said, name):
        port.switched = True
        port.members.append(member)


def _set_native(said: _JunosSettings, name: str, vlan: str) -> None:
    (number,) = vlans_of(vlan)
    for port in _take_ports(said, name):
        port.native = number


def _join(said: _JunosSettings, name: str, channel: str, *rest: object) -> None:
    del rest
    for one in _list_ports(said, name):
        _take_port(said, one).lines.append(said.line)
        _take_port(said, junos_port(channel))
        said.switch.channels[one] = junos_port(channel)


def _make(said: _JunosSettings, name: str, vlans: str) -> None:
    said.vlans[name] = said.vlans.get(name, VlanSet()) | vlans_of(vlans)
    said.switch.lists_vlans = True


def _put_in(said: _JunosSettings, vlan: str, name: str, *rest: object) -> None:
    del rest
    _add_member(said, name, vlan)


def _start_tree(protocol: Protocol) -> Callable[..., None]:
    def does(said: _JunosSettings, words: Sequence[str]) -> None:
        switch = said.switch
        switch.stp = switch.says_mode = True
        switch.tree = replace(switch.tree, protocol=protocol)
        if not read_junos_tree(switch, said.tree_ports, words, partial(_list_ports, said)):
            raise UnclearLineError(f'"protocols … {" ".join(words)[:60]}" may decide what is blocked')

    return does


def _add_to_range(said: _JunosSettings, name: str, member: str) -> None:
    # A range stays known when its members are not understood: what is said of it is then no error of its own.
    said.ranges.setdefault(name, {}).update(dict.fromkeys(list_members(member)))


def _add_span_to_range(said: _JunosSettings, name: str, first: str, last: str) -> None:
    said.ranges.setdefault(name, {}).update(dict.fromkeys(list_span(first, last)))


Outcome = Callable[..., None] | Literal["passed over", "not understood"]
_UNIT, _RANGE = "interfaces WORD unit 0 family ethernet-switching", "interfaces interface-range WORD"
# The first that fits counts; settings of an interface range stand as those of an interface of its name.
RULES: dict[str, Outcome] = {
    f"{_RANGE} member WORD": _add_to_range,
    f"{_RANGE} member-range WORD to WORD": _add_span_to_range,
    f"{_UNIT}": _set(switched=True),
    f"{_UNIT} interface-mode access": _set(switched=True, trunk=False),
    f"{_UNIT} interface-mode trunk": _set(switched=True, trunk=True),
    f"{_UNIT} port-mode access": _set(switched=True, trunk=False, older=True),
    f"{_UNIT} port-mode trunk": _set(switched=True, trunk=True, older=True),
    f"{_UNIT} vlan members WORD": _add_member,
    f"{_UNIT} native-vlan-id WORD": _set_native,
    f"{_UNIT} storm-control REST": "passed over",
    f"{_UNIT} recovery-timeout REST": "passed over",
    "interfaces WORD native-vlan-id WORD": _set_native,
    "interfaces WORD disable": _set(shut=True),
    "interfaces WORD unit 0 disable": _set(shut=True),
    "interfaces WORD ether-options 802.3ad WORD": _join,
    "interfaces WORD gigether-options 802.3ad WORD": _join,
    "interfaces WORD ether-options REST": "passed over",
    "interfaces WORD gigether-options REST": "passed over",
    "interfaces WORD aggregated-ether-options REST": "passed over",
    "interfaces WORD description REST": "passed over",
    "interfaces WORD mtu REST": "passed over",
    "interfaces WORD speed REST": "passed over",
    "interfaces WORD link-mode REST": "passed over",
    "interfaces WORD hold-time REST": "passed over",
    "interfaces WORD unit 0 description REST": "passed over",
    "interfaces WORD unit 0 family inet REST": _set(routed=True),
    "interfaces WORD unit 0 family inet6 REST": _set(routed=True),
    "interfaces REST": "not understood",
    "vlans WORD vlan-id WORD": _make,
    "vlans WORD vlan-id-list WORD": _make,
    "vlans WORD vlan-range WORD": _make,
    "vlans WORD interface WORD": _put_in,
    "vlans WORD description REST": "passed over",
    "vlans WORD l3-interface REST": "passed over",
    "vlans REST": "not understood",
    "protocols rstp REST": _start_tree("rstp"),
    "protocols mstp REST": _start_tree("mstp"),
    "protocols vstp REST": _start_tree("pvst"),
    "protocols stp REST": _start_tree("rstp"),
    "protocols mvrp REST": "not understood",
    "protocols gvrp REST": "not understood",
    "protocols protection-group REST": "not understood",
    "routing-instances REST": "not understood",
    "bridge-domains REST": "not understood",
    "groups REST": "not understood",
    "apply-groups REST": "not understood",
    "ethernet-switching-options static REST": "not understood",
    "switch-options REST": "not understood",
}
_WORDS = [(said.split(), does) for said, does in RULES.items()]


def read_junos(name: str, files: Mapping[str, str]) -> tuple[Bridge, list[Problem]]:
    """Read the file of one switch; see Dialect.read."""
    file = text_of(name, dict(files))
    if file is None:
        return make_empty_bridge(name, Problem(f"{name}.conf", f"is not there, so {name} cannot be checked"))
    said = _JunosSettings(SwitchLines(file, "junos", stp=False))
    for number, words in sorted(statements_of(files[file], said.switch), key=lambda one: _order_of(one[1])):
        said.line = f"{file} line {number}: {' '.join(words)}"
        try:
            _carry_out(said, number, words)
        except UnclearLineError as error:
            said.switch.not_understood(number, f"{error}, and is not understood")
        except (LineError, ValueError) as error:
            said.switch.add_problem(number, str(error))
    _settle(said)
    _settle_tree(said)
    if not said.ports and not said.ranges:
        said.switch.problems.append(Problem(file, "names no port of a Juniper switch; is it another switch's?"))
    return said.switch.finish(name)


def _order_of(words: Sequence[str]) -> int:
    """Members of ranges are known before ranges are used; what is said of a port itself outdoes what its range says."""
    if words[:2] != ["interfaces", "interface-range"]:
        return 2
    return 0 if words[3:4] in (["member"], ["member-range"]) else 1


def _carry_out(said: _JunosSettings, number: int, words: Sequence[str]) -> None:
    if _order_of(words) == 1 and len(words) > 2:
        if words[2] not in said.ranges:
            raise LineError(f'the interface range "{words[2]}" has no member')
        words = ["interfaces", *words[2:]]
    elif words[:1] == ["interfaces"] and _OUTSIDE.fullmatch("".join(words[1:2])):
        said.switch.pass_over("interfaces that are no ports of the bridge")
        return
    for rule, does in _WORDS:
        rest = rule[-1] == "REST"
        head = rule[:-1] if rest else rule
        if len(words) < len(head) or (len(words) > len(head) and not rest):
            continue
        if not all(one in ("WORD", word) for one, word in zip(head, words, strict=False)):
            continue
        if does == "passed over":
            said.switch.pass_over(" ".join(head))
        elif isinstance(does, str):
            text = " ".join(words)[:80]
            said.switch.not_understood(number, f'"{text}" may decide which frames pass, and is not understood')
        elif words[:1] == ["protocols"]:
            does(said, words[len(head) :])
        else:
            values = [word for one, word in zip(head, words, strict=False) if one == "WORD"]
            does(said, *values)
        return
    said.switch.pass_over(f"statements of {words[0]}" if words else "empty statements")


def _settle(said: _JunosSettings) -> None:
    """Names of VLANs become numbers, ports become settings."""
    switch = said.switch
    for vlans in said.vlans.values():
        switch.vlans |= vlans
    for name, one in said.ports.items():
        port = switch.port(name)
        port.lines, port.shut, port.said, port.mode = one.lines, one.shut, one.switched, "general"
        if name not in switch.channels and not one.switched:
            port.outside = "is a routed port" if one.routed else "is no port of any VLAN (no family ethernet-switching)"
        members = VlanSet()
        for member in one.members:
            members |= _vlans_called(said, member, name)
        if one.native is not None and one.native not in members and one.trunk:
            native = VlanSet.from_ids({one.native}) & switch.vlans
            members |= native
            if not one.older:
                sentence = (
                    f"{name}: native VLAN {one.native} is none of its members, so what it carries is not understood"
                )
                switch.unclear.append(Problem(switch.file, sentence))
        if not one.trunk:
            members = members or VlanSet.from_ids({1})
        untagged = members if not one.trunk else VlanSet.from_ids({one.native} if one.native else ()) & members
        port.untagged, port.tagged = untagged, members - untagged
        port.tagged_only, port.pvid = not untagged, min(untagged, default=1)


def _settle_tree(said: _JunosSettings) -> None:
    """The protocol runs on the interfaces that are listed for it, or on all."""
    switch = said.switch
    if not switch.stp or "all" in said.tree_ports:
        return
    if not said.tree_ports:
        sentence = (
            "the spanning tree protocol is set and has no interface; whether it then runs on all of them depends on "
            'the software, so add "interface all"'
        )
        switch.unclear.append(Problem(switch.file, sentence))
        return
    for name in said.ports:
        if name not in said.tree_ports and name not in switch.channels:
            switch.tree = switch.tree.with_port(name, filters=True)


def _vlans_called(said: _JunosSettings, member: str, port: str) -> VlanSet:
    """VLANs of a name, a number, a range, or `all`."""
    made = said.switch.vlans
    if member == "all":
        return made
    if member in said.vlans:
        return said.vlans[member]
    if member[:1].isdigit():
        return vlans_of(member) & made
    sentence = f"{port}: there is no VLAN {member}; VLANs are {', '.join(sorted(said.vlans))[:100]}"
    said.switch.problems.append(Problem(said.switch.file, sentence))
    return VlanSet()
