"""The output of ibnetdiscover, which lists the switches and channel adapters of an InfiniBand fabric; ibsim's input."""

from __future__ import annotations

import re

from testbed.base.errors import Problem
from testbed.base.units import count_noun
from testbed.fabric.topologies.any_graph import quote_name
from testbed.scenario.fabric_files.listing import PASSED, READ, REFUSED, Link, Listing, Node

# The form is that of ibnetdiscover(8), "Topology file format", and of ibsim's net-examples.
_NODE = re.compile(r'(Switch|Ca|Hca|Rt)\s+([0-9]{1,5})\s+"([^"]*)"(?:\s*#\s*"([^"]*)")?')
_PORT = re.compile(r'\[([0-9]{1,5})\](?:\[ext [0-9]+\])?(?:\([0-9a-fA-F]+\))?\s+"([^"]*)"\s*\[([0-9]{1,5})\](.*)')
_OTHER = re.compile(r"\s*$|\s*#|[a-z]+=|(?:Non-)?Chassis\b|module\b", re.IGNORECASE)
# What the tool and its libraries say beside it, where both outputs went into one file.
_SAID = re.compile(r"(?:\S+/)?(?:ib(?:warn|error|panic|debug|netdiscover)\b|src/|umad_|mad_rpc|mlx[0-9])")
_SPEED = re.compile(r"\b(1|2|4|8|12)x([A-Z]+[0-9]*)\b")
_WIDTH = re.compile(r"\bw=(1|2|4|8|12)\b")
_AGGREGATION = "Aggregation Node"
# Data rate of a lane in bit/s, without what line coding takes (InfiniBand Architecture Specification).
LANE_RATES = {
    "SDR": 2e9, "DDR": 4e9, "QDR": 8e9, "FDR10": 10e9, "FDR": 14.0625e9 * 64 / 66, "EDR": 25e9, "HDR": 50e9,
    "NDR": 100e9, "XDR": 200e9,
}  # fmt: skip
CONSTRUCTS = {
    "Switch": READ,
    "Ca, Hca": READ,
    "Rt": REFUSED,
    '[port] "node"[port]': READ,
    "width and speed of a link, such as 4xEDR": READ,
    "w= (ibsim)": PASSED,
    "a Ca whose text says Aggregation Node": PASSED,
    "vendid=, devid=, switchguid=, …": PASSED,
    "Chassis, Non-Chassis Nodes": PASSED,
    "lines of ibwarn:, iberror:, …": PASSED,
}

End = tuple[str, int]


def read_ibnetdiscover(text: str) -> Listing:
    """Read `Switch`, `Ca` and port lines; channel adapters are hosts, and names are the quoted node GUIDs.

    A link is listed at both of its ends, and is one link; where an end is missing the other suffices. Where both tell a
    speed and these differ it has the lower one. Adapters that only add up what passes a switch (SHARP) are no hosts.
    """
    found, said = Listing(), list[str]()
    aggregation: set[str] = set()
    rates: dict[End, float | None] = {}
    lines: dict[End, tuple[str, End]] = {}  # each port: its line, where it leads
    node, ports = None, 0
    for number, line in enumerate(text.splitlines(), 1):
        place = f"line {number}"
        if match := _NODE.match(line):
            kind, node, ports = match[1], match[3], int(match[2])
            if kind != "Switch" and _AGGREGATION in (match[4] or ""):
                aggregation.add(node)
            else:
                _add_node(kind, node, place, found)
        elif match := _PORT.match(line):
            end, far = (node or "", int(match[1])), (match[2], int(match[3]))
            if node is None:
                found.problems.append(Problem(place, "is a port before the first Switch or Ca line"))
            elif not 1 <= end[1] <= ports:
                found.problems.append(Problem(place, f"{quote_name(node)} has ports 1 to {ports}, no port {end[1]}"))
            elif end in lines:
                found.problems.append(Problem(place, f"port {end[1]} of {quote_name(node)} is on {lines[end][0]} too"))
            else:
                lines[end], rates[end] = (place, far), _read_rate(match[4], found)
        elif _SAID.match(line):
            said.append(place)
        elif not _OTHER.match(line):
            found.problems.append(Problem(place, "is not a line of ibnetdiscover output"))
    _note_others(said, aggregation, found)
    lines = {end: to for end, to in lines.items() if not aggregation & {end[0], to[1][0]}}
    _join_ends(lines, rates, found)
    return found


def _add_node(kind: str, name: str, place: str, found: Listing) -> None:
    if kind == "Rt":
        sentence = f"{quote_name(name)} is a router; only switches and adapters can be read"
        found.problems.append(Problem(place, sentence))
    found.nodes.append(Node(place, name, kind in ("Ca", "Hca")))


def _note_others(said: list[str], aggregation: set[str], found: Listing) -> None:
    if said:
        lines = f"{count_noun(len(said), 'line')} of messages passed over, the first at {said[0]}"
        found.notes.append(f"{lines}: what they tell of may be missing")
    if aggregation:
        found.notes.append(f"{count_noun(len(aggregation), 'aggregation node')} passed over, which no host is behind")


def _join_ends(lines: dict[End, tuple[str, End]], rates: dict[End, float | None], found: Listing) -> None:
    read: set[End] = set()
    slower = 0
    for end, (place, far) in lines.items():
        back = lines.get(far)
        if back is not None and back[1] != end:
            sentence = f"leads to port {far[1]} of {quote_name(far[0])}, which leads elsewhere on {back[0]}"
            found.problems.append(Problem(place, sentence))
        elif far not in read:
            told = [rate for rate in (rates[end], rates.get(far)) if rate is not None]
            slower += len({*told}) > 1
            found.links.append(Link(place, (end[0], far[0]), min(told, default=None)))
        read.add(end)
    if slower:
        found.notes.append(f"{count_noun(slower, 'link')} with another speed at either end: the lower one")


def _read_rate(text: str, found: Listing) -> float | None:
    """Rate in bit/s of the width and speed that a port's line ends with."""
    told = _SPEED.findall(text)
    if _WIDTH.search(text):
        found.passed["w="] += 1
    if not told:
        return None
    width, speed = told[-1]
    if speed not in LANE_RATES:
        found.unknown[f"speed {speed}"] += 1
        return None
    return int(width) * LANE_RATES[speed]
