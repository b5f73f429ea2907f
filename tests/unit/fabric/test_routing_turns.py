from __future__ import annotations

import itertools
import random

import networkx as nx
import numpy as np
import pytest

from testbed.base.errors import InputError
from testbed.base.model import AllowedTurns
from testbed.fabric.kernels import segments
from testbed.fabric.kernels.cycles import on_cycles
from testbed.fabric.routing import ROUTINGS
from testbed.fabric.routing.channel_lookup import leaving_channels
from testbed.fabric.routing.lturn import LturnOptions, left_first_turns, route_lturn
from testbed.fabric.routing.paths import channel_load, hops
from testbed.fabric.routing.segment_based import SrOptions, route_sr, segment_turns
from testbed.fabric.routing.stp import spanning_tree
from testbed.fabric.routing.tbtp import TbtpOptions, route_tbtp, tree_based_turns
from testbed.fabric.routing.turns import all_turns, allow, breadth_first_levels, graph_of, prohibited_turns
from testbed.fabric.routing.updown import UpDownOptions, route_updown, upward_channels
from testbed.fabric.topologies.faults import Faults, apply_faults
from testbed.fabric.verify.deadlock import check_routes
from testbed.planning import make_plan
from tests.fabrics import fabric_of_pairs, random_fabrics, scenario_of, topology_of

RING = [(0, 1), (1, 2), (2, 3), (3, 0)]


def one_host_each(pairs):
    return fabric_of_pairs(pairs, [1] * (max(map(max, pairs)) + 1))


def complete(switches):
    return one_host_each(list(itertools.combinations(range(switches), 2)))


def forbidden(topology, turns):
    """Names of the channels of each prohibited turn."""
    allowed = set(pairs_of(turns))
    turn = zip(*all_turns(topology), strict=True)
    return {tuple(map(topology.channel_name, pair)) for pair in turn if pair not in allowed}


def pairs_of(turns):
    before = np.repeat(np.arange(len(turns.start) - 1), np.diff(turns.start))
    return list(zip(before.tolist(), turns.following.tolist(), strict=True))


def paths_of(paths):
    return [paths.hop[low:high].tolist() for low, high in itertools.pairwise(paths.start)]


# --- up*/down* -------------------------------------------------------------------------------------------------------


def test_up_is_nearer_to_the_root_then_the_lower_number():
    topology = one_host_each([(0, 1), (0, 2), (1, 2), (2, 3)])
    up = {topology.channel_name(channel) for channel in np.flatnonzero(upward_channels(topology))}
    assert up == {"s2→s1", "s3→s1", "s3→s2", "s4→s3"}
    up = {topology.channel_name(channel) for channel in np.flatnonzero(upward_channels(topology, 3))}
    assert up == {"s3→s4", "s1→s3", "s2→s3", "s2→s1"}


def test_a_ring_has_its_forbidden_turn_opposite_the_root():
    topology = one_host_each(RING)
    assert forbidden(topology, route_updown(topology, UpDownOptions()).allowed) == {
        ("s2→s3", "s3→s4"),
        ("s4→s3", "s3→s2"),
    }
    assert forbidden(topology, route_updown(topology, UpDownOptions(root="s2")).allowed) == {
        ("s1→s4", "s4→s3"),
        ("s3→s4", "s4→s1"),
    }


FABRICS = (
    ("random", {"switches": 30, "degree": 4, "seed": 3}),
    ("random", {"switches": 16, "degree": 3, "seed": 8, "hosts_per_switch": 2}),
    ("torus", {"sizes": (4, 3)}),
    ("tree", {"switches": 9, "arity": 2}),
    ("ring", {"switches": 7, "parallel_links": 2}),
)


