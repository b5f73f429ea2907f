"""Platforms of SimGrid that describe a cluster (`<cluster topology="…">`)."""

from __future__ import annotations

import re
from xml.parsers import expat

from testbed.base.errors import InputError, Problem
from testbed.base.limits import DEPTH, scaled_limit
from testbed.fabric.topologies.any_graph import quote_name
from testbed.scenario.fabric_files.clusters import CLUSTERS, MOST_HOSTS
from testbed.scenario.fabric_files.listing import PASSED, READ, REFUSED, Link, Listing, Node

_FACTORS = {"": 1.0, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40}
_RATE = re.compile(r"([0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?)\s*((?:[kMGT]i?)?)(Bps|bps)")
CONSTRUCTS = {
    "cluster: topology": READ,
    "cluster: topo_parameters": READ,
    "cluster: radical": READ,
    "cluster: bw": READ,
    "cluster: id": PASSED,
    "cluster: prefix": READ,
    "cluster: suffix": READ,
    **{
        f"cluster: {key}": PASSED
        for key in (
            "speed", "lat", "core", "sharing_policy", "bb_bw", "bb_lat", "bb_sharing_policy", "router_id",
            "loopback_bw", "loopback_lat", "limiter_link",
        )
    },
    "zone, config, prop": PASSED,
    "several clusters": REFUSED,
    "host, link, route, cabinet, peer": REFUSED,
    "entities and other declarations": REFUSED,
}  # fmt: skip


def read_simgrid(text: str) -> Listing:
    """Read the one cluster of a platform: a torus, fat tree, dragonfly, or one switch with all hosts.

    Raises:
        InputError: the text is not XML, declares entities, or is no platform.
    """
    found, clusters = Listing(), list[tuple[str, dict[str, str]]]()
    parser = expat.ParserCreate()
    depth = 0

    def refuse(*_: object) -> None:
        place = f"line {parser.CurrentLineNumber}"
        raise InputError.one(place, "declares something of its own, such as an entity; remove what is in [ ]")

    def begin_doctype(name: str, system: str | None, public: str | None, inside: int) -> None:
        if inside:
            refuse(name, system, public)

    def start(tag: str, values: dict[str, str]) -> None:
        nonlocal depth
        depth += 1
        place = f"line {parser.CurrentLineNumber}"
        if depth > scaled_limit(DEPTH):
            raise InputError.one(place, "elements are nested too deeply")
        if depth == 1 and tag != "platform":
            raise InputError.one(place, f"is XML but no platform of SimGrid, as it starts with <{tag[:40]}>")
        if tag == "cluster":
            clusters.append((place, values))
        elif tag in ("host", "link", "route", "cabinet", "peer") and len(found.problems) < 1:
            sentence = f"<{tag}> cannot be read; of platforms only those with one <cluster> can"
            found.problems.append(Problem(place, sentence))

    def end(tag: str) -> None:
        nonlocal depth
        del tag
        depth -= 1

    parser.StartDoctypeDeclHandler, parser.EntityDeclHandler = begin_doctype, refuse
    parser.StartElementHandler, parser.EndElementHandler = start, end
    try:
        parser.Parse(text, True)
    except expat.ExpatError as error:
        place = f"line {error.lineno}, column {error.offset + 1}"
        raise InputError.one(place, f"is not XML: {expat.ErrorString(error.code)}") from error
    if not found.problems and len(clusters) != 1:
        found.problems.append(Problem("", f"has {len(clusters) or 'no'} <cluster>; one is what can be read"))
    if not found.problems:
        _read_cluster(*clusters[0], found)
    return found


def _read_cluster(place: str, values: dict[str, str], found: Listing) -> None:
    found.sort_keys([*values], "cluster", CONSTRUCTS, place)
    kind, rate = values.get("topology", "FLAT").upper(), _read_rate(values.get("bw", ""))
    if rate is None:
        found.problems.append(
            Problem(place, f"bw should be a rate such as 125MBps, not {quote_name(values.get('bw', ''))}")
        )
    names = _host_names(values, place, found)
    parameters = values.get("topo_parameters", "")
    numbers = (
        [[int(one) for one in part.split(",")] for part in parameters.split(";")] if _is_numbers(parameters) else []
    )
    if kind not in CLUSTERS:
        sentence = f"its topology should be one of {', '.join(CLUSTERS)}, not {quote_name(kind)}"
        found.problems.append(Problem(place, sentence))
    elif kind != "FLAT" and not numbers:
        found.problems.append(Problem(place, f"topo_parameters should be numbers such as {CLUSTERS[kind].such_as}"))
    if found.problems:
        return
    made = CLUSTERS[kind].make(numbers, len(names))
    if isinstance(made, str):
        found.problems.append(Problem(place, f"topo_parameters {quote_name(parameters)}: {made}"))
        return
    switches, of_host, pairs = made
    found.nodes.extend(Node(place, f"switch {number}", is_host=False) for number in range(switches))
    found.nodes.extend(Node(place, f"host {name}", is_host=True, label=name) for name in names)
    found.links.extend(
        Link(place, (f"host {name}", f"switch {at}"), rate) for name, at in zip(names, of_host, strict=True)
    )
    found.links.extend(Link(place, (f"switch {one}", f"switch {other}"), rate) for one, other in pairs)


def _host_names(values: dict[str, str], place: str, found: Listing) -> list[str]:
    numbers: list[int] = []
    for part in values.get("radical", "").replace(" ", "").split(","):
        match = re.fullmatch(r"([0-9]{1,9})(?:-([0-9]{1,9}))?", part)
        last = int(match[2] or match[1]) if match else 0
        if not match or last < int(match[1]) or len(numbers) + last - int(match[1]) >= MOST_HOSTS:
            sentence = f"radical should be numbers such as 0-15, of up to {MOST_HOSTS:,} hosts"
            found.problems.append(Problem(place, sentence))
            return []
        numbers += range(int(match[1]), last + 1)
    return [f"{values.get('prefix', '')}{number}{values.get('suffix', '')}" for number in numbers]


def _is_numbers(text: str) -> bool:
    return bool(re.fullmatch(r"[1-9][0-9]{0,5}([,;][1-9][0-9]{0,5}){0,15}", text))


def _read_rate(text: str) -> float | None:
    """Bit/s of a rate such as 125MBps."""
    match = _RATE.fullmatch(text.strip())
    rate = float(match[1]) * _FACTORS[match[2]] * (8 if match[3] == "Bps" else 1) if match else 0.0
    return rate if 0 < rate < 1e16 else None
