"""What ports become once cables are known: those that no line mentions, and trunks that Catalysts negotiate.

Dynamic Trunking Protocol, as the Catalyst command references have it (switchport mode): two ports whose VTP domains
agree become a trunk if one of them asks for it (trunk, desirable) and the other at least agrees (auto). A port at its
default, dynamic auto, beside one that does not negotiate is an access port.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from testbed.devices.bridge import Bridge, BridgePort, Dtp, Place


def settle_ports(
    bridges: Mapping[str, Bridge], cables: Mapping[Place, Place], used: Iterable[Place]
) -> dict[str, Bridge]:
    """Bridges with all the ports that frames can take.

    Args:
        bridges: by the name of the switch, as their configurations leave them.
        cables: port → port at the other end, both ways.
        used: ports that lead somewhere, those of cables among them.
    """
    added: dict[str, set[str]] = {}
    for switch, port in used:
        bridge = bridges[switch]
        if bridge.reading.unmentioned and not _is_mentioned(bridge, port):
            added.setdefault(switch, set()).add(port)
    settled = {name: _with_ports(bridge, added.get(name, set())) for name, bridge in bridges.items()}
    return {
        name: _negotiated(name, bridge, settled, cables) if bridge.reading.dtp else bridge
        for name, bridge in settled.items()
    }


def _is_mentioned(bridge: Bridge, port: str) -> bool:
    return port in bridge.ports or port in bridge.reading.down or port in bridge.channels


def _with_ports(bridge: Bridge, names: set[str]) -> Bridge:
    """The bridge with ports that its configuration does not mention."""
    default = bridge.reading.unmentioned
    if not names or default is None:
        return bridge
    reading = bridge.reading
    reading = replace(
        reading,
        defaults={**reading.defaults, **dict.fromkeys(names, (default.default,))},
        silent=frozenset(reading.silent) | names,
        dtp={**reading.dtp, **(dict.fromkeys(names, default.dtp) if default.dtp is not None else {})},
    )
    return replace(bridge, ports={**bridge.ports, **dict.fromkeys(names, default.port)}, reading=reading)


def _negotiated(name: str, bridge: Bridge, bridges: Mapping[str, Bridge], cables: Mapping[Place, Place]) -> Bridge:
    ports: dict[str, BridgePort] = dict(bridge.ports)
    down = dict(bridge.reading.down)
    origins, defaults = dict(bridge.reading.origins), dict(bridge.reading.defaults)
    for port, own in bridge.reading.dtp.items():
        peer = cables.get((name, port))
        if own.mode == "trunk" or peer is None:
            continue
        other = bridges[peer[0]].reading.dtp.get(peer[1]) if peer[0] in bridges else None
        if _is_trunk(own, other):
            ports[port] = own.trunk
            down.pop(port, None)
            asked = f"negotiated with {' '.join(peer)}: a trunk"
            origins[port] = (*origins.get(port, ()), asked)
            defaults[port] = own.defaults or defaults.get(port, ())
            if not own.trunk.members:
                del ports[port]
                down[port] = "is in no VLAN that this switch has"
    return replace(bridge, ports=ports, reading=replace(bridge.reading, down=down, origins=origins, defaults=defaults))


def _is_trunk(own: Dtp, other: Dtp | None) -> bool:
    """Whether a dynamic port and the port at the other end of its cable become a trunk."""
    if other is None or (own.domain and other.domain and own.domain != other.domain):
        return False
    return other.mode in ("trunk", "desirable") or own.mode == "desirable"
