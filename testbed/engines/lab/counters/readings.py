"""Counters of all links and pairs of hosts at one moment, for who looks at a lab beside its loads."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import numpy as np

from testbed.base.messages import LinkReadings, PairReadings
from testbed.engines.lab.counters.rtnetlink import FIGURES

if TYPE_CHECKING:
    from testbed.engines.lab.hosts.lab_network import LabNetwork

_IN_BYTES, _IN_FRAMES, _OUT_BYTES, _OUT_FRAMES, _WAITING, _DROPS = (
    FIGURES.index(name) for name in ("rx_bytes", "rx_packets", "tx_bytes", "tx_packets", "queue_frames", "queue_drops")
)


def link_readings(fabric: LabNetwork) -> LinkReadings:
    """What all links have carried until now."""
    hosts = len(fabric.order.hosts)
    ports = fabric.port_figures()
    now = time.monotonic()
    rates = np.roll(np.array(list(fabric.port_rates().values())), -hosts)  # channels first
    edge, out = ports[:hosts], np.roll(ports, -hosts, axis=0)
    paused = fabric.paused_seconds()
    return LinkReadings(
        time=now,
        dilation=fabric.order.dilation,
        bytes=(*out[:, _OUT_BYTES].tolist(), *edge[:, _IN_BYTES].tolist()),
        frames=(*out[:, _OUT_FRAMES].tolist(), *edge[:, _IN_FRAMES].tolist()),
        rates=tuple(rates.tolist()),
        waiting=tuple(out[:, _WAITING].tolist()),
        drops=tuple(out[:, _DROPS].tolist()),
        paused=() if paused is None else tuple(paused.round(6).tolist()),
        deadlock=fabric.waiting_cycle(),
    )


def pair_readings(fabric: LabNetwork) -> PairReadings:
    """Bytes between hosts until now."""
    read, why_not = fabric.pair_counter()
    if read is None:
        return PairReadings(time.monotonic(), why_not=why_not)
    size, now = read()[0], time.monotonic()
    source, end = size.nonzero()
    return PairReadings(now, tuple(zip(source.tolist(), end.tolist(), size[source, end].tolist(), strict=True)))
