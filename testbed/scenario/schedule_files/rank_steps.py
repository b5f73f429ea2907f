"""Collective operations from the side of one rank: with whom it exchanges what, one message after the other."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

Step = tuple[str, int, int]  # send or recv, the other rank, bytes


def broadcast(rank: int, ranks: int, size: int, root: int) -> Iterator[Step]:
    """A binomial tree from the root."""
    place = (rank - root) % ranks
    reach = 1
    while reach < ranks and not place & reach:
        reach <<= 1
    if place:
        yield "recv", (place - reach + root) % ranks, size
    reach >>= 1
    while reach:
        if place + reach < ranks:
            yield "send", (place + reach + root) % ranks, size
        reach >>= 1


def reduce(rank: int, ranks: int, size: int, root: int) -> Iterator[Step]:
    """The same tree to the root."""
    place = (rank - root) % ranks
    reach = 1
    while reach < ranks:
        if place & reach:
            yield "send", (place - reach + root) % ranks, size
            return
        if place + reach < ranks:
            yield "recv", (place + reach + root) % ranks, size
        reach <<= 1


def all_reduce(rank: int, ranks: int, size: int) -> Iterator[Step]:
    """To the first rank and back."""
    return chain(reduce(rank, ranks, size, 0), broadcast(rank, ranks, size, 0))


def barrier(rank: int, ranks: int) -> Iterator[Step]:
    """Dissemination of single bytes."""
    reach = 1
    while reach < ranks:
        yield "send", (rank + reach) % ranks, 1
        yield "recv", (rank - reach) % ranks, 1
        reach <<= 1


def gather(rank: int, ranks: int, size: int, root: int) -> Iterator[Step]:
    """Each rank to the root."""
    if rank != root:
        yield "send", root, size
    else:
        yield from (("recv", other, size) for other in range(ranks) if other != root)


def scatter(rank: int, ranks: int, size: int, root: int) -> Iterator[Step]:
    """The root to each rank."""
    if rank != root:
        yield "recv", root, size
    else:
        yield from (("send", other, size) for other in range(ranks) if other != root)


def all_gather(rank: int, ranks: int, size: int) -> Iterator[Step]:
    """Part by part round a ring."""
    for _ in range(ranks - 1):
        yield "send", (rank + 1) % ranks, size
        yield "recv", (rank - 1) % ranks, size


def exchange_all(rank: int, ranks: int, sent: list[int], received: list[int]) -> Iterator[Step]:
    """Each with each, a partner a step; nothing is sent where there is nothing to send."""
    for distance in range(1, ranks):
        to, source = (rank + distance) % ranks, (rank - distance) % ranks
        if sent[to]:
            yield "send", to, sent[to]
        if received[source]:
            yield "recv", source, received[source]
