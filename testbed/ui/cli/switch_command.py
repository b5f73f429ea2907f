"""`testbed switch`: kill a switch of a running lab, and start it again."""

from __future__ import annotations

from typing import Annotated

import typer

from testbed.base.errors import InputError
from testbed.ui.cli.app import FORMAT, app
from testbed.ui.cli.capture_command import SECOND, InALab
from testbed.ui.cli.output import Format, messages, print_json, results

FIRST = Annotated[
    str, typer.Argument(metavar="[LAB] SWITCH", help="lab (may be left out while only one is running), and a switch")
]


@app.command(
    cls=InALab,
    epilog="Examples:\ntestbed switch torus4x4 s3 --kill\ntestbed switch s3 --start\ntestbed switch s3",
)
def switch(
    first: FIRST,
    second: SECOND = None,
    kill: Annotated[bool, typer.Option("--kill", help="kill the switch, as a crash would")] = False,
    start: Annotated[bool, typer.Option("--start", help="start it again")] = False,
    form: FORMAT = Format.text,
) -> None:
    """Kill a switch of a running lab, start it again, or show whether it runs.

    Also while a load runs. With Open vSwitch it takes a controller, which gives it its rules again, and a process of
    the switch's own (lab.switch_daemons); a modelled switch (engine: realtime) takes neither. Exit code 2 if it cannot
    be killed alone.
    """
    from testbed.engines.connect_lab import connect
    from testbed.engines.lab.control import registry
    from testbed.experiments.run.link_commands import LOST
    from testbed.experiments.run.switch_kills import set_switch, switch_of

    name, where = (None, first) if second is None else (first, second)
    if kill and start:
        raise InputError.one("--kill", "cannot go with --start; say one of them")
    entry = registry.find(name)
    lab = connect(entry.namespaces)
    try:
        plan = lab.plan()
        number = switch_of(plan, where, "SWITCH")
        if kill or start:
            set_switch(lab, plan, number, up=start, place="--start" if start else "--kill")
        running, controller = where not in lab.status().killed, lab.facts.controller
    finally:
        lab.close()
    if form is Format.json:
        print_json({"lab": entry.name, "switch": where, "running": running})
    else:
        results.print(f"{where}: {'running' if running else 'killed'}", markup=False)
    if kill and controller != "segment_manager":
        messages.print(LOST, style="yellow", markup=False, soft_wrap=True)
