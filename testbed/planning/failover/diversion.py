"""The backup VLAN that each host takes when something has failed, until new tables are in."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from testbed.base.model import Bools, Ints, Topology
from testbed.fabric.topologies.build_topology import components
from testbed.planning.failover.failed_elements import FailedElements, find_islands
from testbed.planning.failover.tables import Tables


@dataclass(frozen=True, slots=True, eq=False)
class Diversion:
    """The state between a failure and the new tables."""

    hit: Bools  # (H, H) True for pairs that lost their path though the fabric still connects them
    backup: Ints  # (H,) index of the backup VLAN a host takes; -1 = it keeps its own
    waiting: Bools  # (H, H) True for those of the pairs hit that no backup path helps: they wait for new tables


def divert(topology: Topology, tables: Tables, failed: FailedElements) -> Diversion:
    """Give every host that a failure hits the backup VLAN in which it reaches most of what is alive.

    A path in a tree never crosses a bridge and comes back: so a bridge's death moves no host.
    """
    alive = find_islands(topology, failed.links)
    own = _find_lost_pairs(topology, tables.vlans.tagged_links, failed, alive)
    spare = _find_lost_pairs(topology, tables.backups.tagged_links, failed, alive)
    hosts = np.arange(topology.host_count)
    hit = own[tables.vlans.pvid, hosts]
    options = np.concatenate([hit[None], spare])
    # The first of those that lose least; a host that loses nothing stays.
    best = options.sum(axis=2).argmin(axis=0)
    return Diversion(hit, (best - 1).astype(np.int32), options[best, hosts])


def _find_lost_pairs(topology: Topology, tagged: Bools, failed: FailedElements, alive: Ints) -> Bools:
    """(V, H, H) True where a frame from host to host in a VLAN does not arrive although the fabric connects them."""
    of_host = topology.host_switch
    together = alive[of_host][:, None] == alive[of_host][None, :]
    mute = failed.hosts[:, None] | failed.hosts[None, :]
    lost = np.zeros((len(tagged), topology.host_count, topology.host_count), dtype=bool)
    for vlan in np.flatnonzero((tagged & failed.links).any(axis=1)).tolist():
        part = components(topology.switch_count, topology.links[tagged[vlan] & ~failed.links])[0][of_host]
        lost[vlan] = together & (part[:, None] != part[None, :]) & ~mute
    return lost
