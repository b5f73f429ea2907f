"""What a sweep came to: its comparison as tables and figures in its folder."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from testbed.base.errors import EXIT_FAIL, EXIT_PASS, EXIT_WARNINGS, InputError
from testbed.base.files import write_whole
from testbed.experiments.compare import Comparison, compare
from testbed.experiments.compare.comparison_table import as_csv, table_text
from testbed.experiments.report.page import template
from testbed.experiments.sweep.record import Record
from testbed.experiments.sweep.sweep_spec import FigureSpec, Sweep
from testbed.results import Run, load_run

TABLES, INDEX = "comparison.txt", "index.html"


@dataclass(frozen=True, slots=True)
class SweepOutcome:
    """A sweep that has come to its end."""

    folder: Path  # of the sweep
    record: Record  # every run with its verdict
    tables: tuple[str, ...]  # of the comparisons, as text, one a figure
    files: tuple[Path, ...]  # that were written beside the runs
    problems: tuple[str, ...]  # why a comparison or figure is not there

    @property
    def counts(self) -> str:
        """Verdicts and how many runs have each."""
        return counts_of(self.record)

    @property
    def exit_code(self) -> int:
        """1 where a run broke, failed or is invalid, 3 where one has warnings or a figure is missing, else 0."""
        words = {entry.verdict or entry.state for entry in self.record.entries}
        if words - {"pass", "warn"}:
            return EXIT_FAIL
        return EXIT_WARNINGS if "warn" in words or self.problems else EXIT_PASS

    def as_object(self) -> dict[str, object]:
        """For programs."""
        return {
            "results": str(self.folder),
            "runs": [asdict(entry) for entry in self.record.entries],
            "files": [str(file) for file in self.files],
            "problems": list(self.problems),
        }


def write_comparison(sweep: Sweep, folder: Path, record: Record) -> SweepOutcome:
    """Compare all finished runs; one table, CSV and picture in three forms a figure."""
    problems: list[str] = []
    runs: list[Run] = []
    for entry in record.entries:
        if entry.state == "finished" and entry.folder is not None:
            try:
                runs.append(load_run(folder / entry.folder, below=folder))
            except InputError as error:
                problems.append(str(error))
    tables: list[str] = []
    contents: dict[str, bytes] = {}
    for figure in sweep.figures if runs else ():
        try:
            baseline = _strip_key(sweep.baseline, figure.x)
            found = compare(
                runs,
                baseline=baseline,
                metrics=figure.metrics,
                swept=figure.x,
                alone=True,
                keys=sweep.swept_keys,
                words=sweep.labels,
            )
            tables.append(f"{figure.title or figure.name}\n{table_text(found)}")
            contents[f"{figure.name}.csv"] = as_csv(found).encode()
            contents |= _pictures(figure, found)
        except InputError as error:
            problems.append(f"{figure.name}: {error}")
    if tables:
        contents = {TABLES: "\n".join(tables).encode(), **contents}
    contents = {INDEX: _index(sweep, record, tables, contents).encode(), **contents}
    for name, content in contents.items():  # all at once, when nothing can go wrong any more
        write_whole(folder / name, content, below=folder)
    return SweepOutcome(folder, record, tuple(tables), tuple(folder / name for name in contents), tuple(problems))


def _index(sweep: Sweep, record: Record, tables: Sequence[str], contents: Mapping[str, bytes]) -> str:
    """The page that shows what came out, and opens the report of each run."""
    from testbed.experiments.compare.figure import FORMATS  # noqa: PLC0415 - imports matplotlib

    drawn = {figure.name: contents.get(f"{figure.name}.svg", b"").decode() for figure in sweep.figures}
    figures = [(name, svg[svg.index("<svg") :]) for name, svg in drawn.items() if svg]
    return template("testbed.experiments.sweep", INDEX).render(
        record=record, description=sweep.description, counts=counts_of(record), figures=figures, tables=tables,
        forms=FORMATS,
    )  # fmt: skip


def counts_of(record: Record) -> str:
    """Verdicts and how many runs have each."""
    counted = Counter(entry.verdict or entry.state for entry in record.entries)
    return ", ".join(f"{count} {word}" for word, count in counted.items())


def _strip_key(baseline: str | None, swept: str | None) -> str | None:
    """The label of a baseline without the key along which runs differ: each point is relative to that of equal x."""
    if baseline is None or swept is None:
        return baseline
    last = swept.rpartition(".")[2]
    return re.sub(rf" (?:{re.escape(swept)}|{re.escape(last)})=.*?(?= [\w.]+=|$)", "", baseline)


def _pictures(figure: FigureSpec, found: Comparison) -> dict[str, bytes]:
    from testbed.experiments.compare.figure import FORMATS, draw  # noqa: PLC0415 - imports matplotlib

    return {f"{figure.name}.{form}": draw(found, form, title=figure.title, x_label=figure.x_label) for form in FORMATS}
