"""Records as lines of JSON between a lab's client and its agent, and back into the same records."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, Field, fields, is_dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from testbed.base.errors import LabError

_T = TypeVar("_T")
_SHOWN = 80


def encode(value: object) -> str:
    """JSON of a record, or of anything that is made of records, sequences, mappings and plain values."""
    return json.dumps(value, default=_fields_of)


def _fields_of(value: Any) -> dict[str, object]:
    if isinstance(value, Mapping):
        return dict(value)
    return {field.name: getattr(value, field.name) for field in fields(value)}


def decode(kind: type[_T], raw: object, *, more_keys: bool = False) -> _T:
    """A value of a type from what JSON made of it.

    `kind` is a dataclass, or made of dataclasses, tuples, lists, mappings, unions with None, literals and plain types;
    with `more_keys` objects may have keys that their dataclass has not.

    Raises:
        LabError: it is no such value.
    """
    made: _T = _decode(kind, raw, more_keys)
    return made


@cache
def _resolve_fields(kind: type[Any]) -> tuple[tuple[Field[Any], Any], ...]:
    hints = get_type_hints(kind)
    return tuple((field, hints[field.name]) for field in fields(kind))


def _decode(kind: Any, raw: Any, more_keys: bool) -> Any:
    origin, arguments = get_origin(kind), get_args(kind)
    if is_dataclass(kind):
        return _record(kind, raw, more_keys)
    if origin in (Union, UnionType):
        fitting = [one for one in arguments if type(raw) is one]
        others = [one for one in arguments if one is not NoneType]
        return _decode((fitting or others)[0], raw, more_keys)
    if origin is Literal and any(type(raw) is type(one) and raw == one for one in arguments):
        return raw
    if isinstance(raw, list) and origin in (tuple, list, Sequence):
        return _items(origin, arguments, raw, more_keys)
    if isinstance(raw, dict) and origin in (dict, Mapping):
        key = int if arguments[0] is int else str
        return {key(name): _decode(arguments[1], value, more_keys) for name, value in raw.items()}
    if type(raw) is kind or (kind is float and type(raw) is int):
        return float(raw) if kind is float else raw
    raise LabError(f"{str(raw)[:_SHOWN]!r} came where the lab's agent and its client pass {kind}")


def _items(origin: Any, arguments: tuple[Any, ...], raw: list[Any], more_keys: bool) -> Any:
    kinds = arguments if origin is tuple and arguments[-1] is not Ellipsis else (arguments[0],) * len(raw)
    if len(kinds) != len(raw):
        raise LabError(f"{str(raw)[:_SHOWN]!r} came where the lab's agent and its client pass {len(kinds)} values")
    return (tuple if origin is tuple else list)(
        _decode(one, value, more_keys) for one, value in zip(kinds, raw, strict=True)
    )


def _record(kind: Any, raw: Any, more_keys: bool) -> Any:
    known = _resolve_fields(kind)
    names = {field.name for field, _ in known}
    if not isinstance(raw, dict) or (not more_keys and not raw.keys() <= names):
        raise LabError(f"{str(raw)[:_SHOWN]!r} came where the lab's agent and its client pass {kind.__name__}")
    lacking = [
        field.name
        for field, _ in known
        if field.name not in raw and field.default is MISSING and field.default_factory is MISSING
    ]
    if lacking:
        raise LabError(f"{kind.__name__} came without {', '.join(lacking)}")
    return kind(**{field.name: _decode(hint, raw[field.name], more_keys) for field, hint in known if field.name in raw})
