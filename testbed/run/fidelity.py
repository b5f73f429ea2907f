"""Whether a load's figures can be believed: pass, warn or invalid, with reasons.

Thresholds are documented in docs/fidelity.md; what they guard against is a figure that shows a busy processor.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Any


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

# Share of processor time that must have been idle, mean over the load's window.
_IDLE_WARN, _IDLE_INVALID = 0.10, 0.02
# Share of its time from which on a job is one that computes.
_COMPUTES = 0.5
# Share of time in which some task waited for a processor (PSI `some`).
_PRESSURE_WARN = 0.60
# Share of frames lost where no queue was full.
_LOST_WARN, _LOST_INVALID = 0.0005, 0.005
# How far the mean over flows, and the worst flow, may be from the prediction.
_MEAN_GAP = {"udp": 0.02, "tcp": 0.05}
_WORST_GAP = {"udp": 0.05, "tcp": 0.20}
_ABOVE_PREDICTION = 0.02


def processor(before: Mapping[str, Any], after: Mapping[str, Any]) -> tuple[float, float | None]:
    """Idle share and pressure share between two snapshots; pressure is None where the kernel counts none."""
    total = max(after["total"] - before["total"], 1)
    seconds = max(after["time"] - before["time"], 1e-9)
    pressure = None
    if before["pressure"] is not None and after["pressure"] is not None:
        pressure = (after["pressure"] - before["pressure"]) / 1e6 / seconds
    return (after["idle"] - before["idle"]) / total, pressure


def judge_processor(
    idle: float, pressure: float | None, *, confirmed: bool = False, computing: float = 0.0
) -> list[Finding]:
    """The machine must have had time left, unless the figures themselves show that the lab kept up.

    Args:
        idle: share of processor time that was idle.
        pressure: share of time in which some task waited for a processor.
        confirmed: the load has a prediction, meets it, and lost no frame outside a queue.
        computing: share of the time that the load's own programs computed. Where that is most of it, they and not the
            switches kept the processors busy; whether switches lacked them shows in the frames that were lost.
    """
    if confirmed:
        return []
    found: list[Finding] = []
    if idle < _IDLE_INVALID:
        found.append((Verdict.INVALID, f"the processors were idle {100 * idle:.1f} % of the time; raise lab.dilation"))
    elif idle < _IDLE_WARN:
        found.append((Verdict.WARN, f"the processors were idle only {100 * idle:.1f} % of the time"))
    if pressure is not None and pressure > _PRESSURE_WARN:
        found.append((Verdict.WARN, f"tasks waited for a processor {100 * pressure:.0f} % of the time"))
    if found and computing > _COMPUTES:
        shares = f"the ranks computed {100 * computing:.0f} % of the time, the processors were idle {100 * idle:.0f} %"
        found = [(Verdict.WARN, f"{shares}: what was measured is this machine's processors more than the links")]
    return found


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
        return [(verdict, f"{total} of {frames} frames were lost outside the queues ({100 * share:.2g} %): {places}")]
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
    def of(cls, findings: Iterable[Finding]) -> Judgement:
        """The worst verdict and every reason, each once."""
        findings = list(findings)
        reasons = tuple(dict.fromkeys(reason for _, reason in findings))
        return cls(max((verdict for verdict, _ in findings), default=Verdict.PASS), reasons)
