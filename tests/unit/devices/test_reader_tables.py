"""Each rule of the readers' tables is entered by a sample: one that is read changes what is read, others are told so.

In the readers of docs/constructs.md whose rules are carried out one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest

from testbed.base.errors import Problem
from testbed.devices import read_junos
from testbed.devices.bridge import Bridge
from testbed.devices.command_rules import NOT_UNDERSTOOD, PASSED_OVER, Commands
from testbed.devices.read_eos import EOS
from testbed.devices.read_nxos import NXOS
from testbed.devices.read_procurve import PROCURVE
from tests.readings import strip_origins

Outcomes = Mapping[Any, Any]  # rule → what it does, a function or what becomes of its lines
_SWITCHED = """
spanning-tree mode rapid-pvst
spanning-tree vlan 10,30 priority 4096
no spanning-tree vlan 30 priority
no spanning-tree vlan 20
vlan 10,20,30,40
no vlan 40
vlan 20
   state suspend
vlan 30
   state suspend
vlan 30
   state active
interface Ethernet1/1
   switchport
interface Ethernet1/2
   no switchport
interface Ethernet1/3
   switchport mode trunk
   switchport mode access
   switchport access vlan 10
interface Ethernet1/4
   switchport mode trunk
   switchport trunk native vlan 10
   switchport trunk allowed vlan 10,20,30,40
interface Ethernet1/5
   switchport mode trunk
   switchport trunk native vlan tag
interface Ethernet1/6
   switchport mode access
   shutdown
interface Ethernet1/7
   switchport mode access
   shutdown
   no shutdown
interface Ethernet1/8
   channel-group 1 mode active
interface Port-Channel1
   switchport mode trunk
interface Ethernet1/9
   switchport mode trunk
   spanning-tree cost 7
   spanning-tree port-priority 16
   no spanning-tree port-priority
   speed 1000
mac address-table static 0200.0000.0001 vlan 10 interface Ethernet1/4
"""
# Texts of each dialect in which every rule that is read makes a difference.
SAMPLES: dict[str, list[str]] = {
    "eos": [_SWITCHED, _SWITCHED.replace("no spanning-tree vlan 20", "no spanning-tree vlan-id 20")],
    "nxos": [
        _SWITCHED.replace("Port-Channel", "port-channel"),
        """
system default switchport
vlan 10,20
vlan 10
   shutdown
vlan 20
   shutdown
vlan 20
   no shutdown
interface Ethernet1/1
   switchport mode trunk
interface Ethernet1/2
   channel-group 1
interface Ethernet1/3
   channel-group 1 force
interface port-channel1
   switchport mode trunk
interface Ethernet1/4
   no switchport
""",
    ],
    "procurve": [
        """
trunk 7 Trk1
trunk 8 Trk2 lacp
vlan 10
   untagged 1,2,7,8,Trk1,Trk2
   tagged 3,4
   no untagged 2
   no tagged 4
vlan 20
   tagged 1
no vlan 20
vlan 30,40
interface 3
   untagged vlan 30
   tagged vlan 40
interface 5
   disable
interface 6
   disable
   enable
interface 1
   speed-duplex 1000-full
spanning-tree
spanning-tree priority 1
""",
        "vlan 10\n   untagged 1\nspanning-tree enable\n",
        "vlan 10\n   untagged 1\nspanning-tree\nno spanning-tree\n",
    ],
    "junos": [
        """
