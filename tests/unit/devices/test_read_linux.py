"""Scripts of iproute2 commands, and files of networkd and ifupdown2, read as the kernel and the programs read them."""

from __future__ import annotations

import pytest

from testbed.devices.bridge import Bridge, BridgePort
from testbed.devices.networkd import read_networkd
from testbed.devices.read_ifupdown2 import read_ifupdown2
from testbed.devices.read_linux import read_script

BRIDGE = "ip link add name br0 type bridge vlan_filtering 1 vlan_default_pvid 0\nip link set dev swp1 master br0\n"


def read(*lines: str) -> tuple[Bridge, list[str]]:
    bridge, problems = read_script("s1", {"s1.sh": BRIDGE + "\n".join(lines)})
    return bridge, [str(problem) for problem in problems]


def vlans(port: BridgePort) -> tuple[int | None, list[int], list[int]]:
    return port.pvid, sorted(port.members), sorted(port.untagged)


def port_after(*lines: str) -> BridgePort:
    bridge, problems = read(*lines)
    assert problems == []
    return bridge.ports["swp1"]


def test_a_later_command_replaces_what_one_said_of_a_vlan():
    """As net/bridge/br_vlan.c does with the flags of a VLAN that is there already."""
    found = port_after("bridge vlan add dev swp1 vid 10 pvid untagged", "bridge vlan add dev swp1 vid 10")
    assert vlans(found) == (None, [10], [])
    found = port_after("bridge vlan add dev swp1 vid 10 pvid", "bridge vlan add dev swp1 vid 11 pvid untagged")
    assert vlans(found) == (11, [10, 11], [11])


def test_a_default_vlan_is_one_of_every_port():
    text = "ip link add name br0 type bridge vlan_filtering 1\nip link set dev swp1 master br0\n"
    bridge, problems = read_script("s1", {"s1.sh": text})
    assert (vlans(bridge.ports["swp1"]), problems) == ((1, [1], [1]), [])


def test_ranges_flags_and_entries():
    bridge, problems = read(
        "bridge -batch - <<'END'", "vlan add dev swp1 vid 10-12 untagged", "# a remark", "",
        "link set dev swp1 learning off flood off", "fdb add 02:00:00:00:00:0A dev swp1 master static vlan 11", "END",
        "ethtool -A swp1 rx on tx on",
    )  # fmt: skip
    assert problems == []
    port = bridge.ports["swp1"]
    assert vlans(port) == (None, [10, 11, 12], [10, 11, 12])
    assert (port.learning, port.flood, port.bcast_flood) == (False, False, True)
    assert bridge.fdb == {(11, "02:00:00:00:00:0a"): "swp1"}


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("bridge vlan add dev swp1 vid 4095", '"4095" is not a number from 1 to 4094'),
        ("bridge vlan add dev swp1 vid ten", '"ten" is not a number from 1 to 4094'),
        ("bridge vlan add dev swp1", "lacks vid"),
        ("bridge vlan add dev swp1 vid", "vid has no value"),
        ("bridge vlan add dev swp2 vid 10", "swp2 is not a port of the bridge"),
        ("bridge vlan add dev swp1 vid 10-11 pvid", "pvid applies to one VLAN, not to a range"),
        ("bridge vlan del dev swp1 vid 10", '"bridge vlan del dev swp1 vid 10" does not configure a bridge'),
        ("bridge link set dev swp1 learning maybe", '"learning maybe" is not a known setting of a port'),
        ("bridge link set dev swp1 hairpin on", '"hairpin on" is not a known setting of a port'),
        ("bridge fdb add 02:00 dev swp1 master static vlan 10", '"02:00" is not a MAC address'),
        ("bridge fdb add 02:00:00:00:00:01 dev swp1 master static", "lacks vlan"),
        (
            "bridge fdb add 02:00:00:00:00:01 dev swp1 master vlan 10",
            "the entry of 02:00:00:00:00:01 is not static, so the bridge keeps its frames or forgets it",
        ),
        ("bridge fdb del 02:00:00:00:00:01", '"bridge fdb del 02:00:00:00:00:01" does not configure a bridge'),
        ("ip link set dev swp2 master br1", "there is no bridge br1 to put swp2 in"),
        ("ip link add name b type bond", "adds something other than a bridge"),
        ("ip link show", '"ip link show" does not configure a bridge'),
        ("rm -rf /", '"rm -rf /" does not configure a bridge'),
    ],
)
def test_a_line_that_is_not_understood(line, told):
    assert read(line)[1] == [f"s1.sh line 3: {told}"]


