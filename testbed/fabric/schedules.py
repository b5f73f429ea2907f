"""Schedules of messages: what each rank of a program sends, receives and computes, and what each of these waits for."""

from __future__ import annotations

from collections import defaultdict, deque
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from testbed.base.errors import InputError, Problem
from testbed.fabric.collectives import Steps, Waits, list_pairs

_MAX_PROBLEMS = 20
Event = tuple[int, int]  # rank, and place of an operation in its list


@dataclass(frozen=True, slots=True)
class Operation:
    """What a rank does, once what it waits for is done."""

    kind: Literal["send", "recv", "calc"]
    place: str  # in the file
    size: int  # bytes; of a calculation ns
    peer: int = -1  # the other rank
    tag: int = 0
    after: tuple[int, ...] = ()  # operations of the same rank that must be done before
    after_start: tuple[int, ...] = ()  # and those that must have begun


@dataclass(frozen=True, slots=True)
class Schedule:
    """The operations of every rank."""

    ranks: tuple[tuple[Operation, ...], ...]
    notes: tuple[str, ...] = ()  # how it was read where that is not plain
    # receive → the send whose message it takes, by source, destination and tag in the order of the lists
    sends: dict[Event, Event] = field(default_factory=dict, compare=False)
    order: tuple[Event, ...] = field(default=(), compare=False)  # every operation behind all that it waits for


def make_schedule(ranks: list[list[Operation]], notes: list[str]) -> Schedule:
    """Match sends and receives, and put all operations into an order in which they can be carried out.

    Raises:
        InputError: a rank that there is not, a message that nobody sends or takes, operations that wait for each other.
    """
    problems = []
    for rank, operations in enumerate(ranks):
        for operation in operations:
            if operation.kind == "calc":
                continue
            if not 0 <= operation.peer < len(ranks):
                known = f"ranks are numbered from 0 to {len(ranks) - 1}"
                problems.append(Problem(operation.place, f"there is no rank {operation.peer}; {known}"))
            elif operation.peer == rank:
                problems.append(Problem(operation.place, f"rank {rank} sends to itself; take the operation away"))
    if problems:
        raise InputError(problems[:_MAX_PROBLEMS])
    sends = _match_messages(ranks)
    return Schedule(tuple(map(tuple, ranks)), tuple(notes), sends, _order_operations(ranks, sends))


def _match_messages(ranks: list[list[Operation]]) -> dict[Event, Event]:
    waiting: dict[tuple[int, int, int], deque[Event]] = defaultdict(deque)
    for rank, operations in enumerate(ranks):
        for at, operation in enumerate(operations):
            if operation.kind == "send":
                waiting[rank, operation.peer, operation.tag].append((rank, at))
    found, problems = dict[Event, Event](), list[Problem]()
    for rank, operations in enumerate(ranks):
        for at, operation in enumerate(operations):
            if operation.kind != "recv":
                continue
            queue = waiting.get((operation.peer, rank, operation.tag))
            if not queue:
                what = f"rank {rank} waits for a message of tag {operation.tag} from rank {operation.peer}"
                problems.append(Problem(operation.place, f"{what}, which does not send it"))
            else:
                send = queue.popleft()
                sent = ranks[send[0]][send[1]]
                if sent.size > operation.size:
                    sentence = f"takes {operation.size:,} bytes, and {sent.place} sends {sent.size:,}"
                    problems.append(Problem(operation.place, sentence))
                found[rank, at] = send
    for queue in waiting.values():
        for rank, at in queue:
            operation = ranks[rank][at]
            what = f"rank {rank} sends a message of tag {operation.tag} to rank {operation.peer}"
            problems.append(Problem(operation.place, f"{what}, which does not take it"))
    if problems:
        raise InputError(problems[:_MAX_PROBLEMS])
    return found


