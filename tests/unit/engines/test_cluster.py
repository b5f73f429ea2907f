"""Simulations on Dask's workers: a real scheduler and real workers, each a process."""

from __future__ import annotations

import dataclasses
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import AbstractContextManager, ExitStack, nullcontext, suppress
from pathlib import Path

import dask
import pytest

from testbed.base.errors import CapabilityError, InputError, WorkloadError
from testbed.engines.local_machine import cluster as module
from testbed.engines.local_machine import local_workers
from testbed.engines.local_machine.cluster import open_cluster
from testbed.engines.simulate import Settings, simulate_plan
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
def test_a_scheduler_that_dies_is_told_and_what_is_done_is_kept(plan, by_threads, tmp_path):
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
def test_an_unfit_scheduler_is_refused(tmp_path, monkeypatch):
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
    assert problem.place == "cluster"
    assert problem.sentence.startswith(sentence)


def test_what_answers_and_is_no_scheduler_is_said_to_be_none():
    """Such as a web server, whose first bytes are the length of a frame for Dask: exabytes."""

    def answer() -> None:
        connection, _ = listener.accept()
        with connection:
            connection.sendall(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n")
            connection.recv(1)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = threading.Thread(target=answer)
        server.start()
        port = listener.getsockname()[1]
        with (
            pytest.raises(InputError, match=rf"what answers at tcp://127\.0\.0\.1:{port} is no Dask scheduler; name "),
            open_cluster(f"tcp://127.0.0.1:{port}", silent),
        ):
            pytest.fail("it is no scheduler")
        server.join(10)


def test_without_dask_the_remedy_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    remedy = rf"in {ROOT}: \.venv/bin/pip install -e '\.\[cluster\]'; or leave it out"
    with (
        pytest.raises(CapabilityError, match=f"needs Dask, which is not installed: .*; {remedy}"),
        open_cluster("local", silent),
    ):
        pytest.fail("Dask is not there")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("files", "why"),
    [
        ({}, "Dask's configuration names none; write distributed.comm.tls.ca-file, .client.cert and .client.key into"),
        ({"ca-file": "/no/such.pem", "client.cert": "/no/such.pem"}, "those of Dask's configuration cannot be used: "),
    ],
)
def test_tls_without_certificates_is_told_before_asking(files, why):
    with (
        dask.config.set({f"distributed.comm.tls.{name}": value for name, value in files.items()}),
        pytest.raises(InputError) as caught,
        open_cluster("tls://127.0.0.1:9", silent),
    ):
        pytest.fail("there are no certificates")
    (problem,) = caught.value.problems
    assert problem.place == "cluster"
    assert problem.sentence.startswith(f"tls:// takes certificates, and {why}")


@pytest.mark.slow
def test_local_workers_are_this_programs_alone_and_replaced(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    (tmp_path / "testbed-workers-left").mkdir()  # by a program that was killed
    with open_cluster("local:1", silent) as workers:
        assert workers.client.scheduler.address.startswith("tls://127.0.0.1:")
        (folder,) = tmp_path.iterdir()
        assert folder.stat().st_mode & 0o777 == 0o700
        first = workers.submit(os.getpid).result(60)
        os.kill(first, signal.SIGKILL)
        second = workers.submit(os.getpid).result(60)
        assert second != first
        assert workers.submit(tempfile.gettempdir).result(60) == str(folder)
    assert list(tmp_path.iterdir()) == []
    assert not Path(f"/proc/{second}").exists()


@pytest.mark.slow
def test_worker_processes_that_do_not_start_are_told(monkeypatch):
    monkeypatch.setattr(local_workers, "_PAUSE", 0.01)
    fails = ("sh", "-c", "echo no such thing >&2; exit 1")
    monkeypatch.setattr(local_workers, "make_module_command", lambda *words: fails)
    with (
        pytest.raises(CapabilityError, match=r"^worker processes cannot be started: no such thing$"),
        open_cluster("local:1", silent),
    ):
        pytest.fail("there are no workers")


@pytest.mark.slow
@pytest.mark.parametrize("how", ["Ctrl-C", "stopped, then killed"])
def test_nothing_is_left_of_a_program_with_workers(tmp_path, how):
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    words = (sys.executable, "-m", "testbed", "simulate", "torus4x4", "--cluster", "local:2")
    with subprocess.Popen(
        [*words, "--results", str(tmp_path / "results")], cwd=ROOT, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL,
        text=True, start_new_session=True, env={**os.environ, "TMPDIR": str(temporary)},
    ) as started:  # fmt: skip
        assert started.stderr is not None
        for line in started.stderr:
            if "at a time" in line:
                break
        workers = _processes_in(temporary)
        assert len(workers) == 2
        if how == "Ctrl-C":
            os.killpg(started.pid, signal.SIGINT)  # as a terminal does: to all of them
        else:
            for pid in workers:
                os.kill(pid, signal.SIGSTOP)
            os.killpg(started.pid, signal.SIGSTOP)
            os.kill(started.pid, signal.SIGKILL)
        said = started.stderr.read()
        assert started.wait(30) == (130 if how == "Ctrl-C" else -signal.SIGKILL), said
    if how == "Ctrl-C":
        assert "Traceback" not in said
        assert "go on with the same command and --resume" in said
        assert list(temporary.iterdir()) == []
    until = time.monotonic() + 20
    while left := _processes_in(temporary):
        assert time.monotonic() < until, left
        time.sleep(0.1)


def _processes_in(folder: Path) -> list[int]:
    """Numbers of the processes that work in a folder or below."""
    found = []
    for entry in Path("/proc").iterdir():
        with suppress(OSError):
            if entry.name.isdigit() and str((entry / "cwd").readlink()).startswith(str(folder)):
                found.append(int(entry.name))
    return found
