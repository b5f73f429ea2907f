"""A comparison as one figure fit for a paper: SVG, PDF or PNG, 183 mm wide, which is a page's two columns."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import matplotlib as mpl
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_pdf import FigureCanvasPdf
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from testbed.compare import bars, lines
from testbed.compare.axis import MESSAGE_SIZE
from testbed.compare.comparison import Comparison
from testbed.compare.layout import TITLE_SIZE, Labels, Layout, wrapped
from testbed.compare.rows import Row, detail_text
from testbed.compare.table import axis_name, block_scale, blocks, metric_name
from testbed.errors import InputError
from testbed.report.palette import INK, MEASURED, PREDICTED
from testbed.report.svg import PIXELS_AN_INCH, drawing_style, new_figure

FORMATS = ("svg", "pdf", "png")
MOST_PANELS = 24
MOST_SIZES = 4  # more message sizes become a line over them
_STYLE: dict[str, Any] = {"font.size": 8.0, "axes.titlesize": TITLE_SIZE, "svg.fonttype": "path", "pdf.fonttype": 42}
_NO_BREAK = "\N{NO-BREAK SPACE}"
_RASTER = 3  # dots a pixel


@dataclass(frozen=True, slots=True)
class _Panel:
    """Rows of one load and metric, as bars or, with an x each, as lines."""

    rows: tuple[Row, ...]
    swept: str | None


def draw(comparison: Comparison, form: str, *, title: str = "", x_label: str = "") -> bytes:
    """Draw a comparison.

    Args:
        comparison: its rows become panels, one a load, metric and detail.
        form: `svg`, `pdf` or `png`.
        title: over everything; none without one.
        x_label: of a swept parameter, with its unit; its name without one.

    Returns:
        the file's content; the same comparison gives the same.

    Raises:
        InputError: more panels or lines than can be told apart.
    """
    with drawing_style():
        mpl.rcParams.update(_STYLE)
        return _content(compose(comparison, title, x_label), form)


def compose(comparison: Comparison, title: str, x_label: str) -> Figure:
    """Make the figure that `draw` writes, in the style that is set."""
    panels = _panels(comparison)
    series = [_series(panel, comparison) for panel in panels if panel.swept is not None]
    names = list(dict.fromkeys(line.name for found in series for line in found))
    if len(names) > lines.MOST_LINES:
        sentence = f"would have {len(names)} lines, and {lines.MOST_LINES} can be told apart; compare fewer scenarios"
        raise InputError.one("the figure", sentence)
    barred = [panel for panel in panels if panel.swept is None]
    lined = [panel for panel in panels if panel.swept is not None]
    legend = _legend(panels, names, comparison)
    layout = Layout.of(
        [*_names(comparison).values()],
        [_labels(panel) for panel in barred],
        [_labels(panel) for panel in lined],
        [text for _, text in legend],
        title,
    )
    figure = new_figure(layout.width, layout.height)
    figure.patch.set(visible=True, facecolor="white")
    for number, panel in enumerate(barred):
        labels = layout.labels(_labels(panel))
        _draw_bars(layout.bars(figure, number), panel, labels, comparison, named=layout.leftmost(number))
    for number, panel in enumerate(lined):
        labels = layout.line_labels(_labels(panel))
        _draw_lines(layout.lines(figure, number), panel, labels, series[number], names, x_label)
    layout.write_head(figure, legend)
    return figure


def _panels(comparison: Comparison) -> list[_Panel]:
    """Bars before lines."""
    if comparison.swept is not None:
        merged: dict[tuple[str, str, str], list[Row]] = {}
        for row in comparison.rows:
            merged.setdefault((row.load, row.metric, row.unit), []).append(row)
        found = [_Panel(tuple(rows), comparison.swept) for rows in merged.values()]
    else:
        by_bars: list[_Panel] = []
        by_size: dict[tuple[str, str, str], list[Row]] = {}
        sizes: dict[tuple[str, str], set[str]] = {}
        for row in comparison.rows:
            sizes.setdefault((row.load, row.metric), set()).add(dict(row.labels).get("bytes", ""))
        for block in blocks(comparison.rows):
            if len(sizes[block[0].load, block[0].metric]) > MOST_SIZES:
                by_size.setdefault((block[0].load, block[0].metric, block[0].unit), []).extend(block)
            else:
                by_bars.append(_Panel(tuple(block), None))
        found = [*by_bars, *(_Panel(tuple(rows), MESSAGE_SIZE) for rows in by_size.values())]
    if len(found) > MOST_PANELS:
        sentence = f"would have {len(found)} panels, and {MOST_PANELS} fit; choose some metrics"
        raise InputError.one("the figure", sentence)
    return found


def _series(panel: _Panel, comparison: Comparison) -> list[lines.Series]:
    """Lines of a panel: one a scenario, and a detail that is not on the axis."""
    found: dict[str, list[tuple[float, Row]]] = {}
    scenarios = _names(comparison)
    for row in panel.rows:
        size = dict(row.labels).get("bytes", "")
        x = float(size) if comparison.swept is None and size.isdecimal() else row.x
        rest = tuple(label for label in row.labels if comparison.swept is not None or label[0] != "bytes")
        detail = detail_text(rest)
        parts = [*([scenarios[row.scenario]] if len(scenarios) > 1 else []), *([detail] if detail else [])]
        if x is not None:
            found.setdefault(", ".join(parts) or "measured", []).append((x, row))
    return [lines.Series(name, tuple(sorted(rows, key=lambda pair: pair[0]))) for name, rows in found.items()]


def _names(comparison: Comparison) -> dict[str, str]:
    """Label of a variant → what it is called in the figure: with the dilation where that is not the same for all."""
    differ = len({variant.dilation for variant in comparison.variants}) > 1
    return {
        variant.label: f"{variant.label} (dilation {variant.dilation:g})"
        if differ and "lab.dilation" not in variant.settings
        else variant.label
        for variant in comparison.variants
    }


def _labels(panel: _Panel) -> Labels:
    row = panel.rows[0]
    detail = row.detail.replace(" ", _NO_BREAK).replace(f",{_NO_BREAK}", ", ")
    title = f"{row.load}, {detail}" if panel.swept is None and detail else row.load
    return Labels(title, f"{metric_name(row.metric)} ({block_scale(panel.rows).name})".removesuffix(" ()"))


def _draw_bars(axes: Axes, panel: _Panel, labels: Labels, comparison: Comparison, *, named: bool) -> None:
    names = _names(comparison)
    places = {label: place for place, label in enumerate(names)}
    baseline = comparison.baseline if comparison.baseline in places else None
    bars.draw_bars(axes, panel.rows, places, baseline, block_scale(panel.rows))
    axes.set_yticks(range(len(places)), [wrapped(name) if named else "" for name in names.values()])
    axes.set_xlabel(labels.below)
    axes.set_title(labels.title, pad=6)


def _draw_lines(
    axes: Axes, panel: _Panel, labels: Labels, series: Sequence[lines.Series], names: Sequence[str], x_label: str
) -> None:
    swept = panel.swept or MESSAGE_SIZE
    numbers = {name: number for number, name in enumerate(names)}
    lines.draw_lines(axes, series, numbers, swept, block_scale(panel.rows))
    name = axis_name(swept)
    axes.set_xlabel(x_label or name[:1].upper() + name[1:])
    axes.set_ylabel(labels.below)
    axes.set_title(labels.title, pad=6)


def _legend(panels: Sequence[_Panel], names: Sequence[str], comparison: Comparison) -> list[tuple[Artist, str]]:
    """What is to be explained: only what is drawn."""
    found: list[tuple[Artist, str]] = []
    rows = [row for panel in panels for row in panel.rows if row.spread is not None]
    barred = [row for panel in panels if panel.swept is None for row in panel.rows if row.spread is not None]
    if any(row.usable for row in barred):
        found.append((Patch(facecolor=MEASURED), "measured, median"))
    for number, name in enumerate(names):
        found.append((Line2D([], [], markersize=4, linewidth=1.5, **lines.style(number)), name))
    if any(row.spread and row.spread.interval for row in rows):
        found.append((Line2D([], [], color=INK, linestyle="none", marker="|", markersize=7), "95 % interval"))
    for name in dict.fromkeys(bars.expected_name(row.metric) for row in barred if row.predicted is not None):
        found.append((Line2D([], [], **bars.expected_style(name)), name))
    lined = [row for panel in panels if panel.swept is not None for row in panel.rows]
    if any(row.predicted is not None for row in lined):
        colour, name = PREDICTED if len(names) == 1 else INK, "predicted (lines)" if barred else "predicted"
        found.append((Line2D([], [], color=colour, **lines.PREDICTED_LINE), name))
    one = len(comparison.variants) > 1 and comparison.baseline in [variant.label for variant in comparison.variants]
    if one and any(row.relative is not None for row in barred):
        found.append((Line2D([], [], **bars.REFERENCE), f"{comparison.baseline} (×1)"))
    if any(row.verdict == "warn" for row in barred):
        found.append((Line2D([], [], color=INK, linestyle="none", marker="$!$", markersize=6), "with reserve"))
    if any(not row.usable for row in barred):
        found.append((Patch(**bars.UNUSABLE), "invalid, do not use"))
    if any(row.verdict == "warn" for row in lined):
        found.append(
            (
                Line2D([], [], color=INK, marker="o", **lines.RESERVE_POINT),
                "with reserve (lines)" if barred else "with reserve",
            )
        )
    if any(not row.usable and row.spread is not None for row in lined):
        found.append((Line2D([], [], **lines.UNUSABLE_POINT), "invalid, do not use"))
    return found


def _content(figure: Figure, form: str) -> bytes:
    content = io.BytesIO()
    if form == "svg":
        metadata: dict[str, None] = dict.fromkeys(("Creator", "Date", "Format", "Type"))
        FigureCanvasSVG(figure).print_svg(content, metadata=metadata)  # type: ignore[no-untyped-call]
    elif form == "pdf":
        nothing = dict.fromkeys(("Creator", "Producer", "CreationDate"))
        FigureCanvasPdf(figure).print_pdf(content, metadata=nothing)  # type: ignore[no-untyped-call]
    else:
        figure.set_dpi(_RASTER * PIXELS_AN_INCH)
        FigureCanvasAgg(figure).print_png(content)  # type: ignore[no-untyped-call]
    return content.getvalue()
