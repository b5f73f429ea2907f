"""The flit-level simulator: exact latencies, conservation, bounds, deadlocks."""

from __future__ import annotations

import dataclasses
from itertools import pairwise

import numba
import numpy as np
import pytest

from benchmarks.dateline import dateline_torus
from testbed.base.errors import InputError
from testbed.dataplane.kernels import flits
from testbed.dataplane.kernels.flits_check import lost_flits, waiting_cycle
from testbed.dataplane.kernels.flits_state import CLOCK, DELIVERED, IDLE, LATENCIES, SLOTS
from testbed.engines.simulate import Network, Settings, simulate
from testbed.engines.simulate.flit_network import fabric_of, new_state
from testbed.engines.simulate.flit_point import _clocks, latency_of
from testbed.experiments.analyse.channel_load import load_of
from testbed.fabric.kernels.cycles import on_cycles
from testbed.fabric.routing.paths import hops, switches_on_path
from testbed.fabric.verify.deadlock import adjacency, hop_name
from testbed.planning import make_plan
from tests.fabrics import plan_of, scenario_of

QUICK = Settings(clocks=20_000, warm_up=4_000, packet=16, buffer=32)
LAYERED = {"kind": "random", "switches": 12, "degree": 4, "seed": 3, "hosts_per_switch": 2}


def network_of(plan, settings=QUICK):
    return Network.from_routes(plan.topology, plan.routes, settings, 1)


def layered_plan(routing="kind: dl, layers: 3", **topology):
    blocks = {"topology": {**LAYERED, **topology}, "assignment": {"kind": "openflow"}}
    text = "\n".join(f"{key}: {value}" for key, value in blocks.items())
    return make_plan(scenario_of(f"{text}\nrouting: {{{routing}}}"))


def alone(network, targets, chance):
    """Fabric and state where only the given hosts send, each to one host, with their first packets made at clock 0."""
    fabric = fabric_of(network, 1.0)
    target = np.full(fabric.hosts, IDLE, dtype=np.int32)
    for source, goal in targets:
        target[source] = goal
    fabric = fabric._replace(target=target, chance=chance)
    state = new_state(network, fabric, 1)
    state.wheel[:] = -1
    for source, _ in targets:
        state.due[source] = 0
        flits.schedule(state, source)
    return fabric, state


@pytest.mark.parametrize("plan", [
    pytest.param(lambda: plan_of("mesh", sizes=[3, 2], hosts_per_switch=2), id="trees of sources"),
    pytest.param(lambda: plan_of("torus", {"planes": "dest"}, sizes=[4, 3], parallel_links=2), id="trees to ends"),
    pytest.param(lambda: layered_plan(switches=6, degree=3), id="paths in layers"),
])  # fmt: skip
@pytest.mark.parametrize(("packet", "header"), [(1, 3), (2, 5), (128, 3)])
def test_a_packet_alone_takes_switches_times_header_and_length(plan, packet, header):
    plan = plan()
    network = network_of(plan, Settings(packet=packet, buffer=packet, header=header))
    switches = switches_on_path(plan.topology, plan.routes)
    for source in range(plan.topology.host_count):
        for goal in range(plan.topology.host_count):
            if source == goal:
                continue
            fabric, state = alone(network, [(source, goal)], 1e-12)
            flits.run(fabric, state, 1000)
            assert state.counts[DELIVERED] == 1
            # One clock on the link from the host, `header` a switch, and the other flits behind the first.
            assert state.counts[LATENCIES] == 1 + header * switches[source, goal] + packet - 1
            channels = [hop % fabric.channels for hop in hops(plan.topology, plan.routes, source, goal)]
            expected = np.bincount(channels, minlength=fabric.channels) * packet
            assert state.links.sent[: fabric.channels].tolist() == expected.tolist()


def test_what_shares_a_link_shares_it_fairly():
    plan = plan_of("flat", hosts=4)
    fabric, state = alone(network_of(plan), [(0, 3), (1, 3), (2, 3)], 1.0)
    flits.run(fabric, state, 50_000)
    from_hosts = state.links.sent[fabric.channels : fabric.channels + 3]
    assert state.links.sent[-1] > 0.999 * 49_000
    assert from_hosts.max() - from_hosts.min() <= 3 * fabric.packet


