"""Failures while a load runs: what dies when, who is watched, and what it cost.

All times are laboratory seconds as they are: links are slowed down by the dilation, the programs of switches and
controller are not.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal

import numpy as np

from testbed.base.errors import WorkloadError
from testbed.base.messages import ControllerStatus, Disturbance, Process
from testbed.base.model import Sample, Topology, host_ip
from testbed.experiments.run.checks.fidelity import judge_clock
from testbed.experiments.run.loads.context import Context, LoadOutcome, LoadResult
from testbed.experiments.run.loads.failure_cost import ON_THE_WAY, assess
from testbed.experiments.run.loads.link_changes import link_changes
from testbed.fabric.transition.steps import drain_seconds
from testbed.planning.failover.events import Change
from testbed.planning.failover.failure_effects import Outlook
from testbed.planning.failures import failure_outlooks, failures_of_load
from testbed.results.samples import Arrivals, Failure, Repeat
from testbed.scenario.workloads import probe
from testbed.scenario.workloads.probe import Passage
from testbed.scenario.workloads.spec import Probe

DEFAULT_PAIRS, DEFAULT_RATE = 4, 1000
_SPARE_SECONDS = 15.0
_RECOVERY_LIMIT, _REPAIR_LIMIT, _POLL = 20.0, 30.0, 0.1
# Of the series that reports draw; s.
BIN = 0.02


@dataclass(frozen=True, slots=True)
class FailureWatch:
    """The failures of one load."""

    context: Context  # the load
    changes: Sequence[Change]  # its events
    outlooks: Sequence[Outlook]  # what each leaves, worked out beforehand
    pairs: Sequence[tuple[int, int]]  # hosts between which probes run
    rate: int  # datagrams a second of each
    seconds: float  # laboratory seconds that the load takes
    on_the_way: float = ON_THE_WAY  # laboratory seconds that a datagram can be under way

    @classmethod
    def from_load(
        cls,
        context: Context,
        seconds: float,
        pairs: int = DEFAULT_PAIRS,
        rate: int = DEFAULT_RATE,
        *,
        busy: bool = False,
    ) -> FailureWatch:
        """Work out what the events of a load leave, and whom to watch; `busy` where other frames fill the queues."""
        number = int(context.labels["load"]) - 1
        context.progress("working out what each failure leaves")
        outlooks = failure_outlooks(context.plan)[number]
        if context.plan.scenario.simulator.flow_control != "none":
            for words in sorted({cycle.words for outlook in outlooks for cycle in outlook.cycles}):
                context.progress(f"{words} paths together can deadlock while both are in use")
        watched = watched_pairs(context.plan.topology, outlooks, pairs)
        on_the_way = ON_THE_WAY
        if busy:
            plan = context.plan
            links = plan.scenario.links
            lab_rate = context.scale.lab_rate(links.rate)
            on_the_way = max(
                on_the_way, drain_seconds(plan.topology, plan.routes, lab_rate, links.queue_frames, plan.speeds)
            )
        return cls(context, failures_of_load(context.plan, number), outlooks, watched, rate, seconds, on_the_way)

    def processes(self) -> list[Process]:
        """The probes: receivers first."""
        name = self.context.plan.topology.host_name
        names = [(name(source), name(end), host_ip(end)) for source, end in self.pairs]
        receivers, senders = probe.commands(names, self.rate, self.seconds)
        return [*receivers, *senders]

    def cuts_off(self, pair: tuple[int, int]) -> bool:
        """Whether some event leaves nothing that connects a pair, in either direction."""
        return any(outlook.cut[pair] for outlook in self.outlooks)

    @contextmanager
    def repair_on_error(self) -> Iterator[None]:
        """Bring up what is dead when the load of the block fails, or comes to a stop: others follow."""
        try:
            yield
        except WorkloadError:
            self._repair()
            raise

    def close(self, result: LoadResult, outcome: LoadOutcome, repeat: str = "") -> None:
        """Wait until the last failure is overcome, repair what is still dead, and add what all of it cost."""
        labels: Repeat = {"repeat": repeat} if repeat else {}
        status = self._wait(lambda told: told.phase.startswith("steady"), _RECOVERY_LIMIT)
        passages = [self._passage(number, result) for number in range(len(self.pairs))]
        self._repair()
        found = assess(self.context.plan.topology, self.outlooks, self.pairs, passages, result, status, self.on_the_way)
        outcome.findings += found.findings
        for entry in found.events:
            outcome.samples += self._samples(entry, repeat)
        outcome.failures.append(
            {
                **labels,
                "seconds": self.seconds,
                "rate": self.rate,
                "events": found.events,
                "pairs": [self._series(pair, passage, result.start)
                          for pair, passage in zip(self.pairs, passages, strict=True)],
            }
        )  # fmt: skip

    def _passage(self, number: int, result: LoadResult) -> Passage:
        sender, receiver = (result.outputs[f"probe-{end}-{number}"].stdout for end in ("sender", "receiver"))
        name = self.context.plan.topology.host_name
        source, end = (result.ahead.get(name(host), 0.0) for host in self.pairs[number])
        return probe.parse(sender, receiver, (source, end))

    def _samples(self, entry: Failure, repeat: str) -> list[Sample]:
        of_event = {**self.context.labels, **({"repeat": repeat} if repeat else {}), "event": entry["event"]}
        samples = [Sample("frames_lost", float(entry["frames_lost"]), "count", of_event)]
        metrics: tuple[Literal["detection", "takeover", "recovery", "manager_takeover"], ...] = (
            "detection", "takeover", "recovery", "manager_takeover"
        )  # fmt: skip
        for metric in metrics:
            if (seconds := entry[metric]) is not None:
                samples.append(Sample(metric, float(seconds), "s", of_event))
        return samples

    def _series(self, pair: tuple[int, int], passage: Passage, start: float) -> Arrivals:
        """Datagrams sent and arrived of a pair by the time of sending, in steps of BIN."""
        name = self.context.plan.topology.host_name
        edges = np.arange(0.0, self.seconds + BIN, BIN)
        arrived = passage.sent[~np.isnan(passage.received)]
        return {
            "src": name(pair[0]),
            "dst": name(pair[1]),
            "sent": np.histogram(passage.sent - start, edges)[0].tolist(),
            "arrived": np.histogram(arrived - start, edges)[0].tolist(),
        }

    def _repair(self) -> None:
        """Bring up whatever the events have left dead, and wait until the first tables are back."""
        last = self.outlooks[-1].failed
        if last.has_failed:
            self.context.progress("repairing what is still dead")
            links, hosts, switches = (np.flatnonzero(dead).tolist() for dead in (last.links, last.hosts, last.switches))
            channels = tuple(2 * link + end for link in links for end in (0, 1))
            self.context.lab.disturb(Disturbance(True, channels, tuple(hosts), tuple(switches)))
        managers = [change for change in self.changes if change.manager]
        if managers and managers[-1].event.action == "kill":
            self.context.lab.disturb(Disturbance(True, manager=True))
        self._wait(lambda told: told.phase == "steady" and told.in_step == len(told.switches), _REPAIR_LIMIT)

    def _wait(self, holds: Callable[[ControllerStatus], bool], limit: float) -> ControllerStatus:
        until = time.monotonic() + limit
        while True:
            status = self.context.lab.controller()
            if holds(status):
                return status
            if time.monotonic() > until:
                why = status.problem or f'it is in the phase "{status.phase}"'
                raise WorkloadError(f"the controller did not overcome the failures in {limit:g} s: {why}")
            time.sleep(_POLL)


def timeline(topology: Topology, changes: Sequence[Change]) -> list[Disturbance]:
    """What the lab is to carry out."""
    return [disturbance(topology, change) for change in changes]


def disturbance(topology: Topology, change: Change) -> Disturbance:
    """What is set down: one port; what is set up: both ends; what changes; and when."""
    if not change.fails:
        return Disturbance(up=True, at=change.event.at, links=link_changes(change))
    up = change.event.action in ("up", "start")
    if change.manager:
        return Disturbance(up, at=change.event.at, manager=True)
    ports = {(int(topology.channel_source[c]), int(topology.out_port[c])): c for c in range(len(topology.out_port))}
    channels = [ports[end] for end in change.ends if end in ports]
    if change.event.action == "up":
        channels += [2 * link + end for link in change.links for end in (0, 1)]
    return Disturbance(up, tuple(dict.fromkeys(channels)), change.hosts, change.switches, change.event.at)


def watched_pairs(topology: Topology, outlooks: Sequence[Outlook], most: int) -> list[tuple[int, int]]:
    """Pairs to watch: of each event in turn one that it hits, or cuts off where it hits none; few of one source."""
    of_event = []
    for outlook in outlooks:
        chosen = outlook.diversion.hit if outlook.diversion.hit.any() else outlook.cut
        rows = [(int(source), int(end)) for source, end in zip(*np.nonzero(chosen), strict=True)]
        # The first of every source, then the second of every source, and so on.
        order: dict[int, int] = {}
        ranked = []
        for source, end in rows:
            order[source] = order.get(source, -1) + 1
            ranked.append((order[source], source, end))
        of_event.append([(source, end) for _, source, end in sorted(ranked)])
    found: dict[tuple[int, int], None] = {}
    for place in range(max(map(len, of_event), default=0)):
        for rows in of_event:
            if place < len(rows):
                found.setdefault(rows[place])
        if len(found) >= most:
            break
    if not found and topology.host_count > 1:
        found[0, topology.host_count - 1] = None
    return list(found)[:most]


def run_probe(context: Context, spec: Probe) -> LoadOutcome:
    """Let the events of a load happen while datagrams are sent, and add up what was lost."""
    outcome = LoadOutcome()
    watch = FailureWatch.from_load(context, spec.seconds, spec.pairs, spec.rate)
    context.progress(f"{len(watch.pairs)} pairs watched, {len(watch.changes)} events in {spec.seconds} s")
    events = timeline(context.plan.topology, watch.changes)
    with watch.repair_on_error():
        result = context.run(watch.processes(), spec.seconds + _SPARE_SECONDS, watched=True, timeline=events)
    outcome.add_recording(result)
    watch.close(result, outcome)
    outcome.samples += context.machine(result)
    outcome.findings += judge_clock(result.before, result.after)
    return outcome
