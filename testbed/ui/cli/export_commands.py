"""The command export: a plan in the words of switches."""

from __future__ import annotations

import csv
import json
from contextlib import suppress
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from testbed.base.errors import InputError, Problem
from testbed.base.files import read_text
from testbed.base.limits import parse_json
from testbed.ui.cli.app import FORMAT, SETTINGS, app
from testbed.ui.cli.output import Format, plan_scenario, print_json, print_lines, show_progress

if TYPE_CHECKING:
    from testbed.devices import Export

MANIFEST = "export.json"


class FlowControl(str, Enum):
    """802.3x pauses."""

    on = "on"
    off = "off"
    keep = "keep"


class Floods(str, Enum):
    """Where broadcasts go."""

    plan = "plan"
    members = "members"


@app.command(
    epilog="Examples:\ntestbed export torus4x4 --dialect linux-bridge-iproute2 --output torus4x4-switches\n"
    "testbed export --dialect list"
)
def export(
    dialect: Annotated[str, typer.Option("--dialect", "-d", help="format of the files; list shows all")],
    name: Annotated[
        str | None, typer.Argument(metavar="SCENARIO", help="a scenario file, or a name in scenarios/")
    ] = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="folder to write")] = None,
    ports: Annotated[
        str | None,
        typer.Option("--ports", help="names of ports: swp{} = swp1, swp2, …; Ethernet{0+4} = Ethernet0, 4, …"),
    ] = None,
    macs: Annotated[
        Path | None,
        typer.Option("--macs", help="CSV file of host,mac, where hosts do not have the lab's addresses"),
    ] = None,
    flow_control: Annotated[
        FlowControl, typer.Option("--flow-control", help="802.3x pauses; keep leaves them as they are")
    ] = FlowControl.on,
    floods: Annotated[
        Floods, typer.Option("--floods", help="broadcasts as the plan says, or to all members of a VLAN")
    ] = Floods.plan,
    settings: SETTINGS = None,
    form: FORMAT = Format.text,
) -> None:
    """Write a plan as configuration files of real switches.

    Writes a file or folder per switch, a cabling list and a README; all or nothing.
    """
    from testbed.devices import Options, export_plan
    from testbed.devices.export import dialect_called

    if dialect == "list":
        _print_dialects(form)
        return
    missing = [
        Problem(place, sentence)
        for place, sentence, given in (
            ("NAME", "is required: a scenario to export", name),
            ("--output", "is required: the folder to write", output),
        )
        if given is None
    ]
    try:
        dialect_called(dialect)
    except InputError as error:
        missing += error.problems
    if missing or name is None or output is None:
        raise InputError(missing)
    options = Options(dialect, ports, flow_control.value, floods.value, None if macs is None else _read_macs(macs))
    _must_be_ours(output)
    with show_progress("planning and writing"):
        made = export_plan(plan_scenario(name, settings), options)
        _write_folder(output, made)
    if form is Format.json:
        print_json({"folder": str(output), **made.manifest})
        return
    for file in made.manifest["files"]:
        print_lines(f"  {file}")
    summary = dialect_called(dialect).summary
    print_lines(f"{output}: {len(made.files)} files, {summary}; start with README.md")


def _print_dialects(form: Format) -> None:
    from testbed.devices import DIALECTS

    if form is Format.json:
        keys = ("summary", "ports", "models")
        listed = {name: {key: getattr(dialect, key) for key in keys} for name, dialect in DIALECTS.items()}
        print_json({"dialects": listed})
        return
    for name, dialect in DIALECTS.items():
        text = f"{name:<22} {dialect.summary} (ports {dialect.ports})"
        print_lines(text)


def _read_macs(file: Path) -> dict[str, str]:
    """Host → address of a CSV file; a first line `host,mac` is a heading."""
    try:
        rows = [row for row in csv.reader(read_text(file).splitlines()) if row]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        utf8 = "it is not UTF-8 text"
        reason = error.strerror if isinstance(error, OSError) else str(error) if isinstance(error, csv.Error) else utf8
        raise InputError.one(f"--macs {file}", f"cannot be read: {reason}") from error
    if rows and rows[0] == ["host", "mac"]:
        rows = rows[1:]
    problems = []
    found: dict[str, str] = {}
    for row in rows:
        if len(row) != 2:
            problems.append(Problem(f"--macs {file}", f'"{",".join(row)}" should be a host and its address: h1,02:…'))
        elif row[0].strip() in found:
            problems.append(Problem(f"--macs {file}", f"{row[0].strip()} is listed more than once"))
        else:
            found[row[0].strip()] = row[1].strip().lower()
    if problems:
        raise InputError(problems)
    return found


def _must_be_ours(folder: Path) -> None:
    """Let a folder pass that is not there, is empty, or holds an earlier export and nothing else."""
    if not folder.exists():
        return
    if not folder.is_dir():
        raise InputError.one("--output", f"{folder} is a file; give the name of a folder")
    inside = {str(file.relative_to(folder)) for file in folder.rglob("*") if not file.is_dir()}
    if not inside:
        return
    ours = {MANIFEST, *_manifest(folder)["files"]} if MANIFEST in inside else set()
    foreign = sorted(inside - ours)
    if foreign:
        more = f" and {len(foreign) - 1} more" if len(foreign) > 1 else ""
        sentence = f"{folder} holds {foreign[0]}{more}, which no export wrote; give another folder, or empty this one"
        raise InputError.one("--output", sentence)


def _manifest(folder: Path) -> dict[str, Any]:
    file = folder / MANIFEST
    try:
        found = parse_json(read_text(file, folder))
    except OSError as error:
        sentence = f"cannot be read: {error.strerror}; give a folder that testbed export wrote"
        raise InputError.one(str(file), sentence) from error
    except ValueError as error:
        raise InputError.one(str(file), f"is damaged: {error}; export again into another folder") from error
    if not isinstance(found, dict) or not isinstance(found.get("files"), list):
        raise InputError.one(str(file), "is damaged: it lists no files; export again into another folder")
    return found


def _write_folder(folder: Path, made: Export) -> None:
    """Write beside the folder and take its place when all is there."""
    from testbed.base.files import make_folder, make_new_folder, remove_folder, rename, write_whole

    folder = folder.absolute()
    partial, old = (folder.with_name(f".{folder.name}.{word}") for word in ("partial", "old"))
    try:
        for path in (partial, old):
            remove_folder(path)  # of an export that was killed
        make_folder(partial.parent)
        make_new_folder(partial)
        for name, text in made.files.items():
            make_folder((partial / name).parent, partial)
            write_whole(partial / name, text.encode(), below=partial)
        write_whole(partial / MANIFEST, (json.dumps(made.manifest, indent=1) + "\n").encode(), below=partial)
        if folder.exists():
            rename(folder, old)
        rename(partial, folder)
    except OSError as error:
        raise InputError.one("--output", f"{folder} cannot be written: {error.strerror}") from error
    finally:
        for path in (partial, old):
            with suppress(OSError):
                remove_folder(path)
