"""Flows that begin and end: closed forms, DCQCN's rates, marks, what is drawn, and what is refused."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest

from testbed.base.errors import InputError, Problem
from testbed.dataplane.kernels import dcqcn
from testbed.engines.simulate.flow_settings import Dcqcn, FlowSettings, flow_problems, parse_dcqcn
from testbed.engines.simulate.flow_sizes import DISTRIBUTIONS, find_sizes
from testbed.engines.simulate.flows import (
    Flows,
    begin_flows,
    choice_problems,
    draw_flows,
    memory_problems,
    simulate_flows,
)
from testbed.engines.simulate.packet_network import PacketNetwork
from testbed.engines.simulate.packet_settings import PacketSettings
from tests.fabrics import plan_of

RATE = 40e9
SWITCHES = PacketSettings(duration=1.0, warm_up=0.0, buffer=200 * 1522)


def network_of(plan, switches=SWITCHES):
    return PacketNetwork.from_routes(plan.topology, plan.routes, switches, RATE, RATE, 1)


def flows_of(*rows):
    """Flows of (source, goal, bytes, begin in µs), sources ascending."""
    source, goal, size, begin = (np.array(column, dtype=np.int64) for column in zip(*rows, strict=True))
    return Flows(source, goal, size, begin * 1_000_000)


@pytest.fixture(scope="module")
def chain():
    """Two switches with five hosts each."""
    return network_of(plan_of("mesh", sizes=[2], hosts_per_switch=5))


@pytest.mark.parametrize("size", [1, 1456, 1457, 100_000])
@pytest.mark.parametrize("goal", [1, 5, 20])
def test_a_flow_alone_takes_its_frames_on_idle_links(size, goal):
    network = network_of(plan_of("mesh", sizes=[4, 3], hosts_per_switch=2))
    result = simulate_flows(network, FlowSettings(SWITCHES), 1, flows=flows_of((0, goal, size, 3)))
    frames = math.ceil(size / (1522 - 22 - 44))
    switches = {1: 1, 5: 3, 20: 5}[goal]
    frame = (1522 + 20) * 8 / RATE
    expected = (switches + frames) * frame + (switches + 1) * 1e-6
    assert result.frames == frames
    assert result.times[0] == pytest.approx(expected, rel=1e-9)
    assert result.slowdown[0] == pytest.approx(1, rel=1e-9)


def test_flows_to_one_host_keep_its_link_full(chain):
    sent = flows_of(*((host, 9, 300_000, 0) for host in range(5)))
    result = simulate_flows(chain, FlowSettings(SWITCHES, congestion="none"), 1, flows=sent)
    frames = 5 * math.ceil(300_000 / 1456)
    first = 3 * chain.edge_time + 3 * chain.delay  # of the first frame, which is sent three times
    assert result.end == first + (frames - 1) * chain.edge_time
    assert result.marked == result.notified == 0


class Reference:
    """A sender's rate as equations 1 to 4 of the paper have it, with `alpha` lowered by a timer of its own."""

    def __init__(self, line=1.0):
        self.rate = self.target = self.line = line
        self.alpha, self.times, self.counts, self.cut = 1.0, 0, 0, False

    def notify(self):
        self.target, self.rate = self.rate, self.rate * (1 - self.alpha / 2)
        self.alpha = (1 - 1 / 256) * self.alpha + 1 / 256
        self.times = self.counts = 0

    def hear_nothing(self):
        self.alpha *= 1 - 1 / 256

    def step(self, by_time):
        self.times, self.counts = self.times + by_time, self.counts + (not by_time)
        if min(self.times, self.counts) > 5:
            self.target = min(self.target + 0.01, self.line)
        elif max(self.times, self.counts) > 5:
            self.target = min(self.target + 0.001, self.line)
        self.rate = (self.rate + self.target) / 2


