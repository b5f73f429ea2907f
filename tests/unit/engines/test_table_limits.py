"""Switches have room for all that their own hosts can do."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from testbed.base.model import LearningPlan
from testbed.engines.lab.control.build import build_order
from testbed.engines.ovs.table_limits import STRANGERS, datapath_flows, forwarding_entries
from testbed.fabric.openflow.compile import learned_rules
from testbed.fabric.routing.paths import hops_of_pairs
from testbed.planning import make_plan
from tests.fabrics import plan_of, scenario_of


@pytest.mark.parametrize("sizes", [[2], [4, 4], [8, 8]])
def test_all_flows_between_hosts_have_room_in_a_datapath(sizes):
    """Of each pair there is a flow in every switch on its way, and one daemon may have all switches."""
    plan = plan_of("mesh", sizes=sizes)
    order, hosts = build_order(plan), plan.topology.host_count
    pairs = np.array([(one, other) for one in range(hosts) for other in range(hosts) if one != other])
    passed, _ = hops_of_pairs(plan.topology, plan.routes, pairs[:, 0], pairs[:, 1])
    needed = len(passed) + len(pairs)
    assert needed <= datapath_flows(order, order.switches) <= 200_000
    assert datapath_flows(replace(order, others=order.hosts), order.switches) >= datapath_flows(order, order.switches)


def test_a_learning_switch_has_room_for_every_host_and_vlan():
    learning = {"kind": "fixed", "registration": "learning"}
    plan = make_plan(scenario_of({"topology": {"kind": "torus", "sizes": [4, 4]}, "assignment": learning}))
    room = forwarding_entries(build_order(plan))
    assert isinstance(plan.vlans, LearningPlan)
    learned = learned_rules(plan.topology, plan.vlans)
    for number in range(plan.topology.switch_count):
        own = sum(rule.switch == number and rule.table == 1 for rule in (*plan.rules, *learned))
        assert own + STRANGERS <= room[plan.topology.switch_name(number)]


def test_a_switch_with_static_entries_has_no_limit_of_rules():
    assert forwarding_entries(build_order(plan_of("torus", sizes=[4, 4]))) == {}
