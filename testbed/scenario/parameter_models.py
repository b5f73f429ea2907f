"""Pydantic models made from the dataclasses that declare parameters, and errors made into sentences."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from typing import Any, Literal, get_args, get_origin, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model
from pydantic_core import ErrorDetails

from testbed.base.errors import Problem, did_you_mean
from testbed.base.synonyms import find_looked_for

# What each kind of error says, with the limits that pydantic gives; "not …" follows.
_SENTENCES = {
    "int_type": "should be a whole number",
    "float_type": "should be a number",
    "finite_number": "should be a finite number",
    "string_type": "should be text (in quotes)",
    "bool_type": "should be true or false",
    "greater_than": "should be above {gt}",
    "greater_than_equal": "should be {ge} or more",
    "less_than_equal": "should be {le} or less",
    "too_short": "should have {min_length} or more entries",
}
_MAX_SHOWN = 60
_MODELS: dict[type[Any], type[BaseModel]] = {}  # made once


def model_of(spec: type[Any]) -> type[BaseModel]:
    """Return the model that validates the fields of a parameter dataclass; unknown keys are errors."""
    if spec in _MODELS:
        return _MODELS[spec]
    hints = get_type_hints(spec, include_extras=True)
    fields: dict[str, Any] = {
        key_of(field.name): (
            hints[field.name],
            ... if field.default is dataclasses.MISSING else Field(default=field.default),
        )
        for field in dataclasses.fields(spec)
    }
    # Strict: true is no number and "4" is none either.
    config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)
    model: type[BaseModel] = create_model(spec.__name__, __config__=config, **fields)
    _MODELS[spec] = model
    return model


def key_of(name: str) -> str:
    """Key of a block for the field of a dataclass: `class` cannot be a name in Python, so its field is `class_`."""
    return name.removesuffix("_")


def fill(spec: type[Any], values: object, place: str, problems: list[Problem], more_keys: Sequence[str] = ()) -> Any:
    """Return an instance of a parameter dataclass, or None after adding every problem found.

    `more_keys` are read elsewhere; they are only for messages.
    """
    if not isinstance(values, dict):
        problems.append(Problem(place, f"should be a block of keys, not {format_value(values)}"))
        return None
    given = {key: _tuples(value) for key, value in values.items()}
    try:
        model = model_of(spec).model_validate(given)
    except ValidationError as error:
        details = error.errors(include_url=False)
        # A list of wrong entries is called too short as well; the entries are the problem.
        details = [d for d in details if d["type"] != "too_short" or not d["input"]]
        # What is wrong inside an entry may be several errors, but is one problem.
        entries = (_entry_problem(spec, place, detail, given) for detail in details)
        problems += dict.fromkeys(
            entry or _problem(spec, place, detail, more_keys) for entry, detail in zip(entries, details, strict=True)
        )
        return None
    return spec(**{field.name: getattr(model, key_of(field.name)) for field in dataclasses.fields(spec)})


def _tuples(value: object) -> object:
    """A list as a tuple, and its entries likewise, which is as deep as parameters are."""
    if not isinstance(value, list):
        return value
    return tuple(tuple(entry) if isinstance(entry, list) else entry for entry in value)


def _entry_problem(spec: type[Any], place: str, detail: ErrorDetails, values: dict[str, Any]) -> Problem | None:
    """The problem of an entry of a list whose declaration says what an entry is, else None."""
    key, *inside = detail["loc"]
    wanted = _words(spec, key, "entry")
    if not wanted or not inside:
        return None
    return Problem(f"{place}.{key}.{inside[0]}", f"should be {wanted}, not {format_value(values[str(key)][inside[0]])}")


def _problem(spec: type[Any], place: str, detail: ErrorDetails, more_keys: Sequence[str]) -> Problem:
    where = ".".join([place, *(str(part) for part in detail["loc"] if not str(part).startswith("function-"))])
    kind, given, context = detail["type"], detail.get("input"), detail.get("ctx", {})
    if kind == "extra_forbidden":
        known = [*more_keys, *(key_of(field.name) for field in dataclasses.fields(spec))]
        return Problem(where, unknown_key(str(detail["loc"][-1]), known))
    if kind == "missing":
        return Problem(where, f"is required: {_describe_field(spec, detail)}")
    if kind == "value_error":
        return Problem(where, str(context["error"]))
    if kind == "literal_error":
        words = [word.strip(" '") for word in context["expected"].replace(" or ", ", ").split(",")]
        return Problem(where, not_one_of(given, words))
    if kind in ("tuple_type", "dict_type"):
        return Problem(where, f"should be {_describe_field(spec, detail)}, not {format_value(given)}")
    limits = {name: f"{limit:.15g}" for name, limit in context.items() if isinstance(limit, int | float)}
    sentence = _SENTENCES[kind].format(**limits) if kind in _SENTENCES else str(detail["msg"])
    return Problem(where, f"{sentence}, not {format_value(given)}")


def _describe_field(spec: type[Any], detail: ErrorDetails) -> str:
    """What a field asks for, in words."""
    key = detail["loc"][0]
    wanted = _words(spec, key, "wanted")
    if wanted:
        return wanted
    hint = {key_of(name): hint for name, hint in get_type_hints(spec).items()}[str(key)]
    if get_origin(hint) is Literal:
        return f"one of {', '.join(get_args(hint))}"
    if hint is int:
        return "a whole number"
    if "tuple" in str(hint):
        return "a list of " + ("whole numbers such as [4, 4]" if "int" in str(hint) else 'texts such as ["-n", "10"]')
    return "text" if hint is str else "a value"


def _words(spec: type[Any], key: object, which: str) -> str | None:
    """What a field's declaration says of its value (`wanted`) or of one entry of it (`entry`)."""
    fields = (f for f in dataclasses.fields(spec) if key_of(f.name) == key)
    words: str | None = next((f.metadata.get(which) for f in fields), None)
    return words


# What other programs, or other blocks, call a key.
_OTHERWISE_CALLED = {"duration": "seconds", "time": "seconds", "bandwidth": "rate"}
# Keys of a regular topology that are not its own, but of the block links beside it.
_OF_LINKS = ("links", "extra_links", "add_links")


def unknown_key(key: str, known: Sequence[str]) -> str:
    """Sentence for a key that a block does not have."""
    meant = _OTHERWISE_CALLED.get(key)
    hint = f' Did you mean "{meant}"?' if meant in known else find_looked_for(key, known) or did_you_mean(key, known)
    if key in _OF_LINKS and "hosts_per_switch" in known:
        hint = " Links are added by the block links, beside topology: links: {add: [[s1, s11]]}."
    return f"unknown key.{hint} Known: {', '.join(known)}"


def not_one_of(given: object, known: Sequence[str]) -> str:
    """Sentence for a value that is none of those there are."""
    meant = did_you_mean(str(given), known)
    return f"should be one of {', '.join(known)}, not {format_value(given)}{'.' if meant else ''}{meant}"


def format_value(value: object) -> str:
    """Return a value in one line, much as it is in the file, cut where it gets long."""
    if value is None:
        return "nothing"
    try:
        text = json.dumps(value, ensure_ascii=False, default=str)  # JSON is YAML
    except ValueError:  # a list that contains itself
        text = str(value)
    return text if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]}…"
