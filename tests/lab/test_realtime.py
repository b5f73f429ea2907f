"""Real hosts on modelled switches: the counters of Open vSwitch, pauses, and a deadlock of a real MPI job."""

from __future__ import annotations

import json
import os
import re
import signal
import sys
import threading
import time
from contextlib import suppress
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from testbed.base.errors import LabError, WorkloadError
from testbed.base.messages import Disturbance, Flow, LinkChange, LoadRequest, Process, Tap
from testbed.base.model import host_mac
from testbed.experiments.regulate.choose_links import plan_without
from testbed.experiments.regulate.plan_changes import PlanMover, pair_opposite_hosts
from testbed.experiments.regulate.run import regulate
from testbed.experiments.run.checks.fidelity import Verdict
from testbed.experiments.run.checks.storm import run_storm, storm_plan
from testbed.experiments.run.engines import run_scenario
from testbed.experiments.run.loads.context import Context
from testbed.experiments.run.open_vswitch import OpenVSwitchEngine
from testbed.experiments.run.realtime import RealtimeEngine
from testbed.fabric.power import POWER_MODELS
from testbed.fabric.routing.paths import path
from testbed.planning import make_plan
from testbed.scenario import parse_scenario

from .leftovers import processes_of

pytestmark = pytest.mark.lab

# One frame to each other host, each of another size, and a broadcast.
_SENDER = """
import json, socket, sys
source, others = sys.argv[1], json.loads(sys.argv[2])
door = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
door.bind(("eth0", 0))
for number, mac in enumerate(others):
    head = bytes.fromhex(mac.replace(":", "") + source.replace(":", "")) + bytes.fromhex("88b5")
    door.send(head.ljust(60 + 7 * number, b"x"))
"""

FABRICS = {
    "torus, fixed": "topology: {kind: torus, sizes: [3, 3]}",
    "mesh, all entries": "topology: {kind: mesh, sizes: [3, 2]}\nassignment: {kind: fixed, entries: all}",
    "mesh, learning": "topology: {kind: mesh, sizes: [3, 2]}\nassignment: {kind: fixed, registration: learning}",
    "torus, renamed": "topology: {kind: torus, sizes: [4, 2]}\nassignment: {kind: renamed}",
    "mesh, static": "topology: {kind: mesh, sizes: [3, 2], hosts_per_switch: 2}\nassignment: {kind: static}",
    "torus, layers": (
        "topology: {kind: torus, sizes: [3, 3]}\nrouting: {kind: dl, layers: 2}\nassignment: {kind: openflow}"
    ),
    "fat tree": "topology: {kind: fat_tree, up: 2, down: 2, rounds: 2}",
    "parallel links": "topology: {kind: mesh, sizes: [3], parallel_links: 2}",
    "a dead link": "topology: {kind: torus, sizes: [3, 3]}\nfaults: {links: [[s1, s2]]}\nrouting: {kind: updown}",
    "a dead link, renamed": (
        "topology: {kind: torus, sizes: [3, 3]}\nfaults: {links: [[s1, s2]]}\nrouting: {kind: updown}\n"
        "assignment: {kind: renamed}"
    ),
    "bundles": "topology: {kind: mesh, sizes: [3, 2], parallel_links: 3}\nlinks: {aggregate: true}",
    "bundles, learning": (
        "topology: {kind: torus, sizes: [3, 2], parallel_links: 3}\nlinks: {aggregate: true}\n"
        "assignment: {kind: fixed, registration: learning}"
    ),
    "bundles, layers": (
        "topology: {kind: hyperx, sizes: [3, 3], parallel_links: 2}\nrouting: {kind: dl}\nlinks: {aggregate: true}"
    ),
    "bundles, a dead member": (
        "topology: {kind: complete, switches: 4, parallel_links: 3}\nlinks: {aggregate: true}\n"
        "assignment: {kind: renamed}\nfaults: {links: [[s1, s2, 0], [s1, s3, 0], [s1, s3, 1]]}"
    ),
}


