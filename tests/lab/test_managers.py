"""The topology that a segment manager collects, and two managers one of which takes over when the other dies."""

from __future__ import annotations

import re
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from testbed.base.errors import LabError
from testbed.base.messages import ControllerStatus, LoadRequest, Process
from testbed.engines.lab.build_order import BuildOrder
from testbed.engines.lab.control import build
from testbed.engines.lab.control.build import build_lab
from testbed.engines.lab.control.client import LabClient
from testbed.engines.ovs.check_tables import expected_rules
from testbed.experiments.run.checks.fidelity import Verdict
from testbed.experiments.run.engines import run_scenario
from testbed.planning import Plan
from testbed.planning.failover.failed_elements import failed_elements
from testbed.results import load_run
from testbed.results.samples import load_failures
from tests.moments import seconds

from .conftest import execute, plan_of, sharing
from .test_controller import _COUNT, _PACKETS, _SEND
from .test_failures import check, happens, installed, until

_LAB = "lab: {dilation: 1, datapath: userspace, switch_daemons: 2, controller: segment_manager, managers: %d}\n"
_TORUS = f"topology: {{kind: torus, sizes: [4, 4]}}\n{_LAB}"
# A host says that it is a port of a switch.
_FORGE = """
import socket
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
s.bind(("eth0", 0))
chassis, port = b"\\x07dpid:0000000000000009", b"\\x03\\x00\\x00\\x00\\x02"
tlvs = b"".join(bytes([2 * kind, len(said)]) + said for kind, said in ((1, chassis), (2, port), (3, b"\\x00\\x04")))
for _ in range(20):
    s.send(bytes.fromhex("0180c200000e" "020000000001" "88cc") + tlvs + bytes(30))
"""
# 15 hosts that do this send a host some thirty times what its link takes.
_FLOOD = """
import socket, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
end = time.monotonic() + 14
while time.monotonic() < end:
    s.sendto(bytes(1400), ("10.0.0.16", 5555))
    time.sleep(0.005)
"""


@pytest.fixture(scope="module")
def two() -> Iterator[tuple[Plan, LabClient]]:
    plan = plan_of(_TORUS % 2)
    with build_lab(plan) as lab:
        yield plan, lab


def roles(lab: LabClient) -> list[str]:
    """What each connection of the switches of the first daemon is."""
    listed = execute(lab, "ovs-vsctl", "--bare", "--columns=role", "list", "controller")
    return sorted(listed.split())


def both_follow(lab: LabClient) -> None:
    end = time.monotonic() + 20
    while roles(lab) != ["master"] * 8 + ["slave"] * 8:
        assert time.monotonic() < end, roles(lab)
        time.sleep(0.2)


def kill_manager(lab: LabClient, after: float) -> tuple[threading.Thread, list[tuple[float, ControllerStatus]]]:
    """Kill the master some time from now; when that was, and what its successor says of itself then."""
    seen: list[tuple[float, ControllerStatus]] = []

    def disturb() -> None:
        with lab.second_connection() as other:
            time.sleep(after)
            killed = time.monotonic()
            other.stop_controller()
            seen.append((killed, other.wait_for_controller()))

    thread = threading.Thread(target=disturb)
    thread.start()
    return thread, seen


@pytest.mark.long
@sharing("managers")
def test_what_is_collected_agrees_and_is_not_forwarded(two):
    plan, lab = two
    told = lab.controller()
    assert told.wiring == ()
    assert len(told.links) == plan.topology.link_count == 32
    assert installed(lab) == expected_rules(plan)
    before, count = lab.frames(), heard(lab)
    time.sleep(4)
    after = lab.frames()
    assert heard(lab) - count > 3 * 64
    assert (after.arrived, after.to_hosts, after.admitted) == (before.arrived, before.to_hosts, before.admitted)
    assert after.lost == before.lost
    execute(lab, sys.executable, "-c", _FORGE, host="h1")
    time.sleep(1)
    assert lab.frames().to_hosts == before.to_hosts
    assert lab.controller().wiring == ()


