"""The rules of a ring of three switches, line by line, and reading them back."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbed.base.model import Rule
from testbed.fabric.openflow.admission import lldp_rules
from testbed.fabric.openflow.rule_text import FlowSyntaxError, format_rule, parse_rule
from testbed.fabric.openflow.tables import TABLES, UNTAGGED, Priority
from testbed.fabric.vlans import ASSIGNMENTS
from testbed.planning import make_plan
from tests.fabrics import plan_of, scenario_of

FILTERS = """\
table=0,priority=700,dl_dst=01:80:c2:00:00:00/ff:ff:ff:ff:ff:f0,actions=drop
table=0,priority=700,dl_src=01:00:00:00:00:00/01:00:00:00:00:00,actions=drop
table=0,priority=700,dl_vlan=0,actions=pop_vlan,resubmit(,0)
"""
FIRST_SWITCH = """\
table=0,priority=300,in_port=1,vlan_tci=0x0000/0x1fff,actions=push_vlan:0x8100,set_field:4106->vlan_vid,goto_table:1
table=0,priority=300,in_port=2,dl_vlan=10,actions=goto_table:1
table=0,priority=300,in_port=2,dl_vlan=11,actions=goto_table:1
table=0,priority=300,in_port=3,dl_vlan=10,actions=goto_table:1
table=0,priority=300,in_port=3,dl_vlan=12,actions=goto_table:1
table=1,priority=200,dl_vlan=10,dl_dst=02:00:00:00:00:01,actions=pop_vlan,output:1
table=1,priority=200,dl_vlan=10,dl_dst=02:00:00:00:00:02,actions=output:2
table=1,priority=200,dl_vlan=10,dl_dst=02:00:00:00:00:03,actions=output:3
table=1,priority=200,dl_vlan=11,dl_dst=02:00:00:00:00:01,actions=pop_vlan,output:1
table=1,priority=200,dl_vlan=12,dl_dst=02:00:00:00:00:01,actions=pop_vlan,output:1
table=1,priority=100,dl_vlan=10,actions=output:2,output:3,pop_vlan,output:1
table=1,priority=100,dl_vlan=11,actions=output:2,pop_vlan,output:1
table=1,priority=100,dl_vlan=12,actions=output:3,pop_vlan,output:1
"""


def test_rules_of_the_first_switch():
    rules = [rule for rule in plan_of("ring", switches=3).rules if rule.switch == 0]
    assert "".join(f"{format_rule(rule)}\n" for rule in rules) == FILTERS + FIRST_SWITCH


RENAMED = """\
table=0,priority=300,in_port=1,vlan_tci=0x0000/0x1fff,actions=push_vlan:0x8100,set_field:4106->vlan_vid,goto_table:1
table=0,priority=300,in_port=2,vlan_tci=0x0000/0x1fff,actions=push_vlan:0x8100,set_field:4107->vlan_vid,goto_table:1
table=0,priority=300,in_port=3,vlan_tci=0x0000/0x1fff,actions=push_vlan:0x8100,set_field:4108->vlan_vid,goto_table:1
table=1,priority=200,dl_vlan=10,dl_dst=02:00:00:00:00:01,actions=pop_vlan,output:1
table=1,priority=200,dl_vlan=10,dl_dst=02:00:00:00:00:02,actions=pop_vlan,output:2
table=1,priority=200,dl_vlan=10,dl_dst=02:00:00:00:00:03,actions=pop_vlan,output:3
table=1,priority=200,dl_vlan=11,dl_dst=02:00:00:00:00:01,actions=pop_vlan,output:1
table=1,priority=200,dl_vlan=12,dl_dst=02:00:00:00:00:01,actions=pop_vlan,output:1
table=1,priority=100,dl_vlan=10,actions=pop_vlan,output:1,output:2,output:3
table=1,priority=100,dl_vlan=11,actions=pop_vlan,output:1,output:2,output:3
table=1,priority=100,dl_vlan=12,actions=pop_vlan,output:1,output:2,output:3
"""
STATIC = """\
table=0,priority=300,in_port=1,vlan_tci=0x0000/0x1fff,actions=goto_table:1
table=0,priority=300,in_port=2,vlan_tci=0x0000/0x1fff,actions=goto_table:1
table=0,priority=300,in_port=3,vlan_tci=0x0000/0x1fff,actions=goto_table:1
table=1,priority=200,vlan_tci=0x0000/0x1fff,dl_dst=02:00:00:00:00:01,actions=output:1
table=1,priority=200,vlan_tci=0x0000/0x1fff,dl_dst=02:00:00:00:00:02,actions=output:2
table=1,priority=200,vlan_tci=0x0000/0x1fff,dl_dst=02:00:00:00:00:03,actions=output:3
table=1,priority=100,vlan_tci=0x0000/0x1fff,actions=output:1,output:2,output:3
"""
OPENFLOW = """\
table=0,priority=300,in_port=1,vlan_tci=0x0000/0x1fff,actions=goto_table:1
table=0,priority=300,in_port=2,dl_vlan=1,actions=goto_table:1
table=0,priority=300,in_port=3,dl_vlan=1,actions=goto_table:1
table=1,priority=200,in_port=1,vlan_tci=0x0000/0x1fff,dl_dst=02:00:00:00:00:01,actions=output:1
table=1,priority=200,in_port=1,vlan_tci=0x0000/0x1fff,dl_dst=02:00:00:00:00:02,actions=push_vlan:0x8100,\
set_field:4097->vlan_vid,set_field:0->vlan_pcp,output:2
table=1,priority=200,in_port=1,vlan_tci=0x0000/0x1fff,dl_dst=02:00:00:00:00:03,actions=push_vlan:0x8100,\
set_field:4097->vlan_vid,set_field:0->vlan_pcp,output:3
table=1,priority=200,in_port=2,dl_vlan=1,dl_vlan_pcp=0,dl_dst=02:00:00:00:00:01,actions=pop_vlan,output:1
table=1,priority=200,in_port=3,dl_vlan=1,dl_vlan_pcp=0,dl_dst=02:00:00:00:00:01,actions=pop_vlan,output:1
table=1,priority=100,vlan_tci=0x0000/0x1fff,actions=push_vlan:0x8100,set_field:4097->vlan_vid,set_field:0->vlan_pcp,\
output:2,output:3,pop_vlan,output:1
table=1,priority=100,dl_vlan=1,actions=output:2,output:3,pop_vlan,output:1
"""


@pytest.mark.parametrize(("assignment", "text"), [("renamed", RENAMED), ("static", STATIC), ("openflow", OPENFLOW)])
def test_rules_of_the_first_switch_by_the_port_of_arrival(assignment, text):
    blocks = {"topology": {"kind": "ring", "switches": 3}, "assignment": {"kind": assignment}}
    rules = [rule for rule in make_plan(scenario_of(blocks)).rules if rule.switch == 0]
    assert "".join(f"{format_rule(rule)}\n" for rule in rules) == FILTERS + text


def test_rules_stay_inside_what_their_table_declares():
    tables = {table.number: table for table in TABLES}
    mesh = {"topology": {"kind": "mesh", "sizes": [3, 3], "hosts_per_switch": 2}}
    plans = [make_plan(scenario_of({**mesh, "assignment": {"kind": kind}})) for kind in ASSIGNMENTS]
    for rule in chain.from_iterable(plan.rules for plan in plans):
        table = tables[rule.table]
        assert {field for field, _ in rule.match} <= table.match_fields
        assert {value for action, value in rule.actions if action == "goto_table"} <= table.goto
        assert rule.priority in list(Priority)


ports = st.integers(1, 65000)
vlans = st.integers(1, 4094)
macs = st.lists(st.integers(0, 255), min_size=6, max_size=6).map(lambda six: ":".join(f"{n:02x}" for n in six))
matches = st.fixed_dictionaries(
    {},
    optional={"in_port": ports, "dl_vlan": vlans | st.just(UNTAGGED), "dl_vlan_pcp": st.integers(0, 7), "dl_dst": macs},
).map(lambda fields: tuple(fields.items()))
actions = st.lists(
    st.one_of(
        st.tuples(st.just("push_vlan"), vlans),
        st.just(("pop_vlan", 0)),
        st.tuples(st.just("set_pcp"), st.integers(0, 7)),
        st.tuples(st.just("output"), ports),
        st.tuples(st.just("goto_table"), st.integers(1, 254)),
    ),
    max_size=6,
).map(tuple)
rules = st.builds(
    Rule,
    switch=st.integers(0, 16383), table=st.integers(0, 254), priority=st.integers(0, 65535), match=matches,
    actions=actions,
)  # fmt: skip


@pytest.mark.slow
@given(rules)
def test_a_rule_survives_being_written_and_read(rule):
    assert parse_rule(rule.switch, format_rule(rule)) == rule


def test_a_line_as_a_running_switch_dumps_it():
    line = " cookie=0x0, table=1, priority=200,dl_vlan=10,dl_dst=02:00:00:00:00:01 actions=pop_vlan,output:1\n"
    match = (("dl_vlan", 10), ("dl_dst", "02:00:00:00:00:01"))
    assert parse_rule(3, line) == Rule(3, 1, 200, match, (("pop_vlan", 0), ("output", 1)))
    assert parse_rule(0, " priority=0 actions=drop") == Rule(0, 0, 0, (), ())
    assert parse_rule(0, "actions=output:1").priority == 32768  # what a switch leaves out


@pytest.mark.parametrize(
    "line",
    [
        "",
        "NXST_FLOW reply (xid=0x4):",
        "table=0,priority=0,actions=NORMAL",
        "table=0,priority=0,actions=CONTROLLER:65535",
        "table=0,priority=0,actions=output:LOCAL",
        "table=0,priority=1,in_port=LOCAL,actions=drop",
        "table=0,priority=1,ip,nw_dst=10.0.0.1,actions=drop",
        "table=0,priority=1,dl_vlan=0x10/0x10,actions=drop",
        "table=0,priority=1,idle_timeout=10,actions=drop",
        "table=0,priority=1,actions=push_vlan:0x88a8,set_field:4106->vlan_vid,goto_table:1",
        "table=0,priority=1,actions=set_field:4106->vlan_vid",
        "table=0,priority=1,actions=push_vlan:0x8100,set_field:02:00:00:00:00:01->eth_dst",
        "table=0,priority=1,actions=set_field:high->vlan_pcp",
        "table=0,priority=1,actions=resubmit(,3)",
        "table=1,priority=200,dl_vlan=10,actions=load:0x3->NXM_NX_REG1[0..15]",
        "table=1,priority=200,dl_vlan=10,actions=load:0x3->NXM_NX_REG0[]",
        "table=one,priority=1,actions=drop",
    ],
)
def test_a_flow_this_pipeline_never_writes(line):
    with pytest.raises(FlowSyntaxError):
        parse_rule(0, line)


def test_lldp_frames_alone_go_to_a_controller():
    (rule,) = lldp_rules(1)
    line = "table=0,priority=800,dl_dst=01:80:c2:00:00:0e,actions=CONTROLLER:65535"
    assert format_rule(rule) == line
    assert parse_rule(6, line) == replace(rule, switch=6)
    with pytest.raises(FlowSyntaxError, match="only LLDP frames go to a controller"):
        parse_rule(6, line.replace("0e,", "0f,"))


def test_the_refusal_shows_part_and_line():
    with pytest.raises(FlowSyntaxError, match=r"^unexpected action 'NORMAL' in 'priority=0,actions=NORMAL'$"):
        parse_rule(0, "priority=0,actions=NORMAL\n")
