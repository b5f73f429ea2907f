"""One spanning tree: root, root ports and designated ports from priorities, costs and addresses.

By IEEE 802.1Q-2018, 13.9 to 13.12. What a bridge offers on a segment is the vector (external cost to the root, regional
root, internal cost), and the best of root, vector, bridge and port wins. Each bridge of STP or RSTP is an MST region by
itself, so that costs are external everywhere; one tree of MSTP within its region has internal costs alone.

Where an address is not known, an Order takes each order that is possible, one after the other.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeVar

from testbed.devices.bridge import Place
from testbed.devices.stp_settings import order_of

Found = TypeVar("Found")
_Item = str | Place  # a bridge, or one of its ports


@dataclass(frozen=True, slots=True)
class TreePort:
    """A port that takes part."""

    place: Place
    segment: int  # what it is plugged into, with all ports that hear it
    cost: int  # of a path that arrives by it
    priority: int  # of the port


@dataclass(frozen=True, slots=True)
class TreeBridge:
    """A bridge that takes part."""

    priority: int
    region: Hashable  # of MSTP; of its own otherwise


@dataclass(frozen=True, slots=True)
class Tree:
    """What follows."""

    roots: Mapping[str, str]  # bridge → root of its part of the network
    root_ports: Mapping[str, Place]  # bridge that is no root → its root port
    blocked: frozenset[Place]  # ports that carry nothing


class Order:
    """Which bridge has the lower address, which port the lower number; what is not known is chosen, and noted."""

    def __init__(
        self, macs: Mapping[str, str], numbers: Mapping[Place, int], choices: Sequence[int] = (), *, fixed: bool = False
    ) -> None:
        self.taken: list[tuple[int, int]] = []  # of each choice, which was taken and of how many
        self.words: list[str] = []  # the same in words
        self.guessed: set[_Item] = set()  # those that were taken since any would do
        self._macs, self._numbers, self._choices, self._fixed = macs, numbers, choices, fixed
        self._above: dict[_Item, set[_Item]] = defaultdict(set)  # by choice
        known = sorted(macs, key=lambda bridge: macs[bridge])
        for low, high in pairwise(known):
            self._above[low].add(high)

    def find_least(self, items: Iterable[_Item]) -> _Item:
        """The one with the lowest address or number."""
        left = sorted(set(items), key=str)
        if len(left) == 1:
            return left[0]
        if isinstance(left[0], tuple):
            places = [item for item in left if isinstance(item, tuple)]
            if all(place in self._numbers for place in places):
                return min(places, key=lambda place: self._numbers[place])
            if len({order_of(port)[0] for _, port in places}) == 1:
                return min(places, key=lambda place: order_of(place[1]))
        elif all(item in self._macs for item in left):
            return min(left, key=lambda item: self._macs[str(item)])
        higher = {above for item in left for above in self._list_above(item)}
        return self._choose([item for item in left if item not in higher], left)

    def _list_above(self, item: _Item) -> set[_Item]:
        found: set[_Item] = set()
        waiting = [item]
        while waiting:
            for above in self._above[waiting.pop()] - found:
                found.add(above)
                waiting.append(above)
        return found

    def _choose(self, viable: Sequence[_Item], items: Sequence[_Item]) -> _Item:
        if len(viable) > 1 and self._fixed:
            self.guessed.add(viable[0])
        if len(viable) == 1 or self._fixed:
            return viable[0]
        number = self._choices[len(self.taken)] if len(self.taken) < len(self._choices) else 0
        chosen = viable[number]
        self.taken.append((number, len(viable)))
        self._above[chosen].update(item for item in items if item != chosen)
        others = [item for item in viable if item != chosen]
        if isinstance(chosen, tuple):
            ports = " and ".join(item[1] for item in others if isinstance(item, tuple))
            self.words.append(f"{chosen[0]} numbers {chosen[1]} before {ports}")
        else:
            names = " and ".join(map(str, others)) if len(others) < 3 else f"those of {len(others)} others"
            self.words.append(f"the address of {chosen} is lower than {'that of ' * (len(others) == 1)}{names}")
        return chosen


def list_orders(compute: Callable[[Order], Found], macs: Mapping[str, str], numbers: Mapping[Place, int]) -> Iterator[
    tuple[Order, Found]
]:  # fmt: skip
    """What follows from each order that is possible, as far as it matters."""
    choices: list[int] = []
    while True:
        order = Order(macs, numbers, choices)
        yield order, compute(order)
        taken = order.taken
        while taken and taken[-1][0] + 1 == taken[-1][1]:
            taken.pop()
        if not taken:
            return
        choices = [*(number for number, _ in taken[:-1]), taken[-1][0] + 1]


@dataclass(frozen=True, slots=True)
class _Label:
    """What a bridge knows of its way to the root."""

    outer: int  # cost up to its region
    region_root: str
    inner: int  # cost from there


def compute_tree(ports: Sequence[TreePort], bridges: Mapping[str, TreeBridge], order: Order) -> Tree:
    """The tree, or one for each part of the network."""
    of: dict[str, list[TreePort]] = {bridge: [] for bridge in bridges}
    on: dict[int, list[TreePort]] = defaultdict(list)
    for port in ports:
        of[port.place[0]].append(port)
        on[port.segment].append(port)
    labels: dict[str, _Label] = {}
    roots: dict[str, str] = {}
    root_ports: dict[str, Place] = {}
    for start in bridges:
        if start not in roots:
            part = _list_part(start, of, on)
            lowest = min(bridges[bridge].priority for bridge in part)
            root = str(order.find_least(bridge for bridge in part if bridges[bridge].priority == lowest))
            roots.update(dict.fromkeys(part, root))
            _grow(root, of, on, bridges, order, labels, root_ports)
    blocked: set[Place] = set()
    for there in on.values():
        rows: list[tuple[object, ...]] = [
            (*_row_of(labels[port.place[0]], bridges), bridges[port.place[0]].priority, port.place[0], port.priority,
             port.place)
            for port in there
        ]  # fmt: skip
        designated = _find_best(rows, order)[-1]
        blocked.update(port.place for port in there if port.place not in (designated, root_ports.get(port.place[0])))
    return Tree(roots, root_ports, frozenset(blocked))


def _list_part(start: str, of: Mapping[str, list[TreePort]], on: Mapping[int, list[TreePort]]) -> list[str]:
    found, waiting = {start: None}, [start]
    while waiting:
        for port in of[waiting.pop()]:
            for other in on[port.segment]:
                if other.place[0] not in found:
                    found[other.place[0]] = None
                    waiting.append(other.place[0])
    return list(found)


def _row_of(label: _Label, bridges: Mapping[str, TreeBridge]) -> tuple[int, int, str, int]:
    return label.outer, bridges[label.region_root].priority, label.region_root, label.inner


def _grow(
    root: str, of: Mapping[str, list[TreePort]], on: Mapping[int, list[TreePort]], bridges: Mapping[str, TreeBridge],
    order: Order, labels: dict[str, _Label], root_ports: dict[str, Place],
) -> None:  # fmt: skip
    """Give every bridge its way to the root, the nearest first: what it hears of those before it is all that counts."""
    labels[root] = _Label(0, root, 0)
    heard: dict[str, list[tuple[object, ...]]] = defaultdict(list)  # bridge → rows, best first what decides
    newest = root
    while True:
        for own in of[newest]:
            for port in on[own.segment]:
                bridge = port.place[0]
                if bridge in labels:
                    continue
                inside = bridges[bridge].region == bridges[newest].region
                known = labels[newest]
                label = (
                    _Label(known.outer, known.region_root, known.inner + port.cost)
                    if inside
                    else _Label(known.outer + port.cost, bridge, 0)
                )
                heard[bridge].append(
                    (*_row_of(label, bridges), bridges[newest].priority, newest, own.priority, own.place,
                     port.priority, port.place)
                )  # fmt: skip
        if not heard:
            return
        nearest = min(int(str(row[0])) for rows in heard.values() for row in rows)
        level = [row for rows in heard.values() for row in rows if row[0] == nearest]
        # Of regions that are as far away any may be next, so that no order is asked for that decides nothing.
        region = bridges[_bridge_of(level[0])].region
        level = [row for row in level if bridges[_bridge_of(row)].region == region]
        several = len({_bridge_of(row) for row in level}) > 1
        newest = _bridge_of(_find_best(level, order, columns=4) if several else level[0])
        row = _find_best(heard.pop(newest), order)
        labels[newest] = _Label(int(str(row[0])), str(row[2]), int(str(row[3])))
        root_ports[newest] = row[-1]  # type: ignore[assignment]


def _bridge_of(row: tuple[object, ...]) -> str:
    place = row[-1]
    assert isinstance(place, tuple)
    return str(place[0])


def _find_best(rows: list[tuple[object, ...]], order: Order, columns: int | None = None) -> tuple[object, ...]:
    """The best row by its first columns, one after the other."""
    for column in range(columns or len(rows[0])):
        if len(rows) == 1:
            break
        values = {row[column] for row in rows}
        if len(values) > 1:
            numbers = [value for value in values if isinstance(value, int)]
            best = min(numbers) if numbers else order.find_least(values)  # type: ignore[arg-type]
            rows = [row for row in rows if row[column] == best]
    return rows[0]
