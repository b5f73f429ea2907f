"""Aggregated links on running switches: rules and groups, one copy of a broadcast, spreading, a member that fails."""

from __future__ import annotations

import re
import sys
import time
from collections import Counter

import pytest

from testbed.base.messages import Flow, LoadRequest, Process
from testbed.base.model import LearningPlan, Rule, Sample, host_ip, host_mac
from testbed.engines.lab.control.build import build_lab
from testbed.engines.lab.control.client import LabClient
from testbed.engines.ovs.check_paths import installed_problems
from testbed.engines.ovs.check_tables import teach, unknown_addresses
from testbed.experiments.run.checks.fidelity import Verdict
from testbed.experiments.run.engines import run_scenario
from testbed.experiments.run.in_session import check_paths
from testbed.fabric.openflow.rule_text import parse_group, parse_rule
from testbed.fabric.routing.paths import path
from testbed.planning import Plan

from .conftest import both_ways, broadcasts_seen, each, execute, mended, named_plan, plan_of, sharing

_FABRICS = {
    "fixed": "topology: {kind: torus, sizes: [4, 2], hosts_per_switch: 2, parallel_links: 2}",
    "renamed": "topology: {kind: ring, switches: 5, parallel_links: 3}\nrouting: {kind: updown}",
    "static": "topology: {kind: mesh, sizes: [3, 2], parallel_links: 2}\nassignment: {kind: static}",
    "openflow": "topology: {kind: hyperx, sizes: [3, 3], parallel_links: 2}\nrouting: {kind: dl}",
    "with dead members": (
        "topology: {kind: complete, switches: 4, parallel_links: 3}\n"
        "faults: {links: [[s1, s2, 0], [s1, s3, 0], [s1, s3, 1]]}"
    ),
}
_TWO = "topology: {kind: mesh, sizes: [2], hosts_per_switch: 2, parallel_links: 4}\nlinks: {aggregate: true}"


def installed(lab: LabClient) -> set[Rule]:
    dumped = lab.flows()
    return {parse_rule(number, line) for number, switch in enumerate(dumped) for line in dumped[switch]}


def _plan(text: str) -> Plan:
    return plan_of(f"{text}\nlinks: {{aggregate: true}}")


@pytest.mark.parametrize("name", each(["torus4x2-lag", *_FABRICS]))
def test_running_switches_carry_out_the_plan(name, standing):
    plan = _plan(_FABRICS[name]) if name in _FABRICS else named_plan(name)
    lab = standing(plan)
    rules, groups = lab.flows(), lab.groups()
    assert installed(lab) == set(plan.rules)
    assert {parse_group(number, line) for number, switch in enumerate(groups) for line in groups[switch]} == set(
        plan.groups
    )
    assert installed_problems(plan, rules, groups) == []
    assert lab.reach() == []
    assert lab.shaping_problems() == []


@pytest.mark.parametrize("name", each(["fixed", "renamed", "openflow"]))
def test_a_broadcast_reaches_every_other_host_once(name, standing):
    plan = _plan(_FABRICS[name])
    hosts = range(plan.topology.host_count)
    captures = broadcasts_seen(plan, standing(plan))
    for receiver, seen in enumerate(captures):
        assert "802.1Q" not in seen
        found = {sender: len(re.findall(rf"{host_mac(sender)} > ff:ff", seen)) for sender in hosts}
        assert found == {sender: int(sender != receiver) for sender in hosts}


def _sent(lab: LabClient, plan: Plan) -> dict[str, int]:
    """Frames sent so far by each physical channel between switches."""
    return {plan.wiring.channel_name(channel): count for channel, count in enumerate(lab.frames().channels)}


_FLOW = f"in_port=1,udp,dl_src={host_mac(0)},dl_dst={host_mac(2)},nw_src={host_ip(0)},nw_dst={host_ip(2)}"
# From one socket each, so that each datagram is a flow of its own: addresses and destination port stay the same.
_MANY = (
    "import socket, time\n"
    "for port in range(20000, 20400):\n"
    "    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:\n"
    "        one.bind(('', port)); one.sendto(bytes(64), ('{to}', 9))\n"
    "        time.sleep(0.003)\n"
)