def _plan(text, engine="realtime", dilation=50):
    # On the fast path Linux keeps a frame's tag beside it and does not count its bytes.
    path = ", fast_path: off" if engine == "ovs" else ""
    return make_plan(parse_scenario(f"{text}\nengine: {engine}\nlab: {{dilation: {dilation}{path}}}", "test"))


def _counted(plan, running):
    """Frames and bytes of each channel for what each host sends, in turn; and frames to each host of all."""
    hosts, found, before = range(plan.topology.host_count), [], running.frames().to_hosts
    arrived, old = _settled(running)
    for source in hosts:
        others = [host_mac(host) for host in hosts if host != source] + ["ff:ff:ff:ff:ff:ff"]
        argv = (sys.executable, "-c", _SENDER, host_mac(source), json.dumps(others))
        seen = running.run_load(LoadRequest((Process("send", plan.topology.host_name(source), argv),), 60.0))
        assert seen.outputs["send"].code == 0, seen.outputs["send"].stderr
        wanted = arrived + 2 * (len(hosts) - 1)  # each other host gets a frame and the broadcast
        arrived, new = _settled(running, wanted)
        assert arrived == wanted
        found.append([(b.frames - a.frames, b.bytes - a.bytes) for a, b in zip(old, new, strict=True)])
        old = new
    return [*found, [new - old for old, new in zip(before, running.frames().to_hosts, strict=True)]]


def _settled(running, wanted=0):
    """Frames that hosts have received, and the channels' counters, when so many have come and no more do.

    Frames wait for whoever forwards them, a daemon or the model, which on a busy machine has its own time: what is
    counted too early would count for the next sender.
    """
    argv = ("cat", *(f"/proc/{pid}/net/dev" for pid in running.facts.holders.values()))
    until, still, last = time.monotonic() + 60, 0.0, None
    while True:
        seen = running.run_load(LoadRequest((Process("count", None, argv),), 60.0))
        lines = seen.outputs["count"].stdout.splitlines()
        eth0 = [line.split(":")[1].split() for line in lines if line.strip().startswith("eth0:")]
        assert len(eth0) == len(running.facts.holders)
        counts = sum(int(figures[1]) for figures in eth0), seen.after.channels
        now = time.monotonic()
        if counts != last:
            still, last = now, counts
        if now > until or (counts[0] >= wanted and now - still > 0.2):
            return counts


@pytest.mark.long
@pytest.mark.parametrize("name", FABRICS)
def test_the_same_frames_cross_the_same_links_as_on_open_vswitch(name, untouched):
    counted = []
    for name_of, engine in (("ovs", OpenVSwitchEngine()), ("realtime", RealtimeEngine())):
        plan = _plan(FABRICS[name], name_of)
        with engine.build(plan, lambda text: None) as running:
            assert running.verify(plan) == []
            counted.append(_counted(plan, running))
    assert counted[1] == counted[0]


RING = """
topology: {kind: ring, switches: 5, hosts_per_switch: 2}
simulator: {flow_control: pause, buffer: 20000}
lab: {dilation: 40}
engine: realtime
workloads: [{kind: mpi, job: collectives}]
"""


@pytest.mark.long
def test_an_mpi_job_deadlocks_and_ends_on_a_proved_routing(tmp_path, untouched):
    # Minimal routing on a ring: the cycle of the witness closes, and the job does not go on.
    plan = make_plan(parse_scenario(f"{RING}\nrouting: {{kind: dor, ring: shortest}}\nexpect: deadlock", "minimal"))
    outcome = run_scenario(plan, tmp_path, lambda text: None)
    (reason,) = [why for why in outcome.reasons if why.startswith("mpi collectives: the declared deadlock formed: ")]
    cycle = reason.removeprefix("mpi collectives: the declared deadlock formed: ").split(";")[0].split(" waits for ")
    # Each waits for the next, as the routing's paths do: the verifier's witness, or the same the other way round.
    assert set(pairwise(cycle)) <= _dependencies(plan)
    (violation,) = plan.violations
    assert len(cycle) - 1 == len(set(violation.witness))
    assert outcome.verdict is not Verdict.FAIL  # since the scenario says so
    # The same job, switches and memory on a routing that is proved.
    plan = make_plan(parse_scenario(f"{RING}\nrouting: {{kind: dor, ring: no_transit}}", "proved"))
    outcome = run_scenario(plan, tmp_path, lambda text: None)
    assert not [reason for reason in outcome.reasons if "deadlock" in reason]
    assert any(sample.labels.get("job") == "collectives" for sample in outcome.samples)


