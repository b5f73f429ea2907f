"""The documentation: every command in it exists, README and tutorials print what they say, and the site builds."""

from __future__ import annotations

import ast
import functools
import html
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import typer
import yaml
from jsonschema import Draft202012Validator
from selenium.webdriver import Chrome, ChromeOptions
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait
from typer.main import get_command
from typer.testing import CliRunner

from testbed.base.errors import TestbedError
from testbed.scenario.schema import schema
from testbed.ui import cli
from testbed.ui.cli.app import JSON, TRUST, app
from testbed.ui.cli.output import messages, print_error, results
from tests.shown_commands import PAGES, ROOT, WHOLE, in_sentences, pages_module, shown_commands, words_of

cli.load_commands()


@functools.cache
def whole_command():
    return get_command(app)


def parsed(words: list[str]) -> None:
    """Let the program read the words as it does when it is called, and do nothing.

    Raises:
        click's UsageError: there is no such command or option.
    """
    words = [one for word in words for one in (("--format", "json") if word == JSON else (word,)) if one != TRUST]
    command, name = whole_command(), "testbed"
    while hasattr(command, "commands"):
        assert words, f"{name} needs a command"
        name, words = words[0], words[1:]
        assert name in command.commands, f"there is no command {name}"
        command = command.commands[name]
    command.make_context(name, words, parent=typer.Context(whole_command(), info_name="testbed"))


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_and_options_exist(page):
    wrong = []
    for command in shown_commands(page.read_text(encoding="utf-8")):
        try:
            parsed(words_of(command))
        except (AssertionError, ValueError, RuntimeError) as error:
            wrong.append(f"{command}: {error}")
        except Exception as error:  # of click, which Typer brings its own of
            wrong.append(f"{command}: {getattr(error, 'message', error)}")
    assert wrong == []


def read_in_sentence(command: str) -> None:
    """Let the program read a command that a sentence names; an option of it may stand there by itself.

    Raises:
        AssertionError, click's UsageError: there is no such command or option.
    """
    found, words = whole_command(), words_of(command)
    while words and words[0] in getattr(found, "commands", {}):
        found = found.commands[words.pop(0)]
    if not words and found is not whole_command():
        return
    known = {name for one in found.params for name in (*one.opts, *one.secondary_opts)}
    if words and words[0] in known and not hasattr(found, "commands") and len(words) <= 2:
        try:
            parsed(words_of(command))
        except Exception as error:
            if not re.search("Missing|requires an argument", f"{type(error).__name__} {error}"):
                raise
    elif words[:1] != ["--install-completion"]:  # which only a program has that was started as one
        parsed(words_of(command))


def test_commands_in_sentences_exist():
    wrong, count = [], 0
    for page in PAGES:
        for command in in_sentences(page.read_text(encoding="utf-8")):
            count += 1
            try:
                read_in_sentence(command)
            except Exception as error:  # of click, which Typer brings its own of
                wrong.append(f"{page.name}: {command}: {getattr(error, 'message', error)}")
    assert wrong == []
    assert count > 100


@pytest.mark.parametrize(
    "command", ["paln", "plan torus4x4 --sett x=1", "run --enginne vm", "exercise grede", "paper --dokument", "x"]
)
def test_wrong_commands_in_sentences_are_seen(command):
    (found,) = in_sentences(f"So does `testbed {command}` here.\n")
    with pytest.raises(Exception, match=command.split()[-1] if " " not in command else r"sett|enginne|grede|dokument"):
        read_in_sentence(found)


def test_examples_of_help_exist():
    module = pages_module()
    for path, command in module.commands():
        for example in module.examples(command.epilog or ""):
            found = re.match(r"(?:sudo )?testbed (.*)", example)
            if found:
                parsed(words_of(found[1]))
        assert command.epilog, f"{' '.join(path)} has no example"


def test_usage_has_only_what_help_explains():
    page = pages_module().commands_page()
    assert "testbed link [OPTIONS] {[LAB] WHERE}\n" in page
    assert re.findall(r"^testbed .*[\[{][a-z]\w*[\]}]", page, re.M) == []
    assert "[[FOLDER]]" not in page
    assert "testbed import" not in page


def test_wrong_commands_are_seen():
    text = "    testbed plan torus4x4 --sett x=1\n    testbed paln torus4x4\n"
    for command in shown_commands(text):
        with pytest.raises(Exception, match=r"sett|paln"):
            parsed(words_of(command))


