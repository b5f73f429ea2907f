"""How long an iperf3 load is that does not say it, and when counters were read."""

import time
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from testbed.engines.lab.counters.rtnetlink import LINK_FIGURES, PortCounters
from testbed.engines.lab.hosts import lab_network
from testbed.experiments.run.checks.wire_bounds import BEYOND
from testbed.experiments.run.loads import run_mpi
from testbed.experiments.run.run_duration import expected_seconds
from testbed.planning import make_plan
from testbed.planning.rates import link_slowness, time_limit_factor, timed
from testbed.scenario import parse_scenario
from testbed.scenario.workloads import WORKLOADS
from testbed.scenario.workloads.spec import Iperf3, times

TCP, UDP = Iperf3("tcp"), Iperf3("udp")


def plan_of(dilation: float | str = 150, links: str = "rate: 1 Gbit/s", load: str = "{kind: ping}", engine="ovs"):
    controller = ", controller: segment_manager" if "kind: probe" in load else ""
    given = f"engine: {engine}\nlinks: {{{links}}}\nlab: {{dilation: {dilation}{controller}}}\n"
    text = given + "topology: {kind: torus, sizes: [4, 4]}\n"
    return make_plan(parse_scenario(f"{text}workloads: [{load}]", "test"))


@pytest.mark.parametrize(
    ("dilation", "tcp", "udp"),
    [(1, (1, 4), (1, 4)), (50, (2, 4), (1, 4)), (70, (3, 5), (1, 4)), (100, (4, 7), (2, 4)), (150, (5, 10), (2, 5)),
     (1000, (5, 10), (2, 5))],
)  # fmt: skip
def test_seconds_follow_the_dilation_and_never_below_the_least(dilation, tcp, udp):
    plan = plan_of(dilation)
    assert tuple(times(timed(plan, TCP))) == tcp
    assert tuple(times(timed(plan, UDP))) == udp


@pytest.mark.slow
def test_no_fewer_frames_and_round_trips_than_with_seconds():
    for dilation in range(1, 151):
        for load in (TCP, UDP):
            found, whole = times(timed(plan_of(dilation), load)), times(load)
            assert found.seconds / dilation >= whole.seconds / 150
            assert found.omit / dilation >= whole.omit / 150


@pytest.mark.parametrize(
    "links",
    ["rate: 100 Mbit/s", "rate: 1 Gbit/s, host_rate: 100 Mbit/s", "rate: 1 Gbit/s, rates: {s1-s2: 100 Mbit/s}"],
)
def test_the_slowest_link_counts_and_not_the_dilation_alone(links):
    assert link_slowness(plan_of(15, links)) == pytest.approx(1.0)
    assert tuple(times(timed(plan_of(15, links), TCP))) == (5, 10)


@pytest.mark.parametrize("dilation", [1000, 3000, 7000])
@pytest.mark.parametrize("protocol", ["udp", "tcp"])
def test_a_frame_more_or_less_puts_no_figure_beyond_the_wire(protocol, dilation):
    """Counters are read between frames. Over sixty of them one more looks like 102 % of a link."""
    plan = plan_of(dilation, load=f"{{kind: iperf3, protocol: {protocol}}}")
    (load,) = plan.scenario.workloads
    seconds = times(timed(plan, load.spec)).seconds
    frames = seconds * 1e9 / dilation / (8 * 1538)
    assert 2 / frames < BEYOND / 3
    named = plan_of(dilation, load=f"{{kind: iperf3, protocol: {protocol}, omit: 1, seconds: 3}}")
    (load,) = named.scenario.workloads
    assert tuple(times(timed(named, load.spec))) == (1, 3)


def test_time_limits_grow_with_slow_links_and_never_shrink():
    assert [time_limit_factor(plan_of(dilation)) for dilation in (1, 150, 300, 7500)] == pytest.approx([1, 1, 2, 50])
    assert time_limit_factor(plan_of(30, "rate: 100 Mbit/s")) == pytest.approx(2.0)
    assert time_limit_factor(plan_of(150, "queue_frames: 1000")) == pytest.approx(1.0)


