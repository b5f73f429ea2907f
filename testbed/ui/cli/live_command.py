"""`testbed live`: a page in the browser that shows a running lab, or plays a finished run."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from testbed.ui.cli.app import FORMAT, app
from testbed.ui.cli.interrupts import Interrupted
from testbed.ui.cli.output import Format, messages, print_json, print_lines

if TYPE_CHECKING:
    from testbed.planning import Plan

LIVE = Annotated[bool, typer.Option("--live", help="show the lab on a page in the browser, see testbed live --help")]
PORT = Annotated[int | None, typer.Option("--port", help="port of 127.0.0.1 for that page; default: any free port")]


@app.command(
    epilog="Examples:\ntestbed live torus4x4\ntestbed live --port 8377\ntestbed live results/FOLDER",
)
def live(
    what: Annotated[
        str | None,
        typer.Argument(
            metavar="LAB | FOLDER", help="a lab (may be left out while only one runs), or the folder of a run"
        ),
    ] = None,
    port: PORT = None,
    form: FORMAT = Format.text,
) -> None:
    """Show a running lab, or play a finished run, on a page in the browser.

    The page is for this machine alone; its address has a token. It shows use, queues and pauses of each link, paths and
    flows, also over time; takes links down and up, changes them, captures frames, kills switches, runs loads, switches
    spare links off, and says which command would do the same. Ctrl-C ends the page; the lab keeps running. Exit code 2
    if there is no such lab or folder, or the port is taken.
    """
    from testbed.ui.live.lab_source import running_lab
    from testbed.ui.live.replay import RunSource
    from testbed.ui.live.server import Page, listening_socket, serve_page

    with listening_socket(port) as listening:
        source = RunSource(Path(what)) if what is not None and _is_folder(what) else running_lab(what)
        with until_interrupted(), serve_page(Page(source), listening) as address:
            print_address(address, form, {})
            threading.Event().wait()


def _is_folder(what: str) -> bool:
    return "/" in what or Path(what).is_dir()


def print_address(address: str, form: Format, facts: Mapping[str, object]) -> None:
    """Say where the page is, and in an object also other facts."""
    if form is Format.json:
        print_json({**facts, "address": address})
    else:
        print_lines(address, whole=True)
        print_lines("the page is open until Ctrl-C; only this machine can reach it", to=messages)


@contextmanager
def until_interrupted() -> Iterator[None]:
    """Let Ctrl-C end the block and nothing else."""
    with suppress(Interrupted):
        yield


@contextmanager
def page_of_run(plan: Plan, port: int | None, *, wanted: bool) -> Iterator[None]:
    """Show the lab that this program is about to build, while the block runs.

    Raises:
        InputError: its engine has no lab on this machine, or the port is taken.
    """
    if not wanted:
        yield
        return
    from testbed.experiments.run.engines import find_lab_engine
    from testbed.ui.live.lab_source import lab_of_program
    from testbed.ui.live.server import Page, listening_socket, serve_page

    find_lab_engine(plan.scenario)
    with listening_socket(port) as listening, serve_page(Page(lab_of_program(plan, os.getpid())), listening) as address:
        print_lines(f"live: {address}", to=messages, whole=True)
        yield
