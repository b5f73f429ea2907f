"""Sets of next hops: delivery, loops and deadlock freedom over all choices that switches have.

Whichever next hop of a set a switch takes, each frame is delivered exactly if no choice leads back to where the frame
was or to a switch without an entry. A channel depends on all those of the set by which a frame that came over it may be
sent on; that graph without a cycle is deadlock freedom for every choice (Dally and Seitz 1987). For switches that
choose by what is free there is a weaker condition (Duato 1993); it is not used here, as switches that hash do not.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from testbed.base.model import Bools, Codes, Ints, Longs, NextHops, Routes, Topology, Violation
from testbed.fabric.kernels.forwarding import NEVER
from testbed.fabric.routing.channel_lookup import host_switches, runs
from testbed.fabric.verify.deadlock import DEADLOCK, adjacency, hop_name, shortest_cycle

DELIVERY, LOOP = "delivery", "loop"
_SHOWN = 5
_MOST_NAMED = 1000
# A shortest cycle is looked for among so many nodes that are on cycles or between them, else any short one.
_SEARCHED = 5000


@dataclass(frozen=True, slots=True, eq=False)
class ChoiceProof:
    """What was found of forwarding, whichever next hops are chosen."""

    pairs: int  # ordered pairs of a switch with hosts and a destination
    delivered: int  # of them, by every choice
    looping: int  # of them, by some choice in a loop
    violations: tuple[Violation, ...]  # empty where all holds

    @property
    def deadlock_free(self) -> bool:
        """Whether the dependencies have no cycle."""
        return all(violation.invariant != DEADLOCK for violation in self.violations)


@dataclass(frozen=True, slots=True, eq=False)
class Followed:
    """What frames meet on all their ways, with sets as groups: virtual channels, without their VLANs."""

    begins: Longs  # (B,) states where frames may begin, class by class, each by switch with hosts
    status: Codes  # (K, B) of each destination and such state, codes of kernels.choices
    group_start: Longs  # (groups + 1,) offset of the first virtual channel of each group; those of a switch are a run
    group_channel: Longs  # (A,) virtual channels
    first_group: Longs  # (V,) first group of the switch that each virtual channel enters
    mark_start: Longs  # (V + 1,) offset of the marks of each virtual channel
    marks: Bools  # True where a frame on it may be sent on by that group of its switch

    def dependencies(self) -> Ints:
        """(D, 2) virtual channels, the second of which a frame on the first may wait for; ordered, each once."""
        channel, group = self.sent_by()
        row, index = runs(self.group_start[group], np.diff(self.group_start)[group])
        pairs = np.stack([channel[row], self.group_channel[index]], axis=1)
        return np.unique(pairs, axis=0).astype(np.int32)

    def sent_by(self) -> tuple[Longs, Longs]:
        """(M,) virtual channels and (M,) groups by which frames on them may be sent."""
        place = np.flatnonzero(self.marks)
        channel = np.repeat(np.arange(len(self.mark_start) - 1), np.diff(self.mark_start))[place]
        return channel, self.first_group[channel] + place - self.mark_start[channel]


def check_choices(topology: Topology, hops: NextHops) -> ChoiceProof:
    """Check delivery, loops and deadlock freedom over all choices."""
    from testbed.fabric.kernels import next_hop_sets

    followed = follow_all(topology, hops, exact=False)
    ends = host_switches(topology)
    status = followed.status.reshape(len(hops.goal), len(hops.class_vlan), len(ends))
    # A frame may begin in each class that its switch has an entry of; with none in any it goes nowhere.
    none = (status == next_hop_sets.NO_ENTRY).all(axis=1)
    wrong = np.bitwise_or.reduce(np.where(status == next_hop_sets.NO_ENTRY, 0, status), axis=1)
    wrong[none] = next_hop_sets.NO_ENTRY
    considered = (hops.goal[:, None] != ends) | (wrong != next_hop_sets.FINE)
    looping = (wrong & next_hop_sets.LOOPS) > 0
    lost = (wrong != next_hop_sets.FINE) & ~looping
    pairs = int(considered.sum())
    found = []
    if lost.any():
        names = _name_pairs(topology, hops, lost)
        found.append(
            Violation(DELIVERY, f"{int(lost.sum())} of {pairs} pairs are not delivered: {_abbreviate(names)}", names)
        )
    if looping.any():
        names = _name_pairs(topology, hops, looping)
        key, end = np.argwhere(looping)[0]
        loop = _find_loop(topology, hops, int(key), int(ends[end]))
        way = " → ".join(topology.switch_name(switch) for switch in loop)
        found.append(
            Violation(LOOP, f"frames of {int(looping.sum())} of {pairs} pairs can loop: {names[0]} by {way}", names)
        )
    cycle = _find_cycle(followed)
    if cycle:
        channels = tuple(hop_name(topology, hop, hops.layers) for hop in cycle)
        sentence = f"the channel dependency graph has a cycle: {' waits for '.join((*channels, channels[0]))}"
        found.append(Violation(DEADLOCK, sentence, channels))
    delivered = int((considered & (wrong == next_hop_sets.FINE)).sum())
    return ChoiceProof(pairs, delivered, int(looping.sum()), tuple(found))


def follow_all(topology: Topology, hops: NextHops, *, exact: bool = True) -> Followed:
    """Go every way that frames may go, to every destination.

    With `exact` off, marks may be of more than those ways as long as they have no cycle and no entry is missing: then
    no frame loops, and all are delivered, so there is nothing more to find.
    """
    from testbed.fabric.kernels import next_hop_sets

    channels, switches = max(len(topology.channel_source), 1), topology.switch_count
    ends = host_switches(topology).astype(np.int64)
    begins = (np.arange(len(hops.class_vlan))[:, None] * switches + ends).reshape(-1)
    hop_class, hop_channel = np.divmod(hops.hop.astype(np.int64), channels)
    virtual = hops.class_layer[hop_class].astype(np.int64) * channels + hop_channel
    of_set, leaves, group_start, group_channel = _group_sets(topology, hops, virtual)
    base = np.searchsorted(leaves, np.arange(switches + 1))
    target = np.tile(topology.channel_target, hops.layers)
    mark_start = np.concatenate([[0], np.cumsum(np.diff(base)[target])]).astype(np.int64)
    marks = np.zeros(int(mark_start[-1]), dtype=bool)
    hop_state = hop_class * switches + topology.channel_target[hop_channel]
    local = of_set - base[leaves[of_set]]
    if not exact:
        ends_somewhere = next_hop_sets.mark_choices(
            hops.table, hops.start, hop_state, virtual, local, mark_start, marks
        )
        none = np.where(hops.table[begins] == NEVER, next_hop_sets.NO_ENTRY, next_hop_sets.FINE).astype(np.int8)
        followed = Followed(begins, none.T, group_start, group_channel, base[target], mark_start, marks)
        if not ends_somewhere and not _find_cycle(followed):
            return followed
        marks = np.zeros_like(marks)
    table = np.ascontiguousarray(hops.table.T)
    status = next_hop_sets.follow_choices(table, begins, hops.start, hop_state, virtual, local, mark_start, marks)
    return Followed(begins, status, group_start, group_channel, base[target], mark_start, marks)


def _group_sets(topology: Topology, hops: NextHops, virtual: Longs) -> tuple[Longs, Longs, Longs, Longs]:
    """Number sets that are the same without VLANs, switch by switch.

    `virtual`: (A,) virtual channel of each hop.

    Returns:
        (G,) group of each set; (groups,) the switch it leaves; its virtual channels as offsets and a list.
    """
    channels = len(topology.channel_source)
    if len(np.unique(hops.class_layer)) == len(hops.class_layer):  # no two classes differ by their VLAN alone
        of_switch = topology.channel_source[hops.hop[hops.start[:-1]] % channels].astype(np.int64)
        order = np.argsort(of_switch, kind="stable")
        of_set: Longs = np.empty(len(order), dtype=np.int64)
        of_set[order] = np.arange(len(order))
        sizes = np.diff(hops.start)[order]
        _, index = runs(hops.start[order], sizes)
        return of_set, of_switch[order], np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64), virtual[index]
    known: dict[tuple[int, bytes], int] = {}
    keys = []
    for number in range(len(hops.start) - 1):
        inside = np.unique(virtual[hops.start[number] : hops.start[number + 1]])
        keys.append((int(topology.channel_source[inside[0] % channels]), inside.tobytes()))
    for key in sorted(set(keys)):
        known[key] = len(known)
    of_set = np.array([known[key] for key in keys], dtype=np.int64)
    lists = [np.frombuffer(content, dtype=np.int64) for _, content in known]
    start = np.concatenate([[0], np.cumsum([len(one) for one in lists])]).astype(np.int64)
    leaves = np.array([switch for switch, _ in known], dtype=np.int64)
    return of_set, leaves, start, np.concatenate([np.zeros(0, dtype=np.int64), *lists])


def _name_pairs(topology: Topology, hops: NextHops, which: Bools) -> tuple[str, ...]:
    """The first of the pairs, (K, E) True for them, by their names."""
    ends = host_switches(topology)
    return tuple(
        f"{topology.switch_name(int(ends[end]))}→{destination_name(topology, hops, int(key))}"
        for end, key in np.argwhere(which.T)[:_MOST_NAMED].tolist()
    )


def destination_name(topology: Topology, hops: NextHops, key: int) -> str:
    """Name of a destination: a host's, or that of the switch of all its hosts."""
    host = int(hops.host[key])
    return topology.host_name(host) if host >= 0 else topology.switch_name(int(hops.goal[key]))


