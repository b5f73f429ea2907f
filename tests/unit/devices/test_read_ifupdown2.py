"""`interfaces` of ifupdown2: what ports have of their own, of their bridge, and by default."""

from __future__ import annotations

import pytest

from testbed.devices.bridge import Bridge
from testbed.devices.port_names import format_ranges
from testbed.devices.read_ifupdown2 import read_ifupdown2


def _read(text: str, **others: str) -> Bridge:
    files = {"s1/interfaces": text, **{f"s1/interfaces.d/{name}": other for name, other in others.items()}}
    bridge, problems = read_ifupdown2("s1", files)
    assert problems == []
    return bridge


def _shown(bridge: Bridge) -> dict[str, tuple[int | None, str, str]]:
    """Port → PVID, untagged and tagged VLANs."""
    return {
        name: (port.pvid, format_ranges(port.untagged), format_ranges(set(port.members) - set(port.untagged)))
        for name, port in bridge.ports.items()
    }


def _unclear(bridge: Bridge) -> list[str]:
    return [str(problem) for problem in bridge.reading.unclear]


BRIDGE = "iface br0\n  bridge-vlan-aware yes\n  bridge-ports {}\n"


@pytest.mark.parametrize(
    ("of_bridge", "of_port", "pvid", "untagged", "tagged"),
    [
        ("", "", 1, "1", ""),
        ("bridge-vids 1-20", "", 1, "1", "2-20"),
        ("bridge-trunk 1-20", "", 1, "1", "2-20"),
        ("bridge-pvid 2\n bridge-vids 1-20", "", 2, "2", "1,3-20"),
        ("bridge-vids 10 20", "bridge-vids 30", 1, "1", "30"),
        ("bridge-vids 10 20", "bridge-access 30", 30, "30", ""),
        ("bridge-vids 10 20", "bridge-allow-untagged no", None, "", "10,20"),
        ("bridge-vids 10 20", "bridge-pvid 10", 10, "10", "20"),
        ("bridge-vids 10\n bridge-vids 20", "bridge-vids none", 1, "1", ""),
        ("bridge-vids 10,20", "", 1, "1", "10,20"),
    ],
)
def test_vlans_of_the_bridge_hold_where_a_port_has_none(of_bridge, of_port, pvid, untagged, tagged):
    bridge = _read(f"iface e1\n  {of_port}\n" + BRIDGE.format("e1") + f"  {of_bridge}\n")
    assert _shown(bridge) == {"e1": (pvid, untagged, tagged)}
    assert _unclear(bridge) == []


def test_proxmox_writes_all_vlans_on_the_bridge():
    text = "iface eno1 inet manual\n\nauto vmbr0\n" + BRIDGE.format("eno1").replace("br0", "vmbr0 inet static")
    bridge = _read(text + "  address 192.0.2.2/24\n  bridge-stp off\n  bridge-fd 0\n  bridge-vids 2-4094\n")
    assert _shown(bridge) == {"eno1": (1, "1", "2-4094")}
    assert _unclear(bridge) == []


@pytest.mark.parametrize(
    ("ports", "names"),
    [
        ("glob swp1-3", ["swp1", "swp2", "swp3"]),
        ("glob swp[1-2]s[0-1] swp9", ["swp1s0", "swp1s1", "swp2s0", "swp2s1", "swp9"]),
        ("swp1 swp2\n  bridge-ports swp3", ["swp1", "swp2", "swp3"]),
    ],
)
def test_patterns_and_several_lines_of_ports(ports, names):
    bridge = _read(BRIDGE.format(ports))
    assert list(bridge.ports) == names
    assert _unclear(bridge) == []


@pytest.mark.parametrize("ports", ["swp4-1", "swp[4-1]", "swp[1-2]s[3-0]", "swp[1-2]s[0,2]"])
def test_a_pattern_that_is_no_range_is_told(ports):
    bridge = _read(BRIDGE.format(f"glob {ports}"))
    assert list(bridge.ports) == []
    assert [f'"glob {ports}" is no range' in sentence for sentence in _unclear(bridge)] == [True]


def test_a_bond_is_a_port_and_its_parts_are_not():
    bridge = _read("iface bond0\n  bond-slaves e1 e2\n  bridge-vids 7\n" + BRIDGE.format("bond0 e3"))
    assert _shown(bridge) == {"bond0": (1, "1", "7"), "e3": (1, "1", "")}
    assert bridge.channels == {"e1": "bond0", "e2": "bond0"}


def test_files_that_source_names_are_read_in_their_place():
    bridge = _read("source /etc/network/interfaces.d/*\n" + BRIDGE.format("e1"), e1="iface e1\n  bridge-access 5\n")
    assert _shown(bridge) == {"e1": (5, "5", "")}
    assert _unclear(bridge) == []


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("source /etc/network/interfaces.d/*\n" + BRIDGE.format("e1"), "no such file is saved beside it"),
        ("%for i in (1, 2):\niface e${i}\n%endfor\n" + BRIDGE.format("e1"), "of a template"),
        (BRIDGE.format("regex e.*"), "takes the interfaces of the machine"),
        (BRIDGE.format("glob e*"), "is no range such as"),
        (BRIDGE.format("swp1") + "  bridge-vids 3000-4000\n", "Cumulus Linux keeps for itself"),
        (BRIDGE.format("e1") + BRIDGE.format("e2").replace("br0", "br1"), "is another bridge of s1"),
        (BRIDGE.format("e1.10"), "is a VLAN of another interface"),
        (BRIDGE.format("e1") + "  bridge-l2protocol-tunnel all\n", "may decide which frames pass"),
        (BRIDGE.format("e1") + "  post-up bridge vlan add dev e1 vid 9\n", "may decide which frames pass"),
        ("iface e1\n  bridge-pvid 2\n  bridge-pvid 3\n" + BRIDGE.format("e1"), "stands here twice"),
    ],
)
def test_what_the_file_does_not_tell_is_said_once(text, sentence):
    told = _unclear(_read(text))
    assert len(told) == 1
    assert sentence in told[0]


def test_a_bridge_without_ports_of_the_machine_is_left_out():
    bridge = _read(BRIDGE.format("none").replace("br0", "nat0") + BRIDGE.format("e1") + "  bridge-vids 4\n")
    assert _shown(bridge) == {"e1": (1, "1", "4")}
    assert _unclear(bridge) == []
