"""What changes of paths came to: figures of a load before and after, and losses meanwhile."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from testbed.base.model import Sample
from testbed.dataplane.predict import Least
from testbed.experiments.regulate.plan_changes import Change
from testbed.experiments.run.checks.fidelity import Finding, Verdict
from testbed.experiments.run.checks.wire_bounds import mark_unheld
from testbed.experiments.run.loads.context import Context
from testbed.planning.wire_time import zero_load_latency
from testbed.scenario.workloads.loss_probe import SIZE, PairLoss

# What a load is judged by: times of jobs, and rates of flows.
_TIMES = ("npb_lab_time", "hpl_lab_time", "mpi_alltoall_time", "script_lab_time", "rtt_mean")
# What all switches took while it ran.
ENERGY = "switch_energy"
# A load that takes so much longer is told of.
_SLOWER = 0.05
_RATES = ("goodput_mean",)
_SAID = ("protocol", "pattern", "kernel", "class", "bytes")


@dataclass(frozen=True, slots=True)
class BeforeAfter:
    """One figure of a load in both states."""

    title: str  # of the load, with what tells figures of its metric apart
    metric: str  # as in the samples
    unit: str  # likewise
    before: tuple[float, ...]  # the figure of each round in the first state
    after: tuple[float, ...]  # likewise in the second

    @property
    def ratio(self) -> float:
        """Median after over median before."""
        return statistics.median(self.after) / statistics.median(self.before)

    @property
    def is_time(self) -> bool:
        """Whether less is better."""
        return self.metric not in _RATES

    @property
    def slowdown(self) -> float:
        """By which share of the first state the second one is worse; negative where it is better."""
        return self.ratio - 1 if self.is_time else 1 / self.ratio - 1

    @property
    def is_slower(self) -> bool:
        """Whether the load was slower in the second state, by more than chance explains."""
        return self.metric != ENERGY and self.slowdown > _SLOWER and not self.within_noise

    @property
    def within_noise(self) -> bool:
        """Whether the two overlap, so that the difference may be chance."""
        return max(self.before) >= min(self.after) and max(self.after) >= min(self.before)

    @property
    def spread(self) -> float:
        """Largest minus least of the first state, as a share of its median."""
        return (max(self.before) - min(self.before)) / statistics.median(self.before)


def before_and_after(samples: Sequence[Sample], before: str, after: str) -> list[BeforeAfter]:
    """Pair the figures of loads by their labels `links` and `round`; pairs of hosts count by their mean.

    Loads of one title are told apart by their place in a round: the second one's title ends in "(2)".
    """
    found: dict[tuple[str, str, str], dict[str, dict[str, list[float]]]] = {}
    loads: dict[tuple[str, str, str, str], list[str]] = {}  # of a figure, in one state and round
    for sample in samples:
        state, turn = sample.labels.get("links"), sample.labels.get("round", "")
        if sample.metric not in (*_TIMES, *_RATES, ENERGY) or state not in (before, after):
            continue
        # A kernel's job is named after it.
        said = _SAID if "kernel" in sample.labels else ("job", *_SAID)
        title = " ".join([sample.labels.get("kind", ""), *(sample.labels[key] for key in said if key in sample.labels)])
        alike, load = loads.setdefault((title, sample.metric, state, turn), []), sample.labels.get("load", "")
        if load not in alike:
            alike.append(load)
        place = alike.index(load) + 1
        key = (f"{title} ({place})" if place > 1 else title, sample.metric, sample.unit)
        found.setdefault(key, {before: {}, after: {}})[state].setdefault(turn, []).append(sample.value)
    return [
        BeforeAfter(
            *key, *(tuple(statistics.fmean(values) for values in of_state[state].values()) for state in (before, after))
        )
        for key, of_state in found.items()
        if of_state[before] and of_state[after]
    ]


def slower_findings(compared: Sequence[BeforeAfter], how: str) -> list[Finding]:
    """Warnings about loads that took longer; `how` tells in what the second state was different."""
    return [
        (Verdict.WARN, f"{one.title} took {100 * one.slowdown:.1f} % longer {how}") for one in compared if one.is_slower
    ]


def loss_samples(context: Context, losses: Sequence[PairLoss], **more: str) -> list[Sample]:
    """Frames and connections of pairs of hosts.

    Times are those of frames of which most find each port idle, so that they are marked where the lab's ports do not
    hold such.
    """
    sample, topology = context.sample, context.plan.topology
    hosts = {topology.host_name(host): host for host in range(topology.host_count)}
    found = [
        sample("frames_sent", sum(loss.sent for loss in losses), "count", more),
        sample("frames_lost", sum(loss.lost_count for loss in losses), "count", more),
        sample("frames_twice", sum(loss.duplicates for loss in losses), "count", more),
        sample("frames_overtaken", sum(loss.disordered for loss in losses), "count", more),
        sample("connections", len(losses), "count", more),
        sample("connections_broken", sum(bool(loss.broken) for loss in losses), "count", more),
    ]
    for loss in losses:
        pair = {**more, "src": loss.source, "dst": loss.destination}
        least = _one_way(context, hosts[loss.source], hosts[loss.destination])
        found += [
            mark_unheld(sample(f"one_way_{name}", loss.one_way[name], "s", pair), least)
            for name in ("min", "mean", "max")
            if name in loss.one_way
        ]
        found.append(sample("longest_gap", loss.longest_gap, "s", pair))
    return found


def _one_way(context: Context, source: int, destination: int) -> Least:
    """What a numbered datagram needs on the wires."""
    plan, exact = context.plan, context.lab.facts.shapes_idle_ports
    return Least.from_load(lambda held: zero_load_latency(plan, source, destination, SIZE, held=held), exact=exact)


def change_findings(change: Change) -> list[Finding]:
    """Rules that are not what the plan says after a change make all figures void."""
    if not change.problems:
        return []
    count = len(change.problems)
    return [(Verdict.INVALID, f"after the change the switches differ from the plan: {change.problems[0]} ({count})")]


def loss_findings(losses: Sequence[PairLoss]) -> list[Finding]:
    """A change of paths must lose no frame and break no connection."""
    findings: list[Finding] = []
    lost, sent = sum(loss.lost_count for loss in losses), sum(loss.sent for loss in losses)
    if lost:
        worst = max(losses, key=lambda loss: loss.lost_count)
        when = ", ".join(f"{at:.2f}" for at in worst.lost_at[:3])
        pair = f"{worst.source}→{worst.destination}"
        findings.append((Verdict.FAIL, f"{lost} of {sent} frames were lost, most from {pair}, from {when} s on"))
    broken = [loss for loss in losses if loss.broken]
    if broken:
        one = broken[0]
        findings.append(
            (Verdict.FAIL, f"{len(broken)} connections broke; {one.source}→{one.destination}: {one.broken}")
        )
    twice = sum(loss.duplicates for loss in losses)
    if twice:
        findings.append((Verdict.FAIL, f"{twice} frames came more than once"))
    return findings
