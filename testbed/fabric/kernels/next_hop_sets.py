"""Every way that frames can go where switches choose among next hops, destination by destination."""

from __future__ import annotations

import numpy as np

from testbed.base.jit import jit_unless_small
from testbed.base.model import Bools, Codes, Floats, Ints, Longs
from testbed.fabric.kernels.forwarding import DELIVER, NEVER

FINE, LOOPS, ENDS, NO_ENTRY = 0, 1, 2, 4
_ON_WAY, _DONE = 8, 16


@jit_unless_small
def mark_choices(
    table: Ints, start: Longs, hop_state: Longs, hop_channel: Longs, local: Longs, mark_start: Longs, marks: Bools
) -> bool:
    """Fill the marks of follow_choices() with those of all states, also of such that no frame ever comes to.

    `table` (states, K) as in NextHops.

    Returns:
        True where some entry leads to a state without one.
    """
    states, keys = table.shape
    ends = False
    for state in range(states):
        for key in range(keys):
            number = table[state, key]
            # A run of keys of one set: for each of its hops, the sets of its end, which lie side by side.
            if number < 0 or (key > 0 and table[state, key - 1] == number):
                continue
            last = key
            while last < keys and table[state, last] == number:
                last += 1
            for index in range(start[number], start[number + 1]):
                first = mark_start[hop_channel[index]]
                after = table[hop_state[index]]
                for other in range(key, last):
                    group = after[other]
                    if group >= 0:
                        marks[first + local[group]] = True
                    elif group == NEVER:
                        ends = True
    return ends


@jit_unless_small
def follow_choices(
    table: Ints,
    begins: Longs,
    start: Longs,
    hop_state: Longs,
    hop_channel: Longs,
    local: Longs,
    mark_start: Longs,
    marks: Bools,
) -> Codes:
    """Follow all choices from each state where frames begin, for each destination, depth first.

    `table` (K, states) as in NextHops; `begins` the states where frames may begin; `hop_state`, `hop_channel` the state
    and virtual channel of each hop of a set; `local` (G,) number of each set among those of its switch. `marks` is
    filled: True at `mark_start[v] + local[g]` where a frame that came by virtual channel v may be sent by set g.

    Returns:
        (K, begins) FINE, NO_ENTRY, or the sum of LOOPS (some choices come back) and ENDS (some end where no entry is).
    """
    keys, states = table.shape
    status = np.zeros((keys, len(begins)), dtype=np.int8)
    seen = np.zeros(states, dtype=np.int8)
    wrong = np.zeros(states, dtype=np.int8)
    place = np.zeros(states, dtype=np.int64)
    waiting = np.zeros(states + 1, dtype=np.int64)
    for key in range(keys):
        seen[:] = 0
        wrong[:] = 0
        for number in range(len(begins)):
            first = begins[number]
            if table[key, first] == DELIVER:
                continue
            if table[key, first] == NEVER:
                status[key, number] = NO_ENTRY
                continue
            depth = 0
            if seen[first] == 0:
                seen[first] = _ON_WAY
                place[first] = start[table[key, first]]
                waiting[0] = first
                depth = 1
            while depth > 0:
                state = waiting[depth - 1]
                index = place[state]
                if index == start[table[key, state] + 1]:
                    seen[state] = _DONE
                    depth -= 1
                    if depth > 0:
                        wrong[waiting[depth - 1]] |= wrong[state]
                    continue
                place[state] = index + 1
                after = hop_state[index]
                group = table[key, after]
                if group == NEVER:
                    wrong[state] |= ENDS
                elif group != DELIVER:
                    marks[mark_start[hop_channel[index]] + local[group]] = True
                    if seen[after] == 0:
                        seen[after] = _ON_WAY
                        place[after] = start[group]
                        waiting[depth] = after
                        depth += 1
                    elif seen[after] == _ON_WAY:
                        wrong[state] |= LOOPS
                    else:
                        wrong[state] |= wrong[after]
            status[key, number] = wrong[first]
    return status


@jit_unless_small
def split_evenly(
    table: Ints, start: Longs, hop_state: Longs, hop_channel: Longs, begins: Longs, demand: Floats, channels: int
) -> Floats:
    """Send what each state has for each destination on, in equal parts by the hops of its set.

    `table` (K, states) as in NextHops, of which no choices loop; `begins` (B,) the states where frames begin; `demand`
    (K, B) what begins there.

    Returns:
        (channels,) what each carries.
    """
    keys, states = table.shape
    load = np.zeros(channels, dtype=np.float64)
    amount = np.zeros(states, dtype=np.float64)
    seen = np.zeros(states, dtype=np.bool_)
    place = np.zeros(states, dtype=np.int64)
    waiting = np.zeros(states + 1, dtype=np.int64)
    done = np.zeros(states, dtype=np.int64)
    for key in range(keys):
        seen[:] = False
        amount[:] = 0.0
        count = 0
        for number in range(len(begins)):
            first = begins[number]
            if demand[key, number] == 0.0 or table[key, first] < 0:
                continue
            amount[first] += demand[key, number]
            depth = 0
            if not seen[first]:
                seen[first] = True
                place[first] = start[table[key, first]]
                waiting[0] = first
                depth = 1
            while depth > 0:
                state = waiting[depth - 1]
                index = place[state]
                if index == start[table[key, state] + 1]:
                    done[count] = state
                    count += 1
                    depth -= 1
                    continue
                place[state] = index + 1
                after = hop_state[index]
                if table[key, after] >= 0 and not seen[after]:
                    seen[after] = True
                    place[after] = start[table[key, after]]
                    waiting[depth] = after
                    depth += 1
        # Who is done last is nobody's next hop any more.
        for turn in range(count - 1, -1, -1):
            state = done[turn]
            group = table[key, state]
            part = amount[state] / (start[group + 1] - start[group])
            for index in range(start[group], start[group + 1]):
                load[hop_channel[index]] += part
                amount[hop_state[index]] += part
    return load
