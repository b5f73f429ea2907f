"""What a switch says of the spanning tree protocol: priorities, costs, ports; and costs by speed where it says none.

Costs by speed are those of IEEE 802.1D-1998, table 8-5 (short, 16 bits), with the steps that switches add for port
channels, and of IEEE 802.1Q-2018, table 13-4 (long, 32 bits): 20 Tbit/s by the speed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from testbed.devices.vlan_set import VlanSet

# Key of what is said of every tree: VLANs of PVST+, instances of MSTP, or 0 of STP and RSTP count from 0.
ANY = -1
BRIDGE_PRIORITY, PORT_PRIORITY = 32768, 128
Protocol = Literal["pvst", "rstp", "mstp"]


@dataclass(frozen=True, slots=True)
class StpPort:
    """What is said of one port. None is what is not said."""

    costs: Mapping[int, int] = field(default_factory=dict)  # tree, or ANY → path cost; others by speed
    priorities: Mapping[int, int] = field(default_factory=dict)  # likewise → priority of the port
    edge: bool | None = None  # whether it leads to hosts, so that it forwards at once (portfast, edge)
    filters: bool | None = None  # whether it neither sends nor hears BPDUs
    guards: bool | None = None  # whether a BPDU that it hears shuts it (BPDU guard)
    guards_root: bool = False  # whether it carries nothing where it would lead to the root (root guard)
    number: int | None = None  # its place among the ports of the switch; None for that of its name
    mbits: int | None = None  # its speed in Mbit/s; None for that of its name


@dataclass(frozen=True, slots=True)
class StpSettings:
    """What is said of one switch."""

    protocol: Protocol = "rstp"  # STP and RSTP make the same tree
    mac: str = ""  # of the bridge; empty where nothing tells it
    priorities: Mapping[int, int] = field(default_factory=dict)  # tree, or ANY → priority of the bridge
    region: tuple[str, int] = ("", 0)  # name and revision of the MST region
    instances: Mapping[int, VlanSet] = field(default_factory=dict)  # MST instance → its VLANs; others are in 0
    long_costs: bool | None = True  # by which table costs are that no line gives; None where that is not known
    adds_speeds: bool = True  # whether a port channel has the speed of all its ports together
    ports: Mapping[str, StpPort] = field(default_factory=dict)  # those of which anything is said
    edges: bool = False  # whether access ports are edge ports unless they say otherwise
    guards_edges: bool = False  # whether BPDU guard is on for edge ports

    def port(self, name: str) -> StpPort:
        """What is said of a port."""
        return self.ports.get(name, StpPort())

    def with_port(
        self, name: str, tree: int = ANY, *, cost: int | None = None, priority: int | None = None, **changes: object
    ) -> StpSettings:
        """With more said of a port."""
        port = self.port(name)
        if cost is not None:
            port = replace(port, costs={**port.costs, tree: cost})
        if priority is not None:
            port = replace(port, priorities={**port.priorities, tree: priority})
        return replace(self, ports={**self.ports, name: replace(port, **changes)})  # type: ignore[arg-type]

    def tree_of(self, vlan: int) -> int:
        """The tree of a VLAN: its MST instance, itself, or 0."""
        if self.protocol == "mstp":
            return next((tree for tree, vlans in self.instances.items() if vlan in vlans), 0)
        return vlan if self.protocol == "pvst" else 0

    def priority_in(self, tree: int) -> int:
        """Of the bridge in a tree."""
        return self.priorities.get(tree, self.priorities.get(ANY, BRIDGE_PRIORITY))

    def port_priority_in(self, name: str, tree: int) -> int:
        """Of a port in a tree."""
        said = self.port(name).priorities
        return said.get(tree, said.get(ANY, PORT_PRIORITY))


# What the defaults of each kind of switch are; their sources are in DEFAULTS.
BY_KIND = {
    "ios": StpSettings("pvst", long_costs=False),
    "nxos": StpSettings("pvst", long_costs=False),
    "eos": StpSettings("mstp"),
    "powerconnect": StpSettings("rstp"),
    "procurve": StpSettings("mstp"),
    # Juniper's guides give the short table, and show long costs in their examples.
    "junos": StpSettings("rstp", long_costs=None),
}
# Speeds in Mbit/s by how names of ports begin, in lower case.
_SPEEDS = {
    "fastethernet": 100, "gigabitethernet": 1000, "twogigabitethernet": 2500, "fivegigabitethernet": 5000,
    "tengigabitethernet": 10_000, "twentyfivegig": 25_000, "fortygigabitethernet": 40_000, "fiftygige": 50_000,
    "hundredgig": 100_000, "twohundredgige": 200_000, "fourhundredgige": 400_000, "ge-": 1000, "xe-": 10_000,
    "mge-": 2500, "1/g": 1000, "1/xg": 10_000, "2/g": 1000, "2/xg": 10_000, "g": 1000, "sfp-sfpplus": 10_000,
}  # fmt: skip
_SHORT = ((20_000, 1), (10_000, 2), (2000, 3), (1000, 4), (400, 8), (300, 9), (200, 12), (100, 19), (10, 100))
_FORMS = re.compile(r"(\D*)(.*)", re.DOTALL)


def speed_of(name: str) -> int | None:
    """Speed in Mbit/s that the name of a port tells; None where it tells none."""
    lower = name.lower()
    fitting = [begin for begin in _SPEEDS if lower.startswith(begin) and (len(begin) > 1 or lower[1:2].isdigit())]
    return _SPEEDS[max(fitting, key=len)] if fitting else None


def cost_by_speed(mbits: int, *, long: bool) -> int:
    """Path cost of a port of a speed in Mbit/s that says none."""
    if long:
        return max(1, 20_000_000 // mbits)
    return next((cost for least, cost in _SHORT if mbits >= least), 250)


def order_of(name: str) -> tuple[str, tuple[int, ...]]:
    """Kind of a port, and its numbers, by which ports of one kind are ordered."""
    kind, rest = _FORMS.fullmatch(name).groups()  # type: ignore[union-attr]
    return kind.lower(), tuple(int(number[:9]) for number in re.findall(r"\d+", rest))
