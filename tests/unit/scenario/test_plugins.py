"""Kinds that are not the project's own: taken, proved, listed, and refused with a sentence."""

# ruff: noqa: E501 - a plug-in and its sentence stand on one line each

from __future__ import annotations

import json
import subprocess
import sys
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

import testbed as tb
from testbed.base import trust
from testbed.base.errors import InputError
from testbed.fabric.routing import ROUTINGS
from testbed.planning.store import plan_from_json, plan_to_json
from testbed.scenario import plugins
from testbed.scenario.read_scenario import as_dict, scenario_of_blocks
from testbed.ui.testing import FABRICS, check_routing
from tests.plug_ins import forget_plugins

EXAMPLES = Path(__file__).parents[3] / "examples" / "plugins"
HEAD = """
from dataclasses import dataclass, replace
import numpy as np
from testbed.fabric.routing import RoutingKind, updown, stp
from testbed.fabric.routing.channel_lookup import explicit_routes, source_trees, host_switches
from testbed.fabric.routing.given_paths import paths_of
from testbed.base.model import Paths

@dataclass(frozen=True, slots=True)
class Options:
    pass

def of_updown(topology):
    return updown.route_updown(topology, updown.UpDownOptions())

def of_stp(topology):
    return stp.route_stp(topology, stp.StpOptions())

def route(topology, options):
    {body}

ROUTINGS = {{"{name}": RoutingKind(Options, route, "a test", {any}, "{assignment}")}}
"""


@pytest.fixture(autouse=True)
def tables_as_they_were():
    forget_plugins()  # also what scenarios of other tests have brought into this process
    before = {name: dict(group.table) for name, group in plugins.GROUPS.items()}
    with trust.decide_trust_with(lambda file: True):  # tests of trust have a file of their own
        yield
    forget_plugins()
    assert {name: dict(group.table) for name, group in plugins.GROUPS.items()} == before


def write(folder, body="return of_stp(topology)", name="mine", assignment="fixed", any_topology=True, file="mine.py"):
    (folder / file).write_text(HEAD.format(body=body, name=name, assignment=assignment, any=any_topology))
    return folder / file


def planned(folder, *files, name="mine", **routing):
    return tb.plan({
        "plugins": [str(folder / file) for file in files or ["mine.py"]],
        "topology": {"kind": "torus", "sizes": [3, 3]}, "routing": {"kind": name, **routing},
    })  # fmt: skip


def refusal(folder, *files, name="mine"):
    with pytest.raises(InputError) as error:
        planned(folder, *files, name=name)
    return [str(problem).replace(f"{folder}/", "") for problem in error.value.problems]


def test_a_routing_of_one_s_own_is_planned_and_proved(tmp_path):
    write(tmp_path)
    plan = planned(tmp_path)
    assert plan.prove()
    assert plan.core.scenario.plugins == (str(tmp_path / "mine.py"),)
    assert as_dict(plan.core.scenario)["plugins"] == [str(tmp_path / "mine.py")]


def test_it_is_found_beside_the_scenario_and_by_its_name(tmp_path):
    write(tmp_path)
    (tmp_path / "x.yaml").write_text("plugins: [mine.py]\ntopology: {kind: ring, switches: 4}\nrouting: mine\n")
    assert tb.plan(tmp_path / "x.yaml").core.scenario.routing_kind == "mine"
    with pytest.raises(InputError, match=r'there is no routing "minne". Did you mean "mine"\?'):
        tb.plan(tmp_path / "x.yaml", {"routing": "minne"})
    with pytest.raises(InputError, match=r"routing.root: unknown key. Known: kind"):
        tb.plan(tmp_path / "x.yaml", {"routing.root": "s1"})


