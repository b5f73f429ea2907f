"""What each event of a timeline leaves of a fabric, worked out beforehand."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from testbed.failover.damage import Damage, cut_off, damage_of, words
from testbed.failover.diversion import Diversion, diversion_deadlock, divert
from testbed.failover.names import Change
from testbed.failover.tables import Tables, recovered_tables, routings, whole_tables
from testbed.model import Bools, Routes, Topology, VlanPlan


@dataclass(frozen=True, slots=True, eq=False)
class Outlook:
    """What an event leaves, if those before it have been overcome.

    Attributes:
        change: the event.
        damage: all that is dead after it.
        cut: (H, H) True for pairs that nothing connects any more.
        diversion: hosts that take backup paths, and pairs that have none.
        after: the tables that are made then.
        deadlock: sentences on cycles that old and backup paths could close together, which matter with flow control.
    """

    change: Change
    damage: Damage
    cut: Bools
    diversion: Diversion
    after: Tables
    deadlock: tuple[str, ...] = ()

    def as_dict(self, topology: Topology) -> dict[str, Any]:
        """Return plain data: names, numbers of pairs, and the pairs that are cut off or have no backup."""
        return {
            "event": str(self.change.event),
            "dead": words(topology, self.damage),
            "pairs_diverted": int((self.diversion.hit & ~self.diversion.waiting).sum()),
            "hosts_diverted": int((self.diversion.backup >= 0).sum()),
            "cut_off": pair_names(topology, self.cut),
            "without_backup": pair_names(topology, self.diversion.waiting),
            "routing_after": self.after.routing,
            "deadlock": list(self.deadlock),
        }


def pair_names(topology: Topology, pairs: Bools) -> list[str]:
    """`h1→h2` for each pair of a matrix (H, H)."""
    rows = zip(*np.nonzero(pairs), strict=True)
    return [f"{topology.host_name(int(source))}→{topology.host_name(int(end))}" for source, end in rows]


def damage_after(topology: Topology, changes: Iterable[Change]) -> Damage:
    """What is dead after some changes."""
    links, hosts, switches = set[int](), set[int](), set[int]()
    for change in changes:
        for dead, members in ((links, change.links), (hosts, change.hosts), (switches, change.switches)):
            if change.event.action in ("down", "kill"):
                dead.update(members)
            else:
                dead.difference_update(members)
    return damage_of(topology, links, hosts, switches)


def outlooks(
    topology: Topology, routes: Routes, vlans: VlanPlan, routing: tuple[str, Any], changes: Sequence[Change]
) -> list[Outlook]:
    """What each event leaves, if the new tables of the one before were in; events of one time count as one.

    Args:
        topology: the fabric.
        routes: of the plan.
        vlans: of the plan.
        routing: the plan's kind of routing and its options.
        changes: in order.
    """
    ways = routings(topology, *routing)
    whole = now = whole_tables(topology, routes, vlans, routing[0])
    found = []
    for number, change in enumerate(changes):
        damage = damage_after(topology, changes[: number + 1])
        diversion = divert(topology, now, damage)
        after = recovered_tables(topology, whole, now, damage, ways)
        cycles = tuple(violation.sentence for violation in diversion_deadlock(topology, now, diversion))
        found.append(Outlook(change, damage, cut_off(topology, damage), diversion, after, cycles))
        if number + 1 == len(changes) or changes[number + 1].event.at > change.event.at:
            now = after
    return found
