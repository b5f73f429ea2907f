"""What every load runner gets and gives back."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from testbed.base.errors import DeadlockError, WorkloadError
from testbed.base.ethernet import VLAN_TAG, wire_bits
from testbed.base.messages import Disturbance, Disturbed, FrameCounts, LoadRequest, Output, Process, Snapshot
from testbed.base.model import LearningPlan, Sample
from testbed.base.units import TimeScale
from testbed.engines.session import Session
from testbed.experiments.run.checks.fidelity import (
    MIN_GAPS,
    Finding,
    Verdict,
    judge_losses,
    lateness,
    network_share,
    process_shares,
    processor,
    quantiles,
)
from testbed.experiments.run.checks.telemetry_samples import departure_errors, queue_figures, read_record
from testbed.fabric.verify.deadlock import hop_name
from testbed.planning import Plan
from testbed.planning.proof import deadlock_word
from testbed.planning.rates import channel_rates, imbalance
from testbed.results.samples import FailureRepeat
from testbed.results.telemetry import Telemetry
from testbed.scenario.workloads.spec import Times


@dataclass(frozen=True, slots=True)
class Context:
    """One load of a run."""

    plan: Plan  # what the lab was built from, at the dilation it has now
    lab: Session  # the lab
    labels: Mapping[str, str]  # labels that all samples of this load carry
    keep_raw: Callable[[str, str], None]  # stores a tool's raw output under a file name
    progress: Callable[[str], None]  # called with what is going on
    moving: bool = False  # whether the lab is carried over to other plans meanwhile, so that this one predicts nothing

    @property
    def scale(self) -> TimeScale:
        """Conversion of laboratory figures."""
        return TimeScale(self.plan.scenario.lab.chosen_dilation)

    def sample(
        self, metric: str, lab_value: float, unit: str, labels: Mapping[str, str], predicted: float | None = None
    ) -> Sample:
        """Return a sample in real-world units from a laboratory figure; `predicted` is in real-world units already."""
        return Sample(metric, self.scale.to_real(lab_value, unit), unit, {**self.labels, **labels}, predicted)

    def laboratory(self, metric: str, lab_value: float, unit: str, labels: Mapping[str, str]) -> Sample:
        """Return a sample that stays a laboratory figure, as its metric says."""
        return Sample(metric, lab_value, unit, {**self.labels, **labels})

    def real_world(self, sample: Sample, **labels: str) -> Sample:
        """Return a laboratory sample in real-world units, with this load's labels."""
        value = self.scale.to_real(sample.value, sample.unit)
        return replace(sample, value=value, labels={**self.labels, **sample.labels, **labels})

    def run(
        self,
        processes: Sequence[Process],
        limit: float,
        window: tuple[float, float] | None = None,
        *,
        watched: bool = False,
        departures: float | None = None,
        partial: bool = False,
        timeline: Sequence[Disturbance] = (),
        failure: Callable[[str], str] = lambda text: "",
    ) -> LoadResult:
        """Run processes in the lab.

        Args:
            processes: of the load.
            limit: s after which what still runs is ended.
            window: s after each start between which counters are taken; None = around everything.
            watched: whether the scenario's telemetry is recorded meanwhile.
            departures: s after the last start at which the busiest ports are watched frame by frame; None = never.
            partial: whether some may fail; the result says which.
            timeline: what dies and comes back meanwhile.
            failure: what the output of a process that failed says of it; empty = its last line shall say it.

        Raises:
            WorkloadError: some did not end in time, or failed; their output is kept.
            DeadlockError: the fabric came to a stop.
        """
        interval = self.plan.scenario.lab.telemetry / 1000 if watched else 0.0
        seen = self.lab.run_load(LoadRequest(tuple(processes), limit, window, interval, departures, tuple(timeline)))
        if seen.deadlock:
            raise DeadlockError(self._deadlock(seen.deadlock))
        failed = {}
        for name, output in seen.outputs.items():
            if output.code != 0:
                self.keep_raw(f"failed-{name}.txt", output.stdout + output.stderr)
                said = failure(f"{output.stdout}\n{output.stderr}") or output.stderr.strip() or output.stdout.strip()
                last = (said or "it printed nothing").splitlines()[-1]
                how = f"did not end in {limit:g} s" if name in seen.timed_out else _ending(output.code)
                failed[name] = f"{how}: {last}"
        telemetry = None
        if seen.record:
            telemetry = read_record(self.plan.wiring, self.lab.read(seen.record), seen.start, seen.window)
        if failed and not partial:
            first = next(iter(failed))
            raise WorkloadError(f"{len(failed)} of {len(processes)} processes failed; {first}: {failed[first]}")
        return LoadResult(
            seen.outputs, seen.before, seen.after, seen.seconds, failed, telemetry, seen.no_matrix, seen.start,
            seen.disturbed, seen.clock_error, seen.ahead,
        )  # fmt: skip

    def _deadlock(self, cycle: Sequence[int]) -> str:
        topology, layers = self.plan.wiring, self.plan.routes.layers
        names = [hop_name(topology, hop, layers) for hop in cycle]
        word = deadlock_word(self.plan.scenario)
        return f"{word}: {' waits for '.join([*names, names[0]])}; every one of them is paused for ever"

    def link_use(self, result: LoadResult, predicted: Mapping[int, float], **labels: str) -> list[Sample]:
        """Share of each channel's rate that was used between the two snapshots; of a bundle, that of all members.

        Args:
            result: of run().
            predicted: channel → predicted share, where there is a prediction.
            labels: further labels.
        """
        topology, bundles = self.plan.topology, self.plan.bundles
        rates = np.broadcast_to(channel_rates(self.plan), len(topology.channel_source)) / self.scale.dilation
        samples, tag = [], self.tag
        for channel in range(len(topology.channel_source)):
            members = (channel,) if bundles is None else bundles.channels(channel)
            share = sum(result.wire_rate(member, tag) for member in members) / float(rates[channel])
            labels_of = {**labels, "channel": topology.channel_name(channel)}
            samples.append(self.sample("link_use", share, "ratio", labels_of, predicted.get(channel)))
        expected = imbalance(list(predicted.values()))
        uneven = imbalance([sample.value for sample in samples])
        return samples if uneven is None else [*samples, self.sample("link_imbalance", uneven, "", labels, expected)]

    @property
    def tag(self) -> int:
        """Bytes of the tag that frames have between switches."""
        return VLAN_TAG if self.plan.vlans.tagged_trunks else 0

    def machine(self, result: LoadResult, **labels: str) -> list[Sample]:
        """Samples of the processors while the load ran; those of processes are shares of one processor."""
        idle, pressure = processor(result.before, result.after)
        late = lateness(result.before, result.after)
        samples = [
            self.sample("cpu_idle", idle, "ratio", labels),
            self.sample("cpu_network", network_share(result.before, result.after), "ratio", labels),
        ]
        if pressure is not None:
            samples.append(self.sample("cpu_pressure", pressure, "ratio", labels))
        for quantile, value in zip(("p50", "p99"), late or (), strict=False):
            samples.append(self.sample("lateness", value, "s", {**labels, "quantile": quantile}))
        delivered = result.after.delivered - result.before.delivered
        if delivered > 0:
            transit = (result.after.transit - result.before.transit) / delivered
            samples.append(self.sample("latency_mean", transit, "s", labels))
        for kind, shares in process_shares(result.before, result.after).items():
            for number, share in enumerate(shares, 1):
                which = {"daemon": str(number)} if len(shares) > 1 else {}
                samples.append(self.sample(f"cpu_{kind}", share, "ratio", {**labels, **which}))
        return samples

    def queues(self, result: LoadResult, **labels: str) -> list[Sample]:
        """Samples of each port's queue over the counted time; none without telemetry."""
        if result.telemetry is None:
            return []
        return [
            self.sample(metric, value, "frames", {**labels, **of})
            for metric, of, value in queue_figures(self.plan.wiring, result.telemetry, 0)
        ]

    def departures(self, telemetry: Telemetry, **labels: str) -> list[Sample]:
        """Samples of the gaps between frames of busy ports; none where too few were seen."""
        errors = departure_errors(telemetry, 0, self.tag).tolist()
        if len(errors) < MIN_GAPS:
            return []
        return [
            self.sample("departure_error", value, "ratio", {**labels, "quantile": name})
            for name, value in zip(("p50", "p90", "p99"), quantiles(errors), strict=True)
        ]


