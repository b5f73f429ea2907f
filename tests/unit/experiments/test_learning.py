"""Switches that learn, without any switch: rules, walks that teach, and what is made of dumped rules."""

from __future__ import annotations

from dataclasses import replace

import pytest

from testbed.base import vlan_networks
from testbed.base.errors import InputError, LabError
from testbed.base.model import LearningPlan, Rule, host_mac
from testbed.engines.lab.counters.counters import flooded_frames
from testbed.engines.lab.hosts import probe_frames
from testbed.engines.lab.hosts.probe_frames import frame
from testbed.engines.ovs.check_tables import teach, unknown_addresses
from testbed.experiments.run.checks.fidelity import Verdict
from testbed.experiments.run.loads.context import flood_findings
from testbed.fabric.openflow.compile import LearningOracle, count_rules, entry_rules, learned_rules
from testbed.fabric.openflow.oracle import BROADCAST
from testbed.fabric.openflow.rule_text import FlowSyntaxError, format_rule, parse_rule
from testbed.fabric.routing.paths import path
from testbed.planning import Plan, make_plan
from testbed.planning.store import plan_from_json, plan_to_json
from tests.fabrics import scenario_of

HOSTS = range(16)


def learning_plan(ageing: int = 0, **lab: str) -> Plan:
    blocks = {
        "topology": {"kind": "torus", "sizes": [4, 4]},
        "assignment": {"kind": "fixed", "registration": "learning", "ageing": ageing},
        "lab": lab,
    }
    return make_plan(scenario_of(blocks))


PLAN = learning_plan()
assert isinstance(PLAN.vlans, LearningPlan)
ENTRIES = entry_rules(PLAN.topology, PLAN.vlans)


def asymmetric_pair() -> tuple[int, int]:
    """Two hosts whose frames to each other use different VLANs."""
    return next((a, b) for a in HOSTS for b in HOSTS[::-1] if PLAN.vlans.pvid[a] != PLAN.vlans.pvid[b])


def taught(plan: Plan) -> LearningOracle:
    oracle = LearningOracle(plan.topology, plan.rules, plan.bundles, plan.groups)
    hosts = range(plan.topology.host_count)
    for host in hosts:
        for vlan in plan.vlans.vlan_ids.tolist():
            flood = oracle.send(host, BROADCAST, vlan)
            assert flood.received == dict.fromkeys(set(hosts) - {host}, 1)
            assert not flood.tagged
            assert flood.uneven == ()
    return oracle


def test_learning_is_a_plan_of_its_own():
    assert isinstance(PLAN.vlans, LearningPlan)
    assert PLAN.is_proved
    assert len(PLAN.rules) == count_rules(PLAN.topology, PLAN.vlans)
    assert not [rule for rule in PLAN.rules if (rule.table, rule.priority) == (1, 200)]
    again = plan_from_json(plan_to_json(PLAN))
    assert (again.rules, again.digest) == (PLAN.rules, PLAN.digest)
    assert (
        len(
            {
                PLAN.digest,
                learning_plan(300).digest,
                make_plan(scenario_of("topology: {kind: torus, sizes: [4, 4]}")).digest,
            }
        )
        == 3
    )


def test_each_vlan_has_a_network_and_each_host_an_address_in_it():
    addresses = [[vlan_networks.vlan_address(vlan, host, 16) for host in range(16)] for vlan in range(8)]
    assert str(addresses[0][0]) == "100.64.0.1/27"
    assert len({one.ip for of_vlan in addresses for one in of_vlan}) == 8 * 16
    assert [len({one.network for one in of_vlan}) for of_vlan in addresses] == [1] * 8
    assert len({of_vlan[0].network for of_vlan in addresses}) == 8
    for hosts in (1, 2, 6, 14, 15, 254):  # none has the address of the network, or that of all
        last = vlan_networks.vlan_address(0, hosts - 1, hosts)
        assert last.network.network_address < last.ip < last.network.broadcast_address
    with pytest.raises(LabError, match="has no room for networks of 4096 hosts for so many VLANs; use fewer"):
        vlan_networks.vlan_address(600, 0, 4096)