def _dependencies(plan):
    topology, hosts = plan.topology, range(plan.topology.host_count)
    paths = [path(topology, plan.routes, a, b) for a in hosts for b in hosts if a != b]
    named = [[topology.channel_name(channel) for channel in one] for one in paths]
    return {pair for names in named for pair in pairwise(names)}


_ASKED = ("-u", "-b", "1G", "-l", "1448", "-t", "3", "--json")
PAUSE = "topology: {kind: mesh, sizes: [3]}\nsimulator: {flow_control: pause}"


def test_hosts_feel_a_pause_and_nothing_is_lost(untouched):
    plan = _plan(PAUSE, dilation=100)
    with RealtimeEngine().build(plan, lambda text: None) as running:
        assert running.verify(plan) == []
        lost = running.frames().lost
        clients = [
            Process(f"c{host}", host, ("iperf3", "-c", "10.0.0.3", "-p", str(port), *_ASKED))
            for host, port in (("h1", 5200), ("h2", 5201))
        ]
        servers = [Process(f"s{port}", "h3", ("iperf3", "-s", "-1", "-p", str(port)), port) for port in (5200, 5201)]
        seen = running.run_load(LoadRequest((*servers, *clients), 60.0))
        assert running.frames().lost == lost
        sent = [json.loads(seen.outputs[f"c{host}"].stdout)["end"]["sum"] for host in ("h1", "h2")]
        assert [one["lost_packets"] for one in sent] == [0, 0]
        # Both go over the one link from s2 to s3, at 10 Mbit/s, and asked for 2 Gbit/s: they were made to wait, and
        # sent no more than fits there and into their sockets.
        assert sum(one["bits_per_second"] for one in sent) < 11e6
        assert running.model.live.pauses.sum() > 0


_BLASTER = """
import socket
door = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
while True:
    door.sendto(bytes(1400), ("10.0.0.3", 9))
"""


@pytest.mark.parametrize(
    ("watchdog", "through"), [("", False), ("\nsimulator: {flow_control: pause, watchdog: 10}", True)]
)
def test_a_pause_storm_stops_others_until_a_watchdog_ends_it(watchdog, through, untouched):
    # h3 pauses for ever. What h1 sends to it fills s3, s2, s1, and then h1 itself, so nothing goes to h2 either.
    text = "topology: {kind: mesh, sizes: [3]}" + (watchdog or "\nsimulator: {flow_control: pause}")
    with RealtimeEngine().build(_plan(text, dilation=20), lambda text: None) as running:
        running.disturb(Disturbance(up=False, pausing=(2,)))
        blaster = Process("blast", "h1", ("timeout", "4", sys.executable, "-c", _BLASTER))
        ping = Process("ping", "h1", ("sh", "-c", "sleep 1.5; ping -c 5 -i 0.2 -W 1 -q 10.0.0.2"))
        seen = running.run_load(LoadRequest((blaster, ping), 30.0))
        lost = re.search(r"([\d.]+)% packet loss", seen.outputs["ping"].stdout)
        assert lost
        assert (float(lost[1]) < 50) == through
        assert seen.deadlock == ()  # nobody waits for himself
        counted = running.frames().lost
        assert (counted.get("in queues that the watchdog shut", 0) > 0) == through
        running.disturb(Disturbance(up=True, pausing=(2,)))
        assert running.reach() == []


