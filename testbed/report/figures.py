"""Numbers as the report writes them: scaled to a unit that suits them, four digits."""

from __future__ import annotations

from dataclasses import dataclass

_MINUS = "\N{MINUS SIGN}"
_SCALES = {
    "bit/s": ((1e9, "Gbit/s"), (1e6, "Mbit/s"), (1e3, "kbit/s"), (1.0, "bit/s")),
    "s": ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns")),
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
        return Scale(*scales[1])
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
