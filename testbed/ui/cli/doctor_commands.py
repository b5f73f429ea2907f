"""doctor: what this machine has and lacks, and how much load it sustains."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated

import typer

from testbed.base.errors import EXIT_FAIL, EXIT_WARNINGS
from testbed.ui.cli.app import FORMAT, app
from testbed.ui.cli.output import Format, print_json, print_lines, results, steps

if TYPE_CHECKING:
    from testbed.engines.local_machine.calibration import Calibration
    from testbed.engines.local_machine.probe import Capability


@app.command(epilog="Examples:\ntestbed doctor --format json\ntestbed doctor --calibrate\ntestbed doctor --compile")
def doctor(
    measure: Annotated[
        bool, typer.Option("--calibrate", help="measure the frame rate it sustains (one to two minutes) and store it")
    ] = False,
    compiling: Annotated[
        bool, typer.Option("--compile", help="compile now what commands would compile at their first call")
    ] = False,
    form: FORMAT = Format.text,
) -> None:
    """Check this machine's prerequisites, with remedies.

    Exit code 0 if all are there, 3 if something is missing or a lab was left behind, 1 if no lab is possible.
    """
    from dataclasses import asdict

    from testbed.engines.lab.control import registry
    from testbed.engines.local_machine import calibration
    from testbed.engines.local_machine.probe import capabilities

    if compiling:
        _compile(form)
        return
    strays = registry.list_orphans()
    found = capabilities()
    possible = all(capability.present for capability in found if capability.needed)
    complete = all(capability.present for capability in found)
    measured = _calibrate() if measure and possible else calibration.read()
    if form is Format.json:
        print_json(
            {
                "lab_possible": possible,
                "capabilities": [asdict(capability) for capability in found],
                "left_behind": [{"scenario": stray.scenario, "process": stray.init} for stray in strays],
                "calibration": None if measured is None else {**asdict(measured), "file": str(calibration.file())},
            }
        )
    else:
        _print_capabilities(found)
        if measured is not None:
            _print_calibration(measured)
            print_lines(f"        stored in {calibration.file()}")
        for stray in strays:
            print_lines(f"{stray.sentence}; end it with `testbed down --all`", "yellow")
    if not complete or strays:
        raise typer.Exit(EXIT_WARNINGS if possible else EXIT_FAIL)


def _compile(form: Format) -> None:
    """Exit code 3 if a part could not be compiled."""
    from testbed.engines.local_machine.compile_kernels import COMMANDS, compile_all

    started = time.monotonic()
    with steps() as progress:
        problems = compile_all(progress)
    seconds = round(time.monotonic() - started, 1)
    if form is Format.json:
        print_json({"parts": len(COMMANDS), "seconds": seconds, "problems": problems})
    else:
        for problem in problems:
            print_lines(problem, "yellow")
        print_lines(f"compiled in {seconds:g} s; first calls do not wait for it any more")
    if problems:
        raise typer.Exit(EXIT_WARNINGS)


def _calibrate() -> Calibration:
    from testbed.engines.local_machine import calibration
    from testbed.experiments.run.dilation.calibrate import calibrate

    with steps() as progress:
        measured = calibrate(progress)
    calibration.write(measured)
    return measured


def _print_capabilities(found: Iterable[Capability]) -> None:
    for capability in found:
        mark, style = (
            ("ok     ", "green") if capability.present else ("missing", "red" if capability.needed else "yellow")
        )
        results.print(mark, style=style, end="")
        results.print(f" {capability.name}: ", end="")
        print_lines(capability.detail)
        if not capability.present:
            print_lines(f"        without it: {capability.consequence}")
            print_lines(f"        remedy: {capability.remedy}")


def _print_calibration(found: Calibration) -> None:
    failed = "" if found.frame_hops_failed is None else f", not {found.frame_hops_failed:,.0f}"
    median, low, high = (1e6 * found.hop_seconds[key] for key in ("median", "least", "most"))
    when = time.strftime("%Y-%m-%d %H:%M", time.localtime(found.measured))
    for line in (
        f"sustains {found.frame_hops:,.0f} frames a second over all switches of a 4×4 torus{failed} "
        f"({found.machine['datapath']} datapath)",
        f"a switch delays a frame by {median:.0f} µs of laboratory time ({low:.0f} to {high:.0f} over several rounds)",
        f"measured {when}; lab.dilation: auto begins its search there",
    ):
        print_lines(f"        {line}")
