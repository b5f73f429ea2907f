"""Link aggregation: folding, plans, texts, what it predicts, and what the members of a bundle carried."""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np
import pytest

from testbed.base.errors import InputError, WorkloadError
from testbed.base.messages import Count, Flow, Snapshot
from testbed.base.model import Group, host_ip, host_mac
from testbed.dataplane.predict import Wires, fair_goodput, transport
from testbed.dataplane.predict.members import draw_members, expected_spread, on_members
from testbed.engines.lab.control.build import build_order
from testbed.engines.ovs.check_paths import installed_problems
from testbed.engines.ovs.check_tables import taken_channels
from testbed.experiments.analyse.explain import explain
from testbed.experiments.analyse.plan_figures import analyse
from testbed.experiments.run.checks.fidelity import Verdict
from testbed.experiments.run.loads import member_loads as members_run
from testbed.experiments.run.loads.context import Context, LoadResult
from testbed.fabric.openflow.compile import groups_without
from testbed.fabric.openflow.rule_text import FlowSyntaxError, format_group, format_rule, parse_group
from testbed.planning import Plan, make_plan
from testbed.planning.rates import channel_rates, logical_ways
from testbed.planning.scenario_fabric import aggregate
from testbed.planning.store import plan_from_json, plan_to_json
from testbed.planning.summary import summary
from testbed.scenario import find_scenario, load_scenario
from testbed.scenario.workloads.iperf3 import client_ports
from tests.fabrics import plan_of, scenario_of, topology_of

UDP = transport("udp", 1470)
MESH: dict[str, Any] = {"kind": "mesh", "sizes": [2], "hosts_per_switch": 2}


def aggregated(topology: dict[str, Any], **blocks: Any) -> Plan:
    return make_plan(
        scenario_of({"topology": topology, "links": {"aggregate": True}, "lab": {"dilation": 200}, **blocks})
    )


TWO = aggregated({**MESH, "parallel_links": 3})


def test_folding_keeps_switches_hosts_and_first_members_ports():
    wiring = topology_of("complete", switches=4, hosts_per_switch=2, parallel_links=3)
    topology, bundles = aggregate(wiring)
    assert bundles is not None
    assert bundles.wiring is wiring
    assert (topology.link_count, wiring.link_count) == (6, 18)
    assert bundles.sizes.tolist() == [3] * 6
    assert topology.port_count.tolist() == wiring.port_count.tolist() == [11] * 4
    assert topology.parallel_links == 1
    for channel in range(12):
        members = bundles.channels(channel)
        assert [int(bundles.of_channel[member]) for member in members] == [channel] * 3
        assert topology.out_port[channel] == wiring.out_port[members[0]]
        ends = {(int(wiring.channel_source[m]), int(wiring.channel_target[m])) for m in members}
        assert ends == {(int(topology.channel_source[channel]), int(topology.channel_target[channel]))}


def test_single_links_are_no_bundles_and_give_the_same_plan():
    assert aggregate(topology_of("ring", switches=5))[1] is None
    single = aggregated({**MESH, "parallel_links": 1})
    assert single.bundles is None
    assert single.digest == plan_of(**MESH).digest
    assert single.groups == ()


def test_digests_tell_bundle_sizes_and_separate_links_apart():
    digests = {aggregated({**MESH, "parallel_links": links}).digest for links in (1, 2, 3)}
    assert len(digests | {plan_of(**MESH, parallel_links=2).digest}) == 4


def test_the_papers_networks():
    """Watanabe et al. 2009: 42 links in the tree of six, 28 in the complete one of one, four VLANs on the torus."""
    figures = {}
    for name, links in (("tree8", 6), ("complete8", 1), ("torus4x2", 6), ("mesh4x2", 3), ("ring8", 2)):
        scenario = load_scenario(find_scenario(f"{name}-lag"), [f"topology.parallel_links={links}"])
        figures[name] = summary(make_plan(scenario))
    assert {name: found["switch_links"] for name, found in figures.items()} == {
        "tree8": 42, "complete8": 28, "torus4x2": 72, "mesh4x2": 30, "ring8": 16,
    }  # fmt: skip
    assert [figures[name]["vlans"] for name in ("tree8", "torus4x2", "complete8")] == [1, 4, 8]
    assert [figures[name]["bundles"] for name in ("tree8", "torus4x2", "complete8")] == [7, 12, 0]
    assert all(found["deadlock_free"] for found in figures.values())


