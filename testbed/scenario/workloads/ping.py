"""ping: round-trip times on an idle fabric."""

from __future__ import annotations

import re
from dataclasses import dataclass

from testbed.base.messages import Process
from testbed.scenario.workloads.pairs import Ends, Figures, Messages, OutputError, PairTool
from testbed.scenario.workloads.spec import Ping

_INTERVAL = "0.02"
_SPARE_SECONDS, _MAX_GAP = 10.0, 2.0
_COUNTS = re.compile(r"(\d+) packets transmitted, (\d+) received")
_TIMES = re.compile(r"^rtt min/avg/max/mdev = ([\d.]+)/([\d.]+)/([\d.]+)/[\d.]+ ms", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class PingResult:
    """Round-trip times of a pair, laboratory s; times are None if nothing came back."""

    sent: int
    received: int
    rtt_min: float | None
    rtt_mean: float | None
    rtt_max: float | None


def command(spec: Ping, source: str, address: str) -> Process:
    """Return the process that pings one address from one host."""
    argv = (
        "ping",
        "-n",
        "-q",
        "-c",
        str(spec.count),
        "-i",
        _INTERVAL,
        "-s",
        str(spec.size),
        "-W",
        "2",
        address,
    )
    return Process(f"{source}-{address}", source, argv)


def parse(text: str) -> PingResult:
    """Read what ping printed.

    Raises:
        OutputError: it printed no statistics.
    """
    counts, times = _COUNTS.search(text), _TIMES.search(text)
    if counts is None:
        raise OutputError(f"ping printed no statistics: {text.strip()[:120] or 'nothing'}")
    low, mean, high = (float(t) / 1000 for t in times.groups()) if times else (None, None, None)
    return PingResult(int(counts.group(1)), int(counts.group(2)), low, mean, high)


def _commands(spec: Ping, ends: Ends) -> tuple[Process, ...]:
    return (command(spec, ends.source, ends.address),)


def _figures(text: str) -> Figures:
    parsed = parse(text)
    times = (("rtt_min", parsed.rtt_min), ("rtt_mean", parsed.rtt_mean), ("rtt_max", parsed.rtt_max))
    lost = 1 - parsed.received / parsed.sent
    found = [(metric, value, "s") for metric, value in times if value is not None]
    return Figures((*found, ("ping_loss", lost, "ratio")), lost)


PAIRS = PairTool(
    _commands,
    _figures,
    limit=lambda spec: _SPARE_SECONDS + spec.count * _MAX_GAP,
    what="echoes",
    messages=lambda spec: Messages("udp", spec.size, spec.size),  # headers of echoes are as long as those of UDP
)
