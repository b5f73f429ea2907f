"""The virtual machine as far as it can be tested without one: its command line, image, disks, refusals, faults."""

from __future__ import annotations

import json
import os
import platform
import shutil
import stat
import sys
import tarfile
import time
from datetime import datetime, timezone
from pathlib import Path
from types import SimpleNamespace

import pytest

from testbed.base.errors import CapabilityError, InputError, LabError
from testbed.base.resources import PACKAGES as ROOT
from testbed.engines.vm import boot, image, kvm, stream, suite
from testbed.engines.vm.image import Image, build_image, find_image, image_digest, image_folder, require_image
from testbed.engines.vm.machine import _VIRTUAL_DATE, VirtualMachine, needed_memory, qemu_command, require_memory
from testbed.engines.vm.project import LAB_PARTS, pack_project, unpack_results
from testbed.experiments.run import vm
from testbed.experiments.run.vm import choose_machine, raise_reported
from testbed.planning import make_plan
from testbed.scenario import parse_scenario
from testbed.scenario.engines import VmOptions

from .fake_programs import put_builder, put_qemu

_PARTS = ("root.img", "vmlinuz", "initrd.img", "versions")
_SMALL = "topology: {kind: mesh, sizes: [2]}\nworkloads: [{kind: ping}]\n"


def _quiet(text: str) -> None:
    del text


def _whole(folder: Path) -> Image:
    folder.mkdir(parents=True)
    for part in _PARTS:
        (folder / part).write_text("kernel 6.1\n")
    return Image(folder)


def _plan(text: str):
    return make_plan(parse_scenario(text, "test.yaml"))


# --- QEMU's command line --------------------------------------------------------------------------------------------


@pytest.fixture
def whole(tmp_path):
    return _whole(tmp_path / "an,image")


def _command(image, accelerator, processors=2, **more):
    machine = VirtualMachine(accelerator, processors, 2048, **more)
    for name in ("project.tar", "results"):
        (image.folder / name).touch()
    return qemu_command(machine, image, image.folder / "project.tar", image.folder / "results", Path("/w/console.log"))


def test_the_image_is_never_written_and_the_project_only_read(whole):
    command = _command(whole, "tcg")
    memory = [word.split(",") for word in command if word.startswith("memory-backend-file,")]
    # A private mapping: what the guest writes stays QEMU's own. The last is the guest's first.
    assert [(words[1], words[2]) for words in memory] == [
        ("id=results", "share=on"), ("id=project", "share=off"), ("id=root", "share=off"),
    ]  # fmt: skip
    assert "-drive" not in command


def test_the_image_is_memory_beside_the_machines_own(whole):
    with whole.root.open("wb") as file:
        file.truncate(4 << 30)
    command = _command(whole, "icount", 1)
    assert f"size={4 << 30},mem-path={whole.folder.parent}/an,,image/root.img" in " ".join(command)
    room = next(int(word.removeprefix("slots=3,maxmem=")) for word in command if word.startswith("slots=3,maxmem="))
    assert room > (2048 << 20) + (4 << 30)


def test_in_virtual_time_nothing_comes_from_this_machine(whole):
    """Neither the date, nor random numbers, nor when another thread of QEMU gets to serve a queue."""
    virtual = " ".join(_command(whole, "icount", 1, seed=7))
    assert " -seed 7 " in virtual
    assert "virtio-rng" not in virtual
    assert "random.trust_cpu=on" in virtual
    assert "virtio-serial-pci,ioeventfd=off" in virtual
    assert ",rr=record,rrfile=/dev/null " in virtual  # its two threads take turns
    assert "virtio-rng-pci" in _command(whole, "tcg")


def test_a_panic_ends_the_machine_instead_of_booting_it_again(whole):
    command = " ".join(_command(whole, "tcg"))
    assert " -no-reboot " in command
    assert " panic=-1 " in command


