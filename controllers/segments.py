"""Keep a fabric going when links, ports and switches die: backup paths at once, then new tables.

Two threads matter. The one that hears of a failure moves the hosts that it hits to backup VLANs, which are installed
already, and returns. The other works out tables for what is alive and installs them beside the old ones, moves the
hosts to them and takes away what is not needed any more; if something else dies meanwhile it begins anew.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from controllers.failures import FailureLog, FailureTracker
from controllers.fast_reconciler import FastReconciler
from controllers.refused import RefusedError
from controllers.saved_state import SavedState
from controllers.switches import SwitchError, Switches
from controllers.wire import by_switch
from testbed.errors import TestbedError
from testbed.failover.failed import FailedElements, cut_off, words
from testbed.failover.outlook import Diversion, divert
from testbed.failover.rules import backup_pvids, backup_rules, path_rules, sets_pvid
from testbed.failover.tables import Tables, compile_ahead, prove, recovered_tables, routings, whole_tables
from testbed.model import Rule, VlanPlan
from testbed.plan import Plan
from testbed.transition.steps import drain_seconds

_LOOK_EVERY = 0.01
# A switch that disconnects and is back within this was not dead; s.
HANG_UP_GRACE = 0.25


class SegmentReconciler(FastReconciler):
    """What switches should have while things die and come back.

    Args:
        plan: proved, of VLANs of the whole fabric.
        switches: conversations with them.
        rate: bit/s of a link, see Reconciler.
        memory: file that holds the state, so that a restart finds it; None = nothing is remembered.

    Raises:
        RefusedError: the plan cannot be kept going so.
    """

    def __init__(self, plan: Plan, switches: Switches, rate: float, memory: Path | None = None) -> None:
        super().__init__(plan, switches, rate)
        if not isinstance(plan.vlans, VlanPlan):
            raise RefusedError(
                f"paths move by PVIDs, which takes VLANs of the whole fabric (assignment fixed), not "
                f"{plan.scenario.assignment_kind}"
            )
        topology = self._topology = plan.topology
        self._memory = memory
        self._ways = routings(topology, plan.scenario.routing_kind, plan.scenario.routing)
        try:
            self._whole = whole_tables(topology, plan.routes, plan.vlans, plan.scenario.routing_kind)
        except TestbedError as error:
            raise RefusedError(str(error)) from error
        problems = prove(topology, self._whole)
        if problems:
            raise RefusedError(f"the backup paths are not safe: {problems[0].sentence}")
        self._state = threading.RLock()  # of all below
        self._tracker = FailureTracker(topology)
        self._damage = self._tracker.failed()
        self._settled = self._damage  # what the tables that are installed know of
        self._now = self._whole
        self._backup = np.full(topology.host_count, -1, dtype=np.int32)
        self._waiting = 0
        self._tidy = True  # nothing is left over from tables before
        self._count = 0
        self._failures = FailureLog(topology)
        self._phase = "steady"
        self._ready: dict[int, Diversion] = {}
        self._problem = ""
        self._wake = threading.Event()
        self._recall()
        self._pvids = backup_pvids(topology, self._now)
        self._want_only([*path_rules(topology, self._now), *backup_rules(topology, self._now)])
        self._get_ready()
        compile_ahead(topology, self._whole, self._ways)
        threading.Thread(target=self._work, daemon=True).start()

    def move_to(self, plan: Plan, off: Any, wake_up: float = 0.0, pause: float = 0.0) -> dict[str, Any]:
        """Refuse: this controller makes its own plans."""
        raise RefusedError("the segment manager makes its own tables from what is alive; use switch_tagged for others")

    # ------------------------------------------------------------------------------------------------ what is heard

    def bring_in_step(self, number: int) -> None:
        """As Reconciler.bring_in_step, and look which ports of the switch are down."""
        super().bring_in_step(number)
        heard = time.monotonic()
        try:
            ports = self.switches.ports(number)
        except SwitchError as error:
            self._failed(number, error)
            return
        with self._state:
            self._tracker.connected(number, ports)
            self._react(heard)

    def gone(self, number: int) -> None:
        """A switch has disconnected. If it is not back soon, it is dead."""
        super().gone(number)
        heard = time.monotonic()
        timer = threading.Timer(HANG_UP_GRACE, self._give_up, args=(number, heard))
        timer.daemon = True
        timer.start()

    def _give_up(self, number: int, heard: float) -> None:
        if number not in self.switches.connected():
            with self._state:
                self._tracker.dead.add(number)
                self._react(heard)

    def port_changed(self, number: int, port: int, *, down: bool) -> None:
        """A switch says that a port went down, or came up."""
        heard = time.monotonic()
        if not self._tracker.concerned(number, port):
            return
        with self._state:
            self._tracker.port_changed(number, port, down=down)
            self._react(heard)

    def _react(self, heard: float) -> None:
        """Divert the hosts that a new failure hits; the other thread does the rest."""
        before, failed = self._damage, self._tracker.failed()
        if failed.same_as(before):
            return
        worse = bool((failed.links & ~before.links).any())
        diversion = self._diversion(before, failed)
        moved = self._divert(diversion) if worse else 0
        sent = time.monotonic()
        self._damage, self._count = failed, self._count + 1
        self._waiting = int(diversion.waiting.sum())
        self._failures.add(before, failed, diversion, detected=heard, diverted=sent, hosts_moved=moved)
        self._phase = "diverted"
        self._wake.set()

    def _diversion(self, before: FailedElements, failed: FailedElements) -> Diversion:
        """Where hosts go; for one more link on tables that know all other failures this is known in advance."""
        new = np.flatnonzero(failed.links & ~before.links)
        if len(new) == 1 and before.same_as(self._settled):
            ready = self._ready.get(int(new[0]))
            if ready is not None:
                return ready
        return divert(self._topology, self._now, failed)

    def _divert(self, diversion: Diversion) -> int:
        """Give hosts their backup VLANs; returns how many moved."""
        moved = np.flatnonzero((diversion.backup != self._backup) & (diversion.backup >= 0))
        self._backup[moved] = diversion.backup[moved]
        self._tell(by_switch(self._pvids[int(self._backup[host])][host] for host in moved.tolist()))
        return len(moved)

    # --------------------------------------------------------------------------------------------------- new tables

    def _work(self) -> None:
        while True:
            self._wake.wait()
            self._wake.clear()
            try:
                while not self._recover():
                    pass
            except TestbedError as error:
                self._problem = f"no tables for what is alive: {error}"
            except Exception as error:  # this thread must go on; the status tells, and a run fails by it
                self._problem = f"{type(error).__name__}: {error}"

    def _recover(self) -> bool:
        """Install tables for what is alive; False where something happened meanwhile and it must begin anew."""
        with self._state:
            count, failed, now = self._count, self._damage, self._now
            if self._tidy and failed.same_as(self._settled) and (self._backup < 0).all():
                self._finish(count)
                return True
            self._phase = "new tables"
        after = recovered_tables(self._topology, self._whole, now, failed, self._ways, self._vlans())
        paths = path_rules(self._topology, after)
        added = self._missing(rule for rule in paths if not sets_pvid(rule))
        self._change(add=added)
        pvids = by_switch(rule for rule in paths if sets_pvid(rule))
        if not self._move(count, pvids, after):
            self._change(remove=added)
            return False
        self._each(pvids, self.switches.confirm)
        self._failures.overcome("recovered", count)
        if not self._drained(count):
            return False
        self._keep_only(paths, now.backups.vlan_ids.tolist())
        return self._renew_backups(count, after, paths)

    def _move(self, count: int, pvids: Mapping[int, list[Rule]], after: Tables) -> bool:
        """Move all hosts to new tables; False, and nothing is done, where something happened meanwhile."""
        with self._state:
            if self._count != count:
                return False
            self._tell(pvids)
            # The backups of before serve until their successors are there.
            self._now = replace(after, backups=self._now.backups)
            self._settled = self._damage
            self._backup[:] = -1
            self._waiting = 0
            self._ready.clear()
            self._tidy = False
            return True

    def _drained(self, count: int) -> bool:
        """Wait until frames on old paths have arrived; False where something happened, which is more urgent."""
        queue = self.plan.scenario.links.queue_frames
        until = time.monotonic() + drain_seconds(self._topology, self._whole.routes, self.rate, queue)
        while (left := until - time.monotonic()) > 0:
            if self._count != count:
                return False
            time.sleep(min(left, _LOOK_EVERY))
        return True

    def _renew_backups(self, count: int, after: Tables, paths: Iterable[Rule]) -> bool:
        """Put the backups of the new tables in the place of the old ones."""
        new = backup_rules(self._topology, after)
        added = self._missing(new)
        self._change(add=added)
        pvids = backup_pvids(self._topology, after)
        with self._state:
            stale = self._count != count
            if not stale:
                self._now, self._pvids = after, pvids
        if stale:
            self._change(remove=added)
            return False
        self._keep_only([*paths, *new])
        with self._state:
            self._tidy = True
        self._get_ready()
        self._finish(count)
        return True

    def _finish(self, count: int) -> None:
        self._failures.overcome("recovered", count)
        self._failures.overcome("settled", count)
        with self._state:
            if self._count == count:
                self._phase = "steady" if not self._damage.any else "steady, damaged"
                self._problem = ""
        self._remember()

    def _get_ready(self) -> None:
        """Work out in advance what each further link's death takes."""
        for link in np.flatnonzero(~self._settled.links).tolist():
            with self._state:
                failed, tables, count = self._settled, self._now, self._count
            links = failed.links.copy()
            links[link] = True
            found = divert(self._topology, tables, replace(failed, links=links))
            with self._state:
                if self._count != count:
                    return
                self._ready[link] = found

    # ------------------------------------------------------------------------------------------------------- memory

    def _remember(self) -> None:
        if self._memory is None:
            return
        with self._state:
            known = SavedState(
                self.plan.digest,
                sorted(self._tracker.down),
                sorted(self._tracker.dead),
                self._now.vlans.vlan_ids.tolist(),
                self._now.backups.vlan_ids.tolist(),
            )
        known.write(self._memory)

    def _recall(self) -> None:
        """Take up the state that the last run of this controller left, if it was of this plan."""
        known = None if self._memory is None else SavedState.read(self._memory, self.plan.digest)
        if known is None:
            return
        self._tracker.down, self._tracker.dead = set(known.down), set(known.dead)
        self._damage = self._settled = self._tracker.failed()
        self._now = known.tables(self._topology, self._whole, self._settled, self._ways)

    # ------------------------------------------------------------------------------------------------------- status

    def status(self) -> dict[str, Any]:
        """As Reconciler.status, and what is dead, who has no path, and the times of each failure (s, monotonic)."""
        with self._state:
            more = {
                "phase": self._phase,
                "down": words(self._topology, self._damage),
                "cut_off": int(cut_off(self._topology, self._damage).sum()),
                "without_backup": self._waiting,
                "diverted": [self._topology.host_name(int(host)) for host in np.flatnonzero(self._backup >= 0)],
                "routing": self._now.routing,
                "vlans": self._now.vlans.vlan_ids.tolist(),
                "backup_vlans": self._now.backups.vlan_ids.tolist(),
                "problem": self._problem,
                "events": self._failures.as_objects(),
            }
        return {**super().status(), **more}
