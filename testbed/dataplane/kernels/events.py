"""Events of a simulation in order of time: a heap, and lanes for delays that are always the same.

Events of one delay are in order by themselves, so a lane is a ring and nothing in it is sorted. Times are whatever a
simulation counts in, picoseconds or seconds.
"""

from __future__ import annotations

from typing import NamedTuple

from testbed.base.jit import jit_inner
from testbed.base.model import Floats, Longs

NEVER = 1 << 62


class Heap(NamedTuple):
    """Events of any time; of two at one time, whichever comes."""

    time: Floats | Longs  # (E,) the first is the next
    what: Longs  # (E,) happens then
    count: Longs  # (1,) events


class FifoLanes(NamedTuple):
    """L lanes, each a ring of R events in order of time, R a power of two."""

    time: Longs  # (L, R) of events
    what: Longs  # (L, R) happens then
    start: Longs  # (L,) place of a lane's first event
    length: Longs  # (L,) how many there are
    soonest: Longs  # (L,) time of the first, or NEVER


@jit_inner
def push(heap: Heap, time: float, what: int) -> None:
    """Add an event."""
    place = heap.count[0]
    heap.count[0] += 1
    while place:
        above = (place - 1) >> 1
        if heap.time[above] <= time:
            break
        heap.time[place] = heap.time[above]
        heap.what[place] = heap.what[above]
        place = above
    heap.time[place] = time
    heap.what[place] = what


@jit_inner
def pop(heap: Heap) -> int:
    """Remove the first event and return what it is for."""
    first = heap.what[0]
    heap.count[0] -= 1
    count = heap.count[0]
    time, what = heap.time[count], heap.what[count]
    place = 0
    while True:
        below = 2 * place + 1
        if below >= count:
            break
        if below + 1 < count and heap.time[below + 1] < heap.time[below]:
            below += 1
        if heap.time[below] >= time:
            break
        heap.time[place] = heap.time[below]
        heap.what[place] = heap.what[below]
        place = below
    heap.time[place] = time
    heap.what[place] = what
    return int(first)


@jit_inner
def queue(lanes: FifoLanes, lane: int, time: int, what: int) -> None:
    """Add an event to a lane; no event of that lane is later."""
    ring = lanes.time.shape[1] - 1
    place = (lanes.start[lane] + lanes.length[lane]) & ring
    lanes.time[lane, place] = time
    lanes.what[lane, place] = what
    if lanes.length[lane] == 0:
        lanes.soonest[lane] = time
    lanes.length[lane] += 1


@jit_inner
def unqueue(lanes: FifoLanes, lane: int) -> int:
    """Take the first event of a lane."""
    ring = lanes.time.shape[1] - 1
    place = lanes.start[lane]
    what = lanes.what[lane, place]
    following = (place + 1) & ring
    lanes.start[lane] = following
    lanes.length[lane] -= 1
    lanes.soonest[lane] = lanes.time[lane, following] if lanes.length[lane] else NEVER
    return int(what)
