"""Dead links and switches on any topology: what is left is what networkx leaves, or the refusal is true."""

from __future__ import annotations

from collections import Counter

import networkx as nx
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from testbed.base.errors import InputError
from testbed.fabric.topologies.faults import Faults, apply_faults
from tests.fabrics import topology_of

SMALL = [
    ("mesh", {"sizes": (3, 3), "parallel_links": 2}),
    ("torus", {"sizes": (4, 2), "hosts_per_switch": 2}),
    ("ring", {"switches": 4, "parallel_links": 3}),
    ("fat_tree", {"up": 2, "down": 2, "rounds": 2}),
    ("complete", {"switches": 5, "hosts_per_switch": 0}),
    ("flat", {"hosts": 3}),
    ("dragonfly", {"routers": 2, "global_links": 2}),
    ("hyperx", {"sizes": (3, 2)}),
    ("random", {"switches": 9, "degree": 3, "seed": 1}),
    ("graph", {"switches": ("c", "b", "a"), "links": (("a", "b"), ("b", "c"), ("b", "a")), "hosts": {"a": 2}}),
]


@st.composite
def damaged(draw):
    """A small topology, and faults that name links and switches that it has."""
    kind, parameters = draw(st.sampled_from(SMALL))
    whole = topology_of(kind, **parameters)
    links = draw(st.lists(st.integers(0, whole.link_count - 1), max_size=6, unique=True)) if whole.link_count else []
    switches = draw(st.lists(st.integers(0, whole.switch_count - 1), max_size=2, unique=True))
    named = []
    for link in links:
        one, other = (whole.switch_name(switch) for switch in draw(st.permutations(whole.links[link].tolist())))
        named.append((one, other, int(whole.plane[link])))
    percent = draw(st.sampled_from([0, 0, 0, 10, 40]))
    faults = Faults(
        tuple(named), tuple(f"s{switch + 1}" for switch in switches), float(percent), draw(st.integers(0, 9))
    )
    return whole, faults


def cables(topology):
    """How many links join each pair of switch names."""
    return Counter(frozenset(topology.switch_name(end) for end in link) for link in topology.links.tolist())


def remainder(whole, faults):
    """What named faults leave, by networkx."""
    graph = nx.MultiGraph()
    graph.add_nodes_from(whole.switch_name(switch) for switch in range(whole.switch_count))
    for link, plane in zip(whole.links.tolist(), whole.plane.tolist(), strict=True):
        graph.add_edge(*(whole.switch_name(end) for end in link), key=plane)
    for one, other, plane in faults.links:
        graph.remove_edge(one, other, key=plane)
    graph.remove_nodes_from(faults.switches)
    return graph


def refused(whole, faults):
    try:
        return apply_faults(whole, faults), ""
    except InputError as error:
        return None, str(error)


@given(damaged())
def test_what_is_left_is_networkxs_or_names_two_parted_switches(damage):
    whole, faults = damage
    graph = remainder(whole, faults)
    left, sentence = refused(whole, faults)
    if not graph:
        assert sentence == "faults.switches: leaves no switch alive" or faults.percent
        return
    if "none would be dead" in sentence or "another seed" in sentence:
        assert faults.percent
        assert nx.is_connected(graph) or "none would be dead" in sentence
        return
    if left is None:
        one, other = (word for word in sentence.replace("(", " ").split() if word in graph)
        assert not nx.has_path(graph, one, other)
        return
    drawn = graph.number_of_edges() - left.link_count
    assert drawn == int(graph.number_of_edges() * faults.percent / 100 + 0.5)
    names = [left.switch_name(switch) for switch in range(left.switch_count)]
    assert names == list(graph)
    assert nx.is_connected(nx.MultiGraph([*map(tuple, left.links.tolist()), *((s, s) for s in range(len(names)))]))
    wanted = Counter(frozenset(ends) for ends in graph.edges())
    assert sum((wanted - cables(left)).values()) == drawn
    assert not cables(left) - wanted
    assert len(left.faults) == len(faults.links) + len(faults.switches) + drawn


@given(damaged())
def test_a_damaged_topology_has_the_form_of_a_topology(damage):
    whole, faults = damage
    left, _ = refused(whole, faults)
    if left is None:
        return
    for switch in range(left.switch_count):
        of_hosts = left.host_port[left.host_switch == switch].tolist()
        of_channels = left.out_port[left.channel_source == switch].tolist()
        assert of_hosts + of_channels == list(range(1, left.port_count[switch] + 1))
    # Parallel links are consecutive, of one direction, and count their planes from 0.
    starts = np.flatnonzero(left.plane == 0)
    pairs = [tuple(sorted(ends)) for ends in left.links[starts].tolist()]
    assert len(set(pairs)) == len(pairs)
    for first, after in zip(starts, np.append(starts, left.link_count)[1:], strict=True):
        assert (left.links[first:after] == left.links[first]).all()
        assert left.plane[first:after].tolist() == list(range(after - first))
    # Everything that lives is where it was.
    number = {whole.switch_name(switch): switch for switch in range(whole.switch_count)}
    kept = [number[left.switch_name(switch)] for switch in range(left.switch_count)]
    for field in ("coordinates", "levels", "positions"):
        assert (getattr(left, field) == getattr(whole, field)[kept]).all()
    assert left.switch_labels == tuple(whole.switch_labels[switch] for switch in kept if whole.switch_labels)
    home = {whole.host_name(host): whole.switch_name(whole.host_switch[host]) for host in range(whole.host_count)}
    for host in range(left.host_count):
        assert home[left.host_name(host)] == left.switch_name(left.host_switch[host])
    assert left.host_count == sum(switch not in faults.switches for switch in home.values())
