"""Saved configurations, or what running bridges show, held against a plan: settings, pairs and broadcasts."""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from testbed.base.errors import InputError, Problem, argument, did_you_mean
from testbed.base.model import VlanPlan
from testbed.base.untrusted_text import unescape_cell
from testbed.devices.bridge import Bridge
from testbed.devices.compare import Difference, planned_bridges, setting_differences, unified_diff
from testbed.devices.export import DIALECTS, SCHEMA_VERSION, host_macs
from testbed.devices.host_scripts import HOST_SCRIPTS
from testbed.devices.junos_ports import junos_port
from testbed.devices.port_names import port_names
from testbed.devices.read_eos import EOS, eos_port
from testbed.devices.read_junos import read_junos
from testbed.devices.read_mikrotik import read_mikrotik
from testbed.devices.read_nxos import NXOS, nxos_port
from testbed.devices.read_open_vswitch import read_open_vswitch
from testbed.devices.read_openwrt import read_openwrt
from testbed.devices.read_ovs_show import read_ovs_show
from testbed.devices.read_procurve import PROCURVE, procurve_port
from testbed.devices.read_running import COMMANDS, read_running
from testbed.devices.read_running_text import read_running_text
from testbed.devices.settings import Floods, settings_of
from testbed.devices.trunking import settle_ports
from testbed.devices.walks import WalkDifference, walk_differences, wiring_of
from testbed.planning import Plan

RUNNING = "running-bridge"
RUNNING_TEXT = "running-bridge-text"
OPEN_VSWITCH = "open-vswitch"
OVS_SHOW = "ovs-vsctl-show"
# What tells a dialect: names of files, else lines in them. Names in COMMANDS, of what running bridges show, are taken,
# and those in _OURS, of an export.
_BY_NAME = {
    "sonic": r"config_db\.json", "csv": r"ports\.csv", "ifupdown2": "interfaces", "linux-networkd": r".*\.netdev",
}  # fmt: skip
_BY_TEXT = {
    OPEN_VSWITCH: r'"caption": ?"Bridge table"',
    OVS_SHOW: r'^ {4}Bridge "?[\w.-]+"?[ \t]*$',
    RUNNING_TEXT: r"^port\s+vlan[- ]ids?[ \t]*$|^\d+: \S+: <[A-Z0-9_,-]+> mtu ",
    "arista-eos": r"^! (command: show running-config|device: .*eos-)|^interface ethernet\d+\s*$",
    "cisco-nxos": r"^!command: show running-config|^(no )?system default switchport|^(feature|vdc) \w",
    "junos": r"^set (version|system|interfaces|vlans) |^(interfaces|vlans|system) \{",
    "mikrotik": r"^/interface bridge( port| vlan)?( add .*)?$",
    "openwrt": r"^config (device|bridge-vlan|interface)\b",
    "netplan": r"^network:[ \t]*$",
    "procurve": r"^;.*(configuration editor|ver #)|^ +(no )?(un)?tagged ([a-z]?\d|trk\d)",
    "powerconnect-6200": r"^\s*interface (range )?ethernet 1/x?g",
    "powerconnect-5300": r"^\s*interface (range )?ethernet g",
    "cisco-ios": r"^interface (range )?(\w*ethernet|\w*gige|gi|fa|te|tw|twe|fi|fo|hu)\s*\d",
    "linux-bridge-iproute2": r"^(bridge|ip) (-batch|vlan|link)",
    "sonic": '"VLAN_MEMBER"',
}
_NETPLAN = (
    "is of netplan, which cannot say which VLANs a port of a bridge is in; save what the bridge shows instead "
    "(bridge -j vlan show > vlan.json and three more commands, see docs/real-switches.md)"
)
_OURS = {"README.md", "cabling.csv", "export.json", "bridges.csv"}


@dataclass(frozen=True, slots=True)
class Reader:
    """How configurations are read."""

    # what the files of one switch (by its name) make of it, and what in them is wrong
    read: Callable[[str, Mapping[str, str]], tuple[Bridge, list[Problem]]]
    ports: str  # pattern of the names of ports unless the user gives another
    learns: bool = False  # whether ports learn addresses whatever is said
    port_called: Callable[[str], str] = str  # a port's name as configurations have it; LineError where it is none
    floods_by_port: bool = True  # whether a switch can be kept from flooding by some ports


