from __future__ import annotations

import dataclasses

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from testbed.base.errors import InputError, naming_options
from testbed.fabric.topologies.fat_tree import FatTree
from testbed.fabric.topologies.grid import Torus
from testbed.scenario import find_scenario, load_scenario, parse_scenario, scenario_names
from testbed.scenario.parameter_models import format_value
from testbed.scenario.read_scenario import as_dict
from testbed.scenario.spec import KEYS, LabSettings, Links
from testbed.scenario.workloads.spec import Iperf3, Mpi, Ping

SMALL = "topology: {kind: torus, sizes: [4, 4]}\n"


def problems(text, *settings):
    with pytest.raises(InputError) as error:
        parse_scenario(text, "x.yaml", settings)
    return [str(problem) for problem in error.value.problems]


def refusal(text):
    """Lines of the refusal of a text that may also be accepted."""
    try:
        parse_scenario(text, "x.yaml")
    except InputError as error:
        return str(error).splitlines() or ["a refusal without a sentence"]
    return []


def test_defaults():
    scenario = parse_scenario(SMALL, "folder/small-one.yaml")
    assert (scenario.name, scenario.description, scenario.source) == ("small-one", "", "folder/small-one.yaml")
    assert (scenario.topology_kind, scenario.topology) == ("torus", Torus((4, 4)))
    assert (scenario.routing_kind, scenario.assignment_kind) == ("dor", "fixed")
    assert (scenario.switch_model, scenario.expect) == (None, "deadlock_free")
    assert (scenario.links, scenario.lab, scenario.workloads) == (Links(), LabSettings(), ())
    assert scenario.links.edge_rate == scenario.links.rate == 1e9


def test_everything_said():
    scenario = parse_scenario(
        """
        name: all_of-it2
        description: text
        topology: {kind: fat_tree, up: 2, down: 4, rounds: 2, hosts_per_leaf: 0, parallel_links: 3}
        routing: {kind: fat_tree}
        assignment: {kind: fixed, first_vlan: 100, entries: all}
        switch_model: PC6224
        expect: deadlock
        links: {rate: 10 Gbit/s, host_rate: 100 Mbit/s, queue_frames: 7}
        lab: {dilation: 1e1, datapath: userspace, arp: broadcast, seed: 5, switch_daemons: 3}
        workloads:
          - {kind: iperf3, protocol: udp, pattern: uniform, seconds: 2, omit: 0, repeats: 1, offered_load: 0.5,
             payload: 64}
          - {kind: ping, pattern: pairwise, count: 1, size: 100}
          - {kind: mpi, job: fabric_bench, args: ["-n", "10"], time_limit: 60}
        """,
        "x.yaml",
    )
    assert scenario.topology == FatTree(2, 4, 2, 0, 3)
    assert scenario.name == "all_of-it2"
    assert (scenario.assignment.first_vlan, scenario.assignment.entries) == (100, "all")
    assert (scenario.switch_model, scenario.expect) == ("PC6224", "deadlock")
    assert scenario.links == Links(1e10, 1e8, 7)
    assert scenario.links.edge_rate == 1e8
    assert scenario.lab == LabSettings(10.0, "userspace", "broadcast", seed=5, switch_daemons=3)
    assert [load.kind for load in scenario.workloads] == ["iperf3", "ping", "mpi"]
    assert [load.spec for load in scenario.workloads] == [
        Iperf3("udp", "uniform", seconds=2, omit=0, repeats=1, offered_load=0.5, payload=64),
        Ping("pairwise", count=1, size=100),
        Mpi("fabric_bench", args=("-n", "10"), time_limit=60.0),
    ]


def test_the_resolved_scenario_is_a_scenario_and_the_same():
    scenario = parse_scenario(SMALL + "links: {host_rate: 0.1 Gbit/s}\nworkloads: [{kind: mpi, job: x}]", "x.yaml")
    resolved = as_dict(scenario)
    assert tuple(resolved) == KEYS
    assert parse_scenario(yaml.safe_dump(resolved), "x.yaml") == scenario


