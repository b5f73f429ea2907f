"""Two machines out of one: network, mount and PID namespaces of their own with a cable between them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
NAMES = ("a", "b")
_APART = ("unshare", "--pid", "--net", "--mount", "--uts", "--ipc", "--fork", "--kill-child", "--mount-proc")
# Machines have been up for different times, and so their monotonic clocks differ.
_CLOCKS = {"a": (), "b": ("--time", "--monotonic", "5000", "--boottime", "5000")}
_LIMIT = 60.0


@dataclass(frozen=True)
class Machine:
    """One of them.

    Attributes:
        name: of its worker.
        init: pid of its process 1.
        address: by which the other one reaches it.
    """

    name: str
    init: int
    address: str

    def inside(self, *command: str) -> list[str]:
        """A command that runs another one there."""
        return [
            "nsenter",
            "--target",
            str(self.init),
            "--pid",
            "--net",
            "--mount",
            "--uts",
            "--ipc",
            "--time",
            *command,
        ]

    def run(self, *command: str) -> str:
        """Run a command there, and return what it prints."""
        return subprocess.run(self.inside(*command), check=True, capture_output=True, text=True).stdout


@dataclass(frozen=True)
class Pair:
    """Both, with a scheduler on the first one and a worker on each.

    Attributes:
        machines: both.
        scheduler: its address.
        start_worker: starts one on a machine and returns when the scheduler knows it; by a command, such as setpriv,
            that runs another one.
    """

    machines: tuple[Machine, ...]
    scheduler: str
    start_worker: Callable[..., None]

    def testbed(self, *words: str, limit: float = 240) -> subprocess.CompletedProcess[str]:
        """Run a command of the testbed on the first machine."""
        with self.start(*words) as process:
            try:
                out, err = process.communicate(timeout=limit)
            except subprocess.TimeoutExpired:
                process.kill()
                raise
        return subprocess.CompletedProcess(words, process.returncode, out, err)

    def start(self, *words: str) -> subprocess.Popen[str]:
        """Start one."""
        command = self.machines[0].inside(sys.executable, "-m", "testbed", *words)
        return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    @property
    def options(self) -> tuple[str, ...]:
        """Of a command that uses both."""
        return ("--machines", "a,b", "--cluster", self.scheduler, "--insecure")

    def worker_of(self, name: str) -> int:
        """Pid of the process that is the worker of a machine."""
        (machine,) = (one for one in self.machines if one.name == name)
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                try:
                    words = (entry / "cmdline").read_bytes().split(b"\0")
                    same = (entry / "ns/net").readlink() == Path(f"/proc/{machine.init}/ns/net").readlink()
                except OSError:
                    continue
                if same and b"distributed.cli.dask_worker" in words and b"nsenter" not in words[0]:
                    return int(entry.name)
        raise AssertionError(f"{name} has no worker")

    def labs(self) -> list[str]:
        """Command lines of the labs' processes on both machines, as each shows them."""
        shown = (machine.run("ps", "-eo", "args").splitlines() for machine in self.machines)
        return [
            line
            for lines in shown
            for line in lines
            if "testbed.engines.lab.control.agent" in line or "ovs-vswitchd" in line
        ]

    def kill_worker(self, name: str) -> None:
        """End the worker of a machine at once, as if the machine had lost its power."""
        os.kill(self.worker_of(name), signal.SIGKILL)


@contextmanager
def two_machines(folder: Path, mtu: int = 1600) -> Iterator[Pair]:
    """Both, until the block ends; `mtu`: of the cable."""
    with ExitStack() as ends:
        machines = []
        for number, name in enumerate(NAMES, 1):
            init = _started(ends, *_CLOCKS[name])
            machines.append(Machine(name, init, f"10.99.0.{number}"))
        first, second = machines
        cable = ["link", "add", "uplink", "netns", str(first.init), "mtu", str(mtu), "type", "veth", "peer", "name"]
        subprocess.run(["ip", *cable, "uplink", "netns", str(second.init), "mtu", str(mtu)], check=True)
        for machine in machines:
            machine.run("mount", "-t", "tmpfs", "run", "/run")
            machine.run("ip", "link", "set", "lo", "up")
            machine.run("ip", "address", "add", f"{machine.address}/24", "dev", "uplink")
            machine.run("ip", "link", "set", "uplink", "up")
        file = folder / "scheduler.json"
        words = ("--host", first.address, "--port", "0", "--no-dashboard", "--scheduler-file", str(file))
        _program(ends, first, folder, "distributed.cli.dask_scheduler", *words)
        address = str(_when_there(file)["address"])

        def start_worker(name: str, *by: str) -> None:
            (machine,) = (one for one in machines if one.name == name)
            place = "/tmp" if by else str(folder / machine.name)  # who is not root may not look into the folder
            _program(
                ends, machine, folder, "distributed.cli.dask_worker", address, "--name", machine.name,
                "--nthreads", "1", "--host", machine.address, "--no-dashboard", "--no-nanny",
                "--local-directory", place, by=by,
            )  # fmt: skip

        def start_and_wait(name: str, *by: str) -> None:
            start_worker(name, *by)
            _await_workers(first, address)

        for name in NAMES:
            start_worker(name)
        _await_workers(first, address)
        yield Pair(tuple(machines), address, start_and_wait)


def _started(ends: ExitStack, *more: str) -> int:
    process = subprocess.Popen([*_APART, *more, "sleep", "infinity"], start_new_session=True)

    def finish() -> None:
        process.kill()
        process.wait()

    ends.callback(finish)
    until = time.monotonic() + _LIMIT
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    while True:
        found = children.read_text().split()
        if found and b"sleep" in Path(f"/proc/{found[0]}/cmdline").read_bytes():
            return int(found[0])
        assert time.monotonic() < until
        time.sleep(0.01)


def _program(
    ends: ExitStack, machine: Machine, folder: Path, *words: str, by: Sequence[str] = ()
) -> subprocess.Popen[bytes]:
    with (folder / f"{machine.name}-{words[0].rpartition('.')[2]}.log").open("wb") as log:
        command = machine.inside(*by, sys.executable, "-m", *words)
        process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def finish() -> None:
        process.kill()
        process.wait()

    ends.callback(finish)
    return process


def _when_there(file: Path) -> dict[str, object]:
    until = time.monotonic() + _LIMIT
    while not file.exists() or not file.read_text():
        assert time.monotonic() < until
        time.sleep(0.05)
    found: dict[str, object] = json.loads(file.read_text())
    return found


def _await_workers(machine: Machine, address: str) -> None:
    program = f"from distributed import Client\nClient({address!r}, timeout=30).wait_for_workers(2, timeout=60)"
    machine.run(sys.executable, "-c", program)


def write(folder: Path, text: str, name: str = "fabric.yaml") -> str:
    """A scenario file."""
    file = folder / name
    file.write_text(text)
    return str(file)


def settings(words: Sequence[str]) -> list[str]:
    """As --set takes them."""
    return [part for word in words for part in ("--set", word)]
