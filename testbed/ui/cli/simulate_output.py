"""What `testbed simulate` prints and draws."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from testbed.base.units import format_rate, format_seconds
from testbed.ui.cli.output import messages, print_lines, results

if TYPE_CHECKING:
    from testbed.engines.simulate import PacketSettings, Settings, SimulationOutcome
    from testbed.engines.simulate.flit_point import Row, Seeds
    from testbed.experiments.analyse.channel_load import ChannelLoad
    from testbed.planning import Plan

WIDE = 120  # columns that hold all figures beside each other
FIGURE, CHANNELS = "latency.svg", "channels.svg"
Column = tuple[str, Callable[["Row"], str]]


def static_load(plan: Plan, settings: Settings | PacketSettings) -> ChannelLoad:
    """What the pattern asks of each link by the paths alone. At flit level all links carry a flit a cycle."""
    from testbed.engines.simulate.flit_settings import UNIFORM, Settings
    from testbed.experiments.analyse.channel_load import ALL_TO_ALL, load_of

    spread = ALL_TO_ALL if settings.pattern == UNIFORM else settings.pattern
    links = plan.scenario.links
    host_link = 1.0 if isinstance(settings, Settings) else links.edge_rate / links.rate
    return load_of(plan.topology, plan.routes, spread, plan.scenario.lab.seed, host_link=host_link)


def static_bound(plan: Plan, settings: Settings | PacketSettings) -> float | None:
    """Injection rate at which the bottleneck link saturates, by paths alone; of a host's link at packet level."""
    load = static_load(plan, settings)
    return None if load.saturation is None else load.saturation / load.host_link


# Above this share of the static bound runs with different seeds differ, so there are several.
_NEAR_SATURATION, _SEEDS_THERE = 0.7, 3


def seeds_by_load(plan: Plan, settings: Settings | PacketSettings) -> Callable[[float], int]:
    """How often each load is run where no number was asked for. What it returns needs a pattern that fits the plan."""

    def seeds(load: float) -> int:
        bound = static_bound(plan, settings)
        return 1 if bound is None or load < _NEAR_SATURATION * bound else _SEEDS_THERE

    return seeds


def draw(outcome: SimulationOutcome, bound: float | None) -> Path | None:
    """Draw what flows: latency over accepted traffic, and the use of the channels; None where nothing does."""
    import numpy as np

    from testbed.base.files import write_whole
    from testbed.experiments.report.curves import CYCLES, MICROSECONDS, Dot, draw_latency
    from testbed.experiments.report.heatmaps import draw_channel_use

    packets = outcome.packet_settings is not None
    unit = 1e6 if packets else 1.0
    dots = [
        Dot(row.accepted.mean, unit * row.latency.mean, unit * row.latency.min, unit * row.latency.max)
        for row in outcome.rows
        if row.accepted is not None and row.latency is not None
    ]
    if not dots:
        return None
    how = "" if outcome.packet_settings is None else f", flow control {outcome.packet_settings.flow_control}"
    title = f"{outcome.plan.scenario.name}, {outcome.settings.pattern}{how}"
    labels = MICROSECONDS if packets else CYCLES
    write_whole(outcome.folder / FIGURE, draw_latency(dots, bound, title, labels))
    loads, use = outcome.channel_use
    if len(use):
        edges, columns = np.arange(len(loads) + 1, dtype=float), [f"{load:g}" for load in loads]
        label = "Load (share of a host's link)" if packets else "Load (flits/host/cycle)"
        drawn = draw_channel_use(outcome.plan.topology, use, edges, label, columns)
        write_whole(outcome.folder / CHANNELS, drawn)
    return outcome.folder / FIGURE


def draw_deadlock(outcome: SimulationOutcome) -> tuple[Path, ...]:
    """Draw how the first deadlock came about, as a sequence and as an animation; nothing without one."""
    from testbed.base.files import write_whole
    from testbed.engines.simulate.buffer_occupancy import snapshots_of
    from testbed.experiments.report.drawing import MAX_SWITCHES, animate_occupancy, draw_occupancy

    topology = outcome.plan.topology
    if outcome.deadlock is None or topology.switch_count > MAX_SWITCHES:
        return ()
    moments = snapshots_of(outcome.plan, outcome.settings, outcome.deadlock)
    panels = [(moment.time, moment.fill, moment.cycle) for moment in moments]
    files = outcome.folder / "deadlock.svg", outcome.folder / "deadlock.gif"
    write_whole(files[0], draw_occupancy(topology, panels))
    write_whole(files[1], animate_occupancy(topology, panels))
    return files