@pytest.mark.parametrize("page", WHOLE, ids=lambda page: page.stem)
def test_page_prints_what_it_says(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(results, "_width", 100)
    shutil.copytree(ROOT / "examples/campus", tmp_path, dirs_exist_ok=True)
    text = page.read_text(encoding="utf-8")
    for name, content in re.findall(r'^```yaml title="([^"]+)"\n(.*?)^```', text, re.M | re.S):
        Path(name).write_text(content, encoding="utf-8")
    renewed = text
    for block in re.findall(r"^```console\n(.*?)^```", text, re.M | re.S):
        found = "".join(
            f"$ testbed {command}\n{output(command)}" for command in re.findall(r"^\$ testbed (.*)$", block, re.M)
        )
        renewed = renewed.replace(f"```console\n{block}```", f"```console\n{cut_off(found, block)}```")
    if os.environ.get("TESTBED_RENEW_DOCS"):
        page.write_text(renewed, encoding="utf-8")
    assert renewed == text


def cut_off(found: str, shown: str) -> str:
    """What was printed, with lines cut off where the page does so by ` …`."""
    beginnings = [line.removesuffix("…") for line in shown.splitlines() if line.endswith(" …")]
    cut = [next((f"{one}…" for one in beginnings if line.startswith(one)), line) for line in found.splitlines()]
    return "".join(f"{line}\n" for line in cut)


def output(command: str) -> str:
    """What a command prints, errors included, without spaces at the ends of lines."""
    with messages.capture() as said:
        ended = CliRunner().invoke(app, shlex.split(command))
        if isinstance(ended.exception, TestbedError):
            print_error(ended.exception, as_json=False)
    return "\n".join(line.rstrip() for line in (ended.stdout + said.get()).splitlines()) + "\n"


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The folder of the site."""
    folder = tmp_path_factory.mktemp("docs") / "site"
    built = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--quiet", "--site-dir", str(folder)],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert built.returncode == 0, built.stderr
    return folder


@pytest.mark.slow
def test_search_works_in_the_site_as_files(site):
    programs = [shutil.which(name) for name in ("chromium", "chromedriver")]
    assert all(programs), "scripts/setup dev installs chromium and chromium-driver"
    options = ChromeOptions()
    options.binary_location = str(programs[0])
    for argument in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--window-size=1440,900"):
        options.add_argument(argument)
    with Chrome(options=options, service=Service(programs[1])) as browser:
        browser.get((site / "planning.html").as_uri())
        box = browser.find_element(By.CSS_SELECTOR, ".md-search__input")
        box.click()
        box.send_keys("incast")
        found = WebDriverWait(browser, 30).until(
            lambda page: page.find_elements(By.CSS_SELECTOR, ".md-search-result h1")
        )
        assert "What is not modelled" in [one.get_attribute("textContent") for one in found]


@pytest.mark.slow
def test_site_builds_and_fetches_nothing(site):
    pages = list(site.rglob("*.html"))
    assert len(pages) > 40
    for page in pages:
        for tag in re.findall(r"<(?:script|link|img)\b[^>]*>", page.read_text(encoding="utf-8")):
            assert not re.search(r'(?:src|href)="(?:https?:)?//', tag), f"{page.name}: {tag}"
    commands = (site / "reference/commands.html").read_text(encoding="utf-8")
    assert "testbed exercise grade" in commands
    for notebook, printed in (
        ("1-plan-and-prove", "proved: deadlock free"),
        ("2-your-own-routing", 'unknown key. Did you mean "root"'),
        ("3-simulate-and-read-results", "samples.parquet"),
    ):
        shown = html.unescape((site / f"notebooks/{notebook}.html").read_text(encoding="utf-8"))
        assert printed in re.sub(r"<[^>]+>", "", shown)
        assert f"notebooks/{notebook}.html" in (site / "python.html").read_text(encoding="utf-8")
    assert "<svg" in (site / "notebooks/1-plan-and-prove.html").read_text(encoding="utf-8")
    scenario = (site / "reference/scenario.html").read_text(encoding="utf-8")
    assert "frames that wait at a switch's port before one is lost" in scenario


def test_broken_links_fail(tmp_path):
    module = pages_module()
    page = type("Page", (), {"file": type("File", (), {"src_uri": "vm.md"})()})()
    heard: list[str] = []
    module.log.warning = lambda text, *values: heard.append(text % values)
    module.on_page_markdown("[there](../README.md) [not](../NOWHERE.md) [beside](vm.md)", page)
    assert heard == ["vm.md links to ../NOWHERE.md, which is not there"]


def test_every_fault_of_a_machine_in_the_docs_has_its_test():
    page = (ROOT / "docs/reliability.md").read_text(encoding="utf-8")
    _, _, rest = page.partition("| fault of the machine | what happens, or is said | test |\n| --- | --- | --- |\n")
    rows = [line.split(" | ") for line in rest.partition("\n\n")[0].splitlines()]
    assert len({fault for fault, *_ in rows}) == len(rows) >= 40
    named = [re.findall(r"`([^`]+)`", tests) for _, _, tests in rows]
    assert all(named)
    assert not_there(name for names in named for name in names) == []


def not_there(names):
    """Of tests as pages name them: `folder/file::function`, or `::function` in the file of the one before."""
    lacking, file = [], ""
    for name in names:
        file, test = name.partition("::")[0] or file, name.partition("::")[2]
        function, _, case = test.partition("[")
        functions, texts = functions_and_texts(file)
        if function not in functions or (case and case.removesuffix("]") not in texts):
            lacking.append(name)
    return lacking


@functools.cache
def functions_and_texts(file):
    tree = ast.parse((ROOT / "tests" / file).read_text(encoding="utf-8"))
    functions = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    return functions, {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)}


def test_who_is_trusted_with_what_has_its_tests():
    page = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    _, _, rest = page.partition("| who or what | may | may not | tests |\n| --- | --- | --- | --- |\n")
    rows = [line.strip("| ").split(" | ") for line in rest.partition("\n\n")[0].splitlines()]
    assert {len(row) for row in rows} == {4}
    for row in rows:
        named = re.findall(r"`([^`]+)`", row[3])
        assert all(row)
        assert named, row
        assert not_there(named) == []
    who = " ".join(row[0] for row in rows)
    wanted = ["scenario", "plan", "result", "configurations", "plug-in", "MPI", "scheduler", "workers", "host", "user"]
    wanted += ["folder", "names", "texts", "visitor", "installer"]
    assert [word for word in wanted if word not in who] == []


def test_what_a_lab_without_root_can_do_has_its_tests():
    page = (ROOT / "docs" / "rootless.md").read_text(encoding="utf-8")
    _, _, rest = page.partition("| it | may | may not | tests |\n| --- | --- | --- | --- |\n")
    rows = [line.strip("| ").split(" | ") for line in rest.partition("\n\n")[0].splitlines()]
    assert len(rows) == 5
    for row in rows:
        named = re.findall(r"`([^`]+)`", row[-1])
        assert named, row
        assert not_there(named) == []


def test_every_key_of_a_scenario_is_explained():
    module = pages_module()
    missing = [line for line in module.scenario_page().splitlines() if line.startswith("| `") and line.endswith("|  |")]
    assert missing == []


def blocks_of(whole):
    """Name, kind and schema of every block of a scenario, the scenario itself without a name."""
    yield "", "", whole
    for name, value in whole["properties"].items():
        kinds = value.get("oneOf") or value.get("anyOf") or value.get("items", {}).get("oneOf") or [value]
        for one in kinds:
            if "properties" in one:
                yield name, one["properties"].get("kind", {}).get("const", ""), one


@pytest.mark.slow
def test_every_key_of_a_scenario_has_an_example_the_schema_takes():
    module, whole = pages_module(), schema()
    page, wrong, written = module.scenario_page(), [], set()
    for name, kind, block in blocks_of(whole):
        for key, value in block["properties"].items():
            if key == "kind":
                continue
            text = module.example(name, kind, key, value)
            written |= {(name, key), (name, f"{kind}.{key}")}
            assert f"`{module._cell(text)}`" in page
            if list(Draft202012Validator(value | {"$defs": whole.get("$defs", {})}).iter_errors(yaml.safe_load(text))):
                wrong.append(f"{name} {kind} {key}: {text}")
            if text == json.dumps(value.get("default")) or text == "null":
                wrong.append(f"{name} {kind} {key}: {text} is the default")
    assert wrong == []
    assert [(name, key) for name, keys in module._EXAMPLES.items() for key in keys if (name, key) not in written] == []
