"""What the live page shows, without a lab or a browser: use from counters, the fabric, paths, a finished run."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import pytest

from testbed.base.errors import InputError
from testbed.base.messages import LinkReadings
from testbed.engines.ovs.check_paths import follow_frame
from testbed.experiments.run.checks.telemetry_samples import read_record
from testbed.planning import make_plan
from testbed.results import ResultFolder
from testbed.results.telemetry import telemetry_to_bytes
from testbed.scenario import parse_scenario
from testbed.ui.live.fabric_layout import picture
from testbed.ui.live.link_use import Meter
from testbed.ui.live.pair_paths import PairPaths
from testbed.ui.live.replay import RunSource
from tests.fabrics import plan_of
from tests.runs import head
from tests.unit.experiments.test_telemetry import START, record
from tests.unit.ui.test_live_page import dumped

MANAGED = "topology: {kind: torus, sizes: [4, 4]}\nlab: {controller: segment_manager}"


# ------------------------------------------------------------------------------------------------------------ readings


def readings(at: float, size: int, frames: int, **more) -> LinkReadings:
    """One link and two hosts; everything has carried as much."""
    ports = {"rates": (1e6,) * 4, "waiting": (3, 0, 0, 0), "drops": (0, 5 * frames, 0, 0), **more}
    return LinkReadings(at, 10.0, (size,) * 6, (frames,) * 6, **ports)


def test_use_is_of_the_wire_and_of_the_rate():
    meter = Meter()
    assert meter.update(readings(10.0, 0, 0)) is None
    # 100 frames of 1226 bytes with 24 on the wire each, in 2 s: 0.5 Mbit/s.
    found = meter.update(readings(12.0, 122_600, 100, rates=(1e6, 5e5, 2e6, 1e6)))
    assert found == {
        "seconds": 2.0, "use": [500, 1000, 250, 500, 250, 500], "waiting": [3, 0, 0, 0], "lost": [0, 500, 0, 0],
    }  # fmt: skip
    assert meter.update(readings(12.0, 122_600, 100)) is None


def test_pauses_and_deadlocks_are_told_by_channel():
    meter = Meter()
    meter.update(readings(0.0, 0, 0, paused=(0.0,) * 6))
    # Two channels: virtual channel 3 is the second one's, on the layer above.
    found = meter.update(readings(1.0, 0, 0, paused=(0.25, 2.0, 0.0, 0.0, 0.0, -0.1), deadlock=(0, 3)))
    assert found is not None
    assert found["paused"] == [250, 1000, 0, 0, 0, 0]
    assert found["deadlock"] == [0, 1]


def test_a_picture_has_what_commands_call_things():
    plan = plan_of("mesh", sizes=[3, 2])
    found = picture(plan)
    assert [one["name"] for one in found["links"]][:2] == [
        plan.wiring.channel_name(channel).replace("→", "-") for channel in (0, 2)
    ]
    assert len(found["lines"]) == 2 * plan.wiring.link_count
    assert found["hosts"][0]["ip"] == "10.0.0.1"
    vlans = plan.vlans.vlan_ids.tolist()
    assert found["hosts"][0]["vlan"] in vlans
    assert {vlan for link in found["links"] for vlan in link["vlans"]} == set(vlans)
    for part in (found["switches"], found["hosts"]):
        for one in part:
            assert 0 <= one["at"][0] <= found["width"]
            assert 0 <= one["at"][1] <= found["height"]
    json.dumps(found)


def test_a_fabric_that_is_too_large_is_refused():
    with pytest.raises(InputError, match="has 441 switches, and the page draws up to 400"):
        picture(plan_of("mesh", sizes=[21, 21]))


# --------------------------------------------------------------------------------------------------------------- paths


def test_a_way_by_the_rules_is_the_plans_path_and_says_the_tags():
    plan = plan_of("torus", sizes=[4, 4])
    way = follow_frame(plan, dumped(plan), None, 0, 10)
    told = PairPaths(plan).describe(way, 0, 10)
    assert told["planned"]
    assert told["arrives"]
    assert {hop["vlan"] for hop in told["hops"]} == {int(plan.vlans.vlan_ids[plan.vlans.pvid[0]])}
    assert [hop["channels"] for hop in told["hops"]] == PairPaths(plan).planned_channels(0, 10)
    assert told["backups"] == []


def test_a_way_that_leaves_the_plan_is_seen():
    plan = plan_of("torus", sizes=[4, 4])
    rules = dumped(plan)
    rules["s1"] = []
    told = PairPaths(plan).describe(follow_frame(plan, rules, None, 0, 10), 0, 10)
    assert (told["planned"], told["arrives"], told["hops"]) == (False, False, [])


def test_backup_vlans_are_told_and_the_farthest_first():
    plan = make_plan(parse_scenario(MANAGED, "managed.yaml"))
    told = PairPaths(plan).describe(None, 0, 10)
    assert len(told["backups"]) > 1
    shared = [one["shared"] for one in told["backups"]]
    assert shared == sorted(shared)
    topology = plan.topology
    for backup in told["backups"]:
        channels = [channel for (channel,) in backup["channels"]]
        assert topology.channel_source[channels[0]] == topology.host_switch[0]
        assert topology.channel_target[channels[-1]] == topology.host_switch[10]
        assert all(topology.channel_target[one] == topology.channel_source[other] for one, other in pairwise(channels))
        assert backup["vlan"] not in plan.vlans.vlan_ids


# ------------------------------------------------------------------------------------------------------- a finished run


@pytest.fixture
def finished(tmp_path) -> Path:
    """A ring of three whose ports have sent 1 000 (port + 1) bytes and a frame each quarter of a second."""
    plan = plan_of("ring", switches=3)
    folder = ResultFolder(tmp_path, plan)
    folder.write_plan({})
    folder.write_samples([])
    load = head(1, "iperf3 udp neighbour")
    folder.write_manifest("pass", [], [{**load, "dilation": 10.0}], {"dilation": 10.0})
    part = read_record(plan.wiring, record(), START, (0.2, 1.0))
    folder.write_bytes("telemetry-1.npz", telemetry_to_bytes(part))
    return folder.finish()


def test_a_finished_run_is_played_reading_by_reading(finished):
    run = RunSource(finished)
    (load,) = run.picture["replay"]
    assert load["title"] == "1: iperf3 udp neighbour"
    assert load["time"] == [0.025, 0.05, 0.075, 0.1, 0.125, 0.15]  # real-world seconds
    found = run.reading("0", "2")
    # Channels are the ports 3 to 8, those to hosts 0 to 2; 24 bytes more a frame; of 5 Mbit/s.
    sent = [1000 * (port + 1) + 24 for port in (3, 4, 5, 6, 7, 8, 0, 1, 2)]
    assert found["use"] == [*(round(8 * size / 0.25 / 5e6 * 1000) for size in sent), 0, 0, 0]
    assert found["waiting"] == [7] * 9
    assert found["lost"] == [2] * 9
    series = run.series("0", 4)
    assert series["use"] == [round(8 * 8024 / 0.25 / 5e6 * 1000)] * 6
    assert series["waiting"] == [7] * 6
    assert run.series("0", 9)["waiting"] == []
    assert run.host("0", 1) == {"sent": [3, 4, 5], "received": [1, 4, 7], "why_not": ""}
    assert run.trace_path(0, 2)["hops"] == [{"channels": one} for one in PairPaths(run.plan).planned_channels(0, 2)]
    json.dumps(run.picture)


@pytest.mark.parametrize(("load", "number"), [("1", "0"), ("0", "6"), ("0", "-1"), ("", "0"), ("0", "²")])
def test_readings_that_are_not_there_get_a_sentence(finished, load, number):
    with pytest.raises(InputError, match="should be a number from 0 to"):
        RunSource(finished).reading(load, number)


def test_a_run_without_telemetry_says_what_records_it(finished):
    (finished / "telemetry-1.npz").unlink()
    with pytest.raises(InputError, match=r"has no telemetry to be shown; loads of iperf3 and MPI on ovs"):
        RunSource(finished)


def test_telemetry_of_another_fabric_is_refused(finished, tmp_path):
    plan = plan_of("ring", switches=4)
    folder = ResultFolder(tmp_path, plan)
    folder.write_plan({})
    folder.write_samples([])
    folder.write_manifest("pass", [], [head()], {"dilation": 10.0})
    folder.write_bytes("telemetry-1.npz", (finished / "telemetry-1.npz").read_bytes())
    with pytest.raises(InputError, match=r"telemetry-1.npz: is of another fabric than plan.json"):
        RunSource(folder.finish())
