"""What configurations do not say, what is down and what is not understood is never a pass for a broken network."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence, Set
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from testbed.base.errors import InputError
from testbed.devices.audit import Audit, audit
from testbed.devices.audit.assumptions import explain_port
from testbed.devices.audit.read_folder import read_network
from testbed.devices.defaults import DEFAULTS
from testbed.devices.read_ios import port_of, read_ios
from testbed.devices.read_lines import LineError
from testbed.devices.vlan_set import ALL_VLANS, VlanSet, as_row
from testbed.ui.cli import audit_command  # noqa: F401 - it adds its command
from testbed.ui.cli.app import app

STP_OFF = "no spanning-tree vlan 1-4094"
KINDS = ("broadcast", "multicast", "unknown unicast")


def cabling(*rows: str) -> str:
    return "\n".join(["switch,port,peer,peer_port", *rows, ""])


def ios(ports: Mapping[int, Sequence[str]], *lines: str) -> str:
    """A Catalyst's configuration: what is said of some ports of the first row, by their numbers."""
    text = [STP_OFF, *lines]
    for number, said in ports.items():
        text += [f"interface GigabitEthernet1/0/{number}", *(f" {line}" for line in said), "!"]
    return "\n".join([*text, "end", ""])


def access(vlan: int) -> list[str]:
    return [f"switchport access vlan {vlan}", "switchport mode access"]


TRUNK = ["switchport mode trunk"]
GI = "GigabitEthernet1/0/"
RING = cabling(
    *(f"s{n},{GI}1,s{n % 3 + 1},{GI}2" for n in (1, 2, 3)), *(f"s{n},{GI}3,h{n}," for n in (1, 2, 3))
)  # fmt: skip
PAIR = cabling(f"s1,{GI}1,s2,{GI}1", f"s1,{GI}2,h1,", f"s2,{GI}2,h2,")


def found_in(files: dict[str, str]) -> Audit:
    return audit(read_network(files), pauses=False)


def pair(first: str, second: str, cables: str = PAIR) -> Audit:
    """Two switches with a cable between their first ports, and a host at each second port."""
    return found_in({"s1.txt": first, "s2.txt": second, "cabling.csv": cables})


def kinds_of(found: Audit) -> set[str]:
    return {finding.kind for finding in found.findings}


@pytest.mark.parametrize("mentioned", [(1, 2, 3), (3,)])
def test_catalysts_out_of_the_box_in_a_ring_loop_in_vlan_1(mentioned):
    text = ios({number: [] for number in mentioned})
    found = found_in({**{f"s{n}.txt": text for n in (1, 2, 3)}, "cabling.csv": RING})
    assert [(kind, list(vlans)) for kind, vlans in found.circulating.items()] == [(kind, [1]) for kind in KINDS]
    assert found.verdict == "fail"
    key = "ios-mode" if len(mentioned) == 3 else "ios-port"
    assert len(found.relied_on[key]) == (9 if len(mentioned) == 3 else 6)
    assert any(DEFAULTS[key].source in note and DEFAULTS[key].value in note for note in found.notes)


def test_powerconnects_out_of_the_box_in_a_ring_loop_in_vlan_1():
    text = "configure\nno spanning-tree\ninterface ethernet 1/g1\ndescription 'x'\nexit\nexit\n"
    rows = [f"s{n},1/g1,s{n % 3 + 1},1/g2" for n in (1, 2, 3)] + [f"s{n},1/g3,h{n}," for n in (1, 2, 3)]
    found = found_in({**{f"s{n}.txt": text for n in (1, 2, 3)}, "cabling.csv": cabling(*rows)})
    assert found.looping_vlans == (1,)
    assert set(found.relied_on) == {"powerconnect-mode", "powerconnect-access-vlan", "powerconnect-port"}


def test_a_ring_of_default_ports_beside_a_sound_vlan_is_found():
    ports: dict[int, list[str]] = {1: TRUNK, 2: TRUNK, 3: access(10), 4: [], 5: []}
    texts = {n: ios(ports, "vlan 10") for n in (1, 2, 3)}
    rows = [f"s1,{GI}1,s2,{GI}2", f"s2,{GI}1,s3,{GI}2", *(f"s{n},{GI}3,h{n}," for n in (1, 2, 3))]
    rows += [f"s{n},{GI}4,s{n % 3 + 1},{GI}5" for n in (1, 2, 3)]
    found = found_in({**{f"s{n}.txt": text for n, text in texts.items()}, "cabling.csv": cabling(*rows)})
    assert (found.delivered, found.pairs, found.looping_vlans, found.verdict) == (6, 6, (1,), "fail")


