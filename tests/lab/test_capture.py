"""Frames of running links, as tshark reads them: their VLANs are the plan's, whoever is busy and whatever ends it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest

from testbed.base.errors import LabError
from testbed.base.messages import LoadRequest, Process, Tap
from testbed.base.model import host_ip, host_mac
from testbed.engines.lab.control import registry
from testbed.engines.lab.control.build import build_lab
from testbed.engines.lab.control.client import LabClient
from testbed.fabric.openflow.oracle import Oracle
from testbed.planning import Plan
from testbed.results import pcapng
from tests.unit.ui.test_cli_surface import typed

from .conftest import each, plan_of

_WAYS = {"0x00000002": 0, "0x00000001": 1}  # the flags of outbound and inbound frames
_TESTBED = [sys.executable, "-m", "testbed"]
_PLANS = {
    "fixed": "topology: {kind: mesh, sizes: [3, 2]}\nlab: {dilation: 50}",
    "priorities": "topology: {kind: ring, switches: 4}\nrouting: {kind: dl}\nassignment: {kind: openflow}\n"
    "lab: {dilation: 50}",
}
_SLOW = {f"{name}, slow path": text.replace("{dilation", "{fast_path: off, dilation") for name, text in _PLANS.items()}


def fields(file: Path, *names: str) -> list[list[str]]:
    asked = [word for name in names for word in ("-e", name)]
    done = subprocess.run(
        ["tshark", "-r", str(file), "-T", "fields", *asked], capture_output=True, text=True, check=True
    )
    return [line.split("\t") for line in done.stdout.splitlines()]


@pytest.mark.vm
@pytest.mark.parametrize("name", each(_PLANS, userspace=_SLOW))
def test_frames_have_the_vlans_of_the_plan(name, standing, tmp_path):
    """Every link is listened to while every host pings every other: nothing more, nothing less, each way."""
    plan = plan_of((_PLANS | _SLOW)[name])
    lab = standing(plan)
    wiring = plan.wiring
    with ExitStack() as until:
        taps = [until.enter_context(lab.capture(Tap(link))) for link in range(wiring.link_count)]
        assert lab.reach() == []
        for tap in taps:
            tap.stop()
        frames = [tap.read(0.0) for tap in taps]
        assert [tap.count_lost() for tap in taps] == [0] * len(taps)
    found: dict[int, set[tuple[str, ...]]] = {}
    for link, (tap, some) in enumerate(zip(taps, frames, strict=True)):
        assert tap.interface == f"{wiring.switch_name(int(wiring.links[link, 0]))}-eth{wiring.out_port[2 * link]}"
        file = tmp_path / f"{link}.pcapng"
        file.write_bytes(pcapng.header(tap.interface, tap.description) + pcapng.packets(some))
        names = ("frame.packet_flags_direction", "eth.src", "eth.dst", "vlan.id", "vlan.priority")
        for way, *rest in fields(file, *names):
            found.setdefault(2 * link + _WAYS[way], set()).add(tuple(rest))
    assert found == planned(plan)
    assert any(vlan for seen in found.values() for _, _, vlan, _ in seen)


def planned(plan: Plan) -> dict[int, set[tuple[str, ...]]]:
    """Channel → source, destination, VLAN and priority of each pair that takes it."""
    oracle, hosts = Oracle(plan.topology, plan.rules), range(plan.topology.host_count)
    found: dict[int, set[tuple[str, ...]]] = {}
    for source in hosts:
        for end in hosts:
            if source != end:
                walked = oracle.unicast(source, end)
                for channel, (vlan, priority) in zip(walked.channels, walked.tags, strict=True):
                    words = (host_mac(source), host_mac(end), str(vlan), str(priority))
                    found.setdefault(channel, set()).add(words)
    return found


@pytest.mark.parametrize("name", each(["fixed"]))
def test_a_host_sends_and_gets_no_tags(name, standing, tmp_path):
    lab = standing(plan_of(_PLANS[name]))
    with lab.capture(Tap(host=1)) as tap:
        assert lab.reach() == []
        tap.stop()
        frames = tap.read(0.0)
    assert tap.interface == "h2-eth0"
    file = tmp_path / "h2.pcapng"
    file.write_bytes(pcapng.header(tap.interface, tap.description) + pcapng.packets(frames))
    rows = fields(file, "frame.packet_flags_direction", "eth.src", "vlan.id", "icmp.checksum.status")
    assert {(direction == "0x00000002", source == host_mac(1)) for direction, source, *_ in rows} == {
        (True, True),
        (False, False),
    }
    assert {tuple(rest) for _, _, *rest in rows} == {("", "1")}


@pytest.fixture
def running(untouched: str) -> Iterator[tuple[str, LabClient]]:
    """A lab as `testbed up` leaves it."""
    del untouched
    plan, name = plan_of("topology: {kind: mesh, sizes: [2]}\nlab: {dilation: 100}"), f"capture-{os.getpid()}"
    with build_lab(plan) as lab:
        registry.register(name, lab.namespaces, plan.scenario.name, plan.digest)
        entry = registry.find(name)
        try:
            yield name, lab
        finally:
            registry.forget(entry)


def command(*arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*_TESTBED, *arguments], cwd=folder, capture_output=True, text=True, check=False)


@contextmanager
def started(*arguments: str, folder: Path) -> Iterator[subprocess.Popen[str]]:
    """A capture that has begun."""
    words = [*_TESTBED, "capture", *arguments]
    with subprocess.Popen(words, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        assert "Ctrl-C ends it" in process.stderr.readline()
        yield process


def ping(lab: LabClient, count: int) -> None:
    """Let h1 ping h2 as a load does, so that the agent is busy meanwhile."""
    argv = ("ping", "-n", "-q", "-i", "0.02", "-c", str(count), host_ip(1))
    with lab.second_connection() as talk, suppress(LabError):
        talk.run_load(LoadRequest((Process("ping", "h1", argv),), 300.0))


@pytest.mark.long
def test_it_works_beside_a_load_and_ends_by_itself(running, tmp_path):
    name, lab = running
    load = threading.Thread(target=ping, args=(lab, 10_000), daemon=True)
    load.start()
    while lab.status().doing != "load":
        time.sleep(0.02)
    options = ("--count", "6", "--filter", "vlan and icmp", "--format", "json")
    done = command("capture", name, "s1-s2", *options, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert lab.status().doing == "load"
    found, file = json.loads(done.stdout), tmp_path / f"{name}-s1-s2.pcapng"
    assert [found[key] for key in ("interface", "file", "frames", "bytes", "lost", "ended")] == [
        "s1-eth2", file.name, 6, 6 * 102, 0, "count",
    ]  # fmt: skip
    vlans = {channel: {vlan for _, _, vlan, _ in words} for channel, words in planned(lab.plan()).items()}
    rows = fields(file, "frame.packet_flags_direction", "vlan.id", "frame.len")
    assert [(vlan in vlans[_WAYS[way]], length) for way, vlan, length in rows] == [(True, "102")] * 6
    again = command("capture", name, "s1-s2", folder=tmp_path)
    assert (again.returncode, again.stderr) == (
        2, f"--file: {file.name} is there already; remove it, or name another file\n",
    )  # fmt: skip
    piped = subprocess.run(
        [*_TESTBED, "capture", name, "h1", "--count", "4", "--file", "-"], capture_output=True, check=True
    )
    (tmp_path / "piped").write_bytes(piped.stdout)
    assert len(fields(tmp_path / "piped", "frame.number")) == 4

    with started(name, "s1-s2", "--file", "interrupted", folder=tmp_path) as process:
        while (tmp_path / "interrupted").stat().st_size < 2000:
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        out, error = process.communicate(timeout=60)
        assert process.returncode == 0, error
    assert int(out.split("interrupted: ")[1].split()[0]) == len(fields(tmp_path / "interrupted", "frame.number")) > 5

    with started(name, "s1-s2", "--file", "ended", folder=tmp_path) as process:
        while (tmp_path / "ended").stat().st_size < 2000:
            time.sleep(0.05)
        lab.namespaces.end()
        out, error = process.communicate(timeout=60)
    assert process.returncode == 1
    count = len(fields(tmp_path / "ended", "frame.number"))
    assert error.startswith(f"the lab has ended; ended has {count} frames, ")
    load.join()


def test_a_full_disk_leaves_a_whole_file(running, tmp_path):
    name, lab = running
    load = threading.Thread(target=ping, args=(lab, 10_000), daemon=True)
    load.start()
    # In a mount namespace of its own, which takes the small file system with it.
    script = 'mount -t tmpfs -o size=16k tiny "$0"; "$@"; code=$?; cp "$0"/it .; exit $code'
    place = tmp_path / "tiny"
    place.mkdir()
    words = ["unshare", "--mount", "sh", "-c", script, str(place), *_TESTBED, "capture", name, "h1"]
    done = subprocess.run(
        [*words, "--file", str(place / "it")], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1, done.stderr
    count = len(fields(tmp_path / "it", "frame.number"))
    assert count > 50
    assert f"{place}/it cannot be written: No space left on device; {place}/it has {count} frames, " in done.stderr
    assert "Traceback" not in done.stderr
    lab.namespaces.end()
    load.join()


def test_what_is_not_there_is_a_sentence(running, tmp_path, monkeypatch):
    name, _ = running
    monkeypatch.chdir(tmp_path)
    for words, sentence in (
        (("s1-s3",), 'WHERE: there is no link, port or host "s1-s3". Did you mean "s1-s2"?'),
        (("h1", "--count", "0"), "--count: should be above 0, not 0"),
        (("h1", "--seconds", "nan"), "--seconds: should be above 0, not nan"),
        (("h1", "--file", "no/such"), "--file: no/such cannot be written: No such file or directory"),
    ):
        assert typed("capture", name, *words) == (2, "", f"{sentence}\n")
    assert f'Did you mean "{name}"?' in typed("capture", f"{name}x", "h1")[2]
    assert list(tmp_path.iterdir()) == []