# What is read and not written.
ONLY_READ = {
    "arista-eos": Reader(EOS.read, "Ethernet{}", learns=True, port_called=eos_port, floods_by_port=False),
    "cisco-nxos": Reader(NXOS.read, "Ethernet1/{}", learns=True, port_called=nxos_port, floods_by_port=False),
    "junos": Reader(read_junos, "ge-0/0/{0}", learns=True, port_called=junos_port, floods_by_port=False),
    "mikrotik": Reader(read_mikrotik, "ether{}"),
    "openwrt": Reader(read_openwrt, "lan{}", learns=True, floods_by_port=False),
    "procurve": Reader(PROCURVE.read, "{}", learns=True, port_called=procurve_port, floods_by_port=False),
    RUNNING: Reader(read_running, "swp{}"),
    RUNNING_TEXT: Reader(read_running_text, "swp{}"),
    OPEN_VSWITCH: Reader(read_open_vswitch, "swp{}", learns=True, floods_by_port=False),
    OVS_SHOW: Reader(read_ovs_show, "swp{}", learns=True, floods_by_port=False),
}


def reader_called(name: str) -> Reader:
    """How a dialect is read.

    Raises:
        InputError: there is none.
    """
    if name in ONLY_READ:
        return ONLY_READ[name]
    if name not in DIALECTS:
        known = [*DIALECTS, *ONLY_READ]
        raise InputError.one(argument("dialect"), f'"{name}" is none of {", ".join(known)}.{did_you_mean(name, known)}')
    dialect = DIALECTS[name]
    return Reader(dialect.read, dialect.ports, dialect.learns, dialect.port_called, dialect.floods_by_port)


@dataclass(frozen=True, slots=True)
class CheckOptions:
    """What the user says of the configurations; None where the files are to tell."""

    dialect: str | None = None  # key of DIALECTS, or of ONLY_READ
    ports: str | None = None  # pattern of port names
    macs: Mapping[str, str] | None = None  # addresses of hosts by name, where they are not the lab's
    floods: Floods | None = None  # where broadcasts should go
    digest: str | None = None  # of the plan they were written from, if that is known
    partly: bool = False  # switches without a configuration are taken as planned


@dataclass(frozen=True, slots=True)
class Comparison:
    """What was found."""

    unread: tuple[Problem, ...]  # lines that no switch could apply
    settings: tuple[Difference, ...]  # settings that are not as planned
    walks: tuple[WalkDifference, ...]  # frames that do not go where they should
    pairs: int  # ordered pairs of hosts that were walked
    broadcasts: bool  # whether the broadcast of each host was walked; not where they go to all members of a VLAN
    other_plan: str | None  # digest of the plan the files were written from, where that is another one
    dialect: str = ""  # that was read
    diff: str = ""  # planned and found settings as a unified diff
    assumed: tuple[str, ...] = ()  # switches without a configuration, taken as planned

    @property
    def is_same(self) -> bool:
        """Whether the files configure what the plan says."""
        return not (self.unread or self.settings or self.walks)

    def count_misrouted(self) -> Counter[str]:
        """Switch → pairs that leave their path there."""
        return Counter(walk.at for walk in self.walks if walk.at)

    def as_object(self) -> dict[str, object]:
        """With whole lists."""
        astray = self.count_misrouted()
        return {
            "same": self.is_same,
            "dialect": self.dialect,
            "unread": [{"place": problem.place, "sentence": problem.sentence} for problem in self.unread],
            "settings": [
                {
                    "switch": one.switch, "port": one.port, "what": one.what, "found": one.found,
                    "planned": one.planned, "pairs_astray_at_switch": astray[one.switch],
                }
                for one in self.settings
            ],
            "walks": [walk.as_object() for walk in self.walks],
            "pairs": self.pairs,
            "broadcasts": self.broadcasts,
            "other_plan": self.other_plan,
            "assumed": list(self.assumed),
        }  # fmt: skip


def recognise_dialect(files: Mapping[str, str]) -> str:
    """The dialect of configurations, by what is in them.

    Raises:
        InputError: none is recognised.
    """
    names = {PurePosixPath(file).name for file in files}
    if set(COMMANDS) <= names:
        return RUNNING
    for dialect, pattern in _BY_NAME.items():
        if any(re.fullmatch(pattern, name) for name in names):
            return dialect
    for file, text in files.items():
        for dialect, pattern in _BY_TEXT.items():
            if PurePosixPath(file).name not in _OURS and re.search(pattern, text, re.MULTILINE | re.IGNORECASE):
                if dialect == "netplan":
                    raise InputError.one(file, _NETPLAN)
                return dialect
    known = ", ".join([*DIALECTS, *ONLY_READ])
    sentence = f"no file looks like a configuration of {known}; name it with {argument('dialect')}"
    raise InputError.one("configurations", sentence)


