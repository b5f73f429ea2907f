"""What is plugged in where: a table of cables, or what switches have heard from each other by LLDP (IEEE 802.1AB)."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from testbed.base.errors import Problem, did_you_mean
from testbed.base.limits import parse_json
from testbed.base.untrusted_text import unescape_cell
from testbed.devices.bridge import Bridge, Place
from testbed.devices.read_lines import LineError, mac_of

CABLING = "cabling.csv"
# Columns of tables that switches print, by what is in them: IOS, SONiC, PowerConnect.
# Letters at which `show lldp neighbors` cuts off the name of a neighbour; other switches do so later.
_COLUMN = 20
_LOCAL = ("local intf", "localport", "interface", "local port")
_DEVICE = ("device id", "remotedevice", "system name", "remote device")
_PORT = ("port id", "remoteportid", "remote port")


def is_cabling(file: str) -> bool:
    """Whether a file tells of cables and not of settings."""
    return PurePosixPath(file).name == CABLING or "lldp" in PurePosixPath(file).name.lower()


@dataclass(frozen=True, slots=True)
class Cabling:
    """What is plugged in where."""

    cables: dict[Place, Place]  # port → port at the other end, both ways; two port channels have one
    hosts: dict[str, Place]  # host → its port
    complete: bool  # whether all hosts are listed; otherwise any port without a neighbour may lead to one
    notes: tuple[str, ...]  # what was left out
    unclear: tuple[str, ...]  # what is not understood


def read_cabling(
    files: Mapping[str, str], switches: Mapping[str, Bridge], called: Mapping[str, Callable[[str], str]] | None = None
) -> tuple[Cabling, list[Problem]]:
    """Cables and hosts, and what is wrong or contradicts itself.

    Args:
        files: name → text, those of is_cabling().
        switches: those that have a configuration, by name.
        called: switch → see Dialect.port_called.
    """
    plugs = _Plugs(switches, called or {})
    complete = False
    for file, text in files.items():
        listed = PurePosixPath(file).name == CABLING
        for row in _lines(file, text, set(switches), plugs.problems):
            plugs.add(row, listed=listed)
            complete = complete or (listed and not row.other[1])
    problems = plugs.finish()
    return Cabling(plugs.cables, plugs.hosts, complete, tuple(plugs.notes), tuple(plugs.unclear)), problems


@dataclass(frozen=True, slots=True)
class _CableRow:
    """One cable as it is told."""

    where: str  # file and line
    one: Place
    other: Place  # a host has no port
    used: bool = True  # whether the table says that a path uses it


class _Plugs:
    """Cables as they are told, one after the other."""

    def __init__(self, switches: Mapping[str, Bridge], called: Mapping[str, Callable[[str], str]]) -> None:
        self.cables: dict[Place, Place] = {}
        self.hosts: dict[str, Place] = {}
        self.problems: list[Problem] = []
        self.notes: list[str] = []
        self.unclear: list[str] = []
        self._switches, self._called = switches, called
        self._said_by: dict[Place, str] = {}

    def add(self, row: _CableRow, *, listed: bool) -> None:
        """A cable from a port to another, or to a host. `listed`: in a table of cables."""
        where, switches = row.where, self._switches
        if row.one[0] not in switches:
            self.problems.append(Problem(where, f"{row.one[0]} has no configuration here"))
            return
        one = self._place(row.one)
        if one is None and not listed:
            self.notes.append(f"{row.one[0]} {row.one[1]} ({where}) is no port of its bridge, and was left out")
            return
        if one is None and row.used:
            self._report_unknown(where, row.one)
            return
        one = one or row.one
        if row.other[1] and row.other[0] in switches:
            other = self._place(row.other)
            if other is None and row.used:
                self._report_unknown(where, row.other)
            else:
                self._plug(one, other or row.other, where)
        elif not row.other[1] and (switch := _switch_called(row.other[0], switches)) is not None:
            sentence = f"leads to {switch}, which has a configuration here, and does not say to which port of it"
            self.problems.append(Problem(where, sentence))
        elif row.other[1] and listed:
            self.problems.append(Problem(where, f"{row.other[0]} has no configuration here"))
        else:
            self._host(row.other[0], one, where, listed=listed)

    def _place(self, place: Place) -> Place | None:
        """A port, or the channel that it is part of, by its name in the configuration; None if it is not there."""
        bridge = self._switches[place[0]]
        name = port_in(bridge, place[1], self._called.get(place[0], str))
        return None if name is None else (place[0], bridge.channels.get(name, name))

    def _report_unknown(self, where: str, place: Place) -> None:
        switch, port = place
        if _is_mac(port):
            sentence = (
                f"the port of {switch} is told by its address, {port}, which no link.json or fdb.json of {switch} has; "
                'let lldpd send names ("configure lldp portidsubtype ifname"), or write cabling.csv'
            )
        else:
            known = ports_in(self._switches[switch])
            sentence = f"{switch} has no port {port} in its configuration.{did_you_mean(port, known)}"
        self.problems.append(Problem(where, sentence))

    def _host(self, name: str, place: Place, where: str, *, listed: bool) -> None:
        before = self.hosts.setdefault(name, place)
        if before == place:
            self._said_by.setdefault(place, where)
        elif listed:
            there = " ".join(before)
            self.problems.append(Problem(where, f"{name} is at {' '.join(place)} and at {there} as well"))
        elif self.hosts.setdefault(f"{name} at {':'.join(place)}", place) == place:
            self.unclear.append(
                f"{name} is heard at {' '.join(before)} and at {' '.join(place)}, and has no configuration here: if it "
                "is a switch, what passes through it is not seen"
            )

    def _is_off(self, place: Place, other: Place) -> bool:
        """Whether a port carries nothing, so that its cable is none of those of a port channel at the other end."""
        ends = (self._switches[place[0]], self._switches[other[0]])
        return place[1] in ends[0].reading.down and other[1] in ends[1].channels.values()

    def _plug(self, one: Place, other: Place, where: str) -> None:
        for here, there in ((one, other), (other, one)):
            if self._is_off(here, there):
                why = self._switches[here[0]].reading.down[here[1]]
                self.notes.append(f"{' '.join(here)} {why}, so {' '.join(there)} has one cable less ({where})")
                return
        if one == other:
            self.problems.append(Problem(where, f"{one[0]} {one[1]} leads to itself"))
            return
        for here, there in ((one, other), (other, one)):
            before = self.cables.get(here, there)
            if before != there:
                sentence = (
                    f"{here[0]} {here[1]} leads to {there[0]} {there[1]}, and by {self._said_by[here]} to "
                    f"{before[0]} {before[1]}; one of them is wrong"
                )
                self.problems.append(Problem(where, sentence))
                return
        self.cables.update({one: other, other: one})
        self._said_by.setdefault(one, where)
        self._said_by.setdefault(other, where)

    def finish(self) -> list[Problem]:
        """What is wrong, also of all together."""
        taken: dict[Place, str] = {}
        for host, port in self.hosts.items():
            if port in self.cables:
                sentence = f"{' '.join(port)} leads to a switch and to {host}"
                self.problems.append(Problem(self._said_by.get(port, CABLING), sentence))
            elif taken.setdefault(port, host) != host:
                self.problems.append(Problem(CABLING, f"{' '.join(port)} leads to {taken[port]} and to {host}"))
        return self.problems


def _switch_called(text: str, names: Collection[str]) -> str | None:
    """The switch that a neighbour's name is of: in any case, and with or without a domain; None if there is none."""
    wanted = text.lower()
    alike = [name for name in names if name.lower() in (wanted, wanted.split(".")[0])]
    return text if text in names else alike[0] if len(alike) == 1 else None


