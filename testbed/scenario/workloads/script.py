"""A program of one's own in some hosts at once: what it is told, and how long it takes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated

from annotated_types import Ge, Gt, Le, MinLen

from testbed.base.errors import Problem, did_you_mean
from testbed.base.messages import Process
from testbed.base.model import Topology, host_ip

WHY_NOT_SIMULATED = "the program would have to run"
METRICS = {
    "script_lab_time": "Program, all hosts (not dilated)",
    "script_lab_host_time": "Program of a host (not dilated)",
    "script_bytes_crossed": "Bytes that its hosts sent",
}


@dataclass(frozen=True, slots=True)
class Script:
    """A program or script of one's own, in some hosts at once."""

    run: str  # its file, seen from the scenario; must be executable. Everything about the lab is in its environment.
    args: tuple[str, ...] = ()  # its command line; names of hosts become their addresses
    # hosts that it runs in, all of them started together; none = every host
    hosts: Annotated[tuple[str, ...], MinLen(1)] | None = field(
        default=None, metadata={"wanted": "a list of hosts such as [h1, h5]", "entry": "a host such as h1"}
    )
    # laboratory seconds after which it is ended and the load has failed
    time_limit: Annotated[float, Gt(0), Le(86400)] = 300.0
    repeats: Annotated[int, Ge(1), Le(1000)] = 1  # how often the whole load is run


def host_problems(spec: Script, topology: Topology) -> list[Problem]:
    """Hosts that there are not, and those that are listed twice."""
    if spec.hosts is None:
        return []
    names = [topology.host_name(host) for host in range(topology.host_count)]
    found = [
        Problem(f"hosts.{number}", f'there is no host "{name}".{did_you_mean(name, names)}')
        for number, name in enumerate(spec.hosts)
        if name not in names
    ]
    twice = [number for number, name in enumerate(spec.hosts) if name in spec.hosts[:number]]
    return found + [Problem(f"hosts.{number}", f'"{spec.hosts[number]}" is listed twice') for number in twice]


def outside(spec: Script) -> list[Problem]:
    """What it needs beside the project."""
    return [Problem("run", f'"{spec.run}" is a file of this machine')]


def hosts_of(spec: Script, topology: Topology) -> list[int]:
    """Hosts that it runs in, in the order of the scenario."""
    if spec.hosts is None:
        return list(range(topology.host_count))
    number = {topology.host_name(host): host for host in range(topology.host_count)}
    return [number[name] for name in spec.hosts]


def commands(spec: Script, file: str, topology: Topology, dilation: float) -> list[Process]:
    """The processes, one a host, in the order of hosts_of().

    Args:
        spec: what is asked for.
        file: its path as hosts see it.
        topology: with the hosts.
        dilation: of the lab.
    """
    hosts = hosts_of(spec, topology)
    addresses = {topology.host_name(host): host_ip(host) for host in range(topology.host_count)}
    argv = (file, *(addresses.get(word, word) for word in spec.args))
    shared = {
        "TESTBED_HOSTS": " ".join(topology.host_name(host) for host in hosts),
        "TESTBED_ADDRESSES": " ".join(host_ip(host) for host in hosts),
        "TESTBED_DILATION": f"{dilation:g}",
    }
    return [_process(topology, host, index, argv, shared) for index, host in enumerate(hosts)]


def _process(topology: Topology, host: int, index: int, argv: Sequence[str], shared: dict[str, str]) -> Process:
    name = topology.host_name(host)
    own = {"TESTBED_HOST": name, "TESTBED_ADDRESS": host_ip(host), "TESTBED_INDEX": str(index)}
    return Process(name, name, tuple(argv), env={**shared, **own})