@pytest.mark.parametrize(
    ("one", "other", "trunk"),
    [
        ([], TRUNK, True),
        (TRUNK, [], True),
        ([], [], False),
        ([], ["switchport mode dynamic desirable"], True),
        (["switchport mode dynamic desirable"], ["switchport mode dynamic auto"], True),
        (["switchport mode dynamic auto"], ["switchport mode dynamic auto"], False),
        (["switchport mode dynamic desirable"], ["switchport mode dynamic desirable"], True),
        (["switchport mode dynamic desirable"], [*TRUNK, "switchport nonegotiate"], False),
        (["switchport mode dynamic desirable"], ["switchport mode access"], False),
        ([*TRUNK, "no switchport mode"], TRUNK, True),
    ],
)
def test_dynamic_ports_become_what_both_ends_agree_on(one, other, trunk):
    """VLAN 10 passes between both switches exactly where the link is a trunk at both ends."""
    texts = [ios({1: said, 2: access(10)}, "vlan 10") for said in (one, other)]
    found = pair(*texts)
    assert (found.delivered, found.pairs) == (2 if trunk else 0, 2)
    lines = explain_port(found.network, "s1:gi1/0/1" if one != TRUNK else "s2:gi1/0/1")
    assert any("negotiated with" in line and line.endswith(": a trunk") for line in lines) == trunk


def test_vtp_domains_that_differ_make_no_trunk():
    texts = [ios({1: said, 2: access(10)}, "vlan 10", f"vtp domain {name}") for said, name in (([], "a"), (TRUNK, "b"))]
    assert pair(*texts).delivered == 0


CARRIES_NOTHING: list[tuple[str, list[str], list[str], str]] = [
    ("an access VLAN that was not made", ["vlan 10,20"], access(30), "is in VLAN 30, which this switch does not have"),
    ("a VLAN that is suspended", ["vlan 10", " state suspend"], access(10), "is in VLAN 10, which this switch"),
    ("a VLAN that is shut", ["vlan 10", " shutdown"], access(10), "is in VLAN 10, which this switch"),
    ("a port that is shut", ["vlan 10"], [*access(10), "shutdown"], "is shut"),
    ("a routed port", ["vlan 10"], ["no switchport", "ip address 10.0.0.1 255.255.255.0"], "is a routed port"),
]


@pytest.mark.parametrize(
    ("made", "said", "why"), [case[1:] for case in CARRIES_NOTHING], ids=lambda value: str(value)[:20]
)
def test_a_port_that_carries_nothing_says_why(made, said, why):
    found = pair(ios({1: TRUNK, 2: said}, *made), ios({1: TRUNK, 2: access(10)}, "vlan 10"))
    assert not found.delivered
    assert any(f"h1's port, s1 {GI}2, {why}" in finding.sentence for finding in found.findings)
    assert explain_port(found.network, "s1:Gi1/0/2")[0].startswith(f"s1:{GI}2: carries nothing, since it {why}")


def test_a_vlan_that_was_made_active_again_carries_frames():
    made = ["vlan 10", " state suspend", " state active", " shutdown", " no shutdown", " name hosts"]
    assert pair(ios({1: TRUNK, 2: access(10)}, *made), ios({1: TRUNK, 2: access(10)}, "vlan 10")).verdict == "pass"


def test_powerconnects_have_only_vlans_of_the_database():
    def text(vlans: str) -> str:
        ports = "interface ethernet 1/g1\nswitchport mode general\nswitchport general allowed vlan add 1 tagged\nexit\n"
        host = "interface ethernet 1/g2\nswitchport access vlan 10\nexit\n"
        return f"configure\nno spanning-tree\n{vlans}{ports}{host}exit\n"

    cables = cabling("s1,1/g1,s2,1/g1", "s1,1/g2,h1,", "s2,1/g2,h2,")
    found = found_in({"s1.txt": text(""), "s2.txt": text("vlan database\nvlan 10\nexit\n"), "cabling.csv": cables})
    assert "h1's port, s1 1/g2, is in VLAN 10, which this switch does not have or which is shut, so h1 is cut off" in {
        finding.sentence for finding in found.findings
    }


@pytest.mark.parametrize("more", ["", "switchport general acceptable-frame-type tagged-only\n"])
def test_a_port_in_no_vlan_that_filters_nothing_takes_frames_in(more):
    """Frames go one way alone: those of h2 come in by it, and none leaves by it."""
    lines = "switchport mode general\nswitchport general allowed vlan remove 1\n"
    strange = f"{lines}switchport general ingress-filtering disable\n{more}"
    trunk = "switchport mode general\nswitchport general allowed vlan add 1 tagged\n"

    def text(said: str) -> str:
        host = "interface ethernet 1/g2\nswitchport access vlan 1\nexit\n"
        return f"configure\nno spanning-tree\ninterface ethernet 1/g1\n{said}exit\n{host}exit\n"

    cables = cabling("s1,1/g1,s2,1/g1", "s1,1/g2,h1,", "s2,1/g2,h2,")
    found = found_in({"s1.txt": text(strange), "s2.txt": text(trunk), "cabling.csv": cables})
    assert found.arrives.tolist() == [[False, False], [True, False]]


