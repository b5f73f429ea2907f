"""Configurations of Arista, Nexus, Juniper, ProCurve, MikroTik and OpenWrt: what ports become, and what is told."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from testbed.base.errors import InputError
from testbed.devices.audit import audit
from testbed.devices.audit.read_folder import read_network
from testbed.devices.bridge import Bridge
from testbed.devices.check import ONLY_READ, recognise_dialect
from testbed.devices.constructs import document_constructs, list_constructs
from testbed.devices.port_names import format_ranges

SAMPLES = {
    "arista-eos": """! Command: show running-config
! device: s1 (DCS-7050, EOS-4.28.1F)
vlan 10,20
   name x
!
interface Ethernet1
   description uplink
   switchport trunk native vlan 20
   switchport trunk allowed vlan 10,20,30
   switchport mode trunk
!
interface Ethernet2
   switchport access vlan 10
   {}
!
interface Management1
   ip address 192.0.2.1/24
!
end
""",
    "cisco-nxos": """!Command: show running-config
feature lacp
vlan 1,10,20
interface Ethernet1/1
  switchport mode trunk
  switchport trunk native vlan 20
  switchport trunk allowed vlan 10
  switchport trunk allowed vlan add 20
interface Ethernet1/2
  switchport access vlan 10
  {}
interface mgmt0
  ip address 192.0.2.1/24
""",
    "procurve": """; J9625A Configuration Editor; Created on release #RA.16.04
vlan 1
   no untagged 1-2
   untagged 3-8
   exit
vlan 10
   untagged 2
   tagged 1
   exit
vlan 20
   untagged 1
   exit
interface 2
   {}
   exit
""",
    "junos": """interfaces {{
    ge-0/0/1 {{
        native-vlan-id 20;
        unit 0 {{
            family ethernet-switching {{
                interface-mode trunk;
                vlan {{ members [ v10 20 ]; }}
            }}
        }}
    }}
    ge-0/0/2 {{
        unit 0 {{
            family ethernet-switching {{
                vlan {{ members v10; }}
                {};
            }}
        }}
    }}
    irb {{ unit 10 {{ family inet {{ address 192.0.2.1/24; }} }} }}
}}
vlans {{ v10 {{ vlan-id 10; }} v20 {{ vlan-id 20; }} }}
""",
    "mikrotik": """# 2024-01-01 by RouterOS 7.12
/interface bridge
add name=br protocol-mode=none vlan-filtering=yes
/interface bridge port
add bridge=br interface=ether1 pvid=20
add bridge=br interface=ether2 \\
    pvid=10 {}
/interface bridge vlan
add bridge=br tagged=br,ether1 vlan-ids=10
""",
    "openwrt": """config device
	option name 'br-lan'
	option type 'bridge'
	list ports 'lan1'
	list ports 'lan2'

config bridge-vlan
	option device 'br-lan'
	option vlan '10'
	list ports 'lan1:t'
	list ports 'lan2:u*'
	{}

config bridge-vlan
	option device 'br-lan'
	option vlan '20'
	list ports 'lan1:u*'
