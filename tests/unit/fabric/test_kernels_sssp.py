"""Balanced trees of fewest hops against walking every path and counting, on graphs with switches without hosts."""

from __future__ import annotations

import random

import networkx as nx
import numpy as np
import pytest

from testbed.fabric.kernels.sssp import shortest_trees


def by_walking(graph, channels, ends, hosts, *, balanced):
    """(E, S) as the kernel's; ties are broken by the order of the channels."""
    load = dict.fromkeys(channels, 0)
    trees = []
    for end, own in zip(ends, hosts, strict=True):
        hops = nx.single_source_shortest_path_length(graph, end)
        cost, chosen = {end: 0}, {}
        for switch in sorted(hops, key=hops.__getitem__):
            if switch == end:
                continue
            nearer = [channel for channel in channels if channel[0] == switch and hops[channel[1]] == hops[switch] - 1]
            chosen[switch] = min(nearer, key=lambda channel: cost[channel[1]] + load[channel])
            cost[switch] = cost[chosen[switch][1]] + load[chosen[switch]]
        trees.append([channels.index(chosen[switch]) if switch in chosen else -1 for switch in sorted(graph)])
        for source, senders in zip(ends, hosts, strict=True):
            at = source
            while at != end and at in chosen:
                load[chosen[at]] += senders * own if balanced else 0
                at = chosen[at][1]
    return trees


@pytest.mark.parametrize("balanced", [True, False])
@pytest.mark.parametrize("seed", range(6))
def test_trees_share_the_load_of_the_pairs_that_cross_a_channel(seed, balanced):
    draw = random.Random(seed)
    graph = nx.gnm_random_graph(9, 16, seed=seed)  # not always connected
    channels = [way for one, other in graph.edges for way in ((one, other), (other, one))]
    ends = sorted(draw.sample(range(9), 6))
    hosts = [draw.randint(1, 4) for _ in ends]
    side = np.array(channels, dtype=np.int32)

    def by_switch(of):
        return np.searchsorted(np.sort(of), np.arange(10)), np.argsort(of, kind="stable").astype(np.int32)

    leaving_start, leaving = by_switch(side[:, 0])
    arriving_start, arriving = by_switch(side[:, 1])
    found = shortest_trees(
        np.array(ends, dtype=np.int32), np.array(hosts, dtype=np.int32), side[:, 0].copy(), side[:, 1].copy(),
        leaving_start, leaving, arriving_start, arriving, balanced,
    )  # fmt: skip
    assert found.tolist() == by_walking(graph, channels, ends, hosts, balanced=balanced)
