"""The figures of a plan that people and programs ask for first."""

from __future__ import annotations

import math
from typing import TypedDict

from testbed.base.model import LocalPlan, Longs, Topology, VlanPlan
from testbed.fabric.openflow.compile import count_rules
from testbed.fabric.routing.paths import channel_load, mean_switches_on_path
from testbed.fabric.verify.flooding import multiplication
from testbed.fabric.vlans.local_vlans import entry_count, fewest_by_entries, vlan_count
from testbed.fabric.vlans.mac_entries import entry_counts
from testbed.planning import Plan


class Multiplication(TypedDict):
    """Copies of a flooded frame that a switch would take in; None where they circulate."""

    mean: float | None
    max: float | None
    endless: bool


class ShownViolation(TypedDict):
    """A Violation."""

    invariant: str
    sentence: str
    witness: list[str]


class _VlanFigures(TypedDict):
    vlans: int
    vlans_total: int
    vlan_ids: list[int]
    vlans_by_entries: int | None
    multiplication: Multiplication | None


class PlanFigures(_VlanFigures):
    """What summary() tells."""

    scenario: str
    topology: str
    routing: str
    assignment: str
    switches: int
    switch_links: int
    bundles: int
    hosts: int
    layers: int
    rules: int
    max_mac_entries: int
    mean_switches_on_path: float
    max_channel_load: int
    unused_channels: int
    deadlock_free: bool
    expect: str
    violations: list[ShownViolation]
    notes: list[str]
    digest: str


def summary(plan: Plan) -> PlanFigures:
    """Return the object that `testbed plan --format json` prints.

    `mean_switches_on_path` is over all N² ordered host pairs, same-switch and self pairs counted as 1, which
    is the convention of Koibuchi et al. 2011, Table 11. `max_channel_load` counts ordered host pairs.
    `vlans` are those of the whole fabric, or, where VLANs are local to switches, those of the switch that has most;
    `vlans_total` is their sum over switches then. `vlans_by_entries` and `multiplication` are None but for local
    VLANs: the most a switch would need if VLANs were merged wherever their forwarding entries agree, and the copies
    of a flooded frame a switch would take in if switches flooded to all members (None where they circulate).
    `switch_links` are physical links; `bundles` of them are aggregated with others, and channels are logical then.
    """
    topology = plan.topology
    entries, vlans = _counts(topology, plan.vlans)
    load = channel_load(topology, plan.routes)
    return {
        "scenario": plan.scenario.name,
        "topology": plan.scenario.topology_kind,
        "routing": plan.scenario.routing_kind,
        "assignment": plan.scenario.assignment_kind,
        "switches": topology.switch_count,
        "switch_links": plan.wiring.link_count,
        "bundles": 0 if plan.bundles is None else int((plan.bundles.sizes > 1).sum()),
        "hosts": topology.host_count,
        "layers": plan.routes.layers,
        **vlans,
        "rules": count_rules(topology, plan.vlans, plan.bundles),
        "max_mac_entries": int(entries.max(initial=0)),
        "mean_switches_on_path": mean_switches_on_path(topology, plan.routes),
        "max_channel_load": int(load.max(initial=0)),
        "unused_channels": int((load == 0).sum()),
        "deadlock_free": plan.deadlock_free,
        "expect": plan.scenario.expect,
        "violations": shown_violations(plan),
        "notes": [*plan.scenario.notes, *plan.routes.notes],
        "digest": plan.digest,
    }


def _counts(topology: Topology, vlans: VlanPlan | LocalPlan) -> tuple[Longs, _VlanFigures]:
    """(S,) MAC entries, and the figures that tell VLANs of the fabric from those of a switch."""
    if isinstance(vlans, VlanPlan):
        return entry_counts(topology, vlans), {
            "vlans": vlans.vlan_count,
            "vlans_total": vlans.vlan_count,
            "vlan_ids": [int(vlan) for vlan in vlans.vlan_ids],
            "vlans_by_entries": None,
            "multiplication": None,
        }
    counts = vlan_count(topology, vlans)
    return entry_count(topology, vlans), {
        "vlans": int(counts.max(initial=0)),
        "vlans_total": 1 if vlans.kind == "openflow" else int(counts.sum()),
        "vlan_ids": [],
        "vlans_by_entries": fewest_by_entries(topology, vlans) if vlans.kind == "renamed" else None,
        "multiplication": shown_multiplication(multiplication(topology, vlans)),
    }


def shown_multiplication(found: tuple[float, float] | None) -> Multiplication | None:
    """What multiplication() has found."""
    if found is None:
        return None
    mean, most = (value if math.isfinite(value) else None for value in found)
    return {"mean": mean, "max": most, "endless": most is None}


def shown_violations(plan: Plan) -> list[ShownViolation]:
    """What a plan breaks."""
    return [{"invariant": v.invariant, "sentence": v.sentence, "witness": list(v.witness)} for v in plan.violations]
