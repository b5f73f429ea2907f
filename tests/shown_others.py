"""Commands of other programs that the documentation shows: what is checked of each, or why nothing is.

Of the rules of OTHERS the first that fits says it. None is run: they install, measure for minutes, or build images.
What is checked is that target, variables, part, options, script and scenario are there.
"""

from __future__ import annotations

import argparse
import functools
import importlib
import re
import shlex
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import typer
from typer.main import get_command

from benchmarks.__main__ import asked
from testbed.devices.read_running import COMMANDS
from testbed.scenario import find_scenario
from testbed.scenario.engines import ENGINES
from tests.shown_commands import PAGES, ROOT, Left, blocks, parts_of, shown_commands, spoken

SHEETS = sorted((ROOT / "exercises").rglob("*.md"))
MORE_PAGES = [ROOT / name for name in ("CONTRIBUTING.md", "SECURITY.md", "mpi_jobs/README.md", "examples/ci/README.md")]
# Pages whose commands nothing looks at, as a whole.
HISTORY = {
    "docs/decisions": "records of decisions, which name commands and are no instructions",
    "CHANGELOG.md": "history: commands as they were called in that version",
}


@dataclass(frozen=True, slots=True)
class Check:
    """Raises where the command, given word by word, names something that is not there."""

    look: Callable[[list[str]], None]


class _ReadError(Exception):
    """The words were read; the program would begin now."""


def read_by(module: str, words: list[str]) -> None:
    """Let a program with argparse read the words as it does when it is called, and do nothing."""
    main = importlib.import_module(module).main
    read = argparse.ArgumentParser.parse_args

    def parse_args(self, *args, **kwargs):
        read(self, *args, **kwargs)
        raise _ReadError

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(argparse.ArgumentParser, "parse_args", parse_args)
        patch.setattr(sys, "argv", [module, *words])
        with pytest.raises(_ReadError):
            main()


@functools.cache
def lines_of(makefile: Path) -> str:
    return makefile.read_text(encoding="utf-8")


def look_make(words: list[str]) -> None:
    """Target and variables of make; where ARGS or TOPO go is looked at, too."""
    folder = ROOT
    if words[1:2] == ["-C"]:
        folder /= words[2]
        words = [*words[:1], *words[3:]]
    text = lines_of(folder / "Makefile")
    given = dict(word.split("=", 1) for word in words[1:] if "=" in word)
    targets = [word for word in words[1:] if "=" not in word]
    for target in targets:
        if folder == ROOT:
            assert re.search(rf"(?m)^{re.escape(target)}:.*", text), f"there is no target {target}"
        else:
            assert re.search(rf"(?m)^[^#\t\n]*\b{re.escape(target)}\b[^\n:]*:", text), f"there is no target {target}"
    for name in given:
        assert re.search(rf"\$\(?\$?{name}\b|^{name} *[?:]?=|\$\({name}|filter[^\n]*\b{name}\b", text, re.M), name
    if "TOPO" in given:
        find_scenario(given["TOPO"])
    if "ENGINE" in given:
        assert given["ENGINE"] in ENGINES
    args = shlex.split(given.get("ARGS", ""))
    for target in targets:
        if target == "bench":
            asked(args)
        elif target in ("mutants", "fuzz", "soak", "chaos"):
            read_by(f"benchmarks.{target}", args)


def look_module(words: list[str]) -> None:
    """A module that is run by `python -m`, and what it reads."""
    module, rest = words[2], words[3:]
    if module == "benchmarks":
        asked(rest)
    elif module == "testbed.controllers":  # of the wheel: tests/unit/project/test_installed.py
        assert rest == []
    elif module == "controllers":
        app = typer.Typer()
        app.command()(importlib.import_module("controllers.__main__").main)
        get_command(app).make_context("controllers", rest)
    else:
        read_by(module, rest)


def look_script(words: list[str]) -> None:
    """A script of the project: there, executable, and its word known."""
    file = ROOT / words[0].removeprefix("…/share/")
    assert file.stat().st_mode & 0o111, file
    if words[0].endswith("scripts/setup") and words[1:]:
        known = re.search(r"\^\(([\w|-]+)\)\$", file.read_text(encoding="utf-8"))
        assert known is not None
        assert words[1] in known[1].split("|"), words[1]


