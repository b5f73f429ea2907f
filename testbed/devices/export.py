"""From a plan to the files of a dialect: everything that is wrong is gathered first, and then nothing is written."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypedDict

from testbed.base.errors import InputError, Problem, argument, did_you_mean
from testbed.base.model import LearningPlan, LocalPlan, SwitchModel, VlanPlan, host_mac
from testbed.devices.cisco_ios import CISCO_IOS
from testbed.devices.csv_tables import CSV
from testbed.devices.dialect import Dialect, FlowControl, Writing
from testbed.devices.host_scripts import host_scripts
from testbed.devices.ifupdown2 import IFUPDOWN2
from testbed.devices.linux_bridge import LINUX_BRIDGE
from testbed.devices.networkd import NETWORKD
from testbed.devices.port_names import port_names
from testbed.devices.powerconnect import POWERCONNECT_5300, POWERCONNECT_6200
from testbed.devices.readme import cabling_csv, readme
from testbed.devices.reserved_vlans import reserved_problems
from testbed.devices.settings import Floods, settings_of
from testbed.devices.sonic import SONIC
from testbed.fabric.verify.flooding import multiplication
from testbed.fabric.verify.limits import SWITCH_MODELS, check_limits, check_local_limits
from testbed.fabric.vlans.local_vlans import entry_count
from testbed.fabric.vlans.mac_entries import entry_counts
from testbed.planning import Plan

DIALECTS: dict[str, Dialect] = {
    "linux-bridge-iproute2": LINUX_BRIDGE,
    "linux-networkd": NETWORKD,
    "ifupdown2": IFUPDOWN2,
    "powerconnect-5300": POWERCONNECT_5300,
    "powerconnect-6200": POWERCONNECT_6200,
    "cisco-ios": CISCO_IOS,
    "sonic": SONIC,
    "csv": CSV,
}
SCHEMA_VERSION = 1
MAX_ENTRIES = 3_000_000  # some 200 MB of text
_MAX_SHOWN = 8


@dataclass(frozen=True, slots=True)
class Options:
    """What the user chooses."""

    dialect: str  # key of DIALECTS
    ports: str | None = None  # pattern of port names; None for the dialect's
    flow_control: FlowControl = "on"  # 802.3x pauses
    floods: Floods = "plan"  # see settings_of()
    macs: Mapping[str, str] | None = None  # addresses of hosts by name, where they are not the lab's


class ExportRecord(TypedDict):
    """What `export.json` holds: from which plan, with which options, and the names of the files."""

    schema_version: int
    scenario: str
    digest: str
    dialect: str
    ports: str
    flow_control: FlowControl
    floods: Floods
    macs: dict[str, str]
    files: list[str]


@dataclass(frozen=True, slots=True)
class Export:
    """What is to be written."""

    files: dict[str, str]  # name → text
    manifest: ExportRecord


def dialect_called(name: str) -> Dialect:
    """The dialect of a name.

    Raises:
        InputError: there is none.
    """
    if name not in DIALECTS:
        known = ", ".join(DIALECTS)
        raise InputError.one(argument("dialect"), f'"{name}" is none of {known}.{did_you_mean(name, DIALECTS)}')
    return DIALECTS[name]


def export_plan(plan: Plan, options: Options) -> Export:
    """Write a plan in a dialect.

    Raises:
        InputError: the dialect cannot express it, or switches that speak it have too little of something; every port
            and every reason, up to a few of a kind.
        VerificationError: the plan is not proved.
    """
    plan.require_proof()
    plan.require_tables()
    dialect = dialect_called(options.dialect)
    names = port_names(options.ports or dialect.ports)
    model, problems = _model(plan, dialect, options.dialect)
    problems += _plan_problems(plan, dialect, options)
    macs, wrong = host_macs(plan, options.macs)
    problems += wrong
    if problems:
        raise InputError(problems)
    floods: Floods = options.floods if dialect.floods_by_port else "members"
    writing = Writing(
        title=f"{plan.scenario.name}, plan {plan.digest}",
        switches=settings_of(plan, floods),
        ports=names,
        macs=macs,
        hosts=tuple(plan.topology.host_name(host) for host in range(plan.topology.host_count)),
        flow_control=options.flow_control,
    )
    refused = [*dialect.refusals(writing), *reserved_problems(options.dialect, writing)]
    if refused:
        raise InputError([*refused[:_MAX_SHOWN], *_more_refusals(options.dialect, len(refused))])
    files = dialect.write(writing)
    files |= {"README.md": readme(plan, dialect, options.dialect, writing, model), "cabling.csv": cabling_csv(writing)}
    files |= host_scripts(plan, macs)
    manifest: ExportRecord = {
        "schema_version": SCHEMA_VERSION,
        "scenario": plan.scenario.name,
        "digest": plan.digest,
        "dialect": options.dialect,
        "ports": names.pattern,
        "flow_control": options.flow_control,
        "floods": floods,
        "macs": dict(zip(writing.hosts, macs, strict=True)),
        "files": sorted(files),
    }
    return Export(files, manifest)


def _more_refusals(dialect: str, count: int) -> list[Problem]:
    if count <= _MAX_SHOWN:
        return []
    return [
        Problem(argument("dialect"), f"{count - _MAX_SHOWN} more that {dialect} cannot express; nothing was written")
    ]


def host_macs(plan: Plan, given: Mapping[str, str] | None) -> tuple[tuple[str, ...], list[Problem]]:
    """MAC address of each host, the lab's unless others are given; and what is wrong with these."""
    hosts = [plan.topology.host_name(host) for host in range(plan.topology.host_count)]
    if given is None:
        return tuple(host_mac(host) for host in range(len(hosts))), []
    problems = [
        Problem(
            argument("macs"), f"names {name}, which is not a host of {plan.scenario.name}.{did_you_mean(name, hosts)}"
        )
        for name in given
        if name not in hosts
    ]
    missing = [name for name in hosts if name not in given]
    if missing:
        problems.append(
            Problem(argument("macs"), f"lacks {', '.join(missing[:_MAX_SHOWN])}{', …' * (len(missing) > _MAX_SHOWN)}")
        )
    owner: dict[str, str] = {}
    for name, mac in given.items():
        if not re.fullmatch(r"([0-9a-f]{2}:){5}[0-9a-f]{2}", mac):
            problems.append(
                Problem(argument("macs"), f'{name} has "{mac}", which is not an address like 02:00:00:00:00:01')
            )
        elif int(mac[:2], 16) & 1:
            problems.append(Problem(argument("macs"), f"{name} has {mac}, a group address; a host needs a unicast one"))
        elif owner.setdefault(mac, name) != name:
            problems.append(Problem(argument("macs"), f"{name} and {owner[mac]} have the same address {mac}"))
    return tuple(given.get(name, "") for name in hosts), problems


