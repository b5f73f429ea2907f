"""Names of functions and classes that a reader cannot take for something else; part of `make check`.

- No function, method or function inside another has a bare participle, preposition or pronoun for a name: a verb and
  its object say what it does, `is`, `has` or `can` what it asks, a noun what a property is.
- No two classes of one wing have the same name; some nouns are a single class's in the whole program.
- No more than two modules have the same name.
- No function or class, of tests either, has a name of more than 60 characters.
"""

from __future__ import annotations

import ast
import sys
from collections import defaultdict
from collections.abc import Collection, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BARE = frozenset(
    [
        "about",
        "above",
        "accepted",
        "after",
        "again",
        "alike",
        "all",
        "allowed",
        "allowing",
        "alone",
        "anew",
        "another",
        "answered",
        "any",
        "apart",
        "around",
        "asked",
        "asking",
        "at",
        "before",
        "begun",
        "behind",
        "beside",
        "best",
        "between",
        "beyond",
        "booted",
        "born",
        "both",
        "bounded",
        "broken",
        "built",
        "by",
        "carried",
        "changed",
        "checked",
        "chosen",
        "compared",
        "connected",
        "counted",
        "damaged",
        "deciding",
        "done",
        "down",
        "drained",
        "drawn",
        "during",
        "each",
        "elsewhere",
        "emptied",
        "entered",
        "everybody",
        "failed",
        "far",
        "few",
        "finished",
        "first",
        "fitted",
        "flooded",
        "folded",
        "followed",
        "foretold",
        "found",
        "four",
        "fresh",
        "from",
        "given",
        "gone",
        "grouped",
        "guarded",
        "heard",
        "held",
        "here",
        "idle",
        "in",
        "inherited",
        "inside",
        "into",
        "it",
        "joined",
        "judged",
        "keeping",
        "kept",
        "killed",
        "known",
        "lacking",
        "last",
        "late",
        "latest",
        "listed",
        "locked",
        "longest",
        "looping",
        "lost",
        "made",
        "marked",
        "meanwhile",
        "merged",
        "mine",
        "missing",
        "moved",
        "near",
        "nearest",
        "needed",
        "nobody",
        "none",
        "nothing",
        "now",
        "of",
        "off",
        "once",
        "only",
        "onward",
        "opened",
        "opposite",
        "ordered",
        "other",
        "others",
        "out",
        "over",
        "owned",
        "packed",
        "parsed",
        "passed",
        "placed",
        "planned",
        "predicted",
        "prepared",
        "printed",
        "pruned",
        "queued",
        "quiet",
        "quoted",
        "raised",
        "reached",
        "received",
        "recognised",
        "recorded",
        "recording",
        "refused",
        "regulated",
        "remembered",
        "repairing",
        "reserved",
        "resumed",
        "revive",
        "same",
        "saved",
        "seldom",
        "serving",
        "settled",
        "several",
        "shared",
        "shortened",
        "shown",
        "silent",
        "slept",
        "some",
        "somebody",
        "spare",
        "split",
        "standing",
        "started",
        "stopped",
        "stored",
        "strays",
        "swept",
        "tagged",
        "taken",
        "them",
        "together",
        "told",
        "tried",
        "twice",
        "unclear",
        "undeclared",
        "unheard",
        "unknown",
        "unsound",
        "untouched",
        "unused",
        "up",
        "upon",
        "usable",
        "wanted",
        "watched",
        "where",
        "whoever",
        "whole",
        "with",
        "within",
        "without",
        "won",
        "working",
        "worse",
        "wrapped",
        "written",
        "wrong",
    ]
)
# Commands of the program, whose functions are called as they are typed.
COMMANDS = {"testbed/ui/cli/lab_commands.py": {"up", "down"}}
# Words that say nothing of a module, beside those above.
BARE_MODULES = frozenset(["common", "helpers", "misc", "parts", "things", "told", "utils", "ways", "words", "work"])
# Modules that every package has.
EVERYWHERE = {"__init__.py", "__main__.py"}
# Nouns that everything could be called.
ONCE = {"Fabric", "Measured", "Outcome", "Verdict"}
LONGEST = 60  # characters of a name
# What else is Python here.
BESIDE = ("tests", "benchmarks", "scripts", "examples", "exercises")


