"""What is plugged in where: a table of cables, or what switches have heard from each other by LLDP (IEEE 802.1AB)."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath
from typing import Any

from testbed.errors import Problem
from testbed.export.bridge import Bridge, Place
from testbed.export.read_ios import port_of
from testbed.export.read_lines import LineError
from testbed.limits import parse_json

CABLING = "cabling.csv"
# Columns of tables that switches print, by what is in them: IOS, SONiC, PowerConnect.
_LOCAL = ("local intf", "localport", "interface", "local port")
_DEVICE = ("device id", "remotedevice", "system name", "remote device")
_PORT = ("port id", "remoteportid", "remote port")


def is_cabling(file: str) -> bool:
    """Whether a file tells of cables and not of settings."""
    return PurePosixPath(file).name == CABLING or "lldp" in PurePosixPath(file).name.lower()


def read_cabling(
    files: Mapping[str, str], switches: Mapping[str, Bridge]
) -> tuple[dict[Place, Place], dict[str, Place], list[Problem]]:
    """Cables both ways, hosts with their ports, and what is wrong or contradicts itself.

    The cables of two port channels are one, between the channels.

    Args:
        files: name → text, those of is_cabling().
        switches: those that have a configuration, by name.
    """
    names = set(switches)
    channels = {(name, port): to for name, bridge in switches.items() for port, to in bridge.channels.items()}
    plugs = _Plugs(names, channels)
    for file, text in files.items():
        for place, one, other in _lines(file, text, names, plugs.problems):
            plugs.add(place, one, other, listed=PurePosixPath(file).name == CABLING)
    return plugs.cables, plugs.hosts, plugs.finish()


class _Plugs:
    """Cables as they are told, one after the other."""

    def __init__(self, switches: set[str], channels: Mapping[Place, str]) -> None:
        self._channels = channels
        self.cables: dict[Place, Place] = {}
        self.hosts: dict[str, Place] = {}
        self.problems: list[Problem] = []
        self._switches = switches
        self._said_by: dict[Place, str] = {}

    def add(self, where: str, one: Place, other: Place, *, listed: bool) -> None:
        """A cable from a port to another, or to a host, which has no port. `listed`: in a table of cables."""
        one, other = ((switch, self._channels.get((switch, port), port)) for switch, port in (one, other))
        if one[0] not in self._switches:
            self.problems.append(Problem(where, f"{one[0]} has no configuration here"))
        elif other[1] and other[0] in self._switches:
            self._plug(one, other, where)
        elif other[1] and listed:
            self.problems.append(Problem(where, f"{other[0]} has no configuration here"))
        elif self.hosts.setdefault(other[0], one) != one:
            there = " ".join(self.hosts[other[0]])
            self.problems.append(Problem(where, f"{other[0]} is at {' '.join(one)} and at {there} as well"))

    def _plug(self, one: Place, other: Place, where: str) -> None:
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
                self.problems.append(Problem(self._said_by[port], sentence))
            elif taken.setdefault(port, host) != host:
                self.problems.append(Problem(CABLING, f"{' '.join(port)} leads to {taken[port]} and to {host}"))
        return self.problems


def _lines(file: str, text: str, names: set[str], problems: list[Problem]) -> Iterator[tuple[str, Place, Place]]:
    """Place in the file, port, and the port at the other end; a host has none."""
    if PurePosixPath(file).name == CABLING:
        yield from _table(file, text, problems)
        return
    switch = re.split(r"[./_-]?lldp", file, maxsplit=1, flags=re.IGNORECASE)[0].rstrip("/") or file
    heard = _json(file, text, problems) if text.lstrip().startswith("{") else _printed(file, text, problems)
    for place, local, device, port in heard:
        short = device.split(".")[0]
        known = device if device in names or short not in names else short
        yield place, (switch, local), (known, port if known in names else "")


def _table(file: str, text: str, problems: list[Problem]) -> Iterator[tuple[str, Place, Place]]:
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
        switch, port, peer, peer_port = (str(cell).strip() for cell in cells)
        yield place, (switch, port), (peer, peer_port)


def _json(file: str, text: str, problems: list[Problem]) -> Iterator[tuple[str, str, str, str]]:
    """What `lldpctl -f json` prints: local port, name of the neighbour, its port."""
    try:
        interfaces: Any = parse_json(text)["lldp"]["interface"]
        rows = [interfaces] if isinstance(interfaces, dict) else list(interfaces)
        for row in rows:
            for local, said in row.items():
                (device,) = said["chassis"]
                yield file, local, str(device), str(said["port"]["id"]["value"])
    except json.JSONDecodeError as error:
        problems.append(Problem(f"{file} line {error.lineno}", f"is not JSON: {error.msg}; the file may be cut off"))
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError):
        problems.append(
            Problem(file, "is not what lldpctl -f json prints: it lacks lldp.interface with chassis and port")
        )


def _printed(file: str, text: str, problems: list[Problem]) -> Iterator[tuple[str, str, str, str]]:
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
        yield f"{file} line {number}", _named(cells["local"]), cells["device"], _named(cells["port"])
    if not found:
        sentence = "has no table of neighbours: columns for the local port, the neighbour and its port"
        problems.append(Problem(file, sentence))


def _named(port: str) -> str:
    """A port of IOS by its whole name, others as they are."""
    try:
        return port_of(port)
    except LineError:
        return port