def _ending(code: int | None) -> str:
    return f"killed by signal {-code}" if code is not None and code < 0 else f"exit code {code}"


@dataclass(frozen=True, slots=True)
class LoadResult:
    """What came back from the lab."""

    outputs: Mapping[str, Output]  # process id → what became of it
    before: Snapshot  # counters at the start of the window
    after: Snapshot  # counters at its end
    seconds: float  # laboratory seconds the load took
    failed: Mapping[str, str] = field(default_factory=dict)  # process id → how it failed
    telemetry: Telemetry | None = None  # what was recorded meanwhile, if anything
    no_matrix: str = ""  # why that has no traffic matrix; empty where it has one
    start: float = 0.0  # when the last program had started; s, monotonic
    disturbed: Sequence[Disturbed] = ()  # when each event of the timeline was carried out
    clock_error: float = 0.0  # s that times of different machines may be off beside each other
    # host → s that its clock is ahead of the one of all these times; empty where it is the same
    ahead: Mapping[str, float] = field(default_factory=dict)

    def wire_rate(self, channel: int, tag: int = 0) -> float:
        """Laboratory bit/s that a channel of links, with tags of so many bytes, carried between the snapshots."""
        old, new = self.before.channels[channel], self.after.channels[channel]
        began, ended = (one.counted[channel] if one.counted else one.time for one in (self.before, self.after))
        return float(wire_bits(new.bytes - old.bytes, new.frames - old.frames, tag) / (ended - began))