def test_a_file_that_has_changed_is_taken_anew(tmp_path):
    write(tmp_path)
    before = planned(tmp_path).digest
    write(tmp_path, "return of_updown(topology)", assignment="renamed")
    assert planned(tmp_path).digest != before


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        ("return 1 / 0", "raised ZeroDivisionError: division by zero (line 20)"),
        ("return None", "gave NoneType and not Routes"),
        ("return replace(of_stp(topology), tree_channel=of_stp(topology).tree_channel[:, 1:])", "gave tree_channel of shape (9, 8); it should be (9, 9)"),
        ("return replace(of_stp(topology), tree_channel=of_stp(topology).tree_channel + 90)", "gave tree_channel from 89 to "),
        ("return replace(of_stp(topology), host_tree=of_stp(topology).host_tree[::-1])", "gave a host a tree whose root is not the host's switch"),
        ("r = of_stp(topology); return replace(r, ends=r.ends[::-1])", "gave as ends [8, 7, 6, 5, 4, 3, …]; they should be the switches with hosts, ascending: [0, 1, 2, 3, 4, 5, …]"),
        ("return replace(of_stp(topology), layers=0)", "gave 0 layers; there is 1 or more"),
        ("r = of_updown(topology); return replace(r, paths=Paths(r.paths.start[:-1], r.paths.hop))", "gave paths.start of shape (81,); it should be (82,)"),
        ("r = of_updown(topology); return replace(r, paths=Paths(r.paths.start, r.paths.hop.astype(float)))", "gave paths.hop that are no array of whole numbers"),
        ("return explicit_routes(topology, paths_of(topology, lambda a, b: [0, 1, 0]), None)", "gave a path from s1 to s2 that loops: it takes a channel twice"),
        ("t = np.full((9, 9), -1, dtype=np.int32); t[:, [0, 1]] = [1, 0]; return source_trees(topology, t, host_switches(topology))", "gave the tree of s3 a loop: from s1 one never comes to s3"),
    ],
)  # fmt: skip
def test_what_is_no_routing_is_a_sentence(tmp_path, body, sentence):
    write(tmp_path, body)
    (found,) = refusal(tmp_path)
    assert found.startswith(f'python: routing.kind: "mine" of mine.py {sentence}')


def test_a_routing_that_can_deadlock_is_planned_and_not_proved(tmp_path):
    ring = "return explicit_routes(topology, paths_of(topology, way), None)"
    way = "way = lambda a, b: [2 * ((a + k) % 5) for k in range((b - a) % 5)]"
    link = "n = topology.switch_count; assert [tuple(x) for x in topology.links.tolist()][:-1] == [(k, k + 1) for k in range(n - 1)]"
    write(tmp_path, f"{link}; {way}; {ring}", assignment="renamed")
    blocks = {"plugins": [str(tmp_path / "mine.py")], "topology": {"kind": "ring", "switches": 5}, "routing": "mine"}
    proof = tb.plan(blocks).prove()
    assert (bool(proof), proof.deadlock_free) == (False, False)
    with pytest.raises(AssertionError, match=r"mine on odd ring .*deadlock: .*"):
        check_routing(tmp_path / "mine.py", fabrics={"odd ring": {"kind": "ring", "switches": 5}})


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("x = (", "line 1: '(' was never closed"),
        ("import nothing_of_that_name", "raised ModuleNotFoundError: No module named 'nothing_of_that_name' (line 1)"),
        ("raise SystemExit(3)", "raised SystemExit: 3 (line 1)"),
        ("x = 1", "offers nothing: it has none of the dictionaries TOPOLOGIES, ROUTINGS, ASSIGNMENTS, PATTERNS, WORKLOADS"),
        ("ROUTINGS = [1]", "ROUTINGS should be a dictionary by name, not list"),
        ("from testbed.fabric.routing import ROUTINGS", "offers nothing: it has none"),
        ('ROUTINGS = {"a": 1}', 'the routing "a" should be a RoutingKind, not int'),
        ('PATTERNS = {"My": len}', 'the pattern "My" should be called by small letters, digits and "_"'),
        ('PATTERNS = {"a": 1}', 'the pattern "a" should be a function of a topology and a seed, not int'),
        ('PATTERNS = {"uniform": len}', 'there is a pattern "uniform" in testbed already; choose another name'),
    ],
)  # fmt: skip
def test_a_file_that_cannot_be_taken_is_a_sentence(tmp_path, text, sentence):
    (tmp_path / "mine.py").write_text(text + "\n")
    found = refusal(tmp_path)
    assert found[0].startswith(f"python: plugins.0: mine.py: {sentence}")


def test_what_plugins_cannot_say(tmp_path):
    write(tmp_path, name="dor")
    assert refusal(tmp_path, name="dor") == [
        'python: plugins.0: mine.py: there is a routing "dor" in testbed already; choose another name'
    ]
    write(tmp_path), write(tmp_path, "return of_updown(topology)", file="other.py")
    assert refusal(tmp_path, "mine.py", "other.py") == [
        'python: plugins.1: other.py: the routing "mine" is offered by mine.py already; choose another name'
    ]
    assert (
        refusal(tmp_path, "mime.py")[0]
        == 'python: plugins.0: mime.py: cannot be read: No such file or directory. Did you mean "mine.py"?'
    )
    write(tmp_path, assignment="fixt")
    assert (
        refusal(tmp_path)[0]
        == 'python: plugins.0: mine.py: the routing "mine" names the assignment "fixt", which there is not. Did you mean "fixed"?'
    )
    with pytest.raises(
        InputError, match=r'plugins: should be a list of Python files such as \[my_routing.py\], not "mine.py"'
    ):
        tb.plan({"plugins": "mine.py", "topology": {"kind": "ring", "switches": 4}})


