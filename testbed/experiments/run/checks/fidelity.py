"""Whether a load's figures can be believed: pass, warn or invalid, with reasons.

Thresholds are documented in docs/fidelity.md; what they guard against is a figure that shows a busy processor.
"""

from __future__ import annotations

import bisect
import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Protocol

from testbed.base.messages import LATE_BINS, Snapshot
from testbed.base.units import format_number


class Verdict(IntEnum):
    """Ordered from good to bad, so that the worst of several is their maximum."""

    PASS = 0
    WARN = 1
    INVALID = 2
    FAIL = 3

    @property
    def word(self) -> str:
        """`pass`, `warn`, `invalid` or `fail`."""
        return self.name.lower()


Finding = tuple[Verdict, str]


class OverloadReason(str):
    """A reason that a larger dilation may remedy: the lab had not the time for what was asked of it."""

    __slots__ = ()


def too_slow(findings: Iterable[Finding]) -> bool:
    """Whether findings make figures void, and for no other reason than that the lab was too slow.

    Programs that failed in such a lab may have done so for the same reason.
    """
    reasons = [reason for verdict, reason in findings if verdict is Verdict.INVALID]
    return bool(reasons) and all(isinstance(reason, OverloadReason) for reason in reasons)


def is_cpu_limited(findings: Iterable[Finding]) -> bool:
    """Whether figures can be used with a reserve, and for no other reason than that the lab had little time left."""
    told = [(verdict, reason) for verdict, reason in findings if verdict is not Verdict.PASS]
    return bool(told) and all(
        verdict is Verdict.WARN and isinstance(reason, OverloadReason) for verdict, reason in told
    )


# Share of processor time that must have been idle, mean over the load's window.
_IDLE_WARN, _IDLE_INVALID = 0.10, 0.02
# Share of its time from which on a job is one that computes.
_COMPUTES = 0.5
# Share of time in which some task waited for a processor (PSI `some`).
_PRESSURE_WARN = 0.60
# How far below the prediction a lab without processor time left was itself the reason; and the share of a processor
# from which a daemon's thread has none left (it polls, so that it may use nearly as much when it keeps up).
_OVERLOAD_GAP, _DAEMON_FULL = 0.20, 0.85
# How far a job's figures may be behind what links allow to have met that: a lab can have added no more.
_BOUND_GAP = 0.20
# Share of frames lost where no queue was full.
_LOST_WARN, _LOST_INVALID = 0.0005, 0.005
# How far the system clock may be off after a load: step, s, and slew, s a second.
_CLOCK_JUMP, _CLOCK_SLEW = 0.02, 1e-3
# Inter-departure error that 99 %, or at least 90 %, of the groups of gaps must stay below; fewer groups say nothing.
_GAPS_WARN, _GAPS_INVALID, MIN_GAPS = 0.05, 0.10, 20
# How far the mean over flows, and the worst flow, may be from the prediction.
_MEAN_GAP = {"udp": 0.02, "tcp": 0.05}
_WORST_GAP = {"udp": 0.05, "tcp": 0.20}
_ABOVE_PREDICTION = 0.02
# Full frames' times that 99 % of what modelled switches deliver may be late. A host's card has three frames ahead: what
# is later can leave its link idle.
_LATE_WARN, _LATE_INVALID = 1.0, 3.0
# Share of the time for which they may be computed by nobody.
_STALLED_WARN, _STALLED_INVALID = 0.001, 0.01


class CountedLoad(Protocol):
    """What was counted before and after something."""

    @property
    def before(self) -> Snapshot:
        """Counters at the start."""

    @property
    def after(self) -> Snapshot:
        """Counters at the end."""


def processor(before: Snapshot, after: Snapshot) -> tuple[float, float | None]:
    """Idle share and pressure share between two snapshots; pressure is None where the kernel counts none."""
    total = max(after.total - before.total, 1)
    seconds = max(after.time - before.time, 1e-9)
    pressure = None
    if before.pressure is not None and after.pressure is not None:
        pressure = (after.pressure - before.pressure) / 1e6 / seconds
    return (after.idle - before.idle) / total, pressure


def network_share(before: Snapshot, after: Snapshot) -> float:
    """Share of all processors' time spent in interrupts between two snapshots: queues and links, mostly."""
    return (after.network - before.network) / max(after.total - before.total, 1)


def process_shares(before: Snapshot, after: Snapshot) -> dict[str, list[float]]:
    """Processor time of `switches` (each daemon), `programs` (the load) and `agent`; shares of one processor."""
    seconds = max(after.time - before.time, 1e-9)
    return {
        kind: [(new - old) / seconds for old, new in zip(before.processes[kind], ended, strict=True)]
        for kind, ended in after.processes.items()
    }


