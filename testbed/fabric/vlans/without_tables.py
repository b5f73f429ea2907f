"""No tables: paths that the simulator and the analysis follow, and that no switch's VLANs or rules hold."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from testbed.base.model import LocalPlan, Routes, Topology
from testbed.fabric.routing.paths import destination_keys


@dataclass(frozen=True, slots=True)
class ModelOptions:
    """There are none."""


def assign_model(topology: Topology, routes: Routes, options: ModelOptions) -> LocalPlan:
    """Make a plan without any class or entry: frames go where the routes say."""
    del options
    none = np.zeros(0, dtype=np.int32)
    return LocalPlan(
        kind="model",
        vlan_switch=none,
        vlan_id=none.copy(),
        host_vlan=np.full(topology.host_count, -1, dtype=np.int32),
        channel_vlan=np.full(routes.layers * len(topology.channel_source), -1, dtype=np.int32),
        host_key=np.ascontiguousarray(destination_keys(topology, routes), dtype=np.int32),
        entry_vlan=none.copy(),
        entry_key=none.copy(),
        entry_hop=none.copy(),
        member_start=np.zeros(1, dtype=np.int64),
        member_port=none.copy(),
        flood_links=None,
    )
