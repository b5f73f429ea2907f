"""What failures cost, put together from datagrams, the lab's times and the controller's."""

from __future__ import annotations

import json
import socket
import subprocess
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from testbed.base.messages import ControllerStatus, Disturbed, FailureEvent, Snapshot
from testbed.base.model import host_ip
from testbed.experiments.report.charts import event_words, failure_charts
from testbed.experiments.run.checks.fidelity import Verdict
from testbed.experiments.run.loads.context import LoadResult
from testbed.experiments.run.loads.failure_cost import assess
from testbed.experiments.run.loads.failure_watch import disturbance, watched_pairs
from testbed.planning import Plan, make_plan
from testbed.planning.failover.failure_effects import Outlook
from testbed.planning.failures import failure_outlooks
from testbed.scenario.workloads.pairs import OutputError
from testbed.scenario.workloads.probe import PROGRAM, Passage, commands, parse
from tests.fabrics import scenario_of


def planned(*events: str) -> tuple[Plan, list[Outlook]]:
    torus = "topology: {kind: torus, sizes: [4, 4]}\nlab: {controller: segment_manager}\n"
    plan = make_plan(scenario_of(f"{torus}workloads:\n- kind: probe\n  failures: {list(events)}"))
    return plan, failure_outlooks(plan)[0]


def passage(lost: range, count: int = 1000, delay: float = 0.0005) -> Passage:
    sent = 100 + np.arange(count) / 1000
    received = sent + delay
    received[lost.start : lost.stop] = np.nan
    return Passage(sent, received)


def result(*began: float, **more: Any) -> LoadResult:
    none = Snapshot(0.0, 0.0, (), (), 0, 0, 0, None, {})
    return LoadResult({}, none, none, 1.0, start=100.0, disturbed=[Disturbed(at, at, **more) for at in began])


def heard(at: float) -> FailureEvent:
    return FailureEvent(at, at + 0.001, recovered=at + 0.1, settled=at + 0.2, hosts_moved=2)


def status_with(*events: FailureEvent) -> ControllerStatus:
    return ControllerStatus({}, events=events)


def receives(port: int) -> bool:
    """Whether a program has a UDP port."""
    lines = Path("/proc/net/udp").read_text().splitlines()[1:]
    return any(line.split()[1].endswith(f":{port:04X}") for line in lines)


@pytest.mark.slow
def test_programs_tell_what_was_sent_and_what_arrived(monkeypatch):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        one.bind(("", 0))
        port = one.getsockname()[1]
    monkeypatch.setattr("testbed.scenario.workloads.probe.FIRST_PORT", port)
    (receiver,), (sender,) = commands([("h1", "h2", "127.0.0.1")], 200, 1.0)
    assert (receiver.host, sender.host) == ("h2", "h1")
    # Longer than it is told to, for a sender that a busy machine starts late.
    listening = subprocess.Popen([*receiver.argv[:-1], "6"], stdout=subprocess.PIPE, text=True)
    until = time.monotonic() + 60
    while not receives(port) and listening.poll() is None and time.monotonic() < until:
        time.sleep(0.01)
    sending = subprocess.run(sender.argv, capture_output=True, text=True, check=True)
    printed, _ = listening.communicate(timeout=60)
    found = parse(sending.stdout, printed)
    assert len(found.sent) == 100
    assert found.lost_count == 0
    assert (found.received >= found.sent).all()
    assert PROGRAM.exists()


def test_other_output_of_a_probe_is_told():
    with pytest.raises(OutputError, match="did not print its datagrams"):
        parse("{}", "")


def test_datagrams_are_lost_until_one_arrives_again():
    whole = passage(range(300, 320))
    assert whole.lost_count == 20
    assert whole.back_after(100.2995, 100.2995) == pytest.approx(0.021)
    assert whole.sent_between(100.0, 100.3).back_after(100.0, 100.0) is None
    assert passage(range(300, 1000)).back_after(100.3, 100.3) is None


