"""Tables with the VLANs of two plans of one fabric, for a change of plans: make before break."""

from __future__ import annotations

import numpy as np

from testbed.base.model import Ints
from testbed.dataplane.kernels.packets_state import PacketTables


def merge_tables(old: PacketTables, new: PacketTables) -> PacketTables:
    """Tables with the VLANs of two plans of one fabric, and the PVIDs of the first.

    A VLAN of one identifier has the same links and members in both; entries of either are there.
    """
    switches, kept = old.switches, np.isin(new.vlan_id, old.vlan_id)
    fresh = np.flatnonzero(~kept)

    def by_vlan(tables: PacketTables) -> Ints:
        return tables.next_hop.reshape(len(tables.vlan_id), switches, -1)

    hops = np.concatenate([by_vlan(old), by_vlan(new)[fresh]])
    for vlan in np.flatnonzero(kept).tolist():
        there = int(old.vlan_of[new.vlan_id[vlan]])
        hops[there] = np.where(hops[there] < 0, by_vlan(new)[vlan], hops[there])
    classes = (fresh[:, None] * switches + np.arange(switches)).reshape(-1).tolist()
    rows = [new.flood_channel[new.flood_start[one] : new.flood_start[one + 1]] for one in classes]
    ids = np.concatenate([old.vlan_id, new.vlan_id[fresh]]).astype(np.int32)
    vlan_of = np.full(len(old.vlan_of), -1, dtype=np.int32)
    vlan_of[ids] = np.arange(len(ids))
    return old._replace(
        next_hop=hops.reshape(-1, hops.shape[-1]),
        member=np.concatenate([old.member, new.member[:, fresh]], axis=1),
        vlan_id=ids,
        vlan_of=vlan_of,
        flood_start=np.concatenate(
            [old.flood_start, old.flood_start[-1] + np.cumsum([len(row) for row in rows])]
        ).astype(np.int64),
        flood_channel=np.concatenate([old.flood_channel, *rows]).astype(np.int32),
    )


def pvids_of(new: PacketTables, among: PacketTables) -> Ints:
    """(H,) the classes that a plan gives frames of hosts, by the numbers of tables that have its VLANs among others."""
    vlan, switch = np.divmod(new.host_class, new.switches)
    found: Ints = (among.vlan_of[new.vlan_id[vlan]] * new.switches + switch).astype(np.int32)
    return found