def test_an_instruction_takes_as_long_as_wished(whole):
    machine, _ = choose_machine(whole, VmOptions(virtual_time=True, shift=2), _quiet)
    assert "shift=2,sleep=off" in " ".join(_command(whole, "icount", 1, shift=machine.shift))


@pytest.fixture
def kvm_device(monkeypatch, tmp_path):
    """A device that can be opened, and a memory of its own."""
    (tmp_path / "kvm").touch()
    monkeypatch.setattr(kvm, "_DEVICE", tmp_path / "kvm")
    monkeypatch.setattr(kvm, "FOLDER", tmp_path / "run")


_BOOTS = "echo 'end Kernel panic - not syncing: VFS: Unable to mount root fs' >$2"


@pytest.mark.parametrize(
    ("script", "options", "machine", "why_not"),
    [
        (_BOOTS, VmOptions(), ("kvm", os.cpu_count(), 2048, 0, 1), ""),
        (_BOOTS, VmOptions(virtual_time=True), ("icount", 1, 2048, 0, 5), ""),  # one processor, and not asked
        ("echo no >&2; exit 1", VmOptions(), ("icount", 1, 2048, 0, 5), "no"),
        ("echo no >&2; exit 1", VmOptions(virtual_time=False, memory=512), ("tcg", os.cpu_count(), 512, 0, 1), "no"),
    ],
)
def test_kvm_only_where_it_boots(script, options, machine, why_not, tmp_path, monkeypatch, kvm_device):
    put_qemu(monkeypatch, tmp_path, script)
    assert choose_machine(Image(tmp_path), options, _quiet, 5) == (VirtualMachine(*machine), why_not)


def test_why_kvm_does_not_boot_is_asked_once(tmp_path, monkeypatch, kvm_device):
    put_qemu(monkeypatch, tmp_path, "echo no >&2; exit 1")
    assert kvm.why_no_kvm(Image(tmp_path / "vm-0")) == "no"
    put_qemu(monkeypatch, tmp_path, "echo asked again >&2; exit 1")
    assert kvm.why_no_kvm(Image(tmp_path / "vm-0")) == "no"
    assert kvm.why_no_kvm(Image(tmp_path / "vm-1")) == "asked again"  # another image's kernel may boot


@pytest.mark.slow
@pytest.mark.parametrize(
    ("script", "why_not"),
    [
        (_BOOTS, ""),
        ("echo 'Could not access KVM kernel module' >&2; exit 1", "Could not access KVM kernel module"),
        ("echo Booting >$2; sleep 60", "a kernel does not boot with it in 0.5 s"),
    ],
)
def test_kvm_is_probed_by_booting(script, why_not, tmp_path, monkeypatch, kvm_device):
    monkeypatch.setattr(kvm, "_LIMIT", 0.5 if "sleep" in script else 10.0)
    put_qemu(monkeypatch, tmp_path, script)
    assert kvm.why_no_kvm(Image(tmp_path)) == why_not


# --- the image ------------------------------------------------------------------------------------------------------


def test_the_digest_changes_with_each_input_and_nothing_else(tmp_path):
    for name in image.INPUTS:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(name)
    digests = {image_digest(tmp_path)}
    (tmp_path / "README.md").write_text("changed")
    assert {image_digest(tmp_path)} == digests
    for name in image.INPUTS:
        (tmp_path / name).write_text(f"{name} changed")
        digests.add(image_digest(tmp_path))
    assert len(digests) == 1 + len(image.INPUTS)


def test_an_image_that_lacks_a_part_is_not_trusted(tmp_path):
    found = _whole(image_folder(tmp_path))
    assert find_image(tmp_path) == found
    for part in _PARTS:
        moved = (found.folder / part).rename(tmp_path / "aside")
        assert find_image(tmp_path) is None
        moved.rename(found.folder / part)


def test_without_an_image_the_remedy_is_told(tmp_path, monkeypatch):
    monkeypatch.setattr(image, "find_image", lambda: None)
    with pytest.raises(
        CapabilityError, match=r"there is no image of the virtual machine .*; run `make vm`, which takes"
    ):
        require_image()


