"""Texts that administrators collect: `bridge vlan show`, `ip -d link` and `ovs-vsctl show`."""

from __future__ import annotations

import pytest

from testbed.devices.audit import audit
from testbed.devices.audit.read_folder import read_network
from testbed.devices.bridge import Bridge, BridgePort
from testbed.devices.check import OVS_SHOW, RUNNING_TEXT, reader_called, recognise_dialect
from testbed.devices.vlan_set import ALL_VLANS, VLAN_0, VlanSet

LINKS = """1: lo: <LOOPBACK,UP,LOWER_UP> mtu 65536 qdisc noqueue state UNKNOWN mode DEFAULT group default qlen 1000
    link/loopback 00:00:00:00:00:00 brd 00:00:00:00:00:00
2: br0: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500 qdisc noqueue state UP mode DEFAULT group default qlen 1000
    link/ether 02:00:00:00:00:01 brd ff:ff:ff:ff:ff:ff promiscuity 0
    bridge forward_delay 1500 hello_time 200 max_age 2000 stp_state 0 vlan_filtering 1 vlan_protocol 802.1Q
3: swp1@if4: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500 qdisc noqueue master br0 state UP mode DEFAULT group default
    link/ether 02:00:00:00:00:02 brd ff:ff:ff:ff:ff:ff promiscuity 1
    bridge_slave state forwarding priority 32 hairpin off learning on flood on mcast_flood on bcast_flood on
4: swp2: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500 qdisc noqueue master br0 state UP mode DEFAULT group default
    bridge_slave state forwarding priority 32 hairpin off learning off flood off mcast_flood on bcast_flood on
"""
VLANS = """port              vlan-id
swp1              1 Egress Untagged
                    state forwarding mcast_router 1
                  10-12
swp2              10 PVID Egress Untagged
                    state forwarding mcast_router 1
br0               1 PVID Egress Untagged
"""
OLD_VLANS = "port\tvlan ids\nswp1\t 1 Egress Untagged\n\t 10-12\n\nswp2\t 10 PVID Egress Untagged\n\nbr0\tNone\n\n"
WANTED = {
    "swp1": BridgePort(None, {1, 10, 11, 12}, {1}),
    "swp2": BridgePort(10, {10}, {10}, learning=False, flood=False),
}


def running(files: dict[str, str]) -> Bridge:
    assert recognise_dialect(files) == RUNNING_TEXT
    bridge, problems = reader_called(RUNNING_TEXT).read("s1", files)
    assert problems == []
    return bridge


@pytest.mark.parametrize(
    "files",
    [
        {"s1/link.txt": LINKS, "s1/vlan.txt": VLANS},
        {"s1.txt": VLANS + LINKS},
        {"s1.txt": LINKS + OLD_VLANS},
    ],
)
def test_texts_of_a_running_bridge_are_read_as_its_json(files):
    bridge = running(files)
    assert bridge.ports == WANTED
    assert (bridge.vlan_filtering, bridge.stp, bridge.reading.unclear) == (True, False, ())


def test_static_entries_states_and_flags_stand_in_texts_too():
    fdb = "02:00:00:00:00:09 dev swp2 vlan 10 master br0 static\n02:00:00:00:00:08 dev swp2 master br0\n"
    links = LINKS.replace("state forwarding priority 32 hairpin off", "state blocking priority 32 hairpin on", 1)
    bridge = running({"s1/link.txt": links, "s1/vlan.txt": VLANS, "s1/fdb.txt": fdb})
    assert bridge.fdb == {(10, "02:00:00:00:00:09"): "swp2"}
    assert bridge.reading.down["swp1"].startswith("is blocking")
    assert any("hairpin" in problem.sentence for problem in bridge.reading.unclear)


