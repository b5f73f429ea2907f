"""Quantities with units as people read them, and the one place where laboratory time becomes real-world time."""

from __future__ import annotations

import re
from dataclasses import dataclass

# What a port of a lab makes up for when the scheduler serves it late; the rest would stay in its queue. A quarter of a
# full frame at once, and 8 full frames or 1 ms of its rate at a rate by 1 % above its own.
LATE_AT_ONCE = 0.25
LATE_FRAMES = 8
LATE_SECONDS = 1e-3
LATE_RATE = 1.01

_FACTORS = {"k": 1e3, "m": 1e6, "g": 1e9, "t": 1e12}
_NUMBER = r"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?"
# `1 Gbit/s`, and what says the same in short: `1G`, `1Gb`, `1Gbit`, `1Gbps`. A large B would be bytes.
RATE_PATTERN = rf"\s*({_NUMBER})\s*([kKmMgGtT]?[bB][iI][tT](?:/[sS])?|[kKmMgGtT](?:b(?:ps|/s)?)?|b(?:ps|/s))\s*"


def parse_rate(text: str) -> float:
    """Return a rate in bit/s from text such as `1 Gbit/s`.

    Raises:
        ValueError: no number with one of the units bit/s, kbit/s, Mbit/s, Gbit/s, Tbit/s, or not above 0.
    """
    match = re.fullmatch(RATE_PATTERN, text)
    if match is None:
        raise ValueError(f'"{text}" is not a rate; write a number and a unit, such as "1 Gbit/s" or "100 Mbit/s"')
    rate = float(match[1]) * _FACTORS.get(match[2][0].lower(), 1.0)
    if rate <= 0:
        raise ValueError(f'a rate must be above 0, not "{text}"')
    return rate


def format_number(value: float, digits: int = 4) -> str:
    """Return a number with so many significant digits, or all before the point, and never with an exponent."""
    text = f"{value:.{digits}g}"
    if "e" not in text:
        return text
    if abs(value) >= 1:
        return f"{value:,.0f}"
    mantissa, _, exponent = text.partition("e")
    return f"{value:.{len(mantissa.lstrip('-').replace('.', '')) - 1 - int(exponent)}f}"


def format_share(value: float) -> str:
    """Return a share in per cent: three significant digits, and of small ones no more than four after the point."""
    share = 100 * value
    if 0 < abs(share) < 0.00005:
        return "below 0.0001 %" if share > 0 else "above -0.0001 %"
    text = format_number(share, 3)
    fraction = text.partition(".")[2]
    return f"{f'{share:.4f}'.rstrip('0') if len(fraction) > 4 else text} %"


def format_rate(bits_per_second: float) -> str:
    """Return a rate with four significant digits and the unit that suits its size."""
    for unit, factor in (("Tbit/s", 1e12), ("Gbit/s", 1e9), ("Mbit/s", 1e6), ("kbit/s", 1e3)):
        if abs(bits_per_second) >= factor:
            return f"{format_number(bits_per_second / factor)} {unit}"
    return f"{format_number(bits_per_second)} bit/s"


def format_seconds(seconds: float) -> str:
    """Return a duration with four significant digits and the unit that suits its size."""
    for unit, factor in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if abs(seconds) >= factor:
            return f"{format_number(seconds / factor)} {unit}"
    return f"{format_number(seconds / 1e-9)} ns"


def format_quantity(value: float, unit: str) -> str:
    """Return a value of any unit the samples use, fit for a table."""
    if unit == "bit/s":
        return format_rate(value)
    if unit == "s":
        return format_seconds(value)
    if unit == "ratio":
        return format_share(value)
    if unit in ("B", "J"):
        scale = scale_for(unit, value)
        return f"{value / scale.factor:.4g} {scale.name}"
    return f"{format_number(value)} {unit}".rstrip()


def format_eta(seconds: float | None) -> str:
    """Estimated time left: `about 12 min left`; empty where it is not known."""
    return "" if seconds is None else f"{format_estimate(seconds)} left"


def format_estimate(seconds: float) -> str:
    """What something takes that nobody knows exactly: `about 12 min`."""
    if seconds < 90:
        return f"about {seconds:.0f} s"
    if seconds < 90 * 60:
        return f"about {seconds / 60:.0f} min"
    return f"about {seconds / 3600:.1f} h"


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


_MINUS = "\N{MINUS SIGN}"
_SCALES = {
    "bit/s": ((1e9, "Gbit/s"), (1e6, "Mbit/s"), (1e3, "kbit/s"), (1.0, "bit/s")),
    "s": ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns")),
    "J": ((1e6, "MJ"), (1e3, "kJ"), (1.0, "J")),
    "B": ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "B")),
}


@dataclass(frozen=True, slots=True)
class Scale:
    """A unit to show figures in: the figure divided by `factor` has the unit `name`."""

    factor: float
    name: str

    def text(self, value: float) -> str:
        """The figure without its unit, four significant digits, no exponent where it can be avoided."""
        shown = value / self.factor
        if shown and not 1e-3 <= abs(shown) < 1e6:  # readable without an exponent
            text = f"{shown:.3e}"
        else:
            text = f"{shown:,.0f}" if abs(shown) >= 1000 else f"{shown:.4g}"  # four digits
        return text.replace("-", _MINUS)


def scale_for(unit: str, size: float) -> Scale:
    """Scale that suits figures of about a size."""
    if unit == "ratio":
        return Scale(0.01, "%")
    if unit not in _SCALES:
        return Scale(1.0, "" if unit == "count" else unit)
    scales = _SCALES[unit]
    if size == 0:
        return Scale(*scales[-1 if unit == "B" else 1])
    return Scale(*next((scale for scale in scales if abs(size) >= scale[0]), scales[-1]))


def gap_text(gap: float | None) -> str:
    """A difference as a signed percentage; empty without one."""
    if gap is None:
        return ""
    digits = 1 if abs(gap) < 0.0995 else 0  # 9.9 %, then 10 %
    text = f"{100 * gap:+.{digits}f} %"
    return text.replace("-", _MINUS)


def bytes_text(size: int) -> str:
    """A message size: binary units where they come out even."""
    for factor, name in ((1 << 20, "MiB"), (1 << 10, "KiB")):
        if size >= factor and size % factor == 0:
            return f"{size // factor} {name}"
    return f"{size:,} B"


def count_noun(count: int, noun: str, plural: str = "s") -> str:
    """Return a count with its noun: `1 link`, `2 links`; `plural` is what the noun then ends in."""
    return f"{count:,} {noun}{plural if count != 1 else ''}"
