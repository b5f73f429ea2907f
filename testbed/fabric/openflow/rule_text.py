"""Rules as `ovs-ofctl` writes them, and back: what is installed, and what a running switch says it has."""

from __future__ import annotations

import re
from dataclasses import replace

from testbed.base.model import Group, Rule
from testbed.fabric.openflow.admission import MASKED, lldp_rules
from testbed.fabric.openflow.compile import HASH_FIELDS
from testbed.fabric.openflow.tables import (
    EGRESS,
    FORWARDING,
    INGRESS,
    LEARN,
    LEARN_AT_BUNDLE,
    LEARN_AT_HOST,
    LEARN_AT_TRUNK,
    LEARNED,
    UNTAGGED,
    Priority,
)

_VLAN_PRESENT = 0x1000
_CONTROLLER = "CONTROLLER"
# The register that holds the bundle to send by.
_BUNDLE = "reg0"
# As Open vSwitch writes it. VLAN and presence of a tag are 13 bits; OXM_OF_VLAN_VID[] would take 12, and the learned
# rule would not look like a static entry. The cookie tells learned rules from those that a switch was given.
_LEARN = (
    f"learn(table={FORWARDING.number},{{ages}}priority={Priority.STATIC_ENTRY:d},cookie=0x{LEARNED:x},"
    "NXM_OF_VLAN_TCI[0..12],NXM_OF_ETH_DST[]=NXM_OF_ETH_SRC[],{sends})"
)
# How a learned rule strips the tag, and what each kind of them does.
_STRIP = "load:0->NXM_OF_VLAN_TCI[]"
_BY_PORT = "output:NXM_OF_IN_PORT[]"
_SENDS = {
    LEARN_AT_HOST: f"{_STRIP},{_BY_PORT}",
    LEARN_AT_TRUNK: _BY_PORT,
    LEARN_AT_BUNDLE: "load:NXM_OF_IN_PORT[]->NXM_NX_REG0[0..15]",
}
# What one has for a bundle: a port's number is half of a register.
_TO_BUNDLE = re.compile(r"load:(0x[0-9a-f]+)->NXM_NX_REG0\[0\.\.15\]$")
_ANY_LEARN = re.compile(r"learn\([^()]*\)")
_AGES = re.compile(r"hard_timeout=(\d+)")
_SET_FIELD = {"set_pcp": "vlan_pcp", "set_in_port": "in_port", "set_bundle": _BUNDLE}
_SETS = {field: action for action, field in _SET_FIELD.items()}
_SELECT = f"type=select,selection_method=hash,fields({','.join(HASH_FIELDS)})"
_RESUBMIT = re.compile(r"\bresubmit\(,(\d+)\)")
_AGAIN = tuple(("resubmit", str(table.number)) for table in (INGRESS, FORWARDING, EGRESS))
_GROUP = re.compile(r"group_id=(\d+),(.*?)((?:,bucket=.*)?)$")
_BUCKET = re.compile(r"bucket_id:(\d+),watch_port:(\d+),actions=output:(\d+)$")


class FlowSyntaxError(ValueError):
    """A dumped flow has a part that this pipeline never writes."""


def format_rule(rule: Rule) -> str:
    """Return a rule in the syntax of `ovs-ofctl add-flows` (OpenFlow 1.3)."""
    match = "".join(f",{_format_field(field, value)}" for field, value in rule.match)
    actions = ",".join(_format_action(action, value) for action, value in rule.actions) or "drop"
    return f"table={rule.table},priority={rule.priority}{match},actions={actions}"


def _format_field(field: str, value: int | str) -> str:
    if (field, value) == ("dl_vlan", UNTAGGED):
        return "vlan_tci=0x0000/0x1fff"
    return f"{_BUNDLE}={value:#x}" if field == "bundle" and isinstance(value, int) else f"{field}={value}"


def _format_action(action: str, value: int) -> str:
    if action == "push_vlan":
        return f"push_vlan:0x8100,set_field:{_VLAN_PRESENT | value}->vlan_vid"
    if action == "pop_vlan":
        return "pop_vlan"
    if action in LEARN:
        return _learn(action, value)
    if action in _SET_FIELD:
        number = f"{value:#x}" if action == "set_bundle" else str(value)
        return f"set_field:{number}->{_SET_FIELD[action]}"
    if action == "resubmit":
        return f"resubmit(,{value})"
    return f"{_CONTROLLER if action == 'to_controller' else action}:{value}"


def _learn(action: str, ageing: int) -> str:
    ages = f"hard_timeout={ageing}," if ageing else ""
    return _LEARN.format(ages=ages, sends=_SENDS[action])


def parse_rule(switch: int, line: str) -> Rule:
    """Read a line of `ovs-ofctl -O OpenFlow13 --no-stats --no-names dump-flows`.

    Raises:
        FlowSyntaxError: the line has a match or an action this pipeline never writes.
    """
    try:
        return _parse(switch, line)
    except FlowSyntaxError:
        raise
    except ValueError as error:  # a port by name, a masked VLAN
        raise FlowSyntaxError(f"{error} in {line.strip()!r}") from error


