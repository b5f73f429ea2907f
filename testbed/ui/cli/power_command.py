"""`testbed power`: links that traffic can do without, and what switches take then."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from testbed.base.errors import InputError
from testbed.ui.cli.app import FORMAT, SCENARIO, SETTINGS, app
from testbed.ui.cli.output import (
    Format,
    form_problems,
    plan_scenario,
    print_json,
    print_lines,
    results,
    steps,
    write_file,
)

if TYPE_CHECKING:
    from testbed.experiments.regulate.choose_links import LinkChoice
    from testbed.experiments.regulate.power import Power
    from testbed.planning import Plan

MODEL = Annotated[
    str | None,
    typer.Option("--model", help="switch model; default the scenario's, or else all with enough ports"),
]
PATTERNS = Annotated[
    list[str] | None, typer.Option("--pattern", help="traffic by a pattern; default all_to_all; repeatable")
]
MATRICES = Annotated[
    list[Path] | None,
    typer.Option("--matrix", help="traffic of a run: its result folder, or a telemetry-<load>.npz of it; repeatable"),
]
SLOWER = Annotated[bool, typer.Option("--slower", help="let links run at 100 or 10 Mbit/s where that is enough")]


@app.command(
    epilog="Examples:\ntestbed power torus4x4-3links --model PC5324 --pattern neighbour\n"
    "testbed power torus4x4-3links --matrix results/<folder> -o power.svg"
)
def power(
    name: SCENARIO,
    settings: SETTINGS = None,
    patterns: PATTERNS = None,
    matrices: MATRICES = None,
    model: MODEL = None,
    slower: SLOWER = False,
    form: FORMAT = Format.text,
    plot: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="draw the links that are off, and the power: FILE.svg, .pdf or .png"),
    ] = None,
) -> None:
    """Compute the power of all switches, with and without removable links.

    A link is removable if the traffic does not need it; nothing is built.
    """
    from testbed.experiments.regulate.power import as_object

    with steps() as progress:
        progress("planning and proving")
        plan = plan_scenario(name, settings)
        plan.require_proof()
        found = _choices(plan, patterns, matrices, model, slower=slower, plot=plot, progress=progress)
        if plot is not None:
            from testbed.experiments.regulate.figure import draw

            progress("drawing")
            write_file(plot, draw(plan, found, plot.suffix[1:].lower()))
    if form is Format.json:
        print_json(as_object(plan, found))
        return
    _print(plan, found)
    if plot is not None:
        print_lines(f"plot: {plot}")


def _choices(
    plan: Plan,
    patterns: Sequence[str] | None,
    matrices: Sequence[Path] | None,
    model: str | None,
    *,
    slower: bool,
    plot: Path | None,
    progress: Callable[[str], None],
) -> list[tuple[LinkChoice, list[Power]]]:
    """A choice for each kind of traffic, or all that is wrong with what was asked for."""
    from testbed.experiments.regulate.choose_links import choose_links
    from testbed.experiments.regulate.power import models_for, power_of
    from testbed.experiments.regulate.traffic import gather
    from testbed.planning.speeds import alike_problems

    asked = patterns or ([] if matrices else ["all_to_all"])
    traffic, problems = gather(asked, matrices or [], plan.topology, plan.scenario.lab.seed)
    problems += form_problems("--output", plot)
    problems += alike_problems(plan.scenario, "the choice of links to spare")
    models = []
    try:
        models = models_for(plan, model)
    except InputError as error:
        problems += error.problems
    if problems:
        raise InputError(problems)
    found = []
    for one in traffic:
        choice = choose_links(
            plan,
            one,
            slower=slower,
            progress=lambda done, links, name=one.name: progress(f"{name}: {10 * (10 * done // links)} % of the links"),  # type: ignore[misc]
        )
        found.append((choice, [power_of(plan, choice, model) for model in models]))
    return found


def _print(plan: Plan, found: Sequence[tuple[LinkChoice, Sequence[Power]]]) -> None:
    from rich.table import Table

    links = plan.wiring.link_count
    table = Table(box=None, pad_edge=False, header_style="bold")
    for title in ("traffic", "model", f"links off, of {links}", "slower", "all on (W)", "then (W)", "saved"):
        table.add_column(title, justify="left" if title in ("traffic", "model") else "right")
    for choice, powers in found:
        slower = sum(speed not in ("off", "1G") for speed in choice.selection.speeds)
        for number, power in enumerate(powers):
            of_choice = (choice.traffic.name, f"{len(choice.off_links)}", f"{slower}") if number == 0 else ("", "", "")
            table.add_row(
                of_choice[0], power.model.name, of_choice[1], of_choice[2], f"{power.before.sum():.1f}",
                f"{power.after.sum():.1f}", f"{100 * power.saving:.1f} %",
            )  # fmt: skip
    results.print(table)
    for choice, powers in found:
        names = " ".join(choice.names) or "none"
        print_lines(f"{choice.traffic.name}, off: {names}")
        if len(powers) == 1:
            _print_switches(plan, powers[0])


def _print_switches(plan: Plan, power: Power) -> None:
    """Watts of each switch, those alike on one line."""
    alike: dict[tuple[float, float], list[str]] = {}
    for switch, watts in enumerate(zip(power.before.tolist(), power.after.tolist(), strict=True)):
        alike.setdefault(watts, []).append(plan.wiring.switch_name(switch))
    for (before, after), names in alike.items():
        each = " each" if len(names) > 1 else ""
        print_lines(f"  {before:.1f} W → {after:.1f} W{each}: {' '.join(names)}")
