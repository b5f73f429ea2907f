"""One fabric over several machines, as its client sees it: it asks all parts and answers for the whole."""

from __future__ import annotations

import asyncio
import itertools
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, CancelledError, Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar, cast
from urllib.parse import urlsplit

from testbed.base.errors import InputError, LabError, Problem, argument, did_you_mean
from testbed.base.messages import Facts, Observation, Tap
from testbed.engines.lab.control import operations as ask
from testbed.engines.lab.control.client import LabClient, ignore_progress
from testbed.engines.lab.control.operation import Operation, Progress
from testbed.engines.lab.fabric_part import Part
from testbed.engines.lab.hosts.interface_names import RECORD
from testbed.engines.machines import worker
from testbed.engines.machines.clock_offsets import Clock, clocks, interpolate_clocks
from testbed.engines.machines.merge_observations import busiest_of, merge_disturbed, merge_observations
from testbed.engines.machines.merge_telemetry import merge_records
from testbed.engines.session import Frames
from testbed.planning import Plan

# Of a load, in their order, and of one with a timeline; see engines.lab.hosts.loads.
_GATES, _TIMED_GATES = ("start", "clients", "end"), ("start", "started", "clients", "end")
# What Dask raises for a worker that is not there any more; its own are OSErrors.
_GONE = (OSError, TimeoutError, asyncio.TimeoutError, CancelledError)
_LOOK = 0.1
_AT_GATE = 1.0

R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class FabricMachine:
    """A worker of a Dask scheduler."""

    name: str
    worker: str  # its address
    address: str  # IP address of the machine


class Machines:
    """Machines that build parts of a fabric.

    Args:
        client: Dask's.
        machines: in the order of the parts.
    """

    def __init__(self, client: Any, machines: Sequence[FabricMachine]) -> None:
        self._client = client
        self.machines = tuple(machines)

    def call(self, number: int, function: Callable[..., Any], *arguments: object) -> Any:
        """Run a function of `worker` on a machine; return what it returns.

        Raises:
            LabError: it failed, or the machine is gone.
        """
        one = self.machines[number]
        try:
            said = self._client.run(function, *arguments, workers=[one.worker])
        except _GONE as error:
            raise LabError(f"machine {one.name} ({one.address}) went away") from error
        if one.worker not in said:
            raise LabError(f"machine {one.name} ({one.address}) went away")
        well, value = said[one.worker]
        if not well:
            raise LabError(f"machine {one.name}: {value}".split("\n"))
        return value


def find_machines(client: Any, names: Sequence[str]) -> Machines:
    """The workers of these names.

    `client`: Dask's, of a scheduler.

    Raises:
        InputError: one is named twice, not there, or on the same machine as another.
    """
    workers = client.scheduler_info(n_workers=-1)["workers"]
    known = {str(its["name"]): address for address, its in workers.items()}
    problems = [
        Problem(argument("machines"), f"{name} is named twice")
        for name in dict.fromkeys(names)
        if names.count(name) > 1
    ]
    for name in dict.fromkeys(names):
        if name not in known:
            sentence = (
                f"the scheduler has no worker named {name}.{did_you_mean(name, known)} Known: {', '.join(known)}; "
                f"start one there with `dask worker ADDRESS --name {name} --nthreads 1`, as root"
            )
            problems.append(Problem(argument("machines"), sentence))
    if len(names) < 2 and not problems:
        problems.append(
            Problem(argument("machines"), "names one machine; a fabric on one is run there without this option")
        )
    if problems:
        raise InputError(problems)
    found = [FabricMachine(name, known[name], urlsplit(known[name]).hostname or "") for name in names]
    at: dict[str, str] = {}
    for one in found:
        if one.address in at:
            sentence = (
                f"{at[one.address]} and {one.name} are both at {one.address}; parts of a fabric need machines of their "
                "own addresses, so start each worker with `--host` and the address by which the others reach it"
            )
            problems.append(Problem(argument("machines"), sentence))
        at[one.address] = one.name
    if problems:
        raise InputError(problems)
    return Machines(client, found)


