"""What a reader of an audit must know besides: what was taken by default, passed over, or carries nothing; and why."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from testbed.base.errors import InputError, argument, did_you_mean
from testbed.base.units import count_noun
from testbed.devices.audit.cabling import port_in, ports_in
from testbed.devices.audit.network import Network
from testbed.devices.bridge import BridgePort
from testbed.devices.defaults import DEFAULTS
from testbed.devices.port_names import format_ranges
from testbed.devices.vlan_set import VlanSet

_SHOWN = 6


def shorten_names(names: Sequence[str]) -> str:
    """The first few names, and how many there are besides."""
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more


def defaults_of(network: Network) -> dict[str, tuple[str, ...]]:
    """Key of DEFAULTS → ports, of those that lead somewhere, that are set by it."""
    found: dict[str, list[str]] = {}
    for switch, port in network.places:
        for key in network.bridges[switch].reading.defaults.get(port, ()):
            found.setdefault(key, []).append(f"{switch}:{port}")
    return {key: tuple(ports) for key, ports in sorted(found.items())}


def notes_of(network: Network) -> Iterator[str]:
    """A sentence for each thing that was not read from the files themselves, or that carries nothing."""
    yield from network.notes
    for key, ports in defaults_of(network).items():
        default = DEFAULTS[key]
        sentence = f'no "{default.setting}" on {count_noun(len(ports), "port")}, so by default {default.value}'
        yield f"{sentence} ({default.source}): {shorten_names(ports)}"
    for port, place in enumerate(network.places):
        why = network.bridges[place[0]].reading.down.get(place[1])
        if why is not None and network.peer[port] >= 0:
            yield f"{' '.join(place)}, to {' '.join(network.places[network.peer[port]])}, {why}"
    for host, count in zip(network.hosts, network.stands_for.tolist(), strict=True):
        if count > 1:
            yield f"{host} stands for {count} ports of its switch that are set alike and have no neighbour"
    passed: dict[str, int] = {}
    for bridge in network.bridges.values():
        for setting, count in bridge.reading.passed.items():
            passed[setting] = passed.get(setting, 0) + count
    if passed:
        told = [f"{setting} ({count})" for setting, count in sorted(passed.items(), key=lambda item: -item[1])]
        yield f"lines passed over, since they move no frame: {shorten_names(told)}"


def explain_port(network: Network, text: str) -> list[str]:
    """What a port is, and what made it so, a line each.

    Args:
        network: that it is in.
        text: the switch and its port, as s1:swp1.

    Raises:
        InputError: there is no such port.
    """
    switch, _, port = text.partition(":")
    if switch not in network.bridges:
        raise InputError.one(
            argument("explain"), f'"{text}" names no switch; write s1:PORT.{did_you_mean(switch, network.bridges)}'
        )
    bridge = network.bridges[switch]
    reading = bridge.reading
    port = port_in(bridge, port) or port
    text = f"{switch}:{port}"
    if port in bridge.channels:
        return [f"{text}: part of {bridge.channels[port]}", *explain_port(network, f"{switch}:{bridge.channels[port]}")]
    if port not in bridge.ports and port not in reading.down:
        raise InputError.one(argument("explain"), f"{switch} has no port {port}.{did_you_mean(port, ports_in(bridge))}")
    settings = bridge.ports.get(port)
    first = f"{text}: {_settings(settings)}" if settings is not None and port not in reading.down else ""
    lines = [first or f"{text}: carries nothing, since it {reading.down[port]}", *reading.origins.get(port, ())]
    for key in reading.defaults.get(port, ()):
        default = DEFAULTS[key]
        lines.append(f'by default, without "{default.setting}": {default.value} ({default.source})')
    return [lines[0], *(f"  {line}" for line in lines[1:])]


def _settings(port: BridgePort) -> str:
    untagged = VlanSet.from_ids(port.members) & port.untagged
    tagged = VlanSet.from_ids(port.members) - port.untagged
    parts = [
        f"PVID {port.pvid}" if port.pvid else "drops untagged frames",
        f"untagged in {format_ranges(untagged) or 'none'}",
        f"tagged in {format_ranges(tagged) or 'none'}",
    ]
    floods = (("unknown unicasts", port.flood), ("multicasts", port.mcast_flood), ("broadcasts", port.bcast_flood))
    off = [kind for kind, on in floods if not on]
    return ", ".join([*parts, *([f"floods no {' or '.join(off)}"] if off else [])])