RULES = """\
table=0,priority=700,dl_dst=01:80:c2:00:00:00/ff:ff:ff:ff:ff:f0,actions=drop
table=0,priority=700,dl_src=01:00:00:00:00:00/01:00:00:00:00:00,actions=drop
table=0,priority=700,dl_vlan=0,actions=pop_vlan,resubmit(,0)
table=0,priority=600,in_port=4,actions=set_field:3->in_port,resubmit(,0)
table=0,priority=600,in_port=5,actions=set_field:3->in_port,resubmit(,0)
table=0,priority=300,in_port=1,vlan_tci=0x0000/0x1fff,actions=push_vlan:0x8100,set_field:4106->vlan_vid,goto_table:1
table=0,priority=300,in_port=2,vlan_tci=0x0000/0x1fff,actions=push_vlan:0x8100,set_field:4106->vlan_vid,goto_table:1
table=0,priority=300,in_port=3,dl_vlan=10,actions=goto_table:1
table=1,priority=200,dl_vlan=10,dl_dst=02:00:00:00:00:01,actions=pop_vlan,output:1
table=1,priority=200,dl_vlan=10,dl_dst=02:00:00:00:00:02,actions=pop_vlan,output:2
table=1,priority=200,dl_vlan=10,dl_dst=02:00:00:00:00:03,actions=set_field:0x3->reg0,resubmit(,2)
table=1,priority=200,dl_vlan=10,dl_dst=02:00:00:00:00:04,actions=set_field:0x3->reg0,resubmit(,2)
table=1,priority=100,dl_vlan=10,actions=set_field:0x3->reg0,resubmit(,2),pop_vlan,output:1,output:2
table=2,priority=500,reg0=0x3,in_port=3,actions=drop
table=2,priority=400,reg0=0x3,actions=group:3
"""
GROUP = (
    "group_id=3,type=select,selection_method=hash,fields(eth_src,eth_dst,ip_src,ip_dst,tcp_src,tcp_dst,udp_src,udp_dst)"
    ",bucket=bucket_id:0,watch_port:3,actions=output:3,bucket=bucket_id:1,watch_port:4,actions=output:4"
    ",bucket=bucket_id:2,watch_port:5,actions=output:5"
)


def test_rules_and_group_of_a_switch():
    assert "".join(f"{format_rule(rule)}\n" for rule in TWO.rules if rule.switch == 0) == RULES
    assert [format_group(group) for group in TWO.groups if group.switch == 0] == [GROUP]


@pytest.mark.parametrize("size", [1, 2, 6, 64])
def test_groups_survive_their_text(size):
    group = Group(7, 12, tuple(range(12, 12 + size)))
    assert parse_group(7, f" {format_group(group)}\n") == group
    assert parse_group(7, format_group(Group(7, 12, ()))) == Group(7, 12, ())


@pytest.mark.parametrize(
    "line",
    [
        "",
        "group_id=3,type=all,bucket=actions=output:3",
        GROUP.replace("hash", "dp_hash"),
        GROUP.replace("udp_src,", ""),
        GROUP.replace("watch_port:4", "watch_port:5"),
        GROUP.replace("bucket_id:1", "bucket_id:7"),
        GROUP.replace("actions=output:4", "weight:9,actions=output:4"),
        GROUP.replace("actions=output:4", "actions=output:4,output:1"),
    ],
)
def test_a_group_this_pipeline_never_writes(line):
    with pytest.raises(FlowSyntaxError):
        parse_group(0, line)


