"""Dead links and switches: what is left of a fabric without them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Annotated

import numpy as np
from annotated_types import Ge, Le

from testbed.base.errors import InputError, Problem
from testbed.base.model import Bools, Topology
from testbed.fabric.topologies.any_graph import quote_name, suggest_name
from testbed.fabric.topologies.build_topology import find_disconnected_pair, make_topology

_MAX_NAMED = 8
_LINK = {
    "wanted": "a list such as [[s1, s2], [s1, s4]]",
    "entry": "two switches such as [s1, s2], or with a plane [s1, s2, 1]",
}


@dataclass(frozen=True, slots=True)
class Faults:
    """What is dead. Switches are named as in reports, s1, s2, …, or as in the file the fabric comes from."""

    # pairs of switches whose links are dead, with a plane if only that one of parallel links is
    links: tuple[tuple[str, str] | tuple[str, str, Annotated[int, Ge(0)]], ...] = field(default=(), metadata=_LINK)
    # dead switches; their hosts and links are dead with them
    switches: tuple[str, ...] = field(default=(), metadata={"wanted": "a list of switches such as [s3]"})
    # share of the links left by these that is dead too, drawn at random, to the nearest whole number. With one seed,
    # those of a lower percent are among those of a higher.
    percent: Annotated[float, Ge(0), Le(100)] = 0.0
    seed: Annotated[int, Ge(0)] | None = None  # of the drawing


def check_faults(faults: Faults) -> list[Problem]:
    """Name what is missing, as far as that can be known without the fabric."""
    if faults.percent and faults.seed is None:
        return [Problem("seed", "is required with percent: a whole number such as seed: 1, from which links are drawn")]
    return []


def apply_faults(topology: Topology, faults: Faults) -> Topology:
    """Take dead links and switches out of a fabric; what is left keeps its names and places.

    Numbers are given anew: of switches, hosts, links, ports, and of planes, so that the first living link of a pair
    is plane 0.

    Returns:
        The topology itself where nothing is dead.

    Raises:
        InputError: a name or plane that there is not, or what is left is not connected; every problem found.
    """
    if not (faults.links or faults.switches or faults.percent):
        return topology
    problems: list[Problem] = []
    number = numbers_of(topology)
    switches = _dead_switches(topology, faults, number, problems)
    links = dead_links(topology, faults, number, problems)
    named = links | switches[topology.links].any(axis=1)
    drawn = _draw_dead_links(faults, ~named, problems) if faults.percent else np.zeros_like(named)
    if problems:
        raise InputError([Problem(f"faults.{problem.place}", problem.sentence) for problem in problems])
    words = [f"switch {_name_switch(topology, switch)}" for switch in np.flatnonzero(switches).tolist()]
    words += [f"link {link_called(topology, link)}" for link in np.flatnonzero(links | drawn).tolist()]
    for alive, advice in ((~named, ""), (~(named | drawn), "; another seed or a lower percent may leave one")):
        pair = _divided(topology, ~switches, alive)
        if pair is not None:
            one, other = (_name_switch(topology, switch) for switch in pair)
            raise InputError.one("faults", f"leaves no path between {one} and {other}{advice}")
    return find_surviving_part(topology, ~switches, ~(named | drawn), words)


def numbers_of(topology: Topology) -> dict[str, int]:
    """Number of every switch by its name, and by its label where the fabric has some."""
    number = {topology.switch_name(switch): switch for switch in range(topology.switch_count)}
    return number | {label: switch for switch, label in enumerate(topology.switch_labels)}


def _divided(topology: Topology, switches: Bools, links: Bools) -> tuple[int, int] | None:
    """Two living switches that the living links leave apart, or None."""
    left = np.flatnonzero(switches)
    pair = find_disconnected_pair(len(left), (np.cumsum(switches, dtype=np.int32) - 1)[topology.links[links]])
    return None if pair is None else (int(left[pair[0]]), int(left[pair[1]]))


def _dead_switches(topology: Topology, faults: Faults, number: dict[str, int], problems: list[Problem]) -> Bools:
    dead = np.zeros(topology.switch_count, dtype=bool)
    for place, name in enumerate(faults.switches):
        if name not in number:
            problems.append(Problem(f"switches.{place}", unknown_switch(name, number)))
        elif dead[number[name]]:
            problems.append(Problem(f"switches.{place}", f"{quote_name(name)} is named twice"))
        else:
            dead[number[name]] = True
    if dead.all():
        problems.append(Problem("switches", "leaves no switch alive"))
    return dead


def dead_links(topology: Topology, faults: Faults, number: dict[str, int], problems: list[Problem]) -> Bools:
    """(L,) True for links that are named; every problem found is added. `number` is that of each name."""
    dead = np.zeros(topology.link_count, dtype=bool)
    low, high = topology.links.min(axis=1), topology.links.max(axis=1)
    for entry, (one, other, *planes) in enumerate(faults.links):
        place = f"links.{entry}"
        unknown = [name for name in dict.fromkeys((one, other)) if name not in number]
        problems += [Problem(place, unknown_switch(name, number)) for name in unknown]
        if unknown:
            continue
        a, b = sorted((number[one], number[other]))
        rows = np.flatnonzero((low == a) & (high == b))
        chosen = rows[topology.plane[rows] == planes[0]] if planes else rows
        if not len(rows):
            near = np.unique(np.concatenate([high[low == number[one]], low[high == number[one]]])).tolist()
            names = [_name_switch(topology, switch) for switch in near[:_MAX_NAMED]] or ["no switch"]
            more = f" and {len(near) - _MAX_NAMED} more" if len(near) > _MAX_NAMED else ""
            linked = f"{one} is linked to {', '.join(names)}{more}"
            problems.append(Problem(place, f"no link joins {quote_name(one)} and {quote_name(other)}; {linked}"))
        elif not len(chosen):
            highest = f"have planes 0 to {len(rows) - 1}" if len(rows) > 1 else "have a single link, plane 0"
            problems.append(Problem(place, f"{one} and {other} {highest}, and no plane {planes[0]}"))
        elif dead[chosen].all():
            problems.append(Problem(place, "is named twice"))
        dead[chosen] = True
    return dead


def _draw_dead_links(faults: Faults, alive: Bools, problems: list[Problem]) -> Bools:
    """(L,) True where a living link dies by chance."""
    dead = np.zeros(len(alive), dtype=bool)
    rows = np.flatnonzero(alive)
    count = int(len(rows) * faults.percent / 100 + 0.5)
    if not count:
        sentence = f"{faults.percent:g} % of {len(rows)} links is less than half a link, so none would be dead"
        problems.append(Problem("percent", sentence))
    # Only raw bits are the same in all versions of numpy.
    order = np.argsort(np.random.PCG64(faults.seed).random_raw(len(rows)), kind="stable")
    dead[rows[order[:count]]] = True
    return dead


def find_surviving_part(topology: Topology, switches: Bools, links: Bools, words: Sequence[str] = ()) -> Topology:
    """The topology of living switches (S,) and links (L,), in the order they had; `words` name what is dead."""
    ends = (np.cumsum(switches) - 1)[topology.links[links]]
    left = np.flatnonzero(switches)
    hosts = switches[topology.host_switch]
    # The rows of a pair are consecutive and the first is plane 0.
    pair_of = np.cumsum(topology.plane == 0)[links]
    _, first, count = np.unique(pair_of, return_index=True, return_counts=True)
    whole, populated = bool(switches.all()), bool(hosts.all())
    return make_topology(
        topology.kind,
        [(a, b) for a, b in ends[first].tolist()],
        np.bincount(topology.host_switch, minlength=topology.switch_count)[switches].tolist(),
        topology.positions[switches],
        parallel_links=count.tolist(),
        sizes=topology.sizes,
        coordinates=topology.coordinates[switches],
        levels=topology.levels[switches],
        switch_names=topology.switch_names if whole else [topology.switch_name(switch) for switch in left.tolist()],
        host_names=topology.host_names
        if populated
        else [topology.host_name(h) for h in np.flatnonzero(hosts).tolist()],
        switch_labels=[label for label, alive in zip(topology.switch_labels, switches, strict=False) if alive],
        faults=(*topology.faults, *words),
    )


def _name_switch(topology: Topology, switch: int) -> str:
    name = topology.switch_name(switch)
    return f"{name} ({topology.switch_labels[switch]})" if topology.switch_labels else name


def link_called(topology: Topology, link: int) -> str:
    """`s1–s2`, with labels where the fabric has some, and `#p` on planes above the first."""
    one, other = (_name_switch(topology, switch) for switch in topology.links[link].tolist())
    plane = int(topology.plane[link])
    return f"{one}–{other}" + (f"#{plane}" if plane else "")


def unknown_switch(name: str, known: Collection[str]) -> str:
    """The sentence for a switch that there is not."""
    if f"s{len(known)}" in known and name[:1] == "s" and name[1:].isdecimal():
        return f"there is no switch {quote_name(name)}, only s1 to s{len(known)}"
    return f"there is no switch {quote_name(name)}.{suggest_name(name, known)}"
