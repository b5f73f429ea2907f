"""Carry out by tables of a model what the segment manager decides when links, ports and switches die.

VLANs are added by tables that have them beside all others, and go when tables without them are put in their place; a
PVID is a number in the tables that are in force. So hosts are diverted, and moved to new paths, at the model's next
frame of theirs; other tables take until the model's process looks for them, a tenth of a second at most.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection
from pathlib import Path

import numpy as np

from testbed.base.model import Ints, Topology
from testbed.dataplane.kernels.packets_state import PacketModel, PacketTables
from testbed.dataplane.transition_tables import merge_tables
from testbed.engines.realtime.change_plan import ask_for, tables_now, wait_for_drain, wait_until_taken
from testbed.planning.failover.model_tables import all_tables, backup_tables, path_tables
from testbed.planning.failover.tables import Tables

# Frames on old paths that have not arrived by then are held back; s.
_HELD = 5.0


class ModelInstaller:
    """An Installer of the segment manager. One thread adds and removes, others may divert hosts meanwhile.

    Args:
        folder: of the lab, with its tables.
        model: as it is computed.
        topology: of the fabric.
        tables: that are to be in force at the beginning; they are put there if others are.
    """

    def __init__(self, folder: Path, model: PacketModel, topology: Topology, tables: Tables) -> None:
        self._folder, self._model, self._topology = folder, model, topology
        self._lock = threading.Lock()
        self._pvid: Ints = tables.vlans.vlan_ids[tables.vlans.pvid]  # (H,) of each host's port
        self._paths: Collection[int] = set(tables.vlans.vlan_ids.tolist())
        self._backups = self._next_backups = tables.backups.vlan_ids
        # Those in force, and those that soon will be: PVIDs are written into both.
        self._open = [tables_now(folder, model)]
        self._before = self._open[0]
        self._waits: float | None = None
        wanted = all_tables(topology, tables)
        if table_differences(wanted, self._open[0]):
            self._put(wanted)

    @property
    def problem(self) -> str:
        """What is in the way of new tables now; empty where nothing is."""
        waits = self._waits
        if waits is None or time.monotonic() - waits < _HELD:
            return ""
        return "frames on the old paths have not arrived; does a pause hold them?"

    def vlans_in_use(self) -> Collection[int]:
        """See Installer."""
        return set(self._open[-1].vlan_id.tolist())

    def divert(self, hosts: Ints, backups: Ints) -> None:
        """See Installer."""
        with self._lock:
            self._pvid[hosts] = self._backups[backups]
            self._write_pvids()

    def add_paths(self, tables: Tables) -> None:
        """See Installer."""
        self._add(path_tables(self._topology, tables))

    def take_back(self) -> None:
        """See Installer."""
        self._put(self._before)

    def move(self, tables: Tables) -> None:
        """See Installer."""
        self._paths = set(tables.vlans.vlan_ids.tolist())
        with self._lock:
            self._pvid[:] = tables.vlans.vlan_ids[tables.vlans.pvid]
            self._write_pvids()

    def confirm(self) -> None:
        """See Installer: nobody has to be waited for."""

    def wait_for_drain(self, goes_on: Callable[[], bool]) -> bool:
        """See Installer: exactly, since the model knows which frames are under way."""
        self._waits = time.monotonic()
        try:
            return wait_for_drain(self._model, set(self.vlans_in_use()) - set(self._paths), goes_on)
        finally:
            self._waits = None

    def drop_old_paths(self, tables: Tables) -> None:
        """See Installer: they go with the old backups, since each change of tables takes its time."""

    def add_backups(self, tables: Tables) -> None:
        """See Installer."""
        self._next_backups = tables.backups.vlan_ids
        self._add(backup_tables(self._topology, tables))

    def use_backups(self) -> None:
        """See Installer."""
        with self._lock:
            self._backups = self._next_backups

    def keep_only(self, tables: Tables) -> None:
        """See Installer."""
        self._put(all_tables(self._topology, tables))

    def _add(self, more: PacketTables) -> None:
        self._before = self._open[-1]
        self._put(merge_tables(self._before, more))

    def _put(self, tables: PacketTables) -> None:
        with self._lock:
            coming = ask_for(self._folder, self._model, tables._replace(host_class=self._classes(tables)))
            self._open.append(coming)
        wait_until_taken(self._folder, self._model)
        with self._lock:
            self._open = [coming]

    def _write_pvids(self) -> None:
        for tables in self._open:
            tables.host_class[:] = self._classes(tables)

    def _classes(self, tables: PacketTables) -> Ints:
        """(H,) what PVIDs make of hosts' frames, in the numbers of tables."""
        vlan = tables.vlan_of[self._pvid]
        assert (vlan >= 0).all(), "a PVID without its VLAN"
        classes: Ints = (vlan * tables.switches + self._topology.host_switch).astype(np.int32)
        return classes


def table_differences(wanted: PacketTables, found: PacketTables) -> int:
    """How many entries, members and PVIDs differ; VLANs that are in one of both count with all that they have."""
    if wanted.vlan_id.tolist() != found.vlan_id.tolist():
        return len(set(wanted.vlan_id.tolist()) ^ set(found.vlan_id.tolist())) * wanted.next_hop.shape[1] or 1
    return sum(
        int((one != other).sum())
        for one, other in (
            (wanted.next_hop, found.next_hop), (wanted.member, found.member), (wanted.host_class, found.host_class)
        )
    )  # fmt: skip
