"""Commands that simulate a plan: simulate."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from testbed.base.errors import EXIT_FAIL, EXIT_PASS, EXIT_WARNINGS, InputError, Problem, TestbedError
from testbed.ui.cli.app import FORMAT, SCENARIO, SETTINGS, app
from testbed.ui.cli.output import Format, messages, plan_scenario, print_json, steps
from testbed.ui.cli.simulate_output import as_object, draw, draw_deadlock, print_outcome, seeds_by_load, static_bound
from testbed.ui.cli.vary import VARY, each_variant
from testbed.ui.cli.worker_options import CLUSTER_HELP, INSECURE_HELP, cluster_of

if TYPE_CHECKING:
    from testbed.engines.simulate import PacketSettings, Settings, SimulationOutcome

_LOADS = "0.05,0.1,0.15,0.2,0.25,0.3,0.4,0.5"
_PACKET_LOADS = "0.1,0.2,0.3,0.4,0.5,0.6,0.7,0.8,0.9,1"
_CYCLES, _WARM_UP, _BUFFER = 200_000, 50_000, 256
# Groups of options in help.
FLITS, FRAMES = "Flit level", "Packet level"
REPLAY, RUNS = "Replay what was sent (flit level)", "How it is run, and where results go"


class Level(str, Enum):
    """How much of a network is simulated."""

    flit = "flit"
    packet = "packet"


@app.command(
    epilog="Examples:\ntestbed simulate dl-ud3-irregular16 --loads 0.1,0.2,0.3 --seeds 3\n"
    "testbed simulate deadlock-torus8x8 --loads 0.6 --cycles 100000\n"
    "testbed simulate torus4x4 --pattern all_to_all --message 100000\n"
    "testbed simulate fattree-k4 --pattern ring_all_reduce --message 1000000\n"
    "testbed simulate torus4x4 --level packet --flow-control none\n"
    "testbed simulate torus4x4 --vary routing=dor,updown,sr --loads 0.1,0.2"
)
def simulate(
    context: typer.Context,
    name: SCENARIO,
    settings: SETTINGS = None,
    vary: VARY = None,
    level: Annotated[
        Level, typer.Option("--level", help="virtual cut-through by flits, or whole packets and PAUSE frames")
    ] = Level.flit,
    loads: Annotated[
        str | None,
        typer.Option(
            "--loads", help="offered loads: flits per host and cycle, or share of a host's link; comma-separated"
        ),
    ] = None,
    seeds: Annotated[
        int | None,
        typer.Option("--seeds", help="runs of each load, with seeds 1, 2, …; default 1, near saturation 3"),
    ] = None,
    pattern: Annotated[
        str,
        typer.Option(
            "--pattern",
            help="uniform: a destination drawn for each packet; a permutation; all_to_all; ring_all_reduce, …",
        ),
    ] = "uniform",
    matrix: Annotated[
        Path | None,
        typer.Option(
            "--matrix", help="replay a traffic matrix: FILE.csv or telemetry-<load>.npz", rich_help_panel=REPLAY
        ),
    ] = None,
    schedule: Annotated[
        Path | None,
        typer.Option(
            "--schedule",
            metavar="FILE",
            help="replay messages and what they wait for: GOAL, SimGrid's traces, htsim's matrices",
            rich_help_panel=REPLAY,
        ),
    ] = None,
    loggops: Annotated[
        str | None,
        typer.Option(
            "--loggops",
            metavar="L=2500,o=1500,…",
            help="with --schedule: also say what it takes by the LogGOPS model, ns and bytes",
            rich_help_panel=REPLAY,
        ),
    ] = None,
    trace: Annotated[
        Path | None,
        typer.Option("--trace", help="replay the traffic of a run, from its result folder", rich_help_panel=REPLAY),
    ] = None,
    load: Annotated[
        str | None, typer.Option("--trace-load", help="with --trace: number of the load", rich_help_panel=REPLAY)
    ] = None,
    message: Annotated[
        int | None,
        typer.Option(
            "--message",
            help="bytes of a message of all_to_all (65536), of a collective (1048576)",
            rich_help_panel=REPLAY,
        ),
    ] = None,
    warm_up: Annotated[
        float | None,
        typer.Option("--warm-up", help="cycles, or ms at packet level, that are not measured; default 50000, or 50"),
    ] = None,
    buffer: Annotated[
        int | None,
        typer.Option(
            "--buffer",
            help="flits of a virtual channel, 256; at packet level bytes of each port and priority, 65536",
        ),
    ] = None,
    cycles: Annotated[
        int | None,
        typer.Option(
            "--cycles", "--clocks", help="length of a run, warm-up included; default 200000", rich_help_panel=FLITS
        ),
    ] = None,
    packet: Annotated[
        int | None, typer.Option("--packet", help="packet length, flits; default 128", rich_help_panel=FLITS)
    ] = None,
    header: Annotated[
        int | None,
        typer.Option(
            "--header", help="cycles that a header takes from switch to switch; default 3", rich_help_panel=FLITS
        ),
    ] = None,
    channels: Annotated[
        int | None,
        typer.Option(
            "--channels", help="copies of each virtual channel, a packet takes any; default 1", rich_help_panel=FLITS
        ),
    ] = None,
    buffer_gap: Annotated[
        int | None,
        typer.Option(
            "--buffer-gap", help="cycles between packets of a buffer; default header - 2", rich_help_panel=FLITS
        ),
    ] = None,
    output_gap: Annotated[
        int | None,
        typer.Option(
            "--output-gap", help="cycles between packets of a virtual channel; default 0", rich_help_panel=FLITS
        ),
    ] = None,
    flow_control: Annotated[
        str | None,
        typer.Option(
            "--flow-control", help="none (drops), pause (802.3x) or pfc; default pause", rich_help_panel=FRAMES
        ),
    ] = None,
    duration: Annotated[
        float | None,
        typer.Option("--duration", help="ms of a run, warm-up included; default 200", rich_help_panel=FRAMES),
    ] = None,
    frame: Annotated[
        int | None,
        typer.Option(
            "--frame", help="frame size in bytes, without preamble and gap; default 1522", rich_help_panel=FRAMES
        ),
    ] = None,
    xoff: Annotated[
        int | None,
        typer.Option(
            "--xoff",
            help="bytes at which a sender is paused; default: highest lossless threshold",
            rich_help_panel=FRAMES,
        ),
    ] = None,
    xon: Annotated[
        int | None,
        typer.Option("--xon", help="bytes at which it resumes; default half of xoff", rich_help_panel=FRAMES),
    ] = None,
    shared: Annotated[
        bool | None,
        typer.Option(
            "--shared/--per-port", help="whether the ports of a switch share their memory", rich_help_panel=FRAMES
        ),
    ] = None,
    delay: Annotated[
        float | None,
        typer.Option("--delay", help="delay of cable and switch per hop, µs; default 1", rich_help_panel=FRAMES),
    ] = None,
    tie_orders: Annotated[
        int | None,
        typer.Option(
            "--tie-orders",
            help="also run with N other orders of simultaneous events, and report the spread; default 0",
            rich_help_panel=FRAMES,
        ),
    ] = None,
    folder: Annotated[
        Path, typer.Option("--results", help="where the results folder is created", rich_help_panel=RUNS)
    ] = Path("results"),
    resume: Annotated[
        bool, typer.Option("--resume", help="resume the newest simulation of this scenario there", rich_help_panel=RUNS)
    ] = False,
    jobs: Annotated[
        int | None, typer.Option("--jobs", help="runs in parallel; default one per CPU", rich_help_panel=RUNS)
    ] = None,
    cluster: Annotated[str | None, typer.Option("--cluster", help=CLUSTER_HELP, rich_help_panel=RUNS)] = None,
    insecure: Annotated[bool, typer.Option("--insecure", help=INSECURE_HELP, rich_help_panel=RUNS)] = False,
    form: FORMAT = Format.text,
) -> None:
    """Simulate lossless switches, or lossy ones, by flits or by frames.

    Exit code 0 pass, 1 deadlock, 3 a declared deadlock did not form.
    """
    if vary:
        raise typer.Exit(each_variant(name, settings, vary, form, simulate, locals()))
    from testbed.engines.simulate import Settings, simulate_plan
    from testbed.ui.cli.replay_commands import ReplayOptions, run_replay

    of_flits = {
        "cycles": cycles, "packet": packet, "header": header, "channels": channels, "buffer_gap": buffer_gap,
        "output_gap": output_gap,
    }  # fmt: skip
    replayed = {"matrix": matrix, "trace": trace, "trace_load": load, "message": message,
        "schedule": schedule, "loggops": loggops,
    }  # fmt: skip
    of_packets = {
        "flow_control": flow_control, "duration": duration, "frame": frame, "xoff": xoff, "xon": xon,
        "shared": shared, "delay": delay, "tie_orders": tie_orders,
    }  # fmt: skip
    given = {"warm_up": warm_up, "buffer": buffer, **(of_packets if level is Level.packet else of_flits)}
    problems = _other_level(level, {**of_flits, **replayed} if level is Level.packet else of_packets)
    if level is Level.flit:
        typed = _list_given_options(context)
        sent = ReplayOptions(pattern if "pattern" in typed else None, matrix, trace, load, schedule, loggops, message)
        problems += sent.problems(typed)
        if sent.is_replay:
            if cluster is not None:
                problems.append(Problem("--cluster", "a replay is one run; leave it out"))
            if problems:
                raise InputError(problems)
            switches = {name: value for name, value in given.items() if name != "warm_up" and value is not None}
            raise typer.Exit(run_replay(name, settings or (), sent, Settings(**switches), folder, form))  # type: ignore[arg-type]  # typed by the options
    asked = _settings(level, pattern, given, problems)
    typed_loads = loads or (_PACKET_LOADS if level is Level.packet else _LOADS)
    if cluster is not None and jobs is not None:
        problems.append(Problem("--jobs", "is for threads of this program; with --cluster say local:N"))
    wanted = _check_options(typed_loads, asked, 1 if seeds is None else seeds, jobs, problems)
    with ExitStack() as ends, steps() as progress:
        progress("planning and proving")
        plan = plan_scenario(name, settings)
        try:
            runs = seeds_by_load(plan, asked) if seeds is None else seeds
            workers = ends.enter_context(cluster_of(cluster, progress, insecure=insecure))
            outcome = simulate_plan(
                plan, asked, wanted, runs, folder, progress, resume=resume, jobs=jobs, workers=workers
            )
        except TestbedError:
            raise
        except BaseException:  # also Ctrl-C
            messages.print("what is done is kept; go on with the same command and --resume", soft_wrap=True)
            raise
        bound = static_bound(plan, asked)
        figure = draw(outcome, bound)
        if outcome.deadlock is not None:
            progress("drawing how the deadlock came about")
        ring = draw_deadlock(outcome)
    if form is Format.json:
        print_json(as_object(outcome, bound, figure, ring))
    else:
        print_outcome(outcome, bound, figure, ring)
    raise typer.Exit(_exit_code(outcome))


def _list_given_options(context: typer.Context) -> list[str]:
    """Parameters given on the command line."""
    sources = {name: context.get_parameter_source(name) for name in context.params}
    return [name for name, source in sources.items() if source is not None and source.name == "COMMANDLINE"]


def _other_level(level: Level, others: Mapping[str, object]) -> list[Problem]:
    """Options that do not apply to this level."""
    other = Level.flit if level is Level.packet else Level.packet
    return [
        Problem(f"--{name.replace('_', '-')}", f"applies only to --level {other.value}; leave it out")
        for name, value in others.items()
        if value is not None
    ]


def _settings(
    level: Level, pattern: str, given: Mapping[str, object], problems: list[Problem]
) -> Settings | PacketSettings:
    """Settings with the defaults of the command."""
    from testbed.engines.simulate import PacketSettings, Settings

    asked = {name: value for name, value in given.items() if value is not None}
    if level is Level.packet:
        return PacketSettings(pattern=pattern, **asked)  # type: ignore[arg-type]  # typed by the options
    warm_up = asked.get("warm_up", _WARM_UP)
    if isinstance(warm_up, float):
        if not warm_up.is_integer():
            problems.append(Problem("--warm-up", f"should be whole cycles, not {warm_up:g}"))
        asked["warm_up"] = int(warm_up)
    defaults = {"clocks": asked.pop("cycles", _CYCLES), "warm_up": _WARM_UP, "buffer": _BUFFER}
    return Settings(pattern=pattern, **{**defaults, **asked})  # type: ignore[arg-type]  # likewise


def _check_options(
    loads: str, asked: Settings | PacketSettings, seeds: int, jobs: int | None, problems: list[Problem]
) -> tuple[float, ...]:
    """The loads, or everything that is wrong with the options."""
    from testbed.engines.simulate import PacketSettings
    from testbed.engines.simulate.flit_settings import parse_loads, settings_problems
    from testbed.engines.simulate.packet_settings import packet_problems

    wanted: tuple[float, ...] = ()
    found: list[Problem] = []
    packets = isinstance(asked, PacketSettings)
    try:
        wanted = parse_loads(loads, "up to all of its link's rate" if packets else "up to 1 flit per host and cycle")
    except InputError as error:
        found += error.problems
    found += packet_problems(asked, seeds) if isinstance(asked, PacketSettings) else settings_problems(asked, seeds)
    if jobs is not None and jobs < 1:
        found.append(Problem("--jobs", f"should be 1 or more, not {jobs}"))
    if problems or found:
        raise InputError([*problems, *found])
    return wanted


def _exit_code(outcome: SimulationOutcome) -> int:
    if outcome.must_not_deadlock:
        return EXIT_FAIL if outcome.deadlock else EXIT_PASS
    return EXIT_PASS if outcome.deadlock else EXIT_WARNINGS
