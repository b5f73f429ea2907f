"""Check a certificate of a stored plan with Python's standard library alone.

    python3 certificate_check.py PLAN CERTIFICATE

Of PLAN (testbed plan NAME --output PLAN) only cables, places of hosts, and the rules and groups of switches are read.
CERTIFICATE (testbed verify NAME --certificate CERTIFICATE) is an order of all virtual channels, and for each ordered
pair of hosts the ports by which its frames leave one switch after the other. It is shown that
1. the rules carry one untagged frame from each host to each other along exactly that walk, and give it to that host
   alone, once, without a tag;
2. along every walk the channels come in the order: so no circle of channels waits for itself, and links that pause
   cannot deadlock (Dally and Seitz 1987).
A virtual channel is a port that leads to another switch, and the 802.1Q priority of frames that leave by it. Hosts have
the addresses 02:00:00:00:00:01, … in their order. MATCH, ACTIONS, GROUP and BUCKET below are all that is understood of
rules and groups, as Open vSwitch carries it out; with anything else a plan is refuted, whether a frame meets it or not.
Exit code 0 if all holds, 1 with what does not, 2 for other files.
"""

from __future__ import annotations

import gc
import json
import math
import re
import sys
from functools import cache
from operator import itemgetter
from pathlib import Path
from typing import Any

Tag = Any  # VLAN and priority of a frame, or None
Arrival = tuple[int, int, Tag]  # switch, port and tag
Steps = tuple[tuple[str, int], ...]  # actions one after the other, each with its number
LIMIT, WIDTH, MAX_TABLES = 20, 400, 16  # faults that are shown, letters of each; tables a frame passes in one switch
PORTS = 0xFEFF  # the highest port; numbers beyond mean something else
DEC, HEX, MAC = "(0|[1-9][0-9]{0,9})", "(0x(?:0|[1-9a-f][0-9a-f]{0,7}))", "((?:[0-9a-f]{2}:){5}[0-9a-f]{2})"
# Numbers: how each is written, the least and the greatest. Of a match there are also dl_dst=MAC, dl_dst and dl_src with
# a mask that no host has, and frames without a tag as Open vSwitch writes them, whose VLAN is -1 here.
MATCH = {
    "table": (DEC, 0, 254), "priority": (DEC, 0, 0xFFFF), "in_port": (DEC, 1, PORTS), "dl_vlan": (DEC, 0, 4095),
    "dl_vlan_pcp": (DEC, 0, 7), "reg0": (HEX, 0, 0xFFFFFFFF),
}  # fmt: skip
ACTIONS = {
    "output": (f"output:{DEC}", 1, PORTS), "group": (f"group:{DEC}", 0, 0xFFFFFEFF), "pop_vlan": ("pop_vlan()", 0, 0),
    "goto_table": (f"goto_table:{DEC}", 1, 254), "resubmit": (rf"resubmit\(,{DEC}\)", 0, 254),
    "in_port": (f"set_field:{DEC}->in_port", 1, PORTS), "reg0": (f"set_field:{HEX}->reg0", 0, 0xFFFFFFFF),
    "vlan_vid": (f"set_field:{DEC}->vlan_vid", 0x1000, 0x1FFF), "vlan_pcp": (f"set_field:{DEC}->vlan_pcp", 0, 7),
    "push_vlan": ("push_vlan:(0x8100)", 0x8100, 0x8100),
}  # fmt: skip
GROUP = rf"group_id={DEC},type=select,selection_method=hash,fields\([a-z_]+(?:,[a-z_]+)*\)((?:,bucket=[^=]*=[^=]*)+)"
BUCKET = f"bucket_id:{DEC},watch_port:{DEC},actions=output:{DEC}"
FIELDS = ("in_port", "dl_vlan", "dl_vlan_pcp", "dl_dst", "reg0")
DST = FIELDS.index("dl_dst")
_USUAL = re.compile(f"table={DEC},priority={DEC},dl_vlan={DEC},dl_dst={MAC},actions=(.*)")
_ADDRESS, _MASKED = re.compile(f"dl_dst={MAC}"), re.compile(f"dl_(?:src|dst)={MAC}/{MAC}")


