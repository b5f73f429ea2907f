"""Files that are not of one switch get a sentence with the line, and files of one do not."""

from __future__ import annotations

import pytest

from testbed.base.errors import InputError
from testbed.devices.audit.read_folder import read_network
from testbed.devices.mixed_files import find_mixed_file

IOS = "interface GigabitEthernet1/0/1\n switchport mode trunk\nend\n"
PARTS = {
    "arista-eos": "! device: s1 (DCS-7050, EOS-4.28.1F)\ninterface Ethernet1\nend\n",
    "cisco-ios": IOS,
    "cisco-nxos": "!Command: show running-config\ninterface Ethernet1/1\n",
    "junos": "set interfaces ge-0/0/1 unit 0 family ethernet-switching\n",
    "mikrotik": "/interface bridge\nadd name=br\n",
    "openwrt": "config device\n\toption name 'br-lan'\n",
    "powerconnect": "interface ethernet 1/g1\nexit\n",
    "procurve": "; J9625A Configuration Editor; Created on release #RA.16.04\nvlan 1\n   untagged 1-8\n",
}


@pytest.mark.parametrize("first", PARTS)
@pytest.mark.parametrize("second", PARTS)
def test_a_file_of_two_dialects_is_told_with_its_line(first, second):
    found = find_mixed_file("s1.txt", PARTS[first] + PARTS[second])
    if first == second:
        assert found is None
        return
    assert found is not None
    number = PARTS[first].count("\n") + 1
    assert found.key == f"s1.txt line {number}"
    assert f"is of the dialect {second}" in found.sentence
    assert f"above of {first}" in found.sentence


def test_a_file_of_two_switches_is_told_and_not_read():
    text = f"hostname s1\n{IOS}hostname s2\n{IOS}"
    files = {"s1.txt": text, "cabling.csv": "switch,port,peer,peer_port\ns1,Gi1/0/1,h1,\n"}
    with pytest.raises(InputError, match="names the switch s2, and a line above s1"):
        read_network(files)


def test_a_file_that_is_named_by_a_dot_gets_a_sentence():
    with pytest.raises(InputError):
        read_network({"s4.txt": "interface range ethernet g", "cabling.csv": "", ".": ""})
