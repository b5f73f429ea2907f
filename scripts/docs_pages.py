"""Hooks of mkdocs: pages that are made from the program itself, links that leave docs/, and terms of the glossary."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import json
import logging
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import typer
import yaml
from mkdocs.structure.files import File
from typer.main import get_command

import testbed
from testbed.fabric.routing import ROUTINGS
from testbed.fabric.topologies.faults import Faults
from testbed.fabric.vlans import ASSIGNMENTS
from testbed.scenario import TOPOLOGY_BLOCKS
from testbed.scenario.engines import Simulator, VmOptions
from testbed.scenario.parameter_models import key_of
from testbed.scenario.schema import schema
from testbed.scenario.spec import LabSettings, Links
from testbed.scenario.workloads import WORKLOADS
from testbed.ui import cli
from testbed.ui.cli.app import app

ROOT = Path(__file__).resolve().parents[1]
log = logging.getLogger("mkdocs.hooks.docs_pages")
_EXAMPLES: dict[str, dict[str, str]] = yaml.safe_load((ROOT / "scripts/docs_examples.yaml").read_text("utf-8"))
_LINK = re.compile(r"\]\((?P<target>[^)\s]+)\)")


def on_files(files: Any, config: Any) -> Any:
    """Add the generated pages."""
    for name, text in (
        ("reference/commands.md", commands_page()),
        ("reference/scenario.md", scenario_page()),
        ("reference/api.md", api_page()),
        *_notebooks().pages(),
    ):
        files.append(File.generated(config, name, content=text))
    return files


def _notebooks() -> Any:
    """The module beside this one, which mkdocs loads by its path."""
    sys.path.insert(0, str(ROOT / "scripts"))
    try:
        return importlib.import_module("docs_notebooks")
    finally:
        sys.path.pop(0)


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Name files outside of docs/ instead of linking to them, and explain terms of the glossary where they stand."""
    source = ROOT / "docs" / page.file.src_uri

    def link(match: re.Match[str]) -> str:
        target = match["target"].partition("#")[0]
        if not target or "://" in target:
            return match[0]
        file = (source.parent / target).resolve()
        if file.is_relative_to(ROOT / "docs") or not file.is_relative_to(ROOT):
            return match[0]
        if not file.exists():
            log.warning("%s links to %s, which is not there", page.file.src_uri, target)
        if file.suffix == ".ipynb":
            return f"]({'../' * page.file.src_uri.count('/')}notebooks/{file.stem}.md)"
        return f"](# '{file.relative_to(ROOT)} in the project')"

    text = _LINK.sub(link, markdown)
    terms = "" if page.file.src_uri == "glossary.md" else "\n".join(f"*[{term}]: {says}" for term, says in glossary())
    return f"{text}\n\n{terms}\n"


def glossary() -> list[tuple[str, str]]:
    """Terms and the first sentence of what they mean."""
    text = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
    found = re.findall(r"^### (.+?)\n\n(.+?)(?=\n\n|\Z)", text, flags=re.MULTILINE | re.DOTALL)
    return [(term, re.split(r"(?<=\.)\s", " ".join(says.split()))[0].replace("`", "")) for term, says in found]


# --- commands ---------------------------------------------------------------------------------------------------------