class Wrong(Exception):  # noqa: N818 - it is no failure of this program
    """What does not hold, in a sentence."""


def mac_of(host: int) -> str:
    """Address of a host, whose number counts from 0."""
    return "02:00:" + ":".join(f"{(host + 1) >> shift & 255:02x}" for shift in (24, 16, 8, 0))


@cache
def number(text: str, form: str, least: int, most: int) -> int:
    """The number in a text of a form, -1 where it is of another, or the number out of range."""
    found = re.fullmatch(form, text)
    value = int(found[1] or "0", 0) if found else -1
    return value if least <= value <= most else -1


@cache
def compile_actions(actions: str, table: int, tagged: bool) -> Steps:
    """What a rule of a table does, whose match tells whether frames have a tag."""
    steps: list[tuple[str, int]] = []
    for action in re.split(r"(?<!\(),", actions) if actions != "drop" else ():
        known = [(name, value) for name, form in ACTIONS.items() if (value := number(action, *form)) >= 0]
        if not known:
            raise Wrong(f"{action} is no action that is known here")
        name, value = known[0]
        if (steps and steps[-1][0] == "goto_table") or (name == "goto_table" and value <= table):
            raise Wrong(f"{action}: only a rule's last action leads to another table for good, and to a later one")
        if tagged == (name == "push_vlan") and (tagged or name in ("pop_vlan", "vlan_vid", "vlan_pcp")):
            raise Wrong(f"{action}: by the rule's match {'there is a tag already' if tagged else 'there is no tag'}")
        tagged = name == "push_vlan" or (tagged and name != "pop_vlan")
        steps.append((name, value))
    return tuple(steps)


class Switch:
    """The rules of one switch, found by the fields they match, as a switch would: the highest priority wins."""

    def __init__(self, name: str, rules: list[str], groups: list[str], macs: list[int], ports: set[int]) -> None:
        self.name, self.ports = name, ports
        self.groups: dict[int, list[int]] = {}
        self.known: dict[tuple[str, int, bool], Steps] = {}
        self.first: dict[tuple[int, Tag], Steps] = {}
        # table → fields that are matched → their values → priority and actions
        self.tables: dict[int, dict[tuple[int, ...], dict[Any, tuple[int, Steps]]]] = {}
        for add, texts in ((self._add_group, groups), (lambda text: self._add_rule(text, macs), rules)):
            for text in texts:
                try:
                    add(text)
                except Wrong as wrong:
                    raise Wrong(f"{name}: {text}: {wrong}") from wrong
        # table → by falling priority: the highest, what picks the fields of a frame, and the rules
        self.order: dict[int, list[tuple[int, Any, dict[Any, tuple[int, Steps]]]]] = {}
        for table, shapes in self.tables.items():
            picks = {shape: itemgetter(*shape) if shape else lambda frame: () for shape in shapes}
            kinds = [(max(rank for rank, _ in rows.values()), picks[shape], rows) for shape, rows in shapes.items()]
            self.order[table] = sorted(kinds, key=lambda kind: -kind[0])

    def _add_group(self, text: str) -> None:
        found = re.fullmatch(GROUP, text)
        buckets = [re.fullmatch(BUCKET, part) for part in found[2].split(",bucket=")[1:]] if found else []
        ids, watched, ports = ([int(bucket[of]) if bucket else -1 for bucket in buckets] for of in (1, 2, 3))
        if not found or watched != ports or len({*ids}) < len(ids) or not self.ports.issuperset(ports):
            raise Wrong("is no group that is known here, which sends by one of the ports that its buckets watch")
        if self.groups.setdefault(int(found[1]), ports) is not ports:
            raise Wrong("two groups have one number")

    def _add_rule(self, text: str, macs: list[int]) -> None:
        usual = _USUAL.fullmatch(text)  # nearly all are of this form
        if usual:
            table, priority, vlan, dst, actions = usual.groups()
            written: list[tuple[str, Any]] = [("table", table), ("priority", priority), ("dl_vlan", vlan)]
            values: dict[str, Any] = {key: number(value, *MATCH[key]) for key, value in written} | {"dl_dst": dst}
            if -1 in values.values():
                raise Wrong("a number is out of range")
        else:
            match, _, actions = text.partition(",actions=")
            values = read_match(match, macs)
        program = (actions, values["table"], values.get("dl_vlan", -1) >= 0)
        steps = self.known.get(program)
        if steps is None:
            steps = self.known[program] = compile_actions(*program)
            used = {name: {value for one, value in steps if one == name} for name in ("output", "in_port", "group")}
            if not (self.ports >= used["output"] | used["in_port"] and self.groups.keys() >= used["group"]):
                raise Wrong("there is no such port or group")
        if values.get("in_port") not in {None, *self.ports}:
            raise Wrong("there is no such port")
        if "masked" in values:
            return  # it concerns no frame between hosts
        shape = tuple(place for place, field in enumerate(FIELDS) if field in values)
        where = tuple(values[FIELDS[place]] for place in shape)
        rows = self.tables.setdefault(values["table"], {}).setdefault(shape, {})
        key = where[0] if len(where) == 1 else where
        if key in rows:
            raise Wrong("two rules match the same frames")
        rows[key] = (values["priority"], steps)

    def send(self, in_port: int, tag: Tag, dst: str) -> list[tuple[list[int], Tag]]:
        """Ports by which a frame leaves, alternatives of one group together, each time with its tag."""
        frame = _Frame(self, in_port, tag, dst)
        steps = self.first.get((in_port, tag))
        if steps is None:  # found once, where the first table does not look at the destination
            steps = self.lookup(0, frame.fields())
            if not any(DST in shape for shape in self.tables.get(0, {})):
                self.first[in_port, tag] = steps
        frame.carry_out(steps)
        return frame.sent

    def lookup(self, table: int, frame: tuple[Any, ...]) -> Steps:
        """What the one rule does that a frame meets in a table; nothing where it meets none."""
        best: int = -1
        steps: Steps = ()
        for highest, fields, rows in self.order.get(table, ()):
            if highest < best:
                break
            found = rows.get(fields(frame))
            if found is not None and found[0] == best:
                raise Wrong(f"{self.name}: two rules of priority {best} match a frame")
            if found is not None and found[0] > best:
                best, steps = found
        return steps


