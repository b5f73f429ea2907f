"""How much of what others have written is read: bytes, depth, values; and parsers that keep to it.

Limits are far above what people write and what the program itself does. Whoever has more sets TESTBED_LIMITS, a factor.
"""

from __future__ import annotations

import io
import json
import math
import os
import re
import zipfile
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import numpy.typing as npt

VARIABLE: Final = "TESTBED_LIMITS"
MEBIBYTE: Final = 1 << 20

WHOLE_FILE: Final = 1024 * MEBIBYTE  # of a file that is read whole, where nothing below is for its kind
FABRIC_FILE: Final = 256 * MEBIBYTE  # a million links in the most verbose format
ROUTE_ENTRIES: Final = 400_000_000  # switches by destinations and classes, of forwarding that is read
CONFIGURATION: Final = 16 * MEBIBYTE  # of one switch
LINE: Final = 64 << 10  # characters of a line of it
SWITCH_PORTS: Final = 4096  # of one switch
VLAN_MEMBERSHIPS: Final = 20_000_000  # VLANs of ports, each list of them counted once, however many ports have it
AUDITED_HOSTS: Final = 10_000  # all pairs of which are followed
YAML: Final = 4 * MEBIBYTE
YAML_VALUES: Final = 100_000  # keys, texts, numbers, lists and blocks, with each alias as all that it stands for
JSON_VALUES: Final = 10_000_000  # a fabric of a million links has half as many
PLAN_VALUES: Final = 50_000_000  # of a stored plan; that of a torus of 1,024 hosts has 18 million
DEPTH: Final = 64  # lists and blocks in each other
UNPACKED: Final = 2048 * MEBIBYTE  # all arrays of an .npz file
ARRAYS: Final = 1000  # in it

_ESCAPED_HALF = re.compile(r"\\u[dD][89a-fA-F]")


class LimitError(ValueError):
    """Content beyond a limit, which the text names."""


def scaled_limit(limit: int) -> int:
    """A limit, times the factor that the environment asks for."""
    try:
        factor = float(os.environ.get(VARIABLE) or 1)
    except ValueError:
        factor = 1.0
    return int(limit * factor) if factor >= 1 and limit * factor < math.inf else limit


def too_much(found: str, limit: int, unit: str) -> str:
    """Sentence for content beyond a limit.

    Args:
        found: what it has, such as "has 5,000,000 bytes".
        limit: one of this module, times the factor.
        unit: what is counted.
    """
    return f"{found}; {limit:,} {unit} are the most that is read; {VARIABLE}=10 in the environment is ten times as much"


def parse_json(
    text: str | bytes, hook: Callable[[list[tuple[str, Any]]], Any] | None = None, most: int = JSON_VALUES
) -> Any:
    """What a text of JSON says; `hook` makes its objects, and `most` is how many values it may have.

    Raises:
        ValueError: it is no JSON (json.JSONDecodeError), or goes beyond a limit; the text says which.
    """
    if isinstance(text, bytes):
        text = text.decode("utf-8")
    if len(text) > most:  # fewer characters are no more values
        values = text.count(",") + text.count("[") + text.count("{")
        if values > scaled_limit(most):
            raise LimitError(too_much(f"has about {values:,} values", scaled_limit(most), "values"))
    try:
        value = json.loads(text, object_pairs_hook=hook)
    except RecursionError:
        raise LimitError(_deep()) from None
    if is_deep(value):
        raise LimitError(_deep())
    if _ESCAPED_HALF.search(text):
        try:
            json.dumps(value, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            raise ValueError("an escape is half a character; write the character itself") from None
    return value


def is_deep(value: object) -> bool:
    """Whether lists and blocks lie deeper in each other than is allowed."""
    level = [value]
    for _ in range(scaled_limit(DEPTH)):
        level = [
            inner
            for one in level
            for inner in (one.values() if isinstance(one, dict) else one if isinstance(one, list) else ())
            if isinstance(inner, dict | list)
        ]
        if not level:
            return False
    return True


def _deep() -> str:
    return f"it is nested too deeply: {scaled_limit(DEPTH)} lists and blocks in each other are the most that is read"


def parse_arrays(content: bytes) -> dict[str, npt.NDArray[Any]]:
    """The arrays of an .npz file; what they take is looked at before anything is unpacked.

    Raises:
        ValueError: it goes beyond a limit, or has something else than arrays of numbers and text.
        zipfile.BadZipFile, zlib.error, OSError: it is damaged.
    """
    most = scaled_limit(UNPACKED)
    with zipfile.ZipFile(io.BytesIO(content)) as packed:
        members = packed.infolist()
        size = sum(member.file_size for member in members)
        if size > most:
            raise LimitError(too_much(f"would be {size:,} bytes when it is unpacked", most, "bytes"))
        if len(members) > scaled_limit(ARRAYS):
            raise LimitError(too_much(f"has {len(members):,} arrays", scaled_limit(ARRAYS), "arrays"))
        return {member.filename.removesuffix(".npy"): _array(packed, member) for member in members}


def _array(packed: zipfile.ZipFile, member: zipfile.ZipInfo) -> npt.NDArray[Any]:
    try:
        return _unpacked(packed, member)
    except (RuntimeError, OverflowError) as error:  # it has a password, is packed otherwise, or has such extents
        raise ValueError(f"its array {member.filename[:40]!r} cannot be read: {error}") from error


def _unpacked(packed: zipfile.ZipFile, member: zipfile.ZipInfo) -> npt.NDArray[Any]:
    from numpy.lib import format as npy  # noqa: PLC0415 - most commands need no numpy

    with packed.open(member) as opened:
        version = npy.read_magic(opened)  # type: ignore[no-untyped-call]
        if version not in ((1, 0), (2, 0)):
            raise ValueError(f"its array {member.filename[:40]!r} is of an unknown version")
        read_header = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
        shape, _, dtype = read_header(opened)  # type: ignore[no-untyped-call]
        # An array is made before it is filled: what its header says must be there.
        if math.prod(shape) * max(1, dtype.itemsize) > member.file_size:
            raise ValueError(f"its array {member.filename[:40]!r} is shorter than it says")
    with packed.open(member) as opened:
        array: npt.NDArray[Any] = npy.read_array(opened, allow_pickle=False)  # type: ignore[no-untyped-call]
        return array
