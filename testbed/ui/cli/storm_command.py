"""`testbed storm`: a broadcast with VLANs and, for a moment, without."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from testbed.base.errors import EXIT_FAIL, EXIT_PASS, InputError
from testbed.ui.cli.app import FORMAT, app
from testbed.ui.cli.output import Format, form_problems, print_json, print_lines, results, steps, write_file

if TYPE_CHECKING:
    from testbed.experiments.run.checks.storm import Storm, StormCounts


@app.command(epilog="Examples:\ntestbed storm\ntestbed storm --switches 8 --seconds 4 -o storm.svg")
def storm(
    switches: Annotated[int, typer.Option("--switches", help="switches in the ring, a host on each")] = 4,
    seconds: Annotated[float, typer.Option("--seconds", help="how long each of the two broadcasts is watched")] = 2.0,
    rate: Annotated[str, typer.Option("--rate", help="rate of all links, which caps the storm")] = "1 Mbit/s",
    engine: Annotated[str, typer.Option("--engine", help="ovs, or realtime for modelled switches")] = "ovs",
    plot: Annotated[
        Path | None, typer.Option("--output", "-o", help="draw the counters: FILE.svg, .pdf or .png")
    ] = None,
    form: FORMAT = Format.text,
) -> None:
    """Send a broadcast into a ring, with VLANs and without, where it circulates.

    In a lab of its own: first with the plan's VLANs, then without VLANs and STP.

    Exit code 1 if it passes a port twice with VLANs, or does not circulate without them.
    """
    from testbed.experiments.run.checks.storm import run_storm, storm_plan

    problems = form_problems("--output", plot)
    if problems:
        raise InputError(problems)
    with steps() as progress:
        found = run_storm(storm_plan(switches, seconds, rate, engine), seconds, progress)
    if plot is not None:
        _draw(found, plot)
    if form is Format.json:
        print_json(_as_object(found))
    else:
        _print(found)
        if plot is not None:
            print_lines(f"plot: {plot}")
    raise typer.Exit(EXIT_FAIL if found.problems else EXIT_PASS)


def _draw(found: Storm, plot: Path) -> None:
    from testbed.base.units import format_rate
    from testbed.experiments.report.curves import draw_growth

    curves = {
        "without VLANs and STP": (found.without.seconds, found.without.frames),
        "with the plan's VLANs": (found.vlans.seconds, found.vlans.frames),
    }
    title = f"One broadcast in a ring of {found.switches} switches, links of {format_rate(found.link_rate)}"
    write_file(plot, draw_growth(curves, title, "Frames sent by all switch ports", plot.suffix[1:].lower()))


def _print(found: Storm) -> None:
    from rich.table import Table

    from testbed.base.units import format_rate

    table = Table(
        title=f"One broadcast in a ring of {found.switches} switches, links of {format_rate(found.link_rate)}"
    )
    table.add_column("s", justify="right")
    for name in ("with the plan's VLANs", "without VLANs and STP"):
        table.add_column(f"{name}: frames, all ports", justify="right")
        table.add_column("busiest port", justify="right")
    for number, second in enumerate(found.without.seconds):
        counts = [
            f"{count:,}"
            for counted in (found.vlans, found.without)
            for count in (counted.frames[number], counted.busiest[number])
        ]
        table.add_row(f"{second:.1f}", *counts)
    results.print(table)
    if not found.problems:
        results.print(
            f"Without VLANs the frame still circulates: {found.without.rate:,.0f} frames/s at the busiest port, "
            f"{100 * found.load:.0f} % of its link. With them it went once through each port of its tree.",
            soft_wrap=True,
        )
    for problem in found.problems:
        print_lines(problem, "red")


def _as_object(found: Storm) -> dict[str, object]:
    def readings(counted: StormCounts) -> list[dict[str, object]]:
        return [
            {"seconds": round(second, 3), "frames": frames, "busiest_port": busiest}
            for second, frames, busiest in zip(counted.seconds, counted.frames, counted.busiest, strict=True)
        ]

    return {
        "switches": found.switches,
        "link_rate": found.link_rate,
        "with_vlans": readings(found.vlans),
        "without_vlans": readings(found.without),
        "frames_a_second_at_the_end": round(found.without.rate, 1),
        "share_of_link_rate": round(found.load, 4),
        "problems": found.problems,
    }
