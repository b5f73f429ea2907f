"""Sweeps and published numbers on Dask's workers: a real scheduler and real workers, each a process."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from concurrent.futures import Future
from pathlib import Path

import pytest

from testbed.base.errors import InputError, WorkloadError
from testbed.engines.local_machine.cluster import open_cluster
from testbed.experiments.paper.published_numbers import read_published_numbers
from testbed.experiments.paper.run_rows import Store, run_items
from testbed.experiments.run.engines import run_scenario
from testbed.experiments.sweep import prepare, run_sweep
from testbed.experiments.sweep.remote_runs import run_remote, unpack
from testbed.results import load_run
from testbed.scenario.pickle_plugins import pickle_value
from tests.dask_programs import ROOT, await_workers, scheduler, worker

pytestmark = [pytest.mark.timeout(600)]  # the first to run compiles kernels

_SWEEP = """
scenarios: [./pair.yaml, ./ring.yaml]
set: {lab.seed: [1, 2]}
workloads: [{kind: iperf3, protocol: udp, pattern: neighbour, repeats: 1}]
repeats: 2
"""
_PAIR = "engine: simulate\ntopology: {kind: mesh, sizes: [2]}\nsimulator: {duration: 20, warm_up: 5}\n"
_RING = "engine: simulate\ntopology: {kind: ring, switches: 3}\nsimulator: {duration: 20, warm_up: 5}\n"


def silent(text: str) -> None:
    del text


@pytest.fixture
def file(tmp_path):
    (tmp_path / "pair.yaml").write_text(_PAIR)
    (tmp_path / "ring.yaml").write_text(_RING)
    (tmp_path / "tiny.yaml").write_text(_SWEEP)
    return tmp_path / "tiny.yaml"


def figures(outcome):
    """Label and repeat → digest of the plan, verdict and every sample of a run."""
    found = {}
    for entry in outcome.record.entries:
        run = load_run(outcome.folder / entry.folder)
        found[entry.label, entry.repeat] = (run.manifest["digest"], entry.verdict, run.samples)
    return found


@pytest.mark.long
def test_a_sweep_on_workers_is_the_same_if_one_is_killed(file, tmp_path):
    planned = prepare(file)
    alone = run_sweep(planned, tmp_path / "alone", silent)
    with scheduler(tmp_path) as (address, _), worker(address) as first, worker(address):
        assert await_workers(address, 2)
        with open_cluster(address, silent) as workers:
            assert (workers.slots, workers.lab_slots) == (2, 0)
            told = []

            def progress(text: str) -> None:
                told.append(text)
                if "of 8 runs done" in text and first.poll() is None:
                    first.send_signal(signal.SIGKILL)

            found = run_sweep(planned, tmp_path / "apart", progress, workers=workers)
        assert first.wait(20) == -signal.SIGKILL
    assert told[0] == "runs on workers: 8 simulations at a time on 2 places"
    assert [entry.state for entry in found.record.entries] == ["finished"] * 8
    assert figures(found) == figures(alone)
    assert len({entry.folder for entry in found.record.entries}) == 8
    assert {path.name for path in (found.folder / "runs").iterdir()} == {
        Path(entry.folder or "").name for entry in found.record.entries
    }
    assert {path.name for path in found.folder.iterdir()} == {path.name for path in alone.folder.iterdir()}
    assert sum("runs done" in text for text in told) == 8


@pytest.mark.long
def test_a_scheduler_that_dies_leaves_a_sweep_to_be_resumed(file, tmp_path):
    planned, results = prepare(file), tmp_path / "results"
    with scheduler(tmp_path) as (address, process), worker(address):
        assert await_workers(address, 1)

        def progress(text: str) -> None:
            if text.startswith("2 of 8 runs done"):
                process.kill()

        def sweep() -> None:
            with open_cluster(address, silent) as workers:
                run_sweep(planned, results, progress, workers=workers)

        with pytest.raises(WorkloadError, match=rf"^the scheduler at {address} went away"):
            sweep()
    said: list[str] = []
    found = run_sweep(planned, results, said.append, resume=True)
    done = int(said[0].split()[0])
    assert 2 <= done < 8
    assert said[0] == f"{done} of 8 runs are done already"
    assert [entry.state for entry in found.record.entries] == ["finished"] * 8


@pytest.mark.long
def test_the_command_gives_its_runs_to_processes_of_this_machine(file, tmp_path):
    words = ["sweep", str(file), "--cluster", "local:2", "--results", str(tmp_path / "results"), "--format", "json"]
    done = subprocess.run(
        [sys.executable, "-m", "testbed", *words], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode in (0, 3), done.stderr
    assert [run["state"] for run in json.loads(done.stdout)["runs"]] == ["finished"] * 8
    assert "8 of 8 runs done" in done.stderr


class Here:
    """Workers that run everything at once in this process, and no labs."""

    slots = 1
    lab_slots = 0

    def submit(self, function, *arguments):
        done: Future[object] = Future()
        done.set_result(function(*arguments))
        return done

    submit_lab = submit


def test_labs_need_a_worker_that_may_run_them(file, tmp_path):
    (tmp_path / "ring.yaml").write_text("topology: {kind: ring, switches: 3}\nlab: {dilation: 100}\n")
    planned = prepare(file, elsewhere=True)
    sentence = (
        r"cluster: ring seed=1 and 1 more need a lab, and no worker says that it may run one; start one a machine, "
        r"as root, with `dask worker ADDRESS --nthreads 1 --resources lab=1`, or leave cluster out"
    )
    with pytest.raises(InputError, match=sentence):
        run_sweep(planned, tmp_path / "results", silent, workers=Here())
    assert not (tmp_path / "results").exists()


@pytest.mark.slow
def test_labs_run_one_at_a_time_on_a_worker_that_says_so(file, tmp_path):
    with scheduler(tmp_path) as (address, _), worker(address, "--resources", "lab=1"), worker(address):
        assert await_workers(address, 2)
        with open_cluster(address, silent) as workers:
            assert (workers.slots, workers.lab_slots) == (2, 1)
            pids = {workers.submit_lab(os.getpid).result() for _ in range(4)}
    assert len(pids) == 1


def test_what_breaks_on_a_worker_is_told_and_plans_are_the_same(file, tmp_path):
    job = prepare(file).jobs[0]
    other = run_remote(pickle_value(job.scenario, job.scenario), job.settings, "0123")
    assert other.error == f"the plan is another one on this worker: {job.plan_digest} instead of 0123"
    assert (other.name, unpack(other, tmp_path / "runs")) == ("", None)

    def broken(plan, results, progress, asked):
        (results / "20200101-000000-pair.incomplete").mkdir()
        raise InputError.one("links", "are of no use")

    found = run_remote(pickle_value(job.scenario, job.scenario), job.settings, job.plan_digest, broken)
    assert found.error == "links: are of no use"
    left = unpack(found, tmp_path / "runs")
    assert left == tmp_path / "runs" / "20200101-000000-pair.incomplete"


def test_two_runs_that_arrive_under_one_name_get_two_folders(file, tmp_path):
    job = prepare(file).jobs[0]
    carried = run_remote(pickle_value(job.scenario, job.scenario), job.settings, job.plan_digest, run_scenario)
    first, second = (unpack(carried, tmp_path / "runs") for _ in range(2))
    assert first is not None
    assert second is not None
    assert second.name == f"{first.name}-2"
    assert load_run(first).samples == load_run(second).samples
    assert sorted(path.name for path in tmp_path.glob(".arriving-*")) == []


_ITEM = """
paper: A paper
short: a1
items:
  - name: a1-table1
    title: Watts
    unit: W
    tolerance: 0.03
    how: {run: switch_watts}
    rows:
      - {row: PC5324, value: 42.9, how: {model: PC5324}}
      - {row: PC6224, value: 91.1, how: {model: PC6224}}