def test_events_are_matched_with_what_the_controller_heard():
    plan, outlooks = planned("at 0.3s: down s6-s7", "at 0.6s: up s6-s7")
    pairs = watched_pairs(plan.topology, outlooks, 1)
    assert outlooks[0].diversion.hit[pairs[0]]
    status = status_with(heard(100.305), replace(heard(100.604), hosts_moved=0))
    found = assess(plan.topology, outlooks, pairs, [passage(range(300, 320))], result(100.3, 100.6), status)
    died, rose = found.events
    assert not found.findings
    assert died["at"] == pytest.approx(0.3)
    assert (died["frames_lost"], died["hosts_moved"]) == (20, 2)
    assert died["detection"] == pytest.approx(0.005)
    assert died["takeover"] == pytest.approx(0.0205)
    assert died["recovery"] == pytest.approx(0.105)
    assert (rose["frames_lost"], rose["takeover"]) == (0, None)
    assert "backup path after 20.5 ms, new tables after 105 ms, 20 datagrams lost" in event_words(died)


def crowded(passage: Passage, *lost: int) -> Passage:
    """A passage beside full queues, where single datagrams are lost as well."""
    received = passage.received.copy()
    received[list(lost)] = np.nan
    return Passage(passage.sent, received)


def test_full_queues_are_no_outage():
    """Datagrams lost at queues end no take-over, begin none, and silence nobody."""
    plan, outlooks = planned("at 0.3s: down s6-s7", "at 0.6s: up s6-s7")
    pairs = watched_pairs(plan.topology, outlooks, 1)
    status = status_with(heard(100.305), replace(heard(100.604), hosts_moved=0))
    beside = crowded(passage(range(300, 320)), 295, 322, 400, 401, 599, 650, 999)
    found = assess(plan.topology, outlooks, pairs, [beside], result(100.3, 100.6), status, 0.1)
    died, rose = found.events
    assert not found.findings
    assert died["takeover"] == pytest.approx(0.0205)
    assert (died["frames_lost"], rose["frames_lost"], rose["takeover"]) == (24, 3, None)


def test_queues_that_lose_more_than_the_death_change_nothing():
    """What was sent before the link was dead arrives, and later a queue loses more than the death did."""
    whole = crowded(passage(range(302, 320)), *range(700, 760))
    assert whole.back_after(100.2995, 100.3015) == pytest.approx(0.021)


def test_a_pair_that_is_not_hit_takes_no_backup_path():
    plan, outlooks = planned("at 0.3s: down s6-s7")
    hit = outlooks[0].diversion.hit
    spared = next((0, end) for end in range(1, 16) if not hit[0, end])
    passages = [crowded(passage(range(0)), 600)]
    found = assess(plan.topology, outlooks, [spared], passages, result(100.3), status_with(heard(100.305)))
    assert (found.events[0]["takeover"], found.events[0]["frames_lost"]) == (None, 1)
    assert not found.findings


def test_datagrams_under_way_are_lost_by_the_death():
    plan, outlooks = planned("at 0.1s: down s1-s2", "at 0.3s: up s1-s2", "at 0.6s: down s6-s7")
    (pair, *_) = zip(*outlooks[2].diversion.hit.nonzero(), strict=True)
    status = status_with(heard(100.101), heard(100.301), heard(100.605))
    times = result(100.1, 100.3, 100.6)
    found = assess(plan.topology, outlooks, [pair], [passage(range(570, 620))], times, status)
    _, rose, died = found.events
    assert (rose["frames_lost"], died["frames_lost"]) == (0, 50)
    assert died["takeover"] == pytest.approx(0.0205)
    assert not found.findings


def test_a_pair_that_falls_silent_later_fails_the_load_as_well():
    plan, outlooks = planned("at 0.3s: down s6-s7")
    pairs = watched_pairs(plan.topology, outlooks, 1)
    silent = crowded(passage(range(300, 320)), *range(800, 1000))
    found = assess(plan.topology, outlooks, pairs, [silent], result(100.3), status_with(heard(100.305)))
    assert [verdict for verdict, _ in found.findings] == [Verdict.FAIL]


