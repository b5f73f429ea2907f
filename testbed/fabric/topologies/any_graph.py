"""Any fabric, as lists of its switches and links, and what the readers of fabric files hand on to become one."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import Annotated

import numpy as np
from annotated_types import Ge, MinLen

from testbed.base.errors import InputError, Problem, did_you_mean
from testbed.base.model import Topology
from testbed.fabric.topologies.build_topology import (
    Extent,
    count_pairs,
    find_disconnected_pair,
    make_topology,
    on_circle,
)

_MAX_PROBLEMS = 20
_MAX_NAME_LENGTH = 60
_MAX_COMPARED = 500


@dataclass(frozen=True, slots=True)
class Graph:
    """Switches by name, links by the names of their ends."""

    # names; the first is s1, the second s2, and so on
    switches: Annotated[tuple[str, ...], MinLen(1)] = field(metadata={"wanted": "a list of names such as [a, b]"})
    # pairs of names; a pair that is listed n times is n parallel links
    links: tuple[tuple[str, str], ...] = field(
        default=(), metadata={"wanted": "a list such as [[a, b], [b, c]]", "entry": "two switches such as [a, b]"}
    )
    # number of hosts of each switch that has any; without it every switch has `hosts_per_switch`
    hosts: dict[str, Annotated[int, Ge(0)]] | None = field(
        default=None, metadata={"wanted": "a block of switches and numbers such as {a: 2, b: 2}"}
    )
    hosts_per_switch: Annotated[int, Ge(0)] | None = None  # 1 where neither is given

    @property
    def hosts_on(self) -> list[int]:
        """(S,) number of hosts of each switch."""
        if self.hosts is None:
            return [1 if self.hosts_per_switch is None else self.hosts_per_switch] * len(self.switches)
        return [self.hosts.get(name, 0) for name in self.switches]

    def extent(self) -> Extent:
        """Count switches, links and hosts."""
        return Extent(len(self.switches), len(self.links), sum(self.hosts_on))


def check_graph(spec: Graph) -> list[Problem]:
    """Name what keeps the lists from being one fabric."""
    return shorten_problems(_name_problems(spec)) or _division(spec)


def graph(spec: Graph) -> Topology:
    """Build a graph without problems; its names become the labels of the switches."""
    number = {name: switch for switch, name in enumerate(spec.switches)}
    neighbours, count = count_pairs((number[a], number[b]) for a, b in spec.links)
    return make_topology(
        "graph",
        neighbours,
        spec.hosts_on,
        on_circle(len(spec.switches)),
        parallel_links=count,
        switch_labels=spec.switches,
    )


def shorten_problems(problems: Iterable[Problem]) -> list[Problem]:
    """The first problems, and a word where there are more."""
    found = list(islice(problems, _MAX_PROBLEMS + 1))
    if len(found) > _MAX_PROBLEMS:
        found[-1] = Problem("", f"there is more wrong than these {_MAX_PROBLEMS}")
    return found


def name_problem(name: str) -> str | None:
    """Say why a name cannot be a switch's, or None."""
    return None if name.isprintable() and name.strip() else "should be a name of printable characters"


def suggest_name(name: str, known: Collection[str]) -> str:
    """Return ` Did you mean "x"?` for a near miss, unless there are too many names to compare them all."""
    return did_you_mean(name, filter(str.isprintable, known)) if len(known) <= _MAX_COMPARED else ""


def quote_name(name: str) -> str:
    """Return a name in quotes, fit for a message whatever it holds."""
    text = name if len(name) <= _MAX_NAME_LENGTH else f"{name[:_MAX_NAME_LENGTH]}…"
    return json.dumps(text, ensure_ascii=not text.isprintable())


def _name_problems(spec: Graph) -> Iterator[Problem]:
    first: dict[str, int] = {}
    for place, name in enumerate(spec.switches):
        wrong = name_problem(name)
        if wrong:
            yield Problem(f"switches.{place}", wrong)
        elif name in first:
            yield Problem(
                f"switches.{place}", f"the name {quote_name(name)} is listed at switches.{first[name]} already"
            )
        first.setdefault(name, place)
    for place, ends in enumerate(spec.links):
        unknown = [name for name in dict.fromkeys(ends) if name not in first]
        for name in unknown:
            yield Problem(f"links.{place}", f"there is no switch {quote_name(name)}.{suggest_name(name, first)}")
        if not unknown and ends[0] == ends[1]:
            yield Problem(f"links.{place}", f"joins {quote_name(ends[0])} to itself")
    if spec.hosts is not None and spec.hosts_per_switch is not None:
        yield Problem("hosts_per_switch", "says what hosts says too; remove one of them")
    for name in spec.hosts or ():
        if name not in first:
            yield Problem(f"hosts.{name}", f"there is no such switch.{suggest_name(name, first)}")


def _division(spec: Graph) -> list[Problem]:
    number = {name: switch for switch, name in enumerate(spec.switches)}
    links = np.array([(number[a], number[b]) for a, b in spec.links], dtype=np.int32).reshape(-1, 2)
    pair = find_disconnected_pair(len(spec.switches), links)
    if pair is None:
        return []
    one, other = (quote_name(spec.switches[switch]) for switch in pair)
    return [Problem("links", f"no path joins {one} and {other}; a fabric must be connected")]


@dataclass(frozen=True, slots=True)
class Node:
    """A switch or host: where it is in the file, its name, what it is."""

    place: str
    name: str
    is_host: bool


@dataclass(frozen=True, slots=True)
class Link:
    """Where a link is in the file, and the names of its ends."""

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

    `hosts_per_switch` is for files that name no host; None is 1.

    Raises:
        InputError: the nodes and links are no fabric; each problem with its place in the file.
    """
    problems = shorten_problems(chain(listing.problems, _problems(listing, hosts_per_switch)))
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
            yield Problem(node.place, f"the name {quote_name(node.name)} is used at {known[node.name].place} already")
        known.setdefault(node.name, node)
    if all(node.is_host for node in listing.nodes):
        yield Problem("", "names no switch")
    links_of: Counter[str] = Counter()
    for link in listing.links:
        unknown = [name for name in dict.fromkeys(link.ends) if name not in known]
        for name in unknown:
            yield Problem(link.place, f"there is no node {quote_name(name)}.{suggest_name(name, known)}")
        one, other = link.ends
        if not unknown and one == other:
            yield Problem(link.place, f"joins {quote_name(one)} to itself")
        elif not unknown and known[one].is_host and known[other].is_host:
            both = f"{quote_name(one)} and {quote_name(other)}"
            yield Problem(link.place, f"joins the hosts {both}; a host is linked to a switch")
        links_of.update(link.ends)
    for node in known.values():
        if node.is_host and links_of[node.name] != 1:
            number = links_of[node.name] or "no"
            yield Problem(node.place, f"the host {quote_name(node.name)} has {number} links; a host has exactly one")
    if hosts_per_switch is not None and any(node.is_host for node in listing.nodes):
        yield Problem("", "names its hosts, so leave hosts_per_switch out")
