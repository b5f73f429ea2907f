"""Ctrl-C in every command, at any moment from the one on at which it has taken the signal over."""

from __future__ import annotations

import shutil
import signal
import time
from subprocess import Popen, TimeoutExpired
from typing import TYPE_CHECKING

from benchmarks.interrupts import wait_for_handlers
from testbed.base.errors import EXIT_INTERRUPTED
from testbed.engines.lab.control import launch

if TYPE_CHECKING:
    from benchmarks.chaos import Place

HEARD = 10.0  # seconds within which a command has ended, and so have those that it started
_NEVER = 60.0
_AT_ONCE = 2.0  # seconds within which a command that has done its work ends by itself
_LONGEST = 6.0  # seconds after which nothing new happens in a command
_WHOLE = 120.0
_VERDICTS = {0, 3}  # exit codes of work that is done, which a busy machine may turn into each other
_REFUSED = 2
_LARGE = (
    "topology: {kind: random, switches: 1200, degree: 8, seed: 3}\nrouting: {kind: updown}\n"
    "assignment: {kind: openflow}\n"
)
# What stands in braces is made before: `run` and `again`, folders of results; `saved`, configurations; `lab`, the name
# of a lab that stands; `file`, the scenario of such a lab.
COMMANDS: tuple[tuple[str, ...], ...] = (
    ("list",), ("schema",), ("init", "hall"), ("doctor",), ("status",), ("exercise", "list"), ("plan", "torus8x8"),
    ("plan", "{large}"), ("verify", "deadlock-torus8x8"), ("analyse", "torus8x8", "mesh4x4"),
    ("explain", "torus4x4", "h1", "h16"), ("segments", "sr-irregular16"), ("power", "torus4x4-3links"),
    ("simulate", "torus8x8", "--clocks", "100000"), ("run", "torus4x4", "--engine", "simulate"), ("sweep", "{sweep}"),
    ("compare", "--each", "{run}", "{again}"), ("report", "{run}", "--output", "page.html"), ("paper", "--quick"),
    ("export", "torus4x4", "--dialect", "linux-bridge-iproute2", "--output", "written"), ("audit", "{saved}"),
    ("check", "{saved}", "--against", "torus4x4"), ("storm", "--seconds", "2"), ("regulate", "ring4"),
    ("run", "{file}", "--results", "results"), ("up", "{file}"), ("load", "{lab}", "ping"), ("status", "{lab}"),
    ("exec", "{lab}", "h1", "--", "sleep", "20"), ("capture", "{lab}", "s1-s2", "--seconds", "5"), ("watch", "{lab}"),
    ("live", "{lab}"), ("link", "{lab}", "s1-s2", "--rate", "100M"), ("down", "{lab}"),
)  # fmt: skip


