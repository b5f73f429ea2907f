"""A lab with a controller that changes its plan: each change watched by numbered datagrams, and walked afterwards."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from testbed.base.errors import WorkloadError
from testbed.base.messages import SHARED, PlanStep, Process
from testbed.base.model import host_ip
from testbed.base.python_isolation import make_file_command
from testbed.engines.lab.hosts import loss_probe as probe_program
from testbed.engines.session import Session
from testbed.experiments.regulate.rate_changes import RateChange
from testbed.experiments.run.loads.context import Context, LoadResult
from testbed.fabric.topologies.faults import link_called
from testbed.fabric.transition.steps import drain_seconds
from testbed.planning import Plan
from testbed.planning.store import plan_to_json
from testbed.scenario.workloads import loss_probe
from testbed.scenario.workloads.loss_probe import PairLoss

# s before the first change and after the last one in which datagrams are counted, so that there is something to lose.
_BEFORE, _AFTER = 1.5, 1.0
_START_LIMIT = 15.0
# s for a change beyond the waking of its links: proof of all its states, rules, frames on old paths.
_CHANGE_LIMIT = 120.0
_BEAT_LIMIT = 900.0
_NUMBERS = itertools.count(1)


@dataclass(frozen=True, slots=True)
class Change:
    """One change of plans that was carried out."""

    name: str  # what it is for
    started: float  # when it was asked for; s, monotonic
    seconds: float  # until the answer, the proof of all states included; laboratory s
    steps: tuple[PlanStep, ...]  # as the controller tells them
    deadlock: tuple[str, ...]  # cycles that old and new paths could close together
    problems: tuple[str, ...]  # what was wrong with the rules dumped afterwards; empty is right


class PlanMover:
    """Moves a lab from plan to plan.

    Args:
        lab: that is moved.
        wake_up: laboratory s from a link's being switched on until it carries frames.
        off: links that are off already.
        installed: the lab's plan by now, where it is not the one that it was built from.
    """

    def __init__(self, lab: Session, wake_up: float, off: Collection[int] = (), installed: Plan | None = None) -> None:
        self.lab = lab
        self.wake_up = wake_up
        self._off = set(off)
        # Of those, links that are up already at another speed, which are not waited for again.
        self._up: set[int] = set()
        self._installed = installed

    def move(self, other: Session, name: str, plan: Plan, off: Collection[int], *, walk: bool = True) -> Change:
        """Carry the switches over to another plan; links `off` are off afterwards.

        `other` is a connection to the lab, since this session's own may be waiting for a load; the plan has VLANs
        beside those of the plan that is installed; with `walk` the rules are dumped and followed afterwards.

        Raises:
            LabError: the controller refuses, or a step failed; nothing has changed then.
        """
        started = time.monotonic()
        wake_up = self.wake_up if self._off - self._up - set(off) else 0.0
        rate = other.status().link_rate
        assert rate is not None
        limit = _CHANGE_LIMIT + wake_up + _drain(self._installed or plan, rate)
        made = other.move_to(plan_to_json(plan), sorted(off), limit=limit, wake_up=wake_up)
        self._off, self._up, self._installed = set(off), self._up & set(off), plan
        seconds = time.monotonic() - started
        problems = other.walk(plan, off) if walk else []
        return Change(name, started, seconds, made.steps, made.deadlock, tuple(problems))

    def retune(self, other: Session, name: str, retuning: RateChange, seconds: float) -> Change:
        """Change the speed of links that no path takes meanwhile; they are off when this ends, and up at the next move.

        `seconds`: laboratory s for which a link is gone when its speed changes; the others are as in move().

        Raises:
            LabError: as in move(), or a speed could not be set.
        """
        change = self.move(other, name, retuning.plan, retuning.links)
        started = time.monotonic()
        other.set_speeds(retuning.speeds)
        time.sleep(seconds)
        self._up |= set(retuning.links)
        links = ", ".join(link_called(retuning.plan.wiring, link) for link in retuning.links)
        what = f"change the speed of {links} and wait until they are up"
        step = PlanStep("speed", what, round(time.monotonic() - started, 4))
        return replace(change, seconds=change.seconds + time.monotonic() - started, steps=(*change.steps, step))

    def change_under_load(
        self,
        context: Context,
        processes: Sequence[Process],
        limit: float,
        changes: Callable[[Session], Any],
        **how: Any,
    ) -> tuple[Any, LoadResult]:
        """Make changes while a load runs.

        `changes` makes them when the load runs, over a connection of its own, and its result is returned; after `limit`
        s what still runs is ended; `how` are further arguments of Context.run().

        Raises:
            LabError: a change was refused.
            WorkloadError: the programs failed.
        """
        pool = ThreadPoolExecutor(1)
        try:
            with context.lab.second_connection() as other:
                running = pool.submit(context.run, processes, limit, **how)
                _wait_until_it_runs(running, other)
                made = changes(other)
                return made, running.result()
        finally:
            # After a refusal or Ctrl-C the load is not waited for: it ends with the lab.
            pool.shutdown(wait=False)

    def while_probing(
        self, context: Context, pairs: Sequence[tuple[int, int]], a_second: float, changes: Callable[[Session], Any]
    ) -> tuple[Any, list[PairLoss], LoadResult]:
        """Make changes while pairs of hosts send numbered datagrams, until a second after the last change.

        Each host sends to one, and each that hears also sends, `a_second` datagrams of each pair a laboratory second.

        Raises:
            LabError: a change was refused.
            WorkloadError: the programs failed.
        """
        topology = context.plan.topology
        named = [(topology.host_name(s), topology.host_name(d), host_ip(d)) for s, d in pairs]
        program = make_file_command(Path(probe_program.__file__).resolve())
        stop = f"loss-probe-{next(_NUMBERS)}.stop"
        # A file of the same folder tells where in the lab that is.
        folder = context.lab.write(f"{SHARED}/loss-probe.txt", "").parent
        processes = loss_probe.commands(named, a_second, program, str(folder / stop))

        def change_while_watched(other: Session) -> Any:
            # Should one never send, it ends, and the load fails by it.
            until = time.monotonic() + _START_LIMIT
            while other.count_files(f"{SHARED}/{stop}.*") < len(processes) and time.monotonic() < until:
                time.sleep(0.05)
            time.sleep(_BEFORE)
            made = changes(other)
            time.sleep(_AFTER)
            other.write(f"{SHARED}/{stop}", "")
            return made

        made, result = self.change_under_load(context, processes, _BEAT_LIMIT, change_while_watched)
        outputs = {name: output.stdout for name, output in result.outputs.items()}
        for name, text in outputs.items():
            context.keep_raw(f"{name}.json", text)
        # Clocks of different machines tell no one-way times.
        machine = context.lab.facts.machines.get
        losses = [
            loss if machine(loss.source) == machine(loss.destination) else replace(loss, one_way={})
            for loss in loss_probe.parse(named, a_second, outputs)
        ]
        return made, losses, result


def _drain(plan: Plan, rate: float) -> float:
    """Laboratory seconds for which the controller waits until frames on the paths of a plan have arrived."""
    return drain_seconds(plan.topology, plan.routes, rate, plan.scenario.links.queue_frames, plan.speeds)


def _wait_until_it_runs(running: Future[LoadResult], other: Session) -> None:
    until = time.monotonic() + _START_LIMIT
    while other.status().doing != "load":
        if running.done():
            running.result()
            raise WorkloadError("the load ended before it began")
        if time.monotonic() > until:
            raise WorkloadError(f"the load did not start in {_START_LIMIT:g} s")
        time.sleep(0.05)


def pair_opposite_hosts(hosts: int) -> list[tuple[int, int]]:
    """Each host with the one half the fabric on; every host sends and every host hears."""
    return [(host, (host + max(hosts // 2, 1)) % hosts) for host in range(hosts)]