def test_an_entry_twice():
    entry = "fdb add 02:00:00:00:00:01 dev swp1 master static vlan 10"
    assert read(f"bridge {entry}", f"bridge {entry}")[1] == [
        "s1.sh line 4: VLAN 10 has an entry of 02:00:00:00:00:01 already"
    ]
    assert read(f"bridge {entry}", f"bridge {entry}".replace("add", "replace"))[1] == []


NETDEV = "[NetDev]\nName=br0\nKind=bridge\n[Bridge]\nVLANFiltering=yes\n"


def networkd(port: str, netdev: str = NETDEV) -> tuple[BridgePort, list[str]]:
    files = {"s1/a.netdev": netdev, "s1/b.network": f"[Match]\nName=swp1\n[Network]\nBridge=br0\n{port}"}
    bridge, problems = read_networkd("s1", files)
    return bridge.ports.get("swp1", BridgePort()), [str(problem) for problem in problems]


def test_networkd_counts_a_pvid_and_an_untagged_vlan_as_members():
    found, problems = networkd("[BridgeVLAN]\nPVID=10\nEgressUntagged=10-11\n[BridgeVLAN]\n;no\nVLAN=20\n")
    assert (problems, vlans(found)) == ([], (10, [1, 10, 11, 20], [1, 10, 11]))
    found, _ = networkd("[BridgeVLAN]\nVLAN=10\n", NETDEV + "DefaultPVID=none\nSTP=true\n")
    assert vlans(found) == (None, [10], [])
    found, _ = networkd("[Bridge]\nLearning=no\nUnicastFlood=false\n")
    assert (found.learning, found.flood, found.mcast_flood) == (False, False, True)


def test_networkd_without_a_bridge_or_with_a_strange_vlan():
    assert networkd("[BridgeVLAN]\nVLAN=ten\n")[1] == ['s1/b.network: "ten" is not a number from 1 to 4094']
    assert [str(p) for p in read_networkd("s1", {})[1]] == ["s1/: has no .netdev file, so s1 cannot be checked"]


def test_ifupdown2():
    text = (
        "auto br0\niface br0\n  bridge-vlan-aware yes\n  bridge-ports swp1 swp2\n"
        "iface swp1\n  bridge-vids 10 12-13\n  bridge-allow-untagged no\niface swp2\n  bridge-vids 10\n"
    )
    bridge, problems = read_ifupdown2("s1", {"s1/interfaces": text})
    assert problems == []
    assert (bridge.vlan_filtering, bridge.stp) == (True, False)
    one, other = bridge.ports["swp1"], bridge.ports["swp2"]
    assert vlans(one) == (None, [10, 12, 13], [])
    assert vlans(other) == (1, [1, 10], [1])
    assert [str(p) for p in read_ifupdown2("s1", {})[1]] == ["s1/interfaces: has no bridge, so s1 cannot be checked"]


def test_ifupdown2_with_an_interface_without_a_name():
    text = "iface\n  bridge-ports swp9\niface br0\n  bridge-ports swp1\n"
    bridge, problems = read_ifupdown2("s1", {"s1/interfaces": text})
    assert [str(problem) for problem in problems] == ["s1/interfaces line 1: iface names no interface"]
    assert list(bridge.ports) == ["swp1"]
