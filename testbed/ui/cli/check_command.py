"""The command check: saved configurations or running bridges against a plan."""

from __future__ import annotations

import errno
import sys
from collections.abc import Sequence
from dataclasses import replace
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from testbed.base import old_names
from testbed.base.errors import EXIT_FAIL, EXIT_PASS, InputError, Problem
from testbed.base.files import read_text
from testbed.base.limits import CONFIGURATION, LINE, scaled_limit, too_much
from testbed.ui.cli.app import FORMAT, SETTINGS, app
from testbed.ui.cli.export_commands import MANIFEST, Floods, _manifest, _read_macs
from testbed.ui.cli.output import Format, messages, print_json, print_lines, results, show_progress
from testbed.ui.cli.verify_command import read_plan

if TYPE_CHECKING:
    from testbed.devices import CheckOptions, Comparison

_MAX_SHOWN = 20


class CheckFormat(str, Enum):
    """Form of the output."""

    text = "text"
    json = "json"
    diff = "diff"


AGAINST = Annotated[str, typer.Option("--against", help="scenario, or plan.json, to compare with")]
RUNNING = Annotated[
    Path | None, typer.Option("--running", help="folder with the state of running bridges, instead of files")
]


@app.command(
    epilog="Examples:\ntestbed check saved --against torus4x4\ntestbed check saved --against plan.json "
    "--ports 'GigabitEthernet1/0/{}'\ntestbed check --bridge br0=s3 --against torus4x4"
)
def check(
    against: AGAINST,
    configurations: Annotated[
        Path | None,
        typer.Argument(metavar="FOLDER", help="folder of saved configurations: a file or folder a switch, by its name"),
    ] = None,
    dialect: Annotated[
        str | None, typer.Option("--dialect", "-d", help="format of the files, if it cannot be detected")
    ] = None,
    ports: Annotated[str | None, typer.Option("--ports", help="names of ports, as in export")] = None,
    macs: Annotated[
        Path | None, typer.Option("--macs", help="CSV file of host,mac, where hosts do not have the lab's addresses")
    ] = None,
    floods: Annotated[
        Floods | None, typer.Option("--floods", help="broadcasts as the plan says, or to all members of a VLAN")
    ] = None,
    bridge: Annotated[
        list[str] | None,
        typer.Option("--bridge", help="a bridge of this machine and its switch: br0=s3; others as planned; repeatable"),
    ] = None,
    running: RUNNING = None,
    settings: SETTINGS = None,
    form: Annotated[CheckFormat, typer.Option("--format", help="output format")] = CheckFormat.text,
) -> None:
    """Compare saved configurations or running bridges with a plan: settings, pairs, broadcasts.

    Reads what export writes and what switches save: show running-config of PowerConnect and Catalyst, SONiC's
    config_db.json, Linux bridges, tables. Exit code 1 if something differs.
    """
    from testbed.devices import check_files
    from testbed.devices.check import RUNNING as SHOWN

    addresses = None if macs is None else _read_macs(macs)
    files, options, place = _sources(configurations, running, bridge or [])
    if running is not None or bridge:
        options = replace(options, dialect=SHOWN, partly=bool(bridge))
    options = replace(
        options,
        dialect=dialect or options.dialect,
        ports=ports or options.ports,
        macs=addresses or options.macs,
        floods=options.floods if floods is None else floods.value,
    )
    with show_progress("planning, reading and walking"):
        found = check_files(read_plan(against, settings or []), files, options)
    if form is CheckFormat.json:
        print_json(found.as_object())
    elif form is CheckFormat.diff:
        sys.stdout.write(found.diff)
        for problem in found.unread:
            print_lines(str(problem), "red", to=messages)
    else:
        _print(place, against, found)
    raise typer.Exit(EXIT_PASS if found.is_same else EXIT_FAIL)


@app.command("import", hidden=True, epilog="Example: testbed check torus4x4-switches --against torus4x4")
def import_files(
    folder: Annotated[Path, typer.Argument(help="folder that testbed export wrote, edited since or not")],
    against: AGAINST,
    running: RUNNING = None,
    settings: SETTINGS = None,
    form: FORMAT = Format.text,
) -> None:
    """Do what check does; this name is understood for one more release."""
    old_names.notice("testbed import", f"testbed {old_names.COMMANDS['import']}")
    check(
        against, folder, dialect=None, ports=None, macs=None, floods=None, bridge=None, running=running,
        settings=settings, form=CheckFormat(form.value),
    )  # fmt: skip


