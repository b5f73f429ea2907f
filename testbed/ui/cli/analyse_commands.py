"""Commands that explain a plan: analyse, explain."""

from __future__ import annotations

import itertools
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from testbed.base.errors import EXIT_FAIL, EXIT_PASS, InputError, Problem
from testbed.ui.cli.app import FORMAT, SCENARIO, SCENARIOS, SETTINGS, app
from testbed.ui.cli.output import (
    Format,
    form_problems,
    messages,
    plan_scenario,
    print_json,
    print_lines,
    results,
    show_progress,
    write_file,
)
from testbed.ui.cli.vary import VARY, Variant, variants

if TYPE_CHECKING:
    from testbed.experiments.analyse import Analysis, Explanation
    from testbed.planning import Plan


@app.command(
    epilog="Examples:\ntestbed analyse mesh4x4 torus4x4 --pattern transpose\ntestbed analyse torus8x8 -o loads.svg"
    "\ntestbed analyse torus4x4 --vary routing=dor,updown,sr"
)
def analyse(
    names: SCENARIOS,
    settings: SETTINGS = None,
    vary: VARY = None,
    patterns: Annotated[
        list[str] | None, typer.Option("--pattern", help="traffic pattern, default all_to_all; repeatable")
    ] = None,
    form: FORMAT = Format.text,
    plot: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", help="draw loads and path lengths: FILE.svg, .pdf or .png, with FILE.csv beside it"
        ),
    ] = None,
    links: Annotated[
        Path | None, typer.Option("--links", help="write the load of every link, in each direction: FILE.csv")
    ] = None,
) -> None:
    """Compare plans: paths, loads, turns, VLANs, tables, switch models.

    Nothing is built. Exit code 1 if a plan fails verification.
    """
    from testbed.experiments.analyse.analysis_table import remarks, rich_table
    from testbed.experiments.analyse.channel_load import ALL_TO_ALL
    from testbed.experiments.analyse.plan_figures import as_object

    with show_progress("planning, proving and counting"):
        asked = variants(vary) if vary else [Variant("", ())]
        found = _analyses(names, settings or [], asked, patterns or [ALL_TO_ALL], plot)
    if plot is not None:
        from testbed.experiments.analyse.plot import as_csv, draw

        with show_progress("drawing"):
            write_file(plot, draw(found, plot.suffix[1:].lower()))
            write_file(plot.with_suffix(".csv"), as_csv(found).encode())
    if links is not None:
        from testbed.experiments.analyse.plot import links_as_csv

        write_file(links, links_as_csv(found).encode())
    if form is Format.json:
        print_json({"analyses": [as_object(analysis) for analysis in found]})
    else:
        results.print(rich_table(found))
        for text in remarks(found):
            print_lines(text)
        if plot is not None:
            print_lines([f"plot: {plot}", f"data: {plot.with_suffix('.csv')}"])
        if links is not None:
            print_lines(f"links: {links}")
        for analysis in found:
            _print_violations(analysis.plan)
    raise typer.Exit(EXIT_PASS if all(analysis.plan.is_proved for analysis in found) else EXIT_FAIL)


def _analyses(
    names: list[str], settings: list[str], asked: list[Variant], patterns: list[str], plot: Path | None
) -> list[Analysis]:
    """Analyse all scenarios in all variants, or gather all that is wrong with any of them."""
    from testbed.engines.lab.hosts.available_memory import require_room
    from testbed.experiments.analyse import analyse as analyse_plan
    from testbed.experiments.analyse import check_patterns
    from testbed.planning import make_plan
    from testbed.scenario import find_scenario, load_scenario

    problems = [*_plot_problems(plot, len(names) * len(asked)), *check_patterns(patterns)]
    broken = bool(problems)
    found = []
    for name, variant in itertools.product(names, asked):
        try:
            scenario = load_scenario(find_scenario(name), [*settings, *variant.settings])
            if variant.label:
                shown = variant.label if len(names) == 1 else f"{scenario.name} {variant.label}"
                scenario = replace(scenario, name=shown)
            if not broken:
                found.append(analyse_plan(make_plan(scenario, require_room), patterns))
        except InputError as error:
            problems += error.problems
    if problems:
        raise InputError(list(dict.fromkeys(problems)))
    return found