def switches_in(dialect: str, files: Mapping[str, str]) -> list[str]:
    """Names of the switches that files are of: a folder or a file each, or rows of a table."""
    if dialect == "csv":
        rows = list(csv.reader(files.get("ports.csv", "").splitlines()))[1:]
        return list(dict.fromkeys(unescape_cell(row[0].strip()) for row in rows if row))
    found = []
    for file in files:
        path = PurePosixPath(file)
        if file in _OURS or path.name.startswith(".") or path.parts[:-1] == (HOST_SCRIPTS,):
            continue
        found.append(path.parts[0] if len(path.parts) > 1 else path.stem)
    return list(dict.fromkeys(found))


def check_files(plan: Plan, files: Mapping[str, str], options: CheckOptions) -> Comparison:
    """Read the configuration of every switch, compare settings with the plan, and walk every pair and every broadcast.

    Args:
        plan: what they should carry out.
        files: name → text; a file or folder a switch, by its name in the plan.
        options: what is known of them.

    Raises:
        InputError: the dialect is not known, or names or addresses do not fit the plan.
    """
    dialect = options.dialect or recognise_dialect(files)
    reader = reader_called(dialect)
    ports = port_names(options.ports or reader.ports)
    macs, wrong = host_macs(plan, options.macs)
    floods = options.floods or ("plan" if reader.floods_by_port else "members")
    planned = planned_bridges(settings_of(plan, floods), ports, macs, learning=reader.learns)
    given = switches_in(dialect, files)
    for name in given:
        if name not in planned:
            sentence = (
                f"is of no switch of {plan.scenario.name}; name it as the plan does.{did_you_mean(name, planned)}"
            )
            wrong.append(Problem(name, sentence))
    if wrong:
        raise InputError(wrong)
    bridges: dict[str, Bridge] = {}
    unread: list[Problem] = []
    assumed = [name for name in planned if options.partly and name not in given]
    for switch in planned:
        if switch in assumed:
            bridges[switch] = planned[switch]
        else:
            bridges[switch], problems = reader.read(switch, files)
            unread += [*problems, *bridges[switch].reading.unclear]
    _same_names(planned, bridges, ports.pattern)
    wiring = wiring_of(plan.topology, ports)
    bridges = settle_ports(bridges, wiring.cables, [*wiring.cables, *wiring.hosts.values()])
    hosts = plan.topology.host_count
    broadcasts = floods == "plan" or isinstance(plan.vlans, VlanPlan)
    return Comparison(
        unread=tuple(dict.fromkeys(unread)),
        settings=tuple(setting_differences(bridges, planned)),
        walks=tuple(walk_differences(plan, bridges, ports, macs, broadcasts=broadcasts)),
        pairs=hosts * (hosts - 1),
        broadcasts=broadcasts,
        other_plan=options.digest if options.digest not in (None, plan.digest) else None,
        dialect=dialect,
        diff=unified_diff(planned, bridges),
        assumed=tuple(assumed),
    )


def _same_names(planned: Mapping[str, Bridge], bridges: Mapping[str, Bridge], pattern: str) -> None:
    """Refuse port names of another kind than expected, before every setting is called different."""
    there = {port for bridge in bridges.values() for port in bridge.ports}
    wanted = {port for bridge in planned.values() for port in bridge.ports}
    if there and wanted and not there & wanted:
        sentence = (
            f"{pattern} gives names such as {min(wanted)}, and the configurations have {min(there)}; say how ports "
            f"are called, as in {argument('ports')} 'swp{{}}' or 'Ethernet{{0+4}}'"
        )
        raise InputError.one(argument("ports"), sentence)


def options_of(manifest: Mapping[str, Any]) -> CheckOptions:
    """What `export.json` says of the files beside it.

    Raises:
        InputError: it is not one of ours.
    """
    if manifest.get("schema_version") != SCHEMA_VERSION:
        sentence = f"has schema version {manifest.get('schema_version')}; this program reads {SCHEMA_VERSION}"
        raise InputError.one("export.json", sentence)
    macs = manifest.get("macs")
    return CheckOptions(
        dialect=str(manifest.get("dialect")),
        ports=str(manifest.get("ports")),
        macs=macs if isinstance(macs, dict) else None,
        floods="members" if manifest.get("floods") == "members" else "plan",
        digest=str(manifest.get("digest")),
    )


def compare_files(
    plan: Plan, manifest: Mapping[str, Any], files: Mapping[str, str], *, running: bool = False
) -> Comparison:
    """Check the files of an export; with `running` they are what bridges show, see read_running()."""
    options = options_of(manifest)
    ours = {file: text for file, text in files.items() if PurePosixPath(file).name not in _OURS}
    return check_files(plan, ours, options if not running else CheckOptions(
        RUNNING, options.ports, options.macs, options.floods, options.digest,
    ))  # fmt: skip
