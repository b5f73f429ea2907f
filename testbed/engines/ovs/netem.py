"""Delay and random loss of a link, by the kernel's netem, ahead of what shapes the port.

Ahead of it, since frames that are under way must not count as frames that wait. All come later by the same time, so
that the queue behind is that of a port without netem, only later. A frame that gets lost takes no time of its link.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

MISSING = (
    "this kernel has no sch_netem, so links get neither delay nor loss; load the module sch_netem (package "
    "linux-modules-extra on some systems); rate, down and up work without it"
)
UNKNOWN = "qdisc kind is unknown"  # as the kernel says it
_HANDLE = "2:"
# Frames that can be under way: no more than any lab's links bring while a frame is delayed.
_LIMIT = 1_000_000
_SHOWN = re.compile(r"^qdisc netem .* root ")
_DELAY = re.compile(r"\bdelay ([0-9.]+)(ns|us|ms|s)\b")
_LOSS = re.compile(r"\bloss ([0-9.e-]+)%")
_SECONDS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}
_PRINTED_PRECISION = 1e-3


@dataclass(frozen=True, slots=True)
class Netem:
    """What a link does to frames."""

    delay: float  # laboratory seconds
    loss: float  # share of the frames

    @property
    def child(self) -> str:
        """Where in it the shaper is."""
        return f"{_HANDLE}1"

    def command(self, interface: str) -> str:
        """The line for `tc -batch` that makes it the root of a port, or changes it."""
        parts = [f"delay {self.delay * 1e6:.3f}us"] if self.delay else []
        parts += [f"loss {100 * self.loss:.6g}%"] if self.loss else []
        return f"qdisc replace dev {interface} root handle {_HANDLE} netem limit {_LIMIT} {' '.join(parts)}\n"

    @staticmethod
    def problems(wanted: Netem | None, interface: str, shown: Sequence[str]) -> list[str]:
        """Differences from what `tc -d` shows of the interface; one sentence each."""
        text = next((line for line in shown if _SHOWN.match(line)), "")
        delay, loss = _DELAY.search(text), _LOSS.search(text)
        found = (
            float(delay.group(1)) * _SECONDS[delay.group(2)] if delay else 0.0,
            float(loss.group(1)) / 100 if loss else 0.0,
        )
        asked = (0.0, 0.0) if wanted is None else (wanted.delay, wanted.loss)
        return [
            f"{interface}: asked for a {name} of {want:.6g}{unit}, the kernel has {have:.6g}{unit}"
            for name, unit, want, have in zip(("delay", "loss"), (" s", ""), asked, found, strict=True)
            if abs(want - have) > _PRINTED_PRECISION * max(want, 1e-3)
        ]
