"""Read /etc/config/network of OpenWrt: bridges, and sections `bridge-vlan`.

By OpenWrt's documentation, "DSA Mini-Tutorial", and netifd's config.c: a bridge filters VLANs as soon as it has a
section bridge-vlan; a port is untagged unless `:t` stands behind it, and `*` makes the VLAN its PVID.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from testbed.base.errors import Problem
from testbed.devices.bridge import IN_NO_VLAN, Bridge, BridgePort, Reading
from testbed.devices.read_lines import LineError, make_empty_bridge, text_of, vlan_of
from testbed.devices.vlan_set import VlanSet

# Kind of section → its options, and what becomes of each; others of these sections are told.
OPTIONS: dict[str, dict[str, str]] = {
    "device": {
        **dict.fromkeys(("name", "type", "ports", "ifname", "vlan_filtering", "stp", "enabled"), "read"),
        **dict.fromkeys(
            (
                "macaddr", "mtu", "ipv6", "igmp_snooping", "ageing_time", "hello_time", "forward_delay", "max_age",
                "priority", "bridge_empty", "txqueuelen", "acceptlocal", "multicast_querier", "rps", "xps",
            ),
            "passed over",
        ),
    },
    "bridge-vlan": {
        **dict.fromkeys(("device", "vlan", "ports"), "read"),
        **dict.fromkeys(("local", "alias", "name"), "passed over"),
    },
}  # fmt: skip
_YES = ("1", "true", "on", "yes")


@dataclass(slots=True)
class _Section:
    """One section."""

    kind: str
    place: str  # file and line where it begins
    options: dict[str, list[str]] = field(default_factory=dict)  # values of each, of a list several

    def get(self, name: str, default: str = "") -> str:
        """The last value of an option."""
        return self.options.get(name, [default])[-1]

    def list_values(self, name: str) -> list[str]:
        """All values of a list, which older files write in one."""
        return [word for value in self.options.get(name, []) for word in value.split()]


def read_openwrt(name: str, files: Mapping[str, str]) -> tuple[Bridge, list[Problem]]:
    """Read the file of one switch; see Dialect.read."""
    file = next((path for path in (f"{name}/network", f"{name}/config/network") if path in files), None)
    file = file or text_of(name, dict(files))
    if file is None:
        return make_empty_bridge(name, Problem(f"{name}/network", f"is not there, so {name} cannot be checked"))
    problems: list[Problem] = []
    sections = list(_sections(files[file], file, problems))
    unclear = [problem for one in sections for problem in _find_unknown(one)]
    bridges = [one for one in sections if one.kind == "device" and one.get("type") == "bridge"]
    if not bridges:
        sentence = "has no bridge (config device with option type 'bridge'); older swconfig files are not read"
        return Bridge(name, True, False, {}, {}), [*problems, Problem(file, sentence)]
    for other in bridges[1:]:
        sentence = f"{other.get('name')} is another bridge; save each bridge with its ports as a switch of its own"
        unclear.append(Problem(other.place, sentence))
    own = bridges[0]
    vlans = [one for one in sections if one.kind == "bridge-vlan" and one.get("device") == own.get("name")]
    filtering = own.get("vlan_filtering", "1" if vlans else "0") in _YES
    names = dict.fromkeys(own.list_values("ports") or own.list_values("ifname"))
    ports = dict.fromkeys(names, BridgePort())
    origins: dict[str, list[str]] = {}
    for one in vlans:
        try:
            _put(ports, origins, one)
        except LineError as error:
            problems.append(Problem(one.place, str(error)))
    for port, said in ports.items():
        if said.untagged and said.pvid is None:
            sentence = f"{port} is untagged in VLANs and has no PVID; write {port}:u* in one of them"
            unclear.append(Problem(file, sentence))
    down = {port: IN_NO_VLAN for port, said in ports.items() if filtering and not said.members}
    down |= {
        one.get("name"): "is not enabled"
        for one in sections
        if one.kind == "device" and one.get("enabled", "1") not in _YES
    }
    reading = Reading(
        down=down,
        unclear=tuple(unclear),
        origins={port: tuple(lines) for port, lines in origins.items()},
    )
    carrying = {port: said for port, said in ports.items() if port not in down}
    return Bridge(name, filtering, own.get("stp", "0") in _YES, carrying, {}, reading=reading), problems


def _put(ports: dict[str, BridgePort], origins: dict[str, list[str]], section: _Section) -> None:
    """Make ports members of the VLAN of a section."""
    vlan = vlan_of(section.get("vlan"))
    alone = VlanSet.from_ids({vlan})
    for word in section.list_values("ports"):
        port, _, flags = word.partition(":")
        before = ports.get(port)
        if before is None:
            raise LineError(f"{port} of VLAN {vlan} is no port of the bridge; add it to the ports of its device")
        tagged = "t" in flags
        ports[port] = BridgePort(
            vlan if "*" in flags else before.pvid,
            VlanSet.from_ids(before.members) | alone,
            VlanSet.from_ids(before.untagged) if tagged else VlanSet.from_ids(before.untagged) | alone,
        )
        origins.setdefault(port, []).append(f"{section.place}: VLAN {vlan}, ports '{word}'")


def _find_unknown(section: _Section) -> Iterator[Problem]:
    known = OPTIONS.get(section.kind)
    for option in section.options if known is not None else ():
        if option not in known:  # type: ignore[operator]
            sentence = (
                f'option {option} "{section.get(option)[:40]}" may decide which frames pass, and is not understood'
            )
            yield Problem(section.place, sentence)
    if section.kind in ("switch", "switch_vlan"):
        yield Problem(section.place, f"config {section.kind} is of swconfig, which is not understood")


def _sections(text: str, file: str, problems: list[Problem]) -> Iterator[_Section]:
    current: _Section | None = None
    for number, line in enumerate(text.splitlines(), 1):
        try:
            words = shlex.split(line, comments=True)
        except ValueError:
            problems.append(Problem(f"{file} line {number}", "a quotation mark is not closed; the file may be cut off"))
            continue
        match words:
            case []:
                continue
            case ["config", kind, *_]:
                if current is not None:
                    yield current
                current = _Section(kind, f"{file} line {number}")
            case ["option" | "list" as how, name, value] if current is not None:
                several = current.options.setdefault(name, [])
                current.options[name] = [*several, value] if how == "list" else [value]
            case _:
                problems.append(Problem(f"{file} line {number}", f'"{line.strip()[:60]}" is no line of UCI'))
    if current is not None:
        yield current
