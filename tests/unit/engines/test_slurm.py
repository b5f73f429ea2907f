"""Slurm itself, of Debian's packages: a controller and a node of this machine, and workers in its jobs.

`scripts/setup dev` unpacks it into .cache/slurm; nothing of it is installed. It listens on 127.0.0.1 only.
"""

from __future__ import annotations

import gc
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import dask
import dask_jobqueue  # noqa: F401 - its defaults are part of the configuration
import pytest
import yaml

from testbed.base.files import code_digest
from testbed.engines.local_machine.cluster import open_cluster, worker_code

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(300),
    # dask-jobqueue never closes the files with the keys that it makes for workers.
    pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning"),
]

ROOT = Path(__file__).parents[3]
_SLURM = ROOT / ".cache" / "slurm"
_COMMANDS = ("sbatch", "scancel", "squeue", "sinfo")
_CONFIGURATION = """ClusterName=here
SlurmctldHost=localhost(127.0.0.1)
SlurmctldPort={ports[0]}
SlurmdPort={ports[1]}
CommunicationParameters=NoInAddrAny
SlurmUser=root
AuthType=auth/munge
CredType=cred/munge
AuthInfo=socket={folder}/munge.socket
PluginDir={libraries}/slurm-wlm
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
ProctrackType=proctrack/pgid
TaskPlugin=task/none
SelectType=select/cons_tres
JobAcctGatherType=jobacct_gather/none
SchedulerParameters=sched_interval=1
SlurmdParameters=config_overrides
NodeName=localhost NodeAddr=127.0.0.1 CPUs=2 RealMemory=8000
PartitionName=short Nodes=localhost Default=YES State=UP
"""


def _free_ports(count: int) -> list[int]:
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


def _until(what: Callable[[], bool], started: list[subprocess.Popen[bytes]], folder: Path) -> None:
    """Wait for something, and say what the daemons say where it does not come."""
    until = time.monotonic() + 60
    while not what():
        ended = [one.args for one in started if one.poll() is not None]
        said = {file.name: file.read_text()[-500:] for file in folder.glob("*.out")}
        assert not ended, f"{ended} ended: {said}"
        assert time.monotonic() < until, said
        time.sleep(0.1)


@pytest.fixture(scope="module")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with Slurm's commands for a queue whose daemons run."""
    lacks = None
    if os.geteuid():
        lacks = "Slurm's daemons are started as root"
    elif not _SLURM.exists():
        lacks = "Slurm is not unpacked: scripts/setup dev does it where there is apt-get"
    if lacks:
        if os.environ.get("TESTBED_REQUIRE_LAB") == "1":
            pytest.fail(lacks)
        pytest.skip(lacks)
    folder = tmp_path_factory.mktemp("slurm")
    folder.chmod(0o755)
    libraries = next((_SLURM / "usr/lib").glob("*/slurm-wlm")).parent
    environment = {
        **os.environ,
        "LD_LIBRARY_PATH": f"{libraries}:{libraries}/slurm-wlm",
        "SLURM_CONF": str(folder / "slurm.conf"),
    }
    text = _CONFIGURATION.format(folder=folder, libraries=libraries, ports=_free_ports(2))
    (folder / "slurm.conf").write_text(text)
    for name in ("state", "spool"):
        (folder / name).mkdir()
    (folder / "munge.key").write_bytes(secrets.token_bytes(1024))
    (folder / "munge.key").chmod(0o400)
    for name in _COMMANDS:
        words = [f"{key}={environment[key]}" for key in ("LD_LIBRARY_PATH", "SLURM_CONF")]
        (folder / name).write_text(f'#!/bin/sh\nexec env {" ".join(words)} {_SLURM}/usr/bin/{name} "$@"\n')
        (folder / name).chmod(0o755)
    started: list[subprocess.Popen[bytes]] = []

    def start(name: str, *words: str) -> None:
        with (folder / f"{name}.out").open("wb") as out:
            command = [str(_SLURM / "usr/sbin" / name), *words]
            started.append(subprocess.Popen(command, env=environment, stdout=out, stderr=out))

    try:
        files = {"key-file": "munge.key", "socket": "munge.socket", "pid-file": "munge.pid", "seed-file": "munge.seed"}
        start("munged", "--foreground", "--force", *(f"--{key}={folder / name}" for key, name in files.items()))
        _until((folder / "munge.socket").is_socket, started, folder)
        start("slurmctld-wlm", "-D")
        start("slurmd-wlm", "-D", "-N", "localhost", "-d", str(_SLURM / "usr/sbin/slurmstepd-wlm"))
        _until(lambda: "idle" in _said(folder, "sinfo"), started, folder)
        yield folder
    finally:
        for one in reversed(started):
            one.send_signal(signal.SIGTERM)
        for one in reversed(started):
            try:
                one.wait(20)
            except subprocess.TimeoutExpired:
                one.kill()
                one.wait()
        shutil.rmtree(folder)


def _said(folder: Path, command: str, *words: str) -> str:
    """What a command of Slurm's prints."""
    return subprocess.run([folder / command, *words], capture_output=True, text=True, check=False).stdout


@pytest.fixture
def queue(slurm: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The same, in the path, and with Dask's configuration for it."""
    monkeypatch.setenv("PATH", str(slurm), prepend=":")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.chdir(tmp_path)  # where Slurm writes what jobs print
    settings = {"cores": 1, "memory": "2GB", "walltime": "01:00:00", "queue": "short", "interface": "lo"}
    settings["shared-temp-directory"] = str(tmp_path)
    (tmp_path / "jobqueue.yaml").write_text(yaml.safe_dump({"jobqueue": {"slurm": settings}}))
    monkeypatch.setenv("DASK_CONFIG", str(tmp_path))  # for commands
    with dask.config.set({f"jobqueue.slurm.{key}": value for key, value in settings.items()}):
        yield slurm
    gc.collect()  # what Dask left open is told here, and not in a test of something else
    until = time.monotonic() + 30
    while jobs := _said(slurm, "squeue", "--noheader"):
        assert time.monotonic() < until, f"jobs are left: {jobs}"
        time.sleep(0.2)


@pytest.mark.long
def test_workers_are_jobs_of_slurm_and_end_with_the_command(queue: Path) -> None:
    with open_cluster("slurm:2", lambda _: None) as workers:
        assert workers.submit(worker_code).result() == code_digest()
        number = workers.submit(os.getenv, "SLURM_JOB_ID").result()
        running = _said(queue, "squeue", "--noheader", "--format", "%i %T %j").splitlines()
    assert f"{number} RUNNING dask-worker" in running
    assert len(running) == 2


@pytest.mark.long
def test_a_simulation_by_jobs_of_slurm_is_the_one_without(queue: Path, tmp_path: Path) -> None:
    for name, more in (("alone", []), ("jobs", ["--cluster", "slurm:1"])):
        words = ["simulate", "mesh4x2", "--loads", "0.1,0.2", "--cycles", "2000", "--warm-up", "500"]
        command = [sys.executable, "-m", "testbed", *words, "--results", str(tmp_path / name), *more]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    alone, jobs = (next((tmp_path / name).rglob("samples.csv")).read_bytes() for name in ("alone", "jobs"))
    assert alone == jobs
