"""Flows that begin and end, with congestion control: flows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from testbed.base.errors import InputError, Problem
from testbed.base.units import format_quantity, format_seconds
from testbed.ui.cli.app import FORMAT, SCENARIO, SETTINGS, app
from testbed.ui.cli.deadlock_output import choose_exit_code, print_deadlock
from testbed.ui.cli.output import Format, plan_scenario, print_json, print_lines, results, steps

if TYPE_CHECKING:
    from testbed.engines.simulate.run_flows import FlowOutcome, SizeClass

FIGURE = "slowdown.svg"
_ALL_AT_ONCE = "once"
TRAFFIC, MARKING, SWITCHES = "What is sent", "Marks and rates", "Switches"


@app.command(
    epilog="Examples:\ntestbed flows fattree14 --load 0.6\n"
    "testbed flows fattree14 --load 0.6 --congestion none\n"
    "testbed flows torus4x4 --sizes 2MB --load once --pattern hotspot:h1 --buffer 500000\n"
    "testbed flows fattree14 --sizes hadoop --dcqcn timer=300 --dcqcn additive=0.0005"
)
def flows(
    name: SCENARIO,
    settings: SETTINGS = None,
    sizes: Annotated[
        str,
        typer.Option("--sizes", help="web_search, hadoop, or one size such as 64kB or 2MB", rich_help_panel=TRAFFIC),
    ] = "web_search",
    load: Annotated[
        str,
        typer.Option(
            "--load",
            help="share of a host's link that each host asks for; once: one flow of each pair, all at time 0",
            rich_help_panel=TRAFFIC,
        ),
    ] = "0.5",
    pattern: Annotated[
        str,
        typer.Option(
            "--pattern",
            help="uniform: a destination drawn for each flow; or a pattern, hotspot:h1, …",
            rich_help_panel=TRAFFIC,
        ),
    ] = "uniform",
    duration: Annotated[
        float, typer.Option("--duration", help="ms in which flows begin", rich_help_panel=TRAFFIC)
    ] = 10.0,
    seed: Annotated[int, typer.Option("--seed", help="of what is drawn", rich_help_panel=TRAFFIC)] = 1,
    congestion: Annotated[
        str,
        typer.Option("--congestion", help="dcqcn, or none: hosts send at link rate", rich_help_panel=MARKING),
    ] = "dcqcn",
    k_min: Annotated[
        int, typer.Option("--k-min", help="bytes in a queue up to which no frame is marked", rich_help_panel=MARKING)
    ] = 5_000,
    k_max: Annotated[
        int, typer.Option("--k-max", help="bytes above which every frame is marked", rich_help_panel=MARKING)
    ] = 200_000,
    p_max: Annotated[
        float, typer.Option("--p-max", help="chance of a mark just below that", rich_help_panel=MARKING)
    ] = 0.01,
    dcqcn: Annotated[
        list[str] | None,
        typer.Option(
            "--dcqcn",
            metavar="PARAMETER=NUMBER",
            help="gain, alpha_time, timer, interval (µs), byte_counter, fast_recovery, additive, hyper",
            rich_help_panel=MARKING,
        ),
    ] = None,
    next_hop: Annotated[
        str | None,
        typer.Option(
            "--next-hop",
            help="with routing ecmp: path of the plan, or chosen by flow, random (spraying), round_robin or "
            "least_queue for each frame; default flow",
            rich_help_panel=SWITCHES,
        ),
    ] = None,
    flow_control: Annotated[
        str, typer.Option("--flow-control", help="pause (802.3x) or pfc", rich_help_panel=SWITCHES)
    ] = "pause",
    frame: Annotated[
        int, typer.Option("--frame", help="frame size in bytes, without preamble and gap", rich_help_panel=SWITCHES)
    ] = 1522,
    buffer: Annotated[
        int, typer.Option("--buffer", help="bytes of memory for each port and priority", rich_help_panel=SWITCHES)
    ] = 262_144,
    xoff: Annotated[
        int | None,
        typer.Option(
            "--xoff",
            help="bytes at which a sender is paused; default: highest lossless threshold",
            rich_help_panel=SWITCHES,
        ),
    ] = None,
    xon: Annotated[
        int | None,
        typer.Option("--xon", help="bytes at which it resumes; default half of xoff", rich_help_panel=SWITCHES),
    ] = None,
    shared: Annotated[
        bool,
        typer.Option(
            "--shared/--per-port", help="whether the ports of a switch share their memory", rich_help_panel=SWITCHES
        ),
    ] = False,
    delay: Annotated[
        float, typer.Option("--delay", help="delay of cable and switch per hop, µs", rich_help_panel=SWITCHES)
    ] = 1.0,
    folder: Annotated[Path, typer.Option("--results", help="where the results folder is created")] = Path("results"),
    form: FORMAT = Format.text,
) -> None:
    """Simulate flows that begin and end over lossless switches, with ECN marks and DCQCN, and their completion times.

    Exit code 0 all flows have arrived, 1 deadlock, 3 a declared deadlock did not form.
    """
    from testbed.engines.simulate.flow_settings import FlowSettings, flow_problems, parse_dcqcn, seed_problems
    from testbed.engines.simulate.packet_settings import PacketSettings
    from testbed.engines.simulate.run_flows import simulate_flows_of_plan

    problems: list[Problem] = []
    parameters = parse_dcqcn(dcqcn or [], problems)
    share = _parse_load(load, problems)
    switches = PacketSettings(
        pattern=pattern, flow_control=flow_control, duration=duration, warm_up=0.0, frame=frame, buffer=buffer,  # type: ignore[arg-type]  # looked at with the others
        xoff=xoff, xon=xon, shared=shared, delay=delay,
    )  # fmt: skip
    asked = FlowSettings(switches, sizes, share, congestion, k_min, k_max, p_max, parameters, next_hop)  # type: ignore[arg-type]  # likewise
    problems += [*flow_problems(asked), *seed_problems(seed)]
    if problems:
        raise InputError(problems)
    with steps() as progress:
        progress("planning and proving")
        plan = plan_scenario(name, settings)
        outcome = simulate_flows_of_plan(plan, asked, seed, folder, progress)
        figure = _draw(outcome)
    if form is Format.json:
        print_json(
            {**outcome.as_object(), "results": str(outcome.folder), "figure": None if figure is None else str(figure)}
        )
    else:
        _print(outcome, figure)
    raise typer.Exit(choose_exit_code(outcome.plan, outcome.result.cycle))


def _parse_load(text: str, problems: list[Problem]) -> float | None:
    """A share of a host's link; None for flows that all begin at once."""
    if text.strip() == _ALL_AT_ONCE:
        return None
    try:
        return float(text)
    except ValueError:
        sentence = f'should be a share such as 0.5, or {_ALL_AT_ONCE}, not "{text}"'
        problems.append(Problem("--load", sentence))
        return None


