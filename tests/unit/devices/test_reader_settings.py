"""Each setting that readers of settings by name say to read changes what is read."""

from __future__ import annotations

import re

import pytest

from testbed.devices.read_ifupdown2 import OF_BRIDGE, OF_PORT, read_ifupdown2
from testbed.devices.read_mikrotik import SETTINGS, read_mikrotik
from testbed.devices.read_openwrt import OPTIONS, read_openwrt
from tests.readings import strip_origins

MIKROTIK = """/interface bridge
add name=br protocol-mode=mstp vlan-filtering=yes priority=0x1000 admin-mac=02:00:00:00:00:09 region-name=x \\
    region-revision=1 port-cost-mode=short
add name=old disabled=yes
/interface bridge port
add bridge=br interface=ether1 pvid=10 path-cost=7 priority=0x10 edge=yes bpdu-guard=yes restricted-role=yes
add bridge=br interface=ether2 frame-types=admit-only-vlan-tagged internal-path-cost=9 ingress-filtering=no learn=no
add bridge=br interface=ether3 unknown-unicast-flood=no unknown-multicast-flood=no broadcast-flood=no
add bridge=br interface=ether4 disabled=yes
add bridge=br interface=uplink
add bridge=br interface=bond1
add bridge=br interface=bond2
/interface bridge vlan
add bridge=br tagged=ether2 untagged=ether3 vlan-ids=20
add bridge=br tagged=ether2 vlan-ids=30 disabled=yes
/interface bridge host
add bridge=br interface=ether1 mac-address=02:00:00:00:00:01 vid=10
add bridge=br interface=ether1 mac-address=02:00:00:00:00:02 vid=10 disabled=yes
add bridge=old interface=ether1 mac-address=02:00:00:00:00:03 vid=10
/interface bonding
add name=bond1 slaves=ether6,ether7
add name=bond2 slaves=ether8,ether9 disabled=yes
/interface ethernet
set [ find default-name=ether5 ] name=uplink disabled=yes
"""
OPENWRT = """config device
	option name 'br-lan'
	option type 'bridge'
	option vlan_filtering '0'
	option stp '1'
	list ports 'lan1'
	list ports 'lan2'

config device
	option name 'lan2'
	option enabled '0'

config bridge-vlan
	option device 'br-lan'
	option vlan '10'
	list ports 'lan1:u*'
"""
IFUPDOWN2 = """iface br0
	bridge-vlan-aware yes
	bridge-ports e1 e2 e3 e4
	bridge-stp on
	bridge-vids 10 20
	bridge-pvid 10

iface e1
	bridge-vids 30
	bridge-pvid 30
	bridge-learning off
	bridge-unicast-flood off
	bridge-multicast-flood off
	bridge-broadcast-flood off

iface e2
	bridge-access 20

iface e3
	bridge-allow-untagged no
"""
_FILES = ("s1.txt", "s1/interfaces")  # where readers look
# Of each dialect: its settings by section (a pattern), a sample of all that are read, and what reads it.
BY_NAME = {
    "ifupdown2": ({"br0": OF_BRIDGE, r"e\d": OF_PORT}, IFUPDOWN2, read_ifupdown2),
    "mikrotik": (SETTINGS, MIKROTIK, read_mikrotik),
    "openwrt": (OPTIONS, OPENWRT, read_openwrt),
}


def _drop(text: str, section: str, key: str) -> str:
    """The text without a setting of the sections of a pattern."""
    kept, here = [], ""
    for line in text.splitlines():
        here = re.sub("^(config|iface) ", "", line) if line.startswith(("/", "config ", "iface ")) else here
        if not re.fullmatch(section, here):
            kept.append(line)
        elif not re.match(rf"\t((option|list) )?{key} ", line):
            kept.append(re.sub(rf"(?<=\s){key}=\S+", "", line))
    return "\n".join(kept) + "\n"


@pytest.mark.parametrize(
    ("dialect", "section", "key"),
    [
        (dialect, section, key)
        for dialect, (sections, _, _) in BY_NAME.items()
        for section, settings in sections.items()
        for key, outcome in settings.items()
        if outcome == "read" and key != "ifname"  # the older word for ports
    ],
)
def test_a_setting_that_is_read_changes_what_is_read(dialect, section, key):
    _, text, read = BY_NAME[dialect]
    bridge, problems = read("s1", dict.fromkeys(_FILES, text))
    assert problems == []
    assert bridge.reading.unclear == ()
    without = read("s1", dict.fromkeys(_FILES, _drop(text, section, key)))
    assert strip_origins(without) != strip_origins((bridge, problems))


def test_the_older_word_for_ports_of_openwrt_is_read():
    text = "config device\n\toption name 'br'\n\toption type 'bridge'\n\toption ifname 'lan1 lan2'\n"
    assert list(read_openwrt("s1", {"s1.txt": text})[0].ports) == ["lan1", "lan2"]


def test_an_entry_of_another_bridge_of_mikrotik_is_not_taken():
    assert {mac[-1] for _, mac in read_mikrotik("s1", {"s1.txt": MIKROTIK})[0].fdb} == {"1"}
