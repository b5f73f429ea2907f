"""What a switch does that has neither VLANs nor a spanning tree: every frame to every other port."""

from __future__ import annotations

from testbed.model import Rule, Topology
from testbed.pipeline.tables import INGRESS, Priority


def flooding_rules(topology: Topology) -> list[Rule]:
    """One rule a switch; with a loop among the links a broadcast never ends. Only `testbed storm` installs them."""
    ports: list[list[int]] = [[] for _ in range(topology.switch_count)]
    for switch, port in zip(topology.host_switch.tolist(), topology.host_port.tolist(), strict=True):
        ports[switch].append(port)
    for switch, port in zip(topology.channel_source.tolist(), topology.out_port.tolist(), strict=True):
        ports[switch].append(port)
    return [
        Rule(switch, INGRESS.number, Priority.FLOOD, (), tuple(("output", port) for port in sorted(its)))
        for switch, its in enumerate(ports)
    ]
