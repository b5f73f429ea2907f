from __future__ import annotations

import dataclasses
import json
import math
import re
from itertools import chain, pairwise

import numpy as np
import pytest

from testbed.base.errors import InputError
from testbed.base.model import LocalPlan, Paths, Routes, SwitchModel, Topology
from testbed.dataplane.predict import Wires, alltoall_bound, fair_goodput, routed_ways, transport
from testbed.engines.lab.control.build import build_order
from testbed.engines.ovs.check_paths import installed_problems
from testbed.experiments.report import render_report
from testbed.experiments.report.run_facts import key_figures, local_vlans
from testbed.fabric.openflow.compile import compile_rules
from testbed.fabric.openflow.oracle import Oracle
from testbed.fabric.openflow.rule_text import format_rule
from testbed.fabric.routing import ROUTINGS
from testbed.fabric.routing.channel_lookup import explicit_routes
from testbed.fabric.routing.paths import path
from testbed.fabric.verify import verify
from testbed.fabric.verify.flooding import multiplication
from testbed.fabric.vlans import ASSIGNMENTS
from testbed.fabric.vlans.local_vlans import member_matrix, vlan_count
from testbed.fabric.vlans.openflow import OpenFlowOptions, assign_openflow
from testbed.fabric.vlans.renamed import RenamedOptions, arrivals_of, assign_renamed, check_identifiers, merge_classes
from testbed.fabric.vlans.static_fdb import StaticOptions, assign_static
from testbed.planning import make_plan
from testbed.planning.store import plan_from_json, plan_to_json
from testbed.planning.summary import summary
from testbed.results import Run
from tests.fabrics import fabric_of_pairs, plan_of, scenario_of, topology_of


def local_plan_of(topology: Topology, assignment: str = "renamed", routing: str = "dor", **options):
    routes = ROUTINGS[routing].route(topology, ROUTINGS[routing].options())
    kind = ASSIGNMENTS[assignment]
    return routes, kind.assign(topology, routes, kind.options(**options))


def scenario_plan(topology, assignment, **blocks):
    return make_plan(scenario_of({"topology": topology, "assignment": assignment, **blocks}))


def ports_of(plan, vlan):
    return plan.member_port[plan.member_start[vlan] : plan.member_start[vlan + 1]].tolist()


def explicit(topology: Topology, rows: list[list[int]], layers: int = 1) -> Routes:
    """Routes of paths given as virtual channels, one a pair of switches with hosts."""
    start = np.cumsum([0, *(len(row) for row in rows)]).astype(np.int64)
    hop = np.array(list(chain.from_iterable(rows)), dtype=np.int32)
    return explicit_routes(topology, Paths(start, hop), None, layers)


def channels_through(topology: Topology, switches: list[int]) -> list[int]:
    ends = list(zip(topology.channel_source.tolist(), topology.channel_target.tolist(), strict=True))
    return [ends.index(pair) for pair in pairwise(switches)]


# Four switches around s1, two of them linked to s6 and s7 each: 0 | 1 2 (senders), 3 4 | 5 6.
HUB = fabric_of_pairs([(0, 1), (0, 2), (0, 3), (0, 4), (3, 5), (3, 6), (4, 5), (4, 6)], [0, 1, 1, 0, 0, 1, 1])


def hub_routes(*, crossed: bool) -> Routes:
    """s2 and s3 send to s6 by s4 and to s7 by s5; `crossed`: s3 the other way round."""
    ways = {
        (1, 2): [1, 0, 2], (2, 1): [2, 0, 1], (5, 6): [5, 3, 6], (6, 5): [6, 3, 5],
        (1, 5): [1, 0, 3, 5], (1, 6): [1, 0, 4, 6],
        (2, 5): [2, 0, 4, 5] if crossed else [2, 0, 3, 5], (2, 6): [2, 0, 3, 6] if crossed else [2, 0, 4, 6],
        (5, 1): [5, 3, 0, 1], (5, 2): [5, 3, 0, 2], (6, 1): [6, 4, 0, 1], (6, 2): [6, 4, 0, 2],
    }  # fmt: skip
    ends = [1, 2, 5, 6]
    rows = [channels_through(HUB, ways.get((a, b), [])) for a in ends for b in ends]
    return explicit(HUB, rows)