@sharing("two")
@both_ways
def test_flows_are_spread_over_members_and_each_stays_on_its_own(standing, fast_path):
    plan = plan_of(f"{_TWO}\nlab: {{fast_path: {fast_path}}}")
    lab = standing(plan)
    before = _sent(lab, plan)
    execute(lab, sys.executable, "-c", _MANY.format(to=host_ip(2)), host="h1")
    after = _sent(lab, plan)
    of_members = [after[name] - before[name] for name in ("s1→s2", "s1→s2#1", "s1→s2#2", "s1→s2#3")]
    assert sum(of_members) >= 400
    # 400 flows at random: 100 on each with a standard deviation of 9.
    assert all(50 < count < 150 for count in of_members), of_members
    answers = lab.trace([("s1", f"{_FLOW},udp_src=20000,udp_dst=9")] * 5)
    chosen = {tuple(re.findall(r"^ +output:(\d+)$", text, re.MULTILINE)) for text in answers}
    assert len(chosen) == 1


def _members_of_flows(lab: LabClient) -> Counter[str]:
    """How many of a hundred flows from h1 to h3 the first switch sends by each port."""
    frames = [("s1", f"{_FLOW},udp_src={port},udp_dst=9") for port in range(100)]
    texts = lab.trace(frames)
    return Counter(port for text in texts for port in re.findall(r"^ +output:(\d+)$", text, re.MULTILINE))


@pytest.mark.long
@both_ways
def test_when_a_member_fails_the_others_carry_on_meanwhile(untouched, fast_path):
    """The first member as well, whose port gives the bundle its number; under traffic, at either end."""
    plan = plan_of(f"{_TWO}\nlab: {{fast_path: {fast_path}}}")
    with build_lab(plan) as lab:
        whole = _members_of_flows(lab)
        assert set(whole) == {"3", "4", "5", "6"}
        toggle = "ip link set {} {}; sleep 0.5"
        for interface, port in (("s1-eth3", "3"), ("s2-eth5", "5")):  # a port is dead when the far end is
            command = f"sleep 1.5; {toggle.format(interface, 'down')}"
            ping = Process("ping", "h1", ("ping", "-i", "0.02", "-c", "200", "-q", host_ip(2)))
            cut = Process("cut", None, ("sh", "-c", command))
            outputs = lab.run_load(LoadRequest((ping, cut), limit=40)).outputs
            received = int(re.findall(r"(\d+) received", outputs["ping"].stdout)[0])
            assert received > 150  # less than a second of 4 is lost
            left = _members_of_flows(lab)
            assert set(left) == set(whole) - {port}
            assert all(left[other] >= whole[other] for other in left)  # flows of living members stay
            assert lab.reach() == []
            assert installed_problems(plan, lab.flows(), lab.groups()) == []
            before = _sent(lab, plan)
            time.sleep(1)
            assert sum(_sent(lab, plan).values()) - sum(before.values()) < 50  # nothing circulates
            execute(lab, "sh", "-c", toggle.format(interface, "up"))
            until = time.monotonic() + 10
            while _members_of_flows(lab) != whole:  # the switch has yet to hear of it
                assert time.monotonic() < until
        check_paths(plan, lab)


@sharing("two")
def test_a_group_that_lacks_a_member_is_found(standing):
    plan = plan_of(_TWO)
    lab = standing(plan)
    with mended(plan, lab, 0):
        (line,) = lab.groups()["s1"]
        fewer = line.strip().partition(",bucket=bucket_id:3")[0]
        execute(lab, "ovs-ofctl", "-O", "OpenFlow15", "mod-group", "s1", fewer)
        problems = installed_problems(plan, lab.flows(), lab.groups())
        assert "h1→h3 can take 3 of the 4 members of s1→s2" in problems


@pytest.mark.long
@pytest.mark.quiet(seat=1)
def test_each_flow_gets_what_the_members_it_takes_allow(untouched, tmp_path):
    text = (
        "topology: {kind: mesh, sizes: [2], hosts_per_switch: 4, parallel_links: 2}\nlinks: {aggregate: true}\n"
        "lab: {dilation: 400}\n"
        "workloads: [{kind: iperf3, protocol: udp, pattern: complement, omit: 2, seconds: 5, repeats: 2, "
        "offered_load: 0.9}]"
    )
    plan = plan_of(text)
    outcome = run_scenario(plan, tmp_path, lambda line: None)
    assert outcome.verdict is not Verdict.FAIL, outcome.reasons  # the machine may be busy
    of_metric: dict[str, list[Sample]] = {}
    for sample in outcome.samples:
        of_metric.setdefault(sample.metric, []).append(sample)
    assert len(of_metric["goodput"]) == 2 * 8
    assert len(of_metric["member_use"]) == 2 * 4
    assert len(of_metric["bundle_imbalance"]) == 2 * 2
    for sample in (*of_metric["goodput"], *of_metric["member_use"]):
        assert sample.predicted is not None
        assert sample.value == pytest.approx(sample.predicted, rel=0.1, abs=0.02)
    assert all(0.3 <= sample.value <= 1 for sample in of_metric["hash_share"])


