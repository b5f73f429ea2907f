"""Interface ranges of Junos: which ports they are, wherever they are used, and what of them is refused."""

from __future__ import annotations

import pytest

from testbed.base.limits import SWITCH_PORTS
from testbed.devices.bridge import Bridge
from testbed.devices.check import recognise_dialect
from testbed.devices.read_junos import read_junos

ACCESS = "set interfaces interface-range R unit 0 family ethernet-switching vlan members v10\n"
VLAN = "set vlans v10 vlan-id 10\n"


def _read(text: str) -> tuple[Bridge, list[str]]:
    assert recognise_dialect({"s1.txt": text}) == "junos"
    bridge, problems = read_junos("s1", {"s1.txt": text})
    return bridge, [str(problem) for problem in problems]


def _members(text: str) -> set[str]:
    """Ports of VLAN 10, where nothing is wrong or not understood."""
    bridge, problems = _read(text)
    assert problems == []
    assert bridge.reading.unclear == ()
    return {port for port, said in bridge.ports.items() if 10 in said.members}


@pytest.mark.parametrize("braces", [False, True])
@pytest.mark.parametrize(
    ("says", "wanted"),
    [
        ("member-range ge-0/0/1 to ge-0/0/3", {"ge-0/0/1", "ge-0/0/2", "ge-0/0/3"}),
        ("member-range ge-0/0/9 to ge-0/0/10", {"ge-0/0/9", "ge-0/0/10"}),
        ("member-range ge-0/0/2 to ge-0/0/2", {"ge-0/0/2"}),
        ("member-range et-0/0/1:2 to et-0/0/1:3", {"et-0/0/1:2", "et-0/0/1:3"}),
        ("member-range ae1 to ae2", {"ae1", "ae2"}),
        ("member ge-0/0/7", {"ge-0/0/7"}),
        ('member "ge-0/0/[1-3]"', {"ge-0/0/1", "ge-0/0/2", "ge-0/0/3"}),
        ('member "ge-0/0/[0,2]"', {"ge-0/0/0", "ge-0/0/2"}),
        ('member "ge-0/0/[0,2-3,9]"', {"ge-0/0/0", "ge-0/0/2", "ge-0/0/3", "ge-0/0/9"}),
        ('member "ge-[0-1]/0/[2-3]"', {"ge-0/0/2", "ge-0/0/3", "ge-1/0/2", "ge-1/0/3"}),
        ('member "ge-[0,2]/0/5"', {"ge-0/0/5", "ge-2/0/5"}),
    ],
)
def test_a_range_has_all_its_ports_also_the_last(says, wanted, braces):
    text = f"set interfaces interface-range R {says}\n{ACCESS}{VLAN}"
    if braces:
        unit = "unit 0 { family ethernet-switching { vlan { members v10; } } }"
        text = f"interfaces {{\n  interface-range R {{\n    {says};\n    {unit}\n  }}\n}}\n"
        text += "vlans { v10 { vlan-id 10; } }\n"
    assert _members(text) == wanted


@pytest.mark.parametrize(
    ("says", "sentence"),
    [
        ("member-range et-1/0/0 to et-4/0/40", "another slot or kind of port"),
        ("member-range ge-0/0/0 to ge-0/1/3", "another slot or kind of port"),
        ("member-range ge-0/0/0 to xe-0/0/2", "another slot or kind of port"),
        ("member-range et-0/0/1 to et-0/0/1:3", "another slot or kind of port"),
        ("member ge-0/0/*", "by a pattern that is not read"),
        ('member "ge-0/*/[0-3]"', "by a pattern that is not read"),
        ('member "[gx]e-0/0/1"', "by a pattern that is not read"),
        ('member "ge-0/0/[0-3"', "by a pattern that is not read"),
        ('member "ge-0/0/[]"', "by a pattern that is not read"),
    ],
)
def test_a_range_of_unknown_ports_is_not_understood(says, sentence):
    bridge, problems = _read(f"{VLAN}set interfaces interface-range R {says}\n{ACCESS}")
    assert problems == []  # what is said of the range is no error of its own
    (unclear,) = bridge.reading.unclear
    assert unclear.place == "s1.txt line 2"
    assert sentence in unclear.sentence
    assert unclear.sentence.endswith("and is not understood")
    assert bridge.ports == {}


