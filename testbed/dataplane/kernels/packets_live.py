"""Switches that forward frames of real hosts by the plan's tables: PVID, members, entries, learning, floods.

802.1Q-2018: ingress rules and filtering 8.6.1-8.6.2, forwarding by the filtering database 8.6.3, learning 8.7, reserved
group addresses table 8-1, tags clause 9.
"""

from __future__ import annotations

import numpy as np

from testbed.base.ethernet import MIN_FRAME
from testbed.base.jit import jit_inner
from testbed.base.model import Longs, Octets
from testbed.dataplane.kernels.packets_hash import member_of
from testbed.dataplane.kernels.packets_links import append, release, start
from testbed.dataplane.kernels.packets_state import (
    DELIVERED,
    DISCARD,
    FLOOD,
    FREE,
    GLOBAL_VLANS,
    LINK_DOWN,
    LOCAL_VLANS,
    MADE,
    NO_ENTRY,
    NOT_MEMBER,
    PAUSE_OF_HOST,
    PRIORITIES,
    RESERVED,
    RUNT,
    TAGGED_AT_HOST,
    PacketFabric,
    PacketLive,
    PacketState,
)

_ADDRESSES, _HEADER = 12, 14


@jit_inner
def drop_frame(state: PacketState, live: PacketLive, frame: int, why: int) -> None:
    """Lose a frame outside a queue."""
    live.refused[why] += 1
    release(state, frame)


@jit_inner
def deliver_to_host(state: PacketState, live: PacketLive, frame: int, now: int) -> None:
    """A frame has arrived at its host, which is to be given it."""
    place = live.ends[0] & (len(live.given) - 1)
    live.given[place] = frame
    live.given_at[place] = now
    live.ends[0] += 1
    state.latencies[0] += now - state.birth[frame]
    state.counts[DELIVERED] += 1


@jit_inner
def put_tag_in(live: PacketLive, frame: int) -> int:
    """Put a frame's tag among its bytes, as it is on the wire; returns how many these are then."""
    size, data = int(live.length[frame]), live.data[frame]
    if live.tag[frame] < 0:
        return size
    for place in range(size - 1, _ADDRESSES - 1, -1):
        data[place + 4] = data[place]
    tag = int(live.tag[frame])
    data[12], data[13] = 0x81, 0x00
    data[14], data[15] = ((tag >> 12) << 5 | (tag >> 8) & 0x0F) & 0xFF, tag & 0xFF
    return size + 4


@jit_inner
def receive_from_host(state: PacketState, live: PacketLive, host: int, frame: int, size: int, vlan: int) -> bool:
    """Take in a frame that a host wants to send, whose bytes are in `data`; False where its port refuses it.

    A priority tag is taken off (VLAN 0 means no VLAN, 802.1Q 6.9.1), and what is too short is filled up. `vlan` is that
    of a tag which the host has put on it and which is not among its bytes; -1 = none.
    """
    data = live.data[frame]
    live.tag[frame] = vlan
    if size < _HEADER:
        live.refused[RUNT] += 1
        return False
    if data[12] == 0x81 and data[13] == 0x00 and size >= _HEADER + 4 and vlan < 0:
        vlan = int(data[14] & 0x0F) << 8 | int(data[15])
        if vlan:
            live.tag[frame] = vlan
        for place in range(_ADDRESSES, size - 4):
            data[place] = data[place + 4]
        size -= 4
    if live.tag[frame] >= 0:
        # Where switches learn, hosts teach them by tagged frames; ports of hosts that tag are members.
        number = int(live.tables.vlan_of[live.tag[frame]])
        if number < 0 or not (live.tables.learns or live.tables.host_tags[host, number]):
            live.refused[TAGGED_AT_HOST] += 1
            return False
    # As a host's card fills up what is shorter than the shortest frame; with zeros, whatever was there before.
    for place in range(size, MIN_FRAME):
        data[place] = 0
    live.length[frame] = max(size, MIN_FRAME)
    if data[0] == 0x01 and data[1] == 0x80 and data[2] == 0xC2 and data[3] == 0 and data[4] == 0 and data[5] < 0x10:
        pause = data[5] == 0x01 and data[12] == 0x88 and data[13] == 0x08
        live.refused[PAUSE_OF_HOST if pause else RESERVED] += 1
        return False
    state.counts[MADE] += 1
    live.memory[frame] = live.length[frame] if live.unit else 1
    state.holds[frame] = -1
    to = host_of(live, data, 0)
    if to >= 0:
        live.pairs[0, host, to] += live.length[frame]
        live.pairs[1, host, to] += 1
    return True


@jit_inner
def enqueue_frame(
    fabric: PacketFabric, state: PacketState, live: PacketLive, host: int, size: int, now: int, vlan: int
) -> bool:
    """Put the frame that a host wants to send into its queue; its bytes are in `data` of the next free frame.

    `vlan` as for receive_from_host().

    Returns:
        False where its port refuses it.
    """
    frame = int(state.free[state.counts[FREE] - 1])
    if not receive_from_host(state, live, host, frame, size, vlan):
        return False
    state.counts[FREE] -= 1
    state.birth[frame] = now
    append(state, None, live, None, fabric.virtual + host, frame, now)
    link = fabric.channels + host
    if not state.busy[link]:
        start(fabric, state, None, live, None, link, now)
    return True


@jit_inner
def host_of(live: PacketLive, data: Octets, place: int) -> int:
    """The host whose address is at a place of a frame, or -1."""
    if data[place] != 0x02 or data[place + 1] != 0x00:
        return -1
    number = 0
    for byte in range(2, 6):
        number = number << 8 | int(data[place + byte])
    return number - 1 if 0 < number <= len(live.tables.host_class) else -1


