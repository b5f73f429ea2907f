"""The number of a plan's content."""

from __future__ import annotations

import dataclasses
import hashlib
from typing import Any

import numpy as np


def digest_of(*parts: Any) -> str:
    """Digest of dataclasses of arrays; equal digests are equal content."""
    content = hashlib.blake2b(digest_size=8)
    for part in parts:
        _add(content, part)
    return content.hexdigest()


def _add(content: hashlib.blake2b, value: Any) -> None:
    """Feed every field of a dataclass, in the order they are declared, except the notes."""
    if isinstance(value, np.ndarray):
        content.update(f"{value.shape}{value.dtype}".encode())
        content.update(np.ascontiguousarray(value).data)
    elif dataclasses.is_dataclass(value):
        for field in dataclasses.fields(value):
            if field.name != "notes":
                content.update(field.name.encode())
                _add(content, getattr(value, field.name))
    else:
        content.update(repr(value).encode())