def rates_of(frames):
    def longs():
        return np.zeros(1, dtype=np.int64)

    return dcqcn.DcqcnRates(
        controlled=True, gain=1 / 256, alpha_time=55, timer=55, byte_counter=frames, fast=5, additive=0.001,
        hyper=0.01, rate=np.ones(1), target=np.ones(1), alpha=np.ones(1), told=longs(),
        limited=np.zeros(1, dtype=np.bool_), times=longs(), counts=longs(), frames=longs(), deadline=longs(),
        ticking=np.zeros(1, dtype=np.bool_),
    )  # fmt: skip


@pytest.fixture
def interpreted(monkeypatch):
    """What only kernels call has no entry for the interpreter."""
    for name, one in list(vars(dcqcn).items()):
        if hasattr(one, "py_func"):
            monkeypatch.setattr(dcqcn, name, one.py_func)


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize("seed", range(20))
def test_rates_follow_the_equations_of_the_paper(seed):
    rates, expected, chance = rates_of(frames=3), Reference(), random.Random(seed)
    now = lowered = sent = 0
    for _ in range(300):
        now += chance.randrange(1, 120)
        while now - lowered >= 55:
            lowered += 55
            expected.hear_nothing()
        what = chance.choice(("notify", "time", "time", "frame", "frame", "frame"))
        if what == "notify":
            dcqcn.heed_notification(rates, 0, now)
            expected.notify()
            lowered, sent = now, 0
        elif not rates.limited[0]:
            expected.rate = 1.0  # the last part of the way back to the link's rate is left out
            continue
        elif what == "time":
            dcqcn.increase_by_timer(rates, 0, now)
            expected.step(by_time=True)
        else:
            dcqcn.count_frame(rates, 0)
            sent += 1
            if sent == 3:
                sent = 0
                expected.step(by_time=False)
        assert rates.rate[0] == pytest.approx(expected.rate, rel=2e-6)
        assert rates.target[0] == pytest.approx(expected.target, rel=2e-6)


def test_two_long_flows_share_a_link_evenly(chain):
    sent = flows_of((0, 9, 30_000_000, 0), (1, 9, 30_000_000, 0))
    result = simulate_flows(chain, FlowSettings(SWITCHES), 1, flows=sent)
    assert result.notified > 5
    assert result.times.min() > 0.85 * result.times.max()


def test_short_flows_wait_less_with_congestion_control(chain):
    large = [(host, 9, 5_000_000, 0) for host in range(4)]
    small = [(4, 8, 10_000, 200 * number) for number in range(1, 10)]
    sent = flows_of(*large, *small)
    slow, fast = (
        simulate_flows(chain, FlowSettings(SWITCHES, congestion=kind), 1, flows=sent) for kind in ("none", "dcqcn")
    )
    assert fast.pauses < slow.pauses
    assert np.median(fast.slowdown[4:]) < np.median(slow.slowdown[4:]) / 2


def test_a_flow_is_notified_once_in_an_interval(chain):
    sent = flows_of(*((host, 9, 2_000_000, 0) for host in range(5)))
    asked = FlowSettings(SWITCHES, k_min=0, k_max=1522, p_max=1.0, dcqcn=Dcqcn(interval=200))
    result = simulate_flows(chain, asked, 1, flows=sent)
    assert result.marked > 1000
    assert 5 < result.notified <= sum(math.ceil(time / 200e-6) for time in result.times)


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_the_mean_size_is_that_of_many_draws(name):
    sizes = DISTRIBUTIONS[name]
    drawn = sizes.draw(np.random.default_rng(1).random(400_000))
    assert drawn.mean() == pytest.approx(sizes.mean, rel=0.02)
    assert drawn.min() >= 1
    assert drawn.max() <= sizes.points[-1][0]


def test_hosts_ask_for_the_load_that_was_wanted(chain):
    switches = PacketSettings(duration=400.0, warm_up=0.0)
    sent = draw_flows(chain, FlowSettings(switches, sizes="hadoop", load=0.6), seed=3)
    frames = np.ceil(sent.size / 1456).sum()
    assert frames * chain.edge_time / 10 == pytest.approx(0.6 * 400e9, rel=0.1)
    assert (sent.source != sent.goal).all()
    assert set(zip(sent.source.tolist(), sent.goal.tolist(), strict=True)) == {
        (a, b) for a in range(10) for b in range(10) if a != b
    }
    again = draw_flows(chain, FlowSettings(switches, sizes="hadoop", load=0.6), seed=3)
    assert all((one == other).all() for one, other in zip(sent, again, strict=True))


