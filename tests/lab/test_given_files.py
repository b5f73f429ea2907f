"""Files of the machine that a host's program is given open: it reads what it was given to read, and no more."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from testbed.base.messages import LoadRequest, Process
from testbed.engines.lab.control import registry
from testbed.engines.lab.control.client import LabClient
from testbed.engines.lab.control.host_commands import run_inside
from testbed.planning import Plan

from .conftest import plan_of, sharing

pytestmark = sharing("test_given_files")

# What can be done with a descriptor beyond reading it; nothing is changed by any of it.
_TRIES = """
import errno, json, os, sys
number = int(sys.argv[1])
state, said = os.fstat(number), []
def attempt(do):
    try:
        do()
        said.append("done")
    except OSError as error:
        said.append(errno.errorcode[error.errno])
attempt(lambda: os.fchmod(number, state.st_mode & 0o7777))
attempt(lambda: os.fchown(number, state.st_uid, state.st_gid))
attempt(lambda: os.utime(number, ns=(state.st_atime_ns, state.st_mtime_ns)))
print(json.dumps(said))
"""
_ANEW = """
import os
try:
    os.open("/proc/self/fd/0", os.O_WRONLY)
    print("done")
except OSError as error:
    print(error.strerror)
print(os.read(0, 100).decode())
"""
_HELD = ["EROFS"] * 3
Lab = tuple[str, LabClient]


@pytest.fixture
def lab(standing) -> Iterator[Lab]:
    plan: Plan = plan_of("topology: {kind: mesh, sizes: [2]}\nlab: {dilation: 100}")
    client, name = standing(plan), f"given-{os.getpid()}"
    registry.register(name, client.namespaces, plan.scenario.name, plan.digest)
    entry = registry.find(name)
    yield name, client
    registry.forget(entry)


def _shell(lab: Lab, line: str, code: str = "") -> str:
    """What a line of the caller's shell prints; `$in` is a program in a host, `$code` what Python does there."""
    inside = f"{sys.executable} -m testbed exec {lab[0]} h1 --"
    done = subprocess.run(
        ["bash", "-c", line.replace("$in", inside).replace("$code", f'{sys.executable} -I -c "$0"'), code],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_file_that_a_program_reads_is_not_opened_to_be_written(lab, tmp_path):
    (tmp_path / "in").write_text("ours")
    assert _shell(lab, f"$in $code <{tmp_path}/in", _ANEW) == "Read-only file system\nours\n"


@pytest.mark.parametrize("given", ["/dev/null", "{}/in", "{}"])
def test_what_is_given_to_be_read_is_not_changed(lab, tmp_path, given):
    (tmp_path / "in").write_text("ours")
    said = _shell(lab, f"$in $code 3 3<{given.format(tmp_path)}", _TRIES)
    assert json.loads(said) == _HELD


def test_what_a_program_without_input_reads_is_not_changed(lab):
    """That is /dev/null of the machine, which all users of it need."""
    _, client = lab
    argv = (sys.executable, "-I", "-c", _TRIES, "0")
    output = client.run_load(LoadRequest((Process("it", "h1", argv),), 30.0)).outputs["it"]
    assert (output.code, json.loads(output.stdout)) == (0, _HELD), output.stderr
    entry = registry.find(lab[0])
    holder = client.facts.holders["h1"]
    assert json.loads(run_inside(entry.init, holder, None, argv, 30.0, "read").stdout) == _HELD


def test_a_folder_that_is_given_shows_its_files_and_takes_none(lab, tmp_path):
    (tmp_path / "theirs").mkdir()
    words = "cat /proc/self/fd/3/in; touch /proc/self/fd/3/new 2>&1 | grep -o Read-only; exit 0"
    (tmp_path / "in").write_text("ours ")
    assert _shell(lab, f"$in sh -c '{words}' 3<{tmp_path}") == "ours Read-only\n"
    assert not (tmp_path / "new").exists()
    assert _shell(lab, "$in ls /proc/self/fd/3/proc 3</") == ""  # what else is mounted below it


def test_the_caller_reads_on_where_the_program_has_stopped(lab, tmp_path):
    (tmp_path / "in").write_text("one\ntwo\nthree\n")
    words = "sh -c 'read line; echo \"<$line>\"'"
    assert _shell(lab, f"(read first; $in {words}; cat) <{tmp_path}/in") == "<two>\nthree\n"


def test_pipes_devices_and_texts_of_the_shell_are_given(lab, tmp_path):
    assert _shell(lab, "$in sh -c 'head -c 3 | wc -c' </dev/zero") == "3\n"
    assert _shell(lab, "$in cat <(echo one) <<<two -") == "one\ntwo\n"
    assert (
        _shell(lab, f"$in sh -c 'echo lost >&2; echo kept' 2>/dev/null >{tmp_path}/out; cat {tmp_path}/out") == "kept\n"
    )
    assert _shell(lab, "$in sh -c 'echo more' <&-") == "more\n"


@pytest.mark.parametrize("right", ["u+s", "g+s"])
def test_no_file_of_the_machine_gets_its_owners_rights(lab, tmp_path, right):
    """What a program writes with the caller's leave would run as root for everybody."""
    out = tmp_path / "out"
    said = _shell(lab, f"$in sh -c 'echo text; chmod {right} /proc/self/fd/1 2>&1; exit 0' >{out}; cat {out}")
    assert "Operation not permitted" in said
    assert out.stat().st_mode & 0o6000 == 0
