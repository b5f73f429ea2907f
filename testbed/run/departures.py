"""Inter-departure error: how far the gaps between frames of a busy port are from those of its link's rate.

Mininet-HiFi (Handigol et al. 2012, section 4) takes |measured / ideal - 1| of these gaps as its measure of whether an
emulated link behaved as a link of that rate. The ideal gap after a frame is the time its bytes take on the wire.
"""

from __future__ import annotations

import numpy as np

from testbed.emulate.shaping import MIN_WIRE_FRAME, WIRE_OVERHEAD
from testbed.model import Floats, Longs

# HTB lets two frames pass at once when it comes late, and then pauses: single gaps alternate where the mean is right.
GROUP = 8


def gap_errors(frames: Longs, looks: Longs, rate: float, group: int = GROUP) -> Floats:
    """Return |measured / ideal - 1| of groups of successive gaps in which the port had no pause.

    Between two looks at the queue the port had no pause if more frames waited at the first than left until the second.

    Args:
        frames: (N, 2) ns and bytes, as Linux counts them, of each frame that left, in their order.
        looks: (K, 2) ns and frames that waited.
        rate: bit/s on the wire.
        group: gaps taken together.
    """
    if len(frames) <= group or len(looks) < 2:
        return np.zeros(0)
    place = np.searchsorted(looks[:, 0], frames[:, 0], side="right") - 1
    inside = (place >= 0) & (place < len(looks) - 1)
    left = np.bincount(place[inside], minlength=len(looks))
    paused = left >= looks[:, 1]
    paused[-1] = True
    # A gap counts if no look between its two frames allows for a pause.
    pauses = np.concatenate([[0], np.cumsum(paused)])
    start, end = place[:-1], place[1:]
    busy = (start >= 0) & (pauses[np.maximum(start, 0)] == pauses[np.maximum(end, 0) + 1])
    gaps = np.diff(frames[:, 0]) * 1e-9
    ideal = 8 * np.maximum(frames[:-1, 1] + WIRE_OVERHEAD, MIN_WIRE_FRAME) / rate
    errors = []
    run = 0
    for at, counts in enumerate(busy):
        run = run + 1 if counts else 0
        if run == group:
            chosen = slice(at + 1 - group, at + 1)
            errors.append(abs(gaps[chosen].sum() / ideal[chosen].sum() - 1))
            run = 0
    return np.array(errors)
