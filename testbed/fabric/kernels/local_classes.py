"""Classes of frames inside switches: which ports they need, which may be one VLAN, where they lead."""

from __future__ import annotations

import numpy as np

from testbed.base.jit import jit_unless_small
from testbed.base.model import Bools, Codes, Floats, Ints, Longs
from testbed.fabric.kernels.forwarding import DELIVER, NEVER

LOST, AS_WANTED, OTHER_WAY = 0, 1, 2


@jit_unless_small
def member_ports(table: Ints, in_port: Ints, port_of_hop: Ints, key_start: Longs, key_port: Ints, ports: int) -> Bools:
    """Steps 1 and 2 of the renamed assignment: the ports of each class.

    `in_port` is the (R,) port of arrival, 0 where several share the class; `port_of_hop` the (layers·C,) port by which
    a virtual channel leaves; `key_start` are (K + 1,) offsets into `key_port`, the (H,) ports of the hosts of each
    destination key; `ports` is the highest port number.

    Returns:
        (R, ports + 1) True for the port of arrival and every port that frames of the class leave by.
    """
    classes, keys = table.shape
    members = np.zeros((classes, ports + 1), dtype=np.bool_)
    for row in range(classes):
        for key in range(keys):
            hop = table[row, key]
            if hop >= 0:
                members[row, port_of_hop[hop]] = True
            elif hop == DELIVER:
                for index in range(key_start[key], key_start[key + 1]):
                    members[row, key_port[index]] = True
        if in_port[row] > 0:
            members[row, in_port[row]] = True
    return members


@jit_unless_small
def merge(table: Ints, members: Bools, order: Ints, start: Longs, same_members: bool) -> tuple[Ints, Bools, int]:
    """Step 4 of the renamed assignment: first fit of the classes of each switch into VLANs.

    A class joins a VLAN only where all their forwarding entries agree: no destination has two next hops.

    `members` are the (R, P) ports of each class; `order` the classes in use, switch by switch, in the order of their
    ports, with (S + 1,) offsets `start`; `same_members` where a VLAN takes only classes with the same ports.

    Returns:
        (R,) VLAN of each class, numbered switch by switch, -1 where it is not in use; (V, P) ports of each VLAN; V.
    """
    classes, keys = table.shape
    most = 0
    for switch in range(len(start) - 1):
        most = max(most, start[switch + 1] - start[switch])
    vlan = np.full(classes, -1, dtype=np.int32)
    ports = np.zeros((len(order), members.shape[1]), dtype=np.bool_)
    held = np.empty((most, keys), dtype=np.int32)
    count = 0
    for switch in range(len(start) - 1):
        first = count
        for place in range(start[switch], start[switch + 1]):
            row = order[place]
            for other in range(first, count + 1):
                if other == count:
                    count += 1
                    held[other - first] = NEVER
                    ports[other] = members[row]
                elif same_members and not np.array_equal(ports[other], members[row]):
                    continue
                entries = held[other - first]
                fits = True
                for key in range(keys):
                    if table[row, key] != NEVER and entries[key] != NEVER and table[row, key] != entries[key]:
                        fits = False
                        break
                if not fits:
                    continue
                for key in range(keys):
                    if table[row, key] != NEVER:
                        entries[key] = table[row, key]
                ports[other] |= members[row]
                vlan[row] = other
                break
    return vlan, ports[:count].copy(), count


@jit_unless_small
def entries_of_classes(table: Ints, order: Ints, vlan: Ints) -> tuple[Ints, Ints, Ints]:
    """List the forwarding entries of all VLANs, by VLAN and destination key.

    `order` are the classes in use, those of one VLAN side by side, VLANs ascending; `vlan` is the (R,) VLAN of each
    class.

    Returns:
        (N,) VLAN, destination key, next virtual channel or DELIVER.
    """
    keys = table.shape[1]
    held = np.empty(keys, dtype=np.int32)
    count = 0
    columns = np.empty((3, 0), dtype=np.int32)
    for filling in range(2):
        if filling:
            columns = np.empty((3, count), dtype=np.int32)
            count = 0
        place = 0
        while place < len(order):
            number = vlan[order[place]]
            held[:] = NEVER
            while place < len(order) and vlan[order[place]] == number:
                row = order[place]
                for key in range(keys):
                    if table[row, key] != NEVER:
                        held[key] = table[row, key]
                place += 1
            for key in range(keys):
                if held[key] != NEVER:
                    if filling:
                        columns[0, count], columns[1, count], columns[2, count] = number, key, held[key]
                    count += 1
    return columns[0].copy(), columns[1].copy(), columns[2].copy()


@jit_unless_small
def by_key(key: Ints, keys: int) -> tuple[Longs, Ints]:
    """(keys + 1,) offsets and (N,) indices of entries by key, the order of each key kept."""
    start = np.zeros(keys + 1, dtype=np.int64)
    for value in key:
        start[value + 1] += 1
    for value in range(keys):
        start[value + 1] += start[value]
    place = start[:-1].copy()
    order = np.empty(len(key), dtype=np.int32)
    for index in range(len(key)):
        order[place[key[index]]] = index
        place[key[index]] += 1
    return start, order


