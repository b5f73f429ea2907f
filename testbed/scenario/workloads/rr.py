"""Request and response: how long a transaction takes, and how many there are a second, over TCP and UDP."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from annotated_types import Ge, Le

from testbed.base.errors import Problem
from testbed.base.messages import Process
from testbed.base.python_isolation import make_file_command
from testbed.scenario.workloads.pairs import Ends, Figures, Messages, OutputError, PairTool
from testbed.scenario.workloads.spec import Pattern

PROGRAM = Path(__file__).with_name("rr_program.py")
METRICS = {
    "transactions": "Transactions",
    "rtt_p50": "Round trip, median",
    "rtt_p90": "Round trip, 90th percentile",
    "rtt_p99": "Round trip, 99th percentile",
    "requests_lost": "Requests without response",
}
WHY_NOT_SIMULATED = "it measures programs as well, which the simulator has none of; testbed simulate gives latencies"
_FIRST_PORT = 7001
_SPARE_SECONDS = 40.0
_TIMES = ("min", "mean", "p50", "p90", "p99", "max")
_MIN_DATAGRAM = 4  # bytes of a datagram's number


@dataclass(frozen=True, slots=True)
class RequestResponse:
    """One request after the other between the pairs of a pattern, each when the one before it has its response."""

    protocol: Literal["tcp", "udp"]  # `tcp`, one connection a pair, or `udp`
    pattern: Pattern = "complement"  # which pairs
    # bytes of payload of a request; as many as TCP sends at once at the beginning
    request: Annotated[int, Ge(1), Le(14480)] = 64
    response: Annotated[int, Ge(1), Le(14480)] = 64  # likewise of a response
    seconds: Annotated[int, Ge(1), Le(3600)] = 1  # whole laboratory seconds of each pair
    repeats: Annotated[int, Ge(1), Le(1000)] = 3  # how often all pairs are measured
    # whether all pairs are measured at the same time, and not one after the other on an idle fabric
    at_once: bool = False


def check(spec: RequestResponse) -> list[Problem]:
    """Datagrams that hold no number."""
    sentence = f"should be {_MIN_DATAGRAM} or more for protocol udp, whose messages hold their number, not"
    return [Problem(key, f"{sentence} {size}") for key, size in datagrams(spec).items() if size < _MIN_DATAGRAM]


def datagrams(spec: RequestResponse) -> dict[str, int]:
    """Bytes of each message that is one."""
    return {"request": spec.request, "response": spec.response} if spec.protocol == "udp" else {}


def commands(spec: RequestResponse, ends: Ends) -> tuple[Process, ...]:
    """Who answers, and who asks."""
    port, sizes = _FIRST_PORT + ends.number, (str(spec.request), str(spec.response))
    program = make_file_command(PROGRAM)
    return (
        Process(
            f"rr-answer-{ends.number}", ends.destination,
            (*program, "answer", spec.protocol, str(port), *sizes), server_port=port,
        ),
        Process(
            f"rr-ask-{ends.number}", ends.source,
            (*program, "ask", spec.protocol, ends.address, str(port), *sizes, str(spec.seconds)),
        ),
    )  # fmt: skip


def parse(text: str) -> Figures:
    """Read what the program that asks printed.

    Raises:
        OutputError: it is not what it prints, or no request had a response.
    """
    try:
        found = json.loads(text)
        count, lost = int(found["transactions"]), int(found["lost"])
        if not count:
            raise OutputError(f"none of {lost} requests had a response")
        times = [(f"rtt_{name}", float(found[name]), "s") for name in _TIMES]
        seconds = float(found["seconds"])
    except (ValueError, KeyError, TypeError) as error:
        if isinstance(error, OutputError):
            raise
        raise OutputError(f"the program that asks did not print its figures: {error}") from error
    share = lost / (count + lost)
    return Figures((("transactions", count / seconds, "1/s"), *times, ("requests_lost", share, "ratio")), share)


PAIRS = PairTool(
    commands,
    parse,
    limit=lambda spec: spec.seconds + _SPARE_SECONDS,
    what="requests",
    repeats=lambda spec: spec.repeats,
    at_once=lambda spec: spec.at_once,
    messages=lambda spec: Messages(spec.protocol, spec.request, spec.response),
)
