"""What all dialects have in common."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from testbed.base.errors import Problem
from testbed.devices.bridge import Bridge
from testbed.devices.port_names import PortNames
from testbed.devices.settings import SwitchSettings

FlowControl = Literal["on", "off", "keep"]
# Seconds after which a learned address is forgotten: IEEE 802.1Q-2018, Table 8-6, recommended value.
AGEING = 300
# VLAN that every port of a switch is in when it comes out of its box.
DEFAULT_VLAN = 1


@dataclass(frozen=True, slots=True)
class Writing:
    """What a dialect writes from."""

    title: str  # name and digest of the plan
    switches: tuple[SwitchSettings, ...]  # settings of each
    ports: PortNames  # how ports are called
    macs: tuple[str, ...]  # MAC address of each host
    hosts: tuple[str, ...]  # name of each host
    flow_control: FlowControl  # 802.3x pauses `on`, `off`, or `keep` what is there


@dataclass(frozen=True, slots=True)
class Dialect:
    """One entry of the table."""

    summary: str  # one line for `--dialect list`
    ports: str  # pattern of the names of ports unless the user gives another
    floods_by_port: bool  # whether a switch can be kept from flooding by some ports
    refusals: Callable[[Writing], list[Problem]]  # what of a plan it cannot express, each problem with its place
    write: Callable[[Writing], dict[str, str]]  # file name → text, for all switches
    # what the files of one switch (by its name) make of it, and what in them is wrong
    read: Callable[[str, Mapping[str, str]], tuple[Bridge, list[Problem]]]
    apply: str  # how a switch is given its file, one line for the README
    models: tuple[str, ...] = ()  # names of the switch models that speak it; empty where that is not known
    notes: tuple[str, ...] = ()  # what else a user must know, one sentence each
    learns: bool = False  # whether ports learn addresses all the same: a static entry stays where it is then
    port_called: Callable[[str], str] = str  # a port's name as configurations have it; LineError where it is none


def nothing_refused(writing: Writing) -> list[Problem]:
    """Refusals of a dialect that can express every plan that has settings."""
    del writing
    return []


def one_untagged_vlan(writing: Writing, why: str) -> list[Problem]:
    """Every port that is an untagged member of another VLAN than its PVID. `why` says what the dialect has instead."""
    found = []
    for switch in writing.switches:
        for port in switch.ports:
            others = [vlan for vlan in port.untagged if vlan != port.pvid]
            if others:
                pvid = "without a PVID" if port.pvid is None else f"with PVID {port.pvid}"
                count = len(port.untagged)
                sentence = (
                    f"is an untagged member of {count} VLAN{'s' * (count > 1)} {pvid} ({others[0]} is one of them), "
                    f"and {why}"
                )
                found.append(Problem(port_place(writing, switch, port.number), sentence))
    return found


def port_place(writing: Writing, switch: SwitchSettings, number: int) -> str:
    """A port in words: `s1 swp3 (to s2)`."""
    peer = next(port.peer for port in switch.ports if port.number == number)
    return f"{switch.name} {writing.ports.name_port(number)} (to {peer})"


def header(writing: Writing, switch: SwitchSettings, sign: str = "#") -> str:
    """First lines of a file: whose it is, and where each port leads."""
    lines = [f"{sign} {switch.name} of {writing.title}"]
    for port in switch.ports:
        end = f"{port.peer} {writing.ports.name_port(port.peer_port)}" if port.peer_port else port.peer
        lines.append(f"{sign} {writing.ports.name_port(port.number)}: {end}{'' if port.used else ', no path uses it'}")
    return "\n".join(lines) + "\n"