def judge_clock(before: Snapshot, after: Snapshot) -> list[Finding]:
    """The system clock must have run as evenly as the monotonic one; round-trip times rest on it."""
    seconds = after.time - before.time
    jump = (after.wall - before.wall) - seconds
    if abs(jump) <= _CLOCK_JUMP + _CLOCK_SLEW * seconds:
        return []
    way = "forward" if jump > 0 else "back"
    return [(Verdict.WARN, f"the system clock jumped {format_number(abs(jump), 3)} s {way} while the load ran")]


def judge_departures(errors: Sequence[float], *, confirmed: bool = False) -> list[Finding]:
    """Frames must leave a busy port at the rate of its link.

    Args:
        errors: |gap / ideal - 1| of groups of frames; too few of them say nothing.
        confirmed: as for judge_processor.
    """
    if confirmed or len(errors) < MIN_GAPS:
        return []
    _, ninth, last = quantiles(errors)
    most, all_but_few = (f"{format_number(100 * error, 2)} %" for error in (ninth, last))
    text = f"busy ports let frames go {most} (p90) and {all_but_few} (p99) off the rate of their links"
    if ninth > _GAPS_INVALID:
        return [(Verdict.INVALID, OverloadReason(text))]
    return [(Verdict.WARN, OverloadReason(text))] if last > _GAPS_WARN else []


def quantiles(values: Sequence[float]) -> tuple[float, float, float]:
    """Median, 90 % and 99 % quantile: the least value that so many do not exceed."""
    ordered = sorted(values)
    half, ninth, last = (ordered[int(share * len(ordered))] for share in (0.5, 0.9, 0.99))
    return half, ninth, last


def judge_processor(
    idle: float,
    pressure: float | None,
    *,
    confirmed: bool = False,
    behind: float | None = None,
    lone: bool = True,
    computing: float = 0.0,
) -> list[Finding]:
    """The machine must have had time left, unless the figures themselves show that the lab kept up.

    Args:
        idle: share of processor time that was idle.
        pressure: share of time in which some task waited for a processor.
        confirmed: the load has a prediction, meets it, and lost no frame outside a queue.
        behind: of a load that lost none, by which share its figures are behind what links allow; None = not known. A
            lab that keeps so near to that was not the reason of much.
        lone: whether it has also times of single messages. They are software's, and a machine without any time left
            makes them longer.
        computing: share of the time that the load's own programs computed. Where that is most of it, they and not the
            switches kept the processors busy; whether switches lacked them shows in the frames that were lost.
    """
    if confirmed:
        return []
    if behind is not None and behind <= _BOUND_GAP:
        if idle >= _IDLE_INVALID or not lone:
            return []
        near = f"what fills the links is within {100 * max(behind, 0):.0f} % of what they allow all the same"
        sentence = f"the processors were idle {100 * idle:.1f} % of the time; {near}, but times of single messages"
        return [(Verdict.WARN, f"{sentence} are a busy machine's")]
    found: list[Finding] = []
    if idle < _IDLE_INVALID:
        text = f"the processors were idle {100 * idle:.1f} % of the time; raise lab.dilation"
        found.append((Verdict.INVALID, OverloadReason(text)))
    elif idle < _IDLE_WARN:
        found.append((Verdict.WARN, OverloadReason(f"the processors were idle only {100 * idle:.1f} % of the time")))
    if pressure is not None and pressure > _PRESSURE_WARN:
        found.append((Verdict.WARN, OverloadReason(f"tasks waited for a processor {100 * pressure:.0f} % of the time")))
    if found and computing > _COMPUTES:
        shares = f"the ranks computed {100 * computing:.0f} % of the time, the processors were idle {100 * idle:.0f} %"
        found = [(Verdict.WARN, f"{shares}: what was measured is this machine's processors more than the links")]
    return found


def lateness(before: Snapshot, after: Snapshot) -> tuple[float, float] | None:
    """Median and 99 % quantile of a model's lateness between two snapshots, s, by the upper ends of the bins.

    None where nothing was late or in time, or the switches are no model.
    """
    counts = [
        new - old for old, new in zip(before.late.get("delivery", ()), after.late.get("delivery", ()), strict=True)
    ]
    total, ends = sum(counts), (*LATE_BINS, math.inf)
    if not total:
        return None
    sums = list(itertools.accumulate(counts))
    half, last = (ends[bisect.bisect_left(sums, share * total)] for share in (0.5, 0.99))
    return half, last


def judge_lateness(results: Sequence[CountedLoad], *, confirmed: bool = False) -> list[Finding]:
    """Modelled switches must give hosts their frames in time; who else kept the processors busy does not matter.

    Args:
        results: with the snapshots before and after.
        confirmed: as for judge_processor.
    """
    found: list[Finding] = []
    for result in results:
        stalled = result.after.stalled - result.before.stalled
        share = stalled / max(result.after.time - result.before.time, 1e-9)
        if share > _STALLED_WARN:
            text = f"nobody computed the switches for {format_number(100 * share, 2)} % of the time, {stalled:.3g} s"
            found.append((Verdict.INVALID if share > _STALLED_INVALID else Verdict.WARN, OverloadReason(text)))
        late, frame = lateness(result.before, result.after), result.after.frame_seconds
        if late is None or late[1] <= _LATE_WARN * frame:
            continue
        text = (
            f"1 % of the frames were delivered later than {late[1] * 1e3:.3g} ms after their time, "
            f"{late[1] / frame:.2g} times what a full frame takes"
        )
        if late[1] > _LATE_INVALID * frame:
            found.append((Verdict.INVALID, OverloadReason(f"{text}; raise lab.dilation")))
        elif not confirmed:
            found.append((Verdict.WARN, OverloadReason(text)))
    return found


