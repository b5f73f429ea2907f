"""What commands show on a terminal of 80 columns, whole: no line is cut or broken inside a word, no label wrapped.

A file each in tests/golden/terminal; UPDATE_GOLDEN=1 writes them. What depends on the machine is only measured.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from testbed.ui.cli.app import PANELS
from tests.unit.ui.test_cli_surface import typed

FOLDER = Path(__file__).parent / "terminal"
WIDTH = 80
_SIMULATED = (
    "topology: {kind: ring, switches: 4}\nrouting: updown\nengine: simulate\n"
    "simulator: {duration: 2, warm_up: 0.5}\n"
    "workloads: [{kind: iperf3, protocol: udp, repeats: 2}, {kind: iperf3, protocol: tcp, repeats: 1}]\n"
)
# What stands for itself, name → words; in an empty folder with mine.yaml in it.
_COMMANDS = {
    "plan": ("plan", "torus4x4"),
    "plan-local-vlans": ("plan", "mesh4x4-renamed"),
    "plan-failures": ("plan", "torus4x4-failures"),
    "verify": ("verify", "torus4x4", "deadlock-torus8x8"),
    "analyse": ("analyse", "mesh4x4", "torus4x4", "mesh4x4-renamed"),
    "analyse-pattern": ("analyse", "torus4x4", "--pattern", "transpose", "--pattern", "neighbour"),
    "explain": ("explain", "torus8x8", "h9", "h64"),
    "segments": ("segments", "sr-irregular16"),
    "power": ("power", "torus4x4-3links"),
    "power-slower": ("power", "torus4x4-3links", "--pattern", "neighbour", "--slower"),
    "simulate-flit": ("simulate", "ring4", "--loads", "0.1,0.9", "--cycles", "3000", "--warm-up", "500",
                      "--results", "out"),
    "simulate-packet": ("simulate", "ring4", "--level", "packet", "--loads", "0.1,0.9", "--duration", "2",
                        "--warm-up", "0.5", "--results", "out"),
    "simulate-drops": ("simulate", "ring4", "--level", "packet", "--loads", "0.9", "--duration", "2", "--warm-up",
                       "0.5", "--flow-control", "none", "--results", "out"),
    "simulate-replay": ("simulate", "ring4", "--pattern", "all_to_all", "--message", "2000", "--results", "out"),
    "list": ("list",),
    "run": ("run", "mine.yaml", "--results", "out"),
    "export": ("export", "ring4", "-d", "powerconnect-6200", "-o", "saved"),
    "export-list": ("export", "-d", "list"),
    "init": ("init", "hall"),
    "exercise-list": ("exercise", "list"),
    "paper": ("paper", "--only", "k11-table3", "--results", "out"),
}  # fmt: skip
# What is not compared: it depends on the machine, or says of every command what stands in its own code.
_MEASURED = {"doctor": ("doctor",), **{name: (name, "--help") for names in PANELS.values() for name in names}}


def shown(words: tuple[str, ...], folder: Path) -> str:
    (folder / "mine.yaml").write_text(_SIMULATED)
    _, out, _ = typed(*words, terminal=True, columns=str(WIDTH))
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", out)
    text = re.sub(r"\d{8}-\d{6}-", "DATE-", text)
    return "\n".join(line.rstrip() for line in text.splitlines()).strip("\n") + "\n"


def faults(text: str) -> list[str]:
    """Lines that are too long for the terminal, or show that something was cut; names of files stay whole."""
    found = []
    for line in text.splitlines():
        longest = max(map(len, line.split()), default=0)
        if len(line) > WIDTH and longest < WIDTH / 3:
            found.append(f"too long: {line}")
        if re.search(r"\w…(\s|$)", line):
            found.append(f"cut: {line}")
    return found


@pytest.mark.slow
@pytest.mark.parametrize("name", _COMMANDS)
def test_what_a_terminal_shows(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = shown(_COMMANDS[name], tmp_path)
    file = FOLDER / f"{name}.txt"
    if os.environ.get("UPDATE_GOLDEN") == "1":
        file.write_text(text, encoding="utf-8")
    assert text == file.read_text(encoding="utf-8")
    assert faults(text) == []


@pytest.mark.parametrize("name", _MEASURED)
def test_what_is_not_compared_fits_as_well(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert faults(shown(_MEASURED[name], tmp_path)) == []


def test_configurations_and_what_is_found_in_them(tmp_path, monkeypatch):
    """Of a folder that another command has to write first."""
    monkeypatch.chdir(tmp_path)
    typed("export", "ring4", "-d", "linux-bridge-iproute2", "-o", str(tmp_path / "saved"))
    (file,) = (tmp_path / "saved").glob("s2*")
    lines = file.read_text().splitlines(keepends=True)
    tagged = next(number for number, line in enumerate(lines) if "vlan add" in line and "pvid" not in line)
    file.write_text("".join(lines[:tagged] + lines[tagged + 1 :]))
    for name, words in (("check", ("check", "saved", "--against", "ring4")), ("audit", ("audit", "saved"))):
        text = shown(words, tmp_path)
        golden = FOLDER / f"{name}.txt"
        if os.environ.get("UPDATE_GOLDEN") == "1":
            golden.write_text(text, encoding="utf-8")
        assert text == golden.read_text(encoding="utf-8")
        assert faults(text) == []


def test_a_cut_or_long_line_is_found():
    assert faults("accept…  laten…\n") == ["cut: accept…  laten…"]
    assert len(faults("word " * 20)) == 1
    assert faults("out/" + "x" * 90 + "\n") == []


def test_every_golden_file_has_its_command():
    assert {file.stem for file in FOLDER.glob("*.txt")} == {*_COMMANDS, "check", "audit"}
