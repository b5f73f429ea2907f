"""What a switch takes in at a host's port, and what it never forwards (IEEE 802.1Q-2018).

`admit()` is the whole of it for one frame. `filter_rules()` is what of it is alike at every port, as OpenFlow rules;
those that give untagged frames their PVID, and those of members, are the plan's.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace

from testbed.base.model import Rule
from testbed.fabric.openflow.tables import INGRESS, Priority

# Addresses of protocols between neighbours: BPDUs, PAUSE, LLDP and others. No bridge sends them on (8.6.3, table 8-1).
RESERVED_GROUP = "01:80:c2:00:00:00/ff:ff:ff:ff:ff:f0"
LLDP_GROUP = "01:80:c2:00:00:0e"  # one of them: the nearest bridge (IEEE 802.1AB-2016, table 7-1)
WHOLE_FRAME = 0xFFFF  # bytes of a frame that a controller gets: all
# The bit of an address that is a group's. No station is one, so none sends from there, and no bridge learns it (8.7).
GROUP_SOURCE = "01:00:00:00:00:00/01:00:00:00:00:00"
MASKED = frozenset({("dl_dst", RESERVED_GROUP), ("dl_src", GROUP_SOURCE)})  # matches with a mask
PRIORITY_TAGGED = 0  # VLAN identifier of a tag that has a priority and no VLAN


def matches(mac: str, masked: str) -> bool:
    """Whether a MAC address is one of those of `address/mask`."""
    address, mask = (int(part.replace(":", ""), 16) for part in masked.split("/"))
    return int(mac.replace(":", ""), 16) & mask == address


def admit(source: str, destination: str, vlan: int | None, pvid: int, tagged: Collection[int] = ()) -> int | None:
    """The VLAN of a frame that arrives at a host's port; None where it is dropped.

    Args:
        source: its MAC address.
        destination: likewise.
        vlan: identifier in its tag; None = it has no tag.
        pvid: VLAN of frames without one. A tag without a VLAN is none (6.9.1).
        tagged: VLANs that the host may tag frames with itself; none = the port admits only untagged and
            priority-tagged frames (6.9, Acceptable Frame Types).
    """
    if matches(destination, RESERVED_GROUP) or matches(source, GROUP_SOURCE):
        return None
    if vlan in (None, PRIORITY_TAGGED):
        return pvid
    return vlan if vlan in tagged else None


def filter_rules(switches: int) -> list[Rule]:
    """The rules of that at each switch, before all others: two drop, and one takes off a tag without a VLAN."""
    untag: tuple[tuple[str, int], ...] = (("pop_vlan", 0), ("resubmit", INGRESS.number))
    drops: list[tuple[tuple[str, int | str], tuple[tuple[str, int], ...]]] = [(masked, ()) for masked in sorted(MASKED)]
    return [
        Rule(switch, INGRESS.number, Priority.FILTER, (match,), actions)
        for switch in range(switches)
        for match, actions in (*drops, (("dl_vlan", PRIORITY_TAGGED), untag))
    ]


def from_own_address(rules: Iterable[Rule], hosts: Mapping[tuple[int, int], str]) -> Iterator[Rule]:
    """The rules, with those that take frames in at hosts' ports kept to the host's own address (port security).

    What a host sends from another address then matches none, and is dropped.

    Args:
        rules: of a plan.
        hosts: switch and port of each host → its MAC address.
    """
    for rule in rules:
        port = dict(rule.match).get("in_port") if rule.table == INGRESS.number else None
        mac = hosts.get((rule.switch, int(port))) if port is not None else None
        yield rule if mac is None else replace(rule, match=(*rule.match, ("dl_src", mac)))


def lldp_rules(switches: int) -> list[Rule]:
    """The rule at each switch by which LLDP frames go to a controller, before the filter drops them; nowhere else."""
    match, action = (("dl_dst", LLDP_GROUP),), (("to_controller", WHOLE_FRAME),)
    return [Rule(switch, INGRESS.number, Priority.LLDP, match, action) for switch in range(switches)]


FILTERS = len(filter_rules(1))  # rules at each switch
