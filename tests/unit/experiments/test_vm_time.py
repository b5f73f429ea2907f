"""The virtual machine's time: which it has and why, how long a run takes of this machine's, and what breaks it off."""

from __future__ import annotations

import json
import re
import shutil
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from testbed.base.errors import CapabilityError, LabError
from testbed.engines.vm import boot, image, kvm, speed
from testbed.engines.vm.image import Image
from testbed.experiments.report.run_facts import settings
from testbed.experiments.run import vm
from testbed.experiments.run.dilation.estimate import run_instructions
from testbed.experiments.run.vm import VirtualMachineEngine
from testbed.planning import make_plan
from testbed.planning.store import plan_to_json
from testbed.results import Run
from testbed.results.store import MANIFEST_KEYS, SCHEMA_VERSION
from testbed.scenario import parse_scenario
from tests.unit.engines.fake_programs import put_program, put_qemu

_SMALL = "topology: {kind: mesh, sizes: [2]}\nlab: {dilation: 100}\nworkloads: [{kind: ping}]\n"
_TORUS = (
    "topology: {{kind: torus, sizes: [4, 4]}}\nlab: {{dilation: 1000}}\nworkloads: [{}]\n"  # as the main job has them
)
_PING, _UDP, _TCP, _MPI = (
    "{kind: ping, count: 10}", "{kind: iperf3, protocol: udp}", "{kind: iperf3, protocol: tcp}",
    "{kind: mpi, job: fabric_bench}",
)  # fmt: skip
_FACTS = {"guest_kernel": "6.1", "guest_seconds": 20.0, "busy_seconds": 9.0, "boot_seconds": 4.5, "guest_memory": 300}
# A machine that was busy for 4.5 s until it was up.
_UP = """echo '{"progress": "the machine is up", "busy": 4.5}'"""
_NO_KVM = "/dev/kvm is not there"


def _plan(text: str):
    return make_plan(parse_scenario(text, "test.yaml"))


@pytest.fixture
def ready(monkeypatch, tmp_path):
    """A machine with QEMU, an image and no KVM, on which QEMU used 18 s until the virtual one was up."""
    put_qemu(monkeypatch, tmp_path, "exit 1")
    found = Image(tmp_path / "vm-0")
    found.folder.mkdir()
    found.root.touch()
    monkeypatch.setattr(vm, "require_image", lambda: found)
    monkeypatch.setattr(vm, "why_no_kvm", lambda image: _NO_KVM)
    monkeypatch.setattr(speed, "CACHE", tmp_path / "cache")
    monkeypatch.setattr(boot, "_DISKS", tmp_path)
    monkeypatch.setattr(boot, "_used_by", lambda pid: 18.0)
    monkeypatch.setattr(boot, "pack_project", lambda target, job, parts, more: target.write_bytes(b"x"))


def _measured(monkeypatch, tmp_path, plan, progress):
    """Run the plan in a machine that hands back what a run that passed would."""
    folder = tmp_path / "made"
    folder.mkdir(exist_ok=True)
    entry = {
        **dict.fromkeys(MANIFEST_KEYS, 0), "schema_version": SCHEMA_VERSION, "verdict": "pass", "reasons": [],
        "loads": [], "dilation": 100.0, "digest": plan.digest,
    }  # fmt: skip
    (folder / "manifest.json").write_text(json.dumps(entry))
    (folder / "environment.json").write_text("{}")
    (folder / "plan.json").write_text(plan_to_json(plan))
    (folder / "samples.csv").write_text("metric,value,unit,predicted\n")
    done = json.dumps({"code": 0, "facts": _FACTS})
    put_qemu(
        monkeypatch, tmp_path,
        f"""echo $$ >"$2"; {_UP}; tar -c -f "$1" -C {tmp_path} made; printf '%s\\n' '{done}'; sleep 0.05""",
    )  # fmt: skip
    return VirtualMachineEngine().measure(plan, tmp_path / "results", progress)


# --- which time, and why ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("virtual_time", "no_kvm", "shown"),
    [
        ("auto", _NO_KVM, "2048 MiB, in virtual time, since KVM does not boot here; how long it takes is said once"),
        ("true", "", "2048 MiB, in virtual time; how long"),
        ("auto", "", "2048 MiB, in real time, on this machine's processors (KVM)"),
        ("false", _NO_KVM, "2048 MiB, in real time, its instructions translated, since KVM does not boot here"),
    ],
)
def test_which_time_is_taken_and_why_is_said_at_the_start(virtual_time, no_kvm, shown, ready, monkeypatch, tmp_path):
    monkeypatch.setattr(vm, "why_no_kvm", lambda image: no_kvm)
    told: list[str] = []
    _measured(monkeypatch, tmp_path, _plan(f"{_SMALL}engine: vm\nvm: {{virtual_time: {virtual_time}}}\n"), told.append)
    (start,) = (text for text in told if text.startswith("booting the virtual machine"))
    assert shown in start.partition(": ")[0]  # the rest is only shown with --verbose
    if no_kvm:
        assert f"KVM says: {no_kvm}" in start.partition(": ")[2]


