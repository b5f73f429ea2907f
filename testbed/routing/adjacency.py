"""Channels by the switch they leave, for loops over arrays."""

from __future__ import annotations

import numpy as np

from testbed.model import Ints, Longs, Topology


def leaving_channels(topology: Topology) -> tuple[Longs, Ints]:
    """(S + 1,) offsets and (C,) channels by the switch they leave, low port first."""
    order = np.lexsort((topology.out_port, topology.channel_source)).astype(np.int32)
    start = np.searchsorted(topology.channel_source[order], np.arange(topology.switch_count + 1))
    return start.astype(np.int64), order


def leaving_slots(topology: Topology) -> tuple[Ints, int]:
    """(C,) rank of each channel among those that leave its switch, and the most channels that leave one."""
    start, order = leaving_channels(topology)
    slot = np.empty(len(order), dtype=np.int32)
    slot[order] = np.arange(len(order)) - start[topology.channel_source[order]]
    return slot, int(np.diff(start).max(initial=0))
