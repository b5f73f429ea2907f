"""What happens while a load runs, as text: `at 5s: down s3-s7`, `at 2s: link s3-s7 rate 100M`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated, Literal, get_args

from pydantic import BeforeValidator, JsonValue, WithJsonSchema

from testbed.base.errors import Problem, did_you_mean
from testbed.scenario.workloads.link_settings import READERS, RESET, LinkWords, read_words

Action = Literal["down", "up", "kill", "start", "link"]
ACTIONS: tuple[Action, ...] = get_args(Action)
FAILURES: tuple[Action, ...] = ACTIONS[:4]
# What takes back what another did.
OPPOSITE: dict[Action, Action] = {"down": "up", "up": "down", "kill": "start", "start": "kill"}
_FORM = re.compile(r"\s*at\s+([0-9]+(?:\.[0-9]+)?)\s*s\s*:\s*([a-z]+)\s+(\S.*?)\s*", re.IGNORECASE)
_EXAMPLE = '"at 5s: down s3-s7"'
_BLOCK_EXAMPLE = "{at: 2 s, link: s3-s7, rate: 100M}"
_KILLED = ("kill", "start")
MANAGER = "manager"  # of `kill` and `start`: that of the lab, unless a switch is called so
_AT = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*s?\s*")


@dataclass(frozen=True, slots=True)
class Event:
    """Something that dies, comes back or changes while a load runs."""

    at: float  # laboratory seconds after the start of the load's last program
    # `down` and `up` for links and ports, `kill` and `start` for switches or `manager`, `link` for changes of links
    action: Action
    targets: tuple[str, ...]  # their names
    words: LinkWords = field(default_factory=LinkWords)  # what links change to

    def __str__(self) -> str:
        """Return `at 5 s: down s3-s7`."""
        return f"at {self.at:g} s: {self.what}"

    @property
    def what(self) -> str:
        """`down s3-s7`."""
        more = f" {self.words}" if self.action == "link" else ""
        return f"{self.action} {', '.join(self.targets)}{more}"


def parse_event(text: str) -> Event:
    """Read one event.

    Raises:
        ValueError: it has another form.
    """
    match = _FORM.fullmatch(text)
    if match is None:
        raise ValueError(f'should be a time, what happens and to what, such as {_EXAMPLE}, not "{text}"')
    action = match[2].lower()
    known = next((name for name in ACTIONS if name == action), None)
    if known is None:
        meant = did_you_mean(action, ACTIONS)
        raise ValueError(f'"{action}" is nothing that can happen; there is {", ".join(ACTIONS)}.{meant}'.rstrip("."))
    names, words = match[3], LinkWords()
    if known == "link":
        parts = names.split()
        first = next((at for at, part in enumerate(parts) if part.strip(",") in (*READERS, RESET)), 1)
        names, words = " ".join(parts[:first]), read_words(" ".join(parts[first:]).replace(",", " ").split())
    targets = tuple(target.strip() for target in names.split(","))
    if not all(targets):
        raise ValueError(f'a name is missing in "{match[3]}"; separate names by single commas')
    return Event(float(match[1]), known, targets, words)


def _text_of_block(block: dict[object, object]) -> str:
    """`{at: 2 s, link: s3-s7, rate: 100M}` or `{at: 2 s, kill: s3}` as text."""
    known = ("at", "link", *READERS, RESET, "down", "up", *_KILLED)
    for key in block:
        if key not in known:
            raise ValueError(f"unknown key {key}.{did_you_mean(str(key), known)} Known: {', '.join(known)}")
    time = _AT.fullmatch(str(block.get("at", "")))
    killed = [key for key in _KILLED if key in block]
    if time is not None and killed and isinstance(block[killed[0]], str):
        if len(block) > 2:
            raise ValueError(f"{killed[0]} stands alone beside the time; make the rest of it an entry of its own")
        return f"at {time[1]}s: {killed[0]} {block[killed[0]]}"
    if time is None or not isinstance(block.get("link"), str):
        raise ValueError(f"should be a block such as {_BLOCK_EXAMPLE}, with a time and the name of a link")
    switched = [key for key in (RESET, "down", "up") if key in block]
    for key in switched:
        if block[key] is not True:
            raise ValueError(f"{key} should be true; leave it out where the link is not to be {key}")
    if "down" in block or "up" in block:
        if len(block) > 3:
            raise ValueError(
                f"{switched[-1]} stands alone; make {' and '.join(map(str, list(block)[2:]))} entries of their own"
            )
        return f"at {time[1]}s: {switched[0]} {block['link']}"
    words = [f"{key} {block[key]}" for key in READERS if key in block]
    return f"at {time[1]}s: link {' '.join([str(block['link']), *switched, *words])}"


def _text(value: object) -> object:
    """An entry as text; YAML makes a block of `at 5s: down s3-s7` without quotes."""
    if isinstance(value, dict) and ("at" in value or "link" in value):
        value = _text_of_block(value)
    if isinstance(value, dict) and len(value) == 1:
        key, rest = next(iter(value.items()))
        value = f"{key}: {rest}"
    if not isinstance(value, str):
        raise ValueError(f"should be text such as {_EXAMPLE}")
    parse_event(value)
    return value


def _failure(value: object) -> object:
    """The same of what dies and comes back alone."""
    text = _text(value)
    if parse_event(str(text)).action == "link":
        raise ValueError(f'"{text}" is a change and no failure; write it, and the failures beside it, under timeline:')
    return text


_KILL_BLOCK: dict[str, JsonValue] = {
    "type": "object",
    "properties": {"at": {"type": ["string", "number"]}, **{key: {"type": "string"} for key in _KILLED}},
    "required": ["at"],
    "additionalProperties": False,
    "minProperties": 2,
    "maxProperties": 2,
}
_AT_BLOCK: dict[str, JsonValue] = {
    "type": "object",
    "patternProperties": {r"^at\s+[0-9.]+\s*s$": {"type": "string"}},
    "additionalProperties": False,
    "minProperties": 1,
    "maxProperties": 1,
}
FailureText = Annotated[
    str,
    BeforeValidator(_failure),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "string", "pattern": r"^\s*at\s+[0-9.]+\s*s\s*:\s*(down|up|kill|start)\s+\S"},
                _AT_BLOCK,
                _KILL_BLOCK,
            ]
        }
    ),
]
EventText = Annotated[
    str,
    BeforeValidator(_text),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "string", "pattern": r"^\s*at\s+[0-9.]+\s*s\s*:\s*(down|up|kill|start|link)\s+\S"},
                _AT_BLOCK,
                _KILL_BLOCK,
                {
                    "type": "object",
                    "properties": {
                        "at": {"type": ["string", "number"]},
                        "link": {"type": "string"},
                        **{word: {"type": "string"} for word in READERS},
                        **{word: {"const": True} for word in (RESET, "down", "up")},
                    },
                    "required": ["at", "link"],
                    "additionalProperties": False,
                },
            ]
        }
    ),
]


def timeline_problems(key: str, events: Sequence[str], seconds: float) -> list[Problem]:
    """What is wrong with the times of events; places are `key.N`.

    `key` is that of the list, `events` are their texts; `seconds` laboratory seconds that the load takes.
    """
    found, before = [], 0.0
    for number, event in enumerate(map(parse_event, events)):
        if event.at < before:
            sentence = f"{event.at:g} s is before {before:g} s, the time of the event above; write them in order"
            found.append(Problem(f"{key}.{number}", sentence))
        if event.at >= seconds:
            sentence = f"the load ends after {seconds:g} s, so nothing would be seen of it; choose an earlier time"
            found.append(Problem(f"{key}.{number}", sentence))
        before = max(before, event.at)
    return found