@pytest.mark.parametrize(("buffer_gap", "output_gap", "header", "idle"), [
    (None, 0, 3, 1), (0, 0, 3, 0), (0, 1, 3, 1), (3, 0, 3, 3), (0, 4, 3, 4), (3, 4, 3, 4), (None, 0, 6, 4),
    (0, 0, 6, 0),
])  # fmt: skip
def test_between_packets_buffer_and_channel_idle_as_asked(buffer_gap, output_gap, header, idle):
    settings = dataclasses.replace(QUICK, packet=8, header=header, buffer_gap=buffer_gap, output_gap=output_gap)
    network = network_of(plan_of("mesh", sizes=[3]), settings)
    fabric, state = alone(network, [(0, 2)], 1.0)
    flits.run(fabric, state, 9_000)
    assert state.links.sent[-1] / 9_000 == pytest.approx(8 / (8 + idle), abs=0.005)


def test_with_copies_packets_pass_those_that_wait_elsewhere():
    """BookSim2's routers, which choose freely, carry 11 % more on a mesh with two virtual channels than with one."""
    plan = plan_of("mesh", sizes=[8, 8])
    accepted = {}
    for channels in (1, 2):
        settings = dataclasses.replace(QUICK, clocks=40_000, warm_up=10_000, channels=channels)
        point = simulate(network_of(plan, settings), 0.7, 1)
        assert point is not None
        assert point.accepted is not None
        accepted[channels] = point.accepted
    assert accepted[2] > 1.1 * accepted[1]


def test_with_copies_a_packet_alone_takes_as_long():
    plan = plan_of("mesh", sizes=[3, 3])
    few = [dataclasses.replace(QUICK, channels=channels) for channels in (1, 3)]
    one, three = (simulate(network_of(plan, settings), 0.001, 1) for settings in few)
    assert one is not None
    assert three is not None
    assert dataclasses.replace(one, seconds=0) == dataclasses.replace(three, seconds=0)


@pytest.mark.parametrize("more", [
    {}, {"channels": 3}, {"buffer_gap": 0, "output_gap": 1}, {"channels": 2, "buffer_gap": 0, "output_gap": 2}
])  # fmt: skip
def test_no_link_carries_two_flits_and_no_buffer_overflows(more):
    network = network_of(layered_plan(), dataclasses.replace(QUICK, **more))
    fabric = fabric_of(network, 0.9)
    state = new_state(network, fabric, 5)
    nodes = len(state.nodes.link) - fabric.hosts
    ports = len(state.links.sent)
    for clock in range(4000):
        before, sent = state.nodes.stored[:nodes].copy(), state.links.sent.copy()
        slot = clock % SLOTS
        arriving = np.bincount(state.line[slot, : state.lines[slot]], minlength=nodes)
        flits.run(fabric, state, clock + 1)
        gone = before + arriving - state.nodes.stored[:nodes]
        assert gone.min() >= 0
        assert np.bincount(state.nodes.link[:nodes], weights=gone, minlength=ports).max() <= 1
        assert (state.links.sent - sent).max() <= 1
        assert state.nodes.room.min() >= 0
        assert state.nodes.stored.max() <= network.settings.buffer
        room, flits_lost = lost_flits(fabric, state, network.settings.buffer)
        assert flits_lost == 0
        assert not room.any()
    assert state.counts[DELIVERED] > 100


@pytest.mark.parametrize("planted", ["room", "stored", "sent"])
def test_a_flit_or_a_place_that_vanishes_is_noticed(planted):
    network = network_of(layered_plan())
    fabric = fabric_of(network, 0.3)
    state = new_state(network, fabric, 5)
    flits.run(fabric, state, 2000)
    if planted == "room":
        state.nodes.room[7] -= 1
    elif planted == "stored":
        state.nodes.stored[int(state.nodes.stored.argmax())] -= 1
    else:
        state.links.sent[-1] += 1
    room, lost = lost_flits(fabric, state, network.settings.buffer)
    assert bool(room.any()) == (planted != "sent")
    assert bool(lost) == (planted != "room")


@pytest.mark.parametrize("pattern", ["uniform", "transpose", "neighbour", "pairwise"])
def test_below_saturation_all_arrives_where_the_paths_lead(pattern):
    plan = plan_of("mesh", sizes=[4, 4])
    settings = dataclasses.replace(QUICK, clocks=220_000, warm_up=20_000, pattern=pattern)
    static = load_of(plan.topology, plan.routes, "all_to_all" if pattern == "uniform" else pattern, 1)
    assert static.saturation is not None
    load = 0.4 * min(static.saturation, 1.0)
    point = simulate(network_of(plan, settings), load, 1)
    assert point is not None
    assert point.accepted == pytest.approx(load, rel=0.03)
    use = np.asarray(point.channel_flits) / point.clocks
    assert use == pytest.approx(load * static.demand, abs=0.03)
    assert point.fullest_use == use.max() <= 1