def _abbreviate(names: tuple[str, ...]) -> str:
    return f"{', '.join(names[:_SHOWN])}{' …' if len(names) > _SHOWN else ''}"


def _find_loop(topology: Topology, hops: NextHops, key: int, switch: int) -> tuple[int, ...]:
    """Switches of one loop that frames of a switch can come into, the first again at its end."""
    switches, channels = topology.switch_count, len(topology.channel_source)
    row = hops.table[:, key]
    waiting = [state for state in range(switch, len(row), switches) if row[state] >= 0]
    seen, edges = set(waiting), []
    while waiting:
        state = waiting.pop()
        for hop in hops.hop[hops.start[row[state]] : hops.start[row[state] + 1]].tolist():
            kind, channel = divmod(hop, channels)
            after = kind * switches + int(topology.channel_target[channel])
            if row[after] >= 0:
                edges.append((state, after))
                if after not in seen:
                    seen.add(after)
                    waiting.append(after)
    found = shortest_cycle(*adjacency(len(row), np.array(edges, dtype=np.int32)))
    return tuple(state % switches for state in (*found, found[0]))


def _find_cycle(followed: Followed) -> tuple[int, ...]:
    """Virtual channels of a cycle of dependencies, or none: channels and groups as nodes, so that sets stay sets."""
    from testbed.fabric.kernels import cycles

    channels = len(followed.mark_start) - 1
    channel, group = followed.sent_by()
    if not len(channel):
        return ()
    sends = np.bincount(channel, minlength=channels)
    start = np.concatenate([[0], np.cumsum(np.concatenate([sends, np.diff(followed.group_start)]))]).astype(np.int64)
    following = np.concatenate([channels + group, followed.group_channel]).astype(np.int32)
    inside = cycles.on_cycles(start, following)
    if not inside.any():
        return ()
    if int(inside.sum()) <= _SEARCHED:
        found = cycles.shortest_cycle(start, following, inside)
    else:
        found = cycles.cycle_through(start, following, inside, inside)
    found = found[found < channels]
    first = int(np.argmin(found))
    return (*found[first:].tolist(), *found[:first].tolist())


def check_chosen(topology: Topology, routes: Routes, hops: NextHops) -> list[Violation]:
    """The paths of a plan must be among the choices, so that what is proved of these holds of them."""
    if routes.paths is None or not np.array_equal(hops.goal, routes.ends) or len(hops.class_vlan) != 1:
        return [Violation("choices", "the choices are not those of one path a pair of switches")]
    ends = len(routes.ends)
    pair = np.repeat(np.arange(ends * ends), np.diff(routes.paths.start))
    channel = routes.paths.hop.astype(np.int64)
    group = hops.table[topology.channel_source[channel], pair % ends]
    sets = np.repeat(np.arange(len(hops.start) - 1), np.diff(hops.start))
    size = max(len(topology.channel_source), 1)
    wrong = np.unique(pair[~np.isin(group * size + channel, sets * size + hops.hop)])
    if not len(wrong):
        return []
    names = tuple(
        f"{topology.switch_name(int(routes.ends[a]))}→{topology.switch_name(int(routes.ends[b]))}"
        for a, b in (divmod(int(one), ends) for one in wrong[:_MOST_NAMED])
    )
    return [Violation("choices", f"paths of {len(wrong)} pairs are not among the choices: {_abbreviate(names)}", names)]
