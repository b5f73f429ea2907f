"""`python -m controllers NAME --plan FILE`: run a controller in the foreground (installed: testbed.controllers)."""

from __future__ import annotations

import sys
from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from testbed.base.errors import TestbedError
from testbed.planning.prove_stored import read_stored

from .election import Election, lock_of
from .framework import run_app
from .unsupported import RefusedError, refuse_plan


class Name(str, Enum):
    """The controllers there are."""

    switch_tagged = "switch_tagged"
    learning = "learning"
    segment_manager = "segment_manager"


def main(
    name: Annotated[Name, typer.Argument(help="which controller")],
    plan: Annotated[Path, typer.Option("--plan", help="file that `testbed plan NAME --output FILE` has written")],
    host: Annotated[
        str, typer.Option("--host", help="address to listen at, for switches and for status")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", help="TCP port for switches")] = 6653,
    dilation: Annotated[
        float,
        typer.Option("--dilation", min=0, help="links run at 1/dilation of the plan's rate; 0 = as the plan says"),
    ] = 0.0,
    status_port: Annotated[int, typer.Option("--status-port", help="TCP port of the status, JSON over HTTP")] = 8080,
    check_every: Annotated[
        float, typer.Option("--check-every", min=0, help="seconds between looks at each switch; 0 = when it connects")
    ] = 2.0,
    daemons: Annotated[
        Path | None,
        typer.Option("--daemons", help="segment_manager: folder of the control sockets of all switches' ovs-vswitchd"),
    ] = None,
) -> None:
    """Run a controller until it is interrupted (Ctrl-C). Switch number n of the plan has the OpenFlow datapath id n.

    Example: python -m controllers switch_tagged --plan plan.json --dilation 200
    """
    try:
        made = read_stored(plan)
        made.require_proof()
        made.require_tables()
        refuse_plan(made, learning=name is Name.learning)
        if name is Name.segment_manager:
            Election(lock_of(plan)).release_lock()
    except TestbedError as error:
        sys.exit(_refuse(str(error)))
    except RefusedError as error:
        sys.exit(_refuse(f"{plan}: {error}"))
    except OSError as error:
        sys.exit(_refuse(f"{lock_of(plan)}: {error.strerror}; managers of a plan need this file to elect one of them"))
    if not dilation and made.scenario.lab.dilation == "auto":
        sys.exit(_refuse(f"{plan}: its dilation is auto; give that of the links, such as --dilation 200"))
    run_app(
        f"{__package__}.{name.value}", host, port, plan=str(plan), dilation=dilation, status_host=host,
        status_port=status_port, check_every=check_every, daemons=str(daemons or ""),
    )  # fmt: skip


def _refuse(sentence: str) -> int:
    print(sentence, file=sys.stderr)
    return 2


if __name__ == "__main__":
    typer.run(main)
