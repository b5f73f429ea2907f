"""One path for each pair out of all shortest legal ones (Koibuchi et al. 2003, section 3.3)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal

import numpy as np
from annotated_types import Ge, Le

from testbed.base.errors import InputError, Problem
from testbed.base.model import AllowedTurns, Longs, Paths, Topology
from testbed.fabric.routing.channel_lookup import host_switches
from testbed.fabric.routing.turns import by_switch, consistent_paths, no_path

if TYPE_CHECKING:
    from testbed.fabric.kernels.selection import SelectionGraph

CANDIDATES = 16
_BY_CANDIDATES = ("sancho", "high_virtual", "high_physical")
_MAX_CANDIDATE_HOPS = 1 << 28  # about 3 GB of arrays
_TREE_PASSES = 2
_PATIENCE = 1000


@dataclass(frozen=True, slots=True)
class SelectionOptions:
    """How a routing by turns chooses among the shortest legal paths of a pair."""

    # `balanced`: one next hop for each channel and destination, toward the least loaded channels. `random`: any path,
    # all equally likely. `low_port`: the lowest port at every switch. `sancho`: of all candidates, one through the most
    # loaded physical channel is deleted until each pair has one left, whatever its virtual channels. `high_virtual`:
    # the most loaded virtual channel. `high_physical`: the most loaded virtual channel of the most loaded physical one.
    # `tree`: the paths of every source form one tree, as the fixed VLAN assignment asks; only where that needs it are
    # they longer.
    selection: Literal["balanced", "random", "low_port", "sancho", "high_virtual", "high_physical", "tree"] = "balanced"
    seed: Annotated[int, Ge(0)] | None = None  # what `random` draws from
    # paths of a pair that `sancho` and the two after it choose from; where there are more, they are taken in even steps
    candidates: Annotated[int, Ge(1), Le(1024)] = CANDIDATES


def select_paths(topology: Topology, turns: AllowedTurns, options: SelectionOptions) -> Paths:
    """Choose one path for every ordered pair of switches with hosts.

    All are shortest legal paths, but for `tree`. `balanced` and `low_port` give a next hop by arrival and destination
    (C×N→C), `tree` one tree a source; the others fit neither, in general.

    Raises:
        InputError: a pair has no legal path, a source no tree, or the options do not fit each other.
    """
    _check(options)
    if options.selection == "balanced":
        return consistent_paths(topology, turns)
    graph = _graph(topology, turns)
    if options.selection == "tree":
        return _tree_paths(topology, graph)
    if options.selection == "low_port":
        return _low_port_paths(topology, graph)
    if options.selection == "random" and options.seed is not None:
        return _random_paths(topology, graph, options.seed)
    return _relieved_paths(topology, graph, options)


def _check(options: SelectionOptions) -> None:
    problems = []
    useless = f"has no effect with selection: {options.selection}; remove it or set selection:"
    if options.selection == "random" and options.seed is None:
        problems.append(Problem("routing.seed", "is required by selection: random, such as seed: 1"))
    if options.selection != "random" and options.seed is not None:
        problems.append(Problem("routing.seed", f"{useless} random"))
    if options.selection not in _BY_CANDIDATES and options.candidates != CANDIDATES:
        problems.append(
            Problem("routing.candidates", f"{useless} {', '.join(_BY_CANDIDATES[:-1])} or {_BY_CANDIDATES[-1]}")
        )
    if problems:
        raise InputError(problems)


def _graph(topology: Topology, turns: AllowedTurns) -> SelectionGraph:
    from testbed.fabric.kernels.selection import SelectionGraph
    from testbed.fabric.kernels.turns import may_begin, reversed_graph

    layers = _layers(topology, turns.start)
    leaving_start, leaving = by_switch(np.tile(topology.channel_source, layers), topology.switch_count)
    return SelectionGraph(
        host_switches(topology),
        turns.start,
        turns.following,
        *may_begin(turns.entry, leaving_start, leaving),
        *by_switch(np.tile(topology.channel_target, layers), topology.switch_count),
        *reversed_graph(turns.start, turns.following),
    )


def _layers(topology: Topology, start: Longs) -> int:
    return max(1, (len(start) - 1) // max(len(topology.channel_source), 1))


def _hosts(topology: Topology, graph: SelectionGraph) -> Longs:
    """(E,) hosts of each end switch."""
    return np.bincount(topology.host_switch, minlength=topology.switch_count)[graph.ends].astype(np.int64)


def _lengths_and_ways(topology: Topology, graph: SelectionGraph, most: int) -> tuple[Longs, Longs, Longs]:
    """(E·E + 1,) offsets of the paths, (E·E,) hops of each and (E·E,) number of shortest ones, none above `most`."""
    from testbed.fabric.kernels.selection import lengths_and_ways

    length, ways, lost = lengths_and_ways(graph, most)
    if len(lost):
        raise no_path(topology, int(graph.ends[lost[0]]), int(graph.ends[lost[1]]))
    hops = length.reshape(-1).astype(np.int64)
    return _offsets(hops), hops, ways.reshape(-1).astype(np.int64)


def _offsets(counts: Longs) -> Longs:
    return np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(counts)])


def _low_port_paths(topology: Topology, graph: SelectionGraph) -> Paths:
    """At every switch the lowest port of those one hop nearer; of its layers the highest, where the search begins."""
    from testbed.fabric.kernels.selection import ranked_paths

    start, _, _ = _lengths_and_ways(topology, graph, 0)
    layers = _layers(topology, graph.start)
    below = np.repeat(np.arange(layers - 1, -1, -1), len(topology.out_port))
    rank = (np.tile(topology.out_port, layers) * layers + below).astype(np.int32)
    return Paths(start, ranked_paths(graph, rank, start))


def _random_paths(topology: Topology, graph: SelectionGraph, seed: int) -> Paths:
    from testbed.fabric.kernels.selection import draw_paths

    start, hops, _ = _lengths_and_ways(topology, graph, 0)
    # Only raw bits are the same in all versions of numpy.
    bits = np.random.PCG64(seed)
    hop = np.empty(start[-1], dtype=np.int32)
    count = len(graph.ends)
    for end, total in enumerate(hops.reshape(count, count).sum(axis=0).tolist()):
        draws = (bits.random_raw(total) >> np.uint64(11)) * 2.0**-53
        draw_paths(end, graph, start, draws, hop)
    return Paths(start, hop)


def _relieved_paths(topology: Topology, graph: SelectionGraph, options: SelectionOptions) -> Paths:
    """Delete candidates through the most loaded channel until one is left (Sancho and Robles 2000).

    Loads are numbers of pairs of hosts. `sancho` counts physical channels: "it does not consider on virtual channels"
    (Koibuchi et al. 2003, section 3.3), so of candidates that differ in their layers alone the last is left.
    `high_virtual` counts virtual channels, `high_physical` looks at the channel first, all its layers together, and
    then at the layer. More than the name of that rule is not known (the paper cites another of the same authors for
    it). In one layer the three are the same.

    Raises:
        InputError: a pair has no legal path, or the candidates do not fit into memory.
    """
    from testbed.fabric.kernels.selection import candidate_paths
    from testbed.fabric.kernels.selection_relief import relieve

    start, hops, ways = _lengths_and_ways(topology, graph, options.candidates)
    total, shortest = int((hops * ways).sum()), int(hops.sum())
    if total > _MAX_CANDIDATE_HOPS:
        fitting = _MAX_CANDIDATE_HOPS // shortest
        remedy = f"set candidates: {fitting}" if fitting else "set selection: balanced"
        raise InputError.one(
            "routing.candidates",
            f"up to {options.candidates} paths of a pair have {total:,} hops, over the limit of "
            f"{_MAX_CANDIDATE_HOPS:,}; {remedy}",
        )
    base, first = _offsets(hops * ways), _offsets(ways)
    candidates = candidate_paths(graph, hops, ways, base)
    channels = max(len(topology.channel_source), 1)
    nodes = np.arange(len(graph.start) - 1, dtype=np.int32)
    counted, group = candidates, nodes % channels if options.selection == "high_physical" else nodes
    if options.selection == "sancho":
        counted = candidates % np.int32(channels)
    hosts = _hosts(topology, graph)
    kept = relieve(first, base, hops, counted, np.outer(hosts, hosts).reshape(-1), group)
    place = np.repeat(base[:-1] + kept * hops - start[:-1], hops) + np.arange(shortest)
    return Paths(start, candidates[place])


def _tree_paths(topology: Topology, graph: SelectionGraph) -> Paths:
    """Paths of every source that are one tree, each switch being entered by one virtual channel.

    The search takes what is nearest first and turns back from dead ends, so for each source it finds a tree or shows
    that there is none, or gives up after `_PATIENCE` dead ends. A tree exists for every source where all turns
    between the links of one spanning tree are allowed, as with up*/down*, TBTP, SR and DL.

    With up*/down* there is no dead end, as an up channel into a switch leaves every way open that a down channel does.

    Raises:
        InputError: a source has no tree, or none was found (names it and a switch that is cut off).
    """
    from testbed.fabric.kernels import trees
    from testbed.fabric.kernels.selection_trees import legal_trees, remaining_hops

    _lengths_and_ways(topology, graph, 0)
    layers = _layers(topology, graph.start)
    source = np.tile(topology.channel_source, layers)
    hosts = _hosts(topology, graph)
    remaining = remaining_hops(graph, hosts, topology.switch_count)
    tree, lost = legal_trees(
        graph, hosts, source, np.tile(topology.channel_target, layers), max(len(topology.channel_source), 1),
        remaining, _TREE_PASSES, _PATIENCE,
    )  # fmt: skip
    if len(lost):
        root, switch, given_up = lost.tolist()
        found = f"was found in {_PATIENCE:,} attempts" if given_up else "exists"
        raise InputError.one(
            "routing.selection",
            f"no tree of legal paths from {topology.switch_name(int(graph.ends[root]))} to all switches {found}: "
            f"{topology.switch_name(switch)} stays cut off; use another selection, such as balanced, or kind: updown, "
            "which always has one",
        )
    depth = trees.depths(tree, source, graph.ends)
    return Paths(*trees.explicit(tree, source, depth, graph.ends, True, True))
