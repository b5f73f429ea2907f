"""What dies among modelled switches: hosts take backup VLANs at once, then new tables, as on Open vSwitch."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from testbed.base.errors import LabError, Problem
from testbed.base.messages import ControllerStatus
from testbed.engines.lab.control.client import LabClient
from testbed.engines.realtime.change_plan import tables_now
from testbed.engines.realtime.check_paths import walk
from testbed.engines.realtime.client import ModelClient
from testbed.experiments.run import open_vswitch, realtime
from testbed.experiments.run.checks.fidelity import Verdict
from testbed.experiments.run.engines import run_scenario
from testbed.experiments.run.loads.failure_watch import disturbance
from testbed.fabric.openflow.oracle import Oracle
from testbed.fabric.openflow.rule_text import parse_rule
from testbed.planning import Plan
from testbed.planning.failover.events import ElementNames
from testbed.planning.store import plan_to_json
from testbed.results import load_run
from testbed.results.samples import load_failures
from testbed.scenario.workloads.timeline import parse_event
from tests.moments import seconds

from .conftest import plan_of

pytestmark = pytest.mark.lab

_RING = "topology: {kind: ring, switches: 4, hosts_per_switch: 2}"
_MESH = "topology: {kind: mesh, sizes: [3, 2]}"
_MANAGED = "lab: {dilation: 20, controller: segment_manager}"
# What happens to a mesh of six switches, and what is dead then.
_EVENTS = (
    ("down s1-s2", ("link s1–s2",)),
    ("down h3", ("link s1–s2", "port of h3")),
    ("up s1-s2, h3", ()),
    ("kill s5", ("switch s5",)),
    ("start s5", ()),
)
Paths = dict[tuple[int, int], tuple[int, ...]]


def _plan(text: str, engine: str = "realtime", load: str = "") -> Plan:
    return plan_of(f"{text}\nengine: {engine}\n{_MANAGED}\n{load}")


@contextmanager
def _built(plan: Plan) -> Iterator[LabClient]:
    engine = open_vswitch.OpenVSwitchEngine() if plan.scenario.engine == "ovs" else realtime.RealtimeEngine()
    with engine.build(plan, lambda text: None) as running:
        yield running


def _until(running: LabClient, holds: Callable[[ControllerStatus], bool]) -> ControllerStatus:
    end = time.monotonic() + 30
    while not holds(status := running.controller()):
        assert time.monotonic() < end, (status.phase, status.down, status.problem)
        time.sleep(0.05)
    return status


def _happens(plan: Plan, running: LabClient, what: str, down: tuple[str, ...]) -> ControllerStatus:
    """Let an event happen, which leaves this dead, and return the status when it is overcome."""
    problems: list[Problem] = []
    change = ElementNames(plan.topology).change(parse_event(f"at 0s: {what}"), "", problems)
    assert not problems
    running.disturb(disturbance(plan.topology, change))
    dead = sum(name.startswith("switch") for name in down)
    phase = "steady, damaged" if down else "steady"
    return _until(
        running,
        lambda told: (told.down, told.phase, told.in_step) == (down, phase, plan.topology.switch_count - dead),
    )


def _paths(plan: Plan, running: LabClient) -> Paths:
    """The path of every pair as switches forward now; without those that nothing connects."""
    topology, found = plan.topology, {}
    hosts = range(topology.host_count)
    if isinstance(running, ModelClient):
        tables = tables_now(running._file.parent, running.model)
        for pair in ((source, end) for source in hosts for end in hosts if source != end):
            channels, arrives = walk(tables, topology, *pair)
            if arrives == pair[1]:
                found[pair] = tuple(channels)
        return found
    dumped = running.flows()
    rules = {parse_rule(int(name[1:]) - 1, line) for name in dumped for line in dumped[name]}
    oracle = Oracle(topology, rules)
    for pair in ((source, end) for source in hosts for end in hosts if source != end):
        way = oracle.unicast(*pair)
        if way.received == {pair[1]: 1}:
            found[pair] = way.channels
    return found


@pytest.mark.long
def test_the_same_failures_leave_the_same_paths_as_on_ovs(untouched: str) -> None:
    seen = []
    for engine in ("ovs", "realtime"):
        plan = _plan(_MESH, engine, "workloads: [{kind: probe, failures: [at 1s: kill s5]}]")
        with _built(plan) as running:
            assert running.verify(plan) == []
            paths = [_paths(plan, running)]
            for what, down in _EVENTS:
                _happens(plan, running, what, down)
                paths.append(_paths(plan, running))
            assert running.deviations(plan) == []
        seen.append(paths)
    assert seen[1] == seen[0]
    whole, without_link, without_host, mended, without_switch, again = seen[1]
    assert len(whole) == 30
    assert len(without_link) == 30
    assert without_link != whole
    assert without_host == without_link
    assert len(without_switch) == 20
    assert whole == mended == again


def test_real_frames_go_round_what_is_dead(untouched: str) -> None:
    plan = _plan(_RING)
    with _built(plan) as running:
        assert running.facts.controller == "segment_manager"
        assert running.controller().phase == "steady"
        # One end of a link is enough.
        died = _happens(plan, running, "down s1-s2", ("link s1–s2",)).events[-1]
        assert died.hosts_moved > 0
        assert running.reach() == []
        assert [one.void for one in running.deviations(plan)] == [True, True, True]
        # Tables stay where they are while their manager is away.
        running.stop_controller()
        assert running.reach() == []
        running.start_controller()
        assert running.wait_for_controller().down == ("link s1–s2",)
        _happens(plan, running, "up s1-s2", ())
        with pytest.raises(LabError, match="the segment manager makes its own tables from what is alive"):
            running.move_to(plan_to_json(plan), ())
        assert running.verify(plan) == []
        assert running.deviations(plan) == []


@pytest.mark.long
@pytest.mark.quiet(seat=1)
@pytest.mark.parametrize("flow_control", ["none", "pause"])
def test_a_run_measures_what_failures_cost(flow_control: str, tmp_path: Path, untouched: str) -> None:
    load = (
        "workloads: [{kind: probe, seconds: 5, pairs: 2, rate: 5000, "
        'failures: ["at 2s: down s1-s2", "at 3s: up s1-s2", "at 4s: kill s3"]}]'
    )
    plan = _plan(f"{_RING}\nsimulator: {{flow_control: {flow_control}}}", "realtime", load)
    for attempt in range(3):
        outcome = run_scenario(plan, tmp_path / str(attempt), lambda text: None)
        assert outcome.verdict is not Verdict.FAIL, outcome.reasons
        died, rose, killed = load_failures(outcome.folder, "1")[0]["events"]
        noticed, diverted, recovered, settled = seconds(died, "detection", "diverted", "recovery", "settled")
        assert 0 < noticed <= diverted < 1
        assert noticed < recovered <= settled < 2
        assert died["hosts_moved"] > 0
        assert rose["frames_lost"] == 0
        assert rose["recovery"] is not None
        assert killed["cut_off"] > 0
        if died["frames_lost"]:
            break
        # The link is dead for a millisecond or a few. Where others keep the senders from a processor all that time,
        # nothing is sent that could be lost, or tell when a backup path carries.
        assert died["takeover"] is None
    (carried,) = seconds(died, "takeover")
    assert diverted <= carried < 1
    # Those that were sent between the death and the PVIDs' change, or were on their way.
    assert 0 < died["frames_lost"] < 1000
    metrics = {sample.metric for sample in load_run(outcome.folder).samples}
    assert metrics >= {"detection", "takeover", "recovery", "frames_lost"}
