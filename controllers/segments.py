"""Carry out by OpenFlow rules what the segment manager decides when links, ports and switches die.

Nothing is installed before it is known what is joined: by LLDP, or by what the last manager of the plan has left. A
manager that is not elected follows what its switches report, and changes nothing.
"""

from __future__ import annotations

import contextlib
import math
import threading
import time
from collections.abc import Callable, Collection, Iterable
from pathlib import Path
from typing import Any, Literal

from testbed.base.errors import TestbedError
from testbed.base.model import Ints, LocalPlan, Rule
from testbed.fabric.openflow.admission import lldp_rules
from testbed.fabric.transition.steps import drain_seconds
from testbed.planning import Plan
from testbed.planning.failover.lldp_topology import CollectedTopology, End
from testbed.planning.failover.rules import backup_pvids, backup_rules, path_rules, sets_pvid
from testbed.planning.failover.segment_manager import SegmentManager
from testbed.planning.failover.tables import Tables

from .election import Election
from .fast_reconciler import FastReconciler
from .openflow_messages import by_switch, vlans_of
from .reconciler import TAKEN_OVER, new_generation
from .switches import SwitchError, Switches
from .unsupported import RefusedError

_LOOK_EVERY = 0.01
# A switch that disconnects and is back within this was not dead; s.
HANG_UP_GRACE = 0.25
# Rounds of LLDP for which what was heard is believed, for which the first frames are waited for when a switch has
# connected, and for which switches that the last manager had may take to connect.
_BELIEVED, _COLLECT, _RETURN = 4, 3, 15
_LAST_PORT = 0xFFFFFF00  # OFPP_MAX; above are a switch's own
Stage = Literal["standby", "collecting", "steering"]


