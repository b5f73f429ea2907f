"""The topologies of clusters of SimGrid, from the numbers that describe them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass

MOST_HOSTS = 1 << 20
# number of switches, the switch of each host, the two switches of each link
Cluster = tuple[int, list[int], list[tuple[int, int]]]


def _flat(numbers: list[list[int]], hosts: int) -> Cluster | str:
    del numbers
    return 1, [0] * hosts, []


def _torus(numbers: list[list[int]], hosts: int) -> Cluster | str:
    """A switch a host, and from each a link to the next one in each dimension: with two of them there are two."""
    sizes = numbers[0]
    if len(numbers) != 1 or math.prod(sizes) != hosts:
        return f"a torus of {math.prod(sizes):,} and {hosts:,} hosts; both should be as many"
    pairs, step = [], 1
    for size in sizes:
        if size > 1:
            pairs += [(at, at + step * (1 - size * (at // step % size == size - 1))) for at in range(hosts)]
        step *= size
    return hosts, list(range(hosts)), pairs


def _fat_tree(numbers: list[list[int]], hosts: int) -> Cluster | str:
    """Levels of switches; each switch has `down` below it and `up` above it, with `cables` to each."""
    if len(numbers) != 4 or len(numbers[0]) != 1 or any(len(part) != numbers[0][0] for part in numbers[1:]):
        return "should be levels;below,…;above,…;cables,… with a number for each level"
    (levels,), down, up, cables = numbers
    if math.prod(down) != hosts or up[0] != 1 or cables[0] != 1:
        return f"a tree of {math.prod(down):,} hosts with one cable each, and {hosts:,} hosts; both should be as many"
    size = [math.prod(down[level:]) * math.prod(up[:level]) for level in range(levels + 1)]
    if sum(size[1:]) > MOST_HOSTS:
        return f"has {sum(size[1:]):,} switches; {MOST_HOSTS:,} are the most"
    # The switches of a level are numbered by one digit for each level, below it of `up`, from it on of `down`; those
    # of two levels are joined where all digits but the one between them agree.
    first = [0, 0, *itertools.accumulate(size[1:-1])]
    pairs = []
    for level in range(1, levels):
        low = math.prod(up[:level])
        for at in range(size[level]):
            rest, digits = divmod(at, low)
            high = rest // down[level]
            for choice in range(up[level]):
                above = (high * up[level] + choice) * low + digits
                pairs += [(first[level] + at, first[level + 1] + above)] * cables[level]
    return sum(size[1:]), [host // down[0] for host in range(hosts)], pairs


def _dragonfly(numbers: list[list[int]], hosts: int) -> Cluster | str:
    """Groups of chassis of routers: every two groups, chassis of a group and routers of a chassis are linked."""
    if [len(part) for part in numbers] != [2, 2, 2, 1]:
        return "should be groups,links;chassis,links;routers,links;nodes"
    (groups, blue), (chassis, black), (routers, green), (nodes,) = numbers
    group = chassis * routers
    if groups * group * nodes != hosts:
        return f"a dragonfly of {groups * group * nodes:,} nodes and {hosts:,} hosts; both should be as many"
    if groups - 1 > group:
        return f"{groups:,} groups of {group:,} routers; each router has one link to another group at most"
    pairs = []
    for start in range(0, groups * group, routers):
        pairs += [(start + a, start + b) for a, b in itertools.combinations(range(routers), 2) for _ in range(green)]
    for start in range(0, groups * group, group):
        for one, other in itertools.combinations(range(chassis), 2):
            ends = ((start + one * routers + at, start + other * routers + at) for at in range(routers))
            pairs += [pair for pair in ends for _ in range(black)]
    for one, other in itertools.combinations(range(groups), 2):
        pairs += [(one * group + other, other * group + one)] * blue
    return groups * group, [host // nodes for host in range(hosts)], pairs


@dataclass(frozen=True, slots=True)
class ClusterKind:
    """One entry of the table."""

    make: Callable[[list[list[int]], int], Cluster | str]  # of its numbers and hosts; or what is wrong with them
    such_as: str  # an example of its numbers


CLUSTERS: dict[str, ClusterKind] = {
    "TORUS": ClusterKind(_torus, "3,2,2"),
    "FAT_TREE": ClusterKind(_fat_tree, "2;4,4;1,2;1,2"),
    "DRAGONFLY": ClusterKind(_dragonfly, "3,4;4,3;5,1;2"),
    "FLAT": ClusterKind(_flat, ""),
}
