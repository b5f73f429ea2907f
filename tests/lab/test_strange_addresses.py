"""A host that sends from and to ever new addresses costs its switches so much memory and no more."""

from __future__ import annotations

import re
import sys
import time

import pytest

from testbed.base.model import host_mac
from testbed.engines.lab.control.build import build_lab, build_order
from testbed.engines.lab.control.client import LabClient
from testbed.engines.ovs.check_tables import teach, unknown_addresses
from testbed.engines.ovs.table_limits import STRANGERS, datapath_flows, forwarding_entries

from .conftest import daemon_of, execute, plan_of, sharing

_PAIR = "topology: {kind: mesh, sizes: [2]}\nlab: {dilation: 1}\n"
# Frames of an experimental type, each from another address, and to another one unless one is named.
_SEND = """
import os, socket, sys
one = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
one.bind(("eth0", 0))
to = bytes.fromhex(sys.argv[2]) if len(sys.argv) > 2 else b""
for number in range(int(sys.argv[1])):
    strange = os.urandom(10)
    try:
        one.send((to or b"\\x02" + strange[5:]) + b"\\x06" + strange[:5] + b"\\x88\\xb5" + bytes(46))
    except OSError:
        continue
"""


def send(lab: LabClient, count: int, *to: str) -> None:
    execute(lab, sys.executable, "-I", "-c", _SEND, str(count), *(mac.replace(":", "") for mac in to), host="h1")


def flows(lab: LabClient) -> tuple[int, int]:
    """How many flows the first switch's daemon has in its datapath, and how many it keeps at most."""
    shown = execute(lab, "ovs-appctl", "-t", daemon_of(lab, 0), "upcall/show")
    found = dict(re.findall(r"\((current|limit) (\d+)\)", shown))
    return int(found["current"]), int(found["limit"])


@pytest.mark.userspace
@sharing("strange addresses")
def test_flows_of_the_datapath_are_bounded_whatever_a_host_sends(standing):
    plan = plan_of(_PAIR)
    lab, most = standing(plan), datapath_flows(build_order(plan), ["s1", "s2"])
    send(lab, 40_000)
    until = time.monotonic() + 20
    while (found := flows(lab))[0] > most:
        assert time.monotonic() < until, found
        time.sleep(0.2)
    assert found[1] <= most  # Open vSwitch goes by a smaller one while it is slow
    assert lab.reach() == []
    assert lab.walk(plan) == []


def arrived(lab: LabClient, host: str) -> int:
    return int(execute(lab, "cat", "/sys/class/net/eth0/statistics/rx_packets", host=host))


@sharing("strange addresses")
def test_with_port_security_nothing_from_another_address_arrives(standing):
    for more, count in (("", 2000), (", port_security: true", 0)):
        plan = plan_of(_PAIR.replace("1}", f"1{more}}}"))
        lab = standing(plan)
        assert lab.reach() == []
        assert lab.walk(plan) == []
        before = arrived(lab, "h2")
        send(lab, 1000, host_mac(1))
        send(lab, 1000, "ff:ff:ff:ff:ff:ff")
        assert lab.reach() == []
        assert count <= arrived(lab, "h2") - before < count + 100  # the pings


@pytest.mark.userspace
def test_a_learning_switch_has_room_for_hosts_and_strangers(untouched):
    plan = plan_of(f"{_PAIR}assignment: {{kind: fixed, registration: learning, ageing: 0}}")
    with build_lab(plan) as lab:
        most = forwarding_entries(build_order(plan))
        teach(plan, lab)
        send(lab, 4 * STRANGERS, host_mac(1))
        for switch in ("s1", "s2"):
            kept = [line for line in lab.flows()[switch] if "table=1, " in line]
            assert STRANGERS < len(kept) == most[switch]
        # Those of hosts were there before, and stay.
        assert unknown_addresses(plan, lab.flows()) == []
        assert lab.reach() == []
