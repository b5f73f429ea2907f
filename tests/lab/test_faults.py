"""Faults planted in running switches are found before any load, and pings agree."""

from __future__ import annotations

import pytest

from testbed.base.errors import LabError, VerificationError
from testbed.base.model import host_mac
from testbed.engines.lab.control.build import build_lab
from testbed.engines.lab.control.client import LabClient
from testbed.engines.ovs.check_paths import installed_problems
from testbed.experiments.run.in_session import check_paths

from .conftest import answers, both_ways, execute, mended, named_plan, plan_of, sharing


def _ofctl(lab: LabClient, *arguments: str) -> None:
    execute(lab, "ovs-ofctl", "-O", "OpenFlow13", *arguments)


@pytest.mark.vm
@sharing("torus4x4")
@both_ways
def test_a_wrong_port_is_found(standing, fast_path):
    plan = named_plan("torus4x4", f"lab.fast_path={fast_path}")
    vlan = plan.vlans.vlan_ids[plan.vlans.pvid[0]]
    lab = standing(plan)
    with mended(plan, lab, 0):
        entry = f"table=1,priority=200,dl_vlan={vlan},dl_dst={host_mac(1)}"
        _ofctl(lab, "--strict", "mod-flows", "s1", f"{entry},actions=output:5")
        problems = installed_problems(plan, lab.flows())
        assert any(problem.startswith("h1→h2 takes s1→") and "instead of s1→s2" in problem for problem in problems)
        with pytest.raises(LabError, match="no load was run"):
            check_paths(plan, lab)


@pytest.mark.vm
@sharing("torus4x4")
@both_ways
def test_a_missing_member_is_found_and_pings_fail(standing, fast_path):
    plan = named_plan("torus4x4", f"lab.fast_path={fast_path}")
    vlan = plan.vlans.vlan_ids[plan.vlans.pvid[0]]
    lab = standing(plan)
    with mended(plan, lab, 1):
        # s2 no longer takes VLAN in from s1.
        port = plan.topology.out_port[1]
        _ofctl(lab, "--strict", "del-flows", "s2", f"table=0,priority=300,in_port={port},dl_vlan={vlan}")
        problems = installed_problems(plan, lab.flows())
        assert any("h1→h2 reaches no host" in problem for problem in problems)
        assert any(problem.startswith("a broadcast of h1 ") for problem in problems)
        assert not answers(lab, "h1", 1)


@pytest.mark.vm
def test_a_loop_is_found_without_sending_into_it(untouched):
    plan = plan_of("topology: {kind: ring, switches: 4}")
    with build_lab(plan) as lab:
        vlan = int(plan.vlans.vlan_ids[0])
        for switch in range(1, 5):
            trunks = [p for p in range(1, 4) if p != plan.topology.host_port[switch - 1]]
            for port in trunks:
                _ofctl(
                    lab,
                    "add-flow",
                    f"s{switch}",
                    f"table=0,priority=300,in_port={port},dl_vlan={vlan},actions=goto_table:1",
                )
            out = ",".join(f"output:{port}" for port in trunks)
            _ofctl(lab, "--strict", "mod-flows", f"s{switch}", f"table=1,priority=100,dl_vlan={vlan},actions={out}")
        problems = installed_problems(plan, lab.flows())
        assert any("circulates" in problem for problem in problems)


@pytest.mark.vm
def test_a_foreign_rule_is_found(untouched):
    plan = plan_of("topology: {kind: mesh, sizes: [2]}")
    with build_lab(plan) as lab:
        _ofctl(lab, "add-flow", "s1", "table=0,priority=1,actions=NORMAL")
        assert any("not ours" in problem for problem in installed_problems(plan, lab.flows()))


def test_nothing_is_built_without_proof(untouched):
    plan = plan_of("topology: {kind: torus, sizes: [6, 6]}\nrouting: {ring: shortest}")
    with pytest.raises(VerificationError, match="nothing was built"):
        build_lab(plan)


@pytest.mark.vm
def test_a_declared_deadlock_is_built(untouched):
    plan = plan_of("topology: {kind: ring, switches: 6}\nrouting: {ring: shortest}\nexpect: deadlock")
    with build_lab(plan) as lab:
        check_paths(plan, lab)


@pytest.mark.vm
def test_a_dead_switch_daemon_is_one_sentence(untouched):
    plan = plan_of("topology: {kind: mesh, sizes: [2]}")
    with build_lab(plan) as lab:
        with pytest.raises(LabError, match=r"ovs-vswitchd was killed by signal 9; the lab's switches are gone"):
            execute(lab, "sh", "-c", "kill -9 $(cat /run/lab/ovs/ovs-vswitchd.pid); sleep 5")
        with pytest.raises(LabError, match="switches are gone"):
            lab.reach()
