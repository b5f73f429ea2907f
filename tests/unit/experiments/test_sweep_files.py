"""The sweeps of the papers: each is valid, proved, and is what its comment says."""

from __future__ import annotations

from pathlib import Path

import pytest

from testbed.experiments.sweep import prepare
from testbed.fabric.routing.paths import path
from testbed.fabric.traffic import flows
from testbed.planning import make_plan
from testbed.scenario import find_scenario, load_scenario

FOLDER = Path(__file__).parents[3] / "scenarios" / "sweeps"
FILES = sorted(FOLDER.glob("*.yaml"))


@pytest.fixture(autouse=True)
def machine_that_can_do_all(monkeypatch):
    monkeypatch.setattr("testbed.experiments.run.open_vswitch.require", lambda scenario: None)
    monkeypatch.setattr("testbed.engines.lab.hosts.build_mpi_jobs.build_job", lambda job: None)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_sweep_is_valid_and_every_combination_is_proved(file):
    planned = prepare(file)
    assert planned.sweep.name == file.stem
    assert planned.sweep.description
    assert planned.jobs


def test_the_papers_sweeps_are_there():
    assert {"fig10", "fig11", "fig8", "fig7", "fig7-mpi"} <= {file.stem for file in FILES}


def test_fig10_has_seven_topologies_and_flat_with_16_hosts():
    jobs = prepare(FOLDER / "fig10.yaml").jobs
    assert [job.label for job in jobs] == [
        "flat16", "mesh4x2", "torus4x2", "myri-clos", "mtree4x4", "mesh4x4", "torus4x4", "fattree14",
    ]  # fmt: skip
    assert {make_plan(job.scenario).topology.host_count for job in jobs} == {16}
    loads = {job.scenario.workloads for job in jobs}
    (of_all,) = loads
    assert [getattr(load.spec, "pattern", None) for load in of_all][:3] == ["all_to_all", "bit_reversal", "transpose"]
    assert {load.spec.payload for load in of_all[:3]} == {1470}


def test_fig11_has_the_eight_kernels_on_the_topologies_of_fig10():
    jobs = prepare(FOLDER / "fig11.yaml").jobs
    assert [job.label for job in jobs] == [job.label for job in prepare(FOLDER / "fig10.yaml").jobs]
    (loads,) = {job.scenario.workloads for job in jobs}
    assert [load.spec.kernel for load in loads] == ["BT", "CG", "EP", "FT", "IS", "LU", "MG", "SP"]
    assert {(load.spec.class_, load.spec.ranks) for load in loads} == {("S", 16)}


def test_fig8_has_paths_of_one_to_eight_switches():
    for switches, job in enumerate(prepare(FOLDER / "fig8.yaml").jobs, 1):
        plan = make_plan(job.scenario)
        last = plan.topology.host_count - 1
        assert 1 + len(path(plan.topology, plan.routes, 0, last)) == switches


@pytest.mark.parametrize("pattern", ["neighbour", "complement"])
def test_eight_pairs_are_that_and_all_cross_the_link_both_ways(pattern):
    plan = make_plan(load_scenario(find_scenario("pairs8")))
    pairs = flows(pattern, plan.topology, 1)
    assert len({frozenset(pair) for pair in pairs}) == 8
    assert {(b, a) for a, b in pairs} == set(pairs)
    crossed = [path(plan.topology, plan.routes, *pair) for pair in pairs]
    assert sorted(crossed) == [(0,)] * 8 + [(1,)] * 8


def test_multi_pingping_pairs_hosts_of_different_switches():
    (job,) = prepare(FOLDER / "fig7-mpi.yaml").jobs
    plan = make_plan(job.scenario)
    names = {plan.topology.host_name(host): host for host in range(16)}
    hosts = [names[name] for name in job.scenario.workloads[0].spec.placement]
    assert sorted(hosts) == list(range(16))
    switches = plan.topology.host_switch[hosts]
    assert (switches[0::2] != switches[1::2]).all()