""",
}
HARMLESS = {
    "arista-eos": "mtu 9000", "cisco-nxos": "mtu 9000", "procurve": 'name "x"', "junos": "storm-control x",
    "mikrotik": "edge=yes", "openwrt": "option local '0'",
}  # fmt: skip
UNKNOWN = {
    "arista-eos": "switchport trunk group x", "cisco-nxos": "vpc 7", "procurve": "frobnicate",
    "junos": "filter { input x; }", "mikrotik": "tag-stacking=yes", "openwrt": "option frobnicate '1'",
}  # fmt: skip


def _read(dialect: str, text: str) -> Bridge:
    assert recognise_dialect({"s1.txt": text}) == dialect
    bridge, problems = ONLY_READ[dialect].read("s1", {"s1.txt": text})
    assert problems == []
    return bridge


def _shown(bridge: Bridge, port: str) -> tuple[int | None, str, str]:
    said = bridge.ports[port]
    return said.pvid, format_ranges(said.untagged), format_ranges(set(said.members) - set(said.untagged))


@pytest.mark.parametrize("dialect", SAMPLES)
def test_a_trunk_with_a_native_vlan_and_an_access_port(dialect):
    bridge = _read(dialect, SAMPLES[dialect].format(HARMLESS[dialect]))
    trunk, access = (ONLY_READ[dialect].ports.replace("{0}", "{}").format(number) for number in (1, 2))
    assert _shown(bridge, trunk) == (20, "20", "10")
    assert _shown(bridge, access) == (10, "10", "")
    assert bridge.reading.unclear == ()
    assert bridge.vlan_filtering


@pytest.mark.parametrize("dialect", SAMPLES)
def test_what_no_table_has_is_told_with_its_line(dialect):
    bridge = _read(dialect, SAMPLES[dialect].format(UNKNOWN[dialect]).replace("};\n            }", "}\n            }"))
    assert len(bridge.reading.unclear) == 1
    assert "line" in bridge.reading.unclear[0].place
    assert "not understood" in bridge.reading.unclear[0].sentence


@pytest.mark.parametrize(
    ("dialect", "lines", "sentence"),
    [
        ("junos", "interfaces {\n  ge-0/0/1 {\n", "ends inside of braces"),
        ("junos", "set interfaces ge-0/0/1 unit 0 family ethernet-switching vlan members no-such", "there is no VLAN"),
        ("mikrotik", '/interface bridge\nadd name=br comment="x\n', "a quotation mark is not closed"),
        ("openwrt", "config device\n  option type 'bridge\n", "a quotation mark is not closed"),
        ("openwrt", "config interface lan\n", "has no bridge"),
        ("arista-eos", "interface Ethernet1\n  switchport access vlan 5000\n", "not a range of VLANs"),
        ("arista-eos", "interface Ethernet1\n--More--\n", "stopped between two pages"),
        ("procurve", "vlan 10\n  untagged 5-2\n", "is not a range of ports"),
        ("mikrotik", "/interface bridge\nadd name=br\n/interface bridge port\nadd bridge=br \\\n", "is cut off"),
    ],
)
def test_what_cannot_be_read_is_a_sentence(dialect, lines, sentence):
    problems = ONLY_READ[dialect].read("s1", {"s1.txt": lines})[1]
    assert any(sentence in str(problem) for problem in problems), problems


@pytest.mark.parametrize(
    ("dialect", "lines"),
    [
        ("arista-eos", "vlan 10\ninterface Ethernet1\nswitchport access vlan 10\n"),
        ("cisco-nxos", "system default switchport\nvlan 10\ninterface Ethernet1/1\nswitchport access vlan 10\n"),
        ("procurve", "interface 1\n   enable\nvlan 10\nuntagged 1\n"),
        ("mikrotik", "/interface bridge\nadd name=br\n/interface ethernet\nset ether1 disabled=yes\n"),
        ("junos", "set interfaces ge-0/0/1 unit 0 family ethernet-switching\nset protocols mvrp interface all\n"),
    ],
)
def test_what_would_be_passed_over_in_silence_is_told(dialect, lines):
    """Lines that have lost their indentation, settings by number or name, VLANs that switches make themselves."""
    unclear = ONLY_READ[dialect].read("s1", {"s1.txt": lines})[0].reading.unclear
    assert len(unclear) == 1
    assert lines.splitlines()[-1].removeprefix("set ").split()[0] in str(unclear[0])


@pytest.mark.parametrize(
    ("lines", "routed"),
    [
        ("system default switchport\ninterface Ethernet1/1\ninterface Ethernet1/2\n", False),
        ("no system default switchport\ninterface Ethernet1/1\ninterface Ethernet1/2\n", True),
        ("interface Ethernet1/1\ninterface Ethernet1/2\n  switchport\n  switchport access vlan 1\n", True),
        ("interface Ethernet1/1\ninterface Ethernet1/2\n  switchport access vlan 1\n", False),
    ],
)
def test_a_nexus_port_is_routed_or_switched_as_the_others_show(lines, routed):
    bridge = ONLY_READ["cisco-nxos"].read("s1", {"s1.txt": lines})[0]
    assert ("Ethernet1/1" in bridge.reading.down) == routed
    assert bridge.reading.unclear == ()


def test_a_nexus_that_does_not_show_it_is_not_understood():
    bridge = ONLY_READ["cisco-nxos"].read("s1", {"s1.txt": "interface Ethernet1/1\n"})[0]
    assert "depends on the model" in bridge.reading.unclear[0].sentence


def test_a_folder_of_several_makers():
    files = {f"s{number}.txt": text.format(HARMLESS[dialect]) for number, (dialect, text) in enumerate(SAMPLES.items())}
    rows, before = ["switch,port,peer,peer_port"], ""
    for number, dialect in enumerate(SAMPLES):
        one, other = (ONLY_READ[dialect].ports.replace("{0}", "{}").format(place) for place in (1, 2))
        rows.append(f"s{number},{other},h{number},")
        if number % 2:
            rows.append(f"s{number},{one},s{number - 1},{before}")
        before = one
    found = audit(read_network({**files, "cabling.csv": "\n".join(rows)}), pauses=False)
    assert found.pairs == 30  # all hosts are in VLAN 10
    assert found.delivered == 6  # of each two switches that are joined
    assert not found.network.unclear


LAGS = {
    "arista-eos": """! device: s1 (DCS-7050, EOS-4.28.1F)
