"""Forwarding by in-port, priority and destination, with the layer of a frame as its 802.1Q priority."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from annotated_types import Ge, Le

from testbed.base.errors import InputError
from testbed.base.model import Ints, LocalPlan, Routes, Topology
from testbed.fabric.routing.paths import key_switches, source_keys
from testbed.fabric.routing.relation import Conflict, forwarding_table, refusal
from testbed.fabric.vlans.fixed import LAST_VLAN_ID
from testbed.fabric.vlans.local_vlans import NEVER, LocalOptions, local_plan

PRIORITIES = 8
_REMEDY = (
    'Use selection "balanced" or "low_port" where the routing has it, or the assignment "model" for the simulator and '
    "the analysis alone"
)


@dataclass(frozen=True, slots=True)
class OpenFlowOptions(LocalOptions):
    """OpenFlow 1.3: match in-port, VLAN, priority and destination; set the priority; send."""

    vlan: Annotated[int, Ge(1), Le(LAST_VLAN_ID)] = 1  # VLAN of the tag that frames carry between switches


def assign_openflow(topology: Topology, routes: Routes, options: OpenFlowOptions) -> LocalPlan:
    """Make each in-port and layer a class of its own, and each source key at its switch.

    The first layer of a frame belongs to its source and destination, each later one to the virtual channel by which
    it arrives and the destination.

    Raises:
        InputError: more layers than 802.1Q has priorities, or no next virtual channel by virtual channel of arrival
            and destination (names switch, in-port and destination).
    """
    if routes.layers > PRIORITIES:
        raise InputError.one(
            "assignment.kind",
            f'"openflow" carries a layer as 802.1Q priority, of which there are {PRIORITIES}, and this routing uses '
            f"{routes.layers} layers; set routing.layers: {PRIORITIES} or lower",
        )
    table = forwarding_table(topology, routes, by_arrival=True)
    if isinstance(table, Conflict):
        raise refusal("openflow", topology, table, _REMEDY)
    hops = routes.layers * len(topology.channel_source)
    used = (table != NEVER).any(axis=1)
    classes: Ints = np.where(used, np.cumsum(used) - 1, -1).astype(np.int32)
    switch = np.concatenate([np.tile(topology.channel_target, routes.layers), key_switches(routes)[0]])
    return local_plan(
        "openflow", topology, routes, options, table, classes, None,
        vlan_switch=switch[used].astype(np.int32),
        vlan_id=np.full(int(used.sum()), options.vlan, dtype=np.int32),
        host_vlan=classes[hops + source_keys(topology, routes)],
        channel_vlan=classes[:hops].copy(),
    )  # fmt: skip