@pytest.mark.parametrize(("given", "limit"), [("", 240.0), (", time_limit: 90", 90.0)])
def test_a_jobs_time_limit_follows_links_unless_it_is_named(given, limit, monkeypatch):
    """A job that is cut short by a limit written for faster links looks as if it had failed."""
    plan = plan_of(300, load=f"{{kind: mpi, job: fabric_bench{given}}}")
    (load,) = plan.scenario.workloads
    job = SimpleNamespace(
        name="fabric_bench", time_limit=120.0 if load.spec.time_limit is None else load.spec.time_limit
    )
    monkeypatch.setattr(run_mpi, "prepare_mpi", lambda plan, spec: SimpleNamespace(job=job, ranks=range(16)))
    monkeypatch.setattr(run_mpi, "_launch", lambda context, prepared: None)
    monkeypatch.setattr(run_mpi, "_processes", lambda context, prepared, start: [SimpleNamespace(id="job")])
    monkeypatch.setattr(run_mpi, "FrameLedger", lambda context: None)
    asked: list[float] = []

    class EndedError(Exception):
        pass

    def run(processes, limit, **how):
        asked.append(limit)
        raise EndedError

    told: list[str] = []
    with pytest.raises(EndedError):
        run_mpi.run_mpi(SimpleNamespace(plan=plan, progress=told.append, run=run), load.spec)  # type: ignore[arg-type]
    assert asked == pytest.approx([limit])
    assert told[-1] == f"fabric_bench on 16 ranks, at most {limit:g} s by the lab's clock"


def test_long_queues_and_long_frames_take_longer():
    assert link_slowness(plan_of(30)) == pytest.approx(0.2)
    assert link_slowness(plan_of(30, "queue_frames: 200")) == pytest.approx(0.8)
    assert link_slowness(plan_of(30, "queue_frames: 10")) == pytest.approx(0.2)
    assert link_slowness(plan_of(30, "mtu: 9000", engine="realtime")) == pytest.approx(0.2 * 9038 / 1538)


def test_what_a_scenario_names_it_gets_exactly():
    plan = plan_of(10)
    assert tuple(times(timed(plan, replace(TCP, omit=0, seconds=1)))) == (0, 1)
    assert tuple(times(timed(plan, replace(TCP, seconds=30)))) == (1, 30)
    assert tuple(times(timed(plan, replace(UDP, omit=5)))) == (5, 4)


def test_loads_with_events_keep_their_seconds():
    for load in (replace(TCP, failures=("at 3s: down s1-s2",)), replace(UDP, timeline=("at 3s: down s1-s2",))):
        assert tuple(times(timed(plan_of(10), load))) == (2, 5)


def test_what_a_run_takes_is_expected_accordingly():
    load = "{kind: iperf3, protocol: tcp, repeats: 10}"
    fast, slow, auto = (expected_seconds(plan_of(dilation, load=load), built=True) for dilation in (50, 150, "auto"))
    assert fast is not None
    assert slow is not None
    assert slow - fast == pytest.approx(10 * (15 - 6))
    assert auto is not None
    assert auto > slow


# A small load of each kind, and whether its own program decides how long it takes.
LOADS = {
    "iperf3": ("{kind: iperf3, protocol: tcp}", False),
    "ping": ("{kind: ping}", False),
    "rr": ("{kind: rr, protocol: tcp}", False),
    "probe": ("{kind: probe, failures: ['at 5s: down s1-s2']}", False),
    "mpi": ("{kind: mpi, job: fabric_bench}", True),
    "npb": ("{kind: npb, kernel: EP}", True),
    "script": ("{kind: script, run: ./measure}", True),
}


def test_each_kind_of_load_is_among_those_below():
    assert {*LOADS} == {*WORKLOADS}


@pytest.mark.parametrize("kind", LOADS)
def test_how_long_a_load_takes_is_known_unless_a_program_decides(kind):
    load, program_decides = LOADS[kind]
    assert (expected_seconds(plan_of(load=load)) is None) == program_decides


def test_counters_that_came_late_are_read_again(monkeypatch):
    counters = PortCounters(["lo"])
    quick, waits = counters._links, [0.2, 0.1, 0.0]

    def slow():
        time.sleep(waits.pop(0))
        return quick()

    monkeypatch.setattr(counters, "_links", slow)
    begun = time.monotonic()
    figures, at = counters.read_at()
    assert not waits
    assert at - begun > 0.3
    assert figures.shape == (1, len(LINK_FIGURES))
    counters.close()


def test_rules_are_waited_for_only_where_frames_have_moved():
    rounds, ports = [0], np.zeros((3, 9), dtype=np.int64)

    def carry_over():
        rounds[0] += 1

    switches = SimpleNamespace(flush_statistics=carry_over)
    lab: Any = SimpleNamespace(port_figures=lambda: ports, _in_rules=[], open_vswitch=switches)

    def waited() -> int:
        before = rounds[0]
        lab_network.LabNetwork._wait_for_rules(lab)
        return rounds[0] - before

    # The round that is under way may have passed some frames by.
    assert (waited(), waited()) == (2, 0)
    ports[1, 6:] = 7  # queues, which are no frames that rules count
    assert waited() == 0
    ports[2, 1] += 1
    assert (waited(), waited()) == (2, 0)
    ports[0, 0] += 1
    assert waited() == 2
