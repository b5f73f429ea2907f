"""What each dialect says of the spanning tree protocol, and what it means without a line."""

from __future__ import annotations

import pytest

from testbed.devices.bridge import Bridge
from testbed.devices.check import reader_called
from testbed.devices.stp_settings import ANY, StpSettings
from testbed.devices.vlan_set import VlanSet

IOS = """{}
interface GigabitEthernet1/0/1
 switchport mode trunk
 {}
!
end
"""


def read(dialect: str, text: str) -> Bridge:
    reader = reader_called(dialect)
    ending = {"mikrotik": "rsc", "linux-bridge-iproute2": "sh"}.get(dialect, "txt")
    bridge, problems = reader.read("s1", {f"s1.{ending}": text})
    assert problems == []
    assert bridge.reading.unclear == ()
    return bridge


def tree_of(dialect: str, text: str) -> StpSettings:
    tree = read(dialect, text).reading.spanning_tree
    assert tree is not None
    return tree


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("spanning-tree cost 7", {ANY: 7}),
        ("spanning-tree vlan 10-11 cost 7", {10: 7, 11: 7}),
        ("spanning-tree mst 0,2 cost 7", {0: 7, 2: 7}),
        ("spanning-tree cost 7\n no spanning-tree cost", {}),
    ],
)
def test_path_costs_of_a_catalyst(line, wanted):
    assert dict(tree_of("cisco-ios", IOS.format("vlan 10", line)).port("GigabitEthernet1/0/1").costs) == wanted


@pytest.mark.parametrize(
    ("lines", "wanted"),
    [
        ("spanning-tree vlan 10,20 priority 4096", {10: 4096, 20: 4096}),
        ("spanning-tree vlan 10 root primary", {10: 24576}),
        ("spanning-tree vlan 10 root secondary diameter 4", {10: 28672}),
        ("spanning-tree mst 1-2 priority 8192", {1: 8192, 2: 8192}),
        ("spanning-tree vlan 10 priority 4096\nno spanning-tree vlan 10 priority 4096", {10: 32768}),
    ],
)
def test_priorities_of_a_catalyst(lines, wanted):
    assert dict(tree_of("cisco-ios", IOS.format(lines, "no shutdown")).priorities) == wanted


def test_a_catalyst_out_of_the_box_runs_pvst_by_default():
    bridge = read("cisco-ios", IOS.format("vlan 10", "no shutdown"))
    tree = bridge.reading.spanning_tree
    assert tree is not None
    assert (tree.protocol, tree.long_costs, tree.priority_in(10)) == ("pvst", False, 32768)
    assert "ios-spanning-tree" in bridge.reading.defaults["GigabitEthernet1/0/1"]
    said = read("cisco-ios", IOS.format("spanning-tree mode mst\nspanning-tree pathcost method long", "no shutdown"))
    assert said.reading.spanning_tree is not None
    assert (said.reading.spanning_tree.protocol, said.reading.spanning_tree.long_costs) == ("mstp", True)
    assert "ios-spanning-tree" not in said.reading.defaults["GigabitEthernet1/0/1"]


def test_an_mst_region_is_read_with_and_without_indentation():
    lines = ["spanning-tree mode mst", "spanning-tree mst configuration", " name Hall 1", " revision 3",
             " instance 1 vlan 10, 20-21", " instance 2 vlan 20", "!"]  # fmt: skip
    for text in ("\n".join(lines), "\n".join(line.strip() for line in lines)):
        tree = tree_of("cisco-ios", IOS.format(text, "no shutdown"))
        assert tree.region == ("Hall 1", 3)
        assert dict(tree.instances) == {1: VlanSet.from_ids({10, 21}), 2: VlanSet.from_ids({20})}
        assert [tree.tree_of(vlan) for vlan in (1, 10, 20)] == [0, 1, 2]


def test_a_line_after_a_vlan_is_of_the_switch():
    """Without an exclamation mark between them, as people type it."""
    text = IOS.format(
        "vlan 10\nspanning-tree portfast bpduguard default\nspanning-tree vlan 10 priority 0", "no shutdown"
    )
    tree = tree_of("cisco-ios", text)
    assert (tree.guards_edges, tree.priority_in(10)) == (True, 0)


