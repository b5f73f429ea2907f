"""What a machine does for its part of a fabric: functions that run on its worker of Dask.

A part is a lab like any other, with interfaces that lead to the other machines. It ends with the worker's process, and
when nobody has spoken for it for some seconds.
"""

from __future__ import annotations

import asyncio
import functools
import json
import os
import tempfile
import threading
import time
from collections.abc import Awaitable, Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from testbed.base.errors import CapabilityError, LabError, TestbedError
from testbed.engines.lab.control import operations as ask
from testbed.engines.lab.control.client import LabClient
from testbed.engines.lab.control.launch import start_namespaces
from testbed.engines.lab.control.operation import Operation
from testbed.engines.lab.hosts import build_mpi_jobs, host_shares
from testbed.engines.lab.hosts.commands import run
from testbed.engines.local_machine.probe import require_all, versions
from testbed.scenario.workloads.mpi import MpiJob

HOLD_EVERY, _LET_GO = 2.0, 15.0  # s after which a fabric's client speaks for it again, and after which it is gone
_POLL = 0.005
_TUNNEL_PORT = 4789  # RFC 7348

P = ParamSpec("P")
T = TypeVar("T")
Said = tuple[bool, Any]  # whether it went well, and the result or else the sentence


@dataclass(frozen=True, slots=True)
class Uplink:
    """How one machine reaches another."""

    interface: str
    mtu: int  # bytes of IP that it takes
    speed: float | None  # bit/s; None = it does not say


@dataclass(frozen=True, slots=True)
class Tunnel:
    """One end of a link between machines, as VXLAN."""

    name: str  # interface in the part's network
    identifier: int  # VNI
    local: str  # IP address of this machine
    remote: str  # of the other
    # IP addresses of this part and the other one where programs beside the switches use it; None = it is a link
    between: tuple[str, str] | None = None


@dataclass(slots=True)
class _Part:
    """A part that runs here."""

    lab: LabClient
    heard: float  # when its client last spoke for it; s, monotonic


_parts: dict[str, _Part] = {}  # by the fabric


def _run_in_thread(function: Callable[P, T]) -> Callable[P, Awaitable[Said]]:
    """Let a function run beside others on a worker, and its failure be a sentence."""

    @functools.wraps(function)
    async def answer(*arguments: P.args, **named: P.kwargs) -> Said:
        try:
            return True, await asyncio.to_thread(function, *arguments, **named)
        except (TestbedError, OSError) as error:
            return False, str(error)

    return answer


@_run_in_thread
def describe_lacking(names: Collection[str]) -> str:
    """What this machine lacks for a lab; empty where it lacks nothing.

    `names`: capabilities that are needed beside those of every lab. The scenario says which; it is not sent, since what
    plug-ins have put into it is not known here.
    """
    if os.geteuid() != 0:
        return (
            f"its worker runs as user {os.geteuid()}, and a lab needs root, because it makes network namespaces and "
            "switches; start the worker there by sudo"
        )
    try:
        require_all(names)
    except CapabilityError as error:
        return str(error)
    return ""


@_run_in_thread
def processors() -> int:
    """How many this machine has for its part."""
    return host_shares.processors()


@_run_in_thread
def describe_machine() -> dict[str, object]:
    """What results tell of this machine."""
    return {"kernel": os.uname().release, "processors": os.cpu_count(), "tools": versions()}


@_run_in_thread
def build_job(job: MpiJob, mpiexec: str, trace: bool) -> str:
    """Build an MPI job on this machine; what it lacks for it, empty where that is nothing.

    `mpiexec`: absolute path, where the machine from which jobs are started has it.
    """
    try:
        build_mpi_jobs.build_job(job)
        if trace:
            build_mpi_jobs.build_tracer()
    except CapabilityError as error:
        return str(error)
    program = Path(mpiexec).parent / "hydra_pmi_proxy"
    return "" if program.exists() else f"has no {program}; MPI jobs need the testbed at the same path on all machines"


@_run_in_thread
def find_uplink(address: str) -> Uplink:
    """How this machine reaches another one by its IP address."""
    (route,) = json.loads(run(["ip", "-j", "route", "get", address]))
    name = route["dev"]
    (link,) = json.loads(run(["ip", "-j", "link", "show", "dev", name]))
    speed = 0
    with suppress(OSError, ValueError):
        speed = int(Path(f"/sys/class/net/{name}/speed").read_text())
    return Uplink(name, int(link["mtu"]), speed * 1e6 if speed > 0 else None)


