"""What was seen while paths changed: samples, and what is wrong with it."""

from __future__ import annotations

from collections.abc import Sequence

from testbed.model import Sample
from testbed.regulate.mover import Change
from testbed.run.context import Context
from testbed.run.fidelity import Finding, Verdict
from testbed.workloads.beat import PairBeat


def beat_samples(context: Context, beats: Sequence[PairBeat], **more: str) -> list[Sample]:
    """Frames and connections of pairs of hosts."""
    sample = context.sample
    found = [
        sample("frames_sent", sum(beat.sent for beat in beats), "count", more),
        sample("frames_lost", sum(beat.lost for beat in beats), "count", more),
        sample("frames_twice", sum(beat.duplicates for beat in beats), "count", more),
        sample("frames_overtaken", sum(beat.disordered for beat in beats), "count", more),
        sample("connections", len(beats), "count", more),
        sample("connections_broken", sum(bool(beat.broken) for beat in beats), "count", more),
    ]
    for beat in beats:
        pair = {**more, "src": beat.source, "dst": beat.destination}
        found += [
            sample(f"one_way_{name}", beat.one_way[name], "s", pair)
            for name in ("min", "mean", "max")
            if name in beat.one_way
        ]
        found.append(sample("longest_gap", beat.longest_gap, "s", pair))
    return found


def change_findings(change: Change) -> list[Finding]:
    """Rules that are not what the plan says after a change make all figures void."""
    if not change.problems:
        return []
    count = len(change.problems)
    return [(Verdict.INVALID, f"after the change the switches differ from the plan: {change.problems[0]} ({count})")]


def beat_findings(beats: Sequence[PairBeat]) -> list[Finding]:
    """A change of paths must lose no frame and break no connection."""
    findings: list[Finding] = []
    lost, sent = sum(beat.lost for beat in beats), sum(beat.sent for beat in beats)
    if lost:
        worst = max(beats, key=lambda beat: beat.lost)
        when = ", ".join(f"{at:.2f}" for at in worst.lost_at[:3])
        pair = f"{worst.source}→{worst.destination}"
        findings.append((Verdict.FAIL, f"{lost} of {sent} frames were lost, most from {pair}, from {when} s on"))
    broken = [beat for beat in beats if beat.broken]
    if broken:
        one = broken[0]
        findings.append(
            (Verdict.FAIL, f"{len(broken)} connections broke; {one.source}→{one.destination}: {one.broken}")
        )
    twice = sum(beat.duplicates for beat in beats)
    if twice:
        findings.append((Verdict.FAIL, f"{twice} frames came more than once"))
    return findings
