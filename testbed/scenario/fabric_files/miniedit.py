"""Drawings of MiniEdit, Mininet's editor (`*.mn`)."""

from __future__ import annotations

from typing import Any

from testbed.base.errors import InputError, Problem
from testbed.scenario.fabric_files.listing import PASSED, READ, Link, Listing, Node
from testbed.scenario.fabric_files.node_link import parse_text

_FORM = 'should look like {"hosts": […], "switches": […], "links": [{"src": "h1", "dest": "s1"}]}, as MiniEdit saves it'
_MOST_MBIT = 1e6
CONSTRUCTS = {
    "hosts: opts.hostname": READ,
    "switches: opts.hostname": READ,
    "links: src and dest": READ,
    "link: bw": READ,
    "link: delay": PASSED,
    "link: loss": PASSED,
    "link: jitter": PASSED,
    "link: speedup": PASSED,
    "link: max_queue_size": PASSED,
    "link: use_htb": PASSED,
    "a switch of the type legacyRouter": "read as a switch, with a note",
    "other opts of hosts and switches": PASSED,
    "controllers, application, version": PASSED,
}


def read_miniedit(text: str) -> Listing:
    """Read hosts, switches and links, with the bandwidth of links.

    Raises:
        InputError: the text is not JSON, or of another form.
    """
    raw = parse_text(text)
    if not isinstance(raw, dict) or not isinstance(raw.get("switches"), list) or not isinstance(raw.get("links"), list):
        raise InputError.one("", _FORM)
    found = Listing()
    for key in ("switches", "hosts"):
        entries = raw.get(key)
        for number, entry in enumerate(entries if isinstance(entries, list) else []):
            place = f"{key}.{number}.opts"
            opts = entry.get("opts") if isinstance(entry, dict) else None
            name = opts.get("hostname") if isinstance(opts, dict) else None
            if not isinstance(name, str) or not isinstance(opts, dict):
                found.problems.append(Problem(f"{place}.hostname", "is required: the name of a node"))
                continue
            found.nodes.append(Node(place, name, key == "hosts"))
            if opts.get("switchType") == "legacyRouter":
                found.notes.append(f"{place}: a router; its links are read as those of a switch")
    controllers = raw.get("controllers")
    if isinstance(controllers, list) and controllers:
        found.passed["controllers"] += len(controllers)
    for number, link in enumerate(raw["links"]):
        _read_link(link, f"links.{number}", found)
    return found


def _read_link(link: Any, place: str, found: Listing) -> None:
    source, target = (link.get(key) if isinstance(link, dict) else None for key in ("src", "dest"))
    if not isinstance(source, str) or not isinstance(target, str):
        found.problems.append(Problem(place, 'should be a block such as {"src": "h1", "dest": "s1"}'))
        return
    opts = link.get("opts")
    opts = opts if isinstance(opts, dict) else {}
    found.sort_keys([*opts], "link", CONSTRUCTS, place)
    rate = opts.get("bw")
    try:
        rate = None if rate in (None, "") else float(rate)
    except (TypeError, ValueError):
        rate = -1.0
    if rate is not None and not 0 < rate <= _MOST_MBIT:
        found.problems.append(Problem(f"{place}.opts.bw", "should be Mbit/s above 0 and up to a million"))
        return
    found.links.append(Link(place, (source, target), None if rate is None else rate * 1e6))
