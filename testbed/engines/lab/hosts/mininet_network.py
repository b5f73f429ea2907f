"""The lab as a Mininet network: what an Open vSwitch lab is built as, and what Mininet's command line adopts."""

from __future__ import annotations

from collections.abc import Mapping

from mininet.net import Mininet

from testbed.engines.lab.build_order import BuildOrder
from testbed.engines.lab.hosts.interface_names import HOST_INTERFACE
from testbed.engines.lab.hosts.lab_network import LabNetwork
from testbed.engines.lab.hosts.nodes import LabHost, LabIntf, LabLink, LabSwitch
from testbed.engines.ovs.switch_backend import SwitchBackend


class MininetNetwork(LabNetwork, Mininet):  # type: ignore[misc]
    """A lab in Mininet's object model: `net.get("h1").cmd("ping …")` and Mininet's CLI work on it.

    Args:
        order: as of LabNetwork.
        holders: likewise.
        groups: host → file by which its programs join its share of the processors; none where it has no share.
        switches: as of LabNetwork.
    """

    def __init__(
        self,
        order: BuildOrder,
        holders: Mapping[str, int] | None = None,
        groups: Mapping[str, str] | None = None,
        switches: SwitchBackend | None = None,
    ) -> None:
        # Mininet's own initialisation raises limits of the whole machine; a lab leaves the machine alone.
        Mininet.inited = True
        Mininet.__init__(self, host=LabHost, switch=LabSwitch, link=LabLink, intf=LabIntf, controller=None, build=False)
        LabNetwork.__init__(self, order, holders, switches)
        for host in order.hosts:
            self.addHost(
                host.name, holder=self.holders[host.name], procs=(groups or {}).get(host.name),
                access=order.host_access, ip=host.ip, mac=host.mac,
            )  # fmt: skip
        for switch in order.switches:
            self.addSwitch(switch)
        for link in order.links:
            self.addLink(link.switch_a, link.switch_b, port1=link.port_a, port2=link.port_b)
        for host in order.hosts:
            self.addLink(
                host.name, host.switch, port1=0, port2=host.port, intfName1=HOST_INTERFACE,
                addr1=host.mac, params1={"ip": host.ip, "prefix": order.prefix},
            )  # fmt: skip
        self.built = True
