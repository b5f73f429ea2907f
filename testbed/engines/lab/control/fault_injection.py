"""What happens to a lab: links and ports go down and up, or change, switches are killed and started."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence

from testbed.base.messages import Disturbance, Disturbed
from testbed.engines.lab.hosts.lab_network import LabNetwork


def carry_out(what: Disturbance, fabric: LabNetwork) -> Disturbed:
    """Let something die or come back now; says when, and why it failed where it did."""
    began, error = time.monotonic(), ""
    try:
        fabric.set_ports(what.channels, what.hosts, up=what.up)
        fabric.set_far_ends(what.far, up=what.up)
        for name in fabric.switches_of(what.switches):
            (fabric.start_switch if what.up else fabric.kill_switch)(name)
        fabric.pause_hosts(what.pausing, paused=not what.up)
        if what.links:
            fabric.change_links(what.links)
    except Exception as problem:  # whatever it is, the load must end and tell it
        error = str(problem)
    return Disturbed(began, time.monotonic(), error)


class Timeline:
    """Disturbances at given times after a start, in a thread of its own."""

    def __init__(self, events: Sequence[Disturbance], carry_out: Callable[[Disturbance], Disturbed]) -> None:
        self._events = events
        self._carry_out = carry_out
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None
        self._done: list[Disturbed] = []

    def start(self) -> None:
        """Begin to count time."""
        self._thread = threading.Thread(target=self._run, args=(time.monotonic(),), daemon=True)
        self._thread.start()

    def end(self) -> tuple[Disturbed, ...]:
        """Let nothing more happen; returns each event that was carried out."""
        self._ended.set()
        if self._thread is not None:
            self._thread.join()
        return tuple(self._done)

    def _run(self, start: float) -> None:
        for event in self._events:
            if self._ended.wait(max(0.0, start + event.at - time.monotonic())):
                return
            self._done.append(self._carry_out(event))
