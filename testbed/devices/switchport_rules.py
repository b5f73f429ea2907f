"""Commands of `switchport` and of VLANs that Arista EOS and Cisco NX-OS have alike."""

from __future__ import annotations

from testbed.devices.command_rules import (
    PASSED_OVER,
    Rule,
    Section,
    join_channel,
    set_allowed,
    set_field,
    set_mode,
)
from testbed.devices.vlan_set import VlanSet


def suspend_vlans(section: Section) -> None:
    """VLANs carry nothing."""
    section.switch.without |= section.vlans


def activate_vlans(section: Section) -> None:
    """VLANs carry frames again."""
    section.switch.without -= section.vlans


def remove_vlans(section: Section, vlans: VlanSet) -> None:
    """VLANs are not there any more."""
    section.switch.vlans -= vlans


def stop_stp(section: Section) -> None:
    """The spanning tree protocol is off."""
    section.switch.stp = False


def stop_stp_in(section: Section, vlans: VlanSet) -> None:
    """The spanning tree protocol is off in some VLANs."""
    section.switch.without_stp |= vlans


def register_address(section: Section, mac: str, vlan: int, ports: list[str]) -> None:
    """An address has a static entry."""
    section.switch.fdb[vlan, mac] = ports[0]


def pass_over(of: str, *beginnings: str) -> tuple[Rule, ...]:
    """Rules of lines that move no frame, by their first words."""
    return tuple(
        Rule(of, f"{beginning} REST", PASSED_OVER)  # type: ignore[arg-type]
        for beginning in beginnings
    )


SWITCHPORT = (
    Rule("port", "switchport", set_field("outside", "")),
    Rule("port", "no switchport", set_field("outside", "is a routed port")),
    Rule("port", "switchport mode access", set_mode("access")),
    Rule("port", "switchport mode trunk", set_mode("trunk")),
    Rule("port", "switchport access vlan N", set_field("access")),
    Rule("port", "switchport trunk native vlan tag", set_field("tags_native", True)),
    Rule("port", "switchport trunk native vlan N", set_field("native")),
    Rule("port", "switchport trunk allowed vlan REST", set_allowed),
    Rule("port", "shutdown", set_field("shut", True)),
    Rule("port", "no shutdown", set_field("shut", False)),
    Rule("port", "channel-group WORD mode REST", join_channel),
)
