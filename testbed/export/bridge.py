"""A VLAN-filtering Linux bridge as its configuration leaves it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

Entry = tuple[int, str]  # VLAN, MAC address


@dataclass(frozen=True, slots=True)
class BridgePort:
    """One port of a bridge.

    Attributes:
        pvid: VLAN of untagged frames that arrive; None = they are dropped.
        members: VLANs whose frames may pass.
        untagged: those whose frames leave without a tag.
        learning: whether source addresses are learned here.
        flood: whether unknown unicast frames leave by it.
        bcast_flood: whether broadcasts do.
        mcast_flood: whether multicasts do.
    """

    pvid: int | None = None
    members: frozenset[int] = frozenset()
    untagged: frozenset[int] = frozenset()
    learning: bool = True
    flood: bool = True
    bcast_flood: bool = True
    mcast_flood: bool = True


@dataclass(frozen=True, slots=True)
class Bridge:
    """One bridge.

    Attributes:
        name: of the switch it stands for.
        vlan_filtering: whether it looks at VLANs at all.
        stp: whether it runs the spanning tree protocol.
        ports: by name.
        fdb: static entries, (VLAN, MAC address) → port.
    """

    name: str
    vlan_filtering: bool
    stp: bool
    ports: Mapping[str, BridgePort]
    fdb: Mapping[Entry, str]
