"""VLANs that switches keep for themselves, by what their makers say. Of dialects that are not here nothing is known.

`docs/real-switches.md` has the same table; a test compares them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from testbed.base.errors import Problem
from testbed.devices.dialect import Writing, port_place


@dataclass(frozen=True, slots=True)
class Reserved:
    """VLANs that no port may be put in."""

    first: int
    last: int
    by: str  # who keeps them
    source: str  # where that is said

    @property
    def text(self) -> str:
        """`1002 to 1005`, or one number."""
        return str(self.first) if self.first == self.last else f"{self.first} to {self.last}"


RESERVED: dict[str, Reserved] = {
    "powerconnect-6200": Reserved(
        4094, 4094, "this family", "Dell, PowerConnect 7000 Series User's Configuration Guide (the 6200's successor), "
        '"Default VLAN Behavior": "The configurable VLAN range is 2-4093. VLAN 4094 and 4095 are reserved"',
    ),
    "cisco-ios": Reserved(
        1002, 1005, "IOS", 'Cisco, Catalyst 4500 Series Software Configuration Guide 12.2(25)SG, Table 10-1: "Cisco '
        'defaults for FDDI and Token Ring. You cannot delete VLANs 1002-1005"',
    ),
    "sonic": Reserved(
        1, 1, "SONiC", "sonic-buildimage, sonic-vlan.yang, VLAN_LIST: vlanid has the range 2..4094",
    ),
}  # fmt: skip


def reserved_problems(dialect: str, writing: Writing) -> Iterator[Problem]:
    """Every port that would be in a VLAN that switches of a dialect keep for themselves."""
    kept = RESERVED.get(dialect)
    if kept is None:
        return
    for switch in writing.switches:
        for port in switch.ports:
            inside = [vlan for vlan in (*port.tagged, *port.untagged) if kept.first <= vlan <= kept.last]
            if inside:
                sentence = f"is in VLAN {inside[0]}; {kept.by} reserves {kept.text}, so choose another first_vlan"
                yield Problem(port_place(writing, switch, port.number), sentence)
