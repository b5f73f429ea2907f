"""Segments under change: whatever goes and comes, no cycle is left, every pair has a path, and what can stay stays."""

from __future__ import annotations

import random
from itertools import pairwise

import numpy as np
import pytest

from testbed.fabric.routing.segment_based import segment_turns
from testbed.fabric.routing.segment_changes import Segmentation, after_change, list_allowed_turns, segmentation
from testbed.fabric.routing.segment_tables import SegmentHop, connected_ends, first_step, new_tables, next_step
from testbed.fabric.verify.deadlock import shortest_cycle
from tests.fabrics import random_fabrics, topology_of


def fabrics(part, of):
    return [topology for topology in random_fabrics()[part::of] if topology.link_count > 2]


def all_of(topology):
    return np.ones(topology.link_count, dtype=bool)


@pytest.mark.parametrize("unitary", ["last", "soon"])
def test_segments_as_a_list_prohibit_the_turns_of_the_routing(unitary):
    for topology in fabrics(0, 5):
        turns = list_allowed_turns(topology, segmentation(topology, 0, unitary), all_of(topology))
        expected = segment_turns(topology, 0, unitary=unitary)
        assert np.array_equal(turns.start, expected.start)
        assert np.array_equal(turns.following, expected.following)


def check(topology, before, now, alive):
    """No cycle of allowed turns; a legal path for each pair; the paths that could stay are the same."""
    turns = list_allowed_turns(topology, now.found, alive)
    assert shortest_cycle(turns.start, turns.following) == ()
    owner = [link for segment in now.found.segments for link in segment.links]
    assert len(owner) == len(set(owner))
    allowed = [set(turns.following[turns.start[c] : turns.start[c + 1]].tolist()) for c in range(len(turns.start) - 1)]

    def legal(path):
        return alive[[hop // 2 for hop in path]].all() and all(after in allowed[hop] for hop, after in pairwise(path))

    ends = connected_ends(topology, alive).tolist()
    known = set(before.tables.ends.tolist())
    for source in ends:
        for end in ends:
            path = now.tables.path(topology, source, end)
            at = source
            for hop in path:
                assert topology.channel_source[hop] == at
                at = int(topology.channel_target[hop])
            assert at == end
            assert legal(path)
            if source in known and end in known and legal(old := before.tables.path(topology, source, end)):
                assert path == old


@pytest.mark.parametrize("part", range(8))
def test_failures_and_repairs_leave_paths_without_a_cycle(part):
    for number, topology in enumerate(fabrics(part % 2 + 16 * (part // 2), 64)):
        draw = random.Random(number)
        step, alive = first_step(topology, 0), all_of(topology)
        for _ in range(4):
            if draw.random() < 0.5:
                links = draw.sample(range(topology.link_count), draw.randint(1, 3))
            else:
                links = np.flatnonzero((topology.links == draw.randrange(topology.switch_count)).any(axis=1)).tolist()
            other = alive.copy()
            other[links] = ~other[links] if draw.random() < 0.5 else draw.random() < 0.4
            if not other.any():
                continue
            after = next_step(topology, step, other)
            check(topology, step, after, other)
            step, alive = after, other


def test_a_link_that_dies_and_returns_touches_its_segment_only():
    local = anew = 0
    for seed in (1, 2):
        topology = topology_of("random", switches=32, degree=4, seed=seed)
        whole = first_step(topology, 0)
        before = list_allowed_turns(topology, whole.found, all_of(topology))
        for link in range(0, topology.link_count, 5):
            alive = all_of(topology)
            alive[link] = False
            broken = next_step(topology, whole, alive)
            assert broken.found.segments == whole.found.segments
            local, anew = local + broken.entries, anew + broken.anew_entries
            back = list_allowed_turns(topology, next_step(topology, broken, all_of(topology)).found, all_of(topology))
            assert np.array_equal(back.following, before.following)
    assert local < 0.3 * anew


def test_new_switches_and_links_get_segments_and_others_stay():
    """A fabric of 23 switches, to which another is added that was never there, and then a link."""
    topology = topology_of("random", switches=24, degree=4, seed=3)
    ports = np.flatnonzero((topology.links == 23).any(axis=1)).tolist()
    alive = all_of(topology)
    spare = min(set(range(topology.link_count)) - set(ports))
    alive[[*ports, spare]] = False
    nothing = Segmentation(0, ())
    found = after_change(topology, nothing, alive)
    tables = new_tables(topology, list_allowed_turns(topology, found, alive), connected_ends(topology, alive))
    step = SegmentHop(found, tables, 0, 0, 0, 0, tables)
    check(topology, step, step, alive)
    for links in (ports, [spare]):
        alive = alive.copy()
        alive[links] = True
        after = next_step(topology, step, alive)
        check(topology, step, after, alive)
        assert after.found.segments[: after.found.stayed] == step.found.segments
        new = after.found.segments[after.found.stayed :]
        assert sorted(link for segment in new for link in segment.links) == sorted(links)
        assert after.anew_entries > 2 * after.entries
        step = after
    assert 23 in step.tables.ends


def test_a_fabric_that_falls_apart_goes_on_in_its_larger_part():
    topology = topology_of("mesh", sizes=(6,))
    alive = all_of(topology)
    alive[3] = False
    step = next_step(topology, first_step(topology, 0), alive)
    assert step.tables.ends.tolist() == [0, 1, 2, 3]
    check(topology, first_step(topology, 0), step, alive)
