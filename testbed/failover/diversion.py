"""Which hosts a failure hits, and the backup VLAN that each takes at once."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from testbed.failover.damage import Damage, islands
from testbed.failover.tables import Tables, tree_routes
from testbed.model import Bools, Ints, Topology, Violation
from testbed.topologies.connected import components
from testbed.verify.deadlock import find_deadlock
from testbed.verify.tree_delivery import check_tree_delivery


@dataclass(frozen=True, slots=True, eq=False)
class Diversion:
    """The state between a failure and the new tables.

    Attributes:
        hit: (H, H) True for pairs that lost their path though the fabric still connects them.
        backup: (H,) index of the backup VLAN a host takes; -1 = it keeps its own.
        waiting: (H, H) True for those of the pairs hit that no backup path helps: they wait for new tables.
    """

    hit: Bools
    backup: Ints
    waiting: Bools


def divert(topology: Topology, tables: Tables, damage: Damage) -> Diversion:
    """Give every host that a failure hits the backup VLAN in which it reaches most of what is alive.

    A path in a tree never crosses a bridge and comes back: so a bridge's death moves no host.
    """
    alive = islands(topology, damage.links)
    own = _lost(topology, tables.vlans.tagged_links, damage, alive)
    spare = _lost(topology, tables.backups.tagged_links, damage, alive)
    hosts = np.arange(topology.host_count)
    hit = own[tables.vlans.pvid, hosts]
    options = np.concatenate([hit[None], spare])
    # The first of those that lose least; a host that loses nothing stays.
    best = options.sum(axis=2).argmin(axis=0)
    return Diversion(hit, (best - 1).astype(np.int32), options[best, hosts])


def diversion_deadlock(topology: Topology, tables: Tables, diversion: Diversion) -> list[Violation]:
    """A cycle of channels that frames on their old and on backup paths could close together, or nothing.

    With link-level flow control such a cycle can deadlock (see transition_deadlock); switches that drop do not mind.
    """
    backups = np.unique(diversion.backup[diversion.backup >= 0]).tolist()
    taken = [check_tree_delivery(topology, tables.routes, tables.vlans)[1]]
    for number in backups:
        plan = replace(tables.backups, pvid=np.full_like(tables.backups.pvid, number))
        taken.append(check_tree_delivery(topology, tree_routes(topology, plan.tagged_links[number]), plan)[1])
    return find_deadlock(topology, np.unique(np.concatenate(taken), axis=0)) if backups else []


def _lost(topology: Topology, tagged: Bools, damage: Damage, alive: Ints) -> Bools:
    """(V, H, H) True where a frame from host to host in a VLAN does not arrive although the fabric connects them."""
    of_host = topology.host_switch
    together = alive[of_host][:, None] == alive[of_host][None, :]
    mute = damage.hosts[:, None] | damage.hosts[None, :]
    lost = np.zeros((len(tagged), topology.host_count, topology.host_count), dtype=bool)
    for vlan in np.flatnonzero((tagged & damage.links).any(axis=1)).tolist():
        part = components(topology.switch_count, topology.links[tagged[vlan] & ~damage.links])[0][of_host]
        lost[vlan] = together & (part[:, None] != part[None, :]) & ~mute
    return lost
