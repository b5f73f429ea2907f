"""Keep a fabric going when links, ports and switches die: backup paths at once, then new tables.

Two threads matter. The one that hears of a failure moves the hosts that it hits to backup VLANs, which are installed
already, and returns. The other works out tables for what is alive and installs them beside the old ones, moves the
hosts to them and takes away what is not needed any more; if something else dies meanwhile it begins anew.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from controllers.failure_record import Memory, by_switch, failure_record, is_down
from controllers.keeper import Keeper
from controllers.refused import RefusedError
from controllers.switches import SwitchError, Switches
from controllers.wire import differences, place
from testbed.errors import TestbedError
from testbed.failover.damage import Damage, cut_off, damage_of, words
from testbed.failover.diversion import Diversion, divert
from testbed.failover.rules import backup_pvids, backup_rules, path_rules, sets_pvid
from testbed.failover.tables import Tables, compile_ahead, prove, recovered_tables, routings, whole_tables
from testbed.model import Rule, VlanPlan
from testbed.pipeline.tables import UNTAGGED
from testbed.plan import Plan
from testbed.transition.drain import drain_seconds

_AT_ONCE = 16
_LOOK_EVERY = 0.01
# A switch that hangs up and is back within this was not dead; s.
HANG_UP_GRACE = 0.25


class SegmentKeeper(Keeper):
    """What switches should have while things die and come back.

    Args:
        plan: proved, of VLANs of the whole fabric.
        switches: conversations with them.
        rate: bit/s of a link, see Keeper.
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
        self._owner = {
            **{(int(s), int(p)): ("link", c // 2)
               for c, (s, p) in enumerate(zip(topology.channel_source, topology.out_port, strict=True))},
            **{(int(s), int(p)): ("host", h)
               for h, (s, p) in enumerate(zip(topology.host_switch, topology.host_port, strict=True))},
        }  # fmt: skip
        self._state = threading.RLock()  # of all below
        self._down: set[tuple[int, int]] = set()
        self._dead: set[int] = set()
        self._damage = damage_of(topology)
        self._settled = self._damage  # what the tables that are installed know of
        self._now = self._whole
        self._backup = np.full(topology.host_count, -1, dtype=np.int32)
        self._waiting = 0
        self._tidy = True  # nothing is left over from tables before
        self._count = 0
        self._events: list[dict[str, Any]] = []
        self._phase = "steady"
        self._ready: dict[int, Diversion] = {}
        self._problem = ""
        self._wake = threading.Event()
        self._recall()
        self._take(self._now)
        self._get_ready()
        compile_ahead(topology, self._whole, self._ways)
        threading.Thread(target=self._work, daemon=True).start()

    def move_to(self, plan: Plan, off: Any, wake_up: float = 0.0, pause: float = 0.0) -> dict[str, Any]:
        """Refuse: this controller makes its own plans."""
        raise RefusedError("the segment manager makes its own tables from what is alive; use switch_tagged for others")

    # ------------------------------------------------------------------------------------------------ what is heard

    def bring_in_step(self, number: int) -> None:
        """As Keeper.bring_in_step, and look which ports of the switch are down."""
        super().bring_in_step(number)
        heard = time.monotonic()
        try:
            ports = self.switches.ports(number)
        except SwitchError as error:
            self._failed(number, error)
            return
        down = {port for port in ports if (number, port) in self._owner and is_down(ports[port])}
        with self._state:
            self._dead.discard(number)
            self._down = {end for end in self._down if end[0] != number} | {(number, port) for port in down}
            self._react(heard)

    def gone(self, number: int) -> None:
        """A switch has hung up. If it is not back soon, it is dead."""
        super().gone(number)
        heard = time.monotonic()
        timer = threading.Timer(HANG_UP_GRACE, self._give_up, args=(number, heard))
        timer.daemon = True
        timer.start()

    def _give_up(self, number: int, heard: float) -> None:
        if number not in self.switches.connected():
            with self._state:
                self._dead.add(number)
                self._react(heard)

    def port_changed(self, number: int, port: int, *, down: bool) -> None:
        """A switch says that a port went down, or came up."""
        heard = time.monotonic()
        if (number, port) not in self._owner:
            return
        with self._state:
            (self._down.add if down else self._down.discard)((number, port))
            self._react(heard)

    def _react(self, heard: float) -> None:
        """Divert the hosts that a new failure hits; the other thread does the rest."""
        before, damage = self._damage, self._seen()
        if damage.same_as(before):
            return
        worse = bool((damage.links & ~before.links).any())
        diversion = self._diversion(before, damage)
        moved = self._divert(diversion) if worse else 0
        sent = time.monotonic()
        self._damage, self._count = damage, self._count + 1
        self._waiting = int(diversion.waiting.sum())
        told = failure_record(self._topology, before, damage, diversion)
        self._events.append({**told, "detected": heard, "diverted": sent, "hosts_moved": moved})
        self._phase = "diverted"
        self._wake.set()

    def _seen(self) -> Damage:
        """What is dead, by the ports that are down and the switches that are gone."""
        ends = [self._owner[end] for end in self._down]
        links, hosts = ([number for kind, number in ends if kind == which] for which in ("link", "host"))
        return damage_of(self._topology, links, hosts, self._dead)

    def _diversion(self, before: Damage, damage: Damage) -> Diversion:
        """Where hosts go; for one more link on tables that know all other failures this is known in advance."""
        new = np.flatnonzero(damage.links & ~before.links)
        if len(new) == 1 and before.same_as(self._settled):
            ready = self._ready.get(int(new[0]))
            if ready is not None:
                return ready
        return divert(self._topology, self._now, damage)

    def _divert(self, diversion: Diversion) -> int:
        """Give hosts their backup VLANs; returns how many moved."""
        of_switch: dict[int, list[Rule]] = {}
        moved = np.flatnonzero((diversion.backup != self._backup) & (diversion.backup >= 0)).tolist()
        for host in moved:
            rule = self._pvids[int(diversion.backup[host])][host]
            of_switch.setdefault(rule.switch, []).append(rule)
            self._backup[host] = diversion.backup[host]
        for number, rules in of_switch.items():
            self._want(rules)
            with contextlib.suppress(SwitchError):  # who is gone gets its rules when it comes back
                self.switches.send(number, add=rules)
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
            count, damage, now = self._count, self._damage, self._now
            if self._tidy and damage.same_as(self._settled) and (self._backup < 0).all():
                self._finish(count)
                return True
            self._phase = "new tables"
        after = recovered_tables(self._topology, self._whole, now, damage, self._ways, self._vlans())
        paths = path_rules(self._topology, after)
        added = self._missing(rule for rule in paths if not sets_pvid(rule))
        self._change(add=added)
        pvids = by_switch(rule for rule in paths if sets_pvid(rule))
        if not self._move(count, pvids, after):
            self._change(remove=added)
            return False
        self._each(pvids, self.switches.confirm)
        self._mark("recovered", count)
        if not self._drained(count):
            return False
        self._keep_only(paths, now.backups.vlan_ids.tolist())
        return self._renew_backups(count, after, paths)

    def _move(self, count: int, pvids: Mapping[int, list[Rule]], after: Tables) -> bool:
        """Move all hosts to new tables; False, and nothing is done, where something happened meanwhile."""
        with self._state:
            if self._count != count:
                return False
            for number, rules in pvids.items():
                self._want(rules)
                with contextlib.suppress(SwitchError):
                    self.switches.send(number, add=rules)
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

    def _keep_only(self, rules: Iterable[Rule], vlans: Iterable[int] = ()) -> None:
        """Remove all rules but these, those of some VLANs, and PVIDs, which are replaced and never removed."""
        kept, vlans = set(rules), set(vlans)
        there = [rule for wanted in self._wanted for rule in tuple(wanted.values())]
        self._change(
            remove=[
                rule for rule in there
                if rule not in kept and not sets_pvid(rule) and dict(rule.match)["dl_vlan"] not in vlans
            ]
        )  # fmt: skip

    def _finish(self, count: int) -> None:
        self._mark("recovered", count)
        self._mark("settled", count)
        with self._state:
            if self._count == count:
                self._phase = "steady" if not self._damage.any else "steady, damaged"
                self._problem = ""
        self._remember()

    def _mark(self, what: str, count: int) -> None:
        """Note the time at which all events up to one were overcome."""
        now = time.monotonic()
        for event in self._events[:count]:
            if event[what] is None:
                event[what] = now

    def _get_ready(self) -> None:
        """Work out in advance what each further link's death takes."""
        for link in np.flatnonzero(~self._settled.links).tolist():
            with self._state:
                damage, tables, count = self._settled, self._now, self._count
            links = damage.links.copy()
            links[link] = True
            found = divert(self._topology, tables, replace(damage, links=links))
            with self._state:
                if self._count != count:
                    return
                self._ready[link] = found

    # -------------------------------------------------------------------------------------------------------- rules

    def _reconcile(self, number: int) -> int:
        """As Keeper._reconcile, in less time: rules that nobody meets need no bundle, and there are many of them."""
        changed = 0
        found, foreign = self.switches.rules(number)
        if not foreign:
            remove, add = differences(self._wanted[number].values(), found)
            if remove or add:
                self.switches.send(number, add=sorted(add, key=sets_pvid), remove=remove)
                self.switches.confirm(number)
            changed = len(remove) + len(add)
        # What is left is little: foreign flows, and what another controller has undone.
        return changed + super()._reconcile(number)

    def _take(self, tables: Tables) -> None:
        """Let the switches want exactly the rules of some tables, and the PVIDs of the diverted."""
        self._pvids = backup_pvids(self._topology, tables)
        for wanted in self._wanted:
            wanted.clear()
        self._want([*path_rules(self._topology, tables), *backup_rules(self._topology, tables)])
        self._want(self._pvids[int(b)][host] for host, b in enumerate(self._backup) if b >= 0)

    def _want(self, rules: Iterable[Rule]) -> None:
        for rule in rules:
            self._wanted[rule.switch][place(rule)] = rule

    def _vlans(self) -> set[int]:
        """Identifiers of the VLANs that switches have rules of, those left over from interrupted work included."""
        return {
            int(number)
            for wanted in self._wanted
            for rule in tuple(wanted.values())
            for name, number in (*rule.match, *rule.actions)
            if name in ("dl_vlan", "push_vlan") and number != UNTAGGED
        }

    def _missing(self, rules: Iterable[Rule]) -> list[Rule]:
        return [rule for rule in rules if place(rule) not in self._wanted[rule.switch]]

    def _change(self, add: Iterable[Rule] = (), remove: Iterable[Rule] = ()) -> None:
        """Add and remove rules that no frame meets, on all switches side by side; returns when they have."""
        more, fewer = by_switch(add), by_switch(remove)

        def change(number: int) -> None:
            with self._locks[number]:
                self._want(more.get(number, ()))
                for rule in fewer.get(number, ()):
                    self._wanted[number].pop(place(rule), None)
                self.switches.send(number, add=more.get(number, ()), remove=fewer.get(number, ()))
                self.switches.confirm(number)

        self._each({*more, *fewer}, change)

    def _each(self, numbers: Iterable[int], call: Callable[[int], None]) -> None:
        """Call for many switches side by side; what a switch that is gone misses it gets when it comes back."""
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            attempts = [(number, pool.submit(call, number)) for number in sorted(numbers)]
        for number, attempt in attempts:
            error = attempt.exception()
            if isinstance(error, SwitchError):
                if number in self.switches.connected():
                    self._note(number, "not in step", problem=str(error))
            elif error is not None:
                raise error

    # ------------------------------------------------------------------------------------------------------- memory

    def _remember(self) -> None:
        if self._memory is None:
            return
        with self._state:
            known = Memory(
                self.plan.digest,
                sorted(self._down),
                sorted(self._dead),
                self._now.vlans.vlan_ids.tolist(),
                self._now.backups.vlan_ids.tolist(),
            )
        known.write(self._memory)

    def _recall(self) -> None:
        """Take up the state that the last run of this controller left, if it was of this plan."""
        known = None if self._memory is None else Memory.read(self._memory, self.plan.digest)
        if known is None:
            return
        self._down, self._dead = set(known.down), set(known.dead)
        self._damage = self._settled = self._seen()
        tables = self._whole
        if self._settled.links.any():
            tables = recovered_tables(self._topology, self._whole, self._whole, self._settled, self._ways)
        # Tables follow from what is dead but for their identifiers, which follow from what there was before.
        if (len(known.vlans), len(known.backups)) == (tables.vlans.vlan_count, tables.backups.vlan_count):
            self._now = replace(
                tables,
                vlans=replace(tables.vlans, vlan_ids=np.array(known.vlans, dtype=np.int32)),
                backups=replace(tables.backups, vlan_ids=np.array(known.backups, dtype=np.int32)),
            )

    # ------------------------------------------------------------------------------------------------------- status

    def status(self) -> dict[str, Any]:
        """As Keeper.status, and what is dead, who has no path, and the times of each failure (s, monotonic)."""
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
                "events": [dict(event) for event in self._events],
            }
        return {**super().status(), **more}
