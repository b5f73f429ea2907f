"""VLANs given by their tagged links: are they trees, where do they lead, which MAC entries do they need."""

from __future__ import annotations

import numpy as np

from testbed.base.jit import jit_unless_small
from testbed.base.model import Bools, Codes, Ints, Longs

LOST, AS_WANTED, OTHER_WAY = 0, 1, 2


@jit_unless_small
def find_root(parent: Ints, node: int) -> int:
    """The root of a node's part (union-find); `parent` is shortened on the way."""
    while parent[node] != node:
        parent[node] = parent[parent[node]]
        node = parent[node]
    return node


@jit_unless_small
def loops_and_parts(tagged: Bools, links: Ints, switches: int, first: int) -> tuple[Bools, Bools]:
    """Find loops and what is cut off (union-find).

    `links` is (L, 2); `first` the switch that all others should be connected with.

    Returns:
        (V,) True where a VLAN contains a loop; (V, S) True for switches it connects with `first`.
    """
    vlans = len(tagged)
    loops = np.zeros(vlans, dtype=np.bool_)
    connected = np.zeros((vlans, switches), dtype=np.bool_)
    parent = np.empty(switches, dtype=np.int32)
    for vlan in range(vlans):
        for switch in range(switches):
            parent[switch] = switch
        for link in range(len(links)):
            if tagged[vlan, link]:
                a, b = find_root(parent, links[link, 0]), find_root(parent, links[link, 1])
                if a == b:
                    loops[vlan] = True
                parent[a] = b
        for switch in range(switches):
            connected[vlan, switch] = find_root(parent, switch) == find_root(parent, first)
    return loops, connected


