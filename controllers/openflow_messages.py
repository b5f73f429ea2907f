"""Rules as OpenFlow 1.3 messages, and what a switch reports as rules.

`datapath` is the framework's: it brings the constants (`ofproto`) and the message classes (`ofproto_parser`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from testbed.base.model import Rule
from testbed.fabric.openflow.admission import MASKED, PRIORITY_TAGGED
from testbed.fabric.openflow.tables import (
    FORWARDING,
    LEARN_AT_HOST,
    LEARN_AT_TRUNK,
    LEARNED,
    UNTAGGED,
    Priority,
)

_VLAN_PRESENT = 0x1000
_TAG_TYPE = 0x8100
_FIELDS = {
    "in_port": "in_port", "dl_vlan": "vlan_vid", "dl_vlan_pcp": "vlan_pcp", "dl_src": "eth_src", "dl_dst": "eth_dst",
}  # fmt: skip
_SAME_PORT = 0xFFF8  # for Open vSwitch's action to look a frame up once more
_NAMES = {field: name for name, field in _FIELDS.items()}
# Of bundles that carry their messages out all together or not at all (ONF extension 230, which Open vSwitch knows).
_ALL_OR_NONE = 1
Content = tuple[tuple[Any, ...], tuple[tuple[str, int], ...]]
# Number of the VLAN and presence of a tag, as pipeline/text.py has them; and all of a tag.
_TAG, _TAG_BITS, _WHOLE_TAG_BITS = ("vlan_tci", 0), 13, 16


def place(rule: Rule) -> tuple[Any, ...]:
    """What makes two rules of one switch the same place in its tables."""
    return (rule.table, rule.priority, frozenset(rule.match))


def content(rule: Rule) -> Content:
    """What two rules of one switch have in common when they are the same."""
    return (place(rule), rule.actions)


def by_switch(rules: Iterable[Rule]) -> dict[int, list[Rule]]:
    """The rules of each switch."""
    found: dict[int, list[Rule]] = {}
    for rule in rules:
        found.setdefault(rule.switch, []).append(rule)
    return found


def vlans_of(rules: Iterable[Rule]) -> set[int]:
    """Identifiers of the VLANs that rules match or give."""
    return {
        int(number)
        for rule in rules
        for name, number in (*rule.match, *rule.actions)
        if name in ("dl_vlan", "push_vlan") and number not in (UNTAGGED, PRIORITY_TAGGED)
    }


def differences(wanted: Iterable[Rule], found: Iterable[Rule]) -> tuple[list[Rule], list[Rule]]:
    """Rules of a switch that must go, and rules that it lacks or has with other actions."""
    want = {place(rule): rule for rule in wanted}
    have = {place(rule): rule for rule in found}
    remove = [rule for key, rule in have.items() if key not in want]
    add = [rule for key, rule in want.items() if key not in have or have[key].actions != rule.actions]
    return remove, add


def add_message(datapath: Any, rule: Rule) -> Any:
    """The message that adds a rule, or puts it in the place of one with the same match."""
    return _flow_mod(datapath, rule, datapath.ofproto.OFPFC_ADD, _instructions(datapath, rule))


def remove_message(datapath: Any, rule: Rule) -> Any:
    """The message that removes exactly this rule."""
    return _flow_mod(datapath, rule, datapath.ofproto.OFPFC_DELETE_STRICT, [])


def remove_flow_message(datapath: Any, flow: Any) -> Any:
    """The message that removes an entry of a flow statistics reply, whatever it is."""
    ofproto, parser = datapath.ofproto, datapath.ofproto_parser
    return parser.OFPFlowMod(
        datapath=datapath, command=ofproto.OFPFC_DELETE_STRICT, table_id=flow.table_id, priority=flow.priority,
        match=flow.match, instructions=[], out_port=ofproto.OFPP_ANY, out_group=ofproto.OFPG_ANY,
    )  # fmt: skip


def _flow_mod(datapath: Any, rule: Rule, command: int, instructions: list[Any]) -> Any:
    ofproto, parser = datapath.ofproto, datapath.ofproto_parser
    return parser.OFPFlowMod(
        datapath=datapath,
        command=command,
        table_id=rule.table,
        priority=rule.priority,
        match=parser.OFPMatch(**{_FIELDS[name]: _value(name, value) for name, value in rule.match}),
        instructions=instructions,
        out_port=ofproto.OFPP_ANY,
        out_group=ofproto.OFPG_ANY,
    )


def _value(name: str, value: int | str) -> int | str | tuple[str, ...]:
    if "/" in str(value):
        return tuple(str(value).split("/"))
    if name != "dl_vlan":
        return value
    return 0 if value == UNTAGGED else _VLAN_PRESENT | int(value)


def _instructions(datapath: Any, rule: Rule) -> list[Any]:
    ofproto, parser = datapath.ofproto, datapath.ofproto_parser
    actions: list[Any] = []
    instructions: list[Any] = []
    for action, value in rule.actions:
        if action == "push_vlan":
            actions.append(parser.OFPActionPushVlan(_TAG_TYPE))
            actions.append(parser.OFPActionSetField(vlan_vid=_VLAN_PRESENT | value))
        elif action == "set_pcp":
            actions.append(parser.OFPActionSetField(vlan_pcp=value))
        elif action == "pop_vlan":
            actions.append(parser.OFPActionPopVlan())
        elif action == "output":
            actions.append(parser.OFPActionOutput(value))
        elif action == "to_controller":
            actions.append(parser.OFPActionOutput(ofproto.OFPP_CONTROLLER, value))
        elif action in (LEARN_AT_HOST, LEARN_AT_TRUNK):
            actions.append(_learn(parser, action, value))
        elif action == "resubmit":
            actions.append(parser.NXActionResubmitTable(in_port=_SAME_PORT, table_id=value))
        elif action == "goto_table":
            instructions.append(parser.OFPInstructionGotoTable(value))
        else:
            raise ValueError(f"no OpenFlow message for the action {action!r}")
    if actions:
        instructions.insert(0, parser.OFPInstructionActions(ofproto.OFPIT_APPLY_ACTIONS, actions))
    return instructions


def _learn(parser: Any, action: str, ageing: int) -> Any:
    """Open vSwitch's action that notes a frame's source as an entry for the port of arrival."""
    strip = [parser.NXFlowSpecLoad(src=0, dst=_TAG, n_bits=_WHOLE_TAG_BITS)] if action == LEARN_AT_HOST else []
    return parser.NXActionLearn(
        table_id=FORWARDING.number, hard_timeout=ageing, priority=int(Priority.STATIC_ENTRY), cookie=LEARNED,
        specs=[
            parser.NXFlowSpecMatch(src=_TAG, dst=_TAG, n_bits=_TAG_BITS),
            parser.NXFlowSpecMatch(src=("eth_src_nxm", 0), dst=("eth_dst_nxm", 0), n_bits=48),
            *strip,
            parser.NXFlowSpecOutput(src=("in_port_nxm", 0), n_bits=16),
        ],
    )  # fmt: skip


def rule_of(switch: int, datapath: Any, flow: Any) -> Rule | None:
    """The rule that an entry of a flow statistics reply is, or None for one this pipeline never writes."""
    match: list[tuple[str, int | str]] = []
    for field, value in flow.match.items():
        name = _NAMES.get(field, "")
        if (name, masked := "/".join(value) if isinstance(value, tuple) else "") in MASKED:
            match.append((name, masked))
            continue
        if not name or isinstance(value, tuple):
            return None
        untagged = name == "dl_vlan" and value == 0
        match.append((name, UNTAGGED if untagged else value & ~_VLAN_PRESENT if name == "dl_vlan" else value))
    actions = _actions(datapath, flow.instructions)
    return None if actions is None else Rule(switch, flow.table_id, flow.priority, tuple(match), actions)


def _actions(datapath: Any, instructions: Sequence[Any]) -> tuple[tuple[str, int], ...] | None:
    ofproto = datapath.ofproto
    found: list[tuple[str, int]] = []
    for instruction in instructions:
        if instruction.type == ofproto.OFPIT_GOTO_TABLE:
            found.append(("goto_table", instruction.table_id))
        elif instruction.type == ofproto.OFPIT_APPLY_ACTIONS:
            for action in instruction.actions:
                step = _action(datapath, action)
                if step is None:
                    return None
                if step[0] == "vlan_vid" and found and found[-1] == ("push_vlan", 0):
                    found[-1] = ("push_vlan", step[1])
                else:
                    found.append(step)
        else:
            return None
    return None if any(name == "vlan_vid" for name, _ in found) else tuple(found)


def _action(datapath: Any, action: Any) -> tuple[str, int] | None:
    ofproto, parser = datapath.ofproto, datapath.ofproto_parser
    if action.type == ofproto.OFPAT_OUTPUT:
        away = action.port == ofproto.OFPP_CONTROLLER
        return ("to_controller", int(action.max_len)) if away else ("output", int(action.port))
    if action.type == ofproto.OFPAT_POP_VLAN:
        return "pop_vlan", 0
    if action.type == ofproto.OFPAT_PUSH_VLAN and action.ethertype == _TAG_TYPE:
        return "push_vlan", 0
    if action.type == ofproto.OFPAT_SET_FIELD and action.key == "vlan_vid":
        return "vlan_vid", int(action.value) & ~_VLAN_PRESENT
    if action.type == ofproto.OFPAT_SET_FIELD and action.key == "vlan_pcp":
        return "set_pcp", int(action.value)
    return _own_action(parser, action)


def _own_action(parser: Any, action: Any) -> tuple[str, int] | None:
    """One of Open vSwitch's own actions: to learn, and what it writes into a learned entry to strip the tag."""
    if isinstance(action, parser.NXActionLearn):
        said, ageing = bytes(action.serialize_body()), int(action.hard_timeout)
        for kind in (LEARN_AT_HOST, LEARN_AT_TRUNK):
            if bytes(_learn(parser, kind, ageing).serialize_body()) == said:
                return kind, ageing
    if isinstance(action, parser.NXActionResubmitTable):
        return ("resubmit", int(action.table_id)) if action.in_port == _SAME_PORT else None
    if isinstance(action, parser.NXActionRegLoad):
        whole_tag = (action.dst, action.ofs_nbits, action.value) == (_TAG[0], _WHOLE_TAG_BITS - 1, 0)
        return ("pop_vlan", 0) if whole_tag else None
    return None


def bundle(datapath: Any, number: int, messages: Iterable[Any]) -> list[Any]:
    """Messages that carry others out all together, or none of them; the switch answers the last."""
    ofproto, parser = datapath.ofproto, datapath.ofproto_parser

    def control(kind: int) -> Any:
        return parser.ONFBundleCtrlMsg(datapath, number, kind, _ALL_OR_NONE, [])

    return [
        control(ofproto.ONF_BCT_OPEN_REQUEST),
        *(parser.ONFBundleAddMsg(datapath, number, _ALL_OR_NONE, message, []) for message in messages),
        control(ofproto.ONF_BCT_COMMIT_REQUEST),
    ]
