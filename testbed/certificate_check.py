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
the addresses 02:00:00:00:00:01, … in their order. Exit code 0 if all holds, 1 with what does not, 2 for other files.
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
Frame = tuple[int, int, Tag, int]  # table that is next, port of arrival, tag, register 0
FIELDS = ("in_port", "vlan", "pcp", "dst", "reg0")
DST = FIELDS.index("dst")
LIMIT, MAX_STEPS = 20, 16  # faults that are shown; tables that a frame may pass in one switch
_USUAL = re.compile(r"table=(\d+),priority=(\d+),dl_vlan=(\d+),dl_dst=([0-9a-f:]{17}),actions=(.*)")
_ACTION = re.compile(r"(?:[^,(]|\([^)]*\))+")
_BUCKET = re.compile(r"actions=output:(\d+)")
_MASKED = re.compile(r"dl_(?:src|dst)=[0-9a-f:]+/[0-9a-f:]+")


class Wrong(Exception):  # noqa: N818 - it is no failure of this program
    """What does not hold, in a sentence."""


def mac_of(host: int) -> str:
    """Address of a host, whose number counts from 0."""
    return "02:00:" + ":".join(f"{(host + 1) >> shift & 255:02x}" for shift in (24, 16, 8, 0))


class Switch:
    """The rules of one switch, found by the fields they match, as a switch would: the highest priority wins."""

    def __init__(self, name: str, rules: list[str], groups: list[str], macs: list[int]) -> None:
        self.name = name
        self.groups: dict[int, list[int]] = {}
        self.front: dict[tuple[int, Tag], tuple[list[tuple[list[int], Tag]], list[Frame]]] = {}
        # table → fields that are matched → their values → priority and actions
        self.tables: dict[int, dict[tuple[int, ...], dict[tuple[Any, ...], tuple[int, str]]]] = {}
        for text in groups:
            self.groups[int(text.split(",")[0].partition("=")[2])] = [int(port) for port in _BUCKET.findall(text)]
        for text in rules:
            self._add(text, macs)
        # table → by falling priority: the highest, what picks the fields of a frame, and the rules
        self.order: dict[int, list[tuple[int, Any, dict[Any, tuple[int, str]]]]] = {}
        for table, shapes in self.tables.items():
            picks = {shape: itemgetter(*shape) if shape else lambda frame: () for shape in shapes}
            kinds = [(max(rows.values())[0], picks[shape], rows) for shape, rows in shapes.items()]
            self.order[table] = sorted(kinds, key=lambda kind: -kind[0])

    def _add(self, text: str, macs: list[int]) -> None:
        usual = _USUAL.fullmatch(text)  # nearly all are of this form
        if usual:
            table, priority, vlan, dst, actions = usual.groups()
            rows = self.tables.setdefault(int(table), {}).setdefault((1, 3), {})
            self._put(rows, (int(vlan), dst), int(priority), actions, text)
            return
        match, _, actions = text.partition(",actions=")
        values: dict[str, Any] = {}
        for part in match.split(","):
            key, _, value = part.partition("=")
            if part == "vlan_tci=0x0000/0x1fff":
                values["vlan"] = -1
            elif key in ("table", "priority", "dl_vlan", "dl_vlan_pcp", "in_port", "reg0"):
                values[{"dl_vlan": "vlan", "dl_vlan_pcp": "pcp"}.get(key, key)] = int(value, 0)
            elif key == "dl_dst" and "/" not in value:
                values["dst"] = value
            elif _MASKED.fullmatch(part):
                address, mask = (int(side.replace(":", ""), 16) for side in part[7:].split("/"))
                if any(mac & mask == address & mask for mac in macs):
                    raise Wrong(f"{self.name}: {text}: matches a host's address by a mask")
                return  # it concerns no frame between hosts
            else:
                raise Wrong(f"{self.name}: {text}: {key} is a field that is not known here")
        shape = tuple(place for place, field in enumerate(FIELDS) if field in values)
        rows = self.tables.setdefault(values["table"], {}).setdefault(shape, {})
        where = tuple(values[FIELDS[place]] for place in shape)
        self._put(rows, where[0] if len(where) == 1 else where, values["priority"], actions, text)

    def _put(self, rows: dict[Any, tuple[int, str]], where: Any, priority: int, actions: str, text: str) -> None:
        if where in rows:
            raise Wrong(f"{self.name}: {text}: two rules match the same frames")
        rows[where] = (priority, sys.intern(actions))

    def send(self, in_port: int, tag: Tag, dst: str) -> list[tuple[list[int], Tag]]:
        """Ports by which a frame leaves, alternatives of one group together, each time with its tag."""
        front = self.front.get((in_port, tag))
        if front is None:  # what the first table does is found once, where it does not look at the destination
            front = self._pass_table((0, in_port, tag, 0), dst)
            if not any(DST in shape for shape in self.tables.get(0, {})):
                self.front[in_port, tag] = front
        sent, waiting = list(front[0]), list(front[1])
        for _ in range(MAX_STEPS):
            if not waiting:
                return sent
            more, onward = self._pass_table(waiting.pop(0), dst)
            sent += more
            waiting += onward
        raise Wrong(f"{self.name}: a frame goes round in its tables")

    def _pass_table(self, frame: Frame, dst: str) -> tuple[list[tuple[list[int], Tag]], list[Frame]]:
        """What one table sends, and what it hands to others."""
        table, arrived, tag, reg0 = frame
        sent: list[tuple[list[int], Tag]] = []
        onward: list[Frame] = []
        looked_at = (arrived, tag[0] if tag else -1, tag[1] if tag else None, dst, reg0)
        for name, value in compiled(self._lookup(table, looked_at)):
            if name == "output":
                sent += [([value], tag)] * (value != arrived)
            elif name == "group":
                sent.append(([port for port in self.groups.get(value, []) if port != arrived], tag))
            elif name == "table":
                onward.append((value, arrived, tag, reg0))
            elif name == "in_port":
                arrived = value
            elif name == "reg0":
                reg0 = value
            elif name == "push_vlan":
                tag = (0, 0)
            elif name == "pop_vlan":
                tag = None
            elif tag is None:
                raise Wrong(f"{self.name}: {name}: sets what is not there")
            else:
                tag = (value & 0xFFF, tag[1]) if name == "vlan_vid" else (tag[0], value)
        return sent, onward

    def _lookup(self, table: int, frame: tuple[Any, ...]) -> str:
        best, actions = -1, "drop"
        for highest, fields, rows in self.order.get(table, ()):
            if highest < best:
                break
            found = rows.get(fields(frame))
            if found is not None and found[0] == best:
                raise Wrong(f"{self.name}: two rules of priority {best} match a frame")
            if found is not None and found[0] > best:
                best, actions = found
        return actions