@pytest.mark.long
def test_a_model_that_was_stopped_says_so(tmp_path, untouched):
    # For 0.3 s of three nobody computes switches: frames come late, and the run is not to be believed.
    load = "{kind: iperf3, protocol: udp, seconds: 3, omit: 1, repeats: 1}"
    text = f"topology: {{kind: mesh, sizes: [2]}}\nworkloads: [{load}]"
    stopped = []

    def watch(line):
        if "16 flows" in line or "2 flows" in line:
            stopped.append(threading.Thread(target=_stop_models, args=(untouched, 2.5, 0.3)))
            stopped[0].start()

    outcome = run_scenario(_plan(text, dilation=20), tmp_path, watch)
    stopped[0].join()
    assert outcome.verdict.word == "invalid"
    assert any("nobody computed the switches for" in reason for reason in outcome.reasons)


def _stop_models(mark, after, seconds):
    time.sleep(after)
    mine = _models(mark)
    for sign in (signal.SIGSTOP, signal.SIGCONT):
        for pid in mine:
            with suppress(ProcessLookupError):  # a load that failed has ended its lab; the verdict tells of it
                os.kill(pid, sign)
        time.sleep(seconds)


def _models(mark):
    """Pids of the models of this test: others' labs run beside it."""
    return [pid for pid, command in processes_of(mark).items() if "testbed.engines.realtime.process" in command]


@pytest.mark.long
def test_two_labs_side_by_side_of_which_one_takes_long_frames(untouched):
    plan = _plan("topology: {kind: mesh, sizes: [2]}")
    long = _plan("topology: {kind: mesh, sizes: [2]}\nlinks: {mtu: 9000}\nsimulator: {flow_control: pause}")
    with (
        RealtimeEngine().build(plan, lambda text: None) as one,
        RealtimeEngine().build(long, lambda text: None) as other,
    ):
        assert one.verify(plan) == other.verify(long) == []

        # What fits a frame, and what does not.
        for running, fits in ((one, 1472), (other, 8972)):
            asked = ("ping", "-c", "1", "-M", "do", "-s")
            pings = [Process(str(size), "h1", (*asked, str(size), "10.0.0.2")) for size in (fits, fits + 1)]
            seen = running.run_load(LoadRequest(tuple(pings), 60.0))
            assert [one.code for one in seen.outputs.values()] == [0, 1]
        # A TCP's large segments are cut into full frames, memory is their bytes, and all arrive.
        lost = other.frames().lost
        server = Process("s", "h2", ("iperf3", "-s", "-1"), 5201)
        client = Process("c", "h1", ("iperf3", "-c", "10.0.0.2", "-t", "2", "--json"))
        seen = other.run_load(LoadRequest((server, client), 60.0))
        assert json.loads(seen.outputs["c"].stdout)["end"]["sum_sent"]["retransmits"] == 0
        before, after = seen.before.channels[0], seen.after.channels[0]
        assert (after.bytes - before.bytes) / (after.frames - before.frames) > 8000
        assert after.bytes - before.bytes > 0.9 * 2 * 20e6 / 8
        assert other.frames().lost == lost


@pytest.mark.long
def test_a_link_that_is_down_carries_nothing(untouched):
    plan = _plan("topology: {kind: mesh, sizes: [2]}")
    with RealtimeEngine().build(plan, lambda text: None) as running:
        running.disturb(Disturbance(up=False, channels=(0, 1)))
        assert running.reach() == [("h1", "h2"), ("h2", "h1")]
        assert [one.void for one in running.deviations(plan)] == [True]
        assert running.frames().lost["in the model: link down"] > 0
        running.disturb(Disturbance(up=True, channels=(0, 1)))
        assert running.verify(plan) == []


