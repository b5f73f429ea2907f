"""Stock Mininet's own torus with shaped links, built and taken down once; prints seconds as JSON.

Runs inside namespaces of its own, with an Open vSwitch of its own, so that it touches nothing of the machine.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

from mininet.link import TCLink
from mininet.net import Mininet
from mininet.node import OVSSwitch
from mininet.topolib import TorusTopo

from testbed.engines.ovs.openvswitch import OpenVSwitch

MEGABIT = 10


def main() -> None:
    """Build TorusTopo(k, k) the way Mininet does by default, then stop it."""
    size = int(sys.argv[1])
    subprocess.run(["mount", "-t", "tmpfs", "lab", "/run"], check=True)
    subprocess.run(["mount", "-t", "sysfs", "lab", "/sys"], check=True)
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    ovs = OpenVSwitch(Path("/run/openvswitch"))
    datapath = ovs.choose_datapath("auto")
    ovs.start(stock=True)
    # Mininet would raise limits of the whole machine here; that costs it no time below.
    Mininet.inited = True
    started = time.monotonic()
    switch = partial(OVSSwitch, datapath="user" if datapath == "userspace" else "kernel", failMode="secure")
    net = Mininet(
        topo=TorusTopo(size, size), switch=switch, link=partial(TCLink, bw=MEGABIT), controller=None,
        autoSetMacs=True, autoStaticArp=True,
    )  # fmt: skip
    net.start()
    up = time.monotonic() - started
    ports = sum(len(s.intfNames()) - 1 for s in net.switches)
    started = time.monotonic()
    net.stop()
    print(json.dumps({"up": up, "down": time.monotonic() - started, "ports": ports, "datapath": datapath}))
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
