"""From the files of a folder to a network."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import replace
from pathlib import PurePosixPath

from testbed.base.errors import InputError, Problem, did_you_mean
from testbed.base.limits import VLAN_MEMBERSHIPS, scaled_limit, too_much
from testbed.base.untrusted_text import unescape_cell
from testbed.devices.audit.cabling import is_cabling, read_cabling
from testbed.devices.audit.network import Network, network_of
from testbed.devices.bridge import IN_NO_VLAN, Bridge
from testbed.devices.check import RUNNING, reader_called, recognise_dialect, switches_in
from testbed.devices.mixed_files import find_mixed_file
from testbed.devices.read_lines import LineError, mac_of
from testbed.devices.trunking import settle_ports
from testbed.devices.vlan_set import ALL_VLANS, VLAN_0, VlanSet

BRIDGES = "bridges.csv"  # addresses of bridges
_OF_ALL = ("csv", RUNNING)  # dialects in which files do not tell switches apart
_NOT_READ = ("README.md", "export.json", BRIDGES)


def read_network(files: Mapping[str, str], dialect: str | None = None) -> Network:
    """Read configurations and cabling.

    Args:
        files: name → text; a file or folder a switch, cabling.csv or tables of LLDP neighbours.
        dialect: of the configurations; None for what the files show.

    Raises:
        InputError: everything that cannot be read, or contradicts itself.
    """
    cabling = {file: text for file, text in files.items() if is_cabling(file)}
    configurations = {file: text for file, text in files.items() if file not in cabling and file not in _NOT_READ}
    problems: list[Problem] = []
    if not cabling:
        sentence = (
            "there is none: add cabling.csv (switch,port,peer,peer_port), or a table of LLDP neighbours of each "
            "switch, such as s1.lldp.txt"
        )
        problems.append(Problem("cabling", sentence))
    if not configurations:
        problems.append(Problem("configurations", "there are none, only cabling"))
    if problems:
        raise InputError(problems)
    if dialect is None:
        problems += [one for file, text in configurations.items() if (one := find_mixed_file(file, text)) is not None]
    if problems:
        raise InputError(problems)
    readers = {name: reader_called(kind) for name, kind in _dialects(configurations, dialect).items()}
    bridges: dict[str, Bridge] = {}
    lists: set[int] = set()  # thousands of ports have the same
    for name, reader in readers.items():
        bridges[name], wrong = reader.read(name, configurations)
        problems += wrong
        lists.update(VlanSet.from_ids(port.members).bits for port in bridges[name].ports.values())
        memberships, most = sum(one.bit_count() for one in lists), scaled_limit(VLAN_MEMBERSHIPS)
        if memberships > most:
            raise InputError.one(name, too_much(f"with it ports are in {memberships:,} VLANs", most, "VLANs of ports"))
    plugs, wrong = read_cabling(cabling, bridges, {name: reader.port_called for name, reader in readers.items()})
    problems += wrong
    if problems:
        raise InputError(list(dict.fromkeys(problems)))
    bridges, wrong = _add_addresses(bridges, files.get(BRIDGES, ""))
    if wrong:
        raise InputError(wrong)
    bridges = settle_ports(bridges, plugs.cables, [*plugs.cables, *plugs.hosts.values()])
    bridges = {name: bridge if bridge.vlan_filtering else _unfiltered(bridge) for name, bridge in bridges.items()}
    plugged = {switch for switch, _ in (*plugs.cables, *plugs.hosts.values())}
    loose = [
        f"{name} has a configuration, and nothing says what it is plugged into"
        for name in bridges
        if plugs.complete and name not in plugged
    ]
    return network_of(
        bridges, plugs.cables, plugs.hosts, complete=plugs.complete, notes=plugs.notes,
        unclear=[*plugs.unclear, *loose],
    )  # fmt: skip


def _add_addresses(bridges: Mapping[str, Bridge], text: str) -> tuple[dict[str, Bridge], list[Problem]]:
    """Bridges with their addresses by a table of switch and mac, which decide between equal priorities."""
    found, problems = dict(bridges), []
    reader = csv.DictReader(text.splitlines())
    if text and not {"switch", "mac"} <= {*(reader.fieldnames or ())}:
        return found, [Problem(f"{BRIDGES} line 1", "lacks the columns switch, mac")]
    taken: dict[str, str] = {}
    for row in reader:
        place, switch = f"{BRIDGES} line {reader.line_num}", unescape_cell(str(row["switch"] or "").strip())
        if switch not in found:
            sentence = f"{switch} has no configuration here.{did_you_mean(switch, found)}"
            problems.append(Problem(place, sentence))
            continue
        try:
            mac = mac_of(str(row["mac"] or "").strip())
        except LineError as error:
            problems.append(Problem(place, str(error)))
            continue
        if taken.setdefault(mac, switch) != switch:
            problems.append(Problem(place, f"{mac} is the address of {taken[mac]} already"))
        reading = found[switch].reading
        if reading.spanning_tree is not None:
            reading = replace(reading, spanning_tree=replace(reading.spanning_tree, mac=mac))
            found[switch] = replace(found[switch], reading=reading)
    return found, problems


def _dialects(configurations: Mapping[str, str], dialect: str | None) -> dict[str, str]:
    """Switch → dialect of its files; a folder may hold switches of several makers.

    Raises:
        InputError: no dialect is recognised.
    """
    usual = dialect or recognise_dialect(configurations)
    names = switches_in(usual, configurations)
    if dialect or usual in _OF_ALL:
        return dict.fromkeys(names, usual)
    own: dict[str, dict[str, str]] = {name: {} for name in names}
    for file, text in configurations.items():
        path = PurePosixPath(file)
        for name in (*path.parts[:1], path.stem):
            if name in own:
                own[name][file] = text
    found, problems = {}, []
    for name, files in own.items():
        try:
            found[name] = recognise_dialect(files)
        except InputError as error:
            problems += [Problem(min(files, default=name), problem.sentence) for problem in error.problems]
    if problems:
        raise InputError(problems)
    return found


def _unfiltered(bridge: Bridge) -> Bridge:
    """A bridge that does not filter VLANs as one that does: every port carries every frame, with the tag it came with.

    Its entries by VLAN decide nothing then.
    """
    every = ALL_VLANS | {VLAN_0}
    down = {port: why for port, why in bridge.reading.down.items() if why != IN_NO_VLAN}
    ports = {
        port: replace(said, pvid=VLAN_0, members=every, untagged=VlanSet.from_ids({VLAN_0}))
        for port, said in bridge.ports.items()
        if port not in down
    }
    return replace(bridge, ports=ports, fdb={}, reading=replace(bridge.reading, down=down))
