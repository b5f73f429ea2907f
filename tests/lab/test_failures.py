"""What dies in a lab: links, ports, a switch's process, two links at once, a bridge; and what is left each time."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import numpy as np
import pytest

from testbed.base.errors import Problem
from testbed.base.messages import ControllerStatus
from testbed.base.model import Bools, Rule
from testbed.engines.lab.control.build import build_lab
from testbed.engines.lab.control.client import LabClient
from testbed.engines.ovs.check_tables import expected_rules
from testbed.experiments.run.checks.fidelity import Verdict
from testbed.experiments.run.engines import run_scenario
from testbed.experiments.run.loads.failure_watch import disturbance
from testbed.fabric.openflow.oracle import Oracle
from testbed.fabric.openflow.rule_text import parse_rule
from testbed.fabric.transition.steps import drain_seconds
from testbed.planning import Plan
from testbed.planning.failover.events import ElementNames, changes_of
from testbed.planning.failover.failed_elements import FailedElements, cut_off, failed_elements
from testbed.planning.failures import changes_of_load
from testbed.results import load_run
from testbed.results.samples import load_failures
from testbed.results.telemetry import load_telemetry
from testbed.scenario.workloads.timeline import parse_event
from tests.moments import seconds

from .conftest import execute, pid_file, plan_of, sharing

_LAB = "lab: {dilation: 1, datapath: userspace, controller: segment_manager}\n"
_TORUS = f"topology: {{kind: torus, sizes: [4, 4]}}\n{_LAB}"


@pytest.fixture(scope="module")
def torus() -> Iterator[tuple[Plan, LabClient]]:
    plan = plan_of(f"{_TORUS}workloads:\n- kind: probe\n  failures: [at 1s: kill s10]")
    with build_lab(plan) as lab:
        yield plan, lab


def installed(lab: LabClient) -> set[Rule]:
    dumped = lab.flows()
    return {parse_rule(int(switch[1:]) - 1, line) for switch in dumped for line in dumped[switch]}


def until(lab: LabClient, holds: Callable[[ControllerStatus], bool], seconds: float = 30) -> ControllerStatus:
    end = time.monotonic() + seconds
    while True:
        status = lab.controller()
        if holds(status):
            return status
        assert time.monotonic() < end, (status.phase, status.down, status.problem)
        time.sleep(0.05)


def happens(plan: Plan, lab: LabClient, what: str) -> ControllerStatus:
    """Let an event happen and return the controller's status when it is overcome."""
    before = len(lab.controller().events)
    problems: list[Problem] = []
    change = ElementNames(plan.topology).change(parse_event(f"at 0s: {what}"), "", problems)
    assert not problems
    lab.disturb(disturbance(plan.topology, change))
    return until(lab, lambda told: len(told.events) > before and told.phase.startswith("steady"))


