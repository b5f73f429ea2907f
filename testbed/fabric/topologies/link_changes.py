"""Links more and links fewer than a topology has by itself, such as a chord on a torus."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from testbed.base.errors import InputError, Problem
from testbed.base.model import Topology
from testbed.fabric.topologies.any_graph import quote_name
from testbed.fabric.topologies.build_topology import count_pairs, find_disconnected_pair, make_topology
from testbed.fabric.topologies.faults import Faults, dead_links, find_surviving_part, numbers_of, unknown_switch

Pair = tuple[str, str]
Removed = Pair | tuple[str, str, int]


def change_links(topology: Topology, add: Sequence[Pair], remove: Sequence[Removed]) -> Topology:
    """Take links out of a fabric and put others in; switches, hosts, names, places and coordinates stay.

    A link that joins two switches that are linked is one more parallel link.

    Raises:
        InputError: a switch or link that there is not, or what is left is not connected; every problem found.
    """
    if not (add or remove):
        return topology
    number, problems = numbers_of(topology), []
    found: list[Problem] = []
    gone = dead_links(topology, Faults(links=tuple(remove)), number, found)
    problems += [Problem(problem.key.replace("links.", "links.remove.", 1), problem.sentence) for problem in found]
    for entry, (one, other) in enumerate(add):
        place = f"links.add.{entry}"
        unknown = [name for name in dict.fromkeys((one, other)) if name not in number]
        problems += [Problem(place, unknown_switch(name, number)) for name in unknown]
        if not unknown and number[one] == number[other]:
            problems.append(Problem(place, f"joins {quote_name(one)} to itself"))
    if problems:
        raise InputError(problems)
    left = find_surviving_part(topology, np.ones(topology.switch_count, dtype=bool), ~gone) if gone.any() else topology
    pairs, count = count_pairs(
        [*((a, b) for a, b in left.links.tolist()), *((number[one], number[other]) for one, other in add)]
    )
    changed = make_topology(
        topology.kind,
        pairs,
        np.bincount(topology.host_switch, minlength=topology.switch_count).tolist(),
        topology.positions,
        parallel_links=count,
        sizes=topology.sizes,
        coordinates=topology.coordinates,
        levels=topology.levels,
        switch_names=topology.switch_names,
        host_names=topology.host_names,
        switch_labels=topology.switch_labels,
    )
    pair = find_disconnected_pair(changed.switch_count, changed.links)
    if pair is not None:
        one, other = map(topology.switch_name, pair)
        raise InputError.one("links.remove", f"leaves no path between {one} and {other}")
    return changed
