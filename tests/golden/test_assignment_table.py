"""Which routing fits which assignment: the whole table, each answer by trying, each refusal with its conflict."""

from __future__ import annotations

import re
from typing import Any

import pytest

from testbed.base.errors import InputError
from testbed.fabric.routing import ROUTINGS
from testbed.fabric.vlans import ASSIGNMENTS
from testbed.planning import make_plan
from tests.fabrics import scenario_of

MESH = {"kind": "mesh", "sizes": [4, 4]}
TORUS = {"kind": "torus", "sizes": [5, 5], "parallel_links": 2}
FAT_TREE = {"kind": "fat_tree", "up": 2, "down": 4, "rounds": 2, "hosts_per_leaf": 4}
RANDOM = {"kind": "random", "switches": 32, "degree": 4, "seed": 1}
ASSIGNED = ("fixed", "renamed", "static", "openflow", "host_tagged", "model")
# Their paths have layers, which tags of hosts do not carry; all others fit, be their trees as they may.
LAYERED = ("dl", "lash", "dfsssp", "nue", "valiant")
CLOS = {"kind": "myrinet_clos", "leaves": 4, "roots": 4, "hosts_per_leaf": 2}
# Routing with its options, topology, and whether the fixed, renamed, static and OpenFlow assignments and the model fit.
TABLE: list[tuple[str, dict[str, Any], dict[str, Any], str]] = [
    ("dor", {}, MESH, "yes yes yes yes"),
    ("north_last", {}, MESH, "yes yes yes yes"),
    ("partially_balanced", {}, MESH, "yes yes yes yes"),
    ("dor", {"planes": "link"}, TORUS, "yes yes no yes"),
    ("dor", {"planes": "node"}, TORUS, "yes yes no yes"),
    ("dor", {"planes": "dest"}, TORUS, "no yes yes yes"),
    ("fat_tree", {"key": "source"}, FAT_TREE, "yes no no no"),
    ("fat_tree", {"key": "in_port"}, FAT_TREE, "yes yes no yes"),
    ("fat_tree", {"key": "destination"}, FAT_TREE, "no yes yes yes"),
    ("tree", {}, {"kind": "tree", "switches": 7}, "yes yes yes yes"),
    ("direct", {}, {"kind": "complete", "switches": 5}, "yes yes yes yes"),
    ("stp", {}, RANDOM, "yes yes yes yes"),
    *((name, {}, RANDOM, "no yes no yes") for name in ("updown", "tbtp", "sr", "lturn")),
    *((name, {"selection": "low_port"}, RANDOM, "? yes ? yes") for name in ("updown", "tbtp", "sr", "lturn")),
    *((name, {"selection": "random", "seed": 1}, RANDOM, "no no no no") for name in ("updown", "tbtp", "sr", "lturn")),
    *((name, {"selection": "tree"}, RANDOM, "yes ? ? ?") for name in ("updown", "tbtp", "sr", "lturn")),
    ("dl", {}, RANDOM, "no no no yes"),
    *((name, {}, RANDOM, "no no no yes") for name in ("lash", "dfsssp", "nue")),
    ("ecmp", {}, CLOS, "yes yes yes yes"),  # of two levels: a leaf knows its own flows, a root has one way down
    ("ecmp", {}, FAT_TREE, "no yes no yes"),  # of three: a port of arrival tells the leaf, and so the flow
    ("ecmp", {"seed": 3}, {**FAT_TREE, "rounds": 3, "down": 2}, "no no no no"),
    ("spb", {}, FAT_TREE, "yes yes no yes"),
    ("spb", {"algorithm": 1}, FAT_TREE, "yes yes yes yes"),
    ("valiant", {}, RANDOM, "no no no yes"),
    ("valiant", {"drawn_for": "pair"}, RANDOM, "no no no no"),
    ("paths", {"paths": [["s1", "s2"], ["s2", "s1"]]}, {"kind": "mesh", "sizes": [2]}, "yes yes yes yes"),
]
ROWS = [
    pytest.param(*row, id=" ".join([row[0], *map(str, row[1].values()), row[2]["kind"]]))
    for row in TABLE
    if row[0] in ROUTINGS
]


def blocks(routing, options, topology, assignment):
    return {"topology": topology, "routing": {"kind": routing, **options}, "assignment": {"kind": assignment}}


@pytest.mark.parametrize(("routing", "options", "topology", "fits"), ROWS)
def test_row(routing, options, topology, fits):
    tagged = "no" if routing in LAYERED else "yes"
    for assignment, answer in zip(ASSIGNED, [*fits.split(), tagged, "yes"], strict=True):
        scenario = scenario_of(blocks(routing, options, topology, assignment))
        if answer == "no":
            with pytest.raises(InputError) as error:
                make_plan(scenario)
            (problem,) = error.value.problems
            assert problem.place == "test.yaml: assignment.kind"
            assert problem.sentence.startswith(f'"{assignment}" ')
            layers = "carries no layers and this routing uses"
            assert layers in problem.sentence or re.search(r"\bs\d+ (by port \d+ )?.*\bs\d+", problem.sentence)
        elif answer == "yes":
            assert make_plan(scenario).violations == ()


def test_every_routing_and_assignment_is_in_the_table():
    assert {row[0] for row in TABLE} >= set(ROUTINGS)
    assert set(ASSIGNED) == set(ASSIGNMENTS)
