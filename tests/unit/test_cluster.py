"""Simulations on Dask's workers: a real scheduler and real workers, each a process."""

from __future__ import annotations

import dataclasses
import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import AbstractContextManager, ExitStack, nullcontext
from pathlib import Path

import dask
import pytest

from testbed.emulate import cluster as module
from testbed.emulate.cluster import open_cluster
from testbed.errors import CapabilityError, InputError, WorkloadError
from testbed.simulate import Settings, simulate_plan
from tests.dask_programs import ROOT, await_workers, certificate, scheduler, tls_options, worker
from tests.fabrics import plan_of

pytestmark = [pytest.mark.timeout(600)]  # the first to run compiles kernels

QUICK = Settings(clocks=100_000, warm_up=1000, buffer=256)
LOADS = (0.05, 0.1, 0.2, 0.3)


def bare(outcome):
    """Its points without the time that each took."""
    return [dataclasses.replace(point, seconds=0.0) for point in outcome.points]


def silent(text: str) -> None:
    del text


def points(folder: Path, plan, **how):
    return simulate_plan(plan, QUICK, LOADS, 3, folder, silent, **how)


@pytest.fixture(scope="module")
def plan():
    return plan_of("mesh", sizes=[3, 2])


@pytest.fixture(scope="module")
def by_threads(plan, tmp_path_factory):
    return points(tmp_path_factory.mktemp("threads"), plan)


def listening(port: int) -> AbstractContextManager[object]:
    """Somebody who listens there, unless there is one already."""
    try:
        return socket.create_server(("", port))
    except OSError:
        return nullcontext()


@pytest.mark.slow
def test_worker_processes_of_this_machine_give_the_same_points(plan, by_threads, tmp_path):
    said: list[str] = []
    with listening(8787), open_cluster("local:2", said.append) as workers:
        assert workers.slots == 2
        found = points(tmp_path, plan, workers=workers)
    assert said == ["starting 2 worker processes"]
    assert bare(found) == bare(by_threads)
    assert len(found.points) == 12


@pytest.mark.slow
def test_a_worker_that_is_killed_costs_nothing_but_time(plan, by_threads, tmp_path):
    with scheduler(tmp_path) as (address, _), worker(address) as first, worker(address):
        assert await_workers(address, 2)
        with open_cluster(address, silent) as workers:
            told = []

            def progress(text: str) -> None:
                told.append(text)
                if "of 12 runs done" in text and first.poll() is None:
                    first.send_signal(signal.SIGKILL)

            found = simulate_plan(plan, QUICK, LOADS, 3, tmp_path, progress, workers=workers)
        assert first.wait(20) == -signal.SIGKILL
    assert bare(found) == bare(by_threads)
    assert sum("runs done" in text for text in told) == 12


@pytest.mark.slow
def test_what_is_shared_outlives_a_worker(tmp_path):
    with scheduler(tmp_path) as (address, _), worker(address), worker(address):
        assert await_workers(address, 2)
        with open_cluster(address, silent) as workers:
            shared = workers.share(b"abc")
            (holders,) = workers.client.who_has([shared]).values()
            os.kill(workers.client.run(os.getpid)[holders[0]], signal.SIGKILL)
            assert workers.submit(len, shared).result(30) == 3


@pytest.mark.slow
def test_a_scheduler_that_dies_ends_the_command_with_a_sentence_and_what_is_done_is_kept(plan, by_threads, tmp_path):
    with ExitStack() as ends:
        address, process = ends.enter_context(scheduler(tmp_path))
        ends.enter_context(worker(address))
        assert await_workers(address, 1)

        def progress(text: str) -> None:
            if text.startswith("1 of 12 runs done"):
                process.kill()

        def simulate() -> None:
            with open_cluster(address, silent) as workers:
                simulate_plan(plan, QUICK, LOADS, 3, tmp_path, progress, workers=workers)

        with pytest.raises(
            WorkloadError, match=rf"^the scheduler at {address} went away; start it and its workers again"
        ):
            simulate()
    said: list[str] = []
    resumed = simulate_plan(plan, QUICK, LOADS, 3, tmp_path, said.append, resume=True)
    assert said[0].endswith("of 12 runs are done already")
    assert bare(resumed) == bare(by_threads)


@pytest.mark.slow
def test_a_scheduler_without_workers_or_open_to_others_or_with_other_code_is_refused(tmp_path, monkeypatch):
    with scheduler(tmp_path) as (address, _):
        with (
            pytest.raises(
                InputError, match=rf"the scheduler at {address} has no workers; start some with `dask worker"
            ),
            open_cluster(address, silent),
        ):
            pytest.fail("there are no workers")
        with worker(address):
            assert await_workers(address, 1)
            with monkeypatch.context() as patch:
                patch.setattr(module, "code_digest", lambda: "0123456789")
                with (
                    pytest.raises(
                        CapabilityError, match=r"1 of 1 workers have other code .* \(01234567\): tcp://\S+ has"
                    ),
                    open_cluster(address, silent),
                ):
                    pytest.fail("its code is another")
            monkeypatch.setattr(module, "_open", lambda address: True)
            reason = "without TLS, so whoever reaches it runs code on its workers"
            with pytest.raises(InputError, match=reason), open_cluster(address, silent):
                pytest.fail("it is open to others")
            with open_cluster(address, silent, insecure=True) as workers:
                assert workers.slots == 1


