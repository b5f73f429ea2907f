"""iperf3: commands for the flows of a pattern, and the goodput its receivers saw."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from testbed.base.messages import Process
from testbed.scenario.workloads.pairs import OutputError
from testbed.scenario.workloads.spec import Iperf3, times

FIRST_PORT = 5201
# Below the ports that Linux gives out by itself.
_FIRST_CLIENT_PORT, _LAST_CLIENT_PORT = 8000, 31999
_TURNS = 8
# Ports of the repeats of one load are that far from those of the next.
TURNS_APART = 3
# Receivers report once a second. A timer may be late by a little.
_TIMER_ERROR = 0.1


@dataclass(frozen=True, slots=True)
class FlowResult:
    """What the receiver of a flow saw in the seconds that count, in laboratory units."""

    goodput: float  # payload bit/s
    warmup: float | None  # payload bit/s in the seconds before, which do not count; None where there are none
    loss: float | None  # share of datagrams that did not arrive; None for TCP
    jitter: float | None  # s, as RFC 3550 defines it, mean over the seconds; None for TCP
    retransmits: int | None  # segments the sender sent again, warm-up included; None for UDP


def commands(
    spec: Iperf3,
    flows: Sequence[tuple[str, str, str]],
    offered: Sequence[float],
    client_ports: Sequence[int] | None = None,
) -> tuple[list[Process], list[Process]]:
    """Servers and clients, one of each a flow.

    `flows`: (source host, destination host, destination address); `offered`: UDP rate of each, laboratory payload
    bit/s; `client_ports`: port that each flow's data come from, none = any.
    """
    servers, clients = [], []
    ports = server_ports([destination for _, destination, _ in flows])
    for index, ((source, destination, address), rate) in enumerate(zip(flows, offered, strict=True)):
        port = ports[index]
        serve = ("iperf3", "-s", "-1", "-J", "-p", str(port))
        servers.append(Process(f"server-{index}", destination, serve, server_port=port))
        # Not iperf3's own -O: its receiver mixes up the seconds around the end of what it leaves out.
        argv = ["iperf3", "-c", address, "-p", str(port), "-J", "-t", str(sum(times(spec)))]
        if spec.protocol == "udp":
            argv += ["-u", "-b", f"{rate:.0f}", "-l", str(spec.payload), "--pacing-timer", _format_pacing(spec, rate)]
        else:
            argv += ["-C", spec.congestion]
        if client_ports is not None:
            argv += ["--cport", str(client_ports[index])]
        clients.append(Process(f"client-{index}", source, tuple(argv)))
    return servers, clients


def server_ports(destinations: Sequence[str]) -> list[int]:
    """Port of each flow's server: one after the other on each host."""
    on_host: Counter[str] = Counter()
    ports = []
    for destination in destinations:
        ports.append(FIRST_PORT + on_host[destination])
        on_host[destination] += 1
    return ports


def client_ports(sources: Sequence[str], seed: int, turn: int) -> list[int]:
    """Port of each flow's client, drawn at random and different on each host.

    `turn` counts loads and repeats; those close to each other get different ports, since TCP keeps a pair of ports for
    a minute after its connection has ended.
    """
    size = (_LAST_CLIENT_PORT + 1 - _FIRST_CLIENT_PORT) // _TURNS
    first = _FIRST_CLIENT_PORT + turn % _TURNS * size
    drawn = np.random.PCG64([seed, turn]).random_raw(len(sources)) % size
    taken: set[tuple[str, int]] = set()
    ports = []
    for source, place in zip(sources, drawn.tolist(), strict=True):
        while (source, place) in taken:
            place = (place + 1) % size  # noqa: PLW2901 - the next that is free
        taken.add((source, place))
        ports.append(first + place)
    return ports


def _format_pacing(spec: Iperf3, rate: float) -> str:
    """Microseconds between looks at the clock: twice a datagram, where iperf3's own millisecond would be more often."""
    datagram = spec.payload * 8 / rate * 1e6
    return f"{max(1000.0, datagram / 2):.0f}"


def parse(spec: Iperf3, server: str, client: str) -> FlowResult:
    """Read the JSON of a flow's two ends; what counts are the receiver's seconds after those to omit.

    Raises:
        OutputError: iperf3 reports an error, or its output is not complete.
    """
    omit, wanted = times(spec)
    received, sent = _document(server, "server"), _document(client, "client")
    try:
        sums = [interval["sum"] for interval in received["intervals"]]
        begin, end = omit - _TIMER_ERROR, omit + wanted + _TIMER_ERROR
        counted = [s for s in sums if s["start"] >= begin and s["end"] <= end]
        seconds = sum(s["seconds"] for s in counted)
        if seconds < wanted / 2:
            raise OutputError(f"the iperf3 receiver saw {seconds:.1f} of {wanted} s of the flow")
        goodput = 8 * sum(s["bytes"] for s in counted) / seconds
        early = [s for s in sums if s["end"] <= omit + _TIMER_ERROR]
        warmup = 8 * sum(s["bytes"] for s in early) / sum(s["seconds"] for s in early) if early else None
        if "retransmits" in sent["end"].get("sum_sent", {}):
            return FlowResult(goodput, warmup, None, None, int(sent["end"]["sum_sent"]["retransmits"]))
        datagrams = sum(s["packets"] for s in counted)
        lost = sum(_to_signed(s["lost_packets"]) for s in counted)
        loss = max(0.0, lost / datagrams) if datagrams else 1.0
        jitter = sum(s["jitter_ms"] for s in counted) / len(counted) / 1000
        return FlowResult(goodput, warmup, loss, jitter, None)
    except (KeyError, TypeError) as error:
        raise OutputError(f"iperf3 printed JSON without {error}") from error


def _to_signed(count: int) -> int:
    """A count that iperf3 lowers when a datagram comes late after all, and prints as if it could not be negative."""
    return count - 2**64 if count >= 2**63 else count


def _document(text: str, end: str) -> dict[str, Any]:
    try:
        document: dict[str, object] = json.loads(text)
    except ValueError as error:
        raise OutputError(f"the iperf3 {end} printed no JSON: {text.strip()[:120] or 'nothing'}") from error
    if "error" in document:
        raise OutputError(f"the iperf3 {end} says: {document['error']}")
    return document