def commands(command: Any = None, path: tuple[str, ...] = ("testbed",)) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every command that help shows, with its path."""
    if command is None:
        cli.load_commands()
        command = get_command(app)
    for name, one in sorted(getattr(command, "commands", {}).items()):
        if getattr(one, "commands", None):
            yield from commands(one, (*path, name))
        elif not one.hidden:
            yield (*path, name), one


def commands_page() -> str:
    """What --help says of every command."""
    lines = [
        "# Commands\n",
        "Each has `--help`, which this page is made of. All have the same [exit codes](../reference.md#exit-codes).\n",
    ]
    for path, command in commands():
        context = typer.Context(command, info_name=" ".join(path))
        lines += [f"## {' '.join(path)}\n", inspect.cleandoc(command.help or "") + "\n"]
        usage = " ".join([" ".join(path), *command.collect_usage_pieces(context)])
        lines += ["```text", usage, "```\n"]
        if command.epilog:
            lines += ["Examples:\n", *(f"    {one}" for one in examples(command.epilog)), ""]
        rows = [row for row in (_parameter(one) for one in command.params) if row]
        if rows:
            lines += ["| parameter | default | what it is |", "| --- | --- | --- |", *rows, ""]
    return "\n".join(lines)


def examples(epilog: str) -> list[str]:
    """The commands that an epilog shows."""
    text = re.sub(r"^Examples?:\s*", "", epilog.strip())
    return [" ".join(one.partition(", then")[0].split()) for one in text.split("\n")]


def _parameter(one: Any) -> str:
    if one.name == "help" or (one.param_type_name == "argument" and not getattr(one, "help", "")):
        return ""  # an argument without help is told of with the one before
    names = ", ".join(f"`{name}`" for name in [*one.opts, *one.secondary_opts])
    if one.param_type_name == "argument":
        names = f"`{one.metavar or one.name.upper()}`"
    default = one.default
    shown = "" if default in (None, False, ()) or callable(default) else f"`{getattr(default, 'value', default)}`"
    if one.required:
        shown = "required"
    return f"| {names} | {shown} | {_cell(getattr(one, 'help', '') or '')} |"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")


# --- scenario files ---------------------------------------------------------------------------------------------------


def scenario_page() -> str:
    """Every key, its type, default, an example and meaning."""
    lines = [
        "# Scenario files\n",
        "A scenario is a YAML file. Every key but `topology` has a default. `scenarios/schema.json` says the same to "
        "an editor; `testbed plan FILE` names everything that is wrong, all at once. Which engine hears which key is "
        "in [Engines](../engines.md).\n",
        "```yaml",
        "topology: {kind: torus, sizes: [4, 4]}",
        "links: {rate: 1 Gbit/s}",
        "workloads:",
        "  - {kind: iperf3, protocol: udp, pattern: neighbour}",
        "```\n",
        "| key | value | example | what it is |",
        "| --- | --- | --- | --- |",
    ]
    whole: Any = schema()
    for key, value in whole["properties"].items():
        what = _cell(str(value.get("description", "a block, below")))
        lines.append(f"| `{key}` | {_cell(_type(value))} | `{_cell(example('', '', key, value))}` | {what} |")
    for key, spec in (
        ("links", Links),
        ("lab", LabSettings),
        ("vm", VmOptions),
        ("simulator", Simulator),
        ("faults", Faults),
    ):
        lines += ["", f"## {key}\n", *_keys(spec, whole["properties"][key], key)]
    tables: tuple[tuple[str, Mapping[str, Any], str], ...] = (
        ("topology", TOPOLOGY_BLOCKS, "spec"),
        ("routing", ROUTINGS, "options"),
        ("assignment", ASSIGNMENTS, "options"),
        ("workloads", WORKLOADS, "spec"),
    )
    for key, table, part in tables:
        block = whole["properties"][key]
        # A kind may also stand alone, by its name, which is no block.
        blocks = {
            one["properties"]["kind"]["const"]: one for one in _kinds(block) if "kind" in one.get("properties", {})
        }
        lines += [
            "",
            f"## {key}\n",
            "A list; each entry has a `kind`.\n" if key == "workloads" else "One `kind` of these.\n",
        ]
        for kind, entry in table.items():
            lines += [
                f"### {key}: {kind}\n",
                f"{_cell(entry.summary)}\n",
                *_keys(getattr(entry, part), blocks[kind], key, kind),
                "",
            ]
    return "\n".join(lines)


def _kinds(block: Mapping[str, Any]) -> list[Any]:
    found: Any = block.get("oneOf") or block.get("anyOf") or block["items"]["oneOf"]
    return list(found)


def example(block: str, kind: str, key: str, value: Mapping[str, Any]) -> str:
    """A value of a key, as it stands in a scenario: from the file, or one that is not the default."""
    written = _EXAMPLES.get(block, {})
    if found := written.get(f"{kind}.{key}", written.get(key)):
        return str(found)
    default = value.get("default")
    if value.get("type") == "boolean":
        return json.dumps(not default)
    choices = value.get("enum") or [one["const"] for one in value.get("anyOf", ()) if "const" in one]
    if others := [one for one in choices if one not in (None, default)]:
        return str(others[0])
    numeric = isinstance(default, int | float)
    if numeric and 2 * default <= value.get("maximum", 2 * default):
        default = 2 * default or 1
    return json.dumps(default, ensure_ascii=False)


def _keys(spec: type[Any], block: Mapping[str, Any], name: str, kind: str = "") -> list[str]:
    said = meanings(spec)
    rows = []
    for key, value in block["properties"].items():
        if key == "kind":
            continue
        default = "required" if key in block.get("required", ()) else ""
        if not default and "default" in value and value["default"] is not None:
            default = f"`{json.dumps(value['default'], ensure_ascii=False)}`"
        what = value.get("description") or said.get(key, "")
        shown = _cell(example(name, kind, key, value))
        rows.append(f"| `{key}` | {_cell(_type(value))} | {default} | `{shown}` | {_cell(what)} |")
    if not rows:
        return ["It has no other keys.\n"]
    return ["| key | value | default | example | what it is |", "| --- | --- | --- | --- | --- |", *rows, ""]


def _type(value: Mapping[str, Any]) -> str:
    if "const" in value:
        return f"`{json.dumps(value['const'])}`"
    if "enum" in value:
        return ", ".join("nothing" if one is None else f"`{one}`" for one in value["enum"])
    if "anyOf" in value or "oneOf" in value:
        return " or ".join(dict.fromkeys(_type(one) for one in value.get("anyOf") or value["oneOf"]))
    kind = value.get("type", "object")
    limits = [f"≥ {value['minimum']:g}"] if "minimum" in value else []
    limits += [f"> {value['exclusiveMinimum']:g}"] if "exclusiveMinimum" in value else []
    limits += [f"≤ {value['maximum']:g}"] if "maximum" in value else []
    words = {
        "integer": "whole number", "number": "number", "string": "text", "boolean": "true or false", "null": "nothing",
        "array": "list", "object": "block",
    }  # fmt: skip
    text = (
        "rate such as `1 Gbit/s`"
        if "bit/s" in str(value.get("pattern", "")).lower() or "[bB]" in str(value.get("pattern", ""))
        else words.get(str(kind), str(kind))
    )
    return " ".join([text, *limits])


def meanings(spec: type[Any]) -> dict[str, str]:
    """What the declaration of a block says of each key: the comment beside it or above, or its docstring."""
    found: dict[str, str] = {}
    for base in reversed(spec.__mro__):
        if dataclasses.is_dataclass(base):
            found |= _of_docstring(inspect.getdoc(base) or "") | _of_comments(inspect.getsource(base))
    return {key_of(name): says for name, says in found.items()}


def _of_docstring(text: str) -> dict[str, str]:
    _, _, listed = text.partition("Attributes:\n")
    found = re.findall(r"^    (\w+): (.*(?:\n {6,}.*)*)", listed, flags=re.MULTILINE)
    return {name: " ".join(says.split()) for name, says in found}


def _of_comments(source: str) -> dict[str, str]:
    found: dict[str, str] = {}
    above: list[str] = []
    for line in source.splitlines():
        comment = re.match(r"^    # (.*)", line)
        declared = re.match(r"^    (\w+): .*?(?:  # (.*))?$", line)
        if comment:
            above.append(comment[1])
        elif declared:
            says = [*above, declared[2]] if declared[2] else above
            if says:
                found[declared[1]] = " ".join(says)
            above = []
        elif not line.strip():
            above = []
    return found


# --- Python -----------------------------------------------------------------------------------------------------------


def api_page() -> str:
    """The names of `import testbed`, from their docstrings."""
    lines = [
        "# Python\n",
        "What `import testbed` gives, from the docstrings. [From Python](../python.md) shows how it is used.\n",
    ]
    for name in testbed.__all__:
        if not name.startswith("_"):
            lines += _documented(f"testbed.{name}", getattr(testbed, name), "##")
    return "\n".join(lines)


def _documented(name: str, what: Any, heading: str) -> list[str]:
    """Signature and docstring of a function, or of a class and its public methods."""
    lines = [f"{heading} {name}\n"]
    if inspect.isfunction(what):
        lines += ["```python", f"{what.__name__}{inspect.signature(what)}", "```\n"]
    lines += ["```text", inspect.getdoc(what) or "", "```\n"]
    if inspect.isclass(what) and not issubclass(what, Exception):
        for key, member in vars(what).items():
            function = getattr(member, "fget", member)
            if not key.startswith("_") and inspect.isfunction(function):
                lines += _documented(f"{what.__name__}.{key}", function, "###")
    return lines
