"""A plug-in that a scenario names runs only where its content is trusted."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

import testbed as tb
from testbed.base import trust
from testbed.base.errors import InputError
from testbed.experiments.sweep import prepare
from testbed.planning.prove_stored import read_stored
from testbed.planning.store import plan_from_json, plan_to_json
from testbed.scenario import plugins
from testbed.scenario.pickle_plugins import pickle_value
from testbed.ui.cli import load_commands
from testbed.ui.cli.app import app
from testbed.ui.testing import check_routing

load_commands()
# A plug-in that leaves a trace of each time it runs.
_PLUGIN = """
from pathlib import Path
with Path({trace!r}).open("a") as file:
    file.write("ran\\n")
from testbed.fabric.routing import RoutingKind
from testbed.fabric.routing.stp import StpOptions, route_stp
ROUTINGS = {{"theirs": RoutingKind(StpOptions, route_stp, "a test", True)}}
# {version}
"""
_SCENARIO = """
plugins: [theirs.py]
topology: {kind: ring, switches: 4}
routing: theirs
engine: simulate
simulator: {duration: 2, warm_up: 1}
workloads: [{kind: iperf3, protocol: udp, pattern: neighbour, repeats: 1}]
"""


@pytest.fixture(autouse=True)
def fresh(tmp_path, monkeypatch):
    """Nothing is trusted, and nothing of a plug-in is in the tables of this process."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)
    yield
    for path in [*plugins._LOADED]:
        plugins.forget(path)


def theirs(folder: Path, version: int = 1) -> Path:
    """A scenario that names a plug-in; returns the scenario."""
    text = _PLUGIN.format(trace=str(folder / "trace"), version=version)
    (folder / "theirs.py").write_text(text)
    (folder / "theirs.yaml").write_text(_SCENARIO)
    (folder / "sweep.yaml").write_text("scenarios: [./theirs.yaml]\nset: {lab.seed: [1, 2]}\n")
    return folder / "theirs.yaml"


def ran(folder: Path) -> bool:
    return (folder / "trace").exists()


def typed(*words: object):
    return CliRunner().invoke(app, [str(word) for word in words])


def refusal(*words: object) -> str:
    done = typed(*words)
    if isinstance(done.exception, InputError):  # the program makes a sentence and exit code 2 of it
        return str(done.exception)
    assert done.exit_code == 2, done.exception
    return str(done.output).replace("\n", " ")


COMMANDS = (
    ("plan", "theirs.yaml"), ("verify", "theirs.yaml"), ("analyse", "theirs.yaml"),
    ("explain", "theirs.yaml", "h1", "h2"), ("simulate", "theirs.yaml", "--loads", "0.1"), ("run", "theirs.yaml"),
    ("up", "theirs.yaml"), ("regulate", "theirs.yaml"), ("power", "theirs.yaml"), ("sweep", "sweep.yaml"),
    ("export", "theirs.yaml", "-d", "csv", "-o", "out"), ("segments", "theirs.yaml"),
    ("simulate", "theirs.yaml", "--vary", "lab.seed=1,2"), ("verify", "theirs.yaml", "--certificate", "c.txt"),
    ("plan", "plain.yaml", "--set", "plugins=[theirs.py]"),
)  # fmt: skip


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_a_plug_in_is_run_by_no_command_until_it_is_trusted(tmp_path, words):
    theirs(tmp_path)
    (tmp_path / "plain.yaml").write_text("topology: {kind: ring, switches: 4}\n")
    before = {path.name for path in tmp_path.iterdir()}
    said = refusal(*words)
    assert f"plugins.0: theirs.py is a program of {trust.user_name(os.geteuid())} (SHA-256 " in said
    assert "that would run with your rights" in said
    assert f"read {tmp_path}/theirs.py, then say --trust" in said
    assert not ran(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == before  # nor is anything made
    assert "routing" not in said  # what a plug-in would have offered is not missed as well


def test_the_program_ends_with_2_off_a_terminal_and_runs_nothing(tmp_path):
    theirs(tmp_path)
    command = [sys.executable, "-m", "testbed", "plan", "theirs.yaml", "--json"]
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])}
    done = subprocess.run(command, capture_output=True, text=True, check=False, input="y\n", env=env)
    assert done.returncode == 2
    assert json.loads(done.stdout)["problems"][0]["place"] == "theirs.yaml: plugins.0"
    assert not ran(tmp_path)