def judge_machine(
    results: Sequence[CountedLoad],
    *,
    confirmed: bool = False,
    behind: float | None = None,
    lone: bool = True,
    computing: float = 0.0,
) -> list[Finding]:
    """Judge processors and clock over all repeats of a load: the busiest counts, and every jump.

    Args:
        results: with the snapshots before and after.
        confirmed: as for judge_processor.
        behind: likewise.
        lone: likewise.
        computing: likewise.
    """
    if any(result.after.late for result in results):
        late = judge_lateness(results, confirmed=confirmed or (behind is not None and behind <= _BOUND_GAP))
        return late + [finding for result in results for finding in judge_clock(result.before, result.after)]
    shares = [processor(result.before, result.after) for result in results]
    pressures = [pressure for _, pressure in shares if pressure is not None]
    found = judge_processor(
        min(idle for idle, _ in shares), max(pressures, default=None),
        confirmed=confirmed, behind=behind, lone=lone, computing=computing,
    )  # fmt: skip
    return found + [finding for result in results for finding in judge_clock(result.before, result.after)]


def judge_overload(results: Sequence[CountedLoad], ratios: Sequence[float]) -> list[Finding]:
    """Far below the prediction with no processor time left: it was the lab that was too slow, not the fabric.

    Without a frame lost outside a queue that happens to TCP, which adapts to whatever it finds.

    Args:
        results: with the snapshots before and after.
        ratios: goodput of each flow as a share of its prediction.
    """
    below = 1 - sum(ratios) / len(ratios) if ratios else 0.0
    idle = min(processor(result.before, result.after)[0] for result in results)
    daemon = max(
        (share for result in results for share in process_shares(result.before, result.after)["switches"]), default=0.0
    )
    if below <= _OVERLOAD_GAP or (idle >= _IDLE_WARN and daemon <= _DAEMON_FULL):
        return []
    who = f"a daemon of the switches used {100 * daemon:.0f} % of a processor, and one thread has no more"
    if idle < _IDLE_WARN:
        who = f"the processors were idle {100 * idle:.1f} % of the time"
    text = f"the lab was too slow: the mean of the flows is {100 * below:.0f} % below the prediction while {who}"
    return [(Verdict.INVALID, OverloadReason(f"{text}; raise lab.dilation"))]


def judge_losses(lost: Mapping[str, int], frames: int) -> list[Finding]:
    """No frame may vanish outside a queue.

    Args:
        lost: where → frames lost there.
        frames: frames sent into links.
    """
    total = sum(lost.values())
    share = total / max(frames, 1)
    if share > _LOST_WARN:
        verdict = Verdict.INVALID if share > _LOST_INVALID else Verdict.WARN
        places = ", ".join(f"{count} {where}" for where, count in lost.items() if count)
        text = f"{total} of {frames} frames were lost outside the queues ({format_number(100 * share, 2)} %): {places}"
        return [(verdict, OverloadReason(text))]
    return []


def judge_prediction(protocol: str, measured: Iterable[float], predicted: Iterable[float]) -> list[Finding]:
    """Goodput must be near what the plan predicts; above it something else was measured."""
    ratios = [m / p for m, p in zip(measured, predicted, strict=True) if p > 0]
    if not ratios:
        return []
    mean, worst, best = sum(ratios) / len(ratios) - 1, min(ratios) - 1, max(ratios) - 1
    found: list[Finding] = []
    if best > _ABOVE_PREDICTION + _WORST_GAP[protocol] or mean > _ABOVE_PREDICTION:
        found.append((Verdict.WARN, f"flows are up to {100 * best:.1f} % above the prediction"))
    if mean < -_MEAN_GAP[protocol]:
        found.append((Verdict.WARN, f"the mean of the flows is {-100 * mean:.1f} % below the prediction"))
    if worst < -_WORST_GAP[protocol]:
        found.append((Verdict.WARN, f"the slowest flow is {-100 * worst:.1f} % below its prediction"))
    return found


@dataclass(frozen=True, slots=True)
class Judgement:
    """A verdict with its reasons."""

    verdict: Verdict
    reasons: tuple[str, ...]

    @classmethod
    def merge(cls, findings: Iterable[Finding]) -> Judgement:
        """The worst verdict and every reason, each once."""
        findings = list(findings)
        reasons = tuple(dict.fromkeys(reason for _, reason in findings))
        return cls(max((verdict for verdict, _ in findings), default=Verdict.PASS), reasons)