class _Frame:
    """One frame in a switch. What an action changes stays so for all that follow, also behind a resubmit."""

    __slots__ = ("dst", "in_port", "reg0", "sent", "switch", "tables", "tag")

    def __init__(self, switch: Switch, in_port: int, tag: Tag, dst: str) -> None:
        self.switch, self.in_port, self.tag, self.dst, self.reg0 = switch, in_port, tag, dst, 0
        self.sent: list[tuple[list[int], Tag]] = []
        self.tables = 1

    def fields(self) -> tuple[Any, ...]:
        """The values of FIELDS."""
        return (self.in_port, *(self.tag or (-1, None)), self.dst, self.reg0)

    def carry_out(self, steps: Steps) -> None:
        """Do what a rule says."""
        for name, value in steps:
            if name == "output":
                self.sent += [([value], self.tag)] * (value != self.in_port)
            elif name == "group":
                ports = self.switch.groups[value]
                if self.in_port in ports:
                    raise Wrong(f"{self.switch.name}: group {value} may choose the port of arrival, which drops")
                self.sent.append((ports, self.tag))
            elif name in ("goto_table", "resubmit"):
                self.tables += 1
                if self.tables > MAX_TABLES:
                    raise Wrong(f"{self.switch.name}: a frame goes round in its tables")
                self.carry_out(self.switch.lookup(value, self.fields()))
            elif name == "in_port":
                self.in_port = value
            elif name == "reg0":
                self.reg0 = value
            elif (self.tag is None) != (name == "push_vlan"):
                raise Wrong(f"{self.switch.name}: {name} of a frame with{'out' if self.tag is None else ''} a tag")
            elif name in ("push_vlan", "pop_vlan"):
                self.tag = (0, 0) if name == "push_vlan" else None
            else:
                self.tag = (value & 0xFFF, self.tag[1]) if name == "vlan_vid" else (self.tag[0], value)


