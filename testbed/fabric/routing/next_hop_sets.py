"""Sets of next hops: those on shortest paths, and the path that a hash of a flow picks from them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from testbed.base.model import Floats, Ints, NextHops, Paths, Topology
from testbed.fabric.kernels.forwarding import DELIVER, NEVER
from testbed.fabric.routing.channel_lookup import host_switches, leaving_channels

Hashes = npt.NDArray[np.uint64]
_UDP, _ROCE = 17, 4791  # protocol number, and destination port of RoCEv2
_FIRST_ADDRESS = 10 << 24
_STEP, _ONE, _TWO = (np.uint64(number) for number in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB))


def shortest_next_hops(topology: Topology) -> NextHops:
    """All next hops on shortest paths, parallel links each for itself, by switch and destination."""
    from testbed.fabric.kernels import sssp

    start, leaving = leaving_channels(topology)
    ends = host_switches(topology)
    hops = sssp.from_switches(ends, start, leaving, topology.channel_target)
    table = np.full((topology.switch_count, len(ends)), NEVER, dtype=np.int32)
    sets: list[Ints] = []
    for switch in range(topology.switch_count):
        own = np.sort(leaving[start[switch] : start[switch + 1]])
        nearer = hops[:, topology.channel_target[own]] == hops[:, switch, None] - 1
        packed, first, of_end = np.unique(np.packbits(nearer, axis=1), axis=0, return_index=True, return_inverse=True)
        del packed
        members = [own[nearer[end]] for end in first.tolist()]
        number = np.array([NEVER if not len(some) else len(sets) + place for place, some in enumerate(members)])
        # Sets without a member stand for the destination itself; they get no number.
        filled = [place for place, some in enumerate(members) if len(some)]
        number[filled] = len(sets) + np.arange(len(filled))
        sets += [members[place] for place in filled]
        table[switch] = number[of_end.reshape(-1)]
    table[ends, np.arange(len(ends))] = DELIVER
    none = np.full(len(ends), -1, dtype=np.int32)
    zero = np.zeros(1, dtype=np.int32)
    offsets = np.concatenate([[0], np.cumsum([len(some) for some in sets])]).astype(np.int64)
    hop = np.concatenate([np.zeros(0, dtype=np.int32), *sets]).astype(np.int32)
    return NextHops(ends.astype(np.int32), none, zero, zero.copy(), table, offsets, hop)


def hash_flows(topology: Topology, seed: int, source_port: int) -> Hashes:
    """(E·E,) hash of the 5-tuple of a flow of RoCEv2 between the first hosts of two switches.

    The function is SplitMix64; what a chip takes, a CRC mostly, spreads flows as evenly and is not the same.
    """
    ends, first = np.unique(topology.host_switch, return_index=True)
    address = (_FIRST_ADDRESS + 1 + first).astype(np.uint64)
    source, goal = np.repeat(address, len(ends)), np.tile(address, len(ends))
    ports = np.full(len(source), source_port << 32 | _ROCE << 8 | _UDP, dtype=np.uint64)
    return mix(mix(mix(np.full(len(source), seed, dtype=np.uint64)) ^ source), goal, ports)


def mix(*parts: Hashes) -> Hashes:
    """SplitMix64 of each number, of several parts one after the other."""
    found = np.zeros_like(parts[0])
    for part in parts:
        found = (found ^ part) + _STEP
        found = (found ^ (found >> np.uint64(30))) * _ONE
        found = (found ^ (found >> np.uint64(27))) * _TWO
        found ^= found >> np.uint64(31)
    return found


def hashed_paths(topology: Topology, hops: NextHops, flows: Hashes) -> Paths:
    """The path of each pair of switches with hosts: at each switch the next hop by the flow's hash and the switch.

    `flows`: (E·E,) hash of each pair. Every destination is one of switches, in one class, and no set leads back.
    """
    ends = host_switches(topology)
    count = len(ends)
    at = np.repeat(ends, count).astype(np.int64)
    key = np.tile(np.arange(count), count)
    pairs = np.flatnonzero(hops.table[at, key] >= 0)
    taken: list[tuple[Ints, Ints]] = []
    size = np.diff(hops.start)
    while len(pairs):
        group = hops.table[at[pairs], key[pairs]]
        drawn = mix(flows[pairs], at[pairs].astype(np.uint64)) % size[group].astype(np.uint64)
        channel = hops.hop[hops.start[group] + drawn.astype(np.int64)]
        taken.append((pairs.astype(np.int32), channel))
        at[pairs] = topology.channel_target[channel]
        pairs = pairs[hops.table[at[pairs], key[pairs]] >= 0]
    return _paths_of_steps(count * count, taken)


def _paths_of_steps(pairs: int, taken: Sequence[tuple[Ints, Ints]]) -> Paths:
    """Paths from the pairs that take a channel in each step, and those channels."""
    of_pair = np.concatenate([np.zeros(0, dtype=np.int32), *(step[0] for step in taken)])
    channel = np.concatenate([np.zeros(0, dtype=np.int32), *(step[1] for step in taken)])
    order = np.argsort(of_pair, kind="stable")  # steps are in order
    start = np.concatenate([[0], np.cumsum(np.bincount(of_pair, minlength=pairs))]).astype(np.int64)
    return Paths(start, channel[order].astype(np.int32))


def expected_load(topology: Topology, hops: NextHops, demand: Floats) -> Floats:
    """(C,) what each channel carries on average over all choices, where each switch takes each next hop as often.

    That is what a hash does of many flows, and sprayed packets do of each. `demand`: (E, K) what switches with hosts
    send to each destination; the choices do not loop, and there is one class.
    """
    from testbed.fabric.kernels import next_hop_sets

    channels = len(topology.channel_source)
    channel = hops.hop.astype(np.int64) % max(channels, 1)
    return next_hop_sets.split_evenly(
        np.ascontiguousarray(hops.table.T),
        hops.start,
        topology.channel_target[channel].astype(np.int64),
        channel,
        host_switches(topology).astype(np.int64),
        np.ascontiguousarray(demand.T, dtype=np.float64),
        channels,
    )
