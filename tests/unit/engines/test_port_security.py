"""Port security: what a host sends from another address than its own gets nowhere, and all else fares as planned."""

from __future__ import annotations

import pytest

from testbed.base.errors import InputError
from testbed.base.model import LearningPlan, host_mac
from testbed.engines.lab.control.build import build_order
from testbed.engines.ovs.check_paths import installed_problems
from testbed.engines.ovs.fast_path import why_slow
from testbed.fabric.openflow.admission import PRIORITY_TAGGED
from testbed.fabric.openflow.compile import learned_rules
from testbed.fabric.openflow.oracle import BROADCAST, Oracle
from testbed.fabric.openflow.rule_text import format_rule, parse_rule
from testbed.fabric.openflow.tables import UNTAGGED
from testbed.planning import Plan, make_plan
from testbed.scenario import parse_scenario

STRANGE = "02:ff:00:00:00:07"
# Every form of rules for hosts' ports.
FABRICS = {
    "fixed": "topology: {kind: torus, sizes: [3, 3]}",
    "learning": "topology: {kind: ring, switches: 4}\nassignment: {kind: fixed, registration: learning}",
    "renamed": "topology: {kind: mesh, sizes: [3, 2]}\nassignment: renamed",
    "static": "topology: {kind: mesh, sizes: [3, 2]}\nassignment: static",
    "openflow": "topology: {kind: torus, sizes: [3, 3]}\nrouting: {kind: dl}\nassignment: openflow",
}


def planned(text: str, lab: str = "port_security: true") -> Plan:
    return make_plan(parse_scenario(f"{text}\nlab: {{dilation: 100, {lab}}}", "test"))


def installed(plan: Plan) -> dict[str, list[str]]:
    """What a lab's switches get, and once they know all addresses where they learn."""
    rules = {switch: list(lines) for switch, lines in build_order(plan).rules.items()}
    if isinstance(plan.vlans, LearningPlan):
        for rule in learned_rules(plan.topology, plan.vlans):
            rules[plan.topology.switch_name(rule.switch)].append(format_rule(rule))
    return rules


@pytest.mark.parametrize("text", FABRICS.values(), ids=FABRICS)
def test_what_a_host_sends_from_another_address_gets_nowhere(text):
    plan = planned(text)
    dumped, topology = installed(plan), plan.topology
    assert installed_problems(plan, dumped) == []  # every pair, from its own address, by its path
    rules = [parse_rule(int(switch[1:]) - 1, line) for switch, lines in dumped.items() for line in lines]
    oracle = Oracle(topology, rules)
    vlans = {int(value) for rule in rules for name, value in rule.match if name == "dl_vlan"}
    for host in range(topology.host_count):
        other = host_mac((host + 1) % topology.host_count)
        for source in (other, STRANGE):
            for to in (other, BROADCAST):
                for tag in vlans | {UNTAGGED, PRIORITY_TAGGED}:
                    found = oracle.send(host, to, tag, source)
                    assert (found.received, found.channels, found.endless) == ({}, (), False)


@pytest.mark.parametrize("text", FABRICS.values(), ids=FABRICS)
def test_a_port_that_takes_frames_from_any_address_is_found(text):
    plan, loose = planned(text), planned(text, "seed: 1")
    found = installed_problems(plan, installed(loose))
    assert len(found) == plan.topology.host_count
    assert found[0] == f"h1 can send from the address {host_mac(1)}, which is not its own"
    assert installed_problems(loose, installed(loose)) == []


def test_the_plan_itself_stays_as_it_is():
    one, other = (planned(FABRICS["fixed"], lab) for lab in ("port_security: true", "seed: 1"))
    assert (one.digest, one.rules) == (other.digest, other.rules)


@pytest.mark.parametrize("controller", ["switch_tagged", "segment_manager"])
def test_port_security_is_refused_with_a_controllers_rules(controller):
    with pytest.raises(InputError) as caught:
        planned(FABRICS["fixed"], f"port_security: true, controller: {controller}")
    assert str(caught.value) == (
        "test: lab.port_security: is for rules that the lab itself installs, once, and the controller "
        f"{controller} installs those of the plan, which take frames from any address; use lab.controller: none, or "
        "leave it out"
    )


def test_port_security_is_refused_over_aggregated_links():
    with pytest.raises(InputError, match=r"lab\.port_security: is for rules that stay, and links\.aggregate: true"):
        planned("topology: {kind: ring, switches: 3}\nlinks: {aggregate: true, add: [[s1, s2]]}")


@pytest.mark.parametrize("engine", ["realtime", "simulate"])
def test_port_security_is_refused_on_engines_without_it(engine):
    with pytest.raises(InputError, match=rf"lab\.port_security: is for engine: ovs or vm only, not {engine}"):
        planned(f"{FABRICS['fixed']}\nengine: {engine}")


def test_with_port_security_there_is_no_fast_path():
    order = build_order(planned(FABRICS["fixed"]))
    assert why_slow(order, "userspace") == "switches that look where frames are from must see every frame"
