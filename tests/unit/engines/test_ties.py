"""Simultaneous events of the packet level: the documented order is what it was, and others tell how far it matters."""

from __future__ import annotations

import json

import numpy as np
import pytest

from testbed.base.jit import jit
from testbed.dataplane.kernels.events import NEVER, FifoLanes, Heap
from testbed.dataplane.kernels.tie_breaking import DOCUMENTED, REVERSED, next_of_tied
from testbed.engines.simulate import PacketNetwork, PacketSettings, packet_point
from testbed.engines.simulate.flit_point import rows_of
from testbed.engines.simulate.packet_settings import as_asked, packet_problems
from testbed.engines.simulate.result_folder import samples_of
from testbed.planning import make_plan
from tests.fabrics import scenario_of
from tests.unit.ui.test_cli_surface import typed

# Two links of 100 Mbit/s between switches of four hosts: all is in phase, and each pause falls together with a frame.
_IN_PHASE = (
    "topology: {kind: mesh, sizes: [2, 2], hosts_per_switch: 2}\nlinks: {rate: 100 Mbit/s, host_rate: 1 Gbit/s}",
    {"flow_control": "pause", "pattern": "complement", "xoff": 1522, "delay": 7.0},
)
# Each with what the simulator gave before there were other orders: arrived, made, dropped, PAUSE frames and those that
# end a pause, the mean latency in ps, and frames over channels.
_CASES = {
    "ring": (
        ("topology: {kind: ring, switches: 5}\nrouting: {kind: updown}", {"pattern": "neighbour"}), 1.0,
        (2711, 2710, 0, 0, 0, 144942377, 2710),
    ),
    "mesh": (
        ("topology: {kind: mesh, sizes: [3, 3]}", {"pattern": "neighbour", "xoff": 1522, "delay": 7.0}), 1.0,
        (2922, 2921, 0, 3999, 4002, 1943273697, 3883),
    ),
    "two rates": (_IN_PHASE, 1.0, (204, 207, 0, 274, 272, 4287772615, 408)),
    "drops": (
        (
            "topology: {kind: mesh, sizes: [2, 2], hosts_per_switch: 2}",
            {"flow_control": "none", "pattern": "complement", "buffer": 4 * 1522},
        ),
        1.0, (2271, 4375, 2106, 0, 0, 226071597, 4538),
    ),
    "half a load": (("topology: {kind: mesh, sizes: [3, 2]}", {}), 0.5, (1666, 1665, 0, 0, 0, 60971806, 2736)),
    "priorities": (
        (
            "topology: {kind: random, switches: 8, degree: 3, seed: 1}\nrouting: {kind: dl, layers: 2}\n"
            "assignment: {kind: openflow}",
            {"flow_control": "pfc", "pattern": "pairwise", "delay": 0.5},
        ),
        1.0, (3304, 3314, 0, 162, 163, 842209304, 4442),
    ),
}  # fmt: skip


def network(text, changes, **more):
    plan = make_plan(scenario_of(text))
    settings = PacketSettings(**{"duration": 8, "warm_up": 1, "buffer": 12 * 1522, **changes, **more})
    links = plan.scenario.links
    return plan, PacketNetwork.from_routes(plan.topology, plan.routes, settings, links.rate, links.edge_rate, 1)


def simulate_packets(*arguments, **options):
    point = packet_point.simulate_packets(*arguments, **options)
    assert point is not None
    assert point.links is not None
    return point


def simulate_orders(*arguments):
    point = packet_point.simulate_orders(*arguments)
    assert point is not None
    return point


def figures(point):
    links = point.links
    counts = point.packets, links.made, links.drops, links.pauses, links.resumes
    return (*counts, round(point.latency.mean * 1e12), sum(point.channel_flits))


@pytest.mark.parametrize("name", _CASES)
def test_the_documented_order_gives_what_it_gave(name):
    case, load, wanted = _CASES[name]
    _, made = network(*case)
    assert figures(simulate_packets(made, load, 1)) == wanted
    assert figures(simulate_packets(made, load, 1, tie_order=DOCUMENTED)) == wanted


def test_other_orders_give_other_figures_and_each_the_same():
    _, made = network(*_IN_PHASE)
    orders = range(DOCUMENTED, 6)
    found = [figures(simulate_packets(made, 1.0, 1, tie_order=order)) for order in orders]
    assert found == [figures(simulate_packets(made, 1.0, 1, tie_order=order)) for order in orders]
    assert len(set(found)) >= 4
    # A pause that takes effect before the frame that ends then is worth nearly a third of what arrives.
    assert found[REVERSED][0] < 0.75 * found[DOCUMENTED][0]


@pytest.mark.parametrize("name", _CASES)
def test_no_order_loses_a_frame_or_overruns_memory(name):
    """simulate_packets() raises where frames or memory are lost, or PAUSE has dropped any."""
    case, load, _ = _CASES[name]
    _, made = network(*case, duration=3)
    for order in (REVERSED, 7, 8):
        point = simulate_packets(made, load, 3, tie_order=order)
        assert point.packets > 0
        assert (point.links.drops > 0) == (name == "drops")


