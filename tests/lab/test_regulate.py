"""Links that go off and on under traffic on real switches: nothing is lost, and what is left is what the plan says."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from testbed.base.errors import LabError
from testbed.base.messages import Disturbance
from testbed.engines.lab.control.build import build_lab
from testbed.engines.lab.control.client import LabClient
from testbed.engines.session import Session
from testbed.experiments.regulate import alternating_paths
from testbed.experiments.regulate.alternating_paths import watch_changes
from testbed.experiments.regulate.choose_links import at_speeds, find_detour, kept_links, plan_without
from testbed.experiments.regulate.loop import LOOP, regulate_by_load
from testbed.experiments.regulate.plan_changes import Change, PlanMover, pair_opposite_hosts
from testbed.experiments.regulate.rate_changes import RateChange, list_rate_changes
from testbed.experiments.regulate.run import ALL_ON, FEWER, regulate
from testbed.experiments.regulate.thresholds import Rule
from testbed.experiments.run.checks.fidelity import Verdict
from testbed.experiments.run.loads.context import Context
from testbed.experiments.run.loads.run_iperf3 import run_iperf3
from testbed.fabric.power import POWER_MODELS
from testbed.fabric.routing.paths import path
from testbed.planning import Plan, make_plan
from testbed.planning.rates import at_dilation
from testbed.results import INCOMPLETE, load_run
from testbed.results.telemetry import load_telemetry
from testbed.scenario import load_scenario
from testbed.scenario.workloads.spec import Iperf3

from .conftest import PHASES, execute, plan_of, sharing

_RING = "topology: {kind: ring, switches: 4}\nrouting: {kind: north_last}\n"
_LAB = "lab: {dilation: 100, datapath: userspace, controller: switch_tagged}\n"
_TCP = "workloads: [{kind: iperf3, protocol: tcp, pattern: neighbour, omit: 1, seconds: 3, repeats: 1}]\n"
_QUICK = POWER_MODELS["SF-420"]


@pytest.fixture(scope="module")
def ring() -> Iterator[tuple[Plan, LabClient]]:
    plan = plan_of(_RING + _LAB)
    with build_lab(plan) as lab:
        yield plan, lab


@pytest.fixture
def watching(ring: tuple[Plan, LabClient], kept: dict[str, str]) -> Context:
    plan, lab = ring
    return Context(plan, lab, {"load": "1"}, kept.__setitem__, lambda text: None)


def without_first(plan: Plan) -> Plan:
    off = np.zeros(plan.topology.link_count, dtype=bool)
    off[0] = True
    return plan_without(plan, off)


@sharing("regulate")
def test_a_link_goes_off_and_on_under_traffic_without_losses(ring, watching):
    plan, lab = ring
    session, fewer = PlanMover(lab, wake_up=0.3), without_first(plan)

    def changes(other: Session) -> list[Any]:
        gone = session.move(other, "off", fewer, (0,))
        down = other.controller().off
        return [gone, down, session.move(other, "on", plan, ())]

    (gone, down, back), losses, _ = session.while_probing(watching, pair_opposite_hosts(4), 200, changes)
    assert [step.action for step in gone.steps] == ["add", "move", "drain", "remove", "links off"]
    assert [step.action for step in back.steps] == ["links on", "add", "move", "drain", "remove"]
    assert down == ("s1–s2",)
    assert back.steps[0].seconds >= 0.3
    assert (gone.problems, back.problems) == ((), ())
    assert [(loss.lost_count, loss.duplicates, loss.broken) for loss in losses] == [(0, 0, "")] * 4
    assert min(loss.sent for loss in losses) > 300
    assert min(loss.echoes for loss in losses) > 3
    assert lab.controller().off == ()


def test_vlans_that_come_back_lose_nothing_at_a_slow_switch(kept):
    """Open vSwitch keeps "drop" of rules that were removed, until it has looked at it again; here it never does."""
    plan = plan_of(_RING + _LAB.replace("100", "100, switch_daemons: 2"))
    detour = find_detour(plan, None)
    pairs = [(detour.source, detour.destination), (detour.destination, detour.source)]
    with build_lab(plan) as lab:
        session = PlanMover(lab, wake_up=0.0)
        watching = Context(plan, lab, {"load": "1"}, kept.__setitem__, lambda text: None)
        inside = ["nsenter", "--target", str(lab.namespaces.init), "--pid", "--net", "--mount", "--"]
        second = [*inside, "ovs-appctl", "-t", "/run/lab/ovs/ovs-vswitchd-2.ctl"]

        def changes(other: Session) -> list[Any]:
            gone = session.move(other, "detour", detour.plan, (), walk=False)
            subprocess.run([*second, "revalidator/pause"], check=True)
            back = session.move(other, "back", plan, (), walk=False)
            subprocess.run([*second, "revalidator/resume"], check=True)
            return [gone, back]

        made, losses, _ = session.while_probing(watching, pairs, 500, changes)
        assert lab.walk(plan) == []
        assert "move" in [step.action for step in made[1].steps]
        assert [(loss.lost_count, loss.duplicates, loss.broken) for loss in losses] == [(0, 0, "")] * 2
        assert min(loss.sent for loss in losses) > 500


@pytest.mark.long
def test_a_link_goes_off_and_on_with_vlans_of_one_switch(kept):
    """Frames have no tag between switches: ports change against the direction of the paths, and nothing is lost."""
    plan = plan_of(_RING + "assignment: {kind: renamed}\n" + _LAB)
    keep = kept_links(plan)
    assert keep is not None
    spared = int(np.flatnonzero(~keep)[0])
    fewer = plan_without(plan, ~keep)
    with build_lab(plan) as lab:
        session = PlanMover(lab, wake_up=0.3)
        watching = Context(plan, lab, {"load": "1"}, kept.__setitem__, lambda text: None)

        def changes(other: Session) -> list[Any]:
            gone = session.move(other, "off", fewer, (spared,))
            return [gone, other.controller().off, session.move(other, "on", plan, ())]

        (gone, down, back), losses, _ = session.while_probing(watching, pair_opposite_hosts(4), 200, changes)
        told = [step.action for step in gone.steps]
        assert (told[0], told[-2:]) == ("add", ["remove", "links off"])
        assert told[1:3] == ["move", "move"]
        assert "drain" in told
        assert back.steps[0].action == "links on"
        assert len(down) == 1
        assert (gone.problems, back.problems) == ((), ())
        assert [(loss.lost_count, loss.duplicates, loss.broken) for loss in losses] == [(0, 0, "")] * 4
        assert min(loss.sent for loss in losses) > 300
        assert lab.controller().off == ()
        with pytest.raises(LabError, match=r"refuses: the way to this plan is not safe: .* which is off"):
            session.move(lab, "off", plan, np.flatnonzero(keep)[:1].tolist())
        with pytest.raises(LabError, match=r"no way to this plan: .* needs the assignment fixed or renamed, the same"):
            session.move(lab, "other", plan_of(_RING + _LAB), ())
        assert lab.reach() == []


@sharing("regulate")
def test_a_link_that_dies_at_once_has_its_lost_frames_counted(ring, watching):
    """The same without make before break: the count must be able to see a loss."""
    _, lab = ring

    def changes(other: Session) -> None:
        other.disturb(Disturbance(up=False, channels=(0, 1)))
        time.sleep(0.5)
        other.disturb(Disturbance(up=True, channels=(0, 1)))

    _, losses, _ = PlanMover(lab, wake_up=0.0).while_probing(watching, pair_opposite_hosts(4), 200, changes)
    assert sum(loss.lost_count for loss in losses) > 50
    lost = next(loss for loss in losses if loss.lost_count)
    assert lost.longest_gap > 0.4
    assert lab.reach() == []


@sharing("regulate")
def test_a_change_into_a_link_that_is_off_is_refused(ring, watching):
    plan, lab = ring
    session = PlanMover(lab, wake_up=0.0)
    with pytest.raises(LabError, match=r"refuses: the way to this plan is not safe: .* which is off"):
        session.move(lab, "off", plan, (0,))
    assert lab.controller().off == ()
    assert lab.reach() == []
    with pytest.raises(LabError, match="a plan for another topology"):
        session.move(lab, "off", plan_of(_RING.replace("4", "5") + _LAB), ())


@pytest.mark.long
@pytest.mark.quiet(seat=0)
def test_a_link_changes_its_speed_and_goodput_follows(kept):
    plan = plan_of(_RING + _LAB)
    slow = at_speeds(plan, ("100M", "1G", "1G", "1G"))
    (down,), goal = list_rate_changes(plan, slow, plan)
    (up,), back = list_rate_changes(goal, plan, plan)
    assert back is plan
    spec = Iperf3("tcp", "neighbour", seconds=4, omit=1, repeats=1)
    ends = [f"s1-eth{plan.topology.out_port[0]}", f"s2-eth{plan.topology.out_port[1]}"]

    with build_lab(plan) as lab:
        session = PlanMover(lab, wake_up=30.0)  # nothing that was only slower is waited for

        def shares(installed: Plan) -> dict[str, float]:
            """Goodput of each flow, as a share of that of a full link; that over s1–s2 must be as predicted."""
            outcome = run_iperf3(Context(installed, lab, {"load": "1"}, kept.__setitem__, lambda text: None), spec)
            assert not [finding for finding in outcome.findings if finding[0] is Verdict.FAIL]
            (counted,) = outcome.telemetry
            rate = dict(zip(counted.ports.tolist(), counted.port_rate.tolist(), strict=True))
            wanted = 1e7 * (1.0 if installed.speeds is None else installed.speeds[0])
            assert [rate[end] for end in ends] == [wanted, wanted]
            found = {s.labels["src"]: s for s in outcome.samples if s.metric == "goodput"}
            assert found["h1"].value == pytest.approx(found["h1"].predicted, rel=0.2)
            return {source: sample.value / 9.4e8 for source, sample in found.items()}

        def rates() -> list[str]:
            return [execute(lab, "tc", "class", "show", "dev", end).split(" rate ")[1].split()[0] for end in ends]

        def change(step: RateChange, then: Plan) -> list[Change]:
            watching = Context(plan, lab, {"load": "1"}, kept.__setitem__, lambda text: None)
            # 500 datagrams a second take half of the slow link; 1,000 would fill its queue within three seconds.
            made, losses, _ = session.while_probing(
                watching, [(0, 1), (1, 0)], 500,
                lambda other: [session.retune(other, "a", step, 0.3), session.move(other, "b", then, ())],
            )  # fmt: skip
            assert [(loss.lost_count, loss.duplicates, loss.broken) for loss in losses] == [(0, 0, "")] * 2
            assert min(loss.sent for loss in losses) > 750
            assert [one.problems for one in made] == [(), ()]
            return list(made)

        assert min(shares(plan).values()) > 0.6
        made = change(down, goal)
        assert [step.action for one in made for step in one.steps] == [
            "add", "move", "drain", "remove", "links off", "speed", "links on", "add", "move", "drain", "remove",
        ]  # fmt: skip
        assert rates() == ["1Mbit"] * 2
        with pytest.raises(LabError, match=r"cannot change the speed of link 4 .* links have the numbers 0 to 3"):
            lab.set_speeds({4: 0.1})
        assert lab.shaping_problems() == []
        assert lab.controller().slower == {"s1–s2": 0.1}
        slowed = shares(goal)
        assert slowed.pop("h1") == pytest.approx(0.1, rel=0.15)
        assert min(slowed.values()) > 0.6
        # Another dilation keeps the link at its share.
        lab.set_rates(at_dilation(plan, 200))
        assert rates() == ["500Kbit"] * 2
        lab.set_rates(at_dilation(plan, 100))
        change(up, plan)
        assert rates() == ["10Mbit"] * 2
        assert lab.shaping_problems() == []
        assert lab.controller().slower == {}
        assert min(shares(plan).values()) > 0.6


@pytest.mark.long
@pytest.mark.quiet(seat=0)
def test_changing_paths_beside_one_that_stays(tmp_path, untouched, monkeypatch):
    for name, seconds in (("_BANDWIDTH_SECONDS", 4), ("_OFF_AT", 2.0), ("_ON_AT", 5.0), ("_SERIES_SECONDS", 9)):
        monkeypatch.setattr(alternating_paths, name, seconds)
    plan = plan_of(_RING + _LAB)
    outcome, changes = watch_changes(plan, tmp_path, _QUICK, 0.5, 3, None, lambda text: None)
    run = load_run(outcome.folder)
    found = {(s.metric, s.labels.get("path")): s.value for s in run.samples}
    assert found["frames_lost", "fixed path"] == found["frames_lost", "changing path"] == 0
    assert found["frames_sent", "changing path"] > 1000
    assert found["path_changes", "changing path"] == 4  # one more leads back
    assert found["frame_bandwidth_mean", "changing path"] > 0.7e9
    assert len(changes) >= 6
    assert not any(change.problems for change in changes)
    series = load_telemetry(outcome.folder, "5")
    assert series is not None
    # The link that is off for some seconds carries nothing then, and does before and afterwards.
    detour = find_detour(plan, None)
    port = int(np.flatnonzero(series.port_channel == path(plan.topology, plan.routes, 0, 2)[0])[0])
    assert int(series.port_channel[port]) // 2 == detour.link
    idle, end = series.sent_bytes[:, port] == 0, series.time[-1]
    assert int(idle[(series.time > 1.5) & (series.time < end - 1.5)].sum()) > 10
    assert not idle[(series.time > 1) & (series.time < 2.5)].all()
    assert not idle[(series.time > end - 3) & (series.time < end - 1)].all()
    assert (outcome.folder / "series.svg").read_text().count("<path") > 4


@pytest.mark.long
@pytest.mark.quiet(seat=0)
@pytest.mark.parametrize("assignment", ["fixed", "renamed"])
def test_links_are_chosen_by_what_the_loads_send(assignment, tmp_path, untouched):
    """Only neighbours along the ring talk; one of four links goes off, and the goodput of those left is measured."""
    topology = "topology: {kind: ring, switches: 4, parallel_links: 2}\n"
    plan = plan_of(topology + f"assignment: {{kind: {assignment}}}\n" + _LAB + _TCP)
    found = regulate(plan, tmp_path, _QUICK, 1, lambda text: None)
    assert found.choice.off_links
    assert found.power.saving > 0
    assert [change.name for change in found.changes] == ["links off", "links on"]
    assert not any(change.problems for change in found.changes)
    run = load_run(found.outcome.folder)
    assert sum(s.value for s in run.samples if s.metric == "frames_lost") == 0
    assert {s.labels["links"] for s in run.samples if s.metric == "goodput"} == {ALL_ON, FEWER}
    assert (found.outcome.folder / "power.svg").exists()
    stored = json.loads((found.outcome.folder / "power.json").read_text())
    assert stored["traffic"][0]["off"] == list(found.choice.names)


@pytest.mark.long
@pytest.mark.quiet(seat=0)
def test_links_run_slower_where_their_traffic_needs_no_more(tmp_path, untouched):
    """Two hosts talk over one pair of links: of every other pair one goes off and one stays on at 10 Mbit/s."""
    plan = plan_of(  # short queues, since those of slow links take long to run empty
        "topology: {kind: ring, switches: 4, parallel_links: 2}\nlinks: {queue_frames: 30}\n"
        "lab: {dilation: 50, datapath: userspace, controller: switch_tagged}\n"
        + _TCP.replace("neighbour", "bit_reversal")
    )
    found = regulate(plan, tmp_path, _QUICK, 1, lambda text: None, slower=True)
    assert not [reason for reason in found.outcome.reasons if "shaping" in reason or "rules" in reason]
    assert (len(found.choice.off_links), len(found.choice.slowed_links)) == (4, 3)
    assert [change.name for change in found.changes] == [
        "links off, speeds 1", "links off", "links on, speeds 1", "links on",
    ]  # fmt: skip
    assert not any(change.problems for change in found.changes)
    speeds = [step.seconds for change in found.changes for step in change.steps if step.action == "speed"]
    assert speeds == pytest.approx([_QUICK.speed_change["1G", "10M"], _QUICK.speed_change["10M", "1G"]], abs=0.5)
    samples = load_run(found.outcome.folder).samples
    of = {metric: [s.value for s in samples if s.metric == metric] for metric in ("frames_lost", "links_slower")}
    assert of == {"frames_lost": [0, 0], "links_slower": [3]}
    before, after = (
        [s.value for s in samples if s.metric == "goodput_mean" and s.labels["links"] == links]
        for links in (ALL_ON, FEWER)
    )
    assert min(after) > 0.8 * max(before)
    stored = json.loads((found.outcome.folder / "power.json").read_text())
    assert stored["traffic"][0]["slower"] == {"10M": 3}
    assert "3 slower" in (found.outcome.folder / "power.svg").read_text()


@pytest.mark.long
@pytest.mark.quiet(seat=0)
@pytest.mark.parametrize("lab", [_LAB, "lab: {dilation: 400}\nengine: realtime\n"], ids=["ovs", "realtime"])
def test_links_go_off_and_on_as_the_load_falls_and_rises(lab, tmp_path, untouched):
    """With all links on h1 and h4 send to h3 by two links from s4, and with one a pair by the same."""
    (tmp_path / "phases.py").write_text(PHASES)
    (tmp_path / "phases.py").chmod(0o755)
    topology = "topology: {kind: ring, switches: 4, parallel_links: 2}\n"
    (tmp_path / "ring.yaml").write_text(
        topology + lab + "workloads: [{kind: script, run: ./phases.py, args: [h3], hosts: [h1, h4]}]\n"
    )
    plan = make_plan(load_scenario(tmp_path / "ring.yaml"))
    rule = Rule(period=0.25, hold=1.0)
    outcome, found = regulate_by_load(plan, tmp_path / "results", _QUICK, 1, rule, lambda text: None)
    # A machine that is busy makes figures void, which is no fault of the loop: only what the loop itself can spoil.
    assert not [reason for reason in outcome.reasons if re.search("frames were lost|broke|once|differ|changed", reason)]
    assert [len(rung.off_links) for rung in found.levels] == [0, 4]
    (turn,) = found.turns
    off, on, again = turn.decisions
    assert [(len(one.on), len(one.off)) for one in turn.decisions] == [(0, 4), (4, 0), (0, 4)]
    assert off.use < 0.1 < rule.on_above < on.use
    assert again.use < 0.4
    # A rise is answered at the first look that shows it, and the links have the time to wake.
    loud = next(look for look in turn.looks if look.use > rule.on_above)
    assert loud.at == on.at
    assert on.seconds >= _QUICK.off_on
    assert again.at - (on.at + on.seconds) >= rule.hold
    everything, by_load = found.joules
    assert 0.5 * everything < by_load < 0.99 * everything
    assert 0.1 < found.off_share < 0.5
    run = load_run(outcome.folder)
    lost = [s.value for s in run.samples if s.metric == "frames_lost"]
    assert lost == [0, 0]
    assert {s.labels["links"] for s in run.samples if s.metric == "script_lab_time"} == {ALL_ON, LOOP}
    assert json.loads((outcome.folder / "loop.json").read_text())["turns"][0]["decisions"][1]["on"] == list(on.on)
    assert "Links on" in (outcome.folder / "loop.svg").read_text()


@pytest.mark.long
@pytest.mark.parametrize(
    ("options", "moment"),
    [
        (("--every", "0.5", "--changes", "50"), "frames fixed path: a path that stays"),
        (("--every", "0.5", "--changes", "50"), "paths change: change 6 of 50"),
        (("--loop",), "the busiest link is used"),
    ],
)
def test_an_interrupt_in_the_middle_of_a_change_leaves_nothing(options, moment, tmp_path, untouched):
    file = tmp_path / "ring.yaml"
    length = "seconds: 15, repeats: 1" if "--loop" in options else "seconds: 60"  # runs once before the loop does
    load = f"workloads: [{{kind: iperf3, protocol: udp, offered_load: 0.1, {length}}}]\n"
    file.write_text(_RING + "lab: {dilation: 100, datapath: userspace}\n" + load)
    command = [sys.executable, "-m", "testbed", "-v", "regulate", str(file), "--model", "SF-420", *options]
    root = Path(__file__).parents[2]
    with subprocess.Popen(
        [*command, "--results", str(tmp_path / "results")],
        cwd=root, env={**os.environ, "PYTHONPATH": str(root)}, stderr=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        assert process.stderr is not None
        for line in process.stderr:
            if moment in line:
                break
        process.send_signal(signal.SIGINT)
        process.stderr.read()
        assert process.wait(30) == 130
    assert all(folder.name.endswith(INCOMPLETE) for folder in (tmp_path / "results").iterdir())
