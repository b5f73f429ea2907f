"""Links at other speeds: rates that follow, the steps of a change, and what is refused."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from testbed.base.errors import InputError, LabError
from testbed.base.model import Topology, VlanPlan
from testbed.dataplane.predict import transport
from testbed.engines.lab.control.build import build_order
from testbed.engines.lab.hosts.shaping import require_speeds
from testbed.experiments.regulate.choose_links import at_speeds, choose_links, keep_full_speed
from testbed.experiments.regulate.rate_changes import list_rate_changes, list_unavoidable, watching_rate
from testbed.experiments.regulate.traffic import Traffic
from testbed.fabric.power import POWER_MODELS
from testbed.fabric.routing.paths import path
from testbed.fabric.transition import make_transition, transition_problems
from testbed.fabric.transition.steps import drain_seconds
from testbed.planning import Plan, make_plan
from testbed.planning.rates import channel_rates, fair_rates, wire_rates
from testbed.planning.store import plan_from_json, plan_to_json
from tests.fabrics import plan_of, scenario_of

_FULL = ("1G",) * 4


@pytest.fixture(scope="module")
def ring() -> Plan:
    return plan_of("ring", {"kind": "north_last"}, switches=4)


def links_of(topology: Topology, plan: Plan) -> set[int]:
    """Links that some path takes."""
    hosts = range(topology.host_count)
    return {channel // 2 for a in hosts for b in hosts for channel in path(topology, plan.routes, a, b)}


def test_rates_and_predictions_follow_the_speeds(ring):
    slow = at_speeds(ring, ("100M", *_FULL[1:]))
    assert wire_rates(ring) == channel_rates(ring) == 1e9
    assert channel_rates(slow).tolist() == [1e8, 1e8, *[1e9] * 6]
    pairs, wire = [(0, 1), (2, 3)], transport("udp", 1470)
    full, one = (fair_rates(plan, pairs, wire) for plan in (ring, slow))
    assert (one / full).tolist() == pytest.approx([0.1, 1.0])
    assert at_speeds(ring, _FULL).speeds is None


def test_the_rate_of_a_bundle_is_that_of_its_members():
    blocks = {"topology": {"kind": "mesh", "sizes": [2], "parallel_links": 3}, "links": {"aggregate": True}}
    bundled = make_plan(scenario_of(blocks))
    assert channel_rates(bundled).tolist() == [3e9, 3e9]
    assert channel_rates(replace(bundled, speeds=np.array([1.0, 0.1, 1.0]))).tolist() == pytest.approx([2.1e9, 2.1e9])
    assert wire_rates(replace(bundled, speeds=np.array([1.0, 0.1, 1.0]))).tolist() == [1e9] * 2 + [1e8] * 2 + [1e9] * 2


def test_speeds_are_part_of_a_stored_plan(ring):
    slow = at_speeds(ring, ("10M", *_FULL[1:]))
    stored = plan_from_json(plan_to_json(slow))
    assert stored.speeds is not None
    assert stored.speeds.tolist() == [0.01, 1.0, 1.0, 1.0]
    assert plan_from_json(plan_to_json(ring)).speeds is None
    assert build_order(slow).speeds == {0: 0.01, 1: 1.0, 2: 1.0, 3: 1.0}


def test_frames_leave_slow_links_later(ring):
    """The longest path by its links' own rates, not by their number."""
    plain = drain_seconds(ring.topology, ring.routes, 1e9, 100)
    assert drain_seconds(ring.topology, ring.routes, 1e9, 100, np.ones(4)) == pytest.approx(plain)
    slow = drain_seconds(ring.topology, ring.routes, 1e9, 100, np.array([0.1, 1.0, 1.0, 1.0]))
    most = max(
        sum(10 if channel // 2 == 0 else 1 for channel in path(ring.topology, ring.routes, a, b)) + 1
        for a in range(4)
        for b in range(4)
    )
    longest = max(len(path(ring.topology, ring.routes, a, b)) for a in range(4) for b in range(4)) + 1
    assert slow / plain == pytest.approx(most / longest)


def test_a_link_is_off_the_paths_while_its_speed_changes(ring):
    goal = at_speeds(ring, ("100M", *_FULL[1:]))
    (step,), then = list_rate_changes(ring, goal, ring)
    assert (step.links, step.speeds, step.before) == ((0,), {0: 0.1}, {0: 1.0})
    assert 0 not in links_of(ring.topology, step.plan)
    assert step.plan.speeds is not None  # as they are before
    assert step.plan.speeds.tolist() == [1.0] * 4
    assert then.speeds is not None
    assert then.speeds.tolist() == [0.1, 1.0, 1.0, 1.0]
    assert links_of(ring.topology, then) == links_of(ring.topology, ring)
    # Table 6: off to 100 Mbit/s and back take their time.
    assert step.seconds(POWER_MODELS["PC5324"]) == 4.1
    (back,), last = list_rate_changes(then, ring, ring)
    assert last is ring
    assert back.seconds(POWER_MODELS["PC5324"]) == 2.4


def test_every_step_of_a_change_is_safe(ring):
    """Also the last one, back to identifiers that were there at first."""
    goal = at_speeds(ring, ("100M", "1G", "10M", "1G"))
    there, then = list_rate_changes(ring, goal, ring)
    back, last = list_rate_changes(then, ring, ring)
    assert [step.links for step in there] == [(0,), (2,)]  # without both the ring falls apart
    plans = [(step.plan, step.links) for step in there]
    plans += [(then, ()), *((step.plan, step.links) for step in back), (last, ())]
    now, off = ring, frozenset[int]()
    for plan, links in plans:
        assert isinstance(now.vlans, VlanPlan)
        assert isinstance(plan.vlans, VlanPlan)
        on, newly = tuple(sorted(off - set(links))), tuple(sorted(set(links) - off))
        way = make_transition(ring.topology, now.vlans, plan.vlans, on=on, off=newly)
        assert not transition_problems(ring.topology, way, now.routes, plan.routes, off)
        now, off = plan, frozenset(links)
    assert now is ring


def test_links_change_together_where_the_fabric_can_spare_them():
    plan = plan_of("mesh", sizes=[2, 2], parallel_links=2)
    speeds = ["1G"] * 8
    speeds[0] = speeds[2] = speeds[4] = "100M"
    steps, _ = list_rate_changes(plan, at_speeds(plan, speeds), plan)
    assert [step.links for step in steps] == [(0, 2, 4)]


def test_a_link_that_nothing_goes_round_keeps_its_speed():
    plan = plan_of("mesh", {"kind": "dor"}, sizes=[3])
    assert list_unavoidable(plan, [0, 1]) == [0, 1]
    with pytest.raises(InputError, match="no paths go round s1→s2"):
        list_rate_changes(plan, at_speeds(plan, ("100M", "1G")), plan)
    matrix = np.zeros((3, 3))
    matrix[0, 1], matrix[1, 2] = 100.0, 1.0
    choice = choose_links(plan, Traffic("mine", matrix, "a test"), slower=True)
    assert choice.selection.speeds == ("1G", "10M")
    assert (choice.slowed_links, choice.plan.speeds.tolist()) == ((1,), [1.0, 0.01])
    kept = keep_full_speed(choice, list_unavoidable(plan, choice.slowed_links))
    assert (kept.slowed_links, kept.selection.speeds, kept.plan.speeds) == ((), ("1G", "1G"), None)


def test_datagrams_that_watch_leave_room_on_slow_links(ring):
    pairs = [(0, 1), (1, 2), (2, 3), (3, 0)]
    assert watching_rate([ring], pairs, 64, 1e4) == 1e4
    slow = at_speeds(ring, ("10M", *_FULL[1:]))
    found = watching_rate([ring, slow], pairs, 64, 1e6)
    assert 0.15 * 1e7 < found * 8 * (64 + 70) < 0.25 * 1e7


@pytest.mark.parametrize("speeds", [{9: 0.1}, {0: 0.0}, {0: 1.5}, {-1: 1.0}, {0: float("nan")}])
def test_a_link_or_speed_that_there_is_not_is_refused(speeds):
    with pytest.raises(LabError, match="links have the numbers 0 to 3, and a speed is a share of their rate"):
        require_speeds(speeds, 4)
    require_speeds({0: 0.01, 3: 1.0}, 4)