def test_what_should_not_have_been_fails_the_load():
    plan, outlooks = planned("at 0.3s: down s6-s7", "at 0.6s: up s6-s7")
    pairs = watched_pairs(plan.topology, outlooks, 1)
    silent = assess(
        plan.topology, outlooks, pairs, [passage(range(300, 1000))], result(100.3, 100.6), status_with(heard(100.31))
    )
    told = [sentence for verdict, sentence in silent.findings if verdict is Verdict.FAIL]
    name = "→".join(plan.topology.host_name(host) for host in pairs[0])
    assert f'nothing of {name} arrived any more after "at 0.3 s: down s6-s7"' in told
    assert 'the controller did not notice "at 0.6 s: up s6-s7"' in told
    broken = assess(
        plan.topology, outlooks, pairs, [passage(range(0))], result(100.3, error="no such device"), status_with()
    )
    assert [sentence for _, sentence in broken.findings][:2] == [
        '"at 0.3 s: down s6-s7" could not be carried out: no such device',
        'the load ended before "at 0.6 s: up s6-s7"',
    ]


def test_a_pair_that_is_cut_off_may_be_silent():
    plan, outlooks = planned("at 0.3s: down h3")
    pairs = watched_pairs(plan.topology, outlooks, 2)
    assert all(2 in pair for pair in pairs)
    found = assess(
        plan.topology, outlooks, pairs, [passage(range(300, 1000))] * 2, result(100.3), status_with(heard(100.31))
    )
    assert not found.findings
    assert found.events[0]["cut_off"] == 30


def test_pairs_of_all_events_are_watched():
    plan, outlooks = planned("at 1s: down s6-s7", "at 2s: down s11-s15", "at 3s: down h9")
    pairs = watched_pairs(plan.topology, outlooks, 3)
    assert outlooks[0].diversion.hit[pairs[0]]
    assert outlooks[1].diversion.hit[pairs[1]]
    assert outlooks[2].cut[pairs[2]]
    assert len({source for source, _ in watched_pairs(plan.topology, outlooks[:1], 2)}) == 2
    assert host_ip(pairs[0][0]).startswith("10.")


def test_one_end_goes_down_and_both_come_up():
    plan, outlooks = planned("at 1s: down s6-s7", "at 2s: up s6-s7")
    down, up = (disturbance(plan.topology, outlook.change) for outlook in outlooks)
    assert (down.up, up.up, down.at, up.at) == (False, True, 1.0, 2.0)
    assert len(down.channels) == 1
    assert len(up.channels) == 2
    assert set(down.channels) < set(up.channels)


def test_a_figure_shows_each_pair_and_moment():
    event = {
        "event": "at 1 s: down s1-s2", "at": 1.0, "detection": 0.004, "takeover": 0.012, "recovery": 0.2,
        "frames_lost": 12, "cut_off": 0, "without_backup": 3,
    }  # fmt: skip
    pair = {"src": "h1", "dst": "h2", "sent": [20] * 100, "arrived": [20] * 50 + [8] + [20] * 49}
    repeat = json.loads(json.dumps({"seconds": 2.0, "rate": 1000, "events": [event], "pairs": [pair, pair]}))
    (drawn,) = failure_charts([repeat], "failures-0")
    assert drawn.svg.count("h1→h2") >= 2
    assert "3 pairs without backup" in drawn.caption
    assert failure_charts([], "x") == []


def test_the_death_of_a_manager_is_no_failure_of_the_fabric():
    torus = "topology: {kind: torus, sizes: [4, 4]}\nlab: {controller: segment_manager, managers: 2}\n"
    events = ["at 1s: kill manager", "at 2s: start manager"]
    plan = make_plan(scenario_of(f"{torus}workloads:\n- kind: probe\n  failures: {events}"))
    outlooks = failure_outlooks(plan)[0]
    ran = replace(result(), disturbed=[Disturbed(100.25, 100.29), Disturbed(100.5, 100.7)])
    found = assess(plan.topology, outlooks, [(0, 15)], [passage(range(0))], ran, status_with())
    assert found.findings == []
    assert [event["manager_takeover"] for event in found.events] == [pytest.approx(0.04), None]
    assert event_words(found.events[0]) == "at 1 s: kill manager: next manager after 40 ms, 0 datagrams lost"
    error = "none of 1 managers has become master in 10 s"
    missed = replace(ran, disturbed=[Disturbed(100.25, 110.3, error), *ran.disturbed[1:]])
    found = assess(plan.topology, outlooks, [(0, 15)], [passage(range(0))], missed, status_with())
    assert (Verdict.FAIL, f'"at 1 s: kill manager" could not be carried out: {error}') in found.findings
    assert found.events[0]["manager_takeover"] is None
