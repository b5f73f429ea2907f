"""Checks of explicit paths, hop by hop."""

from __future__ import annotations

import numpy as np

from testbed.base.jit import jit_unless_small
from testbed.base.model import Bools, Ints, Longs

FINE, NO_PATH, BROKEN, U_TURN, FORBIDDEN, WRONG_START = 0, 1, 2, 3, 4, 5


@jit_unless_small
def check_paths(
    start: Longs,
    hop: Ints,
    ends: Ints,
    source: Ints,
    target: Ints,
    layers: int,
    slot: Ints,
    degree: int,
    turn_start: Longs,
    turn_following: Ints,
    entry: Bools,
    may_be_empty: bool,
) -> tuple[Ints, Bools]:
    """Walk every path.

    `start` are (E·E + 1,) offsets into `hop`, the virtual channels of the paths; `turn_start` is empty where all turns
    are allowed, `turn_following` ascends; `may_be_empty` where a pair may go without (backup paths).

    Returns:
        (E, E) FINE or what is wrong first; (layers·C, layers·degree) turns taken, by layer of the next hop and slot.
    """
    channels = len(source)
    count = len(ends)
    status = np.zeros((count, count), dtype=np.int32)
    taken = np.zeros((layers * channels, layers * degree), dtype=np.bool_)
    for a in range(count):
        for b in range(count):
            pair = a * count + b
            first, last = start[pair], start[pair + 1]
            if first == last:
                if a != b and not may_be_empty:
                    status[a, b] = NO_PATH
                continue
            at = ends[a]
            previous = -1
            for index in range(first, last):
                now = hop[index]
                if now < 0 or now >= layers * channels or source[now % channels] != at:
                    status[a, b] = BROKEN
                    break
                channel = now % channels
                at = target[channel]
                if previous >= 0:
                    if channel == (previous % channels) ^ 1:
                        status[a, b] = U_TURN
                        break
                    taken[previous, now // channels * degree + slot[channel]] = True
                    if len(turn_start):
                        low, high = turn_start[previous], turn_start[previous + 1]
                        while low < high:
                            middle = (low + high) // 2
                            if turn_following[middle] < now:
                                low = middle + 1
                            else:
                                high = middle
                        if low == turn_start[previous + 1] or turn_following[low] != now:
                            status[a, b] = FORBIDDEN
                            break
                elif len(turn_start) and not entry[now]:
                    status[a, b] = WRONG_START
                    break
                previous = now
            if status[a, b] == FINE and at != ends[b]:
                status[a, b] = BROKEN
    return status, taken
