"""The check that a lab leaves nothing behind finds what was left, and nothing that belongs to another."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from testbed.base.errors import CapabilityError
from testbed.engines.lab.control import registry
from testbed.engines.lab.control.build import build_lab
from testbed.engines.lab.control.launch import start_namespaces
from testbed.engines.lab.hosts import cgroup

from .conftest import plan_of
from .leftovers import MARK, Outside, group_of, leftovers

# They put outside of all labs what other tests would take for theirs.
pytestmark = pytest.mark.alone
_PAIR = "topology: {kind: mesh, sizes: [2]}\nlab: {dilation: 100, cpu_share: 0.2}\n"


@pytest.fixture
def mark(monkeypatch: pytest.MonkeyPatch) -> str:
    name = uuid4().hex
    monkeypatch.setenv(MARK, name)
    return name


@pytest.fixture
def sleeping(mark: str) -> Iterator[int]:
    with subprocess.Popen(["setsid", "sleep", "1000"]) as process:
        while b"setsid" in Path(f"/proc/{process.pid}/cmdline").read_bytes():
            time.sleep(0.01)
        yield process.pid
        process.kill()


def test_a_program_that_still_runs_is_found(mark, sleeping):
    assert leftovers(mark, Outside.now()) == [f"process {sleeping} runs: sleep 1000"]
    assert leftovers("another", Outside.now()) == []


def test_a_lab_that_still_stands_is_found_and_by_nobody_else(mark):
    before = Outside.now()
    with build_lab(plan_of(_PAIR)) as lab:
        found = leftovers(mark, before)
        for part in ("testbed.engines.lab.control.agent", "ovs-vswitchd", "ovsdb-server", "sleep infinity"):
            assert any(part in line for line in found), found
        assert group_of(lab.namespaces.init) is not None
        assert leftovers("another", before) == []
    assert leftovers(mark, before) == []


def test_an_interface_outside_all_labs_is_found(mark):
    name = f"left{os.getpid()}"
    before = Outside.now()
    subprocess.run(["ip", "link", "add", name, "type", "veth", "peer", "name", f"{name}b"], check=True)
    try:
        found = leftovers(mark, before)
        assert [line for line in found if name in line] == [
            f"interface {name}@{name}b was not there before", f"interface {name}b@{name} was not there before",
        ]  # fmt: skip
        with_it = Outside.now()
    finally:
        subprocess.run(["ip", "link", "del", name], check=True)
    assert f"interface {name}@{name}b is gone" in leftovers(mark, with_it)


def test_a_named_namespace_is_found(mark):
    name = f"left{os.getpid()}"
    before = Outside.now()
    subprocess.run(["ip", "netns", "add", name], check=True)
    try:
        assert f"network namespace {name} was not there before" in leftovers(mark, before)
    finally:
        subprocess.run(["ip", "netns", "del", name], check=True)


def test_a_group_and_a_record_without_a_lab_are_found(mark):
    hierarchy = cgroup.find_hierarchy()
    if hierarchy is None:
        pytest.skip("no cgroup hierarchy with the controller cpu is mounted")
    name = f"left-{os.getpid()}"
    before = Outside.now()
    folder, file = hierarchy.root / f"testbed-lab-{name}", registry.FOLDER / f"{name}.json"
    gone = subprocess.Popen(["true"])
    gone.wait()
    folder.mkdir()
    registry.FOLDER.mkdir(exist_ok=True)
    file.write_text(json.dumps({"init": gone.pid}))
    try:
        found = leftovers(mark, before)
        assert f"group {folder.name} remains of a lab that has ended" in found
        assert f"record {file} remains of a lab that has ended" in found
    finally:
        folder.rmdir()
        file.unlink()


@pytest.mark.parametrize("keep", [False, True])
def test_what_goes_wrong_while_the_agent_comes_up_leaves_nothing(keep, untouched):
    def fails():
        raise CapabilityError("no order can be made")

    files = Path("/proc/self/fd")
    before = len([*files.iterdir()])
    with pytest.raises(CapabilityError, match="no order can be made"):
        start_namespaces(keep=keep, name="left", meanwhile=fails)
    assert len([*files.iterdir()]) == before
