"""What a plan asks of its switches, and which switches that can be bought have that much."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from testbed.base.model import LocalPlan, Longs, SwitchModel, Topology, VlanPlan
from testbed.fabric.routing.channel_lookup import leaving_channels
from testbed.fabric.vlans.local_vlans import entry_count, vlan_count
from testbed.fabric.vlans.mac_entries import entry_counts, vlans_on_switches


@dataclass(frozen=True, slots=True, eq=False)
class Needs:
    """What each switch must have."""

    ports: npt.NDArray[Any]  # (S,) ports in use
    vlans: Longs  # (S,) VLANs with a member port; local VLANs of a LocalPlan
    entries: Longs  # (S,) static MAC entries
    total_vlans: int  # VLANs of the fabric; the local ones of all switches together
    # destinations whose hosts share entries: switches with hosts, or finer where the routing tells hosts apart
    keys: int
    unit_entries: Longs  # (S,) static MAC entries if each of these had one host


@dataclass(frozen=True, slots=True)
class Fit:
    """One switch model."""

    model: str  # its name
    short_of: tuple[str, ...]  # what it has too little of: `ports`, `VLANs`, `MAC entries`; empty where it fits
    hosts_estimated: int  # H = T / V of Koibuchi et al. 2011, equation (1): entries of the MAC table by VLANs used.
    # hosts for whose entries every switch has room, the same number for every destination key; with the VLANs and
    # senders of this plan
    hosts_counted: int


def needs_of(topology: Topology, vlans: VlanPlan | LocalPlan) -> Needs:
    """Count what each switch must have."""
    if isinstance(vlans, LocalPlan):
        switch = vlans.vlan_switch[vlans.entry_vlan]
        return Needs(
            ports=topology.port_count,
            vlans=vlan_count(topology, vlans),
            entries=entry_count(topology, vlans),
            total_vlans=1 if vlans.kind == "openflow" else vlans.class_count,
            keys=len(np.unique(vlans.host_key)),
            unit_entries=np.bincount(switch, minlength=topology.switch_count),
        )
    entries = entry_counts(topology, vlans)
    return Needs(
        ports=topology.port_count,
        vlans=vlans_on_switches(topology, vlans).sum(axis=0),
        entries=entries,
        total_vlans=vlans.vlan_count,
        keys=len(np.unique(topology.host_switch)),
        unit_entries=_unit_entries(topology, vlans, entries),
    )


def _unit_entries(topology: Topology, vlans: VlanPlan, entries: Longs) -> Longs:
    count = topology.switch_count
    hosts_on = np.bincount(topology.host_switch, minlength=count)
    most = int(hosts_on.max())
    if np.isin(hosts_on, (0, most)).all():  # entries are proportional to the hosts of their destination
        return entries // most
    if vlans.entries is not None:
        listed = np.stack([vlans.entries.vlan, vlans.entries.switch, topology.host_switch[vlans.entries.host]], axis=1)
        return np.bincount(np.unique(listed, axis=0)[:, 1], minlength=count)
    from testbed.fabric.kernels import vlans as kernels

    start, leaving = leaving_channels(topology)
    sends = vlans.senders(topology)
    one = (hosts_on > 0).astype(np.int32)
    return kernels.entry_counts(
        sends, vlans.tagged_links, start, leaving, topology.channel_target, one, vlans.entry_rule == "all"
    )


def fit_of(needs: Needs, model: SwitchModel) -> Fit:
    """Compare with a switch model."""
    asked = (
        ("ports", needs.ports, model.ports),
        ("VLANs", needs.vlans, model.max_vlans),
        ("MAC entries", needs.entries, model.mac_table),
    )
    highest = int(needs.unit_entries.max(initial=0))
    return Fit(
        model=model.name,
        short_of=tuple(what for what, need, limit in asked if need.max(initial=0) > limit),
        hosts_estimated=model.mac_table // max(int(needs.vlans.max(initial=0)), 1),
        hosts_counted=needs.keys * (model.mac_table // highest) if highest else 0,
    )
