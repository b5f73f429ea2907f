"""Keep a fabric going when links, ports and switches die: what is decided, whatever carries it out.

Two threads matter. The one that hears of a failure moves the hosts that it hits to backup VLANs, which are installed
already, and returns. The other works out tables for what is alive and has them installed beside the old ones, moves the
hosts to them and takes away what is not needed any more; if something else dies meanwhile it begins anew.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol, TypedDict

import numpy as np

from testbed.base.errors import InputError, TestbedError, VerificationError
from testbed.base.model import Ints, LocalPlan, Routes, Topology, VlanPlan
from testbed.planning.failover.diversion import Diversion, divert
from testbed.planning.failover.failed_elements import FailedElements, cut_off, words
from testbed.planning.failover.failure_log import FailureLog, LoggedFailure
from testbed.planning.failover.failure_tracker import FailureTracker
from testbed.planning.failover.saved_state import SavedState
from testbed.planning.failover.tables import Tables, compile_ahead, prove, recovered_tables, routings, whole_tables

_REMEMBERED = 50  # events


class Installer(Protocol):
    """Carries out on switches what a segment manager decides.

    What it adds no frame meets until PVIDs change; what it is to take away no frame meets any more.
    """

    def vlans_in_use(self) -> Collection[int]:
        """Identifiers of all VLANs that switches have anything of."""

    def divert(self, hosts: Ints, backups: Ints) -> None:
        """Make backup VLANs, by their numbers among those in use, the PVIDs of hosts; returns at once."""

    def add_paths(self, tables: Tables) -> None:
        """Install the VLANs of paths beside what there is."""

    def take_back(self) -> None:
        """Remove what was added last, since something happened meanwhile."""

    def move(self, tables: Tables) -> None:
        """Make the VLANs of the paths added last the PVIDs of all hosts; returns at once."""

    def confirm(self) -> None:
        """Return when all hosts' frames take those paths."""

    def wait_for_drain(self, goes_on: Callable[[], bool]) -> bool:
        """Wait until frames on the paths before have arrived; False where `goes_on()` ends before."""

    def drop_old_paths(self, tables: Tables) -> None:
        """Those of these tables stay, and the backups in use; others may go, or stay until keep_only()."""

    def add_backups(self, tables: Tables) -> None:
        """Install backup VLANs beside what there is."""

    def use_backups(self) -> None:
        """Those added last are in use from now on; returns at once."""

    def keep_only(self, tables: Tables) -> None:
        """Remove all but these paths and backups."""


class ManagerStatus(TypedDict):
    """What a manager adds to a messages.ControllerStatus, as plain data."""

    phase: str
    down: list[str]
    cut_off: int
    without_backup: int
    diverted: list[str]
    routing: str
    vlans: list[int]
    backup_vlans: list[int]
    problem: str
    events: list[LoggedFailure]