@dataclass(slots=True)
class LoadOutcome:
    """What a load gave."""

    samples: list[Sample] = field(default_factory=list)  # in real-world units
    findings: list[Finding] = field(default_factory=list)  # about fidelity
    telemetry: list[Telemetry] = field(default_factory=list)  # of each repeat that was recorded
    no_matrix: str = ""  # why that has no traffic matrix; empty where it has one
    # laboratory s that times of different machines may be off beside each other; 0 on one machine
    clock_error: float = 0.0
    failures: list[FailureRepeat] = field(default_factory=list)  # of each repeat with failures, what they cost
    # of each repeat with links that changed, when they did, as plain data
    changes: list[dict[str, object]] = field(default_factory=list)
    times: Times | None = None  # laboratory seconds that did not count, and that did, where the load has such

    def add_recording(self, result: LoadResult) -> None:
        """Take over what was recorded beside a repeat."""
        self.clock_error = max(self.clock_error, result.clock_error)
        if result.telemetry is not None:
            self.telemetry.append(result.telemetry)
            self.no_matrix = result.no_matrix


# Looks at the counters after a load: a busy machine carries those of the switches' rules over late.
_LOOKS, _NEXT_LOOK = 2, 1.2  # the second is s after the first


class FrameLedger:
    """Counts frames along their way: what got lost outside a queue since it was opened."""

    def __init__(self, context: Context) -> None:
        self._lab = context.lab
        self._moving = context.moving
        self._before = self._lab.frames()

    def close(self) -> list[Finding]:
        """Findings since the ledger was opened; what is missing at the last look is lost."""
        found: list[Finding] = []
        for look in range(_LOOKS):
            if look:
                time.sleep(_NEXT_LOOK)
            found = self._find_losses(self._lab.frames())
            if not found:
                break
        return found

    def _find_losses(self, after: FrameCounts) -> list[Finding]:
        lost = {where: count - self._before.lost[where] for where, count in after.lost.items()}
        if self._moving:
            # A rule that is removed takes its count along, from one place and to the next: their sum stays right.
            lost = {"anywhere": sum(lost.values())}
        lost = {where: max(0, count) for where, count in lost.items()}
        return judge_losses(lost, after.arrived - self._before.arrived)


def count_flooded(plan: Plan, lab: Session) -> int:
    """Frames sent along a VLAN's tree so far, counted at every switch on it; 0 where nothing is learned."""
    return lab.frames().flooded if isinstance(plan.vlans, LearningPlan) else 0


def flood_findings(plan: Plan, before: int, after: int) -> list[Finding]:
    """A warning where frames were flooded while loads ran, unless hosts may ask for addresses by broadcasts.

    Args:
        plan: what ran.
        before: count as below before the loads.
        after: count as below after them.
    """
    if not isinstance(plan.vlans, LearningPlan) or after == before or plan.scenario.lab.arp == "broadcast":
        return []
    why = f"switches forget after {plan.vlans.ageing} s" if plan.vlans.ageing else "switches never forget here"
    return [
        (Verdict.WARN, f"frames were flooded {after - before} times while loads ran, at all switches together; {why}")
    ]