def test_local_vlans_of_a_corner_and_of_an_inner_switch():
    topology = topology_of("mesh", sizes=(3, 3))
    _, plan = local_plan_of(topology)
    corner = np.flatnonzero(plan.vlan_switch == 0)
    # Port 1 is the host's, 2 leads to s2, 3 to s4: what comes by 3 stays here.
    assert [(int(plan.vlan_id[v]), ports_of(plan, v)) for v in corner] == [(10, [1, 2, 3]), (11, [1, 3])]
    inner = np.flatnonzero(plan.vlan_switch == 4)
    assert [(int(plan.vlan_id[v]), len(ports_of(plan, v))) for v in inner] == [(10, 5), (11, 3)]
    assert plan.host_vlan[4] == inner[0]


def test_vlans_of_the_same_members_are_one_if_entries_agree():
    plan = assign_renamed(HUB, hub_routes(crossed=False), RenamedOptions())
    at_hub = np.flatnonzero(plan.vlan_switch == 0)
    assert [ports_of(plan, v) for v in at_hub] == [[1, 2, 3, 4], [1, 2, 3], [1, 2, 4]]


def test_vlans_of_the_same_members_stay_apart_if_entries_differ():
    """Step 4 of the paper would merge the ports to s2 and s3, which have the same members: half of the frames that
    one of them brings would go astray."""
    routes = hub_routes(crossed=True)
    plan = assign_renamed(HUB, routes, RenamedOptions())
    at_hub = np.flatnonzero(plan.vlan_switch == 0)
    assert [ports_of(plan, v) for v in at_hub] == [[1, 2, 3, 4], [1, 2, 3, 4], [1, 2, 3], [1, 2, 4]]
    assert verify(HUB, routes, plan, None) == ()
    arrivals = arrivals_of(HUB, routes)
    sets = {arrivals.members[row].tobytes() for row in arrivals.order[arrivals.start[0] : arrivals.start[1]]}
    assert len(sets) == 3  # the paper's count


def test_merging_by_entries_alone_never_needs_more():
    arrivals = arrivals_of(HUB, hub_routes(crossed=True))
    by_members, by_entries = (len(merge_classes(arrivals, same_members=same)[1]) for same in (True, False))
    assert by_entries < by_members


def test_identifiers_start_where_asked():
    topology = topology_of("mesh", sizes=(3, 3))
    _, plan = local_plan_of(topology, first_vlan=100)
    assert set(plan.vlan_id.tolist()) == {100, 101}
    _, last = local_plan_of(topology, first_vlan=4093)
    assert set(last.vlan_id.tolist()) == {4093, 4094}
    with pytest.raises(InputError) as error:
        local_plan_of(topology, first_vlan=4094)
    assert str(error.value) == (
        "assignment.first_vlan: s1 needs 2 local VLANs, which from 4094 on end at 4095; 802.1Q has identifiers up to "
        "4094, so start at 4093 or lower"
    )


def test_more_vlans_than_there_are_identifiers():
    """No routing of a fabric that can be planned needs so many on one switch; the sentence is there all the same."""
    numbers = np.arange(10, 4106, dtype=np.int32)
    with pytest.raises(
        InputError, match=r"^assignment.first_vlan: s1 needs 4096 local VLANs, .* so use the assignment"
    ):
        check_identifiers(HUB, np.zeros_like(numbers), numbers, 10)


