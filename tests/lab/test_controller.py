"""A lab whose rules a controller installs and keeps: restarts, lost rules, other controllers, transitions."""

from __future__ import annotations

import json
import os
import re
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from testbed.base.errors import LabError
from testbed.base.messages import ControllerStatus, Disturbance, LoadRequest, PlanMove, Process
from testbed.base.model import Rule
from testbed.engines.lab.control.build import build_lab
from testbed.engines.lab.control.client import LabClient
from testbed.engines.ovs.check_paths import installed_problems, state_problems
from testbed.experiments.run.engines import run_scenario
from testbed.fabric.openflow.rule_text import parse_rule
from testbed.planning import Plan
from testbed.planning.rates import at_dilation
from testbed.planning.store import plan_to_json
from testbed.results import load_run
from tests.fabrics import plan_without

from .conftest import execute, plan_of, sharing

_TORUS = (
    "topology: {kind: torus, sizes: [4, 4]}\nrouting: {kind: north_last}\n"
    "lab: {dilation: 50, datapath: userspace, switch_daemons: 2, controller: switch_tagged}"
)
_OFF = [3, 8]
_PACKETS, _A_SECOND = 6000, 1000
# A datagram a millisecond, numbered; and how many different ones arrive until there are no more. What was sent late is
# not made up for: a burst would fill queues that no steady rate fills.
_SEND = f"""
import socket, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
due = time.monotonic()
for number in range({_PACKETS}):
    time.sleep(max(0, due - time.monotonic()))
    s.sendto(number.to_bytes(4, "big") + bytes(60), ("10.0.0.16", 5555))
    due = max(due + 1 / {_A_SECOND}, time.monotonic())
"""
# It may get no processor for a while and loses nothing by it. A TCP port tells that it is ready.
_COUNT = """
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.setsockopt(socket.SOL_SOCKET, 33, 8 << 20)  # SO_RCVBUFFORCE
s.bind(("", 5555))
ready = socket.create_server(("", 5555))
s.settimeout(3)
seen = set()
try:
    while True:
        seen.add(s.recv(100)[:4])
except TimeoutError:
    print(len(seen))
"""


@pytest.fixture(scope="module")
def controlled() -> Iterator[tuple[Plan, LabClient]]:
    plan = plan_of(_TORUS)
    with build_lab(plan) as lab:
        yield plan, lab


def installed(lab: LabClient) -> set[Rule]:
    dumped = lab.flows()
    return {parse_rule(number, line) for number, switch in enumerate(dumped) for line in dumped[switch]}


def until(holds: Callable[[], bool], seconds: float = 15) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.1)


def database(switch: str) -> str:
    return f"--db=unix:/run/lab/ovs/db{'-2' if int(switch[1:]) > 8 else ''}.sock"


def restart(lab: LabClient) -> Any:
    lab.stop_controller()
    lab.start_controller()
    return lab.wait_for_controller()


@sharing("controller")
def test_the_controllers_rules_are_the_compiled_ones(controlled):
    plan, lab = controlled
    assert lab.facts.controller == "switch_tagged"
    assert installed(lab) == set(plan.rules)
    assert installed_problems(plan, lab.flows()) == []
    assert lab.reach() == []
    status = lab.controller()
    assert status.in_step == 16
    assert status.plan == plan.digest
    assert sum(state.rules for state in status.switches.values()) == len(plan.rules)


@pytest.mark.long
@sharing("controller")
def test_a_restart_under_load_loses_no_frame_and_touches_no_rule(controlled):
    plan, lab = controlled
    before = time.monotonic()
    seen: list[ControllerStatus] = []

    def disturb() -> None:
        with lab.second_connection() as other:
            time.sleep(2)
            other.stop_controller()
            with pytest.raises(LabError, match="the controller switch_tagged was stopped; start it first"):
                other.controller()
            time.sleep(1)
            other.start_controller()
            seen.append(other.wait_for_controller())

    disturbing = threading.Thread(target=disturb)
    disturbing.start()
    processes = (
        Process("count", "h16", (sys.executable, "-c", _COUNT), server_port=5555),
        Process("send", "h1", (sys.executable, "-c", _SEND)),
    )
    outputs = lab.run_load(LoadRequest(processes, limit=40)).outputs
    disturbing.join()
    assert int(outputs["count"].stdout) == _PACKETS
    assert seen[0].in_step == 16
    assert [state.changed for state in seen[0].switches.values()] == [0] * 16
    assert installed(lab) == set(plan.rules)
    for switch in ("s1", "s9", "s16"):
        flows = execute(lab, "ovs-ofctl", "-O", "OpenFlow13", "dump-flows", switch)
        ages = [float(age) for age in re.findall(r"duration=([\d.]+)s", flows)]
        assert min(ages) > time.monotonic() - before
        assert set(re.findall(r"cookie=(\w+)", flows)) == {"0x0"}


@sharing("controller")
def test_a_bridge_that_lost_its_rules_is_refilled(controlled):
    plan, lab = controlled
    execute(lab, "ovs-ofctl", "-O", "OpenFlow13", "del-flows", "s6")
    until(lambda: installed(lab) == set(plan.rules))
    assert lab.wait_for_controller().switches["s6"].changed > 0


