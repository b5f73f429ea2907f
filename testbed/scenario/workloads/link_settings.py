"""What can be said of a link, in the words of tc-netem: `rate 100M loss 1% delay 20us`; figures of the real world."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from testbed.base.errors import did_you_mean
from testbed.base.units import format_rate, format_seconds, parse_rate

_SHORT_RATE = re.compile(r"\s*([0-9.]+)\s*([kmgt])(?:bit)?\s*", re.IGNORECASE)
_TIME = re.compile(r"\s*([0-9]+\.?[0-9]*|\.[0-9]+)\s*(ns|us|µs|ms|s)\s*")
_SHARE = re.compile(r"\s*([0-9]+\.?[0-9]*|\.[0-9]+)\s*%\s*")
_A_SECOND = {"ns": 1e9, "us": 1e6, "µs": 1e6, "ms": 1e3, "s": 1.0}
_HIGHEST_RATE, _LONGEST_DELAY = 1e13, 10.0
RESET = "reset"


def read_rate(text: str) -> float:
    """Bit/s from `100M`, `100Mbit` or `100 Mbit/s`.

    Raises:
        ValueError: it is no rate of a link.
    """
    short = _SHORT_RATE.fullmatch(text)
    try:
        rate = parse_rate(f"{short[1]} {short[2]}bit/s" if short else text)
    except ValueError:
        rate = 0.0
    if not 0 < rate <= _HIGHEST_RATE:
        raise ValueError(f'should be a rate above 0 with its unit, such as 100M or "100 Mbit/s", not "{text}"')
    return rate


def read_delay(text: str) -> float:
    """Seconds from `20us`.

    Raises:
        ValueError: it is no delay.
    """
    match = _TIME.fullmatch(text)
    if match is None or float(match[1]) / _A_SECOND[match[2]] > _LONGEST_DELAY:
        raise ValueError(f'should be a time with its unit, such as 20us or 1.5ms, up to 10s, not "{text}"')
    return float(match[1]) / _A_SECOND[match[2]]


def read_loss(text: str) -> float:
    """Share from `1%`.

    Raises:
        ValueError: it is no share.
    """
    match = _SHARE.fullmatch(text)
    if match is None or float(match[1]) > 100:
        raise ValueError(f'should be a percentage from 0% to 100%, such as 1%, not "{text}"')
    return float(match[1]) / 100


READERS: Mapping[str, Callable[[str], float]] = {"rate": read_rate, "delay": read_delay, "loss": read_loss}


@dataclass(frozen=True, slots=True)
class LinkWords:
    """What is said of a link; None and False = nothing, see messages.LinkChange."""

    rate: float | None = None
    delay: float | None = None
    loss: float | None = None
    reset: bool = False

    def __str__(self) -> str:
        """Return `rate 100 Mbit/s, loss 1 %`."""
        return ", ".join(([RESET] if self.reset else []) + format_conditions(self.rate, self.delay, self.loss))


def format_conditions(rate: float | None, delay: float | None, loss: float | None) -> list[str]:
    """What there is of rate, delay and loss, for readers."""
    found = [] if rate is None else [f"rate {format_rate(rate)}"]
    found += [] if delay is None else [f"delay {format_seconds(delay) if delay else '0 s'}"]
    return found + ([] if loss is None else [f"loss {100 * loss:.4g} %"])


def read_words(words: Sequence[str]) -> LinkWords:
    """Read what follows the name of a link, such as `rate`, `100M`, `loss`, `1%`.

    Raises:
        ValueError: it cannot be read.
    """
    said: dict[str, float] = {}
    reset, at = False, 0
    while at < len(words):
        word, at = words[at], at + 1
        if word == RESET:
            reset = True
            continue
        if word not in READERS:
            meant = did_you_mean(word, [*READERS, RESET])
            raise ValueError(
                f'"{word}" is nothing that a link has; there is rate, delay, loss and reset.{meant}'.rstrip(".")
            )
        if word in said:
            raise ValueError(f"{word} is said twice")
        value = []
        while at < len(words) and words[at] not in READERS and words[at] != RESET:
            value.append(words[at])
            at += 1
        try:
            said[word] = READERS[word](" ".join(value))
        except ValueError as error:
            raise ValueError(f"{word} {error}") from error
    if not said and not reset:
        raise ValueError("says nothing of the link; say rate 100M, delay 20us, loss 1% or reset")
    return LinkWords(**said, reset=reset)
