"""Collectives move what they should: all data gets everywhere, in as many bytes and steps as their papers say."""

from __future__ import annotations

import numpy as np
import pytest

from testbed.fabric.collectives import COLLECTIVES, CollectiveError, make_steps, waits_of

REDUCES = [name for name in COLLECTIVES if name.endswith("all_reduce")]


def spread(steps, hosts):
    """(H,) hosts whose data can be in what each host has when all is over."""
    has = [{host} for host in range(hosts)]
    for step in range(int(steps.step.max()) + 1):
        now = np.flatnonzero(steps.step == step).tolist()
        sent = [(int(steps.destination[m]), has[int(steps.source[m])].copy()) for m in now]
        for host, data in sent:
            has[host] |= data
    return has


@pytest.mark.parametrize("name", [*REDUCES, "ring_all_gather", "ring_reduce_scatter", "stepwise_all_to_all"])
@pytest.mark.parametrize("hosts", [2, 4, 8, 16, 5, 7, 12])
def test_everybodys_data_gets_everywhere(name, hosts):
    if COLLECTIVES[name].power_of_two and hosts & (hosts - 1):
        with pytest.raises(CollectiveError, match=f'"{name}" needs a power of two of hosts, such as .*, not {hosts}'):
            make_steps(name, hosts, 1 << 20)
        return
    assert spread(make_steps(name, hosts, 1 << 20), hosts) == [set(range(hosts))] * hosts


@pytest.mark.parametrize("hosts", [4, 8, 16])
def test_bytes_and_steps_are_those_of_the_closed_forms(hosts):
    size, rounds = 1 << 20, hosts.bit_length() - 1
    for name, each, count in (
        ("ring_all_reduce", 2 * (hosts - 1) * size // hosts, 2 * (hosts - 1)),
        ("ring_reduce_scatter", (hosts - 1) * size // hosts, hosts - 1),
        ("ring_all_gather", (hosts - 1) * size // hosts, hosts - 1),
        ("halving_all_reduce", 2 * (hosts - 1) * size // hosts, 2 * rounds),
        ("swing_all_reduce", 2 * (hosts - 1) * size // hosts, 2 * rounds),
        ("stepwise_all_to_all", (hosts - 1) * size, hosts - 1),
    ):
        steps = make_steps(name, hosts, size)
        assert np.bincount(steps.source, steps.size).tolist() == [each] * hosts, name
        assert int(steps.step.max()) + 1 == count
        assert len(np.unique(np.stack([steps.step, steps.destination]), axis=1).T) == len(steps.step)
    tree = make_steps("tree_all_reduce", hosts, size)
    assert len(tree.step) == 2 * (hosts - 1)
    assert (int(tree.size.sum()), int(tree.step.max()) + 1) == (2 * (hosts - 1) * size, 2 * rounds)
    incast = make_steps("incast", hosts, size)
    assert (incast.destination == 0).all()
    assert len(incast.step) == hosts - 1


def test_partners_of_swing_are_1_1_3_5_apart_and_each_others():
    steps = make_steps("swing_all_reduce", 16, 1 << 20)
    apart = []
    for step in range(4):
        now = steps.step == step
        pairs = dict(zip(steps.source[now].tolist(), steps.destination[now].tolist(), strict=True))
        assert all(pairs[pairs[host]] == host for host in pairs)
        apart.append(min((pairs[0] - 0) % 16, (0 - pairs[0]) % 16))
    assert apart == [1, 1, 3, 5]


@pytest.mark.parametrize("name", COLLECTIVES)
def test_a_message_waits_for_all_its_host_has_received_before(name):
    steps = make_steps(name, 8, 1 << 12)
    waits = waits_of(steps)
    before: dict[int, set[int]] = {message: set() for message in range(len(steps.step))}
    for start, lists in ((waits.arrived_start, waits.arrived), (waits.released_start, waits.released)):
        for message in range(len(steps.step)):
            for after in lists[start[message] : start[message + 1]].tolist():
                before[after].add(message)
    assert [len(before[message]) for message in before] == waits.count.tolist()
    for message, direct in before.items():
        seen, waiting = set(), [*direct]
        while waiting:
            one = waiting.pop()
            if one not in seen:
                seen.add(one)
                waiting += before[one]
        host, step = steps.source[message], steps.step[message]
        received = np.flatnonzero((steps.destination == host) & (steps.step < step)).tolist()
        assert set(received) <= seen
        assert all(steps.step[one] < step for one in seen)


def test_one_host_alone_has_nobody_to_reduce_with():
    with pytest.raises(CollectiveError, match="needs two hosts or more"):
        make_steps("ring_all_reduce", 1, 10)
