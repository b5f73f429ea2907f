"""Shares of the processors in a lab, on a folder that stands for the kernel's groups."""

from __future__ import annotations

from dataclasses import replace

import pytest

from testbed.base.errors import LabError
from testbed.base.messages import CpuShare
from testbed.engines.lab.build_order import BuildOrder
from testbed.engines.lab.control.build import build_order
from testbed.engines.lab.hosts.cgroup import Hierarchy
from testbed.engines.lab.hosts.host_shares import HostShares
from tests.fabrics import plan_of


def order(share: float | None) -> BuildOrder:
    return replace(build_order(plan_of("mesh", sizes=[2])), name="x", cpu_share=share)


def test_hosts_without_a_share_have_no_group():
    shares = HostShares()
    assert shares.give(order(None)) == shares.files() == {}
    assert not shares.has_shares
    assert shares.read_back() is None
    assert shares.problems() == []


def test_a_share_is_given_read_back_and_given_anew(tmp_path):
    shares = HostShares()
    shares.hierarchy = Hierarchy(tmp_path, 2)
    files = shares.give(order(0.1))
    assert files == shares.files() == {h: str(tmp_path / "testbed-lab-x-1" / h / "cgroup.procs") for h in ("h1", "h2")}
    assert shares.has_shares
    assert shares.read_back() == CpuShare(processors=0.1, quota_us=1000, period_us=10000)
    assert shares.give(order(0.05)) == files
    assert shares.read_back() == CpuShare(processors=0.05, quota_us=1000, period_us=20000)
    (tmp_path / "testbed-lab-x-1" / "h2" / "cpu.max").write_text("max 20000")
    assert shares.problems() == ["h2: asked for 1000 µs of processor time in 20000 µs, the kernel has no limit"]


def test_a_machine_without_groups_refuses_shares():
    with pytest.raises(LabError, match="hosts cannot have a share of the processors here; `testbed doctor` says why"):
        HostShares().give(order(0.1))