@pytest.mark.parametrize("root", [0, 5])
@pytest.mark.parametrize(("kind", "parameters"), FABRICS)
def test_next_hops_by_destination_go_down_if_they_can_else_up(kind, parameters, root):
    topology = topology_of(kind, **parameters)
    up = upward_channels(topology, root)
    routes = route_updown(topology, UpDownOptions(root=topology.switch_name(root), next_hop="destination"))
    only_down, rising = nx.MultiDiGraph(), nx.MultiDiGraph()
    for channel, (source, target) in enumerate(zip(topology.channel_source, topology.channel_target, strict=True)):
        (rising if up[channel] else only_down).add_edge(int(source), int(target))
    for end in range(topology.host_count):
        to = int(topology.host_switch[end])
        below = nx.single_source_shortest_path_length(only_down.reverse(), to)
        fewest = dict(below)
        for switch in reversed(list(nx.topological_sort(rising))):  # the highest first
            if switch not in fewest:
                fewest[switch] = 1 + min(fewest[above] for above in rising.successors(switch))
        for source in range(topology.host_count):
            path = hops(topology, routes, source, end)
            turned = [up[channel] for channel in path]
            assert turned == sorted(turned, reverse=True), "it goes up after it has gone down"
            assert len(path) == fewest[int(topology.host_switch[source])]


def test_next_hops_by_destination_fit_entries_and_take_turns():
    text = "topology: {kind: random, switches: 20, degree: 4, seed: 1}\nassignment: {kind: static}\n"
    with pytest.raises(InputError, match=r'or "updown" with next_hop: destination'):
        make_plan(scenario_of(text + "routing: {kind: updown}"))
    plan = make_plan(scenario_of(text + "routing: {kind: updown, next_hop: destination}"))
    assert plan.violations == ()
    topology = topology_of("ring", switches=5, parallel_links=2)
    load = channel_load(topology, route_updown(topology, UpDownOptions(next_hop="destination")))
    trunks: dict[tuple[int, int], list[float]] = {}
    for channel, ends in enumerate(zip(topology.channel_source, topology.channel_target, strict=True)):
        trunks.setdefault(ends, []).append(load[channel])
    assert all(abs(one - other) <= 2 for one, other in trunks.values())
    assert all(min(both) > 0 for both in trunks.values() if sum(both) > 2)


def test_a_selection_beside_next_hops_by_destination_is_told():
    with pytest.raises(InputError) as error:
        route_updown(topology_of("mesh", sizes=(3, 3)), UpDownOptions(next_hop="destination", selection="low_port"))
    assert str(error.value) == (
        "routing.selection: low_port chooses among paths by port of arrival; leave it out, or set next_hop: arrival"
    )


@pytest.mark.parametrize("name", ["updown", "tbtp", "lturn", "stp"])
def test_an_unknown_root_is_told_with_the_name_that_was_meant(name):
    options = ROUTINGS[name].options(root="s99")
    with pytest.raises(InputError) as error:
        ROUTINGS[name].route(topology_of("mesh", sizes=(3, 3)), options)
    assert str(error.value) == 'routing.root: there is no switch "s99". Did you mean "s9"?'


def test_an_unknown_start_of_segments_is_told():
    with pytest.raises(InputError) as error:
        route_sr(topology_of("mesh", sizes=(3, 3)), SrOptions(start="spine"))
    assert str(error.value) == 'routing.start: there is no switch "spine".'


def test_a_root_may_have_the_name_of_the_fabrics_file():
    topology = topology_of("graph", switches=("left", "right", "top"), links=(("left", "right"), ("right", "top")))
    assert upward_channels(topology, 2).sum() == 2
    assert route_updown(topology, UpDownOptions(root="top")).allowed is not None


# --- tree-based turn prohibition -------------------------------------------------------------------------------------