@pytest.fixture
def able(monkeypatch, tmp_path):
    """Builds images by a script of bash, which finds the folder in $2."""
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(shutil, "disk_usage", lambda place: SimpleNamespace(free=10 << 30))
    monkeypatch.setattr(image, "pack_project", lambda target, job: target.touch())  # which takes a second

    def use(script: str) -> Path:
        put_builder(monkeypatch, tmp_path, script)
        cache: Path = tmp_path / "cache"
        cache.mkdir()
        return cache

    return use


def test_an_image_is_renamed_when_it_is_whole(able):
    parts = " ".join(f'"$2/{part}"' for part in _PARTS)
    cache = able(
        f"[[ $1 == vm-image && $2 == *.building ]] && echo working && echo kernel 6.1.0 | tee {parts} >/dev/null"
    )
    (cache / "vm-000000000000.building").mkdir()
    image_folder(cache).mkdir()  # without its parts
    said: list[str] = []
    built = build_image(said.append, cache)
    assert built.versions == {"kernel": "6.1.0"}
    assert [place.name for place in cache.iterdir()] == [built.folder.name]
    assert said == ["building the virtual machine's image: working"]
    assert build_image(said.append, cache) == built
    assert len(said) == 1


@pytest.mark.parametrize("error", [KeyboardInterrupt(), OSError(28, "No space left on device")])
def test_a_building_that_is_broken_off_leaves_nothing(error, able):
    cache = able('echo half >"$2/root.img"; echo $$; exec sleep 60')
    pids: list[int] = []

    def interrupt(text):
        pids.append(int(text.rpartition(" ")[2]))
        raise error

    with pytest.raises(type(error)):
        build_image(interrupt, cache)
    assert list(cache.iterdir()) == []
    assert not Path(f"/proc/{pids[0]}").exists()


@pytest.mark.parametrize(
    ("said", "code", "kind", "sentence"),
    [
        ("E: no such package", 1, LabError, r"^the image of the virtual machine cannot be built:\nE: no such package$"),
        (
            "dpkg: write: No space left on device",
            1,
            LabError,
            r"cannot be built:\ndpkg: write: No space left on device$",
        ),
        ("this machine lacks it", 3, CapabilityError, "^this machine lacks it$"),
    ],
)
def test_a_failed_script_is_told_by_its_last_lines(said, code, kind, sentence, able):
    cache = able(f"""echo half >"$2/root.img"; echo '{said}' >&2; exit {code}""")
    with pytest.raises(kind, match=sentence):
        build_image(_quiet, cache)
    assert list(cache.iterdir()) == []


@pytest.mark.parametrize(
    ("replace", "sentence"),
    [
        (lambda m: m.setattr(os, "geteuid", lambda: 1000), "is built as root, because it is a root file system; run"),
        (lambda m: m.setattr(platform, "machine", lambda: "aarch64"), "this machine is aarch64, which cannot"),
        (
            lambda m: m.setattr(shutil, "which", lambda name, path=None: None if name == "debootstrap" else name),
            "missing: debootstrap; without them no image of the virtual machine can be built; run `scripts/setup vm`",
        ),
        (
            lambda m: m.setattr(shutil, "disk_usage", lambda place: SimpleNamespace(free=1 << 30)),
            "takes up to 5.4 GB while it is made, and {folder} has 1.1 GB left; make room and repeat",
        ),
    ],
)
def test_what_building_needs_is_looked_at_first(replace, sentence, tmp_path, monkeypatch, able):
    put_builder(monkeypatch, tmp_path, "exit 1")
    replace(monkeypatch)
    folder = tmp_path / "cache"
    with pytest.raises(CapabilityError) as raised:
        build_image(_quiet, folder)
    assert sentence.format(folder=folder) in str(raised.value)
    assert not folder.exists()


