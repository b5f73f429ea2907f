"""How much a switch keeps at most of what its hosts make it keep, whatever they send.

Open vSwitch keeps a flow in its datapath for each kind of frame that it has seen of late, 3 kB of memory each: a host
that sends from or to ever new addresses would have it keep 200,000. A switch that learns would keep an entry for every
address that there ever was. Both get room for what the lab's own hosts can do, and some to spare.
"""

from __future__ import annotations

from collections.abc import Sequence

from testbed.engines.lab.build_order import BuildOrder
from testbed.fabric.openflow.tables import FORWARDING

_FEW_FLOWS, _MOST_FLOWS = 4096, 200_000  # the latter is Open vSwitch's own limit
# Of all flows between hosts that one daemon sees at once: each passes several switches, in each of which it is one.
_SWITCHES_PASSED = 8
_PORTS_OF_ENTRY = 4  # by which frames for an entry come
STRANGERS = 1024  # addresses that are no host's, which a switch learns at most


def datapath_flows(order: BuildOrder, switches: Sequence[str]) -> int:
    """Flows that a daemon with these switches keeps in its datapath; beyond them frames take longer."""
    hosts = len(order.hosts) + len(order.others)
    rules = sum(len(order.rules.get(name, ())) for name in switches)
    return min(_MOST_FLOWS, max(_FEW_FLOWS, _SWITCHES_PASSED * hosts**2 + _PORTS_OF_ENTRY * rules))


def forwarding_entries(order: BuildOrder) -> dict[str, int]:
    """Rules that the forwarding table of each switch that learns has at most: its own, those of hosts, and strangers.

    Every host can be learned in every VLAN, which has a rule there.
    """
    hosts = len(order.hosts) + len(order.others)
    found = {}
    for switch, lines in order.rules.items():
        if any("learn(" in line for line in lines):
            vlans = sum(line.startswith(f"table={FORWARDING.number},") for line in lines)
            found[switch] = vlans * (1 + hosts) + STRANGERS
    return found
