"""`testbed regulate`: run loads with all links on and with those that they need."""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from testbed.base.errors import InputError, Problem
from testbed.experiments.regulate import WATCHED
from testbed.experiments.regulate.thresholds import Rule
from testbed.ui.cli.app import FORMAT, SCENARIO, SETTINGS, app
from testbed.ui.cli.lab_commands import INSECURE, MACHINES, SCHEDULER, over_machines
from testbed.ui.cli.output import (
    Format,
    outcome_object,
    plan_scenario,
    print_json,
    print_lines,
    print_outcome,
    results,
    steps,
)
from testbed.ui.cli.power_command import SLOWER

if TYPE_CHECKING:
    from rich.table import Table as RichTable

    from testbed.base.model import Sample
    from testbed.experiments.regulate.before_after import BeforeAfter
    from testbed.experiments.regulate.loop import LoopResult
    from testbed.experiments.regulate.run import Regulated

RULE = Rule()


@app.command(
    epilog="Examples:\ntestbed regulate torus4x4-3links\ntestbed regulate ring4 --every 0.5 "
    "--changes 100\ntestbed regulate torus4x4-3links --loop --rounds 3\n"
    "testbed regulate torus4x4 --running --seconds 10\n"
    "testbed regulate torus4x4 --running --all-on"
)
def regulate(
    name: SCENARIO,
    settings: SETTINGS = None,
    model: Annotated[
        str, typer.Option("--model", help="switch model: its watts, and how long a link takes to come back")
    ] = "",
    rounds: Annotated[
        int, typer.Option("--rounds", min=1, max=100, help="how often both states are measured in turn")
    ] = 1,
    slower: SLOWER = False,
    every: Annotated[
        float | None, typer.Option("--every", min=0.1, help="change a pair's path every so many laboratory seconds")
    ] = None,
    changes: Annotated[int, typer.Option("--changes", min=1, max=10000, help="with --every: how often")] = 10,
    pair: Annotated[
        str | None,
        typer.Option("--pair", help="with --every: two hosts such as h1,h3; default: h1 and the host half-way round"),
    ] = None,
    loop: Annotated[
        bool, typer.Option("--loop", help="let links go off and on while the loads run, by how much they are used")
    ] = False,
    period: Annotated[
        float | None, typer.Option("--period", help=f"with --loop: sampling period, s; default {RULE.period:g}")
    ] = None,
    on_above: Annotated[
        float | None,
        typer.Option(
            "--on-above",
            help=f"with --loop: utilisation above which all links are turned on; default {RULE.on_above:g}",
        ),
    ] = None,
    off_below: Annotated[
        float | None,
        typer.Option(
            "--off-below",
            help=f"with --loop: links go off if all others stay below this utilisation; default {RULE.off_below:g}",
        ),
    ] = None,
    hold: Annotated[
        float | None,
        typer.Option(
            "--hold", help=f"with --loop: hold time after a change, in which no link goes off, s; default {RULE.hold:g}"
        ),
    ] = None,
    running: Annotated[
        bool,
        typer.Option("--running", help="use the running lab SCENARIO and the traffic that it has now"),
    ] = False,
    seconds: Annotated[
        float, typer.Option("--seconds", min=0.1, max=3600, help="with --running: how long traffic is measured, s")
    ] = WATCHED,
    all_on: Annotated[bool, typer.Option("--all-on", help="with --running: switch all links on again instead")] = False,
    machines: MACHINES = None,
    cluster: SCHEDULER = None,
    insecure: INSECURE = False,
    folder: Annotated[Path, typer.Option("--results", help="where the run's folder is created")] = Path("results"),
    form: FORMAT = Format.text,
) -> None:
    """Switch links off by traffic in a lab; measure gain and cost.

    By the traffic of the loads; all are switched on again before the next load.

    With --loop links go off and on by thresholds while the loads run, compared with the same loads and all links on.

    With --every: latency, bandwidth and losses of a pair whose path changes, compared with a path that stays.

    With --running nothing is built or measured: links that the traffic of a running lab does not need go off.
    """
    asked_of_loop = {"period": period, "on_above": on_above, "off_below": off_below, "hold": hold}
    given = {key: value for key, value in asked_of_loop.items() if value is not None}
    _require_one_kind(loop=loop, slower=slower, every=every is not None, running=running, given=given)
    if machines is not None or cluster is not None or insecure:
        _require_no_machines(every=every is not None, running=running)
    if running:
        _regulate_running(name, model, form, seconds=None if all_on else seconds)
        return
    if all_on:
        raise InputError.one("--all-on", "is for a lab that runs already; say --running")
    from testbed.experiments.regulate.power import models_for
    from testbed.scenario import find_scenario, load_scenario

    asked = list(settings or ())
    # A model needs no controller for it; and one that makes its own plans takes no others.
    scenario = load_scenario(find_scenario(name), asked)
    bundled = scenario.engine == "ovs" and scenario.links.aggregate
    controller = "switch_tagged" if scenario.engine == "ovs" and not bundled else "none"
    asked += [f"lab.controller={controller}", *(["lab.fast_path=off"] if bundled else [])]
    said: list[str] = []
    with steps() as progress:
        progress("planning and proving")
        plan = plan_scenario(name, asked)
        (chosen, *_) = models_for(plan, model or None)
        with over_machines(machines, cluster, progress, insecure=insecure) as engine:
            if loop:
                from testbed.experiments.regulate.loop import regulate_by_load

                outcome, looped = regulate_by_load(plan, folder, chosen, rounds, Rule(**given), progress, engine)
                rows, facts, said = (
                    _tabulate_comparison("by load", looped.compared),
                    looped.as_object(),
                    _loop_lines(looped),
                )
            elif every is None:
                from testbed.experiments.regulate.run import regulate as run_regulation

                found = run_regulation(plan, folder, chosen, rounds, progress, slower=slower, engine=engine)
                outcome, rows = found.outcome, _tabulate_regulation(found)
                facts = regulated_object(found)
            else:
                from testbed.experiments.regulate.alternating_paths import table7, watch_changes
                from testbed.experiments.report.sample_table import UNHELD_NOTE, unheld_share

                outcome, made = watch_changes(plan, folder, chosen, every, changes, pair, progress)
                unheld = unheld_share(one for one in outcome.samples if one.metric == "one_way_min") > 0
                rows = _table_changes(table7(outcome.samples), len(made), changes, unheld=unheld)
                said += [UNHELD_NOTE] if unheld else []
                facts = {"changes": len(made), "table7": table7(outcome.samples)}
    if form is Format.json:
        print_json(outcome_object(outcome, **facts))
    else:
        results.print(rows)
        for line in (*said, *_losses(outcome.samples)):
            print_lines(line)
        print_outcome(outcome)
    raise typer.Exit(outcome.exit_code)