def test_the_lab_builds_every_physical_link():
    order = build_order(TWO)
    assert [(link.port_a, link.port_b) for link in order.links] == [(3, 3), (4, 4), (5, 5)]
    assert order.groups["s1"] == [GROUP]
    assert [len(lines) for lines in order.groups.values()] == [1, 1]


def test_a_bundle_without_some_members_is_still_a_link():
    complete = {"kind": "complete", "switches": 4, "parallel_links": 3}
    plan = aggregated(complete, faults={"links": [["s1", "s2", 0], ["s1", "s3", 0], ["s1", "s3", 2]]})
    assert plan.bundles is not None
    assert plan.violations == ()
    assert plan.bundles.sizes.tolist() == [2, 1, 3, 3, 3, 3]
    assert len(plan.groups) == 2 * 5
    assert len(plan.wiring.faults) == 3
    with pytest.raises(InputError, match="needs a whole complete and here link s1–s2 is dead"):
        aggregated(complete, faults={"links": [["s1", "s2"]]})


def test_explain_shows_the_group_and_analyse_counts_members():
    found = explain(TWO, "h1", "h3")
    assert [step.rules[-1] for step in found.steps] == [
        "table=2,priority=400,reg0=0x3,actions=group:3",
        "table=1,priority=200,dl_vlan=10,dl_dst=02:00:00:00:00:03,actions=pop_vlan,output:1",
    ]
    assert found.notes[-1].startswith("links are aggregated")
    alone = analyse(plan_of(**MESH), ["all_to_all", "complement"])
    three = analyse(TWO, ["all_to_all", "complement"])
    for one, other in zip(alone.loads, three.loads, strict=True):
        assert 3 * other.demand.max() == pytest.approx(one.demand.max())
        assert other.saturation == pytest.approx(min(1 / other.demand.max(), 1))  # then the hosts' own links are full
    assert (three.rules, three.bisection) == (len(TWO.rules), 3)


def test_a_ring_of_aggregated_links_is_not_told_to_use_planes():
    plan = aggregated({"kind": "ring", "switches": 8, "parallel_links": 3})
    assert plan.deadlock_free
    assert plan.routes.notes[0].endswith("two parallel links that are not aggregated give shortest paths")


def shares(ways: list[tuple[list[int], list[int]]]) -> list[float]:
    """Goodput of two UDP flows between two switches, as a share of what a link carries; host links are ample."""
    assert TWO.bundles is not None
    found = fair_goodput(Wires(TWO.wiring, UDP, 1e9, 1e10), [(0, 2), (1, 3)], ways)
    return [float(rate) * UDP.cost(tagged=True) / 1e9 for rate in found]


def test_flows_share_a_member_or_have_one_each():
    assert shares([([0], []), ([0], [])]) == pytest.approx([0.5, 0.5])
    assert shares([([0], []), ([4], [])]) == pytest.approx([1, 1])


def test_a_bundle_as_one_link_bounds_any_choice_of_members():
    """By formula: three links for two flows are never full, for four flows each gets three quarters."""
    assert TWO.bundles is not None
    wide, members = Wires(TWO.topology, UDP, channel_rates(TWO), 1e10), Wires(TWO.wiring, UDP, 1e9, 1e10)
    pairs = [(0, 2), (1, 3), (0, 3), (1, 2)]
    ways = logical_ways(TWO, pairs)
    even = fair_goodput(wide, pairs, ways)
    assert (even * UDP.cost(tagged=True) / 1e9).tolist() == pytest.approx([0.75] * 4)
    for seed in range(20):
        taken = on_members(TWO.bundles, ways, draw_members(4, 3, seed))
        assert fair_goodput(members, pairs, taken).sum() <= even.sum() * (1 + 1e-9)


def test_the_expected_spread_of_two_flows_over_three_members():
    """A third of all choices put both on one member, where each gets half of what it gets otherwise: 5/6 on average."""
    assert TWO.bundles is not None
    pairs = [(0, 2), (1, 3)]
    even = np.full(2, 1e9 / UDP.cost(tagged=True))
    ways = logical_ways(TWO, pairs)
    found = expected_spread(TWO.bundles, Wires(TWO.wiring, UDP, 1e9, 1e10), pairs, ways, even)
    assert found.mean == pytest.approx(5 / 6, abs=0.05)
    assert (found.low, found.high) == pytest.approx((0.5, 1.0))


