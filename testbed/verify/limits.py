"""VLAN identifiers and the limits of switches that can be bought."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from testbed.model import Ints, SwitchModel, Topology, Violation, VlanPlan

# The four switches of Koibuchi et al. 2011, Table 2, and their data sheets. The paper (section 3.7) gives MAC
# tables of "8k or 12k"; VLAN limits are the makers' figures.
SWITCH_MODELS: dict[str, SwitchModel] = {
    "PC5324": SwitchModel("PC5324", ports=24, max_vlans=256, mac_table=8192),
    "PC6224": SwitchModel("PC6224", ports=24, max_vlans=1024, mac_table=8192),
    "PC6248": SwitchModel("PC6248", ports=48, max_vlans=1024, mac_table=8192),
    "SF-420": SwitchModel("SF-420", ports=24, max_vlans=256, mac_table=8192),
}
_HIGHEST_ID = 4094


def check_limits(topology: Topology, vlans: VlanPlan, model: SwitchModel | None) -> list[Violation]:
    """Identifiers must be distinct and legal; ports, VLANs and MAC entries must fit the switch model."""
    found = []
    identifiers, counts = np.unique(vlans.vlan_ids, return_counts=True)
    for identifier in identifiers[(identifiers < 1) | (identifiers > _HIGHEST_ID)].tolist():
        sentence = f"VLAN {identifier} is outside 1..{_HIGHEST_ID}, the identifiers of 802.1Q"
        found.append(Violation("vlan id", sentence, (str(identifier),)))
    for identifier in identifiers[counts > 1].tolist():
        sentence = f"VLAN {identifier} stands for more than one tree; each needs an identifier of its own"
        found.append(Violation("vlan id", sentence, (str(identifier),)))
    return found if model is None else found + _check_model(topology, vlans, model)


def _check_model(topology: Topology, vlans: VlanPlan, model: SwitchModel) -> list[Violation]:
    found = []
    needs: tuple[tuple[str, str, npt.NDArray[Any]], ...] = (
        ("ports", "ports", topology.port_count),
        ("VLANs", "max_vlans", _vlans_on_switch(topology, vlans)),
        ("MAC entries", "mac_table", np.bincount(vlans.entry_switch, minlength=topology.switch_count)),
    )
    for what, limit, used in needs:
        worst = int(np.argmax(used))
        need, has = int(used[worst]), getattr(model, limit)
        if need > has:
            name = topology.switch_name(worst)
            enough = [other.name for other in SWITCH_MODELS.values() if getattr(other, limit) >= need]
            advice = f"{' or '.join(enough)} would do" if enough else "no known model has so many"
            sentence = f"{name} needs {need} {what} and a {model.name} has {has}; {advice}"
            found.append(Violation("switch model", sentence, (name,)))
    return found


def _vlans_on_switch(topology: Topology, vlans: VlanPlan) -> Ints:
    """(S,) VLANs of which the switch has a member port."""
    present = np.zeros((vlans.vlan_count, topology.switch_count), dtype=bool)
    for vlan in range(vlans.vlan_count):
        present[vlan, topology.links[vlans.tagged_links[vlan]].reshape(-1)] = True
        present[vlan, topology.host_switch[vlans.untagged_hosts[vlan]]] = True
    count: Ints = present.sum(axis=0).astype(np.int32)
    return count
