"""Shares of the processors, without root: both versions of cgroups on folders that only look like them."""

from __future__ import annotations

import pytest

from testbed.base.errors import CapabilityError, LabError
from testbed.engines.lab.hosts import cgroup
from testbed.engines.lab.hosts.cgroup import Hierarchy, LabGroup, Limit, limit_problems
from testbed.engines.lab.hosts.commands import in_host
from testbed.engines.local_machine import calibration
from testbed.planning import make_plan
from testbed.scenario import parse_scenario

_V1 = "32 31 0:29 / {root} rw,relatime shared:4 - cgroup cgroup rw,cpu,cpuacct"
_V2 = "41 31 0:38 / {root} rw,relatime - cgroup2 cgroup2 rw"


@pytest.fixture
def mounted(tmp_path, monkeypatch):
    """Stand-in for the mounted hierarchies."""

    def mount(*lines: str, controllers: str = "cpu io", handed_on: str = "cpu") -> None:
        (tmp_path / "mounts").write_text("".join(f"{line}\n" for line in lines))
        (tmp_path / "v2").mkdir(exist_ok=True)
        (tmp_path / "v2" / "cgroup.controllers").write_text(controllers)
        (tmp_path / "v2" / "cgroup.subtree_control").write_text(handed_on)
        monkeypatch.setattr(cgroup, "_MOUNTS", tmp_path / "mounts")

    return mount


@pytest.mark.parametrize(
    ("processors", "quota", "period"),
    [
        (0.5, 5_000, 10_000), (0.1, 1_000, 10_000), (0.02, 1_000, 50_000), (0.001, 1_000, 1_000_000),
        (1 / 3, 3_333, 10_000), (2.5, 25_000, 10_000), (1 / 150, 1_000, 150_000),
    ],
)  # fmt: skip
def test_the_shortest_period_that_gives_a_share(processors, quota, period):
    limit = Limit.from_share(processors)
    assert (limit.quota, limit.period) == (quota, period)
    assert limit.share == pytest.approx(processors, rel=1e-3)
    # The kernel's own bounds.
    assert limit.quota >= 1_000
    assert 1_000 <= limit.period <= 1_000_000


def test_the_hierarchy_is_found_where_it_is_mounted(mounted, tmp_path):
    other = "33 31 0:30 / /sys/fs/cgroup/cpuacct rw - cgroup cgroup rw,cpuacct"
    first = tmp_path / "a b"
    first.mkdir()
    lines = other, _V2.format(root=tmp_path / "v2"), _V1.format(root=str(first).replace(" ", "\\040"))
    mounted(*lines)
    assert cgroup.find_hierarchy() == Hierarchy(tmp_path / "v2", 2)  # something else covers the first
    (first / "cgroup.procs").touch()
    assert cgroup.find_hierarchy() == Hierarchy(first, 1)
    mounted(other, _V2.format(root=tmp_path / "v2"))
    assert cgroup.find_hierarchy() == Hierarchy(tmp_path / "v2", 2)


def test_what_cannot_limit_is_no_hierarchy(mounted, tmp_path):
    mounted(_V2.format(root=tmp_path / "v2"), controllers="io memory")
    assert cgroup.find_hierarchy() is None
    assert cgroup.try_shares() == (False, "no cgroup hierarchy with the controller cpu is mounted")
    mounted(_V2.format(root=tmp_path / "v2"), handed_on="memory")
    assert cgroup.try_shares() == (False, f"{tmp_path}/v2 does not hand the controller cpu on to its groups")


@pytest.mark.parametrize(
    ("version", "files"),
    [
        (1, {"cpu.cfs_quota_us": "1000", "cpu.cfs_period_us": "50000"}),
        (2, {"cpu.max": "1000 50000"}),
    ],
)
def test_both_versions_write_what_they_read_back(version, files, tmp_path):
    hierarchy = Hierarchy(tmp_path, version)
    hierarchy.write_limit(tmp_path, Limit.from_share(0.02))
    assert {file.name: file.read_text() for file in tmp_path.iterdir()} == files
    assert hierarchy.read_limit(tmp_path) == Limit.from_share(0.02)
    (tmp_path / "cpu.max").write_text("max 100000\n")
    (tmp_path / "cpu.cfs_quota_us").write_text("-1\n")
    assert hierarchy.read_limit(tmp_path) is None


def test_each_lab_has_its_group_and_hands_the_controller_on(tmp_path):
    first, second = (LabGroup(Hierarchy(tmp_path, 2), "torus4x4") for _ in range(2))
    second.limit(["h1", "h2"], 0.1)
    assert [first.folder.name, second.folder.name] == ["testbed-lab-torus4x4-1", "testbed-lab-torus4x4-2"]
    assert (first.folder / "cgroup.subtree_control").read_text() == "+cpu"
    assert second.procs()["h2"] == str(tmp_path / "testbed-lab-torus4x4-2" / "h2" / "cgroup.procs")
    assert second.problems() == []
    second.limit(["h1"], 0.2)
    assert second.read_back() == {"h1": Limit.from_share(0.2), "h2": Limit.from_share(0.1)}


def test_differences_are_named():
    got = {"h1": Limit(1000, 10000), "h2": None}
    assert limit_problems({"h1": Limit(1000, 10000), "h2": Limit(1000, 10000)}, got) == [
        "h2: asked for 1000 µs of processor time in 10000 µs, the kernel has no limit"
    ]


def test_a_folder_that_cannot_be_made_is_a_sentence(tmp_path):
    with pytest.raises(LabError, match=r"no group of processes can be made in .*/none: No such file or directory"):
        LabGroup(Hierarchy(tmp_path / "none", 1), "x")


def test_a_command_joins_the_group_before_the_host(tmp_path):
    assert in_host(41, ["ping"]) == ["nsenter", "--target", "41", "--net", "--mount", "--", "ping"]
    assert in_host(41, ["ping"], "/g/procs")[-4:] == ["--net", "--mount", "--", "ping"]
    assert "/g/procs" in in_host(41, ["ping"], "/g/procs")[:-5]


def plan_of(share: str, dilation: int = 100):
    text = "topology: {kind: torus, sizes: [4, 4]}\n"
    return make_plan(parse_scenario(f"{text}lab: {{cpu_share: {share}, dilation: {dilation}}}", "x.yaml"))


def test_shares_that_starve_the_switches_are_refused(monkeypatch):
    monkeypatch.setattr("os.sched_getaffinity", lambda process: {0, 1})
    for fits in (plan_of("none"), plan_of("auto"), plan_of("0.0625"), plan_of("auto", 16)):
        calibration.require_shares(fits)
    with pytest.raises(CapabilityError) as error:
        calibration.require_shares(plan_of("0.1"))
    assert str(error.value) == (
        "x.yaml: lab.cpu_share: 16 hosts with 0.1 of a processor each would take 1.6 of this machine's 2, and half of "
        "them must be left for the switches; use 0.0625 or less"
    )
    with pytest.raises(CapabilityError, match=r"use lab\.dilation 16 or more"):
        calibration.require_shares(plan_of("auto", 10))