def _parse(switch: int, line: str) -> Rule:
    head, separator, tail = line.strip().partition("actions=")
    if not separator:
        raise FlowSyntaxError(f"not a flow: {line.strip()!r}")
    table, priority = 0, 32768
    match: list[tuple[str, int | str]] = []
    for part in re.split(r"[,\s]+", head.strip()):
        name, _, value = part.partition("=")
        if name == "table":
            table = int(value)
        elif name == "priority":
            priority = int(value)
        elif name in ("in_port", "dl_vlan", "dl_vlan_pcp"):
            match.append((name, int(value)))
        elif name in ("dl_src", "dl_dst") and ("/" not in value or (name, value) in MASKED):
            match.append((name, value))
        elif name == _BUNDLE:
            match.append(("bundle", int(value, 0)))
        elif part == "vlan_tci=0x0000/0x1fff":
            match.append(("dl_vlan", UNTAGGED))
        elif part and name not in ("cookie", "hard_timeout", "send_flow_rem", "reset_counts"):
            raise FlowSyntaxError(f"unexpected match {part!r} in {line.strip()!r}")
    rule = Rule(switch, table, priority, tuple(match), _parse_actions(tail.strip(), line))
    if any(name == "to_controller" for name, _ in rule.actions) and replace(rule, switch=0) != lldp_rules(1)[0]:
        raise FlowSyntaxError(f"only LLDP frames go to a controller, and not those of {line.strip()!r}")
    return rule


def _parse_actions(text: str, line: str) -> tuple[tuple[str, int], ...]:
    actions: list[tuple[str, int]] = []
    for part in _RESUBMIT.sub(r"resubmit:\1", _ANY_LEARN.sub(_learn_in_short, text)).split(","):
        name, _, value = part.partition(":")
        if part == "push_vlan:0x8100":
            actions.append(("push_vlan", 0))
        elif name == "set_field" and value.endswith("->vlan_vid") and actions and actions[-1] == ("push_vlan", 0):
            actions[-1] = ("push_vlan", int(value.removesuffix("->vlan_vid")) & ~_VLAN_PRESENT)
        elif name == "set_field" and value.partition("->")[2] in _SETS:
            number, _, field = value.partition("->")
            actions.append((_SETS[field], int(number, 0)))
        elif name == "pop_vlan" or part == _STRIP:
            actions.append(("pop_vlan", 0))
        elif (bundle := _TO_BUNDLE.match(part)) is not None:
            actions.append(("set_bundle", int(bundle[1], 0)))
        elif name in ("output", "goto_table", "group", *LEARN) or (name, value) in _AGAIN:
            actions.append((name, int(value)))
        elif name == _CONTROLLER:
            actions.append(("to_controller", int(value)))
        elif part != "drop":
            raise FlowSyntaxError(f"unexpected action {part!r} in {line.strip()!r}")
    return tuple(actions)


def _learn_in_short(found: re.Match[str]) -> str:
    """An action `learn` of this pipeline by its name and ageing time; any other stays as it is."""
    ages = _AGES.search(found[0])
    ageing = int(ages[1]) if ages else 0
    kinds = [action for action in _SENDS if _learn(action, ageing) == found[0]]
    return f"{kinds[0]}:{ageing}" if kinds else found[0]


def format_removal(rule: Rule) -> str:
    """Return what takes a rule out, in the syntax of `ovs-ofctl add-flows`."""
    return f"delete_strict {format_rule(rule).partition(',actions=')[0]}"


def format_group(group: Group) -> str:
    """Return a group in the syntax of `ovs-ofctl -O OpenFlow15 add-groups`.

    Buckets are numbered by member, alike at all switches: the hash chooses by number, so a frame that keeps its
    addresses takes members of one number wherever bundles are of one size.
    """
    buckets = "".join(
        f",bucket=bucket_id:{number},watch_port:{port},actions=output:{port}"
        for number, port in zip(group.numbers or range(len(group.ports)), group.ports, strict=True)
    )
    return f"group_id={group.number},{_SELECT}{buckets}"


def parse_group(switch: int, line: str) -> Group:
    """Read a line of `ovs-ofctl -O OpenFlow15 dump-groups`.

    Raises:
        FlowSyntaxError: the group chooses in another way, or its buckets do more than send by the port they watch.
    """
    found = _GROUP.match(line.strip())
    if found is None or found[2] != _SELECT:
        raise FlowSyntaxError(f"not a group of this pipeline: {line.strip()!r}")
    ports: list[int] = []
    numbers: list[int] = []
    for text in found[3].split(",bucket=")[1:]:
        bucket = _BUCKET.match(text)
        if bucket is None or int(bucket[1]) <= max(numbers, default=-1) or bucket[2] != bucket[3]:
            raise FlowSyntaxError(f"unexpected bucket {text!r} in {line.strip()!r}")
        ports.append(int(bucket[3]))
        numbers.append(int(bucket[1]))
    as_usual = numbers == list(range(len(numbers)))
    return Group(switch, int(found[1]), tuple(ports), () if as_usual else tuple(numbers))
