"""The way of all text to the terminal: what is not our own colours and cursor reaches it as text alone."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import IO, TYPE_CHECKING, Any

from rich.console import Console
from rich.segment import Segment

from testbed.base.untrusted_text import escape_controls, escape_line

if TYPE_CHECKING:
    from rich.console import ConsoleOptions, RenderableType
    from rich.text import Text


class EscapingConsole(Console):
    """A console whose styles are its own, and whose texts style nothing.

    Texts are escaped before they are laid out, so that columns fit, and once more when they have been.
    """

    @property
    def file(self) -> IO[str]:
        """What it writes to, which must not escape its colours."""
        stream = Console.file.fget(self)  # type: ignore[attr-defined]
        while (inner := getattr(stream, "rich_proxied_file", None)) is not None:
            stream = inner
        found: IO[str] = stream
        return found

    @file.setter
    def file(self, new_file: IO[str]) -> None:
        self._file = new_file

    def render_str(self, text: str, **options: Any) -> Text:
        """Make a text of a string, which is a line, or a cell of a table."""
        return super().render_str(escape_line(text), **options)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Lay something out."""
        for text, style, control in super().render(renderable, options):
            yield Segment(text if control else escape_controls(text), style, control)


class EscapingStream:
    """A standard stream for all who write to it directly: libraries, tracebacks, tables of CSV."""

    def __init__(self, stream: IO[str]) -> None:
        self.rich_proxied_file = stream  # where a console of rich writes, which escapes by itself

    def write(self, text: str) -> int:
        """Write text, escaped."""
        self.rich_proxied_file.write(escape_controls(text))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        """Write several texts, escaped."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        """Everything else is the stream's."""
        return getattr(self.rich_proxied_file, name)


def escape_streams() -> None:
    """From now on let standard output and standard error escape what is written to them."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is not None and not isinstance(stream, EscapingStream):
            setattr(sys, name, EscapingStream(stream))
