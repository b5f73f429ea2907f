"""Ports that let more through than their links can carry make a load invalid, by its figures alone."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from testbed.engines.lab.control.client import LabClient
from testbed.experiments.run.loads.one_load import run_load
from testbed.planning import Plan
from testbed.results import ResultFolder
from testbed.scenario import Workload

from .conftest import execute, plan_of

# Rates are measured here, and compared with those of links.
pytestmark = pytest.mark.alone

_FABRIC = "topology: {kind: mesh, sizes: [2], hosts_per_switch: 2}\nlab: {dilation: 100}\n"


def _record(plan: Plan, lab: LabClient, load: Workload, tmp_path) -> Mapping[str, object]:
    """The manifest's entry of a load."""
    folder = ResultFolder(tmp_path, plan)
    return run_load(plan, lab, folder, load, 1, lambda text: None, "load").entry


def _beyond_the_wire(entry: Mapping[str, object]) -> list[str]:
    reasons = entry["reasons"]
    assert isinstance(reasons, list)
    return [reason for reason in reasons if ("the link" in reason and "can" in reason) or "the links allow" in reason]


def _let(lab: LabClient, rate: float, burst: int, *, trunk_only: bool = False) -> None:
    """Give ports a rate, and bytes that may go at once."""
    change = f"class replace dev {{}} parent 1: classid 1:1 htb rate {rate:.0f}bit ceil {rate:.0f}bit burst {burst}b "
    change += f"cburst {burst}b quantum 1542 overhead 24 mpu 84"
    ports = {"s1-eth3": None, "s2-eth3": None}
    if not trunk_only:
        ports |= {f"s{switch}-eth{port}": None for switch in (1, 2) for port in (1, 2)}
    for port in ports:
        execute(lab, "tc", *change.format(port).split())
    for host in () if trunk_only else ("h1", "h2", "h3", "h4"):
        execute(lab, "tc", *change.format("eth0").split(), host=host)


@pytest.mark.long
def test_a_link_three_per_cent_too_fast_makes_a_load_invalid(standing, tmp_path):
    load = "{kind: iperf3, protocol: udp, pattern: complement, offered_load: 1.1, seconds: 4, omit: 1, repeats: 1}"
    plan = plan_of(f"{_FABRIC}workloads: [{load}]")
    lab, workload = standing(plan), plan.scenario.workloads[0]
    assert _beyond_the_wire(_record(plan, lab, workload, tmp_path)) == []
    try:
        _let(lab, 1.03e7, 385, trunk_only=True)
        entry = _record(plan, lab, workload, tmp_path)
    finally:
        lab.set_rates(plan)
    assert entry["verdict"] == "invalid"
    found = _beyond_the_wire(entry)
    trunk = ("link s1→s2", "link s2→s1")
    assert any("what arrived takes 10" in reason and any(name in reason for name in trunk) for reason in found), entry
    assert any(reason.startswith("the link s") and "carried 10" in reason for reason in found), entry


def test_ports_that_let_eight_frames_go_make_a_load_invalid(standing, tmp_path):
    arguments = "[--tests, pingpong, --sizes, '65536', --repeats, '5', --warmup, '1']"
    plan = plan_of(f"{_FABRIC}workloads: [{{kind: mpi, job: fabric_bench, args: {arguments}}}]")
    lab, workload = standing(plan), plan.scenario.workloads[0]
    assert _beyond_the_wire(_record(plan, lab, workload, tmp_path)) == []
    try:
        _let(lab, 1e7, 8 * 1542)
        entry = _record(plan, lab, workload, tmp_path)
    finally:
        lab.set_rates(plan)
    assert entry["verdict"] == "invalid"
    assert any(reason.startswith("mpi_latency h1→h4 65536 B is ") for reason in _beyond_the_wire(entry)), entry
