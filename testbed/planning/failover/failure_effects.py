"""Which hosts a failure hits and the backup VLAN that each takes at once; and what each event of a timeline leaves."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypedDict

import numpy as np

from testbed.base.model import Bools, Routes, Topology, VlanPlan
from testbed.planning.failover.coexistence import SharedCycle, shared_cycles
from testbed.planning.failover.diversion import Diversion, divert
from testbed.planning.failover.events import Change
from testbed.planning.failover.failed_elements import FailedElements, cut_off, failed_elements, words
from testbed.planning.failover.tables import Tables, recovered_tables, routings, whole_tables


class EventFigures(TypedDict):
    """What an event leaves, in names and numbers of pairs."""

    event: str
    dead: list[str]
    pairs_diverted: int
    hosts_diverted: int
    cut_off: list[str]
    without_backup: list[str]
    routing_after: str
    deadlock: list[str]


class FailureFigures(EventFigures):
    """Likewise of a load, by its number."""

    load: int


@dataclass(frozen=True, slots=True, eq=False)
class Outlook:
    """What an event leaves, if those before it have been overcome."""

    change: Change  # the event
    failed: FailedElements  # all that is dead after it
    cut: Bools  # (H, H) True for pairs that nothing connects any more
    diversion: Diversion  # hosts that take backup paths, and pairs that have none
    after: Tables  # the tables that are made then
    cycles: tuple[SharedCycle, ...] = ()  # that tables in use together could close; they matter where links pause

    def as_dict(self, topology: Topology) -> EventFigures:
        """Return plain data."""
        return {
            "event": str(self.change.event),
            "dead": words(topology, self.failed),
            "pairs_diverted": int((self.diversion.hit & ~self.diversion.waiting).sum()),
            "hosts_diverted": int((self.diversion.backup >= 0).sum()),
            "cut_off": pair_names(topology, self.cut),
            "without_backup": pair_names(topology, self.diversion.waiting),
            "routing_after": self.after.routing,
            "deadlock": [cycle.sentence for cycle in self.cycles],
        }


def pair_names(topology: Topology, pairs: Bools) -> list[str]:
    """`h1→h2` for each pair of a matrix (H, H)."""
    rows = zip(*np.nonzero(pairs), strict=True)
    return [f"{topology.host_name(int(source))}→{topology.host_name(int(end))}" for source, end in rows]


def failed_after(topology: Topology, changes: Iterable[Change]) -> FailedElements:
    """What is dead after some changes."""
    links, hosts, switches = set[int](), set[int](), set[int]()
    for change in changes:
        for dead, members in ((links, change.links), (hosts, change.hosts), (switches, change.switches)):
            if change.event.action in ("down", "kill"):
                dead.update(members)
            else:
                dead.difference_update(members)
    return failed_elements(topology, links, hosts, switches)


def outlooks(
    topology: Topology, routes: Routes, vlans: VlanPlan, routing: tuple[str, Any], changes: Sequence[Change]
) -> list[Outlook]:
    """What each event leaves, if the new tables of the one before were in; events of one time count as one."""
    ways = routings(topology, *routing)
    whole = now = whole_tables(topology, routes, vlans, routing[0])
    found = []
    for number, change in enumerate(changes):
        failed = failed_after(topology, changes[: number + 1])
        diversion = divert(topology, now, failed)
        after = recovered_tables(topology, whole, now, failed, ways)
        cycles = shared_cycles(topology, now, diversion, after, failed.links)
        found.append(Outlook(change, failed, cut_off(topology, failed), diversion, after, cycles))
        if number + 1 == len(changes) or changes[number + 1].event.at > change.event.at:
            now = after
    return found
