"""`testbed load`: workloads on a lab that runs already."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from testbed.base.errors import InputError
from testbed.ui.cli.app import FORMAT, app
from testbed.ui.cli.output import Format, outcome_object, print_json, print_outcome, results, steps

_RESULTS = Path("results")


@app.command(
    epilog="Examples:\ntestbed load torus4x4\ntestbed load iperf3 protocol=udp pattern=transpose seconds=10\n"
    "testbed load torus4x4 ping count=3 rr protocol=tcp\ntestbed load npb kernel=IS --dilation auto"
)
def load(
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[LAB] [KIND [KEY=VALUE]...]...",
            help="lab (may be left out while only one is running); kinds of loads and their keys, as a scenario has "
            "them (testbed list workloads); default: the loads of the lab's scenario",
        ),
    ] = None,
    dilation: Annotated[
        str | None,
        typer.Option(
            "--dilation", help="a number, or auto: the smallest at which the lab keeps up; default: unchanged"
        ),
    ] = None,
    folder: Annotated[Path, typer.Option("--results", help="where the run's folder is created")] = _RESULTS,
    form: FORMAT = Format.text,
) -> None:
    """Run loads in a running lab; store and judge as `run` does.

    The lab keeps running, at the dilation that was used. Ctrl-C ends the load, and not the lab. Exit code 0 pass,
    1 fail, 3 warnings.
    """
    from testbed.engines.connect_lab import connect
    from testbed.engines.lab.control import registry
    from testbed.experiments.report import rich_table
    from testbed.experiments.run.advice import AskedOfLab
    from testbed.experiments.run.load_arguments import as_typed, read_loads
    from testbed.experiments.run.load_lab import load_lab, loads_plan
    from testbed.experiments.run.run_duration import expected_seconds
    from testbed.results import load_run

    given = list(words or ())
    running = [entry.name for entry in registry.running()]
    named = bool(given) and given[0] in running
    loads = read_loads(given[named:], running)
    slower = _dilation(dilation)
    entry = registry.find(given[0] if named else None)
    with registry.loading(entry):
        lab = connect(entry.namespaces)
        try:
            plan = loads_plan(lab, loads, slower)
            elsewhere = () if folder == _RESULTS else ("--results", str(folder))
            with steps() as progress:
                progress.expect(expected_seconds(plan, built=True))
                typed = AskedOfLab((entry.name, *given[named:]), elsewhere)
                outcome = load_lab(lab, plan, folder, progress, typed, trust=loads is not None)
        except InputError as error:
            raise InputError([as_typed(problem) for problem in error.problems]) from error
        finally:
            lab.close()
    if form is Format.json:
        print_json({"lab": entry.name, **outcome_object(outcome)})
    else:
        results.print(rich_table(load_run(outcome.folder), results.width))
        print_outcome(outcome)
    raise typer.Exit(outcome.exit_code)


def _dilation(text: str | None) -> float | str | None:
    if text is None or text == "auto":
        return text
    try:
        return float(text)
    except ValueError as error:
        raise InputError.one("--dilation", f'should be a number or auto, not "{text}"') from error