@sharing("controller")
def test_foreign_rules_of_a_reconnected_switch_are_removed(controlled):
    plan, lab = controlled
    lab.stop_controller()
    pvid = next(rule for rule in plan.rules if rule.switch == 0 and "push_vlan" in dict(rule.actions))
    for command, flow in (
        ("add-flow", "table=0,priority=1,actions=NORMAL"),
        ("add-flow", "table=3,priority=77,ip,nw_src=10.0.0.0/24,actions=drop"),
        ("add-flow", "table=1,priority=9,reg3=7,actions=learn(table=5,NXM_OF_ETH_DST[]=NXM_OF_ETH_SRC[])"),
        ("add-flow", f"table=0,priority={pvid.priority},in_port={pvid.match[0][1]},vlan_tci=0/0x1fff,actions=drop"),
    ):
        execute(lab, "ovs-ofctl", "-O", "OpenFlow13", command, "s1", flow)
    lab.start_controller()
    status = lab.wait_for_controller()
    assert installed(lab) == set(plan.rules)
    assert [state.changed for state in status.switches.values()] == [4, *[0] * 15]


@sharing("controller")
def test_a_switch_that_hangs_up_is_gone_and_back(controlled):
    plan, lab = controlled
    execute(lab, "ovs-vsctl", database("s3"), "del-controller", "s3")
    until(lambda: lab.controller().switches["s3"].state == "gone")
    execute(lab, "ovs-vsctl", database("s3"), "set-controller", "s3", "tcp:127.0.0.1:6653")
    # Open vSwitch itself removes all rules of a bridge that loses its last controller or gets its first.
    assert lab.wait_for_controller().switches["s3"].changed > 0
    assert installed(lab) == set(plan.rules)


@pytest.mark.long
@sharing("controller")
def test_of_two_controllers_the_later_one_is_obeyed(controlled):
    plan, lab = controlled
    two = ("tcp:127.0.0.1:6653", "tcp:127.0.0.1:6654")
    execute(lab, "ovs-vsctl", database("s1"), "set-controller", "s1", *two)
    # It takes seconds to come up, and is ended when the first one has noticed it.
    second = (
        f"timeout 60 {sys.executable} -m controllers switch_tagged --plan /run/lab/plan.json --dilation 50 "
        "--port 6654 --status-port 8081 & "
        "while [ ! -e /run/lab/noticed ] && kill -0 $!; do sleep 0.2; done; kill $!; wait"
    )
    problems: list[str] = []

    def noticed() -> bool:
        return "s1 obeys another controller" in problems or any("started later" in problem for problem in problems)

    def ask() -> None:
        with lab.second_connection() as other:
            end = time.monotonic() + 50
            try:
                while time.monotonic() < end and not noticed():
                    problems.append(other.controller().switches["s1"].problem)
                    time.sleep(0.2)
            finally:
                other.write("noticed", "")

    asking = threading.Thread(target=ask)
    asking.start()
    execute(lab, "sh", "-c", second, limit=90)
    asking.join()
    assert noticed(), problems
    assert installed(lab) == set(plan.rules)
    execute(lab, "ovs-vsctl", database("s1"), "set-controller", "s1", two[0])
    assert restart(lab).switches["s1"].changed == 0


@pytest.mark.long
@sharing("controller")
def test_a_switch_of_another_openflow_version_is_named(controlled):
    plan, lab = controlled

    def others_are_in_step() -> bool:
        with suppress(LabError):  # it may not answer yet
            status = lab.controller()
            return status.in_step == 15 and bool(status.refused)
        return False

    execute(lab, "ovs-vsctl", database("s2"), "set", "bridge", "s2", "protocols=OpenFlow10")
    try:
        lab.stop_controller()
        lab.start_controller()
        until(others_are_in_step, 60)
        with pytest.raises(LabError, match=r"s2 \(not seen\)\. Refused: a switch at 127.0.0.1 speaks OpenFlow 1.0 and"):
            lab.wait_for_controller(4)
    finally:
        execute(lab, "ovs-vsctl", database("s2"), "set", "bridge", "s2", "protocols=OpenFlow13,OpenFlow15")
    lab.wait_for_controller()
    assert installed(lab) == set(plan.rules)


def move(lab: LabClient, plan: Plan, off: list[int], pause: float = 0.0) -> PlanMove:
    return lab.move_to(plan_to_json(plan), off, pause=pause)


def links_down(lab: LabClient) -> set[str]:
    shown = json.loads(execute(lab, "ip", "-j", "link", "show"))
    return {link["ifname"] for link in shown if "UP" not in link["flags"]}


