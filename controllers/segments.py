"""Carry out by OpenFlow rules what the segment manager decides when links, ports and switches die."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Iterable
from pathlib import Path
from typing import Any

from controllers.fast_reconciler import FastReconciler
from controllers.refused import RefusedError
from controllers.switches import SwitchError, Switches
from controllers.wire import by_switch
from testbed.errors import TestbedError
from testbed.failover.manager import SegmentManager
from testbed.failover.rules import backup_pvids, backup_rules, path_rules, sets_pvid
from testbed.failover.tables import Tables
from testbed.model import Ints, LocalPlan, Rule
from testbed.plan import Plan
from testbed.transition.steps import drain_seconds

_LOOK_EVERY = 0.01
# A switch that disconnects and is back within this was not dead; s.
HANG_UP_GRACE = 0.25


class SegmentReconciler(FastReconciler):
    """What switches should have while things die and come back; an Installer of the segment manager.

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
        topology = self._topology = plan.topology
        routing = (plan.scenario.routing_kind, plan.scenario.routing)
        try:
            self._manager = SegmentManager(topology, (plan.routes, plan.vlans, plan.digest), routing, memory)
        except TestbedError as error:
            kind = f", not {plan.scenario.assignment_kind}" if isinstance(plan.vlans, LocalPlan) else ""
            raise RefusedError(f"{error}{kind}") from error
        now = self._manager.now
        self._pvids = self._next_pvids = backup_pvids(topology, now)
        self._paths: tuple[Rule, ...] = path_rules(topology, now)
        self._backups: tuple[Rule, ...] = backup_rules(topology, now)
        self._added: list[Rule] = []
        self._moved: dict[int, list[Rule]] = {}
        self._want_only([*self._paths, *self._backups])
        self._manager.begin(self)

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
        with self._manager.state:
            self._manager.tracker.connected(number, [port for port in ports if is_down(ports[port])])
            self._manager.react(heard)

    def gone(self, number: int) -> None:
        """A switch has disconnected. If it is not back soon, it is dead."""
        super().gone(number)
        heard = time.monotonic()
        timer = threading.Timer(HANG_UP_GRACE, self._give_up, args=(number, heard))
        timer.daemon = True
        timer.start()

    def _give_up(self, number: int, heard: float) -> None:
        if number not in self.switches.connected():
            with self._manager.state:
                self._manager.tracker.dead.add(number)
                self._manager.react(heard)

    def port_changed(self, number: int, port: int, *, down: bool) -> None:
        """A switch says that a port went down, or came up."""
        heard = time.monotonic()
        if not self._manager.tracker.concerned(number, port):
            return
        with self._manager.state:
            self._manager.tracker.port_changed(number, port, down=down)
            self._manager.react(heard)

    # -------------------------------------------------------------------------------------------- what is carried out

    def taken(self) -> Collection[int]:
        """See Installer."""
        return self._vlans()

    def divert(self, hosts: Ints, backups: Ints) -> None:
        """See Installer: one rule a host."""
        rules = (self._pvids[backup][host] for host, backup in zip(hosts.tolist(), backups.tolist(), strict=True))
        self._tell(by_switch(rules))

    def add_paths(self, tables: Tables) -> None:
        """See Installer."""
        self._paths = path_rules(self._topology, tables)
        self._moved = by_switch(rule for rule in self._paths if sets_pvid(rule))
        self._add(rule for rule in self._paths if not sets_pvid(rule))

    def _add(self, rules: Iterable[Rule]) -> None:
        self._added = self._missing(rules)
        self._change(add=self._added)

    def take_back(self) -> None:
        """See Installer."""
        self._change(remove=self._added)

    def move(self, tables: Tables) -> None:
        """See Installer."""
        del tables
        self._tell(self._moved)

    def confirm(self) -> None:
        """See Installer."""
        self._each(self._moved, self.switches.confirm)

    def drained(self, goes_on: Callable[[], bool]) -> bool:
        """See Installer: for as long as frames can be under way at most."""
        queue, routes = self.plan.scenario.links.queue_frames, self._manager.whole.routes
        until = time.monotonic() + drain_seconds(self._topology, routes, self.rate, queue)
        while (left := until - time.monotonic()) > 0:
            if not goes_on():
                return False
            time.sleep(min(left, _LOOK_EVERY))
        return True

    def drop_old_paths(self, tables: Tables) -> None:
        """See Installer."""
        del tables
        self._keep_only(self._paths, self._manager.now.backups.vlan_ids.tolist())

    def add_backups(self, tables: Tables) -> None:
        """See Installer."""
        self._backups = backup_rules(self._topology, tables)
        self._add(self._backups)
        self._next_pvids = backup_pvids(self._topology, tables)

    def use_backups(self) -> None:
        """See Installer."""
        self._pvids = self._next_pvids

    def keep_only(self, tables: Tables) -> None:
        """See Installer."""
        del tables
        self._keep_only([*self._paths, *self._backups])

    def status(self) -> dict[str, Any]:
        """As Reconciler.status, and as SegmentManager.status."""
        return {**super().status(), **self._manager.status()}


def is_down(port: Any) -> bool:
    """Whether a port, as the framework describes it, has no carrier or is shut."""
    link_down, port_down = 1, 1  # OFPPS_LINK_DOWN, OFPPC_PORT_DOWN
    return bool(port.state & link_down or port.config & port_down)
