"""What the readers of fabric files hand on, and how it becomes a fabric."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain

from testbed.base.errors import InputError, Problem
from testbed.base.units import count_noun
from testbed.fabric.topologies.any_graph import (
    Graph,
    check_graph,
    name_problem,
    quote_name,
    shorten_problems,
    suggest_name,
)

READ, PASSED, REFUSED = "read", "passed over", "refused"
_MAX_NAMED = 3  # things that a note names
_MAX_KEYS, _MAX_KEY = 12, 60  # keys that it names, characters of one


@dataclass(frozen=True, slots=True)
class Node:
    """A switch or host: where it is in the file, its name, what it is."""

    place: str
    name: str  # by which links speak of it
    is_host: bool
    label: str = ""  # what people call it, where that is another name


@dataclass(frozen=True, slots=True)
class Link:
    """Where a link is in the file, and the names of its ends."""

    place: str
    ends: tuple[str, str]
    rate: float | None = None  # bit/s, where the file says it


@dataclass(frozen=True, slots=True)
class Listing:
    """Nodes and links in the order of the file, and what a reader found on the way."""

    nodes: list[Node] = field(default_factory=list)
    links: list[Link] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)  # how it was read where that is not plain, in sentences
    passed: Counter[str] = field(default_factory=Counter)  # what makes no node and no link, and how often it is there
    unknown: Counter[str] = field(default_factory=Counter)  # what no table has, likewise
    demands: list[tuple[str, str, float]] = field(default_factory=list)  # source, destination, amount

    def sort_keys(self, keys: Iterator[str] | list[str], of: str, table: dict[str, str], place: str) -> None:
        """Count the keys of a block that are passed over or unknown; refuse those that the table refuses."""
        for key in keys:
            name = f"{of}: {key}"
            outcome = table.get(name)
            if outcome is None:
                self.unknown[name] += 1
            elif outcome == PASSED:
                self.passed[name] += 1
            elif outcome != READ:
                self.problems.append(Problem(place, f"{quote_name(key)} {outcome}"))


@dataclass(frozen=True, slots=True)
class FileFabric:
    """A fabric as a file describes it."""

    graph: Graph
    notes: tuple[str, ...]  # how it was read
    rates: tuple[float | None, ...]  # bit/s of each link of the graph
    host_rates: tuple[float | None, ...]  # of each host's link, in the order of hosts
    host_names: tuple[str, ...]  # what the file calls each host; empty where it names none
    demands: tuple[tuple[int, int, float], ...]  # hosts and amount, where the file says what they send each other


def make_fabric(listing: Listing, hosts_per_switch: int | None) -> FileFabric:
    """Make a fabric of a listing.

    A cable from a switch to itself is passed over; a host with several links is as many hosts, one a link; one
    without a link is none. `hosts_per_switch` is for files that name no host; None is 1.

    Raises:
        InputError: the nodes and links are no fabric; each problem with its place in the file.
    """
    problems = shorten_problems(chain(listing.problems, _find_problems(listing, hosts_per_switch)))
    if problems:
        raise InputError(problems)
    notes = [*listing.notes]
    named = _label_nodes(listing)
    hosts = {node.name for node in listing.nodes if node.is_host}
    order = {node.name: number for number, node in enumerate(listing.nodes) if not node.is_host}
    between, of_hosts, loops = [], [], []
    for link in listing.links:
        one, other = link.ends
        if one == other:
            loops.append(link)
        elif one in hosts or other in hosts:
            host, switch = (one, other) if one in hosts else (other, one)
            of_hosts.append((order[switch], switch, host, link.rate))
        else:
            between.append(link)
    of_hosts.sort(key=lambda entry: entry[0])
    notes += _loop_notes(loops) + _host_notes(hosts, Counter(host for _, _, host, _ in of_hosts))
    notes += _count_notes("passed over", listing.passed) + _count_notes("not understood", listing.unknown)
    switches = tuple(named[name] for name in order)
    counts = Counter(switch for _, switch, _, _ in of_hosts)
    made = Graph(
        switches=switches,
        links=tuple((named[link.ends[0]], named[link.ends[1]]) for link in between),
        hosts={named[name]: counts[name] for name in order if name in counts} if hosts else None,
        hosts_per_switch=hosts_per_switch,
    )
    divided = [Problem("", problem.sentence) for problem in check_graph(made)]
    if divided:
        raise InputError(divided)
    return FileFabric(
        made,
        tuple(notes),
        tuple(link.rate for link in between),
        tuple(rate for *_, rate in of_hosts),
        tuple(named[host] for _, _, host, _ in of_hosts),
        _find_demands(listing, made, order, [host for _, _, host, _ in of_hosts]),
    )


def _label_nodes(listing: Listing) -> dict[str, str]:
    """What each node is called: its label, with the name in brackets where several have that one."""
    shown = {node.name: node.label if node.label.strip() and node.label.isprintable() else "" for node in listing.nodes}
    often = Counter(label or name for name, label in shown.items())
    named = {name: label or name for name, label in shown.items()}
    for name, label in shown.items():
        if label and (often[label] > 1):
            named[name] = f"{label} ({name})"
    return named if len(set(named.values())) == len(named) else {name: name for name in named}


def _loop_notes(loops: list[Link]) -> list[str]:
    if not loops:
        return []
    shown = ", ".join(f"{quote_name(link.ends[0])} ({link.place})" for link in loops[:_MAX_NAMED])
    more = f" and {len(loops) - _MAX_NAMED} more" if len(loops) > _MAX_NAMED else ""
    return [f"{count_noun(len(loops), 'cable')} from a switch to itself passed over: {shown}{more}"]


def _host_notes(hosts: set[str], links: Counter[str]) -> list[str]:
    found = []
    several = sorted(host for host in hosts if links[host] > 1)
    if several:
        found.append(f"{_name_hosts(several)} with several links: as many hosts, one a link")
    without = sorted(host for host in hosts if not links[host])
    if without:
        found.append(f"{_name_hosts(without)} without a link passed over")
    return found


def _name_hosts(names: list[str]) -> str:
    shown = ", ".join(map(quote_name, names[:_MAX_NAMED]))
    more = f" and {len(names) - _MAX_NAMED} more" if len(names) > _MAX_NAMED else ""
    return f"{count_noun(len(names), 'host')} ({shown}{more})"


def _count_notes(what: str, counted: Counter[str]) -> list[str]:
    if not counted:
        return []
    shown = ", ".join(
        f"{name if name.isprintable() and len(name) <= _MAX_KEY else quote_name(name)} ({count:,}×)"
        for name, count in counted.most_common(_MAX_KEYS)
    )
    return [f"{what}: {shown}{' and others' if len(counted) > _MAX_KEYS else ''}"]


def _find_demands(
    listing: Listing, made: Graph, order: dict[str, int], hosts: list[str]
) -> tuple[tuple[int, int, float], ...]:
    """Demands between hosts; of those between switches each is of the switch's first host."""
    if not listing.demands:
        return ()
    number = {host: place for place, host in reversed(list(enumerate(hosts)))}
    if not hosts:
        first = 0
        for name, count in zip(order, made.hosts_on, strict=True):
            if count:
                number[name] = first
            first += count
    found = [(number.get(one), number.get(other), amount) for one, other, amount in listing.demands]
    return tuple(
        (one, other, amount)
        for one, other, amount in found
        if one is not None and other is not None and one != other and amount > 0
    )


def _find_problems(listing: Listing, hosts_per_switch: int | None) -> Iterator[Problem]:
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
    linked = False
    for link in listing.links:
        unknown = [name for name in dict.fromkeys(link.ends) if name not in known]
        for name in unknown:
            yield Problem(link.place, f"there is no node {quote_name(name)}.{suggest_name(name, known)}")
        if not unknown and all(known[name].is_host for name in link.ends):
            both = " and ".join(map(quote_name, dict.fromkeys(link.ends)))
            sentence = "joins the hosts" if link.ends[0] != link.ends[1] else "joins to itself the host"
            yield Problem(link.place, f"{sentence} {both}; a host is linked to a switch")
        linked = linked or any(name in known and known[name].is_host for name in link.ends)
    first_host = next((node for node in listing.nodes if node.is_host), None)
    if first_host is not None and not linked:
        yield Problem(first_host.place, f"the host {quote_name(first_host.name)} has no link, as no host has")
    if hosts_per_switch is not None and first_host is not None:
        yield Problem("", "names its hosts, so leave hosts_per_switch out")
