"""Schedules in the simulator: a message begins when what it waits for has arrived."""

from __future__ import annotations

import json

import pytest

from testbed.base.errors import InputError, naming_options
from testbed.engines.simulate.flit_network import Network
from testbed.engines.simulate.flit_settings import Settings
from testbed.engines.simulate.replay import Demand, replay
from testbed.fabric.schedules import make_messages
from testbed.scenario.schedule_files.formats import read_schedule
from testbed.ui.cli import simulate_commands  # noqa: F401 - it adds its command
from tests.fabrics import plan_of
from tests.unit.scenario.test_schedule_files import binomial_reduce
from tests.unit.ui.test_verify_command import typed

PAYLOAD = 1448


def test_a_chain_of_messages_takes_the_sum_of_its_links(tmp_path):
    packets, ranks = 20, 4
    lines = [f"num_ranks {ranks}"]
    for rank in range(ranks):
        lines.append(f"rank {rank} {{")
        lines += [f"r: recv {packets * PAYLOAD}b from {rank - 1}"] if rank else []
        lines += [f"s: send {packets * PAYLOAD}b to {rank + 1}"] if rank < ranks - 1 else []
        lines += ["s requires r"] if 0 < rank < ranks - 1 else []
        lines.append("}")
    (tmp_path / "x.goal").write_text("\n".join(lines))
    plan = plan_of("ring", switches=4)
    network = Network.from_routes(plan.topology, plan.routes, Settings(), 1)
    found = replay(network, Demand.from_steps(make_messages(read_schedule(tmp_path / "x.goal")), PAYLOAD))
    alone = packets * Settings().packet + 2 * Settings().header
    assert found.clocks == pytest.approx((ranks - 1) * alone, rel=0.01)
    assert found.clocks >= (ranks - 1) * alone
    assert sorted(found.finished.tolist()) == found.finished.tolist()


def test_simulate_replays_a_schedule_and_tells_the_model(tmp_path):
    (tmp_path / "x.goal").write_text(binomial_reduce(8, 1024))
    model = "L=2500,o=1500,g=1000,G=6,S=65535"
    command = ("simulate", "ring8", "--schedule", str(tmp_path / "x.goal"), "--loggops", model)
    code, out, said = typed(*command, "--results", str(tmp_path), "--json")
    assert code == 0, said
    found = json.loads(out)
    assert found["loggops_ns"] == [34914, 1500, 13138, 1500, 24776, 1500, 13138, 1500]
    assert (found["packets"], found["bytes"]) == (7, 7 * 1024)


def test_a_schedule_that_does_not_fit_has_a_sentence(tmp_path):
    (tmp_path / "x.goal").write_text(binomial_reduce(64, 1024))
    with (
        naming_options(),
        pytest.raises(InputError, match="has 64 ranks and this fabric 16 hosts; take one with 64 or"),
    ):
        typed("simulate", "ring8", "--schedule", str(tmp_path / "x.goal"), "--results", str(tmp_path))
    with naming_options(), pytest.raises(InputError, match="--loggops: says what messages of a --schedule cost"):
        typed("simulate", "ring8", "--loggops", "L=1", "--matrix", "x.csv")
    with naming_options(), pytest.raises(InputError, match="give one of them"):
        typed("simulate", "ring8", "--schedule", "x.goal", "--matrix", "x.csv")
