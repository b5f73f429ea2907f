"""Collective operations as messages in steps: who sends how much to whom, and what each message waits for.

A host begins a step when all that it receives in earlier steps has arrived and its own earlier steps have begun. What
a host computes on the way takes no time here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from testbed.base.model import Ints, Longs

Message = tuple[int, int, int, int]  # step, source, destination, bytes


class CollectiveError(ValueError):
    """A collective that this number of hosts does not allow; the text says what would be right."""


@dataclass(frozen=True, slots=True, eq=False)
class Waits:
    """What messages wait for."""

    count: Longs  # (M,) arrivals and releases that each waits for
    arrived_start: Longs  # (M + 1,) offsets into `arrived`: the messages that wait for one to arrive
    arrived: Ints
    released_start: Longs  # (M + 1,) likewise for one to be released
    released: Ints


@dataclass(frozen=True, slots=True, eq=False)
class Steps:
    """M messages of a collective or a schedule, ordered by source and step."""

    step: Ints  # (M,)
    source: Ints  # (M,) hosts
    destination: Ints  # (M,) other hosts
    size: Longs  # (M,) bytes, above 0
    waits: Waits | None = None  # what each waits for; None: all that its host receives and sends in steps before


def _ring(hosts: int, size: int, rounds: int) -> Iterator[Message]:
    part = -(-size // hosts)
    for step in range(rounds * (hosts - 1)):
        for host in range(hosts):
            yield step, host, (host + 1) % hosts, part


def _binomial(hosts: int, size: int) -> Iterator[Message]:
    """Reduce to the first host, then from it to all: a binomial tree each."""
    rounds = (hosts - 1).bit_length()
    for step in range(rounds):
        for host in range(1 << step, hosts, 2 << step):
            yield step, host, host - (1 << step), size
    for step in range(rounds):
        reach = 1 << (rounds - 1 - step)
        for host in range(0, hosts - reach, 2 * reach):
            yield rounds + step, host, host + reach, size


def _exchange(hosts: int, size: int, partner: Callable[[int, int], int]) -> Iterator[Message]:
    """Halve what is exchanged in each step of the reduce-scatter, and double it back in the all-gather."""
    rounds = hosts.bit_length() - 1
    for step in range(2 * rounds):
        level = step if step < rounds else 2 * rounds - 1 - step
        for host in range(hosts):
            yield step, host, partner(host, level), max(size >> (level + 1), 1)


def _halving(hosts: int, size: int) -> Iterator[Message]:
    """Partners half of all hosts apart, then a quarter, and so on (Rabenseifner 2004)."""
    rounds = hosts.bit_length() - 1
    return _exchange(hosts, size, lambda host, level: host ^ (1 << (rounds - 1 - level)))


def _swing(hosts: int, size: int) -> Iterator[Message]:
    """Partners 1, 1, 3, 5, 11, … apart, to either side in turn, so that rings are short of nobody (De Sensi 2024)."""

    def partner(host: int, level: int) -> int:
        distance = (1 - int((-2) ** (level + 1))) // 3
        return (host + distance if host % 2 == 0 else host - distance) % hosts

    return _exchange(hosts, size, partner)


def _exchange_all(hosts: int, size: int) -> Iterator[Message]:
    """In step t each host sends to the one t + 1 further on."""
    for step in range(hosts - 1):
        for host in range(hosts):
            yield step, host, (host + step + 1) % hosts, size


def _incast(hosts: int, size: int) -> Iterator[Message]:
    for host in range(1, hosts):
        yield 0, host, 0, size


@dataclass(frozen=True, slots=True)
class Collective:
    """One entry of the table."""

    messages: Callable[[int, int], Iterator[Message]]  # of a number of hosts and a size in bytes
    summary: str  # what it does, and of what it gets the size
    power_of_two: bool = False  # whether it needs that many hosts


COLLECTIVES: dict[str, Collective] = {
    "ring_all_reduce": Collective(lambda p, n: _ring(p, n, 2), "all-reduce of a vector, part by part round a ring"),
    "ring_reduce_scatter": Collective(lambda p, n: _ring(p, n, 1), "reduce-scatter of a vector round a ring"),
    "ring_all_gather": Collective(lambda p, n: _ring(p, n, 1), "all-gather to a vector round a ring"),
    "tree_all_reduce": Collective(_binomial, "all-reduce of a vector: binomial reduce, then broadcast"),
    "halving_all_reduce": Collective(_halving, "all-reduce of a vector by recursive halving and doubling", True),
    "swing_all_reduce": Collective(_swing, "all-reduce of a vector by Swing", True),
    "stepwise_all_to_all": Collective(_exchange_all, "a message from each host to each other, a partner a step"),
    "incast": Collective(_incast, "a message from each host to the first one"),
}


def make_steps(name: str, hosts: int, size: int) -> Steps:
    """The messages of a collective.

    Raises:
        CollectiveError: not with that many hosts.
        KeyError: no such collective.
    """
    kind = COLLECTIVES[name]
    if hosts < 2:
        raise CollectiveError(f'"{name}" needs two hosts or more, and this fabric has {hosts}')
    if kind.power_of_two and hosts & (hosts - 1):
        below = 1 << (hosts.bit_length() - 1)
        raise CollectiveError(f'"{name}" needs a power of two of hosts, such as {below} or {2 * below}, not {hosts}')
    rows = np.array(list(kind.messages(hosts, size)), dtype=np.int64).reshape(-1, 4)
    rows = rows[np.lexsort((rows[:, 2], rows[:, 0], rows[:, 1]))]
    step, source, destination = (np.ascontiguousarray(rows[:, column], dtype=np.int32) for column in range(3))
    return Steps(step, source, destination, np.ascontiguousarray(rows[:, 3]))


def waits_of(steps: Steps) -> Waits:
    """Let each message wait for what its host receives before it, and for the host's step before to have begun.

    Of messages that say themselves what they wait for it is that.
    """
    if steps.waits is not None:
        return steps.waits
    count = np.zeros(len(steps.step), dtype=np.int64)
    arrivals: list[tuple[int, int]] = []
    releases: list[tuple[int, int]] = []
    by_goal: dict[int, list[int]] = {}
    for message in np.lexsort((steps.step, steps.destination)).tolist():
        by_goal.setdefault(int(steps.destination[message]), []).append(message)
    first = np.searchsorted(steps.source, np.arange(int(steps.source.max(initial=-1)) + 2))
    for host in range(len(first) - 1):
        received, taken = by_goal.get(host, []), 0
        before = -1
        start = int(first[host])
        while start < int(first[host + 1]):
            step = int(steps.step[start])
            end = start
            while end < int(first[host + 1]) and steps.step[end] == step:
                end += 1
            earlier = []
            while taken < len(received) and steps.step[received[taken]] < step:
                earlier.append(received[taken])
                taken += 1
            for message in range(start, end):
                arrivals += [(one, message) for one in earlier]
                releases += [(before, message)] * (before >= 0)
                count[message] = len(earlier) + (before >= 0)
            before, start = start, end
    return Waits(count, *list_pairs(arrivals, len(count)), *list_pairs(releases, len(count)))


def list_pairs(pairs: list[tuple[int, int]], count: int) -> tuple[Longs, Ints]:
    """Pairs of messages as lists: (M + 1,) where that of each first one begins, and the second ones."""
    array = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    order = np.argsort(array[:, 0], kind="stable")
    start = np.searchsorted(array[order, 0], np.arange(count + 1)).astype(np.int64)
    return start, array[order, 1].astype(np.int32)