def _require_one_kind(*, loop: bool, slower: bool, every: bool, running: bool, given: Mapping[str, float]) -> None:
    """Refuse options that do not go together, all at once."""
    problems = []
    if slower and every:
        sentence = "is for links chosen by traffic, and --every changes one path; leave out one"
        problems.append(Problem("--slower", sentence))
    others = [option for option, asked in (("--every", every), ("--slower", slower), ("--running", running)) if asked]
    if loop and others:
        problems.append(Problem("--loop", f"goes without {' and '.join(others)}; leave out one"))
    if not loop:
        problems += [Problem(f"--{key.replace('_', '-')}", "is for --loop; say that, or leave it out") for key in given]
    if problems:
        raise InputError(problems)


def _require_no_machines(*, every: bool, running: bool) -> None:
    """Refuse what is for one machine."""
    for option, given, why in (
        ("--every", every, "compares one-way times, which the clocks of two machines do not tell"),
        ("--running", running, "is for a lab that runs on this machine"),
    ):
        if given:
            raise InputError.one(option, f"{why}; leave out --machines, --cluster and --insecure")


def _regulate_running(name: str, model: str, form: Format, *, seconds: float | None) -> None:
    """Regulate a lab that runs; without `seconds` switch all its links on."""
    from testbed.engines.connect_lab import connect
    from testbed.engines.lab.control import registry
    from testbed.experiments.regulate.power import models_for
    from testbed.experiments.regulate.regulate_lab import describe_result, restore_links, switch_off

    entry = registry.find(name)
    lab = connect(entry.namespaces)
    try:
        with steps() as progress:
            plan = lab.plan()
            (chosen, *_) = models_for(plan, model or None)
            regulated = (
                restore_links(lab, plan, chosen, progress)
                if seconds is None
                else switch_off(lab, plan, chosen, seconds, progress)
            )
    finally:
        lab.close()
    if form is Format.json:
        print_json({"lab": entry.name, **dataclasses.asdict(regulated)})
    else:
        print_lines(describe_result(regulated))


