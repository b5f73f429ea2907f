"""Paths distributed over layers so that the dependencies within each layer have no cycle."""

from __future__ import annotations

import numpy as np

from testbed.base.jit import jit_unless_small
from testbed.base.model import Ints, Longs
from testbed.fabric.kernels.dependencies import BLOCKED, UNKNOWN, USED, add_turn, no_dependencies, turn_of


@jit_unless_small
def turns_of_paths(start: Longs, hop: Ints, turn_start: Longs, after: Ints) -> tuple[Longs, Ints]:
    """Number the turns of each path.

    `start` are (P + 1,) offsets into `hop`, the channels of the paths; `turn_start` (C + 1,) ones into `after`, the
    channels that may follow, ascending.

    Returns:
        (P + 1,) offsets and (M,) turns.
    """
    paths = len(start) - 1
    offset = np.zeros(paths + 1, dtype=np.int64)
    for path in range(paths):
        offset[path + 1] = offset[path] + max(start[path + 1] - start[path] - 1, 0)
    turns = np.empty(offset[-1], dtype=np.int32)
    for path in range(paths):
        for step in range(offset[path + 1] - offset[path]):
            index = start[path] + step
            turns[offset[path] + step] = turn_of(turn_start, after, hop[index], hop[index + 1])
    return offset, turns


@jit_unless_small
def first_fit(offset: Longs, turns: Ints, channels: int, before: Ints, after: Ints) -> Ints:
    """Layer of each path: the first in which it closes no cycle with the paths put there before it.

    Layer by layer: which paths a layer is offered, and in which order, depends on the layers before it alone.

    `offset` are (P + 1,) offsets into `turns` (M,), those of each path.

    Returns:
        (P,) layers.
    """
    paths = len(offset) - 1
    layer = np.zeros(paths, dtype=np.int32)
    left = np.arange(paths).astype(np.int32)
    fresh = np.empty(channels, dtype=np.int32)
    number = 0
    while len(left):
        graph = no_dependencies(channels, before, after)
        refused = 0
        for path in left:
            fits = True
            for index in range(offset[path], offset[path + 1]):
                fits = fits and graph.state[turns[index]] != BLOCKED
            count = 0
            for index in range(offset[path], offset[path + 1]):
                if not fits:
                    break
                turn = turns[index]
                if graph.state[turn] == USED:
                    continue
                if add_turn(graph, turn):
                    fresh[count] = turn
                    count += 1
                    continue
                fits = False
                for other in range(count):
                    graph.state[fresh[other]] = UNKNOWN
                # Alone it may fit: what it met may have been a turn of this very path.
                if count == 0 or not add_turn(graph, turn):
                    graph.state[turn] = BLOCKED
                else:
                    graph.state[turn] = UNKNOWN
            if fits:
                layer[path] = number
            else:
                left[refused] = path
                refused += 1
        left = left[:refused]
        number += 1
    return layer


@jit_unless_small
def break_cycles(offset: Longs, turns: Ints, channels: int, before: Ints, after: Ints) -> Ints:
    """Layer of each path: all begin in layer 0; the paths of a cycle's least used turn move on to the next layer.

    A depth-first search finds the cycles; after one is broken it goes on where it still stands on a path of turns.

    `offset` are (P + 1,) offsets into `turns` (M,), those of each path.

    Returns:
        (P,) layers.
    """
    paths = len(offset) - 1
    layer = np.zeros(paths, dtype=np.int32)
    user_start, user = _users(offset, turns, len(before))
    turn_start = np.zeros(channels + 1, dtype=np.int64)
    for channel in before:
        turn_start[channel + 1] += 1
    for channel in range(channels):
        turn_start[channel + 1] += turn_start[channel]
    paths_on = np.empty(len(before), dtype=np.int64)  # paths of this layer that take a turn
    depth = np.empty(channels, dtype=np.int32)  # place of a channel on the stack, -1 unseen, -2 done
    following = np.empty(channels, dtype=np.int64)  # next turn to look at
    stack = np.empty(channels, dtype=np.int32)
    taken = np.empty(channels, dtype=np.int32)  # turn by which a channel on the stack was reached
    number, moved = 0, True
    while moved:
        moved = False
        paths_on[:] = 0
        for path in range(paths):
            if layer[path] == number:
                for index in range(offset[path], offset[path + 1]):
                    paths_on[turns[index]] += 1
        depth[:] = -1
        following[:] = turn_start[:-1]
        for root in range(channels):
            if depth[root] != -1:
                continue
            stack[0] = root
            depth[root] = 0
            height = 1
            while height:
                at = stack[height - 1]
                if following[at] == turn_start[at + 1]:
                    depth[at] = -2
                    height -= 1
                    continue
                turn = following[at]
                reached = after[turn]
                if paths_on[turn] == 0 or depth[reached] == -2:
                    following[at] += 1
                    continue
                if depth[reached] == -1:
                    # The turn stays the next one, to be looked at again once what it leads to is done.
                    stack[height] = reached
                    taken[height] = turn
                    depth[reached] = height
                    height += 1
                    continue
                weakest = turn
                for place in range(depth[reached] + 1, height):
                    if paths_on[taken[place]] < paths_on[weakest]:
                        weakest = taken[place]
                for index in range(user_start[weakest], user_start[weakest + 1]):
                    path = user[index]
                    if layer[path] == number:
                        layer[path] = number + 1
                        for step in range(offset[path], offset[path + 1]):
                            paths_on[turns[step]] -= 1
                moved = True
                keep = 1
                while keep < height and paths_on[taken[keep]] > 0:
                    keep += 1
                while height > keep:
                    height -= 1
                    depth[stack[height]] = -1
        number += 1
    return layer


@jit_unless_small
def _users(offset: Longs, turns: Ints, count: int) -> tuple[Longs, Ints]:
    """(A + 1,) offsets and (M,) paths by the turns they take."""
    start = np.zeros(count + 1, dtype=np.int64)
    for turn in turns:
        start[turn + 1] += 1
    for turn in range(count):
        start[turn + 1] += start[turn]
    free = start[:-1].copy()
    user = np.empty(len(turns), dtype=np.int32)
    for path in range(len(offset) - 1):
        for index in range(offset[path], offset[path + 1]):
            user[free[turns[index]]] = path
            free[turns[index]] += 1
    return start, user