SAID = {
    "arista-eos": """! device: s1 (DCS-7050, EOS-4.28.1F)
spanning-tree mode rstp
spanning-tree priority 4096
interface Ethernet1
   switchport mode trunk
   speed forced 1000full
   spanning-tree cost 7
   spanning-tree port-priority 16
   spanning-tree guard root
interface Ethernet2
   spanning-tree bpduguard enable
   spanning-tree portfast
   spanning-tree bpdufilter enable
""",
    "cisco-nxos": """!Command: show running-config
system default switchport
spanning-tree mode mst
spanning-tree mst 0 priority 4096
interface Ethernet1/1
  switchport mode trunk
  speed 1000
  spanning-tree cost 7
  spanning-tree port-priority 16
  spanning-tree guard root
interface Ethernet1/2
  spanning-tree bpduguard enable
  spanning-tree port type edge
  spanning-tree bpdufilter enable
""",
    "powerconnect-6200": """configure
spanning-tree priority 4096
interface ethernet 1/g1
switchport mode access
speed 1000
spanning-tree cost 7
spanning-tree port-priority 16
spanning-tree guard root
exit
interface ethernet 1/g2
spanning-tree bpduguard
spanning-tree portfast
spanning-tree disable
exit
exit
""",
    "procurve": """; J9625A Configuration Editor; Created on release #RA.16.04
interface 1
   speed-duplex 1000-full
   exit
interface 2
   exit
spanning-tree
spanning-tree priority 1
spanning-tree 1 path-cost 7
spanning-tree 1 priority 1
spanning-tree 1 root-guard
spanning-tree 2 bpdu-protection
spanning-tree 2 admin-edge-port
spanning-tree 2 bpdu-filter
vlan 1
   untagged 1-2
   exit
""",
    "junos": """set interfaces ge-0/0/1 unit 0 family ethernet-switching vlan members default
set interfaces ge-0/0/2 unit 0 family ethernet-switching vlan members default
set protocols rstp bridge-priority 4k
set protocols rstp interface ge-0/0/1 cost 7
set protocols rstp interface ge-0/0/1 priority 16
set protocols rstp interface ge-0/0/1 no-root-port
set protocols rstp interface ge-0/0/2 edge
set protocols rstp interface ge-0/0/2 disable
set protocols rstp bpdu-block-on-edge
""",
    "mikrotik": """/interface bridge
add name=br priority=0x1000 vlan-filtering=yes admin-mac=02:00:00:00:00:09
/interface bridge port
add bridge=br interface=ether1 path-cost=7 priority=0x10 restricted-role=yes
add bridge=br interface=ether2 bpdu-guard=yes edge=yes
""",
    "linux-bridge-iproute2": """ip link add name br0 type bridge vlan_filtering 1 stp_state 1 priority 4096
ip link set dev swp1 master br0
ip link set dev swp2 master br0
bridge link set dev swp1 cost 7 priority 16 root_block on
bridge link set dev swp2 guard on
""",
}
PORTS = {
    "arista-eos": ("Ethernet1", "Ethernet2"), "cisco-nxos": ("Ethernet1/1", "Ethernet1/2"),
    "powerconnect-6200": ("1/g1", "1/g2"), "procurve": ("1", "2"), "junos": ("ge-0/0/1", "ge-0/0/2"),
    "mikrotik": ("ether1", "ether2"), "linux-bridge-iproute2": ("swp1", "swp2"),
}  # fmt: skip


@pytest.mark.parametrize("dialect", SAID)
def test_what_a_dialect_says_of_its_ports(dialect):
    bridge = read(dialect, SAID[dialect])
    tree = bridge.reading.spanning_tree
    assert bridge.stp
    assert tree is not None
    first, second = (tree.port(name) for name in PORTS[dialect])
    assert tree.priority_in(0) == 4096
    assert (first.costs[ANY], first.priorities[ANY], first.guards_root) == (7, 16, True)
    assert second.guards or (tree.guards_edges and second.edge)
    if dialect != "linux-bridge-iproute2":  # which has no edge ports, and nothing that filters
        assert second.edge
        assert second.filters or dialect == "mikrotik"
    if dialect in ("arista-eos", "cisco-nxos", "powerconnect-6200", "procurve"):
        assert first.mbits == 1000


