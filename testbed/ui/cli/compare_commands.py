"""Commands over several runs: compare, sweep."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import ExitStack
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from testbed.base.errors import EXIT_PASS, EXIT_WARNINGS, InputError, Problem, TestbedError
from testbed.ui.cli.app import FORMAT, app
from testbed.ui.cli.output import (
    Format,
    form_problems,
    messages,
    print_json,
    print_lines,
    show_progress,
    steps,
    write_file,
)
from testbed.ui.cli.worker_options import CLUSTER, INSECURE, cluster_of

if TYPE_CHECKING:
    from testbed.experiments.sweep import SweepOutcome
    from testbed.results import Run


class TableFormat(str, Enum):
    """Form of a comparison's output."""

    text = "text"
    json = "json"
    csv = "csv"


@app.command(
    epilog="Examples:\ntestbed compare results/A results/B --output figure.pdf\n"
    "testbed compare results/<sweep> --baseline tree8 --metric goodput --format csv"
)
def compare(
    folders: Annotated[
        list[Path], typer.Argument(metavar="RUN...", help="result folders of runs, sweeps, simulations")
    ],
    baseline: Annotated[
        str | None, typer.Option("--baseline", help="scenario or run that figures are relative to; default flat, tree")
    ] = None,
    metrics: Annotated[
        list[str] | None, typer.Option("--metric", help="goodput, mpi_alltoall_time, link_use, …; repeatable")
    ] = None,
    swept: Annotated[
        str | None,
        typer.Option("--x", help="plot over a key of the scenario, switches_on_path, message_size or injection_rate"),
    ] = None,
    each: Annotated[bool, typer.Option("--each", help="every run by itself, also repeats of one scenario")] = False,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="draw FILE.svg, .pdf or .png, with FILE.csv beside it")
    ] = None,
    title: Annotated[str, typer.Option("--title", help="title of the figure")] = "",
    form: Annotated[TableFormat, typer.Option("--format", help="output format")] = TableFormat.text,
) -> None:
    """Compare runs: medians with intervals beside predictions.

    Intervals are of 95 %; figures are also shown relative to one run.

    Exit code 3 if a run has warnings.
    """
    from testbed.experiments.compare import compare as compare_runs
    from testbed.experiments.compare.comparison_table import as_csv, as_object, table_text

    problems = form_problems("--output", output)
    if problems:
        raise InputError(problems)
    with show_progress("reading and comparing"):
        found = compare_runs(_load(folders), baseline=baseline, metrics=metrics or (), swept=swept, each=each)
    if output is not None:
        from testbed.experiments.compare.figure import draw

        with show_progress("drawing"):
            write_file(output, draw(found, output.suffix[1:].lower(), title=title))
            write_file(output.with_suffix(".csv"), as_csv(found).encode())
    if form is TableFormat.json:
        print_json(as_object(found))
    elif form is TableFormat.csv:
        sys.stdout.write(as_csv(found))
    else:
        print_lines(table_text(found).splitlines(), whole=True)
        if output is not None:
            print_lines([f"figure: {output}", f"data:   {output.with_suffix('.csv')}"])
    raise typer.Exit(EXIT_WARNINGS if found.left_out or found.warned else EXIT_PASS)


def _load(folders: Sequence[Path]) -> list[Run]:
    """Read all runs, those of a sweep in its place, or gather all that is wrong with any of them."""
    from testbed.engines.simulate.result_folder import is_old, old_run
    from testbed.experiments.sweep.record import RECORD, finished_folders
    from testbed.results import load_run

    problems: list[Problem] = []
    paths: list[Path] = []
    for folder in folders:
        try:
            paths += finished_folders(folder) if (folder / RECORD).is_file() else [folder]
        except InputError as error:
            problems += error.problems
    seen: set[Path] = set()
    runs = []
    simulations = []
    for path in paths:
        if path.resolve() in seen:
            problems.append(Problem(str(path), "is listed twice; a run is not a repeat of itself"))
            continue
        seen.add(path.resolve())
        if is_old(path):
            simulations.append(path)
            continue
        try:
            runs.append(load_run(path))
        except InputError as error:
            problems += error.problems
    known = tuple(runs)
    for path in simulations:
        try:
            runs.append(old_run(path, known))
        except InputError as error:
            problems += error.problems
    if problems:
        raise InputError(problems)
    return runs


def _sweeps(incomplete: str) -> list[tuple[str, str]]:
    from testbed.scenario.catalogue import summaries, sweep_names

    return [(name, text) for name, text in summaries(sweep_names()).items() if name.startswith(incomplete)]


@app.command(
    epilog="Examples:\ntestbed sweep fig10 --repeats 1\ntestbed sweep mine.yaml --resume --format json\n"
    "testbed sweep mine.yaml --cluster tls://scheduler:8786"
)
def sweep(
    name: Annotated[
        str,
        typer.Argument(
            metavar="SWEEP",
            help="a sweep file (scenarios, settings, repeats, figures), or a name in scenarios/sweeps/",
            autocompletion=_sweeps,
        ),
    ],
    folder: Annotated[Path, typer.Option("--results", help="where the sweep's folder is created")] = Path("results"),
    resume: Annotated[bool, typer.Option("--resume", help="resume the newest sweep of this name there")] = False,
    repeats: Annotated[
        int | None,
        typer.Option("--repeats", help="runs of each combination, in place of what SWEEP says; --resume can add some"),
    ] = None,
    cluster: CLUSTER = None,
    insecure: INSECURE = False,
    form: FORMAT = Format.text,
) -> None:
    """Run every scenario with every setting, and compare.

    Exit code 0 pass, 1 fail, 3 warnings.
    """
    from testbed.experiments.sweep import find_sweep, prepare, run_sweep

    with ExitStack() as ends, steps() as progress:
        progress("reading the sweep")
        planned = prepare(find_sweep(name), progress, repeats=repeats, elsewhere=cluster is not None)
        try:
            workers = ends.enter_context(cluster_of(cluster, progress, insecure=insecure))
            outcome = run_sweep(planned, folder, progress, resume=resume, workers=workers)
        except TestbedError:
            raise
        except BaseException:  # also Ctrl-C
            asked = "" if repeats is None else f" --repeats {repeats}"
            asked += "" if cluster is None else f" --cluster {cluster}{' --insecure' if insecure else ''}"
            print_lines(f"go on with: testbed sweep {name}{asked} --resume", to=messages)
            raise
    if form is Format.json:
        print_json(outcome.as_object())
    else:
        _print_outcome(outcome)
    raise typer.Exit(outcome.exit_code)


def _print_outcome(outcome: SweepOutcome) -> None:
    for text in outcome.tables:
        print_lines(text.splitlines())
    for entry in outcome.record.entries:
        if entry.verdict != "pass":
            print_lines(f"{entry.verdict or entry.state}: {entry.label}: {entry.error or '; '.join(entry.reasons)}")
        if entry.advice:
            print_lines(f"  {entry.advice}")
    for problem in outcome.problems:
        print_lines(problem, "yellow", to=messages)
    print_lines(f"runs: {outcome.counts}")
    for written in outcome.files:
        print_lines(f"written: {written}")
    print_lines(f"results: {outcome.folder}")
