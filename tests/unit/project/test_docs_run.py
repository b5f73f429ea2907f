"""Commands of the documentation that need no lab are run, and none is there that nothing is known of."""

from __future__ import annotations

import csv
import re
import shlex
import shutil
from pathlib import Path

import pytest
import yaml

from tests.plug_ins import forget_plugins
from tests.shown_commands import HOW, ROOT, TUTORIALS, Here, Left, Planned, every, how, words_of
from tests.unit.devices.test_read_running import PLANS, SHOWN
from tests.unit.ui.test_cli_surface import typed

_QUICK = (
    "--set", "simulator.duration=2", "--set", "simulator.warm_up=0.5", "--set",
    "workloads=[{kind: iperf3, protocol: udp, pattern: neighbour}]",
)  # fmt: skip


def test_each_command_is_run_or_listed_with_a_reason():
    assert [f"{page}: {command}" for command, page in every().items() if how(command) is None] == []
    unused = [rule for rule, way in HOW if not any(how(command) is way for command in every())]
    assert unused == []
    assert all(way.reason for _, way in HOW if isinstance(way, Left | Planned))
    assert how("frobnicate torus4x4") is None


def test_what_is_left_to_other_tests_is_in_them():
    for way in (way for _, way in HOW if isinstance(way, Left | Planned)):
        for name in re.findall(r"(?:tests/(?:\w+/)+)?test_[\w*]+\.py", way.reason):
            pattern = name if "/" in name else f"tests/**/{name}"
            assert list(ROOT.glob(pattern)), name


@pytest.fixture
def prepared(tmp_path, monkeypatch):
    """A folder with the files that pages speak of."""
    monkeypatch.chdir(tmp_path)
    lay_out()
    yield
    forget_plugins()  # else the tables of this process have them in other tests


def lay_out() -> None:
    """Put scenarios, plug-ins, a matrix, what bridges have shown into the present folder."""
    for page in TUTORIALS:
        for name, text in re.findall(r'^```yaml title="([^"]+)"\n(.*?)^```', page.read_text("utf-8"), re.M | re.S):
            Path(name).write_text(text, encoding="utf-8")
    Path("scenarios").mkdir()
    for name in ("torus4x4", "ring4"):
        shutil.copy(ROOT / "scenarios" / f"{name}.yaml", "scenarios")
    shutil.copy("line.yaml", "scenarios/mine.yaml")
    shutil.copytree(SHOWN / "ring3", "shown")
    Path("ring3.yaml").write_text(yaml.safe_dump(PLANS["ring3"]))
    shutil.copy(ROOT / "examples/plugins/valiant.py", "my_routing.py")
    shutil.copytree(ROOT / "examples/campus", ".", dirs_exist_ok=True)
    valiant = (ROOT / "examples/plugins/valiant-torus4x4.yaml").read_text(encoding="utf-8")
    Path("my.yaml").write_text(valiant.replace("valiant.py", "my_routing.py"), encoding="utf-8")
    lossless = (ROOT / "docs/lossless.md").read_text("utf-8")
    Path("reduce.goal").write_text(lossless[lossless.index("num_ranks 4") :].partition("```")[0], encoding="utf-8")
    with Path("mine.csv").open("w", encoding="utf-8", newline="") as file:
        rows = [(f"h{n}", f"h{(n + 4) % 16 + 1}", 3000 * n) for n in range(1, 17)]
        csv.writer(file).writerows([("source", "destination", "bytes"), *rows])


@pytest.fixture
def results(prepared):
    """What is in the folder once the pages' first commands have been typed; the two folders of results."""
    assert typed("export", "torus4x4", "-d", "powerconnect-6200", "-o", "saved")[0] == 0
    assert typed("plan", "torus4x4", "--output", "plan.json")[0] == 0
    for scenario in ("flat16", "torus4x4"):
        code, _, said = typed("run", scenario, "--engine", "simulate", *_QUICK)
        assert code == 0, said
    return sorted(Path("results").iterdir(), key=lambda folder: "torus" in folder.name)


def in_tutorial(command):
    """Whether the command is in a tutorial with what it prints: tests/unit/project/test_docs.py runs it there."""
    texts = [page.read_text("utf-8") for page in TUTORIALS]
    blocks = [block for text in texts for block in re.findall(r"^```console\n(.*?)^```", text, re.M | re.S)]
    return any(f"$ testbed {command}\n" in text for text in blocks)


def arguments(command, way, results):
    """The words of a command with what is put in place of others."""
    folders = iter(results)
    text = re.sub(r"results/(?:<[^>]*>|[AB]\b)", lambda _: str(next(folders)), command)
    if way.instead[0]:
        text = text.replace(*way.instead)
    words = []
    for word in (*words_of(text), *shlex.split(way.more)):
        words += [str(file) for file in sorted(Path().glob(word))] if "*" in word else [word]
    return words


@pytest.mark.long
@pytest.mark.timeout(600)
def test_commands_end_as_they_should(results):
    wrong = []
    for command, page in every().items():
        way = how(command)
        if not isinstance(way, Here) or in_tutorial(command):
            continue
        if command.startswith("exercise grade"):
            shutil.copytree("03-vlans-by-hand", "class/ada/03-vlans-by-hand", dirs_exist_ok=True)
        if way.makes:
            Path(way.makes).unlink(missing_ok=True)
        code, out, said = typed(*arguments(command, way, results))
        if "> " in command:
            Path(command.split("> ")[1]).write_text(out, encoding="utf-8")
        if way.code not in (code, -1):
            wrong.append(f"{page}: {command}: exit code {code}: {out[-500:]} {said[-500:]}")
        if not (out or said or way.silent):
            wrong.append(f"{page}: {command}: prints nothing")
        if way.makes and not Path(way.makes).stat().st_size:
            wrong.append(f"{page}: {command}: makes no {way.makes}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.slow
@pytest.mark.usefixtures("prepared")
def test_runs_that_take_minutes_are_planned():
    wrong = []
    for command, page in every().items():
        if not isinstance(how(command), Planned):
            continue
        words = words_of(command)[1:]
        settings = [f"--set={words[n + 1]}" for n, word in enumerate(words) if word == "--set"]
        settings += [f"--set=engine={words[n + 1]}" for n, word in enumerate(words) if word == "--engine"]
        code, _, said = typed("plan", words[0], *settings)
        if code:
            wrong.append(f"{page}: {command}: {said}")
    assert wrong == []