def slow_tree_based(topology):
    """Number of prohibited pairs of links, each round of Pellegrini's algorithm in full."""
    entering = spanning_tree(topology, 0)
    tree = {int(channel) // 2 for channel in entering if channel >= 0}
    left = set(range(topology.link_count)) - tree
    prohibited = 0

    def at(switch, links):
        return [link for link in links if switch in topology.links[link]]

    def surplus(switch):
        gained = {
            (other, frozenset((link, more)))
            for link in at(switch, left)
            for other in set(topology.links[link].tolist()) - {switch}
            for more in [*at(other, left), *at(other, tree)]
            if more != link
        }
        return len(gained) - loss(switch)

    def loss(switch):
        own = len(at(switch, left))
        return own * (own - 1) // 2 + own * len(at(switch, tree))

    while left:
        switch = max((s for s in range(topology.switch_count) if at(s, left)), key=lambda s: (surplus(s), -s))
        prohibited += loss(switch)
        left -= set(at(switch, left))
    return prohibited


@pytest.mark.slow
def test_the_order_of_switches_is_that_of_the_slow_algorithm():
    for topology in random_fabrics()[:20]:
        prohibited, _ = prohibited_turns(topology, tree_based_turns(topology, 0))
        assert prohibited == 2 * slow_tree_based(topology)


@pytest.mark.parametrize("switches", range(4, 13))
def test_a_complete_graph_loses_exactly_a_third_of_its_turns(switches):
    topology = complete(switches)
    prohibited, total = prohibited_turns(topology, tree_based_turns(topology, 0))
    assert 3 * prohibited == total
    assert total == switches * (switches - 1) * (switches - 2)


def test_turns_between_links_of_the_tree_are_allowed():
    topology = topology_of("torus", sizes=(4, 4))
    for root in range(0, 16, 5):
        tree = spanning_tree(topology, root)
        links = set((tree[tree >= 0] // 2).tolist())
        turns = route_tbtp(topology, TbtpOptions(root=f"s{root + 1}")).allowed
        allowed = set(pairs_of(turns))
        for before, after in zip(*(turn.tolist() for turn in all_turns(topology)), strict=True):
            assert (before, after) in allowed or not {before // 2, after // 2} <= links


# --- segments --------------------------------------------------------------------------------------------------------


def segments_of(topology, start=0):
    leaving = leaving_channels(topology)
    bridge = segments.bridges(*leaving, topology.channel_target)
    number = np.arange(topology.switch_count, dtype=np.int32)
    stages = np.zeros_like(number), number[None]
    offsets, channels, entrance = segments.find_ears(*leaving, topology.channel_target, bridge, start, *stages)
    names = [[topology.channel_name(c) for c in channels[low:high]] for low, high in itertools.pairwise(offsets)]
    return names, [topology.switch_name(switch) for switch in np.flatnonzero(entrance)]


def test_the_first_segment_is_the_shortest_cycle_then_an_ear():
    topology = one_host_each([(0, 1), (1, 2), (2, 3), (3, 0), (2, 4), (4, 3), (1, 5), (5, 6), (6, 0), (0, 2)])
    assert segments_of(topology)[0] == [
        ["s1→s2", "s2→s3", "s3→s1"],
        ["s1→s4", "s4→s3"],
        ["s3→s5", "s5→s4"],
        ["s1→s7", "s7→s6", "s6→s2"],
    ]


def test_each_part_behind_a_bridge_is_entered_at_its_end():
    topology = one_host_each([(5, 4), (4, 3), (3, 5), (2, 5), (0, 1), (1, 2), (2, 0), (4, 6)])
    assert segments_of(topology) == ([["s1→s2", "s2→s3", "s3→s1"], ["s6→s5", "s5→s4", "s4→s6"]], ["s6", "s7"])


def test_a_segment_prohibits_one_turn_both_ways_at_its_middle():
    topology = one_host_each(RING)
    assert segments_of(topology)[0] == [["s1→s4", "s4→s3", "s3→s2", "s2→s1"]]
    assert forbidden(topology, segment_turns(topology, 0)) == {("s2→s3", "s3→s4"), ("s4→s3", "s3→s2")}


def test_a_unitary_segment_prohibits_turns_at_one_end():
    topology = complete(4)  # s1 s2 s3, then s4 by two links; s3–s4 is left
    turns = forbidden(topology, segment_turns(topology, 0))
    assert turns == {
        *(("s2→s3", "s3→s1"), ("s1→s3", "s3→s2")),
        *(("s1→s4", "s4→s2"), ("s2→s4", "s4→s1")),
        *(("s4→s3", "s3→s1"), ("s1→s3", "s3→s4"), ("s4→s3", "s3→s2"), ("s2→s3", "s3→s4")),
    }


def test_unitary_segments_come_last_or_once_ends_are_visited():
    # s1 s2 s3 s4 with s1–s3 across, then s5 between s2 and s3: what it adds at s3 is later than s1–s3 or earlier.
    topology = one_host_each([(0, 1), (1, 2), (2, 3), (3, 0), (0, 2), (1, 4), (4, 2)])
    last, soon = (forbidden(topology, segment_turns(topology, 0, unitary=when)) for when in ("last", "soon"))
    assert last == soon
    turns = [segment_turns(complete(7), 0, unitary=when) for when in ("last", "soon")]
    assert prohibited_turns(complete(7), turns[0])[0] > 0
    differing = [
        topology
        for topology in random_fabrics()[:60]
        if forbidden(topology, segment_turns(topology, 0))
        != forbidden(topology, segment_turns(topology, 0, unitary="soon"))
    ]
    assert differing


@pytest.mark.parametrize("seed", range(40))
def test_early_unitary_segments_leave_no_cycle_and_every_path(seed):
    topology = random_fabrics()[5 * seed]
    turns = segment_turns(topology, 0, unitary="soon")
    assert on_cycles(turns.start, turns.following).sum() == 0
    assert check_routes(topology, route_sr(topology, SrOptions(unitary="soon"))) == []


def test_a_fabric_without_loops_has_no_prohibited_turn():
    topology = topology_of("tree", switches=13, arity=3)
    assert prohibited_turns(topology, segment_turns(topology, 0))[0] == 0


def test_two_parallel_links_are_a_segment():
    topology = one_host_each([(0, 1), (0, 1), (1, 2)])
    assert segments_of(topology)[0] == [["s1→s2", "s2→s1#1"]]
    assert forbidden(topology, segment_turns(topology, 0)) == {("s1→s2", "s2→s1#1"), ("s1→s2#1", "s2→s1")}


def test_the_shortest_segments_of_a_mesh_are_as_up_down():
    mesh = topology_of("mesh", sizes=(8, 8))
    up = upward_channels(mesh)
    before, after = all_turns(mesh)
    up_down = allow(mesh, ~(~up[before] & up[after]), before, after)
    assert forbidden(mesh, segment_turns(mesh, 0)) == forbidden(mesh, up_down)
    assert forbidden(mesh, segment_turns(mesh, 0, by_rows=True)) != forbidden(mesh, up_down)


def test_rows_of_a_mesh_lean_left_and_right_in_turn():
    mesh = topology_of("mesh", sizes=(3, 4))
    # s1 s2 s3 / s4 s5 s6 / s7 s8 s9 / s10 s11 s12
    assert forbidden(mesh, segment_turns(mesh, 0, by_rows=True)) == {
        *(("s4→s5", "s5→s2"), ("s2→s5", "s5→s4"), ("s5→s6", "s6→s3"), ("s3→s6", "s6→s5")),
        *(("s9→s8", "s8→s5"), ("s5→s8", "s8→s9"), ("s8→s7", "s7→s4"), ("s4→s7", "s7→s8")),
        *(("s10→s11", "s11→s8"), ("s8→s11", "s11→s10"), ("s11→s12", "s12→s9"), ("s9→s12", "s12→s11")),
    }
    assert {tuple(route_sr(mesh, options).paths.hop) for options in (SrOptions(), SrOptions(segments="rows"))} == {
        tuple(route_sr(mesh, SrOptions(segments="rows")).paths.hop)
    }
    at_start = route_sr(mesh, SrOptions(start="s1"))
    assert np.array_equal(at_start.paths.hop, route_sr(mesh, SrOptions(segments="shortest")).paths.hop)


@pytest.mark.parametrize("seed", range(40))
def test_rows_leave_no_cycle_and_every_path_with_dead_links(seed):
    grid = topology_of(("mesh", "torus")[seed % 2], sizes=(6, 5), parallel_links=1 + seed % 4 // 2)
    living = apply_faults(grid, Faults(percent=4 + seed / 4, seed=seed))
    turns = segment_turns(living, 0, by_rows=True)
    assert on_cycles(turns.start, turns.following).sum() == 0
    assert check_routes(living, route_sr(living, SrOptions(segments="rows"))) == []


def test_rows_are_refused_without_any_or_with_a_start():
    with pytest.raises(InputError) as caught:
        route_sr(topology_of("mesh", sizes=(3, 3, 3)), SrOptions(start="s2", segments="rows"))
    assert [str(problem) for problem in caught.value.problems] == [
        "routing.segments: rows needs a mesh or torus of two dimensions without dead switches; take segments: shortest",
        "routing.start: has no effect with segments: rows; remove it",
    ]


@pytest.mark.parametrize("size", [4, 5])
def test_loops_joined_by_a_bridge_are_acyclic_in_any_numbering(size):
    loop, other = [(0, 1), (1, 2), (2, 0)], list(itertools.combinations(range(3, 3 + size), 2))
    draw = random.Random(size)
    for _ in range(200):
        number = draw.sample(range(3 + size), 3 + size)
        pairs = [(number[a], number[b]) for a, b in [*loop, (2, 3), *other]]
        draw.shuffle(pairs)
        topology = one_host_each(pairs)
        start = topology.switch_name(draw.randrange(topology.switch_count))
        assert check_routes(topology, route_sr(topology, SrOptions(start=start))) == []


# --- backup paths ----------------------------------------------------------------------------------------------------


def shortest_without(topology, turns, source, end, links):
    """Hops of a shortest legal path that uses none of some links; None without one."""
    graph = nx.DiGraph()
    free = [channel for channel in range(len(topology.channel_source)) if channel // 2 not in links]
    graph.add_edges_from(pair for pair in pairs_of(turns) if not {pair[0] // 2, pair[1] // 2} & links)
    graph.add_edges_from(("source", c) for c in free if topology.channel_source[c] == source and turns.entry[c])
    graph.add_edges_from((c, "end") for c in free if topology.channel_target[c] == end)
    graph.add_nodes_from(("source", "end"))
    return nx.shortest_path_length(graph, "source", "end") - 1 if nx.has_path(graph, "source", "end") else None


def test_a_backup_is_the_shortest_legal_path_off_the_first():
    found = 0
    for topology in [topology_of("torus", sizes=(4, 4)), *random_fabrics()[:60:6]]:
        routes = route_sr(topology, SrOptions())
        pairs = itertools.product(routes.ends.tolist(), repeat=2)
        paths = zip(pairs, paths_of(routes.paths), paths_of(routes.backup), strict=True)
        for (source, end), first, second in list(paths)[:: topology.switch_count // 4 + 1]:
            used = {channel // 2 for channel in first}
            assert not used & {channel // 2 for channel in second}
            best = shortest_without(topology, routes.allowed, source, end, used) if source != end else None
            assert len(second) == (best or 0)
            found += bool(second)
    assert found > 300


def test_pairs_without_a_backup_are_counted_and_named_in_a_note():
    ring = one_host_each(RING)
    assert route_sr(ring, SrOptions()).notes == (
        "6 of 12 pairs of switches have no second legal path that shares no link with the first: "
        "s1→s2, s1→s4, s2→s1, s2→s4, s4→s1, s4→s2",
    )
    line = one_host_each([(0, 1), (1, 2)])
    assert route_sr(line, SrOptions()).notes[0].endswith("the first: s1→s2, s1→s3, s2→s1, s2→s3, s3→s1, s3→s2")
    longer = one_host_each([(0, 1), (1, 2), (2, 3)])
    assert route_sr(longer, SrOptions()).notes[0].endswith("the first: s1→s2, s1→s3, s1→s4, s2→s1, s2→s3, s2→s4, …")
    assert route_sr(ring, SrOptions(backup=False)).notes == ()
    assert route_sr(ring, SrOptions(backup=False)).backup is None
    twice = one_host_each([(0, 1), (0, 1)])
    assert route_sr(twice, SrOptions()).notes == ()


@pytest.mark.parametrize(("switches", "most", "squares"), [(5, 3, 80), (6, 4, 140), (7, 5, 220), (8, 6, 320)])
def test_backup_paths_share_the_links_of_a_complete_graph_evenly(switches, most, squares):
    topology = complete(switches)
    backup = route_sr(topology, SrOptions()).backup
    assert backup is not None
    load = np.bincount(backup.hop, minlength=len(topology.channel_source))
    assert load.sum() >= switches * (switches - 1)
    assert load.max() <= most  # of 8 switches 12 if the load were not looked at
    assert (load**2).sum() <= squares


# --- L-turn style ----------------------------------------------------------------------------------------------------


def test_the_reconstruction_is_called_one():
    assert "reconstruction, not verified" in ROUTINGS["lturn"].summary


def test_left_first_leaves_no_turn_that_could_be_allowed_too():
    for topology in random_fabrics()[::25]:
        before, after = all_turns(topology)
        allowed = left_first_turns(topology, 0)
        graph = nx.DiGraph()
        graph.add_nodes_from(range(len(topology.channel_source)))
        graph.add_edges_from(zip(before[allowed].tolist(), after[allowed].tolist(), strict=True))
        assert nx.is_directed_acyclic_graph(graph)
        for one, other in zip(before[~allowed].tolist(), after[~allowed].tolist(), strict=True):
            assert nx.has_path(graph, other, one)


def test_left_first_turns_allow_the_way_up_and_down_the_tree():
    for topology in random_fabrics()[::50]:
        before, after = all_turns(topology)
        tree = spanning_tree(topology, 0)
        down = set(tree[tree >= 0].tolist())
        up = {channel ^ 1 for channel in down}
        allowed = left_first_turns(topology, 0)
        for one, other, ok in zip(before.tolist(), after.tolist(), allowed.tolist(), strict=True):
            on_tree = (one in up and other in up | down) or (one in down and other in down)
            assert ok or not on_tree


def test_a_ring_of_left_first_turns_depends_on_the_root():
    topology = one_host_each(RING)
    of_root = [forbidden(topology, route_lturn(topology, LturnOptions(root=f"s{n}")).allowed) for n in (1, 3)]
    assert [len(turns) for turns in of_root] == [2, 2]
    assert of_root[0] != of_root[1]


# --- counting --------------------------------------------------------------------------------------------------------


def test_prohibited_turns_counts_ordered_turns_but_u_turns():
    topology = one_host_each(RING)
    before, after = all_turns(topology)
    everything = allow(topology, np.ones(len(before), dtype=bool), before, after)
    assert prohibited_turns(topology, everything) == (0, 8)
    assert prohibited_turns(topology, segment_turns(topology, 0)) == (2, 8)


def test_a_turn_that_one_layer_allows_is_not_prohibited():
    topology = one_host_each(RING)
    channels = len(topology.channel_source)
    before, after = all_turns(topology)
    half = before < channels // 2
    layered = graph_of(
        2 * channels,
        np.concatenate([before[half] + channels, before[:2] + channels]),
        np.concatenate([after[half] + channels, after[:2]]),
        np.ones(2 * channels, dtype=bool),
    )
    assert prohibited_turns(topology, layered) == (8 - int(half.sum()), 8)
    nothing = AllowedTurns(np.zeros(channels + 1, np.int64), np.zeros(0, np.int32), np.ones(channels, bool))
    assert prohibited_turns(topology, nothing) == (8, 8)


def test_levels_of_another_root_are_hops_from_it():
    assert breadth_first_levels(one_host_each(RING), 2).tolist() == [2, 1, 0, 1]
