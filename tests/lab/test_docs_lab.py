"""Commands of the documentation that need a lab: run in small ones, in the order in which pages have them.

The records of labs are in a folder of the test's own, so that a lab has the name that pages give it and the name may be
left out, whatever other labs this machine has.
"""

from __future__ import annotations

import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from testbed.engines.lab.control import registry
from tests.shown_commands import TUTORIALS, Lab, every, how, words_of
from tests.unit.ui.test_cli_surface import typed

# Brings the program its records; for commands that go on until Ctrl-C, or put another program in their own place.
_PROGRAM = (
    "import sys; from pathlib import Path; from testbed.engines.lab.control import registry; "
    "from testbed.ui import cli; "
    "registry.FOLDER = Path(sys.argv.pop(1)); cli.main()"
)
_SMALL = (
    "--set lab.dilation=200 --set 'workloads=[{kind: ping, count: 1}, "
    "{kind: iperf3, protocol: udp, seconds: 2, omit: 1, repeats: 1}]'"
)
_NETEM = "this kernel has no sch_netem"
_SHORT = "seconds=2 omit=1 repeats=1"


@dataclass(frozen=True, slots=True)
class Typed:
    """A command as it is shown."""

    command: str
    more: str = ""  # makes it shorter
    prints: str = ""  # what its output holds
    until: str = ""  # ended by Ctrl-C once it has printed that
    keys: str = ""  # typed into it
    meanwhile: str = ""  # runs in a host meanwhile
    makes: str = ""  # a file that is there afterwards
    lacks: str = ""  # what it says, with exit code 2, on a kernel that cannot do it


# What pages do in one lab after another; the last ends the lab.
LABS: dict[str, list[Typed]] = {
    "running": [
        Typed("up torus4x4", _SMALL, prints="torus4x4 is running"),
        Typed("exec torus4x4 h1 -- ping -c 3 h16", prints="3 received"),
        Typed("link torus4x4 s3-s4 --rate 100M", prints="100 Mbit/s"),
        Typed("link s3-s4 --loss 1% --delay 20us", prints="1 %", lacks=_NETEM),
        Typed("link s3-s4 --reset"),
        Typed("link s3-s4", prints="1 Gbit/s"),
        Typed("capture torus4x4 s3-s4 --seconds 10", "--count 2", meanwhile="h3 h4", makes="torus4x4-s3-s4.pcapng"),
        Typed("capture h5 --filter 'icmp' --count 20", "--count 2", meanwhile="h5 h6", makes="torus4x4-h5.pcapng"),
        Typed("capture s3-s4 --file -", "--count 2", meanwhile="h3 h4"),
        Typed("load torus4x4", prints="verdict"),
        Typed("load torus4x4 iperf3 protocol=udp pattern=transpose", _SHORT, prints="iperf3 udp transpose"),
        Typed("load ping count=3 rr protocol=tcp pattern=neighbour", "seconds=1 repeats=1", prints="rr"),
        Typed("power torus4x4-3links --matrix results/<folder> --output power.svg", makes="power.svg"),
        Typed("simulate torus4x4 --trace results/<folder of a run> --trace-load 2", prints="completion time"),
        Typed("simulate torus4x4 --matrix telemetry-2.npz", prints="completion time"),
        Typed("watch torus4x4", prints="64 directions of links"),
        Typed("live torus4x4", until="http://127.0.0.1"),
        Typed("down torus4x4", prints="ended"),
    ],
    "commands": [
        Typed("up mesh4x4", _SMALL),
        Typed("load mesh4x4 iperf3 protocol=udp pattern=transpose", _SHORT, prints="verdict"),
        Typed("watch mesh4x4", prints="48 directions of links"),
        Typed("shell mesh4x4", keys="h1 ping -c 1 h16\nexit\n", prints="1 received"),
        Typed("exec mesh4x4 h1 -- ping -c 3 h16", prints="3 received"),
        Typed("capture mesh4x4 s3-s4", "--count 2", meanwhile="h3 h4", makes="mesh4x4-s3-s4.pcapng"),
        Typed("link mesh4x4 s3-s4 --rate 100M --loss 1%", prints="100 Mbit/s", lacks=_NETEM),
        Typed("switch mesh4x4 s3", prints="s3: running"),
        Typed("live mesh4x4", until="http://127.0.0.1"),
        Typed("status", prints="mesh4x4"),
        Typed("down", prints="ended"),
    ],
    "failures": [
        Typed(
            "up torus4x4 --set lab.controller=segment_manager --set lab.datapath=userspace --set lab.switch_daemons=16",
            _SMALL,
        ),
        Typed("switch torus4x4 s3 --kill"),
        Typed("switch torus4x4 s3 --start"),
        Typed("link s3-s4 --down"),
        Typed("down", prints="ended"),
    ],
    "joined": [
        Typed("up torus4x4 --set lab.controller=segment_manager", _SMALL),
        Typed("controller torus4x4", prints="32 links by LLDP, which is what the plan has"),
        Typed("down", prints="ended"),
    ],
    "managers": [
        Typed("up torus4x4 --set lab.controller=segment_manager --set lab.managers=2", _SMALL),
        Typed("controller torus4x4 --kill", prints="is master"),
        Typed("controller torus4x4 --start", prints="is master"),
        Typed("down", prints="ended"),
    ],
    "power": [
        Typed(
            "up torus4x4 --set routing=updown --set routing.selection=tree --set assignment.kind=fixed "
            "--set lab.controller=switch_tagged",
            _SMALL,
        ),
        Typed("regulate torus4x4 --running --seconds 10", "--seconds 1", meanwhile="h1 h2", prints="off"),
        Typed("regulate torus4x4 --running --all-on", prints="on"),
        Typed("down", prints="ended"),
    ],
    "first measurement": [
        Typed("up line.yaml", prints="line is running"),
        Typed("exec h1 -- ping -c 3 h4", prints="3 received"),
        Typed("link s2-s3 --rate 100M", prints="100 Mbit/s"),
        Typed("down", prints="ended"),
    ],
}