@pytest.mark.slow
def test_with_tls_only_who_has_the_certificates_gets_in(plan, by_threads, tmp_path, monkeypatch):
    (tmp_path / "other").mkdir()
    files, others = certificate(tmp_path), certificate(tmp_path / "other")
    monkeypatch.setattr(module, "_CONNECT_LIMIT", 3)

    def configured(files):
        words = {"ca-file": files["cert"], "client.cert": files["cert"], "client.key": files["key"]}
        return dask.config.set({f"distributed.comm.tls.{name}": value for name, value in words.items()})

    with scheduler(tmp_path, "--protocol", "tls", *tls_options(files)) as (address, _):
        assert address.startswith("tls://")
        with worker(address, *tls_options(files)), configured(files):
            assert await_workers(address, 1)
            with open_cluster(address, silent) as workers:
                found = points(tmp_path / "runs", plan, workers=workers)
            assert bare(found) == bare(by_threads)
            for wrong, tried in ((others, address), (files, address.replace("tls://", "tcp://"))):
                with (
                    configured(wrong),
                    pytest.raises(InputError, match=rf"no scheduler answers at {tried} within 3 s"),
                    open_cluster(tried, silent),
                ):
                    pytest.fail("whoever has no certificate, or another one, must stay outside")


@pytest.mark.parametrize(
    ("address", "open_"),
    [
        ("tcp://127.0.0.1:8786", False), ("tcp://[::1]:8786", False), ("tcp://localhost:8786", False),
        ("tls://10.0.0.1:8786", False), ("tcp://10.0.0.1:8786", True), ("tcp://0.0.0.0:8786", True),
        ("tcp://scheduler:8786", True),
    ],
)  # fmt: skip
def test_which_schedulers_others_can_reach(address, open_):
    assert module._open(address) is open_


@pytest.mark.slow
@pytest.mark.parametrize(
    ("address", "sentence"),
    [
        (
            "lokal",
            "should be local, local:4 (processes), slurm:8 (jobs), tcp://scheduler:8786 or tls://scheduler:8786, not ",
        ),
        ("tcp://scheduler", "should be local, local:4 (processes), slurm:8 (jobs), tcp://scheduler:8786 or tls://"),
        ("slurm", "slurm:N takes a number of jobs from 1 to 1024, not ''"),
        ("pbs:0", "pbs:N takes a number of jobs from 1 to 1024, not '0'"),
        ("tcp://[x", "should be local, local:4"),
        ("http://a:1", "should be local, local:4"),
        ("local:0", "local:N takes a number of processes from 1 to 1024, not '0'"),
        ("local:", "local:N takes a number of processes from 1 to 1024, not ''"),
        ("local:many", "local:N takes a number of processes from 1 to 1024, not 'many'"),
        ("tcp://127.0.0.1:9", "no scheduler answers at tcp://127.0.0.1:9 within 1 s"),
    ],
)
def test_addresses_that_are_none_are_answered_with_a_sentence(address, sentence, monkeypatch):
    monkeypatch.setattr(module, "_CONNECT_LIMIT", 1)
    with pytest.raises(InputError) as caught, open_cluster(address, silent):
        pytest.fail("there is nobody")
    (problem,) = caught.value.problems
    assert problem.place == "--cluster"
    assert problem.sentence.startswith(sentence)


def test_without_dask_the_remedy_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with (
        pytest.raises(
            CapabilityError, match=r"needs Dask, which is not installed: .*; pip install 'testbed\[cluster\]'"
        ),
        open_cluster("local", silent),
    ):
        pytest.fail("Dask is not there")


@pytest.mark.slow
def test_ctrl_c_ends_the_workers(tmp_path):
    words = [
        sys.executable,
        "-m",
        "testbed",
        "simulate",
        "torus4x4",
        "--cluster",
        "local:2",
        "--results",
        str(tmp_path),
    ]
    with subprocess.Popen(
        words, cwd=ROOT, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True, start_new_session=True
    ) as started:
        assert started.stderr is not None
        for line in started.stderr:
            if "at a time" in line:
                break
        os.killpg(started.pid, signal.SIGINT)  # as a terminal does: to all of them
        said = started.stderr.read()
        assert started.wait(30) == 130, said
    assert "Traceback" not in said
    assert "go on with the same command and --resume" in said
    with pytest.raises(ProcessLookupError):
        _await_end(started.pid)


def _await_end(group: int) -> None:
    until = time.monotonic() + 20
    while time.monotonic() < until:
        os.killpg(group, 0)
        time.sleep(0.1)
