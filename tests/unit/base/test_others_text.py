"""Names and texts of others reach no terminal, table, title or spreadsheet as more than text."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import subprocess
import sys
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from rich.table import Table
from rich.text import Text
from typer.testing import CliRunner

from testbed.base.errors import Problem, TestbedError
from testbed.base.model import Sample
from testbed.base.untrusted_text import escape_cell, escape_controls, escape_json, escape_line, unescape_cell
from testbed.experiments.compare.comparison import compare
from testbed.experiments.compare.comparison_table import as_csv
from testbed.experiments.report import render_report
from testbed.experiments.report.marks import Line
from testbed.experiments.report.panels import Axis, Block, Panel, Picture
from testbed.experiments.report.render import write
from testbed.results import load_run
from testbed.results.samples import samples_from_csv, samples_to_csv
from testbed.ui.cli import load_commands
from testbed.ui.cli.app import app
from testbed.ui.cli.ci_formats import CommandVerdict, github_lines, junit_text
from testbed.ui.cli.output import print_error
from testbed.ui.cli.terminal import EscapingConsole, EscapingStream
from tests.hostile_files import EVERY, NASTY, SET, commands_of, hostile_files, hostile_run
from tests.runs import goodput, head, run_of, text_of

RAW = re.compile("[" + "".join(map(re.escape, EVERY)) + "\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def shown(*renderables, terminal=True, **options):
    written = io.StringIO()
    console = EscapingConsole(
        file=written, force_terminal=terminal, color_system="standard" if terminal else None, width=200,
        highlight=False, markup=False, emoji=False,
    )  # fmt: skip
    for one in renderables:
        console.print(one, **options)
    return written.getvalue()


@pytest.mark.parametrize("sign", EVERY, ids=ascii)
def test_each_sign_is_shown_by_its_number(sign):
    escaped = escape_controls(f"a{sign}b")
    assert escaped.isascii()
    assert escaped.encode().decode("unicode_escape").encode("utf-16", "surrogatepass") == f"a{sign}b".encode(
        "utf-16", "surrogatepass"
    )
    assert escape_controls(escaped) == escaped
    assert json.loads(escape_json(json.dumps(sign, ensure_ascii=False))) == sign
    assert escape_json(json.dumps(sign, ensure_ascii=False)).isascii()


def test_other_text_stays_as_it_is():
    text = "s1→s2: 4×4, Größe, 交换机, مبدل, 🖧\n\tindented"
    assert escape_controls(text) == text
    assert escape_line("a\nb\tc") == "a\\x0ab\\x09c"


def test_a_console_has_its_own_colours_and_no_others():
    assert shown("red", style="red") == "\x1b[31mred\x1b[0m\n"
    assert shown("a\x1b[31mb", style="red") == "\x1b[31ma\\x1b[31mb\x1b[0m\n"
    assert shown(Text("a\x9b31mb\u202e", style="bold")) == "\x1b[1ma\\x9b31mb\\u202e\x1b[0m\n"
    assert shown(NASTY, terminal=False).endswith("\\x07[red]b[/] :x: [/nothing]\n")


def test_columns_of_a_table_fit_what_is_escaped():
    table = Table(box=None, pad_edge=False)
    table.add_column("name")
    table.add_column("what")
    table.add_row("a\x1b\u202e", "one")
    table.add_row("b", "[red]:x:")
    assert shown(table, terminal=False).splitlines() == [
        "name         what    ", "a\\x1b\\u202e  one     ", "b            [red]:x:",
    ]  # fmt: skip


def test_what_is_written_past_the_console_is_escaped():
    stream = io.StringIO()
    escaping: Any = EscapingStream(stream)
    print("a\x1b[31m", file=escaping)
    escaping.writelines(["b\u202e", "c\n"])
    assert stream.getvalue() == "a\\x1b[31m\nb\\u202ec\n"
    twice: Any = EscapingStream(escaping)
    console = EscapingConsole(file=twice, force_terminal=True, color_system="standard")
    console.print("d\x1b", style="red", highlight=False)
    assert stream.getvalue().endswith("\x1b[31md\\x1b\x1b[0m\n")


def test_no_command_lets_any_of_it_through(tmp_path, monkeypatch):
    load_commands()
    monkeypatch.chdir(tmp_path)
    run = hostile_run(tmp_path, NASTY)
    commands = commands_of(hostile_files(tmp_path, NASTY), run, NASTY)
    seen = 0
    for words in commands:
        done = CliRunner().invoke(app, words)
        told = done.output
        if not isinstance(done.exception, SystemExit | None):  # told by testbed.ui.cli, as print_error does
            told += told_of(done.exception)
        raw = RAW.search(told)
        assert raw is None, (words, raw, told[max(0, raw.start() - 200) : raw.end() + 20])
        seen += "\\x1b" in told or "\\u001b" in told
    assert seen > len(commands) // 2, "the files are hostile, and most of the commands show that"


def told_of(error):
    assert isinstance(error, TestbedError | OSError), repr(error)
    if not isinstance(error, TestbedError):
        return ""
    written = io.StringIO()
    before = sys.stdout, sys.stderr
    sys.stdout = sys.stderr = written
    try:
        print_error(error, as_json=True)
    finally:
        sys.stdout, sys.stderr = before
    return written.getvalue()


def test_the_whole_program_escapes_what_is_told_at_its_end(tmp_path):
    (tmp_path / "sc.yaml").write_text(json.dumps({"topology": {"kind": "mesh", f"x{SET}": 1}}))
    done = subprocess.run(
        [sys.executable, "-m", "testbed", "plan", "sc.yaml"], cwd=tmp_path, capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONIOENCODING": "utf-8"},
    )  # fmt: skip
    assert done.returncode == 2
    assert "\\x1b" in done.stderr
    assert not RAW.search(done.stderr + done.stdout)


def test_a_page_and_a_drawing_hold_none_of_it(tmp_path):
    run = load_run(hostile_run(tmp_path, NASTY))
    page = render_report(run)
    assert not RAW.search(page)
    assert "\\u202e" in page
    picture = Picture([Block([Panel([Line(x=[0], y=[1], name="a\u202eb")], Axis("x"), Axis("y\u2066"), "t\u200f")])])
    drawn = write(picture, "svg").decode()
    assert not RAW.search(drawn)
    assert "\\u200f" in drawn


FORMULAS = ["=cmd|x", "+1+2", "-1+2", "@SUM(A1)", "\t=1", "\r=1", "'=1", "''=1"]


@pytest.mark.parametrize("text", FORMULAS, ids=ascii)
def test_a_formula_is_a_text_in_every_table(text):
    assert escape_cell(text).startswith("'")
    assert unescape_cell(escape_cell(text)) == text
    sample = Sample(f"{text}", -1.5, text, {"load": "1", "repeat": "1", text: text, "key": text})
    written = samples_to_csv([sample])
    assert samples_from_csv(written) == (sample,)
    for row in csv.reader(io.StringIO(written)):
        for cell in row:
            assert cell[:1] not in ("=", "+", "@", "\t", "\r"), row
            assert cell[:1] != "-" or float(cell)


def test_numbers_stay_numbers():
    for text in ("-1", "+2.5", "-.5", "-1e-3", "1", "", "a=b"):
        assert escape_cell(text) == text
    written = samples_to_csv([Sample("rate", -2.5, "bit/s", {"offset": "-3"})])
    assert written.splitlines()[1] == "rate,-2.5,bit/s,,-3"


def test_comparisons_hold_no_formulas():
    runs = [
        run_of(text_of("{kind: mesh, sizes: [2, 2]}"), goodput(mean), [head(1, "=cmd|x")], folder=f"results/{name}")
        for name, mean in (("=one", 1e9), ("@two", 2e9))
    ]
    for row in csv.reader(io.StringIO(as_csv(compare(runs, alone=True)))):
        for cell in row:
            assert cell[:1] not in ("=", "+", "@"), row
            assert cell[:1] != "-" or float(cell)


def test_annotations_hold_no_commands_of_others():
    name = "::set-output name=a::b\r\n::error::x ##[error]y%0A::z"
    lines = list(github_lines([CommandVerdict(name, 1.0, problems=((f"{name}: k", "s\n::error::t"),))]))
    assert len(lines) == 2
    for line in "\n".join(lines).replace("\r", "\n").split("\n"):
        assert not line.lstrip().startswith("::") or line.startswith("::error file=%3A%3Aset-output")
        assert "##[" not in line or line.startswith("::error ")
    assert "%250A" in lines[0]


def test_junit_is_xml_whatever_a_name_holds():
    nasty = "".join(EVERY) + "\ufffe]]><&\"'"
    root = ET.fromstring(junit_text([CommandVerdict(nasty, 1.0, problems=((nasty, nasty),))]).encode())
    assert "\\x1b" in root[0][0].get("name", "")
    assert not RAW.search("".join(root.itertext()))


def test_a_name_with_an_end_of_line_begins_no_line():
    assert (
        str(Problem("key\n0", "is wrong", "a\nverdict: pass.yaml")) == "a\\x0averdict: pass.yaml: key\\x0a0: is wrong"
    )
