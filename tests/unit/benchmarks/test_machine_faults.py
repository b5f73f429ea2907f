"""What a machine can lack or refuse: the command does its work all the same, or says in a sentence what is wrong."""

from __future__ import annotations

import errno
import os
import subprocess
import sys

import pytest

from benchmarks.command import ROOT
from testbed.engines.lab.hosts import host_view, mounts, seccomp
from testbed.engines.local_machine import probe

_ROOT = str(ROOT)
# A shell's words before the program → exit code, and what is said where it is not 0.
_FAULTS: dict[str, tuple[str, str, int, str]] = {
    # What does not add up to another fault comes at once: a start takes longer than what is looked at.
    "no home, locale and terminal": (
        "unset HOME; COLUMNS=abc LC_ALL=xx_YY.ISO TERM=nothing exec {program} <&-", "list", 0, "",
    ),
    "no temporary folder and time zone": (
        "COLUMNS=0 TMPDIR=/nonexistent TZ=no/where exec {program} 2>&-", "list", 0, "",
    ),
    "a terminal of one column": ("COLUMNS=1 exec {program}", "list", 0, ""),
    "no standard output": ("exec {program} >&-", "list", 0, ""),
    "no environment": ('exec env -i "PATH=$PATH" "PYTHONPATH=$PYTHONPATH" {program}', "list", 0, ""),
    "a reader that has gone": ("{program} | head -n 1 >/dev/null", "list", 1, ""),
    "no file may be written": (
        "trap '' XFSZ; ulimit -f 0; exec {program}", "plan flat16 -o x.json", 2,
        "x.json: cannot be written: File too large",
    ),
    "little memory": ("ulimit -v 200000; exec {program}", "plan ring8", 2, "195 MiB of memory are allowed here, and"),
    "hardly any memory": ("ulimit -v 60000; exec {program}", "plan ring8", 2, "58 MiB of memory are allowed here, and"),
    "few open files": ("ulimit -n 16; exec {program}", "plan ring8", 0, ""),
    "no tools": ("PATH=/nonexistent exec {program}", "up ring8", 2, "network tools: missing: "),
    "a folder in a file's place": (
        "mkdir x.json; exec {program}", "plan flat16 -o x.json", 2, "x.json: cannot be written: Is a directory",
    ),
    "a folder that is not there": (
        "exec {program}", "plan flat16 -o no/x.json", 2, "no/x.json: cannot be written: No such file or directory",
    ),
    "a file in a folder's place": (
        "touch no; exec {program}", "plan flat16 -o no/x.json", 2, "no/x.json: cannot be written: Not a directory",
    ),
    "a circle of links": (
        "ln -s x.yaml x.yaml; exec {program}", "plan ./x.yaml", 2, "Too many levels of symbolic links",
    ),
    "a current folder that is gone": (
        "mkdir gone; cd gone; rmdir ../gone; exec {program}", "list", 2, "the current folder is not there any more",
    ),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("fault", _FAULTS)
def test_a_sentence_or_no_matter(fault, tmp_path):
    shell, words, code, said = _FAULTS[fault]
    program = f"{sys.executable} -m testbed {words}"
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", shell.format(program=program)], cwd=tmp_path, capture_output=True, text=True,
        check=False, timeout=120, env={**os.environ, "PYTHONPATH": _ROOT},
    )  # fmt: skip
    assert "Traceback" not in done.stderr
    assert (done.returncode, said in done.stderr) == (code, True), done.stderr


@pytest.mark.parametrize("lacking", ["library", "kernel"])
def test_a_machine_that_cannot_shut_hosts_in(lacking, monkeypatch):
    def refuse(call):
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))

    if lacking == "library":
        monkeypatch.setattr(seccomp, "_LIBRARY", "libnone.so.2")
        monkeypatch.setattr(host_view, "why_not", lambda: "")  # which only root can ask
        seccomp._filter.cache_clear()
        said = "hosts' programs cannot be held back: libnone.so.2: cannot open shared object file"
    else:
        monkeypatch.setattr(mounts, "run_in_thread_namespace", refuse)
        said = "Function not implemented"
    row = probe._shut_in()
    assert (row.present, row.detail.startswith(said)) == (False, True), row
    assert row.consequence.startswith(
        "hosts' programs cannot be kept from the machine, so labs are built with lab.host"
    )