def _declares_field(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether it is a property of a protocol without a body, which only names a field of others."""
    properties = any(isinstance(one, ast.Name) and one.id == "property" for one in node.decorator_list)
    return properties and len(node.body) == 1 and isinstance(node.body[0], ast.Expr)


def _list_long_names(root: Path) -> list[str]:
    """A sentence for each function or class whose name is too long to be read at once."""
    named = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
    return [
        f"{file.relative_to(root)}:{node.lineno}: {node.name} has {len(node.name)} characters; {LONGEST} do"
        for folder in ("testbed", *BESIDE)
        for file in sorted((root / folder).rglob("*.py"))
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, named) and len(node.name) > LONGEST
    ]


def _module_name(file: Path, root: Path) -> str:
    return file.relative_to(root).as_posix().removesuffix(".py").replace("/", ".").removesuffix(".__init__")


def _imported_modules(tree: ast.Module, name: str, *, package: bool, known: Collection[str]) -> set[str]:
    """Modules of the project that a module imports anywhere."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {one.name for one in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                up = name.split(".")[: len(name.split(".")) - node.level + package]
                base = ".".join([*up, *([node.module] if node.module else [])])
            whole = {f"{base}.{one.name}" for one in node.names}
            found |= (whole & set(known)) or {base}
    return (found & set(known)) - {name}


def list_circles(imports: Mapping[str, Collection[str]]) -> list[str]:
    """A sentence for each circle of modules: those that lead back to themselves by way of what they import."""
    left = {name: set(others) for name, others in imports.items()}
    while gone := [name for name, others in left.items() if not others & set(left)]:
        for name in gone:  # it imports none that could lead back
            del left[name]
    while gone := set(left) - {other for others in left.values() for other in others}:
        for name in gone:  # none of those that are left imports it
            del left[name]
    return [f"{', '.join(sorted(left))} import each other in a circle"] if left else []


def list_problems(root: Path) -> list[str]:
    """A sentence for each name that is not as it should be."""
    problems = _list_long_names(root)
    classes: dict[tuple[str, str], list[str]] = defaultdict(list)
    once: dict[str, list[str]] = defaultdict(list)
    modules: dict[str, list[str]] = defaultdict(list)
    imports: dict[str, set[str]] = {}
    files = sorted([*(root / "testbed").rglob("*.py"), *(root / "controllers").rglob("*.py")])
    known = {_module_name(file, root) for file in files}
    for file in files:
        name = file.relative_to(root).as_posix()
        wing = name.split("/")[1] if name.startswith("testbed/") else "controllers"
        if file.name not in EVERYWHERE:
            modules[file.name].append(name)
            if file.stem in BARE | BARE_MODULES:
                problems.append(
                    f"{name}: the module's name says not what it holds; a noun, or a verb and its object would"
                )
        allowed = COMMANDS.get(name, set())
        tree = ast.parse(file.read_text(encoding="utf-8"))
        module = _module_name(file, root)
        imports[module] = _imported_modules(tree, module, package=file.name == "__init__.py", known=known)
        functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
        problems += [
            f"{name}:{node.lineno}: {node.name} says not what it does; a verb and its object would"
            for node in functions
            if node.name.strip("_") in BARE - allowed and not _declares_field(node)
        ]
        for node in tree.body:
            if isinstance(node, ast.ClassDef):
                classes[wing, node.name].append(f"{name}:{node.lineno}")
                if node.name in ONCE:
                    once[node.name].append(f"{name}:{node.lineno}")
    problems += list_circles(imports)
    problems += [
        f"{', '.join(places)}: {len(places)} classes of {wing} are called {name}; one class a noun"
        for (wing, name), places in classes.items()
        if len(places) > 1
    ]
    problems += [
        f"{', '.join(places)}: {len(places)} modules are called {name}; say what each holds"
        for name, places in modules.items()
        if len(places) > 2
    ]
    return problems + [
        f"{', '.join(places)}: {name} is the name of {len(places)} classes; say of what"
        for name, places in once.items()
        if len(places) > 1
    ]


if __name__ == "__main__":
    found = list_problems(ROOT)
    sys.stdout.write("".join(f"{problem}\n" for problem in found))
    raise SystemExit(bool(found))
