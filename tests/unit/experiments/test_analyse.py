from __future__ import annotations

import dataclasses
import itertools
import json

import networkx as nx
import numpy as np
import pytest

from testbed.base.errors import InputError
from testbed.base.model import LocalPlan, SwitchModel, VlanPlan
from testbed.experiments.analyse import analyse
from testbed.experiments.analyse.analysis_table import remarks, rich_table
from testbed.experiments.analyse.capacity import fit_of, needs_of
from testbed.experiments.analyse.channel_load import hops_of, load_of
from testbed.experiments.analyse.plan_figures import as_object, bisection_links
from testbed.experiments.analyse.plot import draw
from testbed.fabric.openflow.tables import Priority
from testbed.fabric.routing.paths import path
from testbed.fabric.traffic import flows, pattern_names
from testbed.fabric.vlans.mac_entries import entries_of
from testbed.fabric.vlans.vlan_lower_bound import Bounds
from testbed.planning import make_plan
from tests.fabrics import graph_of, plan_of, scenario_of, topology_of

# One of each relation of routes, hosts apart from and together on switches, longer paths and shortest ones.
FABRICS = {
    "mesh": "topology: {kind: mesh, sizes: [4, 2], hosts_per_switch: 2}",
    "no_transit": "topology: {kind: torus, sizes: [8, 2]}",
    "destination trees": "topology: {kind: torus, sizes: [4, 4], parallel_links: 2}\nrouting: {planes: dest}",
    "two trees a leaf": "topology: {kind: fat_tree, up: 2, down: 4, rounds: 1, hosts_per_leaf: 4}",
    "explicit": "topology: {kind: torus, sizes: [4, 4]}\nrouting: {kind: updown}\nassignment: {kind: renamed}",
    "two hosts, two not": "topology: {kind: graph, switches: [a, b, c], links: [[a, b], [b, c]], hosts: {a: 2, c: 3}}",
    "one switch": "topology: {kind: flat, hosts: 4}",
}


@pytest.fixture(scope="module", params=FABRICS)
def plan(request):
    return make_plan(scenario_of(FABRICS[request.param]))


def host_pairs(topology):
    return itertools.product(range(topology.host_count), repeat=2)


def test_hops_are_those_of_the_paths_one_by_one(plan):
    topology = plan.topology
    switch = topology.host_switch.tolist()
    shortest = dict(nx.all_pairs_shortest_path_length(graph_of(topology)))
    taken = {(a, b): len(path(topology, plan.routes, a, b)) for a, b in host_pairs(topology)}
    different = [pair for pair in taken if pair[0] != pair[1]]
    found = hops_of(topology, plan.routes)
    assert found.mean == pytest.approx(np.mean([taken[pair] for pair in different]))
    assert found.longest == max(taken.values())
    assert found.mean_switches == pytest.approx(np.mean([taken[pair] + 1 for pair in taken]))
    assert found.max_switches == max(taken.values()) + 1
    assert found.mean_shortest == pytest.approx(np.mean([shortest[switch[a]][switch[b]] for a, b in different]))
    assert found.diameter == max(shortest[a][b] for a in switch for b in switch)
    assert found.longer_pairs == sum(taken[a, b] > shortest[switch[a]][switch[b]] for a, b in different)
    assert found.distribution == tuple(np.bincount([taken[pair] for pair in different]).tolist())


def test_some_fabric_has_longer_paths_than_the_shortest():
    assert hops_of(*routed("topology: {kind: torus, sizes: [8, 8]}")).longer_pairs == 732


def routed(text):
    made = make_plan(scenario_of(text))
    return made.topology, made.routes