def test_drawn_members_are_even_and_keep_their_number():
    numbers = draw_members(6000, 6, 1)
    for size in range(1, 7):
        counts = np.bincount(numbers[:, :, size].reshape(-1), minlength=size)
        assert len(counts) == size
        assert counts == pytest.approx([12000 / size] * size, rel=0.08)
    # A member that is the best of more is the best of fewer.
    assert (numbers[:, :, 5][numbers[:, :, 6] < 5] == numbers[:, :, 6][numbers[:, :, 6] < 5]).all()


def test_client_ports_differ_between_turns_and_not_between_runs():
    sources = ["h1"] * 2000 + ["h2"] * 2000
    drawn = [client_ports(sources, 1, turn) for turn in range(8)]
    for ports in drawn:
        assert len(set(ports[:2000])) == len(set(ports[2000:])) == 2000
        assert min(ports) >= 8000
        assert max(ports) < 32768
    assert all(not set(one) & set(other) for one in drawn for other in drawn if one is not other)
    assert client_ports(sources, 1, 3) == drawn[3] != client_ports(sources, 2, 3)


class _Lab:
    """Answers as running switches do: by the port that the test gives for each bundle."""

    def __init__(self, ports: dict[str, int]) -> None:
        self.asked: list[tuple[str, str]] = []
        self._ports = ports

    def trace(self, frames: list[tuple[str, str]]) -> list[str]:
        self.asked = frames
        return [f" 2. reg0=0x3, priority 400\n    bucket 1\n            output:{self._ports[s]}\n" for s, _ in frames]


def context_of(plan: Plan, lab: Any) -> Context:
    return Context(plan, lab, {"load": "1"}, lambda name, text: None, lambda text: None)


def test_switches_are_asked_for_both_ways_of_acknowledged_flows():
    lab: Any = _Lab({"s1": 4, "s2": 5})
    flows = [Flow(0, 3, "tcp", 9000, 5201), Flow(1, 2, "udp", 9001, 5201)]
    assert taken_channels(TWO, lab, flows) == [((2,), (5,)), ((2,), ())]
    addresses = [f"dl_src={host_mac(a)},dl_dst={host_mac(b)},nw_src={host_ip(a)},nw_dst={host_ip(b)}"
                 for a, b in ((0, 3), (3, 0), (1, 2))]  # fmt: skip
    assert lab.asked == [
        ("s1", f"in_port=1,tcp,{addresses[0]},tcp_src=9000,tcp_dst=5201"),
        ("s2", f"in_port=2,tcp,{addresses[1]},tcp_src=5201,tcp_dst=9000"),
        ("s1", f"in_port=2,udp,{addresses[2]},udp_src=9001,udp_dst=5201"),
    ]


def test_frames_are_asked_for_as_they_arrive_at_later_switches():
    plan = aggregated({"kind": "mesh", "sizes": [3], "parallel_links": 2})
    lab: Any = _Lab({"s1": 2, "s2": 5})
    taken_channels(plan, lab, [Flow(0, 2, "udp", 9000, 5201)])
    assert [re.findall(r"in_port=\d+|dl_vlan=\d+", frame) for _, frame in lab.asked] == [
        ["in_port=1"], ["in_port=2", "dl_vlan=10"],
    ]  # fmt: skip


def test_a_switch_that_would_send_elsewhere_fails_the_load():
    lab: Any = _Lab({"s1": 1})
    with pytest.raises(WorkloadError, match=r"^s1 sends in_port=1,udp,.* by port 1 instead of 3 or 4 or 5$"):
        taken_channels(TWO, lab, [Flow(0, 2, "udp", 9, 9)])


