"""VLAN identifiers and the limits of switches that can be bought."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from testbed.base.model import LocalPlan, SwitchModel, Topology, Violation, VlanPlan
from testbed.fabric.vlans.local_vlans import entry_count, vlan_count
from testbed.fabric.vlans.mac_entries import entry_counts, vlans_on_switches

# The four switches of Koibuchi et al. 2011, Table 2, and their data sheets. The paper (section 3.7) gives MAC
# tables of "8k or 12k"; VLAN limits are the makers' figures.
SWITCH_MODELS: dict[str, SwitchModel] = {
    "PC5324": SwitchModel("PC5324", ports=24, max_vlans=256, mac_table=8192),
    "PC6224": SwitchModel("PC6224", ports=24, max_vlans=1024, mac_table=8192),
    "PC6248": SwitchModel("PC6248", ports=48, max_vlans=1024, mac_table=8192),
    "SF-420": SwitchModel("SF-420", ports=24, max_vlans=256, mac_table=8192),
}
_HIGHEST_ID = 4094
Counts = npt.NDArray[Any]


def check_limits(topology: Topology, vlans: VlanPlan, model: SwitchModel | None) -> list[Violation]:
    """Identifiers must be distinct and legal; ports, VLANs and MAC entries must fit the switch model."""
    found = []
    identifiers, counts = np.unique(vlans.vlan_ids, return_counts=True)
    for identifier in identifiers[(identifiers < 1) | (identifiers > _HIGHEST_ID)].tolist():
        sentence = f"VLAN {identifier} is outside 1..{_HIGHEST_ID}, the identifiers of 802.1Q"
        found.append(Violation("vlan id", sentence, (str(identifier),)))
    for identifier in identifiers[counts > 1].tolist():
        sentence = f"VLAN {identifier} is used for more than one tree; each needs an identifier of its own"
        found.append(Violation("vlan id", sentence, (str(identifier),)))
    if model is not None:
        vlans_used = vlans_on_switches(topology, vlans).sum(axis=0)
        found += _check_model(topology, vlans_used, entry_counts(topology, vlans), model)
    return found


def check_model_tables(plan: LocalPlan, model: SwitchModel | None) -> list[Violation]:
    """A plan of the model has no tables, so none is there and no switch that can be bought carries it out."""
    found = []
    if plan.class_count or len(plan.entry_vlan) or len(plan.member_port):
        found.append(Violation("tables", "a plan of the assignment model has tables, and it should have none"))
    if model is not None:
        sentence = f"no tables carry these paths, so a {model.name} cannot either; leave switch_model out"
        found.append(Violation("switch model", sentence, (model.name,)))
    return found


def check_local_limits(topology: Topology, plan: LocalPlan, model: SwitchModel | None) -> list[Violation]:
    """Identifiers must be legal, distinct in each switch or one for all; what is used must fit the switch model."""
    found = []
    illegal = (plan.vlan_id < 1) | (plan.vlan_id > _HIGHEST_ID)
    for identifier in np.unique(plan.vlan_id[illegal]).tolist():
        sentence = f"VLAN {identifier} is outside 1..{_HIGHEST_ID}, the identifiers of 802.1Q"
        found.append(Violation("vlan id", sentence, (str(identifier),)))
    if plan.kind == "openflow":
        identifiers = np.unique(plan.vlan_id).tolist()
        if len(identifiers) > 1:
            names = tuple(str(identifier) for identifier in identifiers)
            sentence = f"switches use different VLANs between them: {', '.join(names)}; there is one for all"
            found.append(Violation("vlan id", sentence, names))
    else:
        pairs, counts = np.unique(np.stack([plan.vlan_switch, plan.vlan_id], axis=1), axis=0, return_counts=True)
        for switch, identifier in pairs[counts > 1].tolist():
            name = topology.switch_name(switch)
            sentence = f"VLAN {identifier} of {name} is used more than once; each needs an identifier of its own"
            found.append(Violation("vlan id", sentence, (name, str(identifier))))
    if model is None:
        return found
    if plan.kind == "openflow":
        sentence = (
            f"a {model.name} forwards by VLAN and MAC address alone; the assignment openflow needs switches that match "
            "in-port and priority as well"
        )
        return [*found, Violation("switch model", sentence, (model.name,))]
    return found + _check_model(topology, vlan_count(topology, plan), entry_count(topology, plan), model)


def _check_model(topology: Topology, vlans: Counts, entries: Counts, model: SwitchModel) -> list[Violation]:
    """What each switch uses, against what the model has."""
    return [
        *check_ports(topology, model),
        *_shortage(topology, "VLANs", "max_vlans", vlans, model),
        *_shortage(topology, "MAC entries", "mac_table", entries, model),
    ]


def check_ports(topology: Topology, model: SwitchModel) -> list[Violation]:
    """Ports in use, against those of the model; known before anything is routed."""
    return _shortage(topology, "ports", "ports", topology.port_count, model)


def _shortage(topology: Topology, what: str, limit: str, used: Counts, model: SwitchModel) -> list[Violation]:
    worst = int(np.argmax(used))
    need, has = int(used[worst]), getattr(model, limit)
    if need <= has:
        return []
    name = topology.switch_name(worst)
    enough = [other.name for other in SWITCH_MODELS.values() if getattr(other, limit) >= need]
    advice = f"{' or '.join(enough)} would do" if enough else "no known model has so many"
    sentence = f"{name} needs {need} {what} and a {model.name} has {has}; {advice}"
    return [Violation("switch model", sentence, (name,))]
