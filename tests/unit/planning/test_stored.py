"""Plans from files: proved when they are read, and whatever was changed in them is found."""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import json
from typing import Any

import numpy as np
import pytest

from testbed.base.errors import InputError, VerificationError
from testbed.planning import Plan, make_plan
from testbed.planning.proof import digest_of
from testbed.planning.prove_stored import proved_plan
from testbed.planning.store import plan_from_json, plan_to_json
from testbed.planning.validate_arrays import validate_arrays
from testbed.scenario import find_scenario, load_scenario
from tests.fabrics import plan_of, scenario_of

PLANS = {
    "trees": plan_of("torus", sizes=[3, 2]),
    "listed": make_plan(scenario_of("topology: {kind: ring, switches: 3}\nassignment: {entries: all}\n")),
    "renamed": make_plan(scenario_of("topology: {kind: mesh, sizes: [3]}\nassignment: {kind: renamed}\n")),
    "bundles": make_plan(
        scenario_of("topology: {kind: ring, switches: 3, parallel_links: 2}\nlinks: {aggregate: true}\n")
    ),
    "deadlock": make_plan(
        scenario_of("topology: {kind: ring, switches: 5}\nrouting: {ring: shortest}\nexpect: deadlock")
    ),
}


@pytest.mark.parametrize("name", PLANS)
def test_a_stored_plan_is_read_whole(name):
    found = proved_plan(plan_to_json(PLANS[name]), "plan.json")
    assert (found.digest, found.violations, found.is_proved) == (PLANS[name].digest, PLANS[name].violations, True)


SCENARIOS = [
    "dl-ud3-irregular16",
    "dragonfly4-1",
    "fattree-renamed",
    "flat16",
    "mesh4x2-lag",
    "mesh4x4-dead-link",
    "mtree4x4",
    "sr-irregular16",
]


@pytest.mark.parametrize("name", SCENARIOS)
def test_the_tables_of_scenarios_are_tables_of_a_fabric(name):
    made = make_plan(load_scenario(find_scenario(name)))
    assert validate_arrays(made.topology, made.routes, made.vlans, made.bundles) == []


def raw_of(plan: Plan) -> dict[str, Any]:
    return copy.deepcopy(json.loads(plan_to_json(plan)))


def refused(raw: dict[str, Any]) -> str:
    with pytest.raises((InputError, VerificationError)) as error:
        proved_plan(json.dumps(raw), "p.json")
    return str(error.value)


def test_a_changed_table_is_refused_by_its_digest():
    raw = raw_of(PLANS["trees"])
    values = raw["vlans"]["tagged_links"]["values"]
    values[values.index(1)] = 0
    assert refused(raw).startswith(f"p.json: says that its digest is {PLANS['trees'].digest} and its tables have ")


_UNREADABLE = (ValueError, TypeError, AttributeError, OverflowError, LookupError)


def again(raw: dict[str, Any]) -> dict[str, Any]:
    """As someone would leave it who can compute digests."""
    plan = plan_from_json(json.dumps(raw))
    parts = (plan.topology, plan.routes, plan.vlans, plan.bundles)
    return raw | {"digest": digest_of(*(part for part in parts if part is not None))}


def test_a_changed_table_with_a_new_digest_fails_its_proof():
    raw = raw_of(PLANS["trees"])
    values = raw["vlans"]["tagged_links"]["values"]
    values[values.index(1)] = 0
    text = refused(again(raw))
    assert text.startswith("p.json: says that no invariant is broken and 2 invariants are broken when its tables are")
    assert "tree: VLAN 10 does not connect" in text


def test_a_violation_that_is_struck_out_or_hidden_by_expect():
    raw = raw_of(PLANS["deadlock"])
    assert "1 invariant is broken when" in refused(raw | {"violations": []})
    raw["scenario"]["expect"] = "proved"
    assert "expect" in refused(raw)
    del raw["scenario"]["expect"]
    assert not proved_plan(json.dumps(raw), "p.json").is_proved


def test_rules_for_other_programs_must_follow_from_the_tables():
    raw = raw_of(PLANS["trees"])
    raw["rules"][2][-1] = raw["rules"][2][-1].replace("output", "drop")
    assert refused(raw).startswith("p.json: lists rules of s3 that do not follow from its tables")
    raw = raw_of(PLANS["bundles"])
    raw["groups"][0] = []
    assert refused(raw).startswith("p.json: lists groups of s1 ")
    assert refused(raw | {"rules": None}).startswith("p.json: lists rules that do not follow")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "is not a plan"),
        ("[1]", "is not a plan"),
        ("null", "is not a plan"),
        ("[" * 100_000, "is not a plan"),
        ('{"schema_version": 2}', "is not a plan"),
        ('{"schema_version": 1}', "has schema version 1; this program reads 2"),
    ],
)
def test_what_is_no_plan(text, words):
    with pytest.raises(InputError, match=rf"^p.json: .*{words}"):
        proved_plan(text, "p.json")


BOOLS = ("tagged_links", "untagged_hosts", "flood_links", "entry")  # any number but 0 is True
FIELDS = [
    (name, part, field.name)
    for name, plan in PLANS.items()
    for part in ("topology", "routes", "vlans", "bundles")
    if (value := getattr(plan, part)) is not None
    for field in dataclasses.fields(value)
    if isinstance(getattr(value, field.name), np.ndarray)
]


@pytest.mark.parametrize(("name", "part", "field"), FIELDS)
def test_any_change_of_an_array_is_a_sentence_with_any_digest(name, part, field):
    """Each array cut, with a number beyond what there is, beyond 64 bits, of another type, or none."""
    for change in ("cut", "far", "beyond", "type", "none"):
        raw = raw_of(PLANS[name])
        array = raw[part][field]
        if change == "cut":
            array["values"], array["shape"] = array["values"][:-1], [len(array["values"]) - 1]
        elif change in ("far", "beyond") and array["values"]:
            array["values"][0] = {"far": 2**30, "beyond": 10**30}[change]
        elif change == "type":
            array["dtype"] = "float32"
        else:
            raw[part][field] = None
        with contextlib.suppress(*_UNREADABLE):  # then the reader must refuse it, too
            raw = again(raw)
        said = judged(raw)
        if said is None:  # what is drawn where, and levels, prove nothing
            assert field in ("positions", "coordinates", "levels", "plane", "port_count", *BOOLS), change
        else:
            assert said.startswith("p.json: ")


def judged(raw: dict[str, Any]) -> str | None:
    try:
        proved_plan(json.dumps(raw), "p.json")
    except (InputError, VerificationError) as error:
        return str(error)
    return None


def test_a_tree_that_goes_round_is_no_tree():
    raw = raw_of(PLANS["trees"])
    topology, routes = PLANS["trees"].topology, PLANS["trees"].routes
    tree = routes.tree_channel.copy()
    root = int(routes.tree_root[0])
    # the root, too, is entered by a channel: from any switch one goes round
    tree[0, root] = next(c for c in range(len(topology.channel_target)) if topology.channel_target[c] == root)
    raw["routes"]["tree_channel"]["values"] = tree.reshape(-1).tolist()
    assert "goes round in a circle" in refused(again(raw))
