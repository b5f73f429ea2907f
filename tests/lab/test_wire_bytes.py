"""The smallest frames: what ports count, what they are shaped by and what is predicted agree, on both engines."""

from __future__ import annotations

import re
import subprocess
import sys
import time

import pytest

from testbed.base.ethernet import VLAN_TAG, wire_bits, wire_bytes
from testbed.base.messages import LoadRequest, Process, Tap
from testbed.base.model import host_ip
from testbed.dataplane.predict import transport
from testbed.experiments.run.engines import find_lab_engine

from .conftest import plan_of

pytestmark = pytest.mark.lab

_HEADERS = 42
_COUNT = 20
_SEND = """
import socket, sys, time
door = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for number in range(int(sys.argv[3])):
    door.sendto(bytes(int(sys.argv[2])), (sys.argv[1], 9))
    time.sleep(0.002)
"""
_TEXT = "topology: {{kind: mesh, sizes: [2]}}\nassignment: {{kind: {}}}\nengine: {}\nlab: {{dilation: 20{}}}"


@pytest.mark.parametrize("assignment", ["fixed", "renamed"])
@pytest.mark.parametrize("engine", ["ovs", "realtime"])
def test_counters_shaping_and_prediction_agree_on_small_frames(engine, assignment, untouched):
    # On the fast path Linux keeps a frame's tag beside it and does not count its bytes.
    plan = plan_of(_TEXT.format(assignment, engine, ", fast_path: off" if engine == "ovs" else ""))
    tag = VLAN_TAG if plan.vlans.tagged_trunks else 0
    assert bool(tag) == (assignment == "fixed")
    with find_lab_engine(plan.scenario).build(plan, lambda text: None) as running:
        assert running.shaping_problems() == []
        if engine == "ovs":
            assert _shortest(running, "s1-eth2") == wire_bytes(0, tag)
            assert _shortest(running, "s1-eth1") == wire_bytes(0)
        with running.capture(Tap(link=0)) as frames:
            for payload in (1, 18, 46, 1472):
                argv = (sys.executable, "-c", _SEND, host_ip(1), str(payload), str(_COUNT))
                done = running.run_load(LoadRequest((Process("send", "h1", argv),), 60.0))
                assert done.outputs["send"].code == 0, done.outputs["send"].stderr
                sent = _sent(running, done.before.channels[0], _COUNT)
                # A host of a lab fills nothing up; a modelled switch does, as a host's card would.
                whole = payload + _HEADERS if engine == "ovs" else max(payload + _HEADERS, 60)
                assert sent == (_COUNT * (whole + tag), _COUNT)
                wire = transport("udp", payload).forward + tag
                assert wire == wire_bytes(payload + _HEADERS, tag)
                assert wire_bits(sent[0], sent[1], tag) == 8 * _COUNT * wire
                seen = [one.length for one in _captured(frames)]
                assert seen == [whole + tag] * _COUNT


def _sent(running, before, count):
    """Bytes and frames of s1→s2 since a reading, when so many frames have passed."""
    until = time.monotonic() + 20
    while True:
        now = running.run_load(LoadRequest((Process("wait", None, ("sleep", "0.1")),), 60.0)).after.channels[0]
        if now.frames - before.frames >= count or time.monotonic() > until:
            return now.bytes - before.bytes, now.frames - before.frames


def _captured(frames):
    seen = []
    while got := frames.read(0.3):
        seen += [one for one in got if one.outbound]
    return seen


def _shortest(running, port):
    """Bytes as which the kernel counts a short frame at a port, at least."""
    words = ["nsenter", f"--target={running.namespaces.init}", "--net", "tc", "-d", "class", "show", "dev", port]
    shown = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    return int(re.findall(r"\bmpu (\d+)b", shown)[0])
