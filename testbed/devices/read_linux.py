"""Read Linux bridges: what scripts of iproute2 commands leave.

The reader knows the commands of ip-link(8) and bridge(8) that set up a bridge, in any order, and refuses
others. It knows nothing of how the scripts were written.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from testbed.base.errors import Problem
from testbed.devices.bridge import IN_NO_VLAN, Bridge, BridgePort, Entry, Reading
from testbed.devices.stp_settings import ANY, StpSettings
from testbed.devices.vlan_set import VlanSet

_MAC = re.compile(r"([0-9a-f]{2}:){5}[0-9a-f]{2}")
_SWITCHES = {"on": True, "off": False}
_FLAGS = ("learning", "flood", "bcast_flood", "mcast_flood")
_LINK_WORDS = (
    "dev",
    "group",
    "up",
    "down",
    "master",
    "nomaster",
    "mtu",
    "address",
    "alias",
    "txqueuelen",
    "type",
    "name",
)
_STATES = ("static", "local", "permanent", "dynamic")


class _LineError(ValueError):
    """A line this reader does not understand."""


@dataclass(slots=True)
class Draft:
    """A bridge under construction."""

    vlan_filtering: bool = False  # as in Bridge
    default_pvid: int | None = 1  # VLAN that a port gets when it joins; None for none
    stp: bool = False  # as in Bridge
    ports: dict[str, BridgePort] = field(default_factory=dict)  # by name
    fdb: dict[Entry, str] = field(default_factory=dict)  # static entries
    device: str = ""  # name of the bridge on the switch; empty before it is made
    problems: list[Problem] = field(default_factory=list)  # what is wrong, each with its file and line
    unclear: list[Problem] = field(default_factory=list)  # what is not understood, likewise
    up: dict[str, bool] = field(default_factory=dict)  # device → whether it is up, where that is said
    down: dict[str, str] = field(default_factory=dict)  # device → why it carries nothing, where it is told otherwise
    origins: dict[str, list[str]] = field(default_factory=dict)  # port → lines that its settings came from
    pvid_default: str = ""  # key of DEFAULTS, where the default VLAN is not said
    pvid_by_default: set[str] = field(default_factory=set)  # ports that are in it for that reason
    tree: StpSettings = field(default_factory=lambda: StpSettings(long_costs=False))
    says_state: bool = False  # whether such files say of each port whether it is up

    def join(self, name: str) -> None:
        """A port becomes part of the bridge."""
        if name not in self.ports:
            start = VlanSet() if self.default_pvid is None else VlanSet.from_ids({self.default_pvid})
            self.ports[name] = BridgePort(self.default_pvid, start, start)
            if self.pvid_default and self.default_pvid is not None:
                self.pvid_by_default.add(name)

    def port(self, name: str) -> BridgePort:
        """A port that has joined."""
        if name not in self.ports:
            raise _LineError(f"{name} is not a port of the bridge")
        return self.ports[name]

    def finish(self, name: str, channels: Mapping[str, str] | None = None) -> tuple[Bridge, list[Problem]]:
        """The bridge, and what is wrong. A port that is down carries nothing; `channels` are as in Bridge."""
        why = f"is part of {self.device}, which is down"
        down = dict.fromkeys(self.ports, why) if self.up.get(self.device) is False else {}
        down |= {device: "is down" for device, up in self.up.items() if not up and device != self.device}
        down |= self.down
        ports = {port: said for port, said in self.ports.items() if port not in down}
        down |= {port: IN_NO_VLAN for port, said in ports.items() if not said.members}
        reading = Reading(
            down=down,
            unclear=tuple(self.unclear),
            origins={port: tuple(lines) for port, lines in self.origins.items()},
            defaults={port: self._defaults(port) for port in ports},
            spanning_tree=self._settle_tree() if self.stp else None,
        )
        return Bridge(
            name, self.vlan_filtering, self.stp, ports, self.fdb, channels or {}, reading=reading
        ), self.problems

    def _settle_tree(self) -> StpSettings:
        """What is said of the spanning tree protocol; ports have numbers in the order in which they joined."""
        tree = self.tree
        for number, port in enumerate(self.ports):
            tree = tree.with_port(port, number=number)
        return tree

    def _defaults(self, port: str) -> tuple[str, ...]:
        """Keys of DEFAULTS that a port relies on."""
        found = (self.pvid_default,) if port in self.pvid_by_default else ()
        return (*found, "linux-state") if self.says_state and port not in self.up else found


def read_script(name: str, files: Mapping[str, str]) -> tuple[Bridge, list[Problem]]:
    """Read the script of one switch; see Dialect.read."""
    draft = Draft(says_state=True)
    file = f"{name}.sh"
    if file not in files:
        draft.problems.append(Problem(file, f"is not there, so {name} cannot be checked"))
        return draft.finish(name)
    prefix: list[str] | None = None
    for number, line in enumerate(files[file].splitlines(), 1):
        text = line.strip()
        heredoc = re.fullmatch(r"(ip|bridge) -batch - <<'?END'?", text)
        if heredoc:
            prefix = [heredoc[1]]
        elif text == "END":
            prefix = None
        elif text and not text.startswith(("#", "set -")):
            carry_out(draft, [*(prefix or []), *text.split()], f"{file} line {number}")
    return draft.finish(name)


def read_batch(draft: Draft, file: str, text: str) -> None:
    """Read a file for `bridge -batch`."""
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip() and not line.lstrip().startswith("#"):
            carry_out(draft, ["bridge", *line.split()], f"{file} line {number}")


def carry_out(draft: Draft, words: list[str], place: str) -> None:
    """Do to the bridge what a command does, or note why it cannot be done."""
    try:
        if words[:2] == ["ip", "link"]:
            _ip_link(draft, words[2:])
        elif words[:3] == ["bridge", "vlan", "add"]:
            _vlan_add(draft, words[3:])
        elif words[:3] == ["bridge", "link", "set"]:
            _link_set(draft, words[3:])
        elif words[:2] == ["bridge", "fdb"]:
            _fdb(draft, words[2:])
        elif words[:1] != ["ethtool"]:
            raise _LineError(f'"{" ".join(words)}" does not configure a bridge')
        if "dev" in words[:-1] and words[0] != "ethtool" and "fdb" not in words:
            draft.origins.setdefault(words[words.index("dev") + 1], []).append(f"{place}: {' '.join(words)}")
    except _LineError as error:
        draft.problems.append(Problem(place, str(error)))


def _pairs(words: Iterable[str], alone: Iterable[str] = ()) -> dict[str, str]:
    """Words as `key value` pairs; those in `alone` stand by themselves."""
    found: dict[str, str] = {}
    rest = list(words)
    while rest:
        key = rest.pop(0)
        if key in alone:
            found[key] = ""
        elif rest:
            found[key] = rest.pop(0)
        else:
            raise _LineError(f"{key} has no value")
    return found


def _number(text: str, low: int = 1, high: int = 4094) -> int:
    if not text.isascii() or not text.isdigit() or not low <= int(text) <= high:
        raise _LineError(f'"{text}" is not a number from {low} to {high}')
    return int(text)


def _needs(given: Mapping[str, str], *keys: str) -> list[str]:
    missing = [key for key in keys if key not in given]
    if missing:
        raise _LineError(f"lacks {', '.join(missing)}")
    return [given[key] for key in keys]


def _ip_link(draft: Draft, words: list[str]) -> None:
    if words[:1] == ["add"]:
        named = words[1:2] in ([], ["name"], ["dev"], ["link"], ["type"])  # the word is often left out
        given = _pairs(words[1:] if named else ["name", *words[1:]])
        if given.get("type") != "bridge":
            raise _LineError("adds something other than a bridge")
        (draft.device,) = _needs(given, "name")
        # What is left out has the kernel's default.
        draft.vlan_filtering = given.get("vlan_filtering", "0") == "1"
        draft.stp = given.get("stp_state", "0") == "1"
        if "priority" in given:
            draft.tree = replace(draft.tree, priorities={ANY: _number(given["priority"], 0, 65535)})
        if "address" in given and _MAC.fullmatch(given["address"].lower()):
            draft.tree = replace(draft.tree, mac=given["address"].lower())
        draft.default_pvid = _number(given.get("vlan_default_pvid", "1"), 0) or None
        draft.pvid_default = "" if "vlan_default_pvid" in given else "linux-default-pvid"
        if given.get("vlan_protocol", "802.1Q").lower() != "802.1q":
            raise _LineError(f"vlan_protocol {given['vlan_protocol']} is not read, only 802.1Q")
        return
    if words[:1] != ["set"]:
        raise _LineError(f'"ip link {" ".join(words)}" does not configure a bridge')
    rest = words[1:]
    if rest[:1] and rest[0] not in _LINK_WORDS:
        rest = ["dev", *rest]  # ip-link(8): the word may be left out
    given = _pairs(rest, ("up", "down", "nomaster"))
    (device,) = _needs(given, "dev")
    if "nomaster" in given:
        draft.ports.pop(device, None)
    if "up" in given or "down" in given:
        draft.up[device] = "up" in given
    if "type" in given:
        raise _LineError(f'"ip link {" ".join(words)}" changes a bridge that is there; say it as the bridge is added')
    if "master" in given:
        if given["master"] != draft.device:
            raise _LineError(f"there is no bridge {given['master']} to put {device} in")
        draft.join(device)


def _vlan_add(draft: Draft, words: list[str]) -> None:
    given = _pairs(words, ("pvid", "untagged", "self", "master"))
    unknown = given.keys() - {"dev", "vid", "pvid", "untagged", "self", "master"}
    if unknown:
        raise _LineError(f'"{min(unknown)}" is not a word of bridge vlan add')
    device, vid = _needs(given, "dev", "vid")
    port = draft.port(device)
    first, _, last = vid.partition("-")
    low, high = _number(first), _number(last or first)
    if low > high:
        raise _LineError(f'"{vid}" is not a range of VLANs')
    vlans = VlanSet.span(low, high)
    if "pvid" in given and len(vlans) != 1:
        raise _LineError("pvid applies to one VLAN, not to a range")
    if "pvid" in given or port.pvid in vlans:
        draft.pvid_by_default.discard(device)
    # A command replaces what an earlier one said of the same VLAN.
    pvid = None if port.pvid in vlans else port.pvid
    draft.ports[device] = replace(
        port,
        members=port.members | vlans,
        untagged=port.untagged | vlans if "untagged" in given else port.untagged - vlans,
        pvid=min(vlans) if "pvid" in given else pvid,
    )


def _link_set(draft: Draft, words: list[str]) -> None:
    given = _pairs(words, ("self", "master"))
    (device,) = _needs(given, "dev")
    port = draft.port(device)
    flags = {flag: getattr(port, flag) for flag in _FLAGS}
    for flag, value in given.items():
        if flag == "dev":
            continue
        if flag in ("cost", "priority"):
            high = 65535 if flag == "cost" else 63
            changes = {flag: _number(value, 0, high)}
            draft.tree = draft.tree.with_port(device, **changes)
            continue
        if flag in ("guard", "root_block") and value in _SWITCHES:
            key = "guards" if flag == "guard" else "guards_root"
            draft.tree = draft.tree.with_port(device, **{key: _SWITCHES[value]})
            continue
        if flag not in flags or value not in _SWITCHES:
            raise _LineError(f'"{flag} {value}" is not a known setting of a port')
        flags[flag] = _SWITCHES[value]
    draft.ports[device] = replace(port, **flags)


def _fdb(draft: Draft, words: list[str]) -> None:
    if len(words) < 2 or words[0] not in ("add", "replace"):
        raise _LineError(f'"bridge fdb {" ".join(words)}" does not configure a bridge')
    given = _pairs(words[2:], ("self", "master", "sticky", *_STATES))
    mac = words[1].lower()
    if not _MAC.fullmatch(mac):
        raise _LineError(f'"{words[1]}" is not a MAC address')
    device, vid = _needs(given, "dev", "vlan")
    entry = (_number(vid), mac)
    draft.port(device)
    if "static" not in given:
        raise _LineError(f"the entry of {mac} is not static, so the bridge keeps its frames or forgets it")
    if words[0] == "add" and entry in draft.fdb:
        raise _LineError(f"VLAN {vid} has an entry of {mac} already")
    draft.fdb[entry] = device