def read_match(match: str, macs: list[int]) -> dict[str, Any]:
    """What a rule matches by name, and `masked` where it is a mask that no host of these addresses has."""
    values: dict[str, Any] = {}
    for part in match.split(","):
        key, _, value = part.partition("=")
        masked = _MASKED.fullmatch(part)
        given: Any = number(value, *MATCH[key]) if key in MATCH else -1
        if part == "vlan_tci=0x0000/0x1fff":
            key, given = "dl_vlan", -1
        elif masked:
            address, mask = (int(side.replace(":", ""), 16) for side in masked.groups())
            if any(mac & mask == address & mask for mac in macs):
                raise Wrong("matches a host's address by a mask")
            key, given = "masked", key
        elif _ADDRESS.fullmatch(part):
            given = value
        elif given < 0:
            raise Wrong(f"{part} is no match that is known here")
        if key in values:
            raise Wrong(f"{key} is matched twice")
        values[key] = given
    if not {"table", "priority"} <= values.keys():
        raise Wrong("its table or priority is not told")
    return values


class CertifiedFabric:
    """Cables, hosts and switches of a stored plan."""

    def __init__(self, plan: Any) -> None:
        topology = plan["topology"] if plan.get("bundles") is None else plan["bundles"]["wiring"]
        count = topology["switch_count"]
        keys = ("channel_source", "channel_target", "host_switch", "out_port", "host_port")
        columns = [topology[key]["values"] for key in keys]
        for key, values in zip(keys, columns, strict=True):
            least, most = (1, PORTS) if "port" in key else (0, count - 1)
            if not all(type(value) is int and least <= value <= most for value in values):
                raise Wrong(f"{key} has what is no switch or port")
        source, target, host_switch, port, host_port = columns
        if not len(source) == len(target) == len(port) or len(source) % 2:
            raise Wrong("the cables are not two channels each")
        self.leads: dict[tuple[int, int], tuple[int, int]] = {}  # switch and port → those at the other end
        for channel in range(len(source)):
            if target[channel] != source[channel ^ 1]:
                raise Wrong(f"channel {channel} does not lead back")
            self.leads[source[channel], port[channel]] = (target[channel], port[channel ^ 1])
        self.hosts = list(zip(host_switch, host_port, strict=True))
        if len({*self.leads, *self.hosts}) != len(source) + len(self.hosts):
            raise Wrong("two cables are in one port")
        names = topology.get("switch_names") or [f"s{number + 1}" for number in range(count)]
        self.names = topology.get("host_names") or [f"h{number + 1}" for number in range(len(self.hosts))]
        macs = [int(mac_of(host).replace(":", ""), 16) for host in range(len(self.hosts))]
        if not len(names) == len(plan["rules"]) == len(plan["groups"]) == count or len(self.names) != len(macs):
            raise Wrong("there are not rules, groups and a name for each switch, and a name for each host")
        ports: list[set[int]] = [set() for _ in range(count)]
        for switch, of in (*self.leads, *self.hosts):
            ports[switch].add(of)
        rows = zip(names, plan["rules"], plan["groups"], ports, strict=True)
        self.switches = [Switch(name, rules, groups, macs, its) for name, rules, groups, its in rows]