def heard(lab: LabClient) -> int:
    """LLDP frames that the switches of one daemon have handed over."""
    found = 0
    for number in range(1, 17):
        flows = execute(lab, "ovs-ofctl", "-O", "OpenFlow13", "dump-flows", f"s{number}", "table=0")
        found += int(re.findall(r"n_packets=(\d+).*CONTROLLER", flows)[0])
    return found


@sharing("managers")
def test_switches_obey_one_of_two(two):
    _, lab = two
    both_follow(lab)
    assert lab.controller().role == "master"


@pytest.mark.long
@sharing("managers")
@pytest.mark.quiet(seat=1)
def test_the_next_takes_over_under_traffic_and_loses_no_frame(two):
    plan, lab = two
    both_follow(lab)
    first, began = lab.controller().manager, time.monotonic()
    disturbing, seen = kill_manager(lab, 2)
    processes = (
        Process("count", "h16", (sys.executable, "-c", _COUNT), server_port=5555),
        Process("send", "h1", (sys.executable, "-c", _SEND)),
    )
    outputs = lab.run_load(LoadRequest(processes, limit=40)).outputs
    disturbing.join()
    ((killed, told),) = seen
    assert int(outputs["count"].stdout) == _PACKETS
    assert told.manager != first
    assert told.master_since is not None
    assert 0 < told.master_since - killed < 1
    assert told.in_step == 16
    assert [state.changed for state in told.switches.values()] == [0] * 16
    assert installed(lab) == expected_rules(plan)
    flows = execute(lab, "ovs-ofctl", "-O", "OpenFlow13", "dump-flows", "s1")
    assert min(float(age) for age in re.findall(r"duration=([\d.]+)s", flows)) > time.monotonic() - began
    # The one that comes back stands by.
    lab.start_controller()
    both_follow(lab)
    time.sleep(3)
    assert lab.controller().manager == told.manager
    both_follow(lab)


@pytest.mark.long
@pytest.mark.quiet(seat=1)
def test_the_successor_of_a_killed_manager_overcomes_deaths(tmp_path, untouched):
    events = "{at: 1 s, kill: manager}, at 2s: down s6-s7, at 4s: up s6-s7, at 5s: start manager"
    plan = plan_of(_TORUS % 2 + f"workloads:\n- {{kind: probe, seconds: 6, pairs: 2, failures: [{events}]}}\n")
    outcome = run_scenario(plan, tmp_path, lambda text: None)
    assert outcome.verdict is not Verdict.FAIL, outcome.reasons
    killed, died, rose, started = load_failures(outcome.folder, "1")[0]["events"]
    assert 0 < seconds(killed, "manager_takeover")[0] < 1
    assert killed["frames_lost"] == rose["frames_lost"] == started["frames_lost"] == 0
    noticed, recovered = seconds(died, "detection", "recovery")
    assert 0 < noticed < recovered < 2
    assert died["manager_takeover"] is None
    told = [sample for sample in load_run(outcome.folder).samples if sample.metric == "manager_takeover"]
    assert [(one.labels["event"], one.value) for one in told] == [("at 1 s: kill manager", killed["manager_takeover"])]
    assert "next manager after" in (outcome.folder / "report.html").read_text()


@sharing("managers")
@pytest.mark.parametrize("after", [False, True], ids=["while nobody steers", "after the next has taken over"])
def test_a_link_that_dies_then_is_overcome(two, after):
    plan, lab = two
    both_follow(lab)
    link = int(np.flatnonzero((plan.topology.links == [5, 6]).all(axis=1))[0])
    lab.stop_controller()
    if after:
        lab.wait_for_controller()
        happens(plan, lab, "down s6-s7")
    else:
        execute(lab, "ip", "link", "set", f"s6-eth{plan.topology.out_port[2 * link]}", "down")
        until(lab, lambda told: told.phase == "steady, damaged")
    assert lab.controller().down == ("link s6–s7",)
    check(plan, lab, failed_elements(plan.topology, [link]))
    lab.start_controller()
    happens(plan, lab, "up s6-s7")
    assert installed(lab) == expected_rules(plan)
    both_follow(lab)


