"""Controllers without any network: messages there and back, and switches made of dictionaries."""

from __future__ import annotations

import math
import socket
import sys
import threading
import time
from collections.abc import Collection
from dataclasses import replace
from typing import Any

import pytest
from os_ken.ofproto import ofproto_v1_3, ofproto_v1_3_parser
from os_ken.ofproto.ofproto_protocol import ProtocolDesc

from controllers.__main__ import Name, main
from controllers.framework import DEAD_DISPATCHER
from controllers.learning import LearningReconciler
from controllers.openflow_messages import Content, add_message, bundle, content, differences, place, rule_of
from controllers.reconciler import Reconciler
from controllers.switches import SwitchError, Switches
from controllers.unsupported import RefusedError
from testbed.base.model import Rule
from testbed.fabric.openflow.compile import entry_rules
from testbed.planning import Plan, make_plan
from testbed.planning.store import plan_to_json
from tests.fabrics import plan_of, plan_without, scenario_of

DATAPATH = ProtocolDesc(ofproto_v1_3.OFP_VERSION)
OFF = [3, 8]


def through_the_wire(message: Any) -> Any:
    """A flow modification as a switch reads it."""
    message.serialize()
    return ofproto_v1_3_parser.OFPFlowMod.parser(
        DATAPATH, message.version, message.msg_type, message.msg_len, message.xid, message.buf
    )


@pytest.mark.parametrize(
    ("kind", "routing", "sizes"),
    [("torus", "dor", [4, 4]), ("torus", "dl", [3, 3]), ("mesh", "updown", [3, 3])],
)
def test_every_rule_comes_back_from_its_message(kind: str, routing: str, sizes: list[int]):
    rules = plan_of(kind, {"kind": routing}, sizes=sizes).rules
    assert rules
    for rule in rules:
        back = rule_of(rule.switch, DATAPATH, through_the_wire(add_message(DATAPATH, rule)))
        assert back is not None
        assert (place(back), back.actions, back.switch) == (place(rule), rule.actions, rule.switch)


def test_a_flow_that_this_pipeline_never_writes_is_no_rule():
    parser = DATAPATH.ofproto_parser
    foreign = [
        parser.OFPFlowMod(DATAPATH, match=parser.OFPMatch(eth_type=0x800, ipv4_src="10.0.0.1")),
        parser.OFPFlowMod(DATAPATH, match=parser.OFPMatch(eth_dst=("02:00:00:00:00:00", "ff:ff:00:00:00:00"))),
        parser.OFPFlowMod(DATAPATH, instructions=[parser.OFPInstructionMeter(1)]),
        parser.OFPFlowMod(
            DATAPATH,
            instructions=[
                parser.OFPInstructionActions(DATAPATH.ofproto.OFPIT_APPLY_ACTIONS, [parser.OFPActionGroup(1)])
            ],
        ),
    ]
    assert [rule_of(0, DATAPATH, through_the_wire(flow)) for flow in foreign] == [None] * len(foreign)


def test_only_what_differs_is_sent():
    rules = [rule for rule in plan_of("mesh", sizes=[2]).rules if rule.switch == 0]
    assert differences(rules, rules[::-1]) == ([], [])
    strange = Rule(0, 1, 7, (("dl_vlan", 99),), ())
    changed = Rule(0, rules[1].table, rules[1].priority, rules[1].match, (("output", 63),))
    remove, add = differences(rules, [strange, changed, *rules[2:]])
    assert remove == [strange]
    assert add == rules[:2]


def test_a_bundle_is_opened_and_committed_around_its_messages():
    rules = plan_of("mesh", sizes=[2]).rules[:3]
    messages = bundle(DATAPATH, 5, [add_message(DATAPATH, rule) for rule in rules])
    assert [type(message).__name__ for message in messages] == [
        "ONFBundleCtrlMsg",
        *["ONFBundleAddMsg"] * 3,
        "ONFBundleCtrlMsg",
    ]
    for message in messages:
        message.serialize()
        assert message.bundle_id == 5


