"""The numbers as a page, as a document, as CSV and as an object."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from testbed.base.untrusted_text import csv_text
from testbed.experiments.paper.compare_numbers import CONSISTENT, NOT_RUN, RECOMPUTED, REPRODUCED, STATES, Result
from testbed.experiments.paper.published_numbers import Item
from testbed.experiments.paper.runners import RUNNERS
from testbed.experiments.report.page import template

_SIGNS = {"above": "> ", "below": "< "}
_HEAD = """# Published numbers, and those obtained here

Written by `testbed paper --document` from `papers/*.yaml` and what was run; not edited by hand. How it is made, and
what it does not say: [Reproducing papers](reproductions.md).
"""
_STATES = """\
*Reproduced*: within the tolerance of a printed number. *Consistent*: the paper prints no number (>, <), and ours is on
the side that it speaks of; or ours is a bound (≤), and the paper's number is within. *Recomputed*: follows from other
numbers of the same paper, which shows that these agree and nothing else. *Trend*: in the same order towards all others
of its group, or a ratio on the same side of 1. *Differs*: neither. *Impossible*: cannot be obtained here. *Not run*:
needs a simulation or a lab that this page was made without. Reasons are below each table."""
_COLUMNS = ("item", "row", "unit", "published", "ours", "ratio", "state", "method", "reason")


@dataclass(frozen=True, slots=True)
class Score:
    """All items with what came of them."""

    items: tuple[Item, ...]  # in the order of the tables
    results: Mapping[str, tuple[Result, ...]]  # name of the item → results in the order of its rows
    made: str  # when and on what: date, machine, program

    @property
    def all_results(self) -> tuple[Result, ...]:
        """Those of all items."""
        return tuple(result for item in self.items for result in self.results[item.name])

    @property
    def counts(self) -> dict[str, int]:
        """State → rows."""
        found = Counter(result.state for result in self.all_results)
        return {state: found[state] for state in STATES}

    @property
    def unexplained(self) -> tuple[Result, ...]:
        """Rows that should be within their tolerance and are not, or whose runner failed."""
        return tuple(result for result in self.all_results if result.unexplained)

    @property
    def sentence(self) -> str:
        """How many rows have which state."""
        parts = [f"{count} {state}" for state, count in self.counts.items() if count]
        return f"{len(self.all_results)} published numbers: {', '.join(parts)}"


def method(result: Result) -> str:
    """How ours is obtained, in words."""
    call = result.row.call
    if call is None:
        return ""
    words = " and ".join(dict.fromkeys(RUNNERS[leaf.run].words for leaf in call.leaves))
    return f"{call.run.replace('_', ' ')} of two by {words}" if call.parts else words


def reason(result: Result) -> str:
    """Why there is no number of ours, why it differs, or what it does not show; empty without."""
    if result.error:
        return result.error
    if result.row.impossible:
        return result.row.impossible
    if result.state == NOT_RUN:
        return ""
    if result.unexplained:
        return "not explained"
    return result.row.caveat if result.state in (REPRODUCED, CONSISTENT, RECOMPUTED) else result.row.why


def number(value: float | None) -> str:
    """Four digits; a dash without a number."""
    return "–" if value is None else f"{value:.4g}"


def cells(result: Result) -> dict[str, str]:
    """What a row shows, by the columns of the CSV file."""
    row = result.row
    return {
        "item": row.item,
        "row": row.name,
        "unit": row.unit,
        "published": _SIGNS.get(row.relation, "") + number(row.published),
        "ours": ("≤ " if row.relation == "within" and result.ours is not None else "") + number(result.ours),
        "ratio": number(result.ratio),
        "state": result.state,
        "method": method(result),
        "reason": reason(result),
    }


def as_object(score: Score) -> dict[str, Any]:
    """The object that `testbed paper --format json` prints."""
    rows = [
        {**cells(result), "published": result.row.published, "ours": result.ours, "ratio": result.ratio,
         "relation": result.row.relation, "tolerance": result.row.tolerance}
        for result in score.all_results
    ]  # fmt: skip
    return {"made": score.made, "counts": score.counts, "rows": rows}


def as_csv(score: Score) -> str:
    """One line a published number."""
    every = map(cells, score.all_results)
    return csv_text(_COLUMNS, ([row[column] for column in _COLUMNS] for row in every))


def as_document(score: Score) -> str:
    """A Markdown document."""
    lines = [_HEAD, f"{score.made}. {score.sentence}.", "", _STATES]
    paper = ""
    for item in score.items:
        if item.paper != paper:
            paper = item.paper
            lines += ["", f"## {paper}"]
        lines += ["", f"### {item.title}", "", f"`{item.name}`{'. ' if item.note else ''}{item.note}", ""]
        lines += ["| | published | ours | ratio | |", "| --- | ---: | ---: | ---: | --- |"]
        reasons: dict[str, int] = {}
        for result in score.results[item.name]:
            shown = cells(result)
            mark = ""
            if shown["reason"]:
                mark = f" ({reasons.setdefault(shown['reason'], len(reasons) + 1)})"
            published = f"{shown['published']} {shown['unit']}"
            name = _plain(shown["row"])
            lines.append(f"| {name} | {published} | {shown['ours']} | {shown['ratio']} | {shown['state']}{mark} |")
        lines += ["", *(f"({place}) {_plain(text)}  " for text, place in reasons.items())] if reasons else []
        ways = dict.fromkeys(text for result in score.results[item.name] if (text := method(result)))
        lines += ["", f"Ours: {'; '.join(ways)}."] if ways else []
    return "\n".join(lines).replace("  \n\n", "\n\n").rstrip() + "\n"


def _plain(text: str) -> str:
    return text.replace("*", "\\*").replace("|", "\\|").replace("\n", " ")


def as_page(score: Score) -> str:
    """One page that needs nothing beside itself, each item with a chart of the published numbers and ours."""
    return template("testbed.experiments.paper", "page.html").render(
        score=score,
        tables=[
            (item, [cells(result) for result in score.results[item.name]], chart(item, score.results[item.name]))
            for item in score.items
        ],
    )


def chart(item: Item, results: Sequence[Result]) -> str:
    """The item's numbers that have one of ours, in panels by group; empty where there is none."""
    shown = [result for result in results if result.ours is not None]
    if not shown:
        return ""
    from testbed.experiments.report.marks import Line  # noqa: PLC0415 - imports matplotlib
    from testbed.experiments.report.palette import INK, MEASURED  # noqa: PLC0415 - with it
    from testbed.experiments.report.panels import Axis, Block, Panel, Picture  # noqa: PLC0415 - likewise
    from testbed.experiments.report.render import for_page  # noqa: PLC0415 - likewise

    panels = []
    for group, unit in dict.fromkeys((result.row.group, result.row.unit) for result in shown):
        rows = [result for result in shown if (result.row.group, result.row.unit) == (group, unit)]
        places = [float(place) for place in range(len(rows))]
        names = [result.row.name.removesuffix(f", {group}") for result in rows]
        marks = [
            Line([result.row.published for result in rows], places, "published", INK, "none", marker="D", hollow=True),
            Line([float(result.ours or 0) for result in rows], places, "ours", MEASURED, "none", marker="o"),
        ]
        ticks = list(zip(places, names, strict=True))
        y = Axis(low=len(rows) - 0.45, high=-0.55, ticks=ticks, grid=True)
        panels.append(Panel(marks, Axis(unit, grid=True), y, group, width=300, height=22.0 * len(rows) + 14))
    return for_page(Picture([Block(panels, 1)]), item.name, f"{item.title}: published numbers and ours")