@pytest.mark.slow
@pytest.mark.parametrize("plan", [
    pytest.param(lambda: plan_of("mesh", sizes=[4, 4]), id="mesh"),
    pytest.param(lambda: plan_of("torus", sizes=[4, 4], hosts_per_switch=2), id="torus"),
    pytest.param(layered_plan, id="layers"),
])  # fmt: skip
def test_no_load_above_the_static_bound_is_accepted_whole(plan):
    plan = plan()
    bound = load_of(plan.topology, plan.routes, "all_to_all", 1).saturation
    assert bound is not None
    whole = []
    for load in np.linspace(0.3, 1.3, 6) * bound:
        if load <= 1:
            settings = dataclasses.replace(QUICK, clocks=150_000, buffer=256)
            point = simulate(network_of(plan, settings), float(load), 1)
            assert point is not None
            assert point.accepted is not None
            assert point.fullest_use is not None
            whole += [load] if point.accepted > 0.97 * load else []
            assert point.fullest_use <= 1
    assert whole
    assert max(whole) <= bound


@pytest.mark.parametrize(("pattern", "link"), [
    ("hotspot:h1", "the link to h1"), ("hotspot:h5", "the link to h5"), ("transpose", "s3→s4"),
    ("complement", "s2→s3"), ("shift:1", "s1→s2"),
])  # fmt: skip
def test_the_static_bound_has_the_links_of_hosts_in_it(pattern, link):
    """Simulated well below it all is accepted, and above it less, whichever link it is of."""
    plan = plan_of("mesh", sizes=[4, 4])
    static = load_of(plan.topology, plan.routes, pattern, 1)
    bound = static.saturation
    assert bound is not None
    settings = dataclasses.replace(QUICK, clocks=150_000, buffer=256, pattern=pattern)
    accepted = {}
    for share in (0.7, 1.25):
        load = min(share * bound, 1.0)
        point = simulate(network_of(plan, settings), load, 1)
        assert point is not None
        assert point.accepted is not None
        accepted[share] = point.accepted / load
    assert accepted[0.7] > 0.96
    assert accepted[1.25] < 0.97
    assert static.bottleneck(plan.topology) == link


def test_the_torus_of_two_layers_behaves_as_other_simulators_say():
    """BookSim2 and an independent model: zero load 145 to 164, at 0.3 330 to 356 clocks, saturation at 0.43 to 0.47."""
    topology, routes = dateline_torus(8)
    network = Network.from_routes(topology, routes, Settings(clocks=80_000, warm_up=20_000), 1)
    low, middle, high = (simulate(network, load, 1) for load in (0.005, 0.3, 0.6))
    assert low.latency.mean == pytest.approx(145, rel=0.02)
    assert middle.latency.mean == pytest.approx(330, rel=0.1)
    assert high.accepted == pytest.approx(0.45, rel=0.1)


def dependencies(plan):
    """Pairs of virtual channels that a path takes one after the other, found pair by pair."""
    hosts = range(plan.topology.host_count)
    found: set[tuple[int, int]] = set()
    for source in hosts:
        for goal in hosts:
            found.update(pairwise(hops(plan.topology, plan.routes, source, goal)))
    return found


CYCLIC = [
    ("torus", {"sizes": [8, 8]}, {"ring": "shortest"}),
    ("torus", {"sizes": [8, 8], "parallel_links": 2}, {"ring": "shortest", "planes": "none"}),
    ("torus", {"sizes": [5, 5]}, {"ring": "shortest"}),
    ("ring", {"switches": 5}, {"ring": "shortest"}),
    ("ring", {"switches": 8, "hosts_per_switch": 2}, {"ring": "shortest"}),
]


# With two copies of each channel a ring of five with one host a switch takes too long to fill them all.
@pytest.mark.parametrize(("kind", "parameters", "routing", "channels"), [
    *((*case, 1) for case in CYCLIC),
    *((*case, 2) for case in CYCLIC if case[1] != {"switches": 5}),
])  # fmt: skip
def test_what_is_called_cyclic_stands_still_on_one_of_its_cycles(kind, parameters, routing, channels):
    plan = plan_of(kind, {"kind": "dor", **routing}, **parameters)
    assert not plan.deadlock_free
    settings = dataclasses.replace(QUICK, clocks=1_000_000, buffer=16, channels=channels)
    point = simulate(network_of(plan, settings), 1.0, 1)
    assert point.cycle
    assert (point.accepted, point.latency, point.fullest_use) == (None, None, None)
    assert point.clocks < 1_000_000
    taken = dependencies(plan)
    nodes = len(plan.topology.channel_source) * plan.routes.layers
    inside = on_cycles(*adjacency(nodes, np.asarray(sorted(taken), dtype=np.int32)))
    number = {hop_name(plan.topology, node, plan.routes.layers): node for node in range(nodes)}
    cycle = [number[name] for name in point.cycle]
    assert len(set(cycle)) == len(cycle) >= 3
    for before, after in zip(cycle, cycle[1:] + cycle[:1], strict=True):
        assert (before, after) in taken
        assert inside[before]