@pytest.mark.parametrize("where", ["the switch", "the port"])
def test_a_native_vlan_tagged_at_one_end_drops_untagged_frames(where):
    native = [*TRUNK, "switchport trunk native vlan 10"]
    tag = ["vlan dot1q tag native"] if where == "the switch" else []
    first = [*native, "switchport trunk native vlan tag"] if where == "the port" else native
    found = pair(ios({1: first, 2: access(10)}, "vlan 10", *tag), ios({1: native, 2: access(10)}, "vlan 10"))
    assert found.arrives.tolist() == [[False, True], [False, False]]
    cut = next(finding for finding in found.findings if finding.kind == "cut")
    assert cut.sentence == "1 pair h2→h1: a frame is dropped at s2"
    assert cut.remedy == "compare the VLANs of both ends of the next link, and the entry of the switch after it"


def test_negated_lines_give_a_setting_its_default_back():
    lines = [*access(10), "no switchport access vlan"]
    found = pair(ios({1: TRUNK, 2: lines}, "vlan 10"), ios({1: TRUNK, 2: ["switchport mode access"]}, "vlan 10"))
    assert (found.delivered, found.pairs) == (2, 2)
    trunk = ["switchport trunk allowed vlan 20", "no switchport trunk allowed vlan", *TRUNK]
    found = pair(ios({1: trunk, 2: access(10)}, "vlan 10,20"), ios({1: TRUNK, 2: access(10)}, "vlan 10,20"))
    assert found.delivered == 2


def test_vlans_are_added_to_those_that_a_trunk_allows_already():
    trunk = ["switchport trunk allowed vlan add 20", *TRUNK]
    assert (
        pair(ios({1: trunk, 2: access(10)}, "vlan 10,20"), ios({1: TRUNK, 2: access(10)}, "vlan 10,20")).delivered == 2
    )


def test_a_voice_vlan_is_one_of_an_access_port():
    """A ring of access ports whose telephones have a VLAN of their own loops in that one, too."""
    voice = ["switchport voice vlan 20", *access(10)]
    text = ios({1: voice, 2: voice, 3: access(10)}, "vlan 10,20")
    found = found_in({**{f"s{n}.txt": text for n in (1, 2, 3)}, "cabling.csv": RING})
    assert found.looping_vlans == (10, 20)


def test_spanning_tree_cuts_loops_only_in_its_vlans():
    text = ios({1: TRUNK, 2: TRUNK, 3: access(10)}, "vlan 10,20").replace("1-4094", "10")
    found = found_in({**{f"s{n}.txt": text for n in (1, 2, 3)}, "cabling.csv": RING})
    assert found.looping_vlans == (10,)
    (loop,) = [finding for finding in found.findings if finding.kind == "loop"]
    assert "spanning tree" not in loop.remedy


@pytest.mark.parametrize(
    ("short", "whole"),
    [
        ("Gi1/0/2", "GigabitEthernet1/0/2"),
        ("gi1/0/2", "GigabitEthernet1/0/2"),
        ("te1/1/1", "TenGigabitEthernet1/1/1"),
        ("Tw1/0/1", "TwoGigabitEthernet1/0/1"),
        ("Fi1/0/1", "FiveGigabitEthernet1/0/1"),
        ("Twe1/0/1", "TwentyFiveGigE1/0/1"),
        ("Ap1/0/1", "AppGigabitEthernet1/0/1"),
        ("Hu1/1/1", "HundredGigE1/1/1"),
        ("Fo1/1/1", "FortyGigabitEthernet1/1/1"),
        ("Fou1/0/1", "FourHundredGigE1/0/1"),
        ("fif1/0/1", "FiftyGigE1/0/1"),
        ("Po3", "Port-channel3"),
        ("Fa0/1", "FastEthernet0/1"),
    ],
)
def test_names_of_ports_in_ios(short, whole):
    assert port_of(short) == port_of(whole) == port_of(whole.lower()) == whole


def test_every_interface_of_a_catalyst_is_read_or_passed_over():
    kinds = ["AppGigabitEthernet1/0/1", "TwoGigabitEthernet1/0/5", "FiveGigabitEthernet1/0/6", "TwentyFiveGigE1/1/1"]
    others = ["Vlan1", "Loopback0", "FastEthernet0", "Tunnel1", "Bluetooth0/4", "GigabitEthernet1/0/9.10"]
    text = ios({1: TRUNK}).replace("end\n", "".join(f"interface {name}\n!\n" for name in (*kinds, *others)) + "end\n")
    bridge, problems = read_ios("s1", {"s1.txt": text})
    assert problems == []
    assert set(kinds) | {f"{GI}1"} == set(bridge.ports)
    assert bridge.reading.passed == {"interfaces that are no ports of the bridge": 6}