def _order_operations(ranks: list[list[Operation]], sends: dict[Event, Event]) -> tuple[Event, ...]:
    after: dict[Event, list[Event]] = defaultdict(list)
    left: dict[Event, int] = {}
    for rank, operations in enumerate(ranks):
        for at, operation in enumerate(operations):
            before = [(rank, one) for one in (*operation.after, *operation.after_start)]
            before += [sends[rank, at]] if operation.kind == "recv" else []
            left[rank, at] = len(before)
            for event in before:
                after[event].append((rank, at))
    ready = deque(event for event, count in left.items() if not count)
    order = []
    while ready:
        event = ready.popleft()
        order.append(event)
        for later in after[event]:
            left[later] -= 1
            if not left[later]:
                ready.append(later)
    if len(order) < len(left):
        raise InputError([_cycle_problem(ranks, sends, left)])
    return tuple(order)


def _cycle_problem(ranks: list[list[Operation]], sends: dict[Event, Event], left: dict[Event, int]) -> Problem:
    """Follow from an operation that never begins what it waits for, until that comes round."""
    event = next(event for event, count in left.items() if count)
    seen: dict[Event, int] = {}
    while event not in seen:
        seen[event] = len(seen)
        rank, at = event
        operation = ranks[rank][at]
        before = [(rank, one) for one in (*operation.after, *operation.after_start)]
        before += [sends[rank, at]] if operation.kind == "recv" else []
        event = next(one for one in before if left[one])
    cycle = list(seen)[seen[event] :]
    shown = [f"{ranks[rank][at].place} ({ranks[rank][at].kind} of rank {rank})" for rank, at in [*cycle[:4], event]]
    more = f" … ({len(cycle)} in all)" if len(cycle) > 4 else ""
    sentence = f"wait for each other: {' for '.join(shown)}{more}; take out one of what they wait for"
    return Problem("", f"operations {sentence}")


def make_messages(schedule: Schedule) -> Steps:
    """The messages of a schedule for a simulator, in which what is computed takes no time.

    A message waits for the arrival of all that its rank must have received, and for the begin of the messages that it
    must have sent.
    """
    events = sorted(
        (event for event in schedule.order if _find_operation(schedule, event).kind == "send"), key=lambda one: one[0]
    )
    number = {event: at for at, event in enumerate(events)}
    arrivals, releases = list[tuple[int, int]](), list[tuple[int, int]]()
    done: dict[Event, frozenset[tuple[str, int]]] = {}  # what an operation is done by
    begun: dict[Event, frozenset[tuple[str, int]]] = {}
    for event in schedule.order:
        operation = _find_operation(schedule, event)
        rank = event[0]
        waits = frozenset[tuple[str, int]]().union(
            *(done[rank, one] for one in operation.after), *(begun[rank, one] for one in operation.after_start)
        )
        if operation.kind == "send":
            message = number[event]
            arrivals += [(one, message) for kind, one in sorted(waits) if kind == "arrived"]
            releases += [(one, message) for kind, one in sorted(waits) if kind == "released"]
            done[event] = begun[event] = frozenset({("released", message)})
        elif operation.kind == "recv":
            begun[event] = waits
            done[event] = waits | {("arrived", number[schedule.sends[event]])}
        else:
            begun[event] = done[event] = waits
    count = len(events)
    later = np.array([after for _, after in (*arrivals, *releases)], dtype=np.int64)
    waiting = np.bincount(later, minlength=count).astype(np.int64)
    step: dict[int, int] = defaultdict(int)
    steps = []
    for rank, _ in events:
        steps.append(step[rank])
        step[rank] += 1
    return Steps(
        np.array(steps, dtype=np.int32),
        np.array([rank for rank, _ in events], dtype=np.int32),
        np.array([_find_operation(schedule, event).peer for event in events], dtype=np.int32),
        np.array([max(_find_operation(schedule, event).size, 1) for event in events], dtype=np.int64),
        Waits(waiting[:count], *list_pairs(arrivals, count), *list_pairs(releases, count)),
    )


def _find_operation(schedule: Schedule, event: Event) -> Operation:
    return schedule.ranks[event[0]][event[1]]
