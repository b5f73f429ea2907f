"""`telemetry-<load>.npz`: what every port and pair of hosts did while a load ran, as time series.

Times, bytes and frames are the laboratory's: bytes hold for the real world as well, times divided by the dilation do.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from testbed.base.errors import InputError, reading
from testbed.base.files import read_bytes
from testbed.base.limits import parse_arrays
from testbed.base.model import Bools, Floats, Ints, Longs

SCHEMA_VERSION = 1
Names = npt.NDArray[np.str_]


@dataclass(frozen=True, slots=True, eq=False)
class Telemetry:
    """Readings of the lab's counters beside one load, all its repeats one after the other.

    T readings of P switch ports, M coarser ones of H hosts, R repeats, N frames, K looks at queues. Bytes are those
    that Linux counts: frames with their Ethernet header, without preamble, check sequence and gap. Bytes, frames and
    drops are increases since the reading before; the first reading of a repeat has zeros. All times are s since the
    last program of their repeat was started, so that negative ones are of the start.
    """

    ports: Names  # (P,) names, such as `s1-eth2`
    hosts: Names  # (H,) names
    port_rate: Floats  # (P,) laboratory bit/s that a port sends at most, on the wire
    # (P,) channel between switches that the port sends into, a member of an aggregated link one of its own, or -1 for a
    # port with a host
    port_channel: Ints
    port_host: Ints  # (P,) host that hangs on the port, or -1
    window: Floats  # (R, 2) begin and end of what the figures of each repeat were counted over, s
    repeat: Ints  # (T,) which repeat, from 0
    time: Floats  # (T,) s
    sent_bytes: Longs  # (T, P) by the switch into the link
    sent_frames: Longs  # (T, P)
    received_bytes: Longs  # (T, P) by the switch out of the link
    received_frames: Longs  # (T, P)
    port_drops: Longs  # (T, P) frames that the port lost outside its queue
    queue_drops: Longs  # (T, P) frames that found the queue full
    queue_frames: Longs  # (T, P) frames waiting at the time
    queue_bytes: Longs  # (T, P) bytes waiting at the time
    processors: Longs  # (T, 3) ticks of all processors: idle, in interrupts, all
    coarse_repeat: Ints  # (M,) which repeat, from 0
    coarse_time: Floats  # (M,) s
    host_sent_bytes: Longs  # (M, H) by the host into its link
    host_queue_drops: Longs  # (M, H) frames that found the host's own queue full
    host_queue_frames: Longs  # (M, H) frames waiting in it at the time
    # (M, H, H) the traffic matrix: bytes that entered the fabric from a host (row) to a host (column); (0, H, H) where
    # pairs could not be counted
    traffic_bytes: Longs
    traffic_frames: Longs  # (M, H, H) likewise, frames
    departures: Longs  # (N, 4) repeat, port, ns by the system clock, bytes of each frame that left a watched port
    looks: Longs  # (K, 4) repeat, port, ns by the system clock, frames that waited

    def increases_of(self, repeat: int) -> Bools:
        """(T,) which readings are increases inside the window of a repeat."""
        begin, end = self.window[repeat]
        same = self.repeat == repeat
        before = np.roll(self.time, 1)
        before[:1] = -np.inf
        # The increase is since the reading before, which must lie inside as well.
        found: Bools = same & np.roll(same, 1) & (before >= begin) & (self.time <= end)
        return found

    def traffic_matrix(self, repeat: int | None = None) -> Longs:
        """(H, H) bytes from each host to each other one in a whole repeat, warm-up included, or in all of them."""
        if not len(self.traffic_bytes):
            raise ValueError("pairs of hosts were not counted")
        chosen = np.ones(len(self.coarse_repeat), dtype=bool) if repeat is None else self.coarse_repeat == repeat
        total: Longs = self.traffic_bytes[chosen].sum(axis=0)
        return total


def join(parts: Sequence[Telemetry]) -> Telemetry:
    """Put the repeats of a load, each recorded on its own, one after the other."""
    joined = {}
    for field in fields(Telemetry):
        if field.name in ("ports", "hosts", "port_rate", "port_channel", "port_host"):
            joined[field.name] = getattr(parts[0], field.name)
            continue
        pieces = []
        for number, part in enumerate(parts):
            piece = getattr(part, field.name)
            if field.name in ("repeat", "coarse_repeat"):
                piece = np.full_like(piece, number)
            elif field.name in ("departures", "looks") and len(piece):
                piece = piece.copy()
                piece[:, 0] = number
            pieces.append(piece)
        joined[field.name] = np.concatenate(pieces)
    return Telemetry(**joined)


def telemetry_to_bytes(telemetry: Telemetry) -> bytes:
    """Return the content of a `.npz` file."""
    content = io.BytesIO()
    arrays = {field.name: getattr(telemetry, field.name) for field in fields(Telemetry)}
    np.savez_compressed(content, schema_version=np.array(SCHEMA_VERSION), **arrays)
    return content.getvalue()


def file_name(load: str) -> str:
    """Name in the result folder of the file of a load."""
    return f"telemetry-{load}.npz"


def load_telemetry(folder: Path, load: str) -> Telemetry | None:
    """Read the telemetry of a load from a result folder; None where there is none.

    Raises:
        InputError: the file is damaged or of another schema version; names it.
    """
    file = folder / file_name(load)
    with reading(file):
        if not file.exists():
            return None
    with reading(file):
        stored = parse_arrays(read_bytes(file, folder))
        version = int(stored["schema_version"])
        if version != SCHEMA_VERSION:
            raise InputError.one(str(file), f"has schema version {version}; this program reads {SCHEMA_VERSION}")
        arrays = {field.name: stored[field.name] for field in fields(Telemetry)}
        _check(arrays)
        return Telemetry(**arrays)


# Extents of each array, by the letters of Telemetry; a number is that number.
_SHAPES = {
    "ports": "P", "hosts": "H", "port_rate": "P", "port_channel": "P", "port_host": "P", "window": "R2", "repeat": "T",
    "time": "T", "processors": "T3", "coarse_repeat": "M", "coarse_time": "M", "host_sent_bytes": "MH",
    "host_queue_drops": "MH", "host_queue_frames": "MH", "traffic_bytes": "CHH", "traffic_frames": "CHH",
    "departures": "N4", "looks": "K4",
}  # fmt: skip
_KINDS = {"Names": "U", "Ints": "i", "Longs": "i", "Floats": "f"}


def _check(arrays: Mapping[str, npt.NDArray[Any]]) -> None:
    """Refuse arrays of other shapes or types than Telemetry's.

    Raises:
        ValueError: one is.
    """
    extents: dict[str, int] = {}
    for field in fields(Telemetry):
        array, letters = arrays[field.name], _SHAPES.get(field.name, "TP")
        if array.dtype.kind != _KINDS[str(field.type)]:
            raise ValueError(f"{field.name} is of type {array.dtype}")
        wanted = [int(one) if one.isdigit() else extents.get(one, -1) for one in letters]
        if array.ndim != len(wanted) or any(w not in (-1, there) for w, there in zip(wanted, array.shape, strict=True)):
            raise ValueError(f"{field.name} has the shape {array.shape}, which does not fit the other arrays")
        extents.update({one: there for one, there in zip(letters, array.shape, strict=True) if one.isalpha()})
    repeats, ports, hosts = extents["R"], extents["P"], extents["H"]
    for name, low, high in (
        ("repeat", 0, repeats), ("coarse_repeat", 0, repeats), ("port_channel", -1, 2**31), ("port_host", -1, hosts),
    ):  # fmt: skip
        if arrays[name].size and not (low <= arrays[name].min() and arrays[name].max() < high):
            raise ValueError(f"{name} holds a number that is none")
    for name in ("departures", "looks"):
        both = arrays[name][:, :2]
        if both.size and not (both.min() >= 0 and both[:, 0].max() < repeats and both[:, 1].max() < ports):
            raise ValueError(f"{name} holds a repeat or port that is none")
    if extents["C"] not in (0, extents["M"]):
        raise ValueError("traffic_bytes has another number of readings than coarse_time")
    if not all(np.isfinite(arrays[name]).all() for name in ("time", "coarse_time", "window", "port_rate")):
        raise ValueError("a time or rate is not finite")
