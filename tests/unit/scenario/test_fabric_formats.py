"""Files of other programs that describe a fabric: what is read of them, what is said of the rest."""

from __future__ import annotations

import json
import time

import networkx as nx
import pytest

from testbed.base.errors import InputError
from testbed.fabric.topologies.any_graph import graph
from testbed.scenario.fabric_file import read_file_fabric
from testbed.scenario.fabric_files.first_scenario import write_first_scenario
from testbed.scenario.fabric_files.formats import FORMATS, find_format
from tests.fabrics import graph_of

GBIT = 1e9


def read(text, form="auto", name="fabric"):
    return read_file_fabric(text, name, form, None)


def refusal(text, form="auto", name="fabric"):
    with pytest.raises(InputError) as error:
        read(text, form, name)
    return str(error.value).splitlines()


def graphml(inside, direction="undirected", head=""):
    space = 'xmlns="http://graphml.graphdrawing.org/xmlns" xmlns:y="http://www.yworks.com/xml/graphml"'
    return f'<graphml {space}>{head}<graph edgedefault="{direction}">\n{inside}\n</graph></graphml>'


# ---------------------------------------------------------------------------------------------------------------------
# GraphML and node-link JSON


def yed_node(number, label):
    shape = f"<y:ShapeNode><y:NodeLabel x='1'>{label}<y:LabelModel/></y:NodeLabel></y:ShapeNode>"
    return f'<node id="n{number}"><data key="g">{shape}</data></node>'


def test_a_drawing_of_yed_has_each_edge_once_and_its_labels():
    edges = '<edge source="n0" target="n1"/><edge source="n1" target="n2"/><edge source="n2" target="n0"/>'
    nodes = yed_node(0, "Oslo") + yed_node(1, "\n Rome ") + yed_node(2, "Oslo")
    found = read(graphml(nodes + edges, "directed"))
    assert found.graph.switches == ("Oslo (n0)", "Rome", "Oslo (n2)")
    assert len(found.graph.links) == 3
    assert found.notes == ("3 edges with a direction: each is one link, which carries frames both ways",)


def test_edges_that_all_have_their_opposite_are_one_link_a_pair():
    made = nx.node_link_data(nx.cycle_graph(5).to_directed(), edges="links")
    found = read(json.dumps(made))
    assert nx.is_isomorphic(graph_of(graph(found.graph)), nx.cycle_graph(5))
    assert len(found.graph.links) == 5
    (note,) = found.notes
    assert note.startswith("10 edges with a direction: every one has its opposite, and each pair of these is one link")


def test_some_opposite_edges_are_parallel_links_with_a_note():
    nodes = "".join(f'<node id="{name}"/>' for name in "abc")
    edges = '<edge source="a" target="b"/><edge source="b" target="a"/><edge source="b" target="c"/>'
    found = read(graphml(nodes + edges, "directed"))
    assert found.graph.links == (("a", "b"), ("b", "a"), ("b", "c"))
    assert found.notes[0].endswith("; 1 pair of opposite edges are parallel links")


def test_an_edge_may_say_its_direction_itself():
    text = graphml('<node id="a"/><node id="b"/><edge source="a" target="b" directed="true"/>')
    assert read(text).notes == ("1 edge with a direction: each is one link, which carries frames both ways",)
    text = graphml('<node id="a"/><node id="b"/><edge source="a" target="b" directed="false"/>', "directed")
    assert read(text).notes == ()


def test_cables_from_a_switch_to_itself_are_passed_over():
    edges = "".join(f'<edge source="{one}" target="{other}"/>\n' for one, other in ("ab", "aa", "ab", "bb"))
    found = read(graphml('<node id="a"/><node id="b"/>\n' + edges))
    assert found.graph.links == (("a", "b"), ("a", "b"))
    assert found.notes == ('2 cables from a switch to itself passed over: "a" (line 4), "b" (line 6)',)


def test_labels_are_names_and_the_id_tells_equal_ones_apart():
    nodes = [{"id": 0, "name": "Bern"}, {"id": 1, "label": "Ulm"}, {"id": 2, "name": "Bern"}, {"id": 3, "name": ""}]
    links = [{"source": at, "target": (at + 1) % 4} for at in range(4)]
    found = read(json.dumps({"nodes": nodes, "links": links}))
    assert found.graph.switches == ("Bern (0)", "Ulm", "Bern (2)", "3")
    assert graph(found.graph).switch_labels == found.graph.switches


