"""Which of the shortest legal paths is taken, on fabrics small enough to see it."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from testbed.base.errors import InputError
from testbed.base.model import AllowedTurns, Routes
from testbed.fabric.routing import selection
from testbed.fabric.routing.channel_lookup import explicit_routes
from testbed.fabric.routing.relation import as_source_trees
from testbed.fabric.routing.selection import SelectionOptions, select_paths
from testbed.fabric.routing.turns import all_turns, allow, graph_of
from testbed.fabric.routing.updown import upward_channels
from tests.fabrics import fabric_of_pairs, plan_of

SELECTIONS = ("balanced", "random", "low_port", "sancho", "high_virtual", "high_physical", "tree")


def options(name, **others):
    return SelectionOptions(name, seed=1 if name == "random" else None, **others)


def channels_by_name(topology):
    """Such as (0, 1): channels in order, first of them on the first parallel link."""
    found: dict[tuple[int, int], list[int]] = {}
    ends = zip(topology.channel_source.tolist(), topology.channel_target.tolist(), strict=True)
    for channel, pair in enumerate(ends):
        found.setdefault(pair, []).append(channel)
    return found


def path_of(topology, paths, source, end):
    ends = np.unique(topology.host_switch).tolist()
    pair = ends.index(source) * len(ends) + ends.index(end)
    return tuple(paths.hop[paths.start[pair] : paths.start[pair + 1]].tolist())


def turns_of(topology, forbidden=lambda before, after: False):
    before, after = all_turns(topology)
    allowed = [not forbidden(*turn) for turn in zip(before.tolist(), after.tolist(), strict=True)]
    return allow(topology, np.array(allowed, dtype=bool), before, after)


def two_ways():
    """From 0 to 3 over 1, with two links on the first hop, or over 2, with three links on the second: five paths."""
    return fabric_of_pairs([(0, 1)] * 2 + [(0, 2)] + [(1, 3)] + [(2, 3)] * 3, [1, 0, 0, 1])


def problems_of(**routing):
    with pytest.raises(InputError) as caught:
        plan_of("random", {"kind": "updown", **routing}, switches=8, degree=3, seed=1)
    return [str(problem).removeprefix("test.yaml: ") for problem in caught.value.problems]


def test_a_random_selection_wants_a_seed():
    assert problems_of(selection="random") == ["routing.seed: is required by selection: random, such as seed: 1"]


def test_options_without_effect_are_named_all_at_once():
    assert problems_of(selection="low_port", seed=3, candidates=7) == [
        "routing.seed: has no effect with selection: low_port; remove it or set selection: random",
        "routing.candidates: has no effect with selection: low_port; remove it or set selection: sancho, "
        "high_virtual or high_physical",
    ]
    assert len(problems_of(selection="sancho", seed=3)) == 1
    assert len(problems_of(selection="random", seed=3, candidates=7)) == 1


def test_options_out_of_range_and_a_misspelt_selection_are_named():
    assert problems_of(selection="random", seed=-1) == ["routing.seed: should be 0 or more, not -1"]
    assert problems_of(selection="random", seed="x") == ['routing.seed: should be a whole number, not "x"']
    assert problems_of(selection="sancho", candidates=0) == ["routing.candidates: should be 1 or more, not 0"]
    assert problems_of(selection="sancho", candidates=1025) == ["routing.candidates: should be 1024 or less, not 1025"]
    (problem,) = problems_of(selection="sanch")
    assert problem.endswith('Did you mean "sancho"?')


def test_candidates_beyond_memory_are_refused_with_what_fits(monkeypatch):
    topology = two_ways()
    monkeypatch.setattr(selection, "_MAX_CANDIDATE_HOPS", 10)
    with pytest.raises(InputError) as caught:
        select_paths(topology, turns_of(topology), options("sancho"))
    assert str(caught.value) == (
        "routing.candidates: up to 16 paths of a pair have 20 hops, over the limit of 10; set candidates: 2"
    )
    select_paths(topology, turns_of(topology), options("sancho", candidates=2))
    monkeypatch.setattr(selection, "_MAX_CANDIDATE_HOPS", 3)
    with pytest.raises(InputError, match="set selection: balanced"):
        select_paths(topology, turns_of(topology), options("sancho"))


@pytest.mark.parametrize("name", SELECTIONS)
def test_a_pair_without_legal_path_is_named(name):
    topology = fabric_of_pairs([(0, 1), (1, 2)], [1, 1, 1])
    turns = turns_of(topology, lambda before, after: topology.channel_target[after] == 2)
    with pytest.raises(InputError, match="leaves no legal path from s1 to s3"):
        select_paths(topology, turns, options(name))


@pytest.mark.parametrize("name", SELECTIONS)
@pytest.mark.parametrize("hosts_on", [[0], [3]])
def test_one_switch_has_no_paths(name, hosts_on):
    topology = fabric_of_pairs([], hosts_on)
    paths = select_paths(topology, turns_of(topology), options(name))
    assert paths.start.tolist() == [0] * (1 + sum(hosts_on) // 3)
    assert len(paths.hop) == 0


def test_low_port_takes_the_lowest_port_at_every_switch():
    topology = two_ways()
    names = channels_by_name(topology)
    paths = select_paths(topology, turns_of(topology), options("low_port"))
    assert path_of(topology, paths, 0, 3) == (names[0, 1][0], names[1, 3][0])
    first_is_dead = turns_of(topology, lambda before, _: before == names[0, 1][0])
    paths = select_paths(topology, first_is_dead, options("low_port"))
    assert path_of(topology, paths, 0, 3) == (names[0, 1][1], names[1, 3][0])
    no_way_by_1 = turns_of(topology, lambda before, _: topology.channel_target[before] == 1)
    paths = select_paths(topology, no_way_by_1, options("low_port"))
    assert path_of(topology, paths, 0, 3) == (names[0, 2][0], names[2, 3][0])


def test_low_port_begins_in_the_highest_layer():
    topology = fabric_of_pairs([(0, 1)] * 2, [1, 1])
    none = np.zeros(0, dtype=np.int32)
    paths = select_paths(topology, graph_of(12, none, none, np.ones(12, dtype=bool)), options("low_port"))
    assert path_of(topology, paths, 0, 1) == (8 + channels_by_name(topology)[0, 1][0],)


def test_random_takes_all_shortest_paths_equally_often():
    topology = two_ways()
    turns = turns_of(topology)
    draws = 3000
    seen = Counter(
        path_of(topology, select_paths(topology, turns, SelectionOptions("random", seed)), 0, 3)
        for seed in range(draws)
    )
    assert len(seen) == 5
    # Four standard deviations; were next hops drawn instead of paths, those over switch 2 would have 1/9 each.
    assert all(abs(times - draws / 5) < 4 * np.sqrt(draws * 0.2 * 0.8) for times in seen.values())


def test_random_draws_differ_by_seed_and_by_pair():
    pairs = [(0, 1), (0, 2), (0, 3), (0, 4), (1, 5), (2, 5), (3, 5), (4, 5)]
    topology = fabric_of_pairs(pairs * 4, [1, 0, 0, 0, 0, 1])
    turns = turns_of(topology)
    taken = [select_paths(topology, turns, SelectionOptions("random", seed)).hop.tolist() for seed in (1, 1, 2)]
    assert taken[0] == taken[1] != taken[2]
    forth, back = np.array(taken[0]).reshape(2, 2)
    assert forth.tolist() != (back[::-1] ^ 1).tolist()


def test_deleting_paths_through_the_fullest_channel_spreads_them():
    # Pairs 0→5 and 1→5 can all go over 2; 0→5 over 3 as well, 1→5 over 4 as well.
    topology = fabric_of_pairs([(0, 2), (1, 2), (2, 5), (0, 3), (3, 5), (1, 4), (4, 5)], [1, 1, 0, 0, 0, 1])
    paths = select_paths(topology, turns_of(topology), options("sancho"))
    middle = {int(topology.channel_target[path_of(topology, paths, source, 5)[0]]) for source in (0, 1)}
    assert len(middle) == 2


def test_a_pair_of_many_hosts_weighs_more():
    # Two pairs share the links over 2, but only one of them has another way; that with ten hosts takes it.
    pairs = [(0, 2), (1, 2), (2, 5), (0, 3), (3, 5)]
    topology = fabric_of_pairs(pairs, [10, 1, 0, 0, 0, 1])
    for name in ("sancho", "balanced"):
        paths = select_paths(topology, turns_of(topology), options(name))
        assert topology.channel_target[path_of(topology, paths, 0, 5)[0]] == 3


def test_sancho_and_high_physical_add_the_layers_of_a_channel_up():
    # Paths from 0 and 1 to 2 meet on two links from 3 to 2, in different layers; only that from 1 has a choice.
    topology = fabric_of_pairs([(0, 3), (1, 3), (2, 3), (2, 3)], [3, 1, 5, 0])
    names = channels_by_name(topology)
    layer = len(topology.channel_source)
    (from_0,), (from_1,), (to_0,), (to_1,) = names[0, 3], names[1, 3], names[3, 0], names[3, 1]
    from_2, (one, other) = names[2, 3][0], names[3, 2]
    turns = [
        (from_0, other), (from_1, layer + one), (from_1, layer + other),
        (from_2, to_0), (from_2, to_1), (from_0, to_1), (from_1, to_0),
    ]  # fmt: skip
    before, after = np.array(turns, dtype=np.int32).T
    layered = graph_of(2 * layer, before, after, np.arange(2 * layer) < layer)
    last = {name: path_of(topology, select_paths(topology, layered, options(name)), 1, 2)[1] for name in SELECTIONS}
    assert last["high_physical"] == layer + one
    assert last["sancho"] == layer + one
    assert last["high_virtual"] == layer + other  # both are free in its layer; the first is deleted


@pytest.mark.parametrize("name", ["sancho", "high_virtual", "high_physical"])
def test_one_candidate_is_the_path_of_lowest_channels(name):
    topology = two_ways()
    names = channels_by_name(topology)
    paths = select_paths(topology, turns_of(topology), options(name, candidates=1))
    assert path_of(topology, paths, 0, 3) == (names[0, 1][0], names[1, 3][0])


def misleading(with_other_ways=True):
    """Up is toward 0. From 0, the two links to 1 and to 2 open different ways onward.

    3 is reached from 1 if that is entered by its second link, or from 2 by its first; 4 from 2 by its second. 5 and 6
    make the first link to 1 look better. So from 0 the second links must be taken, both of them.
    """
    pairs = [(0, 1), (0, 1), (0, 2), (0, 2), (1, 3), (2, 4), (1, 5), (1, 6)]
    pairs += [(2, 3), (0, 5), (0, 6)] if with_other_ways else []
    topology = fabric_of_pairs(pairs, [1] * 7)
    names = channels_by_name(topology)
    (c, d), (m, n) = names[0, 1], names[0, 2]
    onward = {c: [(1, 5), (1, 6)], d: [(1, 3)], m: [(2, 3)], n: [(2, 4)]}
    allowed = {(before, names[pair][0]) for before, pairs in onward.items() for pair in pairs if pair in names}
    up = upward_channels(topology)
    turns = turns_of(topology, lambda before, after: not up[before] and (before, after) not in allowed)
    return topology, turns, names


def test_a_tree_is_found_behind_a_dead_end():
    topology, turns, names = misleading()
    paths = select_paths(topology, turns, options("tree"))
    trees = as_source_trees(topology, explicit_routes(topology, paths, turns))
    (_, d), (_, n) = names[0, 1], names[0, 2]
    assert isinstance(trees, Routes)
    assert trees.tree_channel[0].tolist() == [
        -1, d, n, names[1, 3][0], names[2, 4][0], names[0, 5][0], names[0, 6][0],
    ]  # fmt: skip


def test_a_search_that_turns_back_too_often_says_that_it_gave_up(monkeypatch):
    topology, turns, _ = misleading()
    monkeypatch.setattr(selection, "_PATIENCE", 0)
    with pytest.raises(InputError, match=r"no tree .* from s1 to all switches was found in 0 attempts: s4 stays cut"):
        select_paths(topology, turns, options("tree"))


def test_a_source_without_a_tree_is_named_with_one_cut_off():
    topology, turns, _ = misleading(with_other_ways=False)
    select_paths(topology, turns, options("balanced"))
    with pytest.raises(InputError) as caught:
        select_paths(topology, turns, options("tree"))
    assert str(caught.value) == (
        "routing.selection: no tree of legal paths from s1 to all switches exists: s7 stays cut off; use another "
        "selection, such as balanced, or kind: updown, which always has one"
    )


def test_a_tree_avoids_loaded_channels_if_paths_stay_as_short():
    pairs = [(0, 1), (0, 2), (1, 3), (2, 3), (0, 4), (0, 5)]
    topology = fabric_of_pairs(pairs, [0, 0, 0, 1, 1, 1])
    up = upward_channels(topology)
    turns = turns_of(topology, lambda before, after: not up[before] and up[after])
    paths = select_paths(topology, turns, options("tree"))
    first = {int(topology.channel_target[path_of(topology, paths, source, 3)[1]]) for source in (4, 5)}
    assert first == {1, 2}


def test_with_fixed_assignment_a_tree_of_sources_fits_any_fabric():
    parameters = {"switches": 12, "degree": 3, "seed": 2}
    plan = plan_of("random", {"kind": "updown", "selection": "tree"}, **parameters)
    assert plan.violations == ()
    assert isinstance(plan.routes.allowed, AllowedTurns)
