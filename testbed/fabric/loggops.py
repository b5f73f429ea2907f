"""The LogGOPS model of what messages cost (Hoefler, Schneider, Lumsdaine: LogGOPSim, 2010), without a fabric.

A send takes the processor for o + (s - 1) O and the sending side of the card for g + (s - 1) G; its first byte arrives
o + L after its begin, and takes the receiver's processor for o + (s - 1) max(O, G) and the receiving side of its card
for g + (s - 1) G. Only messages of up to S bytes are modelled, which wait for no receiver.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from dataclasses import dataclass, fields

from testbed.base.errors import InputError, Problem
from testbed.fabric.schedules import Event, Schedule

_MOST = 10**12


@dataclass(frozen=True, slots=True)
class LogGops:
    """Parameters: ns, and bytes."""

    L: int = 2500  # latency
    o: int = 1500  # overhead of the processor a message
    g: int = 1000  # gap of the card between messages
    G: int = 6  # of the card a byte
    O: int = 0  # of the processor a byte  # noqa: E741 - the model's own letter
    S: int = 65535  # the largest message that needs no rendezvous


def read_loggops(text: str, place: str) -> LogGops:
    """Read `L=2500,o=1500`; what is not said has LogGOPSim's default.

    Raises:
        InputError: another letter, or no number.
    """
    known = [one.name for one in fields(LogGops)]
    given: dict[str, int] = {}
    for part in filter(None, text.split(",")):
        name, _, value = part.strip().partition("=")
        if name not in known or name in given or not value.isdecimal() or int(value[:20]) > _MOST:
            wanted = f"numbers for {', '.join(known)}, each once, such as L=2500,o=1500,G=6"
            raise InputError.one(place, f"should be {wanted}; {part.strip()[:40]!r} is not")
        given[name] = int(value)
    return LogGops(**given)


def cost_schedule(schedule: Schedule, model: LogGops) -> list[int]:
    """When each rank is done with all of its operations, ns.

    Raises:
        InputError: messages above S.
    """
    large = [
        Problem(one.place, f"has {one.size:,} bytes, and S is {model.S:,}; take a larger S")
        for rank in schedule.ranks
        for one in rank
        if one.kind == "send" and one.size > model.S
    ]
    if large:
        raise InputError(large[:10])
    return _Course(schedule, model).run()


class _Course:
    """Operations in the order of time."""

    def __init__(self, schedule: Schedule, model: LogGops) -> None:
        self._schedule, self._model = schedule, model
        count = len(schedule.ranks)
        self._processor, self._sending, self._receiving = [0] * count, [0] * count, [0] * count
        self._queue: list[tuple[int, int, str, Event]] = []
        self._numbers = 0
        self._waits: dict[Event, int] = {}
        self._after: dict[Event, list[Event]] = defaultdict(list)
        self._after_start: dict[Event, list[Event]] = defaultdict(list)
        self._receive = {send: receive for receive, send in schedule.sends.items()}
        self._posted: set[Event] = set()
        self._came: dict[Event, int] = {}  # receive → when its message had been taken in
        for rank, operations in enumerate(schedule.ranks):
            for at, one in enumerate(operations):
                self._waits[rank, at] = len(one.after) + len(one.after_start)
                for before in one.after:
                    self._after[rank, before].append((rank, at))
                for before in one.after_start:
                    self._after_start[rank, before].append((rank, at))
                if not self._waits[rank, at]:
                    self._push(0, "begin", (rank, at))

    def run(self) -> list[int]:
        while self._queue:
            time, _, what, event = heapq.heappop(self._queue)
            if what == "begin":
                getattr(self, f"_{self._schedule.ranks[event[0]][event[1]].kind}")(time, event)
            else:
                self._take_in(time, event)
        return self._processor

    def _push(self, time: int, what: str, event: Event) -> None:
        self._numbers += 1
        heapq.heappush(self._queue, (time, self._numbers, what, event))

    def _satisfy(self, events: list[Event], time: int) -> None:
        for event in events:
            self._waits[event] -= 1
            if not self._waits[event]:
                self._push(time, "begin", event)

    def _finish(self, event: Event, time: int) -> None:
        self._satisfy(self._after[event], time)

    def _calc(self, time: int, event: Event) -> None:
        rank = event[0]
        if self._processor[rank] > time:
            self._push(self._processor[rank], "begin", event)
            return
        self._processor[rank] = time + self._schedule.ranks[rank][event[1]].size
        self._satisfy(self._after_start[event], time)
        self._finish(event, self._processor[rank])

    def _send(self, time: int, event: Event) -> None:
        rank, model = event[0], self._model
        free = max(self._processor[rank], self._sending[rank])
        if free > time:
            self._push(free, "begin", event)
            return
        beyond = max(self._schedule.ranks[rank][event[1]].size - 1, 0)
        self._processor[rank] = time + model.o + beyond * model.O
        self._sending[rank] = time + model.g + beyond * model.G
        self._push(time + model.o + model.L, "arrive", event)
        self._satisfy(self._after_start[event], time)
        self._finish(event, self._processor[rank])

    def _recv(self, time: int, event: Event) -> None:
        self._satisfy(self._after_start[event], time)
        if event in self._came:
            self._finish(event, max(time, self._came[event]))
        else:
            self._posted.add(event)

    def _take_in(self, time: int, send: Event) -> None:
        """The first byte of a message is there."""
        receive, model = self._receive[send], self._model
        rank = receive[0]
        free = max(self._processor[rank], self._receiving[rank])
        if free > time:
            self._push(free, "arrive", send)
            return
        beyond = max(self._schedule.ranks[send[0]][send[1]].size - 1, 0)
        self._processor[rank] = time + model.o + beyond * max(model.O, model.G)
        self._receiving[rank] = time + model.g + beyond * model.G
        if receive in self._posted:
            self._finish(receive, self._processor[rank])
        else:
            self._came[receive] = self._processor[rank]
