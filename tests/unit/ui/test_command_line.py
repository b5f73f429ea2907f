"""Commands that need neither root nor switches, and every command's manners."""

from __future__ import annotations

import io
import json
import os
import shutil
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest

from testbed.base.errors import CapabilityError, InputError, VerificationError
from testbed.engines.lab.control import registry
from testbed.engines.lab.control.build import build_lab
from testbed.engines.lab.hosts import build_mpi_jobs
from testbed.engines.local_machine import probe
from testbed.planning import make_plan
from testbed.scenario import parse_scenario
from testbed.ui import cli
from tests.unit.ui.test_cli_surface import typed

_COMMANDS = [
    "plan", "verify", "analyse", "explain", "up", "status", "shell", "run", "report", "compare", "sweep", "down",
    "list", "doctor", "schema",
]  # fmt: skip


def program(*arguments: str) -> subprocess.CompletedProcess[str]:
    """The command as a user starts it."""
    root = str(Path(__file__).parents[3])
    return subprocess.run(
        [sys.executable, "-m", "testbed", *arguments],
        capture_output=True, text=True, check=False, env={**os.environ, "PYTHONPATH": root, "COLUMNS": "200"},
    )  # fmt: skip


def command(*arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """The same in this process."""
    out, err, code = io.StringIO(), io.StringIO(), 0
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
        patch.setattr(sys, "argv", ["testbed", *arguments])
        patch.setenv("COLUMNS", "200")
        patch.chdir(cwd or Path.cwd())
        try:
            cli._run()
        except SystemExit as end:
            code = int(end.code or 0)
    return subprocess.CompletedProcess(arguments, code, out.getvalue(), err.getvalue())


@pytest.mark.slow
@pytest.mark.parametrize(
    "arguments", [["list"], ["run", "torus4x5"], ["verify", "deadlock-torus8x8"], ["plan", "ring4", "--format", "json"]]
)
def test_in_this_process_it_says_and_ends_as_in_one_of_its_own(arguments):
    own, this = program(*arguments), command(*arguments)
    assert (own.returncode, own.stdout, own.stderr) == (this.returncode, this.stdout, this.stderr)


@pytest.mark.parametrize("name", _COMMANDS)
def test_every_command_has_help_with_an_example(name):
    done = command(name, "--help")
    assert done.returncode == 0
    assert "Example" in done.stdout
    assert f"testbed {name}" in done.stdout


@pytest.mark.parametrize("name", ["build", "box", "test"])
def test_commands_of_the_virtual_machine_have_an_example(name):
    done = command("vm", name, "--help")
    assert done.returncode == 0
    assert "Example" in done.stdout
    assert f"testbed vm {name}" in done.stdout


def test_what_is_said_of_a_virtual_machine_needs_one():
    done = command("run", "torus4x4", "--memory", "512", "--virtual-time", "--format", "json")
    told = json.loads(done.stdout)
    assert done.returncode == told["exit_code"] == 2
    assert [problem["place"].partition(".yaml: ")[2] for problem in told["problems"]] == [
        "vm.virtual_time",
        "vm.memory",
    ]
    assert {problem["sentence"] for problem in told["problems"]} == {
        "is for engine: vm only, not ovs; take it out, or set that"
    }


def test_options_are_settings_and_both_are_judged_alike():
    option = command("run", "torus4x4", "--engine", "vmm", "--format", "json")
    setting = command("run", "torus4x4", "--set", "engine=vmm", "--format", "json")
    assert (option.returncode, option.stdout) == (setting.returncode, setting.stdout)
    (problem,) = json.loads(option.stdout)["problems"]
    assert problem["sentence"] == 'should be one of ovs, vm, realtime, simulate, not "vmm". Did you mean "vm"?'


def test_virtual_time_is_asked_for_before_its_pace():
    told = json.loads(
        command("run", "torus4x4", "--engine", "vm", "--memory", "100", "--shift", "11", "--format", "json").stdout
    )
    assert [problem["sentence"] for problem in told["problems"]] == [
        "should be 256 or more, not 100", "should be 10 or less, not 11",
    ]  # fmt: skip
    told = json.loads(command("run", "torus4x4", "--engine", "vm", "--shift", "1", "--format", "json").stdout)
    assert [problem["sentence"] for problem in told["problems"]] == [
        "is for vm.virtual_time: true only; take it out, or set that"
    ]


def test_virtual_time_is_auto_or_yes_or_no():
    done = command("plan", "torus4x4", "--set", "engine=vm", "--set", "vm.virtual_time=aut", "--format", "json")
    assert [problem["sentence"] for problem in json.loads(done.stdout)["problems"]] == [
        'should be auto, true or false, not "aut". Did you mean "auto"?'
    ]
    for word in ("auto", "true", "false"):
        assert command("plan", "torus4x4", "--set", "engine=vm", "--set", f"vm.virtual_time={word}").returncode == 0


def test_a_lab_that_stays_is_one_on_this_machine():
    told = json.loads(command("up", "torus4x4", "--set", "engine=simulate", "--format", "json").stdout)
    assert [problem["sentence"] for problem in told["problems"]] == [
        "is simulate, and this command needs a lab on this machine; leave it out, or make it ovs or realtime"
    ]


def test_plan_prints_one_object():
    done = command("plan", "torus4x4", "--format", "json")
    found = json.loads(done.stdout)
    assert done.returncode == 0
    expected = {
        "switches": 16, "switch_links": 32, "hosts": 16, "vlans": 8, "mean_switches_on_path": 3.0,
        "max_channel_load": 8, "deadlock_free": True,
    }  # fmt: skip
    assert {key: found[key] for key in expected} == expected
    assert found["rules"] > 0
    assert found["digest"]


def test_plan_as_text_and_file(tmp_path):
    done = command("plan", "mesh4x2", "-o", str(tmp_path / "plan.json"))
    assert "links between switches" in done.stdout
    assert json.loads((tmp_path / "plan.json").read_text())["digest"] in done.stdout
    refused = command("plan", "mesh4x2", "-o", str(tmp_path / "no" / "plan.json"))
    assert (refused.returncode, "cannot be written" in refused.stderr) == (2, True)


def test_verify_fails_with_the_cycle_and_a_declared_one_passes():
    cyclic = command("verify", "torus4x4", "--set", "topology.sizes=[8, 8]", "--set", "routing.ring=shortest")
    assert cyclic.returncode == 1
    assert "waits for" in cyclic.stdout
    declared = command("verify", "deadlock-torus8x8", "--format", "json")
    found = json.loads(declared.stdout)
    assert (declared.returncode, found["passed"], found["plans"][0]["deadlock_free"]) == (0, True, False)
    wrong = command("verify", "torus4x4", "--set", "expect=deadlock")
    assert wrong.returncode == 1


def test_a_typing_error_is_a_sentence_with_a_suggestion():
    done = command("plan", "torus4x5")
    assert done.returncode == 2
    assert 'torus4x5: no scenario of that name. Did you mean "torus4x4"?' in done.stderr
    assert "Traceback" not in done.stderr
    as_json = json.loads(command("plan", "torus4x5", "--format=json").stdout)
    assert as_json["exit_code"] == 2
    assert as_json["problems"][0]["place"] == "torus4x5"


def test_a_scenario_file_in_the_working_directory(tmp_path):
    (tmp_path / "scenarios").mkdir()
    (tmp_path / "scenarios" / "mine.yaml").write_text("topology: {kind: ring, switches: 4}\n")
    assert json.loads(command("plan", "mine", "--format", "json", cwd=tmp_path).stdout)["switches"] == 4
    assert json.loads(command("plan", "torus4x4", "--format", "json", cwd=tmp_path).stdout)["switches"] == 16
    missing = command("plan", "./nothing.yaml", cwd=tmp_path)
    assert (missing.returncode, "no such file" in missing.stderr) == (2, True)


def test_list_names_everything():
    found = json.loads(command("list", "--format", "json").stdout)
    assert {"torus4x4", "mesh4x2", "fattree14"} <= found["scenarios"].keys()
    assert "fabric_bench" in found["mpi_jobs"]
    assert found.pop("schema_version") == 1
    assert all(summary for kind in found.values() for summary in kind.values())
    text = command("list").stdout
    assert "myrinet_clos" in text


def test_report_of_something_else(tmp_path):
    done = command("report", str(tmp_path))
    assert done.returncode == 2
    assert "is not a result folder: manifest.json is missing" in done.stderr


def test_an_unknown_job_is_a_sentence():
    with pytest.raises(InputError, match=r'x: there is no MPI job "fabric_bensch". Did you mean "fabric_bench"\?'):
        build_mpi_jobs.read_job("fabric_bensch", "x")


def test_nothing_is_started_without_proof():
    plan = make_plan(parse_scenario("topology: {kind: ring, switches: 6}\nrouting: {ring: shortest}", "x.yaml"))
    with pytest.raises(VerificationError, match="nothing was built"):
        build_lab(plan)


def test_missing_tools_are_named_with_consequence_and_remedy(monkeypatch):
    monkeypatch.setattr(probe, "_path", lambda: "/nowhere")
    probe.capabilities.cache_clear()
    scenario = parse_scenario(
        "topology: {kind: ring, switches: 4}\nworkloads: [{kind: iperf3, protocol: udp}]", "x.yaml"
    )
    try:
        with pytest.raises(CapabilityError) as caught:
            probe.require(scenario)
    finally:
        probe.capabilities.cache_clear()
    text = str(caught.value)
    assert (
        "open vswitch: missing: ovs-vswitchd, ovsdb-server, ovs-vsctl, ovs-ofctl, ethtool: no lab of Open vSwitch can "
        "be built; one of modelled switches can (engine: realtime); run `make" in text
    )
    assert "iperf3: missing: iperf3: iperf3 loads cannot run" in text
    assert caught.value.exit_code == 2


@pytest.mark.skipif(os.geteuid() != 0, reason="what a lab needs is tried as root")
def test_modelled_switches_need_neither_open_vswitch_nor_mininet(monkeypatch):
    which, of_switches = shutil.which, ("ovs", "mnexec", "ethtool")
    monkeypatch.setattr(
        shutil, "which", lambda name, **where: None if name.startswith(of_switches) else which(name, **where)
    )
    monkeypatch.setattr(probe, "_TRIALS", [trial for trial in probe._TRIALS if trial.name == probe.TAPS])
    ring = "topology: {kind: ring, switches: 4}\nworkloads: [{kind: ping}]\nengine: "
    probe.capabilities.cache_clear()
    try:
        tried = {one.name: one for one in probe.capabilities()}
        probe.require_all((), probe._OF_SWITCHES)
        with pytest.raises(CapabilityError, match="mininet: missing: mnexec: no lab of Open vSwitch"):
            probe.require(parse_scenario(f"{ring}ovs", "x.yaml"))
    finally:
        probe.capabilities.cache_clear()
    assert not tried["open vswitch"].present
    assert probe.TAPS in tried  # what its labs take is tried all the same
    assert probe.SHUT_IN in tried


def test_records_of_dead_labs_are_dropped(monkeypatch, tmp_path):
    monkeypatch.setattr(registry, "FOLDER", tmp_path / "labs")
    monkeypatch.setattr(registry, "labs", lambda: iter(()))  # of other programs
    with pytest.raises(InputError, match="no lab is running; build one with `testbed up NAME`"):
        registry.find(None)
    (tmp_path / "labs").mkdir()
    dead = {
        "name": "old",
        "init": 2**22,
        "born": 1,
        "scenario": "x",
        "digest": "d",
        "started": 0.0,
    }  # of an older version
    (tmp_path / "labs" / "old.json").write_text(json.dumps(dead))
    assert registry.entries() == []
    assert [*(tmp_path / "labs").glob("*.json")] == []


def test_a_dry_run_tells_what_would_be_built_and_what_is_missing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, out, _ = typed("run", "ring4", "--engine", "simulate", "--dry-run")
    assert code == 0
    assert out == (
        "ring4: 4 switches, 4 links between them, 4 hosts\nengine simulate: the packet-level simulator\n"
        "load 1: iperf3 tcp neighbour\nnothing is missing\n"
    )
    unknown = 'workloads=[{"kind": "mpi", "job": "no-such-job"}]'
    code, out, err = typed("run", "ring4", "--dry-run", "--set", unknown)
    assert code == 2
    assert "no-such-job" in err
    assert list(tmp_path.iterdir()) == []
    code, _, err = typed("run", "ring4", "--dry-run", "--json")
    assert code == 2
    assert "--dry-run: prints sentences" in err