class Fakes:
    """Switches that keep rules and ports in dictionaries; some can be made to fail."""

    def __init__(self, plan: Plan) -> None:
        self.names = tuple(plan.topology.switch_name(n) for n in range(plan.topology.switch_count))
        self.tables: list[dict[Any, Rule]] = [{} for _ in self.names]
        self.learned: list[set[Any]] = [set() for _ in self.names]
        self.down: set[tuple[int, int]] = set()
        self.sent = 0
        self.fails_at: int | None = None
        self.deaf: set[int] = set()
        self.lost: set[int] = set()
        self.wait: threading.Event | None = None
        self.one_at_a_time = threading.Lock()  # switches are changed side by side

    def is_master(self, number: int) -> bool:
        return number not in self.lost

    def rule_count(self, number: int, *, learned: bool = True) -> int:
        if number in self.deaf:
            raise SwitchError(f"{self.names[number]} did not answer")
        return len(self.tables[number]) - (0 if learned else len(self.learned[number]))

    def become_master(self, number: int, generation: int) -> None:
        assert generation > 0
        if number in self.deaf:
            raise SwitchError(f"{self.names[number]} did not answer")

    def rules(self, number: int, learnable: Collection[Content] = ()) -> tuple[list[Rule], list[Any]]:
        kept = [key for key in self.learned[number] if content(self.tables[number][key]) in learnable]
        return [rule for key, rule in self.tables[number].items() if key not in kept], []

    def datapath(self, number: int) -> Any:
        if number in self.deaf:
            raise SwitchError(f"{self.names[number]} is not connected")
        return DATAPATH

    def carry_out(self, number: int, messages: list[Any]) -> None:
        if self.wait is not None:
            assert self.wait.wait(100)
        with self.one_at_a_time:
            self.sent += len(messages)
            if self.fails_at is not None and self.sent >= self.fails_at:
                self.fails_at = None
                raise SwitchError(f"{self.names[number]} refused")
        for message in messages:
            flow = through_the_wire(message)
            rule = rule_of(number, DATAPATH, flow)
            assert rule is not None
            if flow.command == DATAPATH.ofproto.OFPFC_ADD:
                self.tables[number][place(rule)] = rule
            else:
                self.tables[number].pop(place(rule), None)
                self.learned[number].discard(place(rule))

    def ports(self, number: int) -> dict[int, Any]:
        return {port: port for port in range(64)}

    def set_port(self, number: int, port: int, *, up: bool) -> None:
        (self.down.discard if up else self.down.add)((number, port))

    def have(self, plan: Plan) -> bool:
        wanted: list[dict[Any, Any]] = [{} for _ in self.names]
        for rule in plan.rules:
            wanted[rule.switch][place(rule)] = rule.actions
        return [{key: rule.actions for key, rule in table.items()} for table in self.tables] == wanted


def fixed_plan(kind: str = "torus", routing: str = "north_last") -> Plan:
    return make_plan(scenario_of({"topology": {"kind": kind, "sizes": [4, 4]}, "routing": {"kind": routing}}))


def fewer_links(plan: Plan) -> Plan:
    return plan_without(plan, OFF)


def started(plan: Plan) -> tuple[Reconciler, Fakes]:
    fakes = Fakes(plan)
    reconciler = Reconciler(plan, fakes, rate=math.inf)  # type: ignore[arg-type]
    for number in range(len(fakes.names)):
        reconciler.bring_in_step(number)
    return reconciler, fakes


def test_switches_get_the_rules_and_those_with_them_are_left():
    plan = fixed_plan()
    reconciler, fakes = started(plan)
    assert fakes.have(plan)
    assert reconciler.status()["in_step"] == 16
    sent = fakes.sent
    fakes.tables[3].pop(next(iter(fakes.tables[3])))
    again = Reconciler(plan, fakes, rate=math.inf)  # type: ignore[arg-type]
    for number in range(16):
        again.bring_in_step(number)
    assert fakes.sent == sent + 1
    assert fakes.have(plan)
    assert [again.status()["switches"][name]["changed"] for name in fakes.names] == [0, 0, 0, 1, *[0] * 12]


@pytest.mark.slow
def test_links_go_off_and_on_again():
    plan = fixed_plan()
    fewer = fewer_links(plan)
    reconciler, fakes = started(plan)
    done = reconciler.move_to(fewer, OFF)
    assert [step["action"] for step in done["steps"]] == ["add", "move", "drain", "remove", "links off"]
    assert fakes.have(fewer)
    assert len(fakes.down) == 2 * len(OFF)
    assert reconciler.status()["off"] == [plan.topology.channel_name(2 * link).replace("→", "–") for link in OFF]
    fakes.down.clear()  # a switch that comes back has its ports up
    reconciler.bring_in_step(int(plan.topology.links[OFF[0], 0]))
    assert fakes.down
    reconciler.move_to(plan, [])
    assert fakes.have(plan)
    assert not fakes.down


@pytest.mark.slow
@pytest.mark.parametrize("fails_at", [1, 300, 700, 900, 1400])
def test_a_step_that_fails_is_undone_with_all_before_it(fails_at: int):
    plan = fixed_plan()
    reconciler, fakes = started(plan)
    fakes.sent, fakes.fails_at = 0, fails_at
    with pytest.raises(RefusedError, match="refused; all steps were undone"):
        reconciler.move_to(fewer_links(plan), OFF)
    assert fakes.have(plan)
    assert not fakes.down
    assert reconciler.status()["plan"] == plan.digest
    reconciler.move_to(fewer_links(plan), OFF)
    assert fakes.have(fewer_links(plan))


