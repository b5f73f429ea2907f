"""Commands and processes of a lab, and how they fail."""

from __future__ import annotations

import socket
import subprocess
import time
from contextlib import suppress
from threading import Thread

import pytest

from testbed.base.errors import LabError
from testbed.engines.lab.hosts.commands import first_line, run


@pytest.mark.parametrize(("script", "line"), [("echo ready; exec sleep 60", b"ready\n"), ("exit 1", b"")])
def test_the_first_line_of_a_process_is_waited_for(script, line):
    with subprocess.Popen(["sh", "-c", script], stdout=subprocess.PIPE) as process:
        assert first_line(process, "the shell", 30.0) == line
        process.kill()


def test_a_process_that_says_nothing_is_named():
    began = time.monotonic()
    with subprocess.Popen(["sleep", "60"], stdout=subprocess.PIPE) as process:
        with pytest.raises(LabError, match=r"^the sleeper has not answered in 0\.2 s$"):
            first_line(process, "the sleeper", 0.2)
        process.kill()
    assert 0.2 <= time.monotonic() - began < 30


def test_a_switch_that_hung_up_unasked_is_asked_again(tmp_path, monkeypatch):
    """As it does with clients that a busy machine keeps from saying hello; the words are those of the real client."""
    monkeypatch.setenv("OVS_RUNDIR", str(tmp_path))
    path, hung_up = tmp_path / "s1.mgmt", 0

    def hang_up(listening: socket.socket) -> None:
        nonlocal hung_up
        with suppress(OSError):  # closed
            while True:
                listening.accept()[0].close()
                hung_up += 1
                if hung_up == 3:
                    path.unlink()

    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(path))
        listening.listen()
        Thread(target=hang_up, args=(listening,), daemon=True).start()
        with pytest.raises(LabError, match="s1 is not a bridge or a socket"):
            run(["ovs-ofctl", "-O", "OpenFlow13", "dump-flows", "s1"])
        listening.shutdown(socket.SHUT_RDWR)
    assert hung_up == 3


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["sh", "-c", "kill -XFSZ $$"], r"^sh -c kill -XFSZ \$\$ … was killed by signal 25: it printed no reason$"),
        (["sh", "-c", "echo no >&2; exit 3"], r"^sh -c echo no >&2; exit 3 … failed with exit code 3: no$"),
        (["sleep", "60"], r"^sleep 60 … did not end in 0\.2 s$"),
        (["there-is-none"], r"^there-is-none is not installed; "),
    ],
)
def test_a_command_that_fails_is_told_with_how_it_ended(words, sentence):
    with pytest.raises(LabError, match=sentence):
        run(words, timeout=0.2 if words[0] == "sleep" else 30.0)