@pytest.mark.long
def test_a_link_changes_while_it_carries_frames(untouched):
    plan = _plan("topology: {kind: mesh, sizes: [2]}", dilation=10)
    with RealtimeEngine().build(plan, lambda text: None) as running:

        def ping(count):
            argv = ("ping", "-c", str(count), "-i", "0.01", "-q", "10.0.0.2")
            text = running.run_load(LoadRequest((Process("ping", "h1", argv),), 60.0)).outputs["ping"].stdout
            lost = re.search(r"([\d.]+)% packet loss", text)
            fastest = re.search(r"= ([\d.]+)/", text)
            assert lost, text
            return float(lost[1]), float(fastest[1]) if fastest else 0.0

        assert ping(20)[0] == 0
        usual = ping(20)[1]
        # Both ways, in laboratory time.
        running.disturb(Disturbance(up=True, links=(LinkChange(0, delay=0.002),)))
        lost, fastest = ping(20)
        assert lost == 0
        assert 40 < fastest < 40 + 2 * usual + 5
        assert [one.sentence for one in running.deviations(plan)] == [
            "s1-s2 was changed from outside the scenario and is not as planned: delay 2 ms"
        ]
        running.disturb(Disturbance(up=True, links=(LinkChange(0, delay=0, loss=0.3),)))
        assert 20 < ping(200)[0] < 80  # 51 % of echoes
        running.disturb(Disturbance(up=True, links=(LinkChange(0, reset=True),)))
        assert running.verify(plan) == []
        assert running.deviations(plan) == []


def test_a_wrong_entry_in_the_running_model_is_found(untouched):
    plan = _plan("topology: {kind: mesh, sizes: [2, 2]}")
    with RealtimeEngine().build(plan, lambda text: None) as running:
        table = running.model.live.tables.next_hop
        table[table >= 0] = table[table >= 0][::-1]
        assert "which is not the plan's path" in running.walk(plan)[0]


def test_the_death_of_the_model_is_one_sentence(untouched):
    plan = _plan("topology: {kind: mesh, sizes: [2]}")
    with RealtimeEngine().build(plan, lambda text: None) as running:
        (model,) = _models(untouched)
        os.kill(model, signal.SIGKILL)
        with pytest.raises(LabError, match="the process that computes the switches was killed by signal 9"):
            running.run_load(LoadRequest((Process("wait", "h1", ("sleep", "2")),), 10.0))


def test_flows_take_the_members_that_they_take_on_open_vswitch(untouched):
    text = "topology: {kind: mesh, sizes: [3], parallel_links: 4}\nlinks: {aggregate: true}"
    flows = [Flow(0, 2, ("tcp", "udp")[port % 2], 20000 + 7 * port, 5201 + port) for port in range(40)]
    taken = []
    for name_of, engine in (("ovs", OpenVSwitchEngine()), ("realtime", RealtimeEngine())):
        plan = _plan(text, name_of)
        with engine.build(plan, lambda text: None) as running:
            assert running.verify(plan) == []
            whole = running.taken_channels(plan, flows)
            # Of s1-s2 the first and the third link, whose flows go to the others.
            running.disturb(Disturbance(up=False, channels=(0, 1, 4, 5)))
            taken.append((whole, running.taken_channels(plan, flows)))
    assert taken[1] == taken[0]
    whole, fewer = taken[0]
    assert {there[0] for there, _ in whole} == {0, 2, 4, 6}
    assert {there[0] for there, _ in fewer} == {2, 6}


@pytest.mark.quiet(seat=1)
def test_members_carry_the_flows_that_the_hash_gives_them(tmp_path, untouched):
    text = "topology: {kind: mesh, sizes: [2], hosts_per_switch: 4, parallel_links: 2}\nlinks: {aggregate: true}\n"
    text += "workloads: [{kind: iperf3, protocol: udp, seconds: 2, omit: 1, repeats: 1, pattern: complement}]"
    outcome = run_scenario(_plan(text), tmp_path, lambda text: None)
    assert not [reason for reason in outcome.reasons if "by another" in reason]
    used = [(one.value, one.predicted) for one in outcome.samples if one.metric == "member_use"]
    assert len(used) == 4
    assert all(value == pytest.approx(predicted, abs=0.05) for value, predicted in used)