class SegmentReconciler(FastReconciler):
    """What switches should have while things die and come back; an Installer of the segment manager.

    Args:
        plan: proved, of VLANs of the whole fabric.
        switches: conversations with them.
        rate: bit/s of a link, see Reconciler.
        memory: file that holds the state, so that a restart finds it; None = nothing is remembered.
        election: decides whether it steers, and when; None = it does, from now on.
        forget_flows: takes all flows that switches keep beside their rules out; False where it cannot.

    Raises:
        RefusedError: the plan cannot be kept going so.
    """

    def __init__(
        self, plan: Plan, switches: Switches, rate: float, memory: Path | None = None, election: Election | None = None,
        forget_flows: Callable[[], bool] = lambda: False,
    ) -> None:  # fmt: skip
        super().__init__(plan, switches, rate)
        self._forget_flows = forget_flows
        self._left: set[int] = set()  # VLANs that rules were removed of since flows were taken out last
        topology = self._topology = plan.topology
        routing = (plan.scenario.routing_kind, plan.scenario.routing)
        try:
            self._manager = SegmentManager(topology, (plan.routes, plan.vlans, plan.digest), routing, memory)
        except TestbedError as error:
            kind = f", not {plan.scenario.assignment_kind}" if isinstance(plan.vlans, LocalPlan) else ""
            raise RefusedError(f"{error}{kind}") from error
        self._joined = CollectedTopology(topology, _BELIEVED)
        self._received: dict[End, int] = {}
        self._seen: set[int] = set()
        self._round = self._seen_last = 0
        self._lldp = lldp_rules(topology.switch_count)
        self._pvids: tuple[tuple[Rule, ...], ...] = ()
        self._next_pvids: tuple[tuple[Rule, ...], ...] = ()
        self._paths: tuple[Rule, ...] = ()
        self._backups: tuple[Rule, ...] = ()
        self._added: list[Rule] = []
        self._moved: dict[int, list[Rule]] = {}
        self.stage: Stage = "standby"
        self._since: float | None = None  # it steers; s, monotonic
        self._starting = False
        self._refusal = ""
        if election is None or election.try_acquire():
            self._become_master()
        else:
            threading.Thread(target=self._wait_as_standby, args=(election,), daemon=True).start()

    def _wait_as_standby(self, election: Election) -> None:
        election.wait()
        self._become_master()

    def _become_master(self) -> None:
        """Go on where the last manager has stopped, or collect first."""
        self._generation, self._since = new_generation(), time.monotonic()
        self._round = self._seen_last = 0
        with self._manager.state:
            self.stage = "collecting"
            known = self._manager.take_up(self._seen)
            if known:
                tracker = self._manager.tracker
                self._joined.assume_up(tracker.silent, self._round)
                self._joined.forget(tracker.down)
        if known:
            self._forget_flows()  # of VLANs that the last manager has just removed, and this one may need
            # Switches obey before anything is sent to them, and hosts move off what has died meanwhile first of all.
            self._call_each(self.switches.list_connected(), self._claim_switch)
            self._activate()
        else:
            self._call_each(self.switches.list_connected(), self.bring_in_step)

    def _claim_switch(self, number: int) -> None:
        with self._locks[number]:
            self.switches.become_master(number, self._generation)

    def _activate(self) -> None:
        """Have the tables of now installed, and keep the fabric going from now on."""
        manager, now = self._manager, self._manager.now
        with manager.state:
            if self.stage == "steering":
                return
            self._pvids = self._next_pvids = backup_pvids(self._topology, now)
            self._paths, self._backups = path_rules(self._topology, now), backup_rules(self._topology, now)
            self._want_only([*self._paths, *self._backups, *self._lldp])
            self.stage = "steering"
            manager.begin(self)
            self._judge(time.monotonic())
        self._call_each(self.switches.list_connected(), self.bring_in_step)

    def move_to(self, plan: Plan, off: Any, wake_up: float = 0.0, pause: float = 0.0) -> dict[str, Any]:
        """Refuse: this controller makes its own plans."""
        raise RefusedError("the segment manager makes its own tables from what is alive; use switch_tagged for others")

    # ------------------------------------------------------------------------------------------------ what is heard

    def bring_in_step(self, number: int) -> None:
        """As Reconciler.bring_in_step once it is known what is joined; and look which ports of the switch are down."""
        try:
            if self.stage == "standby":
                self._follow(number)
            elif self.stage == "collecting":
                self._enable_lldp(number)
            else:
                super().bring_in_step(number)
            heard = time.monotonic()
            ports = self.switches.ports(number)
        except SwitchError as error:
            self._note_failure(number, error)
            return
        down = [port for port in ports if is_down(ports[port])]
        with self._manager.state:
            self._seen.add(number)
            self._seen_last = self._round
            self._manager.tracker.switch_connected(number, down)
            self._judge(heard)
        mine = [(number, port) for port in ports if port <= _LAST_PORT and port not in down]
        self._announce([*mine, *(self._joined.planned[end] for end in mine if end in self._joined.planned)])

    def _follow(self, number: int) -> None:
        """Hear of a switch's ports, and leave it to another manager."""
        with self._locks[number]:
            if self.stage == "standby":  # else this one has just been elected, and brings all in step
                self._note(number, "standby")
                self.switches.become_slave(number)

    def _enable_lldp(self, number: int) -> None:
        """Have a switch hand over what it hears by LLDP; all else stays as it is."""
        with self._locks[number]:
            if self.stage == "collecting":  # else somebody has just begun to bring all in step
                self._note(number, "collecting")
                self.switches.become_master(number, self._generation)
                self.switches.send(number, add=[self._lldp[number]])
                self.switches.confirm(number)

    def _announce(self, ends: Iterable[End]) -> None:
        """Have ends tell who they are; only who steers may."""
        if self.stage == "standby":
            return
        ports: dict[int, list[int]] = {}
        for number, port in ends:
            ports.setdefault(number, []).append(port)
        for number, its in ports.items():
            with contextlib.suppress(SwitchError):  # it has gone
                self.switches.announce(number, its, _BELIEVED)

    def heard_from(self, number: int, port: int, there: End) -> None:
        """A switch has got the LLDP frame of another end by a port."""
        heard = time.monotonic()
        with self._manager.state:
            self._joined.on_lldp((number, port), there, self._round)
            self._judge(heard)

    def send_lldp(self) -> None:
        """Let all links tell who they join, and see which have not been heard for too long; to be called each second.

        A queue that is full loses LLDP frames as any other. So a port that gets other frames is not deaf.
        """
        if self.stage == "standby":
            return
        connected = self.switches.list_connected()
        with self._manager.state:
            self._round += 1
            now = self._round
            if now <= _RETURN:
                for here, there in self._joined.planned.items():
                    if not {here[0], there[0]} <= connected:
                        self._joined.extend(here, now)
            late = self._joined.list_late(now)
        counts: dict[End, int] = {}
        for number in {number for number, _ in late} & connected:
            with contextlib.suppress(SwitchError):
                counts |= {(number, port): count for port, count in self.switches.read_received(number).items()}
        with self._manager.state:
            for end in late:
                if counts.get(end, 0) > self._received.get(end, math.inf):
                    self._joined.extend(end, now)
            self._joined.expire(now)
            self._judge(time.monotonic())
        self._received = {end: counts[end] for end in late if end in counts}
        self._announce(end for end in self._joined.planned if end[0] in connected)

    def _judge(self, heard: float) -> None:
        """Act on what is joined and what is not; whoever calls holds the manager's state."""
        if self.stage == "standby":
            return
        tracker = self._manager.tracker
        tracker.silent = self._joined.silent_ends()
        if self.stage == "steering":
            self._manager.react(heard)
            return
        joined, down = self._joined.neighbours, tracker.down
        waiting = [
            here for here, there in self._joined.planned.items() if here not in joined and not {here, there} & down
        ]
        all_told = not waiting and len(self._seen) == len(self.switches.names)
        in_time = not self._seen or self._round <= self._seen_last + _COLLECT
        if (all_told or not in_time) and not self._starting:
            self._starting = True
            # It waits for answers, which arrive on the thread that may be calling.
            threading.Thread(target=self._start, daemon=True).start()

    def _start(self) -> None:
        try:
            with self._manager.state:
                self._manager.start_anew()
        except TestbedError as error:
            self._refusal = f"no tables for what is joined: {error}"
            return
        finally:
            self._starting = False
        self._activate()

    def switch_disconnected(self, number: int) -> None:
        """A switch has disconnected. If it is not back soon, it is dead."""
        super().switch_disconnected(number)
        heard = time.monotonic()
        timer = threading.Timer(HANG_UP_GRACE, self._give_up, args=(number, heard))
        timer.daemon = True
        timer.start()

    def _give_up(self, number: int, heard: float) -> None:
        if number not in self.switches.list_connected():
            with self._manager.state:
                self._manager.tracker.dead.add(number)
                self._joined.forget([end for end in self._joined.planned if end[0] == number])
                self._judge(heard)

    def port_changed(self, number: int, port: int, *, down: bool) -> None:
        """A switch says that a port went down, or came up."""
        heard = time.monotonic()
        with self._manager.state:
            if self._manager.tracker.has_neighbour(number, port):
                self._manager.tracker.port_changed(number, port, down=down)
            self._seen_last = self._round
            if down:
                self._joined.forget([(number, port)])
            self._judge(heard)
        if not down:
            self._announce({(number, port), self._joined.planned.get((number, port), (number, port))})

    # -------------------------------------------------------------------------------------------- what is carried out

    def vlans_in_use(self) -> Collection[int]:
        """See Installer."""
        return self._vlans()

    def divert(self, hosts: Ints, backups: Ints) -> None:
        """See Installer: one rule a host."""
        rules = (self._pvids[backup][host] for host, backup in zip(hosts.tolist(), backups.tolist(), strict=True))
        self._send_changes(by_switch(rules))

    def add_paths(self, tables: Tables) -> None:
        """See Installer."""
        self._paths = path_rules(self._topology, tables)
        self._moved = by_switch(rule for rule in self._paths if sets_pvid(rule))
        self._add(rule for rule in self._paths if not sets_pvid(rule))

    def _add(self, rules: Iterable[Rule]) -> None:
        """Add rules that no frame meets yet, so that none is lost when it does.

        Of a VLAN that comes back a switch may still keep a flow that says "drop". No frame is in it until PVIDs change,
        so such a flow stays away once it was taken out; where it cannot be, switches get the time to look at it.
        """
        self._added = self._list_missing(rules)
        comes_back = not self._left.isdisjoint(vlans_of(self._added))
        forgotten = comes_back and self._forget_flows()
        if forgotten:
            self._left.clear()
        self._change(add=self._added)
        if comes_back and not forgotten:
            time.sleep(TAKEN_OVER)

    def _change(self, add: Iterable[Rule] = (), remove: Iterable[Rule] = ()) -> None:
        remove = list(remove)
        self._left |= vlans_of(remove)
        super()._change(add, remove)

    def take_back(self) -> None:
        """See Installer."""
        self._change(remove=self._added)

    def move(self, tables: Tables) -> None:
        """See Installer."""
        del tables
        self._send_changes(self._moved)

    def confirm(self) -> None:
        """See Installer."""
        self._call_each(self._moved, self.switches.confirm)

    def wait_for_drain(self, goes_on: Callable[[], bool]) -> bool:
        """See Installer: for as long as frames can be under way at most."""
        queue, routes = self.plan.scenario.links.queue_frames, self._manager.whole.routes
        until = time.monotonic() + max(TAKEN_OVER, drain_seconds(self._topology, routes, self.rate, queue))
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
        self._keep_only([*self._paths, *self._backups, *self._lldp])

    def status(self) -> dict[str, Any]:
        """As Reconciler.status, and as SegmentManager.status, and what is joined."""
        with self._manager.state:
            joined = {"links": self._joined.links(), "wiring": self._joined.differences()}
        found = {**super().status(), **self._manager.status(), **joined}
        if self.stage != "steering":
            found["phase"] = self.stage
        role = {"role": "standby" if self.stage == "standby" else "master", "master_since": self._since}
        return {**found, **role, "problem": found["problem"] or self._refusal}


def is_down(port: Any) -> bool:
    """Whether a port, as the framework describes it, has no carrier or is shut."""
    link_down, port_down = 1, 1  # OFPPS_LINK_DOWN, OFPPC_PORT_DOWN
    return bool(port.state & link_down or port.config & port_down)
