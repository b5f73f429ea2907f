"""Kill, stop and starve the program and what it starts, at random moments, and look at what is left.

    make chaos ARGS="--tries 500 --seed 3"
    make chaos ARGS="--only up --only inside"
    make chaos ARGS="--tries 500 --only ctrl-c"     # in every command
    make chaos ARGS="--tries 500 --seconds 1800"    # as many as there is time for

Whatever happens, there must be no traceback, nothing of a lab may stay, and the next lab must stand.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import secrets
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from benchmarks.chaos_interrupts import Interrupted
from benchmarks.command import ROOT
from testbed.engines.lab.control import launch, registry

_SCENARIO = (
    "topology: {kind: mesh, sizes: [2, 2]}\nlab: {dilation: 50}\n"
    "workloads: [{kind: ping, count: 5, pattern: neighbour}, {kind: mpi, job: fabric_bench, "
    'args: [--tests, "barrier,pingpong", --sizes, "1", --repeats, "3"]}]\n'
)
_ENDING = (signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
_GONE = 20.0  # seconds after which what is still there counts as left behind
# In each traceback of the program from main() on.
_MAIN = re.compile(r'/testbed/ui/cli/__init__\.py", line \d+, in main$', re.MULTILINE)
_LIMIT = 240.0  # seconds after which a program counts as one that does not end
_WITHOUT_LAB: tuple[tuple[str, ...], ...] = (
    ("plan", "torus8x8"), ("simulate", "torus4x4", "--clocks", "4000"), ("verify", "deadlock-torus8x8"),
    ("run", "torus4x4", "--engine", "simulate"), ("sweep", "./sweep.yaml"),
)  # fmt: skip
_SWEEP = "scenarios: [./sim.yaml]\nset: {lab.seed: [1, 2, 3]}\n"
_SIMULATED = (
    "topology: {kind: mesh, sizes: [2, 2]}\nengine: simulate\nsimulator: {duration: 20, warm_up: 5}\n"
    "workloads: [{kind: iperf3, protocol: udp, pattern: neighbour}]\n"
)


@dataclass(frozen=True)
class Place:
    """Where it happens.

    Attributes:
        folder: to work in.
        file: scenario with a lab; its name is that of no other lab.
        whole: seconds that a lab takes to stand.
        chance: decides all.
    """

    folder: Path
    file: Path
    whole: float
    chance: random.Random

    def start(self, *arguments: str, before: Sequence[str] = ()) -> subprocess.Popen[str]:
        """Start the program; what it says is kept."""
        return subprocess.Popen(
            # A shell that starts this beside others takes Ctrl-C from it.
            ["env", "--default-signal=INT,TERM,HUP", *before, sys.executable, "-m", "testbed", *arguments],
            cwd=self.folder, stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": str(ROOT)},
        )  # fmt: skip

    def run(self) -> tuple[str, ...]:
        """Words of a run in a lab, whose loads take some seconds."""
        return ("run", str(self.file), "--results", str(self.folder / "results"))

    def moment(self, longest: float) -> float:
        """Wait up to so many seconds; returns how long."""
        delay = self.chance.uniform(0, longest)
        time.sleep(delay)
        return delay


def main() -> None:
    """Let things happen, and fail where anything is left."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tries", type=int, default=20)
    parser.add_argument("--seed", type=int, default=secrets.randbelow(1 << 32))
    parser.add_argument("--seconds", type=float, default=1e9, help="no try begins after these")
    parser.add_argument("--only", action="append", choices=list(KINDS), help="what happens; may be given again")
    asked = parser.parse_args()
    sys.stdout.write(f"the seed is {asked.seed}; the same moments again: --seed {asked.seed}\n")
    chance = random.Random(asked.seed)
    with tempfile.TemporaryDirectory(prefix="chaos-", dir="/var/tmp") as name:
        file = Path(name) / f"chaos-{os.getpid()}.yaml"
        file.write_text(_SCENARIO)
        (Path(name) / "sim.yaml").write_text(_SIMULATED)
        (Path(name) / "sweep.yaml").write_text(_SWEEP)
        place = Place(Path(name), file, _stands(Place(Path(name), file, 0.0, chance)), chance)
        bad: list[str] = []
        tried: Counter[str] = Counter()
        slowest = 0.0
        began = time.monotonic()
        for number in range(asked.tries):
            if time.monotonic() - began > asked.seconds:
                break
            kind = chance.choice(asked.only or list(KINDS))
            tried[kind] += 1
            what, wrong = KINDS[kind](place)
            seconds, left = _wait_until_gone(file.stem)
            slowest = max(slowest, seconds)
            bad += [f"try {number}, {kind}, {what}: {one}" for one in [*wrong, *left]]
            sys.stderr.write(f"try {number}, {kind}, {what}: {'; '.join([*wrong, *left]) or 'nothing left'}\n")
        _stands(place)
    for line in bad:
        sys.stdout.write(f"{line}\n")
    kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(tried.items()))
    sys.stdout.write(
        f"{_ctrl_c.told()}{tried.total()} tries ({kinds}): {len(bad)} went wrong; all gone in {slowest:.2f} s at most; "
        "the next lab stood\n"
    )
    sys.exit(1 if bad else 0)


