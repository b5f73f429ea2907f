"""A running model carried over to another plan, make before break (Koibuchi et al. 2011, section 3.6).

What a controller does to switches by rules is done here to tables: for a while they hold the VLANs of both plans, and
PVIDs change one by one. The model tells which frames are under way, so that frames of old VLANs are waited for exactly.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from functools import partial
from pathlib import Path

import numpy as np

from testbed.base.errors import LabError
from testbed.base.messages import PlanStep
from testbed.base.model import HostTaggedPlan, LearningPlan
from testbed.dataplane.kernels.packets_state import ASKED, FREE, GLOBAL_VLANS, NOW, TAKEN, PacketModel, PacketTables
from testbed.dataplane.switch_tables import switch_tables
from testbed.dataplane.transition_tables import merge_tables, pvids_of
from testbed.engines.ovs.change_plan import refuse_another, way_to
from testbed.engines.realtime.shared_memory import attach, write
from testbed.planning import Plan

_LOOK, _TAKES = 0.005, 10.0  # sampling interval, s, and until other tables are in force at the latest


def tables_now(folder: Path, model: PacketModel) -> PacketTables:
    """The tables that are in force."""
    number = int(model.live.edition[TAKEN])
    return attach(folder / f"tables-{number}", PacketTables) if number else model.live.tables


def ask_for(folder: Path, model: PacketModel, tables: PacketTables) -> PacketTables:
    """Have tables take the place of those in force soon; returns them as they will be computed by."""
    number = int(model.live.edition[ASKED]) + 1
    file = folder / f"tables-{number}"
    write(file, tables)
    coming = attach(file, PacketTables)
    model.live.edition[ASKED] = number
    return coming


def wait_until_taken(folder: Path, model: PacketModel) -> None:
    """Return when the tables asked for are in force; those before are no file any more.

    Raises:
        LabError: the process that computes the switches does not take them.
    """
    edition, number = model.live.edition, int(model.live.edition[ASKED])
    until = time.monotonic() + _TAKES
    while edition[TAKEN] != number:
        if time.monotonic() > until:
            raise LabError(f"the process that computes the switches has not taken other tables in {_TAKES:g} s")
        time.sleep(_LOOK)
    (folder / f"tables-{number - 1}").unlink(missing_ok=True)


def put_tables(folder: Path, model: PacketModel, tables: PacketTables) -> PacketTables:
    """Put tables in place of those in force; returns them as they are computed by; raises as wait_until_taken()."""
    coming = ask_for(folder, model, tables)
    wait_until_taken(folder, model)
    return coming


def wait_for_drain(model: PacketModel, gone: Collection[int], goes_on: Callable[[], bool]) -> bool:
    """Wait until no frame is in some VLANs; False where `goes_on()` ends before.

    It is looked at twice, since frames go on meanwhile.
    """
    live, state = model.live, model.state
    vlans, none = np.array(sorted(gone), dtype=np.int32), 0
    while none < 2:
        if not goes_on():
            return False
        time.sleep(_LOOK)
        under_way = np.ones(len(live.tag), dtype=np.bool_)
        under_way[state.free[: int(state.counts[FREE])]] = False
        tags = live.tag[under_way]
        none = none + 1 if not np.isin(tags[tags >= 0] & 0xFFF, vlans).any() else 0
    return True


def spare_links(model: PacketModel, links: Collection[int], *, spared: bool) -> None:
    """Have the hashes of bundles choose links no more, or again; frames are forwarded by the one or by the other."""
    channels = [2 * link + way for link in links for way in (0, 1)]
    model.live.spared[channels] = spared


def wait_for_empty_links(model: PacketModel, goes_on: Callable[[], bool]) -> bool:
    """Wait until spared links carry no frame any more; False where `goes_on()` ends before.

    A frame has arrived when the time that it takes from one switch to the next has gone by in the model, too.
    """
    fabric, live, state = model.fabric, model.live, model.state
    channels = np.flatnonzero(live.spared)
    nodes = (np.arange(fabric.priorities)[:, None] * fabric.channels + channels).reshape(-1)
    under_way = int(live.delay[0] + live.longer[channels].max(initial=0))
    since: int | None = None
    while len(channels):
        if not goes_on():
            return False
        time.sleep(_LOOK)
        now = int(state.counts[NOW])
        if live.waiting[nodes].any() or state.busy[channels].any():
            since = None
        elif since is None:
            since = now
        elif now > since + under_way or int(state.counts[FREE]) == len(state.free):
            break
    return True


class Mover:
    """Carries a model over from one plan to another.

    Args:
        folder: of the lab, with its tables.
        model: as it is computed.
        old: the plan that is installed.
        new: the other one.
        off: links that are off now, and afterwards.
        switch: lets links, by number, carry frames or not.

    Raises:
        LabError: the change is refused; nothing has changed.
    """

    def __init__(
        self, folder: Path, model: PacketModel, old: Plan, new: Plan, off: tuple[Collection[int], Collection[int]],
        switch: Callable[[Collection[int], bool], object],
    ) -> None:  # fmt: skip
        self._folder, self._model, self._switch = folder, model, switch
        self._old, self._new = old, new
        _refuse_what_cannot_be(old, new)
        before, after = (set(links) for links in off)
        self._transition, self.deadlock = way_to((old, before), (new, after))

    def carry_out(self, limit: float, wake_up: float, pause: float) -> tuple[PlanStep, ...]:
        """Take the steps; see Session.move_to."""
        until, done = time.monotonic() + limit, []
        tables, new = tables_now(self._folder, self._model), self._new
        goal = switch_tables(new.topology, new.vlans, new.bundles)
        spared: tuple[int, ...] = ()
        for step in self._transition.steps:
            started = time.monotonic()
            what = step.sentence(self._old.wiring)
            if step.action == "links on":
                self._switch(step.links, True)
                time.sleep(wake_up)
            elif step.action == "links off":
                self._switch(step.links, False)
            elif step.action == "members in":
                spare_links(self._model, step.links, spared=False)
            elif step.action == "members out":
                spare_links(self._model, spared := step.links, spared=True)
            elif step.action == "add":
                added = len(set(goal.vlan_id.tolist()) - set(tables.vlan_id.tolist()))
                tables = put_tables(self._folder, self._model, merge_tables(tables, goal))
                what = f"add entries, and {added} VLANs that no frame is in yet"
            elif step.action == "move":
                tables.host_class[:] = pvids_of(goal, tables)
            elif step.action == "drain":
                gone = set(tables.vlan_id.tolist()) - set(goal.vlan_id.tolist())
                in_time = partial(_is_before, until)
                if not wait_for_drain(self._model, gone, in_time) or not wait_for_empty_links(self._model, in_time):
                    spare_links(self._model, spared, spared=False)
                    raise LabError("frames on the old paths have not arrived; does a pause hold them?")
            elif step.action == "remove":
                removed = len(set(tables.vlan_id.tolist()) - set(goal.vlan_id.tolist()))
                tables = put_tables(self._folder, self._model, goal)
                what = f"remove entries, and {removed} VLANs that no frame is in any more"
            done.append(PlanStep(step.action, what, round(time.monotonic() - started, 4)))
            time.sleep(pause)
        return tuple(done)


def _is_before(until: float) -> bool:
    return time.monotonic() < until


def _refuse_what_cannot_be(old: Plan, new: Plan) -> None:
    refuse_another(old, new)
    for one in (old, new):
        kind = switch_tables(one.topology, one.vlans, None).kind
        if kind != GLOBAL_VLANS or isinstance(one.vlans, (LearningPlan, HostTaggedPlan)):
            raise LabError(
                "a change of plans without loss needs VLANs of the whole fabric with static entries (assignment fixed)"
            )
