"""Commands that touch nothing: plan, schema, report."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from testbed.base.errors import EXIT_FAIL, EXIT_PASS, InputError, Problem, did_you_mean
from testbed.ui.cli.app import FORMAT, PLUGIN, SCENARIO, SETTINGS, app
from testbed.ui.cli.output import (
    Format,
    load_plugins,
    messages,
    plan_scenario,
    print_json,
    print_lines,
    results,
    show_progress,
    write_file,
)

if TYPE_CHECKING:
    from testbed.planning.failover.failure_effects import FailureFigures
    from testbed.planning.summary import PlanFigures
    from testbed.results import Run

_SHOWN_PAIRS = 4
_TABLES = (".csv", ".parquet")


@app.command(epilog="Example: testbed plan torus4x4 --set topology.sizes=[8,8]")
def plan(
    name: SCENARIO,
    settings: SETTINGS = None,
    form: FORMAT = Format.text,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="write the whole plan as JSON here")] = None,
) -> None:
    """Plan a fabric and print its figures; nothing is built."""
    from testbed.planning.failures import failure_outlooks, links_pause
    from testbed.planning.store import plan_to_json
    from testbed.planning.summary import summary

    with show_progress("planning and proving"):
        made = plan_scenario(name, settings)
        left = failure_outlooks(made)
    if output is not None:
        write_file(output, plan_to_json(made).encode())
    figures = summary(made)
    failures: list[FailureFigures] = [
        {"load": number + 1, **outlook.as_dict(made.topology)} for number, of in left.items() for outlook in of
    ]
    if form is Format.json:
        print_json({**figures, "failures": failures} if failures else figures)
    else:
        _print_summary(figures, failures, paused=links_pause(made))
    raise typer.Exit(EXIT_PASS if made.is_proved else EXIT_FAIL)


def _print_summary(figures: PlanFigures, failures: list[FailureFigures], *, paused: bool) -> None:
    from rich.table import Table

    table = Table(show_header=False, box=None, title=figures["scenario"], title_justify="left")
    for label, value in (
        ("topology", figures["topology"]),
        ("routing", figures["routing"]),
        ("VLAN assignment", figures["assignment"]),
        ("switches", f"{figures['switches']:,}"),
        ("links between switches", f"{figures['switch_links']:,}"),
        ("hosts", f"{figures['hosts']:,}"),
        *([("bundles of aggregated links", f"{figures['bundles']}")] if figures["bundles"] else []),
        *_vlan_rows(figures),
        ("OpenFlow rules", f"{figures['rules']:,}"),
        ("MAC entries, max per switch", f"{figures['max_mac_entries']:,}"),
        ("average path length (switches)", f"{figures['mean_switches_on_path']:.4g}"),
        ("maximum channel load (paths)", f"{figures['max_channel_load']:,}"),
        ("unused channels", f"{figures['unused_channels']}"),
        ("deadlock free", "yes" if figures["deadlock_free"] else "NO"),
        ("digest", figures["digest"]),
    ):
        table.add_row(label, value)
    results.print(table)
    for left in failures:
        print_lines(_failure_line(left))
        for sentence in left["deadlock"]:
            print_lines(f"  {'can' if paused else 'could, with flow control,'} deadlock until then: {sentence}")
    for note in figures["notes"]:
        print_lines(f"note: {note}")
    for violation in figures["violations"]:
        print_lines(f"{violation['invariant']}: {violation['sentence']}", "red", to=messages)


def _failure_line(left: FailureFigures) -> str:
    """What an event leaves, in a line."""
    parts = [f"{left['pairs_diverted']} pairs take backup paths by the PVIDs of {left['hosts_diverted']} hosts"]
    for pairs, words in ((left["without_backup"], "have no backup path"), (left["cut_off"], "are cut off")):
        if pairs:
            shown = f"{', '.join(pairs[:_SHOWN_PAIRS])}{' …' if len(pairs) > _SHOWN_PAIRS else ''}"
            parts.append(f"{len(pairs)} pairs {words} ({shown})")
    return f"load {left['load']}, {left['event']}: {'; '.join(parts)}; then new tables by {left['routing_after']}"


def _vlan_rows(figures: PlanFigures) -> list[tuple[str, str]]:
    """VLANs, and where they are local to switches what that means for floods."""
    layers = [("layers", str(figures["layers"]))] if figures["layers"] > 1 else []
    found = figures["multiplication"]
    if found is None:
        return [*layers, ("VLANs", f"{figures['vlans']}")]
    rows = [*layers, ("VLANs, max per switch", f"{figures['vlans']}"), ("VLANs, total", f"{figures['vlans_total']}")]
    if figures["vlans_by_entries"] is not None:
        rows.append(("VLANs, max per switch, merged by forwarding entries alone", f"{figures['vlans_by_entries']}"))
    if found["endless"]:
        return [*rows, ("copies of a frame flooded to all members", "unbounded")]
    return [
        *rows,
        ("copies of a frame flooded to all members, mean", f"{found['mean']:.4g}"),
        ("copies of a frame flooded to all members, max", f"{found['max']:,.0f}"),
    ]


@app.command(epilog="Examples:\ntestbed schema > scenarios/schema.json\ntestbed schema plan")
def schema(
    command: Annotated[
        str | None,
        typer.Argument(metavar="COMMAND", help="a command, for the schema of its JSON output; or error"),
    ] = None,
    check: Annotated[
        bool, typer.Option("--check", help="compare with scenarios/schema.json and docs/engines.md instead of printing")
    ] = False,
    engines: Annotated[
        bool, typer.Option("--engines", help="print which key holds on which engine, as Markdown, instead")
    ] = False,
    plugin: PLUGIN = None,
) -> None:
    """Print the JSON schema of scenario files, or of what a command prints as JSON."""
    import sys

    from testbed.scenario.engine_table import engine_table
    from testbed.scenario.schema import schema_text

    if command is not None:
        sys.stdout.write(_read_schema(command))
        return
    if not check:
        load_plugins(plugin)
        sys.stdout.write(engine_table() if engines else schema_text())
        return
    file, page = Path("scenarios/schema.json"), Path("docs/engines.md")
    absent = [one for one in (file, page) if not one.exists()]
    if absent:
        raise InputError([Problem(str(one), "is not in this folder; --check is for a clone") for one in absent])
    text, table = (one.read_text(encoding="utf-8") for one in (file, page))
    stale = {} if text == schema_text() else {file: f"write it with: testbed schema > {file}"}
    if engine_table() not in table:
        stale[page] = "its table is what is printed by: testbed schema --engines"
    for one, how in stale.items():
        messages.print(f"{one} is not current; {how}", style="red", markup=False)
    if stale:
        raise typer.Exit(EXIT_FAIL)


def _read_schema(command: str) -> str:
    """The schema of what a command prints as JSON.

    Raises:
        InputError: there is none of that name.
    """
    folder = Path(__file__).parent / "schemas"
    known = {file.stem: file for file in sorted(folder.glob("*.json"))}
    name = command.replace(" ", "-")
    if name not in known:
        near = did_you_mean(name, known)
        raise InputError.one("COMMAND", f'nothing is published for "{command}".{near}')
    return known[name].read_text(encoding="utf-8")


@app.command(
    epilog="Examples:\ntestbed report results/20260101-120000-torus4x4-0123abcd\n"
    "testbed report results/20260101-120000-torus4x4-0123abcd -o samples.parquet"
)
def report(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="result folder of a run")],
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="file to write; .csv or .parquet: its figures; default report.html in it"),
    ] = None,
    form: FORMAT = Format.text,
) -> None:
    """Draw a run's report again from its folder, and print its table."""
    from testbed.experiments.report import render_report, rich_table
    from testbed.results import load_run

    run = load_run(folder)
    file = output or folder / "report.html"
    with show_progress("drawing"):
        write_file(file, _as_table(run, file.suffix) if file.suffix in _TABLES else render_report(run).encode())
    if form is Format.json:
        print_json({"report": str(file), "verdict": run.manifest["verdict"], "reasons": run.manifest["reasons"]})
        return
    results.print(rich_table(run, results.width))
    print_lines(str(file))


def _as_table(run: Run, suffix: str) -> bytes:
    """The figures of a run as the content of a file."""
    from testbed.results.samples import samples_to_csv

    if suffix == ".csv":
        return samples_to_csv(run.samples).encode()
    from testbed.ui.python.optional_libraries import library

    library("pandas", "--output FILE.parquet")
    library("pyarrow", "--output FILE.parquet")
    from testbed.results.data_frames import parquet, samples_frame

    return parquet(samples_frame(run.samples))
