"""What the command line looks like: panels of help, names of options, completion, lists, lines."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest
from typer.main import get_command

import testbed
from testbed.base.errors import InputError
from testbed.base.old_names import OldNameWarning
from testbed.engines.local_machine.compile_kernels import COMMANDS, compile_all
from testbed.experiments.sweep import find_sweep
from testbed.scenario import parse_scenario, scenario_names
from testbed.ui import cli
from testbed.ui.cli.app import PANELS, app, wants_json


class _Terminal(io.StringIO):
    def isatty(self):
        return True


def typed(*words, terminal=False, columns="80"):
    """Exit code, output and messages of a command line in this process."""
    out, err, code = (_Terminal() if terminal else io.StringIO()), io.StringIO(), 0
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
        patch.setattr(sys, "argv", ["testbed", *words])
        patch.setenv("COLUMNS", columns)
        patch.setenv("TERM", "dumb")
        try:
            cli._run()
        except SystemExit as end:
            code = int(end.code or 0)
    return code, out.getvalue(), err.getvalue()


def test_every_command_is_in_a_panel_and_on_one_line_of_help():
    code, text, _ = typed("--help")
    lines = text.splitlines()
    assert code == 0
    shown: dict[str, list[str]] = {}
    for line in lines:
        words = line.strip("│ ").split()
        if line.startswith("╭─"):
            panel = line.strip("╭╮─ ")
        elif line.startswith("│") and not line.startswith("│  ") and not words[0].startswith("--"):
            shown.setdefault(panel, []).append(words[0])
    assert shown == {panel: list(names) for panel, names in PANELS.items()}
    public = [command for command in app.registered_commands if not command.hidden]
    assert {command.name or command.callback.__name__ for command in public} <= {
        name for names in PANELS.values() for name in names
    }


def test_the_version_is_told_without_the_rest_of_the_program():
    root = str(Path(testbed.__file__).parents[1])
    script = "import sys; sys.argv = ['testbed', '--version']; from testbed.ui.cli import main; main(); "
    script += "print(len(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", f"{script}; assert 'typer' not in sys.modules"],
        capture_output=True, text=True, check=True, env={**os.environ, "PYTHONPATH": root},
    )  # fmt: skip
    assert done.stdout.splitlines()[0] == f"testbed {testbed.__version__}"
    assert typed("--version")[1] == f"testbed {testbed.__version__}\n"


def test_json_is_understood_and_stands_for_its_format():
    assert typed("plan", "ring4", "--json") == typed("plan", "ring4", "--format", "json")
    code, text, _ = typed("plan", "torus4x5", "--json")
    assert (code, json.loads(text)["exit_code"]) == (2, 2)


def test_json_behind_two_dashes_is_a_word_of_its_own():
    assert wants_json(["plan", "--json"])
    assert wants_json(["plan", "--format", "json"])
    assert not wants_json(["exec", "h1", "--", "ip", "--json"])


def test_options_by_their_old_names_still_work_and_say_so(tmp_path):
    code, _, said = typed("analyse", "ring4", f"--plot={tmp_path / 'loads.svg'}")
    assert (code, said) == (0, "--plot is called --output now; the old name goes with the next release\n")
    assert (tmp_path / "loads.svg").exists()
    code, _, said = typed("simulate", "ring4", "--load", "1")
    assert code == 2
    assert "--load is called --trace-load now" in said


def test_keys_by_their_old_names_still_work_and_say_so(tmp_path):
    text = "name: old\ntopology: {kind: ring, switches: 4}\nworkloads: [{kind: iperf3, protocol: udp, %s: 0.5}]\n"
    said = {}
    for key in ("offered", "offered_load"):
        file = tmp_path / f"{key}.yaml"
        file.write_text(text % key)
        said[key] = typed("plan", str(file), "--format", "json")
    (code, _, notice), (_, _, nothing) = said["offered"], said["offered_load"]
    assert (code, nothing) == (0, "")
    assert notice == "workloads.0.offered is called offered_load now; the old name goes with the next release\n"
    with pytest.warns(OldNameWarning):
        old = parse_scenario(text % "offered", "x.yaml")
    assert old.workloads == parse_scenario(text % "offered_load", "x.yaml").workloads


def test_a_key_by_both_its_names_is_refused(tmp_path):
    file = tmp_path / "both.yaml"
    load = "{kind: iperf3, protocol: udp, offered: 0.5, offered_load: 0.6}"
    file.write_text(f"topology: {{kind: ring, switches: 4}}\nworkloads: [{load}]\n")
    code, _, said = typed("plan", str(file))
    assert code == 2
    assert "workloads.0.offered: " in said


def complete(line):
    root = str(Path(testbed.__file__).parents[1])
    words = line.split(" ")
    env = {
        **os.environ, "PYTHONPATH": root, "_TESTBED_COMPLETE": "complete_bash", "COMP_WORDS": line,
        "COMP_CWORD": str(len(words) - 1),
    }  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-c", "import sys; sys.argv = ['testbed']; from testbed.ui.cli import main; main()"],
        capture_output=True, text=True, check=False, env=env,
    )  # fmt: skip
    return done.stdout.split()


@pytest.mark.slow
def test_the_shell_completes_commands_scenarios_and_options():
    assert complete("testbed simu") == ["simulate"]
    assert {"torus4x4", "torus8x8"} <= set(complete("testbed plan torus"))
    assert complete("testbed sweep fig11") == ["fig11"]
    assert complete("testbed simulate --flow") == ["--flow-control"]


def test_a_list_has_descriptions_and_no_paths():
    code, text, _ = typed("list")
    assert code == 0
    assert "4×4 torus, dimension-order routing, fixed VLAN assignment (Koibuchi 2011, Table 11)" in text
    assert "traffic patterns on seven topologies against a flat switch (Koibuchi 2011, Fig. 10)" in text
    assert ".yaml" not in text
    found = json.loads(typed("list", "--json")[1])
    assert all("description:" not in text for text in [*found["scenarios"].values(), *found["sweeps"].values()])


def test_a_list_takes_kinds_and_words():
    assert json.loads(typed("list", "routings", "--json")[1]).keys() == {"schema_version", "routings"}
    found = json.loads(typed("list", "switch-models", "scenarios", "torus", "Watanabe", "--json")[1])
    assert found.keys() == {"schema_version", "scenarios"}
    assert set(found["scenarios"]) == {"torus4x2-lag"}
    assert typed("list", "routngs")[::2] == (2, 'list: nothing has routngs. Did you mean "routings"?\n')


def test_lists_of_a_scenario_that_says_nothing_or_nonsense(tmp_path, monkeypatch):
    (tmp_path / "scenarios").mkdir()
    (tmp_path / "scenarios" / "silent.yaml").write_text("topology: {kind: ring, switches: 4}\n")
    (tmp_path / "scenarios" / "broken.yaml").write_text("topology: {kind: [\n")
    monkeypatch.chdir(tmp_path)
    found = json.loads(typed("list", "scenarios", "--json")[1])["scenarios"]
    assert (found["silent"], found["broken"]) == ("has no description:", "cannot be read")


def test_lines_end_between_words_on_a_terminal_only():
    code, text, _ = typed("list", "scenarios", "torus4x4-failures", terminal=True)
    assert code == 0
    assert text.splitlines()[1:] == [
        "  torus4x4-failures  4×4 torus whose links, ports and switches die; backup",
        "                     paths, then new tables (Mejia et al. 2007, 2.3)",
    ]
    assert len(typed("list", "scenarios", "torus4x4-failures")[1].splitlines()) == 2


def test_a_sweep_is_found_by_name():
    assert find_sweep("fig10").name == "fig10.yaml"
    assert find_sweep("mine.yaml") == Path("mine.yaml")
    with pytest.raises(InputError, match=r'fig12: no sweep of that name. Did you mean "fig11"\? Known: fig10, '):
        find_sweep("fig12")
    with pytest.raises(InputError, match="torus4x4: is a scenario, and no sweep; run it by: testbed run torus4x4"):
        find_sweep("torus4x4")


@pytest.mark.slow
def test_what_commands_compile_is_compiled_and_failures_told():
    said: list[str] = []
    problems = compile_all(said.append, [("--version",), ("plan", "no-such"), ("list", "routings")])
    assert len(said) == 3
    assert said[-1] == "compiling, side by side: 3 of 3 parts, about 0 s left"
    (problem,) = problems
    assert problem.startswith("testbed plan no-such: exit code 2: no-such: no scenario of that name")


@pytest.mark.parametrize("words", COMMANDS)
def test_what_is_compiled_is_what_commands_understand(words):
    name, *rest = words
    assert name in {command for commands in PANELS.values() for command in commands}
    scenarios = {scenario for scenario in rest if scenario in scenario_names()}
    assert scenarios, words
    help_text = typed(name, "--help", columns="200")[1]
    assert all(word in help_text for word in rest if word.startswith("--"))


@pytest.mark.parametrize("words", [words for words in COMMANDS if words[0] == "plan"], ids=" ".join)
def test_what_is_planned_to_be_compiled_can_be_planned(words):
    assert typed(*words)[0] == 0


def test_the_check_of_generated_files_says_it_is_for_a_clone(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, _, said = typed("schema", "--check")
    assert (code, said.splitlines()) == (
        2,
        [
            "scenarios/schema.json: is not in this folder; --check is for a clone",
            "docs/engines.md: is not in this folder; --check is for a clone",
        ],
    )


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (
            "topology: {kind: ring, switches: 4}\n  links: {rate: 1G}\n",
            "line 2, column 3: is indented otherwise than the lines above; keys of one block begin in the same column",
        ),
        (
            "description: a: b\n",
            'line 1, column 15: a second ": " in one line; put a text that contains one in quotes, and each key into a '
            "line of its own",
        ),
    ],
)
def test_yaml_that_is_none_gets_a_sentence(text, sentence, tmp_path):
    (tmp_path / "mine.yaml").write_text(text)
    code, _, said = typed("plan", str(tmp_path / "mine.yaml"))
    assert code == 2
    assert said == f"{tmp_path / 'mine.yaml'}: {sentence}\n"


def test_a_value_that_is_none_of_those_is_told_in_our_words():
    code, _, said = typed("plan", "torus4x4", "--format", "yaml")
    assert code == 2
    assert "Invalid value for '--format': 'yaml' is not one of 'text', 'json'." in said


def test_help_loads_nothing_that_takes_time():
    code = "import sys; from testbed.ui import cli; import testbed.ui.cli.app; cli.load_commands(); "
    code += "print({'numpy', 'numba', 'pydantic', 'yaml', 'testbed.planning'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


def test_a_command_is_found_by_the_table_of_modules():
    cli.load_commands()
    for module, commands in cli.MODULES.items():
        for name in commands:
            callback = vars(get_command(app))["commands"][name]
            inner = next(iter(callback.commands.values())) if hasattr(callback, "commands") else callback
            assert inner.callback.__module__ == f"testbed.ui.cli.{module}", name
    assert {name for commands in cli.MODULES.values() for name in commands} == {*vars(get_command(app))["commands"]}


def test_one_command_loads_only_its_module():
    code = "import sys; from testbed.ui import cli; import testbed.ui.cli.app; cli.load_commands(['-v', 'list']); "
    code += "print('testbed.ui.cli.lab_commands' in sys.modules, 'testbed.ui.cli.list_command' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False True\n"
    code, _, err = typed("lst")
    assert code == 2
    assert "list" in err
