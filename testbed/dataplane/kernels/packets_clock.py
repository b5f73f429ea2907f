"""The one clock of a lab on modelled switches, by which all its captures stamp frames: real-world time since it began.

The lab's time runs `dilation` times as fast. Where that is changed the clock goes on from where it is, at another pace.
"""

from __future__ import annotations

from typing import NamedTuple

from testbed.base.jit import jit_inner
from testbed.base.model import Floats, Longs

_PS_A_NS = 1000


class ModelClock(NamedTuple):
    """What the clock has been set to last, and before; two rows, so that no reader sees one that is half written."""

    row: Longs  # (1,) that holds
    epoch: Longs  # (2,) ns since 1970 that it showed then
    began: Longs  # (2,) ps of the model then
    dilation: Floats  # (2,) how many times as long as in the real world all takes from then on


def real_time(epoch: int, began: int, dilation: float, at: int) -> int:
    """Nanoseconds since 1970 at a time of the model, in ps."""
    return int(epoch + int(max(at - began, 0) / (dilation * _PS_A_NS)))


_real_time = jit_inner(real_time)


@jit_inner
def stamp(clock: ModelClock, at: int) -> int:
    """As shown_time(), for kernels."""
    row = clock.row[0]
    return int(_real_time(clock.epoch[row], clock.began[row], clock.dilation[row], at))


def shown_time(clock: ModelClock, at: int) -> int:
    """What the clock shows at a time of the model, in ps: nanoseconds since 1970."""
    row = int(clock.row[0])
    return real_time(int(clock.epoch[row]), int(clock.began[row]), float(clock.dilation[row]), at)


def set_pace(clock: ModelClock, at: int, dilation: float, epoch: int | None = None) -> None:
    """Let the clock run at another pace from a time of the model on, in ps; from `epoch` on where it has not begun."""
    row = 1 - int(clock.row[0])
    clock.epoch[row] = shown_time(clock, at) if epoch is None else epoch
    clock.began[row], clock.dilation[row] = at, dilation
    clock.row[0] = row