def test_ranges_of_interfaces():
    text = f"{STP_OFF}\nvlan 10\ninterface range Gi1/0/1 - 3 , gi1/0/7\n switchport access vlan 10\nend\n"
    bridge, problems = read_ios("s1", {"s1.txt": text})
    assert (problems, set(bridge.ports)) == ([], {f"{GI}{n}" for n in (1, 2, 3, 7)})
    for wrong in ("interface range Gi1/0/4 - 1", "interface range"):
        assert read_ios("s1", {"s1.txt": text.replace("interface range Gi1/0/1 - 3 , gi1/0/7", wrong)})[1]


HARMLESS = [
    "switchport port-security", "switchport port-security maximum 2", "ip dhcp snooping trust", "power inline never",
    "storm-control broadcast level 1", "spanning-tree portfast", "no cdp enable", "switchport block multicast",
]  # fmt: skip
UNCLEAR = [
    "switchport protected", "switchport mode dot1q-tunnel", "switchport access vlan dynamic", "frobnicate the port",
    "switchport vlan mapping 10 20", "switchport trunk encapsulation isl", "ip access-group 10 in",
    "authentication port-control auto",
]  # fmt: skip


@pytest.mark.parametrize("line", HARMLESS)
def test_a_line_that_moves_no_frame_is_passed_over(line):
    texts = [ios({1: TRUNK, 2: [*access(10), more]}, "vlan 10") for more in (line, "description x")]
    found = pair(*texts)
    assert (found.verdict, found.network.unclear) == ("pass", ())


@pytest.mark.parametrize("line", UNCLEAR)
def test_a_line_that_is_not_understood_is_told_and_is_no_pass(line, tmp_path):
    texts = [ios({1: TRUNK, 2: [*access(10), more]}, "vlan 10") for more in (line, "description x")]
    found = pair(*texts)
    assert found.verdict == "not understood"
    assert not found.has_passed
    (sentence,) = found.network.unclear
    assert sentence == f's1.txt line 9: {GI}2: "{line}" may decide which frames the port carries, and is not understood'
    for name, text in (("s1.txt", texts[0]), ("s2.txt", texts[1]), ("cabling.csv", PAIR)):
        (tmp_path / name).write_text(text)
    code, text = typed("audit", tmp_path)
    assert code == 3
    assert "1 line not understood: 2 switches, 1 link, 2 hosts, " in text.replace("\n", " ")


def test_sonic_access_lists_and_powerconnect_tunnels_are_unread():
    tables = {
        "PORT": {"Ethernet0": {"admin_status": "up"}},
        "VLAN": {"Vlan10": {}},
        "VLAN_MEMBER": {"Vlan10|Ethernet0": {"tagging_mode": "untagged"}},
        "ACL_TABLE": {"DATA": {"type": "L3", "ports": ["Ethernet0"]}},
        "ACL_RULE": {"DATA|1": {"PACKET_ACTION": "DROP"}},
    }
    files = {"s1/config_db.json": json.dumps(tables), "cabling.csv": cabling("s1,Ethernet0,h1,")}
    assert read_network(files).unclear == (
        "s1/config_db.json: ACL_TABLE.DATA: Ethernet0 has an access list, which is not understood",
    )
    text = "configure\nno spanning-tree\ninterface ethernet 1/g1\nswitchport protected\nexit\ninterface ethernet 1/g2\n"
    text += "switchport mode trunk\nexit\nexit\n"
    network = read_network({"s1.txt": text, "cabling.csv": cabling("s1,1/g1,h1,", "s1,1/g2,h2,")})
    assert network.unclear == (
        's1.txt line 4: 1/g1: "switchport protected" may decide which frames the port carries, and is not understood',
        "s1.txt: 1/g2 is a trunk without a line of its VLANs; which it has then depends on the series",
    )


@pytest.mark.parametrize("short", ["Gi1/0/", "gi1/0/", "gigabitethernet1/0/", "Gi 1/0/", "g1/0/"])
def test_short_names_of_ports_in_a_table_of_cables(short):
    text = ios({1: TRUNK, 2: access(10)}, "vlan 10")
    assert pair(text, text, PAIR.replace(GI, short)).verdict == "pass"


