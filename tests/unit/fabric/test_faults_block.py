"""Dead links and switches: the `faults:` block of a scenario."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import yaml

from testbed.base.errors import InputError
from testbed.fabric.topologies.any_graph import Graph, graph
from testbed.fabric.topologies.faults import Faults, apply_faults
from testbed.planning import make_plan
from testbed.planning.store import plan_from_json, plan_to_json
from testbed.scenario import parse_scenario
from testbed.scenario.read_scenario import as_dict
from tests.fabrics import scenario_of, topology_of

# Drawn once; a change of numpy, of Python or of the machine must not change it.
PINNED = ("link s5–s9", "link s9–s10", "link s16–s4")
RING = {"topology": {"kind": "ring", "switches": 6, "hosts_per_switch": 2}, "routing": {"kind": "tree"}}


def without(topology, *links, switches=(), percent=0.0, seed=None):
    return apply_faults(topology, Faults(links=links, switches=tuple(switches), percent=percent, seed=seed))


def refusal(topology, *links, **more):
    with pytest.raises(InputError) as error:
        without(topology, *links, **more)
    return str(error.value).splitlines()


def problems(faults):
    with pytest.raises(InputError) as error:
        make_plan(scenario_of(RING | {"faults": faults}))
    return str(error.value).splitlines()


def names(topology):
    switches = [topology.switch_name(switch) for switch in range(topology.switch_count)]
    return switches, [topology.host_name(host) for host in range(topology.host_count)]


def test_a_dead_link_is_gone_and_nothing_else():
    whole = topology_of("torus", sizes=(4, 4))
    left = without(whole, ("s2", "s1"))
    assert whole.links[0].tolist() == [0, 1]
    assert (left.links == whole.links[1:]).all()
    assert left.faults == ("link s1–s2",)
    assert names(left) == names(whole)
    assert (left.switch_names, left.host_names) == ((), ())
    assert (left.kind, left.sizes) == (whole.kind, whole.sizes)
    for field in ("coordinates", "positions", "levels", "host_switch"):
        assert (getattr(left, field) == getattr(whole, field)).all()


def test_a_dead_switch_goes_with_its_links_and_others_stay():
    whole = topology_of("torus", sizes=(3, 3), hosts_per_switch=2)
    left = without(whole, switches=["s3"])
    assert (left.switch_count, left.link_count, left.host_count) == (8, 18 - 4, 16)
    assert names(left) == (
        ["s1", "s2", "s4", "s5", "s6", "s7", "s8", "s9"],
        ["h1", "h2", "h3", "h4", *(f"h{host}" for host in range(7, 19))],
    )
    assert left.faults == ("switch s3",)
    kept = [0, 1, 3, 4, 5, 6, 7, 8]
    assert (left.coordinates == whole.coordinates[kept]).all()
    assert (left.positions == whole.positions[kept]).all()
    ends = [frozenset(left.switch_name(switch) for switch in link) for link in left.links.tolist()]
    every = [frozenset(whole.switch_name(switch) for switch in link) for link in whole.links.tolist()]
    assert ends == [link for link in every if "s3" not in link]


def test_a_dead_switch_without_hosts_leaves_the_names_of_hosts():
    left = without(topology_of("fat_tree", up=2, down=2, rounds=1), switches=["s3"])
    assert names(left) == (["s1", "s2", "s4"], ["h1", "h2", "h3", "h4"])
    assert left.host_names == ()
    assert left.levels.tolist() == [0, 0, 1]


def test_planes_and_ports_are_numbered_anew():
    whole = topology_of("ring", switches=3, parallel_links=3)
    left = without(whole, ("s1", "s2", 0), ("s3", "s2", 1))
    assert left.links.tolist() == [[0, 1]] * 2 + [[1, 2]] * 2 + [[2, 0]] * 3
    assert left.plane.tolist() == [0, 1, 0, 1, 0, 1, 2]
    assert left.faults == ("link s1–s2", "link s2–s3#1")
    assert left.port_count.tolist() == [1 + 5, 1 + 4, 1 + 5]
    for switch in range(3):
        assert left.out_port[left.channel_source == switch].tolist() == list(range(2, left.port_count[switch] + 1))


def test_a_pair_without_a_plane_is_all_its_parallel_links():
    left = without(topology_of("ring", switches=4, parallel_links=2), ("s1", "s2"))
    assert left.links.tolist() == [[1, 2]] * 2 + [[2, 3]] * 2 + [[3, 0]] * 2
    assert left.faults == ("link s1–s2", "link s1–s2#1")


def test_nothing_dead_is_the_identical_topology():
    whole = topology_of("mesh", sizes=(2, 2))
    assert apply_faults(whole, Faults()) is whole
    assert apply_faults(whole, Faults(seed=3)) is whole


def test_faults_on_faults_keep_the_first_names():
    once = without(topology_of("complete", switches=5), switches=["s1"])
    twice = without(once, ("s2", "s3"), switches=["s4"])
    assert names(twice) == (["s2", "s3", "s5"], ["h2", "h3", "h5"])
    assert twice.faults == ("switch s1", "switch s4", "link s2–s3")


def test_labels_of_a_graph_name_its_switches_too():
    square = graph(Graph(("nw", "ne", "se", "sw"), (("nw", "ne"), ("ne", "se"), ("se", "sw"), ("sw", "nw"))))
    for faults in (Faults((("se", "ne"),), ("nw",)), Faults((("s2", "s3"),), ("s1",))):
        with pytest.raises(InputError, match=r"leaves no path between s2 \(ne\) and s3 \(se\)$"):
            apply_faults(square, faults)
    assert refusal(square, switches=["nv"]) == ['faults.switches.0: there is no switch "nv". Did you mean "nw"?']
    left = without(square, switches=["nw"])
    assert left.switch_labels == ("ne", "se", "sw")
    assert left.faults == ("switch s1 (nw)",)
    assert without(square, ("s1", "sw")).faults == ("link s4 (sw)–s1 (nw)",)


# ---------------------------------------------------------------------------------------------------------------------
# By chance


@pytest.mark.parametrize(("percent", "dead"), [(1.6, 1), (5, 2), (12.5, 4), (14.05, 4), (14.1, 5), (25, 8)])
def test_a_percentage_of_links_is_to_the_nearest_whole_number(percent, dead):
    whole = topology_of("torus", sizes=(4, 4))
    left = without(whole, percent=percent, seed=2)
    assert whole.link_count - left.link_count == len(left.faults) == dead


def test_a_seed_draws_the_same_links_and_another_seed_others():
    whole = topology_of("torus", sizes=(8, 8))
    drawn = [without(whole, percent=10, seed=seed).faults for seed in (1, 1, 2)]
    assert drawn[0] == drawn[1] != drawn[2]
    assert without(topology_of("torus", sizes=(4, 4)), percent=10, seed=1).faults == PINNED


def test_a_higher_percentage_adds_to_what_a_lower_one_draws():
    whole = topology_of("torus", sizes=(8, 8))
    dead = [set(without(whole, percent=percent, seed=5).faults) for percent in (1, 5, 10, 20)]
    assert dead[0] < dead[1] < dead[2] < dead[3]


def test_links_are_drawn_evenly():
    whole = topology_of("complete", switches=6)
    times = np.zeros(15)
    for seed in range(600):
        left = without(whole, percent=100 / 15, seed=seed)
        times += [not (left.links == link).all(axis=1).any() for link in whole.links]
    assert times.sum() == 600
    assert ((times - 40) ** 2 / 40).sum() < 36.1  # chi-squared with 14 degrees of freedom: 0.1 % lie above


def test_a_percentage_is_of_what_the_named_faults_leave():
    whole = topology_of("complete", switches=5)
    left = without(whole, ("s2", "s3"), switches=["s1"], percent=20, seed=1)
    assert left.link_count == 6 - 1 - 1


def test_a_division_by_chance_is_said_and_not_drawn_again():
    whole = topology_of("ring", switches=6)
    (line,) = refusal(whole, percent=34, seed=1)
    assert line.startswith("faults: leaves no path between s1 and s")
    assert line.endswith("; another seed or a lower percent may leave one")
    # Where named faults alone divide the fabric, no seed helps.
    (line,) = refusal(whole, ("s1", "s2"), ("s3", "s4"), percent=30, seed=1)
    assert line == "faults: leaves no path between s1 and s2"


# ---------------------------------------------------------------------------------------------------------------------
# What is wrong


def test_all_that_is_wrong_is_said_at_once():
    whole = topology_of("torus", sizes=(4, 4))
    assert refusal(
        whole,
        ("s1", "s99"), ("a", "b"), ("s1", "s6"), ("s1", "s2", 1), ("s1", "s2"), ("s2", "s1", 0), ("s1", "s1"),
        switches=["s17", "s3", "s3"],
    ) == [
        'faults.switches.0: there is no switch "s17", only s1 to s16',
        'faults.switches.2: "s3" is named twice',
        'faults.links.0: there is no switch "s99", only s1 to s16',
        'faults.links.1: there is no switch "a".',
        'faults.links.1: there is no switch "b".',
        'faults.links.2: no link joins "s1" and "s6"; s1 is linked to s2, s4, s5, s13',
        "faults.links.3: s1 and s2 have a single link, plane 0, and no plane 1",
        "faults.links.5: is named twice",
        'faults.links.6: no link joins "s1" and "s1"; s1 is linked to s2, s4, s5, s13',
    ]  # fmt: skip


def test_a_plane_out_of_range_says_which_there_are():
    whole = topology_of("ring", switches=4, parallel_links=3)
    assert refusal(whole, ("s1", "s2", 3)) == ["faults.links.0: s1 and s2 have planes 0 to 2, and no plane 3"]


def test_a_missing_link_of_a_large_switch_names_some_neighbours():
    (line,) = refusal(topology_of("tree", switches=12, arity=11), ("s1", "s1"))
    assert line.endswith("s1 is linked to s2, s3, s4, s5, s6, s7, s8, s9 and 3 more")
    assert refusal(topology_of("flat", hosts=2), ("s1", "s1")) == [
        'faults.links.0: no link joins "s1" and "s1"; s1 is linked to no switch'
    ]


def test_a_division_names_two_switches():
    assert refusal(topology_of("ring", switches=6), ("s1", "s2"), ("s4", "s5")) == [
        "faults: leaves no path between s1 and s2"
    ]
    assert refusal(topology_of("mesh", sizes=(3,)), switches=["s2"]) == ["faults: leaves no path between s1 and s3"]


def test_no_switch_left():
    assert refusal(topology_of("ring", switches=3), switches=["s1", "s2", "s3"]) == [
        "faults.switches: leaves no switch alive"
    ]


def test_a_percentage_that_kills_nothing_is_said():
    (line,) = refusal(topology_of("ring", switches=6), percent=8, seed=1)
    assert line == "faults.percent: 8 % of 6 links is less than half a link, so none would be dead"


def test_problems_of_the_block_name_the_scenario():
    assert problems({"links": [["s1"], ["s1", "s2", -1], ["s1", 2], "s1"], "switches": "s1", "percent": 101}) == [
        'test.yaml: faults.links.0: should be two switches such as [s1, s2], or with a plane [s1, s2, 1], not ["s1"]',
        "test.yaml: faults.links.1: should be two switches such as [s1, s2], or with a plane [s1, s2, 1], "
        'not ["s1", "s2", -1]',
        "test.yaml: faults.links.2: should be two switches such as [s1, s2], or with a plane [s1, s2, 1], "
        'not ["s1", 2]',
        'test.yaml: faults.links.3: should be two switches such as [s1, s2], or with a plane [s1, s2, 1], not "s1"',
        'test.yaml: faults.switches: should be a list of switches such as [s3], not "s1"',
        "test.yaml: faults.percent: should be 100 or less, not 101",
    ]
    assert problems({"percent": 5}) == [
        "test.yaml: faults.seed: is required with percent: a whole number such as seed: 1, from which links are drawn"
    ]
    assert problems({"percent": -1})[0] == "test.yaml: faults.percent: should be 0 or more, not -1"
    assert problems({"link": [["s1", "s2"]]}) == [
        'test.yaml: faults.link: unknown key. Did you mean "links"? Known: links, switches, percent, seed'
    ]
    assert problems({"switches": ["s7"]}) == ['test.yaml: faults.switches.0: there is no switch "s7", only s1 to s6']


def test_a_fabric_whose_hosts_are_all_dead():
    tree = {"kind": "tree", "switches": 3, "hosts_per_switch": 1}
    hosts = {"kind": "graph", "switches": ["a", "b", "c"], "links": [["a", "b"], ["b", "c"]], "hosts": {"a": 1}}
    assert make_plan(scenario_of({"topology": tree, "faults": {"switches": ["s3"]}})).topology.host_count == 2
    with pytest.raises(InputError, match="topology: has no host"):
        make_plan(scenario_of({"topology": hosts, "faults": {"switches": ["a"]}}))


# ---------------------------------------------------------------------------------------------------------------------
# Scenarios and plans


@pytest.mark.parametrize(
    "faults",
    [
        {"links": [["s2", "s1"]]},
        {"switches": ["s6"]},
        {"links": [["s6", "s1", 0]], "switches": ["s6"]},
        {"percent": 17, "seed": 4},
    ],
)
def test_a_plan_with_faults_survives_json(faults):
    plan = make_plan(scenario_of(RING | {"faults": faults}))
    plan.require_proof()
    assert plan.topology.faults
    back = plan_from_json(plan_to_json(plan))
    for field in dataclasses.fields(plan.topology):
        before, after = getattr(plan.topology, field.name), getattr(back.topology, field.name)
        assert (after == before).all() if isinstance(before, np.ndarray) else after == before
    assert (back.scenario, back.digest, back.rules) == (plan.scenario, plan.digest, plan.rules)


def test_the_resolved_block_is_the_same_block():
    faults = {"links": [["s1", "s2"], ["s1", "s3", 1]], "switches": ["s4"], "percent": 2.5, "seed": 9}
    scenario = scenario_of(RING | {"faults": faults})
    assert scenario.faults == Faults((("s1", "s2"), ("s1", "s3", 1)), ("s4",), 2.5, 9)
    assert as_dict(scenario)["faults"] == faults
    assert parse_scenario(yaml.safe_dump(as_dict(scenario)), scenario.source) == scenario


def test_faults_tell_plans_apart():
    digests = {
        make_plan(scenario_of(RING | {"faults": {"links": [[one, other]]}})).digest
        for one, other in (("s1", "s2"), ("s2", "s3"), ("s3", "s4"))
    }
    assert len(digests) == 3