def test_labels_that_collide_with_ids_are_left_out():
    nodes = [{"id": "a", "name": "x (b)"}, {"id": "b", "name": "x"}, {"id": "c", "name": "x"}]
    found = read(json.dumps({"nodes": nodes, "links": [{"source": "a", "target": end} for end in "bc"]}))
    assert found.graph.switches == ("a", "b", "c")


def test_a_label_with_an_escape_sequence_is_no_name():
    nodes = [{"id": "a", "name": "\x1b[31mred"}, {"id": "b", "name": "\u202eb"}]
    found = read(json.dumps({"nodes": nodes, "links": [{"source": "a", "target": "b"}]}))
    assert found.graph.switches == ("a", "b")


def test_demands_of_topohub_are_between_the_hosts_of_switches():
    about = {"demands": {"0": {"1": 12.5, "2": 0}, "2": {"0": 3}}}
    nodes, links = [{"id": at} for at in range(3)], [{"source": 0, "target": 1}, {"source": 1, "target": 2}]
    found = read(json.dumps({"graph": about, "nodes": nodes, "edges": links}))
    assert found.demands == ((0, 1, 12.5), (2, 0, 3.0))
    about = {"demands": {"0": {"7": 1, "1": "x", "2": -1}, "1": 5}}
    assert refusal(json.dumps({"graph": about, "nodes": nodes, "edges": links})) == [
        'graph.demands: should look like {"0": {"1": 12.5}}',
        'graph.demands.0.7: there is no node "7"',
        "graph.demands.0.1: should be a number from 0 up to 10^15",
        "graph.demands.0.2: should be a number from 0 up to 10^15",
    ]


# ---------------------------------------------------------------------------------------------------------------------
# InfiniBand


def test_an_adapter_with_two_ports_is_two_hosts():
    text = (
        'ibwarn: [71] mad_rpc: timed out\nSwitch 8 "S"\t# "core" base port 0\n[1] "H"[1](a1)\t# "n1" lid 4 4xEDR\n'
        '[2] "H"[2](a2)\t# "n1" lid 5 4xFDR\n[3] "T"[1]\t# 4xQDR\n[8] "A"[1](b1)\t# "x" 4xHDR\nSwitch 8 "T"\n'
        '[1] "S"[3]\t# 1xQDR\n[5] "T"[6]\n[6] "T"[5]\nCa 2 "H"\t# "n1"\nCa 1 "A"\t# "Mellanox Technologies Aggregation '
        'Node"\n[1](b1) "S"[8]\n'
    )
    found = read(text)
    assert found.graph.hosts == {"S": 2}
    assert found.host_rates == (100 * GBIT, pytest.approx(54.545 * GBIT, rel=1e-4))
    assert (found.graph.links, found.rates) == ((("S", "T"),), (8 * GBIT,))
    assert found.notes == (
        "1 line of messages passed over, the first at line 1: what they tell of may be missing",
        "1 aggregation node passed over, which no host is behind",
        "1 link with another speed at either end: the lower one",
        '1 cable from a switch to itself passed over: "T" (line 9)',
        '1 host ("H") with several links: as many hosts, one a link',
    )


def test_input_of_ibsim_is_read():
    text = (
        'Switch\t8 "Switch1"\n[1]\t"Hca1"[1]\tw=4\n[3]\t"Switch2"[3]\n[4]\t"Switch2"[4]\n\nSwitch 8 "Switch2"\n'
        '[3]\t"Switch1"[3]\n[4]\t"Switch1"[4]\n\nHca\t2 "Hca1"\n[1]\t"Switch1"[1]\n\nHca 2 "Hca2"\n'
    )
    found = read(text)
    assert found.graph.links == (("Switch1", "Switch2"),) * 2
    assert found.graph.hosts == {"Switch1": 1}
    assert found.notes == ('1 host ("Hca2") without a link passed over', "passed over: w= (1×)")


def test_a_speed_that_is_not_known_is_said():
    found = read('Switch 2 "A"\n[1] "B"[1] # 4xZZZ\nSwitch 2 "B"\n')
    assert found.rates == (None,)
    assert found.notes == ("not understood: speed ZZZ (1×)",)


# ---------------------------------------------------------------------------------------------------------------------
# containerlab and netlab

