"""Switches that learn, on real Open vSwitch: without the procedure they flood, with it they do not."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from dataclasses import replace

import pytest

from testbed.base.model import Rule, host_mac
from testbed.engines.lab.control.build import build_lab
from testbed.engines.lab.control.client import LabClient
from testbed.engines.ovs.check_paths import installed_problems
from testbed.engines.ovs.check_tables import teach, unknown_addresses
from testbed.experiments.run.engines import run_scenario
from testbed.fabric.openflow.rule_text import format_rule, parse_rule
from testbed.planning import Plan

from .conftest import execute, plan_of, sharing

_TORUS = (
    "topology: {{kind: torus, sizes: [4, 4]}}\nlab: {{dilation: 50}}\n"
    "assignment: {{kind: fixed, registration: learning, ageing: {ageing}}}\n"
)
_FRAMES = 300
# Of an experimental type, so that nobody answers; from h1 to h16.
_STREAM = f"""
import socket, time
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
s.bind(("eth0", 0))
for number in range({_FRAMES}):
    s.send(bytes.fromhex("{host_mac(15)}{host_mac(0)}".replace(":", "") + "88b5") + bytes(46))
    time.sleep(0.002)
"""


@pytest.fixture(scope="module")
def untaught() -> Iterator[tuple[Plan, LabClient]]:
    plan = plan_of(_TORUS.format(ageing=0))
    assert plan.vlans.pvid[0] != plan.vlans.pvid[15]
    with build_lab(plan) as lab:
        yield plan, lab


def installed(lab: LabClient) -> set[Rule]:
    dumped = lab.flows()
    return {parse_rule(number, line) for number, switch in enumerate(dumped) for line in dumped[switch]}


def stream(plan: Plan, lab: LabClient) -> tuple[int, dict[str, int]]:
    """Let h1 send to h16: how often switches flooded, and frames that each other host got."""
    before = lab.frames()
    execute(lab, sys.executable, "-c", _STREAM, host="h1")
    before_that, after = None, lab.frames()
    while after != before_that:  # a busy switch counts late
        before_that, after = after, lab.frames()

    got = [now - then for now, then in zip(after.to_hosts, before.to_hosts, strict=True)]
    names = [plan.topology.host_name(host) for host in range(plan.topology.host_count)]
    return after.flooded - before.flooded, dict(zip(names[1:], got[1:], strict=True))


@sharing("learning")
def test_rules_that_learn_are_installed(untaught):
    plan, lab = untaught
    assert installed(lab) == set(plan.rules)


@sharing("learning")
def test_without_the_procedure_asymmetric_vlans_flood(untaught):
    plan, lab = untaught
    # Each hears from the other, but in another VLAN.
    assert "20 received" in execute(lab, "ping", "-c", "20", "-i", "0.05", "10.0.0.16", host="h1")
    floods, others = stream(plan, lab)
    assert floods == 16 * _FRAMES
    assert set(others.values()) == {_FRAMES}
    assert len(unknown_addresses(plan, lab.flows())) > 0


@sharing("learning")
def test_with_the_procedure_nothing_is_flooded(untaught):
    plan, lab = untaught
    assert teach(plan, lab) in ("raw tagged frames", "802.1Q interfaces")
    assert unknown_addresses(plan, lab.flows()) == []
    assert installed_problems(plan, lab.flows()) == []
    assert lab.reach() == []
    floods, others = stream(plan, lab)
    assert floods == 0
    assert others.pop("h16") == _FRAMES
    assert set(others.values()) == {0}
    # Nothing of the procedure is left in the hosts.
    assert "eth0." not in execute(lab, "ip", "link", "show", host="h1")


def test_the_papers_procedure_teaches_all_the_quick_one_does(untouched):
    plan = plan_of(
        "topology: {kind: torus, sizes: [3, 3]}\nlab: {dilation: 50}\n"
        "assignment: {kind: fixed, registration: learning, procedure: paper}\n"
    )
    with build_lab(plan) as lab:
        assert len(unknown_addresses(plan, lab.flows())) > 0
        assert teach(plan, lab) in ("UDP broadcasts by raw tagged frames", "UDP broadcasts by 802.1Q interfaces")
        assert unknown_addresses(plan, lab.flows()) == []
        assert installed_problems(plan, lab.flows()) == []
        assert lab.reach() == []
        # The host has its own address alone again, and no interface but its own.
        assert execute(lab, "ip", "-o", "-4", "address", "show", "scope", "global", host="h1").count("inet") == 1
        assert "eth0." not in execute(lab, "ip", "link", "show", host="h1")


@pytest.mark.long
def test_switches_forget(untouched):
    # Also on a busy machine they are asked for all they know before they forget the first.
    plan = plan_of(_TORUS.format(ageing=20))
    with build_lab(plan) as lab:
        teach(plan, lab)
        taught, dumped = time.monotonic(), lab.flows()
        known = sum(map(len, dumped.values()))
        assert installed_problems(plan, dumped) == []
        while installed(lab) != set(plan.rules):
            assert time.monotonic() < taught + 30
            time.sleep(0.5)
        assert known == len(plan.rules) + 8 * 16 * 16
        teach(plan, lab)
        assert len(installed(lab)) == known


def test_a_run_of_switches_that_learn(tmp_path, untouched):
    plan = plan_of(
        "topology: {kind: mesh, sizes: [2, 2]}\nlab: {dilation: 100}\n"
        "assignment: {kind: fixed, registration: learning}\nworkloads: [{kind: ping, pattern: neighbour, count: 3}]"
    )
    outcome = run_scenario(plan, tmp_path, lambda text: None)
    assert not [reason for reason in outcome.reasons if "flooded" in reason]


def test_a_controller_installs_rules_and_leaves_what_was_learned(untouched):
    plan = plan_of(
        "topology: {kind: torus, sizes: [3, 3]}\nassignment: {kind: fixed, registration: learning}\n"
        "lab: {dilation: 50, controller: learning}"
    )
    with build_lab(plan) as lab:
        assert installed(lab) == set(plan.rules)
        teach(plan, lab)
        taught = installed(lab)
        assert unknown_addresses(plan, lab.flows()) == []
        # One entry leads into another link, as the entries of another plan might.
        wrong = next(rule for rule in taught - set(plan.rules) if rule.switch == 0)
        other = "cookie=0x8000000000000000," + format_rule(replace(wrong, actions=(("output", 2), ("output", 1))))
        execute(lab, "ovs-ofctl", "-O", "OpenFlow13", "add-flow", "s1", other)
        assert installed(lab) != taught
        lab.stop_controller()
        lab.start_controller()
        lab.wait_for_controller()
        assert installed(lab) == taught - {wrong}
        states = lab.controller().switches
        assert {name: state.changed for name, state in states.items() if state.changed} == {"s1": 1}
        teach(plan, lab)
        assert installed(lab) == taught