def _model(plan: Plan, dialect: Dialect, name: str) -> tuple[SwitchModel | None, list[Problem]]:
    """The switch model that is written for, and why there is none: the scenario's, or the smallest that fits."""
    wanted = plan.scenario.switch_model
    if wanted is not None:
        if dialect.models and wanted not in dialect.models:
            others = [key for key, other in DIALECTS.items() if wanted in other.models] or ["csv"]
            sentence = (
                f"is {wanted}, which does not speak {name}; use {argument('dialect', others[0])}, or another model"
            )
            return None, [Problem(f"{plan.scenario.source}: switch_model", sentence)]
        return SWITCH_MODELS[wanted], []  # its limits were proved
    if not dialect.models:
        return None, []
    shortages: Sequence[str] = ()
    for key in dialect.models:
        model = SWITCH_MODELS[key]
        check = check_local_limits if isinstance(plan.vlans, LocalPlan) else check_limits
        found = check(plan.topology, plan.vlans, model)  # type: ignore[arg-type]
        if not found:
            return model, []
        shortages = [violation.sentence for violation in found]
    return None, [Problem(argument("dialect", name), sentence) for sentence in shortages]


def _plan_problems(plan: Plan, dialect: Dialect, options: Options) -> list[Problem]:
    """What no choice of ports mends: too many entries, pauses in a fabric that can deadlock, floods in loops."""
    problems = []
    if isinstance(plan.vlans, LearningPlan):
        sentence = "lets switches learn addresses, and exports register them; use registration: static"
        problems.append(Problem(f"{plan.scenario.source}: assignment.registration", sentence))
    if isinstance(plan.vlans, VlanPlan):
        entries = int(entry_counts(plan.topology, plan.vlans).sum())
    else:
        entries = int(entry_count(plan.topology, plan.vlans).sum())
    if entries > MAX_ENTRIES:
        sentence = f"has {entries:,} MAC entries and up to {MAX_ENTRIES:,} are written down; export a smaller fabric"
        problems.append(Problem(plan.scenario.source, sentence))
    if options.flow_control == "on" and not plan.deadlock_free:
        problems.append(
            Problem(
                argument("flow_control"),
                "with pauses this plan can deadlock, since its channel dependencies have a cycle; use off, or "
                "a routing without one",
            )
        )
    if isinstance(plan.vlans, LocalPlan) and plan.vlans.kind != "openflow":
        problems += _flood_problems(plan, plan.vlans, dialect, options)
    return problems


def _flood_problems(plan: Plan, vlans: LocalPlan, dialect: Dialect, options: Options) -> list[Problem]:
    """Switches that flood to all members, although the plan has another way for broadcasts."""
    if dialect.floods_by_port and options.floods == "plan":
        return []
    copies = multiplication(plan.topology, vlans)
    if copies is None or (copies[1] <= 1 and vlans.flood_links is not None):
        return []
    if math.isinf(copies[1]):
        sentence = (
            "switches flood a broadcast to all members of a local VLAN, and here it would circulate forever; use "
            + ("assignment.merge: members, or " if vlans.kind == "renamed" else "the assignment fixed or renamed, or ")
            + "a dialect that can keep floods from a port (linux-bridge-iproute2, linux-networkd, ifupdown2)"
        )
        return [Problem(argument("dialect", options.dialect), sentence)]
    if options.floods == "members":
        return []
    way = "drops broadcasts" if vlans.flood_links is None else "sends broadcasts along a tree"
    sentence = (
        f"the plan {way}, and these switches flood them to all members of a local VLAN: {copies[0]:.4g} copies of each "
        f"at a switch on average, {copies[1]:,.0f} at most. Accept that with {argument('floods', 'members')}, or use a "
        "dialect that can keep floods from a port (linux-bridge-iproute2, linux-networkd, ifupdown2)"
    )
    return [Problem(argument("dialect", options.dialect), sentence)]
