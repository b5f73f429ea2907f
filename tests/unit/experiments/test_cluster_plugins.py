"""A plug-in's routing on Dask's workers, and behind a scheduler, none of which has its file."""

from __future__ import annotations

import dataclasses
import io
import pickle
import sys
import zipfile
from pathlib import Path

import pytest

import testbed as tb
from testbed.base import trust
from testbed.engines.local_machine.cluster import open_cluster
from testbed.engines.simulate import Settings, simulate_plan
from testbed.experiments.sweep import prepare, run_sweep
from testbed.experiments.sweep.remote_runs import run_remote
from testbed.results import load_run
from testbed.scenario import plugins
from testbed.scenario.pickle_plugins import Pickled, pickle_value
from tests.dask_programs import await_workers, scheduler, worker

# Options are a class of the plug-in, so that neither a plan nor a scenario can be unpickled without it.
_PLUGIN = """
from dataclasses import dataclass
from testbed.fabric.routing import RoutingKind
from testbed.fabric.routing.stp import StpOptions, route_stp

@dataclass(frozen=True, slots=True)
class OneTree:
    root: str = "s1"

def route(topology, options):
    return route_stp(topology, StpOptions(root=options.root))

ROUTINGS = {"one_tree": RoutingKind(OneTree, route, "the links of one tree", any_topology=True)}
"""
_SCENARIO = """
plugins: [one_tree.py]
engine: simulate
topology: {kind: ring, switches: 3}
routing: {kind: one_tree, root: s2}
simulator: {duration: 2, warm_up: 1}
workloads: [{kind: iperf3, protocol: udp, pattern: neighbour, repeats: 1}]
"""
QUICK = Settings(clocks=2000, warm_up=500, packet=8, buffer=16)


def silent(text: str) -> None:
    del text


@pytest.fixture
def folder(tmp_path):
    """A scenario and a sweep with a plug-in that its caller trusts."""
    (tmp_path / "one_tree.py").write_text(_PLUGIN)
    (tmp_path / "mine.yaml").write_text(_SCENARIO)
    (tmp_path / "sweep.yaml").write_text("scenarios: [./mine.yaml]\nset: {routing.kind: [one_tree, updown]}\n")
    with trust.decide_trust_with(lambda file: True):
        yield tmp_path
    plugins.forget(str(tmp_path / "one_tree.py"))


def bare(outcome):
    return [dataclasses.replace(point, seconds=0.0) for point in outcome.points]


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_workers_get_a_plug_in_before_anything_is_unpickled(folder):
    plan, planned = tb.plan(folder / "mine.yaml").core, prepare(folder / "sweep.yaml")
    here = simulate_plan(plan, QUICK, (0.1, 0.2), 1, folder / "here", silent)
    (folder / "one_tree.py").unlink()  # workers of another machine have no such file
    with scheduler(folder) as (address, _), worker(address):
        assert await_workers(address, 1)
        with open_cluster(address, silent) as workers:
            there = simulate_plan(plan, QUICK, (0.1, 0.2), 1, folder / "there", silent, workers=workers)
            swept = run_sweep(planned, folder / "results", silent, workers=workers)
    assert bare(there) == bare(here)
    assert [(entry.state, entry.error) for entry in swept.record.entries] == [("finished", "")] * 2
    runs = [load_run(swept.folder / entry.folder) for entry in swept.record.entries if entry.folder]
    assert [run.plan.digest for run in runs] == [job.plan_digest for job in planned.jobs]


def test_whoever_carries_a_scenario_needs_nothing_of_its_plug_in(folder, monkeypatch):
    (job, _) = prepare(folder / "sweep.yaml").jobs
    alone, sent = pickle.dumps(job.scenario), pickle.dumps(pickle_value(job.scenario, job.scenario))
    name = type(job.scenario.routing).__module__
    monkeypatch.delitem(sys.modules, name)
    plugins.forget(str(folder / "one_tree.py"))
    (folder / "one_tree.py").unlink()
    with pytest.raises(ModuleNotFoundError):
        pickle.loads(alone)
    arrived = pickle.loads(sent)
    assert isinstance(arrived, Pickled)
    carried = run_remote(arrived, job.settings, job.plan_digest)
    assert carried.error == ""
    with zipfile.ZipFile(io.BytesIO(carried.content)) as packed:
        assert "samples.csv" in packed.namelist()


def test_two_scenarios_with_one_plug_in_share_its_class(folder):
    first, second = (tb.plan(Path(folder / "mine.yaml")).core.scenario for _ in range(2))
    assert type(first.routing) is type(second.routing)
    assert pickle_value(first, first).load() == second


def test_arrays_of_a_pickled_plan_are_writable_and_there_once(folder):
    plan = tb.plan(folder / "mine.yaml").core
    sent = pickle_value(plan, plan.scenario)
    found = sent.load()
    assert found.topology.links.flags.writeable
    assert (found.topology.links == plan.topology.links).all()
    assert sum(map(len, sent.buffers)) > 100
