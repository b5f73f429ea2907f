"""Readers of fabric files, and scenarios that name one."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import networkx as nx
import pytest
import yaml
from jsonschema import Draft202012Validator

from testbed.base.errors import InputError
from testbed.fabric.topologies import TOPOLOGIES, size_problem
from testbed.fabric.topologies.any_graph import Graph, graph
from testbed.planning import make_plan
from testbed.planning.store import plan_from_json, plan_to_json
from testbed.scenario import load_scenario, parse_scenario
from testbed.scenario.fabric_file import READERS, TOPOLOGY_BLOCKS, FabricFile, read_fabric
from testbed.scenario.read_scenario import as_dict
from testbed.scenario.schema import schema
from tests.fabrics import graph_of

SAMPLES = Path(__file__).parents[3] / "scenarios" / "fabrics"


def read(text, name="fabric", form="auto", hosts=None):
    return read_fabric(text, name, form, hosts)


DEEP = "it is nested too deeply: 64 lists and blocks in each other are the most that is read"


def refusal(text, name="fabric", form="auto", hosts=None):
    with pytest.raises(InputError) as error:
        read(text, name, form, hosts)
    return str(error.value).splitlines()


def graphml(inside, head=""):
    return f'<graphml>{head}<graph edgedefault="undirected">\n{inside}\n</graph></graphml>'


def sample(name):
    return read((SAMPLES / name).read_text(encoding="utf-8"), name)


# ---------------------------------------------------------------------------------------------------------------------
# What is right


def test_node_link_sample_is_the_petersen_graph():
    found = sample("petersen.json")
    assert nx.is_isomorphic(graph_of(graph(found)), nx.petersen_graph())
    assert found.switches == tuple("0123456789")
    assert found.hosts_on == [1] * 10


def test_graphml_sample_has_hosts_and_a_double_link():
    found = sample("two-rooms.graphml")
    assert found.switches == ("room1-a", "room1-b", "room1-c", "room2-a", "room2-b", "room2-c")
    assert found.links.count(("room1-a", "room2-a")) == 2
    assert len(found.links) == 9
    assert found.hosts == {"room1-b": 2, "room1-c": 2, "room2-b": 2, "room2-c": 2}


def test_ibnetdiscover_sample_is_two_spines_and_four_leaves():
    found = sample("leaf-spine.ibnetdiscover")
    spines, leaves = found.switches[:2], found.switches[2:]
    assert spines == ("S-0200000000002000", "S-0200000000002010")
    assert sorted(found.links) == sorted((spine, leaf) for spine in spines for leaf in leaves)
    assert found.hosts == dict.fromkeys(leaves, 2)


@pytest.mark.parametrize(
    ("made", "hosts"),
    [
        (nx.petersen_graph(), 10),
        (nx.grid_graph((3, 4), periodic=True), 12),  # nodes are pairs of numbers
        (nx.MultiGraph([("a", "b"), ("a", "b"), ("b", "c")]), 3),
    ],
)
def test_what_networkx_writes_is_read(made, hosts, tmp_path):
    for key in ("links", "edges"):
        found = graph(read(json.dumps(nx.node_link_data(made, edges=key))))
        assert nx.is_isomorphic(graph_of(found), nx.Graph(made))
        assert (found.link_count, found.host_count) == (made.number_of_edges(), hosts)
    nx.write_graphml(made, tmp_path / "x")
    found = graph(read((tmp_path / "x").read_text(encoding="utf-8")))
    assert nx.is_isomorphic(graph_of(found), nx.Graph(made))
    assert (found.link_count, found.host_count) == (made.number_of_edges(), hosts)


def test_hosts_that_networkx_writes_are_read(tmp_path):
    star = nx.star_graph(5)
    nx.set_node_attributes(star, {node: "host" if node else "switch" for node in star}, "type")
    nx.write_graphml(star, tmp_path / "x")
    for text in (json.dumps(nx.node_link_data(star, edges="links")), (tmp_path / "x").read_text(encoding="utf-8")):
        assert read(text) == Graph(switches=("0",), hosts={"0": 5})


def test_a_default_of_graphml_is_what_a_node_has():
    key = '<key id="k" for="node" attr.name="kind"><default>Host</default></key>'
    text = graphml('<node id="a"><data key="k">switch</data></node><node id="b"/><edge source="b" target="a"/>', key)
    assert read(text) == Graph(switches=("a",), hosts={"a": 1})


def test_attributes_of_edges_say_nothing_of_hosts():
    keys = '<key id="e" for="edge" attr.name="kind"/><key id="o" for="node" attr.name="owner"/>'
    nodes = '<node id="a"><data key="o">host</data></node><node id="b"><data key="e">host</data></node>'
    assert read(graphml(nodes + '<edge source="a" target="b"/>', keys)).switches == ("a", "b")


def test_ports_of_a_chassis_and_a_link_listed_at_one_end_only():
    text = (
        'Chassis 1 (guid 0x2c9)\nSwitch  24 "S-1"\n[22][ext 3]\t"H-1"[1](2c9)\t# "host"\n[1]\t"S-2"[4][ext 1]\n\n'
        'Non-Chassis Nodes\nvendid=0x2c9\nSwitch 24 "S-2" # "x" base port 0\n# a remark\nCa 2 "H-1"\n'
        '[1](2c9)\t"S-1"[22]\n'
    )
    assert read(text) == Graph(switches=("S-1", "S-2"), links=(("S-1", "S-2"),), hosts={"S-1": 1})


def test_two_cables_between_two_switches_are_two_links():
    text = 'Switch 2 "A"\n[1] "B"[2]\n[2] "B"[1]\nSwitch 2 "B"\n[1] "A"[2]\n[2] "A"[1]\n'
    assert read(text).links == (("A", "B"), ("A", "B"))


@pytest.mark.parametrize("name", sorted(file.name for file in SAMPLES.iterdir()))
def test_the_format_is_told_by_ending_or_content(name):
    text = (SAMPLES / name).read_text(encoding="utf-8")
    forms = [form for form in READERS if _reads(text, form)]
    assert len(forms) == 1
    assert read(text, name) == read(text, "no-ending") == read("\ufeff" + text, name) == read(text, "x", forms[0])


def _reads(text, form):
    try:
        return bool(read(text, "x", form).switches)
    except InputError:
        return False


@pytest.mark.slow
def test_a_hundred_thousand_edges_are_read_in_seconds():
    count = 16_000
    edges = [(node, node // 2) for node in range(1, count)] + [
        (node % count, (node * 7 + 1) % count) for node in range(84_001)
    ]
    edges = [(a, b) for a, b in edges if a != b]
    nodes = "".join(f'<node id="n{node}"/>' for node in range(count))
    text = graphml(nodes + "".join(f'<edge source="n{a}" target="n{b}"/>' for a, b in edges))
    began = time.process_time()
    found = read(text)
    assert len(found.links) == len(edges) > 99_000
    assert size_problem(found) is None
    assert time.process_time() - began < 20  # 1.2 s on two cores of a shared machine


# ---------------------------------------------------------------------------------------------------------------------
# What is wrong


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("", ["is empty"]),
        (" \n\t\n", ["is empty"]),
        ("\ufeff", ["is empty"]),
        ("\ud800", ["is not UTF-8 text"]),
        ("hello", ["is in no known format; set format: to one of " + ", ".join(READERS)]),
        ("{", ["line 1, column 2: is not JSON: Expecting property name enclosed in double quotes"]),
        ('{"nodes": [],\n "links": [}', ["line 2, column 12: is not JSON: Expecting value"]),
        (
            '{"":' + "[" * 100_000,
            [DEEP],
        ),
        ('{"nodes": [], "nodes": []}', ['the key "nodes" is listed twice in one block; remove one']),
        ("{}", ['should look like {"nodes": [{"id": …}, …], "links": [{"source": …, "target": …}, …]}']),
        ('{"nodes": []}', ['should look like {"nodes": [{"id": …}, …], "links": [{"source": …, "target": …}, …]}']),
        ('{"nodes": [], "links": []}', ["names no switch"]),
        ("<svg/>", ["line 1: is XML but no GraphML, as it starts with <svg>"]),
        ("<graphml/>", ["has no graph"]),
        ("<graphml>\n<graph>", ["line 2, column 8: is not XML: no element found"]),
        ("<graphml>\n</graph>", ["line 2, column 3: is not XML: mismatched tag"]),
        ("<graphml><graph/></graphml>", ["names no switch"]),
        (
            '<?xml version="1.0"?>\n<!-- <!DOCTYPE a> -->\n<!DOCTYPE graphml [<!ENTITY a "b">]><graphml/>',
            ["line 3: has a document type declaration, which GraphML does not need; remove it"],
        ),
    ],
)
def test_texts_that_are_no_fabric(text, lines):
    assert refusal(text) == lines


def test_entities_that_grow_without_bound_are_refused_at_once():
    grow = "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 10}">' for n in range(1, 12))
    text = f'<!DOCTYPE g [<!ENTITY e0 "aaaaaaaaaa">{grow}]><graphml>&e11;</graphml>'
    began = time.process_time()
    assert len(refusal(text)) == 1
    assert time.process_time() - began < 5


def test_all_that_is_wrong_with_node_link_is_said_at_once():
    text = json.dumps(
        {
            "directed": True,
            "nodes": [{"id": "core"}, {"id": "core"}, {}, {"id": 1.5}, 7, {"id": ""}, {"id": "h", "kind": "host"},
                      {"id": "g", "kind": "host"}, {"id": True}, {"id": []}],
            "links": [{"source": "core", "target": "croe"}, {"source": "core", "target": "core"}, {"source": "core"},
                      {"source": "h", "target": "g"}, {"source": "h", "target": "core"}, None],
            "edges": [],
        }
    )  # fmt: skip
    assert refusal(text) == [
        "edges: says what links says too; remove one of them",
        "nodes.4: should be a block in braces",
        "nodes.2.id: is required: the name of a node",
        "nodes.3.id: should be text or a whole number",
        "nodes.8.id: should be text or a whole number",
        "nodes.9.id: should be text or a whole number",
        "links.5: should be a block in braces",
        "links.2.target: is required: the name of a node",
        'nodes.1: the name "core" is used at nodes.0 already',
        "nodes.5: should be a name of printable characters",
        'links.0: there is no node "croe". Did you mean "core"?',
        'links.3: joins the hosts "h" and "g"; a host is linked to a switch',
    ]
    assert refusal('{"nodes": 1, "links": {}}') == ["nodes: should be a list", "links: should be a list"]


def test_all_that_is_wrong_with_graphml_is_said_at_once():
    host = '<data key="kind">host</data>'
    text = graphml(
        '<node id="a"/>\n<node id="a"/>\n<node/>\n<edge source="a" target="b"/>\n<edge source="a" target="a"/>\n'
        f'<edge source="a"/>\n<node id="h">{host}</node>\n<hyperedge/>\n<node id="n"><graph/></node>\n'
        '<edge source="a" target="n" directed="true"/>'
    )
    assert refusal(text) == [
        'line 4: lacks id="…"',
        'line 7: lacks target="…"',
        "line 9: is a hyperedge, which cannot be read",
        "line 10: is a graph inside a graph, or a second one, which cannot be read",
        'line 3: the name "a" is used at line 2 already',
        'line 5: there is no node "b".',
        'line 8: the host "h" has no link, as no host has',
    ]


def test_all_that_is_wrong_with_ibnetdiscover_is_said_at_once():
    text = (
        '[1] "S-1"[1]\nSwitch 4 "S-1"\n[1] "S-2"[1]\n[1] "S-2"[2]\n[5] "S-2"[3]\n[2] "S-9"[1]\n'
        'Switch 4 "S-2"\n[1] "S-1"[3]\nRt 2 "R-1"\nwhat is this\nCa 2 "H-1"\n[1] "S-1"[4]\n[2] "S-2"[4]\n'
    )
    assert refusal(text) == [
        "line 1: is a port before the first Switch or Ca line",
        'line 4: port 1 of "S-1" is on line 3 too',
        'line 5: "S-1" has ports 1 to 4, no port 5',
        'line 9: "R-1" is a router; only switches and adapters can be read',
        "line 10: is not a line of ibnetdiscover output",
        'line 3: leads to port 1 of "S-2", which leads elsewhere on line 8',
        'line 6: there is no node "S-9". Did you mean "S-2"?',
    ]


def test_hosts_are_told_in_one_place_only():
    text = json.dumps({"nodes": [{"id": 1}, {"id": 2, "kind": "host"}], "links": [{"source": 1, "target": 2}]})
    assert refusal(text, hosts=2) == ["names its hosts, so leave hosts_per_switch out"]
    assert read('{"nodes": [{"id": 1}], "links": []}', hosts=3).hosts_on == [3]


def test_a_divided_fabric_names_its_parts():
    text = 'Switch 2 "A"\n[1] "B"[1]\nSwitch 2 "B"\nSwitch 2 "C"\n'
    assert refusal(text) == [
        'is in 2 parts that no path joins, those of "A" (2 switches), "C" (1 switch); a fabric must be connected'
    ]


def test_a_long_list_of_problems_is_cut_and_costs_little():
    nodes = "".join(f'<node id="n{node}"/>' for node in range(5000))
    began = time.process_time()
    lines = refusal(graphml(nodes + '<edge source="x" target="y"/>\n' * 5000))
    assert (len(lines), lines[-1]) == (21, "there is more wrong than these 20")
    assert time.process_time() - began < 5


# ---------------------------------------------------------------------------------------------------------------------
# Scenarios


def scenario_file(folder, path, **more):
    file = folder / "x.yaml"
    file.write_text(yaml.safe_dump({"topology": {"kind": "file", "path": path, **more}}), encoding="utf-8")
    return file


def test_a_file_is_found_from_the_scenarios_folder_and_kept(tmp_path, monkeypatch):
    (tmp_path / "sub").mkdir()
    copy = tmp_path / "sub" / "ring.json"
    copy.write_text(json.dumps(nx.node_link_data(nx.cycle_graph(3), edges="links")))
    file = scenario_file(tmp_path, "sub/ring.json", hosts_per_switch=2)
    monkeypatch.chdir("/")
    scenario = load_scenario(file)
    assert scenario.topology_kind == "graph"
    assert scenario.topology.switches == ("0", "1", "2")
    assert scenario.topology.hosts_on == [2, 2, 2]
    copy.unlink()
    assert parse_scenario(yaml.safe_dump(as_dict(scenario)), str(file)) == scenario


def test_a_plan_of_a_fabric_file_survives_json(tmp_path):
    text = 'Switch 4 "A"\n[1] "B"[1]\n[2] "H1"[1]\nSwitch 4 "B"\n[2] "H2"[1]\nCa 1 "H1"\nCa 1 "H2"\n'
    (tmp_path / "x.topo").write_text(text)
    plan = make_plan(load_scenario(scenario_file(tmp_path, "x.topo")))
    plan.require_proof()
    assert plan.topology.switch_labels == ("A", "B")
    back = plan_from_json(plan_to_json(plan))
    assert back.topology.switch_labels == ("A", "B")
    assert (back.scenario, back.digest) == (plan.scenario, plan.digest)


def file_problem(folder, path, **more):
    with pytest.raises(InputError) as error:
        load_scenario(scenario_file(folder, path, **more))
    return str(error.value).removeprefix(f"{folder}/x.yaml: topology.path: ")


def test_files_that_cannot_be_read(tmp_path):
    (tmp_path / "ring.json").write_text("{}")
    (tmp_path / "latin.json").write_bytes(b'{"nodes": [{"id": "caf\xe9"}], "links": []}')
    os.mkfifo(tmp_path / "pipe")
    with (tmp_path / "huge").open("wb") as huge:
        huge.truncate(2**40)
    assert file_problem(tmp_path, "rign.json") == (
        f'rign.json: there is no file {tmp_path}/rign.json. Did you mean "ring.json"?'
    )
    assert file_problem(tmp_path, "no/x.json") == f"no/x.json: there is no file {tmp_path}/no/x.json."
    assert file_problem(tmp_path, ".") == ".: cannot be read: Is a directory"
    assert file_problem(tmp_path, "pipe") == "pipe: cannot be read: it is a pipe or a device, not a file"
    assert file_problem(tmp_path, "latin.json") == "latin.json: cannot be read: it is not UTF-8 text"
    assert file_problem(tmp_path, "huge") == (
        "huge: cannot be read: it has 1,099,511,627,776 bytes; 268,435,456 bytes are the most that is read; "
        "TESTBED_LIMITS=10 in the environment is ten times as much"
    )
    assert file_problem(tmp_path, "a\0b") == '"a\\u0000b": cannot be read: embedded null byte'
    assert file_problem(tmp_path, "x" * 300).endswith(": cannot be read: File name too long")
    assert file_problem(tmp_path, "ring.json/x").endswith(": cannot be read: Not a directory")


def test_problems_of_a_file_stand_beside_those_of_the_scenario(tmp_path):
    (tmp_path / "x.json").write_text('{"nodes": [{"id": 1}, {"id": 1}], "links": [{"source": 1, "target": 2}]}')
    file = scenario_file(tmp_path, "x.json")
    file.write_text(file.read_text() + "lab: {dilation: 0}\n")
    with pytest.raises(InputError) as error:
        load_scenario(file)
    assert str(error.value).replace(f"{file}: ", "").splitlines() == [
        'topology.path: x.json: nodes.1: the name "1" is used at nodes.0 already',
        'topology.path: x.json: links.0: there is no node "2".',
        "lab.dilation: should be 1 or more, not 0",
    ]


@pytest.mark.slow
def test_a_file_of_too_many_switches_says_so(tmp_path):
    path = nx.path_graph(32_769)
    (tmp_path / "x.json").write_text(json.dumps(nx.node_link_data(path, edges="links")))
    with pytest.raises(InputError, match=r"x.yaml: topology: is too large: 32,769 switches \(at most 32,768\)$"):
        load_scenario(scenario_file(tmp_path, "x.json"))


def test_the_table_of_blocks_is_that_of_topologies_and_files():
    assert set(TOPOLOGY_BLOCKS) == {*TOPOLOGIES, "file"}
    assert TOPOLOGY_BLOCKS["file"].spec is FabricFile


@pytest.mark.parametrize(
    ("blocks", "fits"),
    [
        ({"topology": {"kind": "graph", "switches": ["a", "b"], "links": [["a", "b"]], "hosts": {"a": 1}}}, True),
        ({"topology": {"kind": "graph", "switches": ["a", "b"], "links": [["a"]]}}, False),
        ({"topology": {"kind": "graph", "switches": ["a"], "hosts": {"a": -1}}}, False),
        ({"topology": {"kind": "file", "path": "x.json", "format": "graphml", "hosts_per_switch": 3}}, True),
        ({"topology": {"kind": "file", "format": "graphml"}}, False),
        ({"topology": {"kind": "random", "switches": 8, "degree": 3}}, False),
        ({"topology": {"kind": "flat", "hosts": 2}, "faults": {"links": [["s1", "s2"], ["s1", "s2", 1]]}}, True),
        ({"topology": {"kind": "flat", "hosts": 2}, "faults": {"links": [["s1", "s2", -1]]}}, False),
        ({"topology": {"kind": "flat", "hosts": 2}, "faults": {"percent": 101, "seed": 1}}, False),
    ],
)
def test_the_schema_tells_right_blocks_from_wrong_ones(blocks, fits):
    assert Draft202012Validator(schema()).is_valid(blocks) == fits


def test_a_resolved_graph_fits_the_schema():
    scenario = parse_scenario("topology: {kind: graph, switches: [a, b], links: [[a, b]]}", "x.yaml")
    assert Draft202012Validator(schema()).is_valid(json.loads(json.dumps(as_dict(scenario))))
