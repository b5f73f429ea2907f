"""Bridges, and segments for segment-based routing."""

from __future__ import annotations

import numpy as np

from testbed.base.jit import jit_unless_small
from testbed.base.model import Bools, Ints, Longs


@jit_unless_small
def bridges(leaving_start: Longs, leaving: Ints, target: Ints) -> Bools:
    """(L,) True for links whose loss cuts a connected fabric (depth first search; Tarjan 1974)."""
    switches = len(leaving_start) - 1
    found = np.zeros(len(target) // 2, dtype=np.bool_)
    number = np.full(switches, -1, dtype=np.int32)
    low = np.empty(switches, dtype=np.int32)
    came_by = np.full(switches, -1, dtype=np.int32)
    place = leaving_start[:-1].copy()
    stack = np.empty(switches, dtype=np.int32)
    stack[0] = 0
    number[0] = low[0] = 0
    depth, count = 1, 1
    while depth:
        switch = stack[depth - 1]
        if place[switch] < leaving_start[switch + 1]:
            channel = leaving[place[switch]]
            place[switch] += 1
            other = target[channel]
            if number[other] < 0:
                number[other] = low[other] = count
                count += 1
                came_by[other] = channel
                stack[depth] = other
                depth += 1
            elif channel != came_by[switch] ^ 1:
                low[switch] = min(low[switch], number[other])
        else:
            depth -= 1
            if depth:
                above = stack[depth - 1]
                low[above] = min(low[above], low[switch])
                if low[switch] == number[switch]:
                    found[came_by[switch] // 2] = True
    return found


@jit_unless_small
def find_ears(
    leaving_start: Longs, leaving: Ints, target: Ints, bridge: Bools, first: int, stage: Ints, order: Ints
) -> tuple[Longs, Ints, Bools]:
    """Take shortest ears until every switch is visited, one 2-edge-connected part after the other.

    An ear leaves a visited switch, passes through unvisited ones and ends at a visited one, maybe the same. The
    search is breadth first from all visited switches, ports ascending; of several shortest ears the first found is
    taken. Switches of a later stage are not entered while there is an ear without them. Where there is none left, the
    lowest channel of a bridge to an unvisited switch starts a new part.

    `bridge` is from bridges(); `first` the switch to start from; `stage` (S,) that of each switch, from 0; `order` (G,
    S) the switches in the order in which each stage begins its search from those that are visited.

    Returns:
        (N + 1,) offsets and channels of N ears, each in order from end to end; (S,) True for switches by which a
        bridge entered a part.
    """
    switches = len(leaving_start) - 1
    visited = np.zeros(switches, dtype=np.bool_)
    visited[first] = True
    left = switches - 1
    entrance = np.zeros(switches, dtype=np.bool_)
    starts = np.zeros(switches + 1, dtype=np.int64)
    taken = np.empty(len(target), dtype=np.int32)
    count, filled = 0, 0
    entered_by = np.empty(switches, dtype=np.int32)
    branch = np.empty(switches, dtype=np.int32)
    distance = np.empty(switches, dtype=np.int32)
    waiting = np.empty(switches, dtype=np.int32)
    now = 0
    while left:
        distance[:] = -1
        tail = 0
        best, closing = 1 << 30, -1
        for switch in order[now]:
            if not visited[switch]:
                continue
            for index in range(leaving_start[switch], leaving_start[switch + 1]):
                channel = leaving[index]
                other = target[channel]
                if visited[other] or distance[other] >= 0 or stage[other] > now:
                    continue
                if not bridge[channel // 2]:
                    distance[other] = 1
                    entered_by[other] = channel
                    branch[other] = channel
                    waiting[tail] = other
                    tail += 1
        head = 0
        while head < tail and 2 * distance[waiting[head]] < best:
            switch = waiting[head]
            head += 1
            for index in range(leaving_start[switch], leaving_start[switch + 1]):
                channel = leaving[index]
                other = target[channel]
                if bridge[channel // 2] or channel == entered_by[switch] ^ 1 or stage[other] > now:
                    continue
                if visited[other]:
                    length = distance[switch] + 1
                elif distance[other] < 0:
                    distance[other] = distance[switch] + 1
                    entered_by[other] = channel
                    branch[other] = branch[switch]
                    waiting[tail] = other
                    tail += 1
                    continue
                elif branch[other] != branch[switch]:
                    length = distance[switch] + distance[other] + 1
                else:
                    continue
                if length < best:
                    best, closing = length, channel
        if closing >= 0:
            switch = target[closing ^ 1]
            steps = distance[switch]
            for step in range(steps - 1, -1, -1):
                taken[filled + step] = entered_by[switch]
                visited[switch] = True
                switch = target[entered_by[switch] ^ 1]
            taken[filled + steps] = closing
            switch = target[closing]
            for step in range(steps + 1, best):
                taken[filled + step] = entered_by[switch] ^ 1
                visited[switch] = True
                switch = target[entered_by[switch] ^ 1]
            filled += best
            count += 1
            starts[count] = filled
            left -= best - 1
        elif now + 1 < len(order):
            now += 1
        else:
            for channel in range(len(target)):
                if bridge[channel // 2] and visited[target[channel ^ 1]] and not visited[target[channel]]:
                    visited[target[channel]] = True
                    entrance[target[channel]] = True
                    left -= 1
                    break
    return starts[: count + 1].copy(), taken[:filled].copy(), entrance


@jit_unless_small
def _restrict_link(
    link: int,
    leaving_start: Longs,
    leaving: Ints,
    target: Ints,
    entrance: Bools,
    placed: Bools,
    earlier: Longs,
    prohibited: Longs,
    found: Ints,
    count: int,
) -> int:
    """Make a link a segment of its own; return how many prohibited turns there are then."""
    low, high = target[2 * link + 1], target[2 * link]
    entering = 2 * link + 1
    if low > high:
        low, high, entering = high, low, 2 * link
    if entrance[low] or (
        not entrance[high]
        and (earlier[high] < earlier[low] or (earlier[high] == earlier[low] and prohibited[high] < prohibited[low]))
    ):
        entering ^= 1
    switch = target[entering]
    for index in range(leaving_start[switch], leaving_start[switch + 1]):
        channel = leaving[index]
        if placed[channel // 2]:
            found[count, 0] = entering
            found[count, 1] = channel
            count += 1
            prohibited[switch] += 1
    placed[link] = True
    earlier[low] += 1
    earlier[high] += 1
    return count


@jit_unless_small
def restrictions(
    leaving_start: Longs,
    leaving: Ints,
    target: Ints,
    bridge: Bools,
    ear_start: Longs,
    ear: Ints,
    entrance: Bools,
    soon: bool,
) -> Ints:
    """Turns that segment-based routing prohibits, both ways.

    An ear has one, at its middle inner switch. A link in no ear is a segment of its own, in the order of links: at one
    end all turns between it and links of earlier segments. That end is the one with fewer such links, then with
    fewer turns prohibited so far, then with the lower number; never one by which a bridge entered the part, where a
    path could come from that bridge by this link and return to it.

    `bridge` is from bridges(), `ear_start` (N + 1,), `ear` and `entrance` (S,) are from ears().
    `soon`: whether links of no ear come as soon as both their ends are on ears, or after all ears.

    Returns:
        (M, 2) channel that enters a switch and channel that leaves it.
    """
    switches = len(leaving_start) - 1
    links = len(target) // 2
    in_ear = np.zeros(links, dtype=np.bool_)
    in_ear[ear // 2] = True
    placed = np.zeros(links, dtype=np.bool_)
    earlier = np.zeros(switches, dtype=np.int64)  # links of segments so far
    prohibited = np.zeros(switches, dtype=np.int64)
    widest = 0
    for switch in range(switches):
        widest = max(widest, leaving_start[switch + 1] - leaving_start[switch])
    found = np.empty((links * max(widest, 1), 2), dtype=np.int32)
    count = 0
    last_ear = len(ear_start) - 2
    for number in range(last_ear + 1):
        first, last = ear_start[number], ear_start[number + 1]
        middle = first + (last - first - 1) // 2
        found[count, 0] = ear[middle]
        found[count, 1] = ear[middle + 1]
        count += 1
        prohibited[target[ear[middle]]] += 1
        for index in range(first, last):
            placed[ear[index] // 2] = True
            earlier[target[ear[index]]] += 1
            earlier[target[ear[index] ^ 1]] += 1
        if soon or number == last_ear:
            for link in range(links):
                if placed[link] or in_ear[link] or bridge[link]:
                    continue
                if earlier[target[2 * link]] and earlier[target[2 * link + 1]]:
                    count = _restrict_link(
                        link, leaving_start, leaving, target, entrance, placed, earlier, prohibited, found, count
                    )
    return found[:count].copy()
