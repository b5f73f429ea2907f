"""Hosts by the names that people give: a host's own, or that of its switch."""

from __future__ import annotations

import numpy as np

from testbed.errors import InputError, Problem, did_you_mean
from testbed.model import Topology


def find_hosts(topology: Topology, source: str, destination: str) -> tuple[tuple[int, int], tuple[str, ...]]:
    """Find two different hosts.

    Each is named by itself, or by its switch or the switch's label, which means the first host on it.

    Returns:
        both host numbers, and a sentence for each switch that was named instead of a host.

    Raises:
        InputError: everything that is wrong with the names.
    """
    problems: list[Problem] = []
    notes: list[str] = []
    hosts = [_find(topology, place, name, problems, notes) for place, name in (("SRC", source), ("DST", destination))]
    if not problems and hosts[0] == hosts[1]:
        problems.append(Problem("DST", f"both are {topology.host_name(hosts[0])}; name two different hosts"))
    if problems:
        raise InputError(problems)
    return (hosts[0], hosts[1]), tuple(dict.fromkeys(notes))


def _find(topology: Topology, place: str, name: str, problems: list[Problem], notes: list[str]) -> int:
    hosts = {topology.host_name(host): host for host in range(topology.host_count)}
    if name in hosts:
        return hosts[name]
    switches = {topology.switch_name(switch): switch for switch in range(topology.switch_count)}
    labels = {label: switch for switch, label in enumerate(topology.switch_labels)}
    if name not in switches and name not in labels:
        known = f"{_range(list(hosts))}, switches {_range(list(switches))}"
        problems.append(
            Problem(
                place,
                f'there is no host or switch "{name}".{did_you_mean(name, [*hosts, *switches, *labels])} '
                f"Known: hosts {known}{', and the names of the fabric file' * bool(labels)}",
            )
        )
        return -1
    switch = switches[name] if name in switches else labels[name]
    there = np.flatnonzero(topology.host_switch == switch)
    if not len(there):
        problems.append(Problem(place, f"{name} has no host, so no path begins or ends there; name another switch"))
        return -1
    host = int(there[0])
    notes.append(
        f"{topology.host_name(host)} is taken for {name}, the first of its {len(there)} hosts"
        if len(there) > 1
        else f"{topology.host_name(host)} is the host on {name}"
    )
    return host


def _range(names: list[str]) -> str:
    return f"{names[0]} to {names[-1]}" if len(names) > 2 else " and ".join(names)