@jit_inner
def find_egress_ports(
    fabric: PacketFabric, state: PacketState, live: PacketLive, frame: int, node: int, now: int
) -> int:
    """Fill `chosen` with what a switch sends a frame by that came by a node, as in `next_hop`; returns how many.

    A frame that is sent nowhere is no more.
    """
    tables, data = live.tables, live.data[frame]
    from_host = node >= fabric.virtual
    channel = int(node % fabric.channels) if not from_host else int(node - fabric.virtual + fabric.channels)
    switch = int(tables.switch_of[channel])
    # Never back by the port of arrival, or by a link of its bundle.
    back = int(tables.arrive + node - fabric.virtual if from_host else tables.first[channel] ^ 1)
    if not from_host:
        kind = _class_of(live, frame, channel, switch)
    elif live.tag[frame] >= 0:
        kind = int(tables.vlan_of[live.tag[frame]] * tables.switches + switch)
    else:
        kind = int(tables.host_class[node - fabric.virtual])
    if kind == DISCARD:
        drop_frame(state, live, frame, NOT_MEMBER)
        return 0
    live.admitted[switch] += 1
    if tables.kind == GLOBAL_VLANS:
        live.tag[frame] = tables.vlan_id[kind // tables.switches]
    if tables.learns and not data[6] & 1:
        sender = host_of(live, data, 6)
        if sender >= 0:
            tables.next_hop[kind, sender] = back
            tables.learned[kind, sender] = now
    way, to = FLOOD, -1 if data[0] & 1 or kind < 0 else host_of(live, data, 0)
    if to >= 0 and not (tables.ageing and now - tables.learned[kind, to] >= tables.ageing):
        way = int(tables.next_hop[kind, to])
    count = 0
    if way == FLOOD:
        live.flooded[0] += 1
        row = kind if tables.by_class else switch
        for index in range(tables.flood_start[row], tables.flood_start[row + 1]):
            if tables.flood_channel[index] != back:
                live.chosen[count] = tables.flood_channel[index]
                count += 1
    elif way != DISCARD and (way if way >= tables.arrive else way % fabric.channels) != back:
        live.chosen[0] = way
        count = 1
    if count == 0:
        drop_frame(state, live, frame, NO_ENTRY)
    elif tables.bundled:
        count = _by_members(fabric, live, frame, count)
        if count == 0:
            drop_frame(state, live, frame, LINK_DOWN)
    return count


@jit_inner
def _by_members(fabric: PacketFabric, live: PacketLive, frame: int, count: int) -> int:
    """Put the link that a frame takes in place of each bundle in `chosen`; how many are left that work."""
    left = 0
    for number in range(count):
        hop = int(live.chosen[number])
        if hop < live.tables.arrive:
            layer, first = divmod(hop, fabric.channels)
            channel = member_of(live, frame, first)
            if channel < 0:
                continue
            hop = layer * fabric.channels + channel
        live.chosen[left] = hop
        left += 1
    return left


@jit_inner
def _class_of(live: PacketLive, frame: int, channel: int, switch: int) -> int:
    """What the ingress of a port makes of a frame that came by a channel: its class, FLOOD for none, or DISCARD."""
    tables, tag = live.tables, int(live.tag[frame])
    if tables.kind == GLOBAL_VLANS:
        vlan = int(tables.vlan_of[tag & 0xFFF]) if tag >= 0 else -1
        if vlan < 0 or not tables.member[channel, vlan]:
            return DISCARD
        return int(vlan * tables.switches + switch)
    layer = tag >> 12 if tables.kind == PRIORITIES else 0
    kind = int(tables.channel_class[layer, channel]) if layer < len(tables.channel_class) else -1
    if kind >= 0:
        return kind
    return FLOOD if tables.floods[channel] else DISCARD


@jit_inner
def set_vlan_tag(fabric: PacketFabric, live: PacketLive, frame: int, hop: int) -> int:
    """Give a frame the tag of the link it is sent by; returns the node of that.

    Args:
        fabric: the network.
        live: the frames.
        frame: as find_egress_ports() left it.
        hop: of `chosen`.
    """
    if hop >= live.tables.arrive:
        if live.tag[frame] >= 0:
            number = int(live.tables.vlan_of[live.tag[frame] & 0xFFF])
            if number < 0 or not live.tables.host_tags[hop - live.tables.arrive, number]:
                live.tag[frame] = -1
        return int(fabric.virtual + fabric.hosts + hop - live.tables.arrive)
    layer = hop // fabric.channels
    if live.tables.kind == LOCAL_VLANS:
        live.tag[frame] = -1
    elif live.tables.kind == PRIORITIES:
        live.tag[frame] = layer << 12 | live.tables.vlan_id[0]
    # Where links have but one priority, the layer goes with the tag alone.
    return int(hop if fabric.priorities > 1 else hop % fabric.channels)


def set_byte_times(fabric: PacketFabric, live: PacketLive, times: Longs) -> None:
    """Give links their rates, (K,) ps a byte, and find those whose frames need not be stored before they go on."""
    live.byte_time[:] = times
    if not live.cut_through:
        return
    channels, hosts, switch_of = fabric.channels, fabric.hosts, live.tables.switch_of
    fastest = np.full(live.tables.switches, np.iinfo(np.int64).max)
    np.minimum.at(fastest, switch_of[np.arange(channels) ^ 1], times[:channels])
    np.minimum.at(fastest, switch_of[channels:], times[channels + hosts :])
    live.cuts[: channels + hosts] = times[: channels + hosts] <= fastest[switch_of]