def test_trust_is_remembered_by_content_and_asked_anew(tmp_path):
    file = theirs(tmp_path)
    done = typed("plan", file, "--trust")
    assert done.exit_code == 0, done.exception
    digest = trust.read_plugin(tmp_path / "theirs.py").digest
    assert f"theirs.py is trusted from now on, as long as it is the same (SHA-256 {digest})" in done.stderr
    store = tmp_path / "state" / "testbed" / "trusted"
    assert (store.stat().st_mode & 0o777, store.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    assert typed("--trust", "plan", file).exit_code == 0
    assert typed("plan", file).exit_code == 0
    assert store.read_text().splitlines() == [f'{digest} "{tmp_path}/theirs.py"']
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    assert "then say --trust" in refusal("plan", theirs(elsewhere))  # its trace is another
    (elsewhere / "theirs.py").write_bytes((tmp_path / "theirs.py").read_bytes())
    plugins.forget(str(tmp_path / "theirs.py"))
    assert typed("plan", elsewhere / "theirs.yaml").exit_code == 0
    theirs(tmp_path, version=2)
    assert "then say --trust" in refusal("plan", file)


def test_the_bytes_that_are_trusted_are_the_bytes_that_run(tmp_path, monkeypatch):
    """A file that another program changes after it was read, and before it runs."""
    file = theirs(tmp_path)
    harmless = (tmp_path / "theirs.py").read_bytes()

    def changed_meanwhile(found):
        (tmp_path / "theirs.py").write_text("open('evil', 'w')\n")
        return found.content == harmless

    with trust.decide_trust_with(changed_meanwhile):
        tb.plan(file)
    assert ran(tmp_path)
    assert not (tmp_path / "evil").exists()
    with pytest.raises(InputError, match="trust=True"):
        tb.plan(file)


def test_nothing_runs_while_one_plug_in_is_not_trusted(tmp_path):
    file = theirs(tmp_path)
    (tmp_path / "other.py").write_text(f"open({str(tmp_path / 'other')!r}, 'w')\nROUTINGS = {{}}\n")
    file.write_text(_SCENARIO.replace("[theirs.py]", "[theirs.py, other.py]"))
    trust.remember(trust.read_plugin(tmp_path / "theirs.py"))
    said = refusal("plan", file)
    assert "plugins.1: other.py is a program" in said
    assert "plugins.0" not in said
    assert not ran(tmp_path)


@pytest.mark.parametrize("answer", ["y", "yes", "n", ""])
def test_on_a_terminal_it_asks_what_file_whose_and_its_digest(tmp_path, answer):
    theirs(tmp_path)
    above, below = pty.openpty()
    env = {**os.environ, "TERM": "dumb", "COLUMNS": "400", "PYTHONPATH": str(Path(__file__).parents[3])}
    command = [sys.executable, "-m", "testbed", "plan", "theirs.yaml"]
    with subprocess.Popen(command, stdin=below, stdout=subprocess.DEVNULL, stderr=below, env=env) as running:
        os.close(below)
        said = b""
        while b"[y/N]" not in said:
            said += os.read(above, 4096)
        assert not ran(tmp_path)
        os.write(above, answer.encode() + b"\n")
        while running.poll() is None:
            try:
                os.read(above, 4096)
            except OSError:
                break
        code = running.wait(60)
    os.close(above)
    file = trust.read_plugin(tmp_path / "theirs.py")
    wanted = f"{tmp_path}/theirs.py, of {file.owner}, {len(file.content):,} bytes, SHA-256 {file.digest}"
    assert wanted in " ".join(said.decode().split())
    assert (code, ran(tmp_path)) == ((0, True) if answer.startswith("y") else (2, False))
    assert (tmp_path / "state").exists() == ran(tmp_path)


def spoilt(store: Path, how: str) -> str:
    """Let somebody else have had a hand in the store; returns what is said of it."""
    if how == "a mode":
        store.chmod(0o620)
        return "is open to others (mode 620)"
    if how == "a folder's mode":
        store.parent.chmod(0o777)
        return "is open to others (mode 777)"
    if how == "a link":
        store.rename(store.with_name("real"))
        store.symlink_to("real")
        return "cannot be read: Too many levels of symbolic links"
    if os.geteuid() != 0:
        pytest.skip("only root can give a file to another user")
    os.chown(store, 12345, -1)
    return "belongs to user 12345, not to root"


@pytest.mark.parametrize("how", ["a mode", "a folder's mode", "a link", "an owner"])
def test_a_store_that_others_can_have_written_trusts_nothing(tmp_path, how):
    file = theirs(tmp_path)
    assert typed("plan", file, "--trust").exit_code == 0
    sentence = spoilt(tmp_path / "state" / "testbed" / "trusted", how)
    found = refusal("plan", file)
    assert "What was trusted before is not used: " in found
    assert sentence in found
    done = typed("plan", file, "--trust")
    assert done.exit_code == 0
    assert "is not remembered: " in done.stderr


def test_without_a_store_the_plug_in_runs_this_once(tmp_path):
    file = theirs(tmp_path)
    (tmp_path / "state").write_text("no folder")
    done = typed("plan", file, "--trust")
    assert done.exit_code == 0
    assert "is not remembered: " in done.stderr
    assert "then say --trust" in refusal("plan", file)


def test_under_anothers_home_the_store_is_that_of_the_user(tmp_path, monkeypatch):
    monkeypatch.delenv("XDG_STATE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert trust.store() == tmp_path / ".local" / "state" / "testbed" / "trusted"
    monkeypatch.setattr("os.geteuid", lambda: 0 if tmp_path.stat().st_uid else 1)
    assert tmp_path not in trust.store().parents


def test_python_says_so_by_an_argument_and_remembers_nothing(tmp_path):
    file = theirs(tmp_path)
    for scenario in (file, {"plugins": ["theirs.py"], "topology": {"kind": "ring", "switches": 4}}):
        with pytest.raises(InputError, match=r"plugins\.0: theirs\.py is a program .* then say trust=True$"):
            tb.plan(scenario)
    assert not ran(tmp_path)
    assert tb.plan(file, trust=True).prove()
    assert ran(tmp_path)
    with pytest.raises(InputError, match="trust=True"):
        tb.plan(file)
    assert not (tmp_path / "state").exists()


def test_plug_ins_that_the_caller_names_are_not_asked_about(tmp_path):
    theirs(tmp_path)
    done = typed("list", "routings", "--plugin", tmp_path / "theirs.py", "--format", "json")
    assert "theirs" in json.loads(done.stdout)["routings"]
    fabrics = {"ring": {"kind": "ring", "switches": 4}}
    assert check_routing(tmp_path / "theirs.py", fabrics=fabrics).passed == ("ring",)


@pytest.mark.parametrize("content", [b"\0", b"\xff = 1", b"x" * (trust.MAX_BYTES + 1)])
def test_what_is_no_program_is_a_sentence(tmp_path, content):
    file = theirs(tmp_path)
    (tmp_path / "theirs.py").write_bytes(content)
    with pytest.raises(InputError, match=r"plugins\.0: theirs\.py: (cannot be read: it|raised|line)"):
        tb.plan(file, trust=True)
    (tmp_path / "theirs.py").unlink()
    os.mkfifo(tmp_path / "theirs.py")
    with pytest.raises(InputError, match=r"theirs\.py: cannot be read: it is no file"):
        tb.plan(file, trust=True)


def test_plans_and_results_that_name_plug_ins_never_run_them(tmp_path):
    """Not even trusted ones: they are read as they were stored."""
    file = theirs(tmp_path)
    plan = tb.plan(file, trust=True)
    folder = tb.run(plan, tmp_path / "results", progress=lambda step: None).path
    saved = plan.save(tmp_path / "plan.json")
    trust.remember(trust.read_plugin(tmp_path / "theirs.py"))
    plugins.forget(str(tmp_path / "theirs.py"))
    for name in [name for name in sys.modules if name.startswith("testbed_plugin_theirs")]:
        del sys.modules[name]
    (tmp_path / "trace").unlink()
    assert plan_from_json(plan_to_json(plan.core)).scenario.plugins == (str(tmp_path / "theirs.py"),)
    assert read_stored(saved).scenario.routing_kind == "theirs"
    assert tb.load(folder).plan.core.scenario.routing_kind == "theirs"
    for words in (("report", folder), ("compare", folder, folder, "--each"), ("verify", saved)):
        found = typed(*words, *(["--trust"] if words[0] == "report" else []))
        assert found.exit_code in (0, 1, 2), found.exception
    assert not ran(tmp_path)


def test_other_processes_get_what_was_trusted_and_ask_nobody(tmp_path):
    file = theirs(tmp_path)
    trust.remember(trust.read_plugin(tmp_path / "theirs.py"))
    (job, _) = prepare(tmp_path / "sweep.yaml").jobs
    carried = pickle_value(job.scenario, job.scenario)
    assert [one.path for one in carried.plugins] == [str(tmp_path / "theirs.py")]
    plugins.forget(str(tmp_path / "theirs.py"))
    for gone in (file, tmp_path / "theirs.py", trust.store()):
        gone.unlink()
    assert carried.load() == job.scenario