@pytest.mark.parametrize(
    ("row", "told"),
    [
        (f"s1,swp3,s2,{GI}1", "cabling.csv line 2: s1 has no port swp3 in its configuration."),
        (f"s1,{GI}1,s2,Port-channel4", "cabling.csv line 2: s2 has no port Port-channel4 in its configuration."),
        (f"s1,{GI}1,s9,{GI}1", "cabling.csv line 2: s9 has no configuration here"),
        (f"s8,{GI}1,s2,{GI}1", "cabling.csv line 2: s8 has no configuration here"),
    ],
)
def test_a_cable_to_an_unknown_port_or_switch_is_a_sentence(row, told):
    text = ios({1: TRUNK, 2: access(10)}, "vlan 10")
    with pytest.raises(InputError) as caught:
        pair(text, text, PAIR.replace(f"s1,{GI}1,s2,{GI}1", row))
    assert any(str(problem).startswith(told) for problem in caught.value.problems)


def test_a_port_that_a_linux_bridge_does_not_have_is_a_sentence():
    script = "ip link add name br0 type bridge vlan_filtering 1\nip link set dev swp1 master br0\n"
    with pytest.raises(InputError, match=r's1 has no port swp2 in its configuration. Did you mean "swp1"\?'):
        read_network({"s1.sh": script, "cabling.csv": cabling("s1,swp1,h1,", "s1,swp2,h2,")})


LINK = {
    "ifname": "swp1", "flags": ["UP", "LOWER_UP"], "state": "forwarding", "master": "br0", "learning": True,
    "flood": True, "mcast_flood": True, "bcast_flood": True,
}  # fmt: skip
VLAN_1 = [{"vlan": 1, "flags": ["PVID", "Egress Untagged"]}]


def running(name: str, ports: Mapping[str, Mapping[str, object]], *, stp: int = 0, old: bool = False) -> dict[str, str]:
    """Files of a running bridge with all ports in VLAN 1, each with some settings of its own."""
    vlans = dict.fromkeys(ports, VLAN_1)
    shown: object = vlans if old else [{"ifname": port, "vlans": of} for port, of in vlans.items()]
    bridge = [{"ifname": "br0", "linkinfo": {"info_data": {"vlan_filtering": 1, "stp_state": stp}}}]
    said = {
        "link.json": [{**LINK, "ifname": port, **more} for port, more in ports.items()],
        "vlan.json": shown, "fdb.json": [], "bridge.json": bridge,
    }  # fmt: skip
    return {f"{name}/{file}": json.dumps(value) for file, value in said.items()}


LINUX_PAIR = cabling("s1,swp1,s2,swp1", "s1,swp2,h1,", "s2,swp2,h2,")
LINUX_RING = RING.replace(GI, "swp")


@pytest.mark.parametrize(
    ("state", "why"),
    [
        ({"flags": ["NO-CARRIER"], "state": "disabled"}, "is down"),
        ({"flags": ["NO-CARRIER", "UP"]}, "is down"),
        ({"operstate": "DOWN"}, "is down"),
        ({"state": "disabled"}, "is disabled, by its state in link.json"),
        ({"state": "blocking"}, "is blocking, by its state in link.json"),
        ({"state": "listening"}, "is listening, by its state in link.json"),
        ({"state": "learning"}, "is learning, by its state in link.json"),
    ],
)
def test_a_port_that_is_down_or_blocked_carries_nothing(state, why):
    files = {**running("s1", {"swp1": state, "swp2": {}}), **running("s2", {"swp1": {}, "swp2": {}})}
    found = found_in({**files, "cabling.csv": LINUX_PAIR})
    assert (found.delivered, found.pairs, found.verdict) == (0, 2, "fail")
    assert f"s1 swp1, to s2 swp1, {why}" in found.notes


def test_a_loop_that_the_spanning_tree_protocol_has_cut_is_none():
    files = running("s1", {"swp1": {"state": "blocking"}, "swp2": {}, "swp3": {}}, stp=1)
    for name in ("s2", "s3"):
        files |= running(name, {"swp1": {}, "swp2": {}, "swp3": {}}, stp=1)
    found = found_in({**files, "cabling.csv": LINUX_RING})
    assert (found.verdict, found.delivered, found.looping_vlans) == ("pass", 6, ())
    assert any("blocks ports as their files show" in note for note in found.notes)


@pytest.mark.parametrize(
    ("one", "other", "kinds"),
    [
        (("flood", "bcast_flood"), ("flood", "bcast_flood"), {"multicast"}),
        (("flood", "mcast_flood"), ("bcast_flood", "mcast_flood"), {"broadcast", "unknown unicast"}),
        (("mcast_flood",), ("mcast_flood", "bcast_flood", "flood"), {"broadcast", "unknown unicast"}),
        (("mcast_flood", "bcast_flood", "flood"), ("mcast_flood", "bcast_flood", "flood"), set()),
        (("mcast_flood",), ("bcast_flood",), set(KINDS)),
    ],
)
def test_each_kind_of_flooded_frame_is_followed_by_itself(one, other, kinds):
    """Frames leave s1 for one direction round the ring by each port: a kind is stopped by both or circulates."""
    files = running("s1", {"swp1": dict.fromkeys(one, False), "swp2": dict.fromkeys(other, False), "swp3": {}})
    for name in ("s2", "s3"):
        files |= running(name, {"swp1": {}, "swp2": {}, "swp3": {}})
    found = found_in({**files, "cabling.csv": LINUX_RING})
    assert {kind for kind, vlans in found.circulating.items() if vlans} == kinds


