"""Paths that were computed elsewhere, switch by switch, and paths that a function gives, channel by channel."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from testbed.base.errors import InputError, Problem, did_you_mean
from testbed.base.model import Paths, Routes, Topology
from testbed.fabric.routing.channel_lookup import explicit_routes, host_switches

_MAX_PROBLEMS = 20
_SHOWN = 5
# The name of a switch, perhaps with the plane and the layer of the link to it.
_STEP = re.compile(r"(?P<name>.*?)(?:#(?P<plane>[0-9]+))?(?:@(?P<layer>[0-7]))?$")


@dataclass(frozen=True, slots=True)
class ListedOptions:
    """Every path, as the switches on it. `file:` in place of `paths` names a JSON file that has them."""

    # one for every ordered pair of switches with hosts: names such as [s1, s2, s6], each after the first perhaps with
    # the plane (s2#1) and the layer (s2@1) of the link that leads to it
    paths: tuple[tuple[str, ...], ...] = field(
        metadata={"wanted": "a list such as [[s1, s2], [s2, s1]], or file: with a JSON file that has one"}
    )


def paths_of(topology: Topology, way: Callable[[int, int], Sequence[int]]) -> Paths:
    """Paths of all ordered pairs of switches with hosts, by a function that gives one.

    Args:
        topology: the network.
        way: virtual channels from a switch to another one, in order: `layer * C + channel`.
    """
    ends = host_switches(topology).tolist()
    ways = [way(source, goal) if source != goal else () for source in ends for goal in ends]
    start = np.concatenate([[0], np.cumsum([len(one) for one in ways])]).astype(np.int64)
    return Paths(start, np.array([hop for one in ways for hop in one], dtype=np.int32))


def route_listed(topology: Topology, options: ListedOptions) -> Routes:
    """Take the paths as they are.

    Raises:
        InputError: a switch or link that there is not, a pair listed twice or not at all; every problem found.
    """
    numbers = {topology.switch_name(switch): switch for switch in range(topology.switch_count)}
    numbers |= {label: switch for switch, label in enumerate(topology.switch_labels)}
    channel_of = {
        (
            int(topology.channel_source[channel]),
            int(topology.channel_target[channel]),
            int(topology.plane[channel // 2]),
        ): channel
        for channel in range(len(topology.channel_source))
    }
    ends = set(host_switches(topology).tolist())
    found: dict[tuple[int, int], list[int]] = {}
    problems: list[Problem] = []
    for number, names in enumerate(options.paths):
        place = f"routing.paths.{number}"
        hops: list[int] = []
        wrong = list(_hops(topology, names, numbers, channel_of, hops))
        problems += [Problem(place, sentence) for sentence in wrong]
        if wrong:
            continue
        pair = (numbers[names[0]], numbers[_parts(names[-1])[0]])
        words = f"{topology.switch_name(pair[0])} to {topology.switch_name(pair[1])}"
        if pair in found:
            problems.append(Problem(place, f"is a second path from {words}; list one"))
        elif not {*pair} <= ends:
            problems.append(Problem(place, f"is from {words}, and a switch without a host has no path"))
        found.setdefault(pair, hops)
    missing = [
        (one, other) for one in sorted(ends) for other in sorted(ends) if one != other and (one, other) not in found
    ]
    if missing and not problems:
        shown = ", ".join(f"{topology.switch_name(a)}→{topology.switch_name(b)}" for a, b in missing[:_SHOWN])
        more = " …" if len(missing) > _SHOWN else ""
        problems.append(
            Problem(
                "routing.paths", f"{len(missing)} of {len(ends) * (len(ends) - 1)} pairs have no path: {shown}{more}"
            )
        )
    if problems:
        raise InputError(problems[:_MAX_PROBLEMS])
    layers = 1 + max((hop // len(topology.channel_source) for hops in found.values() for hop in hops), default=0)
    return explicit_routes(topology, paths_of(topology, lambda one, other: found[one, other]), None, layers)


def _parts(step: str) -> tuple[str, int, int]:
    """Name, plane and layer."""
    match = _STEP.match(step)
    if match is None:
        return step, 0, 0
    return match["name"], int(match["plane"] or 0), int(match["layer"] or 0)


def _hops(
    topology: Topology,
    names: Sequence[str],
    numbers: dict[str, int],
    channel_of: dict[tuple[int, int, int], int],
    hops: list[int],
) -> Iterator[str]:
    """Every problem of a path; its virtual channels are appended to `hops`."""
    steps = [_parts(name) for name in names]
    if len(steps) < 2:
        yield "should have two switches or more, such as [s1, s2]"
    unknown = [name for name, _, _ in steps if name not in numbers]
    for name in dict.fromkeys(unknown):
        yield f'there is no switch "{name}".{did_you_mean(name, numbers)}'
    if unknown:
        return
    for (one, _, _), (other, plane, layer) in pairwise(steps):
        channel = channel_of.get((numbers[one], numbers[other], plane))
        if channel is None:
            yield f"{one} and {other} have no link" + (f" of plane {plane}" if plane else "")
        else:
            hops.append(layer * len(topology.channel_source) + channel)
    if not unknown and len(set(hops)) < len(hops):
        yield "takes a link twice in one direction, so it loops"
