"""Every selection on graphs of any shape, beside slow searches that share no code with it."""

from __future__ import annotations

from collections import defaultdict

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbed.base.errors import InputError
from testbed.fabric.routing import selection
from testbed.fabric.routing.channel_lookup import explicit_routes
from testbed.fabric.routing.descending_layers import descending_turns
from testbed.fabric.routing.paths import channel_load
from testbed.fabric.routing.relation import Conflict, as_source_trees, forwarding_table
from testbed.fabric.routing.segment_based import segment_turns
from testbed.fabric.routing.selection import SelectionOptions, select_paths
from testbed.fabric.routing.tbtp import tree_based_turns
from testbed.fabric.routing.turns import all_turns, allow
from testbed.fabric.routing.updown import upward_channels
from testbed.fabric.verify.deadlock import check_routes
from tests.fabrics import atlas_fabrics, fabric_of_pairs, random_fabrics

SELECTIONS = ("balanced", "random", "low_port", "sancho", "high_virtual", "high_physical", "tree")


def up_down_turns(topology):
    up = upward_channels(topology)
    before, after = all_turns(topology)
    return allow(topology, ~(~up[before] & up[after]), before, after)


ROUTINGS = {
    "updown": up_down_turns,
    "tbtp": lambda topology: tree_based_turns(topology, 0),
    "sr": lambda topology: segment_turns(topology, 0),
    "dl": lambda topology: descending_turns(topology, "ud", 2),
    "dl_three": lambda topology: descending_turns(topology, "ud_du", 3),
}


def options(name, **others):
    return SelectionOptions(name, seed=1 if name == "random" else None, **others)


