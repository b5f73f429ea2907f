"""How long a frame can be under way."""

from __future__ import annotations

import numpy as np

from testbed.model import Floats, Routes, Topology
from testbed.routing.paths import all_paths, hop_counts
from testbed.units import LONGEST_ON_WIRE

_MARGIN = 1.1


def drain_seconds(
    topology: Topology, routes: Routes, rate: float, queue_frames: int, speeds: Floats | None = None
) -> float:
    """Seconds after which every frame that was on its way has arrived, if every queue was full.

    Args:
        topology: the fabric.
        routes: the paths that frames are on.
        rate: bit/s of a link; hosts' links are no slower.
        queue_frames: frames that a sending port holds, and one is being sent.
        speeds: (L,) share of that rate at which each link runs; None = all of it.
    """
    a_queue = _MARGIN * (queue_frames + 1) * LONGEST_ON_WIRE * 8 / rate
    if speeds is None:
        return a_queue * (int(hop_counts(topology, routes).max(initial=0)) + 1)
    paths = all_paths(topology, routes)
    slowness = np.concatenate([[0.0], np.cumsum(1 / speeds[paths.hop % len(topology.channel_source) // 2])])
    return a_queue * (float((slowness[paths.start[1:]] - slowness[paths.start[:-1]]).max(initial=0.0)) + 1)