@pytest.mark.parametrize(
    ("text", "size"), [("65536", 65536), ("100kB", 100_000), ("2MB", 2_000_000), ("1MiB", 1 << 20), ("1.5 kB", 1500)]
)
def test_one_size_is_read_with_its_unit(text, size):
    assert find_sizes(text).draw(np.array([0.0, 0.3, 1.0])).tolist() == [size] * 3


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"sizes": "webserch"}, 'sizes: should be web_search, hadoop, or a size such as 65536 or 2MB, not "webserch". '
         'Did you mean "web_search"?'),
        ({"sizes": "0"}, "sizes: should be from 1 byte to 2^40, not 0"),
        ({"load": 1.5}, "load: should be above 0 and up to 1, not 1.5"),
        ({"congestion": "timely"}, 'congestion: should be one of none, dcqcn, not "timely".'),
        ({"k_min": 9, "k_max": 9}, "k_min: of 9 bytes should be 0 or more, and below k_max, 9"),
        ({"next_hop": "spray"},
         'next_hop: should be one of path, flow, random, round_robin, least_queue, not "spray".'),
        ({"p_max": 0.0}, "p_max: should be above 0 and up to 1, not 0"),
        ({"switches": PacketSettings(warm_up=0.0, flow_control="none")},
         "flow_control: should be pause or pfc: a frame that is dropped would have to be sent again, and go-back-N of "
         "network cards is not modelled"),
        ({"switches": PacketSettings(warm_up=0.0, frame=100)}, "frame: should be 256 or more, not 100"),
        ({"switches": PacketSettings(warm_up=0.0, duration=-1.0)},
         "duration: should be from 0.01 to 60,000.0, not -1.0"),
    ],
    ids=["sizes", "size", "load", "congestion", "k_min", "next_hop", "p_max", "flow_control", "frame", "duration"],
)  # fmt: skip
def test_what_makes_no_sense_is_refused_with_a_sentence(changes, said):
    asked = FlowSettings(**{"switches": SWITCHES, **changes})
    assert [f"{one.key}: {one.sentence}" for one in flow_problems(asked)] == [said]


def test_all_that_is_wrong_with_parameters_is_said_at_once():
    problems: list[Problem] = []
    parse_dcqcn(["timr=3", "gain=x", "interval=0", "fast_recovery=3", "fast_recovery=4"], problems)
    assert [one.sentence for one in problems] == [
        "should be PARAMETER=NUMBER with one of gain, alpha_time, timer, byte_counter, fast_recovery, additive, "
        'hyper, interval, not "timr=3". Did you mean "timer"?',
        'gain should be a number, not "x"',
        "interval should be from 0.001 to 1,000,000, not 0",
        "fast_recovery is given twice",
    ]
    assert parse_dcqcn(["fast_recovery=3", "timer=300"], []) == Dcqcn(fast_recovery=3, timer=300.0)


def test_marks_that_no_queue_could_reach_are_refused(chain):
    asked = FlowSettings(SWITCHES, k_min=10_000_000, k_max=20_000_000)
    assert "no frame would be marked" in memory_problems(chain, asked)[0].sentence
    assert memory_problems(chain, FlowSettings(SWITCHES)) == []


def test_a_time_in_which_no_flow_begins_is_refused(chain):
    short = PacketSettings(duration=0.01, warm_up=0.0)
    with pytest.raises(InputError, match="is so short that no flow of 30,000,000 bytes on average begins"):
        draw_flows(chain, FlowSettings(short, sizes="30MB", load=0.01), seed=1)