def test_floods_of_different_kinds_make_no_loop_together():
    """Unknown unicasts are stopped at one port and broadcasts at another, both ways: neither circulates."""
    none = {"mcast_flood": False, "flood": False, "bcast_flood": True}
    files = running("s1", {"swp1": none, "swp2": none, "swp3": {}})
    files |= running("s2", {"swp1": {"bcast_flood": False}, "swp2": {"bcast_flood": False}, "swp3": {}})
    files |= running("s3", {"swp1": {}, "swp2": {}, "swp3": {}})
    found = found_in({**files, "cabling.csv": LINUX_RING})
    assert found.looping_vlans == ()
    assert "loop" not in kinds_of(found)


def test_multicasts_that_circulate_alone_are_named():
    stopped = {"flood": False, "bcast_flood": False}
    files = running("s1", {"swp1": stopped, "swp2": stopped, "swp3": {}})
    for name in ("s2", "s3"):
        files |= running(name, {"swp1": {}, "swp2": {}, "swp3": {}})
    found = found_in({**files, "cabling.csv": LINUX_RING})
    told = {finding.kind: finding.sentence for finding in found.findings}
    assert told["loop"].startswith("VLAN 1: a multicast circulates for ever by s")
    assert told["multicast"] == "multicasts of h1, h2, h3 circulate for ever"


def test_vlans_that_older_iproute2_prints_are_read():
    files = {**running("s1", {"swp1": {}, "swp2": {}}, old=True), **running("s2", {"swp1": {}, "swp2": {}})}
    assert found_in({**files, "cabling.csv": LINUX_PAIR}).verdict == "pass"


def test_unknown_flags_of_a_port_and_damaged_files_are_told():
    files = running("s1", {"swp1": {"isolated": True}, "swp2": {"hairpin": True}})
    assert read_network({**files, "cabling.csv": cabling("s1,swp1,h1,", "s1,swp2,h2,")}).unclear == (
        "s1/link.json: swp1: isolated decides which frames the port carries, and is not understood",
        "s1/link.json: swp2: hairpin decides which frames the port carries, and is not understood",
    )
    for file in ("vlan.json", "link.json", "bridge.json", "fdb.json"):
        with pytest.raises(InputError, match=f"s1/{file}: is not what "):
            read_network({**files, f"s1/{file}": "[3]", "cabling.csv": cabling("s1,swp1,h1,")})


@pytest.mark.parametrize("down", ["ip link set dev swp1 down", "ip link set swp1 down", "ip link set dev br0 down"])
def test_a_port_that_a_script_takes_down_carries_nothing(down):
    def script(*lines: str) -> str:
        ports = [f"ip link set dev swp{n} {what}" for n in (1, 2) for what in ("master br0", "up")]
        return "\n".join(["ip link add name br0 type bridge vlan_filtering 1", *ports, *lines, ""])

    found = found_in({"s1.sh": script(down), "s2.sh": script(), "cabling.csv": LINUX_PAIR})
    assert (found.delivered, found.verdict) == (0, "fail" if found.pairs else "nothing audited")
    assert found_in({"s1.sh": script(), "s2.sh": script(), "cabling.csv": LINUX_PAIR}).verdict == "pass"
    up = found_in({"s1.sh": script(down, down.replace(" down", " up")), "s2.sh": script(), "cabling.csv": LINUX_PAIR})
    assert up.verdict == "pass"
    assert up.relied_on == {"linux-default-pvid": ("s1:swp1", "s1:swp2", "s2:swp1", "s2:swp2")}


@pytest.mark.parametrize(("status", "verdict"), [({}, "fail"), ({"admin_status": "up"}, "pass")])
def test_a_port_of_sonic_is_down_until_it_is_said_to_be_up(status, verdict):
    up = {"admin_status": "up"}
    members = {"Vlan10|Ethernet0": {"tagging_mode": "tagged"}, "Vlan10|Ethernet4": {"tagging_mode": "untagged"}}
    tables = {"PORT": {"Ethernet0": status, "Ethernet4": up}, "VLAN": {"Vlan10": {}}, "VLAN_MEMBER": members}
    other = {**tables, "PORT": {"Ethernet0": up, "Ethernet4": up}}
    cables = cabling("s1,Ethernet0,s2,Ethernet0", "s1,Ethernet4,h1,", "s2,Ethernet4,h2,")
    files = {"s1/config_db.json": json.dumps(tables), "s2/config_db.json": json.dumps(other), "cabling.csv": cables}
    found = found_in(files)
    assert found.verdict == verdict
    assert ("sonic-admin-status" in found.relied_on) == (verdict == "fail")


