"""What a stored plan's rules do to frames, told by an interpreter that shares nothing with the project's own.

It knows more of OpenFlow than plans use, as Open vSwitch does it: any number of tags, groups of all types, what stays
changed behind a resubmit, ports that are none. What it does not know of either ends in UnknownError: of such a plan
nobody can say that a certificate is true. `is_true()` judges a certificate by it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import Any

Frame = tuple[
    int, tuple[tuple[int, int], ...], int, str, str
]  # in-port, tags (outermost first), reg0, source, destination
Sent = tuple[int, tuple[tuple[int, int], ...]]  # port and tags
_DEEPEST = 64  # tables one below the other, of Open vSwitch
_IN_PORT, _NORMAL, _FLOOD, _ALL, _CONTROLLER, _LOCAL = 65528, 65530, 65531, 65532, 65533, 65534
_NAMED = {"IN_PORT": _IN_PORT, "FLOOD": _FLOOD, "ALL": _ALL, "LOCAL": _LOCAL}
_PIECE = re.compile(r"(?:[^,()]|\([^()]*\))+")
_NOTHING = {"send_flow_rem", "check_overlap", "reset_counts"}  # flags that change no frame's way
_NUMBERS = {"in_port", "dl_vlan", "dl_vlan_pcp", "reg0"}


class UnknownError(Exception):
    """A rule or group has something in it that this interpreter does not know, or that a switch refuses."""


@dataclass
class _Rule:
    table: int = 0
    priority: int = 32768
    match: dict[str, Any] = field(default_factory=dict)
    actions: tuple[str, ...] = ()
    number: int = 0  # its place among the rules of the switch
    expires: bool = False


def _number(text: str) -> int:
    """A number as ovs-ofctl reads it: a leading zero is octal."""
    if not re.fullmatch(r"0x[0-9a-fA-F]+|[0-9]+", text, re.ASCII):
        raise UnknownError(text)
    base = 16 if text.startswith("0x") else 8 if len(text) > 1 and text[0] == "0" else 10
    try:
        return int(text, base)
    except ValueError:
        raise UnknownError(text) from None


@cache
def _mac(text: str) -> int:
    if not re.fullmatch(r"[0-9a-fA-F]{1,2}(:[0-9a-fA-F]{1,2}){5}", text, re.ASCII):
        raise UnknownError(text)
    return int("".join(part.zfill(2) for part in text.split(":")), 16)


@cache
def _read(text: str) -> _Rule:
    head, separator, tail = text.partition("actions=")
    if not separator:
        raise UnknownError(text)
    found = _Rule()
    for part in re.split(r"[,\s]+", head.strip(" ,")):
        key, _, value = part.partition("=")
        if key in found.match or (key == "vlan_tci" and "dl_vlan" in found.match):
            raise UnknownError(f"{key} twice")
        if key in ("table", "priority"):
            setattr(found, key, _number(value))
        elif key in ("idle_timeout", "hard_timeout"):
            found.expires |= _number(value) > 0
        elif key == "cookie" or part in _NOTHING:
            continue
        elif key in _NUMBERS:
            found.match[key] = _number(value)
        elif key in ("dl_dst", "dl_src"):
            address, _, mask = value.partition("/")
            found.match[key] = (_mac(address), _mac(mask) if mask else (1 << 48) - 1)
        elif key == "vlan_tci":
            wanted, _, mask = value.partition("/")
            found.match[key] = (_number(wanted), _number(mask) if mask else 0xFFFF)
        else:
            raise UnknownError(part)
    if found.table > 254 or found.priority > 0xFFFF:
        raise UnknownError("a table or priority out of range")
    found.actions = tuple(part.strip() for part in _PIECE.findall(tail.strip()))
    return found


def _meets(rule: _Rule, frame: Frame) -> bool:
    in_port, tags, reg0, source, destination = frame
    tci = (0x1000 | tags[0][0] | tags[0][1] << 13) if tags else 0
    for key, wanted in rule.match.items():
        if key in ("dl_dst", "dl_src"):
            if _mac(destination if key == "dl_dst" else source) & wanted[1] != wanted[0] & wanted[1]:
                return False
        elif key == "vlan_tci":
            if tci & wanted[1] != wanted[0] & wanted[1]:
                return False
        elif key == "dl_vlan":
            if (0xFFFF if not tags else tags[0][0]) != wanted:
                return False
        elif key == "dl_vlan_pcp":
            if not tags or tags[0][1] != wanted:
                return False
        elif (in_port if key == "in_port" else reg0) != wanted:
            return False
    return True


class _Switch:
    """One switch.

    Attributes:
        met: numbers of rules that some frame has met, and the last such frame.
    """

    def __init__(self, rules: list[str], groups: list[str], ports: set[int]) -> None:
        self.ports = ports
        self.met: dict[int, Frame] = {}
        self._known: dict[Frame, list[list[Sent]]] = {}
        self._tables: dict[int, list[tuple[int, _Rule]]] = {}
        for number, text in enumerate(rules):
            rule = _read(text)
            if not rule.expires:  # later it is not there
                self._tables.setdefault(rule.table, []).append((number, rule))
        self._groups: dict[int, tuple[str, list[str]]] = {}
        for text in groups:
            head, *buckets = re.split(r",bucket=", text)
            called, kind = re.search(r"group_id=([0-9]+)(?:,|$)", head), re.search(r",type=([a-z_]+)(?:,|$)", head)
            if called is None or kind is None or int(called[1]) in self._groups:
                raise UnknownError(text)
            rest = re.sub(r"^group_id=[0-9]+,type=[a-z_]+", "", head)
            if not re.fullmatch(r"(,selection_method=(hash|dp_hash))?(,fields\([a-z_,]+\))?", rest):
                raise UnknownError(text)
            self._groups[int(called[1])] = (kind[1], buckets)

    def forward(self, frame: Frame) -> list[list[Sent]]:
        """What leaves for each way in which groups can choose."""
        found = self._known.get(frame)
        if found is None:
            found, choices = [], list[tuple[int, int]]()
            while True:
                run = _Run(self, frame, choices)
                run.table(0, 0)
                found.append(run.sent)
                choices = run.made
                while choices and choices[-1][0] + 1 == choices[-1][1]:
                    choices.pop()
                if not choices:
                    break
                choices[-1] = (choices[-1][0] + 1, choices[-1][1])
            self._known[frame] = found
        return found

    def rule(self, table: int, frame: Frame) -> _Rule | None:
        """The rule that a frame meets in a table."""
        those = [(number, rule) for number, rule in self._tables.get(table, ()) if _meets(rule, frame)]
        highest = max((rule.priority for _, rule in those), default=-1)
        those = [(number, rule) for number, rule in those if rule.priority == highest]
        if any(rule.match != those[0][1].match for _, rule in those):
            raise UnknownError("rules of one priority overlap")
        if not those:
            return None
        number, rule = those[-1]  # of one match a switch keeps the last
        self.met[number] = frame
        return rule

    def group(self, number: int) -> tuple[str, list[str]]:
        """Type and buckets."""
        if number not in self._groups:
            raise UnknownError(f"no group {number}")
        return self._groups[number]


class _Run:
    """One frame in a switch, for one way in which groups choose."""

    def __init__(self, switch: _Switch, frame: Frame, choices: list[tuple[int, int]]) -> None:
        self.switch, self._choices = switch, choices
        self.in_port, self.tags, self.reg0, self._source, self._destination = frame
        self.made: list[tuple[int, int]] = []  # each choice: which, and of how many
        self.sent: list[Sent] = []

    def table(self, table: int, depth: int) -> None:
        """Look the frame up, and do what is said there."""
        if depth >= _DEEPEST:
            raise UnknownError("tables one below the other without an end")
        rule = self.switch.rule(table, (self.in_port, self.tags, self.reg0, self._source, self._destination))
        if rule is not None:
            self._do(rule.actions, table, depth)

    def _do(self, actions: tuple[str, ...], table: int, depth: int) -> None:
        for place, action in enumerate(actions):
            name, _, value = action.partition(":")
            if name == "goto_table":
                if place + 1 < len(actions) or _number(value) <= table:
                    raise UnknownError(action)
                self.table(_number(value), depth + 1)
            elif action.startswith("resubmit(,"):
                self.table(_number(action[10:-1]), depth + 1)
            elif name == "group":
                self._group(_number(value), depth)
            elif name == "drop":
                if len(actions) > 1:
                    raise UnknownError("drop beside other actions")
            else:
                self._simple(name, value, action)

    def _simple(self, name: str, value: str, action: str) -> None:
        if name == "output" or action in _NAMED:
            self._output(_NAMED.get(action, -1) if action in _NAMED else _number(value))
        elif name == "push_vlan":
            if _number(value) not in (0x8100, 0x88A8):
                raise UnknownError(action)
            self.tags = ((0, 0), *self.tags) if not self.tags else (self.tags[0], *self.tags)
        elif action in ("pop_vlan", "strip_vlan"):
            self.tags = self.tags[1:]
        elif name == "mod_vlan_vid":
            self._set("vlan_vid", _number(value) | 0x1000)
        elif name == "set_field":
            number, _, of = value.partition("->")
            self._set(of, _number(number))
        else:
            raise UnknownError(action)

    def _set(self, of: str, value: int) -> None:
        if of == "in_port":
            self.in_port = value
        elif of == "reg0":
            self.reg0 = value
        elif of in ("vlan_vid", "vlan_pcp") and self.tags:
            if not (0x1000 <= value <= 0x1FFF if of == "vlan_vid" else value <= 7):
                raise UnknownError("a tag out of range")
            vlan, priority = self.tags[0]
            self.tags = ((value & 0xFFF, priority) if of == "vlan_vid" else (vlan, value), *self.tags[1:])
        else:
            raise UnknownError(of)

    def _output(self, port: int) -> None:
        if port == _IN_PORT:
            self.sent.append((self.in_port, self.tags))
        elif port in (_FLOOD, _ALL):
            self.sent += [(one, self.tags) for one in sorted(self.switch.ports) if one != self.in_port]
        elif port in (_NORMAL, _CONTROLLER):
            raise UnknownError("a port that is none")
        elif port != self.in_port and port in self.switch.ports:
            self.sent.append((port, self.tags))

    def _group(self, number: int, depth: int) -> None:
        if depth >= _DEEPEST:
            raise UnknownError("groups one below the other without an end")
        kind, buckets = self.switch.group(number)
        alive = [actions for text in buckets for actions in self._bucket(text)]
        if kind == "select" and alive:
            place = len(self.made)
            chosen = self._choices[place][0] if place < len(self._choices) else 0
            self.made.append((chosen, len(alive)))
            alive = [alive[chosen]]
        elif kind in ("indirect", "fast_failover"):
            alive = alive[:1]
        elif kind not in ("all", "select"):
            raise UnknownError(kind)
        for actions in alive:  # each on a frame of its own
            before = self.in_port, self.tags, self.reg0
            self._do(tuple(_PIECE.findall(actions)), -1, depth + 1)
            self.in_port, self.tags, self.reg0 = before

    def _bucket(self, text: str) -> Iterator[str]:
        """Its actions, if it is ever chosen."""
        head, separator, actions = text.partition("actions=")
        weight = 1
        for part in filter(None, head.split(",")):
            key, _, value = part.partition(":")
            if key == "weight":
                weight = _number(value)
            elif key == "watch_port":
                weight *= _number(value) in self.switch.ports
            elif key != "bucket_id":
                raise UnknownError(part)
        if not separator:
            raise UnknownError(text)
        if weight:
            yield actions


class Network:
    """Cables, hosts and switches of a stored plan."""

    def __init__(self, plan: Any) -> None:
        topology = (plan.get("bundles") or {}).get("wiring") or plan["topology"]
        source, target, port, host_switch, host_port = (
            topology[key]["values"]
            for key in ("channel_source", "channel_target", "out_port", "host_switch", "host_port")
        )
        ends = [(source[channel], port[channel]) for channel in range(len(source))]
        self.leads = {end: ends[channel ^ 1] for channel, end in enumerate(ends)}
        if any(target[channel] != source[channel ^ 1] for channel in range(len(source))):
            raise UnknownError("cables that lead nowhere")
        self.hosts = list(zip(host_switch, host_port, strict=True))
        if len({*self.leads, *self.hosts}) < len(ends) + len(self.hosts):
            raise UnknownError("two cables in a port")
        ports: list[set[int]] = [set() for _ in range(topology["switch_count"])]
        for switch, of in (*self.leads, *self.hosts):
            ports[switch].add(of)
        rows = zip(plan["rules"], plan["groups"], ports, strict=True)
        self.switches = [_Switch(rules, groups, its) for rules, groups, its in rows]
        self.macs = ["02:00:" + (host + 1).to_bytes(4, "big").hex(":") for host in range(len(self.hosts))]

    def goes(self, source: int, end: int, walk: list[int], rank: dict[tuple[int, ...], int]) -> bool:
        """Whether frames go that way, however groups choose, and channels come in the order of their ranks."""
        switch, in_port = self.hosts[source]
        states: set[tuple[Any, ...]] = {(switch, in_port, (), -1)}
        for place in range(len(walk) + 1):
            after: set[tuple[Any, ...]] = set()
            for switch, in_port, tags, before in states:
                frame = (in_port, tags, 0, self.macs[source], self.macs[end])
                for sent in self.switches[switch].forward(frame):
                    if len(sent) != 1:
                        return False
                    ((port, now),) = sent
                    if place == len(walk):
                        if ((switch, port), now) != (self.hosts[end], ()):
                            return False
                        continue
                    there, meant = self.leads.get((switch, port)), self.leads.get((switch, walk[place]))
                    channel = (switch, port, now[0][1] if now else 0)
                    if there is None or meant is None or there[0] != meant[0] or rank.get(channel, -1) <= before:
                        return False
                    after.add((*there, now, rank[channel]))
            states = after
        return True


def is_true(plan: Any, certificate: Any) -> bool:
    """Whether a certificate says the truth about a plan.

    Raises:
        UnknownError: nobody can say.
    """
    network = Network(plan)
    hosts, walks, order = len(network.hosts), certificate["walks"], [tuple(one) for one in certificate["order"]]
    rank = {channel: place for place, channel in enumerate(order)}
    if certificate["digest"] != plan["digest"] or len(rank) < len(order) or hosts < 2:
        return False
    if len(walks) != hosts or any(len(row) != hosts for row in walks):
        return False
    for source in range(hosts):
        for end in range(hosts):
            text = walks[source][end]
            if source == end:
                if text:
                    return False
                continue
            ports = text.split(".") if text else []
            if not all(re.fullmatch(r"[1-9][0-9]{0,4}", port, re.ASCII) for port in ports):
                return False
            if not network.goes(source, end, [int(port) for port in ports], rank):
                return False
    return True
