"""Hosts' shares of the processors: programs get them, nobody else is held back, and nothing of them stays."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from testbed.base.messages import CpuShare, LoadRequest, Process
from testbed.engines.lab.control.build import build_lab
from testbed.engines.lab.control.client import LabClient
from testbed.engines.lab.hosts import cgroup
from testbed.engines.local_machine.probe import capabilities

from .conftest import execute, plan_of
from .leftovers import group_of, holders_of_groups

_RING = "topology: {kind: ring, switches: 3}\nlab: {dilation: 100, cpu_share: 0.2}\n"
# A share of 0.2 is never much more than that; where the machine is busy with something else it may be less.
_MOST = 0.22
# Processor seconds that a process gets in three seconds of trying.
_SPIN = (
    "import os, time; a = os.times(); end = time.monotonic() + 3\n"
    "while time.monotonic() < end: pass\n"
    "b = os.times(); print(b.user + b.system - a.user - a.system)"
)


@pytest.fixture(autouse=True)
def shares_are_possible() -> None:
    (found,) = (c for c in capabilities() if c.name == cgroup.CAPABILITY)
    if not found.present:
        reason = f"{found.detail}: {found.consequence}"
        if os.environ.get("TESTBED_REQUIRE_LAB") == "1":
            pytest.fail(reason)
        pytest.skip(reason)


def held_back(lab: LabClient, host: str) -> int:
    """How often the kernel has made a host wait for its next share."""
    folder = group_of(lab.namespaces.init)
    assert folder is not None
    return int(dict(line.split() for line in (folder / host / "cpu.stat").read_text().splitlines())["nr_throttled"])


def used(text: str) -> float:
    return float(text) / 3


@pytest.mark.long
def test_a_spinning_host_gets_its_share_and_no_more(untouched):
    with build_lab(plan_of(_RING)) as lab:
        group = group_of(lab.namespaces.init)
        assert group is not None
        assert lab.facts.cpu_share == CpuShare(processors=0.2, quota_us=2000, period_us=10000)
        # One process, and two together: the share is the host's.
        assert 0 < used(execute(lab, sys.executable, "-c", _SPIN, host="h1")) < _MOST
        processes = tuple(Process(str(n), "h2", (sys.executable, "-c", _SPIN)) for n in range(2))
        found = lab.run_load(LoadRequest(processes, limit=60))
        assert (found.before.pressure, found.after.pressure) == (None, None)
        assert 0 < sum(used(output.stdout) for output in found.outputs.values()) < _MOST
        assert held_back(lab, "h1") > 0
        assert held_back(lab, "h2") > 0
        # Nothing else is in any group: other hosts, and what runs beside the switches.
        assert held_back(lab, "h3") == 0
        assert "testbed-lab-" not in execute(lab, "cat", "/proc/self/cgroup")
        assert lab.shaping_problems() == []
        assert lab.reach() == []
    assert not group.exists()


def test_without_a_share_no_group_is_made(untouched):
    with build_lab(plan_of("topology: {kind: ring, switches: 3}")) as lab:
        assert lab.facts.cpu_share is None
        assert group_of(lab.namespaces.init) is None


def test_a_share_that_changes_behind_the_lab_is_noticed(untouched):
    with build_lab(plan_of(_RING)) as lab:
        hierarchy, ours = cgroup.find_hierarchy(), group_of(lab.namespaces.init)
        assert hierarchy is not None
        assert ours is not None
        hierarchy.write_limit(ours / "h3", cgroup.Limit.from_share(0.5))
        assert lab.shaping_problems() == [
            "h3: asked for 2000 µs of processor time in 10000 µs, the kernel has 5000 in 10000"
        ]


def test_nothing_remains_of_a_lab_that_was_killed(untouched):
    with build_lab(plan_of(_RING)) as lab:
        group = group_of(lab.namespaces.init)
        assert group is not None
        assert group.is_dir()
        os.kill(lab.namespaces.init, signal.SIGKILL)
    assert not group.exists()


@pytest.mark.alone
def test_the_next_lab_removes_what_a_killed_program_left(untouched):
    name = f"killed{os.getpid()}"
    text = (
        "import os, signal\nfrom testbed.engines.lab.control.build import build_lab\n"
        "from testbed.planning import make_plan\n"
        "from testbed.scenario import parse_scenario\n"
        f"build_lab(make_plan(parse_scenario({_RING!r}, '{name}.yaml')))\n"
        "print('stands', flush=True)\nsignal.pause()\n"
    )
    with subprocess.Popen([sys.executable, "-c", text], stdout=subprocess.PIPE, text=True) as program:
        assert program.stdout is not None
        assert program.stdout.readline() == "stands\n"
        program.kill()
    killed = f"testbed-lab-{name}-1"
    assert killed in holders_of_groups()
    # Of a running lab nothing is removed, whoever else starts or ends one.
    with build_lab(plan_of(_RING)) as lab:
        until = time.monotonic() + 20
        while killed in holders_of_groups() and time.monotonic() < until:  # the kernel is still ending it
            time.sleep(0.2)
            cgroup.remove_stale()
        cgroup.remove_stale()
        assert killed not in holders_of_groups()
        assert lab.namespaces.init in holders_of_groups().values()
        assert execute(lab, "echo", "here", host="h1") == "here\n"


@pytest.mark.long
def test_mininets_shell_and_ranks_have_the_share_of_their_host(tmp_path, untouched):
    file = tmp_path / "shares.yaml"
    file.write_text(_RING + "workloads: [{kind: mpi, job: ./which}]\n")
    job = tmp_path / "which"
    job.mkdir()
    (job / "which.py").write_text(
        "import pathlib\nfrom mpi4py import MPI\nworld = MPI.COMM_WORLD\n"
        "here = pathlib.Path('/proc/self/cgroup').read_text()\n"
        "found = world.gather([line for line in here.split() if 'testbed-lab-' in line])\n"
        "world.alltoall([bytes(10000)] * world.size)\n"
        "if world.rank == 0: print('groups', *[line.rsplit('/', 1)[1] for lines in found for line in lines])\n"
    )
    (job / "job.yaml").write_text(
        "name: which\ndescription: says in which group each rank is\nbinary: which.py\ninterpreter: python\n"
        "success: '^groups h1 h2 h3$'\noutput: free\nfabric_bytes: 10000\n"
    )
    testbed = [sys.executable, "-m", "testbed"]
    done = subprocess.run(
        [*testbed, "run", str(file), "--results", str(tmp_path / "results"), "--format", "json"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    found = json.loads(done.stdout)
    assert found["verdict"] != "fail", done.stderr  # others use the processors, too
    manifest = json.loads((Path(found["results"]) / "manifest.json").read_text())
    assert manifest["cpu_share"]["processors"] == 0.2
    up = subprocess.run([*testbed, "up", str(file), "--name", "shared"], capture_output=True, text=True, check=False)
    assert up.returncode == 0, up.stderr
    try:
        said = subprocess.run(
            [*testbed, "shell", "shared"], input="h2 cat /proc/self/cgroup\nexit\n", capture_output=True, text=True,
            check=False,
        )  # fmt: skip
        assert "/h2" in said.stdout + said.stderr
    finally:
        subprocess.run([*testbed, "down", "shared"], check=True, capture_output=True)
    assert not [name for name in holders_of_groups() if "shares" in name]
