"""`testbed link`: how a link of a running lab is, and what becomes of it."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from testbed.base.errors import InputError
from testbed.ui.cli.app import FORMAT, app
from testbed.ui.cli.capture_command import FIRST, SECOND, InALab
from testbed.ui.cli.output import Format, messages, print_json, results


@app.command(
    cls=InALab,
    epilog="Examples:\ntestbed link torus4x4 s3-s4 --rate 100M --loss 1%\ntestbed link s3-s4 --down\n"
    "testbed link s3-s4 --up --reset\ntestbed link s3-s4",
)
def link(
    first: FIRST,
    second: SECOND = None,
    rate: Annotated[str | None, typer.Option("--rate", help="rate in the real world, such as 100M")] = None,
    delay: Annotated[
        str | None, typer.Option("--delay", help="delay of every frame in the real world, such as 20us")
    ] = None,
    loss: Annotated[str | None, typer.Option("--loss", help="random loss, as a share of frames: 1%")] = None,
    down: Annotated[bool, typer.Option("--down", help="take the link down")] = False,
    up: Annotated[bool, typer.Option("--up", help="bring the link up again")] = False,
    reset: Annotated[
        bool, typer.Option("--reset", help="restore planned rate, delay and loss before other changes")
    ] = False,
    form: FORMAT = Format.text,
) -> None:
    """Change a link of a running lab, or show its state.

    In both directions, also while a load runs.

    WHERE is a link (s3-s7, or s3-s7#1 of parallel ones) or a port (s3-eth2). What is not named stays as it is. Rates
    and delays are of the real world: at dilation 50 a delay of 20us takes 1 ms. Exit code 2 if this machine cannot do
    it.
    """
    from testbed.base.messages import LinkState
    from testbed.engines.connect_lab import connect
    from testbed.engines.lab.control import registry
    from testbed.experiments.run.link_commands import LOST, describe_link, list_disturbances, planned_rate, read_words
    from testbed.experiments.run.write_capture import tap_of

    name, where = (None, first) if second is None else (first, second)
    if down and up:
        raise InputError.one("--down", "cannot go with --up; say one of them")
    words = read_words({"rate": rate, "delay": delay, "loss": loss}, place="--")
    entry = registry.find(name)
    lab = connect(entry.namespaces)
    try:
        plan = lab.plan()
        number = tap_of(plan.wiring, where, "WHERE").link
        if number is None:
            raise InputError.one(
                "WHERE", f"{where} is a host; of its link nothing can be changed, name one between switches"
            )
        for one in list_disturbances(lab, number, words, down=down, up=up, reset=reset, place="--"):
            lab.disturb(one)
        state = lab.link_states().get(number, LinkState())
        controller = lab.facts.controller
    finally:
        lab.close()
    shown = plan.wiring.channel_name(2 * number).replace("→", "-")
    if form is Format.json:
        print_json({"lab": entry.name, "link": shown, "planned_rate": planned_rate(plan, number), **asdict(state)})
    else:
        results.print(f"{shown}: {describe_link(plan, number, state)}", markup=False, soft_wrap=True)
    if down and controller != "segment_manager":
        messages.print(LOST, style="yellow", markup=False, soft_wrap=True)
