"""Names of ports of Junos, and the ports that a member or a member range of an interface range stands for."""

from __future__ import annotations

import itertools
import math
import re

from testbed.base.limits import SWITCH_PORTS, scaled_limit, too_much
from testbed.devices.read_lines import LineError, UnclearLineError

_PORT = re.compile(r"((?:[gxe]e|et|mge)-\d{1,4}/\d{1,4}/\d{1,4}(?::\d{1,4})?|ae\d{1,4})(?:\.0)?", re.ASCII)
_LAST_NUMBER = re.compile(r"(.*?)(\d+)", re.ASCII)
_BRACKETS = re.compile(r"\[([^\[\]]*)\]")
_NUMBERS = re.compile(r"(\d{1,4})(?:-(\d{1,4}))?", re.ASCII)


def junos_port(text: str) -> str:
    """A port without its unit: ge-0/0/1 for ge-0/0/1.0.

    Raises:
        LineError: it is no port.
    """
    found = _PORT.fullmatch(text.lower())
    if found is None:
        raise LineError(f'"{text[:60]}" is not the name of a port, such as ge-0/0/1')
    return found[1]


def list_span(first: str, last: str) -> list[str]:
    """Ports of `member-range FIRST to LAST`.

    Raises:
        UnclearLineError: they differ in more than the last number, so the hardware decides which ports lie between.
        LineError: one is no port, or the range runs backwards.
    """
    before, low = _split_last_number(junos_port(first))
    same, high = _split_last_number(junos_port(last))
    if before != same:
        raise UnclearLineError(
            f'"member-range {first} to {last}" ends in another slot or kind of port than it begins in (write a '
            "member-range for each)"
        )
    return [f"{before}{number}" for number in _list_numbers(low, high, f"{first} to {last}")]


def list_members(text: str) -> list[str]:
    """Ports of `member TEXT`: `ge-0/0/[0-3]` is four, `ge-[0,2]/0/[0-3]` eight.

    Raises:
        UnclearLineError: it is a pattern of another form.
        LineError: what it names is no port, or a range of it runs backwards.
    """
    pattern = text.strip('"').replace(" ", "")
    parts = _BRACKETS.split(pattern)  # text and what is in brackets, in turn
    choices = [
        [part] if place % 2 == 0 else _list_choices(part, pattern) for place, part in enumerate(parts)
    ]  # fmt: skip
    if any(mark in part for part in parts[::2] for mark in "*?[]"):
        raise _make_unread(pattern)
    _check_count(math.prod(len(choice) for choice in choices), pattern)
    return [junos_port("".join(one)) for one in itertools.product(*choices)]


def _list_choices(text: str, pattern: str) -> list[str]:
    numbers: dict[int, None] = {}
    for part in text.split(","):
        found = _NUMBERS.fullmatch(part)
        if found is None:
            raise _make_unread(pattern)
        numbers.update(dict.fromkeys(_list_numbers(int(found[1]), int(found[2] or found[1]), pattern)))
    return [str(number) for number in numbers]


def _list_numbers(low: int, high: int, text: str) -> range:
    if low > high:
        raise LineError(f'"{text}" runs backwards, from {low} to {high}; the lower number stands first')
    _check_count(high - low + 1, text)
    return range(low, high + 1)


def _check_count(count: int, text: str) -> None:
    most = scaled_limit(SWITCH_PORTS)
    if count > most:
        raise LineError(too_much(f'"{text}" names {count:,} ports', most, "ports of a switch"))


def _make_unread(pattern: str) -> UnclearLineError:
    return UnclearLineError(
        f'"member {pattern[:60]}" names ports by a pattern that is not read (ge-0/0/[0-3] and ge-0/0/[0,2] would be)'
    )


def _split_last_number(port: str) -> tuple[str, int]:
    found = _LAST_NUMBER.fullmatch(port)
    assert found is not None  # every name of a port ends with a number
    return found[1], int(found[2])