@pytest.mark.parametrize(
    ("text", "mean"),
    [
        ("topology: {kind: mesh, sizes: [4, 2], hosts_per_switch: 2}", 2.75),
        ("topology: {kind: torus, sizes: [4, 2], hosts_per_switch: 2}", 2.5),
        ("topology: {kind: mesh, sizes: [4, 4]}", 3.5),
        ("topology: {kind: torus, sizes: [4, 4]}", 3.0),
        ("topology: {kind: fat_tree_14}", 3.75),
        ("topology: {kind: flat, hosts: 16}", 1.0),
    ],
)
def test_mean_switches_on_a_path_are_those_of_table_11(text, mean):
    assert hops_of(*routed(text)).mean_switches == mean


def test_loads_are_those_of_the_paths_one_by_one(plan):
    topology, seed = plan.topology, 5
    for pattern in ("all_to_all", "neighbour", "uniform", "pairwise"):
        pairs = flows(pattern, topology, seed)
        sent = np.bincount([source for source, _ in pairs], minlength=topology.host_count)
        count, demand = np.zeros(2 * topology.link_count), np.zeros(2 * topology.link_count)
        for source, destination in pairs:
            for channel in path(topology, plan.routes, source, destination):
                count[channel] += 1
                demand[channel] += 1 / sent[source]
        found = load_of(topology, plan.routes, pattern, seed)
        assert (found.flows == count).all()
        assert found.demand == pytest.approx(demand)
        assert (found.max, found.idle_channels) == (count.max(initial=0), (count == 0).sum())
        assert found.mean == pytest.approx(count.mean() if len(count) else 0)
        received = np.bincount(
            [end for _, end in pairs], [1 / sent[source] for source, _ in pairs], minlength=len(sent)
        )
        assert found.received == pytest.approx(received)
        assert (found.sent == (sent > 0)).all()
        if pairs:
            assert found.saturation == pytest.approx(1 / max(demand.max(initial=0), received.max(), 1))
        else:
            assert found.saturation is None


def test_a_host_divides_what_it_sends_among_its_flows(monkeypatch):
    """h1 sends to h2 and h3, h2 to h3: a chain of three carries 1 and 1½ times the injection rate."""
    monkeypatch.setattr(
        "testbed.experiments.analyse.channel_load.flows", lambda pattern, topology, seed: ((0, 1), (0, 2), (1, 2))
    )
    made = plan_of("mesh", sizes=[3])
    found = load_of(made.topology, made.routes, "some", 1)
    assert found.demand.tolist() == [1.0, 0.0, 1.5, 0.0]
    assert found.flows.tolist() == [2, 0, 2, 0]
    assert found.received.tolist() == [0.0, 0.5, 1.5]
    assert found.saturation == pytest.approx(2 / 3)
    assert found.bottleneck(made.topology) == "s2→s3"


def test_a_torus_saturates_at_hosts_but_one_flows_a_channel():
    """Unless hosts' links are full before: of a torus they are, where they are no faster than the others."""
    fast = {"topology": {"kind": "torus", "sizes": [4, 4]}, "links": {"rate": "1 Gbit/s", "host_rate": "10 Gbit/s"}}
    found = analyse(make_plan(scenario_of(fast)), ["all_to_all", "transpose"]).loads
    assert [load.max for load in found] == [8, 2]
    assert [load.saturation for load in found] == [15 / 8, 1 / 2]
    found = analyse(plan_of("torus", sizes=[4, 4]), ["all_to_all", "transpose"]).loads
    assert [load.saturation for load in found] == [1, 1 / 2]


def test_where_all_send_to_one_its_own_link_is_full_first():
    made = plan_of("torus", sizes=[4, 4])
    (found,) = analyse(made, ["hotspot:h3"]).loads
    assert found.saturation == pytest.approx(1 / 15)
    assert found.bottleneck(made.topology) == "the link to h3"
    assert load_of(made.topology, made.routes, "all_to_all", 1).bottleneck(made.topology) == "the link to h1"
    slow = load_of(made.topology, made.routes, "neighbour", 1, host_link=0.5)
    assert (slow.saturation, slow.bottleneck(made.topology)) == (0.5, "the link to h1")


