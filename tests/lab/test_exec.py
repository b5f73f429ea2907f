"""Commands in hosts of a running lab."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Thread

import pytest

from testbed.engines.lab.control import registry
from testbed.engines.lab.control.client import LabClient
from testbed.planning import Plan
from tests.unit.ui.test_cli_surface import typed

from .conftest import plan_of, sharing

pytestmark = sharing("test_exec")

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def execute(tmp_path: Path, standing: Callable[[Plan], LabClient]) -> Iterator[Run]:
    """Runs `testbed exec` on a lab, given what follows its name."""
    plan, name = plan_of("topology: {kind: mesh, sizes: [2]}\nlab: {dilation: 100}"), f"exec-{os.getpid()}"

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "testbed", "exec", name, *words]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)

    registry.register(name, standing(plan).namespaces, plan.scenario.name, plan.digest)
    entry = registry.find(name)
    try:
        yield run
    finally:
        registry.forget(entry)


def test_commands_run_where_they_are_told_to(execute, tmp_path):
    ping = execute("h1", "--", "ping", "-c", "1", "h2")
    assert (ping.returncode, "1 received" in ping.stdout) == (0, True), ping.stderr
    assert execute("h2", "sh", "-c", "ip -o -4 addr show eth0 | grep -c /").stdout == "1\n"
    assert execute("h1", "--", "sh", "-c", 'pwd; echo "$@" >&2; exit 7', "x", "--", "a  b").__dict__.items() >= {
        "returncode": 7, "stdout": f"{tmp_path}\n", "stderr": "-- a  b\n",
    }.items()  # fmt: skip
    flows = execute("s2", "--", "ovs-ofctl", "-O", "OpenFlow13", "dump-flows", "s2")
    assert "actions=" in flows.stdout, flows.stderr
    assert execute("h1", "--", "/no/such").returncode == 127


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("h3", "--", "true"), 'has no host or switch "h3". Did you mean "h2"?'),
        (("h1",), "CMD: is missing; write a host and a command, such as h1 -- ping -c 3 h2"),
        (("h1", "--"), "CMD: is missing; write a host and a command, such as h1 -- ping -c 3 h2"),
    ],
)
def test_what_is_not_there_is_a_sentence(execute, words, sentence):
    code, printed, said = typed("exec", f"exec-{os.getpid()}", *words)
    assert (code, printed) == (2, "")
    assert sentence in said
    assert "Traceback" not in said


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_program_ends_with_the_command_that_started_it(execute, number):
    """What a terminal sends goes to both; a signal from a script or a supervisor goes to the command alone."""
    command = [
        sys.executable,
        "-m",
        "testbed",
        "exec",
        f"exec-{os.getpid()}",
        "h1",
        "--",
        "sh",
        "-c",
        "echo on; exec cat",
    ]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as started:
        assert started.stdin is not None
        assert started.stdout is not None
        assert started.stdout.readline() == "on\n"
        started.send_signal(number)
        rest = Thread(target=started.stdout.read)  # it ends when the program has gone, which holds the other end
        rest.start()
        rest.join(20)
        gone = not rest.is_alive()
        started.stdin.close()  # ends it in any case
        assert gone
        assert started.wait(20) == -number


@pytest.mark.long
def test_the_commands_of_mininets_walkthrough_work_at_its_prompt(execute):
    words = "net\nlinks\npingall\niperf h1 h2\niperfudp 2M h1 h2\niperf h1 h9\niperf h1\nexit\n"
    shell = [sys.executable, "-m", "testbed", "shell", f"exec-{os.getpid()}"]
    done = subprocess.run(shell, input=words, capture_output=True, text=True, check=False, timeout=100)
    said = done.stdout + done.stderr
    assert done.returncode == 0
    assert "s1 lo:  s1-eth1:eth0 s1-eth2:s2-eth2" in said
    assert "s1-eth2<->s2-eth2 (OK OK)" in said
    assert "h1-eth0<->s1-eth1 (OK OK)" in said
    assert "Results: 0% dropped (2/2 received)" in said
    tests = re.findall(
        r"testing (\w+) bandwidth between h1 and h2\n\*\*\* Results: \['(\S+) Mbits/sec', '(\S+) Mb", said
    )
    (tcp, sent, received), (udp, asked, carried) = tests
    assert (tcp, udp) == ("TCP", "UDP")
    assert 1 < float(received) <= float(sent) < 20  # of 10 Mbit/s in the lab; a burst may have been sent only
    assert float(asked) == pytest.approx(2, rel=0.1)
    assert float(carried) == pytest.approx(2, rel=0.1)
    assert "at dilation 100: " in said
    assert "'h9' is not a host of this lab" in said
    assert "invalid number of args" in said