def check(plan: Plan, lab: LabClient, failed: FailedElements) -> None:
    """Walk the rules that the switches dumped: what is connected is delivered, nothing loops or takes what is dead."""
    topology = plan.topology
    oracle, cut = Oracle(topology, installed(lab)), cut_off(topology, failed)
    for source in range(topology.host_count):
        for end in range(topology.host_count):
            if source == end or cut[source, end]:
                continue
            way = oracle.unicast(source, end)
            assert way.received == {end: 1}
            assert not any(failed.links[channel // 2] for channel in way.channels)
        assert not oracle.broadcast(source).endless
    reached(plan, lab, cut)


def reached(plan: Plan, lab: LabClient, cut: Bools) -> None:
    """Real frames arrive between exactly the pairs that are not cut off."""
    topology = plan.topology
    names = [(topology.host_name(int(a)), topology.host_name(int(b))) for a, b in zip(*cut.nonzero(), strict=True)]
    assert sorted(lab.reach()) == sorted(names)


@sharing("failures")
def test_a_link_dies_and_comes_back(torus):
    plan, lab = torus
    first = installed(lab)
    assert first == expected_rules(plan)
    (change,), _ = changes_of(plan.topology, [parse_event("at 0s: down s6-s7")], "")
    status = happens(plan, lab, "down s6-s7")
    assert status.down == ("link s6–s7",)
    assert status.events[-1].hosts_moved > 0
    check(plan, lab, failed_elements(plan.topology, change.links))
    happens(plan, lab, "up s6-s7")
    assert installed(lab) == first
    check(plan, lab, failed_elements(plan.topology))


@sharing("failures")
def test_two_links_at_once(torus):
    plan, lab = torus
    (change,), _ = changes_of(plan.topology, [parse_event("at 0s: down s1-s2, s11-s15")], "")
    happens(plan, lab, "down s1-s2, s11-s15")
    failed = failed_elements(plan.topology, change.links)
    until(lab, lambda told: len(told.down) == 2 and told.phase.startswith("steady"))
    check(plan, lab, failed)
    happens(plan, lab, "up s1-s2, s11-s15")
    until(lab, lambda told: told.phase == "steady")
    assert installed(lab) == expected_rules(plan)


@pytest.mark.long
@sharing("failures")
def test_a_hosts_port_dies_and_nothing_moves(torus):
    plan, lab = torus
    before = installed(lab)
    status = happens(plan, lab, "down h3")
    assert status.down == ("port of h3",)
    assert status.cut_off == 30
    assert installed(lab) == before
    check(plan, lab, failed_elements(plan.topology, hosts=[2]))
    happens(plan, lab, "up h3")
    check(plan, lab, failed_elements(plan.topology))


@sharing("failures")
def test_a_port_is_one_end_of_its_link(torus):
    plan, lab = torus
    channel = 12
    name = plan.topology.switch_name(int(plan.topology.channel_source[channel]))
    port = f"{name}-eth{plan.topology.out_port[channel]}"
    happens(plan, lab, f"down {port}")
    check(plan, lab, failed_elements(plan.topology, [channel // 2]))
    happens(plan, lab, f"up {port}")
    assert until(lab, lambda told: told.phase == "steady").down == ()


@pytest.mark.long
@sharing("failures")
def test_the_process_of_a_switch_dies(torus):
    plan, lab = torus
    (killed,) = changes_of_load(plan, 0)[0].switches
    happens(plan, lab, "kill s10")
    until(lab, lambda told: told.down == ("switch s10",) and told.phase == "steady, damaged")
    check(plan, lab, failed_elements(plan.topology, switches=[killed]))
    happens(plan, lab, "start s10")
    until(lab, lambda told: told.phase == "steady" and told.in_step == 16)
    assert installed(lab) == expected_rules(plan)
    check(plan, lab, failed_elements(plan.topology))
    assert lab.shaping_problems() == []


@pytest.mark.long
@sharing("failures")
def test_a_switch_that_answers_nothing_is_taken_for_dead(torus):
    """Its ports stay up, so that only the echo requests tell."""
    plan, lab = torus
    (frozen,) = changes_of_load(plan, 0)[0].switches
    signal = "kill -{} $(cat " + pid_file(lab, frozen) + ")"
    execute(lab, "sh", "-c", signal.format("STOP"))
    try:
        told = until(lab, lambda told: told.down == ("switch s10",) and told.phase == "steady, damaged")
        cut = cut_off(plan.topology, failed_elements(plan.topology, switches=[frozen]))
        assert told.cut_off == cut.sum()
        reached(plan, lab, cut)
    finally:
        execute(lab, "sh", "-c", signal.format("CONT"))
    until(lab, lambda told: told.phase == "steady" and told.in_step == 16)
    assert installed(lab) == expected_rules(plan)
    check(plan, lab, failed_elements(plan.topology))


@sharing("failures")
def test_a_restart_of_the_controller_touches_nothing(torus):
    plan, lab = torus
    happens(plan, lab, "down s6-s7")
    before = installed(lab)
    lab.stop_controller()
    lab.start_controller()
    status = lab.wait_for_controller()
    assert [state.changed for state in status.switches.values()] == [0] * 16
    assert status.down == ("link s6–s7",)
    assert installed(lab) == before
    happens(plan, lab, "up s6-s7")
    assert installed(lab) == expected_rules(plan)


def test_a_bridge_dies_and_each_side_goes_on():
    plan = plan_of(f"topology: {{kind: tree, switches: 7, arity: 2}}\n{_LAB}")
    with build_lab(plan) as lab:
        (change,), _ = changes_of(plan.topology, [parse_event("at 0s: down s1-s2")], "")
        failed = failed_elements(plan.topology, change.links)
        status = happens(plan, lab, "down s1-s2")
        assert status.cut_off == int(cut_off(plan.topology, failed).sum()) > 0
        check(plan, lab, failed)
        happens(plan, lab, "up s1-s2")
        assert installed(lab) == expected_rules(plan)


def test_vlans_that_come_back_lose_nothing_at_a_slow_switch():
    """Open vSwitch keeps "drop" of rules that were removed, until it has looked at it again; here one never does."""
    plan = plan_of(f"topology: {{kind: ring, switches: 4}}\n{_LAB.replace('1,', '1, switch_daemons: 2,')}")
    second = ("ovs-appctl", "-t", "/run/lab/ovs/ovs-vswitchd-2.ctl")
    with build_lab(plan) as lab:
        assert lab.reach() == []
        happens(plan, lab, "down s1-s2")
        execute(lab, *second, "revalidator/wait")
        assert "actions:drop" in execute(lab, *second, "dpctl/dump-flows")
        execute(lab, *second, "revalidator/pause")
        happens(plan, lab, "up s1-s2")
        assert lab.reach() == []
        assert installed(lab) == expected_rules(plan)


@pytest.mark.long
@pytest.mark.quiet(seat=1)
def test_a_run_measures_its_failures(tmp_path):
    plan = plan_of(
        f"{_TORUS}workloads:\n- kind: probe\n  seconds: 4\n  pairs: 2\n  failures: [at 1s: down s6-s7, at 3s: up s6-s7]"
    )
    outcome = run_scenario(plan, tmp_path, lambda text: None)
    assert outcome.verdict is not Verdict.FAIL, outcome.reasons
    died, rose = load_failures(outcome.folder, "1")[0]["events"]
    noticed, carried, recovered = seconds(died, "detection", "takeover", "recovery")
    assert 0 < noticed <= carried < 1
    assert noticed < recovered < 2
    assert died["frames_lost"] > 0
    assert rose["frames_lost"] == 0
    metrics = {sample.metric for sample in load_run(outcome.folder).samples}
    assert metrics >= {"detection", "takeover", "recovery", "frames_lost"}
    page = (outcome.folder / "report.html").read_text()
    assert "backup path after" in page


@pytest.mark.long
@pytest.mark.quiet(seat=1)
@pytest.mark.parametrize(("protocol", "offered"), [("tcp", ""), ("udp", "offered_load: 0.4, ")])
def test_flows_outlive_their_links(tmp_path, protocol, offered):
    """iperf3's flows go on over backup paths; two links, so that the second death meets a fabric as it was at first."""
    plan = plan_of(
        "topology: {kind: ring, switches: 4}\n"
        "lab: {dilation: 100, datapath: userspace, controller: segment_manager}\n"
        f"workloads:\n- {{kind: iperf3, protocol: {protocol}, {offered}omit: 1, seconds: 7, repeats: 1, failures: ["
        '"at 2s: down s1-s2", "at 4s: up s1-s2", "at 5s: down s3-s4", "at 7s: up s3-s4"]}'
    )
    outcome = run_scenario(plan, tmp_path, lambda text: None)
    assert outcome.verdict is not Verdict.FAIL, outcome.reasons
    assert not any("rules" in reason for reason in outcome.reasons)
    events = load_failures(outcome.folder, "1")[0]["events"]
    assert [event["event"] for event in events] == [
        "at 2 s: down s1-s2", "at 4 s: up s1-s2", "at 5 s: down s3-s4", "at 7 s: up s3-s4",
    ]  # fmt: skip
    assert [event["at"] for event in events] == pytest.approx([2, 4, 5, 7], abs=0.2)
    for event in events:
        noticed, diverted, recovered = seconds(event, "detection", "diverted", "recovery")
        assert 0 < noticed <= diverted <= recovered < 2
        assert event["cut_off"] == event["without_backup"] == 0
    # The first datagram on the backup path waits in queues, if iperf3 fills them, and is not lost there.
    drained = drain_seconds(plan.topology, plan.routes, 1e7, 100)
    waits = drained if protocol == "tcp" else 0.0
    for died, rose in (events[:2], events[2:]):
        noticed, carried = seconds(died, "detection", "takeover")
        assert noticed < carried < 0.2 + drained
        assert died["frames_lost"] >= max(1, 1000 * (carried - 0.1 - waits))
        assert rose["takeover"] is None
    goodput = {s.labels["src"]: s.value for s in load_run(outcome.folder).samples if s.metric == "goodput"}
    assert sorted(goodput) == ["h1", "h2", "h3", "h4"]

    # What was on the way of each flow in the last second in which a link was dead, and of its link.
    counted = load_telemetry(outcome.folder, "1")
    assert counted is not None
    for event, source in ((events[0], 0), (events[2], 2)):
        while_dead = (counted.time > event["at"] + 0.9) & (counted.time < event["at"] + 1.9)
        sent = {int(h): int(counted.sent_bytes[while_dead, p].sum()) for p, h in enumerate(counted.port_host) if h >= 0}
        assert min(sent.values()) > 100_000, sent
        (link,) = np.flatnonzero(
            (plan.topology.channel_source == source) & (plan.topology.channel_target == source + 1)
        )
        (port,) = np.flatnonzero(counted.port_channel == link)
        assert counted.sent_frames[while_dead, port].sum() == 0
        assert counted.sent_frames[:, port].sum() > 1000