@jit_unless_small
def spread(root: int, tagged: Bools, start: Longs, leaving: Ints, target: Ints, parent: Ints, order: Ints) -> int:
    """Walk a VLAN breadth first from a switch.

    `tagged` are the (L,) links of the VLAN; `start` (S + 1,) offsets into `leaving`; `parent` (S,) gets the channel by
    which each switch is entered, -1 at the root and beyond reach; `order` (S,) the switches in the order of reaching.

    Returns:
        number of switches reached.
    """
    parent[:] = -1
    order[0] = root
    head, tail = 0, 1
    while head < tail:
        switch = order[head]
        head += 1
        for index in range(start[switch], start[switch + 1]):
            channel = leaving[index]
            if tagged[channel // 2]:
                neighbour = target[channel]
                if parent[neighbour] < 0 and neighbour != root:
                    parent[neighbour] = channel
                    order[tail] = neighbour
                    tail += 1
    return tail


@jit_unless_small
def follow(
    source: Ints,
    vlan: Ints,
    wanted: Ints,
    tagged: Bools,
    start: Longs,
    leaving: Ints,
    target: Ints,
    ends: Ints,
    slot: Ints,
    degree: int,
) -> tuple[Codes, Bools]:
    """Follow frames from each sender to every end switch along the tree of their VLAN.

    `source` and `vlan` are (W,) of each sender, `wanted` (W, S) the channel by which its tree should enter each switch;
    `start` are (S + 1,) offsets into `leaving`.

    Returns:
        (W, E) LOST, AS_WANTED or OTHER_WAY; (C, degree) True where some path takes a channel and then the channel
        of that slot.
    """
    switches = len(start) - 1
    status = np.full((len(source), len(ends)), LOST, dtype=np.int8)
    taken = np.zeros((len(target), degree), dtype=np.bool_)
    parent = np.empty(switches, dtype=np.int32)
    order = np.empty(switches, dtype=np.int32)
    same = np.empty(switches, dtype=np.bool_)
    needed = np.empty(switches, dtype=np.bool_)
    for w in range(len(source)):
        reached = spread(source[w], tagged[vlan[w]], start, leaving, target, parent, order)
        needed[:] = False
        for e in range(len(ends)):
            needed[ends[e]] = True
        same[source[w]] = wanted[w, source[w]] < 0
        for place in range(1, reached):
            switch = order[place]
            before = target[parent[switch] ^ 1]
            same[switch] = same[before] and parent[switch] == wanted[w, switch]
        for place in range(reached - 1, 0, -1):
            switch = order[place]
            if needed[switch]:
                before = target[parent[switch] ^ 1]
                needed[before] = True
                if parent[before] >= 0:
                    taken[parent[before], slot[parent[switch]]] = True
        for e in range(len(ends)):
            switch = ends[e]
            if switch == source[w] or parent[switch] >= 0:
                status[w, e] = AS_WANTED if same[switch] else OTHER_WAY
    return status, taken


@jit_unless_small
def used_entries(
    sources: Ints, tagged: Bools, start: Longs, leaving: Ints, target: Ints, ends: Ints, everywhere: bool
) -> Ints:
    """List the MAC entries of one VLAN.

    `sources` are switches whose hosts send in it, `tagged` its (L,) links, a tree; `start` are (S + 1,) offsets into
    `leaving`. With `everywhere` every switch of the tree has an entry, else those of paths alone.

    Returns:
        (N, 3) switch, index of the destination switch, channel to send by or -1 where that switch is the end;
        ordered by switch, then end.
    """
    switches = len(start) - 1
    toward = np.full((switches, len(ends)), -2, dtype=np.int32)
    parent = np.empty(switches, dtype=np.int32)
    order = np.empty(switches, dtype=np.int32)
    for e in range(len(ends)):
        reached = spread(ends[e], tagged, start, leaving, target, parent, order)
        toward[ends[e], e] = -1
        if everywhere:
            for place in range(1, reached):
                toward[order[place], e] = parent[order[place]] ^ 1
        else:
            for source in sources:
                at = source
                while parent[at] >= 0 and toward[at, e] == -2:
                    toward[at, e] = parent[at] ^ 1
                    at = target[parent[at] ^ 1]
    count = 0
    for switch in range(switches):
        for e in range(len(ends)):
            count += toward[switch, e] != -2
    rows = np.empty((count, 3), dtype=np.int32)
    count = 0
    for switch in range(switches):
        for e in range(len(ends)):
            if toward[switch, e] != -2:
                rows[count, 0], rows[count, 1], rows[count, 2] = switch, e, toward[switch, e]
                count += 1
    return rows


@jit_unless_small
def entry_counts(
    sends: Bools, tagged: Bools, start: Longs, leaving: Ints, target: Ints, hosts_on: Ints, everywhere: bool
) -> Longs:
    """Count the entries that used_entries() lists, times the hosts of each end, in O(S) a VLAN.

    A switch where no host sends needs no entries for destinations on the one side where all senders are.

    `sends`: (V, S) True where hosts on a switch send in a VLAN; each is a tree; `hosts_on`: (S,) number of hosts; the
    others are as for used_entries().

    Returns:
        (S,) entries of all VLANs.
    """
    switches = len(start) - 1
    count = np.zeros(switches, dtype=np.int64)
    parent = np.empty(switches, dtype=np.int32)
    order = np.empty(switches, dtype=np.int32)
    hosts = np.empty(switches, dtype=np.int64)  # of the branch below a switch, itself included
    senders = np.empty(switches, dtype=np.int64)
    behind = np.empty(switches, dtype=np.int64)  # hosts of the one branch that has all senders
    for vlan in range(len(tagged)):
        root = -1
        for switch in range(switches):
            if sends[vlan, switch]:
                root = switch
                break
        if root < 0:
            count += hosts_on  # the end's own switch holds its entry in any case
            continue
        reached = spread(root, tagged[vlan], start, leaving, target, parent, order)
        hosts[:] = hosts_on
        senders[:] = sends[vlan]
        for place in range(reached - 1, 0, -1):
            switch = order[place]
            before = target[parent[switch] ^ 1]
            hosts[before] += hosts[switch]
            senders[before] += senders[switch]
        behind[:] = 0
        for place in range(1, reached):
            switch = order[place]
            if senders[switch] == senders[root]:
                behind[target[parent[switch] ^ 1]] = hosts[switch]
        in_tree = np.zeros(switches, dtype=np.bool_)
        for place in range(reached):
            switch = order[place]
            in_tree[switch] = True
            if everywhere or sends[vlan, switch]:
                count[switch] += hosts[root]
            elif senders[switch] == 0:
                count[switch] += hosts[switch]
            else:
                count[switch] += hosts[root] - behind[switch]
        for switch in range(switches):
            if not in_tree[switch]:
                count[switch] += hosts_on[switch]
    return count