@cache
def compiled(actions: str) -> tuple[tuple[str, int], ...]:
    """Actions one after the other, each with its number."""
    found = []
    for action in _ACTION.findall(actions):
        name, _, value = action.partition(":")
        if name == "set_field":
            value, _, name = value.partition("->")
            if name not in ("in_port", "reg0", "vlan_vid", "vlan_pcp"):
                raise Wrong(f"{action}: sets a field that is not known here")
        elif action.startswith("resubmit(,"):
            name, value = "table", action[len("resubmit(,") : -1]
        elif name == "goto_table":
            name = "table"
        elif name not in ("output", "group", "push_vlan", "pop_vlan", "drop"):
            raise Wrong(f"{action}: is an action that is not known here")
        if name != "drop":
            found.append((name, int(value or "0", 0)))
    return tuple(found)


class Fabric:
    """Cables, hosts and switches of a stored plan."""

    def __init__(self, plan: Any) -> None:
        topology = plan["topology"] if plan.get("bundles") is None else plan["bundles"]["wiring"]
        source, target, port = (topology[key]["values"] for key in ("channel_source", "channel_target", "out_port"))
        if not len(source) == len(target) == len(port) or len(source) % 2:
            raise Wrong("the cables are not two channels each")
        self.leads: dict[tuple[int, int], tuple[int, int]] = {}  # switch and port → those at the other end
        for channel in range(len(source)):
            if target[channel] != source[channel ^ 1]:
                raise Wrong(f"channel {channel} does not lead back")
            self.leads[source[channel], port[channel]] = (target[channel], port[channel ^ 1])
        self.hosts = list(zip(topology["host_switch"]["values"], topology["host_port"]["values"], strict=True))
        if len({*self.leads, *self.hosts}) != len(source) + len(self.hosts):
            raise Wrong("two cables are in one port")
        count = topology["switch_count"]
        names = topology.get("switch_names") or [f"s{number + 1}" for number in range(count)]
        self.names = topology.get("host_names") or [f"h{number + 1}" for number in range(len(self.hosts))]
        macs = [int(mac_of(host).replace(":", ""), 16) for host in range(len(self.hosts))]
        if not len(names) == len(plan["rules"]) == len(plan["groups"]) == count:
            raise Wrong("there are not rules and groups for each switch")
        self.switches = [Switch(*row, macs) for row in zip(names, plan["rules"], plan["groups"], strict=True)]


class Walks:
    """Walks from every host to one; what is found of one arrival holds for all that come to it."""

    def __init__(self, fabric: Fabric, end: int, rank: dict[Any, int]) -> None:
        self.fabric, self.end, self.rank, self.dst = fabric, end, rank, mac_of(end)
        # arrival (switch, port, tag) → walk from there on, and the least rank of the channel that it goes on by
        self.known: dict[Arrival, tuple[str, float]] = {}

    def of(self, at: Arrival) -> str:
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
                if self.of(other) != text:
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
        fabric = Fabric(plan)
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
                walk = to.of((*place, None)) if source != end else ""
                if walk != walks[source][end]:
                    raise Wrong(f"leaves by the ports {walk or '(none)'}, certified are {walks[source][end]}")
            except (Wrong, RecursionError) as wrong:
                found.append(f"{fabric.names[source]}→{name}: {wrong}")
                break
    return found


def main() -> int:
    """Check the files that are named."""
    try:
        gc.disable()  # millions of texts, and no circles to collect
        plan, certificate = (json.loads(Path(file).read_text(encoding="utf-8")) for file in sys.argv[1:])
        found = check(plan, certificate)
    except (OSError, ValueError, KeyError, TypeError, IndexError, AttributeError) as error:
        print(f"{__doc__}\nthese are no plan and certificate: {error!r}", file=sys.stderr)
        return 2
    right = f"certified: {len(certificate['walks'])} hosts, every pair delivered, channels in order"
    print("\n".join([*found[:LIMIT], f"REFUTED: {len(found)} faults"] if found else [right]))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