@pytest.mark.long
@sharing("controller")
@pytest.mark.parametrize("way", ["links off", "links on"])
def test_every_state_between_two_plans_delivers(controlled, way):
    """To a plan without two links and back; between the steps the rules of all switches are dumped and walked."""
    plan, lab = controlled
    fewer = plan_without(plan, _OFF)
    then, off = (fewer, _OFF) if way == "links off" else (plan, [])
    answer: list[PlanMove] = []

    def moving() -> None:
        with lab.second_connection() as other:
            # A pause in which also a busy machine can dump the rules of all switches.
            answer.append(move(other, then, off, pause=3))

    mover = threading.Thread(target=moving)
    mover.start()
    walked = {}
    while mover.is_alive():
        doing = lab.controller().transition
        if doing and doing.done and doing.step not in walked:
            dumped, down = lab.flows(), links_down(lab)
            if lab.controller().transition == doing:
                ends = {f"s{plan.topology.channel_source[c] + 1}-eth{plan.topology.out_port[c]}": c // 2
                        for c in range(2 * plan.topology.link_count)}  # fmt: skip
                walked[doing.step] = state_problems([plan, fewer], dumped, {ends[name] for name in down})
        if doing and doing.step == 1:
            with pytest.raises(LabError, match="refuses: a transition is under way; ask again when it has ended"):
                move(lab, plan, [])
        time.sleep(0.1)
    mover.join()
    steps = [step.action for step in answer[0].steps]
    assert sorted(steps) == sorted(["add", "move", "drain", "remove", way])
    assert walked == {number: [] for number in range(1, 6)}
    assert installed(lab) == set(then.rules)
    assert len(links_down(lab)) == 2 * len(off)
    assert lab.reach() == []


@pytest.mark.long
@sharing("controller")
def test_links_go_down_and_up(controlled):
    plan, lab = controlled
    whole = Disturbance(up=False, channels=(0, 1))
    ends = {f"s{plan.topology.channel_source[c] + 1}-eth{plan.topology.out_port[c]}" for c in (0, 1)}
    lab.disturb(whole)
    assert links_down(lab) == ends
    lab.disturb(replace(whole, up=True))
    assert links_down(lab) == set()
    lab.disturb(Disturbance(up=False, channels=(1,)))
    assert links_down(lab) < ends
    lab.disturb(replace(whole, up=True))
    lab.disturb(Disturbance(up=False, hosts=(2,)))
    assert links_down(lab) == {f"s3-eth{plan.topology.host_port[2]}"}
    assert {source for source, _ in lab.reach()} == {f"h{number}" for number in range(1, 17)}
    lab.disturb(Disturbance(up=True, hosts=(2,)))
    until(lambda: lab.reach() == [])
    with pytest.raises(LabError, match="there is no channel 99: they have the numbers 0 to 63"):
        lab.disturb(Disturbance(up=False, channels=(99,)))
    with pytest.raises(LabError, match="s1 shares its process with s2, so it cannot be killed alone"):
        lab.disturb(Disturbance(up=False, switches=(0,)))


@sharing("controller")
def test_another_dilation_is_told_to_the_controller(controlled):
    plan, lab = controlled
    for dilation in (100, 50):
        lab.set_rates(at_dilation(plan, dilation))
        assert lab.controller().rate == 1e9 / dilation


@sharing("controller")
def test_switches_do_not_starve_the_controller(controlled):
    _, lab = controlled
    inside = Path(f"/proc/{lab.namespaces.init}/ns/pid").readlink()
    priority: dict[str, set[int]] = {"controllers": set(), "ovs-vswitchd": set()}
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has ended meanwhile
            words = (folder / "cmdline").read_text().split("\0")
            name = next((name for name in priority if name in words), None)
            if name is not None and (folder / "ns/pid").readlink() == inside:
                priority[name].add(os.getpriority(os.PRIO_PROCESS, int(folder.name)))
    first = os.getpriority(os.PRIO_PROCESS, 0) - 15  # beside programs in hosts, which have what the tests have
    assert priority["controllers"] == priority["ovs-vswitchd"] == {first}


@sharing("controller")
def test_a_controller_that_cannot_start_says_why(controlled):
    plan, lab = controlled
    lab.stop_controller()
    lab.write("plan.json", "{")
    lab.start_controller()
    with pytest.raises(LabError, match=r"ended with exit code 2\. .*plan.json: is not a plan"):
        lab.wait_for_controller()
    lab.write("plan.json", plan_to_json(plan))
    lab.start_controller()
    with pytest.raises(LabError, match="the controller switch_tagged runs already; stop it first"):
        lab.start_controller()
    assert lab.wait_for_controller().in_step == 16


def test_a_lab_without_a_controller_says_so(lab):
    _, running = lab
    assert running.facts.controller is None
    with pytest.raises(LabError, match=r"has no controller: .* use lab.controller: switch_tagged"):
        running.controller()


def test_a_run_with_a_controller(tmp_path, untouched):
    plan = plan_of(
        "topology: {kind: mesh, sizes: [2]}\nlab: {dilation: 100, controller: switch_tagged}\n"
        "workloads: [{kind: ping, pattern: neighbour, count: 3}]"
    )
    outcome = run_scenario(plan, tmp_path, lambda text: None)
    assert not [reason for reason in outcome.reasons if "controller" in reason or "rules" in reason]
    assert load_run(outcome.folder).environment["controller"] == "switch_tagged"
