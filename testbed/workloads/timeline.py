"""Failures that a load asks for, as text: `at 5s: down s3-s7`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal, get_args

from pydantic import BeforeValidator, WithJsonSchema

from testbed.errors import Problem, did_you_mean

Action = Literal["down", "up", "kill", "start"]
ACTIONS: tuple[Action, ...] = get_args(Action)
# What takes back what another did.
OPPOSITE: dict[Action, Action] = {"down": "up", "up": "down", "kill": "start", "start": "kill"}
_FORM = re.compile(r"\s*at\s+([0-9]+(?:\.[0-9]+)?)\s*s\s*:\s*([a-z]+)\s+(\S.*?)\s*", re.IGNORECASE)
_EXAMPLE = '"at 5s: down s3-s7"'


@dataclass(frozen=True, slots=True)
class Event:
    """Something that dies, or comes back, while a load runs."""

    at: float  # laboratory seconds after the start of the load's last program
    action: Action  # `down` and `up` for links and ports, `kill` and `start` for switches
    targets: tuple[str, ...]  # their names

    def __str__(self) -> str:
        """Return `at 5 s: down s3-s7`."""
        return f"at {self.at:g} s: {self.what}"

    @property
    def what(self) -> str:
        """`down s3-s7`."""
        return f"{self.action} {', '.join(self.targets)}"


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
    targets = tuple(target.strip() for target in match[3].split(","))
    if not all(targets):
        raise ValueError(f'a name is missing in "{match[3]}"; separate names by single commas')
    return Event(float(match[1]), known, targets)


def _text(value: object) -> object:
    """An entry as text; YAML makes a block of `at 5s: down s3-s7` without quotes."""
    if isinstance(value, dict) and len(value) == 1:
        key, rest = next(iter(value.items()))
        value = f"{key}: {rest}"
    if not isinstance(value, str):
        raise ValueError(f"should be text such as {_EXAMPLE}")
    parse_event(value)
    return value


EventText = Annotated[
    str,
    BeforeValidator(_text),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "string", "pattern": r"^\s*at\s+[0-9.]+\s*s\s*:\s*(down|up|kill|start)\s+\S"},
                {
                    "type": "object",
                    "patternProperties": {r"^at\s+[0-9.]+\s*s$": {"type": "string"}},
                    "additionalProperties": False,
                    "minProperties": 1,
                    "maxProperties": 1,
                },
            ]
        }
    ),
]


def timeline_problems(failures: Sequence[str], seconds: float) -> list[Problem]:
    """What is wrong with the times of events; places are `failures.N`.

    `failures` are texts of events; `seconds` laboratory seconds that the load takes.
    """
    found, before = [], 0.0
    for number, event in enumerate(map(parse_event, failures)):
        if event.at < before:
            sentence = f"{event.at:g} s is before {before:g} s, the time of the event above; write them in order"
            found.append(Problem(f"failures.{number}", sentence))
        if event.at >= seconds:
            sentence = f"the load ends after {seconds:g} s, so nothing would be seen of it; choose an earlier time"
            found.append(Problem(f"failures.{number}", sentence))
        before = max(before, event.at)
    return found