def test_without_qemu_the_remedy_is_told(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(
        CapabilityError, match=r"qemu-system-x86_64 is missing .* run `scripts/setup vm` \(package qemu"
    ):
        image.qemu_version()


# --- memory ---------------------------------------------------------------------------------------------------------


def test_a_scenario_larger_than_the_machine_is_refused():
    needed = needed_memory(256, 1024, 256)
    with pytest.raises(
        CapabilityError, match=rf"big.yaml takes about {needed} MiB .* has 2048 MiB; .* memory {needed}"
    ):
        require_memory("big.yaml", needed, 2048, 100_000)
    require_memory("big.yaml", needed, needed, 100_000)


def test_a_machine_larger_than_this_one_is_refused():
    with pytest.raises(
        CapabilityError, match=r"takes 2048 MiB, and this machine has 900 MiB left; nothing was started"
    ):
        require_memory("small.yaml", 500, 2048, 900)


# --- disks ----------------------------------------------------------------------------------------------------------


def test_the_project_goes_in_without_what_was_built_here(tmp_path):
    root = tmp_path / "clone"
    for name in (
        "pyproject.toml", "testbed/a.py", "testbed/__pycache__/a.cpython-311.pyc",
        "testbed/__pycache__/a.cpython-310.pyc", "mpi_jobs/x/x.c", "mpi_jobs/x/build/x", "results/old/manifest.json",
        ".venv/bin/python",
    ):  # fmt: skip
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("x")
    pack_project(tmp_path / "p.tar", {"job.json": "{}"}, root=root)
    with tarfile.open(tmp_path / "p.tar") as archive:
        files = {member.name for member in archive if member.isfile()}
        owners = {(member.uid, member.uname) for member in archive if member.name != "job/job.json"}
    assert files == {
        "pyproject.toml", "testbed/a.py", "testbed/__pycache__/a.cpython-311.pyc", "mpi_jobs/x/x.c", "job/job.json",
    }  # fmt: skip
    assert owners == {(0, "root")}


def test_sources_of_jobs_are_older_than_what_is_built_of_them(tmp_path):
    root = tmp_path / "clone"
    for name in ("testbed/a.py", "mpi_jobs/x/x.c"):
        (root / name).parent.mkdir(parents=True)
        (root / name).touch()
    pack_project(tmp_path / "p.tar", {}, root=root)
    with tarfile.open(tmp_path / "p.tar") as archive:
        ages = {member.name: member.mtime for member in archive if member.isfile()}
    virtual_date = datetime.fromisoformat(_VIRTUAL_DATE).replace(tzinfo=timezone.utc).timestamp()
    assert ages["mpi_jobs/x/x.c"] < virtual_date
    assert ages["testbed/a.py"] == (root / "testbed/a.py").stat().st_mtime  # by which Python knows what it compiled


@pytest.mark.slow
def test_all_that_a_run_imports_goes_in(tmp_path):
    pack_project(tmp_path / "p.tar", {})
    with tarfile.open(tmp_path / "p.tar") as archive:
        names = set(archive.getnames())
    assert {
        "testbed/experiments/run/vm_guest.py",
        "scripts/setup",
        "mpi_jobs/shim/Makefile",
        "tests/lab/conftest.py",
    } <= names
    assert {"benchmarks/__main__.py", "docs/vm.md"} <= names  # tests read them
    pack_project(tmp_path / "p.tar", {}, LAB_PARTS)
    with tarfile.open(tmp_path / "p.tar") as archive:
        names = set(archive.getnames())
    assert {"testbed/experiments/run/vm_guest.py", "controllers/learning.py", "mpi_jobs/shim/Makefile"} <= names
    assert not names & {"tests", "scenarios", "docs"}


def test_results_come_out_into_their_folder_and_never_elsewhere(tmp_path):
    inside = tmp_path / "inside"
    (inside / "run.incomplete" / "raw").mkdir(parents=True)
    (inside / "run.incomplete" / "raw" / "a.txt").write_text("a")
    with tarfile.open(tmp_path / "r", "w") as archive:
        archive.add(inside / "run.incomplete", "./run.incomplete")
        archive.add(inside / "run.incomplete" / "raw" / "a.txt", "run.incomplete/../../b.txt")
    with (tmp_path / "r").open("ab") as file:
        file.truncate(1 << 20)
    out = tmp_path / "out" / "folder"
    out.mkdir(parents=True)
    unpack_results(tmp_path / "r", out)
    assert [str(file.relative_to(tmp_path / "out")) for file in (tmp_path / "out").rglob("*.txt")] == [
        "folder/raw/a.txt"
    ]


# --- the tests inside ------------------------------------------------------------------------------------------------


def test_tests_inside_come_from_the_files_that_have_any():
    marked = {file.relative_to(ROOT) for file in (ROOT / "tests").rglob("*.py") if "mark.vm" in file.read_text()}
    marked.discard(Path("tests/unit/engines/test_vm.py"))
    places = suite._list_places().partition("=")[2].split()
    assert {str(file) for file in marked if file.parent.name != "vm"} == set(places) - {"tests/vm"}
    assert "tests/vm" in places
    assert len(places) > 5


@pytest.mark.slow
@pytest.mark.parametrize(("words", "code", "shown"), [(["--version"], 0, "pytest"), (["--no-such"], 4, "--no-such")])
def test_the_exit_code_of_the_tests_inside_is_handed_out(words, code, shown):
    said: list[str] = []
    assert suite.run_tests(words, said.append) == code
    assert any(shown in line for line in said)


# --- the machine while it runs ---------------------------------------------------------------------------------------


def _run(tmp_path, target=None, limit=20.0, progress=_quiet, line=_quiet):
    image = _whole(tmp_path / "vm-0")
    return boot.run_job(
        VirtualMachine("tcg", 1, 512), image, {}, target, tmp_path / "console.log", progress, limit, line
    )


_DONE = """echo '{"code": 0, "facts": {"guest_kernel": "6.1"}}'"""


def test_progress_lines_and_results_come_out(tmp_path, monkeypatch):
    tell = """echo '{"progress": "up"}'; echo '{}'; echo '{"line": "1 passed"}'"""
    hand_back = 'mkdir -p "$1.d/r"; echo hello >"$1.d/r/samples.csv"; tar -c -f "$1" -C "$1.d" .'
    put_qemu(monkeypatch, tmp_path, f"{tell}; {_DONE}; {hand_back}")
    said: list[str] = []
    lines: list[str] = []
    target = tmp_path / "target"
    target.mkdir()
    report = _run(tmp_path, target, progress=said.append, line=lines.append)
    assert report.said["facts"] == {"guest_kernel": "6.1"}
    assert said == ["[VM] up", "bringing the results back"]
    assert lines == ["1 passed"]
    assert (target / "samples.csv").read_text() == "hello\n"


@pytest.mark.parametrize(
    ("script", "sentence"),
    [
        ('echo "[1.2] Kernel panic - not syncing: VFS: no root" >"$2"', "panicked: VFS: no root\n  console: .*no root"),
        ("echo 'Cannot allocate memory' >&2; exit 1", "ended without a result\n  QEMU: Cannot allocate memory"),
        ("""printf '{"code": 0, "fac'""", "ended without a result"),
    ],
)
def test_a_machine_that_goes_wrong_is_named(script, sentence, tmp_path, monkeypatch):
    put_qemu(monkeypatch, tmp_path, script)
    with pytest.raises(LabError, match=sentence):
        _run(tmp_path)


@pytest.mark.slow
def test_a_machine_that_falls_silent_is_ended(tmp_path, monkeypatch):
    monkeypatch.setattr(boot, "_BOOT_LIMIT", 3.0)  # in which the shell surely starts
    put_qemu(monkeypatch, tmp_path, 'echo Booting >"$2"; sleep 60')
    with pytest.raises(LabError, match="was ended: it said nothing for 3 s\n  console: Booting"):
        _run(tmp_path)


@pytest.mark.slow
def test_silence_for_want_of_a_processor_does_not_count():
    command = ["sh", "-c", "sleep 1; echo awake"]
    began = time.monotonic()
    with stream.run_program(command, 2) as process:
        said = list(stream.lines(process, silence=0.2, starved=lambda: time.monotonic() - began))
    assert said == ["awake"]
    with stream.run_program(command, 2) as process, pytest.raises(TimeoutError, match=r"said nothing for 0\.2 s"):
        list(stream.lines(process, silence=0.2))


@pytest.mark.slow
def test_a_program_that_gets_no_processor_is_known():
    processor = min(os.sched_getaffinity(0))
    spin = [
        sys.executable,
        "-c",
        f"import os\nos.sched_setaffinity(0, [{processor}])\nprint(1, flush=True)\nwhile 1: pass",
    ]
    with stream.run_program(spin, 2) as one, stream.run_program(spin, 2) as other:
        for process in (one, other):
            next(stream.lines(process))
        until = time.monotonic() + 30
        while stream.starved_seconds(one.pid) < 0.1 and time.monotonic() < until:
            time.sleep(0.05)
        assert stream.starved_seconds(one.pid) >= 0.1
    assert stream.starved_seconds(one.pid) == 0.0  # it is gone


@pytest.mark.slow
def test_a_machine_that_talks_on_and_on_is_ended(tmp_path, monkeypatch):
    put_qemu(monkeypatch, tmp_path, "while sleep 0.2; do echo '{}'; done")
    with pytest.raises(LabError, match="was ended: it did not end in time"):
        _run(tmp_path, limit=1.0)


def test_the_machine_ends_with_an_interrupt(tmp_path, monkeypatch):
    put_qemu(monkeypatch, tmp_path, """echo $$ >"$2"; echo '{"progress": "up"}'; sleep 60""")

    def interrupt(text):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        _run(tmp_path, progress=interrupt)
    pid = int((tmp_path / "console.log").read_text())
    assert not Path(f"/proc/{pid}").exists()


@pytest.mark.slow
def test_a_program_is_killed_with_the_one_that_started_it(tmp_path):
    # A third process starts it and is killed at once.
    code = (
        "import os, signal; from testbed.engines.vm.stream import lines, run_program\n"
        "with run_program(['sh', '-c', 'echo $$; exec sleep 60'], 2) as p:\n"
        "    print(next(lines(p)), flush=True)\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    with stream.run_program([sys.executable, "-c", code], 2, ROOT) as process:
        (pid,) = list(stream.lines(process, until=time.monotonic() + 30))
    until = time.monotonic() + 30
    while Path(f"/proc/{pid}").exists() and time.monotonic() < until:
        time.sleep(0.02)
    assert not Path(f"/proc/{pid}").exists()


# --- a run ----------------------------------------------------------------------------------------------------------


def test_what_was_raised_inside_is_raised_here():
    def report(kind, **further):
        return boot.Report({"error": {"kind": kind, "sentence": "it broke", "problems": [], **further}}, 1.0)

    with pytest.raises(InputError) as raised:
        raise_reported(report("InputError", problems=[["lab", "is wrong", "a.yaml"]]))
    assert str(raised.value) == "a.yaml: lab: is wrong"
    assert (raised.value.problems[0].file, raised.value.problems[0].key) == ("a.yaml", "lab")
    with pytest.raises(CapabilityError, match="it broke"):
        raise_reported(report("CapabilityError"))
    with pytest.raises(LabError, match="it broke"):
        raise_reported(report("ZeroDivisionError"))
    raise_reported(boot.Report({"code": 0}, 1.0))


@pytest.fixture
def ready(monkeypatch, tmp_path):
    """A machine with QEMU and an image, and without KVM."""
    put_qemu(monkeypatch, tmp_path, "exit 1")
    found = _whole(tmp_path / "vm-0")
    monkeypatch.setattr(vm, "require_image", lambda: found)
    monkeypatch.setattr(kvm, "_DEVICE", tmp_path / "no-kvm")
    monkeypatch.setattr(kvm, "FOLDER", tmp_path / "run")


def _run_in_vm(plan, results):
    vm.VirtualMachineEngine().find_missing(plan, _quiet).raise_if_missing()
    return vm.VirtualMachineEngine().measure(plan, results, _quiet)


def test_jobs_outside_the_project_are_refused_at_once(tmp_path, ready):
    plan = _plan("topology: {kind: mesh, sizes: [2]}\nworkloads: [{kind: ping}, {kind: mpi, job: ./mine}]\n")
    with pytest.raises(
        InputError,
        match=r'test.yaml: workloads.1.job: "./mine" is outside the project; put the job into ',
    ):
        _run_in_vm(plan, tmp_path / "results")
    assert not (tmp_path / "results").exists()


def test_official_benchmarks_are_refused(tmp_path, ready, monkeypatch):
    monkeypatch.setenv("NPB_DIR", "/opt/npb")
    plan = _plan("topology: {kind: mesh, sizes: [4]}\nworkloads: [{kind: npb, kernel: IS}]\n")
    with pytest.raises(
        InputError,
        match=r"workloads.0: NPB_DIR names a folder outside the project; unset it, for",
    ):
        _run_in_vm(plan, tmp_path / "results")


def test_too_little_memory_is_refused_before_anything_is_started(tmp_path, ready):
    with pytest.raises(
        CapabilityError, match=r"test.yaml takes about \d+ MiB in the virtual machine, which has 256 MiB"
    ):
        _run_in_vm(_plan(_SMALL + "engine: vm\nvm: {memory: 256}\n"), tmp_path / "results")
    assert not (tmp_path / "results").exists()


def test_a_refusal_from_inside_leaves_no_folder(tmp_path, ready, monkeypatch):
    error = {"kind": "CapabilityError", "sentence": "iperf3: missing", "problems": []}
    put_qemu(monkeypatch, tmp_path, f"echo '{json.dumps({'error': error})}'")
    with pytest.raises(CapabilityError, match="iperf3: missing"):
        _run_in_vm(_plan(_SMALL), tmp_path / "results")
    assert list((tmp_path / "results").iterdir()) == []


def test_a_lab_that_breaks_inside_leaves_what_it_stored(tmp_path, ready, monkeypatch):
    error = json.dumps({"error": {"kind": "LabError", "sentence": "the switches are gone", "problems": []}})
    hand_back = 'mkdir -p "$1.d/x.incomplete"; echo hello >"$1.d/x.incomplete/samples.csv"; tar -c -f "$1" -C "$1.d" .'
    put_qemu(monkeypatch, tmp_path, f"printf '%s\\n' '{error}'; {hand_back}")
    with pytest.raises(LabError, match=r"^the switches are gone\nwhat was stored until then: .*\.incomplete$"):
        _run_in_vm(_plan(_SMALL), tmp_path / "results")
    (folder,) = (tmp_path / "results").iterdir()
    assert (folder / "samples.csv").read_text() == "hello\n"


def test_a_machine_that_breaks_leaves_its_console(tmp_path, ready, monkeypatch):
    put_qemu(monkeypatch, tmp_path, 'echo "Kernel panic - not syncing: Oops" >"$2"')
    with pytest.raises(LabError, match=r"panicked: Oops(.|\n)*what was stored until then: .*\.incomplete"):
        _run_in_vm(_plan(_SMALL), tmp_path / "results")
    (folder,) = (tmp_path / "results").iterdir()
    assert (folder / "console.log").read_text() == "Kernel panic - not syncing: Oops\n"


def test_scripts_of_the_image_can_be_executed():
    names = ("vm-image", "vm-init", "vm-initrd")
    assert all((ROOT / "scripts" / name).stat().st_mode & stat.S_IXUSR for name in names)