def _stands(place: Place) -> float:
    """Seconds that a lab takes to stand; it is ended.

    Raises:
        SystemExit: it does not stand, or does not end.
    """
    started = time.monotonic()
    program = place.start("up", str(place.file))
    said = program.communicate()[1]
    seconds = time.monotonic() - started
    if program.returncode or _finished(place.start("down", place.file.stem))[0]:
        raise SystemExit(f"a lab does not stand or does not end: {said.strip()[-300:]}")
    return seconds


def has_traceback(said: str) -> bool:
    """Whether a program has ended with a traceback; Ctrl-C while Python itself starts, before main(), is Python's."""
    before_main = said.rstrip().endswith("KeyboardInterrupt") and not _MAIN.search(said)
    return "Traceback" in said and not before_main


def _finished(program: subprocess.Popen[str], limit: float = _LIMIT) -> tuple[int | None, list[str]]:
    """Exit code of a program, None where it does not end, and what is wrong with how it did."""
    try:
        said = program.communicate(timeout=limit)[1]
    except subprocess.TimeoutExpired:
        program.kill()
        program.communicate()
        return None, [f"it did not end in {limit:g} s"]
    wrong = ["a traceback: " + said.strip().splitlines()[-1]] if has_traceback(said) else []
    if program.returncode < 0 and -program.returncode not in (signal.SIGKILL, signal.SIGTERM, signal.SIGINT):
        wrong.append(f"it was killed by signal {-program.returncode}")
    if program.returncode == 1 and not said.strip():
        wrong.append("it failed without a word")
    return program.returncode, wrong


def _up(place: Place) -> tuple[str, list[str]]:
    """`up` is ended while it builds."""
    program, how = place.start("up", str(place.file)), place.chance.choice(_ENDING)
    delay = place.moment(place.whole)
    program.send_signal(how)
    wrong = _finished(program)[1]
    _end(place)
    return f"{how.name} after {delay:.2f} s", wrong


def _run(place: Place) -> tuple[str, list[str]]:
    """`run` is ended while it builds, checks or measures."""
    program, how = place.start(*place.run()), place.chance.choice(_ENDING)
    delay = place.moment(place.whole + 8)
    program.send_signal(how)
    return f"{how.name} after {delay:.2f} s", _finished(program)[1]


def _inside(place: Place) -> tuple[str, list[str]]:
    """One process of the lab that `run` has built is killed or stopped."""
    program, how = place.start(*place.run()), place.chance.choice((signal.SIGKILL, signal.SIGSEGV, signal.SIGSTOP))
    delay = place.moment(place.whole + 8)
    named = "nothing"
    victims = _processes_in(place.file.stem)
    if victims:
        pid, named = place.chance.choice(victims)
        with suppress(ProcessLookupError):
            os.kill(pid, how)
    return f"{how.name} to {named} after {delay:.2f} s", _finished(program)[1]


