"""Rows of forwarding become tables: names to numbers, several rows of one destination to a set of next hops."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np

from testbed.base.errors import InputError
from testbed.base.limits import ROUTE_ENTRIES, scaled_limit, too_much
from testbed.base.model import Ints, Longs, NextHops, Topology
from testbed.fabric.kernels.forwarding import DELIVER, NEVER
from testbed.fabric.routing.channel_lookup import host_switches
from testbed.fabric.topologies.any_graph import quote_name, suggest_name
from testbed.fabric.verify.listed_paths import ListedPaths

Cell = str | tuple[str, ...]  # as it is written: names with semicolons between, or a list of them
ALL = "*"  # every destination that has no entry of its own at the switch
_SEPARATOR = ";"
_STEP = re.compile(r"(?P<name>.*?)(?:#(?P<plane>[0-9]{1,6}))?(?:@(?P<layer>[0-9]{1,6}))?$", re.DOTALL)
_MOST_LAYERS = 8  # priorities of Ethernet
_MOST_VLAN = 4094


class FabricNames:
    """What a fabric's switches, hosts and links are called."""

    def __init__(self, topology: Topology) -> None:
        """Number the names of reports, and those of the file that the fabric comes from."""
        self.topology = topology
        self.channels = len(topology.channel_source)
        self.switch = {f"s{number + 1}": number for number in range(topology.switch_count)}
        self.switch |= {name: number for number, name in enumerate(topology.switch_labels)}
        self.switch |= {topology.switch_name(number): number for number in range(topology.switch_count)}
        self.host = {topology.host_name(number): number for number in range(topology.host_count)}
        self.between: dict[tuple[int, int], list[int]] = defaultdict(list)
        for channel, ends in enumerate(
            zip(topology.channel_source.tolist(), topology.channel_target.tolist(), strict=True)
        ):
            self.between[ends].append(channel)  # planes ascend with channels

    def list_names(self, cell: Cell) -> Sequence[str]:
        """The names of a cell."""
        if isinstance(cell, tuple):
            return cell
        whole = cell in self.switch or cell in self.host
        return (cell,) if whole else [part.strip() for part in cell.split(_SEPARATOR) if part.strip()]

    def step(self, word: str) -> tuple[str, int | None, int | None]:
        """Name, plane and layer of a step; None where it does not say."""
        match = None if word in self.switch or word in self.host else _STEP.match(word)
        if match is None:
            return word, None, None
        plane, layer = (int(part) if part else None for part in (match["plane"], match["layer"]))
        return match["name"], plane, layer

    def no_switch(self, name: str) -> str:
        """The sentence for a name that no switch has."""
        return f"there is no switch {quote_name(name)}.{suggest_name(name, self.switch)}"

    def links(self, one: int, other: int, plane: int | None) -> list[int]:
        """Channels from a switch to another: those of all links, or that of one plane; none where there is none."""
        found = self.between.get((one, other), [])
        return found if plane is None else found[plane : plane + 1]


def check_layer(layer: int) -> str:
    """What is wrong with a layer, or nothing."""
    return "" if layer < _MOST_LAYERS else f"the layer {layer} is none: Ethernet has the priorities 0 to 7"


def read_number(cell: Cell, what: str, least: int, most: int, otherwise: int) -> int:
    """The number of a cell, or `otherwise` where nothing is said.

    Raises:
        ValueError: it is none, or out of range.
    """
    if cell == "":
        return otherwise
    if not isinstance(cell, str) or not cell.isascii() or not cell.isdecimal() or not least <= int(cell[:9]) <= most:
        given = cell if isinstance(cell, str) else _SEPARATOR.join(cell)
        raise ValueError(f"{what} should be a number from {least} to {most}, not {quote_name(given)}")
    return int(cell)


