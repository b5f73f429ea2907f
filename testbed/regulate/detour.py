"""A second way for a pair of hosts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from testbed.errors import InputError, Problem, did_you_mean
from testbed.plan import Plan
from testbed.regulate.choice import plan_without
from testbed.routing.paths import path


@dataclass(frozen=True, slots=True)
class Detour:
    """A pair of hosts with two ways.

    Attributes:
        source: host.
        destination: host.
        link: the first link of its path, which the second way does without.
        plan: of the second way.
    """

    source: int
    destination: int
    link: int
    plan: Plan


def find_detour(plan: Plan, pair: str | None) -> Detour:
    """A second way for a pair of hosts; without a name for the first host and the one half the fabric on.

    Raises:
        InputError: there are no such hosts, or no second way.
        VerificationError: the second plan breaks an invariant.
    """
    topology = plan.topology
    source, destination = _hosts(plan, pair)
    channels = path(topology, plan.routes, source, destination)
    if not channels:
        names = f"{topology.host_name(source)} and {topology.host_name(destination)}"
        raise InputError.one("--pair", f"{names} hang on one switch, so there is no path to change")
    link = channels[0] // 2
    off = np.zeros(topology.link_count, dtype=bool)
    off[link] = True
    return Detour(source, destination, link, plan_without(plan, off))


def _hosts(plan: Plan, pair: str | None) -> tuple[int, int]:
    topology = plan.topology
    names = [topology.host_name(host) for host in range(topology.host_count)]
    if pair is None:
        return 0, topology.host_count // 2
    given = [name.strip() for name in pair.split(",")]
    if len(given) != 2 or given[0] == given[1]:
        raise InputError.one("--pair", f'should be two hosts such as {names[0]},{names[-1]}, not "{pair}"')
    problems = [
        Problem("--pair", f'there is no host "{name}", only {names[0]} to {names[-1]}.{did_you_mean(name, names)}')
        for name in given
        if name not in names
    ]
    if problems:
        raise InputError(problems)
    return names.index(given[0]), names.index(given[1])