@pytest.mark.parametrize(
    ("says", "sentence"),
    [
        ("member-range ge-0/0/3 to ge-0/0/1", "runs backwards, from 3 to 1"),
        ('member "ge-0/0/[3-1]"', "runs backwards, from 3 to 1"),
        ("member-range ge-0/0/0 to ge-0/0/9999", f"names 10,000 ports; {SWITCH_PORTS:,} ports"),
        ('member "ge-[0-99]/0/[0-99]"', f"names 10,000 ports; {SWITCH_PORTS:,} ports"),
        ("member-range ge-0/0/0 to frob", '"frob" is not the name of a port'),
        ("member ge-0/0/11111", "is not the name of a port"),
    ],
)
def test_a_range_that_cannot_be_has_a_sentence(says, sentence):
    (problem,) = _read(f"{VLAN}set interfaces interface-range R {says}\n{ACCESS}")[1]
    assert "line 2" in problem
    assert sentence in problem


def test_a_range_that_has_settings_and_no_member_is_told():
    (problem,) = _read(f"{ACCESS}{VLAN}set interfaces ge-0/0/1 unit 0 family ethernet-switching\n")[1]
    assert 'the interface range "R" has no member' in problem


def test_a_range_may_be_used_before_it_is_defined():
    put = "set vlans v10 interface R\nset interfaces R unit 0 family ethernet-switching\n"
    assert _members(f"{ACCESS}{VLAN}set interfaces interface-range R member ge-0/0/1\n") == {"ge-0/0/1"}
    assert _members(f"{put}{VLAN}set interfaces interface-range R member ge-0/0/1\n") == {"ge-0/0/1"}


def test_what_a_port_says_itself_outdoes_its_range():
    own = "set interfaces ge-0/0/1 unit 0 family ethernet-switching interface-mode trunk\n"
    text = f"{own}{ACCESS}set interfaces interface-range R unit 0 family ethernet-switching interface-mode access\n"
    bridge, _ = _read(f"{text}{VLAN}set interfaces interface-range R member-range ge-0/0/1 to ge-0/0/2\n")
    assert bridge.ports["ge-0/0/1"].untagged == frozenset()
    assert set(bridge.ports["ge-0/0/2"].untagged) == {10}


def test_a_range_called_as_an_interface_outside_is_read():
    text = f"set interfaces interface-range R member ge-0/0/1\n{ACCESS}{VLAN}"
    assert _members(text.replace("interface-range R", "interface-range vlan10")) == {"ge-0/0/1"}


def test_the_spanning_tree_protocol_runs_on_a_range():
    ranged = "set interfaces interface-range R member-range ge-0/0/1 to ge-0/0/2\n"
    other = "set interfaces ge-0/0/3 unit 0 family ethernet-switching vlan members v10\n"
    bridge, problems = _read(f"set protocols rstp interface R edge\n{ranged}{other}{ACCESS}{VLAN}")
    assert problems == []
    tree = bridge.reading.spanning_tree
    assert tree is not None
    assert [bool(tree.port(f"ge-0/0/{number}").filters) for number in (1, 2, 3)] == [False, False, True]
    assert [tree.port(f"ge-0/0/{number}").edge for number in (1, 2)] == [True, True]


def test_more_ports_than_any_switch_has_are_a_sentence():
    lines = [f"set interfaces interface-range R member-range ge-{slot}/0/0 to ge-{slot}/0/4000\n" for slot in (0, 1)]
    problems = _read("".join([*lines, ACCESS, VLAN]))[1]
    assert any("is one port more than can be read" in problem for problem in problems)
