"""Labs whose program is killed while it builds them: they end with it, and what does not can be found and ended."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

import pytest

from testbed.base.errors import LabError
from testbed.engines.lab.control import launch, registry
from testbed.engines.lab.control.build import build_lab
from tests.unit.ui.test_cli_surface import typed

from .conftest import plan_of

ROOT = Path(__file__).resolve().parents[2]


def call(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "testbed", *arguments], capture_output=True, text=True, timeout=120, check=False
    )


@pytest.fixture
def scenario(tmp_path):
    name = f"owned-{uuid4().hex[:8]}"
    file = tmp_path / f"{name}.yaml"
    file.write_text("topology: {kind: mesh, sizes: [2, 2]}\nlab: {dilation: 50}\n")
    return file


def building(scenario, step: str) -> subprocess.Popen[str]:
    """A `testbed up` that has come to a step."""
    program = subprocess.Popen(
        [sys.executable, "-m", "testbed", "-v", "up", str(scenario)], stderr=subprocess.PIPE, stdout=subprocess.DEVNULL,
        text=True,
    )  # fmt: skip
    for line in program.stderr:
        if step in line:
            return program
    raise AssertionError(f"{step} never came")


def init_of(program: subprocess.Popen[str]) -> launch.Lab:
    until = time.monotonic() + 30
    while time.monotonic() < until:
        for lab in launch.labs():
            if lab.owner == program.pid:
                return lab
        time.sleep(0.002)
    raise AssertionError("no lab")


@pytest.mark.parametrize("step", ["planning and proving", "open vswitch", "ports", "checking the path"])
def test_a_lab_ends_with_the_program_that_builds_it(untouched, scenario, step):
    program = building(scenario, step)
    lab = init_of(program)  # from its first moment on
    assert lab.scenario == scenario.stem
    assert lab.has_owner
    program.kill()
    program.communicate()
    until = time.monotonic() + 20
    while lab.namespaces.is_alive() and time.monotonic() < until:
        time.sleep(0.01)
    assert not lab.namespaces.is_alive()
    assert scenario.stem not in [claim.name for claim in registry.being_built()]


def test_what_does_not_end_is_named_and_ended(untouched, scenario):
    program = building(scenario, "ports")
    lab = init_of(program)
    os.kill(lab.init, signal.SIGSTOP)  # so that it does not notice
    while not lab.namespaces.is_stopped():  # a busy machine stops a thread when it gets to it
        time.sleep(0.002)
    program.kill()
    program.communicate()
    sentence = (
        f"{scenario.stem}: left behind by process {program.pid}, which is gone; process {lab.init}; "
        "end it with `testbed down --all`"
    )
    code, shown, _ = typed("status", scenario.stem)
    assert (shown, code) == (f"{sentence}\n", 0)
    ended = typed("down", scenario.stem)
    assert ended[1].startswith(f"{scenario.stem} ended in "), ended
    assert not lab.namespaces.is_alive()


def test_a_lab_that_is_being_built_is_shown_and_ended(untouched, scenario):
    program = building(scenario, "open vswitch")
    program.send_signal(signal.SIGSTOP)  # so that it goes on being built
    assert typed("status", scenario.stem)[1] == f"{scenario.stem}: being built by process {program.pid}\n"
    code, _, said = typed("up", str(scenario))
    assert f"a lab of that name is being built by process {program.pid}; give this one" in said
    assert code == 2
    down = subprocess.Popen([sys.executable, "-m", "testbed", "down", scenario.stem], stdout=subprocess.PIPE, text=True)
    told = re.compile(r"^ShdPnd:\s0*[1-9a-f]", re.MULTILINE)  # a signal waits for it
    until = time.monotonic() + 60
    while not told.search(Path(f"/proc/{program.pid}/status").read_text()) and time.monotonic() < until:
        time.sleep(0.01)
    program.send_signal(signal.SIGCONT)
    assert down.communicate(timeout=60)[0].startswith(f"{scenario.stem} ended in ")
    program.communicate()
    assert program.returncode == 130
    assert typed("status", scenario.stem)[0] == 2


def test_a_lab_that_stands_outlives_its_program(untouched, scenario):
    up = call("up", str(scenario), "--format", "json")
    assert up.returncode == 0, up.stderr
    init = json.loads(up.stdout)["process"]
    time.sleep(0.5)
    (lab,) = [lab for lab in launch.labs() if lab.init == init]
    assert not lab.has_owner
    assert lab.init not in [stray.init for stray in registry.list_orphans()]
    assert typed("down", scenario.stem)[0] == 0
    assert not lab.namespaces.is_alive()


def test_a_lab_that_is_stopped_makes_nobody_wait_for_ever(untouched):
    with build_lab(plan_of("topology: {kind: mesh, sizes: [2, 1]}\nlab: {dilation: 50}")) as lab:
        init = lab.namespaces.init
        os.kill(init, signal.SIGSTOP)
        with pytest.raises(
            LabError, match=f"does not answer: its process {init} is stopped, as by SIGSTOP; kill -CONT"
        ):
            lab.flows()
        os.kill(init, signal.SIGCONT)


def test_a_switch_daemon_that_died_is_named_with_its_signal(untouched):
    with build_lab(plan_of("topology: {kind: mesh, sizes: [2, 1]}\nlab: {dilation: 50}")) as lab:
        daemon = (lab.namespaces.socket.parent / "ovs" / "ovs-vswitchd.pid").read_text().strip()
        inside = ["nsenter", "--target", str(lab.namespaces.init), "--pid", "--mount", "--", "kill", "-SEGV", daemon]
        subprocess.run(inside, check=True)
        until = time.monotonic() + 10
        while (lab.namespaces.proc / daemon / "exe").exists() and time.monotonic() < until:
            time.sleep(0.01)
        with pytest.raises(LabError, match="ovs-vswitchd was killed by signal 11; the lab's switches are gone"):
            lab.flows()


# Without CAP_SYS_RESOURCE root is bound by limits as everybody is.
_BOUND = ("setpriv", "--bounding-set=-sys_resource", "--inh-caps=-sys_resource")


def limited(limit: str, *arguments: str, bound: bool = False) -> subprocess.CompletedProcess[str]:
    shell = ["bash", "-c", f'ulimit {limit}; exec "$@"', "bash", *(_BOUND if bound else ())]
    return subprocess.run(
        [*shell, sys.executable, "-m", "testbed", *arguments], capture_output=True, text=True, timeout=120, check=False
    )


def test_a_limit_of_files_lengths_does_not_hold_for_a_lab(untouched, scenario):
    up = limited("-Sf 4", "up", str(scenario))
    assert up.returncode == 0, up.stderr
    assert typed("down", scenario.stem)[0] == 0


@pytest.mark.parametrize(
    ("limit", "sentence"),
    [
        ("-f 4", "a lab writes files of any length, and 4,096 bytes are the most here; nothing was built; allow more"),
        ("-n 50", "open files in one program, and 50 are allowed here; nothing was built; allow more: ulimit -Hn"),
    ],
)
def test_limits_that_cannot_be_lifted_are_told_before_building(untouched, scenario, limit, sentence):
    up = limited(limit, "up", str(scenario), bound=True)
    assert sentence in up.stderr
    assert "Traceback" not in up.stderr
    assert up.returncode == 1


@pytest.mark.parametrize(
    ("options", "reason"), [("ro", "Read-only file system"), ("size=4k", "No space left on device")]
)
def test_a_temporary_folder_that_cannot_be_written_is_named(untouched, scenario, options, reason):
    text = scenario.read_text()
    folder = Path("/var/tmp") / scenario.stem  # what is below /tmp is hidden, but for the project, should it be there
    here, kept = ROOT, folder / "project"
    kept.mkdir(parents=True)
    script = (
        f"set -e; mount --bind '{here}' '{kept}'; mount -t tmpfs x /tmp; mkdir -p '{here}'; "
        f"mount --bind '{kept}' '{here}'; "
        f'mount -o remount,{options} /tmp; head -c 4096 /dev/zero >/tmp/full || true; exec "$@"'
    )
    try:
        file = folder / scenario.name
        file.write_text(text)
        up = subprocess.run(
            ["unshare", "--mount", "sh", "-c", script, "sh", sys.executable, "-m", "testbed", "up", str(file)],
            capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip
    finally:
        shutil.rmtree(folder)
    assert f"/tmp cannot be written, where Open vSwitch keeps transactions: {reason}; nothing was built" in up.stderr
    assert (up.returncode, "Traceback" in up.stderr) == (1, False)


def test_a_host_that_dies_while_its_links_are_made_is_named(untouched):
    """And not the file of it that is missing then."""

    def kill(step: str) -> None:
        if step != "bridges":
            return
        newest = max(
            (lab for lab in launch.labs() if lab.owner == os.getpid()), key=lambda lab: launch.read_start_time(lab.init)
        )
        keepers = []
        for entry in newest.namespaces.proc.glob("[0-9]*"):
            with suppress(OSError):  # a tool that has ended
                if (entry / "cmdline").read_bytes() == b"sleep\0infinity\0":
                    keepers.append(int(entry.name))
        inside = ["nsenter", "--target", str(newest.init), "--pid", "--mount", "--", "kill", "-KILL"]
        subprocess.run([*inside, str(max(keepers))], check=True)

    plan = plan_of("topology: {kind: mesh, sizes: [4, 4]}\nlab: {dilation: 50}")
    with (
        pytest.raises(LabError, match=r"^h\d+ died \(the process that keeps h\d+ was killed by signal 9\)"),
        build_lab(plan, progress=kill),
    ):
        pytest.fail("it was built all the same")