@pytest.mark.parametrize("assignment", ["renamed", "openflow"])
def test_a_refusal_names_switch_in_port_and_destination(assignment):
    routing = ROUTINGS["updown"]
    topology = topology_of("random", switches=24, degree=4, hosts_per_switch=1, seed=5)
    routes = routing.route(topology, routing.options(selection="random", seed=1))
    kind = ASSIGNMENTS[assignment]
    with pytest.raises(InputError) as error:
        kind.assign(topology, routes, kind.options())
    (problem,) = error.value.problems
    assert problem.place == "assignment.kind"
    found = re.match(
        rf'"{assignment}" needs one next hop for each in-port and destination; frames for s(\d+) that enter s(\d+) by '
        r"port (\d+) leave by port (\d+) and by port (\d+), depending on the source\. Use selection ",
        problem.sentence,
    )
    assert found
    end, switch, in_port, *out_ports = (int(text) for text in found.groups())
    leaving = set()
    for source in range(topology.host_count):
        channels = path(topology, routes, source, end - 1)
        for before, after in pairwise(channels):
            if topology.channel_target[before] == switch - 1 and topology.out_port[before ^ 1] == in_port:
                leaving.add(int(topology.out_port[after]))
    assert leaving >= set(out_ports)
    assert len(set(out_ports)) == 2


def test_static_refuses_ways_that_depend_on_the_in_port():
    topology = topology_of("torus", sizes=(5,), parallel_links=2)
    with pytest.raises(InputError) as error:
        local_plan_of(topology, "static")
    sentence = error.value.problems[0].sentence
    found = re.match(
        r'"static" needs one next hop for each destination, whatever the in-port; frames for s(\d+) leave s(\d+) by '
        r"port (\d+) and by port (\d+), depending on the source\. ",
        sentence,
    )
    assert found
    end, switch, *out_ports = (int(text) for text in found.groups())
    routes = ROUTINGS["dor"].route(topology, ROUTINGS["dor"].options())
    leaving = {
        int(topology.out_port[channel])
        for source in range(5)
        for channel in path(topology, routes, source, end - 1)
        if topology.channel_source[channel] == switch - 1
    }
    assert leaving == set(out_ports)


@pytest.mark.parametrize("assign", [(assign_renamed, RenamedOptions()), (assign_static, StaticOptions())])
def test_layers_need_openflow(assign):
    topology = topology_of("mesh", sizes=(3,))
    routes = dataclasses.replace(ROUTINGS["dor"].route(topology, ROUTINGS["dor"].options()), layers=2)
    with pytest.raises(InputError, match=r"carries no layers and this routing uses 2. Use the assignment \"openflow\""):
        assign[0](topology, routes, assign[1])


def layered_pair(layers: int) -> tuple[Topology, Routes]:
    """s1 – s2 – s3; frames to s3 start in the highest layer and end in layer 0."""
    topology = fabric_of_pairs([(0, 1), (1, 2)], [1, 1, 1])
    count, top = len(topology.channel_source), layers - 1
    first, second = channels_through(topology, [0, 1, 2])
    rows = [[], [first], [first + top * count, second], [first ^ 1], [], [second], [second ^ 1, first ^ 1]]
    rows += [[second ^ 1], []]
    return topology, explicit(topology, rows, layers)


def test_802_1q_has_eight_priorities():
    topology, routes = layered_pair(8)
    assert verify(topology, routes, assign_openflow(topology, routes, OpenFlowOptions()), None) == ()
    topology, routes = layered_pair(9)
    with pytest.raises(
        InputError, match=r"of which there are 8, and this routing uses 9 layers; set routing.layers: 8"
    ):
        assign_openflow(topology, routes, OpenFlowOptions())


def test_a_layer_is_the_priority_on_the_way():
    topology, routes = layered_pair(3)
    plan = assign_openflow(topology, routes, OpenFlowOptions(vlan=7))
    sent = Oracle(topology, compile_rules(topology, plan)).unicast(0, 2)
    assert sent.tags == ((7, 2), (7, 0))
    assert sent.received == {2: 1}
    assert sent.tagged == ()


def test_ways_that_part_by_layer_alone_are_told_with_it():
    """Frames from s1 and s2 share the way from s3 to s4, and leave that by one port in two layers."""
    long = fabric_of_pairs([(0, 2), (1, 2), (2, 3), (3, 4)], [1, 1, 0, 0, 1])
    count = len(long.channel_source)
    one, middle, last = channels_through(long, [0, 2, 3, 4])
    two = channels_through(long, [1, 2])[0]
    rows = [
        [], [one, two ^ 1], [one, middle, last],
        [two, one ^ 1], [], [two, middle, last + count],
        [last ^ 1, middle ^ 1, one ^ 1], [last ^ 1, middle ^ 1, two ^ 1], [],
    ]  # fmt: skip
    parting = explicit(long, rows, 2)
    with pytest.raises(
        InputError, match=r"for s5 that enter s4 by port 1 leave by port 2 in layer 0 and by port 2 in "
    ):
        assign_openflow(long, parting, OpenFlowOptions())