class FabricClient(LabClient):
    """A running fabric over several machines; use as a context manager to end it however the block ends.

    Args:
        name: of this fabric, which no other one has.
        plan: what it is built from.
        machines: where it runs.
        parts: what each builds, in their order.
    """

    def __init__(self, name: str, plan: Plan, machines: Machines, parts: Sequence[Part]) -> None:
        # No connection of its own: each question goes by the workers.
        self.name, self.machines, self.parts = name, machines, tuple(parts)
        self._plan = plan
        self._facts: Facts | None = None
        self._gates = itertools.count(1)
        self._record = b""  # of the last load
        self._gone = ""  # a sentence on the first machine that has gone away
        self._lost: set[int] = set()  # all that have
        self._ended = threading.Event()
        # For each machine a load, what waits for it, and a question beside it.
        self._pool = ThreadPoolExecutor(4 * len(self.parts))
        self._holding = [
            threading.Thread(target=self._send_heartbeat, args=(number,), daemon=True)
            for number in range(len(self.parts))
        ]

    def begin(self, tunnels: Sequence[Sequence[worker.Tunnel]]) -> None:
        """Start the namespaces of all parts; `tunnels`: of each."""
        title = self.parts[0].order.name
        self._gather_all(
            [
                self._pool.submit(self.machines.call, number, worker.begin, self.name, title, its)
                for number, its in enumerate(tunnels)
            ]
        )
        for thread in self._holding:
            thread.start()

    def _send_heartbeat(self, number: int) -> None:
        """Speak for a part until the fabric ends, and notice when its machine goes away."""
        while not self._ended.wait(worker.HOLD_EVERY):
            try:
                self.machines.call(number, worker.heartbeat, self.name)
            except LabError as error:
                self._lost.add(number)
                self._gone = self._gone or str(error)
                return

    def _gather_all(self, futures: Sequence[Future[R]]) -> list[R]:
        """All results; the first failure ends the waiting, as does a machine that goes away."""
        waiting = set(futures)
        while waiting:
            done, waiting = wait(waiting, _LOOK, FIRST_EXCEPTION)
            for future in done:
                future.result()
            if self._gone:
                raise LabError(self._gone)
        return [future.result() for future in futures]

    def _gather_each(self, function: Callable[..., Any], *arguments: object) -> list[Any]:
        calls = range(len(self.parts))
        return self._gather_all(
            [self._pool.submit(self.machines.call, n, function, self.name, *arguments) for n in calls]
        )

    def _put(self, asked: Sequence[Operation[Any]]) -> list[Future[Any]]:
        return [self._put_to(number, request) for number, request in enumerate(asked)]

    def _put_to(self, number: int, request: Operation[Any]) -> Future[Any]:
        return self._pool.submit(self.machines.call, number, worker.put, self.name, request)

    def _ask(self, request: Operation[R], progress: Progress = ignore_progress) -> R:
        """Ask all parts, and answer for the whole."""
        del progress
        answer: R
        if isinstance(request, ask.RunLoad):
            answer = self._run(request)
        elif isinstance(request, ask.Disturb):
            shares = request.for_parts(self.parts)
            done = self._gather_all(self._put(shares))
            answer = cast(R, merge_disturbed([one.disturbance for one in shares], done, self._clocks()))
        else:
            asked = request.for_parts(self.parts)
            if request.in_turn:
                said = [self._gather_all([self._put_to(number, one)])[0] for number, one in enumerate(asked)]
            else:
                said = self._gather_all(self._put(asked))
            answer = request.merge(self.parts, said)
        return answer

    def build_parts(self) -> None:
        """Have every machine build its part."""
        orders = ask.Build(self.parts[0].order).for_parts(self.parts)
        self._facts = orders[0].merge(self.parts, self._gather_all(self._put(orders)))

    def _run(self, request: ask.RunLoad) -> Any:
        """Run a load on all machines; its clients start when all servers listen, and it ends everywhere at once."""
        timed = bool(request.load.telemetry or request.load.timeline)
        gated = ask.RunLoad(replace(request.load, gate=f"gate{next(self._gates)}"))
        asked = gated.for_parts(self.parts)
        before = self._clocks() if timed else []
        said = self._at_once(asked)
        now = interpolate_clocks(before, self._clocks()) if timed else [Clock(0.0, 0.0)] * len(self.parts)
        if request.load.telemetry:
            self._record = merge_records(self._gather_each(worker.read, RECORD), self.parts, now, busiest_of(said))
        return merge_observations(self.parts, said, now, [one.load.timeline for one in asked])

    def _clocks(self) -> list[Clock]:
        """The machines' clocks now."""
        return clocks([partial(self.machines.call, number, worker.clock) for number in range(len(self.parts))])

    def _at_once(self, asked: Sequence[ask.RunLoad]) -> list[Observation]:
        gate, loads = asked[0].load.gate, self._put(asked)
        for name in _TIMED_GATES if asked[0].load.timeline else _GATES:
            self._gather_all([self._pool.submit(self._await_gate, n, load, gate, name) for n, load in enumerate(loads)])
            self._gather_each(worker.open_gate, gate, name)
        return self._gather_all(loads)

    def _await_gate(self, number: int, load: Future[Any], gate: str, name: str) -> None:
        """Return when the load of a part has come to a gate, or ended."""
        while not load.done():
            if self.machines.call(number, worker.wait_at_gate, self.name, gate, name, _AT_GATE):
                return
        load.result()

    # --------------------------------------------------------------------- what LabClient does by the lab's own files

    def plan(self) -> Plan:
        """What it was built from."""
        return self._plan

    @contextmanager
    def second_connection(self) -> Iterator[LabClient]:
        """The same fabric: each question goes its own way."""
        yield self

    def capture(self, tap: Tap) -> AbstractContextManager[Frames]:
        """Not possible here."""
        raise LabError("frames of a fabric over several machines cannot be captured from here; run tcpdump there")

    def copy(self, source: Path) -> str:
        """Copy a file of this machine to all parts; returns its path there, which is the same in all."""
        content, mode = source.read_bytes(), source.stat().st_mode
        path: str = self._gather_each(worker.copy, source.name, content, mode)[0]
        return path

    def read(self, name: str) -> bytes:
        """Content of a file in the folder of the first part; of the record of a load what all have recorded."""
        if name == RECORD:
            return self._record
        content: bytes = self.machines.call(0, worker.read, self.name, name)
        return content

    def count_files(self, pattern: str) -> int:
        """How many files of a name with wildcards are in the folders of all parts."""
        return sum(self._gather_each(worker.count_files, pattern))

    def close(self) -> None:
        """Nothing to hang up."""

    def end(self) -> None:
        """End all parts; one on a machine that went away ends by itself."""
        self._ended.set()
        endings = [self._pool.submit(self._end, number) for number in range(len(self.parts))]
        wait(endings)
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _end(self, number: int) -> None:
        if number not in self._lost:
            with suppress(LabError):
                self.machines.call(number, worker.end, self.name)