def test_each_command_of_a_lab_is_run():
    shown = {command for command in every() if isinstance(how(command), Lab)}
    run = {one.command for steps in LABS.values() for one in steps}
    assert shown - run == set()
    assert run - shown == set()


@contextmanager
def pings(records: Path, hosts: str) -> Iterator[None]:
    """One host pings another while the block runs."""
    if not hosts:
        yield
        return
    source, destination = hosts.split()
    argv = ["exec", source, "--", "ping", "-i", "0.1", "-w", "60", destination]
    with subprocess.Popen([sys.executable, "-c", _PROGRAM, str(records), *argv], stdout=subprocess.PIPE) as ping:
        assert ping.stdout is not None
        while b"bytes from" not in ping.stdout.readline():
            assert ping.poll() is None
        try:
            yield
        finally:
            ping.send_signal(signal.SIGINT)
            ping.stdout.read()


def done(one: Typed, words: list[str], records: Path) -> tuple[int, str]:
    """Exit code and output of a command, as a program of its own where it must be one."""
    if words[0] not in ("exec", "shell", "watch", "live", "capture"):
        code, out, said = typed(*words)
        return code, out + said
    argv = [sys.executable, "-c", _PROGRAM, str(records), *words]
    pipe = subprocess.PIPE
    with subprocess.Popen(argv, stdin=pipe, stdout=pipe, stderr=subprocess.STDOUT) as started:
        assert started.stdout is not None
        if not one.until:
            text = started.communicate(one.keys.encode(), timeout=60)[0]
            return started.returncode, text.decode(errors="replace")
        begun = b""
        while one.until.encode() not in begun:
            line = started.stdout.readline()
            assert line, begun
            begun += line
        started.send_signal(signal.SIGINT)
        return started.wait(30), (begun + started.stdout.read()).decode()


_MEASURE = {"running": 1, "commands": 0}  # pages with commands that fail where the machine is too busy


@pytest.mark.long
@pytest.mark.parametrize(
    "page",
    [pytest.param(page, marks=pytest.mark.quiet(seat=_MEASURE[page])) if page in _MEASURE else page for page in LABS],
)
def test_commands_of_labs_do_what_they_say(page, tmp_path, untouched, monkeypatch):
    monkeypatch.chdir(tmp_path)
    records = tmp_path / "records"
    monkeypatch.setattr(registry, "FOLDER", records)
    for file in TUTORIALS:
        for name, text in re.findall(r'^```yaml title="([^"]+)"\n(.*?)^```', file.read_text("utf-8"), re.M | re.S):
            Path(name).write_text(text, encoding="utf-8")
    wrong = []
    try:
        for one in LABS[page]:
            command = one.command
            if "results/" in command or "telemetry" in command:
                first = min(Path("results").glob("*-torus4x4-*"))
                command = re.sub(r"results/<[^>]*>", str(first), command)
                command = command.replace("telemetry-2.npz", str(first / "telemetry-2.npz"))
            words = [*words_of(command), *shlex.split(one.more)]
            with pings(records, one.meanwhile):
                code, text = done(one, words, records)
            if code == 2 and one.lacks and one.lacks in text:
                continue
            if code or one.prints not in text or (one.makes and not Path(one.makes).stat().st_size):
                wrong.append(f"{one.command}: exit code {code}: {text[-700:]}")
                assert not command.startswith("up "), text
    finally:
        for entry in registry.running():
            typed("down", entry.name)
    assert not wrong, "\n".join(wrong)