@_run_in_thread
def begin(fabric: str, title: str, tunnels: Sequence[Tunnel]) -> int:
    """Start the namespaces of a part, with its tunnels in them; returns process 1."""
    namespaces = start_namespaces(keep=False, name=title)
    try:
        lines = [
            f"link add {one.name} netns {namespaces.init} type vxlan id {one.identifier} local {one.local} "
            f"remote {one.remote} dstport {_TUNNEL_PORT} nolearning"
            for one in tunnels
        ]
        if lines:
            run(["ip", "-batch", "-"], "\n".join(lines) + "\n")
        _address(namespaces.init, tunnels)
        _parts[fabric] = _Part(LabClient(namespaces), time.monotonic())
    except BaseException:
        namespaces.end()
        raise
    threading.Thread(target=_watch, args=(fabric,), daemon=True).start()
    return namespaces.init


def _address(init: int, tunnels: Sequence[Tunnel]) -> None:
    """Let programs of a part reach those of others by the tunnels that are for them."""
    lines = []
    for one in tunnels:
        if one.between is not None:
            here, there = one.between
            lines += [
                f"address add {here}/32 dev {one.name}",
                f"link set {one.name} up",
                f"route add {there}/32 dev {one.name} src {here}",
            ]
    if lines:
        text = "\n".join(["link set lo up", *lines]) + "\n"
        run(["nsenter", f"--net=/proc/{init}/ns/net", "ip", "-batch", "-"], text)


def _watch(fabric: str) -> None:
    """End a part whose client is gone."""
    while (one := _parts.get(fabric)) is not None:
        if time.monotonic() - one.heard > _LET_GO:
            _end(fabric)
        time.sleep(HOLD_EVERY / 2)


def _end(fabric: str) -> None:
    one = _parts.pop(fabric, None)
    if one is not None:
        one.lab.end()


def _find_lab(fabric: str) -> LabClient:
    if fabric not in _parts:
        raise LabError("its part of the fabric has ended")
    return _parts[fabric].lab


@_run_in_thread
def put(fabric: str, request: Operation[T]) -> T:
    """Ask a part, beside what it does otherwise."""
    if isinstance(request, ask.ShowFolder) and not Path(request.folder).is_dir():
        raise LabError(f"there is no {request.folder}, which programs in hosts are to read; put it there, too")
    with _find_lab(fabric).second_connection() as lab:
        return lab._ask(request)


@_run_in_thread
def copy(fabric: str, name: str, content: bytes, mode: int) -> str:
    """Put a file where hosts of a part see it; returns its path."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / name
        file.write_bytes(content)
        file.chmod(mode)
        with _find_lab(fabric).second_connection() as lab:
            return lab.copy(file)


@_run_in_thread
def read(fabric: str, name: str) -> bytes:
    """Content of a file in the folder of a part."""
    return _find_lab(fabric).read(name)


@_run_in_thread
def count_files(fabric: str, pattern: str) -> int:
    """How many files of a name with wildcards are there."""
    return _find_lab(fabric).count_files(pattern)


@_run_in_thread
def end(fabric: str) -> None:
    """End a part, if there is one."""
    _end(fabric)


async def clock() -> Said:
    """This machine's monotonic clock; s."""
    return True, time.monotonic()


async def heartbeat(fabric: str) -> Said:
    """Speak for a part."""
    if fabric in _parts:
        _parts[fabric].heard = time.monotonic()
    return fabric in _parts, "its part of the fabric has ended"


async def wait_at_gate(fabric: str, gate: str, name: str, seconds: float) -> Said:
    """Wait for so long until a load has come to a gate; whether it has."""
    until = time.monotonic() + seconds
    while fabric in _parts:
        if (_parts[fabric].lab.namespaces.socket.parent / gate / f"{name}.reached").exists():
            return True, True
        if time.monotonic() > until:
            return True, False
        await asyncio.sleep(_POLL)
    return False, "its part of the fabric has ended"


async def open_gate(fabric: str, gate: str, name: str) -> Said:
    """Let a load through a gate."""
    if fabric in _parts:
        with suppress(OSError):  # it has ended, and its lab with it
            (_parts[fabric].lab.namespaces.socket.parent / gate / f"{name}.open").touch()
    return True, None