def test_what_cannot_be_is_refused_before_anything_changes():
    plan = fixed_plan()
    reconciler, fakes = started(plan)
    sent = fakes.sent
    with pytest.raises(RefusedError, match="a plan for another topology"):
        reconciler.move_to(fixed_plan("mesh"), [])
    with pytest.raises(RefusedError, match=r"no way to this plan: .* fixed or renamed, the same before and"):
        reconciler.move_to(fixed_plan(routing="updown"), [])
    with pytest.raises(RefusedError, match=r"the way to this plan is not safe: .* takes .*, which is off"):
        reconciler.move_to(plan, [0])
    reconciler.switch_disconnected(4)
    with pytest.raises(RefusedError, match="not all switches are in step: s5"):
        reconciler.move_to(fewer_links(plan), OFF)
    assert fakes.sent == sent
    assert fakes.have(plan)


def test_one_transition_at_a_time():
    plan = fixed_plan()
    reconciler, fakes = started(plan)
    fakes.wait = threading.Event()
    first = threading.Thread(target=reconciler.move_to, args=(fewer_links(plan), OFF))
    first.start()
    while reconciler.status()["transition"] is None:
        time.sleep(0.001)
    with pytest.raises(RefusedError, match="a transition is under way"):
        reconciler.move_to(plan, [])
    fakes.wait.set()
    first.join()
    assert reconciler.status()["transition"] is None
    assert reconciler.status()["plan"] == fewer_links(plan).digest


def test_a_switch_that_does_not_answer_is_named():
    plan = fixed_plan()
    fakes = Fakes(plan)
    fakes.deaf.add(2)
    reconciler = Reconciler(plan, fakes, rate=math.inf)  # type: ignore[arg-type]
    reconciler.bring_in_step(2)
    assert reconciler.status()["switches"]["s3"]["problem"] == "s3 did not answer"


def test_a_switch_that_lost_rules_gets_them_again():
    plan = fixed_plan()
    reconciler, fakes = started(plan)
    sent = fakes.sent
    for number in range(16):
        reconciler.check(number)
    assert fakes.sent == sent
    fakes.tables[5].clear()
    reconciler.check(5)
    assert fakes.have(plan)
    assert reconciler.status()["switches"]["s6"]["changed"] == len(fakes.tables[5])


def test_a_switch_that_obeys_another_is_told_and_asked_again():
    plan = fixed_plan()
    reconciler, fakes = started(plan)
    fakes.lost.add(7)
    reconciler.check(7)
    assert reconciler.status()["switches"]["s8"]["problem"] == "s8 obeys another controller"
    assert reconciler.status()["in_step"] == 15
    fakes.lost.clear()
    reconciler.check(7)
    assert reconciler.status()["in_step"] == 16


def test_a_switch_that_is_gone_is_not_asked():
    plan = fixed_plan()
    reconciler, fakes = started(plan)
    reconciler.switch_disconnected(3)
    fakes.tables[3].clear()
    reconciler.check(3)
    assert reconciler.status()["switches"]["s4"]["state"] == "gone"
    assert not fakes.tables[3]


def test_a_switch_that_hangs_up_while_it_is_asked_is_gone():
    plan = fixed_plan()
    reconciler, fakes = started(plan)

    def hang_up(number: int) -> bool:
        reconciler.switch_disconnected(number)
        raise SwitchError(f"{fakes.names[number]} disconnected")

    fakes.is_master = hang_up  # type: ignore[method-assign]
    reconciler.check(3)
    assert reconciler.status()["switches"]["s4"]["state"] == "gone"


def test_switches_of_another_version_are_counted_in_the_status():
    reconciler, _ = started(fixed_plan())
    reconciler.note_refused("127.0.0.1", [1])
    reconciler.note_refused("127.0.0.1", [1])
    reconciler.note_refused("127.0.0.1", {5, 6})
    assert [(one["times"], one["sentence"]) for one in reconciler.status()["refused"]] == [
        (2, "a switch at 127.0.0.1 speaks OpenFlow 1.0 and not 1.3"),
        (1, "a switch at 127.0.0.1 speaks OpenFlow 1.4, 1.5 and not 1.3"),
    ]