def test_arp_by_broadcast_needs_broadcasts():
    mesh = {"kind": "mesh", "sizes": [2, 2]}
    for kind in ("renamed", "static", "openflow"):
        with pytest.raises(InputError) as error:
            scenario_plan(mesh, {"kind": kind, "flood": "none"}, lab={"arp": "broadcast"})
        assert str(error.value) == (
            'test.yaml: lab.arp: "broadcast" needs broadcasts and assignment.flood: none drops them, so no host would '
            "learn an address; use arp: static, or flood: tree"
        )
        assert scenario_plan(mesh, {"kind": kind}, lab={"arp": "broadcast"}).is_proved
        assert scenario_plan(mesh, {"kind": kind, "flood": "none"}).is_proved
    assert scenario_plan(mesh, {"kind": "fixed"}, lab={"arp": "broadcast"}).is_proved


def test_ports_that_no_path_uses_are_shut():
    topology = topology_of("mesh", sizes=(3, 3))
    _, plan = local_plan_of(topology, "static", "stp")
    members = member_matrix(topology, plan)
    assert members.sum() == 9 + 2 * 8  # hosts, and both ends of a spanning tree's links
    assert (plan.channel_vlan >= 0).sum() == 16
    assert multiplication(topology, plan) == (1, 1)


def test_summary_names_what_is_local():
    figures = summary(scenario_plan({"kind": "mesh", "sizes": [3, 3]}, {"kind": "renamed"}))
    assert json.loads(json.dumps(figures)) == figures
    assert (figures["vlans"], figures["vlan_ids"], figures["layers"], figures["vlans_by_entries"]) == (2, [], 1, 1)
    assert figures["vlans_total"] == 18
    assert figures["multiplication"] == {"mean": 1.0, "max": 1.0, "endless": False}
    fixed = summary(plan_of("mesh", sizes=[3, 3]))
    assert (fixed["vlans"], fixed["vlans_total"], fixed["multiplication"]) == (3, 3, None)


def test_a_stored_plan_keeps_whether_broadcasts_are_dropped():
    for flood in ("tree", "none"):
        plan = scenario_plan({"kind": "mesh", "sizes": [2, 2]}, {"kind": "renamed", "flood": flood})
        back = plan_from_json(plan_to_json(plan))
        assert isinstance(back.vlans, LocalPlan)
        assert (back.vlans.flood_links is None) == (flood == "none")


def test_digest_tells_local_plans_apart():
    mesh = {"kind": "mesh", "sizes": [3, 3]}
    kinds = [
        {"kind": "renamed"}, {"kind": "renamed", "merge": "entries"}, {"kind": "renamed", "flood": "none"},
        {"kind": "renamed", "first_vlan": 11}, {"kind": "static"}, {"kind": "openflow"},
        {"kind": "openflow", "vlan": 9},
    ]  # fmt: skip
    assert len({scenario_plan(mesh, kind).digest for kind in kinds}) == len(kinds)


def dumped(plan) -> dict[str, list[str]]:
    lines: dict[str, list[str]] = {plan.topology.switch_name(s): [] for s in range(plan.topology.switch_count)}
    for rule in plan.rules:
        lines[plan.topology.switch_name(rule.switch)].append(" " + format_rule(rule).replace(",actions", " actions"))
    return lines


@pytest.mark.parametrize("kind", ["renamed", "static", "openflow"])
@pytest.mark.parametrize("flood", ["tree", "none"])
def test_dumped_rules_of_the_plan_have_no_problem(kind, flood):
    plan = scenario_plan({"kind": "mesh", "sizes": [3, 2], "hosts_per_switch": 2}, {"kind": kind, "flood": flood})
    assert installed_problems(plan, dumped(plan)) == []


