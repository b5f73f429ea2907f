"""What waits at a host's interface, and what a host's socket feels of queues: of its own, not of the switches'."""

from __future__ import annotations

import sys

import pytest

from testbed.base.messages import LoadRequest, Process
from testbed.engines.lab.control.build import build_lab

from .conftest import both_ways, execute, plan_of

# Half of it listens, half of it sends for two seconds and looks at what waits at the interface.
_SENDS = """
import re, socket, subprocess, sys, time
if sys.argv[1] == "listen":
    with socket.create_server(("10.0.0.2", 5000)) as server:
        there, _ = server.accept()
        while there.recv(1 << 16):
            pass
else:
    end, longest, seen = time.monotonic() + 2, 0.0, 0
    while (there := socket.socket()).connect_ex(("10.0.0.2", 5000)):
        there.close()
        time.sleep(0.05)
    with there:
        there.setblocking(False)
        while time.monotonic() < end:
            try:
                there.send(bytes(1 << 16))
            except BlockingIOError:
                time.sleep(0.01)
            shown = subprocess.run(["tc", "-s", "qdisc", "show", "dev", "eth0"], capture_output=True, text=True).stdout
            waits = [(int(length), int(frames)) for length, frames in re.findall(r"backlog (\\d+)b (\\d+)p", shown)]
            longest = max([longest, *(length / frames for length, frames in waits if frames)])
            seen += any(frames for _, frames in waits)
    print(longest, seen)
"""


# Datagrams that a socket with a small buffer cannot send at once: of 60 at an interval, and of 60 without one.
_REFUSED = """
import socket, time

def refused(pause):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as there:
        there.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 20_000)
        there.setblocking(False)
        count = 0
        for _ in range(60):
            try:
                there.sendto(bytes(1400), ("10.0.0.2", 5000))
            except BlockingIOError:
                count += 1
            time.sleep(pause)
        return count

print(refused(0.01), refused(0))
"""


# Natively only: emulated hosts filled no queue in two seconds.
def test_what_waits_at_a_host_are_frames_of_the_wire(untouched):
    processes = tuple(
        Process(role, host, (sys.executable, "-c", _SENDS, role)) for role, host in (("listen", "h2"), ("send", "h1"))
    )
    with build_lab(plan_of("topology: {kind: mesh, sizes: [2]}\nlab: {dilation: 200}")) as lab:
        outputs = lab.run_load(LoadRequest(processes, limit=30)).outputs
    assert [output.code for output in outputs.values()] == [0, 0], outputs
    longest, seen = map(float, outputs["send"].stdout.split())
    assert seen
    assert 1000 < longest <= 1514  # several segments of TCP in one would be longer


@pytest.mark.vm
@both_ways
def test_a_socket_waits_for_its_own_link_and_not_for_queues(fast_path, untouched):
    # The link between the switches takes 29 ms for a datagram, so most of the first 60 wait there; a host's takes 6.
    text = f"""
topology: {{kind: mesh, sizes: [2]}}
links: {{rate: 20 Mbit/s, host_rate: 100 Mbit/s}}
lab: {{dilation: 50, fast_path: {fast_path}}}
"""
    with build_lab(plan_of(text)) as lab:
        assert lab.facts.tsq_backpressure_reason == ""
        # The second time after Open vSwitch was configured anew, which can take classifiers off its ports.
        for step in ("show", "set interface s1-eth1 mtu_request=1500"):
            execute(lab, "ovs-vsctl", *step.split())
            paced, at_once = map(int, execute(lab, sys.executable, "-c", _REFUSED, host="h1").split())
            assert paced == 0
            assert at_once > 0


# Of 15 sockets that send 20 datagrams each at once: how many are refused, and how many leave in the next second.
_AT_ONCE = """
import socket, time
from contextlib import ExitStack
from pathlib import Path

sent = lambda: int(Path("/sys/class/net/eth0/statistics/tx_packets").read_text())
with ExitStack() as stack:
    sockets = [stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) for _ in range(15)]
    before, refused = sent(), 0
    for one in sockets:
        one.setblocking(False)
        for _ in range(20):
            try:
                one.sendto(bytes(1400), ("10.0.0.2", 5000))
            except BlockingIOError:
                refused += 1
    time.sleep(1)
    print(refused, sent() - before)
"""


@pytest.mark.vm
def test_a_hosts_own_queue_holds_what_many_sockets_send_at_once(untouched):
    with build_lab(plan_of("topology: {kind: mesh, sizes: [2]}\nlab: {dilation: 50}")) as lab:
        refused, left = map(int, execute(lab, sys.executable, "-c", _AT_ONCE, host="h1").split())
    assert (refused, left) == (0, 300)
