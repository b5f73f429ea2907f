"""A running lab as the page sees it: read while somebody looks, and asked what somebody wants to know."""

from __future__ import annotations

import shlex
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict
from typing import TypedDict, TypeVar

from testbed.base.errors import InputError, LabError
from testbed.base.ethernet import VLAN_TAG
from testbed.engines.connect_lab import connect
from testbed.engines.lab.control import registry
from testbed.engines.lab.control.client import LabClient
from testbed.engines.lab.control.registry import Entry
from testbed.planning import Plan
from testbed.ui.live.fabric_layout import LabPicture, picture
from testbed.ui.live.link_use import Flow, Meter
from testbed.ui.live.pair_paths import PairPath, PairPaths

_T = TypeVar("_T")
_STATES_EVERY = 4  # readings


class GoneError(LabError):
    """There is no lab to look at: it has ended, or is not there yet."""


class HostBytes(TypedDict, total=False):
    """Bytes between a host and each other one, by number."""

    time: float  # s, monotonic; only of a running lab
    sent: list[int]
    received: list[int]
    why_not: str  # why pairs are not counted; else empty


class _States(TypedDict, total=False):
    links: dict[str, dict[str, float | bool | None]]  # fields of a LinkState
    doing: str
    killed: list[str]
    controller: str | None
    dilation: float


class Reading(Flow, _States):
    """What is going on; now and then also how links are and what the lab is doing."""


class LabSource:
    """A lab; its `picture` is what does not change, for the page.

    Args:
        plan: that it was built from.
        name: of the lab, as commands call it.
        find: returns the lab where there is one.
    """

    def __init__(self, plan: Plan, name: str, find: Callable[[], Entry | None]) -> None:
        self.plan, self.name = plan, name
        self.picture: LabPicture = {**picture(plan), "lab": name}
        self.ways = PairPaths(plan)
        self._find = find
        self._entry: Entry | None = None
        self._was_there = False
        self._meter = self._new_meter()
        self._watching: LabClient | None = None
        self._asking: LabClient | None = None
        self._lock = threading.Lock()
        self._turn = 0
        self._states: _States = {}

    def update(self) -> Reading | None:
        """Read the lab's counters; now and then also how its links are, and what it is doing.

        None where there is nothing to tell yet. Called from one thread at a time.

        Raises:
            LabError: why that cannot be told now.
        """
        try:
            if self._watching is None:
                self._watching = connect(self.entry().namespaces)
                self._turn = 0
            seen = self._watching.read_links()
            found = self._meter.update(seen)
            if self._turn % _STATES_EVERY == 0:
                status = self._watching.status()
                self._states = {
                    "links": {str(link): asdict(state) for link, state in self._watching.link_states().items()},
                    "doing": status.doing,
                    "killed": list(status.killed),
                    "controller": self._watching.facts.controller,
                    "dilation": seen.dilation,
                }
            self._turn += 1
        except LabError:
            self._hang_up()
            self.entry()  # raises GoneError where that is why
            raise
        return None if found is None else {**found, **self._states}

    def _new_meter(self) -> Meter:
        return Meter(VLAN_TAG if self.plan.vlans.tagged_trunks else 0)

    def pause(self) -> None:
        """Nobody looks for a while: forget the last reading, which will be old when somebody looks again."""
        self._meter = self._new_meter()
        self._turn = 0

    def refresh_lab(self) -> None:
        """Let the next update tell how links are: something has changed them."""
        self._turn = 0

    def ask(self, question: Callable[[LabClient], _T]) -> _T:
        """Ask the lab, from any thread.

        Raises:
            LabError: it cannot answer.
        """
        with self._lock:
            if self._asking is None:
                self._asking = connect(self.entry().namespaces)
            try:
                return question(self._asking)
            except LabError:
                # An answer that was not read whole must not be taken for the next one.
                asking, self._asking = self._asking, None
                with suppress(OSError):
                    asking.close()
                self.entry()
                raise

    def entry(self) -> Entry:
        """The lab.

        Raises:
            GoneError: there is none.
        """
        if self._entry is None or not self._entry.holds:
            self._entry = self._find()
        if self._entry is None:
            raise GoneError("the lab has ended" if self._was_there else "the lab is not there yet")
        self._was_there = True
        return self._entry

    def trace_path(self, source: int, destination: int) -> PairPath:
        """Where frames of a pair of hosts go now."""
        return self.ways.describe(
            self.ask(lambda lab: lab.trace_path(self.plan, source, destination)), source, destination
        )

    def host(self, host: int) -> HostBytes:
        """Bytes between a host and each other one, by number."""
        found = self.ask(lambda lab: lab.read_pairs())
        sent, received = ([0] * self.plan.topology.host_count for _ in range(2))
        for source, end, size in found.pairs:
            if source == host:
                sent[end] = size
            if end == host:
                received[source] = size
        return {"time": found.time, "sent": sent, "received": received, "why_not": found.why_not}

    def command(self, command: str, *words: str) -> str:
        """A command about this lab, as a shell reads it."""
        return shlex.join(["testbed", command, self.name, *words])

    def close(self) -> None:
        """Hang up; the lab goes on."""
        self._hang_up()
        with self._lock:
            if self._asking is not None:
                self._asking.close()
                self._asking = None

    def _hang_up(self) -> None:
        watching, self._watching = self._watching, None
        self._meter = self._new_meter()
        if watching is not None:
            watching.close()


def running_lab(name: str | None) -> LabSource:
    """A lab that runs, or the only one; if one of its name and plan is built later, that.

    Raises:
        InputError, LabError: there is none, or it does not answer.
    """
    entry = registry.find(name)
    with_lab = connect(entry.namespaces)
    try:
        plan = with_lab.plan()
    finally:
        with_lab.close()

    def find_again() -> Entry | None:
        if entry.holds:
            return entry
        same = (one for one in registry.entries() if (one.name, one.digest) == (entry.name, plan.digest))
        return next(same, None)

    return LabSource(plan, entry.name, find_again)


def lab_of_program(plan: Plan, owner: int) -> LabSource:
    """The lab of a plan that a program, by its process number, is about to build and to measure in."""

    def find_own_lab() -> Entry | None:
        return next((one for one in registry.in_use() if one.owner == owner), None)

    return LabSource(plan, plan.scenario.name, find_own_lab)


def number_of(text: str, count: int, key: str) -> int:
    """A number of a host or a link that a page asks for.

    Raises:
        InputError: it is none.
    """
    if not (text.isascii() and text.isdecimal() and len(text) < 9 and int(text) < count):
        raise InputError.one(key, f'should be a number from 0 to {count - 1}, not "{text[:40]}"')
    return int(text)
