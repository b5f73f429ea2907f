"""What the readers of fabric files hand on: nodes and links with the places where they stand."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain

from testbed.errors import InputError, Problem
from testbed.topologies.graph import Graph, check_graph, name_problem, nearest, quoted, shortened


@dataclass(frozen=True, slots=True)
class Node:
    """A switch or host: where it stands in the file, its name, what it is."""

    place: str
    name: str
    is_host: bool


@dataclass(frozen=True, slots=True)
class Link:
    """Where a link stands in the file, and the names of its ends."""

    place: str
    ends: tuple[str, str]


@dataclass(frozen=True, slots=True)
class Listing:
    """Nodes and links in the order of the file, and what a reader found wrong on the way."""

    nodes: list[Node] = field(default_factory=list)
    links: list[Link] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)


def graph_of(listing: Listing, hosts_per_switch: int | None) -> Graph:
    """Make a graph of a listing; the names of hosts are given up.

    Args:
        listing: what a reader found.
        hosts_per_switch: for files that name no host; None is 1.

    Raises:
        InputError: the nodes and links are no fabric; each problem with its place in the file.
    """
    problems = shortened(chain(listing.problems, _problems(listing, hosts_per_switch)))
    if problems:
        raise InputError(problems)
    hosts = {node.name for node in listing.nodes if node.is_host}
    of_hosts = Counter(next(e for e in link.ends if e not in hosts) for link in listing.links if hosts & {*link.ends})
    switches = tuple(node.name for node in listing.nodes if not node.is_host)
    made = Graph(
        switches=switches,
        links=tuple(link.ends for link in listing.links if not hosts & {*link.ends}),
        hosts={name: of_hosts[name] for name in switches if name in of_hosts} if hosts else None,
        hosts_per_switch=hosts_per_switch,
    )
    divided = [Problem("", problem.sentence) for problem in check_graph(made)]
    if divided:
        raise InputError(divided)
    return made


def _problems(listing: Listing, hosts_per_switch: int | None) -> Iterator[Problem]:
    if listing.problems and not listing.nodes:
        return
    known: dict[str, Node] = {}
    for node in listing.nodes:
        wrong = name_problem(node.name)
        if wrong:
            yield Problem(node.place, wrong)
        elif node.name in known:
            yield Problem(node.place, f"the name {quoted(node.name)} stands at {known[node.name].place} already")
        known.setdefault(node.name, node)
    if all(node.is_host for node in listing.nodes):
        yield Problem("", "names no switch")
    links_of: Counter[str] = Counter()
    for link in listing.links:
        unknown = [name for name in dict.fromkeys(link.ends) if name not in known]
        for name in unknown:
            yield Problem(link.place, f"there is no node {quoted(name)}.{nearest(name, known)}")
        one, other = link.ends
        if not unknown and one == other:
            yield Problem(link.place, f"joins {quoted(one)} to itself")
        elif not unknown and known[one].is_host and known[other].is_host:
            both = f"{quoted(one)} and {quoted(other)}"
            yield Problem(link.place, f"joins the hosts {both}; a host is linked to a switch")
        links_of.update(link.ends)
    for node in known.values():
        if node.is_host and links_of[node.name] != 1:
            number = links_of[node.name] or "no"
            yield Problem(node.place, f"the host {quoted(node.name)} has {number} links; a host has exactly one")
    if hosts_per_switch is not None and any(node.is_host for node in listing.nodes):
        yield Problem("", "names its hosts, so leave hosts_per_switch out")
