"""Published schemas of what commands print as JSON: held against real outputs, and made anew from them.

With TESTBED_RENEW_SCHEMAS=1 each output that a test looks at is kept below .cache/json-outputs, and the schema of its
command is made of all that are there; without it the output must conform, and have no key that is not published.
"""

from __future__ import annotations

import copy
import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator

from testbed.ui.cli.output import JSON_VERSION

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "testbed/ui/cli/schemas"
_OUTPUTS = ROOT / ".cache/json-outputs"
# Objects whose keys are names that differ from one output to another, by command and place (* = every entry).
_MAPS = {
    "list": ("*",),
    "doctor": ("versions",),
    "check": ("walks.received",),
    "vm build": ("versions",),
    "simulate": ("settings",),
    "controller": ("switches", "slower"),
    "export": ("dialects", "files", "*.names", "hosts"),
}
_ANY_MAP = re.compile(r"(^|\.)(labels|parameters)$")


def conforms(command: str, text: str) -> dict[str, Any]:
    """The object that a command has printed, once it is held against the schema of the command."""
    value: dict[str, Any] = json.loads(text)
    assert value["schema_version"] == JSON_VERSION
    assert command == "error" or "error" not in value, value["error"]
    name = "variants" if "variants" in value else command
    if os.environ.get("TESTBED_RENEW_SCHEMAS") == "1":
        renew(name, value)
    schema = json.loads(file_of(name).read_text(encoding="utf-8"))
    found = sorted(Draft202012Validator(closed(schema)).iter_errors(value), key=str)
    assert not found, f"{name}: {found[0].json_path}: {found[0].message}"
    return value


def file_of(command: str) -> Path:
    return FOLDER / f"{command.replace(' ', '-')}.json"


def renew(command: str, value: Mapping[str, Any]) -> None:
    folder = _OUTPUTS / command.replace(" ", "-")
    folder.mkdir(parents=True, exist_ok=True)
    text = json.dumps(value)
    (folder / f"{sha256(text.encode()).hexdigest()[:16]}.json").write_text(text)
    values = [json.loads(file.read_text()) for file in sorted(folder.glob("*.json"))]
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"testbed {command} --format json" if command not in ("error", "variants") else command,
        **schema_of(values, _MAPS.get(command, ())),
    }
    schema["properties"]["schema_version"] = {"const": JSON_VERSION}
    if file_of(command).exists():
        schema = kept(schema, json.loads(file_of(command).read_text(encoding="utf-8")))
    file_of(command).write_text(json.dumps(schema, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def kept(schema: Any, published: Any) -> Any:
    """The schema, with what is published of a value of which no output has shown anything."""
    if schema == {}:
        return published
    if isinstance(schema, dict) and isinstance(published, dict):
        return {key: kept(part, published[key]) if key in published else part for key, part in schema.items()}
    return schema


def schema_of(values: Sequence[Any], maps: Iterable[str], place: str = "") -> dict[str, Any]:
    """What all of some values have in common: types, keys that always are there, and keys that there may be.

    Of what is never there, null in all of them, nothing is said.
    """
    parts: list[dict[str, Any]] = []
    objects = [value for value in values if isinstance(value, dict)]
    lists = [value for value in values if isinstance(value, list)]
    plain = {_type(value) for value in values if not isinstance(value, dict | list)}
    if {"integer", "number"} <= plain:
        plain.remove("integer")
    if objects and (_is_map(place, maps) or not any(objects)):
        inside = [entry for value in objects for entry in value.values()]
        parts.append({"type": "object", "additionalProperties": schema_of(inside, maps, f"{place}.*".lstrip("."))})
    elif objects:
        keys = list(dict.fromkeys(key for value in objects for key in value))
        parts.append(
            {
                "type": "object",
                "properties": {
                    key: schema_of(
                        [value[key] for value in objects if key in value], maps, f"{place}.{key}".lstrip(".")
                    )
                    for key in keys
                },
                "required": [key for key in keys if all(key in value for value in objects)],
            }
        )
    if lists:
        entries = [entry for value in lists for entry in value]
        parts.append({"type": "array", "items": schema_of(entries, maps, place)} if entries else {"type": "array"})
    if plain == {"null"} and not parts:
        return {}  # what it is when it is there, no output has shown
    if plain:
        types = sorted(plain)
        parts.append({"type": types[0] if len(types) == 1 else types})
    return {} if not parts else parts[0] if len(parts) == 1 else {"anyOf": parts}


def _is_map(place: str, maps: Iterable[str]) -> bool:
    wanted = [re.escape(one).replace(r"\*", "[^.]+") for one in maps]
    return (bool(place) and any(re.fullmatch(one, place) for one in wanted)) or bool(_ANY_MAP.search(place))


def _type(value: object) -> str:
    kinds = {bool: "boolean", int: "integer", float: "number", str: "string", type(None): "null"}
    return kinds[type(value)]


def closed(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema without room for keys that it does not name: others may come in later versions."""
    found = copy.deepcopy(schema)

    def close(part: Any) -> None:
        if isinstance(part, dict):
            if "properties" in part:
                part.setdefault("additionalProperties", False)
            for inner in part.values():
                close(inner)
        elif isinstance(part, list):
            for inner in part:
                close(inner)

    close(found)
    return found