def test_a_changed_rule_is_noticed():
    plan = scenario_plan({"kind": "mesh", "sizes": [3]}, {"kind": "renamed"})
    lines = dumped(plan)
    right = "actions=pop_vlan,output:2"
    place = next(i for i, line in enumerate(lines["s1"]) if "dl_dst=02:00:00:00:00:03" in line and right in line)
    lines["s1"][place] = lines["s1"][place].replace(right, "actions=output:2")
    # The frame arrives at s2 with a tag that no port there takes in.
    assert installed_problems(plan, lines) == ["h1→h3 takes s1→s2 instead of s1→s2 s2→s3"]


def test_a_wrong_tag_on_links_and_a_wrong_priority_are_noticed():
    fabric = {"kind": "mesh", "sizes": [2]}
    tagged = scenario_plan(fabric, {"kind": "openflow"})
    untagged = scenario_plan(fabric, {"kind": "renamed"})
    problems = installed_problems(dataclasses.replace(untagged, vlans=untagged.vlans), dumped(tagged))
    assert problems == ["h1→h2 is tagged on links between switches", "h2→h1 is tagged on links between switches"]
    assert "h1→h2 is not tagged on links between switches" in installed_problems(tagged, dumped(untagged))
    lines = {name: [line.replace("set_field:0->vlan_pcp", "set_field:5->vlan_pcp") for line in rules]
             for name, rules in dumped(tagged).items()}  # fmt: skip
    lines = {name: [line.replace("dl_vlan_pcp=0", "dl_vlan_pcp=5") for line in rules] for name, rules in lines.items()}
    assert installed_problems(tagged, lines) == [
        "h1→h2 has the priorities 5 on its way instead of 0", "h2→h1 has the priorities 5 on its way instead of 0",
    ]  # fmt: skip


def test_a_broadcast_that_should_be_dropped_is_noticed():
    fabric = {"kind": "mesh", "sizes": [2]}
    silent = scenario_plan(fabric, {"kind": "static", "flood": "none"})
    problems = installed_problems(silent, dumped(scenario_plan(fabric, {"kind": "static"})))
    assert problems == [
        f"a broadcast of {a} reaches 1 hosts ({b}×1) instead of no host" for a, b in (("h1", "h2"), ("h2", "h1"))
    ]


@pytest.mark.parametrize(
    ("kind", "tagged"), [("fixed", True), ("renamed", False), ("static", False), ("openflow", True)]
)
def test_the_lab_is_told_whether_links_carry_tags(kind, tagged):
    plan = scenario_plan({"kind": "mesh", "sizes": [2, 2]}, {"kind": kind})
    assert build_order(plan).tagged_trunks is tagged


def test_facts_of_a_report():
    plan = scenario_plan({"kind": "mesh", "sizes": [3, 3]}, {"kind": "renamed"})
    switch, rows = local_vlans(plan) or ("", [])
    assert vlan_count(plan.topology, plan.vlans)[int(switch[1:]) - 1] == len(rows) == 2
    pvids = sorted(int(port) for row in rows for port in row[1].split(", "))
    assert pvids == list(range(1, 1 + int(plan.topology.port_count[int(switch[1:]) - 1])))
    assert sum(row[3] for row in rows) == int(
        (plan.vlans.vlan_switch[plan.vlans.entry_vlan] == int(switch[1:]) - 1).sum()
    )
    facts = {fact.name: fact for fact in key_figures(plan)}
    assert (facts["VLANs"].value, facts["VLANs"].note) == ("2", "most on one switch; 18 on all")
    assert facts["Flood multiplication"].value == "1"
    for kind, note in (("static", "the default one of each switch"), ("openflow", "VLAN 1")):
        plan = scenario_plan({"kind": "mesh", "sizes": [3, 3]}, {"kind": kind})
        facts = {fact.name: fact for fact in key_figures(plan)}
        assert facts["VLANs"].note == note
        assert local_vlans(plan) is None
        assert ("Flood multiplication" in facts) == (kind == "static")
    assert local_vlans(plan_of("mesh", sizes=[2])) is None


