"""Named tuples of arrays in one file that several processes map: the model as one computes it and others read it."""

from __future__ import annotations

import json
import mmap
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, cast, get_type_hints

import numpy as np

T = TypeVar("T", bound=tuple[Any, ...])

_LINE = 64  # bytes that arrays are aligned to
_HEAD = 8  # bytes that say how long the description is


class _Place(NamedTuple):
    """Where an array stands in the file."""

    dtype: str
    shape: tuple[int, ...]
    offset: int
    size: int


def write(file: Path, value: tuple[Any, ...]) -> None:
    """Write a named tuple of arrays, numbers and named tuples; what is zero takes no room in the file system."""
    fields = dict(_flat("", value))
    arrays = {name: np.ascontiguousarray(one) for name, one in fields.items() if isinstance(one, np.ndarray)}
    numbers = {name: one for name, one in fields.items() if name not in arrays}
    places, offset = {}, 0
    for name, array in arrays.items():
        places[name] = _Place(array.dtype.str, array.shape, offset, array.nbytes)
        offset += -(-array.nbytes // _LINE) * _LINE
    head = json.dumps({"numbers": numbers, "arrays": places}).encode()
    start = -(-(_HEAD + len(head)) // mmap.PAGESIZE) * mmap.PAGESIZE
    with file.open("wb") as out:
        out.write(len(head).to_bytes(_HEAD, "little") + head)
        for name, array in arrays.items():
            if array.any():
                out.seek(start + places[name].offset)
                out.write(array.tobytes())
        out.truncate(start + max(offset, 1))


def attach(file: Path, kind: type[T]) -> T:
    """Map what write() wrote; arrays are the file's own memory, shared with everyone who has it."""
    with file.open("r+b") as stored:
        length = int.from_bytes(stored.read(_HEAD), "little")
        head = json.loads(stored.read(length))
        memory = mmap.mmap(stored.fileno(), 0)
    start = -(-(_HEAD + length) // mmap.PAGESIZE) * mmap.PAGESIZE
    fields: dict[str, Any] = dict(head["numbers"])
    for name, place in head["arrays"].items():
        dtype, shape, offset, size = _Place(*place)
        array = np.frombuffer(memory, dtype=np.uint8, count=size, offset=start + offset)
        fields[name] = array.view(dtype).reshape(shape)
    return cast(T, _build_tuple("", kind, fields))


def _flat(prefix: str, value: tuple[Any, ...]) -> list[tuple[str, Any]]:
    """Fields with their names, those of inner tuples as `outer.inner`."""
    found: list[tuple[str, Any]] = []
    for name, one in zip(value._fields, value, strict=True):  # type: ignore[attr-defined]
        if hasattr(one, "_fields"):
            found += _flat(f"{prefix}{name}.", one)
        else:
            found.append((prefix + name, one.item() if isinstance(one, np.generic) else one))
    return found


def _build_tuple(prefix: str, kind: Any, fields: dict[str, Any]) -> Any:
    hints = get_type_hints(kind)
    return kind(
        *(
            _build_tuple(f"{prefix}{name}.", hints[name], fields)
            if hasattr(hints[name], "_fields")
            else fields[prefix + name]
            for name in kind._fields
        )
    )