def test_an_installed_package_is_taken_and_a_broken_one_says_why(tmp_path, monkeypatch):
    write(tmp_path, file="lent.py")
    (tmp_path / "bad.py").write_text("raise OSError('no')")
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "lent_points.py").write_text("import lent\nKIND = lent.ROUTINGS['mine']\nOTHER = 3\n")
    points = {"mine": "lent_points:KIND", "dor": "lent_points:KIND", "odd": "lent_points:OTHER", "bad": "bad:X"}
    plugins.take_installed(
        [("routings", EntryPoint(name, value, "testbed.routings")) for name, value in points.items()]
    )
    assert tb.plan({"topology": {"kind": "ring", "switches": 4}, "routing": "mine"}).prove()
    assert plugins.origin_of("routings", "mine") == "the package lent_points:KIND"
    assert plugins.broken_plugins() == {
        "routings: dor": 'lent_points:KIND: there is a routing "dor" in testbed already; choose another name',
        "routings: odd": 'lent_points:OTHER: the routing "odd" should be a RoutingKind, not int',
        "routings: bad": "bad:X cannot be imported: OSError: no",
    }
    with pytest.raises(
        InputError, match=r'routing.kind: the plug-in "bad" cannot be used: bad:X cannot be imported: OSError: no'
    ):
        tb.plan({"topology": {"kind": "ring", "switches": 4}, "routing": "bad"})
    plugins.forget("the package lent_points:KIND")


TOPOLOGY = """
from dataclasses import dataclass
from testbed.fabric.topologies import TopologyKind
from testbed.fabric.topologies.build_topology import Extent, make_topology, on_circle
@dataclass(frozen=True, slots=True)
class Spec:
    switches: int = 4
    def extent(self):
        return Extent(self.switches, self.switches - 1, self.switches)
def build(spec):
    pairs = {pairs}
    return make_topology("star", pairs, [1] * spec.switches, on_circle(spec.switches))
TOPOLOGIES = {{"star": TopologyKind(Spec, build, "updown", "a star")}}
"""


@pytest.mark.parametrize(
    ("pairs", "sentence"),
    [
        ("[(0, k) for k in range(1, spec.switches)]", ""),
        ("[(0, 1), (2, 3), (2, 3)]", "gave a fabric that is not connected: no path joins s1 and s3"),
        ("[(0, 1), (0, 2)]", "gave a fabric that is not connected: no path joins s1 and s4"),
        ("[(0, k) for k in range(4)]", "gave a link from a switch to itself"),
        ("[(0, 1), (1, 2), (2, 3), (3, 0)]", "gave (4, 4, 4) switches, links and hosts, and its extent() says (4, 3, 4)"),
        ("[(0, 7)]", "gave port_count of shape (8,); it should be (4,)"),
        ("nothing", "raised NameError: name 'nothing' is not defined (line 11)"),
    ],
)  # fmt: skip
def test_a_topology_of_one_s_own(tmp_path, pairs, sentence):
    (tmp_path / "mine.py").write_text(TOPOLOGY.format(pairs=pairs))
    blocks = {"plugins": [str(tmp_path / "mine.py")], "topology": "star"}
    if not sentence:
        plan = tb.plan(blocks)
        assert (len(plan.switches), bool(plan.prove()), plan.core.scenario.routing_kind) == (4, True, "updown")
        return
    with pytest.raises(InputError) as error:
        tb.plan(blocks)
    assert f'topology.kind: "star" of {tmp_path}/mine.py {sentence}' in str(error.value)


PATTERN = """
def to_first(topology, seed):
    "Every host to the first."
    return {pairs}
PATTERNS = {{"to_first": to_first}}
"""