class Interrupted:
    """Tries of it; how long a command takes is found out when it comes first.

    Attributes:
        heard: seconds from each Ctrl-C to the end of the command.
        late: Ctrl-C that came when the command had done its work.
    """

    def __init__(self) -> None:
        self.heard: list[float] = []
        self.late = 0
        self._whole: dict[tuple[str, ...], tuple[float, int]] = {}  # seconds and exit code of a command left alone
        self._made: dict[str, str] = {}

    def __call__(self, place: Place) -> tuple[str, list[str]]:
        """Interrupt one command."""
        command = place.chance.choice(COMMANDS)
        self._make(place)
        if command not in self._whole:
            self._whole[command] = self._once(place, command)  # one that is refused would try nothing
        if "{lab}" in command:
            self._stand(place)
        program = self._start(place, command)
        wait_for_handlers(program)
        whole, code = self._whole[command]
        delay = place.moment(min(whole, _LONGEST))
        done = program.poll() is not None
        began = time.monotonic()
        program.send_signal(signal.SIGINT)
        said, wrong = self._ended(program)
        seconds = time.monotonic() - began
        # Some commands last until Ctrl-C. Where a program takes the place of `exec`, it is that which dies of it.
        expected = {"live": 0, "watch": 0, "capture": 0, "exec": -signal.SIGINT}.get(command[0])
        if program.returncode not in (EXIT_INTERRUPTED, expected):
            done = done or seconds < _AT_ONCE
            if not done or program.returncode not in {code, *_VERDICTS}:
                wrong.append(f"exit code {program.returncode}: {said.strip()[-200:]}")
        if not done:
            self.heard.append(seconds)
            wrong += [f"it was heard after {seconds:.1f} s"] * (seconds > HEARD)
        self.late += done
        self._end(place)
        return f"{' '.join(command)} after {delay:.2f} s, over in {seconds:.2f} s", wrong

    def told(self) -> str:
        """What came of all of them."""
        if not self.heard:
            return ""
        ordered = sorted(self.heard)
        return (
            f"Ctrl-C: {len(ordered)} heard, {self.late} after the work was done; {ordered[len(ordered) // 2]:.2f} s to "
            f"the end (median), 99 % {ordered[int(0.99 * (len(ordered) - 1))]:.2f} s, at most {ordered[-1]:.2f} s\n"
        )

    def _ended(self, program: Popen[str]) -> tuple[str, list[str]]:
        """What it said, and what is wrong with that and with what it leaves."""
        try:
            said = program.communicate(timeout=_NEVER)[1]
        except TimeoutExpired:
            program.kill()
            return program.communicate()[1], [f"it was not heard in {_NEVER:g} s"]
        wrong = ["a traceback: " + said.strip().splitlines()[-1]] if "Traceback" in said else []
        if program.returncode == EXIT_INTERRUPTED:  # a lab of `up` may have stood already
            left = [lab.init for lab in launch.labs() if lab.owner == program.pid]
            wrong += [f"process {init} of its lab is still there" for init in left]
        return said, wrong

    def _start(self, place: Place, command: tuple[str, ...]) -> Popen[str]:
        words = [word.format(**self._made) if word.startswith("{") else word for word in command]
        return place.start(*words)

    def _once(self, place: Place, command: tuple[str, ...]) -> tuple[float, int]:
        """Seconds that a command takes, with its machine code on disk, and its exit code."""
        if "{lab}" in command:
            self._stand(place)
        began = time.monotonic()
        program = self._start(place, command)
        try:
            said = program.communicate(timeout=_LONGEST if command[0] in ("watch", "live") else _WHOLE)[1]
        except TimeoutExpired:
            program.send_signal(signal.SIGINT)
            said = program.communicate()[1]
        seconds = time.monotonic() - began
        self._end(place)
        if program.returncode == _REFUSED and said.strip():
            raise SystemExit(f"{' '.join(command)} is refused, so there is nothing to interrupt: {said.strip()[-300:]}")
        return seconds, program.returncode

    def _make(self, place: Place) -> None:
        if self._made:
            return
        folder = place.folder
        (folder / "large.yaml").write_text(_LARGE)
        for words in (
            ("run", "./sim.yaml", "--results", "made"),
            ("run", "./sim.yaml", "--results", "made"),
            ("export", "torus4x4", "--dialect", "linux-bridge-iproute2", "--output", "saved"),
        ):
            place.start(*words).communicate()
        run, again = (str(file.parent) for file in sorted((folder / "made").glob("*/manifest.json")))
        self._made = {
            "run": run, "again": again, "saved": str(folder / "saved"), "large": "./large.yaml",
            "sweep": "./sweep.yaml", "file": str(place.file), "lab": place.file.stem,
        }  # fmt: skip

    def _stand(self, place: Place) -> None:
        place.start("up", str(place.file)).communicate()

    def _end(self, place: Place) -> None:
        for written in ("hall", "written"):
            shutil.rmtree(place.folder / written, ignore_errors=True)
        for captured in place.folder.glob("*.pcapng"):
            captured.unlink()
        for lab in list(launch.labs()):
            if lab.scenario == place.file.stem:
                place.start("down", place.file.stem).communicate()