def _plot_problems(plot: Path | None, scenarios: int) -> list[Problem]:
    if plot is None:
        return []
    from testbed.experiments.analyse.plot import MAX_CURVES

    problems = form_problems("--output", plot)
    if scenarios > MAX_CURVES:
        problems.append(
            Problem("--output", f"draws up to {MAX_CURVES} scenarios and here are {scenarios}; draw them in parts")
        )
    return problems


def _print_violations(plan: Plan) -> None:
    for violation in plan.violations:
        print_lines(f"{plan.scenario.name}: {violation.invariant}: {violation.sentence}", "red", to=messages)


@app.command(epilog="Examples:\ntestbed explain torus4x4 h1 h16\ntestbed explain torus8x8 s2 s31 --format json")
def explain(
    name: SCENARIO,
    source: Annotated[str, typer.Argument(metavar="SRC", help="host that sends, or a switch for the first host on it")],
    destination: Annotated[str, typer.Argument(metavar="DST", help="host that receives, or a switch")],
    settings: SETTINGS = None,
    form: FORMAT = Format.text,
) -> None:
    """Show a path hop by hop, and why no shorter one is taken.

    With the VLANs of its frames and the rules that they match. Exit code 1 if the plan fails verification.
    """
    from testbed.experiments.analyse import explain as explain_pair

    with show_progress("planning and proving"):
        plan = plan_scenario(name, settings)
        found = explain_pair(plan, source, destination)
    if form is Format.json:
        print_json({**asdict(found), "proved": plan.is_proved})
    else:
        _print_explanation(found)
        _print_violations(plan)
    raise typer.Exit(EXIT_PASS if plan.is_proved else EXIT_FAIL)


def _print_explanation(found: Explanation) -> None:
    from rich.table import Table

    print_lines(f"{found.scenario}: {found.source} to {found.destination}, {found.routing}, {found.assignment}")
    table = Table(box=None, pad_edge=False, header_style="bold")
    layers = any(step.layer is not None for step in found.steps)
    vlans = any(step.vlan is not None for step in found.steps)
    for title, shown in (
        ("switch", True), ("in", True), ("from", True), ("out", True), ("to", True), ("channel", True),
        ("VLAN", vlans), ("layer", layers),
    ):  # fmt: skip
        if shown:
            table.add_column(title, justify="right" if title in ("in", "out", "VLAN", "layer") else "left")
    for step in found.steps:
        cells = [step.switch, str(step.in_port), step.came_from, str(step.out_port), step.goes_to, step.channel]
        cells += ["" if step.vlan is None else str(step.vlan)] if vlans else []
        cells += ["" if step.layer is None else str(step.layer)] if layers else []
        table.add_row(*cells)
    results.print(table)
    print_lines("rules it matches:")
    for step in found.steps:
        for rule in step.rules:
            print_lines(f"  {step.switch}  {rule}")
    if found.shorter is None:
        print_lines(f"{_count(found.hops, 'hop')}; no path has fewer")
    else:
        way = " ".join(found.shorter.switches)
        print_lines(f"{_count(found.hops, 'hop')}; a path of {_count(found.shorter.hops, 'hop')} is there: {way}")
        print_lines(f"  not taken: {found.shorter.reason}")
    if found.backup is not None:
        shared = _count(found.shared_links, "link") if found.shared_links else "no link"
        print_lines(f"backup path, {shared} in common: {' '.join(found.backup)}")
    for note in found.notes:
        print_lines(f"note: {note}")


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'s' * (number != 1)}"
