"""Counters of all links and pairs of hosts at one moment, for who looks at a lab beside its loads."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Protocol

import numpy as np

from testbed.base.messages import LinkReadings, PairReadings
from testbed.base.model import Floats, Longs
from testbed.engines.lab.build_order import BuildOrder
from testbed.engines.lab.counters.rtnetlink import FIGURES

_IN_BYTES, _IN_FRAMES, _OUT_BYTES, _OUT_FRAMES, _WAITING, _DROPS = (
    FIGURES.index(name) for name in ("rx_bytes", "rx_packets", "tx_bytes", "tx_packets", "queue_frames", "queue_drops")
)


class CountedNetwork(Protocol):
    """A lab network whose counters are read; see LabNetwork."""

    @property
    def order(self) -> BuildOrder:
        """What it was built from."""

    def port_figures(self) -> Longs:
        """(P, 9) rtnetlink.FIGURES of the switches' ports, in the order of port_rates()."""

    def port_rates(self) -> Mapping[str, float]:
        """bit/s of each port."""

    def paused_seconds(self) -> Floats | None:
        """(C + 2H,) see LinkReadings.paused; None without flow control."""

    def waiting_cycle(self) -> tuple[int, ...]:
        """Channels that wait for each other."""

    def pair_counter(self) -> tuple[Callable[[], Longs] | None, str]:
        """What returns (2, H, H) bytes and frames of pairs of hosts; None, and why."""


def link_readings(fabric: CountedNetwork) -> LinkReadings:
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


def pair_readings(fabric: CountedNetwork) -> PairReadings:
    """Bytes between hosts until now."""
    read, why_not = fabric.pair_counter()
    if read is None:
        return PairReadings(time.monotonic(), why_not=why_not)
    size, now = read()[0], time.monotonic()
    source, end = size.nonzero()
    return PairReadings(now, tuple(zip(source.tolist(), end.tolist(), size[source, end].tolist(), strict=True)))