def test_a_pattern_of_one_s_own_is_a_pattern_everywhere(tmp_path):
    (tmp_path / "mine.py").write_text(PATTERN.format(pairs="[(host, 0) for host in range(topology.host_count)]"))
    load = {"kind": "iperf3", "protocol": "tcp", "pattern": "to_first"}
    blocks = {"plugins": [str(tmp_path / "mine.py")], "topology": {"kind": "ring", "switches": 4}, "workloads": [load]}
    plan = tb.plan(blocks)
    assert plan.loads("to_first").max == 2
    for pairs, sentence in (
        ("[(0, 9)]", "gave the pair (0, 9); hosts are numbered from 0 to 3"),
        ("[(0, 1), (0, 1)]", "gave a pair twice; a pair has one flow"),
        ("3", "raised TypeError: 'int' object is not iterable"),
    ):
        (tmp_path / "mine.py").write_text(PATTERN.format(pairs=pairs))
        with pytest.raises(InputError) as error:
            tb.plan(blocks)
        assert f'workloads.0.pattern: the pattern "to_first" of {tmp_path}/mine.py {sentence}' in str(error.value)


def test_a_stored_plan_is_read_where_the_plug_in_is_not(tmp_path):
    write(tmp_path)
    plan = planned(tmp_path).core
    plugins.forget(str(tmp_path / "mine.py"))
    (tmp_path / "mine.py").unlink()
    text = plan_to_json(plan)
    read = plan_from_json(text)
    assert (read.digest, read.scenario.routing_kind) == (plan.digest, "mine")
    assert plan_to_json(read) == text
    with pytest.raises(InputError, match="cannot be read"):
        scenario_of_blocks(json.loads(text)["scenario"], "x")


@pytest.mark.parametrize("name", ["updown", "dor", "dfsssp"])
def test_the_suite_for_authors_passes_the_project_s_own(name):
    found = check_routing(name)
    assert len(found.passed) + len(found.refused) == len(FABRICS)
    assert bool(found.refused) is not ROUTINGS[name].any_topology


def twenty_times(file, fabrics):
    for _ in range(20):
        check_routing(file, fabrics=fabrics)


def test_the_suite_for_authors_finds_what_is_wrong(tmp_path):
    fabrics = {"torus": {"kind": "torus", "sizes": [3, 3]}}
    for body, sentence in (
        ("import random; return stp.route_stp(topology, stp.StpOptions(root=random.choice(['s1', 's2', 's3', 's4', 's5'])))", "two plans of the same scenario differ"),
        ("r = of_stp(topology); t = r.tree_channel.copy(); t[0, 5] = -1; return replace(r, tree_channel=t)", "mine on torus .*(delivery|member|tree)"),
        ("raise ValueError('never')", "mine takes none of the 1 fabrics; of torus it says: .* raised ValueError: never"),
    ):  # fmt: skip
        write(tmp_path, body)
        with pytest.raises(AssertionError, match=sentence):
            twenty_times(tmp_path / "mine.py", fabrics)
    with pytest.raises(InputError, match=r'updwn: there is no such routing. Did you mean "updown"'):
        check_routing("updwn")


def test_the_routing_of_the_examples_keeps_what_it_promises():
    found = check_routing(EXAMPLES / "valiant.py", {"seed": 5})
    assert len(found.passed) == len(FABRICS)
    assert len((EXAMPLES / "valiant.py").read_text().splitlines()) <= 40


def test_the_topology_of_the_examples_has_chords_and_coordinates():
    plan = tb.plan(EXAMPLES / "chords6x6.yaml")
    topology = plan.core.topology
    assert (topology.link_count, topology.sizes, bool(plan.prove())) == (72 + 18, (6, 6), True)
    far = topology.coordinates[topology.links[:, 0]] - topology.coordinates[topology.links[:, 1]]
    assert (abs(far) == 3).all(axis=1).sum() == 18


@pytest.mark.slow
def test_list_and_schema_know_plug_ins(tmp_path):
    write(tmp_path)
    command = [sys.executable, "-m", "testbed"]
    done = subprocess.run(
        [*command, "list", "routings", "--plugin", str(tmp_path / "mine.py"), "--format", "json"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(done.stdout)["routings"]["mine"] == f"a test ({tmp_path}/mine.py)"
    done = subprocess.run(
        [*command, "schema", "--plugin", str(tmp_path / "mine.py")], capture_output=True, text=True, check=True
    )
    kinds = [
        block["properties"]["kind"]["const"] for block in json.loads(done.stdout)["properties"]["routing"]["anyOf"][1:]
    ]
    assert "mine" in kinds


def test_a_module_that_has_moved_is_told_with_its_place(tmp_path):
    (tmp_path / "mine.py").write_text("from testbed.routing.common import source_trees\nROUTINGS = {}\n")
    with pytest.raises(InputError, match=r"it is testbed\.fabric\.routing(\.common)? now"):
        tb.plan({"plugins": [str(tmp_path / "mine.py")], "topology": {"kind": "ring", "switches": 4}}, trust=True)