def test_a_cyclic_flood_is_told_as_endless():
    plan = scenario_plan({"kind": "mesh", "sizes": [3, 3]}, {"kind": "static"})
    assert multiplication(plan.topology, plan.vlans) == (math.inf, math.inf)
    assert summary(plan)["multiplication"] == {"mean": None, "max": None, "endless": True}
    assert "endless" in [fact.value for fact in key_figures(plan)]


def test_a_cycle_in_what_the_tables_do_is_a_deadlock():
    """The routes are as the scenario expects, and a plan that carries out others with a cycle is not let through."""
    ring = topology_of("ring", switches=4)
    kind = ROUTINGS["dor"]
    good = kind.route(ring, kind.options(ring="no_transit"))
    bad = kind.route(ring, kind.options(ring="shortest", ties="positive"))
    plan = assign_renamed(ring, bad, RenamedOptions())
    assert {v.invariant for v in verify(ring, good, plan, None)} == {"path", "deadlock"}


def test_switch_models_hold_for_local_plans():
    plan = scenario_plan({"kind": "mesh", "sizes": [3, 3]}, {"kind": "renamed"}, switch_model="PC5324")
    assert plan.is_proved
    found = verify(plan.topology, plan.routes, plan.vlans, SwitchModel("small", 5, 1, 100))
    assert [v.sentence.split(";")[0] for v in found] == ["s1 needs 2 VLANs and a small has 1"]
    openflow = scenario_plan({"kind": "mesh", "sizes": [3, 3]}, {"kind": "openflow"}, switch_model="PC5324")
    assert [v.invariant for v in openflow.violations] == ["switch model"]


def test_one_switch_and_one_host():
    for topology in ({"kind": "flat", "hosts": 1}, {"kind": "flat", "hosts": 3}):
        for kind in ("renamed", "static", "openflow"):
            plan = scenario_plan(topology, {"kind": kind})
            assert plan.violations == ()
            oracle = Oracle(plan.topology, plan.rules)
            others = dict.fromkeys(range(1, plan.topology.host_count), 1)
            assert oracle.broadcast(0).received == others


def report_of(tmp_path, plan) -> str:
    manifest = {"schema_version": 1, "verdict": "pass", "reasons": [], "loads": [], "dilation": 200.0}
    return render_report(Run(tmp_path, manifest, {}, plan, ()))


def test_a_report_lists_the_local_vlans_of_one_switch(tmp_path):
    page = report_of(tmp_path, scenario_plan({"kind": "mesh", "sizes": [3, 3]}, {"kind": "renamed"}))
    assert "Those of s1, the switch that has most" in page
    rows = re.findall(r"<tr><td>(\d+)</td><td>([\d, ]+)</td><td>([\d, ]+)</td><td>(\d+)</td></tr>", page)
    assert rows == [("10", "1, 2", "1, 2, 3", "9"), ("11", "3", "1, 3", "1")]
    assert "The tree of each VLAN in colour" not in page


@pytest.mark.parametrize("kind", ["static", "openflow"])
def test_a_report_without_vlans_draws_none(kind, tmp_path):
    page = report_of(tmp_path, scenario_plan({"kind": "mesh", "sizes": [3, 3]}, {"kind": kind}))
    assert 'id="vlans"' not in page


def test_predictions_count_tags_only_where_links_carry_them():
    topology = topology_of("mesh", sizes=(2,))
    routes = ROUTINGS["dor"].route(topology, ROUTINGS["dor"].options())
    wire = transport("udp", 1470)
    for tagged, size in ((True, 1540), (False, 1536)):
        wires = Wires(topology, wire, 1e9, 2e9, tagged)
        (rate,) = fair_goodput(wires, [(0, 1)], routed_ways(topology, routes, [(0, 1)]))
        assert rate == pytest.approx(1e9 * 1470 / size)
        bound = alltoall_bound(wires, routes, 1e6)
        assert bound == pytest.approx(8e6 * size / 1470 / 1e9)
