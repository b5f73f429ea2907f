"""Commands of the documentation that take minutes, or more machines, are run: by `make docs-run`, and only then.

Each is run as it is shown, as a program of its own in a prepared folder; what takes hours, until its first result is
there. On a machine that others use, too, the verdict may be *warn*; one that is too slow for a lab is a reason to skip.
"""

from __future__ import annotations

import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.machines import two_machines
from tests.shown_commands import ROOT, Left, Planned, every, how, words_of
from tests.shown_others import every_other
from tests.unit.project.test_docs_run import lay_out

pytestmark = [pytest.mark.minutes, pytest.mark.alone, pytest.mark.timeout(1800)]
_LIMIT = 1700.0
_PROGRAM = (sys.executable, "-m", "testbed")
_USABLE = (0, 3)
_INTERRUPTED = (130,)


@dataclass(frozen=True, slots=True)
class Whole:
    """How one is run."""

    prints: str = ""  # what its output holds
    more: str = ""  # behind the command, makes it shorter
    until: str = ""  # ended by Ctrl-C once it has said that; a page that it serves is fetched before
    codes: tuple[int, ...] = _USABLE
    beside: str = ""  # a scheduler and a worker; two machines; a bridge
    instead: dict[str, str] = field(default_factory=dict)  # words of the command and what stands in their place


_FLITS = "--loads 0.05 --cycles 2000 --warm-up 500"
_ADDRESS = {"tls://scheduler:8786": "tcp://127.0.0.1:8786"}
_PINGS = "--set lab.dilation=400 --set 'workloads=[{kind: ping, pattern: complement, count: 2}]'"
RULES = [
    (r"run torus8x8 --machines", Whole("verdict", f"{_PINGS} --insecure", beside="machines")),
    (r"run .*--machines", Whole("verdict", beside="machines")),
    (r"simulate .*--cluster local", Whole("accepted", _FLITS)),
    (r"simulate .*--cluster", Whole("accepted", _FLITS, beside="scheduler")),
    (r"sweep fig7-flow-control", Whole("9 pass, 7 warn")),
    (r"sweep .*--cluster", Whole(until="1 of 24 runs done", codes=_INTERRUPTED, beside="scheduler", instead=_ADDRESS)),
    (r"paper .*--cluster", Whole("k11-table3", "--only k11-table3", beside="scheduler", instead=_ADDRESS)),
    (r"paper ", Whole("m07")),
    (r"sweep ", Whole(until="run 2 of", codes=_INTERRUPTED)),
    (r"vm box", Whole("boxes/", instead={"FOLDER": "boxes"})),
    (r"storm --output", Whole("storm.svg")),
    (r"storm", Whole("frames")),
    (r"up .*--live", Whole(until="http://127.0.0.1")),
    (r"live results", Whole(until="http://127.0.0.1")),
    (r"run .*--live", Whole("http://127.0.0.1")),
    (r"check --bridge", Whole("s3", beside="bridge")),
    (r"run ", Whole("verdict")),
    (r"regulate ", Whole("results/")),
]  # fmt: skip


def shown() -> list[str]:
    """Commands that no other test runs as they are shown."""
    return [command for command in every() if isinstance(how(command), Left | Planned)]


def way_of(command: str) -> Whole:
    """How it is run."""
    return next(way for rule, way in RULES if re.match(rule, command))


def test_each_rule_has_its_command():
    ways = [way_of(command) for command in shown()]
    assert [rule for rule, way in RULES if way not in ways] == []


# Targets of make and scripts, run in this clone: what is added to ARGS, or behind the command. Others measure for
# hours, build images or fetch from the network: tests/shown_others.py looks at their words.
IN_A_CLONE = {
    r"make": "",
    r"make (setup|npb|check)": "",
    r"scripts/setup (dev|runtime)": "",
    r"make test(-fast)?\b.*": "--collect-only -q",
    r"make explore": "",
    r"make mutants( ARGS=\"--only.*)?": "--count 2 --only testbed/fabric/vlans",
    r"make fuzz.*": "--count 200 --frames 50",
    r"make chaos.*": "--tries 2",
    r"make soak.*": "--seconds 10 --size 2",
    r"make paper.*": "--only k11-table3",
    r"benchmarks/certificates.py .*": "--count 20",
}


def in_a_clone() -> dict[str, str]:
    """Commands that are run there, with what makes them shorter."""
    found = {}
    for command in every_other():
        more = next((more for rule, more in IN_A_CLONE.items() if re.fullmatch(rule, command)), None)
        if more is not None:
            found[command] = more
    return found


def test_each_rule_of_a_clone_has_its_command():
    assert [rule for rule in IN_A_CLONE if not any(re.fullmatch(rule, one) for one in in_a_clone())] == []


@pytest.mark.parametrize("command", in_a_clone())
def test_command_of_a_clone_does_what_it_says(command, monkeypatch, untouched):
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("TESTBED_EXPLORE_SECONDS", "5")
    words, more = shlex.split(command), in_a_clone()[command]
    if words[0] == "make" and more:
        given = next((word for word in words if word.startswith("ARGS=")), "ARGS=")
        words = [*(word for word in words if word != given), f"{given} {more}"]
    else:
        words += shlex.split(more)
    if words[0] not in ("make", "scripts/setup"):
        words.insert(0, sys.executable)
    code, text = done(words, "")
    assert code == 0, text
    assert text or "setup" in command