def test_a_datagram_frame_is_ipv4_with_a_right_checksum():
    address = vlan_networks.vlan_address(3, 4, 16)
    made = probe_frames.frame(bytes.fromhex("020000000005"), 13, address)
    assert made[:18].hex() == "ffffffffffff" + "020000000005" + "8100000d" + "0800"
    head = made[18:38]
    total = sum(int.from_bytes(head[at : at + 2], "big") for at in range(0, 20, 2))
    assert (total & 0xFFFF) + (total >> 16) == 0xFFFF
    assert head[9] == 17
    assert (head[12:16], head[16:20]) == (address.ip.packed, address.network.broadcast_address.packed)
    assert made[38:46].hex() == "0009" + "0009" + "0008" + "0000"
    assert len(made) == 64
    assert probe_frames.frame(bytes(6), 13)[16:18].hex() == "88b5"


def test_a_procedure_is_for_switches_that_learn():
    with pytest.raises(InputError, match=r"assignment\.procedure: static entries are not learned; leave it out"):
        make_plan(
            scenario_of(
                {"topology": {"kind": "mesh", "sizes": [2, 2]}, "assignment": {"kind": "fixed", "procedure": "paper"}}
            )
        )


@pytest.mark.parametrize("ageing", [0, 10])
def test_an_ageing_time_is_that_of_802_1q(ageing):
    assert learning_plan(ageing=ageing).vlans.ageing == ageing
    with pytest.raises(InputError, match="or 10 s or more as in 802"):
        learning_plan(ageing=9)


def test_rules_come_back_from_their_text():
    for plan in (PLAN, learning_plan(300)):
        for rule in plan.rules:
            assert parse_rule(rule.switch, format_rule(rule)) == rule


def test_rules_that_open_vswitch_has_learned_are_entries():
    """Lines as version 3.1 dumps them."""
    lines = (
        " cookie=0x8000000000000000, table=1, hard_timeout=30, priority=200,dl_vlan=11,dl_dst=02:00:00:00:00:01 "
        "actions=load:0->NXM_OF_VLAN_TCI[],output:1",
        " cookie=0x8000000000000000, table=1, priority=200,dl_vlan=11,dl_dst=02:00:00:00:00:02 actions=output:2",
    )
    assert [parse_rule(4, line) for line in lines] == [
        Rule(4, 1, 200, (("dl_vlan", 11), ("dl_dst", "02:00:00:00:00:01")), (("pop_vlan", 0), ("output", 1))),
        Rule(4, 1, 200, (("dl_vlan", 11), ("dl_dst", "02:00:00:00:00:02")), (("output", 2),)),
    ]


def test_an_action_that_learns_otherwise_is_not_ours():
    for text in (
        "learn(table=5,NXM_OF_ETH_DST[]=NXM_OF_ETH_SRC[])",
        "learn(table=1,priority=200,cookie=0x1,OXM_OF_VLAN_VID[],NXM_OF_ETH_DST[]=NXM_OF_ETH_SRC[],output:NXM_OF_IN_PORT[])",
    ):
        with pytest.raises(FlowSyntaxError, match="unexpected action"):
            parse_rule(0, f"table=0,priority=300,in_port=1,dl_vlan=10 actions={text},goto_table:1")


def test_the_answer_on_another_vlan_teaches_nothing():
    """Section 3.3: a path and the one back use different VLANs, and switches learn in each for itself."""
    one, other = asymmetric_pair()
    oracle = LearningOracle(PLAN.topology, PLAN.rules)
    for _ in range(3):
        assert oracle.unicast(one, other).received == dict.fromkeys(set(HOSTS) - {one}, 1)
        assert oracle.unicast(other, one).received == dict.fromkeys(set(HOSTS) - {other}, 1)


def test_the_answer_on_the_same_vlan_teaches():
    plan = make_plan(scenario_of(
        "topology: {kind: tree, switches: 7}\nassignment: {kind: fixed, registration: learning}"
    ))  # fmt: skip
    oracle = LearningOracle(plan.topology, plan.rules)
    assert len(oracle.unicast(0, 6).received) == 6
    assert oracle.unicast(6, 0).received == {0: 1}
    assert oracle.unicast(0, 6).received == {6: 1}


