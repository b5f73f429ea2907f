"""Sentences of the library call an argument by its name, those of the command line by its option."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

import testbed as tb
from testbed.base.errors import InputError, argument, naming_options, setting
from testbed.ui.cli import load_commands
from testbed.ui.cli.app import app

PACKAGE = Path(tb.__file__).parent
RING = {"topology": {"kind": "ring", "switches": 4}}
_OPTION = re.compile(r"(?<![\w`-])--[a-z]")
# A whole command in a sentence, of ours or another program, is what somebody types, whoever reads it.
_COMMAND = re.compile(r"(?:testbed|dask|systemctl|iptables|chrt|ovsdb-client|start the container with) [^;,]*$")
# Build the command lines of programs, word by word.
_WORDS_OF_COMMANDS = {
    "engines/local_machine/compile_kernels.py", "engines/lab/hosts/seccomp.py", "engines/lab/control/controller.py",
    "engines/lab/hosts/build_mpi_jobs.py", "engines/lab/control/launch.py", "engines/local_machine/local_workers.py",
    "engines/lab/hosts/loss_probe.py", "engines/machines/worker.py", "engines/lab/hosts/nodes.py",
    "engines/ovs/openvswitch.py", "engines/local_machine/probe.py", "engines/lab/control/mininet_prompt.py",
    "engines/realtime/taps.py", "engines/realtime/manager_program.py", "engines/lab/control/mininet_shell.py",
    "engines/ovs/switch_daemon.py", "engines/vm/building.py", "engines/vm/image.py", "engines/vm/stream.py",
    "engines/vm/suite.py", "ui/live/actions.py", "ui/live/background_jobs.py", "experiments/run/advice.py",
    "experiments/run/dilation/pilot.py", "scenario/workloads/iperf3.py", "scenario/workloads/loss_probe.py",
    "scenario/workloads/mpi.py", "scenario/workloads/mpi_machines.py", "engines/lab/hosts/commands.py",
    "engines/lab/counters/packet_socket.py", "engines/local_machine/user_namespace.py",
}  # fmt: skip
# The mechanism; the checker of certificates, a program of its own; HPL's arguments, which scenarios call so.
_LEFT_OUT = {"base/old_names.py", "base/errors.py", "planning/certificate_check.py", "scenario/workloads/mpi_hpl.py"}
# Begins of scripts and rules for other programs.
_FOR_PROGRAMS = ("#!", "-A ")
_ERRORS = {"Problem", "InputError", "CapabilityError", "WorkloadError", "LabError", "StorageError", "TestbedError"}


def texts_of(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Line and text of every string that is no docstring, what is inserted as {}."""
    skipped = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.FunctionDef | ast.ClassDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            skipped |= {id(part) for part in node.values}
            parts = (part.value if isinstance(part, ast.Constant) else "{}" for part in node.values)
            yield node.lineno, "".join(map(str, parts))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in skipped:
            yield node.lineno, node.value


def options_in(source: str, *, words_of_commands: bool) -> list[tuple[int, str]]:
    """Line and text of each string that names an option and is neither a command nor a word of one."""
    tree = ast.parse(source)
    in_errors = {
        id(inner)
        for call in ast.walk(tree)
        if isinstance(call, ast.Call) and _name(call.func) & _ERRORS
        for inner in ast.walk(call)
    }
    lines = {node.lineno for node in ast.walk(tree) if id(node) in in_errors and isinstance(node, ast.expr)}
    found = []
    for line, text in texts_of(tree):
        for match in _OPTION.finditer(text):
            word = " " not in text.strip() and words_of_commands and line not in lines
            if not word and not text.startswith(_FOR_PROGRAMS) and not _COMMAND.search(text[: match.start()]):
                found.append((line, text))
                break
    return found


def _name(function: ast.expr) -> set[str]:
    return {node.id for node in ast.walk(function) if isinstance(node, ast.Name)}