def lldp(rows: dict[str, tuple[str, str]], kind: str = "ifname") -> str:
    told = [
        {port: {"chassis": {peer: {}}, "port": {"id": {"type": kind, "value": end}}}}
        for port, (peer, end) in rows.items()
    ]
    return json.dumps({"lldp": {"interface": told}})


@pytest.mark.parametrize("speaks", [{}, {"swp2": ("server", "eth0")}])
def test_a_host_that_speaks_lldp_does_not_hide_those_that_do_not(speaks):
    files = {
        **running("s1", {"swp1": {"state": "blocking"}, "swp2": {}, "swp3": {}}),
        **running("s2", {"swp1": {}, "swp2": {}}),
    }
    files["s1.lldp.json"] = lldp({"swp1": ("s2", "swp1"), **speaks})
    found = found_in(files)
    assert len(found.network.hosts) == 3
    assert (found.delivered, found.pairs, found.verdict) == (2, 6, "fail")


def test_a_port_lldp_names_by_its_address_is_resolved_or_told():
    files = {**running("s1", {"swp1": {}, "swp2": {}}), **running("s2", {"swp1": {}, "swp2": {}})}
    files["s1.lldp.json"] = lldp({"swp1": ("s2", "02:00:00:00:00:21")}, "mac")
    with pytest.raises(
        InputError, match=r"the port of s2 is told by its address, 02:00:00:00:00:21, which no link\.json"
    ):
        read_network(files)
    links = running("s2", {"swp1": {"address": "02:00:00:00:00:21"}, "swp2": {}})["s2/link.json"]
    assert found_in({**files, "s2/link.json": links}).network.links == 1
    entry = {"mac": "02:00:00:00:00:21", "ifname": "swp1", "master": "br0", "state": "permanent"}
    assert found_in({**files, "s2/fdb.json": json.dumps([entry])}).network.links == 1


def test_a_neighbour_at_two_ports_without_files_is_unread():
    files = {**running("s1", {"swp1": {}, "swp2": {}, "swp3": {}})}
    files["s1.lldp.json"] = lldp({"swp1": ("other", "eth0"), "swp2": ("other", "eth1"), "eth9": ("net", "x")})
    network = read_network(files)
    assert network.hosts == ("other", "other at s1:swp2", "s1:swp3")
    assert network.unclear == (
        "other is heard at s1 swp1 and at s1 swp2, and has no configuration here: if it is a switch, what passes "
        "through it is not seen",
    )
    assert network.notes == ("s1 eth9 (s1.lldp.json) is no port of its bridge, and was left out",)


def test_silent_ports_at_their_default_are_one_host_a_switch():
    text = ios({number: [] for number in range(1, 30)} | {30: access(10), 31: access(10)}, "vlan 10")
    heading = "Device ID           Local Intf     Hold-time  Capability      Port ID\n"
    heard = f"{heading}s2                  Gi1/0/40       120        B               Gi1/0/40\n"
    found = found_in({"s1.txt": text, "s2.txt": text, "s1.lldp.txt": heard})
    assert (len(found.network.hosts), found.network.stands_for.tolist()) == (6, [29, 1, 1, 29, 1, 1])
    assert f"s1:{GI}1 stands for 29 ports of its switch that are set alike and have no neighbour" in found.notes
    assert found.verdict == "fail"  # VLAN 10 is not carried between them


def typed(*words: object) -> tuple[int, str]:
    found = CliRunner().invoke(app, [str(word) for word in words], catch_exceptions=False)
    return found.exit_code, found.stdout


NOTHING = [
    ({2: access(10)}, {2: access(20)}, "no two hosts share a VLAN, so there is no pair whose frames should arrive"),
    ({1: ["shutdown"], 2: ["shutdown"]}, {1: ["shutdown"], 2: ["shutdown"]},
     "no port that leads anywhere is in a VLAN, so no frame was followed"),
]  # fmt: skip


@pytest.mark.parametrize(("one", "other", "why"), NOTHING)
def test_nothing_audited_is_no_pass(one, other, why, tmp_path: Path):
    texts = {f"s{n}.txt": ios(said, "vlan 10,20") for n, said in ((1, one), (2, other))}
    found = found_in({**texts, "cabling.csv": PAIR})
    assert (found.verdict, found.why_not_audited, found.has_passed) == ("nothing audited", why, False)
    for name, text in {**texts, "cabling.csv": PAIR}.items():
        (tmp_path / name).write_text(text)
    code, text = typed("audit", tmp_path)
    assert code == 2
    assert f"nothing was audited, since {why}" in text.replace("\n", " ")
    code, text = typed("audit", tmp_path, "--format", "json")
    said = json.loads(text)
    assert (code, said["passed"], said["verdict"], said["nothing_audited"]) == (2, False, "nothing audited", why)