@pytest.mark.parametrize(
    ("stored", "value", "note"),
    [
        ({"accelerator": "icount", "virtual_time": True, "why_not_kvm": "no"},
         "in virtual time, since KVM did not boot here", "its clock counted instructions"),
        ({"accelerator": "icount", "virtual_time": True}, "in virtual time", "its clock counted instructions"),
        ({"accelerator": "tcg", "virtual_time": False, "why_not_kvm": "no"},
         "in real time, since KVM did not boot here", "translated"),
        ({"accelerator": "kvm", "virtual_time": False}, "in real time", "(KVM)"),
    ],
)  # fmt: skip
def test_the_report_says_which_time_was_taken(stored, value, note, tmp_path):
    run = Run(tmp_path, {"dilation": 100.0}, {"vm": stored}, _plan(_SMALL), ())
    (fact,) = (fact for fact in settings(run) if fact.name == "Virtual machine")
    assert fact.value == value
    assert note in fact.note
    other = Run(tmp_path, {"dilation": 100.0}, {"vm": ["made up"]}, _plan(_SMALL), ())
    assert not any(fact.name == "Virtual machine" for fact in settings(other))


def test_the_report_names_no_trial_of_a_dilation_without_one(tmp_path):
    manifest = {"dilation": 1000.0, "dilation_choice": {"guess_from": "virtual time", "kept_up_with_job": None}}
    run = Run(tmp_path, manifest, {}, _plan(_SMALL.replace("100", "auto")), ())
    (fact,) = (fact for fact in settings(run) if fact.name == "Dilation")
    assert "without a trial" in fact.note
    assert "when it was tried" not in fact.note


# --- how long it takes -----------------------------------------------------------------------------------------------


def test_how_long_a_run_takes_follows_from_the_boot_and_is_kept(ready, monkeypatch, tmp_path):
    """4.5 s of instructions of a nanosecond in 18 s are 250 million a second."""
    plan = _plan(f"{_SMALL}engine: vm\n")
    seconds = run_instructions(plan) / 250e6
    first: list[str] = []
    _measured(monkeypatch, tmp_path, plan, first.append)
    assert f"the machine is up, about {seconds - 18:.0f} s on a quiet machine to go" in first
    assert speed.read_speed("QEMU emulator version 7.2.0") == 250e6
    second: list[str] = []
    _measured(monkeypatch, tmp_path, plan, second.append)
    assert any(f"; about {seconds:.0f} s on a quiet machine: " in text for text in second)


def test_a_run_that_takes_longer_than_its_limit_says_so_at_once(ready, monkeypatch, tmp_path):
    told: list[str] = []
    _measured(monkeypatch, tmp_path, _plan(f"{_SMALL}engine: vm\nvm: {{limit: 3}}\n"), told.append)
    assert any(re.search(r"but it is ended after 3 s; .*vm\.limit.* gives it more", text) for text in told)


def test_more_frames_switches_and_loads_take_longer():
    def of(*loads: str) -> float:
        return run_instructions(_plan(_TORUS.format(", ".join(loads))))

    assert of(_PING) < of(_UDP) < of(_UDP, _TCP) < of(_UDP, _TCP, _MPI)
    assert 60e9 < of(_PING, _UDP, _TCP, _MPI) < 95e9  # five minutes at 250 million a second, as was measured
    assert of("{kind: iperf3, protocol: udp, repeats: 6}") > of(_UDP)
    slow, fast = (
        run_instructions(_plan(_TORUS.format(_UDP).replace("1000", str(dilation)))) for dilation in (1000, 300)
    )
    assert fast > slow  # more frames in the same laboratory seconds
    assert run_instructions(_plan(_TORUS.format(_UDP).replace("[4, 4]", "[4, 2]"))) < slow


@pytest.mark.parametrize(
    "kept", ["", "[]", "{}", '{"processor": "here", "qemu": "8", "instructions_a_second": NaN}', "half a li",
             '{"processor": "here", "qemu": "8", "instructions_a_second": 0}',
             '{"processor": "there", "qemu": "8", "instructions_a_second": 2.5e8}',
             '{"processor": "here", "qemu": "7", "instructions_a_second": 2.5e8}'],
)  # fmt: skip
def test_a_speed_of_another_machine_or_none_is_not_believed(kept, monkeypatch, tmp_path):
    monkeypatch.setattr(speed, "CACHE", tmp_path)
    monkeypatch.setattr(speed, "processor_name", lambda: "here")
    (tmp_path / "vm-speed.json").write_text(kept)
    assert speed.read_speed("8") is None
    speed.keep_speed("8", 2.5e8)
    assert speed.read_speed("8") == 2.5e8