@pytest.mark.parametrize(
    ("files", "told"),
    [
        ({"s1.txt": VLANS}, "lacks what ip -d link show prints"),
        ({"s1.txt": LINKS}, "lacks what bridge -d vlan show prints"),
        ({"s1.txt": LINKS.replace("    bridge", "    x") + VLANS}, "lacks what ip -d link show prints"),
    ],
)
def test_a_text_that_is_missing_is_a_sentence(files, told):
    _, problems = reader_called(RUNNING_TEXT).read("s1", files)
    assert [problem.sentence for problem in problems] == [told]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (VLANS.replace("10-12", "ten"), "is no line of a table of VLANs"),
        (VLANS.replace("state forwarding", "state blocking", 1), "swp1 is blocking in a VLAN by itself"),
    ],
)
def test_a_line_of_a_table_of_vlans_that_is_not_known_is_told(text, told):
    bridge = running({"s1/link.txt": LINKS, "s1/vlan.txt": text})
    assert any(told in problem.sentence and "s1/vlan.txt line" in problem.key for problem in bridge.reading.unclear)


SHOW = """5b0c0f0e-2a3e-4f65-9a3b-0d0c0c0c0c0c
    Bridge "br0"
        Port "swp1"
            Interface "swp1"
        Port swp2
            tag: 10
            Interface swp2
        Port bond0
            trunks: [10, 20]
            Interface eth1
            Interface eth2
        Port br0
            Interface br0
                type: internal
    ovs_version: "2.17.9"
"""


def shown(text: str) -> tuple[Bridge, list[str]]:
    assert recognise_dialect({"s1.txt": text}) == OVS_SHOW
    bridge, problems = reader_called(OVS_SHOW).read("s1", {"s1.txt": text})
    return bridge, [str(problem) for problem in problems]


def test_what_ovs_vsctl_shows_is_read_with_its_defaults():
    bridge, problems = shown(SHOW)
    assert problems == []
    every = ALL_VLANS | {VLAN_0}
    assert bridge.ports == {
        "swp1": BridgePort(VLAN_0, every, {VLAN_0}),
        "swp2": BridgePort(10, {10}, {10}),
        "bond0": BridgePort(None, {10, 20}, VlanSet()),
    }
    assert bridge.channels == {"eth1": "bond0", "eth2": "bond0"}
    assert set(bridge.reading.defaults.values()) == {("ovs-vlan-mode",)}


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        ('    Bridge "br0"\n', '    Bridge "br0"\n        fail_mode: secure\n', "takes its rules from a controller"),
        ('    Bridge "br0"\n', '    Bridge "br0"\n        Controller "tcp:192.0.2.1"\n', "from a controller"),
        ("            Interface swp2\n", "            Interface swp2\n                type: patch\n", "another bridge"),
        ("tag: 10", "tag: many", "are no VLANs of a port"),
        ("trunks: [10, 20]", "trunks: [10, 70000]", "are no VLANs of a port"),
        (
            "    ovs_version",
            "    Bridge br1\n        Port x\n            Interface x\n    ovs_version",
            "should have one bridge",
        ),
    ],
)
def test_what_ovs_vsctl_shows_and_is_not_read_is_a_sentence(before, after, told):
    assert before in SHOW
    assert any(told in problem for problem in shown(SHOW.replace(before, after, 1))[1])


def test_a_tag_with_trunks_is_unclear_and_an_error_is_down():
    bridge, _ = shown(SHOW.replace("tag: 10\n", "tag: 10\n            trunks: [20]\n"))
    assert any("vlan_mode" in problem.sentence and problem.key == "s1.txt line 5" for problem in bridge.reading.unclear)
    error = '            Interface swp2\n                error: "could not open network device swp2 (No such device)"\n'
    bridge, _ = shown(SHOW.replace("            Interface swp2\n", error))
    assert bridge.reading.down == {"swp2": "is not there, as its error says"}


def test_two_bridges_of_texts_make_a_network():
    files = {f"s{n}.txt": SHOW for n in (1, 2)}
    files["cabling.csv"] = "switch,port,peer,peer_port\ns1,swp1,s2,swp1\ns1,swp2,h1,\ns2,swp2,h2,\n"
    found = audit(read_network(files))
    assert (found.verdict, found.delivered) == ("pass", 2)
    assert "ovs-vlan-mode" in found.relied_on
