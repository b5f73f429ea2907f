"""How long the rest of a sweep takes, from the runs that are done."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from testbed.sweep.record import Entry


def seconds_left(entries: Sequence[Entry]) -> float | None:
    """Seconds for all runs that are not done: each as long as its own repeats took, else as the mean of all.

    Returns:
        None before the first run is done.
    """
    done: dict[str, list[float]] = {}
    for entry in entries:
        if entry.state in ("finished", "broken") and entry.seconds is not None:
            done.setdefault(entry.label, []).append(entry.seconds)
    if not done:
        return None
    usual = statistics.fmean(seconds for some in done.values() for seconds in some)
    left = (entry for entry in entries if entry.state in ("waiting", "running"))
    return sum(statistics.fmean(done[entry.label]) if entry.label in done else usual for entry in left)
