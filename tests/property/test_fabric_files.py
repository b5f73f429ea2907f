"""Fabric files: any text is a fabric or a list of sentences, and a fabric written in any format is read as itself."""

from __future__ import annotations

import json
from xml.sax.saxutils import quoteattr

from hypothesis import example, given
from hypothesis import strategies as st

from testbed.base.errors import InputError
from testbed.fabric.topologies.any_graph import Graph, check_graph, graph
from testbed.fabric.topologies.build_topology import find_disconnected_pair
from testbed.scenario.fabric_file import READERS, read_fabric

# ---------------------------------------------------------------------------------------------------------------------
# Any text


def outcome(text, form):
    """The fabric of a text, or the sentences that refuse it; any other exception is the reader's mistake."""
    try:
        return read_fabric(text, "fabric", form, None), ()
    except InputError as error:
        return None, error.problems


def check(text, form):
    found, problems = outcome(text, form)
    if found is None:
        assert problems
        assert all(problem.sentence.isprintable() for problem in problems)
    else:
        assert check_graph(found) == []
        topology = graph(found)
        assert find_disconnected_pair(topology.switch_count, topology.links) is None


FORMS = ["auto", *READERS]
ANY_TEXT = st.text(st.characters(), max_size=80)
WORDS = st.sampled_from(["a", "b", "host", "kind", "type", "id", "node", "key", "", "1", "\x00", "\ud800"])
JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | WORDS,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(["nodes", "links", "edges", "id", "kind", "source", "target", "directed"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=30,
)
XML_NAMES = ["graphml", "graph", "node", "edge", "data", "key", "default", "hyperedge", "g:node"]
XML_PARTS = st.one_of(
    st.sampled_from([f"<{slash}{name}>" for slash in ("", "/") for name in XML_NAMES]),
    st.sampled_from(["<node id='a'/>", "<node id='b'>", "<edge source='a' target='b'/>", "<edge source='a'/>"]),
    st.sampled_from(["<data key='kind'>", "host", "<!--", "-->", "<![CDATA[", "]]>", "<?x?>", "<!DOCTYPE a>"]),
    st.sampled_from(["&a;", "&#0;", "&lt;"]),
    ANY_TEXT,
)  # fmt: skip
NAMES = st.sampled_from(["S-1", "S-2", "H-1", ""])
PORTS = st.sampled_from(["0", "1", "2", "3", "99999", "999999"])
IB_LINES = st.one_of(
    st.builds("{} {} \"{}\"".format, st.sampled_from(["Switch", "Ca", "Rt", "Sw"]), PORTS, NAMES),
    st.builds("[{}]\t\"{}\"[{}] # x".format, PORTS, NAMES, PORTS),
    st.builds("[{}](2c9)\t\"{}\"[{}](2c9)".format, PORTS, NAMES, PORTS),
    st.sampled_from(["", "# x", "vendid=0x2", "Chassis 1", "[", "[1]", "[1] \"S-1\""]),
    ANY_TEXT,
)  # fmt: skip


@given(ANY_TEXT, st.sampled_from(FORMS))
@example("\ud800", "graphml")
@example('{"a": 1' + "0" * 5000 + "}", "node_link")
@example("<graphml" + " " * 100 + ">" * 100, "graphml")
def test_any_text_is_a_fabric_or_sentences(text, form):
    check(text, form)


@given(JSON_VALUES)
def test_any_json_is_a_fabric_or_sentences(value):
    check(json.dumps(value), "node_link")


@given(st.lists(JSON_VALUES, max_size=4), st.lists(JSON_VALUES, max_size=4))
def test_any_lists_of_nodes_and_links_are_a_fabric_or_sentences(nodes, links):
    check(json.dumps({"nodes": nodes, "links": links}), "node_link")


@given(st.lists(XML_PARTS, max_size=20), st.booleans())
def test_any_xml_is_a_fabric_or_sentences(parts, framed):
    text = "".join(parts)
    check(f"<graphml><graph>{text}</graph></graphml>" if framed else text, "graphml")


@given(st.lists(IB_LINES, max_size=20))
def test_any_lines_of_ibnetdiscover_are_a_fabric_or_sentences(lines):
    check("\n".join(lines), "ibnetdiscover")


# ---------------------------------------------------------------------------------------------------------------------
# There and back


@st.composite
def connected_graphs(draw, names):
    """A connected graph with parallel links, hosts on some switches, links in any order and direction."""
    count = draw(st.integers(1, 8))
    switches = draw(st.lists(names, min_size=count, max_size=count, unique=True))
    tree = [(switches[draw(st.integers(0, child - 1))], switches[child]) for child in range(1, count)]
    one = st.sampled_from(switches)
    more = draw(st.lists(st.tuples(one, one).filter(lambda ends: ends[0] != ends[1]), max_size=8)) if count > 1 else []
    links = draw(st.permutations(tree + more))
    flipped = [ends[::-1] if draw(st.booleans()) else ends for ends in links]
    hosts = {name: number for name in switches if (number := draw(st.integers(0, 3)))}
    return Graph(tuple(switches), tuple(flipped), hosts or None)


def node_link(made, key):
    nodes = [{"id": name, "weight": 1} for name in made.switches]
    links = [{"source": a, "target": b} for a, b in made.links]
    for switch, number in (made.hosts or {}).items():
        for host in range(number):
            nodes.append({"id": f"{switch}/{host}", "kind": "host"})
            links.append({"source": f"{switch}/{host}", "target": switch})
    return json.dumps({"directed": False, "nodes": nodes, key: links})


def graphml(made, prefix):
    node, edge, data = (f"{prefix}{name}" for name in ("node", "edge", "data"))
    lines = [f"<{node} id={quoteattr(name)}/>" for name in made.switches]
    lines += [f"<{edge} source={quoteattr(a)} target={quoteattr(b)}/>" for a, b in made.links]
    for switch, number in (made.hosts or {}).items():
        for host in range(number):
            name = quoteattr(f"{switch}/{host}")
            lines.append(f'<{node} id={name}><{data} key="d">host</{data}></{node}>')
            lines.append(f"<{edge} source={quoteattr(switch)} target={name}/>")
    space = f"xmlns{':' if prefix else ''}{prefix.rstrip(':')}='http://graphml.graphdrawing.org/xmlns'"
    key = f"<{prefix}key id='d' for='node' attr.name='type'/>"
    inside = f"{key}<{prefix}graph edgedefault='undirected'>{''.join(lines)}</{prefix}graph>"
    return f"<?xml version='1.0' encoding='UTF-8'?><{prefix}graphml {space}>{inside}</{prefix}graphml>"


def ibnetdiscover(made, one_end_only):
    """Ports in the order of the links, then hosts; each link at both ends or at its first only."""
    ports: dict[str, list[str]] = {name: [] for name in made.switches}
    for a, b in made.links:
        one, other = len(ports[a]) + 1, len(ports[b]) + 1
        ports[a].append(f'[{one}]\t"{b}"[{other}]\t\t# "x" lid 1 4xQDR')
        ports[b].append("# down" if one_end_only else f'[{other}]\t"{a}"[{one}]\t\t# "x" lid 1 4xQDR')
    adapters = []
    for switch, number in (made.hosts or {}).items():
        for host in range(number):
            port = len(ports[switch]) + 1
            name = f"H-{switch}-{host}"
            ports[switch].append(f'[{port}]\t"{name}"[1](2c90) \t\t# "node HCA-1" lid 4 4xQDR')
            adapters.append(
                f'Ca\t1 "{name}"\t\t# "node HCA-1"\n[1](2c90) \t"{switch}"[{port}]\t\t# lid 4 lmc 0 "x" lid 1'
            )
    blocks = [f'vendid=0x2c9\nSwitch\t99 "{name}"\t\t# "x" base port 0\n' + "\n".join(ports[name]) for name in ports]
    return "#\n# Topology file\n#\n\n" + "\n\n".join(blocks + adapters) + "\n"


def same(found, made):
    """Equal but for the order of links that a format does not keep."""
    assert found.switches == made.switches
    assert found.hosts == made.hosts
    assert sorted(map(sorted, found.links)) == sorted(map(sorted, made.links))


PRINTABLE = st.text(st.characters(codec="utf-8"), min_size=1, max_size=6).filter(
    lambda name: name.isprintable() and name.strip() and "/" not in name
)


@given(connected_graphs(PRINTABLE), st.sampled_from(["links", "edges"]))
def test_node_link_there_and_back(made, key):
    found = read_fabric(node_link(made, key), "x", "auto", None)
    assert found == made


@given(connected_graphs(PRINTABLE), st.sampled_from(["", "g:"]))
def test_graphml_there_and_back(made, prefix):
    found = read_fabric(graphml(made, prefix), "x", "auto", None)
    assert found == made


@given(connected_graphs(st.from_regex(r"S-[0-9a-f]{4}", fullmatch=True)), st.booleans())
def test_ibnetdiscover_there_and_back(made, one_end_only):
    found = read_fabric(ibnetdiscover(made, one_end_only), "x", "auto", None)
    same(found, made)
    if made.switches == found.switches:
        assert graph(found).port_count.tolist() == graph(made).port_count.tolist()


def containerlab(made):
    nodes = {name: {"kind": "bridge"} for name in made.switches}
    links = [{"endpoints": [f"{a}:1", f"{b}:1"]} for a, b in made.links]
    return "topology: " + json.dumps({"nodes": nodes, "links": links}, indent=1)


def netlab(made):
    return "nodes: " + json.dumps([*made.switches]) + "\nlinks: " + json.dumps([[a, b] for a, b in made.links])


def miniedit(made):
    switches = [{"opts": {"hostname": name}} for name in made.switches]
    links = [{"src": a, "dest": b, "opts": {"bw": 10}} for a, b in made.links]
    return json.dumps({"hosts": [], "switches": switches, "links": links})


def anynet(made):
    number = {name: at for at, name in enumerate(made.switches)}
    return "\n".join(f"router {number[a]} node {number[a]} router {number[b]}" for a, b in made.links) + "\n"


def simgrid(made):
    hosts = len(made.switches)
    shape = f'topology="TORUS" topo_parameters="{hosts}" radical="0-{hosts - 1}" bw="1Gbps"'
    return f"<?xml version='1.0'?><platform version='4.1'><cluster id='c' {shape}/></platform>"


NAMED = st.from_regex(r"[a-z][a-z0-9]{0,5}", fullmatch=True)


@given(connected_graphs(NAMED), st.sampled_from([containerlab, netlab, miniedit]))
def test_labs_there_and_back(made, write):
    found = read_fabric(write(made), "x", write.__name__, None)
    assert (found.switches, found.links) == (made.switches, made.links)


@given(connected_graphs(PRINTABLE), st.sampled_from(sorted(READERS)), st.data())
def test_a_damaged_file_is_a_fabric_or_sentences(made, form, data):
    text = {
        "node_link": node_link(made, "links"),
        "graphml": graphml(made, ""),
        "ibnetdiscover": ibnetdiscover(made, False),
        **{write.__name__: write(made) for write in (containerlab, netlab, miniedit, anynet, simgrid)},
    }
    whole = text[form]
    start = data.draw(st.integers(0, len(whole)))
    end = data.draw(st.integers(start, min(len(whole), start + 40)))
    check(whole[:start] + data.draw(ANY_TEXT) + whole[end:], form)
