"""Inputs that are nearly right: what the project ships, with up to three things changed.

Drawn by a plain generator of random numbers: Hypothesis takes ten milliseconds for one of these, and the program often
less than one.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import Any

# What has broken programs before, or has a meaning to one of the libraries behind.
ODD: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 2, 1 << 31, -(1 << 63), 1 << 64, 10**400, 0.5, -0.0, 1e308, float("inf"), float("nan"),
    "", " ", "\x00", "\ud800", "\ufeff", "\u202e", "'", '"', "<script>", "$\\frac$", "{}", "%s", "../../x", "=1+1",
    "/dev/zero", "9" * 5000, "a" * 5000, "nan", "-inf", "1e999", "0x10", "1_000", "!!float", "&a [*a]", "h1", "s1",
    "h0", "s99999", "auto", "none", "all", "1 Gbit/s", "10 ms", [], {}, [[]], [None], {"kind": None}, {"": ""},
    [1, [2, [3, [4]]]],
)  # fmt: skip
_PIECES = ("\n", " ", ":", "-", "[", "]", "{", "}", "'", '"', "#", ",", "&a", "*a", "!!", "\t", "\x00", "é", "0", "-1")
_LETTERS = "abcxyz019 _-:.,/é€\x07"


def word(chance: Random, most: int = 6) -> str:
    """A few letters."""
    return "".join(chance.choice(_LETTERS) for _ in range(chance.randrange(most + 1)))


def value(chance: Random) -> Any:
    """Anything that JSON can hold."""
    how = chance.randrange(6)
    if how < 3:
        return copy.deepcopy(chance.choice(ODD))
    if how == 3:
        return chance.randint(-3, 9)
    return word(chance) if how == 4 else [chance.randint(-3, 9) for _ in range(chance.randrange(4))]


def _places(tree: Any, above: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Paths of keys and numbers to all that a tree holds."""
    for key, part in tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ():
        yield (*above, key)
        yield from _places(part, (*above, key))


def changed_tree(chance: Random, trees: Sequence[Any]) -> Any:
    """One of some trees of dictionaries and lists, with up to three places changed."""
    tree = copy.deepcopy(chance.choice(trees))
    for _ in range(chance.randint(1, 3)):
        places = list(_places(tree))
        if not places:
            return tree
        path = chance.choice(places)
        holder = tree
        for key in path[:-1]:
            holder = holder[key]
        how, last = chance.choice(("value", "value", "gone", "twice", "another", "named")), path[-1]
        if how == "value":
            holder[last] = value(chance)
        elif how == "gone":
            del holder[last]
        elif how == "twice" and isinstance(holder, list):
            holder.insert(last, copy.deepcopy(holder[last]))
        elif how == "named" and isinstance(holder, dict):
            holder[chance.choice((word(chance), str(value(chance))))] = holder.pop(last)
        else:
            other = chance.choice(trees)
            for key in chance.choice(list(_places(other)) or [()]):
                other = other[key]
            holder[last] = copy.deepcopy(other)
    return tree


def changed_text(chance: Random, texts: Sequence[str]) -> str:
    """One of some texts, with up to three pieces put in, taken out or repeated."""
    text = chance.choice(texts)
    for _ in range(chance.randint(1, 3)):
        at, length = chance.randint(0, len(text)), chance.randint(0, 12)
        how = chance.choice(("in", "out", "odd", "again", "end"))
        if how == "in":
            text = text[:at] + chance.choice(_PIECES) + text[at:]
        elif how == "odd":
            text = text[:at] + str(value(chance)) + text[at + length :]
        elif how == "again":
            text = text[: at + length] + text[at:]
        else:
            text = text[:at] + (text[at + length :] if how == "out" else "")
    return text


def changed_files(chance: Random, folders: Sequence[dict[str, str]]) -> dict[str, str]:
    """The files of one of some folders, of which one has another text, another name, or is not there."""
    files = dict(chance.choice(folders))
    name = chance.choice(sorted(files))
    how = chance.choice(("text", "text", "text", "gone", "named"))
    text = files.pop(name)
    if how == "text":
        files[name] = changed_text(chance, [text])
    elif how == "named":
        files[word(chance, 8).replace("/", "") or "x"] = text
    return files


def smaller(given: Any, still: Callable[[Any], bool], tries: int = 400) -> Any:
    """A smaller input of which something still holds: parts are left out as long as it does."""
    left = [tries]

    def holds(one: Any) -> bool:
        left[0] -= 1
        return left[0] >= 0 and still(one)

    if isinstance(given, str):
        size = max(1, len(given) // 2)
        while size and left[0] > 0:
            at = 0
            while at < len(given) and left[0] > 0:
                without = given[:at] + given[at + size :]
                if holds(without):
                    given = without
                else:
                    at += size
            size //= 2
    elif isinstance(given, dict):
        for key in list(given):
            without = {name: text for name, text in given.items() if name != key}
            if holds(without):
                given = without
            else:
                rest = given

                def with_text(text: Any, key: Any = key, rest: Any = rest) -> bool:
                    return still({**rest, key: text})

                given = {**rest, key: smaller(rest[key], with_text, left[0] // 2)}
    return given


def as_json(tree: Any) -> str:
    """JSON, which is also YAML."""
    return json.dumps(tree)