class Walks:
    """Walks from every host to one; what is found of one arrival holds for all that come to it."""

    def __init__(self, fabric: CertifiedFabric, end: int, rank: dict[Any, int]) -> None:
        self.fabric, self.end, self.rank, self.dst = fabric, end, rank, mac_of(end)
        # arrival (switch, port, tag) → walk from there on, and the least rank of the channel that it goes on by
        self.known: dict[Arrival, tuple[str, float]] = {}

    def describe_walk(self, at: Arrival) -> str:
        """The walk from an arrival on, ports with dots between."""
        known, path = self.known, []
        while at not in known:
            ports, tag, after = self._step(at)
            if not after:
                known[at] = ("", math.inf)
                break
            path.append((at, ports, tag, after))
            if len(path) > len(self.rank):
                raise Wrong(f"goes round at {self.fabric.switches[at[0]].name}")
            at = after[0]
        for at, ports, tag, after in reversed(path):
            text, least = known[after[0]]
            layer = tag[1] if tag else 0
            for other in after[1:]:
                if other[0] != after[0][0] or self.describe_walk(other) != text:
                    raise Wrong(f"links of one group of {self.fabric.switches[at[0]].name} lead to different walks")
                least = min(least, known[other][1])
            ranks = [self.rank.get((at[0], port, layer), math.inf) for port in ports]
            if max(ranks) >= least:
                where = f"{self.fabric.switches[at[0]].name} port {ports[0]}, priority {layer}"
                raise Wrong(f"leaves {where} against the order of channels, or the order lacks it")
            known[at] = (f"{min(ports)}.{text}" if text else str(min(ports)), min(ranks))
        return known[at][0]

    def _step(self, at: Arrival) -> tuple[list[int], Tag, list[Arrival]]:
        """Ports of one way by which a frame leaves a switch, its tag, and where it arrives; nowhere if at the host."""
        switch, port, tag = at
        sent = self.fabric.switches[switch].send(port, tag, self.dst)
        if len(sent) != 1 or not sent[0][0]:
            what = "is dropped" if not any(ports for ports, _ in sent) else f"leaves {len(sent)} times"
            raise Wrong(f"{what} at {self.fabric.switches[switch].name}")
        ports, tag = sent[0]
        if (switch, ports[0]) == self.fabric.hosts[self.end]:
            if tag is not None or len(ports) > 1:
                raise Wrong("arrives with a tag")
            return ports, tag, []
        after = [self.fabric.leads.get((switch, port)) for port in ports]
        if None in after:
            raise Wrong(f"leaves {self.fabric.switches[switch].name} by port {ports[0]}, which leads elsewhere")
        return ports, tag, [(*place, tag) for place in after]  # type: ignore[misc]


def check(plan: Any, certificate: Any) -> list[str]:
    """Everything that does not hold, one sentence for each destination; nothing if all does."""
    try:
        if certificate["digest"] != plan["digest"]:
            return [f"the certificate is of plan {certificate['digest']}, and the plan is {plan['digest']}"]
        fabric = CertifiedFabric(plan)
        if len(fabric.hosts) < 2:
            return ["there are no two hosts, so there is nothing to show"]
        rank = {tuple(channel): place for place, channel in enumerate(certificate["order"])}
        if len(rank) != len(certificate["order"]):
            return ["the order has a channel twice"]
        walks = certificate["walks"]
        if len(walks) != len(fabric.hosts) or any(len(row) != len(fabric.hosts) for row in walks):
            return ["the certificate has not a walk for each pair of hosts"]
    except Wrong as wrong:
        return [str(wrong)]
    found: list[str] = []
    for end, name in enumerate(fabric.names):
        to = Walks(fabric, end, rank)
        for source, place in enumerate(fabric.hosts):
            try:
                walk = to.describe_walk((*place, None)) if source != end else ""
                if walk != walks[source][end]:
                    raise Wrong(f"leaves by the ports {walk or '(none)'}, certified are {walks[source][end]}")
            except (Wrong, RecursionError) as wrong:
                found.append(f"{fabric.names[source]}→{name}: {wrong}")
                break
    return found


def each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object of JSON, no key of which is there twice: other programs might read the other one."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key is there twice")
    return found


def escape_text(text: str) -> str:
    """A sentence for a terminal, on which nothing of the files takes effect."""
    short = text if len(text) <= WIDTH else f"{text[:WIDTH]} …"
    return "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in short)


def main() -> int:
    """Check the files that are named."""
    try:
        gc.disable()  # millions of texts, and no circles to collect
        texts = (Path(file).read_text(encoding="utf-8") for file in sys.argv[1:])
        plan, certificate = (json.loads(text, object_pairs_hook=each_once) for text in texts)
        found = check(plan, certificate)
    except (OSError, ValueError, KeyError, TypeError, IndexError, AttributeError, RecursionError) as error:
        print(f"{__doc__}\nthese are no plan and certificate: {escape_text(repr(error))}", file=sys.stderr)
        return 2
    right = f"certified: {len(certificate['walks'])} hosts, every pair delivered, channels in order"
    print(
        "\n".join(
            [*map(escape_text, found[:LIMIT]), f"REFUTED: {len(found)} fault{'s' * (len(found) != 1)}"]
            if found
            else [right]
        )
    )
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
