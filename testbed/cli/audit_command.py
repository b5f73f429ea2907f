"""The command audit: a network that exists, by its configurations and cables alone."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from testbed.cli.app import FORMAT, app
from testbed.cli.check_command import texts_of
from testbed.cli.output import Format, messages, print_json, say, working
from testbed.errors import EXIT_FAIL, EXIT_PASS, cut
from testbed.units import counted

_MAX_SHOWN = 20


@app.command(
    epilog="Examples: testbed audit saved   |   testbed audit saved --dialect cisco-ios --no-pauses --format json"
)
def audit(
    folder: Annotated[
        Path,
        typer.Argument(
            metavar="FOLDER",
            help="folder of saved configurations and cabling: cabling.csv, or tables of LLDP neighbours",
        ),
    ],
    dialect: Annotated[
        str | None, typer.Option("--dialect", "-d", help="form of the files, where they do not show it themselves")
    ] = None,
    pauses: Annotated[
        bool, typer.Option("--pauses/--no-pauses", help="whether links may pause, so that a deadlock can come of it")
    ] = True,
    form: FORMAT = Format.text,
) -> None:
    """Prove or refute a network without a plan: loops, cuts, copies, broadcasts, deadlock.

    Exit code 1 if something is wrong, each with its witness and the remedy.
    """
    from testbed.audit import audit as audited
    from testbed.audit.folder import read_network

    with working("reading configurations and cables"):
        network = read_network(texts_of(folder), dialect)
    with working("following every pair and every broadcast"):
        found = audited(network, pauses=pauses)
    if form is Format.json:
        print_json(found.as_object())
        raise typer.Exit(EXIT_PASS if found.passed else EXIT_FAIL)
    for finding in found.findings[:_MAX_SHOWN]:
        say(cut(str(finding)))
    if len(found.findings) > _MAX_SHOWN:
        say(f"… and {len(found.findings) - _MAX_SHOWN} more; --format json has all")
    for note in found.notes:
        say(cut(f"note: {note}"), to=messages)
    loops = len(found.looping)
    looping = f"{counted(loops, 'VLAN') if loops else 'no VLANs'} loop{'s' if loops == 1 else ''}"
    say(
        f"{folder}: {'nothing is wrong' if found.passed else counted(len(found.findings), 'finding')}: "
        f"{counted(len(network.switches), 'switch', 'es')}, {counted(network.links, 'link')}, "
        f"{counted(len(network.hosts), 'host')}, {counted(len(network.vlans), 'VLAN')}; "
        f"{found.delivered} of {found.pairs} pairs arrive once, {looping}, "
        f"{'deadlock free' if found.deadlock_free else 'can deadlock'}",
        "green" if found.passed else "red",
    )
    raise typer.Exit(EXIT_PASS if found.passed else EXIT_FAIL)
