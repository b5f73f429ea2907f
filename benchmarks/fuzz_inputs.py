"""Inputs that are nearly right: what the project ships, with a few things changed, as Hypothesis can shrink them."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st

# What has broken programs before, or has a meaning to one of the libraries behind.
ODD: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 2, 1 << 31, -(1 << 63), 1 << 64, 10**400, 0.5, -0.0, 1e308, float("inf"), float("nan"),
    "", " ", "\x00", "\ud800", "\ufeff", "\u202e", "'", '"', "<script>", "$\\frac$", "{}", "%s", "../../x", "=1+1",
    "/dev/zero",
    "9" * 5000, "a" * 5000, "nan", "-inf", "1e999", "0x10", "1_000", "!!float", "&a [*a]", "h1", "s1", "h0", "s99999",
    "auto", "none", "all", "1 Gbit/s", "10 ms", [], {}, [[]], [None], {"kind": None}, {"": ""}, [1, [2, [3, [4]]]],
)  # fmt: skip
_SMALL = st.integers(-3, 9)
_VALUES = st.one_of(
    st.sampled_from(ODD), _SMALL, st.integers(), st.floats(), st.text(max_size=6),
    st.lists(_SMALL, max_size=4), st.dictionaries(st.text(max_size=4), _SMALL, max_size=2),
)  # fmt: skip
_PIECES = ("\n", " ", ":", "-", "[", "]", "{", "}", "'", '"', "#", ",", "&a", "*a", "!!", "\t", "\x00", "é", "0", "-1")
_CHANGES = st.integers(1, 3)


def _places(tree: Any, above: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Paths of keys and numbers to all that a tree holds."""
    parts = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    found = []
    for key, part in parts:
        found += [(*above, key), *_places(part, (*above, key))]
    return found


@st.composite
def changed_trees(draw: st.DrawFn, trees: Sequence[Any]) -> Any:
    """One of some trees of dictionaries and lists, with up to three places changed."""
    tree = copy.deepcopy(draw(st.sampled_from(trees)))
    for _ in range(draw(_CHANGES)):
        places = _places(tree)
        if not places:
            return tree
        path = draw(st.sampled_from(places))
        holder = tree
        for key in path[:-1]:
            holder = holder[key]
        how, last = draw(st.sampled_from(("value", "value", "gone", "twice", "another", "named"))), path[-1]
        if how == "value":
            holder[last] = draw(_VALUES)
        elif how == "gone":
            del holder[last]
        elif how == "twice" and isinstance(holder, list):
            holder.insert(last, copy.deepcopy(holder[last]))
        elif how == "named" and isinstance(holder, dict):
            holder[draw(st.text(max_size=8))] = holder.pop(last)
        else:
            other = draw(st.sampled_from(trees))
            for key in draw(st.sampled_from(_places(other) or [()])):
                other = other[key]
            holder[last] = copy.deepcopy(other)
    return tree


@st.composite
def changed_texts(draw: st.DrawFn, texts: Sequence[str], pieces: Sequence[str] = _PIECES) -> str:
    """One of some texts, with up to three pieces put in, taken out or repeated."""
    text = draw(st.sampled_from(texts))
    for _ in range(draw(_CHANGES)):
        at = draw(st.integers(0, len(text)))
        length = draw(st.integers(0, 12))
        how = draw(st.sampled_from(("in", "out", "odd", "again", "end")))
        if how == "in":
            text = text[:at] + draw(st.sampled_from(pieces)) + text[at:]
        elif how == "out":
            text = text[:at] + text[at + length :]
        elif how == "odd":
            text = text[:at] + str(draw(_VALUES)) + text[at + length :]
        elif how == "again":
            text = text[: at + length] + text[at:]
        else:
            text = text[:at]
    return text


@st.composite
def changed_files(draw: st.DrawFn, folders: Sequence[dict[str, str]]) -> dict[str, str]:
    """The files of one of some folders, of which one has another text, another name, or is not there."""
    files = dict(draw(st.sampled_from(folders)))
    name = draw(st.sampled_from(sorted(files)))
    how = draw(st.sampled_from(("text", "text", "text", "gone", "named")))
    text = files.pop(name)
    if how == "text":
        files[name] = draw(changed_texts([text]))
    elif how == "named":
        files[
            draw(
                st.text(
                    st.characters(blacklist_characters="/\x00", blacklist_categories=["Cs"]), min_size=1, max_size=8
                )
            )
        ] = text
    return files
