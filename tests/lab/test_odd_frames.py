"""Frames on the wire that IEEE 802.1Q treats in a way of its own."""

from __future__ import annotations

import re

import pytest

from testbed.base.model import host_mac
from testbed.fabric.openflow.admission import admit

from .conftest import captured, each, plan_of

pytestmark = pytest.mark.vm

_FABRICS = {
    "static entries": "{kind: fixed}",
    "learning": "{kind: fixed, registration: learning}",
    "renamed": "{kind: renamed}",
}
_SLOW = {
    f"{name}, without a fast path": f"{_FABRICS[name]}\nlab: {{fast_path: off}}"
    for name in ("static entries", "renamed")
}
_BROADCAST, _BPDU, _PAUSE, _LLDP = "ff:ff:ff:ff:ff:ff", *(f"01:80:c2:00:00:{last}" for last in ("00", "01", "0e"))
# What h1 sends: source, destination, VLAN of its tag. Each carries its number in its payload.
_SEND = """
import socket, sys
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
s.bind(("eth0", 0))
for frame in sys.argv[1:]:
    s.send(bytes.fromhex(frame))
"""


def _bytes(number: int, source: str, destination: str, vlan: int | None) -> str:
    tag = "" if vlan is None else f"8100{vlan:04x}"
    return f"{destination}{source}".replace(":", "") + f"{tag}88b5" + f"{0xABCD0000 + number:08x}" + "00" * 46


@pytest.mark.parametrize("name", each(_FABRICS, userspace=_SLOW))
def test_hosts_get_what_a_bridge_forwards_and_nothing_else(name, standing):
    plan = plan_of(f"topology: {{kind: mesh, sizes: [2, 2]}}\nassignment: {(_FABRICS | _SLOW)[name]}\n")
    lab = standing(plan)
    lab.verify(plan)  # teaches switches that learn
    own, other, foreign = host_mac(0), host_mac(1), 4000
    vlan = int(plan.vlans.vlan_ids[0]) if not name.startswith("renamed") else 10
    frames = [
        (source, destination, tag)
        for source in (own, _BROADCAST)
        for destination in (other, _BROADCAST, _BPDU, _PAUSE, _LLDP)
        for tag in (None, 0, vlan, foreign)
    ]
    frames.append((own, _BROADCAST, None))  # what came before has taught nobody that broadcasts are at h1
    tagged = plan.vlans.vlan_ids.tolist() if name == "learning" else ()
    arguments = ("-i", "eth0", "-Q", "in", "-e", "-n", "-l", "-x")
    holder = lab.facts.holders["h1"]
    given = [_bytes(number, *frame) for number, frame in enumerate(frames)]
    program = (
        f"import subprocess, sys\ninside = ['nsenter', '--net=/proc/{holder}/ns/net', sys.executable, '-c']\n"
        f"subprocess.run([*inside, {_SEND!r}, *{given!r}], check=True)\n"
    )
    seen = captured(lab, {host: (host, arguments) for host in ("h2", "h3", "h4")}, program)
    seen.pop("meanwhile")
    for host, text in seen.items():
        assert "802.1Q" not in text
        words = re.sub(r"\s", "", re.sub(r"0x[0-9a-f]{4}:", "", text))
        for number, (source, destination, tag) in enumerate(frames):
            there = f"{0xABCD0000 + number:08x}" in words
            wanted = admit(source, destination, tag, vlan, tagged) is not None
            wanted &= destination == _BROADCAST or host == "h2"
            assert there is wanted, (host, source, destination, tag)
    assert lab.reach() == []
