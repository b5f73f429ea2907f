"""What machines have recorded beside a load, as one record of the whole fabric. Pure."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from testbed.base.limits import parse_arrays
from testbed.base.model import Floats, Longs
from testbed.engines.lab.counters.rtnetlink import GAUGES
from testbed.engines.lab.fabric_part import Part
from testbed.engines.machines.clock_offsets import Clock

_Arrays = dict[str, npt.NDArray[Any]]


def merge_records(contents: Sequence[bytes], parts: Sequence[Part], clocks: Sequence[Clock], busiest: int) -> bytes:
    """Put the records of all parts together, by the first machine's clock.

    Each machine read its counters at times of its own. The rows are those of one machine; between two readings of
    another one its counters are taken to have grown evenly, and a queue is the one of the nearer reading. Before its
    first and after its last reading nothing ran.

    Args:
        contents: for each part the file of engines.lab.counters.telemetry.
        parts: of the fabric.
        clocks: of their machines.
        busiest: number of the part whose times and processors count.
    """
    records = [_read(content) for content in contents]
    times, coarse = (
        [record[name] - clock.ahead for record, clock in zip(records, clocks, strict=True)]
        for name in ("time", "coarse_time")
    )

    def list_port_series(number: int) -> Longs:
        return _resample_readings(times[busiest], times[number], records[number]["ports"], GAUGES)

    def list_coarse_series(number: int) -> Longs:
        return _resample_readings(coarse[busiest], coarse[number], records[number]["hosts"], GAUGES)

    rows = [np.array(rows_of(parts, number), dtype=np.int64) for number in range(len(parts))]
    order = np.argsort(np.concatenate(rows))
    hosts = np.argsort(np.concatenate([part.hosts for part in parts]))
    everything = range(len(parts))
    found: _Arrays = {
        **{name: np.concatenate([record[name] for record in records])[order] for name in ("names", "rates")},
        "time": times[busiest],
        "ports": _join_columns(list_port_series, everything)[:, order],
        "ticks": records[busiest]["ticks"],
        "coarse_time": coarse[busiest],
        "hosts": _join_columns(list_coarse_series, everything)[:, hosts],
    }
    if all("pairs" in record for record in records):
        # Each machine counts what its own hosts have sent.
        sent = [_resample_readings(coarse[busiest], coarse[number], records[number]["pairs"]) for number in everything]
        found["pairs"] = np.stack(sent).sum(axis=0)
    for name in ("departures", "looks"):
        found[name] = np.concatenate([_of_whole(record[name], its) for record, its in zip(records, rows, strict=True)])
    content = io.BytesIO()
    np.savez(content, allow_pickle=False, **found)
    return content.getvalue()


def rows_of(parts: Sequence[Part], number: int) -> list[int]:
    """Rows, in the whole, of the ports of a part: those of hosts come first, then those that send into channels."""
    count = sum(len(part.hosts) for part in parts)
    return [*parts[number].hosts, *(count + channel for channel in parts[number].channels)]


def _read(content: bytes) -> _Arrays:
    return parse_arrays(content)


def _join_columns(of_part: Callable[[int], Longs], parts: Sequence[int]) -> Longs:
    return np.concatenate([of_part(number) for number in parts], axis=1)


def _of_whole(rows: Longs, numbers: npt.NDArray[np.int64]) -> Longs:
    """Frames or looks with the rows of ports in the whole."""
    found = rows.copy()
    found[:, 0] = numbers[rows[:, 0]]
    return found


def _resample_readings(times: Floats, own: Floats, readings: Longs, gauges: Sequence[int] = ()) -> Longs:
    """(T, …) readings at other times.

    Args:
        times: (T,) s.
        own: (N,) s, when they were made.
        readings: (N, …) counters.
        gauges: places in the last axis of what is no counter.
    """
    low = np.clip(np.searchsorted(own, times, side="right") - 1, 0, len(own) - 1)
    high = np.minimum(low + 1, len(own) - 1)
    gap = own[high] - own[low]
    share = np.clip(np.divide(times - own[low], gap, out=np.zeros(len(times)), where=gap > 0), 0.0, 1.0)
    grown = (readings[high] - readings[low]) * share.reshape(-1, *[1] * (readings.ndim - 1))
    found: Longs = readings[low] + np.rint(grown).astype(np.int64)
    nearest = np.where(share < 0.5, low, high)
    for place in gauges:
        found[..., place] = readings[nearest][..., place]
    return found