def _sources(
    folder: Path | None, running: Path | None, bridges: Sequence[str]
) -> tuple[dict[str, str], CheckOptions, str]:
    """File → text, what is known of them, and what to call them."""
    from testbed.devices import CheckOptions
    from testbed.devices.check import options_of

    if (folder is None and running is None) == (not bridges):
        sentence = "give a folder of configurations, or --bridge BRIDGE=SWITCH for bridges of this machine"
        raise InputError.one("CONFIGURATIONS", sentence)
    if bridges:
        from testbed.engines.ovs.bridges import running_bridges

        pairs = dict(_pair(text) for text in bridges)
        return running_bridges(pairs), CheckOptions(), ", ".join(pairs)
    shown = running if running is not None else folder
    assert shown is not None
    options = CheckOptions()
    if folder is not None and (folder / MANIFEST).is_file():
        options = options_of(_manifest(folder))
    ours = {MANIFEST, "README.md", "cabling.csv"}
    return {name: text for name, text in texts_of(shown).items() if name not in ours}, options, str(shown)


def _pair(text: str) -> tuple[str, str]:
    bridge, equals, switch = text.partition("=")
    if not (bridge and equals and switch):
        raise InputError.one("--bridge", f'"{text}" should be a bridge and its switch, as in br0=s3')
    return bridge, switch


def texts_of(folder: Path) -> dict[str, str]:
    """Every file in a folder: name → text.

    Raises:
        InputError: what cannot be read, all of it; a link is not, since it may lead to what only the reader may read.
    """
    if not folder.is_dir():
        raise InputError.one(str(folder), "is not a folder")
    files, problems = {}, []
    for file in sorted(folder.rglob("*")):
        if not (file.is_file() or file.is_symlink()):
            continue
        try:
            text = readable(read_text(file, folder, most=CONFIGURATION))
            files[str(file.relative_to(folder))] = text.removeprefix("\ufeff")
        except UnicodeDecodeError as error:
            line = error.object[: error.start].count(b"\n") + 1
            problems.append(Problem(f"{file} line {line}", "is not UTF-8 text; save the configuration as text"))
        except OSError as error:
            problems.append(Problem(str(file), f"cannot be read: {error.strerror}"))
    if problems:
        raise InputError(problems)
    if not files:
        raise InputError.one(str(folder), "holds no file")
    return files


def readable(text: str) -> str:
    """A configuration without a line that no switch writes, on which patterns would be tried for minutes.

    Raises:
        OSError: it has such a line, and is not JSON, which may be all in one.
    """
    longest = 0 if text.lstrip()[:1] in ("{", "[") else max(map(len, text.split("\n")))
    most = scaled_limit(LINE)
    if longest > most:
        raise OSError(errno.EFBIG, too_much(f"it has a line of {longest:,} characters", most, "in one"))
    return text


def _print(place: str, against: str, found: Comparison) -> None:
    if found.other_plan is not None:
        note = f"note: {place} was written from the plan {found.other_plan}, and {against} is another one now"
        print_lines(note, to=messages)
    if found.assumed:
        print_lines(
            f"note: {len(found.assumed)} switches have no configuration here and are taken as planned", to=messages
        )
    astray = found.count_misrouted()
    settings = [str(one) for one in found.settings]
    for heading, lines in (
        ("lines that cannot be applied", [str(problem) for problem in found.unread]),
        ("settings that differ", settings),
        ("switches where pairs leave their path", [f"{name}: {count} pairs" for name, count in astray.most_common()]),
        ("paths that differ", [str(walk) for walk in found.walks]),
    ):
        if lines:
            results.print(f"{heading}: {len(lines)}", style="bold", markup=False)
        for line in lines[:_MAX_SHOWN]:
            print_lines(f"  {line}")
        if len(lines) > _MAX_SHOWN:
            results.print(f"  … and {len(lines) - _MAX_SHOWN} more; --format json has all", markup=False)
    verdict = "matches" if found.is_same else "DIFFERS FROM"
    walked = f"{found.pairs} pairs{' and all broadcasts' if found.broadcasts else ''} walked"
    print_lines(f"{place} {verdict} {against}: every setting compared, {walked}", "green" if found.is_same else "red")
