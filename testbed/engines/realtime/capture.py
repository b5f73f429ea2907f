"""Frames of one link of a model, in real-world time, with the PAUSE frames between its ends."""

from __future__ import annotations

import struct
import time
from bisect import bisect_right
from collections.abc import Callable
from types import TracebackType

from testbed.base.errors import LabError
from testbed.base.ethernet import MIN_FRAME
from testbed.base.messages import Frame
from testbed.dataplane.kernels.packets_clock import shown_time
from testbed.dataplane.kernels.packets_state import NOW, PacketModel

_LOOK = 0.02  # sampling interval, s for frames
# IEEE 802.3, annex 31: where it goes, its type, PAUSE and priority-based flow control, the longest pause.
_PAUSE_ADDRESS, _MAC_CONTROL, _PAUSE, _PFC, _LONGEST = bytes.fromhex("0180c2000001"), 0x8808, 0x0001, 0x0101, 0xFFFF
_PRIORITIES = 8


class ModelFrames:
    """Frames of a link of a model; see session.Frames.

    Args:
        model: as it is computed.
        links: those of either direction, the outbound one first.
        name: of the interface.
        about: of its outbound frames.
        alive: whether the lab is; asked while nothing comes.
    """

    def __init__(
        self, model: PacketModel, links: tuple[int, int], name: str, about: str, alive: Callable[[], bool]
    ) -> None:
        clock = model.live.clock
        dilation = float(clock.dilation[clock.row[0]])
        self.interface = name
        self.description = (
            f"{about}; in real-world time since the lab began, of which laboratory time is {dilation:.4g} times as much"
        )
        self._live, self._counts, self._links, self._alive = model.live, model.state.counts, links, alive
        self._priorities = model.fabric.priorities
        self._next = int(self._live.seen[0])
        self._lost = 0
        self._ahead: list[Frame] = []
        self._listens = True
        for link in links:
            self._live.watched[link] += 1

    def __enter__(self) -> ModelFrames:
        """Return self."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Listen no longer."""
        self.stop()

    def read(self, seconds: float) -> list[Frame]:
        """What came since the last call; see Frames."""
        until = time.monotonic() + seconds
        while True:
            frames = self._read_frames()
            if frames or time.monotonic() >= until:
                return frames
            if not self._alive():
                if self._ahead:
                    return self._release(None)
                raise LabError("the lab has ended")
            time.sleep(_LOOK)

    def _read_frames(self) -> list[Frame]:
        """Frames in the order of their stamps: the model may take what a host sends now before it has gone on to now.

        What it has gone on to, nothing that it shows from here on is stamped before.
        """
        live, ring = self._live, len(self._live.seen_at)
        now = shown_time(live.clock, int(self._counts[NOW]))
        end = int(live.seen[0])
        while self._next < end:
            seen = int(live.seen[0])
            if seen - self._next >= ring:  # overtaken, and whose these were is not known any more
                self._lost += seen - self._next - ring // 2
                self._next = seen - ring // 2
            place = self._next % ring
            link = int(live.seen_link[place])
            if link in self._links:
                data = self._bytes(place, link)
                self._ahead.append(Frame(int(live.seen_at[place]), link == self._links[0], data, len(data)))
            self._next += 1
        return self._release(now if self._listens else None)

    def _release(self, until: int | None) -> list[Frame]:
        """Frames that are stamped up to a time, or all, in order."""
        self._ahead.sort(key=lambda frame: frame.time)
        count = len(self._ahead) if until is None else bisect_right(self._ahead, until, key=lambda frame: frame.time)
        frames, self._ahead = self._ahead[:count], self._ahead[count:]
        return frames

    def _bytes(self, place: int, link: int) -> bytes:
        live = self._live
        tag, length = int(live.seen_tag[place]), int(live.seen_length[place])
        if tag == -2:
            return pause_frame(length, link, by_priority=self._priorities > 1)
        data = live.seen_data[place, :length].tobytes()
        if tag >= 0:
            data = data[:12] + struct.pack("!HH", 0x8100, (tag >> 12) << 13 | tag & 0xFFF) + data[12:]
        return data

    def stop(self) -> None:
        """Let no more in; see Frames."""
        if self._listens:
            for link in self._links:
                self._live.watched[link] -= 1
        self._listens = False

    def count_lost(self) -> int:
        """Frames that were overwritten before they were read, of this link and others that are listened to."""
        return self._lost


def pause_frame(stopped: int, link: int, *, by_priority: bool) -> bytes:
    """A frame that stops some priorities, a bit each, and lets the others go on.

    It is sent from an address made of the link's number.
    """
    head = _PAUSE_ADDRESS + b"\x02\x01" + struct.pack("!I", link) + struct.pack("!H", _MAC_CONTROL)
    times = [_LONGEST if stopped >> priority & 1 else 0 for priority in range(_PRIORITIES)]
    if by_priority:
        body = struct.pack("!HH8H", _PFC, (1 << _PRIORITIES) - 1, *times)
    else:
        body = struct.pack("!HH", _PAUSE, times[0])
    return (head + body).ljust(MIN_FRAME, b"\0")