def test_after_the_procedure_every_pair_takes_its_path():
    oracle = taught(PLAN)
    for source in HOSTS:
        for destination in set(HOSTS) - {source}:
            way = oracle.unicast(source, destination)
            assert way.received == {destination: 1}
            assert not way.tagged
            assert way.channels == path(PLAN.topology, PLAN.routes, source, destination)


def bundled(ageing: int = 0) -> Plan:
    """Bundles of two between most switches, and one single link, whose other member is dead."""
    return make_plan(scenario_of({
        "topology": {"kind": "torus", "sizes": [3, 3], "parallel_links": 2},
        "links": {"aggregate": True},
        "faults": {"links": [["s1", "s2", 1]]},
        "assignment": {"kind": "fixed", "registration": "learning", "ageing": ageing},
    }))  # fmt: skip


@pytest.mark.parametrize("ageing", [0, 20])
def test_of_a_bundle_switches_learn_its_number_never_a_member(ageing):
    plan = bundled(ageing)
    assert plan.bundles is not None
    assert plan.is_proved
    assert len(plan.rules) == count_rules(plan.topology, plan.vlans, plan.bundles)
    kinds: dict[int, dict[int | str, str]] = {}
    for rule in plan.rules:
        assert parse_rule(rule.switch, format_rule(rule)) == rule
        learns = [action for action, value in rule.actions if action.startswith("learn") and value == ageing]
        if learns:
            port = dict(rule.match)["in_port"]
            kinds.setdefault(rule.switch, {})[port] = learns[0].removeprefix("learn_at_")
            assert rule.actions[-2:] == (("resubmit", 1), ("goto_table", 2))
    first = {(group.switch, group.number) for group in plan.groups}
    hosts = set(zip(plan.topology.host_switch.tolist(), plan.topology.host_port.tolist(), strict=True))
    for switch, of_port in kinds.items():
        for port, kind in of_port.items():
            where = "host" if (switch, port) in hosts else "bundle" if (switch, port) in first else "trunk"
            assert kind == where
    assert {kind for of_port in kinds.values() for kind in of_port.values()} == {"host", "bundle", "trunk"}


def test_over_bundles_every_pair_takes_its_path_by_any_member():
    plan = bundled()
    oracle = taught(plan)
    hosts = range(plan.topology.host_count)
    for source in hosts:
        for destination in set(hosts) - {source}:
            way = oracle.unicast(source, destination)
            assert (way.received, way.tagged, way.uneven) == ({destination: 1}, (), ())
            assert way.channels == path(plan.topology, plan.routes, source, destination)
            assert way.members == tuple(tuple(plan.bundles.channels(channel)) for channel in way.channels)
    # A host that is now elsewhere is learned there: what h1 sends from h9's place leads there, and no more to h1.
    vlan = int(plan.vlans.vlan_ids[plan.vlans.pvid[4]])
    oracle.send(8, BROADCAST, vlan, source_mac=host_mac(0))
    assert oracle.unicast(4, 0).received == {8: 1}


def test_floods_leave_no_bundle_to_the_table_behind():
    """A flood that left its last bundle in the register would send by it twice."""
    plan = bundled()
    floods = [rule for rule in plan.rules if (rule.table, rule.priority) == (1, 100)]
    assert all(
        rule.actions[-1] == ("set_bundle", 0)
        for rule in floods
        if any(action == "set_bundle" for action, _ in rule.actions)
    )
    left = [replace(rule, actions=rule.actions[:-1]) if rule in floods else rule for rule in plan.rules]
    oracle = LearningOracle(plan.topology, left, plan.bundles, plan.groups)
    twice = oracle.broadcast(0).channels
    assert len(set(twice)) < len(twice)
    once = LearningOracle(plan.topology, plan.rules, plan.bundles, plan.groups).broadcast(0).channels
    assert sorted(once) == sorted(set(twice))


