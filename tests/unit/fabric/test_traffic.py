from __future__ import annotations

import pytest

from testbed.base.errors import InputError
from testbed.dataplane.predict import transport
from testbed.fabric.traffic import FAMILIES, PATTERNS, PatternError, flows, is_pattern, pattern_label, weights
from testbed.planning import make_plan
from testbed.planning.rates import fair_rates, offered_rates
from testbed.scenario import parse_scenario
from tests.fabrics import scenario_of, topology_of

PERMUTATIONS = ["bit_reversal", "butterfly", "complement", "transpose"]


def flat(hosts):
    return topology_of("flat", hosts=hosts)


def loads_of(*loads, hosts=6):
    topology = {"kind": "flat", "hosts": hosts}
    return scenario_of(
        {"topology": topology, "workloads": [{"kind": "iperf3", "protocol": "tcp", **load} for load in loads]}
    )


def test_the_patterns_of_a_scenario_are_those_there_are():
    names = [*PATTERNS, *(family.example for family in FAMILIES.values())]
    assert [load.spec.pattern for load in loads_of(*({"pattern": name} for name in names)).workloads] == names
    assert not any(map(is_pattern, [*FAMILIES, "hotspot:", "neighbour:1", "hotspots:h1", ""]))


def test_tornado_goes_half_of_the_way_round_in_each_dimension():
    pairs = dict(flows("tornado", topology_of("torus", sizes=(8, 5), hosts_per_switch=2), seed=1))
    assert pairs[0] == 2 * (3 + 8 * 2)  # (0, 0) to (3, 2)
    assert pairs[2 * 7 + 1] == 2 * (2 + 8 * 2) + 1  # (7, 0) to (2, 2), same place
    assert sorted(pairs) == sorted(pairs.values()) == list(range(80))
    assert flows("tornado", flat(7), seed=1)[0] == (0, 3)
    assert flows("tornado", topology_of("torus", sizes=(2, 2)), seed=1) == ()


def test_patterns_with_a_parameter():
    assert flows("hotspot:h2", flat(3), seed=1) == ((0, 1), (2, 1))
    assert flows("shift:2", flat(3), seed=1) == flows("shift:-1", flat(3), seed=1) == ((0, 2), (1, 0), (2, 1))
    assert flows("pairs:h1>h3, h1>h2", flat(3), seed=1) == ((0, 2), (0, 1))


@pytest.mark.parametrize(
    ("pattern", "sentence"),
    [
        ("hotspot:h4", 'there is no host "h4" for the pattern. Did you mean "h3"?'),
        ("shift:3", '"shift:3" should have a whole number that is no multiple of the 3 hosts'),
        ("shift:x", '"shift:x" should have a whole number'),
        ("pairs:h1-h2", '"h1-h2" is no pair; write pairs as in pairs:h1>h5,h2>h6'),
        ("pairs:h1>h1", '"h1>h1" is a host and itself; a pair has two hosts'),
        ("pairs:h1>h2,h1>h2", '"h1>h2" is listed twice; a pair has one flow'),
        ("pairs:h1>h2*3,h2>h1", '"pairs:h1>h2*3,h2>h1" gives pairs amounts, which only loads of UDP'),
    ],
)
def test_a_parameter_that_cannot_be_is_a_sentence(pattern, sentence):
    with pytest.raises(PatternError) as error:
        flows(pattern, flat(3), seed=1)
    assert sentence in str(error.value)


def test_pairs_and_a_matrix_are_a_pattern(tmp_path):
    (tmp_path / "m.csv").write_text("source,destination,bytes\nh1,h2,10\nh2,h3,0\nh3,h1,10\n")
    (tmp_path / "n.csv").write_text("source,destination\nh2,h1\n")
    text = "topology: {kind: flat, hosts: 3}\nworkloads:\n"
    keys = ("pairs: [[h1, h2], [h3, h1]]", "matrix: m.csv", "matrix: n.csv")
    text += "".join(f"- {{kind: iperf3, protocol: tcp, {key}}}\n" for key in keys)
    scenario = parse_scenario(text, str(tmp_path / "x.yaml"))
    assert [load.spec.pattern for load in scenario.workloads] == ["pairs:h1>h2,h3>h1"] * 2 + ["pairs:h2>h1"]


