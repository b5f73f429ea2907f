"""Configurations of Junos as statements, whether they are written in braces or as lines of `set`."""

from __future__ import annotations

import re
from collections.abc import Iterator

from testbed.devices.read_lines import SwitchLines

_TOKEN = re.compile(r'"[^"]*"|[{};\[\]]|[^\s{};\[\]"]+')


def statements_of(  # noqa: C901, PLR0912 - one token after the other
    text: str, switch: SwitchLines
) -> Iterator[tuple[int, list[str]]]:
    """Each statement as words from the top, with its line."""
    path: list[list[str]] = []
    words: list[str] = []
    members: list[str] | None = None  # of a list in brackets
    comment = False
    number = 0
    for number, line in enumerate(text.splitlines(), 1):
        stripped = line.strip()
        comment = comment or stripped.startswith("/*")
        if comment or not stripped or stripped.startswith(("#", "##")):
            comment = comment and not stripped.endswith("*/")
            continue
        if stripped.startswith("set ") and not path:
            yield from ((number, one) for one in _spread(stripped.split()[1:]))
            continue
        if stripped.startswith(("delete ", "deactivate ")) and not path:
            switch.not_understood(
                number, f'"{stripped[:80]}" takes something back; save what "show configuration" prints'
            )
            continue
        for token in _TOKEN.findall(line.partition("##")[0]):
            if token == "{":
                path.append(words)
                words = []
            elif token == "}":
                if not path:
                    switch.add_problem(number, "closes a brace that was not opened")
                    return
                path.pop()
                words = []
            elif token == ";":
                whole = [word for part in path for word in part] + words
                if "inactive:" not in whole:
                    ends = [[member] for member in members] if members is not None else [[]]
                    yield from ((number, [*whole, *end]) for end in ends)
                words, members = [], None
            elif token == "[":
                members = []
            elif token != "]":
                (words if members is None else members).append(token)
    if path or words:
        switch.add_problem(number, "ends inside of braces, so the file is cut off")


def _spread(words: list[str]) -> Iterator[list[str]]:
    """A line of `set` with a list in brackets as several."""
    if "[" in words and words[-1] == "]":
        place = words.index("[")
        yield from ([*words[:place], one] for one in words[place + 1 : -1])
    else:
        yield words
