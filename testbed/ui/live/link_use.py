"""From counters that grow to what is going on: use of links, pauses, losses."""

from __future__ import annotations

from typing import TypedDict

import numpy as np

from testbed.base.ethernet import wire_bits
from testbed.base.messages import LinkReadings
from testbed.base.model import Floats, Longs

THOUSAND = 1000  # shares are sent as whole thousandths


class LinkUse(TypedDict):
    """What happened between two readings, by direction as in messages.LinkReadings."""

    seconds: float  # between them
    use: list[int]  # of each direction, in thousandths
    waiting: list[int]  # frames at each port of a switch
    lost: list[int]  # likewise


class Flow(LinkUse, total=False):
    """Likewise with flow control."""

    paused: list[int]  # in thousandths
    deadlock: list[int]  # channels that wait for each other for ever


class Meter:
    """Compares each reading with the one before.

    Args:
        tag: bytes of the tag that frames have between switches.
    """

    def __init__(self, tag: int = 0) -> None:
        self._tag = tag
        self._last: LinkReadings | None = None

    def update(self, now: LinkReadings) -> Flow | None:
        """What happened since the reading before; None for the first."""
        last, self._last = self._last, now
        if last is None or now.time <= last.time or len(last.bytes) != len(now.bytes):
            return None
        seconds = now.time - last.time
        sizes, frames = (
            np.array(new) - np.array(old) for new, old in ((now.bytes, last.bytes), (now.frames, last.frames))
        )
        found: Flow = {
            "seconds": round(seconds, 4),
            "use": shares(wire_bits(sizes, frames, self._tags(now)) / seconds, _all_rates(now)),
            "waiting": list(now.waiting),
            "lost": np.maximum(np.array(now.drops) - np.array(last.drops), 0).tolist(),
        }
        if now.paused:
            still = (np.array(now.paused) - np.array(last.paused)) / seconds
            found["paused"] = _thousandths(still)
        if now.deadlock:
            found["deadlock"] = [int(node) % (len(now.waiting) - _hosts(now)) for node in now.deadlock]
        return found

    def _tags(self, now: LinkReadings) -> Longs:
        tags = np.zeros(len(now.bytes), dtype=np.int64)
        tags[: len(now.waiting) - _hosts(now)] = self._tag
        return tags


def shares(bits: Floats, rates: Floats) -> list[int]:
    """Bit/s on the wire as thousandths of the rates they have."""
    return _thousandths(np.divide(bits, rates, out=np.zeros_like(bits), where=rates > 0))


def _thousandths(values: Floats) -> list[int]:
    """A counter that was read a little late can give more than all of a link, or less than nothing."""
    found: list[int] = np.rint(THOUSAND * np.clip(values, 0.0, 1.0)).astype(int).tolist()
    return found


def _hosts(now: LinkReadings) -> int:
    return len(now.bytes) - len(now.rates)


def _all_rates(now: LinkReadings) -> Floats:
    """Of each direction: hosts send at the rate at which they receive."""
    rates = np.array(now.rates)
    return np.concatenate([rates, rates[len(rates) - _hosts(now) :]])