CLAB = """\
name: two
topology:
  defaults: {kind: nokia_srlinux}
  groups: {clients: {kind: linux}}
  nodes:
    a: {type: ixr-d2l}
    b:
    c1: {group: clients}
    c2: {kind: linux, image: x}
  links:
    - endpoints: ["a:e1-1", "b:e1-1"]
    - endpoints: ["a:e1-2", "b:e1-2"]
      mtu: 9000
    - type: veth
      endpoints: [{node: c1, interface: eth1}, {node: a, interface: e1-3}]
    - endpoints: ["c2:eth1", "b:e1-3"]
    - endpoints: ["a:e1-9", "host:veth"]
    - {type: macvlan, endpoint: {node: a, interface: e1-8}}
"""


def test_a_lab_of_containerlab_is_read():
    found = read(CLAB, name="two.clab.yml")
    assert found == read(CLAB)
    assert found.graph.switches == ("a", "b")
    assert found.graph.links == (("a", "b"), ("a", "b"))
    assert (found.graph.hosts, found.host_names) == ({"a": 1, "b": 1}, ("c1", "c2"))
    assert found.notes == (
        "passed over: node: type (1×), node: image (1×), link: mtu (1×), links to host (1×), link: endpoint (1×), "
        "links of the type macvlan (1×)",
    )


def test_all_that_is_wrong_with_a_lab_of_containerlab_is_said():
    text = (
        "topology:\n  nodes: {a: {}, b: 7}\n"
        "  links: [{endpoints: [a]}, {endpoints: [a, 'x:1']}, 5, {endpoints: ['a:1', 'x:1'], frob: 1}]"
    )
    assert refusal(text, "containerlab") == [
        "topology.nodes.b: should be a block such as {kind: linux}",
        'topology.links.0.endpoints: should be two ends such as ["a:eth1", "b:eth1"]',
        'topology.links.1.endpoints.0: should be a node and its interface, not "a"',
        'topology.links.2: should be a block such as {endpoints: ["a:eth1", "b:eth1"]}',
        'topology.links.3: there is no node "x".',
    ]
    (line,) = refusal("topology: {nodes: [a]}", "containerlab")
    assert line.startswith("should look like {topology: {nodes:")
    linux = "topology:\n  nodes: {a: {kind: linux}, b: {kind: linux}, s: {}}\n  links: [{endpoints: ['a:1', 'b:1']}]"
    assert refusal(linux, "containerlab") == [
        'topology.links.0: joins the hosts "a" and "b"; a host is linked to a switch'
    ]


NETLAB = """\
groups:
  _auto_create: true
  hosts: {members: [h1, h2], device: linux}
  switches: {members: [s1, s2], module: [vlan]}
nodes:
  h3: {role: host}
vlans:
  red: {links: [s1-h1, s2-h2]}
links:
- s1:
  s2:
  vlan.trunk: [red]
- lag: {members: [s1-s2, s1-s2]}
- interfaces: [{node: h3}, {node: s2}]
- s1
- [s1, s2, h3]
"""


def test_a_topology_of_netlab_is_read():
    found = read(NETLAB)
    assert found.graph.switches == ("s1", "s2", "bridge of links.4")
    assert found.graph.links == (*[("s1", "s2")] * 3, ("bridge of links.4", "s1"), ("bridge of links.4", "s2"))
    assert found.graph.hosts == {"s1": 1, "s2": 2, "bridge of links.4": 1}
    assert 'links.4 joins 3 nodes: a switch, "bridge of links.4"' in found.notes
    assert found.notes[-1].startswith("passed over: ")
    assert "a link of one node (1×)" in found.notes[-1]


def test_what_netlab_would_add_when_it_runs_is_refused_or_noted():
    assert refusal("nodes: [a, b]\nlinks: [a-b]\ncomponents: {x: {}}") == [
        '"components" may change which nodes and links there are, and cannot be read; write out what it makes'
    ]
    assert refusal("nodes: [a, b]\nlinks: [{a: , b: , count: 3}, a-x, []]") == [
        'links.0: "count" may change which nodes and links there are, and cannot be read; write out what it makes',
        "links.2: names no node; should have nodes: or groups: and links:, such as {nodes: [s1, s2], links: [s1-s2]}",
        'links.1: there is no node "x".',
    ]
    found = read("nodes: [a, b]\nlinks: [a-b]\nplugin: [fabric]\nfrob: 1")
    assert found.notes[0].startswith("plugin: may change the topology")
    assert found.notes[-1] == "not understood: top: frob (1×)"


@pytest.mark.parametrize("form", ["containerlab", "netlab"])
def test_yaml_that_grows_by_aliases_or_depth_is_refused_at_once(form):
    grow = "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 12))
    began = time.process_time()
    for text in ("a0: &a0 x\n" + grow, "nodes: " + "[" * 5000):
        assert len(refusal(text, form)) == 1
    assert time.process_time() - began < 5