def test_one_host_is_nothing_to_audit():
    found = found_in({"s1.txt": ios({1: [], 2: []}), "cabling.csv": cabling(f"s1,{GI}1,h1,")})
    assert found.why_not_audited == "there is 1 host, so there is no pair whose frames could be followed"


def test_why_a_port_is_what_it_is(tmp_path: Path):
    texts = {"s1.txt": ios({1: [], 2: access(10)}, "vlan 10"), "s2.txt": ios({1: TRUNK, 2: access(10)}, "vlan 10")}
    for name, text in {**texts, "cabling.csv": PAIR}.items():
        (tmp_path / name).write_text(text)
    code, text = typed("audit", tmp_path, "--explain", "s1:Gi1/0/1")
    assert (code, text.splitlines()[:3]) == (0, [
        f"s1:{GI}1: PVID 1, untagged in 1, tagged in 10",
        f"  s1.txt line 3: interface {GI}1",
        f"  negotiated with s2 {GI}1: a trunk",
    ])  # fmt: skip
    assert 'by default, without "switchport mode": dynamic auto' in text.replace("\n", " ")
    for wrong, told in (("s9:x", '"s9:x" names no switch'), ("s1:Gi1/0/77", "s1 has no port Gi1/0/77")):
        with pytest.raises(InputError, match=told):
            typed("audit", tmp_path, "--explain", wrong)


def test_sentences_agree_with_their_numbers():
    entry = "mac address-table static 0200.0000.0001 vlan 10 interface GigabitEthernet1/0/2"
    texts = [ios({1: TRUNK, 2: access(10), 3: access(10)}, "vlan 10", *more) for more in ((entry,), ())]
    rows = [f"s1,{GI}2,h1,", f"s1,{GI}3,h2,", f"s2,{GI}2,h3,", f"s2,{GI}3,h4,"]
    found = pair(texts[0], texts[1], cabling(*rows))
    remedies = {finding.remedy for finding in found.findings if finding.kind == "cut"}
    assert "h3, h4 are registered nowhere: give every switch an entry for each of them" in remedies
    assert any(note.startswith("3 of 4 hosts are registered nowhere: frames to them ") for note in found.notes)


def test_sets_of_vlans_are_sets():
    some: Set[Any] = VlanSet.from_ids({1, 10, 4094})
    more: Set[Any] = frozenset({10, 20})
    assert (some & more, some | more, some - more) == ({10}, {1, 10, 20, 4094}, {1, 4094})
    assert (more & some, more | some, more - some) == ({10}, {1, 10, 20, 4094}, {20})
    assert (list(some), len(ALL_VLANS), 10 in some, 11 in some, "10" in some) == (
        [1, 10, 4094],
        4094,
        True,
        False,
        False,
    )
    assert some == frozenset({1, 10, 4094})
    assert hash(some) == hash(frozenset({1, 10, 4094}))
    assert repr(VlanSet.span(2, 3)) == "VlanSet({2, 3})"
    assert as_row(some).nonzero()[0].tolist() == [1, 10, 4094]


def test_trunks_of_all_vlans_cost_no_memory_each():
    """4,094 VLANs on each of 2,000 ports: a number a port, and one column for all VLANs that are treated alike."""
    text = "\n".join(f"interface GigabitEthernet1/0/{n}\n switchport trunk allowed vlan 1-4094\n switchport mode trunk"
                     for n in range(1, 2001))  # fmt: skip
    bridge, problems = read_ios("s1", {"s1.txt": f"{STP_OFF}\n{text}\nend\n"})
    assert problems == []
    assert all(isinstance(port.members, VlanSet) for port in bridge.ports.values())
    found = pair(ios({1: TRUNK, 2: access(10)}), ios({1: TRUNK, 2: access(10)}))
    assert len(found.network.vlans) == 4094
    assert found.network.member.shape[1] == 3  # VLANs 1 and 10, and all others
    assert "ios-vlans" in found.relied_on


def test_names_that_are_none():
    for wrong in ("Serial0/1", "swp1", "G1/0/1", ""):
        with pytest.raises(LineError):
            port_of(wrong)


def test_the_documentation_has_every_default_with_its_source():
    text = (Path(__file__).parents[3] / "docs" / "real-switches.md").read_text()
    for default in DEFAULTS.values():
        assert f"| {default.setting} | {default.value} | {default.source} |\n" in text