vlan 10
interface Ethernet1
   channel-group 1 mode active
interface Port-Channel1
   switchport access vlan 10
""",
    "cisco-nxos": """!Command: show running-config
system default switchport
vlan 10
interface Ethernet1/1
  channel-group 1 mode active
interface port-channel1
  switchport access vlan 10
""",
    "junos": """set interfaces ge-0/0/1 ether-options 802.3ad ae1
set interfaces ae1 unit 0 family ethernet-switching vlan members v10
set vlans v10 vlan-id 10
set protocols rstp interface ae1
""",
}


@pytest.mark.parametrize("dialect", LAGS)
def test_a_port_channel_is_read_with_ports_that_say_only_that(dialect):
    bridge = _read(dialect, LAGS[dialect])
    ((port, channel),) = bridge.channels.items()
    assert port == ONLY_READ[dialect].ports.replace("{0}", "{}").format(1)
    assert _shown(bridge, channel) == (10, "10", "")
    assert bridge.reading.unclear == ()
    assert bridge.reading.down == {}


@pytest.mark.parametrize(
    ("dialect", "line", "ports"),
    [
        ("arista-eos", "Port-Channel1-2", ["Port-Channel1", "Port-Channel2"]),
        ("arista-eos", "Ethernet3/1-2,5", ["Ethernet3/1", "Ethernet3/2", "Ethernet5"]),
        ("cisco-nxos", "port-channel10", ["port-channel10"]),
        ("cisco-nxos", "Ethernet1/1-1/2", ["Ethernet1/1", "Ethernet1/2"]),
        ("arista-eos", "Ethernet3/1-4/8", []),
        ("arista-eos", "Ethernet4-1", []),
    ],
)
def test_a_list_of_ports_is_all_of_them_or_refused(dialect, line, ports):
    bridge, problems = ONLY_READ[dialect].read("s1", {"s1.txt": f"interface {line}\n  switchport mode trunk\n"})
    assert list(bridge.ports) == ports
    assert any("is not a range of ports" in str(problem) for problem in problems) == (not ports)


def test_a_procurve_vlan_that_is_removed_leaves_its_ports():
    lines = "vlan 10\n   untagged 1\n   tagged 2\n   exit\nno vlan 10\n"
    bridge, _ = ONLY_READ["procurve"].read("s1", {"s1.txt": lines})
    assert [_shown(bridge, port) for port in ("1", "2")] == [(1, "1", ""), (1, "1", "")]


def test_netplan_gets_a_sentence():
    with pytest.raises(InputError, match="cannot say which VLANs"):
        recognise_dialect({"s1.yaml": "network:\n  version: 2\n"})


def test_the_page_of_constructs_is_current():
    page = Path(__file__).parents[3] / "docs" / "constructs.md"
    if os.environ.get("TESTBED_RENEW_DOCS"):
        page.write_text(document_constructs())
    assert page.read_text() == document_constructs()


def test_every_dialect_of_tables_is_on_the_page():
    assert {*SAMPLES} <= {*list_constructs()}
    for constructs in list_constructs().values():
        assert {"read", "passed over"} <= {*constructs.values()} <= {"read", "passed over", "not understood"}
