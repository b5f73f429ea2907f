"""How long a frame can be under way."""

from __future__ import annotations

from testbed.model import Routes, Topology
from testbed.predict.frames import LONGEST_ON_WIRE
from testbed.routing.paths import hop_counts

_MARGIN = 1.1


def drain_seconds(topology: Topology, routes: Routes, rate: float, queue_frames: int) -> float:
    """Seconds after which every frame that was on its way has arrived, if every queue was full.

    Args:
        topology: the fabric.
        routes: the paths that frames are on.
        rate: bit/s of a link; hosts' links are no slower.
        queue_frames: frames that a sending port holds, and one is being sent.
    """
    most = int(hop_counts(topology, routes).max(initial=0)) + 1
    return _MARGIN * most * (queue_frames + 1) * LONGEST_ON_WIRE * 8 / rate