def result_of(mbit: dict[int, float]) -> LoadResult:
    """Counters of ten seconds in which channels carried that many Mbit/s in frames of 1000 bytes on the wire."""
    frames = [int(mbit.get(channel, 0) * 1e6 * 10 / 8000) for channel in range(6)]
    before, after = (
        Snapshot(time, time, tuple(Count(976 * n * times, n * times) for n in frames), (), 0, 0, 0, None, {})
        for times, time in ((0, 5.0), (1, 15.0))
    )
    return LoadResult({}, before, after, 10.0)


def test_use_and_imbalance_of_members():
    """Lab links run at 5 Mbit/s: full, half full and empty are 2, 1 and 0 times their mean."""
    assert TWO.bundles is not None
    context = context_of(TWO, None)
    result = result_of({0: 5, 2: 2.5, 5: 0.04})
    predicted = np.array([1.0, 0, 0.5, 0, 0, 0])
    samples, findings = members_run.member_use(context, TWO.bundles, result, predicted)
    assert findings == []
    use = {
        (s.labels["channel"], s.labels["member"]): (s.value, s.predicted) for s in samples if s.metric == "member_use"
    }
    assert use["s1→s2", "0"] == pytest.approx((1.0, 1.0))
    assert use["s1→s2", "1"] == pytest.approx((0.5, 0.5))
    assert use["s2→s1", "2"] == pytest.approx((0.008, 0.0))
    (imbalance,) = [s for s in samples if s.metric == "bundle_imbalance"]  # the other bundle is as good as idle
    assert (imbalance.value, imbalance.predicted) == pytest.approx((2.0, 2.0))
    (whole, back, _) = context.link_use(result, members_run.logical_shares(TWO.bundles, predicted))
    assert (whole.value, whole.predicted) == pytest.approx((0.5, 0.5))
    assert back.value == pytest.approx(0.008 / 3)


def test_a_flow_on_another_member_than_said_is_noticed():
    assert TWO.bundles is not None
    result = result_of({0: 5, 4: 2})
    _, found = members_run.member_use(context_of(TWO, None), TWO.bundles, result, np.array([1.0, 0, 0, 0, 0, 0]))
    assert found == [
        (Verdict.WARN, "1 member carried flows that the switches said they would send by another: s1→s2#2")
    ]


def test_the_plan_file_has_bundles_and_groups_for_other_programs():
    text = plan_to_json(TWO)
    raw = json.loads(text)
    assert raw["groups"] == [[GROUP], [GROUP]]
    assert raw["bundles"]["start"]["values"] == [0, 3]
    assert plan_from_json(text).wiring.link_count == 3
    del raw["bundles"]  # as written before there were any
    assert plan_from_json(json.dumps(raw)).bundles is None


def test_a_group_without_some_links_keeps_others_numbers():
    plan = aggregated({"kind": "ring", "switches": 4, "parallel_links": 3}, routing={"kind": "north_last"})
    assert plan.bundles is not None
    whole, less = plan.groups, groups_without(plan.bundles, [1])
    changed = [(one, other) for one, other in zip(whole, less, strict=True) if one != other]
    assert len(changed) == 2  # at both ends
    for one, other in changed:
        assert other.numbers == (0, 2)
        assert other.ports == (one.ports[0], one.ports[2])
        assert "bucket_id:2" in format_group(other)
        assert parse_group(other.switch, format_group(other)) == other
    assert groups_without(plan.bundles, []) == whole
    (none, *_) = groups_without(plan.bundles, [0, 1, 2])
    assert none.ports == ()
    assert parse_group(none.switch, format_group(none)) == none
    # The walk tells a group that is not as links are, and takes one that is.
    flows: dict[str, list[str]] = {}
    for rule in plan.rules:
        flows.setdefault(plan.topology.switch_name(rule.switch), []).append(format_rule(rule))
    dumped: dict[str, list[str]] = {}
    for group in less:
        dumped.setdefault(plan.topology.switch_name(group.switch), []).append(format_group(group))
    assert installed_problems(plan, flows, dumped, [1]) == []
    told = installed_problems(plan, flows, dumped, [])
    assert told[0].startswith("group ")
    assert "instead of 0:" in told[0]
