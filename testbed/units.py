"""Quantities with units, and the one place where laboratory time becomes real-world time.

A scenario states real-world rates. With a dilation D the lab runs its links at rate / D, so one
laboratory second represents 1/D real-world seconds: rates are multiplied by D, durations divided by D.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

# Bytes of a full tagged frame on a real wire: preamble, frame check sequence and interframe gap included.
MAX_WIRE_FRAME = 1542
# What a port of a lab makes up for when the scheduler serves it late; the rest would stay in its queue. A quarter of a
# full frame at once, and 8 full frames or 1 ms of its rate at a rate by 1 % above its own.
LATE_AT_ONCE = 0.25
LATE_FRAMES = 8
LATE_SECONDS = 1e-3
LATE_RATE = 1.01

_RATE_UNITS = {"bit/s": 1.0, "kbit/s": 1e3, "mbit/s": 1e6, "gbit/s": 1e9, "tbit/s": 1e12}
_NUMBER = r"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?"
RATE_PATTERN = rf"\s*({_NUMBER})\s*([kKmMgGtT]?[bB][iI][tT]/[sS])\s*"


def parse_rate(text: str) -> float:
    """Return a rate in bit/s from text such as `1 Gbit/s`.

    Raises:
        ValueError: no number with one of the units bit/s, kbit/s, Mbit/s, Gbit/s, Tbit/s, or not above 0.
    """
    match = re.fullmatch(RATE_PATTERN, text)
    if match is None:
        raise ValueError(f'"{text}" is not a rate; write a number and a unit, such as "1 Gbit/s" or "100 Mbit/s"')
    rate = float(match[1]) * _RATE_UNITS[match[2].lower()]
    if rate <= 0:
        raise ValueError(f'a rate must be above 0, not "{text}"')
    return rate


def format_rate(bits_per_second: float) -> str:
    """Return a rate with four significant digits and the unit that suits its size."""
    for unit, factor in (("Tbit/s", 1e12), ("Gbit/s", 1e9), ("Mbit/s", 1e6), ("kbit/s", 1e3)):
        if abs(bits_per_second) >= factor:
            return f"{bits_per_second / factor:.4g} {unit}"
    return f"{bits_per_second:.4g} bit/s"


def format_seconds(seconds: float) -> str:
    """Return a duration with four significant digits and the unit that suits its size."""
    for unit, factor in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if abs(seconds) >= factor:
            return f"{seconds / factor:.4g} {unit}"
    return f"{seconds / 1e-9:.4g} ns"


def format_quantity(value: float, unit: str) -> str:
    """Return a value of any unit the samples use, fit for a table."""
    if unit == "bit/s":
        return format_rate(value)
    if unit == "s":
        return format_seconds(value)
    if unit == "ratio":
        return f"{100 * value:.3g} %"
    return f"{value:.4g} {unit}".rstrip()


def format_eta(seconds: float | None) -> str:
    """Estimated time left: `about 12 min left`; empty where it is not known."""
    if seconds is None:
        return ""
    if seconds < 90:
        return f"about {seconds:.0f} s left"
    if seconds < 90 * 60:
        return f"about {seconds / 60:.0f} min left"
    return f"about {seconds / 3600:.1f} h left"


@dataclass(frozen=True, slots=True)
class TimeScale:
    """Converts between the real world of the scenario and the slowed-down lab."""

    dilation: float  # D >= 1; lab links run at real rate / D

    def lab_rate(self, real_bits_per_second: float) -> float:
        """Rate a lab link is shaped to, in bit/s."""
        return real_bits_per_second / self.dilation

    def to_real(self, lab_value: float, unit: str) -> float:
        """Convert a figure measured in the lab to real-world units.

        Of `unit`, `bit/s` and `1/s` are multiplied by D, `s` is divided by D; units without time stay as they are.
        """
        if unit in ("bit/s", "1/s"):
            return lab_value * self.dilation
        if unit == "s":
            return lab_value / self.dilation
        return lab_value