# --- what breaks it off ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("phase", ["trying", "booting", "[VM] the machine is up", "the machine is up, ", "bringing"])
def test_an_interrupt_in_any_phase_leaves_no_machine_or_disk(phase, ready, monkeypatch, tmp_path):
    def interrupt(text):
        if text.startswith(phase):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        _measured(monkeypatch, tmp_path, _plan(f"{_SMALL}engine: vm\n"), interrupt)
    assert list(tmp_path.glob("testbed-vm-*")) == []
    for console in (tmp_path / "results").rglob("console.log"):
        assert not Path(f"/proc/{console.read_text().strip()}").exists()
    assert all(folder.name.endswith(".incomplete") for folder in (tmp_path / "results").glob("*"))


def test_an_interrupt_while_kvm_is_tried_ends_that_machine(monkeypatch, tmp_path):
    pid = tmp_path / "pid"
    monkeypatch.setattr(kvm, "_DEVICE", tmp_path)
    put_qemu(monkeypatch, tmp_path, f"echo $$ >{pid}; sleep 60")

    def interrupt(seconds):
        if pid.exists() and pid.read_text():
            raise KeyboardInterrupt

    monkeypatch.setattr(kvm, "time", SimpleNamespace(monotonic=lambda: 0.0, sleep=interrupt))
    with pytest.raises(KeyboardInterrupt):
        kvm._probe(Image(tmp_path))
    assert not Path(f"/proc/{pid.read_text().strip()}").exists()


@pytest.mark.parametrize(("virtual_time", "void"), [("auto", False), ("false", True)])
def test_a_machine_that_slept_voids_only_what_ran_by_its_clock(virtual_time, void, ready, monkeypatch, tmp_path):
    clocks = iter((0.0, 40.0))
    monkeypatch.setattr(boot, "_measure_sleep", lambda: next(clocks))
    plan = _plan(f"{_SMALL}engine: vm\nvm: {{virtual_time: {virtual_time}}}\n")
    if not void:
        _measured(monkeypatch, tmp_path, plan, lambda text: None)
        return
    with pytest.raises(LabError, match=r"^this machine slept for 40 s .* figures are void; run it again, or let it"):
        _measured(monkeypatch, tmp_path, plan, lambda text: None)


def test_the_time_slept_is_what_one_of_two_clocks_has_more(monkeypatch):
    before = boot._measure_sleep()
    assert boot._measure_sleep() - before == pytest.approx(0.0, abs=0.01)
    monkeypatch.setattr(time, "clock_gettime", {time.CLOCK_BOOTTIME: 100.0, time.CLOCK_MONOTONIC: 60.0}.get)
    assert boot._measure_sleep() == 40.0


@pytest.mark.parametrize("said", ["QEMU emulator version 5.2.0 (Debian 1:5.2)", "QEMU emulator version 6.1.9", "hello"])
def test_an_old_qemu_is_refused_by_its_name(said, monkeypatch, tmp_path):
    put_program(monkeypatch, tmp_path, "qemu-system-x86_64", f"echo '{said}'")
    with pytest.raises(CapabilityError, match=rf'calls itself "{re.escape(said)}"; .* 6\.2 or later; run'):
        image.qemu_version()
    put_program(monkeypatch, tmp_path, "qemu-system-x86_64", "echo 'QEMU emulator version 10.0.2'")
    assert image.qemu_version() == "QEMU emulator version 10.0.2"


def test_links_that_would_be_very_slow_in_real_time_are_refused(ready, monkeypatch, tmp_path):
    put_qemu(monkeypatch, tmp_path, "exit 1")
    loads = _TORUS.format(f"{_UDP}, {_MPI}").replace("1000", "auto")
    with pytest.raises(
        CapabilityError,
        match=r"at a dilation of about 1,\d00 only, and above 500 a run takes hours; nothing was started\. Let its "
        r"clock count instructions \(vm\.virtual_time: auto\), use a smaller fabric .*, with a number as lab\.dilation",
    ):
        VirtualMachineEngine().measure(
            _plan(f"{loads}engine: vm\nvm: {{virtual_time: false}}\n"), tmp_path / "results", lambda text: None
        )
    assert not (tmp_path / "results").exists()


def test_without_room_for_its_disks_no_machine_is_started(ready, monkeypatch, tmp_path):
    put_qemu(monkeypatch, tmp_path, "exit 1")
    monkeypatch.setattr(shutil, "disk_usage", lambda place: SimpleNamespace(free=10 << 20))
    with pytest.raises(CapabilityError, match=r"up to 256 MB in .*, which has 10 MB left; nothing was started; make"):
        VirtualMachineEngine().measure(_plan(f"{_SMALL}engine: vm\n"), tmp_path / "results", lambda text: None)
    assert list((tmp_path / "results").iterdir()) == []
