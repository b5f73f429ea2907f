"""vm: the virtual machine's image, boxes made from it, and the tests that run in it."""

from __future__ import annotations

import sys
import tempfile
import time
from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from testbed.base.errors import InputError, LabError
from testbed.ui.cli.app import FORMAT, Commands, app
from testbed.ui.cli.output import Format, print_json, print_lines, results, steps

vm = typer.Typer(
    help="Build the virtual machine for labs, make boxes of it, test in it.",
    cls=Commands,
    no_args_is_help=True,
)
app.add_typer(vm, name="vm")
_TESTS_LIMIT = 1800.0


class Provider(str, Enum):
    """What Vagrant runs machines with."""

    libvirt = "libvirt"
    virtualbox = "virtualbox"
    both = "both"


@vm.command(epilog="Example: testbed vm build")
def build(form: FORMAT = Format.text) -> None:
    """Build the image unless it is there: Debian 12 with its kernel and all that labs need. Needs root, and 5 GB."""
    from testbed.engines.vm.image import build_image

    started = time.monotonic()
    with steps() as progress:
        image = build_image(progress)
    seconds = round(time.monotonic() - started, 1)
    if form is Format.json:
        print_json({"image": str(image.folder), "seconds": seconds, "versions": image.versions})
    else:
        print_lines(f"{image.folder}: kernel {image.versions['kernel']}; {seconds:g} s")


@vm.command(epilog="Examples:\ntestbed vm box --provider libvirt\ntestbed vm box -o boxes")
def box(
    provider: Annotated[Provider, typer.Option(help="that the box is for")] = Provider.both,
    output: Annotated[Path | None, typer.Option("-o", "--output", help="folder that gets the boxes")] = None,
    form: FORMAT = Format.text,
) -> None:
    """Make boxes for Vagrant from the image, unless they are there. Needs root, the image, and 6 GB."""
    from testbed.base.resources import CACHE
    from testbed.engines.vm.box import PROVIDERS, build_boxes

    started = time.monotonic()
    wanted = PROVIDERS if provider is Provider.both else (provider.value,)
    folder = CACHE if output is None else output.absolute()
    there = next(place for place in (folder, *folder.parents) if place.exists())
    if not there.is_dir():
        raise InputError.one("--output", f"{there} is a file; give the name of a folder")
    with steps() as progress:
        boxes = build_boxes(wanted, progress, folder)
    seconds = round(time.monotonic() - started, 1)
    if form is Format.json:
        print_json({"boxes": [str(file) for file in boxes], "seconds": seconds})
    else:
        for file in boxes:
            print_lines(str(file))
        results.print(f"{seconds:g} s")


@vm.command("test", epilog="Examples:\ntestbed vm test\ntestbed vm test -- tests/lab/test_faults.py")
def run_tests(
    arguments: Annotated[
        list[str] | None,
        typer.Argument(metavar="PYTEST", help="arguments of pytest, after --; default: all tests marked vm"),
    ] = None,
    memory: Annotated[int, typer.Option(min=256, help="MiB of the virtual machine")] = 2048,
    limit: Annotated[float, typer.Option(min=1, help="s until it is ended")] = _TESTS_LIMIT,
    virtual_time: Annotated[bool, typer.Option("--virtual-time", help="in virtual time")] = False,
) -> None:
    """Boot the image and run the tests marked vm in it, on the kernel's Open vSwitch.

    Exit code 0 if they pass, 1 if one fails.
    """
    from testbed.experiments.run.vm import run_tests_in_vm
    from testbed.scenario.engines import VmOptions

    def line(text: str) -> None:
        sys.stdout.write(text + "\n")
        sys.stdout.flush()

    with tempfile.TemporaryDirectory() as folder, steps() as progress:
        console = Path(folder, "console.log")
        try:
            code = run_tests_in_vm(arguments or [], VmOptions(virtual_time, memory, limit), console, progress, line)
        except LabError:
            sys.stderr.write(console.read_text(errors="replace") if console.exists() else "")
            raise
    raise typer.Exit(code)
