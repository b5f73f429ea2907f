"""Sets of next hops on small random graphs, against every way that a frame can go, tried one by one."""

from __future__ import annotations

import random

import networkx as nx
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from testbed.base.model import NextHops
from testbed.fabric.kernels.forwarding import DELIVER, NEVER
from testbed.fabric.routing.channel_lookup import host_switches
from testbed.fabric.verify.next_hop_choices import check_choices, follow_all
from tests.fabrics import topology_of


def drawn(seed: int):
    """A small fabric with some hosts, and any sets of next hops in one to three classes; about half deliver all."""
    rng = random.Random(seed)
    switches = rng.randint(2, 6)
    names = [f"n{number}" for number in range(switches)]
    links = [[names[rng.randrange(number)], names[number]] for number in range(1, switches)]
    links += [rng.sample(names, 2) for _ in range(rng.randint(0, 3))]
    hosts = dict.fromkeys(rng.sample(names, rng.randint(2, switches)), 1)
    topology = topology_of("graph", switches=tuple(names), links=tuple(map(tuple, links)), hosts=hosts)
    ends = host_switches(topology)
    classes = rng.randint(1, 3)
    layer = np.array([rng.randint(0, 1) for _ in range(classes)], dtype=np.int32)
    vlan = np.arange(classes, dtype=np.int32)
    channels = len(topology.channel_source)
    leaving = [np.flatnonzero(topology.channel_source == switch).tolist() for switch in range(switches)]
    graph = nx.Graph(topology.links.tolist())
    sane, changes = rng.random() < 0.6, rng.random() < 0.3
    sets: dict[tuple[int, ...], int] = {}
    table = np.full((len(ends), classes * switches), NEVER, dtype=np.int32)
    for key, goal in enumerate(ends.tolist()):
        near = nx.single_source_shortest_path_length(graph, goal)
        for state in range(classes * switches):
            kind, at = divmod(state, switches)
            if at == goal:
                table[key, state] = DELIVER
                continue
            nearer = [c for c in leaving[at] if near[int(topology.channel_target[c])] < near[at]]
            choice = nearer if sane else leaving[at]
            if not sane and rng.random() < 0.2:
                continue
            some = rng.sample(choice, rng.randint(1, min(2, len(choice))))
            after = rng.randrange(classes) if changes else kind
            table[key, state] = sets.setdefault(tuple(sorted(after * channels + c for c in some)), len(sets))
    start = np.concatenate([[0], np.cumsum([len(one) for one in sets])]).astype(np.int64)
    hop = np.array([one for group in sets for one in group], dtype=np.int32)
    none = np.full(len(ends), -1, dtype=np.int32)
    return topology, NextHops(ends.astype(np.int32), none, vlan, layer, np.ascontiguousarray(table.T), start, hop)


def every_way(topology, hops: NextHops):
    """Delivered, looping and lost pairs and (channel, next channel) of all ways, one hop after the other."""
    switches, channels = topology.switch_count, len(topology.channel_source)
    taken: set[tuple[int, int]] = set()
    fine, looping, lost = set[tuple[int, int]](), set[tuple[int, int]](), set[tuple[int, int]]()

    def go(key, state, came_by, seen):
        number = int(hops.table[state, key])
        if number == DELIVER:
            return {"delivered"}
        if number == NEVER:
            return {"lost"}
        found = {"loop"} if state in seen else set()
        for hop in hops.hop[hops.start[number] : hops.start[number + 1]].tolist():
            kind, channel = divmod(hop, channels)
            virtual = int(hops.class_layer[kind]) * channels + channel
            if came_by is not None:
                taken.add((came_by, virtual))
            if state in seen:
                continue
            found |= go(key, kind * switches + int(topology.channel_target[channel]), virtual, {*seen, state})
        return found

    for key, goal in enumerate(hops.goal.tolist()):
        for at in host_switches(topology).tolist():
            if at == goal:
                continue
            states = [kind * switches + at for kind in range(len(hops.class_vlan))]
            begun = [state for state in states if hops.table[state, key] != NEVER]
            met = set().union(*(go(key, state, None, set()) for state in begun)) if begun else {"lost"}
            pair = (at, goal)
            (looping if "loop" in met else lost if "lost" in met else fine).add(pair)
    return fine, looping, lost, taken


@given(st.integers(0, 2**32))
def test_a_proof_over_next_hops_is_that_of_every_way_there_is(seed):
    topology, hops = drawn(seed)
    fine, looping, lost, taken = every_way(topology, hops)
    proof = check_choices(topology, hops)
    assert (proof.pairs, proof.delivered, proof.looping) == (len(fine | looping | lost), len(fine), len(looping))
    assert {tuple(pair) for pair in follow_all(topology, hops).dependencies().tolist()} == taken
    graph = nx.DiGraph(list(taken))
    assert proof.deadlock_free == nx.is_directed_acyclic_graph(graph)
    names = {violation.invariant: violation for violation in proof.violations}
    assert ("delivery" in names, "loop" in names) == (bool(lost), bool(looping))
    if not proof.deadlock_free:
        shortest = min(len(cycle) for cycle in nx.simple_cycles(graph))
        assert len(names["deadlock"].witness) == shortest


def test_random_forwarding_is_of_every_kind():
    found = [check_choices(*drawn(seed)) for seed in range(300)]
    kinds = {(bool(p.looping), p.delivered == p.pairs, p.deadlock_free) for p in found}
    assert {(False, True, True), (False, True, False), (True, False, False)} <= kinds