def as_object(
    outcome: SimulationOutcome, bound: float | None, figure: Path | None, ring: tuple[Path, ...]
) -> dict[str, object]:
    """What `--format json` prints."""
    highest, deadlock = outcome.highest, outcome.deadlock
    rows = [dataclasses.asdict(row) for row in outcome.rows]
    if outcome.packet_settings is None:
        rows = [{key: value for key, value in row.items() if key not in _OF_PACKETS} for row in rows]
    return {
        "scenario": outcome.plan.scenario.name,
        "digest": outcome.plan.digest,
        "expect": outcome.plan.scenario.expect,
        "level": "flit" if outcome.packet_settings is None else "packet",
        "settings": dataclasses.asdict(outcome.settings),
        "static_bound": bound,
        "throughput": highest.accepted.mean if highest is not None and highest.accepted is not None else None,
        "loads": rows,
        "deadlock": {"load": deadlock.load, "seed": deadlock.seed, "clock": deadlock.clocks, "cycle": deadlock.cycle}
        if deadlock is not None
        else None,
        "results": str(outcome.folder),
        "figure": None if figure is None else str(figure),
        "deadlock_figures": [str(file) for file in ring],
    }


_OF_PACKETS = ("loss", "hosts_paused", "channels_paused", "pauses", "ties")


def print_outcome(outcome: SimulationOutcome, bound: float | None, figure: Path | None, ring: tuple[Path, ...]) -> None:
    """Print the table of loads and what it means."""
    from testbed.results.samples import SAMPLES

    packets = outcome.packet_settings
    if packets is None:
        _print_flits(outcome)
    else:
        _print_packets(outcome, packets)
    highest = outcome.highest
    if highest is not None and highest.accepted is not None:
        dead = [f"{row.load:g}" for row in outcome.rows if row.deadlocks and row.load > highest.load]
        rising = "" if highest.saturated else " and not saturated: higher loads may be accepted, too"
        rising = f"; load {', '.join(dead)} deadlocked" if dead else rising
        print_lines(f"throughput: {highest.accepted.mean:.4f} at load {highest.load:g}{rising}")
    if bound is not None:
        link = static_load(outcome.plan, outcome.settings).bottleneck(outcome.plan.topology)
        print_lines(
            f"no load above {bound:.4f} is accepted whole: there {link} is full, by the paths alone"
            if bound < 1
            else "by the paths alone no link is full before those of the hosts that send"
        )
    _print_ties(outcome)
    _print_deadlock(outcome)
    if figure is not None:
        print_lines(f"figure: {figure}")
        if (figure.parent / CHANNELS).exists():
            print_lines(f"figure: {figure.parent / CHANNELS}")
    if ring:
        print_lines(f"buffer occupancy over time: {' and '.join(map(str, ring))}")
    print_lines(f"data: {outcome.folder / SAMPLES}")
    print_lines(f"results: {outcome.folder}")


def _print_flits(outcome: SimulationOutcome) -> None:
    from testbed.engines.simulate import Settings

    settings = outcome.settings
    assert isinstance(settings, Settings)
    print_lines(
        f"{outcome.plan.scenario.name}: {settings.pattern}, packets of {settings.packet} flits, buffers of "
        f"{settings.buffer}, {settings.clocks:,} cycles, the first {settings.warm_up:,} not measured"
        + (f", {settings.channels} copies of each virtual channel" if settings.channels > 1 else "")
    )
    _print_table(outcome, ("latency", _as_cell("latency", ".1f")), ("p99", _as_cell("p99", ".0f")))
    print_lines(
        f"load and accepted in flits/host/cycle of hosts that send; latency in cycles, the mean; {_over_seeds()}"
    )


def _print_packets(outcome: SimulationOutcome, settings: PacketSettings) -> None:
    from testbed.engines.simulate.packet_settings import thresholds

    links = outcome.plan.scenario.links
    limits = thresholds(settings, links.rate, links.edge_rate)
    how = {"none": "no flow control", "pause": "PAUSE", "pfc": "PFC"}[settings.flow_control]
    shared = ", shared by the ports of a switch" if settings.shared else ""
    at = f", XOFF {limits.xoff}, XON {limits.xon}" if settings.lossless and not settings.shared else ""
    print_lines(
        f"{outcome.plan.scenario.name}: {settings.pattern}, {how}, frames of {settings.frame} bytes, buffers of "
        f"{limits.buffer} frames a port{shared}{at}; {settings.duration:g} ms, the first {settings.warm_up:g} not "
        "measured"
    )
    columns: list[Column] = [("latency", _as_cell("latency")), ("p99", _as_cell("p99"))]
    paused: list[Column] = [
        ("hosts\npaused", _as_cell("hosts_paused", ".1%")), ("channels\npaused", _as_cell("channels_paused", ".1%")),
        *([] if _narrow() else [("PAUSE\nframes/s", _as_cell("pauses", ",.0f"))]),
    ]  # fmt: skip
    dropped: list[Column] = [("dropped", _as_cell("loss", ".2%"))]

    def rate(row: Row) -> str:
        return "–" if row.accepted is None else format_rate(row.accepted.mean * links.edge_rate)

    of_host: list[Column] = [] if _narrow() else [("a host", rate)]
    _print_table(outcome, *of_host, *columns, last=paused if settings.lossless else dropped)
    print_lines(
        f"load and accepted as shares of a host's link of {format_rate(links.edge_rate)}, preamble and gap included; "
        f"latency is the mean; {_over_seeds()}"
    )


