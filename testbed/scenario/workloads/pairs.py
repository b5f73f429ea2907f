"""Loads that measure pairs of hosts by programs in both, and the error of output that cannot be read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from testbed.base.messages import Process


@dataclass(frozen=True, slots=True)
class Figures:
    """What the programs of a pair measured."""

    values: tuple[tuple[str, float, str], ...]  # metric, value and unit, in laboratory units
    lost: float = 0.0  # share of what was sent that did not come back


@dataclass(frozen=True, slots=True)
class Ends:
    """A pair of hosts."""

    number: int  # of the pair in its load
    source: str  # name of the host that asks
    destination: str  # of the one that answers
    address: str  # of that one


@dataclass(frozen=True, slots=True)
class Messages:
    """What goes to and fro: `tcp` or `udp`, and bytes of payload there and back."""

    protocol: str
    request: int
    response: int


@dataclass(frozen=True, slots=True)
class PairTool:
    """How a kind of load measures pairs."""

    # its programs for a pair; what the last of them prints is parsed
    commands: Callable[[Any, Ends], tuple[Process, ...]]
    parse: Callable[[str], Figures]  # reads that, or raises OutputError
    limit: Callable[[Any], float]  # laboratory seconds after which the programs of a pair are ended
    what: str  # goes lost, in the plural, for messages
    messages: Callable[[Any], Messages]  # what goes to and fro, of which the time on the wires is predicted
    repeats: Callable[[Any], int] | None = None  # how often all pairs are measured; none = once
    # whether all pairs are measured at the same time, and not one after the other
    at_once: Callable[[Any], bool] = lambda parameters: False


class OutputError(ValueError):
    """What a program printed is not what it prints when it worked; the text says what is wrong."""
