"""Read what `ovs-vsctl show` prints of Open vSwitch: bridges, ports, tags and trunks.

It leaves out vlan_mode and the spanning tree protocol (ovs-vsctl(8)); a port with a tag and trunks may be of two modes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from testbed.base.errors import Problem
from testbed.devices.bridge import Bridge, BridgePort, Reading
from testbed.devices.read_lines import make_empty_bridge, text_of
from testbed.devices.vlan_set import ALL_VLANS, VLAN_0, VlanSet

_LINE = re.compile(r'( +)(Bridge|Port|Interface|Controller) "?([^"]+?)"?\s*|( +)(\w+): (.*)')
DEFAULT = "ovs-vlan-mode"


@dataclass(slots=True)
class _ShownPort:
    said: dict[str, str] = field(default_factory=dict)  # of the port itself
    interfaces: dict[str, dict[str, str]] = field(default_factory=dict)
    place: str = ""


@dataclass(slots=True)
class _ShownBridge:
    said: dict[str, str] = field(default_factory=dict)
    ports: dict[str, _ShownPort] = field(default_factory=dict)


def read_ovs_show(name: str, files: Mapping[str, str]) -> tuple[Bridge, list[Problem]]:
    """Read the file of one switch; see Dialect.read."""
    file = text_of(name, dict(files))
    if file is None:
        return make_empty_bridge(name, Problem(f"{name}.txt", f"is not there, so {name} cannot be checked"))
    bridges = _read_bridges(file, files[file])
    if len(bridges) != 1 and name not in bridges:
        sentence = f"should have one bridge, or one that is called {name}, and has {', '.join(bridges) or 'none'}"
        return make_empty_bridge(name, Problem(file, sentence))
    device = name if name in bridges else next(iter(bridges))
    said = bridges[device]
    problems: list[Problem] = []
    if "Controller" in said.said or said.said.get("fail_mode") == "secure":
        sentence = f"{device} takes its rules from a controller, so the VLANs of its ports do not decide"
        problems.append(Problem(file, sentence))
    ports, down, unclear = {}, {}, []
    channels: dict[str, str] = {}
    for port, about in said.ports.items():
        if port == device:  # that is the machine's own
            continue
        if len(about.interfaces) > 1:
            channels |= dict.fromkeys(about.interfaces, port)
        kinds = {one.get("type", "") for one in about.interfaces.values()}
        if "patch" in kinds:
            problems.append(Problem(about.place, f"{port} leads to another bridge of this switch; that is not read"))
        if about.interfaces and all("error" in one for one in about.interfaces.values()):
            down[port] = "is not there, as its error says"
        if {"tag", "trunks"} <= about.said.keys():
            sentence = f"{port} has a tag and trunks: which of both holds is said by vlan_mode, which is not shown"
            unclear.append(Problem(about.place, f"{sentence}; save ovsdb-client --format=json dump instead"))
        found = _make_port(about.said)
        if found is None:
            problems.append(Problem(about.place, f'"{about.said}" are no VLANs of a port'))
        elif port not in down:
            ports[port] = found
    if not said.ports:
        problems.append(Problem(file, f"shows no port of {device}"))
    origins = {port: (f"{about.place}: {about.said or 'no tag, no trunks'}",) for port, about in said.ports.items()}
    reading = Reading(down=down, unclear=tuple(unclear), origins=origins, defaults=dict.fromkeys(ports, (DEFAULT,)))
    return Bridge(name, True, False, ports, {}, channels, reading=reading), problems


def _read_bridges(file: str, text: str) -> dict[str, _ShownBridge]:
    """By indentation: bridges, their ports, the interfaces of these; and what is said of each."""
    found: dict[str, _ShownBridge] = {}
    bridge: _ShownBridge | None = None
    port: _ShownPort | None = None
    about: list[tuple[int, dict[str, str]]] = []  # what lines that are farther in are of
    for number, line in enumerate(text.splitlines(), 1):
        match = _LINE.fullmatch(line)
        if match is None:
            continue
        depth = len(match[1] or match[4])
        while about and about[-1][0] >= depth:
            about.pop()
        kind, called = match[2], match[3]
        if kind == "Bridge":
            bridge, port = found.setdefault(called, _ShownBridge()), None
            about = [(depth, bridge.said)]
        elif kind == "Port" and bridge is not None:
            port = bridge.ports.setdefault(called, _ShownPort(place=f"{file} line {number}"))
            about.append((depth, port.said))
        elif kind == "Interface" and port is not None:
            about.append((depth, port.interfaces.setdefault(called, {})))
        elif kind == "Controller" and bridge is not None:
            bridge.said["Controller"] = called
            about.append((depth, {}))
        elif kind is None and about:
            about[-1][1][match[5]] = match[6].strip()
    return found


def _make_port(said: Mapping[str, str]) -> BridgePort | None:
    """An access port with a tag, a trunk without; None of what are no VLANs."""
    numbers = re.findall(r"\d+", said.get("trunks", ""))
    trunks = VlanSet.from_ids(int(one) or VLAN_0 for one in numbers if int(one) < VLAN_0)
    tag = said.get("tag", "")
    if tag and not (tag.isdigit() and int(tag) < VLAN_0):
        return None
    if len(trunks) != len({*numbers}):
        return None
    if tag:
        own = VlanSet.from_ids({int(tag) or VLAN_0})
        return BridgePort(int(tag) or VLAN_0, own, own)
    members = trunks or ALL_VLANS | {VLAN_0}
    untagged = members & {VLAN_0}
    return BridgePort(VLAN_0 if untagged else None, members, untagged)
