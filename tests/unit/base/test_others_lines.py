"""An end of a line in a name or a text of others makes no line that looks like one of the program's own."""

from __future__ import annotations

import io
import pickle
import re

import pytest
from rich.table import Table
from typer.testing import CliRunner

from testbed.base.errors import (
    CapabilityError,
    InputError,
    LabError,
    Problem,
    TestbedError,
    VerificationError,
    indent_lines,
    reading,
)
from testbed.ui.cli import load_commands
from testbed.ui.cli.app import app
from testbed.ui.cli.output import print_lines
from testbed.ui.cli.terminal import EscapingConsole
from tests.hostile_files import commands_of, hostile_files, hostile_run
from tests.unit.base.test_others_text import told_of

ENDS = ["\n", "\r", "\r\n", "\x0b", "\x0c", "\x1c", "\x85", "\u2028", "\u2029"]
END = re.compile("[\n\r\x0b\x0c\x1c\x85\u2028\u2029]")
OWN = "verdict: pass, said by a name"
# Without what no name of a file holds, and what a parser takes for an end of a line before anything is said of it.
NASTY = "a" + "".join(f"{end}{OWN}" for end in ENDS)


def forged(told):
    """Lines that begin as others want them to."""
    return [line for line in END.split(told) if line.lstrip().startswith(OWN)]


@pytest.mark.parametrize("end", ENDS, ids=ascii)
@pytest.mark.parametrize("make", [TestbedError, LabError, CapabilityError, lambda text: InputError.one("k", text),
                                  lambda text: InputError.one(text, "s", text), VerificationError,
                                  lambda text: VerificationError("s", text, [text])])  # fmt: skip
def test_a_sentence_is_a_line_whatever_it_quotes(make, end):
    told = str(make(f"there is no name{end}{OWN}"))
    assert forged(told) == []
    assert OWN in told


def test_what_is_wrong_with_a_file_is_one_line_whatever_its_name():
    with pytest.raises(InputError) as caught, reading(f"a\n{OWN}"):
        raise ValueError(f"b\n{OWN}\u2028{OWN}")
    assert str(caught.value).count("\n") == 0
    assert forged(str(caught.value)) == []


def test_a_message_of_several_lines_has_them():
    error = InputError([Problem("a", "is wrong"), Problem("b", "is wrong, too")])
    assert str(error) == "a: is wrong\nb: is wrong, too"
    assert error.lines == ("a: is wrong", "b: is wrong, too")
    assert str(CapabilityError(["no QEMU", "no KVM"])) == "no QEMU\nno KVM"
    assert str(VerificationError("no", "f", ["x", "y"])) == "f: no\n  x\n  y"
    assert indent_lines("make: it\nfails\n") == ["make: it", "  fails"]


@pytest.mark.parametrize(
    "error",
    [InputError([Problem("a", "is wrong", "f"), Problem("b", "is")]), LabError(["one", "two"]),
     VerificationError("no", "f", ["x"]), LabError("three")],
    ids=lambda error: type(error).__name__,
)  # fmt: skip
def test_an_error_that_comes_from_another_process_is_the_same(error):
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again), again.__dict__) == (type(error), str(error), error.__dict__)


def test_lines_that_are_said_and_cells_of_tables_hold_no_others():
    written = io.StringIO()
    console = EscapingConsole(file=written, width=60, highlight=False, markup=False, emoji=False)
    print_lines(NASTY, to=console)
    print_lines(["two", NASTY], to=console)
    console.print(NASTY)
    table = Table(box=None)
    table.add_column("name", no_wrap=True)
    table.add_row(NASTY)
    console.print(table)
    assert forged(written.getvalue()) == []
    assert len(written.getvalue().splitlines()) > 5


def test_no_command_lets_a_name_begin_a_line(tmp_path, monkeypatch):
    load_commands()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "5000")  # lines of tables that are broken between words begin with any word
    run = hostile_run(tmp_path, NASTY)
    seen = 0
    for words in commands_of(hostile_files(tmp_path, NASTY), run, NASTY):
        done = CliRunner().invoke(app, words)
        told = done.output
        if not isinstance(done.exception, SystemExit | None):  # told by testbed.ui.cli, as print_error does
            told += told_of(done.exception)
        assert forged(told) == [], (words, told)
        seen += OWN in told
    assert seen > 20
