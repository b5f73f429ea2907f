"""The command audit: a network that exists, by its configurations and cables alone."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from testbed.base.errors import EXIT_FAIL, EXIT_NOTHING_RAN, EXIT_PASS, EXIT_WARNINGS, shorten_middle
from testbed.base.units import count_noun
from testbed.ui.cli.app import FORMAT, app
from testbed.ui.cli.check_command import texts_of
from testbed.ui.cli.output import Format, messages, print_json, print_lines, show_progress

if TYPE_CHECKING:
    from testbed.devices.audit import Audit

_EXIT_CODES = {
    "pass": EXIT_PASS, "fail": EXIT_FAIL, "nothing audited": EXIT_NOTHING_RAN, "not understood": EXIT_WARNINGS,
}  # fmt: skip
_MAX_SHOWN = 20


@app.command(epilog="Examples:\ntestbed audit saved\ntestbed audit saved --dialect cisco-ios --no-pauses --format json")
def audit(
    folder: Annotated[
        Path,
        typer.Argument(
            metavar="FOLDER",
            help="folder of saved configurations and cabling: cabling.csv, or tables of LLDP neighbours",
        ),
    ],
    dialect: Annotated[
        str | None, typer.Option("--dialect", "-d", help="format of the files, if it cannot be detected")
    ] = None,
    pauses: Annotated[
        bool, typer.Option("--pauses/--no-pauses", help="whether links may pause, so that deadlock is possible")
    ] = True,
    explain: Annotated[
        str | None,
        typer.Option(
            "--explain",
            metavar="SWITCH:PORT",
            help="explain a port: its settings, and the lines and defaults that make them",
        ),
    ] = None,
    form: FORMAT = Format.text,
) -> None:
    """Prove or refute a network without a plan: loops, cuts, copies, broadcasts, deadlock.

    Exit code 1 if something is wrong, each with its witness and the remedy; 2 if nothing could be audited; 3 if nothing
    is wrong in what was understood, and some line was not.
    """
    from testbed.devices.audit import audit as audited
    from testbed.devices.audit.folder import read_network
    from testbed.devices.audit.told import explain_port

    with show_progress("reading configurations and cables"):
        network = read_network(texts_of(folder), dialect)
    if explain is not None:
        for line in explain_port(network, explain):
            print_lines(line)
        return
    with show_progress("following every pair and every broadcast"):
        found = audited(network, pauses=pauses)
    if form is Format.json:
        print_json(found.as_object())
        raise typer.Exit(_EXIT_CODES[found.verdict])
    for finding in found.findings[:_MAX_SHOWN]:
        print_lines(shorten_middle(str(finding)))
    if len(found.findings) > _MAX_SHOWN:
        print_lines(f"… and {len(found.findings) - _MAX_SHOWN} more; --format json has all")
    for sentence in found.network.unclear[:_MAX_SHOWN]:
        print_lines(shorten_middle(f"not understood: {sentence}"))
    if len(found.network.unclear) > _MAX_SHOWN:
        print_lines(f"… and {len(found.network.unclear) - _MAX_SHOWN} more; --format json has all")
    for note in found.notes:
        print_lines(shorten_middle(f"note: {note}"), to=messages)
    loops = len(found.looping_vlans)
    looping = f"{count_noun(loops, 'VLAN') if loops else 'no VLANs'} loop{'s' if loops == 1 else ''}"
    print_lines(
        f"{folder}: {_summary(found)}: "
        f"{count_noun(len(network.switches), 'switch', 'es')}, {count_noun(network.links, 'link')}, "
        f"{count_noun(len(network.hosts), 'host')}, {count_noun(len(network.vlans), 'VLAN')}; "
        f"{found.delivered} of {found.pairs} pairs arrive once, {looping}, "
        f"{'deadlock free' if found.deadlock_free else 'can deadlock'}",
        {"pass": "green", "not understood": "yellow"}.get(found.verdict, "red"),
    )
    raise typer.Exit(_EXIT_CODES[found.verdict])


def _summary(found: Audit) -> str:
    """The verdict in words."""
    parts = [f"nothing was audited, since {found.why_not_audited}"] * bool(found.why_not_audited)
    parts += [count_noun(len(found.findings), "finding")] * bool(found.findings)
    parts += [f"{count_noun(len(found.network.unclear), 'line')} not understood"] * bool(found.network.unclear)
    return ", ".join(parts) or "nothing is wrong"
