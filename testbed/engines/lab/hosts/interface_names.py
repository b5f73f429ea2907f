"""Names inside a lab: interfaces of switches and hosts, and files that the planner's side and the agent share."""

from __future__ import annotations

from testbed.engines.lab.build_order import BuildOrder

HOST_INTERFACE = "eth0"
# In the folder of a lab: its plan, for its controller and for commands that find links by name.
PLAN = "plan.json"
# In the folder of a lab: what its daemons of Open vSwitch have, their control sockets too.
OPEN_VSWITCH = "ovs"
# In the folder of a lab whose switches are a model: its memory.
MODEL = "model"
# Beside it: which switches of it have been killed.
KILLED = "killed"
# In the folder of a lab: what was recorded beside its last load.
RECORD = "telemetry.npz"


def port_interface(switch: str, port: int) -> str:
    """Name of the interface of a switch port."""
    return f"{switch}-eth{port}"


def vlan_interface(vlan: int) -> str:
    """Name of a host's interface in a VLAN."""
    return f"{HOST_INTERFACE}.{vlan}"


def far_end(number: int) -> str:
    """Name of the other end of the cable of a port whose link leads to another machine, by its place in order.far."""
    return f"cut{number}"


def channel_ports(order: BuildOrder) -> list[str]:
    """Interface that sends into each channel between switches, in channel order."""
    return [port_interface(switch, port) for ends in order.ends for switch, port in ends]


def host_ports(order: BuildOrder) -> list[str]:
    """Interface of the switch port that each host hangs on, in host order."""
    return [port_interface(host.switch, host.port) for host in order.hosts]