def _switch_cut_off(text: str, names: Collection[str]) -> str | None:
    """The switch whose name a table has cut off; None if none begins so.

    Raises:
        LineError: several do.
    """
    wanted = text.lower()
    alike = sorted(name for name in names if name.lower().startswith(wanted))
    if len(alike) > 1:
        raise LineError(
            f'"{text}" is cut off by its column and may be {" or ".join(alike[:3])}; save show lldp neighbors detail '
            "as cabling.csv, or name switches so that the first letters differ"
        )
    return alike[0] if alike else None


def ports_in(bridge: Bridge) -> set[str]:
    """Ports that a configuration names."""
    return {*bridge.ports, *bridge.reading.down, *bridge.channels, *bridge.channels.values()}


def port_in(bridge: Bridge, text: str, called: Callable[[str], str] = str) -> str | None:
    """A port as its configuration calls it, whatever short name or case it is told by; None if it is not there.

    A switch that has ports which its configuration does not mention has any that can be its.
    """
    known = ports_in(bridge)
    if text in known:
        return text
    if _is_mac(text):
        return bridge.reading.addresses.get(mac_of(text))
    try:
        name = called(text)
    except LineError:
        name = ""
    if name in known:
        return name
    alike = {port for port in known if _is_short_for(text, port)}
    if len(alike) == 1:
        return min(alike)
    return name if name and bridge.reading.unmentioned and not name.startswith("Port-channel") else None


