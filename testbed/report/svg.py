"""Figures drawn without a display, as SVG that goes into a page: same bytes for the same drawing."""

from __future__ import annotations

import html
import io
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

from testbed.report.palette import COLOURS, GRID, INK, MUTED

PIXELS_AN_INCH = 96
_STYLE: dict[str, Any] = {
    "svg.hashsalt": "testbed",
    "svg.fonttype": "none",
    "svg.image_inline": True,
    "font.family": ["DejaVu Sans"],
    "font.size": 9.0,
    "text.color": INK,
    "axes.edgecolor": MUTED,
    "axes.labelcolor": INK,
    "axes.titlesize": 10.0,
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.unicode_minus": True,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "grid.color": GRID,
    "grid.linewidth": 0.7,
    "legend.frameon": False,
}
_NO_METADATA: dict[str, None] = dict.fromkeys(("Creator", "Date", "Format", "Type"))
_VARIABLE = {light: f"var(--{name},{light})" for name, (light, _) in COLOURS.items()}


@contextmanager
def drawing_style() -> Iterator[None]:
    """Draw as the report does, whatever the user's own matplotlib settings are."""
    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(_STYLE)
        yield


def new_figure(width: float, height: float) -> Figure:
    """Return a figure of a size in pixels, without a background."""
    figure = Figure(figsize=(width / PIXELS_AN_INCH, height / PIXELS_AN_INCH))
    figure.patch.set_visible(False)
    return figure


def canvas(width: float, height: float) -> tuple[Figure, Axes]:
    """Return a figure and axes whose coordinates are its pixels, origin at the lower left."""
    figure = new_figure(width, height)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_axis_off()
    axes.set(xlim=(0, width), ylim=(0, height))
    return figure, axes


def points(pixels: float) -> float:
    """Pixels as the points that line widths and font sizes are given in."""
    return pixels * 72 / PIXELS_AN_INCH


def to_svg(figure: Figure, prefix: str, label: str, titles: Mapping[str, str] | None = None) -> str:
    """Return an `<svg>` element for a page.

    Args:
        figure: drawn in the light colours of the palette.
        prefix: put before every id, so that several drawings share a page.
        label: what a reader who does not see it is told.
        titles: text to show over the element with a gid.
    """
    text = io.StringIO()
    FigureCanvasSVG(figure).print_svg(text, metadata=_NO_METADATA)  # type: ignore[no-untyped-call]
    body = text.getvalue()
    body = body[body.index(">", body.index("<svg")) + 1 :]
    body = re.sub(r"<metadata>.*?</metadata>", "", body, flags=re.DOTALL)
    for gid, title in (titles or {}).items():
        body = body.replace(f'<g id="{gid}">', f'<g id="{gid}"><title>{html.escape(title)}</title>', 1)
    body = re.sub(r'\bid="', f'id="{prefix}-', body)
    body = re.sub(r'(xlink:href="#|url\(#)', rf"\1{prefix}-", body)
    body = re.sub(r"#[0-9a-f]{6}\b", lambda match: _VARIABLE.get(match.group(), match.group()), body)
    width, height = (size * PIXELS_AN_INCH for size in figure.get_size_inches())
    return (
        f'<svg width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {points(width):.6g} {points(height):.6g}" '
        f'role="img" aria-label="{html.escape(label)}">{body}'
    ).rstrip()