def test_a_switch_that_hangs_up_is_noticed():
    """Without _notice_disconnects() the connection's thread waits forever."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        switch = socket.create_connection(server.getsockname())
        accepted, address = server.accept()
    connection = sys.modules["os_ken.controller.controller"].Datapath(accepted, address)
    served = threading.Thread(target=connection.serve, daemon=True)
    served.start()
    assert switch.recv(8)
    switch.close()
    served.join(60)
    assert not served.is_alive()
    assert connection.state == DEAD_DISPATCHER


def test_a_plan_that_aggregates_links_is_refused():
    text = "topology: {kind: mesh, sizes: [2], parallel_links: 2}\nlinks: {aggregate: true}"
    with pytest.raises(RefusedError, match="hashing groups need OpenFlow"):
        Reconciler(make_plan(scenario_of(text)), Switches(("s1", "s2")), math.inf)


LEARNING = "topology: {kind: mesh, sizes: [2, 2]}\nassignment: {kind: fixed, registration: learning, ageing: 30}"


def test_a_plan_that_learns_is_for_the_controller_of_its_name():
    with pytest.raises(RefusedError, match="switches learn addresses, which changes their rules; use the controller l"):
        Reconciler(make_plan(scenario_of(LEARNING)), Switches(("s1", "s2", "s3", "s4")), math.inf)
    with pytest.raises(RefusedError, match="switches do not learn; use the controller switch_tagged"):
        LearningReconciler(plan_of("mesh", sizes=[2]), Switches(("s1", "s2")), math.inf)


def test_rules_that_learn_come_back_from_their_messages():
    rules = make_plan(scenario_of(LEARNING)).rules
    assert {name for rule in rules for name, _ in rule.actions} >= {"learn_at_host", "learn_at_trunk"}
    for rule in rules:
        back = rule_of(rule.switch, DATAPATH, through_the_wire(add_message(DATAPATH, rule)))
        assert back is not None
        assert content(back) == content(rule)


def test_an_action_that_learns_something_else_is_none_of_ours():
    parser = DATAPATH.ofproto_parser
    (rule, *_) = (rule for rule in make_plan(scenario_of(LEARNING)).rules if "learn_at_trunk" in dict(rule.actions))
    for change in ({"priority": 7}, {"table_id": 5}, {"cookie": 1}, {"idle_timeout": 9}):
        message = add_message(DATAPATH, rule)
        (learn,) = (one for one in message.instructions[0].actions if isinstance(one, parser.NXActionLearn))
        for name, value in change.items():
            setattr(learn, name, value)
        assert rule_of(0, DATAPATH, through_the_wire(message)) is None
    load = [parser.NXActionRegLoad(ofs_nbits=15, dst="vlan_tci", value=5)]
    applied = parser.OFPInstructionActions(DATAPATH.ofproto.OFPIT_APPLY_ACTIONS, load)
    assert rule_of(0, DATAPATH, through_the_wire(parser.OFPFlowMod(DATAPATH, instructions=[applied]))) is None


def test_what_switches_learned_stays_unless_it_leads_elsewhere():
    plan = make_plan(scenario_of(LEARNING))
    fakes = Fakes(plan)
    right, wrong, *_ = (rule for rule in entry_rules(plan.topology, plan.vlans) if rule.switch == 0)  # type: ignore[arg-type]
    wrong = replace(wrong, actions=(("output", 63),))
    for rule in (right, wrong):
        fakes.tables[0][place(rule)] = rule
        fakes.learned[0].add(place(rule))
    reconciler = LearningReconciler(plan, fakes, rate=math.inf)  # type: ignore[arg-type]
    for number in range(len(fakes.names)):
        reconciler.bring_in_step(number)
    assert fakes.learned == [{place(right)}, set(), set(), set()]
    assert fakes.sent == len(plan.rules) + 1
    fakes.tables[0].pop(place(right))
    assert fakes.have(plan)
    fakes.learned[0].clear()
    for number in range(len(fakes.names)):
        reconciler.check(number)
    assert fakes.sent == len(plan.rules) + 1
    with pytest.raises(RefusedError, match="would flood all frames"):
        reconciler.move_to(plan, [])


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (None, "cannot be read: No such file or directory; testbed plan NAME --output FILE writes one"),
        ("{", "is not a plan"),
        ("changed", "and its tables have"),
        ("auto", "its dilation is auto; give that of the links, such as --dilation 200"),
    ],
)
def test_an_unusable_plan_is_told_before_anything_listens(tmp_path, capsys, text, told):
    file = tmp_path / "plan.json"
    if text is not None:
        stored = plan_to_json(fixed_plan())
        changed = stored.replace('"entry_rule": "used"', '"entry_rule": "all"')
        assert changed != stored
        file.write_text({"auto": stored, "changed": changed}.get(text, text))
    with pytest.raises(SystemExit) as ended:
        main(Name.switch_tagged, file)
    assert ended.value.code == 2
    assert told in capsys.readouterr().err


def test_an_unelectable_manager_says_so_before_it_listens(tmp_path, capsys):
    file = tmp_path / "plan.json"
    file.write_text(plan_to_json(fixed_plan()))
    (tmp_path / "plan.json.lock").mkdir()
    with pytest.raises(SystemExit) as ended:
        main(Name.segment_manager, file, dilation=1.0)
    assert ended.value.code == 2
    said = capsys.readouterr().err
    assert said == f"{file}.lock: Is a directory; managers of a plan need this file to elect one of them\n"