# ---------------------------------------------------------------------------------------------------------------------
# MiniEdit, BookSim, SimGrid


def miniedit(links, **more):
    switches = [{"number": str(at), "opts": {"hostname": f"s{at}", "switchType": "default"}} for at in (1, 2)]
    hosts = [{"number": "1", "opts": {"hostname": "h1"}, "x": "1"}]
    return json.dumps({"controllers": [{}], "hosts": hosts, "switches": switches, "links": links, **more})


def test_a_drawing_of_miniedit_is_read_with_its_bandwidths():
    links = [{"src": "s1", "dest": "s2", "opts": {"bw": 10, "delay": "5ms"}}, {"src": "h1", "dest": "s1", "opts": {}}]
    found = read(miniedit(links), name="x.mn")
    assert found == read(miniedit(links), name="x.json")
    assert (found.graph.links, found.rates, found.graph.hosts) == ((("s1", "s2"),), (1e7,), {"s1": 1})
    assert found.notes == ("passed over: controllers (1×), link: delay (1×)",)
    wrong = [{"src": "s1", "dest": "s2", "opts": {"bw": "fast"}}, {"src": "s1"}, {"src": "s1", "dest": "s9"}]
    assert refusal(miniedit(wrong, hosts=[{"opts": {}}])) == [
        "hosts.0.opts.hostname: is required: the name of a node",
        "links.0.opts.bw: should be Mbit/s above 0 and up to a million",
        'links.1: should be a block such as {"src": "h1", "dest": "s1"}',
        'links.2: there is no node "s9". Did you mean "s2"?',
    ]


def test_a_network_of_booksim_has_each_link_once():
    text = (
        "router 0 node 0 node 1 router 1 15\nrouter 1 node 2 router 0 // back\n"
        "router 2 router 0 router 1\nnode 3 router 2\n"
    )
    found = read(text)
    assert found.graph.switches == ("router 0", "router 1", "router 2")
    assert sorted(found.graph.links) == [
        ("router 0", "router 1"), ("router 2", "router 0"), ("router 2", "router 1"),
    ]  # fmt: skip
    assert found.graph.hosts == {"router 0": 2, "router 1": 1, "router 2": 1}
    assert found.notes == ("passed over: latency (1×)",)
    assert refusal("router 0 router 1\nrouter x\n") == [
        'line 2: should be a line such as "router 0 node 0 router 1", not "router x"'
    ]
    assert refusal("topology = anynet;\nnetwork_file = my_net;\n") == [
        'is a configuration of BookSim; its network is in the file "my_net": name that one'
    ]


def platform(kind, parameters, hosts, more="", doctype='<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">'):
    shape = f'topology="{kind}" topo_parameters="{parameters}"' if kind else ""
    cluster = f'<cluster id="c" prefix="n" suffix="" radical="0-{hosts - 1}" bw="1.25GBps" lat="1us" {shape}/>'
    return f'<?xml version="1.0"?>\n{doctype}\n<platform version="4.1">{more}{cluster}</platform>'


def test_a_torus_of_simgrid_has_two_links_between_two():
    found = read(platform("TORUS", "3,2", 6), name="x.xml")
    ring, pair = nx.cycle_graph(3), nx.path_graph(2)
    assert nx.is_isomorphic(graph_of(graph(found.graph)), nx.cartesian_product(ring, pair))
    assert len(found.graph.links) == 6 + 6
    assert {*found.rates, *found.host_rates} == {10 * GBIT}
    assert found.host_names == tuple(f"n{at}" for at in range(6))