@pytest.mark.long
@pytest.mark.quiet(seat=1)
@pytest.mark.parametrize("control", ["none", "pause", "pfc"])
def test_members_of_a_bundle_are_paused_singly_and_lose_nothing(control, tmp_path, untouched):
    """Hosts offer twice what the members of a bundle carry: without flow control half of it is lost."""
    text = "topology: {kind: mesh, sizes: [2], hosts_per_switch: 4, parallel_links: 2}\nlinks: {aggregate: true}\n"
    text += f"simulator: {{flow_control: {control}}}\nworkloads: [{{kind: iperf3, protocol: udp, seconds: 2, omit: 1, "
    text += "repeats: 1, pattern: complement, offered_load: 2}]"
    outcome = run_scenario(_plan(text, dilation=200), tmp_path, lambda text: None)
    assert not [reason for reason in outcome.reasons if "by another" in reason]
    losses = [one.value for one in outcome.samples if one.metric == "loss"]
    if control == "none":
        assert max(losses) > 0.3
    else:
        assert losses == [0.0] * 8
    flows = [one for one in outcome.samples if one.metric == "goodput"]
    assert sum(one.value for one in flows) == pytest.approx(sum(one.predicted or 0 for one in flows), rel=0.05)
    used = [(one.value, one.predicted) for one in outcome.samples if one.metric == "member_use"]
    assert len(used) == 4
    assert all(value == pytest.approx(predicted, abs=0.05) for value, predicted in used)


@pytest.mark.long
def test_a_bundle_without_a_link_loses_what_it_should_carry(untouched):
    plan = _plan("topology: {kind: mesh, sizes: [2], parallel_links: 2}\nlinks: {aggregate: true}")
    with RealtimeEngine().build(plan, lambda text: None) as running:
        running.disturb(Disturbance(up=False, channels=(0, 1)))
        assert running.reach() == []
        running.disturb(Disturbance(up=False, channels=(2, 3)))
        assert running.reach() == [("h1", "h2"), ("h2", "h1")]
        assert running.frames().lost["in the model: link down"] > 0
        with pytest.raises(WorkloadError, match="every link of s1→s2 is down, so no flow goes by it"):
            running.taken_channels(plan, [Flow(0, 1, "udp", 1, 2)])