@jit_unless_small
def walk(
    senders: Ints,
    receivers: Ints,
    channel_vlan: Ints,
    key_start: Longs,
    by_key_order: Ints,
    entry_vlan: Ints,
    entry_hop: Ints,
    vlans: int,
    source: Ints,
    target: Ints,
    start: Longs,
    hop: Ints,
    columns: int,
    tree: Ints,
    layers: int,
    slot: Ints,
    degree: int,
) -> tuple[Codes, Ints, Bools]:
    """Follow frames from every sender to every receiver through the local VLANs; compare with the routes.

    Args:
        senders: (A, 3) switch, local VLAN or -1, source key of the routes.
        receivers: (B, 3) switch, destination key of the plan, destination key of the routes; those of one key of the
            plan side by side.
        channel_vlan: (layers·C,) local VLAN of frames that arrive by a virtual channel, -1 where they are dropped.
        key_start: (K + 1,) offsets into `by_key_order`.
        by_key_order: entries by destination key.
        entry_vlan: (N,).
        entry_hop: (N,) next virtual channel, DELIVER, or NEVER for an entry that leads nowhere.
        vlans: V.
        source: (C,) switch a channel leaves.
        target: (C,) switch a channel enters.
        start: offsets of the paths of the routes, row `source key * columns + destination key`.
        hop: their virtual channels.
        columns: number of destination keys of the routes.
        tree: (T, S) channel by which the routes leave each switch for each of their destination keys, or (0, S), and
            then paths are given.
        layers: number of layers.
        slot: (C,) rank of a channel among those that leave its switch.
        degree: most channels that leave a switch.

    Returns:
        (A, B) LOST, AS_WANTED or OTHER_WAY; (A, B) VLAN in which the frame is delivered; (layers·C, layers·degree)
        turns taken, by layer of the next hop and slot.
    """
    channels = len(source)
    # By receiver, as they are filled: far apart, they would take most of the time.
    status = np.full((len(receivers), len(senders)), LOST, dtype=np.int8)
    final = np.full((len(receivers), len(senders)), -1, dtype=np.int32)
    taken = np.zeros((layers * channels, layers * degree), dtype=np.bool_)
    following = np.full(vlans, NEVER, dtype=np.int32)
    known = -1
    for b in range(len(receivers)):
        end, key, column = receivers[b, 0], receivers[b, 1], receivers[b, 2]
        if key != known:
            if known >= 0:
                for index in range(key_start[known], key_start[known + 1]):
                    following[entry_vlan[by_key_order[index]]] = NEVER
            for index in range(key_start[key], key_start[key + 1]):
                entry = by_key_order[index]
                following[entry_vlan[entry]] = entry_hop[entry]
            known = key
        for a in range(len(senders)):
            at, vlan = senders[a, 0], senders[a, 1]
            place, last = np.int64(0), np.int64(0)
            if not len(tree):
                pair = senders[a, 2] * columns + column
                place, last = start[pair], start[pair + 1]
            same = True
            before = -1
            # A frame that comes by as many virtual channels as there are is in a loop.
            for _ in range(layers * channels + 1):
                if vlan < 0 or following[vlan] == NEVER:
                    break
                now = following[vlan]
                if now == DELIVER:
                    if at == end:
                        status[b, a] = AS_WANTED if same and place == last else OTHER_WAY
                        final[b, a] = vlan
                    break
                channel = now % channels
                if source[channel] != at or (before >= 0 and channel == (before % channels) ^ 1):
                    break  # a switch never sends back by the port of arrival
                if len(tree):
                    same = same and tree[column, at] == now
                elif place == last or hop[place] != now:
                    same = False
                else:
                    place += 1
                if before >= 0:
                    taken[before, now // channels * degree + slot[channel]] = True
                before = now
                at = target[channel]
                vlan = channel_vlan[now]
    return status.T, final.T, taken


@jit_unless_small
def topological_order(start: Longs, following: Ints) -> Ints:
    """(N,) nodes of an acyclic graph, each after all that lead to it; shorter where there is a cycle."""
    nodes = len(start) - 1
    entering = np.zeros(nodes, dtype=np.int64)
    for after in following:
        entering[after] += 1
    order = np.empty(nodes, dtype=np.int32)
    tail = 0
    for node in range(nodes):
        if entering[node] == 0:
            order[tail] = node
            tail += 1
    head = 0
    while head < tail:
        node = order[head]
        head += 1
        for index in range(start[node], start[node + 1]):
            entering[following[index]] -= 1
            if entering[following[index]] == 0:
                order[tail] = following[index]
                tail += 1
    return order[:tail].copy()


@jit_unless_small
def copies(
    first_start: Longs, first: Ints, weight: Floats, own: Ints, start: Longs, following: Ints, order: Ints, target: Ints
) -> tuple[float, float]:
    """Count the copies of a flooded frame that each switch takes in from others.

    Args:
        first_start: (A + 1,) offsets into `first`.
        first: channels by which each sender's switch sends the frame on.
        weight: (A,) hosts of each sender.
        own: (A,) switch of each sender.
        start: (C + 1,) offsets into `following`.
        following: channels by which a switch sends on what arrives by a channel; acyclic.
        order: (C,) channels in topological order.
        target: (C,) switch a channel enters.

    Returns:
        sum of the copies over all hosts and switches but the sender's own, and the most at one switch. Whole numbers,
        exact up to 2^53.
    """
    switches = 0
    for switch in target:
        switches = max(switches, switch + 1)
    count = np.empty(len(target), dtype=np.float64)
    seen = np.empty(switches, dtype=np.float64)
    total, most = 0.0, 0.0
    for a in range(len(own)):
        count[:] = 0.0
        seen[:] = 0.0
        for index in range(first_start[a], first_start[a + 1]):
            count[first[index]] += 1.0
        for channel in order:
            number = count[channel]
            if number > 0.0:
                seen[target[channel]] += number
                for index in range(start[channel], start[channel + 1]):
                    count[following[index]] += number
        for switch in range(switches):
            if switch != own[a]:
                total += weight[a] * seen[switch]
                most = max(most, seen[switch])
    return total, most