@pytest.mark.slow
@given(st.floats(1e5, 1e13), st.floats(1e5, 1e13) | st.none())
def test_rates_survive_being_resolved_exactly(rate, host_rate):
    scenario = parse_scenario(SMALL + "lab: {dilation: 1}", "x.yaml")
    scenario = dataclasses.replace(scenario, links=Links(rate, host_rate))
    assert parse_scenario(yaml.safe_dump(as_dict(scenario)), "x.yaml").links == scenario.links


@pytest.mark.parametrize(
    ("setting", "path", "value"),
    [
        ("lab.dilation=50", ("lab", "dilation"), 50),
        ("lab.dilation = 1e3", ("lab", "dilation"), 1000),
        ("links.rate=10 Gbit/s", ("links", "rate"), 1e10),
        ("topology.sizes=[8, 8]", ("topology", "sizes"), (8, 8)),
        ("routing.ties=positive", ("routing", "ties"), "positive"),
        ("name=other", ("name",), "other"),
        ("description=a = b", ("description",), "a = b"),
        ("switch_model=", ("switch_model",), None),
    ],
)
def test_setting(setting, path, value):
    found = parse_scenario(SMALL, "x.yaml", [setting])
    for name in path:
        found = getattr(found, name)
    assert found == value


def test_settings_reach_into_lists_and_later_ones_win():
    text = SMALL + "workloads: [{kind: ping}, {kind: mpi, job: x}]"
    settings = ["workloads.0.count=3", "workloads.0.count=4", "workloads.1={kind: ping, count: 5}"]
    assert [load.spec.count for load in parse_scenario(text, "x.yaml", settings).workloads] == [4, 5]


def test_a_setting_may_replace_what_is_wrong_in_the_file():
    assert parse_scenario(SMALL + "lab: {dilation: 0}", "x.yaml", ["lab.dilation=2"]).lab.dilation == 2


def test_problems_of_settings_and_file_come_together():
    assert problems(SMALL + "color: red", "lab", "lab.dilation=0") == [
        'settings: "lab" should look like lab.dilation=50',
        "x.yaml: color: unknown key. Known: " + ", ".join(KEYS),
        "settings lab.dilation: should be 1 or more, not 0",
    ]


@pytest.mark.parametrize(
    ("setting", "hint"),
    [
        ("workloads.0.duration=3", 'unknown key. Did you mean "seconds"?'),
        ("workloads.0.time=3", 'unknown key. Did you mean "seconds"?'),
        ("links.bandwidth=1G", 'unknown key. Did you mean "rate"?'),
        ("topology.links={add: [[s1, s4]]}", "links: {add: [[s1, s11]]}"),
        ("topology.extra_links=[[s1, s4]]", "links: {add: [[s1, s11]]}"),
    ],
)
def test_names_that_other_programs_or_blocks_have_for_a_key(setting, hint):
    (problem,) = problems("topology: {kind: mesh, sizes: [4]}\nworkloads: [{kind: iperf3, protocol: udp}]", setting)
    assert hint in problem
    assert "timeline" not in problem.split("Known")[0]


@pytest.mark.parametrize("number", ["1e3", "1.0e+3", "1E3", "1000", "1_000", "10.e2"])
def test_numbers_as_people_write_them(number):
    assert parse_scenario(SMALL + f"lab: {{dilation: {number}}}", "x.yaml").lab.dilation == 1000


@pytest.mark.parametrize("word", ["true", "false", "yes", "off"])
def test_a_truth_value_is_no_number(word):
    assert problems(f"topology: {{kind: flat, hosts: {word}}}") == [
        f"x.yaml: topology.hosts: should be a whole number, not {'true' if word in ('true', 'yes') else 'false'}"
    ]


def test_an_unknown_topology_is_one_problem():
    assert len(problems("topology: {kind: tours, sizes: [4, 4]}")) == 1
    assert len(problems("topology: {kind: tours}\nrouting: {ties: positive}")) == 1
    assert len(problems("topology: {kind: tours}\nrouting: {kind: dro}")) == 2