class HopTable:
    """Next hops by switch and destination."""

    def __init__(self, names: FabricNames) -> None:
        """Begin without entries."""
        self._names = names
        self._ends = {int(switch): key for key, switch in enumerate(host_switches(names.topology))}
        self._host_keys: dict[int, int] = {}
        self._classes: dict[tuple[int, int], int] = {}
        self._sets: dict[tuple[int, ...], int] = {}
        self._set_of: dict[tuple[int, int, int, Cell], int] = {}
        self._keys_of: dict[Cell, Ints | None] = {}
        self._entries: list[tuple[int, int, Cell, int]] = []  # class, switch, destinations, set

    def add(self, switch: Cell, destination: Cell, next_hop: Cell, vlan: Cell, layer: Cell) -> Iterator[str]:
        """Take a row in; every problem of it."""
        names = self._names
        at = names.switch.get(switch) if isinstance(switch, str) else None
        if at is None:
            yield names.no_switch(switch if isinstance(switch, str) else _SEPARATOR.join(switch))
        try:
            found_vlan = read_number(vlan, "vlan", 1, _MOST_VLAN, 0)
            found_layer = read_number(layer, "layer", 0, _MOST_LAYERS - 1, 0)
        except ValueError as error:
            yield str(error)
            return
        if destination not in self._keys_of:
            yield from self._resolve(destination)
        if at is None or destination not in self._keys_of:
            return
        kind = (found_vlan, found_layer)
        place = (*kind, at, next_hop)
        number = self._set_of.get(place)
        if number is None:
            hops, local = [], False
            for sentence, found, here in self._hops(at, next_hop, kind):
                if sentence:
                    yield sentence
                    return
                hops += found
                local |= here
            if not hops and not local:
                yield "names no next hop"
                return
            number = DELIVER if local else self._number(hops)
            if local and hops:
                yield "sends frames to a host here and to other switches; a destination is at one place"
                return
            self._set_of[place] = number
        if number == DELIVER:
            yield from self._check_local(at, destination)
            return
        self._entries.append((self._class(kind), at, destination, number))

    def _resolve(self, cell: Cell) -> Iterator[str]:
        """Number the destinations of a cell; what is wrong with them."""
        if cell == ALL:
            self._keys_of[cell] = None
            return
        keys, wrong = [], False
        for name in self._names.list_names(cell):
            switch, host = self._names.switch.get(name), self._names.host.get(name)
            if switch is not None and switch in self._ends:
                keys.append(self._ends[switch])
            elif switch is not None:
                wrong = True
                yield f"the switch {quote_name(name)} has no host, so no frame is for it"
            elif host is not None:
                keys.append(self._host_keys.setdefault(host, len(self._ends) + len(self._host_keys)))
            else:
                wrong = True
                known = {**self._names.switch, **self._names.host}
                yield f"there is no switch and no host {quote_name(name)}.{suggest_name(name, known)}"
        if not keys and not wrong:
            yield 'names no destination; write "*" for all that have no entry of their own'
        elif not wrong:
            self._keys_of[cell] = np.unique(np.array(keys, dtype=np.int32))

    def _hops(self, at: int, cell: Cell, kind: tuple[int, int]) -> Iterator[tuple[str, list[int], bool]]:
        """Of each next hop: what is wrong, or its hops, and whether it is a host here."""
        names, topology = self._names, self._names.topology
        here = topology.switch_name(at)
        for word in names.list_names(cell):
            name, plane, layer = names.step(word)
            host = names.host.get(name)
            if name not in names.switch and host is not None:
                wrong = "" if topology.host_switch[host] == at else f"the host {quote_name(name)} is not at {here}"
                yield wrong, [], not wrong
            elif name not in names.switch:
                yield names.no_switch(name), [], False
            elif names.switch[name] == at:
                yield "", [], True
            elif layer is not None and check_layer(layer):
                yield check_layer(layer), [], False
            else:
                links = names.links(at, names.switch[name], plane)
                of = "" if plane is None else f" of plane {plane}"
                wrong = "" if links else f"{here} and {quote_name(name)} have no link{of}"
                number = self._class(kind if layer is None else (kind[0], layer)) if links else 0
                yield wrong, [number * names.channels + channel for channel in links], False

    def _check_local(self, at: int, destination: Cell) -> Iterator[str]:
        keys = self._keys_of[destination]
        goals = self._goals()
        if keys is None or (goals[keys] != at).any():
            shown = destination if isinstance(destination, str) else _SEPARATOR.join(destination)
            yield f"sends frames for {quote_name(shown)} to a host of {self._names.topology.switch_name(at)}"

    def _goals(self) -> Ints:
        switches = self._names.topology.host_switch
        return np.array([*self._ends, *(int(switches[host]) for host in self._host_keys)], dtype=np.int32)

    def _class(self, kind: tuple[int, int]) -> int:
        return self._classes.setdefault(kind, len(self._classes))

    def _number(self, hops: list[int]) -> int:
        return self._sets.setdefault(tuple(sorted(set(hops))), len(self._sets))

    def finish(self) -> NextHops:
        """The tables: an entry of a host goes before one of its switch, and that before one of `*`.

        Raises:
            InputError: they would be larger than the limit.
        """
        topology = self._names.topology
        switches, goals = topology.switch_count, self._goals()
        size = len(goals) * len(self._classes) * switches
        most = scaled_limit(ROUTE_ENTRIES)
        if size > most:
            raise InputError.one("", too_much(f"makes tables of {size:,} entries", most, "entries"))
        table = np.full((len(self._classes) * switches, len(goals)), NEVER, dtype=np.int32)
        rest: dict[int, int] = {}
        members = {number: hops for hops, number in self._sets.items()}

        def union(one: int, other: int) -> int:
            if one in (NEVER, other):
                return other
            made = self._number([*members[one], *members[other]])
            members.setdefault(made, tuple(sorted({*members[one], *members[other]})))
            return made

        for kind, at, cell, number in self._entries:
            state, keys = kind * switches + at, self._keys_of[cell]
            if keys is None:
                rest[state] = union(rest.get(state, NEVER), number)
                continue
            row = table[state]
            old = row[keys]
            if (old == NEVER).all():
                row[keys] = number
                continue
            for known in np.unique(old).tolist():
                row[keys[old == known]] = union(known, number)
        hosts = np.array([-1] * len(self._ends) + list(self._host_keys), dtype=np.int32)
        for host, key in self._host_keys.items():
            of_switch = table[:, self._ends[int(topology.host_switch[host])]]
            table[:, key] = np.where(table[:, key] == NEVER, of_switch, table[:, key])
        for state, number in rest.items():
            table[state, (table[state] == NEVER) & (goals != state % switches)] = number
        for key, goal in enumerate(goals.tolist()):
            at_goal = np.arange(goal, len(table), switches)
            table[at_goal[table[at_goal, key] == NEVER], key] = DELIVER
        alone = np.bincount(topology.host_switch, minlength=switches)
        named = np.bincount(topology.host_switch[list(self._host_keys)], minlength=switches)
        kept = np.concatenate([(named < alone)[list(self._ends)], np.ones(len(self._host_keys), dtype=bool)])
        listed = sorted(self._sets, key=self._sets.__getitem__)
        kinds = np.array(list(self._classes), dtype=np.int32).reshape(-1, 2)
        return NextHops(
            goals[kept],
            hosts[kept],
            np.ascontiguousarray(kinds[:, 0]),
            np.ascontiguousarray(kinds[:, 1]),
            table if kept.all() else np.ascontiguousarray(table[:, kept]),
            np.concatenate([[0], np.cumsum([len(hops) for hops in listed])]).astype(np.int64),
            np.array([hop for hops in listed for hop in hops], dtype=np.int32),
        )


