"""Failed elements of a fabric at a moment, and which switches are still connected."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from testbed.base.model import Bools, Ints, Topology
from testbed.fabric.topologies.build_topology import components
from testbed.fabric.topologies.faults import link_called


@dataclass(frozen=True, slots=True, eq=False)
class FailedElements:
    """Failed links, host ports and switches. A failed switch has no living link, and its hosts cannot send."""

    links: Bools  # (L,) True where a link is dead, by itself or with a switch at its end
    hosts: Bools  # (H,) True where a host is cut off: its port is dead, or its switch
    switches: Bools  # (S,) True where a switch is dead

    @property
    def has_failed(self) -> bool:
        """Whether anything has failed."""
        return bool(self.links.any() or self.hosts.any() or self.switches.any())

    def same_as(self, other: FailedElements) -> bool:
        """Whether the same things are dead."""
        mine, its = ((d.links, d.hosts, d.switches) for d in (self, other))
        return all(bool((a == b).all()) for a, b in zip(mine, its, strict=True))


def failed_elements(
    topology: Topology, links: Collection[int] = (), hosts: Collection[int] = (), switches: Collection[int] = ()
) -> FailedElements:
    """What is dead when these links, host ports and switches have failed."""
    dead_links, dead_hosts = np.zeros(topology.link_count, dtype=bool), np.zeros(topology.host_count, dtype=bool)
    dead_switches = np.zeros(topology.switch_count, dtype=bool)
    dead_links[list(links)] = True
    dead_hosts[list(hosts)] = True
    dead_switches[list(switches)] = True
    if topology.link_count:
        dead_links |= dead_switches[topology.links].any(axis=1)
    dead_hosts |= dead_switches[topology.host_switch]
    return FailedElements(dead_links, dead_hosts, dead_switches)


def find_islands(topology: Topology, dead: Bools) -> Ints:
    """(S,) the lowest switch of the part that each switch is in, without the links `dead` (L,)."""
    return components(topology.switch_count, topology.links[~dead])[0]


def cut_off(topology: Topology, failed: FailedElements) -> Bools:
    """(H, H) True for pairs of different hosts that nothing connects any more."""
    part = find_islands(topology, failed.links)[topology.host_switch]
    cut = (part[:, None] != part[None, :]) | failed.hosts[:, None] | failed.hosts[None, :]
    np.fill_diagonal(cut, val=False)
    found: Bools = cut
    return found


def words(topology: Topology, failed: FailedElements) -> list[str]:
    """What is dead, as people name it: switches, links that did not die with one, hosts' ports."""
    with_switch = failed.switches[topology.links].any(axis=1) if topology.link_count else failed.links
    alone = np.flatnonzero(failed.links & ~with_switch).tolist()
    ports = np.flatnonzero(failed.hosts & ~failed.switches[topology.host_switch]).tolist()
    return [
        *(f"switch {topology.switch_name(switch)}" for switch in np.flatnonzero(failed.switches).tolist()),
        *(f"link {link_called(topology, link)}" for link in alone),
        *(f"port of {topology.host_name(host)}" for host in ports),
    ]