_LEARNING = (
    "topology: {{kind: torus, sizes: [3, 3], parallel_links: 3}}\nlinks: {{aggregate: true}}\nlab: {{dilation: 50}}\n"
    "assignment: {{kind: fixed, registration: learning, ageing: {ageing}}}"
)
# A frame of an experimental type, which nobody answers, from an address that the sender makes up.
_ONE = """
import socket
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
s.bind(("eth0", 0))
s.send(bytes.fromhex("{to}{source}{tag}88b5") + bytes(46))
"""


def _raw(to: str, source: str, vlan: int | None = None) -> str:
    tag = "" if vlan is None else f"8100{vlan:04x}"
    return _ONE.format(to=to.replace(":", ""), source=source.replace(":", ""), tag=tag)


def _settled(lab: LabClient) -> list[int]:
    """Frames to each host so far, when no more come."""
    before, after = None, list(lab.frames().to_hosts)
    while after != before:
        time.sleep(0.2)
        before, after = after, list(lab.frames().to_hosts)
    return after


@pytest.mark.long
def test_switches_learn_bundles(untouched):
    """Known, each frame takes any member of each bundle and arrives once; a host that is elsewhere is learned there."""
    plan = plan_of(_LEARNING.format(ageing=0))
    assert isinstance(plan.vlans, LearningPlan)
    hosts = range(plan.topology.host_count)
    with build_lab(plan) as lab:
        assert len(unknown_addresses(plan, lab.flows())) > 0
        teach(plan, lab)
        assert unknown_addresses(plan, lab.flows()) == []
        assert installed_problems(plan, lab.flows(), lab.groups()) == []
        assert lab.reach() == []
        for receiver, seen in enumerate(broadcasts_seen(plan, lab)):
            found = {sender: len(re.findall(rf"{host_mac(sender)} > ff:ff", seen)) for sender in hosts}
            assert found == {sender: int(sender != receiver) for sender in hosts}
        # 400 flows at random over three members: 133 on each with a standard deviation of 9.
        floods, before = lab.frames().flooded, lab.frames().channels
        execute(lab, sys.executable, "-c", _MANY.format(to=host_ip(1)), host="h1")
        _settled(lab)
        after = lab.frames().channels
        assert plan.bundles is not None
        members = plan.bundles.channels(path(plan.topology, plan.routes, 0, 1)[0])
        of_members = [after[channel] - before[channel] for channel in members]
        assert sum(of_members) >= 400
        assert all(80 < count < 190 for count in of_members), of_members
        assert lab.frames().flooded == floods
        # h1's address comes from h9 now, in the VLAN of h5; h5's frame for it goes there alone, until h1 speaks again.
        vlan = int(plan.vlans.vlan_ids[plan.vlans.pvid[4]])
        for speaker in (8, 0):
            name = plan.topology.host_name(speaker)
            execute(lab, sys.executable, "-c", _raw("ff:ff:ff:ff:ff:ff", host_mac(0), vlan), host=name)
            counts = _settled(lab)
            execute(lab, sys.executable, "-c", _raw(host_mac(0), host_mac(4)), host="h5")
            assert [now - then for now, then in zip(_settled(lab), counts, strict=True)] == [
                int(host == speaker) for host in hosts
            ]
        assert unknown_addresses(plan, lab.flows()) == []


@pytest.mark.long
def test_what_is_learned_of_bundles_is_forgotten(untouched):
    plan = plan_of(_LEARNING.format(ageing=20))
    with build_lab(plan) as lab:
        teach(plan, lab)
        taught = time.monotonic()
        assert unknown_addresses(plan, lab.flows()) == []
        flow = Flow(0, 4, "tcp", 30000, 5201)
        known = lab.taken_channels(plan, [flow])
        while (found := installed(lab)) != set(plan.rules):
            assert time.monotonic() < taught + 30, found - set(plan.rules)
            time.sleep(0.5)
        # Flows are asked about all the same: what is flooded takes the same members.
        assert lab.taken_channels(plan, [flow]) == known
        ((there, back),) = known
        assert plan.bundles is not None
        for taken, start, end in ((there, 0, 4), (back, 4, 0)):
            assert tuple(plan.bundles.of_channel[list(taken)].tolist()) == path(plan.topology, plan.routes, start, end)