def test_a_capture_shows_tags_times_and_pauses(tmp_path, untouched):
    plan = _plan(f"{PAUSE}", dilation=20)
    with RealtimeEngine().build(plan, lambda text: None) as running:
        with running.capture(Tap(link=1)) as frames:
            argv = ("iperf3", "-c", "10.0.0.3", "-u", "-b", "2G", "-l", "1448", "-t", "1")
            others = ("iperf3", "-c", "10.0.0.3", "-p", "5202", "-u", "-b", "2G", "-l", "1448", "-t", "1")
            servers = [
                Process(f"s{port}", "h3", ("iperf3", "-s", "-1", "-p", str(port)), port) for port in (5201, 5202)
            ]
            running.run_load(LoadRequest((*servers, Process("a", "h1", argv), Process("b", "h2", others)), 60.0))
            seen = []
            while got := frames.read(0.1):
                seen += got
        outbound = [frame for frame in seen if frame.outbound and len(frame.data) > 1000]
        assert {frame.data[12:14] for frame in outbound} == {b"\x81\x00"}
        vlans = {int.from_bytes(frame.data[14:16], "big") & 0xFFF for frame in outbound}
        assert vlans <= set(plan.vlans.vlan_ids.tolist())
        # Full frames follow each other as a gigabit link lets them, in real-world time: 1494 bytes and 24 at 8 ns.
        gaps = [b.time - a.time for a, b in pairwise(outbound)]
        assert abs(sorted(gaps)[len(gaps) // 2] - 8 * (len(outbound[0].data) + 24)) <= 2
        with running.capture(Tap(host=1)) as frames:
            running.run_load(LoadRequest((*servers, Process("a", "h1", argv), Process("b", "h2", others)), 60.0))
            seen = []
            while got := frames.read(0.1):
                seen += got
        pauses = [frame for frame in seen if frame.data[12:14] == b"\x88\x08"]
        assert pauses
        assert not any(frame.outbound for frame in pauses)  # the switch stops the host
        assert {frame.data[14:16] for frame in pauses} == {b"\x00\x01"}


_RING = "topology: {kind: ring, switches: 4}\nrouting: {kind: north_last}"


def _without_first(plan):
    off = np.zeros(plan.topology.link_count, dtype=bool)
    off[0] = True
    return plan_without(plan, off)


@pytest.mark.long
@pytest.mark.quiet(seat=0)
def test_a_link_goes_off_and_on_under_traffic_without_losses(kept, untouched):
    plan = _plan(_RING)
    fewer = _without_first(plan)
    with RealtimeEngine().build(plan, lambda text: None) as running:
        mover = PlanMover(running, wake_up=0.3)

        def changes(other):
            gone = mover.move(other, "off", fewer, (0,))
            down = [(link, state.up) for link, state in other.link_states().items()]
            return [gone, down, mover.move(other, "on", plan, ())]

        watching = Context(plan, running, {"load": "1"}, kept.__setitem__, lambda text: None)
        (gone, down, back), losses, _ = mover.while_probing(watching, pair_opposite_hosts(4), 200, changes)
        assert [step.action for step in gone.steps] == ["add", "move", "drain", "remove", "links off"]
        assert [step.action for step in back.steps] == ["links on", "add", "move", "drain", "remove"]
        assert back.steps[0].seconds >= 0.3
        assert down == [(0, False)]
        assert (gone.problems, back.problems) == ((), ())
        assert [(loss.lost_count, loss.duplicates, loss.broken) for loss in losses] == [(0, 0, "")] * 4
        assert min(loss.sent for loss in losses) > 300
        assert running.deviations(plan) == []
        # What is not safe is refused, and nothing has changed.
        with pytest.raises(LabError, match=r"^the way to this plan is not safe: .* which is off"):
            mover.move(running, "off", plan, (0,))
        with pytest.raises(LabError, match="a plan for another topology"):
            mover.move(running, "off", _plan(_RING.replace("4", "5")), ())
        assert running.reach() == []


@pytest.mark.long
@pytest.mark.quiet(seat=0)
def test_a_regulated_model_is_a_run_like_any_other(tmp_path, untouched):
    load = "workloads: [{kind: iperf3, protocol: tcp, pattern: neighbour, omit: 1, seconds: 2, repeats: 1}]"
    text = (
        f"topology: {{kind: torus, sizes: [2, 2], parallel_links: 2}}\nlab: {{telemetry: true, dilation: 50}}\n{load}"
    )
    plan = make_plan(parse_scenario(f"{text}\nengine: realtime", "test"))
    found = regulate(plan, tmp_path, POWER_MODELS["SF-420"], 1, lambda text: None)
    assert len(found.choice.off_links) > 0
    assert found.power.after.sum() < found.power.before.sum()
    assert [change.name for change in found.changes] == ["links off", "links on"]
    assert not any(change.problems for change in found.changes)
    lost = [sample.value for sample in found.outcome.samples if sample.metric == "frames_lost"]
    assert lost
    assert not any(lost)


# 40 frames of each kind that a port refuses, at a pace that a tap holds; then garbage as fast as it goes.
_GARBAGE = """
import random, socket, sys, time
kinds, count = [bytes.fromhex(one) for one in sys.argv[1].split(",")], int(sys.argv[2])
door = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
door.bind(("eth0", 0))
for frame in kinds * 40:
    door.send(frame)
    time.sleep(0.002)
drawn = random.Random(1)
for number in range(count):
    frame = bytearray(drawn.randbytes(drawn.randrange(14, 1515)))
    if number % 3 == 0:
        frame[:6] = bytes.fromhex("020000000002")
    if number % 7 == 0:
        frame[12:16] = b"\\x81\\0" + drawn.randbytes(2)
    try:
        door.send(frame)
    except OSError:  # the host itself refuses it, such as one longer than its MTU
        pass
"""


@pytest.mark.long
def test_garbage_is_counted_by_its_reason_and_harms_nobody(untouched):
    plan = _plan("topology: {kind: mesh, sizes: [3]}\nsimulator: {flow_control: pause}", dilation=1)
    to, own = (host_mac(host).replace(":", "") for host in (1, 0))
    rest = "88b5" + 46 * "00"
    kinds = {
        "tagged frame at a host's port": [f"{to}{own}8100{vlan:04x}{rest}" for vlan in (0x065, 0x7D0, 0xFFF)],
        "reserved group address": [f"0180c200000e{own}{rest}"],
        "PAUSE from a host": [f"0180c2000001{own}88080001ffff{42 * '00'}"],
        # These are forwarded: foreign source, priority tag, another kind of tag; and flooded, since nobody knows them.
        "": [
            f"{to}020000000003{rest}", f"{to}{own}8100e000{rest}", f"{to}{own}88a80065{rest}",
            f"0200000000aa{own}{rest}", f"3c0000000001{own}{rest}",
        ],
    }  # fmt: skip
    with RealtimeEngine().build(plan, lambda text: None) as running:
        assert running.verify(plan) == []
        given = running.frames()
        every = ",".join(frame for frames in kinds.values() for frame in frames)
        argv = (sys.executable, "-c", _GARBAGE)
        seen = running.run_load(LoadRequest((Process("odd", "h1", (*argv, every, "0")),), 60.0))
        assert seen.outputs["odd"].code == 0, seen.outputs["odd"].stderr
        time.sleep(0.5)
        counted = running.frames()
        for why, frames in kinds.items():
            if why:
                assert counted.refused[why] - given.refused[why] == 40 * len(frames), why
            else:
                assert counted.to_hosts[1] - given.to_hosts[1] == 40 * len(frames)
        processes = [Process(host, host, (*argv, every, "33000")) for host in ("h1", "h2", "h3")]
        seen = running.run_load(LoadRequest(tuple(processes), 100.0))
        assert [one.code for one in seen.outputs.values()] == [0, 0, 0]
        # Nothing has died, and whoever sends what he should is served; what garbage taught switches is gone.
        assert running.verify(plan) == []
        assert sum(running.frames().refused.values()) > sum(counted.refused.values()) + 10_000


def test_a_host_that_dies_in_mid_flow_is_one_sentence(untouched):
    plan = _plan("topology: {kind: mesh, sizes: [2]}", dilation=20)
    with RealtimeEngine().build(plan, lambda text: None) as running:
        holder = _pid_outside(running, running.facts.holders["h2"])
        death = threading.Timer(1.0, os.kill, (holder, signal.SIGKILL))
        death.start()
        server = Process("s", "h2", ("iperf3", "-s", "-1"), 5201)
        client = Process("c", "h1", ("iperf3", "-c", "10.0.0.2", "-u", "-b", "10M", "-t", "20"))
        started = time.monotonic()
        with pytest.raises(
            LabError, match=r"^h2 died \(the process that keeps h2 was killed by signal 9\): no program can"
        ):
            running.run_load(LoadRequest((server, client), 60.0))
        death.join()
        assert time.monotonic() - started < 10
        with pytest.raises(LabError, match=r"^h2 died \(the process"):
            running.frames()


def _pid_outside(running, inside):
    """Pid here of a process that has another in its lab."""
    lab_of = Path(f"/proc/{running.namespaces.init}/ns/pid").readlink()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                text = (entry / "status").read_text()
                if (entry / "ns/pid").readlink() == lab_of and re.search(rf"^NSpid:.*\s{inside}$", text, re.MULTILINE):
                    return int(entry.name)
            except OSError:
                continue
    raise AssertionError(f"there is no process {inside}")


def test_a_broadcast_circulates_without_vlans(untouched):
    found = run_storm(storm_plan(4, 1.0, "1 Mbit/s", "realtime"), 1.0, lambda text: None)
    assert found.problems == []
    # A frame goes round each way, on one of four links at a time, and each switch gives its host a copy of both: those
    # ports are busy half of the time.
    assert found.without.frames[-1] > 1000
    assert 0.4 < found.load < 0.55
