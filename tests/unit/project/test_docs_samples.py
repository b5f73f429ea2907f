"""What pages show of the output of commands is what the commands print.

`…` stands for the rest of a line, or of a few words in it, and in a line of its own for lines that are left out.
README, landing page and tutorials have their output whole: tests/unit/project/test_docs.py.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from tests.shown_commands import PAGES, ROOT, WHOLE, blocks, every, parts_of, shown_commands, spoken, words_of
from tests.shown_others import check_of
from tests.unit.ui.test_cli_surface import typed

RING = "name: ring\ntopology: {kind: ring, switches: 5}\nrouting: {kind: dor, ring: shortest}\nexpect: deadlock\n"


def torus_less_one(folder: str) -> None:
    """Configurations of torus4x4; a port of s1 is in one VLAN less."""
    assert typed("export", "torus4x4", "-d", "powerconnect-6200", "-o", folder)[0] == 0
    changed(Path(folder, "s1.txt"), "allowed vlan add 10-11 tagged", "allowed vlan add 10 tagged")


def ring_and_more(folder: str) -> None:
    """Configurations of a ring with two hosts more, whose VLAN is on all its links, and one port in a VLAN less."""
    Path("ring.yaml").write_text(RING, encoding="utf-8")
    assert typed("export", "ring.yaml", "-d", "powerconnect-5300", "-o", folder, "--flow-control", "keep")[0] == 0
    host = "interface ethernet g4\nswitchport mode general\nswitchport general allowed vlan add 20 untagged\n"
    host += "switchport general pvid 20\nexit\n"
    for file in Path(folder).glob("s*.txt"):
        changed(file, "vlan database\n", "vlan database\nvlan 20\n")
        changed(file, " tagged\n", " tagged\nswitchport general allowed vlan add 20 tagged\n", every=True)
    for switch in ("s1", "s3"):
        changed(Path(folder, f"{switch}.txt"), "interface vlan 10\n", f"{host}interface vlan 10\n")
    changed(Path(folder, "s1.txt"), "allowed vlan add 10-11,13-14 tagged", "allowed vlan add 10,13-14 tagged")
    with Path(folder, "cabling.csv").open("a", encoding="utf-8") as cabling:
        cabling.write("s1,g4,h6,,yes\ns3,g4,h7,,yes\n")


def changed(file: Path, before: str, after: str, *, every: bool = False) -> None:
    text = file.read_text(encoding="utf-8")
    assert before in text
    file.write_text(text.replace(before, after, -1 if every else 1), encoding="utf-8")


@dataclass(frozen=True, slots=True)
class Sample:
    """A piece of output on a page."""

    page: str
    begins: str  # its first line begins so
    command: str  # that prints it, as it is shown on the page
    more: str = ""  # behind the command
    before: Callable[[str], None] | None = None  # makes a folder
    folder: str = ""  # that the command reads


SAMPLES = [
    Sample("planning.md", "7 hops; ", "explain torus8x8 h9 h64"),
    Sample("real-switches.md", "loop: VLAN 20", "audit saved", before=ring_and_more, folder="saved"),
    Sample("real-switches.md", "settings that differ", "check saved --against torus4x4",
           before=torus_less_one, folder="saved"),
    Sample("real-switches.md", "s1 1/g2: ", "check torus4x4-switches --against torus4x4",
           before=torus_less_one, folder="torus4x4-switches"),
    Sample("failures.md", "load 1, at 9 s: start s10", "plan torus4x4-failures"),
    Sample("simulator.md", "deadlock as declared", "simulate deadlock-torus8x8 --loads 0.3,0.6 --cycles 100000",
           more="--loads 0.6"),
]  # fmt: skip

# Other blocks without a language, by their first line, and why nothing prints them.
NOT_PRINTED = {
    ("lossless.md", "num_ranks 4"): "a file of others: tests/unit/scenario/test_schedule_files.py reads such",
    ("rootless.md", "abi <abi/4.0>,"): "a profile for AppArmor, which no test can load; the page says so",
    ("lossless.md", "switch,destination,next_hop"): "a file of others: tests/unit/ui/test_verify_routes.py reads such",
    ("failures.md", "POST /plan  {"): "a request over HTTP: tests/lab/test_controller.py",
    ("teaching.md", "switch s1"): "a student's file: tests/unit/ui/test_exercises.py reads such",
    ("sheet.md", "switch s1"): "a student's file: tests/unit/ui/test_exercises.py reads such",
}


def paragraphs(page: Path) -> list[list[str]]:
    """Indented blocks of a page and fenced ones without a language, line by line."""
    found = []
    for language, block in blocks(page.read_text(encoding="utf-8")):
        if language == "console":
            assert page in WHOLE, f"{page.name}: nothing compares what it shows"
        elif language in ("", "text", "bash", "sh"):
            found += [paragraph.splitlines() for paragraph in re.split(r"\n\s*\n", block.strip("\n"))]
    return found


def is_command(line: str) -> bool:
    return all(list(shown_commands(f"    {part}\n")) or check_of(part) for part in parts_of(spoken(line)))


def sample_of(page: str, lines: list[str]) -> Sample | None:
    return next((one for one in SAMPLES if one.page == page and lines[0].strip().startswith(one.begins)), None)


def found_in(shown: list[str], printed: list[str]) -> bool:
    """Whether lines were printed as they are shown; the first may come after others."""
    indent = min(len(line) - len(line.lstrip()) for line in shown)
    parts = []
    for line in shown:
        if line.strip() == "…":
            parts.append(r"(?:[^\n]*\n)*?")
        else:
            parts.append("[^\n]*".join(re.escape(part) for part in line[indent:].rstrip().split("…")) + "\n")
    # Lines of a piece may be indented by more than the page does.
    return any(
        re.search(rf"(?m)^{''.join(parts)}", "".join(f"{line.rstrip()[less:]}\n" for line in printed))
        for less in (0, 2)
    )


def unknown_in(page: Path) -> list[str]:
    """First lines of what is neither commands nor a sample nor listed."""
    unknown = []
    for lines in paragraphs(page):
        listed = any(page.name == name and lines[0].strip().startswith(begins) for name, begins in NOT_PRINTED)
        if not (all(map(is_command, lines)) or sample_of(page.name, lines) or listed):
            unknown.append(lines[0].strip())
    return unknown


@pytest.mark.parametrize("page", [*PAGES, *sorted(ROOT.glob("exercises/*/sheet.md"))], ids=lambda page: page.name)
def test_a_block_is_commands_or_their_output_or_listed(page):
    assert unknown_in(page) == []


def test_other_blocks_are_seen(tmp_path):
    page = tmp_path / "planning.md"
    page.write_text(
        "# Page\n\n    testbed list\n    make test; frobnicate\n\n    7 hops; a\n\n    8 hops\n\n```\nnothing\n```\n",
        "utf-8",
    )
    assert unknown_in(page) == ["testbed list", "8 hops", "nothing"]
    page.write_text("```console\n$ testbed list\n```\n", "utf-8")
    with pytest.raises(AssertionError, match="nothing compares"):
        unknown_in(page)


def test_lists_have_nothing_that_is_not_shown():
    shown = {(page.name, lines[0].strip()) for page in PAGES for lines in paragraphs(page)}
    shown |= {
        ("sheet.md", lines[0].strip()) for page in ROOT.glob("exercises/*/sheet.md") for lines in paragraphs(page)
    }
    for page, begins in [*((one.page, one.begins) for one in SAMPLES), *NOT_PRINTED]:
        assert any(name == page and line.startswith(begins) for name, line in shown), (page, begins)
    for reason in NOT_PRINTED.values():
        assert all((ROOT / file).exists() for file in re.findall(r"tests/\S+\.py", reason)), reason


@pytest.mark.slow
@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.page)
def test_sample_is_what_the_command_prints(sample, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page = next(page for page in PAGES if page.name == sample.page)
    assert sample.command in {spoken(command) for command in shown_commands(page.read_text(encoding="utf-8"))}
    assert sample.command in every()
    if sample.before:
        sample.before(sample.folder)
    _, printed, said = typed(*words_of(f"{sample.command} {sample.more}"), columns="1000")
    shown = [lines for lines in paragraphs(page) if sample_of(page.name, lines) is sample]
    assert shown
    for lines in shown:
        assert found_in(lines, printed.splitlines()), printed + said


def test_other_output_is_seen():
    printed = ["first", "  s1: 8 pairs", "  s2: 3 pairs", "last"]
    assert found_in(["    first", "      s1: … pairs", "    …", "    last"], printed)
    assert found_in(["    s1: 8 pairs", "    s2: 3 …"], printed)
    assert not found_in(["    first", "    last"], printed)
    assert not found_in(["    first", "      s1: 9 pairs"], printed)
    assert not found_in(["    s1: 8"], printed)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_blocks_of_a_language_are_of_it(page):
    for language, block in blocks(page.read_text(encoding="utf-8")):
        if language == "python":
            ast.parse(block) if not block.startswith('"') else ast.parse(f"{{{block}}}")
        elif language == "yaml":
            yaml.safe_load(block)
        else:
            assert language in ("", "console", "text", "toml")


def test_python_page_shows_what_python_gives():
    first = next(block for language, block in blocks((ROOT / "docs/python.md").read_text("utf-8")) if language)
    names: dict[str, object] = {}
    given = []
    for line in first.splitlines():
        code, _, remark = (part.strip() for part in line.partition("#"))
        if remark:
            value = eval(code, names)
            given.append((str(value), remark))
        else:
            exec(code, names)
    (path, shown), (saturation, _), (proved, said) = given
    assert (path, proved) == (shown, said)
    assert 0 < float(saturation) <= 1


# Scenarios of the rows of the overview.
FABRICS = ("mesh4x2", "torus4x2", "myri-clos", "mtree4x4", "mesh4x4", "torus4x4", "fattree14", "flat16")


def test_overview_has_the_figures_of_plans():
    page = (ROOT / "docs/planning.md").read_text(encoding="utf-8")
    rows = [line.strip("| ").split(" | ")[1:] for line in page.partition("| topology (16 hosts) |")[2].splitlines()[2:]]
    plans = [json.loads(typed("plan", name, "--json")[1]) for name in FABRICS]
    assert all(plan["hosts"] == 16 for plan in plans)
    assert [row for row in rows if row][: len(FABRICS)] == [
        [str(plan[key]) for key in ("switches", "switch_links", "vlans")] + [f"{plan['mean_switches_on_path']:.2f}"]
        for plan in plans
    ]