def test_no_sentence_below_the_command_line_names_an_option():
    found = []
    for file in sorted(PACKAGE.rglob("*.py")):
        name = file.relative_to(PACKAGE).as_posix()
        if not name.startswith("ui/cli/") and name not in _LEFT_OUT:
            source = file.read_text(encoding="utf-8")
            for line, text in options_in(source, words_of_commands=name in _WORDS_OF_COMMANDS):
                found.append(f"{name}:{line}: {text[:90]!r}")
    assert not found, "use argument() or setting() of testbed.base.errors:\n" + "\n".join(found)


@pytest.mark.parametrize("source", [
    'raise InputError.one("--warm-up", "is too long")', 'x = Problem("--warm-up", f"takes {n}")',
    'sentence = f"{n} are too many; leave --resume out"', '_OPTION = "--cluster"', 'sentence = "use --set a=b"',
])  # fmt: skip
def test_the_test_finds_what_it_is_for(source):
    assert options_in(source, words_of_commands=False)


@pytest.mark.parametrize("source", [
    '"""Read `--set`."""', 'x = "start one with `dask scheduler --host ADDRESS`"',
    'f = f"go on: testbed run {n} --resume"',
])  # fmt: skip
def test_docstrings_and_whole_commands_may_name_options(source):
    assert not options_in(source, words_of_commands=False)


def test_an_argument_is_called_as_its_caller_writes_it():
    assert (argument("warm_up"), argument("trust", value=True)) == ("warm_up", "trust=True")
    assert (argument("floods", "members"), setting("lab.dilation", 50)) == (
        "floods='members'", 'settings={"lab.dilation": 50}',
    )  # fmt: skip
    with naming_options():
        assert (argument("warm_up"), argument("trust", value=True)) == ("--warm-up", "--trust")
        assert (argument("floods", "members"), setting("links.aggregate", value=False)) == (
            "--floods members", "--set links.aggregate=false",
        )  # fmt: skip
        assert setting("lab.dilation") == "--set lab.dilation"
    assert setting("lab.dilation") == "settings lab.dilation"


@pytest.mark.parametrize(("called", "said"), [
    (lambda plan: tb.simulate(plan, [0.1], cycles=40_000), "warm_up: takes 50,000 of 40,000 cycles, so none is "),
    (lambda plan: tb.simulate(plan, [0.1, 3]), "loads: should be above 0 and up to 1 flit per host and cycle, not 3.0"),
    (lambda plan: tb.simulate(plan, [0.1], seeds=0), "seeds: should be from 1 to 1,000, not 0"),
    (lambda plan: tb.simulate(plan, [0.1], buffer_gap=-1), "buffer_gap: should be from 0 to 1,000, not -1"),
    (lambda plan: tb.simulate(plan, [0.1], pattern="transposed"), "pattern: there is no pattern "),
    (lambda plan: tb.simulate(plan, [0.1], level="packet", flow_control="pfv"), "flow_control: should be one of "),
    (lambda plan: tb.simulate(plan, [0.1], level="packet", xoff=10), "xoff: should be 1,522 bytes or more, not 10"),
    (lambda plan: plan.loads("transposed"), "pattern: there is no pattern "),
    (lambda plan: tb.plan("ring4", {"topology.switches.x": 3}),
     "settings topology.switches.x: topology.switches is 4, which has no keys"),
    (lambda plan: tb.plan("ring4", {"": 3}), "settings: "),
])  # fmt: skip
def test_errors_of_the_library_name_arguments_of_python(called, said):
    with pytest.raises(InputError) as error:
        called(tb.plan(RING))
    assert str(error.value).startswith(said)
    assert not _OPTION.search(str(error.value))


def test_the_same_errors_of_the_command_line_name_options():
    load_commands()
    words = ["simulate", "ring4", "--loads", "0.1,3", "--cycles", "40000", "--set", "topology.switches=x"]
    found = CliRunner().invoke(app, words).exception
    assert isinstance(found, InputError)
    assert {problem.key for problem in found.problems} == {"--loads", "--warm-up"}
    assert argument("warm_up") == "warm_up"  # once the command has ended
