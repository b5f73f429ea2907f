"""How a lab's switches are divided among switch daemons."""

from __future__ import annotations

from collections.abc import Mapping

from testbed.emulate.requests import BuildOrder

# Measured with `python -m benchmarks data-plane`; see docs/decisions/0016-several-switch-daemons.md.
_PORTS_WORTH_A_DAEMON = 16


def switch_ports(order: BuildOrder) -> dict[str, int]:
    """Number of ports of each switch that is to be built."""
    ports = dict.fromkeys(order.switches, 0)
    for host in order.hosts:
        ports[host.switch] += 1
    for link in order.links:
        for switch, _ in link.ends:
            ports[switch] += 1
    return ports


def daemon_count(wanted: int | str, datapath: str, processors: int, ports: Mapping[str, int]) -> int:
    """How many daemons a lab gets.

    The userspace datapath works in one thread of its daemon, so that a daemon a processor uses all of them. The
    kernel's datapath does not work in the daemon.

    Args:
        wanted: a number, or `auto`.
        datapath: `kernel` or `userspace`.
        processors: that the lab may use.
        ports: switch → number of its ports.
    """
    if wanted != "auto":
        return int(wanted)
    if datapath == "kernel":
        return 1
    return max(1, min(processors, len(ports), sum(ports.values()) // _PORTS_WORTH_A_DAEMON))


def divide(ports: Mapping[str, int], count: int) -> list[list[str]]:
    """Divide switches in their order into shares with about as many ports each.

    Neighbours in order are mostly neighbours in the fabric, and a frame that stays with its daemon is cheaper.

    Args:
        ports: switch → number of its ports.
        count: of shares, none of which is empty; at most one a switch.
    """
    names = list(ports)
    shares: list[list[str]] = []
    left = sum(ports.values())
    start = 0
    for number in range(count):
        others = count - number - 1
        fair, share, end = left / (others + 1), 0, start
        # Take the next switch while that comes nearer to a fair share, but leave one for each of the others.
        while end < len(names) - others and (others == 0 or end == start or share + ports[names[end]] / 2 <= fair):
            share += ports[names[end]]
            end += 1
        shares.append(names[start:end])
        left -= share
        start = end
    return shares
