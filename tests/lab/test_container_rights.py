"""What docs/install.md says that a container needs for a lab: that is enough, and each part of it is needed."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys

import pytest

from tests.installed import ROOT

# What Podman gives each container; Docker gives more.
USUAL = (
    "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "NET_BIND_SERVICE", "SETFCAP", "SETGID", "SETPCAP", "SETUID",
    "SYS_CHROOT",
)  # fmt: skip
PAGE = (ROOT / "docs" / "install.md").read_text()
NAMED = re.findall(r"--cap-add ([A-Z_]+)", PAGE)


def limited(capabilities, *words, cwd):
    """A command that can never have more than some capabilities."""
    kept = ",".join(["-all", *(f"+{name.lower()}" for name in (*USUAL, *capabilities))])
    return subprocess.run(
        ["setpriv", "--inh-caps", "-all", "--bounding-set", kept, "--", sys.executable, "-m", "testbed", *words],
        cwd=cwd, capture_output=True, text=True, check=False,
    )  # fmt: skip


@pytest.fixture
def small(tmp_path):
    file = tmp_path / "small.yaml"
    file.write_text(
        "topology: {kind: mesh, sizes: [2, 2]}\nlab: {dilation: 200}\n"
        "workloads: [{kind: iperf3, protocol: udp, pattern: neighbour, seconds: 3}]\n"
    )
    return file


def test_the_page_the_table_and_the_script_name_the_same():
    rows = re.findall(r"^\| ([A-Z_]+) \|", PAGE, re.MULTILINE)
    script = re.findall(r"--cap-add CAP_([A-Z_]+)", (ROOT / "scripts" / "container").read_text())
    assert NAMED == script == [row for row in rows if row != "SYS_NICE"]
    assert "--privileged" not in "".join(re.findall(r"^    podman.*", PAGE, re.MULTILINE))


@pytest.mark.long
def test_a_lab_needs_no_other(small, tmp_path, untouched):
    done = limited(NAMED, "run", str(small), "--json", cwd=tmp_path)
    assert done.returncode in (0, 3), done.stdout + done.stderr
    assert {sample["metric"] for sample in json.loads(done.stdout)["samples"]} >= {"goodput", "loss"}


@pytest.mark.parametrize("without", [name for name in NAMED if name != "SYS_ADMIN"])
def test_without_one_it_says_which(without, small, tmp_path, untouched):
    done = limited([name for name in NAMED if name != without], "run", str(small), cwd=tmp_path)
    assert done.returncode == 2, done.stdout + done.stderr
    assert f"CAP_{without}" in done.stderr
    assert "Traceback" not in done.stderr


def test_without_any_a_lab_is_in_a_user_namespace(small, tmp_path, untouched):
    name = f"contained-{os.getpid()}"
    done = limited((), "up", str(small), "--name", name, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "a lab without root: " in done.stderr
    done = limited((), "down", name, cwd=tmp_path)
    assert done.returncode == 0, done.stderr


FILTER = (
    "import os, sys; from testbed.engines.lab.hosts.seccomp import forbid; forbid(); "
    "os.execvp(sys.argv[1], sys.argv[1:])"
)


@pytest.mark.parametrize(
    ("around", "sentence"),
    [
        ((sys.executable, "-c", FILTER), "start the container with --security-opt seccomp=unconfined"),
        (
            ("unshare", "--mount", "sh", "-ec", 'mount --bind /dev/null /proc/interrupts; exec "$@"', "sh"),
            "start the container with --security-opt systempaths=unconfined (Podman: --security-opt unmask=ALL)",
        ),
    ],
)
def test_what_a_container_forbids_is_named(around, sentence, small):
    kept = ",".join(["-all", *(f"+{name.lower()}" for name in USUAL)])
    command = ["setpriv", "--inh-caps", "-all", "--bounding-set", kept, "--", sys.executable, "-m", "testbed"]
    done = subprocess.run([*around, *command, "run", str(small)], capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 2, done.stderr
    assert sentence in done.stderr