def test_lists_that_contain_themselves_are_refused():
    own = "an alias stands for a block that it is in itself"
    assert problems("&a [*a]") == [f"x.yaml: line 1, column 5: {own}"]
    assert problems("topology: &a {kind: *a}") == [f"x.yaml: line 1, column 21: {own}"]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "nothing"), (True, "true"), ("a", '"a"'), ("two\nlines", r'"two\nlines"'), ((1, None), "[1, null]"),
        ({"a": 1}, '{"a": 1}'), ("x" * 100, '"' + "x" * 59 + "…"),
    ],
)  # fmt: skip
def test_shown(value, text):
    assert format_value(value) == text


@pytest.mark.slow
@given(
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.integers() | st.text(st.characters(codec="utf-8"), max_size=8),
        lambda inner: (
            st.lists(inner, max_size=4)
            | st.dictionaries(st.sampled_from([*KEYS, "kind", "sizes", "rate", "protocol"]), inner, max_size=5)
        ),
        max_leaves=20,
    )
)
def test_whatever_a_file_holds_is_a_scenario_or_sentences(value):
    text = yaml.safe_dump(value, allow_unicode=True)
    assert all(line.startswith("x.yaml: ") for line in refusal(text))


@given(st.text(st.characters(codec="utf-8"), max_size=60))
def test_whatever_text_is_a_scenario_or_a_list_of_sentences(text):
    assert all(line.startswith("x.yaml: ") for line in refusal(text))


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(InputError, match="cannot be read: No such file or directory"):
        load_scenario(tmp_path / "none.yaml")
    with pytest.raises(InputError, match="cannot be read: Is a directory"):
        load_scenario(tmp_path)


def test_names_are_found_here_first_and_then_beside_the_package(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    bundled = find_scenario("torus4x4")
    assert bundled.is_file()
    (tmp_path / "scenarios").mkdir()
    mine = tmp_path / "scenarios" / "torus4x4.yaml"
    mine.write_text(SMALL)
    assert find_scenario("torus4x4") == mine
    assert scenario_names()["torus4x4"] == mine
    assert scenario_names()["mesh4x4"].parent == bundled.parent
    assert list(scenario_names()) == sorted(scenario_names())


def test_a_file_is_found_by_its_path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.yaml").write_text(SMALL)
    assert load_scenario(find_scenario("mine.yaml")).name == "mine"
    assert load_scenario(find_scenario("./mine.yaml")).name == "mine"


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("torsu4x4", 'torsu4x4: no scenario of that name. Did you mean "torus4x4"? Known: '),
        ("", "no scenario of that name. Known: "),
        ("torus4x4.yml", 'torus4x4.yml: no such file. Did you mean "torus4x4"?'),
        ("../torus4x4", '../torus4x4: no such file. Did you mean "torus4x4"?'),
        ("my-fabrik.yaml", 'my-fabrik.yaml: no such file. Did you mean "my-fabric.yaml"?'),
    ],
)
def test_names_that_lead_nowhere(name, sentence, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my-fabric.yaml").write_text(SMALL)
    with pytest.raises(InputError) as error:
        find_scenario(name)
    assert sentence in str(error.value)


@pytest.mark.parametrize("name", ["missing.yaml", "x/scenario.yml", "./lab.yaml"])
def test_a_missing_file_is_not_taken_for_a_scenario_by_name(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError) as error:
        find_scenario(name)
    assert str(error.value) == f"{name}: no such file."


def test_what_a_setting_has_put_there_is_not_blamed_on_the_file(tmp_path):
    file = tmp_path / "x.yaml"
    file.write_text("topology: {kind: mesh, sizes: [2, 2]}\nlab: {dilatoin: 5}\n")
    with pytest.raises(InputError) as caught, naming_options():
        load_scenario(file, ["lab.dilaton=50", "links.rate=fast"])
    first, second, third = str(caught.value).split("\n")
    assert {line.split(": ")[0] for line in (first, second, third)} == {
        str(file),
        "--set lab.dilaton",
        "--set links.rate",
    }
    assert f'{file}: lab.dilatoin: unknown key. Did you mean "dilation"?' in str(caught.value)
