"""Links of bundles go off and on under traffic: nothing is lost, and what is off carries nothing."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from testbed.base.errors import LabError
from testbed.base.messages import Disturbance, Flow, LinkChange, LinkReadings
from testbed.engines.session import Session
from testbed.experiments.regulate.choose_links import plan_without
from testbed.experiments.regulate.plan_changes import PlanMover, pair_opposite_hosts
from testbed.experiments.regulate.run import ALL_ON, FEWER, regulate
from testbed.experiments.run.engines import find_lab_engine
from testbed.experiments.run.loads.context import Context
from testbed.fabric.power import POWER_MODELS
from testbed.planning import Plan, make_plan
from testbed.results import load_run
from testbed.scenario import parse_scenario

pytestmark = pytest.mark.lab

_RING = "topology: {kind: ring, switches: 4, parallel_links: 3}\nrouting: {kind: north_last}\n"
_LAB = "links: {aggregate: true}\nlab: {dilation: 800, datapath: userspace, fast_path: off}\n"
ENGINES = ["ovs", "realtime"]


def _plan(engine: str, more: str = "") -> Plan:
    lab = _LAB if engine == "ovs" else _LAB.replace(", datapath: userspace, fast_path: off", "")
    return make_plan(parse_scenario(f"{_RING}{lab}engine: {engine}\n{more}", "test"))


def _sent(before: LinkReadings, after: LinkReadings, plan: Plan) -> list[int]:
    """Frames that each channel carried in between."""
    channels = range(len(plan.wiring.channel_source))
    return [after.frames[channel] - before.frames[channel] for channel in channels]


def _ways(lab: Session, plan: Plan) -> set[int]:
    """Channels by one of which frames of the pairs that talk would go, as the switches tell."""
    ends = [*pair_opposite_hosts(4), *((to, source) for source, to in pair_opposite_hosts(4))]
    return {channel for pair in ends for hop in lab.trace_path(plan, *pair).hops for channel in hop}


def _watched(lab: Session, plan: Plan) -> list[int]:
    before = lab.read_links()
    time.sleep(1.0)
    return _sent(before, lab.read_links(), plan)


@pytest.mark.long
@pytest.mark.quiet(seat=0)  # frames in a while are counted
@pytest.mark.parametrize("engine", ENGINES)
def test_links_of_a_bundle_go_off_and_on_under_traffic(engine: str, kept: dict[str, str]) -> None:
    plan = _plan(engine)
    flows = [Flow(0, 1, ("tcp", "udp")[port % 2], 20000 + 7 * port, 5201 + port) for port in range(40)]
    with find_lab_engine(plan.scenario).build(plan, lambda text: None) as lab:
        whole = lab.taken_channels(plan, flows)
        mover = PlanMover(lab, wake_up=0.3)
        # Long cables, so that frames are under way on each link whenever it goes off: 32 ms in the laboratory. Not
        # every kernel has them for interfaces.
        every = range(plan.wiring.link_count if engine == "realtime" else 0)
        lab.disturb(Disturbance(up=True, links=tuple(LinkChange(link, delay=4e-5) for link in every)))

        def changes(other: Session) -> list[Any]:
            carried = _watched(other, plan)
            # Of each bundle the links that carry most, in both directions, so that there is something to lose.
            busy = np.array(carried).reshape(-1, 3, 2).sum(axis=2)
            off = [3 * bundle + int(links.argmax()) for bundle, links in enumerate(busy)]
            gone = mover.move(other, "off", plan, off)
            silent, ways, states = _watched(other, plan), _ways(other, plan), other.link_states()
            taken = other.taken_channels(plan, flows)
            back = mover.move(other, "on", plan, ())
            return [carried, off, gone, silent, ways, states, taken, back, _watched(other, plan)]

        watching = Context(plan, lab, {"load": "1"}, kept.__setitem__, lambda text: None)
        made, losses, _ = mover.while_probing(watching, pair_opposite_hosts(4), 400, changes)
        carried, off, gone, silent, ways, states, taken, back, again = made
        lost = {where: count for where, count in lab.frames().lost.items() if count}
        assert [(loss.lost_count, loss.duplicates, loss.broken) for loss in losses] == [(0, 0, "")] * 4, lost
        assert min(loss.sent for loss in losses) > 1500
        assert [step.action for step in gone.steps] == ["members out", "drain", "links off"]
        assert [step.action for step in back.steps] == ["links on", "members in"]
        assert back.steps[0].seconds >= 0.3
        assert (gone.problems, back.problems) == ((), ())
        channels = {2 * link + way for link in off for way in (0, 1)}
        assert sorted(link for link, state in states.items() if not state.up) == off
        assert sum(carried[channel] for channel in channels) > 300
        assert [silent[channel] for channel in sorted(channels)] == [0] * 8
        # What was carried went by the links that the switches tell of.
        assert {channel for channel, frames in enumerate(silent) if frames > 20} <= ways
        assert not ways & channels
        assert [frames > 20 for frames in again] == [frames > 20 for frames in carried]
        # Flows of a link that is off take those that they would take if it had died, and all others keep theirs.
        assert all(there == was for (there, _), (was, _) in zip(taken, whole, strict=True) if was[0] not in channels)
        lab.disturb(Disturbance(up=False, channels=tuple(channels)))
        assert lab.taken_channels(plan, flows) == taken
        lab.disturb(Disturbance(up=True, channels=tuple(channels)))
        assert lab.taken_channels(plan, flows) == whole
        lab.disturb(Disturbance(up=True, links=tuple(LinkChange(link, delay=0.0) for link in every)))
        assert lab.deviations(plan) == []


@pytest.mark.long
@pytest.mark.parametrize("engine", ENGINES)
def test_a_whole_bundle_goes_off_beside_links_of_others(engine: str, kept: dict[str, str]) -> None:
    """Paths leave one bundle, whose links are shut down with a link of another; then one of both comes back alone."""
    plan = _plan(engine)
    dark = np.zeros(plan.topology.link_count, dtype=bool)
    dark[0] = True
    fewer = plan_without(plan, dark)
    with find_lab_engine(plan.scenario).build(plan, lambda text: None) as lab:
        mover = PlanMover(lab, wake_up=0.3)

        def changes(other: Session) -> list[Any]:
            found = []
            turns: Sequence[tuple[Plan, tuple[int, ...]]] = (
                (fewer, (0, 1, 2, 4)), (plan, (0, 2, 4)), (plan, (1, 8)), (fewer, (0, 1, 2)), (plan, ()),
            )  # fmt: skip
            for new, off in turns:
                change = mover.move(other, "next", new, off)
                found.append((off, change, _watched(other, new), _ways(other, new)))
            return found

        watching = Context(plan, lab, {"load": "1"}, kept.__setitem__, lambda text: None)
        made, losses, _ = mover.while_probing(watching, pair_opposite_hosts(4), 400, changes)
        lost = {where: count for where, count in lab.frames().lost.items() if count}
        assert [(loss.lost_count, loss.duplicates, loss.broken) for loss in losses] == [(0, 0, "")] * 4, lost
        for off, change, frames, ways in made:
            channels = {2 * link + way for link in off for way in (0, 1)}
            assert change.problems == ()
            assert [frames[channel] for channel in channels] == [0] * len(channels)
            assert {channel for channel, count in enumerate(frames) if count > 20} <= ways
        assert [step.action for step in made[0][1].steps] == [
            "add", "move", "drain", "remove", "members out", "drain", "links off",
        ]  # fmt: skip
        assert [step.action for step in made[1][1].steps] == [
            "links on", "members in", "add", "move", "drain", "remove",
        ]  # fmt: skip
        assert lab.reach() == []
        with pytest.raises(LabError, match=r"the way to this plan is not safe: .* which is off"):
            mover.move(lab, "off", plan, (0, 1, 2))
        assert lab.link_states() == {}


@pytest.mark.long
@pytest.mark.quiet(seat=0)
@pytest.mark.parametrize("engine", ENGINES)
def test_links_of_bundles_are_chosen_by_what_the_loads_send(engine, tmp_path, untouched):
    """Two hosts talk by one bundle: of all others one link stays on."""
    load = (
        "workloads: [{kind: iperf3, protocol: udp, offered_load: 0.3, pattern: bit_reversal, seconds: 3, repeats: 1}]"
    )
    found = regulate(_plan(engine, load), tmp_path, POWER_MODELS["SF-420"], 1, lambda text: None)
    assert found.choice.off_links
    assert found.choice.plan.powered_off is not None
    assert [change.name for change in found.changes] == ["links off", "links on"]
    assert not any(change.problems for change in found.changes)
    run = load_run(found.outcome.folder)
    assert sum(s.value for s in run.samples if s.metric == "frames_lost") == 0
    assert {s.labels["links"] for s in run.samples if s.metric == "goodput"} == {ALL_ON, FEWER}
    assert not [reason for reason in found.outcome.reasons if "by another" in reason or "differ" in reason]
