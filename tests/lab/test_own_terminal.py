"""A host's program never gets the terminal of whoever calls it, and works on its own as on the caller's."""

from __future__ import annotations

import fcntl
import json
import os
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from testbed.engines.lab.control import registry
from testbed.engines.lab.control.client import LabClient
from testbed.planning import Plan

from .conftest import plan_of, sharing

pytestmark = sharing("test_own_terminal")

_TESTBED = [sys.executable, "-m", "testbed"]
_SCENARIO = "topology: {{kind: mesh, sizes: [2]}}\nlab: {{dilation: 100, host_access: {}}}"
# What a program has of terminals, and what it gets by typing into them.
_LOOK = """
import ctypes, errno, fcntl, json, os, sys, termios
found = {"terminals": {}, "typed": []}
libc = ctypes.CDLL(None, use_errno=True)
numbers = [int(name) for name in os.listdir("/proc/self/fd")]
try:
    numbers.append(os.open("/dev/tty", os.O_RDWR))
    found["own"] = os.fstat(numbers[-1]).st_rdev
except OSError as error:
    found["own"] = errno.errorcode[error.errno]
for number in numbers:
    try:
        if os.isatty(number):
            state = os.fstat(number)
            found["terminals"][number] = [state.st_dev, state.st_ino]
    except OSError:
        continue
    for request in (termios.TIOCSTI, 1 << 32 | termios.TIOCSTI):
        done = libc.ioctl(number, ctypes.c_ulong(request), ctypes.c_char_p(b"x"))
        found["typed"].append("typed" if done == 0 else errno.errorcode[ctypes.get_errno()])
with open(sys.argv[1], "w") as file:
    json.dump(found, file)
"""


def _become_foreground() -> None:
    """Take the terminal, and signals as a shell gives them, whatever these tests were started by ignores."""
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
        signal.signal(number, signal.SIG_DFL)


class Caller:
    """A program on a terminal, as somebody who sits there has it."""

    def __init__(self, *command: str, rows: int = 24, columns: int = 80) -> None:
        self.screen = b""
        # The terminal itself stays open, so that it can be looked at when the program has gone.
        self.master, self.terminal = os.openpty()
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self.before = termios.tcgetattr(self.terminal)
        self.process = subprocess.Popen(
            command, stdin=self.terminal, stdout=self.terminal, stderr=self.terminal, start_new_session=True,
            preexec_fn=_become_foreground,  # noqa: PLW1509 - system calls
        )  # fmt: skip

    def reads(self, text: bytes, limit: float = 60.0) -> None:
        """Wait until a text is to be seen, and forget all up to it."""
        until = time.monotonic() + limit
        while text not in self.screen:
            assert time.monotonic() < until, (text, self.screen)
            self._look(0.1)
        self.screen = self.screen.split(text, 1)[1]

    def _look(self, seconds: float) -> None:
        if select.select([self.master], [], [], seconds)[0]:
            self.screen += os.read(self.master, 65536)

    def types(self, keys: bytes) -> None:
        os.write(self.master, keys)

    def ends(self, limit: float = 60.0) -> int:
        """How it has ended, as Popen says it."""
        until = time.monotonic() + limit
        while self.process.poll() is None:
            assert time.monotonic() < until, self.screen
            self._look(0.05)
        self._look(0.0)
        return self.process.returncode

    def is_as_before(self) -> bool:
        """Whether the terminal is as it was, and nobody has typed there."""
        return termios.tcgetattr(self.terminal) == self.before and self.nobody_has_typed()

    def nobody_has_typed(self) -> bool:
        return fcntl.ioctl(self.terminal, termios.FIONREAD, bytes(4)) == bytes(4)

    @property
    def numbers(self) -> list[int]:
        state = os.fstat(self.terminal)
        return [state.st_dev, state.st_ino]

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self.terminal)
        os.close(self.master)


@pytest.fixture
def on_terminal() -> Iterator[Callable[..., Caller]]:
    """Runs a command on a terminal."""
    begun: list[Caller] = []

    def begin(*command: str, rows: int = 24, columns: int = 80) -> Caller:
        begun.append(Caller(*command, rows=rows, columns=columns))
        return begun[-1]

    yield begin
    for one in begun:
        one.close()


def _registered(standing: Callable[[Plan], LabClient], access: str) -> Iterator[str]:
    plan, name = plan_of(_SCENARIO.format(access)), f"terminal-{access}-{os.getpid()}"
    registry.register(name, standing(plan).namespaces, plan.scenario.name, plan.digest)
    entry = registry.find(name)
    yield name
    registry.forget(entry)


@pytest.fixture
def lab(standing: Callable[[Plan], LabClient]) -> Iterator[str]:
    """The name of a lab that can be entered."""
    yield from _registered(standing, "read")


@pytest.fixture
def open_lab(standing: Callable[[Plan], LabClient]) -> Iterator[str]:
    """Likewise, of one whose hosts may do what root may."""
    yield from _registered(standing, "write")


