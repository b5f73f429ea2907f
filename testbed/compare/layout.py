"""Where the parts of a comparison's figure go: title, legend, panels of bars, panels of lines, from the top down."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.textpath import TextPath

from testbed.report.svg import PIXELS_AN_INCH

WIDTH = 692.0  # pixels of 1/96 inch: 183 mm, a page of two columns
TITLE_SIZE = 8.5  # points, of panels' titles and scenarios' names
_LONGEST_NAME = 26  # letters on a line
_SCENARIO = 18.0  # height of one in a panel of bars
_TEXT_LINE = 12.5
_MARGIN = 8.0
_WORDS = 46.0  # beside a panel of bars
_BETWEEN = 14.0
_WIDEST_BARS = 380.0
_NARROW = 0.7  # of a page, for a single panel
_TITLE_LINE = 18.0
_TITLE_WIDER = 1.3  # letters of the title than of other text
_LINES_LEFT, _LINES_HEIGHT, _LINES_BETWEEN = 54.0, 190.0, 66.0


@dataclass(frozen=True, slots=True)
class Labels:
    """What is written over and under a panel."""

    title: str
    below: str


@dataclass(frozen=True, slots=True)
class Layout:
    """Places in pixels, from the upper left; panels of bars share the scenarios' names at the left.

    Attributes:
        width: of the figure.
        height: of the figure.
        title: over everything, in lines that fit.
        head: height of title and legend.
        names: width of the scenarios' names.
        columns: panels of bars beside each other.
        cell: width of the axes of a panel of bars.
        bar_count: number of panels of bars.
        bar_height: of their axes.
        line_columns: panels of lines beside each other.
        over: room over each panel.
        under: room under each panel.
        legend_columns: entries of the legend beside each other.
    """

    width: float
    height: float
    title: str
    head: float
    names: float
    columns: int
    cell: float
    bar_count: int
    bar_height: float
    line_columns: int
    over: float
    under: float
    legend_columns: int

    @classmethod
    def of(
        cls,
        scenarios: Sequence[str],
        bars: Sequence[Labels],
        lines: Sequence[Labels],
        legend: Sequence[str],
        title: str,
    ) -> Layout:
        """Fit everything into the width of a page.

        Args:
            scenarios: lines of the panels of bars.
            bars: the panels of bars.
            lines: the panels of lines, which come below.
            legend: texts of its entries.
            title: over everything; may be empty.
        """
        parts = [wrapped(name).split("\n") for name in scenarios]
        names = max(pixels(part) for lines_ in parts for part in lines_) + 12
        columns = min(len(bars), 3 if len(bars) in (3, 5, 6, 9) else 4) or 1
        apart = _WORDS + _BETWEEN
        cell = min((WIDTH - names - _MARGIN + _BETWEEN) / columns - apart, _WIDEST_BARS)
        bar_height = max(_SCENARIO, 11.0 * max(map(len, parts)) + 3) * len(parts)
        line_columns = min(len(lines), 2) or 1
        bar_rows, line_rows = -(-len(bars) // columns), -(-len(lines) // line_columns)
        width = max(names + columns * (cell + apart) - _BETWEEN + _MARGIN if bars else 0.0, _NARROW * WIDTH)
        width = WIDTH if line_columns > 1 else width
        entry = max(map(pixels, legend), default=1.0) + 40
        legend_rows = -(-len(legend) // max(1, int((width - 20) / entry)))
        legend_columns = -(-len(legend) // max(1, legend_rows))
        title = fitted(title, (width - 2 * _MARGIN) / _TITLE_WIDER) if title else ""
        head = _MARGIN + _TITLE_LINE * len(title.split("\n")) * bool(title) + 16.0 * legend_rows
        line_cell = _line_cell(width, line_columns)
        titles = [fitted(label.title, cell + _WORDS) for label in bars]
        titles += [fitted(label.title, line_cell) for label in lines]
        over = 14.0 + _TEXT_LINE * _most_lines([*titles, "title"])
        under = 30.0 + _TEXT_LINE * _most_lines([fitted(label.below, cell + _WORDS / 2) for label in bars] + ["below"])
        height = head + bar_rows * (over + bar_height + under) + line_rows * (over + _LINES_HEIGHT + under)
        return cls(
            width, height, title, head, names, columns, cell, len(bars), bar_height, line_columns, over, under,
            legend_columns,
        )  # fmt: skip

    def leftmost(self, number: int) -> bool:
        """Whether a panel of bars has the scenarios' names beside it."""
        return number % self.columns == 0

    def labels(self, panel: Labels) -> Labels:
        """Labels of a panel of bars, in lines that fit."""
        return Labels(fitted(panel.title, self.cell + _WORDS), fitted(panel.below, self.cell + _WORDS / 2))

    def line_labels(self, panel: Labels) -> Labels:
        """Labels of a panel of lines, in lines that fit; what is below others stands beside it."""
        cell = _line_cell(self.width, self.line_columns)
        return Labels(fitted(panel.title, cell), fitted(panel.below, _LINES_HEIGHT))

    def bars(self, figure: Figure, number: int) -> Axes:
        """Make the axes of a panel of bars."""
        row, column = divmod(number, self.columns)
        left = self.names + column * (self.cell + _WORDS + _BETWEEN)
        top = self.head + row * (self.over + self.bar_height + self.under) + self.over
        return self._place(figure, left, top, self.cell, self.bar_height)

    def lines(self, figure: Figure, number: int) -> Axes:
        """Make the axes of a panel of lines."""
        row, column = divmod(number, self.line_columns)
        cell = _line_cell(self.width, self.line_columns)
        top = self.head - (-self.bar_count // self.columns) * (self.over + self.bar_height + self.under)
        top += row * (self.over + _LINES_HEIGHT + self.under) + self.over
        return self._place(figure, _LINES_LEFT + column * (cell + _LINES_BETWEEN), top, cell, _LINES_HEIGHT)

    def write_head(self, figure: Figure, legend: Sequence[tuple[Artist, str]]) -> None:
        """Write title and legend."""
        down = _MARGIN
        if self.title:
            figure.text(
                _MARGIN / self.width, 1 - down / self.height, self.title, va="top", fontsize=10, weight="bold",
                linespacing=1.15,
            )  # fmt: skip
            down += _TITLE_LINE * len(self.title.split("\n"))
        if legend:
            handles, texts = zip(*legend, strict=True)
            figure.legend(
                handles, texts, loc="upper left", bbox_to_anchor=(2 / self.width, 1 - (down - 4) / self.height),
                ncols=max(self.legend_columns, 1), fontsize=8, handlelength=1.8, columnspacing=1.4, borderpad=0.2,
            )  # fmt: skip

    def _place(self, figure: Figure, left: float, top: float, width: float, height: float) -> Axes:
        bottom = self.height - top - height
        return figure.add_axes((left / self.width, bottom / self.height, width / self.width, height / self.height))


def _line_cell(width: float, columns: int) -> float:
    """Width of the axes of a panel of lines."""
    return (width - _LINES_LEFT - _MARGIN - _LINES_BETWEEN * (columns - 1)) / columns


def wrapped(name: str) -> str:
    """A scenario's name in lines."""
    return "\n".join(textwrap.wrap(name, _LONGEST_NAME, break_on_hyphens=False))


def fitted(text: str, width: float) -> str:
    """Text in lines of a width in pixels, as far as its words allow it."""
    lines, line = [], ""
    for word in text.split(" "):
        longer = f"{line} {word}".strip()
        if line and pixels(longer) > width:
            lines.append(line)
            longer = word
        line = longer
    return "\n".join([*lines, line])


def pixels(text: str) -> float:
    """Width of a text in the size of titles and names."""
    points = TextPath((0, 0), text, size=TITLE_SIZE).get_extents().width if text.strip() else 0.0
    return float(points * PIXELS_AN_INCH / 72)


def _most_lines(texts: Sequence[str]) -> int:
    return max(text.count("\n") + 1 for text in texts)
