"""The figures of a plan that people and programs ask for first."""

from __future__ import annotations

from typing import Any

import numpy as np

from testbed.plan import Plan
from testbed.routing.paths import channel_load, switches_on_path


def summary(plan: Plan) -> dict[str, Any]:
    """Return the object that `testbed plan --format json` prints.

    `mean_switches_on_path` is over all N² ordered host pairs, same-switch and self pairs counted as 1, which
    is the convention of Koibuchi et al. 2011, Table 11. `max_channel_load` counts ordered host pairs.
    """
    topology, vlans = plan.topology, plan.vlans
    entries = np.bincount(vlans.entry_switch, minlength=topology.switch_count)
    load = channel_load(topology, plan.routes)
    return {
        "scenario": plan.scenario.name,
        "topology": plan.scenario.topology_kind,
        "routing": plan.scenario.routing_kind,
        "assignment": plan.scenario.assignment_kind,
        "switches": topology.switch_count,
        "switch_links": topology.link_count,
        "hosts": topology.host_count,
        "vlans": vlans.vlan_count,
        "vlan_ids": [int(vlan) for vlan in vlans.vlan_ids],
        "rules": len(plan.rules),
        "max_mac_entries": int(entries.max(initial=0)),
        "mean_switches_on_path": float(switches_on_path(topology, plan.routes).mean()),
        "max_channel_load": int(load.max(initial=0)),
        "unused_channels": int((load == 0).sum()),
        "deadlock_free": plan.deadlock_free,
        "expect": plan.scenario.expect,
        "violations": [
            {"invariant": v.invariant, "sentence": v.sentence, "witness": list(v.witness)} for v in plan.violations
        ],
        "notes": list(plan.routes.notes),
        "digest": plan.digest,
    }
