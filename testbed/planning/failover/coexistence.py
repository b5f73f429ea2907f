"""Tables that are in use at one time around an event, and cycles of channels that their frames could close together.

From a failure until new tables are in, frames go on old paths and on backup paths. When hosts move to the new tables,
frames on all three are under way until the old ones have arrived; after a repair there are no backup paths, but old and
new ones. Each of the tables is free of deadlock by itself, which says nothing of two of them. A cycle that needs a dead
link is named last, and as such: nothing waits for what is dead, but it can come back before the new tables are in.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from testbed.base.model import Bools, Ints, Topology
from testbed.fabric.verify.deadlock import find_deadlock
from testbed.fabric.verify.delivery import check_tree_delivery
from testbed.planning.failover.diversion import Diversion
from testbed.planning.failover.tables import Tables, tree_routes

OLD, BACKUP, NEW = "old", "backup", "new"


@dataclass(frozen=True, slots=True)
class SharedCycle:
    """A cycle that no tables have by themselves. Only links that pause can deadlock by it; others drop."""

    paths: tuple[str, ...]  # which are in use together: OLD, BACKUP, NEW
    cycle: str  # the sentence that names the channels
    dead: str = ""  # a channel of it that is dead, so that it closes only if that comes back meanwhile

    @property
    def words(self) -> str:
        """Which paths, as people say it: `old and new`."""
        return f"{', '.join(self.paths[:-1])} and {self.paths[-1]}"

    @property
    def sentence(self) -> str:
        """The whole of it."""
        only = f"; only if {self.dead}, which is dead, comes back before the new tables are in" if self.dead else ""
        return f"frames on {self.words} paths together: {self.cycle}{only}"


def shared_cycles(
    topology: Topology, now: Tables, diversion: Diversion, after: Tables, dead: Bools
) -> tuple[SharedCycle, ...]:
    """A cycle for each set of tables that are in use together; of three together only where no two have one.

    `now` were installed when the event came, `after` are made for what it leaves; (L,) `dead` are the links that are.
    """
    taken = {OLD: _dependencies(topology, now)}
    if (diversion.backup >= 0).any():
        taken[BACKUP] = _of_backups(topology, now, diversion)
    if after is not now:
        taken[NEW] = _dependencies(topology, after)
    two = [_cycle(topology, taken, paths, dead) for paths in ((OLD, BACKUP), (OLD, NEW), (BACKUP, NEW))]
    three = _cycle(topology, taken, (OLD, BACKUP, NEW), dead)
    found = [cycle for cycle in two if cycle is not None]
    if three is not None and (not found or (not three.dead and all(cycle.dead for cycle in found))):
        found.append(three)
    return tuple(sorted(found, key=lambda cycle: bool(cycle.dead)))


def _cycle(topology: Topology, taken: dict[str, Ints], paths: tuple[str, ...], dead: Bools) -> SharedCycle | None:
    if not taken.keys() >= {*paths}:
        return None
    pairs = np.unique(np.concatenate([taken[one] for one in paths]), axis=0)
    alive = pairs[~dead[pairs // 2].any(axis=1)]
    for violation in find_deadlock(topology, alive):
        return SharedCycle(paths, violation.sentence)
    for violation in find_deadlock(topology, pairs):
        gone = {topology.channel_name(channel) for channel in np.flatnonzero(np.repeat(dead, 2)).tolist()}
        return SharedCycle(paths, violation.sentence, next(name for name in violation.witness if name in gone))
    return None


def _dependencies(topology: Topology, tables: Tables) -> Ints:
    """(D, 2) channels that some path takes one after the other."""
    return check_tree_delivery(topology, tables.routes, tables.vlans)[1]


def _of_backups(topology: Topology, tables: Tables, diversion: Diversion) -> Ints:
    """Likewise of the backup trees that hosts take."""
    found = []
    for number in np.unique(diversion.backup[diversion.backup >= 0]).tolist():
        plan = replace(tables.backups, pvid=np.full_like(tables.backups.pvid, number))
        found.append(check_tree_delivery(topology, tree_routes(topology, plan.tagged_links[number]), plan)[1])
    return np.concatenate(found)