def test_amounts_of_a_matrix_are_kept_where_flows_have_a_rate(tmp_path):
    """Two flows over one link in the ratio of their amounts, which together fill it."""
    (tmp_path / "m.csv").write_text("source,destination,bytes\nh1,h3,30\nh2,h3,10\n")
    text = (
        "topology: {kind: mesh, sizes: [2], hosts_per_switch: 2}\nworkloads:\n"
        "- {kind: iperf3, protocol: udp, matrix: m.csv}\n"
    )
    plan = make_plan(parse_scenario(text, str(tmp_path / "x.yaml")))
    spec = plan.scenario.workloads[0].spec
    assert spec.pattern == "pairs:h1>h3*30,h2>h3*10"
    assert weights(spec.pattern, plan.topology) == {(0, 2): 30.0, (1, 2): 10.0}
    pairs = flows(spec.pattern, plan.topology, 1, amounts=True)
    wire = transport("udp", 1470)
    many, few = offered_rates(plan, spec.pattern, pairs, wire).tolist()
    assert many == pytest.approx(3 * few)
    even = fair_rates(plan, pairs, wire)
    assert many + few == pytest.approx(even.sum())
    assert offered_rates(plan, "pairs:h1>h3,h2>h3", pairs, wire).tolist() == even.tolist()
    with pytest.raises(InputError, match=r"offered_load: is 1.5, so full links drop"):
        parse_scenario(text.replace("m.csv", "m.csv, offered_load: 1.5"), str(tmp_path / "x.yaml"))
    with pytest.raises(InputError, match=r"pattern: gives pairs different amounts, which no hash"):
        make_plan(parse_scenario(f"{text}links: {{aggregate: true}}\n", str(tmp_path / "x.yaml")))
    with pytest.raises(PatternError, match=r"a whole number above 0 behind the \*"):
        flows("pairs:h1>h3*x", plan.topology, 1, amounts=True)


def test_many_pairs_have_a_short_label():
    assert pattern_label("hotspot:h5") == "hotspot:h5"
    assert pattern_label("pairs:" + ",".join(f"h{n}>h{n + 1}" for n in range(1, 17))) == "pairs-of-16"