def test_a_run_is_repeated_in_other_orders_and_its_figures_stay():
    plan, made = network(*_IN_PHASE, tie_orders=3)
    point = simulate_orders(made, 1.0, 1)
    assert figures(point) == _CASES["two rates"][2]
    assert [one.accepted for one in point.ties] == [
        simulate_packets(made, 1.0, 1, tie_order=order).accepted for order in (1, 2, 3)
    ]
    (row,) = rows_of([point])
    every = sorted([point.accepted, *(one.accepted for one in point.ties)])
    ties = row.ties
    assert (ties.orders, ties.accepted_min, ties.accepted_max) == (4, every[0], every[-1])
    assert ties.accepted_median == pytest.approx((every[1] + every[2]) / 2)
    assert ties.spread >= (every[-1] - every[0]) / ties.accepted_median > 0.2
    assert ties.deadlocks == 0
    (sample,) = (one for one in samples_of(plan, "complement", [point]) if one.metric == "tie_spread")
    assert sample.value == ties.spread
    assert rows_of([simulate_orders(network(*_IN_PHASE)[1], 1.0, 1)])[0].ties is None


@jit
def _next(lanes, heap, order, random, now):
    return next_of_tied(lanes, heap, 3, order, random, now)


def lanes_of(*events):
    """Lanes of which each has events of time 5, with their names, and then one of time 9."""
    lanes = FifoLanes(
        np.full((3, 8), 9), np.zeros((3, 8), dtype=np.int64), np.array([6, 0, 3]),
        np.array([len(one) + 1 for one in events]), np.array([5 if one else 9 for one in events]),
    )  # fmt: skip
    for lane, names in enumerate(events):
        for number, name in enumerate(names):
            place = (lanes.start[lane] + number) % 8
            lanes.time[lane, place], lanes.what[lane, place] = 5, name
    return lanes


def order_of(order, seed, *events):
    """Names of the events of time 5 as they come."""
    lanes, random, found = lanes_of(*events), np.array([seed], dtype=np.uint64), []
    heap = Heap(np.array([7]), np.array([0]), np.array([1]))
    while (lanes.soonest == 5).any():
        lane = _next(lanes, heap, order, random, 5)
        place = lanes.start[lane]
        found.append(int(lanes.what[lane, place]))
        lanes.start[lane] = (place + 1) % 8
        lanes.length[lane] -= 1
        lanes.soonest[lane] = lanes.time[lane, lanes.start[lane]] if lanes.length[lane] else NEVER
    return found


def test_the_reversed_order_is_the_documented_one_backwards():
    assert order_of(REVERSED, 0, [1, 2, 3], [], [4, 5, 6]) == [6, 5, 4, 3, 2, 1]


def test_a_random_order_may_be_any():
    seen = {tuple(order_of(2, seed, [1, 2], [3], [])) for seed in range(60)}
    assert len(seen) == 6


def test_what_is_stored_is_as_before_without_other_orders():
    assert "tie_orders" not in as_asked(PacketSettings())
    assert as_asked(PacketSettings(tie_orders=2))["tie_orders"] == 2


@pytest.mark.parametrize("orders", [-1, 1001])
def test_a_number_of_orders_that_cannot_be_is_a_sentence(orders):
    (problem,) = packet_problems(PacketSettings(tie_orders=orders), 1)
    assert str(problem) == f"tie_orders: should be from 0 to 1,000, not {orders:,}"


def test_orders_are_of_the_packet_level():
    code, _, error = typed("simulate", "mesh4x4", "--tie-orders", "3")
    assert (code, error) == (2, "--tie-orders: applies only to --level packet; leave it out\n")


def test_the_command_tells_the_spread_and_warns(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "it.yaml").write_text(f"description: x\n{_IN_PHASE[0]}\n")
    words = (
        "simulate", "it.yaml", "--level", "packet", "--pattern", "complement", "--xoff", "1522", "--delay", "7",
        "--duration", "8", "--warm-up", "1", "--buffer", str(12 * 1522), "--seeds", "1", "--tie-orders", "3",
    )  # fmt: skip
    code, out, error = typed(*words, "--loads", "0.05,1")
    assert code == 0
    assert "over 4 orders of simultaneous events, median (min – max):" in out
    assert "depend on which of simultaneous events comes first, by more than 1%: give the range" in error
    _, out, _ = typed(*words, "--loads", "1", "--resume", "--format", "json")
    found = json.loads(out)
    assert found["settings"]["tie_orders"] == 3
    ties = found["loads"][-1]["ties"]
    assert ties["orders"] == 4
    assert ties["spread"] > 0.2
    (folder,) = (tmp_path / "results").iterdir()
    reasons = json.loads((folder / "manifest.json").read_text())["reasons"]
    assert any("at load 1 figures depend on which of simultaneous events comes first" in reason for reason in reasons)
