"""What a scenario says of each load."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, NamedTuple

from annotated_types import Ge, Gt, Le, MinLen
from pydantic import BeforeValidator, GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic_core import core_schema

from testbed.base.errors import Problem, did_you_mean
from testbed.fabric.traffic import FAMILIES, PATTERNS, is_pattern, pattern_names
from testbed.scenario.workloads.timeline import Event, EventText, FailureText, parse_event


class _AnyPattern:
    """Checks a name against the table of patterns, which plug-ins may add to."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> core_schema.CoreSchema:
        """Accept what is_pattern() does."""
        return core_schema.no_info_before_validator_function(_pattern, handler(source))

    def __get_pydantic_json_schema__(
        self, schema: core_schema.CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        """The names, and what those with a parameter begin with."""
        del schema, handler
        return {"anyOf": [{"enum": [*PATTERNS]}, {"type": "string", "pattern": f"^({'|'.join(FAMILIES)}):."}]}


def _pattern(value: object) -> str:
    if isinstance(value, str) and is_pattern(value):
        return value
    names = pattern_names()
    meant = did_you_mean(str(value), [*PATTERNS, *FAMILIES])
    shown = json.dumps(value, ensure_ascii=False, default=str)
    raise ValueError(f"should be one of {', '.join(names)}, not {shown}{'.' if meant else ''}{meant}")


Pattern = Annotated[str, _AnyPattern()]


# iperf3 keys that mean something for one protocol only.
ONLY_FOR = {"congestion": "tcp", "offered_load": "udp", "payload": "udp"}
_WHY_NOT = {
    "congestion": "datagrams are sent at the rate offered, whatever becomes of them",
    "offered_load": "TCP finds its own rate",
    "payload": "TCP fills its segments",
}


Failures = tuple[FailureText, ...]
Timeline = tuple[EventText, ...]
_FAILURES = {"wanted": 'a list such as ["at 5s: down s3-s7", "at 8s: up s3-s7"]'}
_TIMELINE = {"wanted": 'a list such as [{at: 2 s, link: s3-s7, rate: 100M}, "at 5s: down s3-s7"]'}


@dataclass(frozen=True, slots=True)
class Iperf3:
    """All flows of a pattern at once."""

    protocol: Literal["tcp", "udp"]  # `tcp` or `udp`
    pattern: Pattern = "neighbour"  # who sends to whom
    # whole laboratory seconds that count; none = 10 of TCP and 5 of UDP, fewer where links of the lab are fast, at
    # least 4, and more where they are very slow
    seconds: Annotated[int, Ge(1), Le(3600)] | None = None
    # whole laboratory seconds at the start that do not; none = 5 of TCP and 2 of UDP, likewise fewer, at least 1, or
    # more
    omit: Annotated[int, Ge(0), Le(60)] | None = None
    repeats: Annotated[int, Ge(1), Le(1000)] = 3  # how often the whole load is run
    congestion: Literal["reno", "cubic", "bbr", "dctcp"] = "reno"  # TCP only; congestion control of the sender
    # UDP only; share of the predicted max-min fair goodput that is offered
    offered_load: Annotated[float, Gt(0), Le(10)] = 1.0
    # UDP only; bytes in a datagram, 28 fewer than links.mtu at most. 1470 is the papers' size.
    payload: Annotated[int, Ge(16), Le(8972)] = 1470
    # what dies and comes back, and when, in laboratory seconds from the start of each repeat
    failures: Failures = field(default=(), metadata=_FAILURES)
    timeline: Timeline = field(default=(), metadata=_TIMELINE)  # likewise, and which links change

    def list_inapplicable(self, keys: Iterable[str]) -> list[Problem]:
        """Those of some keys that say nothing for this protocol, each with a sentence."""
        return [
            Problem(key, f"is for protocol {ONLY_FOR[key]} only: {_WHY_NOT[key]}; take it out")
            for key in keys
            if ONLY_FOR.get(key, self.protocol) != self.protocol
        ]


@dataclass(frozen=True, slots=True)
class Ping:
    """Echo requests between the pairs of a pattern, one pair after the other, on an idle fabric."""

    pattern: Pattern = "complement"  # which pairs
    count: Annotated[int, Ge(1), Le(10000)] = 10  # echo requests a pair
    size: Annotated[int, Ge(16), Le(8972)] = 56  # bytes of ICMP payload, 28 fewer than links.mtu at most


@dataclass(frozen=True, slots=True)
class Probe:
    """Small datagrams, numbered and stamped, on pairs of hosts that failures hit."""

    # what dies and comes back, and when, in laboratory seconds from the start of the load
    failures: Annotated[Failures, MinLen(1)] = field(metadata=_FAILURES)
    seconds: Annotated[int, Ge(1), Le(3600)] = 10  # whole laboratory seconds that datagrams are sent
    rate: Annotated[int, Ge(10), Le(10000)] = 1000  # datagrams a laboratory second, for each pair
    pairs: Annotated[int, Ge(1), Le(64)] = 4  # how many pairs are watched; those whose paths the events hit come first


# Of a load that does not say them, on links on which a full frame takes as long as on 1 Gbit/s at dilation 150 or
# longer: seconds that do not count, and that do. Events have their times in seconds; so have loads with events.
_WRITTEN = {"tcp": (5, 10), "udp": (2, 5)}
_WITH_EVENTS = (2, 5)
# A second, since the programs of a load start within one; four, of two of which gaps between frames are watched.
_LEAST = (1, 4)


class Times(NamedTuple):
    """Whole laboratory seconds of a load."""

    omit: int  # at the start, which do not count
    seconds: int  # behind them, which do


def times(spec: Iperf3, slowness: float = 1.0, longer: float = 1.0) -> Times:
    """How long a load is: as it says, or as it takes for the same frames and round trips on any links.

    Args:
        spec: the load.
        slowness: how slow the lab's links are beside those that the seconds are written for, as link_slowness() has it.
        longer: how many times the seconds of usual links it takes until enough frames are counted; 1 or more.
    """
    written = _WITH_EVENTS if events_of(spec) else _WRITTEN[spec.protocol]
    part = 1.0 if events_of(spec) else min(1.0, slowness) * longer
    omit, seconds = (max(least, math.ceil(part * whole)) for least, whole in zip(_LEAST, written, strict=True))
    return Times(omit if spec.omit is None else spec.omit, seconds if spec.seconds is None else spec.seconds)


def load_seconds(spec: Iperf3 | Probe, slowness: float = 1.0) -> float:
    """Laboratory seconds that a load sends, those that do not count included; `slowness` as for times()."""
    return sum(times(spec, slowness)) if isinstance(spec, Iperf3) else spec.seconds


def events_of(spec: object) -> tuple[Event, ...]:
    """What happens while a load runs; nothing for kinds of loads that know no events."""
    return tuple(map(parse_event, getattr(spec, events_key(spec), ())))


def events_key(spec: object) -> str:
    """The key that has them."""
    return "timeline" if getattr(spec, "timeline", ()) else "failures"


_PLACEMENTS = ("block", "round_robin")


def _placement(value: object) -> object:
    names = isinstance(value, tuple) and len(value) > 0 and all(isinstance(name, str) for name in value)
    if value in _PLACEMENTS or names:
        return value
    meant = did_you_mean(value, _PLACEMENTS) if isinstance(value, str) else ""
    shown = json.dumps(value, ensure_ascii=False, default=str)
    raise ValueError(
        "should be block, round_robin or a list with the host of each rank such as [h1, h1, h2], "
        f"not {shown if len(shown) <= 60 else shown[:60] + '…'}{'.' if meant else ''}{meant}"
    )


Placement = Annotated[Literal["block", "round_robin"] | tuple[str, ...], BeforeValidator(_placement)]


@dataclass(frozen=True, slots=True)
class Mpi:
    """An MPI job."""

    job: str  # name of a folder in mpi_jobs/, or with a `/` in it the path of a job's folder, seen from the scenario
    args: tuple[str, ...] | None = None  # command line of the program; none = the job's own default
    # laboratory seconds after which the job is ended; none = the job's own default
    time_limit: Annotated[float, Gt(0), Le(86400)] | None = None
    # number of ranks; none = one on each host, or as many as `placement` lists
    ranks: Annotated[int, Ge(2), Le(1024)] | None = None
    placement: Placement = "block"  # `block`, `round_robin`, or the host of each rank
    pattern: Pattern | None = None  # who sends to whom, for jobs that take pairs of ranks
    trace: bool = False  # whether the bytes and messages between all ranks are recorded


Kernel = Literal["IS", "EP", "CG", "MG", "FT", "LU", "SP", "BT"]
ProblemClass = Literal["S", "W", "A", "B"]


@dataclass(frozen=True, slots=True)
class Npb:
    """A kernel of the NAS Parallel Benchmarks, an MPI job."""

    kernel: Kernel  # which of the eight
    class_: ProblemClass = "S"  # size of the problem, from small to large S, W, A, B. The key is `class`.
    # number of ranks, one that the kernel can run on; none = the most of those that have a host each, or as many as
    # `placement` lists
    ranks: Annotated[int, Ge(2), Le(1024)] | None = None
    placement: Placement = "block"  # `block`, `round_robin`, or the host of each rank
    # laboratory seconds after which it is ended; none = 300
    time_limit: Annotated[float, Gt(0), Le(86400)] | None = None
    trace: bool = False  # whether the bytes and messages between all ranks are recorded
