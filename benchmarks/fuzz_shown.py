"""What `make fuzz` has shown: records of running labs, the live page of a run, a line of progress on a terminal.

Texts in them are others'. Nothing of them may steer the terminal, begin a line there, or be more than text in the page.
"""

from __future__ import annotations

import contextlib
import html
import io
import json
import os
import pty
import re
import tempfile
import threading
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from random import Random
from typing import Any
from unittest import mock

from starlette.responses import JSONResponse

from benchmarks.fuzz_inputs import changed_text
from testbed.base.errors import TestbedError
from testbed.engines.lab.control import registry
from testbed.engines.lab.control.launch import read_start_time
from testbed.experiments.report import render_report
from testbed.experiments.run.checks.telemetry_samples import read_record
from testbed.results import ResultFolder, load_run
from testbed.results.telemetry import telemetry_to_bytes
from testbed.ui.cli import load_commands, output
from testbed.ui.cli.app import app
from testbed.ui.cli.output import print_error, show_progress, steps
from testbed.ui.cli.terminal import EscapingConsole
from testbed.ui.live.replay import RunSource
from tests.fabrics import plan_of
from tests.runs import head
from tests.unit.experiments.test_telemetry import START, record

_MARK = "own:"  # how a line of others begins that is to look like the program's
_THEIRS = (
    f"\n{_MARK}", f"\r{_MARK}", f"\x85{_MARK}", f"\u2028{_MARK}", "\x1b[2J", "\x1b]0;own\x07", "\x9b31m", "\x1b[1A",
    "\u202e", "\u2066", "\x08\x08", "[red]", ":x:", "[/]", "<b>", "</script><script>own()</script>", "&#0;", "\x00",
    "\t=1", "%s", "{}", "::error::own", "x" * 300,
)  # fmt: skip
# What a terminal is sent of ours: the cursor and the line that moves; nothing of it is among theirs but by its number.
_OURS = re.compile(r"\x1b\[\?25[lh]|\r\x1b\[2K|\x1b\[1A\x1b\[2K|\r\n|\r")
_STEERS = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


def theirs(chance: Random) -> str:
    """A name as nobody gives one who means well."""
    text = "".join(chance.choice((*_THEIRS, "a", "lab", " ", "-")) for _ in range(chance.randint(1, 5)))
    return text if chance.random() < 0.7 else changed_text(chance, [text])


def require_text(shown: str) -> None:
    """Let only that pass which neither steers a terminal nor begins a line as others want.

    Raises:
        AssertionError: it does.
    """
    found = _STEERS.search(shown)
    if found:
        raise AssertionError(f"{found.group()!r} reaches the terminal: {shown[max(0, found.start() - 40) :][:80]!r}")
    forged = [line for line in shown.split("\n") if line.startswith(_MARK)]
    if forged:
        raise AssertionError(f"a name began the line {forged[0][:80]!r}")


def drawn_records(chance: Random) -> dict[str, str]:
    """Files in the place of /run/testbed: of labs, of programs that build one (this one does), and of neither."""
    found = {}
    for number in range(chance.randint(1, 3)):
        name = theirs(chance).replace("/", "").replace("\x00", "").encode(errors="ignore").decode()[:60]
        lab = {"name": name, "init": chance.choice((0, -1, 1 << 40)), "born": 1, "scenario": name, "digest": name}
        building: dict[str, Any] = {"name": name, "owner": "this", "owner_born": "this"}
        said: Any = chance.choice((lab, building, building, {**building, theirs(chance): name}, name, [name]))
        text = json.dumps(said)
        file = name if chance.random() < 0.8 else f"lab{number}"
        found[f"{file}.json"] = text if chance.random() < 0.7 else changed_text(chance, [text])
    return found


def feed_records(files: Mapping[str, str]) -> None:
    """`testbed status`, in both forms, over records of others."""
    load_commands()
    me = os.getpid()
    with tempfile.TemporaryDirectory(prefix="fuzz-") as root:
        for name, text in files.items():
            known = text.replace('"owner": "this"', f'"owner": {me}')
            known = known.replace('"owner_born": "this"', f'"owner_born": {read_start_time(me)}')
            (Path(root) / name).write_text(known, errors="surrogatepass")
        with mock.patch.object(registry, "FOLDER", Path(root)), mock.patch.object(registry, "labs", list):
            for words in (["status"], ["status", "--format", "json"]):
                require_text(_said(words))


def _said(words: list[str]) -> str:
    """What a command prints, on both outputs and at its end."""
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        try:
            app(words, standalone_mode=False)
        except TestbedError as error:
            print_error(error, as_json="json" in words)
    return said.getvalue()


@cache
def _recorded() -> dict[str, bytes]:
    plan = plan_of("ring", switches=3)
    with tempfile.TemporaryDirectory(prefix="fuzz-") as root:
        folder = ResultFolder(Path(root), plan)
        folder.write_plan({"NAME": "NAME"})
        folder.write_samples([])
        folder.write_manifest(
            "pass", ["NAME"], [{**head(1, "NAME", "pass", "NAME"), "dilation": 10.0}], {"dilation": 10.0}
        )
        folder.write_bytes("telemetry-1.npz", telemetry_to_bytes(read_record(plan.wiring, record(), START, (0.2, 1.0))))
        return {file.name: file.read_bytes() for file in folder.finish().iterdir() if file.is_file()}


def feed_page(name: str) -> None:
    """The live page of a run with such names, and its report: JSON, and text in HTML."""
    with tempfile.TemporaryDirectory(prefix="fuzz-") as root:
        for file, content in _recorded().items():
            named = content.replace(b"NAME", json.dumps(name)[1:-1].encode()) if file.endswith(".json") else content
            (Path(root) / file).write_bytes(named)
        played = RunSource(Path(root))
        shown = json.loads(bytes(JSONResponse(played.picture).body))
        if shown["replay"][0]["title"] != f"1: {name or 'load'}":  # a load without a title is one all the same
            raise AssertionError(f"the page is told another title than {name!r}: {shown['replay'][0]['title']!r}")
        page = render_report(load_run(Path(root)))
    if "own()" in name and "<script>own()" in page:
        raise AssertionError("a name is a part of the report's page")
    require_text(html.unescape(page).replace("\t", " ").replace(f"\n{_MARK}", ""))


def feed_progress(text: str) -> None:
    """A step, and what takes a while, on a terminal."""
    require_text(_OURS.sub("\n", _on_terminal(lambda: _progress(text))))


def _progress(text: str) -> None:
    with steps() as shown:
        shown(text)
    with show_progress(text):
        pass


def _on_terminal(work: Callable[[], None]) -> str:
    """What reaches a terminal of 80 columns meanwhile."""
    ours, its = pty.openpty()
    heard: list[bytes] = []

    def listen() -> None:
        with contextlib.suppress(OSError):  # as the terminal's end says that nobody writes any more
            while part := os.read(ours, 65536):
                heard.append(part)

    listening = threading.Thread(target=listen)
    listening.start()
    try:
        with os.fdopen(its, "w", encoding="utf-8", errors="backslashreplace") as file:
            console = EscapingConsole(
                file=file, force_terminal=True, color_system=None, width=80, highlight=False, markup=False, emoji=False
            )
            with mock.patch.object(output, "messages", console):
                work()
    finally:
        listening.join()
        os.close(ours)
    return b"".join(heard).decode(errors="replace")