@pytest.mark.parametrize(
    ("load", "problem"),
    [
        (
            {"pairs": [["h1", "h2"]], "pattern": "uniform"},
            "pairs: stands beside pattern, which says the same; remove one",
        ),
        ({"pairs": "h1"}, 'pairs: should be a list such as [[h1, h5], [h2, h6]], not "h1"'),
        ({"pairs": [["h1"]]}, 'pairs.0: should be two hosts such as [h1, h5], not ["h1"]'),
        ({"matrix": 3}, "matrix: should be a file such as traffic.csv, not 3"),
        ({"matrix": "none.csv"}, "matrix: none.csv: cannot be read: No such file or directory"),
        ({"matrix": "a.csv"}, 'matrix: a.csv: should begin with the line "source,destination,bytes", not "from,to"'),
        (
            {"matrix": "b.csv"},
            "pattern: gives pairs different amounts, and only flows that are sent at a rate keep them",
        ),
        ({"matrix": "c.csv"}, 'matrix: c.csv: line 2: should have whole bytes, not "x"'),
        ({"matrix": "d.csv"}, "matrix: d.csv: has no pair with an amount, so nothing would be sent"),
        ({"matrix": "e.csv"}, 'matrix: e.csv: line 2: should be two hosts and bytes, not "h1"'),
    ],
)
def test_own_traffic_that_cannot_be_is_a_sentence(load, problem, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = {"a": "from,to\n", "b": "h1,h2,1\nh2,h1,2\n", "c": "h1,h2,x\n", "d": "h1,h2,0\n", "e": "h1\n"}
    for name, text in rows.items():
        head = "" if name == "a" else "source,destination,bytes\n"
        (tmp_path / f"{name}.csv").write_text(head + text)
    with pytest.raises(InputError) as error:
        loads_of(load)
    assert str(error.value).startswith(f"test.yaml: workloads.0.{problem}")
    assert len(error.value.problems) == 1


@pytest.mark.parametrize("pattern", PERMUTATIONS)
@pytest.mark.parametrize("hosts", [4, 16, 64])
def test_bit_permutations_and_transpose_are_their_own_inverse(pattern, hosts):
    pairs = dict(flows(pattern, flat(hosts), seed=1))
    assert all(pairs[pairs[source]] == source for source in pairs)
    assert len(set(pairs.values())) == len(pairs) == len(flows(pattern, flat(hosts), seed=1))
    assert set(pairs) | set(pairs.values()) <= set(range(hosts))


@pytest.mark.parametrize(
    ("pattern", "source", "destination"),
    [
        ("bit_reversal", 0b0001, 0b1000),
        ("bit_reversal", 0b0110, None),
        ("bit_reversal", 0b1011, 0b1101),
        ("butterfly", 0b0001, 0b1000),
        ("butterfly", 0b1110, 0b0111),
        ("butterfly", 0b1001, None),
        ("complement", 0, 15),
        ("complement", 0b0101, 0b1010),
        ("transpose", 0, 15),  # (0, 0) → (3, 3)
        ("transpose", 1, 11),  # (1, 0) → (3, 2)
        ("transpose", 3, 12),  # (3, 0), on the diagonal x + y = 3 → (0, 3)
        ("transpose", 6, 9),  # (2, 1), on the diagonal → (1, 2)
    ],
)
def test_where_a_host_of_sixteen_sends(pattern, source, destination):
    assert dict(flows(pattern, flat(16), seed=1)).get(source) == destination


def test_all_to_all_is_every_ordered_pair():
    assert len(set(flows("all_to_all", flat(9), seed=1))) == 9 * 8


def test_neighbour_is_next_in_the_first_dimension():
    pairs = dict(flows("neighbour", topology_of("torus", sizes=(4, 3), hosts_per_switch=2), seed=1))
    assert pairs[0] == 2
    assert pairs[1] == 3
    assert pairs[6] == 0  # switch 3 is the last of its row
    assert pairs[23] == 17
    assert sorted(pairs.values()) == sorted(pairs) == list(range(24))


def test_neighbour_without_a_first_dimension_is_the_next_host():
    assert flows("neighbour", flat(3), seed=1) == ((0, 1), (1, 2), (2, 0))
    assert flows("neighbour", topology_of("mesh", sizes=(1, 3)), seed=1) == ((0, 1), (1, 2), (2, 0))


@pytest.mark.parametrize("hosts", [2, 7, 16])
def test_pairwise_is_disjoint_pairs_in_both_directions(hosts):
    pairs = dict(flows("pairwise", flat(hosts), seed=3))
    assert len(pairs) == hosts - hosts % 2
    assert all(pairs[pairs[source]] == source for source in pairs)


def test_uniform_sends_once_from_every_host():
    pairs = flows("uniform", flat(50), seed=3)
    assert [source for source, _ in pairs] == list(range(50))
    assert all(0 <= destination < 50 for _, destination in pairs)
    assert len({destination for _, destination in pairs}) > 20  # drawn, not a fixed one


@pytest.mark.parametrize("pattern", ["pairwise", "uniform"])
def test_the_seed_decides(pattern):
    assert flows(pattern, flat(32), seed=1) == flows(pattern, flat(32), seed=1)
    assert flows(pattern, flat(32), seed=1) != flows(pattern, flat(32), seed=2)


@pytest.mark.parametrize("pattern", sorted(PATTERNS))
@pytest.mark.parametrize("hosts", [1, 2, 4])
def test_nobody_sends_to_itself(pattern, hosts):
    try:
        pairs = flows(pattern, flat(hosts), seed=1)
    except PatternError:
        assert hosts != 4
        return
    assert all(source != destination for source, destination in pairs)
    assert hosts > 1 or not pairs


@pytest.mark.parametrize(
    ("pattern", "hosts", "sentence"),
    [
        ("bit_reversal", 12, 'pattern "bit_reversal" needs a power of two of hosts, not 12'),
        ("butterfly", 1, 'pattern "butterfly" needs a power of two of hosts, not 1'),
        ("complement", 3, 'pattern "complement" needs a power of two of hosts, not 3'),
        ("transpose", 8, 'pattern "transpose" needs a square number of hosts, not 8'),
    ],
)
def test_patterns_that_do_not_exist_for_a_number_of_hosts(pattern, hosts, sentence):
    with pytest.raises(PatternError, match=f"^{sentence}$"):
        flows(pattern, flat(hosts), seed=1)