def regulated_object(found: Regulated) -> dict[str, object]:
    """What a regulation came to, for programs."""
    from testbed.fabric.topologies.faults import link_called

    wiring = found.choice.plan.wiring
    return {
        "model": found.power.model.name,
        "off": list(found.choice.names),
        "slower": {
            link_called(wiring, link): found.choice.selection.speeds[link] for link in found.choice.slowed_links
        },
        "watts_before": float(found.power.before.sum()),
        "watts_after": float(found.power.after.sum()),
        "saved": found.power.saving,
        "loads": [{**dataclasses.asdict(one), "ratio": one.ratio} for one in found.compared],
    }


def _tabulate_regulation(found: Regulated) -> RichTable:
    then = f"{len(found.choice.off_links)} links off"
    if found.choice.slowed_links:
        then += f", {len(found.choice.slowed_links)} slower"
    before, after = found.power.before.sum(), found.power.after.sum()
    watts = (
        f"power of the switches ({found.power.model.name})", f"{before:.1f} W", f"{after:.1f} W",
        f"{100 * (after / before - 1):+.1f} %", "",
    )  # fmt: skip
    return _tabulate_comparison(then, found.compared, watts)


def _tabulate_comparison(then: str, compared: Sequence[BeforeAfter], *rows: Sequence[str]) -> RichTable:
    """Some rows, and one for each figure of a load: its medians with all links on and `then`."""
    from rich.table import Table

    from testbed.base.units import format_quantity

    table = Table(box=None, pad_edge=False, header_style="bold")
    for title in ("", "all links on", then, "change", "spread, all on"):
        table.add_column(title, justify="left" if not title else "right")
    for row in rows:
        table.add_row(*row)
    for one in compared:
        medians = (format_quantity(statistics.median(values), one.unit) for values in (one.before, one.after))
        spread = f"{100 * one.spread:.1f} %" if len(one.before) > 1 else ""
        table.add_row(f"{one.title}, {one.metric}", *medians, f"{100 * (one.ratio - 1):+.1f} %", spread)
    return table


def _loop_lines(found: LoopResult) -> list[str]:
    """What the loop did, in words."""
    links, (before, after) = found.levels[0].plan.wiring.link_count, found.joules
    rungs = zip(found.levels, found.watts, strict=True)
    counts = ", ".join(f"{links - len(rung.off_links)} links on ({watts:.1f} W)" for rung, watts in rungs)
    lines = [f"proved plans: {counts}"]
    for number, turn in enumerate(found.turns, 1):
        lines.append(f"round {number}: {len(turn.looks)} looks, {len(turn.decisions)} changes")
        for one in turn.decisions:
            change = f"{len(one.on)} links on" if one.on else f"{len(one.off)} links off"
            lines.append(f"  {one.at:.2f} s: busiest link {100 * one.use:.0f} %, {change} in {one.seconds:.2f} s")
    longer = 100 * (after / before - 1) if before else 0.0
    lines += [
        f"while loads ran with the loop, links were off {100 * found.off_share:.1f} % of their time, which by the "
        f"watts of {found.model.name} saved {100 * found.off_saved:.1f} % of the energy of all switches",
        f"with what loads took longer or shorter than with all links on, energy was {longer:+.1f} %",
    ]
    return lines


def _table_changes(
    rows: Sequence[tuple[str, str, float, float, float]], made: int, asked: int, *, unheld: bool
) -> RichTable:
    """`unheld` says that the lab's ports do not hold a lone frame, so that its time is not all the wires'."""
    from rich.table import Table

    from testbed.base.units import format_quantity
    from testbed.experiments.report.sample_table import UNHELD_MARK

    table = Table(box=None, pad_edge=False, header_style="bold", title_justify="left")
    table.title = f"{made} changes: {asked} and the way back while frames are counted, the others under UDP and TCP"
    for title in ("", "", "min", "mean", "max"):
        table.add_column(title, justify="right" if title else "left")
    for path, what, *values in rows:
        unit = "s" if what == "one-way latency" else "bit/s"
        mark = f" {UNHELD_MARK}" if unheld and unit == "s" else ""
        table.add_row(path, f"{what}{mark}", *(format_quantity(value, unit) for value in values))
    return table


def _losses(samples: Sequence[Sample]) -> Iterator[str]:
    """One line for each time in which frames were counted."""
    of_load: dict[str, dict[str, Sample]] = {}
    for sample in samples:
        of_load.setdefault(sample.labels.get("load", ""), {})[sample.metric] = sample
    for found in of_load.values():
        if "frames_lost" not in found:
            continue
        labels = found["frames_lost"].labels
        which = labels.get("name") or labels.get("path") or ""
        sent, lost, links, broken = (
            int(found[metric].value) for metric in ("frames_sent", "frames_lost", "connections", "connections_broken")
        )
        yield f"{which}: {lost} of {sent} frames lost, {broken} of {links} connections broken"
