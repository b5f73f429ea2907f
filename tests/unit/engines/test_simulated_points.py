"""Points of simulations: their rows, their samples, and workers that make them."""

from __future__ import annotations

import pytest

from testbed.engines.simulate import Settings, run_points
from testbed.engines.simulate.detail_levels import Runs, runs_of
from testbed.engines.simulate.flit_point import Links, Point, rows_of
from testbed.engines.simulate.packet_settings import PacketSettings
from testbed.engines.simulate.result_folder import samples_of
from testbed.planning import Plan, make_plan
from testbed.scenario.pickle_plugins import pickle_value
from tests.fabrics import scenario_of

PLAN = make_plan(
    scenario_of("topology: {kind: mesh, sizes: [2]}\nworkloads: [{kind: iperf3, protocol: tcp, pattern: neighbour}]\n")
)


def point(load: float, *, seed: int = 1, packets: int = 90, drops: int | None = None, frame_time: int = 3) -> Point:
    links = None
    if drops is not None:
        links = Links(
            made=100, drops=drops, pauses=4, resumes=4, channels_paused=0.25, hosts_paused=0.5, most_frames=7,
            frame_time=frame_time,
        )  # fmt: skip
    return Point(
        load=load, seed=seed, clocks=1000, accepted=load, packets=packets, latency=None, fullest="s1→s2",
        fullest_use=0.1, cycle=(), seconds=1.0, channel_flits=(100, 50), links=links,
    )  # fmt: skip


def test_a_channel_is_used_a_cycle_a_flit_and_a_frames_time():
    assert point(0.5).channel_use == (0.1, 0.05)
    assert point(0.5, drops=0).channel_use == (0.3, 0.15)


def test_what_was_lost_is_a_share_of_all_that_ended():
    (row,) = rows_of([point(0.5, drops=10), point(0.5, seed=2, packets=50, drops=150)])
    assert row.loss is not None
    assert (row.loss.mean, row.loss.min, row.loss.max) == pytest.approx((0.425, 0.1, 0.75))
    assert row.hosts_paused is not None
    assert row.hosts_paused.mean == 0.5
    (nothing,) = rows_of([point(0.5, packets=0, drops=0)])
    assert nothing.loss is not None
    assert nothing.loss.mean == 0


def test_a_load_of_the_scenario_is_hosts_that_send_all_they_can():
    def loads(*points: Point) -> set[str]:
        return {sample.labels["load"] for sample in samples_of(PLAN, "neighbour", points) if sample.metric == "goodput"}

    assert loads(point(1.0), point(0.9)) == {"1"}
    assert loads(point(0.9), point(1.1)) == set()


@pytest.mark.parametrize("settings", [
    Settings(clocks=2000, warm_up=500, packet=4, buffer=8), PacketSettings(duration=0.5, warm_up=0.1),
])  # fmt: skip
def test_a_worker_prepares_a_plan_once(settings, monkeypatch):
    made: list[Plan] = []

    def prepared(plan: Plan, settings: Settings | PacketSettings) -> Runs:
        made.append(plan)
        return runs_of(plan, settings)

    monkeypatch.setattr(run_points, "_LAST", [])
    monkeypatch.setattr(run_points, "runs_of", prepared)
    shared = pickle_value((PLAN, settings), PLAN.scenario)
    found = [run_points.point_of(shared, load, 1) for load in (0.2, 0.4)]
    assert [plan.digest for plan in made] == [PLAN.digest]
    assert [one.load for one in found if one is not None] == [0.2, 0.4]
    other = Settings(clocks=1000, warm_up=100, packet=4, buffer=8)
    run_points.point_of(pickle_value((PLAN, other), PLAN.scenario), 0.2, 1)
    assert len(made) == 2