@pytest.mark.slow
@pytest.mark.parametrize("channels", [1, 2])
def test_a_deadlock_is_for_ever(channels):
    plan = plan_of("ring", {"kind": "dor", "ring": "shortest"}, switches=6)
    network = network_of(plan, dataclasses.replace(QUICK, buffer=16, channels=channels))
    fabric = fabric_of(network, 1.0)
    state = new_state(network, fabric, 1)
    clock = 0
    while not len(waiting_cycle(fabric, state)):
        clock += 1
        assert clock < 100_000
        flits.run(fabric, state, clock)
    cycle = waiting_cycle(fabric, state)
    links = state.nodes.link[cycle]
    flits.run(fabric, state, clock + 100)  # what is on its way still moves
    sent = state.links.sent[links].copy()
    flits.run(fabric, state, clock + 50_000)
    assert np.array_equal(waiting_cycle(fabric, state), cycle)
    assert np.array_equal(state.links.sent[links], sent)


def test_the_same_seed_gives_the_same_and_another_seed_another():
    network = network_of(layered_plan())
    one, again, other = (simulate(network, 0.3, seed) for seed in (1, 1, 2))
    assert one is not None
    assert again is not None
    assert dataclasses.replace(one, seconds=0) == dataclasses.replace(again, seconds=0)
    assert one.channel_flits != other.channel_flits


def test_what_hosts_ask_for_does_not_depend_on_the_fabric():
    sent = []
    for buffer in (16, 256):
        network = network_of(plan_of("mesh", sizes=[4, 2]), dataclasses.replace(QUICK, buffer=buffer))
        fabric = fabric_of(network, 0.1)
        state = new_state(network, fabric, 9)
        flits.run(fabric, state, 10_000)
        sent.append(state.due.tolist())
    assert sent[0] == sent[1]


def test_the_histogram_is_exact_then_within_a_thousandth():
    place = numba.njit(lambda latency: flits.histogram_place(latency))  # noqa: PLW0108 - only kernels can call it
    for latency in [*range(5000), 10_000, 123_456, 98_765_432]:
        shown = _clocks(place(latency))
        assert shown == latency if latency < 2048 else abs(shown - latency) <= latency / 2000


def test_percentiles_are_those_of_the_packets():
    network = network_of(plan_of("flat", hosts=2))
    fabric = fabric_of(network, 0.5)
    state = new_state(network, fabric, 1)
    state.histogram[[10, 20, 25, 30]] = [50, 45, 4, 1]  # so 95 % and 99 % are not the same
    found = latency_of(state.histogram, 50 * 10 + 45 * 20 + 4 * 25 + 30)
    assert dataclasses.astuple(found) == (15.3, 10.0, 25.0, 30.0)
    assert state.counts[CLOCK] == 0


def bytes_of(state):
    return state.nbytes if isinstance(state, np.ndarray) else sum(map(bytes_of, state))


@pytest.mark.parametrize("plan", [layered_plan, lambda: plan_of("flat", hosts=4)])
@pytest.mark.parametrize("settings", [
    Settings(), Settings(packet=1, buffer=1 << 12), Settings(channels=3, buffer_gap=0, output_gap=5),
    Settings(output_gap=900),
])  # fmt: skip
def test_the_memory_of_a_run_is_about_what_its_state_takes(plan, settings):
    network = network_of(plan(), settings)
    state = new_state(network, fabric_of(network, 0.5), 1)
    assert network.size == pytest.approx(bytes_of(state), rel=0.02)


def test_a_run_of_too_much_memory_is_refused_with_its_size(monkeypatch):
    monkeypatch.setattr("testbed.engines.simulate.flit_network.MOST_BYTES", 1 << 30)
    with pytest.raises(
        InputError,
        match=r"^buffer: a run of 192 virtual channels with 1048576 flits each takes 6.7 GiB and may take 1; give",
    ):
        network_of(layered_plan(), Settings(packet=1, buffer=1 << 20))
