"""Commands that simulate a plan: simulate."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from testbed.cli.app import FORMAT, SCENARIO, SETTINGS, app
from testbed.cli.output import Format, messages, print_json, results, steps
from testbed.errors import EXIT_FAIL, EXIT_PASS, EXIT_WARNINGS, InputError, Problem, TestbedError

if TYPE_CHECKING:
    from testbed.simulate import Outcome, Settings
    from testbed.simulate.rows import Seeds

FIGURE, CHANNELS = "latency.svg", "channels.svg"
_LOADS = "0.05,0.1,0.15,0.2,0.25,0.3,0.4,0.5"


@app.command(
    epilog="Examples: testbed simulate dl-ud3-irregular16 --loads 0.1,0.2,0.3 --seeds 3   |   "
    "testbed simulate deadlock-torus8x8 --loads 0.6 --clocks 100000   |   "
    "testbed simulate torus4x4 --pattern all_to_all --message 100000"
)
def simulate(
    context: typer.Context,
    name: SCENARIO,
    settings: SETTINGS = None,
    loads: Annotated[
        str, typer.Option("--loads", help="flits for each host and clock, above 0 up to 1; with commas between")
    ] = _LOADS,
    seeds: Annotated[int, typer.Option("--seeds", help="runs of each load, with seeds 1, 2, …")] = 1,
    pattern: Annotated[
        str, typer.Option("--pattern", help="uniform: a destination drawn for each packet; a permutation; all_to_all")
    ] = "uniform",
    matrix: Annotated[
        Path | None, typer.Option("--matrix", help="replay a traffic matrix: FILE.csv or telemetry-<load>.npz")
    ] = None,
    trace: Annotated[
        Path | None, typer.Option("--trace", help="replay what was sent in a run: its result folder")
    ] = None,
    load: Annotated[str | None, typer.Option("--load", help="number of the load of --trace")] = None,
    message: Annotated[
        int | None, typer.Option("--message", help="bytes of a message of all_to_all; default 65536")
    ] = None,
    clocks: Annotated[int, typer.Option("--clocks", help="of a run, the warm-up included")] = 200_000,
    warm_up: Annotated[int, typer.Option("--warm-up", help="clocks at the beginning that are not measured")] = 50_000,
    packet: Annotated[int, typer.Option("--packet", help="flits of a packet")] = 128,
    buffer: Annotated[int, typer.Option("--buffer", help="flits of the buffer of a virtual channel")] = 256,
    header: Annotated[int, typer.Option("--header", help="clocks of a header from switch to switch")] = 3,
    folder: Annotated[Path, typer.Option("--results", help="where the results folder is made")] = Path("results"),
    resume: Annotated[bool, typer.Option("--resume", help="go on with the newest simulation of it there")] = False,
    jobs: Annotated[int | None, typer.Option("--jobs", help="runs at a time; default one a processor")] = None,
    form: FORMAT = Format.text,
) -> None:
    """Simulate virtual cut-through flit by flit. Exit 0 pass, 1 deadlock, 3 a declared deadlock did not form."""
    from testbed.cli.replay_commands import Asked, run_replay
    from testbed.plan import make_plan
    from testbed.scenario import find_scenario, load_scenario
    from testbed.simulate import Settings, simulate_plan

    given = _given(context)
    sent = Asked(pattern if "pattern" in given else None, matrix, trace, load, message)
    problems = sent.problems(given)
    if problems:
        raise InputError(problems)
    if sent.wanted:
        switches = Settings(packet=packet, buffer=buffer, header=header)
        raise typer.Exit(run_replay(name, settings or (), sent, switches, folder, form))
    asked = Settings(pattern, clocks, warm_up, packet, buffer, header)
    wanted = _checked(loads, asked, seeds, jobs)
    with steps() as progress:
        progress("planning and proving")
        plan = make_plan(load_scenario(find_scenario(name), settings or ()))
        try:
            outcome = simulate_plan(plan, asked, wanted, seeds, folder, progress, resume=resume, jobs=jobs)
        except TestbedError:
            raise
        except BaseException:  # also Ctrl-C
            messages.print("what is done is kept; go on with the same command and --resume", soft_wrap=True)
            raise
        bound = _bound(outcome)
        figure = _draw(outcome, bound)
    if form is Format.json:
        print_json(_as_object(outcome, bound, figure))
    else:
        _print(outcome, bound, figure)
    raise typer.Exit(_exit_code(outcome))


def _given(context: typer.Context) -> list[str]:
    """Parameters that stand on the command line."""
    sources = {name: context.get_parameter_source(name) for name in context.params}
    return [name for name, source in sources.items() if source is not None and source.name == "COMMANDLINE"]


def _checked(loads: str, asked: Settings, seeds: int, jobs: int | None) -> tuple[float, ...]:
    """The loads, or everything that is wrong with the options."""
    from testbed.simulate.settings import parse_loads, settings_problems

    problems: list[Problem] = []
    wanted: tuple[float, ...] = ()
    try:
        wanted = parse_loads(loads)
    except InputError as error:
        problems += error.problems
    problems += settings_problems(asked, seeds)
    if jobs is not None and jobs < 1:
        problems.append(Problem("--jobs", f"should be 1 or more, not {jobs}"))
    if problems:
        raise InputError(problems)
    return wanted


def _exit_code(outcome: Outcome) -> int:
    if outcome.plan.scenario.expect == "deadlock":
        return EXIT_PASS if outcome.deadlock else EXIT_WARNINGS
    return EXIT_FAIL if outcome.deadlock else EXIT_PASS


def _bound(outcome: Outcome) -> float | None:
    """Rate at which the fullest channel carries all it can, by the paths alone."""
    from testbed.analyse.load import ALL_TO_ALL, load_of
    from testbed.simulate.settings import UNIFORM

    plan, pattern = outcome.plan, outcome.settings.pattern
    spread = ALL_TO_ALL if pattern == UNIFORM else pattern
    return load_of(plan.topology, plan.routes, spread, plan.scenario.lab.seed).saturation


def _draw(outcome: Outcome, bound: float | None) -> Path | None:
    """Draw what flows: latency over accepted traffic, and the use of the channels; None where nothing does."""
    import numpy as np

    from testbed.report.channels import draw_channel_use
    from testbed.report.latency import Dot, draw_latency
    from testbed.results.folders import write

    dots = [
        Dot(row.accepted.mean, row.latency.mean, row.latency.least, row.latency.most)
        for row in outcome.rows
        if row.accepted is not None and row.latency is not None
    ]
    if not dots:
        return None
    title = f"{outcome.plan.scenario.name}, {outcome.settings.pattern}"
    write(outcome.folder / FIGURE, draw_latency(dots, bound, title))
    loads, use = outcome.channel_use
    if len(use):
        edges, columns = np.arange(len(loads) + 1, dtype=float), [f"{load:g}" for load in loads]
        drawn = draw_channel_use(outcome.plan.topology, use, edges, "Load (flits/host/clock)", columns)
        write(outcome.folder / CHANNELS, drawn)
    return outcome.folder / FIGURE


def _as_object(outcome: Outcome, bound: float | None, figure: Path | None) -> dict[str, Any]:
    highest, deadlock = outcome.highest, outcome.deadlock
    return {
        "scenario": outcome.plan.scenario.name,
        "digest": outcome.plan.digest,
        "expect": outcome.plan.scenario.expect,
        "settings": dataclasses.asdict(outcome.settings),
        "static_bound": bound,
        "throughput": highest.accepted.mean if highest is not None and highest.accepted is not None else None,
        "loads": [dataclasses.asdict(row) for row in outcome.rows],
        "deadlock": {"load": deadlock.load, "seed": deadlock.seed, "clock": deadlock.clocks, "cycle": deadlock.cycle}
        if deadlock is not None
        else None,
        "results": str(outcome.folder),
        "figure": None if figure is None else str(figure),
    }


def _print(outcome: Outcome, bound: float | None, figure: Path | None) -> None:
    from rich.table import Table

    settings = outcome.settings

    def say(text: str, style: str | None = None) -> None:
        results.print(text, style=style, markup=False, soft_wrap=True)

    say(
        f"{outcome.plan.scenario.name}: {settings.pattern}, packets of {settings.packet} flits, buffers of "
        f"{settings.buffer}, {settings.clocks:,} clocks, the first {settings.warm_up:,} not measured"
    )
    table = Table(box=None, pad_edge=False, header_style="bold")
    for title in ("load", "accepted", "latency: mean", "99th percentile", "fullest channel", "seeds"):
        table.add_column(title, justify="right")
    for row in outcome.rows:
        seeds = f"{row.seeds}, {row.deadlocks} stood still" if row.deadlocks else f"{row.seeds}"
        table.add_row(
            f"{row.load:g}", _text(row.accepted, ".4f"), _text(row.latency, ".1f"), _text(row.p99, ".0f"),
            _text(row.fullest_use, ".1%"), seeds,
        )  # fmt: skip
    results.print(table)
    say("load and accepted in flits for each host that sends and clock; latency in clocks, (least – most) over seeds")
    highest = outcome.highest
    if highest is not None and highest.accepted is not None:
        rising = "" if highest.saturated else ", and all of that load: it may bear more"
        say(f"throughput: {highest.accepted.mean:.4f} at load {highest.load:g}{rising}")
    if bound is not None:
        say(f"by its paths alone the fullest channel is full at {bound:.4f}")
    _print_deadlock(outcome)
    if figure is not None:
        say(f"figure: {figure}")
        if (figure.parent / CHANNELS).exists():
            say(f"figure: {figure.parent / CHANNELS}")
    say(f"results: {outcome.folder}")


def _print_deadlock(outcome: Outcome) -> None:
    found, expected = outcome.deadlock, outcome.plan.scenario.expect == "deadlock"
    if found is not None:
        ring = " waits for ".join((*found.cycle, found.cycle[0]))
        declared = " as declared" if expected else ""
        place = f"by clock {found.clocks:,}, load {found.load:g}, seed {found.seed}"
        text = f"deadlock{declared} {place}: {ring}"
        results.print(text, style="green" if expected else "red", markup=False, soft_wrap=True)
    elif expected:
        text = "the declared deadlock did not form; give more load (--loads 1) or time (--clocks)"
        messages.print(text, style="yellow", markup=False, soft_wrap=True)


def _text(figure: Seeds | None, form: str) -> str:
    if figure is None:
        return "–"
    spread = "" if figure.least == figure.most else f" ({figure.least:{form}} – {figure.most:{form}})"
    return f"{figure.mean:{form}}{spread}"