def _shared(lab: str) -> Path:
    return Path(f"/proc/{registry.find(lab).init}/root/run/lab/shared")


def _check_what_was_found(
    found: dict[str, object], caller: Caller, numbers: list[str], *, refused: bool = True
) -> None:
    assert isinstance(found["terminals"], dict)
    assert caller.numbers not in found["terminals"].values()
    assert set(numbers) <= set(found["terminals"])
    if refused:
        assert set(found["typed"]) <= {"EPERM"}  # type: ignore[call-overload]
    assert caller.nobody_has_typed()


@pytest.mark.parametrize(
    ("redirected", "numbers"),
    [
        ("", ["0", "1", "2"]),
        ("| cat", ["0", "2"]),
        ("</dev/null", ["1", "2"]),
        ("</dev/null >/dev/null", ["2"]),
        ("</dev/null >/dev/null 2>&1", []),
        ("3<>/dev/tty", ["0", "1", "2"]),
    ],
)
def test_the_callers_terminal_never_reaches_a_host(lab, on_terminal, redirected, numbers):
    """Neither by a descriptor, nor as the one that /dev/tty is."""
    result = f"/run/lab/shared/{time.monotonic_ns()}"
    exec_ = " ".join([*_TESTBED, "exec", lab, "h1", "--", sys.executable, "-I", "-c", '"$0"', result])
    caller = on_terminal("sh", "-c", f"{exec_} {redirected}", _LOOK)
    assert caller.ends() == 0, caller.screen
    found = json.loads((_shared(lab) / Path(result).name).read_text())
    _check_what_was_found(found, caller, numbers)
    assert caller.is_as_before()
    assert (found["own"] == "ENXIO") == (not numbers)  # without a terminal it has none at all


def test_with_write_the_callers_terminal_is_out_of_reach_too(open_lab, on_terminal, tmp_path):
    command = [*_TESTBED, "exec", open_lab, "h1", "--", sys.executable, "-I", "-c", _LOOK, str(tmp_path / "found")]
    caller = on_terminal(*command)
    assert caller.ends() == 0, caller.screen
    found = json.loads((tmp_path / "found").read_text())
    _check_what_was_found(found, caller, ["0", "1", "2"], refused=False)


def test_the_callers_terminal_is_out_of_reach_from_the_prompt(lab, on_terminal):
    """Neither for what is typed there, nor for what is started by Mininet's own functions."""
    (_shared(lab) / "look.py").write_text(_LOOK)
    caller = on_terminal(*_TESTBED, "shell", lab)
    caller.reads(b"mininet> ")
    look = f"{sys.executable} -I /run/lab/shared/look.py /run/lab/shared"
    for line in (f"h1 {look}/typed", f"py h1.popen('{look}/popen').wait()"):  # what is typed meanwhile is the program's
        caller.types(f"{line}\n".encode())
        caller.reads(b"mininet> ")
    caller.types(b"exit\n")
    assert caller.ends() == 0, caller.screen
    for name in ("typed", "popen"):
        found = json.loads((_shared(lab) / name).read_text())
        _check_what_was_found(found, caller, ["0", "1", "2"] if name == "typed" else [])


def test_ctrl_c_at_the_prompt_ends_the_program_in_the_host_only(lab, on_terminal):
    caller = on_terminal(*_TESTBED, "shell", lab)
    caller.reads(b"mininet> ")
    for word in (b"once", b"again"):  # the program itself says that it has begun, so it is in front by then
        caller.types(b"h1 sh -c 'echo ready-$0; exec sleep 98' " + word + b"\n")
        caller.reads(b"\nready-" + word)
        caller.types(b"\x03")
        caller.reads(b"mininet> ")
    caller.types(b"h1 pgrep -c -f 'sleep 9[8]'\n")
    caller.reads(b"\n0\r")
    caller.reads(b"mininet> ")
    caller.types(b"exit\n")
    assert caller.ends() == 0, caller.screen


def test_a_program_that_is_not_there_is_named_without_the_folder(lab):
    done = subprocess.run([*_TESTBED, "exec", lab, "h1", "--", "pingx"], capture_output=True, text=True, check=False)
    assert done.returncode == 127
    assert done.stderr.startswith("testbed: ")
    assert "pingx: not found" in done.stderr


def test_a_program_has_a_named_terminal_of_the_callers_size(lab, on_terminal):
    words = 'tty; stty size; trap "stty size" WINCH; echo ready; sleep 60 & wait; kill $!'
    words += '; read line; echo "<$line>"; exit 7'
    caller = on_terminal(*_TESTBED, "exec", lab, "h1", "--", "bash", "-c", words, rows=33, columns=99)
    caller.reads(b"/dev/pts/")
    caller.reads(b"33 99")
    caller.reads(b"ready")
    fcntl.ioctl(caller.master, termios.TIOCSWINSZ, struct.pack("HHHH", 44, 120, 0, 0))
    caller.reads(b"44 120")
    caller.types(b"a line\r")
    caller.reads(b"<a line>")
    assert (caller.ends(), caller.is_as_before()) == (7, True)


