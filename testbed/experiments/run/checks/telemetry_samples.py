"""From what the lab's agent recorded beside a load to the arrays that are stored, and to samples."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from testbed.base.ethernet import wire_bits
from testbed.base.limits import parse_arrays
from testbed.base.model import Bools, Floats, Ints, Longs, Topology
from testbed.engines.lab.counters.rtnetlink import FIGURES, GAUGES
from testbed.results.telemetry import Telemetry


def read_record(topology: Topology, content: bytes, start: float, window: tuple[float, float] | None) -> Telemetry:
    """Turn a record into the telemetry of one repeat.

    Args:
        topology: the lab's physical one.
        content: the agent's file: the arrays of Record and Departures in engines/lab/counters, rows of ports those of
            the hosts and then those that send into each channel.
        start: when the load's last program had started, by the agent's clock.
        window: what its figures are counted over, s from start; None = all of it.
    """
    record = parse_arrays(content)
    time, coarse = record["time"] - start, record["coarse_time"] - start
    kept, coarse_kept = _from_start(time), _from_start(coarse)
    ports, hosts = _increases(record["ports"], kept), _increases(record["hosts"], coarse_kept)
    count = topology.host_count
    pairs: Longs = np.zeros((0, 2, count, count), dtype=np.int64)
    if "pairs" in record:
        pairs = _differences(record["pairs"], coarse_kept)
    channel, host = _owners(topology)
    return Telemetry(
        ports=record["names"],
        hosts=np.array([topology.host_name(number) for number in range(count)]),
        port_rate=record["rates"],
        port_channel=channel,
        port_host=host,
        window=np.array([window or (0.0, float(time[-1]))]),
        repeat=np.zeros(int(kept.sum()), dtype=np.int32),
        time=time[kept],
        sent_bytes=ports["tx_bytes"],
        sent_frames=ports["tx_packets"],
        received_bytes=ports["rx_bytes"],
        received_frames=ports["rx_packets"],
        port_drops=ports["rx_dropped"] + ports["tx_dropped"],
        queue_drops=ports["queue_drops"],
        queue_frames=ports["queue_frames"],
        queue_bytes=ports["queue_bytes"],
        processors=_differences(record["ticks"], kept),
        coarse_repeat=np.zeros(int(coarse_kept.sum()), dtype=np.int32),
        coarse_time=coarse[coarse_kept],
        host_sent_bytes=hosts["tx_bytes"],
        host_queue_drops=hosts["queue_drops"],
        host_queue_frames=hosts["queue_frames"],
        traffic_bytes=pairs[:, 0],
        traffic_frames=pairs[:, 1],
        departures=_with_repeat(record["departures"]),
        looks=_with_repeat(record["looks"]),
    )


def _from_start(time: Floats) -> Bools:
    """Readings since the start, and the one before it, from which the first increase counts."""
    found: Bools = time >= time[max(int(np.searchsorted(time, 0.0, side="right")) - 1, 0)]
    return found


def _differences(counters: Longs, kept: Bools) -> Longs:
    found: Longs = np.diff(counters[kept], axis=0, prepend=counters[kept][:1])
    return found


def _increases(figures: Longs, kept: Bools) -> dict[str, Longs]:
    """Name → (T, P): increases of counters, and queues as they were."""
    increase = _differences(figures, kept)
    return {
        name: np.ascontiguousarray((figures[kept] if column in GAUGES else increase)[..., column])
        for column, name in enumerate(FIGURES)
    }


def _with_repeat(rows: Longs) -> Longs:
    return np.insert(rows, 0, 0, axis=1)


def _owners(topology: Topology) -> tuple[Ints, Ints]:
    """Channel and host of each port, -1 where it has none: ports are those of the hosts, then those of the channels."""
    hosts, channels = topology.host_count, len(topology.channel_source)
    none: Ints = np.full(hosts + channels, -1, dtype=np.int32)
    channel, host = none.copy(), none
    host[:hosts], channel[hosts:] = np.arange(hosts), np.arange(channels)
    return channel, host


def port_name(topology: Topology, telemetry: Telemetry, port: int) -> str:
    """What a port sends into: `s1→s2`, or `s1→h1`."""
    channel, host = int(telemetry.port_channel[port]), int(telemetry.port_host[port])
    if channel >= 0:
        return topology.channel_name(channel)
    return f"{topology.switch_name(int(topology.host_switch[host]))}→{topology.host_name(host)}"


def queue_figures(topology: Topology, telemetry: Telemetry, repeat: int) -> Iterator[tuple[str, dict[str, str], float]]:
    """Metric, labels and value of each port's queue over the counted time: frames on average, frames refused."""
    counted = telemetry.increases_of(repeat)
    if not counted.any():
        return
    for port in range(len(telemetry.ports)):
        labels = {"channel": port_name(topology, telemetry, port)}
        yield "queue_frames", labels, float(telemetry.queue_frames[counted, port].mean())
        yield "queue_drops", labels, float(telemetry.queue_drops[counted, port].sum())


def departure_errors(telemetry: Telemetry, repeat: int, tag: int = 0) -> Floats:
    """Errors of all groups of gaps at the ports that were watched in a repeat; see gap_errors().

    `tag`: bytes of the tag that frames have between switches.
    """
    frames = telemetry.departures[telemetry.departures[:, 0] == repeat]
    looks = telemetry.looks[telemetry.looks[:, 0] == repeat]
    errors = [
        gap_errors(
            frames[frames[:, 1] == port, 2:],
            looks[looks[:, 1] == port, 2:],
            float(telemetry.port_rate[port]),
            tag if telemetry.port_channel[port] >= 0 else 0,
        )
        for port in np.unique(looks[:, 1])
    ]
    return np.concatenate(errors) if errors else np.zeros(0)


# HTB lets two frames pass at once when it comes late, and then pauses: single gaps alternate where the mean is right.
GROUP = 8


def gap_errors(frames: Longs, looks: Longs, rate: float, tag: int = 0, group: int = GROUP) -> Floats:
    """Return |measured / ideal - 1| of groups of successive gaps in which the port had no pause.

    Between two looks at the queue the port had no pause if more frames waited at the first than left until the second.

    Args:
        frames: (N, 2) ns and bytes, as Linux counts them, of each frame that left, in their order.
        looks: (K, 2) ns and frames that waited.
        rate: bit/s on the wire.
        tag: bytes of the tag that frames have there.
        group: gaps taken together.
    """
    if len(frames) <= group or len(looks) < 2:
        return np.zeros(0)
    place = np.searchsorted(looks[:, 0], frames[:, 0], side="right") - 1
    inside = (place >= 0) & (place < len(looks) - 1)
    left = np.bincount(place[inside], minlength=len(looks))
    paused = left >= looks[:, 1]
    paused[-1] = True
    # A gap counts if no look between its two frames allows for a pause.
    pauses = np.concatenate([[0], np.cumsum(paused)])
    start, end = place[:-1], place[1:]
    busy = (start >= 0) & (pauses[np.maximum(start, 0)] == pauses[np.maximum(end, 0) + 1])
    gaps = np.diff(frames[:, 0]) * 1e-9
    ideal = wire_bits(frames[:-1, 1], 1, tag) / rate
    errors = []
    run = 0
    for at, counts in enumerate(busy):
        run = run + 1 if counts else 0
        if run == group:
            chosen = slice(at + 1 - group, at + 1)
            errors.append(abs(gaps[chosen].sum() / ideal[chosen].sum() - 1))
            run = 0
    return np.array(errors)
