"""Links more and links fewer than a topology has by itself."""

from __future__ import annotations

import pytest

import testbed as tb
from testbed.base.errors import InputError
from testbed.fabric.routing import ROUTINGS
from testbed.fabric.traffic import flows
from testbed.planning.store import plan_from_json, plan_to_json

TORUS = {"kind": "torus", "sizes": [4, 4]}


def changed(topology=TORUS, blocks=None, **links):
    return tb.plan({"topology": topology, "links": links, **(blocks or {})})


def neighbours(plan):
    topology = plan.core.wiring
    return sorted(tuple(sorted(map(topology.switch_name, ends))) for ends in topology.links.tolist())


def test_a_torus_with_a_chord_is_a_torus_with_a_link_more():
    plain, plan = tb.plan({"topology": TORUS}), changed(add=[["s1", "s11"], ["s11", "s6"]], remove=[["s1", "s2"]])
    assert neighbours(plan) == sorted({*neighbours(plain), ("s1", "s11"), ("s11", "s6")} - {("s1", "s2")})
    assert (plan.core.topology.kind, plan.core.topology.sizes, bool(plan.prove())) == ("torus", (4, 4), True)
    assert (plan.core.topology.coordinates == plain.core.topology.coordinates).all()
    for pattern in ("transpose", "tornado", "neighbour"):
        assert flows(pattern, plan.core.topology, 1) == flows(pattern, plain.core.topology, 1)
    assert plan.path("h1", "h11") == ("s1", "s11")
    text = plan_to_json(plan.core)
    assert plan_to_json(plan_from_json(text)) == text


def test_a_link_gets_a_parallel_and_one_of_several_is_removed():
    two = {"kind": "ring", "switches": 4, "parallel_links": 2}
    plan = changed(two, add=[["s2", "s1"]], remove=[["s3", "s4", 1]])
    assert [neighbours(plan).count(pair) for pair in (("s1", "s2"), ("s2", "s3"), ("s3", "s4"))] == [3, 2, 1]
    assert plan.prove()
    bundled = changed(two, {"routing": "stp"}, add=[["s2", "s1"]], aggregate=True)
    assert (bundled.core.topology.link_count, bundled.core.wiring.link_count, bool(bundled.prove())) == (4, 9, True)


def test_faults_are_of_the_changed_fabric():
    plan = changed(blocks={"faults": {"links": [["s1", "s11"]]}}, add=[["s1", "s11"]])
    assert (plan.core.topology.faults, len(neighbours(plan))) == (("link s1–s11",), 32)


def test_a_routing_that_no_longer_holds_says_which_do():
    assert changed(add=[["s1", "s11"]]).core.scenario.routing_kind == "updown"
    with pytest.raises(InputError) as error:
        changed(blocks={"routing": "dor"}, add=[["s1", "s11"]])
    sentence = str(error.value)
    assert sentence.startswith(
        'python: routing.kind: "dor" routes by the links of the plain topology, and links.add or'
    )
    for name in sentence.rpartition(": ")[2].split(", ")[:-1]:
        plan = changed(blocks={"routing": name}, add=[["s1", "s11"]])
        assert plan.prove() or not ROUTINGS[name].deadlock_free, name


@pytest.mark.parametrize(
    ("links", "problems"),
    [
        ({"add": [["s1", "s17"]]}, ['links.add.0: there is no switch "s17", only s1 to s16']),
        ({"add": [["s1", "s1"]]}, ['links.add.0: joins "s1" to itself']),
        ({"add": [["s1"]]}, ['links.add.0: should be two switches such as [s1, s11], not ["s1"]']),
        ({"remove": [["s1", "s3"]]}, ['links.remove.0: no link joins "s1" and "s3"; s1 is linked to s2, s4, s5, s13']),
        ({"remove": [["s1", "s2"], ["s2", "s1"]]}, ["links.remove.1: is named twice"]),
        (
            {"remove": [["s1", name] for name in ("s2", "s4", "s5", "s13")]},
            ["links.remove: leaves no path between s1 and s2"],
        ),
        (
            {"remove": [["s1", "s99"]], "add": [["s0", "s1"]]},
            [
                'links.remove.0: there is no switch "s99", only s1 to s16',
                'links.add.0: there is no switch "s0", only s1 to s16',
            ],
        ),
    ],
)  # fmt: skip
def test_links_that_cannot_be_are_sentences(links, problems):
    with pytest.raises(InputError) as error:
        changed(**links)
    assert [str(problem) for problem in error.value.problems] == [f"python: {problem}" for problem in problems]
