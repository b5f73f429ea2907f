"""What a machine lacks for modelled switches, in sentences."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from testbed.base.errors import CapabilityError, LabError
from testbed.engines.local_machine import probe
from testbed.engines.realtime import process, taps
from testbed.scenario import parse_scenario

_SCENARIO = "topology: {kind: mesh, sizes: [2]}\nengine: realtime"


def test_without_taps_nothing_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(taps, "_TUN", tmp_path / "tun")
    with pytest.raises(CapabilityError) as missing:
        taps.open_taps({os.getpid(): "02:00:00:00:00:01"}, 0)
    assert str(missing.value) == (
        f"{tmp_path}/tun is missing, so hosts cannot be joined to the model and engine: realtime does not run; load "
        "the kernel's module (modprobe tun), or give the container this device"
    )


def test_a_machine_without_taps_is_refused_before_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    (trial,) = (trial for trial in probe._TRIALS if trial.name == probe.TAPS)
    lacking = probe.Capability(trial.name, False, False, "Operation not permitted", trial.consequence, trial.remedy)
    monkeypatch.setattr(probe, "capabilities", lambda: (lacking,))
    with pytest.raises(CapabilityError) as missing:
        probe.require(parse_scenario(_SCENARIO, "test"))
    assert str(missing.value) == (
        "taps: Operation not permitted: hosts cannot be joined to modelled switches, so engine: realtime does not run; "
        "load the module tun, or give the container /dev/net/tun"
    )
    probe.require(parse_scenario(_SCENARIO.replace("realtime", "ovs"), "test"))


def test_modelled_switches_need_no_openflow(monkeypatch: pytest.MonkeyPatch) -> None:
    lacking = probe.Capability(probe.OPENFLOW, False, False, "no os_ken", "no controller", "make setup")
    monkeypatch.setattr(probe, "capabilities", lambda: (lacking,))
    managed = f"{_SCENARIO}\nlab: {{controller: segment_manager}}"
    probe.require(parse_scenario(managed, "test"))
    with pytest.raises(CapabilityError, match="no os_ken: no controller; make setup"):
        probe.require(parse_scenario(managed.replace("realtime", "ovs"), "test"))


def test_a_machine_that_holds_no_packets_says_what_that_costs(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*family: int) -> socket.socket:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(socket, "socket", refuse)
    with pytest.raises(LabError) as missing:
        taps._queue_packets(())
    assert missing.value.sentence == (
        "netfilter does not hold packets for the model, so hosts do not feel that the fabric pauses, and lose what "
        "finds their own queue full; load the modules nfnetlink_queue and xt_NFQUEUE (Operation not permitted)"
    )


def test_without_real_time_priority_the_results_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*what: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    pinned: list[set[int]] = []
    monkeypatch.setattr(os, "sched_setscheduler", refuse)
    monkeypatch.setattr(os, "sched_setaffinity", lambda pid, processors: pinned.append(set(processors)))
    assert process._take_precedence() == (
        "no real-time priority (Operation not permitted), so a busy machine makes frames late; allow it (CAP_SYS_NICE, "
        "or ulimit -r)"
    )
    assert pinned == [{max(os.sched_getaffinity(0))}]
