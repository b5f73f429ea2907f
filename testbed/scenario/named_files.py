"""Files that a scenario names: beside it, or below its folder, unless the caller himself has named them."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path, PurePath

from testbed.base.errors import setting
from testbed.base.files import read_text

EVERY_KEY = ""  # of blocks that the caller has given in Python


class ElsewhereError(OSError):
    """A file that is not to be read, since it is not in the folder of what names it."""

    def __init__(self, what: str, name: str, key: str) -> None:
        remedy = f"; put it there, or name it yourself: {setting(key, name)}" if key else "; put it there"
        super().__init__(errno.EACCES, f"it is outside the folder of the {what}{remedy}", name)


def leads_out(name: str) -> bool:
    """Whether the name of a file leads out of the folder that it is seen from."""
    path = PurePath(name)
    return path.is_absolute() or ".." in path.parts


@dataclass(frozen=True, slots=True)
class ScenarioFolder:
    """The folder from which a scenario sees its files.

    A scenario may be somebody else's, and root may plan it: of what lies elsewhere nothing shall stand in a message.
    """

    folder: Path
    named: tuple[str, ...] = ()  # keys that the caller has set, whose files may be anywhere and be links

    @classmethod
    def of_file(cls, source: str, named: Iterable[str] = ()) -> ScenarioFolder:
        """The folder of a scenario's file."""
        return cls(Path(source).parent, tuple(named))

    def read(self, name: str, key: str, most: int) -> str:
        """Text of a file that a key names; `most`: bytes that it may have.

        Raises:
            OSError: it cannot be read, lies elsewhere, or is behind a link.
            UnicodeDecodeError: it is not UTF-8.
            ValueError: no file can have that name.
        """
        file = self.folder / name
        if any(one == EVERY_KEY or f"{key}.".startswith(f"{one}.") for one in self.named):
            return read_text(file, most=most)
        if not PurePath(name).parts:
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), name)
        if leads_out(name):
            raise ElsewhereError("scenario", name, key)
        return read_text(file, self.folder, most=most)
