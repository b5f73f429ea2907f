"""Which of several events of one time comes first, where that is not the order that the simulator documents."""

from __future__ import annotations

import numpy as np

from testbed.base.jit import jit_inner
from testbed.dataplane.kernels.events import FifoLanes, Heap
from testbed.dataplane.kernels.flits_state import Randoms
from testbed.dataplane.kernels.flits_traffic import draw

# The documented order, the one against it, and from here on seeds of random ones.
DOCUMENTED, REVERSED = 0, 1


@jit_inner
def next_of_tied(lanes: FifoLanes, heap: Heap, count: int, order: int, random: Randoms, now: int) -> int:
    """Choose one of the events of a time, and put it at the head of its lane; -1 for the heap.

    A link's own events are never at one time, so no frame overtakes another on a link.

    Args:
        lanes: of which an event's kind is the number.
        heap: of hosts that wake, and timers; these keep their order among each other.
        count: of the lanes.
        order: as above.
        random: (1,) state of the random numbers of a random order.
        now: the time.
    """
    ring = lanes.time.shape[1] - 1
    tied = 1 if heap.count[0] and heap.time[0] == now else 0
    chosen, within = -1, 0
    if order == REVERSED and tied:
        return -1
    for lane in range(count):
        if lanes.soonest[lane] != now:
            continue
        place, some = lanes.start[lane], 0
        while some < lanes.length[lane] and lanes.time[lane, (place + some) & ring] == now:
            some += 1
        if order == REVERSED:
            chosen, within = lane, some - 1
            continue
        # Each of the events seen so far with the same chance.
        tied += some
        at = int(np.int64(draw(random, 0) % np.uint64(tied)))
        if at < some:
            chosen, within = lane, at
    if chosen >= 0 and within:
        place = lanes.start[chosen]
        what = lanes.what[chosen, (place + within) & ring]
        for step in range(within, 0, -1):
            lanes.what[chosen, (place + step) & ring] = lanes.what[chosen, (place + step - 1) & ring]
        lanes.what[chosen, place] = what
    return chosen