def layers_of(topology, turns):
    return max(1, (len(turns.start) - 1) // max(1, len(topology.channel_source)))


def routes_of(topology, turns, name, **others):
    paths = select_paths(topology, turns, options(name, **others))
    return explicit_routes(topology, paths, turns, layers_of(topology, turns))


def each_path(routes):
    count = len(routes.ends)
    for pair in range(count * count):
        source, end = divmod(pair, count)
        yield source, end, tuple(routes.paths.hop[routes.paths.start[pair] : routes.paths.start[pair + 1]].tolist())


@st.composite
def fabrics(draw):
    """Two to seven switches with some links more than a tree, some of them parallel, not all switches with hosts."""
    switches = draw(st.integers(2, 7))
    pairs = [(draw(st.integers(0, switch - 1)), switch) for switch in range(1, switches)]
    any_pair = st.tuples(st.integers(0, switches - 1), st.integers(0, switches - 1)).filter(lambda p: p[0] < p[1])
    pairs += draw(st.lists(any_pair, max_size=8))
    hosts_on = draw(st.lists(st.integers(0, 3), min_size=switches, max_size=switches))
    return fabric_of_pairs(pairs, hosts_on)


def all_shortest(topology, turns):
    """Every shortest legal path of each pair by (source, end) index, paths of low virtual channels first."""
    graph = nx.DiGraph()
    graph.add_nodes_from(range(len(turns.entry)))
    for node in graph:
        graph.add_edges_from((node, after) for after in turns.following[turns.start[node] : turns.start[node + 1]])
    channels = max(1, len(topology.channel_source))
    ends = np.unique(topology.host_switch).tolist()
    for node in list(graph):
        if turns.entry[node]:
            graph.add_edge(("from", int(topology.channel_source[node % channels])), node)
        graph.add_edge(node, ("to", int(topology.channel_target[node % channels])))
    return {
        (a, b): sorted(tuple(p[1:-1]) for p in nx.all_shortest_paths(graph, ("from", source), ("to", end)))
        for a, source in enumerate(ends)
        for b, end in enumerate(ends)
        if a != b
    }


def deleted_one_by_one(topology, turns, candidates, name):
    """The path each pair is left with (Sancho and Robles 2000), with all loads counted anew for every deletion."""
    ends, hosts = np.unique(topology.host_switch, return_counts=True)
    physical = max(len(topology.channel_source), 1)
    channels = physical if name == "high_physical" else len(turns.entry)
    counters = physical if name == "sancho" else len(turns.entry)
    left = {pair: list(paths) for pair, paths in candidates.items()}
    closed = set()
    while any(len(paths) > 1 for paths in left.values()):
        load: dict[int, int] = defaultdict(int)
        together: dict[int, int] = defaultdict(int)
        for (a, b), paths in left.items():
            for hop in (hop % counters for path in paths for hop in path):
                load[hop] += int(hosts[a] * hosts[b])
                together[hop % channels] += int(hosts[a] * hosts[b])
        order = [(-together[hop % channels], -load[hop], hop) for hop in load if hop not in closed]
        number = min(order)[2]
        spare = [
            (-len(left[pair]), pair, place)
            for pair in sorted(left)
            for place, path in enumerate(left[pair])
            if len(left[pair]) > 1 and number in [hop % counters for hop in path]
        ]
        if spare:
            _, pair, place = min(spare)
            del left[pair][place]
        else:
            closed.add(number)
    assert len(ends) * (len(ends) - 1) == len(left)
    return {pair: paths[0] for pair, paths in left.items()}


@pytest.mark.parametrize("routing", ROUTINGS)
@given(fabrics())
def test_all_but_trees_are_shortest_legal_paths(routing, topology):
    turns = ROUTINGS[routing](topology)
    shortest = all_shortest(topology, turns)
    for name in SELECTIONS:
        routes = routes_of(topology, turns, name)
        for source, end, path in each_path(routes):
            if source == end:
                assert path == ()
            elif name != "tree":
                assert path in shortest[source, end]
        assert check_routes(topology, routes) == []


@pytest.mark.parametrize("name", ["sancho", "high_virtual", "high_physical"])
@pytest.mark.parametrize("routing", ["sr", "dl"])
@given(fabrics())
def test_what_is_left_is_what_deleting_one_by_one_leaves(routing, name, topology):
    turns = ROUTINGS[routing](topology)
    shortest = all_shortest(topology, turns)
    expected = deleted_one_by_one(topology, turns, shortest, name)
    most = max((len(paths) for paths in shortest.values()), default=1)
    routes = routes_of(topology, turns, name, candidates=max(most, 1))
    assert {(a, b): path for a, b, path in each_path(routes) if a != b} == expected


@given(fabrics(), st.integers(1, 5))
def test_no_more_candidates_than_asked_for_in_even_steps(topology, most):
    turns = ROUTINGS["dl"](topology)
    shortest = all_shortest(topology, turns)
    some = {
        pair: paths if len(paths) <= most else [paths[step * len(paths) // most] for step in range(most)]
        for pair, paths in shortest.items()
    }
    expected = deleted_one_by_one(topology, turns, some, "high_virtual")
    routes = routes_of(topology, turns, "high_virtual", candidates=most)
    assert {(a, b): path for a, b, path in each_path(routes) if a != b} == expected


@pytest.mark.parametrize("routing", ROUTINGS)
@given(fabrics())
def test_low_port_takes_the_lowest_port_one_hop_nearer(routing, topology):
    turns = ROUTINGS[routing](topology)
    channels = max(1, len(topology.channel_source))

    def ports(path):
        return [(int(topology.out_port[hop % channels]), -(hop // channels)) for hop in path]

    lowest = {pair: min(paths, key=ports) for pair, paths in all_shortest(topology, turns).items()}
    routes = routes_of(topology, turns, "low_port")
    assert {(a, b): path for a, b, path in each_path(routes) if a != b} == lowest


def some_fabrics():
    return (*atlas_fabrics()[::20], *random_fabrics()[::20])


@pytest.mark.parametrize("routing", ROUTINGS)
def test_balanced_and_low_port_have_one_next_hop_by_arrival(routing):
    for topology in some_fabrics():
        turns = ROUTINGS[routing](topology)
        for name in ("balanced", "low_port"):
            routes = routes_of(topology, turns, name)
            assert not isinstance(forwarding_table(topology, routes, by_arrival=True), Conflict)


@pytest.mark.parametrize("routing", ROUTINGS)
def test_a_tree_of_every_source_is_found_without_a_dead_end(routing, monkeypatch):
    monkeypatch.setattr(selection, "_PATIENCE", 0)
    for topology in (*atlas_fabrics()[::5], *random_fabrics()[::5]):
        turns = ROUTINGS[routing](topology)
        routes = routes_of(topology, turns, "tree")
        assert not isinstance(as_source_trees(topology, routes), Conflict)
        assert check_routes(topology, routes) == []


def drawn_turns(seed):
    """A dense fabric with turns drawn from those between channels in a random order, so that there is no cycle."""
    random = np.random.Generator(np.random.PCG64(seed))
    switches = int(random.integers(5, 9))
    pairs = [(int(random.integers(0, switch)), switch) for switch in range(1, switches)]
    for _ in range(int(random.integers(3 * switches, 4 * switches))):
        one, other = sorted(random.choice(switches, 2, replace=False).tolist())
        pairs.append((one, other))
    topology = fabric_of_pairs(pairs, [1] * switches)
    before, after = all_turns(topology)
    rank = random.permutation(len(topology.channel_source))
    taken = (rank[before] < rank[after]) & (random.random(len(before)) < 0.45)
    return topology, allow(topology, taken, before, after)


def has_tree(topology, turns, root):
    """Whether a legal tree from a switch reaches all others, by trying all that there are."""
    following = [set(turns.following[a:b].tolist()) for a, b in zip(turns.start, turns.start[1:], strict=False)]
    ends = list(zip(topology.channel_source.tolist(), topology.channel_target.tolist(), strict=True))
    tried = set()

    def grows(entered_by):
        if len(entered_by) == topology.switch_count:
            return True
        if entered_by in tried:
            return False
        tried.add(entered_by)
        by = dict(entered_by)
        return any(
            grows(entered_by | {(target, channel)})
            for channel, (source, target) in enumerate(ends)
            if source in by and target not in by and (source == root or channel in following[by[source]])
        )

    return grows(frozenset({(root, -1)}))


def outcome(topology, turns, name):
    try:
        return routes_of(topology, turns, name)
    except InputError as error:
        return str(error)


def test_a_tree_is_found_wherever_there_is_one(monkeypatch):
    seen: dict[str, int] = defaultdict(int)
    for seed in range(600):
        topology, turns = drawn_turns(seed)
        if isinstance(outcome(topology, turns, "balanced"), str):
            continue
        monkeypatch.setattr(selection, "_PATIENCE", 0)
        at_once = outcome(topology, turns, "tree")
        monkeypatch.setattr(selection, "_PATIENCE", 1000)
        routes = outcome(topology, turns, "tree")
        if isinstance(routes, str):
            root = next(root for root in range(topology.switch_count) if not has_tree(topology, turns, root))
            assert f"from {topology.switch_name(root)} to all switches exists" in routes
            seen["none"] += 1
        else:
            assert not isinstance(as_source_trees(topology, routes), Conflict)
            assert check_routes(topology, routes) == []
            seen["turned back" if isinstance(at_once, str) else "at once"] += 1
    assert seen["none"] > 5
    assert seen["turned back"] > 5
    assert seen["at once"] > 300


@pytest.mark.parametrize("name", SELECTIONS)
def test_the_same_options_give_the_same_paths(name):
    for topology in some_fabrics():
        turns = ROUTINGS["dl"](topology)
        one, other = (select_paths(topology, turns, options(name)) for _ in range(2))
        assert np.array_equal(one.start, other.start)
        assert np.array_equal(one.hop, other.hop)


@pytest.mark.parametrize("routing", ROUTINGS)
def test_looking_at_loads_lowers_the_greatest_one(routing):
    """On the average of many fabrics; on one it need not."""
    most = defaultdict(list)
    for topology in random_fabrics()[::10]:
        turns = ROUTINGS[routing](topology)
        for name in SELECTIONS:
            most[name].append(channel_load(topology, routes_of(topology, turns, name)).max(initial=0))
    mean = {name: np.mean(loads) for name, loads in most.items()}
    assert mean["sancho"] < mean["random"] < 1.1 * mean["low_port"]
    assert mean["high_physical"] < mean["low_port"]
    assert mean["balanced"] < mean["low_port"]
