"""The rules of tables: of the paths, of the backups beside them, and those that divert hosts."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

import numpy as np

from testbed.base.model import Rule, Topology, host_mac
from testbed.fabric.openflow.compile import compile_rules
from testbed.fabric.openflow.tables import FORWARDING, Priority
from testbed.planning.failover.failed_elements import find_islands
from testbed.planning.failover.tables import Tables


def path_rules(topology: Topology, tables: Tables) -> tuple[Rule, ...]:
    """The rules of the VLANs, PVIDs included."""
    vlans = tables.vlans
    sends = {
        (int(switch), int(vlan)) for switch, vlan in zip(topology.host_switch, vlans.vlan_ids[vlans.pvid], strict=True)
    }
    return (*compile_rules(topology, vlans), *_filters(topology, tables, sends))


def backup_rules(topology: Topology, tables: Tables) -> tuple[Rule, ...]:
    """The rules of the backup VLANs; no frame meets them before something dies."""
    vlans = tables.backups.vlan_ids.tolist()
    sends = {(switch, vlan) for switch in np.unique(topology.host_switch).tolist() for vlan in vlans}
    carried = (rule for rule in compile_rules(topology, tables.backups) if not sets_pvid(rule))
    return (*carried, *_filters(topology, tables, sends))


def _filters(topology: Topology, tables: Tables, sends: Collection[tuple[int, int]]) -> list[Rule]:
    """Static entries that drop frames for hosts beyond reach, where they enter: without these they would be flooded."""
    island = find_islands(topology, tables.dead)
    if not island.any():
        return []
    of_host = island[topology.host_switch]
    return [
        Rule(
            switch, FORWARDING.number, Priority.STATIC_ENTRY, (("dl_vlan", vlan), ("dl_dst", host_mac(int(host)))), ()
        )
        for switch, vlan in sorted(sends)
        for host in np.flatnonzero(of_host != island[switch])
    ]  # fmt: skip


def backup_pvids(topology: Topology, tables: Tables) -> tuple[tuple[Rule, ...], ...]:
    """For each backup VLAN the rules, one a host, that make it the PVID of the host's port."""
    plan = tables.backups
    none = replace(plan, tagged_links=np.zeros_like(plan.tagged_links))
    return tuple(
        tuple(
            sorted(
                filter(sets_pvid, compile_rules(topology, replace(none, pvid=np.full_like(plan.pvid, backup)))),
                key=lambda rule: _host_of(topology, rule),
            )
        )
        for backup in range(plan.vlan_count)
    )


def sets_pvid(rule: Rule) -> bool:
    """Whether a rule tags the frames of a host."""
    return any(action == "push_vlan" for action, _ in rule.actions)


def _host_of(topology: Topology, rule: Rule) -> int:
    port = dict(rule.match)["in_port"]
    return int(np.flatnonzero((topology.host_switch == rule.switch) & (topology.host_port == port))[0])