def look_dask(words: list[str]) -> None:
    """Options of Dask's programs."""
    module = importlib.import_module(f"distributed.cli.dask_{words[1]}")
    module.main.make_context(words[1], words[2:])


def look_extra(words: list[str]) -> None:
    """An extra of the package."""
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    for name in re.findall(r"\[(\w+)\]", " ".join(words)):
        assert re.search(rf"(?m)^{name} = \[", project), f"there is no extra {name}"


def look_bridge(words: list[str]) -> None:
    """What is asked of a running bridge is what is read of it."""
    assert " ".join(words) in {*COMMANDS.values()}, words


OTHERS: list[tuple[str, Check | Left]] = [
    (r"make (MPICC=|-C shim)", Left("in a folder of mpi_jobs: tests/mpi builds and runs what is there")),
    (r"make\b", Check(look_make)),
    (r"(\.venv/bin/)?python3? -m pip wheel", Left("tests/unit/project/test_installed.py makes one in the same way")),
    (r"source \.venv/bin/activate", Left("changes the shell that it is typed into; scripts/setup makes the file")),
    (r"git archive", Left("tests/unit/ui/test_exercises.py packs so")),
    (r"python -m (benchmarks|(testbed\.)?controllers)\b", Check(look_module)),
    (r"(bash …/share/)?scripts/[\w-]+( |$)", Check(look_script)),
    (r"benchmarks/certificates.py", Check(lambda words: read_by("benchmarks.certificates", words[1:]))),
    (r"dask (scheduler|worker)", Check(look_dask)),
    (r"(\.venv/bin/)?pipx? install", Check(look_extra)),
    (r"python (-I )?-m testbed$", Left("tests/unit/base/test_isolated.py calls it where it must not look")),
    (r"(bridge|ip) -j", Check(look_bridge)),
    (r"mkdir s1|cd s1", Left("a folder for what bridges show")),
    (r"wireshark", Left("needs a screen")),
    (r"python3 testbed/planning/certificate_check.py", Left("tests/unit/planning/test_certificate.py runs it so")),
    (r"\.venv/bin/mpiexec", Left("needs kernels that are built: tests/lab/test_npb.py, tests/mpi")),
    (r"docker", Left("needs Docker; the same in tests/lab/test_container_rights.py, without capabilities")),
    (r"podman", Left("needs an image and a registry; the same by scripts/container")),
    (r"vagrant", Left("needs VirtualBox or libvirt; tests/unit/engines/test_vm_box.py")),
    (r"\.venv/bin/pre-commit install", Left("changes the clone's hooks")),
]  # fmt: skip


def check_of(command: str) -> Check | Left | None:
    """What is known of a command of another program; None if nothing is."""
    return next((way for rule, way in OTHERS if re.match(rule, command.removeprefix("sudo "))), None)


def words_of_other(command: str) -> list[str]:
    """Its words, without remark, and without what the shell takes."""
    return shlex.split(re.split(r"\s>\s", spoken(command).removeprefix("sudo ").removeprefix("bash "))[0])


# What a span of code in a sentence begins with if it is a command.
_SPAN = re.compile(
    r"make( |$)|(dask|pipx?|python3?|bash|podman|vagrant|git|docker) |\.venv/bin/(?!testbed)|scripts/|benchmarks/\S+ -"
)


def others(page: Path) -> Iterator[str]:
    """Commands of other programs in the blocks of a page, and within its sentences."""
    text = page.read_text(encoding="utf-8")
    for language, block in blocks(text):
        if language not in ("", "text", "bash", "sh", "console"):
            continue
        for line in block.splitlines():
            for part in parts_of(spoken(line)):
                if check_of(part) and not list(shown_commands(f"    {part}\n")):
                    yield spoken(part)
    without = re.sub(r"^```.*?^```", "", text, flags=re.M | re.S)
    for span in re.findall(r"`([^`]+)`", without):
        if _SPAN.match(span):
            yield from (spoken(part) for part in parts_of(re.sub(r"\s+", " ", span)))


def every_other() -> dict[str, str]:
    """Each once: command → the first page that shows it."""
    found: dict[str, str] = {}
    for page in [*PAGES, *MORE_PAGES, *SHEETS]:
        for command in others(page):
            found.setdefault(command, page.name)
    return found