def _draw(outcome: FlowOutcome) -> Path | None:
    """Draw slowdowns by size; None where sizes are all alike, or nothing arrived."""
    import numpy as np

    from testbed.base.files import write_whole
    from testbed.experiments.report.curves import draw_slowdown

    result = outcome.result
    done = result.finished >= 0
    if len(np.unique(result.flows.size[done])) < 2:
        return None
    title = f"{outcome.plan.scenario.name}, congestion control: {outcome.settings.congestion}"
    drawn = draw_slowdown(result.flows.size[done], result.slowdown[done], title)
    write_whole(outcome.folder / FIGURE, drawn)
    return outcome.folder / FIGURE


def _print(outcome: FlowOutcome, figure: Path | None) -> None:
    from testbed.engines.simulate.run_flows import FLOWS, describe_traffic

    result, settings = outcome.result, outcome.settings
    print_lines(f"{outcome.plan.scenario.name}: {describe_traffic(settings)}")
    print_lines(
        f"{len(result.flows.source):,} flows, {int(result.flows.size.sum()):,} bytes, {result.frames:,} frames "
        f"delivered; congestion control: {settings.congestion}, flow control: {settings.switches.flow_control}"
    )
    if result.cycle:
        print_deadlock(outcome.plan, result.cycle, f"after {format_seconds(result.end / 1e12)}")
    else:
        print_lines(f"all flows have arrived after {format_seconds(result.end / 1e12)}")
    _print_classes(outcome.classes)
    if settings.congestion != "none":
        print_lines(f"{result.marked:,} frames marked, {result.notified:,} congestion notifications")
    print_lines(
        f"{result.pauses:,} PAUSE frames; hosts paused {format_quantity(result.hosts_paused, 'ratio')} of the time, "
        f"channels {format_quantity(result.channels_paused, 'ratio')}; longest queue {result.longest_queue:,} frames"
    )
    if figure is not None:
        print_lines(f"figure: {figure}")
    print_lines(f"data: {outcome.folder / FLOWS}")
    print_lines(f"results: {outcome.folder}")


def _print_classes(classes: Sequence[SizeClass]) -> None:
    """A table of completion times by size."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("size", "flows", "slowdown p50", "p95", "p99", "time p50", "p99"):
        table.add_column(column, justify="left" if column == "size" else "right")
    for number, one in enumerate(classes):
        if one.slowdown is not None and one.seconds is not None:
            table.add_row(
                "all" if number == len(classes) - 1 else _size_text(one),
                f"{one.flows:,}",
                *(_cell(one.slowdown[key], "{:.2f}".format) for key in ("p50", "p95", "p99")),
                *(_cell(one.seconds[key], format_seconds) for key in ("p50", "p99")),
            )
    results.print(table)


def _cell(value: float | None, written: Callable[[float], str]) -> str:
    return "–" if value is None else written(value)


def _size_text(one: SizeClass) -> str:
    from testbed.base.units import bytes_text

    return f"above {bytes_text(one.at_least)}" if one.at_most is None else f"up to {bytes_text(one.at_most)}"