"""


def _tables(folder: Path, text: str):
    (folder / "papers").mkdir()
    (folder / "papers/a.yaml").write_text(text)
    return read_published_numbers(folder / "papers")


@pytest.mark.long
def test_published_numbers_come_from_workers_too_and_are_kept(tmp_path):
    items, store = _tables(tmp_path, _ITEM), Store(tmp_path / "values")
    said: list[str] = []
    with open_cluster("local:2", said.append) as workers:
        found = run_items(items, store, said.append, quick=True, workers=workers)
    assert [result.ours for result in found["a1-table1"]] == [
        result.ours for result in run_items(items, Store(tmp_path / "others"), silent, quick=True)["a1-table1"]
    ]
    assert said[1] == "2 values, on 2 workers"
    assert said[-1].startswith("2 of 2")
    assert len(list((tmp_path / "values").iterdir())) == 2


def test_numbers_that_need_a_lab_need_a_worker_that_may_run_one(tmp_path):
    text = (
        _ITEM.replace("{run: switch_watts}", "{run: measure, scenario: pair}")
        .replace("how: {model: PC5324}", "how: {metric: goodput}")
        .replace("how: {model: PC6224}", "how: {metric: goodput}")
    )
    items = _tables(tmp_path, text)
    with pytest.raises(InputError, match="values need a lab, and no worker says that it may run one"):
        run_items(items, Store(tmp_path / "values"), silent, quick=False, workers=Here())
