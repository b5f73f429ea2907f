"""Commands that the documentation shows: how a test runs each of them, or why none does.

Of the rules of HOW the first that fits a command says it. What is added behind a command makes it shorter and changes
nothing else of it; names of result folders, and `…`, stand for folders that were made before.
"""

from __future__ import annotations

import functools
import importlib.util
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), *sorted((ROOT / "docs/tutorials").glob("*.md"))]
TUTORIALS = sorted((ROOT / "docs/tutorials").glob("*.md"))
WHOLE = [ROOT / "README.md", ROOT / "docs/index.md", *TUTORIALS]  # pages whose output is shown as it is printed
_BLOCK = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```|((?:^ {4,}\S[^\n]*\n)+)", re.M | re.S)


@dataclass(frozen=True, slots=True)
class Here:
    """Run in a prepared folder."""

    more: str = ""  # behind the command
    code: int = 0  # the exit code
    instead: tuple[str, str] = ("", "")  # a word of the command and what stands in its place
    makes: str = ""  # a file that is there afterwards
    silent: bool = False  # what it would print is a difference, and there is none


@dataclass(frozen=True, slots=True)
class Lab:
    """Run in a lab by tests/lab/test_docs_lab.py: where it is listed in order."""


@dataclass(frozen=True, slots=True)
class Planned:
    """A run of minutes: its scenario is planned with the same settings, and the reason is why no more is done."""

    reason: str


@dataclass(frozen=True, slots=True)
class Left:
    """Not run, for a reason."""

    reason: str


How = Here | Lab | Planned | Left
_FLITS = "--loads 0.05 --cycles 2000 --warm-up 500"
_FRAMES = "--loads 0.1 --seeds 1 --duration 2 --warm-up 0.5"
_SIMULATED = "--set simulator.duration=2 --set simulator.warm_up=0.5"
_MEASURED = "a run of minutes; runs of its kind are in tests/lab"
_MACHINES = (
    "other machines, or processes in their place: tests/lab/test_machines.py, tests/unit/engines/test_cluster.py"
)
HOW: list[tuple[str, How]] = [
    # other machines, hours, images
    (r".*--(cluster|machines)\b", Left(_MACHINES)),
    (r"sweep ", Left("many runs in labs, for hours; a small one in tests/lab/test_sweep.py")),
    (r"paper ", Left("minutes of simulations; items of it in tests/unit/experiments/test_paper.py")),
    (r"vm box", Left("needs the image of the virtual machine; tests/unit/engines/test_vm_box.py, `make vm-test`")),
    (r"run .*--engine vm", Planned("needs the image of the virtual machine; `make vm-test`")),
    (r"run .*--live", Planned("tests/lab/test_live_page.py has such a run")),
    (r"run .*(--engine |engine=)realtime|run ring5-deadlock", Planned("tests/lab/test_realtime*.py run such")),
    (r"run .*lab\.controller", Planned("tests/lab/test_controller.py and test_learning.py run such")),
    (r"run .*tree8-lag", Planned("tests/lab/test_aggregation.py runs such")),
    (r"run mesh4x2 .*host_tagged", Planned("tests/lab/test_host_tagged.py builds such")),
    (r"run npb-torus4x4", Planned("tests/lab/test_npb.py runs such")),
    (r"run torus4x4-failures", Planned("tests/lab/test_failures.py runs such")),
    (r"run torus4x4 --set engine=simulate", Here(_SIMULATED, code=3)),  # ping and MPI are left out
    (r"run line.yaml --engine simulate", Here()),
    (r"run line.yaml$", Planned("tests/lab/test_command_line.py has such runs")),
    (r"run torus4x4$", Planned(_MEASURED)),
    (r"regulate .*--running", Lab()),
    (r"regulate ", Planned("a measured run; tests/lab/test_regulate.py, test_json_formats.py")),
    (r"storm", Left("needs a lab of its own; tests/lab/test_storm.py")),
    (r"up .*--live|live results", Left("serve a page; tests/lab/test_live_page.py, tests/unit/ui/test_live_page.py")),
    (r"check --bridge", Left("needs a bridge of this machine; tests/vm/test_check_bridge.py")),
    # labs
    (r"(up|capture|load|watch|shell|exec|link|switch|controller|live|status|down)\b", Lab()),
    (r"simulate .*--(trace|matrix telemetry)|power .*--matrix", Lab()),
    # here
    (r"simulate .*--matrix mine.csv", Here()),
    (r"simulate .*--schedule reduce.goal", Here()),
    (r"simulate .*--level packet", Here(_FRAMES)),
    (r"simulate .*--message 100000", Here("--message 2000")),
    (r"simulate deadlock-torus8x8", Here("--loads 0.5 --cycles 4000 --warm-up 500", code=3)),
    (r"flows ", Here()),
    (r"simulate ", Here(_FLITS)),
    (r"doctor", Here(code=-1)),  # that of what this machine has
    (r"report results/", Here()),
    (r"compare results/.*--output figure.pdf", Here(makes="figure.pdf")),
    (r"compare results/", Here()),
    (r"check --running shown", Here(instead=("torus4x4", "ring3.yaml"))),
    (r"check .*--format diff", Here(silent=True)),
    (r"verify .*--routes", Left("files of others; tests/unit/ui/test_verify_routes.py has such")),
    (r"verify scenarios/\*\.yaml --format junit", Here(makes="proofs.xml")),
    (r"verify torus4x4 --certificate", Here(makes="certificate.json")),
    (r"verify torus4x4 --set routing.ring=shortest|verify torus4x4 --set topology.sizes", Here(code=1)),
    (r"plan .*--output plan.json", Here(makes="plan.json")),
    (r"analyse .*--output loads.svg", Here(makes="loads.svg")),
    (r"analyse .*--links links.csv", Here(makes="links.csv")),
    (r"verify torus4x4 --set routing.kind=ecmp", Here(code=1)),
    (r"export torus4x4 --dialect powerconnect-6200", Here(makes="torus4x4-switches/export.json")),
    (r"export torus4x4 -d", Here(makes="configs/export.json")),
    (r"audit campus .*--output", Here(code=1, makes="campus.svg")),
    (r"exercise check", Here(code=1)),  # nothing is solved yet
    (r"(plan|verify|analyse|explain|segments|power|schema|audit|check|export|list|init|exercise)\b", Here()),
]  # fmt: skip


def blocks(text: str) -> Iterator[tuple[str, str]]:
    """Language (empty if none is given) and text of each block, lines that go on joined; a blank line ends one, too."""
    for language, fenced, indented in _BLOCK.findall(text):
        yield language, re.sub(r"\\\n\s*", " ", fenced or indented)


def parts_of(line: str) -> list[str]:
    """Commands of a line of the shell."""
    return re.split(r"\s*(?:;|&&|\|\|?)\s+", line.strip().removeprefix("$ "))


def shown_commands(text: str) -> Iterator[str]:
    """Commands of the program in the blocks of a page, lines that go on joined."""
    for _, block in blocks(text):
        for line in block.splitlines():
            for part in parts_of(line):
                found = re.match(r"(?:sudo )?(?:\w+=\S+ )?(?:\.venv/bin/)?testbed (.*)", part)
                if found and "│" not in line:
                    yield found[1]


def in_sentences(text: str) -> Iterator[str]:
    """Commands of the program that sentences name, whole or in part."""
    for span in re.findall(r"`([^`]+)`", re.sub(r"^```.*?^```", "", text, flags=re.M | re.S)):
        found = re.fullmatch(r"(?:sudo )?(?:\.venv/bin/)?testbed (.*)", re.sub(r"\s+", " ", span))
        if found and found[1] != "…":
            yield found[1]


def spoken(command: str) -> str:
    """A command without the remark behind it."""
    return re.split(r"\s+#", command)[0].rstrip()


def words_of(command: str) -> list[str]:
    """Words of a command, without what the shell takes, and with something in place of `…`."""
    text = re.sub(r"<[\w -]+>|…|\.\.\.", "x", command)
    return shlex.split(re.split(r"\s(?:2?>|#|\|)\s", f"{text} ")[0])


@functools.cache
def every() -> dict[str, str]:
    """Each command shown, once: command → the first page that shows it."""
    found: dict[str, str] = {}
    for page in PAGES:
        for command in shown_commands(page.read_text(encoding="utf-8")):
            found.setdefault(spoken(command), page.name)
    return found


def how(command: str) -> How | None:
    """How a command is run; None if no rule fits."""
    return next((way for rule, way in HOW if re.match(rule, command)), None)


def pages_module() -> ModuleType:
    """Hooks of mkdocs, which are no module of a package."""
    spec = importlib.util.spec_from_file_location("docs_pages", ROOT / "scripts/docs_pages.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