def test_what_was_learned_of_a_bundle_is_compared_with_the_plan():
    """As version 3.1 dumps it."""
    plan = bundled()
    assert isinstance(plan.vlans, LearningPlan)
    known = learned_rules(plan.topology, plan.vlans, plan.bundles)
    rule = next(rule for rule in known if rule.actions[0][0] == "set_bundle")
    vlan, mac, bundle = dict(rule.match)["dl_vlan"], dict(rule.match)["dl_dst"], rule.actions[0][1]
    line = (
        " cookie=0x8000000000000000, table=1, priority=200,dl_vlan={},dl_dst={} actions=load:{:#x}->NXM_NX_REG0[0..15]"
    )
    assert parse_rule(rule.switch, line.format(vlan, mac, bundle)) == rule
    lines = dump([*plan.rules, *(one for one in known if one != rule)])
    name = plan.topology.switch_name(rule.switch)
    lines[name].append(line.format(vlan, mac, bundle))
    assert unknown_addresses(plan, lines) == []
    lines[name][-1] = line.format(vlan, mac, bundle + 1)
    assert unknown_addresses(plan, lines) == [f"{name} does not know the way to {mac} in VLAN {vlan}"]


def dump(rules: list[Rule]) -> dict[str, list[str]]:
    lines: dict[str, list[str]] = {f"s{number}": [] for number in range(1, 17)}
    for rule in rules:
        lines[f"s{rule.switch + 1}"].append(" " + format_rule(rule).replace(",actions", " actions"))
    return lines


def test_what_switches_do_not_know_is_named():
    assert unknown_addresses(PLAN, dump([*PLAN.rules, *ENTRIES])) == []
    wrong = Rule(ENTRIES[1].switch, 1, 200, ENTRIES[1].match, (("output", 60),))
    vlan = PLAN.vlans.vlan_ids[0]
    assert unknown_addresses(PLAN, dump([*PLAN.rules, wrong, *ENTRIES[2:]])) == [
        f"s1 does not know the way to {host_mac(0)} in VLAN {vlan}",
        f"s1 does not know the way to {host_mac(1)} in VLAN {vlan}",
    ]


class Forgetful:
    """A lab whose switches know everything after some rounds."""

    def __init__(self, rounds: int) -> None:
        self.left = rounds

    def learn(self, vlans: list[int], *, datagrams: bool) -> str:
        assert not datagrams
        assert vlans == PLAN.vlans.vlan_ids.tolist()
        self.left -= 1
        return "raw tagged frames"

    def flows(self) -> dict[str, list[str]]:
        return dump([*PLAN.rules, *(ENTRIES if self.left <= 0 else ENTRIES[1:])])


def test_the_procedure_is_repeated_until_everything_is_known():
    lab = Forgetful(2)
    assert teach(PLAN, lab) == "raw tagged frames"  # type: ignore[arg-type]
    assert lab.left == 0
    with pytest.raises(LabError, match=r"after 3 rounds .* 1 addresses are unknown or known wrongly: s1 does not know"):
        teach(PLAN, Forgetful(5))  # type: ignore[arg-type]
    assert teach(make_plan(scenario_of("topology: {kind: mesh, sizes: [2]}")), lab) == ""  # type: ignore[arg-type]


def test_floods_while_loads_run_are_a_warning():
    assert flood_findings(PLAN, 5, 5) == []
    assert flood_findings(learning_plan(arp="broadcast"), 5, 900) == []
    assert flood_findings(learning_plan(ageing=20), 5, 12) == [
        (
            Verdict.WARN,
            "frames were flooded 7 times while loads ran, at all switches together; switches forget after 20 s",
        )
    ]


def test_floods_are_counted_from_dumped_flows():
    head = " cookie=0x0, duration=9.1s, table=1, n_packets"
    lines = [
        f"{head}=7, n_bytes=500, idle_age=3, priority=100,dl_vlan=10 actions=output:2,pop_vlan,output:1",
        f"{head}=5, n_bytes=500, priority=100,dl_vlan=11 actions=output:2,pop_vlan,output:1",
        f"{head}=70, n_bytes=500, priority=200,dl_vlan=10,dl_dst=02:00:00:00:00:01 actions=output:2",
        " cookie=0x0, duration=9.1s, table=0, n_packets=99, n_bytes=500, priority=100,in_port=1 actions=goto_table:1",
    ]
    assert (flooded_frames(lines), flooded_frames([])) == (12, 0)


def test_frames_that_teach():
    mac = bytes.fromhex("020000000005")
    assert frame(mac) == b"\xff" * 6 + mac + b"\x88\xb5" + bytes(46)
    assert frame(mac, 11) == b"\xff" * 6 + mac + b"\x81\x00\x00\x0b\x88\xb5" + bytes(46)