def test_every_problem_of_patterns_is_named():
    made = plan_of("mesh", sizes=[3, 2])
    with pytest.raises(InputError) as caught:
        analyse(made, ["transpose", "buterfly", "complement", "all_to_all"])
    assert [str(problem) for problem in caught.value.problems] == [
        'test.yaml: pattern: there is no pattern "buterfly". Did you mean "butterfly"? Known: '
        f"{', '.join(pattern_names())}",
        'test.yaml: pattern: pattern "transpose" needs a square number of hosts, not 6',
        'test.yaml: pattern: pattern "complement" needs a power of two of hosts, not 6',
    ]


def test_patterns_without_flows():
    with pytest.raises(InputError, match='pattern: "transpose" needs two hosts or more and this topology has one'):
        analyse(plan_of("flat", hosts=1), ["transpose"])
    with pytest.raises(InputError, match='"bit_reversal" maps each of 2 hosts to itself; use another pattern'):
        analyse(plan_of("flat", hosts=2), ["bit_reversal"])
    assert analyse(plan_of("flat", hosts=1)).loads[0].saturation is None


def halves(topology):
    """Fewest links between two halves, by trying all."""
    count = topology.switch_count
    side = np.zeros(count, dtype=bool)
    best = topology.link_count
    for half in itertools.combinations(range(count), count // 2):
        side[:] = False
        side[list(half)] = True
        best = min(best, int((side[topology.links[:, 0]] != side[topology.links[:, 1]]).sum()))
    return best


@pytest.mark.parametrize(
    ("kind", "parameters"),
    [
        *(("mesh", {"sizes": sizes}) for sizes in [(5,), (4, 2), (3, 3), (5, 2), (4, 3), (3, 2, 2), (5, 3), (1, 4)]),
        *(("torus", {"sizes": sizes}) for sizes in [(3,), (3, 3), (4, 3), (5, 3), (4, 4), (2, 2)]),
        ("ring", {"switches": 7}),
        ("hypercube", {"dimensions": 4}),
        ("mesh", {"sizes": (3, 3), "parallel_links": 3}),
        ("mesh", {"sizes": (1,)}),
    ],
)
def test_links_between_two_halves_are_the_fewest_of_all_halves(kind, parameters):
    topology = topology_of(kind, **parameters)
    assert bisection_links(topology) == halves(topology)


def test_links_between_two_halves_are_not_guessed():
    assert bisection_links(topology_of("complete", switches=4)) is None
    assert bisection_links(topology_of("torus", sizes=(4, 2))) is None
    broken = dataclasses.replace(topology_of("mesh", sizes=(3, 3)), faults=("s1–s2 is dead",))
    assert bisection_links(broken) is None


@pytest.mark.parametrize("topology", [{"kind": "mesh", "sizes": [3, 2]}, {"kind": "torus", "sizes": [4, 4]}])
@pytest.mark.parametrize("assignment", ["fixed", "renamed"])
def test_the_counted_hosts_fit_and_no_more(topology, assignment):
    model = SwitchModel("small", ports=100, max_vlans=100, mac_table=190)
    scenario = {"topology": topology, "assignment": {"kind": assignment}}
    made = make_plan(scenario_of(scenario))
    fit = fit_of(needs_of(made.topology, made.vlans), model)
    each = fit.hosts_counted // made.topology.switch_count
    assert each > 1
    fullest = []
    for hosts in (each, each + 1):
        filled = make_plan(scenario_of({**scenario, "topology": {**topology, "hosts_per_switch": hosts}}))
        fullest.append(int(needs_of(filled.topology, filled.vlans).entries.max()))
    assert fullest[0] <= model.mac_table < fullest[1]


def test_hosts_of_different_numbers_count_as_one_a_switch():
    made = make_plan(scenario_of(FABRICS["two hosts, two not"] + "\nrouting: {kind: stp}"))
    assert isinstance(made.vlans, VlanPlan)
    needs = needs_of(made.topology, made.vlans)
    assert needs.entries.tolist() == [5, 5, 5]
    assert needs.unit_entries.tolist() == [2, 2, 2]
    listed = dataclasses.replace(made.vlans, entry_rule="listed", entries=entries_of(made.topology, made.vlans))
    assert needs_of(made.topology, listed).unit_entries.tolist() == [2, 2, 2]


def test_equal_hosts_on_every_switch_have_equal_entries():
    one, three = (plan_of("torus", sizes=[3, 3], hosts_per_switch=hosts) for hosts in (1, 3))
    single, triple = needs_of(one.topology, one.vlans), needs_of(three.topology, three.vlans)
    assert triple.unit_entries.tolist() == single.unit_entries.tolist() == single.entries.tolist()
    assert triple.entries.tolist() == (3 * single.entries).tolist()


def test_a_model_is_short_of_what_it_has_too_little_of():
    made = plan_of("torus", sizes=[4, 4])
    needs = needs_of(made.topology, made.vlans)
    ample = SwitchModel("ample", ports=5, max_vlans=8, mac_table=28)
    assert fit_of(needs, ample).short_of == ()
    for field, name in (("ports", "ports"), ("max_vlans", "VLANs"), ("mac_table", "MAC entries")):
        tight = dataclasses.replace(ample, **{field: getattr(ample, field) - 1})
        assert fit_of(needs, tight).short_of == (name,)
    assert fit_of(needs, ample).hosts_estimated == 28 // 8


def test_equation_1_with_the_papers_switch():
    found = analyse(plan_of("torus", sizes=[4, 4]))
    assert {fit.model: fit.hosts_estimated for fit in found.fits} == dict.fromkeys(
        ("PC5324", "PC6224", "PC6248", "SF-420"), 1024
    )


def test_vlans_stand_beside_the_fewest():
    found = analyse(plan_of("torus", sizes=[4, 4]))
    assert (found.vlans, found.vlans_total, found.fewest_fixed) == (8, 8, Bounds(8, 8))
    assert (found.fewest_renamed, found.multiplication) == (Bounds(1, 1), None)
    assert (found.mac_entries, found.rules) == (28, len(plan_of("torus", sizes=[4, 4]).rules))


def test_local_vlans_count_by_switch():
    found = analyse(make_plan(scenario_of(FABRICS["explicit"])))
    vlans = found.plan.vlans
    assert isinstance(vlans, LocalPlan)
    assert found.vlans == np.bincount(vlans.vlan_switch).max()
    assert found.vlans_total == len(vlans.vlan_id)
    assert isinstance(found.fewest_renamed, Bounds)
    assert 1 < found.fewest_renamed.upper <= found.vlans
    assert found.fewest_fixed is not None
    assert not isinstance(found.fewest_fixed, Bounds)
    assert found.multiplication is not None
    assert found.multiplication[1] >= found.multiplication[0] >= 1
    addresses = [rule for rule in found.plan.rules if rule.priority == Priority.STATIC_ENTRY]
    assert found.mac_entries == np.bincount([rule.switch for rule in addresses]).max()


def test_openflow_needs_no_model_and_layers_fit_no_vlan():
    made = make_plan(
        scenario_of(
            "topology: {kind: random, switches: 12, degree: 3, seed: 2}\nrouting: {kind: dl, layers: 2}\n"
            "assignment: {kind: openflow}"
        )
    )
    found = analyse(made)
    assert (found.fits, found.fewest_fixed, found.fewest_renamed, found.multiplication) == ((), None, None, None)
    assert (found.vlans, found.vlans_total, made.routes.layers) == (1, 1, 2)
    shown = as_object(found)
    assert (shown["switch_models"], shown["fewest_vlans_fixed"], shown["layers"]) == ({}, None, 2)


def test_prohibited_turns_are_counted_where_a_routing_has_a_rule():
    found = analyse(make_plan(scenario_of(FABRICS["explicit"])))
    assert found.prohibited_turns is not None
    prohibited, total = found.prohibited_turns
    assert total == 16 * 4 * 3
    assert found.plan.routes.allowed is not None
    assert prohibited == total - len(found.plan.routes.allowed.following) > 0
    assert analyse(plan_of("mesh", sizes=[3, 2])).prohibited_turns is None


def test_relations_are_not_tried_on_paths_of_too_many_hops(monkeypatch):
    monkeypatch.setattr("testbed.experiments.analyse.plan_figures.MAX_HOPS", 100)
    found = analyse(plan_of("torus", sizes=[4, 4]))
    assert (found.relations, found.fewest_renamed, found.fewest_fixed) == (None, None, Bounds(8, 8))
    shown = as_object(found)
    assert (shown["relations"], shown["fewest_vlans_renamed"]) == (None, None)


def test_the_object_says_why_a_relation_does_not_hold():
    found = json.loads(json.dumps(as_object(analyse(plan_of("fat_tree_14"), ["all_to_all", "neighbour"]))))
    assert found["relations"]["C×N→C"] == {"holds": True, "conflict": None}
    assert found["relations"]["N×N→C"]["holds"] is False
    assert "leave s1 by port 3 and by port 4" in found["relations"]["N×N→C"]["conflict"]
    assert found["fewest_vlans_fixed"] == {"lower": 4, "upper": 4, "exact": True, "conflict": None}
    assert sum(count for _, count in found["patterns"]["all_to_all"]["channel_load_distribution"]) == 48
    assert sum(count for _, count in found["hop_distribution"]) == 16 * 15 == found["host_pairs"]
    assert found["patterns"].keys() == {"all_to_all", "neighbour"}


def test_a_deadlock_is_told():
    ring = {"topology": {"kind": "ring", "switches": 6}, "routing": {"ring": "shortest"}}
    broken = as_object(analyse(make_plan(scenario_of(ring))))
    assert (broken["deadlock_free"], broken["proved"]) == (False, False)
    assert "waits for" in json.loads(json.dumps(broken["violations"]))[0]["sentence"]
    declared = as_object(analyse(make_plan(scenario_of({**ring, "expect": "deadlock"}))))
    assert (declared["deadlock_free"], declared["proved"]) == (False, True)


def cells(table):
    return {column.header: list(column.cells) for column in table.columns}


def test_the_table_has_a_column_a_scenario_and_no_empty_row():
    first = analyse(make_plan(scenario_of("name: first\ntopology: {kind: mesh, sizes: [3, 3]}")))
    second = analyse(make_plan(scenario_of("name: second\n" + FABRICS["explicit"])))
    alone, both = cells(rich_table([first])), cells(rich_table([first, second]))
    assert list(both) == ["", "first", "second"]
    rows = dict(zip(both[""], zip(both["first"], both["second"], strict=True), strict=True))
    assert (rows["VLANs, max per switch"][0], rows["VLANs, total"][0]) == ("3", "3")
    assert rows["prohibited turns"][0] == "–"
    assert rows["prohibited turns"][1].endswith("%)")
    assert rows["fewest VLANs, fixed"] == ("3", "none carry it")
    assert rows["relation one tree a source"] == ("yes", "no")
    assert "prohibited turns" not in alone[""]
    assert all(any(value != "–" for value in values) for values in rows.values())
    said = remarks([first, second])
    assert any(text.startswith("second: not one tree a source: frames from s") for text in said)
    assert all(text.startswith("second: ") for text in said)
    assert all(text.startswith("not ") for text in remarks([second]))


@pytest.mark.slow
def test_a_plot_is_the_same_every_time_and_names_every_scenario():
    found = [
        analyse(make_plan(scenario_of(f"name: {name}\ntopology: {{kind: mesh, sizes: [3, {size}]}}")))
        for name, size in (("first", 2), ("second", 3))
    ]
    svg = draw(found, "svg")
    assert svg == draw(found, "svg")
    for words in (b"first", b"second", b"Channel load: all_to_all", b"Hops between switches"):
        assert words in svg
    assert draw(found, "png").startswith(b"\x89PNG\r\n")
