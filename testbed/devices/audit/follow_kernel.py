"""Frames through configured switches: every pair by registered addresses, and floods with every copy.

Ports P of S switches, V VLANs, H hosts, which are the destinations, too. Arguments of one name are alike:

    out (S, V)                      port of the entry for one destination; UNKNOWN, or DEAD for one that leads nowhere
    turns (P, degree)               True where frames that leave by a port then leave the next switch by that rank
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from testbed.base.jit import jit_unless_small
from testbed.base.model import Bools, Codes, Floats, Ints, Longs

UNKNOWN, DEAD = -1, -2
DELIVERED, DROPPED, LOOPS, TAGGED, ELSEWHERE, TWICE = 0, 1, 2, 3, 4, 5


class Ports(NamedTuple):
    """All ports, and how they are set."""

    switch_of: Ints  # (P,)
    peer: Ints  # (P,) port at the other end, -1 for a host
    host_at: Ints  # (P,) -1 for a switch
    pvid: Ints  # (P,) -1 for none
    member: Bools  # (P, V)
    untagged: Bools  # (P, V)
    filters: Bools  # (P,)
    sends: Bools  # (P,) whether floods may leave
    start: Longs  # (S + 1,) offsets of `listed` by switch
    listed: Ints  # (P,)
    rank: Ints  # (P,) place among those of its switch


@jit_unless_small
def arrival(port: int, vlan: int, at: Ports) -> int:
    """VLAN of what leaves by a port, at the port at the other end; -1 where it is dropped."""
    to = at.peer[port]
    found = at.pvid[to] if at.untagged[port, vlan] else vlan
    if found < 0 or (at.filters[to] and not at.member[to, found]):
        return -1
    return int(found)


@jit_unless_small
def flood(
    first: int,
    out: Ints,
    turns: Bools,
    seen: Longs,
    stamp: int,
    ports: Ports,
    received: Floats,
    tagged: Floats,
) -> bool:
    """Follow every copy of a frame that enters by a host's port; `seen` is (P·V,), marked with `stamp`.

    `received` and `tagged` (H,) are filled with the copies each host gets without a tag, and with one.

    Returns:
        Whether copies circulate for ever; each is counted once then.
    """
    vlans = ports.member.shape[1]
    received[:] = 0
    tagged[:] = 0
    vlan = ports.pvid[first]
    if vlan < 0 or (ports.filters[first] and not ports.member[first, vlan]):
        return False
    states = [first * vlans + vlan]
    seen[states[0]] = stamp
    edges_from = [0]
    edges_from.pop()
    edges_to = [0]
    edges_to.pop()
    place = 0
    while place < len(states):
        at, vlan = states[place] // vlans, states[place] % vlans
        switch = ports.switch_of[at]
        known = out[switch, vlan]
        low, high = ports.start[switch], ports.start[switch + 1]
        for index in range(low, high):
            port = ports.listed[index]
            if port == at or not ports.member[port, vlan]:
                continue
            if known == UNKNOWN:
                if not ports.sends[port]:
                    continue
            elif known != port:
                continue
            if ports.host_at[port] >= 0:
                edges_from.append(place)
                edges_to.append(-1 - port if ports.untagged[port, vlan] else -1 - port - len(ports.peer))
                continue
            if ports.peer[port] < 0:
                continue
            if ports.host_at[at] < 0:
                turns[ports.peer[at], ports.rank[port]] = True
            following = arrival(port, vlan, ports)
            if following < 0:
                continue
            state = ports.peer[port] * vlans + following
            edges_from.append(place)
            edges_to.append(state)
            if seen[state] != stamp:
                seen[state] = stamp
                states.append(state)
        place += 1
    number = np.empty(len(states), dtype=np.int64)
    index_of = np.empty(len(seen), dtype=np.int32)
    for place in range(len(states)):
        index_of[states[place]] = place
    entering = np.zeros(len(states), dtype=np.int64)
    for to in edges_to:
        if to >= 0:
            entering[index_of[to]] += 1
    copies = np.zeros(len(states))
    copies[0] = 1
    edge_start = np.searchsorted(np.array(edges_from, dtype=np.int64), np.arange(len(states) + 1))
    head, tail = 0, 0
    for place in range(len(states)):
        if entering[place] == 0:
            number[tail] = place
            tail += 1
    while head < tail:
        place = number[head]
        head += 1
        for edge in range(edge_start[place], edge_start[place + 1]):
            to = edges_to[edge]
            if to >= 0:
                after = index_of[to]
                copies[after] += copies[place]
                entering[after] -= 1
                if entering[after] == 0:
                    number[tail] = after
                    tail += 1
    endless = tail < len(states)
    for edge in range(len(edges_to)):
        to = edges_to[edge]
        if to < 0:
            count = 1.0 if endless else copies[edges_from[edge]]
            port = -1 - to
            if port >= len(ports.peer):
                tagged[ports.host_at[port - len(ports.peer)]] += count
            else:
                received[ports.host_at[port]] += count
    return endless


@jit_unless_small
def floods(host_port: Ints, turns: Bools, ports: Ports) -> tuple[Floats, Floats, Bools]:
    """Flood a frame from every host: (H, H) copies without a tag and with one, and (H,) whether they circulate."""
    hosts, vlans = len(host_port), ports.member.shape[1]
    received, tagged = np.zeros((hosts, hosts)), np.zeros((hosts, hosts))
    endless = np.zeros(hosts, dtype=np.bool_)
    seen = np.full(len(ports.peer) * vlans, -1, dtype=np.int64)
    out = np.full((len(ports.start) - 1, vlans), UNKNOWN, dtype=np.int32)
    for host in range(hosts):
        endless[host] = flood(host_port[host], out, turns, seen, host, ports, received[host], tagged[host])
    return received, tagged, endless


@jit_unless_small
def pairs(
    host_port: Ints,
    entry_start: Longs,
    entry_switch: Ints,
    entry_vlan: Ints,
    entry_port: Ints,
    turns: Bools,
    ports: Ports,
    flooded: Floats,
    flooded_tagged: Floats,
    flooded_endless: Bools,
) -> tuple[Codes, Ints]:
    """Follow a frame of every ordered pair of hosts.

    `entry_start` (H + 1,) are offsets of the entries for each host; `flooded…` is what floods() has found, for
    destinations without any.

    Returns:
        (H, H) what becomes of it, and the port it was last sent by between switches, -1 for none.
    """
    hosts, vlans = len(host_port), ports.member.shape[1]
    status = np.zeros((hosts, hosts), dtype=np.int8)
    last = np.full((hosts, hosts), -1, dtype=np.int32)
    out = np.full((len(ports.start) - 1, vlans), UNKNOWN, dtype=np.int32)
    seen = np.full(len(ports.peer) * vlans, -1, dtype=np.int64)
    received, tagged = np.zeros(hosts), np.zeros(hosts)
    stamp = 0
    for end in range(hosts):
        low, high = entry_start[end], entry_start[end + 1]
        for entry in range(low, high):
            out[entry_switch[entry], entry_vlan[entry]] = entry_port[entry]
        for source in range(hosts):
            if source == end:
                continue
            at = host_port[source]
            vlan = ports.pvid[at]
            if vlan < 0 or (ports.filters[at] and not ports.member[at, vlan]):
                status[source, end] = DROPPED
                continue
            came = -1
            code = -1
            for _ in range(len(ports.peer) * 4 + 4):
                port = out[ports.switch_of[at], vlan]
                if port == UNKNOWN:
                    code = -2
                    break
                if port < 0 or port == at or not ports.member[port, vlan]:  # DEAD, or back
                    code = DROPPED
                    break
                if ports.host_at[port] >= 0:
                    here = DELIVERED if ports.untagged[port, vlan] else TAGGED
                    code = here if ports.host_at[port] == end else ELSEWHERE
                    break
                if ports.peer[port] < 0:
                    code = DROPPED
                    break
                if came >= 0:
                    turns[came, ports.rank[port]] = True
                came = port
                vlan = arrival(port, vlan, ports)
                if vlan < 0:
                    code = DROPPED
                    break
                at = ports.peer[port]
            if code == -1:
                code = LOOPS
            if code == -2:
                if low == high:
                    endless = flooded_endless[source]
                    copies, with_tag = flooded[source, end], flooded_tagged[source, end]
                else:
                    stamp += 1
                    endless = flood(host_port[source], out, turns, seen, stamp, ports, received, tagged)
                    copies, with_tag = received[end], tagged[end]
                if endless:
                    code = LOOPS
                elif copies > 1:
                    code = TWICE
                elif copies == 1:
                    code = DELIVERED
                else:
                    code = TAGGED if with_tag > 0 else DROPPED
            status[source, end] = code
            last[source, end] = came
        for entry in range(low, high):
            out[entry_switch[entry], entry_vlan[entry]] = UNKNOWN
    return status, last


@jit_unless_small
def flood_graph(ports: Ports) -> tuple[Longs, Ints, Longs]:
    """What floods do after each arrival by a port in a VLAN: the graph whose cycles are loops.

    Returns:
        Offsets and followers of the graph, and (N,) the arrival of each node as port·V + VLAN.
    """
    vlans = ports.member.shape[1]
    node = np.full(len(ports.peer) * vlans, -1, dtype=np.int32)
    count = 0
    for port in range(len(ports.peer)):
        if ports.peer[port] < 0:
            continue
        for vlan in range(vlans):
            if ports.member[port, vlan] or (not ports.filters[port] and ports.host_at[port] < 0):
                node[port * vlans + vlan] = count
                count += 1
    states = np.empty(count, dtype=np.int64)
    start = np.zeros(count + 1, dtype=np.int64)
    following = [np.int32(0)]
    following.pop()
    count = 0
    for state in range(len(node)):
        if node[state] < 0:
            continue
        at, vlan = state // vlans, state % vlans
        states[count] = state
        switch = ports.switch_of[at]
        for index in range(ports.start[switch], ports.start[switch + 1]):
            port = ports.listed[index]
            if port == at or ports.peer[port] < 0 or not ports.member[port, vlan] or not ports.sends[port]:
                continue
            after = arrival(port, vlan, ports)
            if after >= 0:
                following.append(node[ports.peer[port] * vlans + after])
        count += 1
        start[count] = len(following)
    return start, np.array(following, dtype=np.int32), states