class PathList:
    """Whole paths."""

    def __init__(self, names: FabricNames) -> None:
        """Begin without paths."""
        self._names = names
        self._lengths: list[int] = []
        self._hops: list[int] = []
        self._layers = 1

    def add(self, path: Cell, layer: Cell) -> Iterator[str]:
        """Take a path in; every problem of it."""
        names, topology = self._names, self._names.topology
        try:
            usual = read_number(layer, "layer", 0, _MOST_LAYERS - 1, 0)
        except ValueError as error:
            yield str(error)
            return
        steps = [names.step(word) for word in names.list_names(path)]
        # A path may begin and end with hosts: they are taken off where they hang on the switch beside them.
        for end, beside in ((0, 1), (-1, -2)):
            host = names.host.get(steps[end][0]) if len(steps) > 1 and steps[end][0] not in names.switch else None
            if host is not None and names.switch.get(steps[beside][0]) == int(topology.host_switch[host]):
                steps.pop(end)
        unknown = [name for name, _, _ in steps if name not in names.switch]
        for name in dict.fromkeys(unknown):
            yield names.no_switch(name)
        if unknown:
            return
        if len(steps) < 2:
            yield "should have two switches or more, such as s1;s2"
            return
        hops = []
        for (one, _, _), (other, plane, own) in pairwise(steps):
            links = names.links(names.switch[one], names.switch[other], plane or 0)
            number = usual if own is None else own
            if not links:
                yield f"{one} and {other} have no link" + (f" of plane {plane}" if plane else "")
            elif check_layer(number):
                yield check_layer(number)
            else:
                self._layers = max(self._layers, number + 1)
                hops.append(number * names.channels + links[0])
        if len(hops) == len(steps) - 1:
            self._lengths.append(len(hops))
            self._hops += hops

    def finish(self) -> ListedPaths:
        """The paths."""
        start: Longs = np.concatenate([[0], np.cumsum(self._lengths)]).astype(np.int64)
        return ListedPaths(start, np.array(self._hops, dtype=np.int32), self._layers)
