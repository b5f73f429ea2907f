"""Captures of one lab on modelled switches, begun by different programs at different moments, have one clock."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
import time

import pytest

from testbed.base.ethernet import wire_bytes
from testbed.base.messages import LoadRequest, Process, Tap
from testbed.base.model import host_ip
from testbed.engines.lab.control import registry
from testbed.experiments.run import realtime
from testbed.results import pcapng

from .conftest import plan_of
from .test_capture import fields, started
from .test_realtime import _models

pytestmark = pytest.mark.lab

_COUNT, _SIZE = 40, 200
_UDP = "17"  # and not ICMP, by which nobody answers with the frame in it
_SEND = """
import socket, sys, time
door = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for number in range(int(sys.argv[2])):
    door.sendto(number.to_bytes(4, "big") + bytes(int(sys.argv[3]) - 46), (sys.argv[1], 9))
    time.sleep(0.02)
"""
_TEXT = "topology: {kind: mesh, sizes: [3]}\nengine: realtime\nlab: {dilation: 100}\nsimulator: {flow_control: pause}"


def test_a_frame_is_stamped_later_on_each_link_of_its_path(tmp_path, untouched):
    """One capture before the load, one of another program, two within it; and nobody computes the model for a while."""
    plan, name = plan_of(_TEXT), f"clock-{os.getpid()}"
    with realtime.RealtimeEngine().build(plan, lambda text: None) as running:
        registry.register(name, running.namespaces, plan.scenario.name, plan.digest)
        entry = registry.find(name)
        try:
            argv = (sys.executable, "-c", _SEND, host_ip(2), str(_COUNT), str(_SIZE))
            request = LoadRequest((Process("send", "h1", argv),), 60.0)
            with (
                running.capture(Tap(host=0)) as first,
                started(name, "s1-s2", "--file", "it", folder=tmp_path) as other,
            ):
                load = threading.Thread(target=running.run_load, args=(request,))
                load.start()
                time.sleep(0.2)
                with running.capture(Tap(link=1)) as second, running.capture(Tap(host=2)) as last:
                    (model,) = _models(untouched)
                    os.kill(model, signal.SIGSTOP)
                    time.sleep(0.2)
                    os.kill(model, signal.SIGCONT)
                    load.join()
                    time.sleep(0.3)
                    files = {"h1": first, "s2-s3": second, "h3": last}
                    for place, frames in files.items():
                        frames.stop()
                        content = pcapng.header(frames.interface, frames.description) + pcapng.packets(frames.read(0.0))
                        (tmp_path / place).write_bytes(content)
                other.send_signal(signal.SIGINT)
                assert other.wait(60) == 0
        finally:
            registry.forget(entry)
    stamps = [_stamps(tmp_path / place) for place in ("h1", "it", "s2-s3", "h3")]
    assert stamps[0].keys() == stamps[1].keys() == set(range(_COUNT))
    assert len(stamps[2].keys() & stamps[3].keys()) > 10
    for earlier, later, tag in zip(stamps[:-1], stamps[1:], (0, 4, 4), strict=True):
        least = wire_bytes(_SIZE, tag) * 8 + 1000  # ns at 1 Gbit/s, and a microsecond of cable and switch
        between = [later[number] - earlier[number] for number in earlier.keys() & later.keys()]
        assert min(between) >= least - 1
        assert sorted(between)[len(between) // 2] <= least + 1  # where a frame did not wait, it is exact
    if shutil.which("mergecap"):
        # Whoever is closer to the sender first: the order of merged files is that of the path.
        merged = tmp_path / "merged"
        names = [str(tmp_path / place) for place in ("h3", "s2-s3", "it", "h1")]
        subprocess.run(["mergecap", "-w", str(merged), *names], check=True)
        order: dict[str, list[str]] = {}
        for number, interface, protocol in fields(merged, "data.data", "frame.interface_name", "ip.proto"):
            if protocol == _UDP:
                order.setdefault(number, []).append(interface)
        path = ["h1", "s1-s2", "s2-s3", "h3"]
        assert all(found == path[: len(found)] or found == [*path[:2], "h3"] for found in order.values())
        assert path in order.values()


def _stamps(file):
    """Number of each frame of the flow in a file → ns at which it is stamped."""
    found = {}
    for seconds, data, protocol in fields(file, "frame.time_epoch", "data.data", "ip.proto"):
        if protocol == _UDP:
            whole, _, part = seconds.partition(".")
            found[int(data.replace(":", "")[:8], 16)] = int(whole) * 10**9 + int(part.ljust(9, "0"))
    return found