def test_flows_that_are_too_many_are_refused(chain):
    long = PacketSettings(duration=60_000.0, warm_up=0.0)
    with pytest.raises(InputError, match="flows, and a simulation takes 4,194,304"):
        draw_flows(chain, FlowSettings(long, sizes="64", load=1.0), seed=1)


@pytest.mark.parametrize("congestion", ["none", "dcqcn"])
def test_flows_around_a_ring_of_short_buffers_deadlock(congestion):
    plan = plan_of("ring", {"kind": "dor", "ring": "shortest"}, switches=5, hosts_per_switch=2)
    switches = PacketSettings(warm_up=0.0, buffer=20_000)
    sent = flows_of(*((host, (host + 4) % 10, 300_000, 0) for host in range(10)))
    result = simulate_flows(network_of(plan, switches), FlowSettings(switches, congestion=congestion), 1, flows=sent)
    assert len(result.cycle) == 5
    assert (result.finished < 0).any()
    assert np.isnan(result.times[result.finished < 0]).all()


@pytest.fixture(scope="module")
def multipath():
    """Two leaves with four hosts each, four spines: four next hops up."""
    return network_of(plan_of("leaf_spine", {"kind": "ecmp"}, leaves=2, spines=4, hosts_per_leaf=4))


def sent_up(network, next_hop, sent):
    """What became of flows, and the frames that the first leaf sent to each spine."""
    result = simulate_flows(network, FlowSettings(SWITCHES, congestion="none", next_hop=next_hop), 1, flows=sent)
    up = np.flatnonzero(network.topology.channel_source == network.topology.host_switch[0])
    return result, np.rint(result.channel_use[up] * result.end / network.channel_time).astype(int).tolist()


def test_frames_take_next_hops_in_turn_or_by_chance(multipath):
    sent = flows_of((0, 4, 400 * 1456, 0))
    assert sent_up(multipath, "round_robin", sent)[1] == [100] * 4
    by_chance = sent_up(multipath, "random", sent)[1]
    assert sum(by_chance) == 400
    assert sum((count - 100) ** 2 / 100 for count in by_chance) < 16.3  # chi-squared, 3 degrees of freedom, 0.1 %
    assert sorted(sent_up(multipath, "path", sent)[1]) == [0, 0, 0, 400]


def test_each_flow_keeps_the_next_hop_of_its_hash(multipath):
    sent = flows_of(*((0, 4, 10 * 1456, 100 * number) for number in range(200)))
    counts = sent_up(multipath, None, sent)[1]
    assert all(count % 10 == 0 for count in counts)
    assert sum((count / 10 - 50) ** 2 / 50 for count in counts) < 16.3


def test_the_shortest_queue_is_as_good_as_no_limits(multipath):
    slowest = []
    for late in range(6):  # so many flows more, much later, give the others other hashes
        sent = flows_of(
            (0, 4, 1_000_000, 0), *((0, 4, 100, 9000 + number) for number in range(late)),
            *((host, 4 + host, 1_000_000, 0) for host in range(1, 4)),
        )  # fmt: skip
        assert sent_up(multipath, "least_queue", sent)[0].slowdown.max() < 1.02
        slowest.append(sent_up(multipath, "flow", sent)[0].slowdown.max())
    assert sorted(slowest)[3] > 1.5


def test_choices_that_a_plan_does_not_have_are_refused(chain, multipath):
    asked = FlowSettings(SWITCHES, next_hop="random")
    assert "chooses among several next hops, and this plan has one" in choice_problems(chain, asked)[0].sentence
    assert choice_problems(multipath, asked) == choice_problems(chain, FlowSettings(SWITCHES)) == []


def test_events_of_rates_have_room(chain):
    sent = flows_of((0, 9, 1000, 0), (0, 8, 1000, 5))
    _, state, rdma = begin_flows(chain, FlowSettings(SWITCHES, dcqcn=Dcqcn(interval=0.001)), sent, 1)
    assert len(state.heap.time) >= chain.topology.host_count + 2 * (2 + int(rdma.back.max()) // rdma.interval)
