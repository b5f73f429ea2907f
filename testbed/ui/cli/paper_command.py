"""The command about the papers' numbers: paper."""

from __future__ import annotations

import os
import platform
import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from testbed.base.errors import EXIT_FAIL, EXIT_PASS, TestbedError
from testbed.base.version import __version__
from testbed.ui.cli.app import FORMAT, app
from testbed.ui.cli.output import Format, messages, print_json, print_lines, results, steps, write_file
from testbed.ui.cli.worker_options import CLUSTER, INSECURE, cluster_of

if TYPE_CHECKING:
    from testbed.experiments.paper.page import Score

_STYLES = {"reproduced": "green", "trend": "yellow", "differs": "red", "failed": "red"}


@app.command(
    epilog="Examples:\ntestbed paper --quick\ntestbed paper --only k11-table3 --only m07\n"
    "testbed paper --cluster local:4\nsudo testbed paper --document docs/scoreboard.md"
)
def paper(
    only: Annotated[
        list[str] | None, typer.Option("--only", help="an item such as k11-table3, or a paper such as k11; repeatable")
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="leave out what needs a lab or a long simulation and has not been run")
    ] = False,
    folder: Annotated[
        Path, typer.Option("--results", help="where values are kept, and the page and the table are written")
    ] = Path("results/paper"),
    document: Annotated[Path | None, typer.Option("--document", help="write the numbers as Markdown, too")] = None,
    cluster: CLUSTER = None,
    insecure: INSECURE = False,
    form: FORMAT = Format.text,
) -> None:
    """Obtain published numbers, and show ours beside them.

    Results of earlier runs on the same code are reused. Exit code 0; 1 a number is out of its tolerance without a
    reason in the table, or its runner failed; 2 wrong input.
    """
    from testbed.base.files import make_folder
    from testbed.experiments.paper.page import Score, as_csv, as_document, as_object, as_page
    from testbed.experiments.paper.published_numbers import choose_items, read_published_numbers
    from testbed.experiments.paper.run_rows import Store, run_items

    items = choose_items(read_published_numbers(), only or ())
    with ExitStack() as ends, steps() as progress:
        try:
            workers = ends.enter_context(cluster_of(cluster, progress, insecure=insecure))
            found = run_items(items, Store(folder / "values"), progress, quick=quick, workers=workers)
        except TestbedError:
            raise
        except BaseException:  # also Ctrl-C
            messages.print("what is done is kept; the same command goes on", soft_wrap=True)
            raise
        score = Score(items, found, _describe_origin())
        progress("drawing")
        make_folder(folder)
        write_file(folder / "index.html", as_page(score).encode())
        write_file(folder / "numbers.csv", as_csv(score).encode())
        if document is not None:
            write_file(document, as_document(score).encode())
    if form is Format.json:
        print_json(as_object(score))
    else:
        _print(score)
        print_lines([f"page:    {folder / 'index.html'}", f"numbers: {folder / 'numbers.csv'}"], whole=True)
    raise typer.Exit(EXIT_FAIL if score.unexplained else EXIT_PASS)


def _describe_origin() -> str:

    date = time.strftime("%-d %B %Y", time.gmtime())
    return f"Made on {date} with testbed {__version__} on {platform.machine()} with {os.cpu_count()} processors"


def _print(score: Score) -> None:
    from rich.table import Table
    from rich.text import Text

    from testbed.experiments.paper.page import cells

    table = Table(box=None, pad_edge=False, header_style="bold")
    for title in ("item", "", "published", "ours", "ratio", ""):
        table.add_column(title, justify="right" if title in ("published", "ours", "ratio") else "left")
    for item in score.items:
        alike = {result.state for result in score.results[item.name]}
        if alike <= {"impossible"} or alike <= {"not run"}:
            count = len(item.rows)
            table.add_row(item.name, f"{count} number{'s' if count > 1 else ''}", "", "", "", *alike)
            continue
        for result in score.results[item.name]:
            shown = cells(result)
            state = shown["state"]
            table.add_row(
                shown["item"], shown["row"], f"{shown['published']} {shown['unit']}", shown["ours"], shown["ratio"],
                Text(state, _STYLES.get(state, "")),
            )  # fmt: skip
    results.print(table)
    for result in score.unexplained:
        sentence = result.error or "is out of its tolerance, and the table has no reason for it"
        results.print(f"{result.row.item}, {result.row.name}: {sentence}", markup=False, soft_wrap=True)
    results.print(score.sentence, markup=False, soft_wrap=True)
