"""How switches are divided among switch daemons."""

from __future__ import annotations

import resource
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbed.base.errors import LabError
from testbed.engines.lab.control.build import build_order
from testbed.engines.lab.hosts import commands
from testbed.engines.ovs import openvswitch
from testbed.engines.ovs.switch_daemon import daemon_count, divide, open_files, switch_ports
from testbed.planning import make_plan
from testbed.scenario import parse_scenario


@given(st.lists(st.integers(0, 48), min_size=1, max_size=40), st.data())
def test_every_switch_is_in_one_share_and_none_is_empty(ports, data):
    named = {f"s{number}": count for number, count in enumerate(ports, 1)}
    count = data.draw(st.integers(1, len(ports)))
    shares = divide(named, count)
    assert len(shares) == count
    assert all(shares)
    assert [name for share in shares for name in share] == list(named)


@given(st.lists(st.integers(1, 48), min_size=4, max_size=40), st.integers(2, 4))
def test_no_share_has_more_than_a_switch_beyond_its_part(ports, count):
    named = {f"s{number}": ports_of for number, ports_of in enumerate(ports, 1)}
    for share in divide(named, count):
        assert len(share) == 1 or sum(named[name] for name in share) <= sum(ports) / count + max(ports)


def test_a_torus_is_halved():
    named = {f"s{number}": 5 for number in range(1, 17)}
    assert divide(named, 2) == [list(named)[:8], list(named)[8:]]


@pytest.mark.parametrize(
    ("wanted", "datapath", "processors", "switches", "count"),
    [
        ("auto", "userspace", 2, 16, 2),
        ("auto", "userspace", 8, 16, 5),  # 80 ports
        ("auto", "userspace", 8, 2, 1),  # 10 ports
        ("auto", "userspace", 1, 64, 1),
        ("auto", "kernel", 8, 64, 1),
        (7, "userspace", 2, 16, 7),
        (1, "userspace", 2, 16, 1),
    ],
)
def test_number_of_daemons(wanted, datapath, processors, switches, count):
    assert daemon_count(wanted, datapath, processors, {f"s{n}": 5 for n in range(switches)}) == count


def test_ports_of_an_order():
    plan = make_plan(parse_scenario("topology: {kind: mesh, sizes: [3], hosts_per_switch: 2}", "test.yaml"))
    assert switch_ports(build_order(plan)) == {"s1": 3, "s2": 4, "s3": 3}


@pytest.mark.parametrize(
    ("datapath", "clock", "waited"), [("kernel", 4.0, 6.0), ("kernel", 9e4, 0), ("userspace", 4.0, 0)]
)
def test_the_kernels_datapath_waits_for_counted_processors(datapath, clock, waited, tmp_path, monkeypatch):
    class Daemon:
        def __init__(self, *arguments, **options):
            pass

        def start(self):
            assert sum(slept) == waited

    slept: list[float] = []
    monkeypatch.setattr(openvswitch, "SwitchDaemon", Daemon)
    monkeypatch.setattr(time, "monotonic", lambda: clock)
    monkeypatch.setattr(time, "sleep", slept.append)
    for name in ("OVS_RUNDIR", "OVS_LOGDIR", "OVS_DBDIR"):
        monkeypatch.setenv(name, "")
    switches = openvswitch.OpenVSwitch(tmp_path)
    switches.datapath = datapath
    switches.start([["s1"]])
    assert sum(slept) == waited


def test_files_are_allowed_or_refused_before_anything_is_built(monkeypatch):
    allowed = []
    monkeypatch.setattr(resource, "getrlimit", lambda which: (256, 1024))
    monkeypatch.setattr(resource, "setrlimit", lambda which, limits: allowed.append(limits))
    commands.allow_files(100, "the lab x")
    assert allowed == []
    commands.allow_files(open_files([5] * 64), "the lab x")
    assert allowed == [(690, 1024)]

    def refuse(which, limits):
        raise ValueError("not allowed to raise maximum limit")

    monkeypatch.setattr(resource, "setrlimit", refuse)
    with pytest.raises(LabError, match="the lab x takes 2000 open files in one program, and 1024 are allowed here"):
        commands.allow_files(2000, "the lab x")