set interfaces interface-range R member ge-0/0/1
set interfaces interface-range R member-range ge-0/0/2 to ge-0/0/3
set interfaces interface-range R unit 0 family ethernet-switching interface-mode trunk
set interfaces ge-0/0/4 unit 0 family ethernet-switching
set interfaces ge-0/0/5 unit 0 family ethernet-switching interface-mode access
set interfaces ge-0/0/6 unit 0 family ethernet-switching port-mode access
set interfaces ge-0/0/7 unit 0 family ethernet-switching port-mode trunk
set interfaces ge-0/0/7 unit 0 family ethernet-switching vlan members all
set interfaces ge-0/0/7 unit 0 family ethernet-switching native-vlan-id 10
set interfaces ge-0/0/8 unit 0 family ethernet-switching interface-mode trunk
set interfaces ge-0/0/8 unit 0 family ethernet-switching vlan members all
set interfaces ge-0/0/8 native-vlan-id 10
set interfaces ge-0/0/9 unit 0 family ethernet-switching
set interfaces ge-0/0/9 disable
set interfaces ge-0/0/10 unit 0 family ethernet-switching
set interfaces ge-0/0/10 unit 0 disable
set interfaces ge-0/0/11 ether-options 802.3ad ae0
set interfaces ge-0/0/12 gigether-options 802.3ad ae0
set interfaces ae0 unit 0 family ethernet-switching
set interfaces ge-0/0/13 unit 0 family inet address 192.0.2.1/24
set interfaces ge-0/0/15 unit 0 family inet6 address 2001:db8::1/64
set vlans v10 vlan-id 10
set vlans v20 vlan-id-list 20-21
set vlans v30 vlan-range 30-31
set vlans v10 interface ge-0/0/1
""",
        *(
            f"set interfaces ge-0/0/1 unit 0 family ethernet-switching\nset protocols {name} interface ge-0/0/1\n"
            for name in ("stp", "rstp", "mstp", "vstp")
        ),
    ],
}
# What stands before a line of a port or of a VLAN, and a value for each word in capitals.
OPENINGS = {
    "eos": ("interface Ethernet1", "vlan 10"),
    "nxos": ("system default switchport\ninterface Ethernet1/1", "vlan 10"),
    "procurve": ("interface 1", "vlan 10"),
}
COMMANDS = {"eos": EOS, "nxos": NXOS, "procurve": PROCURVE}
VALUES = {"WORD": "ge-0/0/1", "REST": "x", "N": "10", "VLANS": "10", "PORTS": "1", "MAC": "0200.0000.0001"}


def _outcomes(dialect: str) -> Outcomes:
    return (
        read_junos.RULES
        if dialect == "junos"
        else {(rule.of, rule.says): rule.does for rule in COMMANDS[dialect].rules}
    )


def _rules(*wanted: str) -> list[Any]:
    found = []
    for dialect in SAMPLES:
        for rule, does in _outcomes(dialect).items():
            if (does if isinstance(does, str) else "read") in wanted:
                found.append(
                    pytest.param(dialect, rule, id=f"{dialect}: {rule if isinstance(rule, str) else ' '.join(rule)}")
                )
    return found


def _read(dialect: str, text: str) -> tuple[Bridge, list[Problem]]:
    files = {"s1.txt": text}
    return read_junos.read_junos("s1", files) if dialect == "junos" else COMMANDS[dialect].read("s1", files)


def _change(monkeypatch: pytest.MonkeyPatch, dialect: str, rule: Any, does: Callable[..., None]) -> None:
    """Let a rule do something else."""
    if dialect == "junos":
        rules = [(says.split(), does if says == rule else other) for says, other in read_junos.RULES.items()]
        monkeypatch.setattr(read_junos, "_WORDS", rules)
        return
    commands: Commands = COMMANDS[dialect]
    changed = tuple(replace(one, does=does) if (one.of, one.says) == rule else one for one in commands.rules)
    monkeypatch.setitem(COMMANDS, dialect, replace(commands, rules=changed))


@pytest.mark.parametrize("dialect", SAMPLES)
def test_the_samples_are_understood_whole(dialect):
    for text in SAMPLES[dialect]:
        bridge, problems = _read(dialect, text)
        assert problems == []
        assert bridge.reading.unclear == ()


@pytest.mark.parametrize(("dialect", "rule"), _rules("read"))
def test_a_rule_that_is_read_changes_what_is_read(dialect, rule, monkeypatch):
    before = [strip_origins(_read(dialect, text)) for text in SAMPLES[dialect]]
    _change(monkeypatch, dialect, rule, lambda *given: None)
    assert [strip_origins(_read(dialect, text)) for text in SAMPLES[dialect]] != before


@pytest.mark.parametrize(("dialect", "rule"), _rules(PASSED_OVER, NOT_UNDERSTOOD))
def test_a_rule_that_is_not_read_is_reached_by_its_line(dialect, rule, monkeypatch):
    of, says = ("", rule) if dialect == "junos" else rule
    line = " ".join(VALUES.get(word, word) for word in says.split())
    place = ("port", "vlan").index(of) if of in ("port", "vlan") else None
    text = f"set {line}" if dialect == "junos" else line if place is None else f"{OPENINGS[dialect][place]}\n   {line}"
    reached: list[int] = []
    _change(monkeypatch, dialect, rule, lambda *given: reached.append(1))
    _read(dialect, text)
    assert reached == [1]
