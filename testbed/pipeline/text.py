"""Rules as `ovs-ofctl` writes them, and back: what is installed, and what a running switch says it has."""

from __future__ import annotations

import re

from testbed.model import Rule
from testbed.pipeline.tables import UNTAGGED

_VLAN_PRESENT = 0x1000


class FlowSyntaxError(ValueError):
    """A dumped flow has a part that this pipeline never writes."""


def format_rule(rule: Rule) -> str:
    """Return a rule in the syntax of `ovs-ofctl add-flows` (OpenFlow 1.3)."""
    match = "".join(
        ",vlan_tci=0x0000/0x1fff" if (field, value) == ("dl_vlan", UNTAGGED) else f",{field}={value}"
        for field, value in rule.match
    )
    actions = ",".join(_format_action(action, value) for action, value in rule.actions) or "drop"
    return f"table={rule.table},priority={rule.priority}{match},actions={actions}"


def _format_action(action: str, value: int) -> str:
    if action == "push_vlan":
        return f"push_vlan:0x8100,set_field:{_VLAN_PRESENT | value}->vlan_vid"
    if action == "set_pcp":
        return f"set_field:{value}->vlan_pcp"
    if action == "pop_vlan":
        return "pop_vlan"
    return f"{action}:{value}"


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
        elif name == "dl_dst":
            match.append((name, value))
        elif part == "vlan_tci=0x0000/0x1fff":
            match.append(("dl_vlan", UNTAGGED))
        elif part and name not in ("cookie", "send_flow_rem", "reset_counts"):
            raise FlowSyntaxError(f"unexpected match {part!r} in {line.strip()!r}")
    return Rule(switch, table, priority, tuple(match), _parse_actions(tail.strip(), line))


def _parse_actions(text: str, line: str) -> tuple[tuple[str, int], ...]:
    actions: list[tuple[str, int]] = []
    for part in text.split(","):
        name, _, value = part.partition(":")
        if part == "push_vlan:0x8100":
            actions.append(("push_vlan", 0))
        elif name == "set_field" and value.endswith("->vlan_vid") and actions and actions[-1] == ("push_vlan", 0):
            actions[-1] = ("push_vlan", int(value.removesuffix("->vlan_vid")) & ~_VLAN_PRESENT)
        elif name == "set_field" and value.endswith("->vlan_pcp"):
            actions.append(("set_pcp", int(value.removesuffix("->vlan_pcp"))))
        elif name == "pop_vlan":
            actions.append(("pop_vlan", 0))
        elif name in ("output", "goto_table"):
            actions.append((name, int(value)))
        elif part != "drop":
            raise FlowSyntaxError(f"unexpected action {part!r} in {line.strip()!r}")
    return tuple(actions)
