"""What was seen while paths changed: samples, and what is wrong with it."""

from __future__ import annotations

from collections.abc import Sequence

from testbed.model import Sample
from testbed.regulate.mover import Change
from testbed.run.checks.fidelity import Finding, Verdict
from testbed.run.loads.context import Context
from testbed.workloads.loss_probe import PairLoss


def loss_samples(context: Context, losses: Sequence[PairLoss], **more: str) -> list[Sample]:
    """Frames and connections of pairs of hosts."""
    sample = context.sample
    found = [
        sample("frames_sent", sum(loss.sent for loss in losses), "count", more),
        sample("frames_lost", sum(loss.lost for loss in losses), "count", more),
        sample("frames_twice", sum(loss.duplicates for loss in losses), "count", more),
        sample("frames_overtaken", sum(loss.disordered for loss in losses), "count", more),
        sample("connections", len(losses), "count", more),
        sample("connections_broken", sum(bool(loss.broken) for loss in losses), "count", more),
    ]
    for loss in losses:
        pair = {**more, "src": loss.source, "dst": loss.destination}
        found += [
            sample(f"one_way_{name}", loss.one_way[name], "s", pair)
            for name in ("min", "mean", "max")
            if name in loss.one_way
        ]
        found.append(sample("longest_gap", loss.longest_gap, "s", pair))
    return found


def change_findings(change: Change) -> list[Finding]:
    """Rules that are not what the plan says after a change make all figures void."""
    if not change.problems:
        return []
    count = len(change.problems)
    return [(Verdict.INVALID, f"after the change the switches differ from the plan: {change.problems[0]} ({count})")]


def loss_findings(losses: Sequence[PairLoss]) -> list[Finding]:
    """A change of paths must lose no frame and break no connection."""
    findings: list[Finding] = []
    lost, sent = sum(loss.lost for loss in losses), sum(loss.sent for loss in losses)
    if lost:
        worst = max(losses, key=lambda loss: loss.lost)
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