class SegmentManager:
    """What a fabric's switches should have while things die and come back.

    Args:
        topology: of the fabric when nothing is dead.
        plan: its routes and VLANs, proved, and their digest.
        routing: kind and options of the plan's routing.
        memory: file that holds the state, so that a restart finds it; None = nothing is remembered.

    Attributes:
        state: lock of what is known to have failed, and of what follows from it.
        tracker: what switches report; whoever changes it holds `state`, and calls react() then.
        whole: tables of the whole fabric.
        now: tables that are installed, or soon will be.

    Raises:
        InputError: the plan cannot be kept going so.
        VerificationError: backup paths are not safe.
    """

    def __init__(
        self, topology: Topology, plan: tuple[Routes, VlanPlan | LocalPlan, str], routing: tuple[str, Any],
        memory: Path | None = None,
    ) -> None:  # fmt: skip
        routes, vlans, self._digest = plan
        if not isinstance(vlans, VlanPlan):
            raise InputError.one("", "paths move by PVIDs, which takes VLANs of the whole fabric (assignment fixed)")
        self._topology, self._memory = topology, memory
        self._ways = routings(topology, *routing)
        self.whole = whole_tables(topology, routes, vlans, routing[0])
        problems = prove(topology, self.whole)
        if problems:
            raise VerificationError(f"the backup paths are not safe: {problems[0].sentence}")
        self.state = threading.RLock()
        self.tracker = FailureTracker(topology)
        self._damage = self.tracker.failed_elements()
        self._settled = self._damage  # what the tables that are installed know of
        self.now = self.whole
        self._backup = np.full(topology.host_count, -1, dtype=np.int32)
        self._waiting = 0
        self._tidy = True  # nothing is left over from tables before
        self._count = 0
        self._failures = FailureLog(topology)
        self._phase = "steady"
        self._ready: dict[int, Diversion] = {}
        self._problem = ""
        self._wake = threading.Event()
        compile_ahead(topology, self.whole, self._ways)

    def take_up(self, seen: Collection[int] = ()) -> bool:
        """Start from the state that the last manager of this plan left; False where none did, and nothing has changed.

        What `tracker` has of the switches `seen` is newer, and stays.
        """
        known = None if self._memory is None else SavedState.read(self._memory, self._digest)
        if known is None:
            return False
        tracker = self.tracker
        tracker.down |= {end for end in known.down if end[0] not in seen}
        tracker.dead |= set(known.dead).difference(seen)
        tracker.silent = set(known.silent)
        before = FailureTracker(self._topology)
        before.down, before.dead, before.silent = set(known.down), set(known.dead), set(known.silent)
        self._damage = self._settled = before.failed_elements()
        self.now = known.tables(self._topology, self.whole, self._settled, self._ways)
        self._failures.take_over(known.events)
        self._count = len(known.events)
        return True

    def start_anew(self) -> None:
        """Start with tables for what is there, by `tracker`.

        Raises:
            InputError: there are none.
        """
        self._damage = self._settled = self.tracker.failed_elements()
        self.now = recovered_tables(self._topology, self.whole, self.whole, self._settled, self._ways)

    def begin(self, install: Installer) -> None:
        """Get ready for failures, and make new tables after each, in a thread of its own; the tables are installed."""
        self._install = install
        self._wake.set()
        threading.Thread(target=self._work, daemon=True).start()

    # ----------------------------------------------------------------------------------------------------- diversion

    def react(self, heard: float) -> None:
        """Divert the hosts that a new failure hits; the other thread does the rest. `heard` of it is s, monotonic."""
        before, failed = self._damage, self.tracker.failed_elements()
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
        return divert(self._topology, self.now, failed)

    def _divert(self, diversion: Diversion) -> int:
        """Give hosts their backup VLANs; returns how many moved."""
        moved = np.flatnonzero((diversion.backup != self._backup) & (diversion.backup >= 0)).astype(np.int32)
        self._backup[moved] = diversion.backup[moved]
        self._install.divert(moved, self._backup[moved])
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
        with self.state:
            count, failed, now = self._count, self._damage, self.now
            as_it_should_be = self._tidy and failed.same_as(self._settled) and bool((self._backup < 0).all())
            if not as_it_should_be:
                self._phase = "new tables"
        if as_it_should_be:
            self._finish(count)
            if not self._ready:
                self._get_ready()
            return True
        taken = self._install.vlans_in_use()
        after = recovered_tables(self._topology, self.whole, now, failed, self._ways, taken)
        self._install.add_paths(after)
        if not self._move(count, after):
            self._install.take_back()
            return False
        self._install.confirm()
        self._failures.overcome("recovered", count)
        if not self._install.wait_for_drain(lambda: self._count == count):
            return False
        self._install.drop_old_paths(after)
        return self._renew_backups(count, after)

    def _move(self, count: int, after: Tables) -> bool:
        """Move all hosts to new tables; False, and nothing is done, where something happened meanwhile."""
        with self.state:
            if self._count != count:
                return False
            self._install.move(after)
            # The backups of before serve until their successors are there.
            self.now = replace(after, backups=self.now.backups)
            self._settled = self._damage
            self._backup[:] = -1
            self._waiting = 0
            self._ready.clear()
            self._tidy = False
            return True

    def _renew_backups(self, count: int, after: Tables) -> bool:
        """Put the backups of the new tables in the place of the old ones."""
        self._install.add_backups(after)
        with self.state:
            stale = self._count != count
            if not stale:
                self.now = after
                self._install.use_backups()
        if stale:
            self._install.take_back()
            return False
        self._install.keep_only(after)
        with self.state:
            self._tidy = True
        self._get_ready()
        self._finish(count)
        return True

    def _finish(self, count: int) -> None:
        self._failures.overcome("recovered", count)
        self._failures.overcome("settled", count)
        self._remember()
        with self.state:
            if self._count == count:
                self._phase = "steady" if not self._damage.has_failed else "steady, damaged"
                self._problem = ""

    def _get_ready(self) -> None:
        """Work out in advance what each further link's death takes."""
        for link in np.flatnonzero(~self._settled.links).tolist():
            with self.state:
                failed, tables, count = self._settled, self.now, self._count
            links = failed.links.copy()
            links[link] = True
            found = divert(self._topology, tables, replace(failed, links=links))
            with self.state:
                if self._count != count:
                    return
                self._ready[link] = found

    # ------------------------------------------------------------------------------------------------------- memory

    def _remember(self) -> None:
        if self._memory is None:
            return
        with self.state:
            known = SavedState(
                self._digest,
                sorted(self.tracker.down),
                sorted(self.tracker.dead),
                self.now.vlans.vlan_ids.tolist(),
                self.now.backups.vlan_ids.tolist(),
                sorted(self.tracker.silent),
                self._failures.as_objects()[-_REMEMBERED:],
            )
        known.write(self._memory)

    # ------------------------------------------------------------------------------------------------------- status

    def status(self) -> ManagerStatus:
        """What is dead, who has no path, and the times of each failure (s, monotonic), as plain data."""
        topology = self._topology
        with self.state:
            return {
                "phase": self._phase,
                "down": words(topology, self._damage),
                "cut_off": int(cut_off(topology, self._damage).sum()),
                "without_backup": self._waiting,
                "diverted": [topology.host_name(int(host)) for host in np.flatnonzero(self._backup >= 0)],
                "routing": self.now.routing,
                "vlans": self.now.vlans.vlan_ids.tolist(),
                "backup_vlans": self.now.backups.vlan_ids.tolist(),
                "problem": self._problem,
                "events": self._failures.as_objects(),
            }
