"""Network files of BookSim's topology `anynet`."""

from __future__ import annotations

import re

from testbed.base.errors import InputError, Problem
from testbed.fabric.topologies.any_graph import quote_name
from testbed.scenario.fabric_files.listing import PASSED, READ, Link, Listing, Node

_NUMBER = re.compile(r"[0-9]{1,9}")
_CONFIG = re.compile(r"^\s*network_file\s*=\s*([^;\s]+)", re.MULTILINE)
CONSTRUCTS = {
    "router N": READ,
    "node N": READ,
    "a latency behind a router or node": PASSED,
    "a remark behind //": PASSED,
}


def read_anynet(text: str) -> Listing:
    """Read lines such as `router 0 node 0 node 1 router 1`; a link that both routers list is one link.

    Raises:
        InputError: the text is a configuration of BookSim and not a network.
    """
    config = _CONFIG.search(text)
    if config:
        sentence = f"is a configuration of BookSim; its network is in the file {quote_name(config[1])}: name that one"
        raise InputError.one("", sentence)
    found = Listing()
    known: dict[str, Node] = {}
    joined: set[tuple[str, str]] = set()
    for number, line in enumerate(text.splitlines(), 1):
        words = line.partition("//")[0].split()
        if not words:
            continue
        place = f"line {number}"
        named = _read_words(words, place, found)
        if not named:
            continue
        for name in named:
            known.setdefault(name, Node(place, name, name.startswith("node")))
        for other in named[1:]:
            pair = (min(named[0], other), max(named[0], other))
            if pair not in joined:
                joined.add(pair)
                found.links.append(Link(place, (named[0], other)))
    found.nodes.extend(sorted(known.values(), key=lambda node: (node.is_host, int(node.name.split()[1]))))
    return found


def _read_words(words: list[str], place: str, found: Listing) -> list[str]:
    """Names of a line's routers and nodes, the first one first; a problem where it is not of them."""
    names: list[str] = []
    at = 0
    while at < len(words):
        if words[at] in ("router", "node") and at + 1 < len(words) and _NUMBER.fullmatch(words[at + 1]):
            names.append(f"{words[at]} {int(words[at + 1])}")
            at += 2
        elif names and at and _NUMBER.fullmatch(words[at]):
            found.passed["latency"] += 1
            at += 1
        else:
            sentence = f'should be a line such as "router 0 node 0 router 1", not {quote_name(" ".join(words))}'
            found.problems.append(Problem(place, sentence))
            return []
    return names