@pytest.mark.parametrize("command", shown())
def test_command_does_what_it_says(command, tmp_path, monkeypatch, untouched):
    monkeypatch.chdir(tmp_path)
    lay_out()
    shutil.copy("line.yaml", "mine.yaml")
    way = way_of(command)
    if "results/<" in command:
        short = "workloads=[{kind: iperf3, protocol: udp, seconds: 2, omit: 1, repeats: 1}]"
        subprocess.run([*_PROGRAM, "run", "ring4", "--set", "lab.dilation=100", "--set", short], check=True)
        command = re.sub(r"results/<[^>]*>", str(next(Path("results").iterdir())), command)
    for word, other in way.instead.items():
        command = command.replace(word, other)
    with ExitStack() as ends:
        if way.beside == "machines":
            pair = ends.enter_context(two_machines(tmp_path))
            command = re.sub(r"t\w\w://\S+", pair.scheduler, command)
            before = pair.machines[0].inside("env", f"--chdir={tmp_path}")
        else:
            before = ends.enter_context(BESIDE[way.beside](tmp_path)) if way.beside else []
        code, text = done([*before, *_PROGRAM, *words_of(command), *shlex.split(way.more)], way.until)
    if command.startswith("up "):
        subprocess.run([*_PROGRAM, "down", command.split()[1]], check=True)
    if code == 1 and "verdict: invalid" in text:  # which is right, and nothing is known of its figures
        pytest.skip(f"this machine is too busy: {text.partition('verdict: invalid')[2].splitlines()[1].strip()}")
    assert code in way.codes, text
    assert way.prints in text, text
    assert "Traceback" not in text


def done(argv: list[str], until: str) -> tuple[int, str]:
    """Exit code and all that a program has said; ended by Ctrl-C once it has said some words."""
    with subprocess.Popen(
        argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as started:
        assert started.stdout is not None
        text = ""
        try:
            while until and until not in text:
                line = started.stdout.readline()
                assert line, text
                text += line
            if until.startswith("http://"):
                address = text[text.index(until) :].split()[0]
                with urllib.request.urlopen(address, timeout=20) as page:
                    assert b"<title>" in page.read()
            if until:
                started.send_signal(signal.SIGINT)
            rest, _ = started.communicate(timeout=_LIMIT)
        finally:
            started.kill()
    return started.returncode, text + rest


@contextmanager
def network() -> Iterator[list[str]]:
    """A network namespace with a loopback interface; the words before a command that runs there."""
    with subprocess.Popen(["unshare", "--net", "sleep", "infinity"]) as holder:
        try:
            inside = ["nsenter", f"--net=/proc/{holder.pid}/ns/net"]
            while subprocess.run(
                [*inside, "cat", "/proc/net/dev"], capture_output=True, text=True, check=True
            ).stdout == (Path("/proc/net/dev").read_text(encoding="utf-8")):
                time.sleep(0.05)
            subprocess.run([*inside, "ip", "link", "set", "lo", "up"], check=True)
            yield inside
        finally:
            holder.kill()


@contextmanager
def scheduler(folder: Path) -> Iterator[list[str]]:
    """A scheduler and a worker that runs labs, by the commands of docs/scale.md, in a network of their own."""
    dask = [str(Path(sys.executable).with_name("dask"))]
    commands = (
        [*dask, "scheduler", "--host", "127.0.0.1"],
        [*dask, "worker", "tcp://127.0.0.1:8786", "--nthreads", "1", "--resources", "lab=1"],
    )
    with network() as inside, ExitStack() as ends:
        for command in commands:
            log = ends.enter_context((folder / f"{command[1]}.log").open("w"))
            started = subprocess.Popen([*inside, *command], cwd=folder, stdout=log, stderr=log)
            ends.enter_context(started)
            ends.callback(started.terminate)
        program = "from distributed import Client; Client('tcp://127.0.0.1:8786', timeout=60).wait_for_workers(1, 60)"
        subprocess.run([*inside, sys.executable, "-c", program], check=True)
        yield inside


@contextmanager
def bridge(folder: Path) -> Iterator[list[str]]:
    """Switch s3 of torus4x4 as a bridge, by the script that `testbed export` writes."""
    words = ("export", "torus4x4", "-d", "linux-bridge-iproute2", "-o", str(folder / "bridges"))
    subprocess.run([*_PROGRAM, *words], check=True, stdout=subprocess.DEVNULL)
    script = (folder / "bridges/s3.sh").read_text(encoding="utf-8")
    with network() as inside:
        for port in sorted({*re.findall(r"set dev (swp\d+) master", script)}):
            subprocess.run([*inside, "ip", "link", "add", port, "type", "veth", "peer", f"{port}-end"], check=True)
        tried = [*inside, "ip", "link", "add", "tried", "type", "bridge", "vlan_filtering", "1"]
        if subprocess.run(tried, capture_output=True, check=False).returncode:
            pytest.skip("this kernel's bridges do not filter VLANs; tests/vm has such a check in the virtual machine")
        subprocess.run([*inside, "ip", "link", "delete", "tried"], check=True)
        subprocess.run([*inside, "sh", "-s"], input=script, text=True, check=True)
        yield inside


BESIDE = {"scheduler": scheduler, "bridge": bridge}