def _is_short_for(text: str, port: str) -> bool:
    """Whether a name begins as a port's, in any case, and ends with the same numbers."""
    one, other = (re.fullmatch(r"(\D*)(\d.*)", name.lower()) for name in (text.replace(" ", ""), port))
    if one is None or other is None:
        return text.lower() == port.lower()
    return one[2] == other[2] and bool(one[1]) and other[1].startswith(one[1])


def _is_mac(text: str) -> bool:
    try:
        mac_of(text)
    except LineError:
        return False
    return True


def _lines(file: str, text: str, names: set[str], problems: list[Problem]) -> Iterator[_CableRow]:
    """Every cable that a file tells of."""
    if PurePosixPath(file).name == CABLING:
        yield from _table(file, text, problems)
        return
    switch = re.split(r"[./_-]?lldp", file, maxsplit=1, flags=re.IGNORECASE)[0].rstrip("/") or file
    is_json = text.lstrip().startswith("{")
    heard = _json(file, text, problems) if is_json else _read_printed_table(file, text, problems)
    for place, local, device, port in heard:
        known = _switch_called(device, names)
        try:
            if known is None and not is_json and len(device) >= _COLUMN:
                known = _switch_cut_off(device, names - {switch})
        except LineError as error:
            problems.append(Problem(place, str(error)))
            continue
        known = known or device
        yield _CableRow(place, (switch, local), (known, port if known in names else ""))


def _table(file: str, text: str, problems: list[Problem]) -> Iterator[_CableRow]:
    reader = csv.DictReader(text.splitlines())
    columns = ("switch", "port", "peer", "peer_port")
    missing = [column for column in columns if column not in (reader.fieldnames or ())]
    if missing:
        problems.append(Problem(f"{file} line 1", f"lacks the columns {', '.join(missing)}"))
        return
    for row in reader:
        place = f"{file} line {reader.line_num}"
        cells = [row[column] for column in columns]
        if any(cell is None for cell in cells) or not all(cell.strip() for cell in cells[:3]):
            problems.append(Problem(place, "has too few cells; the file may be cut off"))
            continue
        switch, port, peer, peer_port = (unescape_cell(str(cell).strip()) for cell in cells)
        yield _CableRow(place, (switch, port), (peer, peer_port), used=str(row.get("used") or "").strip() != "no")


def _json(file: str, text: str, problems: list[Problem]) -> Iterator[tuple[str, str, str, str]]:
    """What `lldpctl -f json` prints: local port, name of the neighbour, its port."""
    try:
        interfaces: Any = parse_json(text)["lldp"]["interface"]
        rows = [interfaces] if isinstance(interfaces, dict) else list(interfaces)
        for row in rows:
            for local, said in row.items():
                chassis = said["chassis"]
                nameless = isinstance(chassis.get("id"), dict) and "value" in chassis["id"]
                (device,) = [chassis["id"]["value"]] if nameless else chassis
                yield file, local, str(device), str(said["port"]["id"]["value"])
    except json.JSONDecodeError as error:
        problems.append(Problem(f"{file} line {error.lineno}", f"is not JSON: {error.msg}; the file may be cut off"))
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError):
        problems.append(
            Problem(file, "is not what lldpctl -f json prints: it lacks lldp.interface with chassis and port")
        )


def _read_printed_table(file: str, text: str, problems: list[Problem]) -> Iterator[tuple[str, str, str, str]]:
    """A table as a switch prints it; its columns begin where their headings do."""
    columns: dict[str, tuple[int, int | None]] = {}
    found = False
    for number, line in enumerate(text.splitlines(), 1):
        heading = [(match.start(), match[0].lower()) for match in re.finditer(r"\S+(?: \S+)*", line)]
        kinds = {
            kind: place
            for place, (_, word) in enumerate(heading)
            for kind, words in (("local", _LOCAL), ("device", _DEVICE), ("port", _PORT))
            if word in words
        }
        if len(kinds) == 3:
            starts = [start for start, _ in heading]
            columns = {kind: (starts[p], starts[p + 1] if p + 1 < len(starts) else None) for kind, p in kinds.items()}
            found = True
            continue
        if not columns or not line.strip() or set(line.strip()) <= {"-", " ", "="}:
            continue
        cells = {kind: line[low:high].strip() for kind, (low, high) in columns.items()}
        if not all(cells.values()):
            if line.lower().startswith(("total", "capability")):
                columns = {}
            else:
                problems.append(Problem(f"{file} line {number}", "is no line of a table of neighbours"))
            continue
        yield f"{file} line {number}", cells["local"], cells["device"], cells["port"]
    if not found:
        sentence = "has no table of neighbours: columns for the local port, the neighbour and its port"
        problems.append(Problem(file, sentence))
