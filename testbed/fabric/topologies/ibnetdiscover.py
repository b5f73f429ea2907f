"""The output of ibnetdiscover, which lists the switches and channel adapters of an InfiniBand fabric."""

from __future__ import annotations

import re

from testbed.base.errors import Problem
from testbed.fabric.topologies.any_graph import Link, Listing, Node, quote_name

# The form is that of ibnetdiscover(8), "Topology file format".
_NODE = re.compile(r'(Switch|Ca|Rt)\s+([0-9]{1,5})\s+"([^"]*)"')
_PORT = re.compile(r'\[([0-9]{1,5})\](?:\[ext [0-9]+\])?(?:\([0-9a-fA-F]+\))?\s+"([^"]*)"\[([0-9]{1,5})\]')
_OTHER = re.compile(r"\s*$|\s*#|[a-z]+=|(?:Non-)?Chassis\b")

End = tuple[str, int]


def read_ibnetdiscover(text: str) -> Listing:
    """Read `Switch`, `Ca` and port lines; channel adapters are hosts, and names are the quoted node GUIDs.

    A link is listed at both of its ends, and is one link; where an end is missing the other suffices.
    """
    found = Listing()
    lines: dict[End, tuple[str, End]] = {}  # each port: its line, where it leads
    node, ports = None, 0
    for number, line in enumerate(text.splitlines(), 1):
        place = f"line {number}"
        if match := _NODE.match(line):
            kind, node, ports = match[1], match[3], int(match[2])
            if kind == "Rt":
                found.problems.append(
                    Problem(place, f"{quote_name(node)} is a router; only switches and adapters can be read")
                )
            found.nodes.append(Node(place, node, kind == "Ca"))
        elif match := _PORT.match(line):
            end, far = (node or "", int(match[1])), (match[2], int(match[3]))
            if node is None:
                found.problems.append(Problem(place, "is a port before the first Switch or Ca line"))
            elif not 1 <= end[1] <= ports:
                found.problems.append(Problem(place, f"{quote_name(node)} has ports 1 to {ports}, no port {end[1]}"))
            elif end in lines:
                found.problems.append(Problem(place, f"port {end[1]} of {quote_name(node)} is on {lines[end][0]} too"))
            else:
                lines[end] = (place, far)
        elif not _OTHER.match(line):
            found.problems.append(Problem(place, "is not a line of ibnetdiscover output"))
    read: set[End] = set()
    for end, (place, far) in lines.items():
        back = lines.get(far)
        if back is not None and back[1] != end:
            sentence = f"leads to port {far[1]} of {quote_name(far[0])}, which leads elsewhere on {back[0]}"
            found.problems.append(Problem(place, sentence))
        elif far not in read:
            found.links.append(Link(place, (end[0], far[0])))
        read.add(end)
    return found
