"""The command audit: a network that exists, by its configurations and cables alone."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from testbed.base.errors import (
    EXIT_FAIL,
    EXIT_NOTHING_RAN,
    EXIT_PASS,
    EXIT_WARNINGS,
    InputError,
    Problem,
    shorten_middle,
)
from testbed.base.units import count_noun
from testbed.ui.cli.app import app
from testbed.ui.cli.audit_formats import format_junit, format_sarif
from testbed.ui.cli.check_command import texts_of
from testbed.ui.cli.output import form_problems, messages, print_json, print_lines, show_progress, write_file

if TYPE_CHECKING:
    from testbed.devices.audit import Audit, Finding
    from testbed.devices.audit.network import Network
    from testbed.devices.audit.what_if import Change

_EXIT_CODES = {
    "pass": EXIT_PASS, "fail": EXIT_FAIL, "nothing audited": EXIT_NOTHING_RAN, "not understood": EXIT_WARNINGS,
}  # fmt: skip
_MAX_SHOWN = 20
_OF_A_KIND = 5  # findings of a kind that are shown without --all


class AuditFormat(str, Enum):
    """Form of the output."""

    text = "text"
    json = "json"
    junit = "junit"
    sarif = "sarif"


@app.command(epilog="Examples:\ntestbed audit saved\ntestbed audit saved --dialect cisco-ios --no-pauses --format json")
def audit(
    folder: Annotated[
        Path,
        typer.Argument(
            metavar="FOLDER",
            help="folder of saved configurations and cabling: cabling.csv, or tables of LLDP neighbours",
        ),
    ],
    new: Annotated[
        Path | None,
        typer.Argument(metavar="[NEW]", help="another such folder: say what changes from the first to it"),
    ] = None,
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
    without: Annotated[
        list[str] | None,
        typer.Option(
            "--without", metavar="SWITCH[:PORT]", help="as if this cable or switch were not there; may be given again"
        ),
    ] = None,
    each_link: Annotated[
        bool, typer.Option("--each-link", help="say what breaks without each link between switches")
    ] = False,
    each_switch: Annotated[bool, typer.Option("--each-switch", help="say what breaks without each switch")] = False,
    everything: Annotated[bool, typer.Option("--all", help="every finding, not the first five of a kind")] = False,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="draw the network, its loops and cuts: FILE.svg, .pdf or .png"),
    ] = None,
    form: Annotated[
        AuditFormat,
        typer.Option("--format", help="output format; junit and sarif are for continuous integration"),
    ] = AuditFormat.text,
) -> None:
    """Prove or refute a network without a plan: loops, cuts, copies, broadcasts, deadlock.

    With a second folder it says what changes; with --each-link or --each-switch, which pairs are cut and which VLANs
    loop without each of them. Exit code 1 if something is wrong, each with its witness and the remedy; 2 if nothing
    could be audited; 3 if nothing is wrong in what was understood, and some line was not.
    """
    _check_questions(form, new=new is not None, each=each_link or each_switch, without=bool(without), output=output)
    from testbed.devices.audit import audit as audited
    from testbed.devices.audit.assumptions import explain_port
    from testbed.devices.audit.read_folder import read_network
    from testbed.devices.audit.what_if import compare_audits, find_place, require_known_states, take_away

    with show_progress("reading configurations and cables"):
        network = read_network(texts_of(folder), dialect)
    if explain is not None:
        for line in explain_port(network, explain):
            print_lines(line)
        return
    if without or each_link or each_switch:
        require_known_states(network, "without" if without else "each_link" if each_link else "each_switch")
    for place in without or ():
        network = take_away(network, find_place(network, place))
    with show_progress("following every pair and every broadcast"):
        found = audited(network, pauses=pauses)
    if output is not None:
        from testbed.experiments.report.audit_drawing import draw_audit

        with show_progress("drawing"):
            write_file(output, draw_audit(folder.name or str(folder), found, output.suffix[1:].lower()))
        print_lines(f"drawn: {output}", to=messages)
    if new is not None:
        with show_progress(f"the same of {new}"):
            later = audited(read_network(texts_of(new), dialect), pauses=pauses)
        _print_change(compare_audits(found, later), later, form)
    elif each_link or each_switch:
        _print_each(found, _list_parts(network, links=each_link, switches=each_switch), form, pauses=pauses)
    else:
        _print_audit(str(folder), found, form, everything=everything)


def _check_questions(form: AuditFormat, *, new: bool, each: bool, without: bool, output: Path | None) -> None:
    """Refuse questions that exclude each other, before anything is read.

    Raises:
        InputError: all of them.
    """
    problems = []
    if new and each:
        problems.append(Problem("NEW", "is compared as a whole; leave out --each-link and --each-switch, or NEW"))
    if new and without:
        problems.append(Problem("NEW", "is compared as it is saved; leave out --without, or NEW"))
    if (new or each) and form in (AuditFormat.junit, AuditFormat.sarif):
        problems.append(Problem("--format", f"{form.value} is of one network as it is; here it is text or json"))
    if output is not None and (new or each):
        problems.append(Problem("--output", "draws one network; leave out --each-link, --each-switch and NEW"))
    problems += form_problems("--output", output)
    if problems:
        raise InputError(problems)


def _print_audit(folder: str, found: Audit, form: AuditFormat, *, everything: bool) -> None:
    network = found.network
    if form is AuditFormat.json:
        print_json(found.as_object())
    elif form is not AuditFormat.text:
        sys.stdout.write(f"{(format_junit if form is AuditFormat.junit else format_sarif)(folder, found)}\n")
    if form is not AuditFormat.text:
        raise typer.Exit(_EXIT_CODES[found.verdict])
    for line in _list_findings(found.findings, most=len(found.findings) if everything else _OF_A_KIND):
        print_lines(line)
    for sentence in found.network.unclear[:_MAX_SHOWN]:
        print_lines(_shorten(f"not understood: {sentence}"))
    if len(found.network.unclear) > _MAX_SHOWN:
        print_lines(f"… and {len(found.network.unclear) - _MAX_SHOWN} more; --format json has all")
    for note in found.notes:
        print_lines(_shorten(f"note: {note}"), to=messages)
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


def _shorten(text: str) -> str:
    """A line for people: short names of ports, and not too long."""
    from testbed.devices.ios_keywords import abbreviate_ports

    return shorten_middle(abbreviate_ports(text))


def _list_findings(findings: tuple[Finding, ...], *, most: int) -> Iterator[str]:
    """The first few of each kind, and how many there are besides."""
    shown: Counter[str] = Counter()
    for finding in findings:
        shown[finding.kind] += 1
        if shown[finding.kind] <= most:
            yield _shorten(str(finding))
    for kind, count in shown.items():
        if count > most:
            yield f"{kind}: … and {count - most} more; --all shows them"


def _list_parts(network: Network, *, links: bool, switches: bool) -> Iterator[tuple[str, Network | None]]:
    """Each link and switch in words, and the network without it; None where nothing is left of it."""
    from testbed.devices.audit.what_if import list_links, take_away

    places = [*(list_links(network) if links else ()), *((name, "") for name in network.switches if switches)]
    for place in places:
        switch, port = place
        called = switch
        if port:
            peer = network.places[network.peer[network.places.index(place)]]
            called = f"{switch}:{port}–{':'.join(peer)}"
        try:
            yield called, take_away(network, place)
        except InputError:
            yield called, None


def _print_each(found: Audit, parts: Iterator[tuple[str, Network | None]], form: AuditFormat, *, pauses: bool) -> None:
    """What breaks without each part: exit code 1 if anything does, else that of the network as it is."""
    from testbed.devices.audit import audit as audited
    from testbed.devices.audit.what_if import compare_audits

    told: list[dict[str, object]] = []
    broken = 0
    for note in found.notes if form is AuditFormat.text else ():
        print_lines(_shorten(f"note: {note}"), to=messages)
    for called, network in parts:
        with show_progress(f"without {called}"):
            change = compare_audits(found, audited(network, pauses=pauses)) if network is not None else None
        lost = len(change.lost) if change is not None else found.delivered
        loops = change.loops if change is not None else ()
        broken += bool(lost or loops)
        told.append({"without": called, "nothing_left": change is None, "lost": lost, "loops": list(loops),
                     "pairs": list(change.lost) if change is not None else []})  # fmt: skip
        if form is AuditFormat.text:
            pairs = f": {', '.join(change.lost[:6])}{' …' * (lost > 6)}" if change is not None and lost else ""
            text = f"{count_noun(lost, 'pair')} cut{pairs}" if lost else "nothing is cut"
            loop = f"; VLANs {', '.join(map(str, loops))} loop" if loops else ""
            print_lines(_shorten(f"without {called}: {text}{loop}"), "red" if lost or loops else "green")
    if form is AuditFormat.json:
        print_json({"verdict": found.verdict, "delivered": found.delivered, "broken": broken, "parts": told})
    else:
        print_lines(f"the network as it is: {_summary(found)}; {found.delivered} of {found.pairs} pairs arrive once")
        print_lines(f"{broken} of {len(told)} break something when they are gone")
    raise typer.Exit(EXIT_FAIL if broken else _EXIT_CODES[found.verdict])


def _print_change(change: Change, later: Audit, form: AuditFormat) -> None:
    """What changes; exit code that of the new network."""
    if form is AuditFormat.json:
        print_json({**change.as_object(), "verdict": later.verdict})
    else:
        for words, items in (
            ("pairs that do not arrive any more", change.lost), ("pairs that arrive now", change.gained),
            ("hosts in one of both", change.hosts), ("VLANs in one of both", tuple(map(str, change.vlans))),
            ("VLANs that loop now", tuple(map(str, change.loops))),
            ("VLANs that loop no more", tuple(map(str, change.loops_gone))),
        ):  # fmt: skip
            if items:
                print_lines(f"{words}: {len(items)}: {', '.join(items[:6])}{' …' * (len(items) > 6)}")
        for sign, sentences in (("new", change.new), ("gone", change.gone)):
            for sentence in sentences:
                print_lines(_shorten(f"{sign}: {sentence}"), "red" if sign == "new" else "green")
        print_lines(f"the new network: {_summary(later)}")
    raise typer.Exit(_EXIT_CODES[later.verdict])


def _summary(found: Audit) -> str:
    """The verdict in words."""
    parts = [f"nothing was audited, since {found.why_not_audited}"] * bool(found.why_not_audited)
    parts += [count_noun(len(found.findings), "finding")] * bool(found.findings)
    parts += [f"{count_noun(len(found.network.unclear), 'line')} not understood"] * bool(found.network.unclear)
    return ", ".join(parts) or "nothing is wrong"
