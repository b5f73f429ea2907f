"""What a load is that measures pairs of hosts by programs in both."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from testbed.workloads.process import Process


@dataclass(frozen=True, slots=True)
class Figures:
    """What the programs of a pair measured.

    Attributes:
        values: metric, value and unit, in laboratory units.
        lost: share of what was sent that did not come back.
    """

    values: tuple[tuple[str, float, str], ...]
    lost: float = 0.0


@dataclass(frozen=True, slots=True)
class Ends:
    """A pair of hosts.

    Attributes:
        number: of the pair in its load.
        source: name of the host that asks.
        destination: of the one that answers.
        address: of that one.
    """

    number: int
    source: str
    destination: str
    address: str


@dataclass(frozen=True, slots=True)
class Messages:
    """What goes to and fro: `tcp` or `udp`, and bytes of payload there and back."""

    protocol: str
    request: int
    response: int


@dataclass(frozen=True, slots=True)
class PairTool:
    """How a kind of load measures pairs.

    Attributes:
        commands: its programs for a pair; what the last of them prints is parsed.
        parse: reads that, or raises OutputError.
        limit: laboratory seconds after which the programs of a pair are ended.
        what: goes lost, in the plural, for messages.
        repeats: how often all pairs are measured; none = once.
        at_once: whether all pairs are measured at the same time, and not one after the other.
        messages: what goes to and fro, where its time on the wires is to be predicted.
    """

    commands: Callable[[Any, Ends], tuple[Process, ...]]
    parse: Callable[[str], Figures]
    limit: Callable[[Any], float]
    what: str
    repeats: Callable[[Any], int] | None = None
    at_once: Callable[[Any], bool] = lambda parameters: False
    messages: Callable[[Any], Messages] | None = None
