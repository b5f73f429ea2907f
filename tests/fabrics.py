"""Fabrics for tests: plans from scenario texts, and Hypothesis strategies for topologies with legal routings."""

from __future__ import annotations

import math
import random
from functools import cache
from typing import Any

import networkx as nx
import numpy as np
import yaml
from hypothesis import strategies as st
from networkx.generators.atlas import graph_atlas_g

from testbed.base.model import Topology, VlanPlan
from testbed.fabric.power.select import subfabric_without
from testbed.fabric.routing import ROUTINGS
from testbed.fabric.topologies import TOPOLOGIES
from testbed.fabric.topologies.build_topology import count_pairs, make_topology, on_circle
from testbed.fabric.transition import successor
from testbed.fabric.verify import verify
from testbed.fabric.vlans.fixed import assign_fixed
from testbed.planning import Plan, make_plan
from testbed.planning.proof import digest_of
from testbed.scenario import Scenario, parse_scenario

MAX_HOSTS = 24
MAX_SWITCHES = 40


def scenario_of(blocks: dict[str, Any] | str) -> Scenario:
    text = blocks if isinstance(blocks, str) else yaml.safe_dump(blocks)
    return parse_scenario(text, "test.yaml")


def plan_of(kind: str, routing: dict[str, Any] | None = None, **parameters: Any) -> Plan:
    return make_plan(scenario_of({"topology": {"kind": kind, **parameters}, "routing": routing or {}}))


def topology_of(kind: str, **parameters: Any) -> Topology:
    entry = TOPOLOGIES[kind]
    return entry.build(entry.spec(**parameters))


def graph_of(topology: Topology) -> nx.Graph:
    graph = nx.Graph()
    graph.add_nodes_from(range(topology.switch_count))
    graph.add_edges_from(topology.links.tolist())
    return graph


def longest_ring(blocks: dict[str, Any]) -> int:
    topology = blocks["topology"]
    if topology["kind"] == "torus":
        return int(max(topology["sizes"]))
    return int(topology["switches"]) if topology["kind"] == "ring" else 0


# The largest ring that shortest paths on single links leave without a cyclic dependency, by tie rule.
SHORT_RING = {"auto": 4, "alternating": 4, "opposite": 4, "positive": 3}
# The largest ring in which the plane rule `dest` gives a source one tree.
SHORT_FOR_DEST = SHORT_RING | {"opposite": 3}


