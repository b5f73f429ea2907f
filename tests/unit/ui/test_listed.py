"""Paths that were computed elsewhere."""

from __future__ import annotations

import json

import pytest

import testbed as tb
from testbed.base.errors import InputError
from testbed.planning.store import plan_from_json, plan_to_json

RING = {"kind": "ring", "switches": 4}


def ways(plan):
    return [list(plan.path(one, other)) for one in plan.hosts for other in plan.hosts if one != other]


def listed(paths, topology=RING, **routing):
    return tb.plan({"topology": topology, "routing": {"kind": "paths", "paths": paths, **routing}})


def test_paths_of_a_plan_from_a_file_are_the_same_paths(tmp_path):
    plan = tb.plan({"topology": {"kind": "torus", "sizes": [4, 4]}})
    (tmp_path / "p.json").write_text(json.dumps({"paths": ways(plan)}))
    (tmp_path / "x.yaml").write_text("topology: {kind: torus, sizes: [4, 4]}\nrouting: {kind: paths, file: p.json}\n")
    again = tb.plan(tmp_path / "x.yaml")
    assert ways(again) == ways(plan)
    assert again.prove()
    text = plan_to_json(again.core)
    (tmp_path / "p.json").unlink()
    assert plan_to_json(plan_from_json(text)) == text
    fixed = tb.plan({
        "topology": {"kind": "torus", "sizes": [4, 4]}, "routing": {"kind": "paths", "paths": ways(plan)},
        "assignment": {"kind": "fixed"},
    })  # fmt: skip
    assert fixed.core.vlans.vlan_count == plan.core.vlans.vlan_count


def test_planes_and_layers_are_those_that_are_named():
    ring = [f"s{k % 4 + 1}" for k in range(8)]
    round_ = [
        [ring[a], *(f"{name}@{int(a + 1 + k > 3)}" for k, name in enumerate(ring[a + 1 : a + d + 1]))]
        for a in range(4)
        for d in (1, 2, 3)
    ]
    plan = listed(round_)
    assert (plan.core.routes.layers, bool(plan.prove())) == (2, True)
    flat = [[name.partition("@")[0] for name in names] for names in round_]
    assert not listed(flat).prove().deadlock_free
    two = {"kind": "mesh", "sizes": [2], "parallel_links": 2}
    assert listed([["s1", "s2#1"], ["s2", "s1"]], two).core.routes.paths.hop.tolist() == [2, 1]


@pytest.mark.parametrize(
    ("change", "problems"),
    [
        ([(0, ["s1", "s9"])], ['routing.paths.0: there is no switch "s9". Did you mean "s4"?']),
        ([(0, ["s1", "s3"])], ["routing.paths.0: s1 and s3 have no link"]),
        ([(0, ["s1", "s2#1"])], ["routing.paths.0: s1 and s2 have no link of plane 1"]),
        ([(0, ["s1"])], ["routing.paths.0: should have two switches or more, such as [s1, s2]"]),
        ([(0, ["s1", "s2", "s1", "s2"])], ["routing.paths.0: takes a link twice in one direction, so it loops"]),
        ([(1, ["s1", "s2"])], ["routing.paths.1: is a second path from s1 to s2; list one"]),
        ([(0, None)], ["routing.paths: 1 of 12 pairs have no path: s1→s2"]),
    ],
)
def test_paths_that_cannot_be_are_sentences(change, problems):
    paths = ways(tb.plan({"topology": RING}))
    for number, names in change:
        paths[number] = names
    with pytest.raises(InputError) as error:
        listed([names for names in paths if names is not None])
    assert [str(problem) for problem in error.value.problems] == [f"python: {problem}" for problem in problems]


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (None, "routing.file: p.json: cannot be read: No such file or directory"),
        ("[", "routing.file: p.json: line 1: is not JSON: Expecting value"),
        ("{}", "routing.file: p.json: should have a list of paths, not nothing"),
        ('[["s1", 2]]', "routing.paths.0.1: should be text (in quotes), not 2"),
    ],
)
def test_a_file_that_cannot_be_taken_is_a_sentence(tmp_path, monkeypatch, content, sentence):
    monkeypatch.chdir(tmp_path)
    if content is not None:
        (tmp_path / "p.json").write_text(content)
    with pytest.raises(InputError) as error:
        tb.plan({"topology": RING, "routing": {"kind": "paths", "file": "p.json"}})
    assert str(error.value).startswith(f"python: {sentence}")


def test_one_says_paths_once():
    with pytest.raises(InputError, match=r"routing.file: stands beside paths, which says the same; remove one"):
        listed([], file="p.json")
    with pytest.raises(InputError, match=r"paths: is required: a list such as \[\[s1, s2\], \[s2, s1\]\], or file:"):
        tb.plan({"topology": RING, "routing": "paths"})
