"""Tables of modelled switches, as rules.py has the rules of others: of the paths, and of the backups beside them."""

from __future__ import annotations

import numpy as np

from testbed.base.model import Ints, Topology
from testbed.dataplane.kernels.packets_state import DISCARD, PacketTables
from testbed.dataplane.switch_tables import switch_tables
from testbed.dataplane.transition_tables import merge_tables
from testbed.planning.failover.failed_elements import find_islands
from testbed.planning.failover.tables import Tables


def path_tables(topology: Topology, tables: Tables) -> PacketTables:
    """The VLANs of the paths, with the PVIDs of all hosts."""
    found = switch_tables(topology, tables.vlans, None)
    _filter(topology, tables, found, tables.vlans.pvid, topology.host_switch)
    return found


def backup_tables(topology: Topology, tables: Tables) -> PacketTables:
    """The backup VLANs, which are no host's yet."""
    found = switch_tables(topology, tables.backups, None)
    switches = np.unique(topology.host_switch)
    vlans = np.arange(tables.backups.vlan_count, dtype=np.int32)
    _filter(topology, tables, found, np.repeat(vlans, len(switches)), np.tile(switches, len(vlans)))
    return found


def all_tables(topology: Topology, tables: Tables) -> PacketTables:
    """All that is installed while nothing happens."""
    return merge_tables(path_tables(topology, tables), backup_tables(topology, tables))


def _filter(topology: Topology, tables: Tables, found: PacketTables, vlans: Ints, switches: Ints) -> None:
    """Drop frames for hosts beyond reach where they enter, a switch in a VLAN each: else they would be flooded."""
    island = find_islands(topology, tables.dead)
    for vlan, switch in zip(vlans.tolist(), switches.tolist(), strict=True):
        beyond = island[topology.host_switch] != island[switch]
        found.next_hop[vlan * found.switches + switch, beyond] = DISCARD
