"""Ctrl-C, at moments good and bad: exit 130, nothing half-done, nothing left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

PROGRAM = """\
import sys, time
from testbed.ui.cli.interrupts import Interrupted, Interrupts, leave

def within(module, code):
    exec(code, {{"__name__": module, "time": time}})

interrupts = Interrupts(lambda: print("cleared", flush=True))
try:
{body}
except Interrupted:
    print("raised", flush=True)
{after}
    leave()
finally:
    interrupts.ignore()
"""

# Planned for some seconds.
FABRIC = """\
topology: {kind: random, switches: 1024, degree: 8, hosts_per_switch: 1, seed: 3}
routing: {kind: updown}
assignment: {kind: openflow}
"""


# Whoever runs the tests in the background, or by nohup, may have had signals ignored; nobody has in a terminal.
TERMINAL = ("env", "--default-signal=INT,TERM,HUP")


def interrupted(body, *, after="pass", signals=(signal.SIGINT,), pause=0.1, under=TERMINAL):
    """Exit code, what was printed, what was said, and seconds of a program that gets signals once it says `ready`."""
    text = PROGRAM.format(body=textwrap.indent(body, "    "), after=textwrap.indent(after, "    "))
    with subprocess.Popen(
        [*under, sys.executable, "-c", text], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])},
    ) as process:  # fmt: skip
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        time.sleep(0.05)
        started = time.monotonic()
        for number in signals:
            process.send_signal(number)
            time.sleep(pause)
        printed, said = process.communicate(timeout=60)
    return process.returncode, printed.split(), said, time.monotonic() - started


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_program_that_waits_is_interrupted_at_once(number):
    code, printed, said, seconds = interrupted("print('ready', flush=True); time.sleep(50)", signals=[number])
    assert (code, printed, said) == (130, ["raised"], "interrupted; nothing is left running\n")
    assert seconds < 5


@pytest.mark.slow
@pytest.mark.parametrize(
    "module", ["numba.core.serialize", "llvmlite.binding", "pydantic.main", "importlib._bootstrap"]
)
def test_code_that_bears_no_exception_comes_to_its_end_first(module):
    body = f"within('{module}', 'print(\"ready\", flush=True); time.sleep(0.5); print(\"whole\")')\ntime.sleep(50)"
    code, printed, _, _ = interrupted(body)
    assert (code, printed) == (130, ["whole", "raised"])


@pytest.mark.slow
def test_a_child_being_started_is_known_before_the_exception():
    body = "def _execute_child():\n    print('ready', flush=True); time.sleep(0.5); print('whole')\n_execute_child()\n"
    assert interrupted(body + "time.sleep(50)")[:2] == (130, ["whole", "raised"])


@pytest.mark.slow
def test_code_that_does_not_come_to_its_end_is_ended_by_force():
    body = "within('numba.core', 'print(\"ready\", flush=True); time.sleep(50)')"
    code, printed, said, seconds = interrupted(body)
    assert (code, printed, said) == (130, ["cleared"], "interrupted; nothing is left running\n")
    assert 1 <= seconds < 10


@pytest.mark.slow
def test_a_kernel_that_runs_is_ended_by_force():
    body = textwrap.dedent("""
        import numba
        @numba.njit(nogil=True)
        def spin(count):
            x = 1
            for i in range(count):
                x = (x * 6364136223846793005 + i) >> 1
            return x
        spin(1)
        print("ready", flush=True)
        spin(1 << 36)
    """)
    code, printed, said, seconds = interrupted(body)
    assert (code, printed, "Traceback" in said) == (130, ["cleared"], False)
    assert seconds < 10


def test_an_exception_that_is_swallowed_is_raised_again():
    body = textwrap.dedent("""
        class Slow:
            def close(self):
                print("ready", flush=True)
                time.sleep(0.5)
            __del__ = close
        Slow()
        time.sleep(50)
    """)
    code, printed, said, _ = interrupted(body)
    assert (code, printed, said) == (130, ["raised"], "interrupted; nothing is left running\n")


@pytest.mark.slow
def test_a_second_signal_ends_a_clearing_up_that_takes_long():
    body, twice = "print('ready', flush=True); time.sleep(50)", (signal.SIGINT, signal.SIGINT)
    code, printed, _, seconds = interrupted(body, after="time.sleep(50)", signals=twice, pause=0.7)
    assert (code, printed) == (130, ["raised", "cleared"])
    assert seconds < 10


@pytest.mark.slow
def test_a_signal_that_comes_twice_at_once_is_one():
    body, twice = "print('ready', flush=True); time.sleep(50)", (signal.SIGINT, signal.SIGTERM)
    code, printed, _, _ = interrupted(body, after="time.sleep(1.5); print('cleared up', flush=True)", signals=twice)
    assert (code, printed) == (130, ["raised", "cleared", "up"])


@pytest.mark.slow
def test_under_nohup_a_hang_up_stays_ignored():
    body = "print('ready', flush=True); time.sleep(1); print('whole', flush=True)"
    code, printed, _, _ = interrupted(body, signals=[signal.SIGHUP], under=("env", "--ignore-signal=HUP"))
    assert (code, printed) == (0, ["whole"])


@pytest.mark.slow
@pytest.mark.parametrize("seconds", [0.05, 0.3, 0.6, 1.2])
@pytest.mark.parametrize("words", [
    ("plan", "fabric.yaml"),
    ("simulate", "torus8x8", "--loads", "0.1,0.2", "--results", "results"),
])  # fmt: skip
def test_a_command_is_interrupted_at_any_moment(words, seconds, tmp_path):
    (tmp_path / "fabric.yaml").write_text(FABRIC)
    with subprocess.Popen(
        [*TERMINAL, sys.executable, "-m", "testbed", *words], cwd=tmp_path, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])},
    ) as process:  # fmt: skip
        status = Path(f"/proc/{process.pid}/status")
        while not _handles(signal.SIGHUP, status.read_text()):
            time.sleep(0.005)
        time.sleep(seconds)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Traceback" not in said
    assert said.endswith("interrupted; nothing is left running\n")
    assert not list(tmp_path.rglob("*.partial"))


def _handles(number, status):
    (line,) = (line for line in status.splitlines() if line.startswith("SigCgt"))
    return int(line.split()[1], 16) >> (number - 1) & 1


@pytest.mark.parametrize("ignored", [False, True])
def test_ctrl_c_before_it_is_listened_for_gives_no_traceback(ignored):
    """While modules are imported, which takes a while on a busy machine; where it is ignored it stays so until then."""
    code = (
        "import os, signal, sys; from testbed.ui import cli\n"
        f"if {ignored}: signal.signal(signal.SIGINT, signal.SIG_IGN)\n"
        "cli._require_memory = lambda: os.kill(os.getpid(), signal.SIGINT)\n"
        "sys.argv = ['testbed', 'list', 'routings']; cli.main()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0 if ignored else -signal.SIGINT, "")
