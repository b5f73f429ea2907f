"""Rules as the bytes of OpenFlow 1.3 messages, for when many must be sent, or few at once.

The framework's classes (see openflow_messages.py) take some 200 µs a rule, these lines 10; a test compares their bytes.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable
from functools import lru_cache

from testbed.base.model import Rule
from testbed.fabric.openflow.tables import UNTAGGED

_VERSION, _FLOW_MOD = 4, 14
_ADD, _DELETE_STRICT = 0, 4
_VLAN_PRESENT = 0x1000
_BASIC, _MATCH_OXM = 0x8000, 1
_GOTO_TABLE, _APPLY_ACTIONS = 1, 4
_WHOLE_FRAME = 0xFFE5
_CONTROLLER = 0xFFFFFFFD
_ANY, _NO_BUFFER = 0xFFFFFFFF, 0xFFFFFFFF


def _vlan(value: int | str) -> bytes:
    return struct.pack("!H", 0 if value == UNTAGGED else _VLAN_PRESENT | int(value))


def _address(value: int | str) -> bytes:
    """A MAC address, and its mask where it has one."""
    return bytes.fromhex(str(value).replace(":", "").replace("/", ""))


# Name of a field → its number, and its value as bytes. Prerequisites have lower numbers.
_FIELDS: dict[str, tuple[int, Callable[[int | str], bytes]]] = {
    "in_port": (0, lambda value: struct.pack("!I", value)),
    "dl_dst": (3, _address),
    "dl_src": (4, _address),
    "dl_vlan": (6, _vlan),
    "dl_vlan_pcp": (7, lambda value: struct.pack("!B", value)),
}


def add_bytes(rules: Iterable[Rule], transaction: int) -> bytes:
    """Messages that add rules of one switch, or put them in the place of those with the same match."""
    return b"".join(_flow_mod(rule, _ADD, _instructions(rule.actions), transaction) for rule in rules)


def remove_bytes(rules: Iterable[Rule], transaction: int) -> bytes:
    """Messages that remove exactly these rules of one switch."""
    return b"".join(_flow_mod(rule, _DELETE_STRICT, b"", transaction) for rule in rules)


def _flow_mod(rule: Rule, command: int, instructions: bytes, transaction: int) -> bytes:
    match = b"".join(_oxm(*field) for field in sorted((_FIELDS[name][0], name, value) for name, value in rule.match))
    body = struct.pack(
        "!QQBBHHHIIIHxx", 0, 0, rule.table, command, 0, 0, rule.priority, _NO_BUFFER, _ANY, _ANY, 0
    ) + _padded(struct.pack("!HH", _MATCH_OXM, 4 + len(match)) + match)
    length = 8 + len(body) + len(instructions)
    return struct.pack("!BBHI", _VERSION, _FLOW_MOD, length, transaction) + body + instructions


@lru_cache(maxsize=65536)
def _oxm(number: int, name: str, value: int | str) -> bytes:
    content = _FIELDS[name][1](value)
    return struct.pack("!HBB", _BASIC, number << 1 | ("/" in str(value)), len(content)) + content


def _padded(content: bytes) -> bytes:
    return content + bytes(-len(content) % 8)


@lru_cache(maxsize=65536)
def _instructions(actions: tuple[tuple[str, int], ...]) -> bytes:
    applied = b"".join(_action(name, value) for name, value in actions if name != "goto_table")
    found = struct.pack("!HHxxxx", _APPLY_ACTIONS, 8 + len(applied)) + applied if applied else b""
    return found + b"".join(
        struct.pack("!HHBxxx", _GOTO_TABLE, 8, value) for name, value in actions if name == "goto_table"
    )


def _action(name: str, value: int) -> bytes:
    if name == "output":
        return struct.pack("!HHIHxxxxxx", 0, 16, value, _WHOLE_FRAME)
    if name == "to_controller":
        return struct.pack("!HHIHxxxxxx", 0, 16, _CONTROLLER, value)
    if name == "push_vlan":
        return struct.pack("!HHHxx", 17, 8, 0x8100) + _set_field("dl_vlan", value)
    if name == "pop_vlan":
        return struct.pack("!HHxxxx", 18, 8)
    if name == "set_pcp":
        return _set_field("dl_vlan_pcp", value)
    if name == "resubmit":  # Open vSwitch's own; the in-port stays
        return struct.pack("!HHIHHBxxx", 0xFFFF, 16, 0x2320, 14, 0xFFF8, value)
    raise ValueError(f"no OpenFlow message for the action {name!r}")


def _set_field(name: str, value: int) -> bytes:
    number, _ = _FIELDS[name]
    content = _oxm(number, name, value)
    padded = content + bytes(-(4 + len(content)) % 8)
    return struct.pack("!HH", 25, 4 + len(padded)) + padded
