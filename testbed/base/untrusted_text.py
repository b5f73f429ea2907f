"""Text of others, such as names in files, in a form that no terminal, spreadsheet or reader takes for more."""

from __future__ import annotations

import csv
import io
import itertools
import json
import re
from collections.abc import Iterable, Sequence

# Control characters but for tabulators and ends of lines; marks that change the direction of what follows; what has no
# width; ends of lines that only some programs know; halves of characters; tags.
_UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u2069\ud800-\udfff\ufeff\ufff9-\ufffb"
    "\U000e0000-\U000e007f]"
)
_FORMULA = re.compile("'*[=+\\-@\t\r]")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


def escape_controls(text: str) -> str:
    r"""The text with what steers terminals, or shows it other than it is, as `\x1b` and `\u202e`; again the same."""
    return _UNSAFE.sub(_escape, text)


def _escape(match: re.Match[str]) -> str:
    code = ord(match.group())
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def escape_line(text: str) -> str:
    """Likewise on one line: a name that holds the end of one begins none."""
    return escape_controls(text).replace("\n", "\\x0a").replace("\t", "\\x09")


def escape_json(text: str) -> str:
    r"""JSON with those characters as JSON writes them: `\u001b`."""
    return _UNSAFE.sub(lambda match: json.dumps(match.group())[1:-1], text)


def escape_cell(text: str) -> str:
    """A cell that a spreadsheet takes for no formula: `'` stands before it. Numbers stay as they are."""
    return f"'{text}" if _FORMULA.match(text) and not _NUMBER.fullmatch(text) else text


def unescape_cell(cell: str) -> str:
    """The text of such a cell."""
    return cell[1:] if cell.startswith("'") and _FORMULA.match(cell) else cell


def csv_text(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table with a heading, one line a row: its texts are such cells without control characters, None is empty."""
    written = io.StringIO()
    writer = csv.writer(written, lineterminator="\n")
    for row in itertools.chain([columns], rows):
        writer.writerow([escape_cell(escape_line(cell)) if isinstance(cell, str) else cell for cell in row])
    return written.getvalue()
