"""A finished run as the page plays it: its telemetry, reading by reading."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict

import numpy as np

from testbed.base.errors import InputError
from testbed.base.ethernet import VLAN_TAG, wire_bits
from testbed.base.model import Floats, Longs
from testbed.planning import Plan
from testbed.results import load_run
from testbed.results.read_run import LoadHead, load_heads
from testbed.results.samples import load_changes
from testbed.results.telemetry import Telemetry, file_name, load_telemetry
from testbed.ui.live.fabric_layout import LabPicture, picture
from testbed.ui.live.lab_source import HostBytes, number_of
from testbed.ui.live.link_use import shares
from testbed.ui.live.pair_paths import PairPath, PairPaths


@dataclass(frozen=True, slots=True, eq=False)
class Recording:
    """One load, N readings; directions as in messages.LinkReadings, D of them, the first P of switches' ports."""

    head: LoadHead  # what it is called
    repeat: Longs  # (N,) from 0
    time: Floats  # (N,) real-world s since the last program of its repeat was started
    bits: Floats  # (N, D) bit/s on the wire, of the lab
    rates: Floats  # (D,) lab bit/s
    waiting: Longs  # (N, P) frames
    lost: Longs  # (N, P) frames since the reading before
    pairs: Longs  # (H, H) bytes from each host to each other one; (0, 0) where they were not counted
    events: tuple[tuple[float, str], ...]  # of the first repeat: real-world s, and what changed

    def use(self, number: int) -> list[int]:
        """Of each direction, in thousandths."""
        return shares(self.bits[number], self.rates)


class _Event(TypedDict):
    at: float
    event: str


class _Replay(TypedDict):
    title: str
    verdict: str
    time: list[float]
    repeat: list[int]
    events: list[_Event]


class RunPicture(LabPicture):
    """The fabric of a run, and what was recorded of its loads."""

    replay: list[_Replay]


class Series(TypedDict):
    """Of one direction over all readings, or of all directions at one."""

    use: list[int]  # in thousandths
    waiting: list[int]  # frames


class AtReading(Series):
    """Of all directions at one reading."""

    lost: list[int]  # frames since the reading before


class RunSource:
    """A finished run, as LabSource is a running one.

    Args:
        folder: of its results.

    Raises:
        InputError: it is no such folder, or nothing was recorded in it.
    """

    def __init__(self, folder: Path) -> None:
        run = load_run(folder)
        self.plan = run.plan
        self.ways = PairPaths(run.plan)
        found = [
            _make_recording(head, telemetry, head.dilation or run.dilation, folder, run.plan)
            for head in load_heads(run.manifest, ())
            if (telemetry := load_telemetry(folder, head.label)) is not None
        ]
        self.recordings = [one for one in found if len(one.time)]
        if not self.recordings:
            sentence = (
                "has no telemetry to be shown; loads of iperf3 and MPI on ovs, vm and realtime record it, unless "
                "lab.telemetry is false"
            )
            raise InputError.one(str(folder), sentence)
        self.picture: RunPicture = {
            **picture(run.plan),
            "lab": folder.name,
            "replay": [
                {
                    "title": f"{one.head.label}: {one.head.title}" if one.head.label else one.head.title,
                    "verdict": one.head.verdict,
                    "time": one.time.round(6).tolist(),
                    "repeat": one.repeat.tolist(),
                    "events": [{"at": at, "event": event} for at, event in one.events],
                }
                for one in self.recordings
            ],
        }

    def update(self) -> None:
        """Nothing goes on."""

    def pause(self) -> None:
        """There is nothing to forget."""

    def close(self) -> None:
        """There is nothing to close."""

    def trace_path(self, source: int, destination: int) -> PairPath:
        """The path of a pair by the plan."""
        return self.ways.describe(None, source, destination)

    def load(self, text: str) -> Recording:
        """A load by its number."""
        return self.recordings[number_of(text, len(self.recordings), "load")]

    def reading(self, load: str, number: str) -> AtReading:
        """What was going on at a reading."""
        one = self.load(load)
        at = number_of(number, len(one.time), "reading")
        return {"use": one.use(at), "waiting": one.waiting[at].tolist(), "lost": one.lost[at].tolist()}

    def series(self, load: str, direction: int) -> Series:
        """Use in thousandths, and frames that wait, of a direction over all readings."""
        one = self.load(load)
        waits = direction < one.waiting.shape[1]
        return {
            "use": shares(one.bits[:, direction], np.full(len(one.bits), one.rates[direction])),
            "waiting": one.waiting[:, direction].tolist() if waits else [],
        }

    def host(self, load: str, host: int) -> HostBytes:
        """Bytes between a host and each other one in the whole load."""
        pairs = self.load(load).pairs
        if not len(pairs):
            return {"sent": [], "received": [], "why_not": "pairs of hosts were not counted"}
        return {"sent": pairs[host].tolist(), "received": pairs[:, host].tolist(), "why_not": ""}


def _make_recording(head: LoadHead, telemetry: Telemetry, dilation: float, folder: Path, plan: Plan) -> Recording:
    trunk, edge = np.flatnonzero(telemetry.port_channel >= 0), np.flatnonzero(telemetry.port_host >= 0)
    trunk = trunk[np.argsort(telemetry.port_channel[trunk])]
    edge = edge[np.argsort(telemetry.port_host[edge])]
    ports = np.concatenate([trunk, edge])
    if (len(trunk), len(edge)) != (2 * plan.wiring.link_count, plan.wiring.host_count):
        raise InputError.one(str(folder / file_name(head.label)), "is of another fabric than plan.json")
    # The first reading of a repeat has no increase.
    rows = np.flatnonzero(np.diff(telemetry.repeat, prepend=-1) == 0)
    seconds = telemetry.time[rows] - telemetry.time[rows - 1]
    rows, seconds = rows[seconds > 0], seconds[seconds > 0]
    tags = np.zeros(len(ports), dtype=np.int64)
    tags[: len(trunk)] = VLAN_TAG if plan.vlans.tagged_trunks else 0
    sent = wire_bits(telemetry.sent_bytes[:, ports], telemetry.sent_frames[:, ports], tags)
    received = wire_bits(telemetry.received_bytes[:, edge], telemetry.received_frames[:, edge])
    bits = np.concatenate([sent, received], axis=1)[rows]
    repeats = load_changes(folder, head.label)
    return Recording(
        head=head,
        repeat=telemetry.repeat[rows].astype(np.int64),
        time=telemetry.time[rows] / dilation,
        bits=bits / seconds[:, None],
        rates=telemetry.port_rate[np.concatenate([ports, edge])],
        waiting=telemetry.queue_frames[rows][:, ports],
        lost=telemetry.queue_drops[rows][:, ports],
        pairs=telemetry.traffic_matrix() if len(telemetry.traffic_bytes) else np.zeros((0, 0), dtype=np.int64),
        events=tuple(
            (float(event["at"]) / dilation, str(event["event"])) for event in (repeats[0]["events"] if repeats else ())
        ),
    )
