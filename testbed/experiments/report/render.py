"""Pictures as files and as parts of a page, all in one style; the same picture gives the same bytes."""

from __future__ import annotations

import dataclasses
import html
import io
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar, cast

import matplotlib as mpl
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_pdf import FigureCanvasPdf
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

from testbed.base.untrusted_text import escape_controls
from testbed.experiments.report.palette import COLOURS, GRID, INK, MUTED
from testbed.experiments.report.panels import LABEL_POINTS, PIXELS_AN_INCH, TITLE_POINTS, Picture, compose

_Part = TypeVar("_Part")
FORMATS = ("svg", "pdf", "png")
_STYLE: dict[str, object] = {
    "svg.hashsalt": "testbed",
    "svg.fonttype": "none",
    "svg.image_inline": True,
    "pdf.fonttype": 42,
    # A name may hold any sign: a dollar begins no formula.
    "text.parse_math": False,
    "font.family": ["DejaVu Sans"],
    "font.size": 8.0,
    "text.color": INK,
    "axes.facecolor": "none",
    "axes.edgecolor": MUTED,
    "axes.labelcolor": INK,
    "axes.titlesize": TITLE_POINTS,
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.unicode_minus": True,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "xtick.labelsize": LABEL_POINTS,
    "ytick.labelsize": LABEL_POINTS,
    "grid.color": GRID,
    "grid.linewidth": 0.7,
    "legend.frameon": False,
}
_VARIABLE = {light: f"var(--{name},{light})" for name, (light, _) in COLOURS.items()}


def write(picture: Picture, form: str, *, outlines: bool = False) -> bytes:
    """Return the content of a file. With `outlines` an SVG has letters as shapes, for programs that lack the font."""
    with drawing_style(), mpl.rc_context({"svg.fonttype": "path" if outlines else "none"}):
        figure = compose(_escape_part(picture))
        content = io.BytesIO()
        if form == "svg":
            drawn = io.StringIO()
            _print_svg(figure, drawn)
            content.write(escape_controls(drawn.getvalue()).encode())
        elif form == "pdf":
            nothing = dict.fromkeys(("Creator", "Producer", "CreationDate"))
            FigureCanvasPdf(figure).print_pdf(content, metadata=nothing)  # type: ignore[no-untyped-call]
        else:
            figure.set_dpi(2 * PIXELS_AN_INCH)
            FigureCanvasAgg(figure).print_png(content)  # type: ignore[no-untyped-call]
        return content.getvalue()


def for_page(picture: Picture, prefix: str, label: str, titles: Mapping[str, str] | None = None) -> str:
    """Return an `<svg>` element for a page, whose colours are those that the page sets.

    `prefix` is put before every id, so that several drawings share a page; `label` is what a reader who does not see it
    is told; `titles` are shown over the element with a gid.
    """
    with drawing_style():
        figure = compose(_escape_part(picture))
        figure.patch.set_visible(False)
        text = io.StringIO()
        _print_svg(figure, text)
    body = text.getvalue()
    body = body[body.index(">", body.index("<svg")) + 1 :]
    body = re.sub(r"<metadata>.*?</metadata>", "", body, flags=re.DOTALL)
    for gid, title in (titles or {}).items():
        body = body.replace(f'<g id="{gid}">', f'<g id="{gid}"><title>{html.escape(title)}</title>', 1)
    body = re.sub(r'\bid="', f'id="{prefix}-', body)
    body = re.sub(r'(xlink:href="#|url\(#)', rf"\1{prefix}-", body)
    body = re.sub(r"#[0-9a-f]{6}\b", lambda match: _VARIABLE.get(match.group(), match.group()), body)
    width, height = figure.get_size_inches()
    label, body = html.escape(escape_controls(label)), escape_controls(body)
    return (
        f'<svg width="{width * PIXELS_AN_INCH:.0f}" height="{height * PIXELS_AN_INCH:.0f}" '
        f'viewBox="0 0 {72 * width:.6g} {72 * height:.6g}" role="img" aria-label="{label}">{body}'
    ).rstrip()


def _escape_part(part: _Part) -> _Part:
    """A part of a picture whose texts are but text: signs that steer others have no glyphs."""
    found: Any = part
    if isinstance(part, str):
        found = escape_controls(part)
    elif isinstance(part, list | tuple):
        found = type(part)(map(_escape_part, part))
    elif dataclasses.is_dataclass(part) and not isinstance(part, type):
        values = {field.name: getattr(part, field.name) for field in dataclasses.fields(part)}
        found = dataclasses.replace(part, **{name: _escape_part(value) for name, value in values.items()})
    return cast(_Part, found)


def _print_svg(figure: Figure, content: io.StringIO) -> None:
    metadata: dict[str, None] = dict.fromkeys(("Creator", "Date", "Format", "Type"))
    FigureCanvasSVG(figure).print_svg(content, metadata=metadata)  # type: ignore[no-untyped-call]


@contextmanager
def drawing_style() -> Iterator[None]:
    """Draw as all figures are drawn, whatever the user's own matplotlib settings are."""
    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(_STYLE)
        yield
