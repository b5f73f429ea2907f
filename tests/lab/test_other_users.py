"""What another user of the machine gets of labs that are not its own: a sentence, and nothing else."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest

from testbed.base.errors import EXIT_NOTHING_RAN
from testbed.engines.lab.control import registry
from testbed.engines.lab.control.client import LabClient
from testbed.planning import Plan

from .conftest import plan_of, sharing

pytestmark = sharing("test_exec")  # whose lab it is, too

# Without a mapping of users one is nobody, but has access to this clone wherever it lies.
_NOBODY = ["unshare", "--user", sys.executable]


@pytest.fixture
def lab(standing: Callable[[Plan], LabClient]) -> Iterator[str]:
    """The name of a lab of root's, which a program uses besides."""
    plan, name = plan_of("topology: {kind: mesh, sizes: [2]}\nlab: {dilation: 100}"), f"others-{os.getpid()}"
    registry.register(name, standing(plan).namespaces, plan.scenario.name, plan.digest)
    entry = registry.find(name)
    yield name
    assert entry.holds
    registry.forget(entry)


def ask(words: str) -> subprocess.CompletedProcess[str]:
    command = [*_NOBODY, "-m", "testbed", *words.split()]
    return subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)


@pytest.mark.parametrize("words", ["exec LAB h1 -- true", "shell LAB", "down LAB", "capture LAB h1", "watch LAB"])
def test_another_user_s_lab_is_not_there(lab, words):
    done = ask(words.replace("LAB", lab))
    assert (done.returncode, done.stdout) == (2, "")
    assert "no lab is running; build one with `testbed up NAME`; of another user's labs, such as root's" in done.stderr
    assert "/proc/" not in done.stderr
    assert "Traceback" not in done.stderr


def test_another_user_s_labs_are_not_listed(lab):
    done = ask("status")
    assert (done.returncode, done.stdout) == (EXIT_NOTHING_RAN, "no lab is running\n")
    assert lab not in done.stderr
    assert ask("down --all").stdout == "no lab is running\n"
    assert registry.find(lab).holds


def test_another_user_reaches_no_socket_of_a_lab(lab):
    """Neither by its path nor by the folders of its processes."""
    init = registry.find(lab).init
    places = [f"/proc/{init}/root/run/lab/agent.sock", f"/proc/{init}/root/run/lab/ovs/db.sock", "/run/lab/agent.sock"]
    script = "import socket, sys\nfor place in sys.argv[1:]:\n  try: socket.socket(socket.AF_UNIX).connect(place)\n"
    script += "  except OSError as error: print(error.strerror)\n  else: print('connected')"
    done = subprocess.run([*_NOBODY, "-c", script, *places], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["Permission denied", "Permission denied", "No such file or directory"]
    for place in places[:2]:  # which are there
        with socket.socket(socket.AF_UNIX) as made:
            made.connect(place)