def _print_ties(outcome: SimulationOutcome) -> None:
    """What other orders of events of one time give, and whether the figures depend on it."""
    from rich.table import Table

    from testbed.engines.simulate.flit_point import TELLING

    rows = [(row, row.ties) for row in outcome.rows if row.ties is not None]
    if not rows:
        return

    def format_spread(median: float, least: float, most: float, written: Callable[[float], str]) -> str:
        return f"{written(median)} ({written(least)} – {written(most)})"

    table = Table(box=None, pad_edge=False, header_style="bold")
    for title in ("load", "accepted", "latency", "spread"):
        table.add_column(title, justify="right", no_wrap=True)
    for row, ties in rows:
        latency = "–"
        if ties.latency_median is not None and ties.latency_min is not None and ties.latency_max is not None:
            latency = format_spread(ties.latency_median, ties.latency_min, ties.latency_max, format_seconds)
        accepted = format_spread(
            ties.accepted_median, ties.accepted_min, ties.accepted_max, lambda value: f"{value:.4f}"
        )
        table.add_row(f"{row.load:g}", accepted, latency, f"{ties.spread:.1%}")
    print_lines(f"over {rows[0][1].orders} orders of simultaneous events, median (min – max):")
    results.print(table)
    telling = [f"{row.load:g}" for row, ties in rows if ties.spread > TELLING]
    if telling:
        text = (
            f"figures at load {', '.join(telling)} depend on which of simultaneous events comes first, by more than "
            f"{TELLING:.0%}: give the range, not one of them (docs/simulator.md)"
        )
        print_lines(text, "yellow", to=messages)


def _print_table(outcome: SimulationOutcome, *columns: Column, last: Sequence[Column] = ()) -> None:
    """A row a load, columns of the level between those that both levels have."""
    from rich.table import Table
    from rich.text import Text

    whole: list[Column] = [
        ("load", lambda row: f"{row.load:g}"), ("accepted", _as_cell("accepted", ".4f")), *columns,
        ("max channel\nutilisation", _as_cell("max_channel_use", ".1%")), *last,
        ("seeds", lambda row: f"{row.seeds}, {row.deadlocks} deadlocked" if row.deadlocks else f"{row.seeds}"),
    ]  # fmt: skip
    table = Table(box=None, pad_edge=False, header_style="bold")
    for title, _ in whole:
        table.add_column(
            Text(title if _narrow() else title.replace("\n", " ")), justify="right", vertical="top", no_wrap=True
        )
    for row in outcome.rows:
        table.add_row(*(cell(row) for _, cell in whole))
    results.print(table)


def _narrow() -> bool:
    """Whether the terminal has no room for the spread over seeds, and for what follows from other columns."""
    return results.width < WIDE


def _over_seeds() -> str:
    wide = f"min – max over seeds in {WIDE} columns, and by --json"
    return f"means over seeds; {wide}" if _narrow() else "(min – max) over seeds"


def _as_cell(name: str, form: str = "") -> Callable[[Row], str]:
    """How a figure of a load over its seeds is format_value: in a form, or without one as a time in seconds."""

    def format_value(value: float) -> str:
        return f"{value:{form}}" if form else format_seconds(value)

    def cell(row: Row) -> str:
        figure: Seeds | None = getattr(row, name)
        if figure is None:
            return "–"
        spread = (
            ""
            if figure.min == figure.max or _narrow()
            else f" ({format_value(figure.min)} – {format_value(figure.max)})"
        )
        return f"{format_value(figure.mean)}{spread}"

    return cell


def _print_deadlock(outcome: SimulationOutcome) -> None:
    found, expected = outcome.deadlock, outcome.plan.scenario.expect == "deadlock"
    packets = outcome.packet_settings
    if found is not None:
        ring = " waits for ".join((*found.cycle, found.cycle[0]))
        declared = " as declared" if expected else ""
        when = f"cycle {found.clocks:,}" if packets is None else f"{found.clocks / 1e9:.1f} ms"
        text = f"deadlock{declared} by {when}, load {found.load:g}, seed {found.seed}: {ring}"
        print_lines(text, "green" if expected else "red")
    elif expected and not outcome.must_not_deadlock:
        more = "time (--cycles)" if packets is None else "time (--duration), or less memory (--buffer)"
        text = f"the declared deadlock did not form; give more load (--loads 1) or {more}"
        print_lines(text, "yellow", to=messages)
    elif expected:
        print_lines("without flow control nothing waits, so the declared deadlock cannot form: frames are dropped")
