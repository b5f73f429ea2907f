"""Read what `/export` of MikroTik RouterOS prints: bridges, their ports and their VLANs.

By MikroTik's documentation, "Bridging and Switching" and "Bridge VLAN Table": a port has PVID 1 and is an untagged
member of its PVID unless it admits tagged frames alone; a bridge filters VLANs only if `vlan-filtering=yes`.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from testbed.base.errors import Problem
from testbed.devices.bridge import Bridge, BridgePort, Reading
from testbed.devices.read_lines import LineError, mac_of, make_empty_bridge, text_of, vlan_of, vlans_of
from testbed.devices.stp_settings import ANY, StpSettings
from testbed.devices.vlan_set import VlanSet

# Section → its settings, and what becomes of each; others of these sections are told.
SETTINGS: dict[str, dict[str, str]] = {
    "/interface bridge": {
        **dict.fromkeys(
            (
                "name", "vlan-filtering", "protocol-mode", "disabled", "priority", "admin-mac", "region-name",
                "region-revision", "port-cost-mode",
            ),
            "read",
        ),
        **dict.fromkeys(
            (
                "auto-mac", "comment", "mtu", "arp", "ageing-time", "igmp-snooping", "fast-forward", "forward-delay",
                "max-message-age", "transmit-hold-count", "ingress-filtering", "dhcp-snooping", "max-learned-entries",
                "pvid", "frame-types",  # of the switch's own port
            ),
            "passed over",
        ),
    },
    "/interface bridge port": {
        **dict.fromkeys(
            (
                "bridge", "interface", "pvid", "frame-types", "ingress-filtering", "disabled", "unknown-unicast-flood",
                "unknown-multicast-flood", "broadcast-flood", "learn", "edge", "path-cost", "internal-path-cost",
                "priority", "bpdu-guard", "restricted-role",
            ),
            "read",
        ),
        **dict.fromkeys(
            (
                "comment", "point-to-point", "hw", "trusted", "auto-isolate", "fast-leave", "multicast-router",
                "restricted-tcn",
            ),
            "passed over",
        ),
        "ingress-filtering": "read",
    },
    "/interface bridge vlan": {
        **dict.fromkeys(("bridge", "tagged", "untagged", "vlan-ids", "disabled"), "read"),
        **dict.fromkeys(("comment", "mvrp-forbidden"), "passed over"),
    },
    "/interface bridge host": {**dict.fromkeys(("bridge", "interface", "mac-address", "vid", "disabled"), "read")},
    "/interface bonding": {
        **dict.fromkeys(("name", "slaves", "disabled"), "read"),
        **dict.fromkeys(("comment", "mode", "transmit-hash-policy", "lacp-rate", "mtu", "min-links"), "passed over"),
    },
    "/interface ethernet": {
        **dict.fromkeys(("default-name", "name", "disabled"), "read"),
        **dict.fromkeys(
            (
                "comment", "speed", "advertise", "auto-negotiation", "mtu", "l2mtu", "mac-address", "poe-out",
                "rx-flow-control", "tx-flow-control", "full-duplex", "loop-protect", "fec-mode", "poe-priority",
                "sfp-shutdown-temperature",
            ),
            "passed over",
        ),
    },
}  # fmt: skip
# Sections of which any line may decide which frames pass.
_UNCLEAR = (
    "/interface bridge filter", "/interface bridge nat", "/interface bridge mdb", "/interface bridge msti",
    "/interface ethernet switch rule",
    "/interface ethernet switch vlan", "/interface ethernet switch port-isolation", "/interface bridge calea",
)  # fmt: skip
_WORD = re.compile(r"(\S+?)=(.*)")
_VERSION = re.compile(r"^#.* by RouterOS (\d{1,3})\.(\d{1,3})", re.MULTILINE)
_CUT_OFF = "\\"  # in place of a command whose last line is missing


@dataclass(slots=True)
class _MenuItem:
    """One line of a section."""

    place: str
    said: dict[str, str]


@dataclass(slots=True)
class _MikrotikSettings:
    """Everything that was read, by section."""

    rows: dict[str, list[_MenuItem]] = field(default_factory=dict)
    unclear: list[Problem] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    passed: dict[str, int] = field(default_factory=dict)
    version: tuple[int, int] = (7, 13)  # of RouterOS; that of now where the file does not say it

    def list_rows(self, section: str) -> list[_MenuItem]:
        """Rows of a section that are not disabled."""
        return [row for row in self.rows.get(section, []) if row.said.get("disabled") != "yes"]


def read_mikrotik(name: str, files: Mapping[str, str]) -> tuple[Bridge, list[Problem]]:
    """Read the file of one switch; see Dialect.read."""
    file = text_of(name, dict(files)) or next((path for path in (f"{name}.rsc",) if path in files), None)
    if file is None:
        return make_empty_bridge(name, Problem(f"{name}.rsc", f"is not there, so {name} cannot be checked"))
    said = _MikrotikSettings()
    version = _VERSION.search(files[file])
    if version is not None:
        said.version = int(version[1]), int(version[2])
    for place, section, text in _lines(files[file], file):
        _read_line(said, place, section, text)
    bridges = said.list_rows("/interface bridge")
    if not bridges:
        sentence = "has no bridge (/interface bridge add), so it cannot be checked"
        said.problems.append(Problem(file, sentence))
        return Bridge(name, True, False, {}, {}), said.problems
    own = bridges[0].said.get("name", "bridge1")
    for other in bridges[1:]:
        sentence = f"{other.said.get('name', 'bridge')} is another bridge; save each bridge with its ports as a switch"
        said.unclear.append(Problem(other.place, sentence))
    return _bridge(name, own, bridges[0].said, said), said.problems


def _bridge(name: str, own: str, bridge: Mapping[str, str], said: _MikrotikSettings) -> Bridge:
    down = {
        row.said.get("name") or row.said["default-name"]: "is disabled"
        for row in said.rows.get("/interface ethernet", [])
        if row.said.get("disabled") == "yes" and "default-name" in row.said
    }
    tagged, untagged = _members(own, said)
    ports, defaults, origins = {}, {}, {}
    for row in said.rows.get("/interface bridge port", []):
        port = row.said.get("interface", "")
        if row.said.get("disabled") == "yes":
            down[port] = "is disabled"
            continue
        if row.said.get("bridge") != own:
            down[port] = "is a port of another bridge"
            continue
        try:
            ports[port] = _port(row.said, tagged.get(port, VlanSet()), untagged.get(port, VlanSet()))
        except LineError as error:
            said.problems.append(Problem(row.place, str(error)))
        origins[port] = (f"{row.place}: {' '.join(f'{key}={value}' for key, value in row.said.items())}",)
        defaults[port] = () if "pvid" in row.said else ("mikrotik-pvid",)
    slaves = {
        slave: row.said.get("name", "")
        for row in said.list_rows("/interface bonding")
        for slave in row.said.get("slaves", "").split(",")
    }
    fdb = {}
    for row in said.list_rows("/interface bridge host"):
        if row.said.get("bridge", own) != own:
            continue
        try:
            fdb[vlan_of(row.said.get("vid", "1")), mac_of(row.said.get("mac-address", ""))] = row.said.get(
                "interface", ""
            )
        except LineError as error:
            said.problems.append(Problem(row.place, str(error)))
    stp = bridge.get("protocol-mode", "rstp") != "none"
    tree = _read_tree(own, bridge, said) if stp else None
    if tree is not None and "port-cost-mode" not in bridge and said.version < (7, 13):
        for port in ports:  # the cost does not depend on the speed then
            tree = tree.with_port(port, cost=tree.port(port).costs.get(ANY, 10))
    if stp and "protocol-mode" not in bridge:
        defaults = {port: (*keys, "mikrotik-spanning-tree") for port, keys in defaults.items()}
    reading = Reading(
        down=down, unclear=tuple(said.unclear), origins=origins, defaults=defaults, passed=said.passed,
        spanning_tree=tree,
    )  # fmt: skip
    filtering = bridge.get("vlan-filtering", "no") == "yes"
    carrying = {port: one for port, one in ports.items() if port not in down}
    channels = {slave: bond for slave, bond in slaves.items() if bond in ports and slave not in down}
    return Bridge(name, filtering, stp, carrying, fdb, channels, reading=reading)


def _port(said: Mapping[str, str], tagged: VlanSet, untagged: VlanSet) -> BridgePort:
    pvid = vlan_of(said.get("pvid", "1"))
    frames = said.get("frame-types", "admit-all")
    if frames != "admit-only-vlan-tagged" and pvid not in tagged:
        untagged = untagged | VlanSet.from_ids({pvid})
    members = tagged | untagged
    arrives = pvid if frames != "admit-only-vlan-tagged" and pvid in members else None
    if frames == "admit-only-untagged-and-priority-tagged" and tagged:
        raise LineError("admits untagged frames alone and is a tagged member of VLANs, which is not understood")
    return BridgePort(
        arrives, members, untagged, learning=said.get("learn", "auto") != "no",
        flood=said.get("unknown-unicast-flood", "yes") == "yes",
        bcast_flood=said.get("broadcast-flood", "yes") == "yes",
        mcast_flood=said.get("unknown-multicast-flood", "yes") == "yes",
        filters=said.get("ingress-filtering", "yes") == "yes",
    )  # fmt: skip


def _read_tree(own: str, bridge: Mapping[str, str], said: _MikrotikSettings) -> StpSettings:
    """What a bridge and its ports say of RSTP. With automatic costs of both modes speeds are by the names of ports."""
    mstp = bridge.get("protocol-mode") == "mstp"
    long = bridge.get("port-cost-mode", "long") == "long"
    found = StpSettings("mstp" if mstp else "rstp", long_costs=long, adds_speeds=False)
    row = _MenuItem("", {})
    try:
        found = replace(found, region=(bridge.get("region-name", ""), _read_number(bridge.get("region-revision", "0"))))
        if "priority" in bridge:
            found = replace(found, priorities={ANY: _read_number(bridge["priority"])})
        if "admin-mac" in bridge:
            found = replace(found, mac=mac_of(bridge["admin-mac"]))
        for number, row in enumerate(said.rows.get("/interface bridge port", [])):
            if row.said.get("bridge") != own:
                continue
            port, inner = row.said.get("interface", ""), row.said.get("internal-path-cost")
            cost = (inner if mstp and inner is not None else None) or row.said.get("path-cost")
            found = found.with_port(
                port, cost=_read_number(cost) if cost else None,
                priority=_read_number(row.said["priority"]) if "priority" in row.said else None, number=number,
                edge={"yes": True, "no": False}.get(row.said.get("edge", "auto").removesuffix("-discover")),
                guards=row.said.get("bpdu-guard") == "yes", guards_root=row.said.get("restricted-role") == "yes",
            )  # fmt: skip
    except (LineError, ValueError) as error:
        said.problems.append(Problem(row.place or "/interface bridge", str(error)))
    return found


def _read_number(text: str) -> int:
    """A number, or one of hexadecimal digits."""
    found = re.fullmatch(r"0x[0-9a-fA-F]{1,8}|\d{1,9}", text)
    if found is None:
        raise LineError(f'"{text[:40]}" is not a number')
    return int(text, 16) if text.startswith("0x") else int(text)


def _members(own: str, said: _MikrotikSettings) -> tuple[dict[str, VlanSet], dict[str, VlanSet]]:
    """Tagged and untagged VLANs of each port, by the table of VLANs."""
    found: tuple[dict[str, VlanSet], dict[str, VlanSet]] = ({}, {})
    for row in said.list_rows("/interface bridge vlan"):
        if row.said.get("bridge") != own:
            continue
        try:
            vlans = vlans_of(row.said.get("vlan-ids", ""))
        except LineError as error:
            said.problems.append(Problem(row.place, str(error)))
            continue
        for table, key in zip(found, ("tagged", "untagged"), strict=True):
            for port in filter(None, row.said.get(key, "").split(",")):
                table[port] = table.get(port, VlanSet()) | vlans
    return found


def _read_line(said: _MikrotikSettings, place: str, section: str, text: str) -> None:
    if text == _CUT_OFF:
        said.problems.append(Problem(place, "goes on in a line that is not there, so the file is cut off"))
        return
    if section.startswith(_UNCLEAR):
        sentence = f'"{section} {text[:60]}" may decide which frames pass, and is not understood'
        said.unclear.append(Problem(place, sentence))
    known = SETTINGS.get(section)
    if known is None:
        said.passed["other sections"] = said.passed.get("other sections", 0) + 1
        return
    try:
        words = shlex.split(text.replace("[ find ", "").replace("[find ", "").replace(" ]", ""))
    except ValueError:
        said.problems.append(Problem(place, "a quotation mark is not closed, so the file may be cut off"))
        return
    pairs = {found[1]: found[2] for word in words[1:] if (found := _WORD.fullmatch(word))}
    if words[0] not in ("add", "set") or len(pairs) < len(words) - 1:
        said.unclear.append(Problem(place, f'"{text[:60]}" is not understood; save what /export prints'))
        return
    for key, value in pairs.items():
        if key not in known:
            sentence = f'"{key}={value[:40]}" may decide which frames pass, and is not understood'
            said.unclear.append(Problem(place, sentence))
        elif known[key] == "passed over":
            said.passed[key] = said.passed.get(key, 0) + 1
    said.rows.setdefault(section, []).append(_MenuItem(place, pairs))


def _lines(text: str, file: str) -> Iterator[tuple[str, str, str]]:
    """Place, section and text of each command, or _CUT_OFF; a command with a backslash goes on in the next line."""
    section, whole, first = "", "", 0
    for number, line in enumerate(text.splitlines(), 1):
        stripped = line.strip()
        if not whole and (not stripped or stripped.startswith("#")):
            continue
        first = first if whole else number
        whole += stripped
        if whole.endswith("\\"):
            whole = whole[:-1]
            continue
        if whole.startswith("/"):
            path, verb, rest = re.fullmatch(r"(.*?)(?:\s+(add|set)\s+(.*))?", whole).groups()  # type: ignore[union-attr]
            section = path.strip()
            if verb:
                yield f"{file} line {first}", section, f"{verb} {rest}"
        else:
            yield f"{file} line {first}", section, whole
        whole = ""
    if whole:
        yield f"{file} line {first}", section, _CUT_OFF