@st.composite
def grids(draw: st.DrawFn) -> dict[str, Any]:
    """A mesh, torus, hypercube or ring with routing options that leave no cycle and fit the fixed assignment."""
    kind = draw(st.sampled_from(["mesh", "torus", "torus", "ring", "hypercube"]))
    topology: dict[str, Any] = {"kind": kind}
    if kind == "ring":
        topology["switches"] = switches = draw(st.integers(3, 9))
    elif kind == "hypercube":
        topology["dimensions"] = draw(st.integers(1, 4))
        switches = 2 ** topology["dimensions"]
    else:
        fitting = st.lists(st.integers(1, 6), min_size=1, max_size=3).filter(lambda s: math.prod(s) <= MAX_HOSTS)
        topology["sizes"] = draw(fitting)
        switches = math.prod(topology["sizes"])
    topology["hosts_per_switch"] = draw(st.integers(1, min(3, MAX_HOSTS // switches)))
    topology["parallel_links"] = draw(st.integers(1, 4))
    blocks = {"topology": topology, "routing": {"kind": "dor"}}
    blocks["routing"] |= draw(dor_options(longest_ring(blocks), topology["parallel_links"]))
    return blocks


def dor_options(ring: int, parallel_links: int) -> st.SearchStrategy[dict[str, str]]:
    """Every combination of options that is legal on rings of this length; up to length 2 there is no ring."""
    legal = []
    for ties, short in SHORT_RING.items():
        for planes in ("auto", "none", "link", "node", "dest"):
            for way in ("auto", "shortest", "no_transit", "two_trees"):
                told_apart = planes in ("link", "node", "dest")
                if ring > 2 and (told_apart or way == "two_trees") and parallel_links < 2:
                    continue
                if told_apart and way == "two_trees":
                    continue
                if planes == "dest" and ring > SHORT_FOR_DEST[ties]:
                    continue
                broken = told_apart or (planes == "auto" and parallel_links > 1)
                if way == "shortest" and ring > short and not broken:
                    continue
                legal.append({"ties": ties, "planes": planes, "ring": way})
    return st.sampled_from(legal)


@st.composite
def others(draw: st.DrawFn) -> dict[str, Any]:
    """Any topology that is no grid, with the only routing it has."""
    small = st.integers(1, 3)
    kind = draw(st.sampled_from(["fat_tree", "fat_tree_14", "myrinet_clos", "tree", "m_tree", "complete", "flat"]))
    topology: dict[str, Any] = {"kind": kind}
    if kind == "fat_tree":
        topology |= {"up": draw(small), "down": draw(small), "rounds": draw(small)}
    elif kind == "myrinet_clos":
        topology |= {"leaves": draw(st.integers(1, 5)), "roots": draw(st.integers(1, 5))}
    elif kind == "tree":
        topology |= {"switches": draw(st.integers(1, 12)), "arity": draw(st.integers(1, 4))}
    elif kind == "m_tree":
        topology |= {"columns": draw(st.integers(1, 4)), "rows": draw(st.integers(1, 4))}
    elif kind == "complete":
        topology["switches"] = draw(st.integers(2, 7))
    if kind == "flat":
        return {"topology": {"kind": kind, "hosts": draw(st.integers(1, 12))}}
    hosts = "hosts_per_leaf" if kind in ("fat_tree", "fat_tree_14", "myrinet_clos") else "hosts_per_switch"
    topology[hosts] = draw(small)
    topology["parallel_links"] = draw(small)
    return {"topology": topology}


def small_enough(blocks: dict[str, Any]) -> bool:
    topology = scenario_of(blocks).topology
    return bool(topology.extent().hosts <= MAX_HOSTS and topology.extent().switches <= MAX_SWITCHES)


def fabrics() -> st.SearchStrategy[dict[str, Any]]:
    """Blocks of a scenario with any topology and a legal routing, small enough to follow every pair."""
    return st.one_of(grids(), others().filter(small_enough))


def fabric_of_pairs(pairs: list[tuple[int, int]], hosts_on: list[int]) -> Topology:
    """Switches linked by pairs, a pair named twice by parallel links."""
    once, count = count_pairs(pairs)
    return make_topology("graph", once, hosts_on, on_circle(len(hosts_on)), parallel_links=count)


@cache
def atlas_fabrics() -> tuple[Topology, ...]:
    """Every connected graph of up to seven switches, one host on each."""
    graphs = [graph for graph in graph_atlas_g() if len(graph) and nx.is_connected(graph)]
    return tuple(fabric_of_pairs(sorted(graph.edges), [1] * len(graph)) for graph in graphs)


@cache
def random_fabrics(count: int = 500) -> tuple[Topology, ...]:
    """Connected fabrics of 8 to 64 switches: sparse with bridges to dense, some with parallel links or few hosts."""
    return tuple(random_fabric(seed) for seed in range(count))


def random_fabric(seed: int) -> Topology:
    draw = random.Random(seed)
    switches = 8 + seed % 57
    order = list(range(switches))
    draw.shuffle(order)
    pairs = [(order[place], order[draw.randrange(place)]) for place in range(1, switches)]
    for _ in range(draw.randrange(2 * switches)):
        one = draw.randrange(switches)
        other = (one + 1 + draw.randrange(switches - 1)) % switches
        if seed % 4 == 0 or not {(one, other), (other, one)} & set(pairs):
            pairs.append((one, other))
    hosts_on = [draw.randrange(3) for _ in range(switches)] if seed % 3 == 0 else [1] * switches
    hosts_on[order[0]] = hosts_on[order[1]] = 1
    return fabric_of_pairs(pairs, hosts_on)


def plan_without(plan: Plan, off: list[int]) -> Plan:
    """A plan of the same fabric that leaves some links out, with VLANs that can stand beside those of `plan`."""
    gone = np.zeros(plan.topology.link_count, dtype=bool)
    gone[off] = True
    part = subfabric_without(plan.topology, gone)
    assert part is not None
    assert isinstance(plan.vlans, VlanPlan)
    routes = part.to_whole(ROUTINGS[plan.scenario.routing_kind].route(part.topology, plan.scenario.routing))
    vlans = successor(plan.vlans, assign_fixed(plan.topology, routes, plan.scenario.assignment))
    found = verify(plan.topology, routes, vlans, None)
    return Plan(plan.scenario, plan.topology, routes, vlans, found, digest_of(plan.topology, routes, vlans))