@pytest.mark.parametrize(("key", "code"), [(b"\x03", -signal.SIGINT), (b"\x1c", -signal.SIGQUIT), (b"\x04", 0)])
def test_a_key_ends_the_program_and_not_the_lab(lab, on_terminal, key, code):
    caller = on_terminal(*_TESTBED, "exec", lab, "h1", "--", "sh", "-c", "echo ready; exec cat")
    caller.reads(b"ready")
    assert termios.tcgetattr(caller.terminal) != caller.before
    caller.types(key)
    assert (caller.ends(), caller.is_as_before()) == (code, True)
    assert registry.find(lab).holds


_SLOW = """
import runpy, subprocess, sys, time
class Slow(subprocess.Popen):
    def __init__(self, *words, **options):
        super().__init__(*words, **options)
        time.sleep(0.5)
subprocess.Popen = Slow
sys.argv = ["testbed", *sys.argv[1:]]
runpy.run_module("testbed", run_name="__main__")
"""


def test_a_program_that_ends_before_it_is_waited_for_is_heard_of(lab, on_terminal):
    """As on a busy machine, where whoever has started it goes on later."""
    caller = on_terminal(sys.executable, "-c", _SLOW, "exec", lab, "h1", "--", "sh", "-c", "exit 7")
    assert caller.ends() == 7


def test_ctrl_z_stops_the_command_and_fg_goes_on_with_it(lab, on_terminal):
    shell = on_terminal("bash", "--norc", "-i")
    shell.reads(b"# ")
    command = " ".join([*_TESTBED, "exec", lab, "h1", "--", "sh", "-c", "'echo rea''dy; read x; echo \"<$x>\"'"])
    shell.types(f"{command}\n".encode())
    shell.reads(b"ready")
    shell.types(b"\x1a")
    shell.reads(b"Stopped")
    shell.types(b"stty -a | grep -o ' icanon'; fg\n")
    shell.reads(b"\r icanon")
    shell.reads(b"exec")
    shell.types(b"here\r")
    shell.reads(b"<here>")
    shell.reads(b"# ")
    shell.types(b"exit 3\n")
    assert shell.ends() == 3


@pytest.mark.parametrize(
    ("number", "ignored"), [(signal.SIGTERM, "HUP TERM"), (signal.SIGHUP, "INT"), (signal.SIGKILL, "INT")]
)
def test_the_terminal_is_put_back_when_the_command_is_killed(lab, on_terminal, number, ignored):
    """And the program ends, one that will not some seconds later."""
    mark = f"{time.monotonic_ns()}"
    waits = ["sh", "-c", f"trap '' {ignored}; echo ready; while :; do sleep 0.1; done # {mark}"]
    caller = on_terminal(*_TESTBED, "exec", lab, "h1", "--", *waits)
    caller.reads(b"ready")
    caller.process.send_signal(number)
    assert caller.ends() == -number
    until = time.monotonic() + 30
    while not caller.is_as_before() or _runs(mark):  # what is killed tells nobody that it ends
        assert time.monotonic() < until, (caller.is_as_before(), _runs(mark))
        time.sleep(0.05)


def _runs(mark: str) -> bool:
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            if mark.encode() in entry.read_bytes():
                return True
    return False


def test_what_is_no_terminal_is_passed_as_it_is(lab, on_terminal, tmp_path):
    """Bytes of all kinds, also where the program has a terminal for what it says of errors."""
    (tmp_path / "in").write_bytes(data := bytes(range(256)) * 4096)
    exec_ = " ".join([*_TESTBED, "exec", lab, "h1", "--", "sh", "-c", "'cat; tty >&2; tty <&2 >&2'"])
    caller = on_terminal("sh", "-c", f"cat {tmp_path}/in | {exec_} | cat >{tmp_path}/out")
    caller.reads(b"not a tty")
    caller.reads(b"/dev/pts/")
    assert caller.ends() == 0
    assert (tmp_path / "out").read_bytes() == data
    done = subprocess.run([*_TESTBED, "exec", lab, "h1", "--", "cat"], input=data, capture_output=True, check=True)
    assert done.stdout == data


def test_all_that_a_program_printed_is_seen_before_the_end(lab, on_terminal):
    caller = on_terminal(*_TESTBED, "exec", lab, "h1", "--", "sh", "-c", "seq 30000; echo end")
    caller.reads(b"\r\n29999\r\n30000\r\nend\r\n")
    assert caller.ends() == 0


def test_a_command_in_the_background_leaves_the_terminal_alone(lab, on_terminal):
    exec_ = " ".join([*_TESTBED, "exec", lab, "h1", "--", "sh", "-c", "'echo ready; exec sleep 1'"])
    caller = on_terminal("bash", "-m", "-c", f"{exec_} & wait; echo done")
    caller.reads(b"ready")
    assert caller.is_as_before()
    caller.reads(b"done")
    assert (caller.ends(), caller.is_as_before()) == (0, True)
