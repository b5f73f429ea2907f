"""Collectives in the simulator: a step begins when its data has arrived, and the time is that of the closed form."""

from __future__ import annotations

import re

import numpy as np
import pytest

from testbed.base.errors import InputError, naming_options
from testbed.engines.simulate.flit_network import Network
from testbed.engines.simulate.flit_settings import Settings
from testbed.engines.simulate.replay import Demand, least_clocks, replay
from testbed.fabric.collectives import COLLECTIVES, make_steps, waits_of
from testbed.fabric.routing.paths import hops
from testbed.ui.cli import simulate_commands  # noqa: F401 - it adds its command
from tests.fabrics import plan_of
from tests.unit.ui.test_verify_command import typed

PAYLOAD = 1448


def simulated(name, size, kind="ring", routing=None, **topology):
    plan = plan_of(kind, routing, **topology)
    network = Network.from_routes(plan.topology, plan.routes, Settings(), 1)
    demand = Demand.from_steps(make_steps(name, plan.topology.host_count, size), PAYLOAD)
    return network, demand, replay(network, demand)


@pytest.mark.parametrize(("hosts", "packets"), [(4, 30), (8, 50), (16, 20)])
def test_a_ring_all_reduce_takes_what_its_closed_form_says(hosts, packets):
    _, _, found = simulated("ring_all_reduce", hosts * packets * PAYLOAD, switches=hosts)
    settings = Settings()
    wanted = 2 * (hosts - 1) * (packets * settings.packet + 2 * settings.header)
    assert found.clocks == pytest.approx(wanted, rel=0.01)
    assert found.clocks >= wanted


@pytest.mark.parametrize("name", COLLECTIVES)
def test_no_step_begins_before_its_data_and_all_arrives(name):
    network, demand, found = simulated(name, 40 * PAYLOAD, "fat_tree_pods", ports=4)
    steps, waits = demand.steps, waits_of(demand.steps)
    pairs = zip(demand.source.tolist(), demand.destination.tolist(), strict=True)
    alone = [
        network.settings.header * (len(hops(network.topology, network.routes, *pair)) + 1)
        + int(demand.packets[message]) * network.settings.packet
        for message, pair in enumerate(pairs)
    ]
    for message in range(len(steps.step)):
        for after in waits.arrived[waits.arrived_start[message] : waits.arrived_start[message + 1]].tolist():
            assert found.finished[after] >= found.finished[message] + alone[after]
    assert (found.finished >= alone).all()
    assert found.clocks == found.finished.max()
    least, _ = least_clocks(network, demand)
    assert least <= found.clocks
    assert found.channel_flits.sum() == sum(
        int(demand.packets[m]) * network.settings.packet * len(hops(network.topology, network.routes, int(s), int(d)))
        for m, (s, d) in enumerate(zip(demand.source, demand.destination, strict=True))
    )


def test_an_incast_takes_as_long_as_the_link_of_its_one_receiver():
    _, demand, found = simulated("incast", 100 * PAYLOAD, "leaf_spine", leaves=4, spines=2, hosts_per_leaf=4)
    assert found.clocks == pytest.approx(int(demand.packets.sum()) * 128, rel=0.001)


def test_the_bound_of_a_ring_is_its_chain():
    size = 16 * 40 * PAYLOAD
    network, demand, ring = simulated("ring_all_reduce", size, "fat_tree_pods", {"kind": "fat_tree"}, ports=4)
    least, because = least_clocks(network, demand)
    assert because == "the longest chain of messages, each alone"
    assert least == pytest.approx(ring.clocks, rel=0.02)
    assert np.unique(demand.steps.step).size == 30


def test_the_command_says_bound_and_completion_time(tmp_path):
    words = ("simulate", "fattree-k4", "--pattern", "swing_all_reduce", "--message", 200000, "--results", tmp_path)
    code, text, _ = typed(*words)
    assert (code, "swing_all_reduce, 200,000 bytes" in text) == (0, True)
    assert "lower bound: " in text
    assert "completion time: " in text
    assert "128 messages in " in text
    (folder,) = tmp_path.iterdir()
    rows = (folder / "pairs.csv").read_text().splitlines()[1:]
    assert len(rows) == len({tuple(row.split(",")[:2]) for row in rows}) == 16 * 4
    assert sum(int(row.split(",")[2]) for row in rows) == 16 * 2 * (100000 + 50000 + 25000 + 12500)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["leafspine8x4", "--pattern", "ring_all_reduc"], 'Did you mean "ring_all_reduce"?'),
        (
            ["torus4x4", "--set", "topology.sizes=[3, 3]", "--pattern", "swing_all_reduce"],
            "needs a power of two",
        ),
        (["flat16", "--set", "topology.hosts=1", "--pattern", "incast"], "needs two hosts or more"),
        (["fattree-k4", "--pattern", "incast", "--message", "0"], "--message: should be from 1 to 2^40 bytes"),
    ],
)
def test_what_is_wrong_with_a_collective_is_a_sentence(words, sentence):
    with pytest.raises(InputError, match=re.escape(sentence)), naming_options():
        typed("simulate", *words)