@pytest.mark.long
@sharing("managers")
def test_a_lab_whose_managers_have_all_died_says_so_and_goes_on(two):
    plan, lab = two
    lab.stop_controller()
    lab.stop_controller()
    with pytest.raises(LabError, match="the controller segment_manager was stopped; start it first"):
        lab.controller()
    assert installed(lab) == expected_rules(plan)
    assert lab.reach() == []
    lab.start_controller()
    assert [state.changed for state in lab.wait_for_controller().switches.values()] == [0] * 16
    both_follow(lab)


@sharing("managers")
def test_a_link_dead_in_one_direction_is_found_by_lldp(two):
    plan, lab = two
    link = int(np.flatnonzero((plan.topology.links == [5, 6]).all(axis=1))[0])
    port = f"s6-eth{plan.topology.out_port[2 * link]}"
    shown = execute(lab, "tc", "qdisc", "show", "dev", port)
    kind, limit = re.findall(r"qdisc (pfifo\w*) 10: .*limit (\d+)p", shown)[0]
    change = ("tc", "qdisc", "replace", "dev", port, "parent", "1:1", "handle", "10:", kind, "limit")
    execute(lab, *change, "0")  # it sends nothing, and nobody is told
    try:
        told = until(lab, lambda told: bool(told.down) and told.phase == "steady, damaged")
        assert told.down == ("link s6–s7",)
        (sentence,) = told.wiring
        assert sentence.startswith("s7-eth")
        assert sentence.endswith(f"hears nothing of {port}, which hears it")
        check(plan, lab, failed_elements(plan.topology, [link]))
    finally:
        execute(lab, *change, limit)
    until(lab, lambda told: told.phase == "steady" and not told.down)
    assert installed(lab) == expected_rules(plan)


@pytest.mark.long
def test_two_swapped_cables_are_named_and_get_no_tables(monkeypatch):
    plan, swapped = plan_of(_TORUS % 1), (3, 20)
    original = build.build_order

    def wrongly(*given: Any, **more: Any) -> BuildOrder:
        order = original(*given, **more)
        links = list(order.links)
        one, other = (links[link] for link in swapped)
        links[swapped[0]] = replace(one, switch_b=other.switch_b, port_b=other.port_b)
        links[swapped[1]] = replace(other, switch_b=one.switch_b, port_b=one.port_b)
        return replace(order, links=tuple(links))

    monkeypatch.setattr(build, "build_order", wrongly)
    with build_lab(plan) as lab:
        told = until(lab, lambda told: told.phase == "steady, damaged")
        names = [plan.topology.channel_name(2 * link).replace("→", "–") for link in swapped]
        assert told.down == tuple(f"link {name}" for name in names)
        assert len(told.wiring) == 2
        ports = [f"s{plan.topology.channel_source[c] + 1}-eth{plan.topology.out_port[c]}" for c in (6, 7, 40, 41)]
        for here, there, planned in ((0, 3, 1), (2, 1, 3)):
            (sentence,) = (one for one in told.wiring if ports[here] in one.partition(";")[0])
            assert ports[there] in sentence.partition(";")[0]
            assert f"{ports[here]} leads to {ports[planned]}" in sentence
        assert len(told.links) == plan.topology.link_count, told.wiring
        check(plan, lab, failed_elements(plan.topology, swapped))


@pytest.mark.long
def test_queues_that_are_full_are_no_deaf_links():
    """They lose LLDP frames, too: four rounds in a row, at times."""
    plan = plan_of((_TORUS % 1).replace("dilation: 1,", "dilation: 1000,"))
    with build_lab(plan) as lab:
        flood = (sys.executable, "-c", _FLOOD)
        lab.run_load(LoadRequest(tuple(Process(f"p{h}", f"h{h}", flood) for h in range(1, 16)), limit=40))
        assert sum(lab.read_links().drops) > 1000
        told = lab.controller()
        assert (told.phase, told.events, told.wiring) == ("steady", (), ())