@pytest.mark.parametrize(
    ("parameters", "hosts", "levels", "links"),
    [("2;4,4;1,2;1,2", 16, [4, 2], 16), ("3;2,2,2;1,2,2;1,1,1", 8, [4, 4, 4], 16), ("1;5;1;1", 5, [1], 0)],
)
def test_a_fat_tree_of_simgrid_has_its_levels_and_cables(parameters, hosts, levels, links):
    found = read(platform("FAT_TREE", parameters, hosts))
    assert len(found.graph.switches) == sum(levels)
    assert len(found.graph.links) == links
    made = graph(found.graph)
    assert made.host_count == hosts
    down = int(parameters.split(";")[1].split(",")[0])
    assert sorted({int(switch): 0 for switch in made.host_switch}) == list(range(hosts // down))
    # every switch below the top has a way up to the top, and all leaves reach each other
    assert nx.is_connected(graph_of(made))


def test_a_dragonfly_of_simgrid_has_groups_and_chassis():
    found = read(platform("DRAGONFLY", "3,4;4,3;5,1;2", 120))
    assert len(found.graph.switches) == 60
    assert len(found.graph.links) == 12 * 10 * 1 + 3 * 5 * 6 * 3 + 3 * 4
    assert set(found.graph.hosts.values()) == {2}


def test_a_cluster_without_a_topology_is_one_switch():
    assert read(platform("", "", 4)).graph.hosts == {"switch 0": 4}


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (platform("TORUS", "3,3", 6), "topo_parameters \"3,3\": a torus of 9 and 6 hosts; both should be as many"),
        (platform("TORUS", "x", 6), "topo_parameters should be numbers such as 3,2,2"),
        (platform("RING", "6", 6), 'its topology should be one of TORUS, FAT_TREE, DRAGONFLY, FLAT, not "RING"'),
        (platform("FAT_TREE", "2;4,4;1,2", 16), "with a number for each level"),
        (platform("DRAGONFLY", "9,1;1,1;2,1;1", 18), "each router has one link to another group at most"),
        (platform("TORUS", "6", 6, '<host id="h" speed="1f"/>'), "<host> cannot be read"),
        (platform("TORUS", "6", 6).replace("0-5", "0-99999999"), "radical should be numbers such as 0-15"),
        (platform("TORUS", "6", 6).replace("1.25GBps", "fast"), 'bw should be a rate such as 125MBps, not "fast"'),
        (platform("TORUS", "6", 6, '<cluster id="d"/>'), "has 2 <cluster>"),
        (
            platform("TORUS", "6", 6, doctype='<!DOCTYPE platform [<!ENTITY a "b">]>'),
            "line 2: declares something of its own, such as an entity",
        ),
        ("<platform>", "is not XML"),
        ("<other>x</other>", "is XML but no platform of SimGrid"),
        ("<platform>" * 100, "elements are nested too deeply"),
    ],
)  # fmt: skip
def test_platforms_that_cannot_be_read_have_a_sentence(text, sentence):
    assert sentence in "\n".join(refusal(text, "simgrid"))


# ---------------------------------------------------------------------------------------------------------------------
# The table, and the first scenario


@pytest.mark.parametrize(
    ("form", "name", "text"),
    [
        ("containerlab", "x.yml", CLAB), ("netlab", "topology.yml", NETLAB), ("miniedit", "x", miniedit([])),
        ("anynet", "x", "router 0 node 0\n"), ("simgrid", "x.xml", platform("TORUS", "6", 6)),
        ("graphml", "x.xml", graphml("")), ("node_link", "x", '{"nodes": [], "links": []}'),
        ("ibnetdiscover", "x.topo", 'Hca 2 "H"\n'),
    ],
)  # fmt: skip
def test_a_format_is_told_by_what_a_file_holds(form, name, text):
    assert find_format(text, name) == form


def test_every_format_says_what_it_does_with_its_constructs():
    for entry in FORMATS.values():
        assert {"read", "passed over"} <= {*entry.constructs.values()}


def test_a_scenario_of_a_file_has_its_rates_notes_and_demands():
    text = 'Switch 8 "A"\n[1] "B"[1] # 4xEDR\n[2] "B"[2] # 4xQDR\n[3] "H"[1] # 4xEDR\nSwitch 8 "B"\nCa 1 "H"\n'
    files, _ = write_first_scenario(text, "rack 1.topo")
    assert [*files] == ["rack-1.yaml", "rack-1.topo"]
    for line in ("  rate: 100 Gbit/s", "  host_rate: 100 Gbit/s", "    s1-s2#1: 32 Gbit/s", '# hosts: h1 "H"'):
        assert line in files["rack-1.yaml"].splitlines()
    about = {"demands": {"0": {"1": 12.5}}}
    nodes, links = [{"id": 0}, {"id": 1}], [{"source": 0, "target": 1}]
    files, _ = write_first_scenario(json.dumps({"graph": about, "nodes": nodes, "links": links}), "t.json")
    assert files["t-demands.csv"] == "source,destination,bytes\nh1,h2,12\n"
    assert "matrix: t-demands.csv" in files["t.yaml"]


def test_copies_have_names_that_are_no_scenarios():
    assert [*write_first_scenario(NETLAB, "topology.yaml")[0]] == ["topology.yaml", "topology.netlab.yml"]
    assert [*write_first_scenario(NETLAB, "\x1b[31m.y\nml")[0]][1].isprintable()
