"""Names of functions and classes that a reader cannot take for something else; part of `make check`.

- A function of a module has no bare participle or preposition for a name: a verb and its object say what it does.
- No two classes of one wing have the same name; some nouns are a single class's in the whole program.
"""

from __future__ import annotations

import ast
import sys
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BARE = frozenset(
    [
        "above",
        "after",
        "again",
        "alike",
        "alone",
        "anew",
        "apart",
        "around",
        "asked",
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
        "broken",
        "built",
        "carried",
        "checked",
        "chosen",
        "compared",
        "damaged",
        "done",
        "down",
        "drained",
        "drawn",
        "during",
        "each",
        "elsewhere",
        "emptied",
        "entered",
        "far",
        "few",
        "finished",
        "fitted",
        "flooded",
        "folded",
        "followed",
        "found",
        "four",
        "fresh",
        "given",
        "gone",
        "grouped",
        "guarded",
        "heard",
        "held",
        "here",
        "idle",
        "inherited",
        "inside",
        "joined",
        "judged",
        "kept",
        "killed",
        "known",
        "lacking",
        "last",
        "late",
        "latest",
        "listed",
        "longest",
        "lost",
        "made",
        "marked",
        "meanwhile",
        "mine",
        "missing",
        "moved",
        "near",
        "nearest",
        "needed",
        "nobody",
        "none",
        "now",
        "off",
        "once",
        "only",
        "opened",
        "opposite",
        "ordered",
        "other",
        "over",
        "packed",
        "parsed",
        "passed",
        "placed",
        "planned",
        "predicted",
        "prepared",
        "printed",
        "pruned",
        "quiet",
        "quoted",
        "raised",
        "reached",
        "recorded",
        "refused",
        "regulated",
        "remembered",
        "reserved",
        "resumed",
        "revive",
        "same",
        "saved",
        "seldom",
        "settled",
        "several",
        "shared",
        "shown",
        "silent",
        "slept",
        "some",
        "spare",
        "split",
        "standing",
        "started",
        "stopped",
        "stored",
        "strays",
        "tagged",
        "taken",
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
        "wanted",
        "watched",
        "where",
        "whole",
        "without",
        "won",
        "wrapped",
        "written",
        "wrong",
    ]
)
# Commands of the program, whose functions are called as they are typed.
COMMANDS = {"testbed/ui/cli/lab_commands.py": {"up", "down"}}
# Nouns that everything could be called.
ONCE = {"Fabric", "Measured", "Outcome", "Verdict"}


def list_problems(root: Path) -> list[str]:
    """A sentence for each name that is not as it should be."""
    problems: list[str] = []
    classes: dict[tuple[str, str], list[str]] = defaultdict(list)
    once: dict[str, list[str]] = defaultdict(list)
    for file in sorted([*(root / "testbed").rglob("*.py"), *(root / "controllers").rglob("*.py")]):
        name = file.relative_to(root).as_posix()
        wing = name.split("/")[1] if name.startswith("testbed/") else "controllers"
        allowed = COMMANDS.get(name, set())
        tree = ast.parse(file.read_text(encoding="utf-8"))
        functions = [node for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
        problems += [
            f"{name}:{node.lineno}: {node.name} says not what it does; a verb and its object would"
            for node in functions
            if node.name.strip("_") in BARE - allowed
        ]
        for node in tree.body:
            if isinstance(node, ast.ClassDef):
                if not node.name.startswith("_"):
                    classes[wing, node.name].append(f"{name}:{node.lineno}")
                if node.name in ONCE:
                    once[node.name].append(f"{name}:{node.lineno}")
    problems += [
        f"{', '.join(places)}: {len(places)} classes of {wing} are called {name}; one class a noun"
        for (wing, name), places in classes.items()
        if len(places) > 1
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
