"""Write the frames that pass a link to a file that is whole whenever it ends."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType

from testbed.base.errors import InputError, LabError, StorageError, argument
from testbed.base.files import create_file
from testbed.base.messages import Frame, Tap
from testbed.base.model import Topology
from testbed.engines.session import Frames
from testbed.planning.failover.events import ElementNames
from testbed.results import pcapng

STANDARD_OUTPUT = "-"
_TURN = 0.25  # s between two reports of how far it is


@dataclass(slots=True)
class Recorded:
    """What was captured so far."""

    frames: int = 0  # that are in the file
    bytes: int = 0  # of these, as on the wire without preamble, check sequence and gap
    lost: int = 0  # frames that passed and could not be kept
    seconds: float = 0.0  # since it began
    ended: str = ""  # why: `count`, `seconds`, `reader gone`, `interrupted`


def tap_of(topology: Topology, where: str, place: str) -> Tap:
    """Find a link or host by its name.

    Args:
        topology: with every physical link.
        where: `s3-s7`, `s3-s7#1`, `s3-eth2` or `h5`.
        place: of the name, for messages.

    Raises:
        InputError: there is no such thing.
    """
    found = ElementNames(topology).find(where)
    if isinstance(found, str):
        raise InputError.one(place, found)
    link, host, _ = found
    return Tap(link, host)


class CaptureFile:
    """A pcapng file that ends with a whole frame, however writing it ends; use as a context manager.

    Args:
        name: of a file that is not there yet, or STANDARD_OUTPUT.

    Raises:
        InputError: it cannot be made.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self._whole = 0
        try:
            self._file = sys.stdout.fileno() if name == STANDARD_OUTPUT else create_file(Path(name))
        except FileExistsError:
            raise InputError.one(
                argument("file"), f"{name} is there already; remove it, or name another file"
            ) from None
        except OSError as error:
            raise InputError.one(argument("file"), f"{name} cannot be written: {error.strerror}") from error

    def __enter__(self) -> CaptureFile:
        """Return self."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Cut off what was written of a frame in part, and close."""
        if self.name != STANDARD_OUTPUT:
            os.ftruncate(self._file, self._whole)
            os.close(self._file)

    def write(self, blocks: bytes) -> None:
        """Write whole blocks, or none of them.

        Raises:
            StorageError: there is no room.
            BrokenPipeError: nobody reads the standard output any more.
        """
        view = memoryview(blocks)
        try:
            while view:
                view = view[os.write(self._file, view) :]
        except BrokenPipeError:
            raise
        except OSError as error:
            raise StorageError(f"{self.name} cannot be written: {error.strerror}") from error
        self._whole += len(blocks)


def record(
    frames: Frames,
    file: CaptureFile,
    so_far: Recorded,
    *,
    seconds: float | None = None,
    count: int | None = None,
    passes: Callable[[bytes, int], bool] | None = None,
    progress: Callable[[Recorded], None] = lambda so_far: None,
) -> None:
    """Write frames until there are enough, the time is up, or an exception comes.

    Args:
        frames: of the link.
        file: new.
        so_far: is kept up to date, so that it tells what is in the file also after an exception.
        seconds: how long; None = for ever.
        count: how many; None = all.
        passes: whether a frame is kept, given its bytes and its length; None = all are.
        progress: called a few times a second.

    Raises:
        LabError: the fabric has ended.
        StorageError: there is no room for more.
    """
    recorder = _Recorder(frames, file, so_far, count, passes)
    try:
        file.write(pcapng.header(frames.interface, frames.description))
        try:
            recorder.run(seconds, progress)
        except (LabError, StorageError, BrokenPipeError):
            raise
        except BaseException:
            recorder.close()  # interrupted: what has come belongs to it
            raise
        recorder.close()
        so_far.ended = so_far.ended or "seconds"
    except BrokenPipeError:
        so_far.ended = "reader gone"


@dataclass(slots=True)
class _Recorder:
    frames: Frames
    file: CaptureFile
    so_far: Recorded
    count: int | None
    passes: Callable[[bytes, int], bool] | None
    started: float = field(default_factory=time.monotonic)
    seen: int = 0

    def run(self, seconds: float | None, progress: Callable[[Recorded], None]) -> None:
        told = self.started
        while not self.so_far.ended:
            left = _TURN if seconds is None else self.started + seconds - time.monotonic()
            if left <= 0:
                return
            self.write_frames(self.frames.read(min(left, _TURN)))
            if time.monotonic() - told > _TURN:
                told = time.monotonic()
                progress(self.so_far)

    def write_frames(self, some: Sequence[Frame]) -> None:
        kept = [frame for frame in some if self.passes is None or self.passes(frame.data, frame.length)]
        if self.count is not None:
            kept = kept[: self.count - self.so_far.frames]
        self.file.write(pcapng.packets(kept))
        self.seen += len(some)
        self.so_far.frames += len(kept)
        self.so_far.bytes += sum(frame.length for frame in kept)
        if self.count == self.so_far.frames:
            self.so_far.ended = "count"
        self.update_counts()

    def update_counts(self) -> None:
        self.so_far.lost, self.so_far.seconds = self.frames.count_lost(), time.monotonic() - self.started

    def close(self) -> None:
        """Add what has come until now, and what was lost."""
        self.frames.stop()
        while not self.so_far.ended and (rest := self.frames.read(0.0)):
            self.write_frames(rest)
        self.update_counts()
        self.file.write(pcapng.statistics(time.time_ns(), self.seen + self.so_far.lost, self.so_far.lost))
