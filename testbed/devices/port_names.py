"""Names of ports on the switches themselves, and short forms of lists of VLANs."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from testbed.base.errors import InputError, argument

_PLACE = re.compile(r"\{(?:(\d{1,4})(?:\+(\d{1,3}))?)?\}")
_PLAIN = re.compile(r"[A-Za-z0-9./:_-]*")


@dataclass(frozen=True, slots=True)
class PortNames:
    """How the ports of a switch are called: text with one number in it."""

    pattern: str  # as it was given
    before: str  # text before the number
    after: str  # text after it
    first: int  # number of the plan's port 1
    step: int  # from one port to the next

    def name_port(self, port: int) -> str:
        """Name of a port of the plan, which count from 1."""
        return f"{self.before}{self.first + (port - 1) * self.step}{self.after}"


def port_names(pattern: str) -> PortNames:
    """Read a pattern: `swp{}` is swp1, swp2, …; `Gi0/{0}` starts at 0; `Ethernet{0+4}` is Ethernet0, Ethernet4, ….

    Raises:
        InputError: it is no such pattern.
    """
    found = list(_PLACE.finditer(pattern))
    rest = _PLACE.sub("", pattern)
    step = int(found[0][2] or 1) if found else 1
    if len(found) != 1 or not _PLAIN.fullmatch(rest) or step == 0:
        raise InputError.one(
            argument("ports"),
            "should be a name with one number in braces, such as swp{}, Gi0/{0} or Ethernet{0+4}, not "
            f'"{pattern}"',
        )
    place = found[0]
    first = 1 if place[1] is None else int(place[1])
    return PortNames(pattern, pattern[: place.start()], pattern[place.end() :], first, step)


def ranges(numbers: Iterable[int]) -> list[tuple[int, int]]:
    """First and last of each run of consecutive numbers."""
    runs: list[tuple[int, int]] = []
    for number in sorted(set(numbers)):
        if runs and number == runs[-1][1] + 1:
            runs[-1] = (runs[-1][0], number)
        else:
            runs.append((number, number))
    return runs


def range_texts(numbers: Iterable[int]) -> list[str]:
    """Each run as `10` or `10-17`."""
    return [str(first) if first == last else f"{first}-{last}" for first, last in ranges(numbers)]


def format_ranges(numbers: Iterable[int]) -> str:
    """All numbers in one text: `10-17,20`."""
    return ",".join(range_texts(numbers))
