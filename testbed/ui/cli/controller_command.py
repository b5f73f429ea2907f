"""`testbed controller`: what the controller of a running lab does and sees; kill it, and start it again."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from testbed.base.errors import EXIT_WARNINGS, InputError
from testbed.ui.cli.app import FORMAT, LAB, app
from testbed.ui.cli.output import Format, print_json, print_lines

if TYPE_CHECKING:
    from testbed.base.messages import ControllerStatus


@app.command(epilog="Examples:\ntestbed controller torus4x4\ntestbed controller --kill\ntestbed controller --json")
def controller(
    lab: LAB = None,
    kill: Annotated[bool, typer.Option("--kill", help="kill it; of several managers the master")] = False,
    start: Annotated[bool, typer.Option("--start", help="start it again, or managers that do not run")] = False,
    form: FORMAT = Format.text,
) -> None:
    """Show the state of a lab's controller, the links that LLDP finds, and where they deviate from the plan.

    Also while a load runs. Only segment_manager collects links by LLDP. Exit code 3 if links deviate
    from the plan, or a switch is out of step; 1 if there is no controller, or none is master.
    """
    from testbed.engines.connect_lab import connect
    from testbed.engines.lab.control import registry

    if kill and start:
        raise InputError.one("--kill", "cannot go with --start; say one of them")
    entry = registry.find(lab)
    session = connect(entry.namespaces)
    try:
        if kill:
            session.stop_controller()
        if start:
            session.start_controller()
        told = session.wait_for_controller() if kill or start else session.controller()
        name = session.facts.controller
    finally:
        session.close()
    if form is Format.json:
        print_json({"lab": entry.name, "controller": name, **asdict(told)})
    else:
        print_lines(_words(f"{entry.name}: {name}", told), whole=True)
    if told.wiring or told.in_step < len(told.switches):
        raise typer.Exit(EXIT_WARNINGS)


def _words(name: str, told: ControllerStatus) -> list[str]:
    """For people: who steers, what it does, and what is not as it should be."""
    who = f", manager {told.manager} is {told.role}" if told.role else ""
    lines = [f"{name}{who}, {told.in_step} of {len(told.switches)} switches are in step"]
    lines[0] += f", {told.phase}" if told.phase else ""
    late = {switch: state for switch, state in told.switches.items() if state.state != "in step"}
    lines += [f"  {switch}: {state.state} {state.problem}".rstrip() for switch, state in late.items()]
    lines += [f"  dead: {', '.join(told.down)}"] if told.down else []
    if told.role:
        agrees = "which is what the plan has" if not told.wiring else "which is not what the plan has"
        lines.append(f"  {len(told.links)} links by LLDP, {agrees}")
    lines += [f"  {sentence}" for sentence in told.wiring]
    lines += [f"  {told.problem}"] if told.problem else []
    return lines