def _stopped(place: Place) -> tuple[str, list[str]]:
    """`run` is stopped for two seconds and goes on."""
    program = place.start(*place.run())
    delay = place.moment(place.whole + 4)
    program.send_signal(signal.SIGSTOP)
    time.sleep(2)
    program.send_signal(signal.SIGCONT)
    return f"SIGSTOP after {delay:.2f} s", _finished(program)[1]


def _without_lab(place: Place) -> tuple[str, list[str]]:
    """A command that computes is ended."""
    words = place.chance.choice(_WITHOUT_LAB)
    more = ("--results", "results") if words[0] in ("run", "sweep", "simulate") else ()
    program, how = place.start(*words, *more), place.chance.choice(_ENDING)
    delay = place.moment(4.0)
    program.send_signal(how)
    return f"{words[0]}: {how.name} after {delay:.2f} s", _finished(program, 30.0)[1]


def _twins(place: Place) -> tuple[str, list[str]]:
    """Two build a lab of one name at once."""
    both = [place.start("up", str(place.file)) for _ in range(2)]
    ends = [_finished(one) for one in both]
    codes = sorted(code if code is not None else -1 for code, _ in ends)
    wrong = [one for _, said in ends for one in said] + ([] if codes == [0, 2] else [f"exit codes {codes}"])
    _end(place)
    return "two at once", wrong


def _few_files(place: Place) -> tuple[str, list[str]]:
    """There are few file descriptors."""
    most = place.chance.choice((16, 24, 32, 64, 128, 256))
    limited = ("sh", "-c", f'ulimit -n {most}; exec "$@"', "sh")
    return f"{most} descriptors", _finished(place.start(*place.run(), before=limited))[1]


def _full_disk(place: Place) -> tuple[str, list[str]]:
    """Results go to a disk that is nearly full."""
    room = place.chance.choice((4, 16, 64, 256))
    script = f'mkdir -p small && mount -t tmpfs -o size={room}k none small && exec "$@"'
    program = place.start(
        "run", str(place.file), "--results", "small", before=("unshare", "--mount", "sh", "-ec", script, "sh")
    )
    return f"{room} KiB for results", _finished(program)[1]


_ctrl_c = Interrupted()
KINDS: dict[str, Callable[[Place], tuple[str, list[str]]]] = {
    "up": _up, "run": _run, "inside": _inside, "stopped": _stopped, "without a lab": _without_lab, "twins": _twins,
    "few files": _few_files, "full disk": _full_disk, "ctrl-c": _ctrl_c,
}  # fmt: skip


def _end(place: Place) -> None:
    """End the lab where it stood already, and is known."""
    if any(entry.name == place.file.stem for entry in registry.entries()):
        _finished(place.start("down", place.file.stem))


def _processes_in(scenario: str) -> list[tuple[int, str]]:
    """Pid and name of each process in the lab of a scenario, but for those that hold nothing else up."""
    inits = [lab.init for lab in launch.labs() if lab.scenario == scenario]
    if not inits:
        return []
    found = []
    with suppress(OSError):
        inside = Path(f"/proc/{inits[0]}/ns/pid").readlink()
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                with suppress(OSError):
                    if (entry / "ns/pid").readlink() == inside:
                        found.append((int(entry.name), (entry / "comm").read_text().strip()))
    return found


def _wait_until_gone(name: str) -> tuple[float, list[str]]:
    """Seconds until nothing was there any more, and what stayed."""
    started = time.monotonic()
    left = _left(name)
    while left and time.monotonic() - started < _GONE:
        time.sleep(0.01)
        left = _left(name)
    return time.monotonic() - started, left


def _left(name: str) -> list[str]:
    labs = [f"process {lab.init}" for lab in launch.labs() if lab.scenario == name]
    held = [entry.name for entry in registry.entries()] + [claim.name for claim in registry.being_built()]
    return labs + [f"the record of {name}"] * held.count(name)


if __name__ == "__main__":
    main()