@pytest.mark.parametrize(
    ("dialect", "protocol"),
    [("arista-eos", "mstp"), ("cisco-nxos", "pvst"), ("powerconnect-6200", "rstp"), ("mikrotik", "rstp")],
)
def test_the_protocol_of_each_maker_without_a_line(dialect, protocol):
    lines = [
        line for line in SAID[dialect].splitlines() if not line.startswith(("spanning-tree mode", "spanning-tree mst"))
    ]
    bridge = read(dialect, "\n".join(lines) + "\n")
    assert bridge.reading.spanning_tree is not None
    assert bridge.reading.spanning_tree.protocol == protocol
    assert any(key.endswith("-spanning-tree") for key in bridge.reading.defaults[PORTS[dialect][0]])


@pytest.mark.parametrize("dialect", ["procurve", "linux-bridge-iproute2", "junos"])
def test_the_protocol_is_off_where_it_comes_switched_off(dialect):
    words = ("spanning-tree", "bridge link set dev swp1 cost", "set protocols")
    text = "\n".join(line for line in SAID[dialect].splitlines() if not line.startswith(words))
    bridge = read(dialect, text.replace(" stp_state 1", "") + "\n")
    assert not bridge.stp
    assert bridge.reading.spanning_tree is None


@pytest.mark.parametrize(
    ("dialect", "line"),
    [
        ("arista-eos", "spanning-tree wonder"),
        ("cisco-nxos", "spanning-tree pseudo-information"),
        ("powerconnect-6200", "spanning-tree wonder"),
        ("procurve", "spanning-tree wonder"),
        ("procurve", "no spanning-tree 1 wonder"),
        ("junos", "set protocols rstp wonder"),
        ("junos", "set protocols rstp interface ge-0/0/1 wonder"),
    ],
)
def test_a_word_of_the_protocol_that_is_not_known_is_told(dialect, line):
    lines = SAID[dialect].splitlines()
    bridge, problems = reader_called(dialect).read("s1", {"s1.txt": "\n".join([lines[0], line, *lines[1:]]) + "\n"})
    assert problems == []
    assert any("wonder" in problem.sentence or "pseudo" in problem.sentence for problem in bridge.reading.unclear)


def test_junos_runs_the_protocol_on_listed_interfaces():
    text = SAID["junos"].replace("set protocols rstp interface ge-0/0/2 edge\n", "")
    text = text.replace("set protocols rstp interface ge-0/0/2 disable\n", "")
    assert tree_of("junos", text).port("ge-0/0/2").filters
    assert not tree_of("junos", f"{text}set protocols rstp interface all\n").port("ge-0/0/2").filters
    none = "\n".join(line for line in text.splitlines() if "rstp interface" not in line)
    bridge, _ = reader_called("junos").read("s1", {"s1.txt": none})
    assert any("has no interface" in problem.sentence for problem in bridge.reading.unclear)


@pytest.mark.parametrize(("dialect", "line"), [("cisco-ios", "spanning-tree cost many"), ("mikrotik", "path-cost=x")])
def test_a_number_that_is_none_is_a_problem(dialect, line):
    text = IOS.format("vlan 10", line) if dialect == "cisco-ios" else SAID["mikrotik"].replace("path-cost=7", line)
    ending = "txt" if dialect == "cisco-ios" else "rsc"
    _, problems = reader_called(dialect).read("s1", {f"s1.{ending}": text})
    assert any("is not a number" in problem.sentence for problem in problems)


@pytest.mark.parametrize(("version", "costs"), [("7.12.1", {ANY: 10}), ("7.13", {}), ("6.49.7", {ANY: 10})])
def test_costs_of_routeros_depend_on_speeds_from_7_13_on(version, costs):
    text = f"# 2024-01-01 by RouterOS {version}\n" + SAID["mikrotik"].replace("path-cost=7 ", "")
    tree = tree_of("mikrotik", text)
    assert dict(tree.port("ether1").costs) == costs
    assert tree.adds_speeds is False


def test_costs_of_junos_without_a_line_are_not_known():
    """Its guides give one table, and show costs of the other."""
    assert tree_of("junos", SAID["junos"]).long_costs is None
