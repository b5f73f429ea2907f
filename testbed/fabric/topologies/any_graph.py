"""Any fabric, as lists of its switches and links."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Annotated

import numpy as np
from annotated_types import Ge, MinLen

from testbed.base.errors import Problem, did_you_mean
from testbed.base.model import Topology
from testbed.base.units import count_noun
from testbed.fabric.topologies.build_topology import (
    Extent,
    components,
    count_pairs,
    make_topology,
    on_circle,
)

_MAX_PROBLEMS = 20
_MAX_NAME_LENGTH = 60
_MAX_COMPARED = 500
_MAX_PARTS = 3


@dataclass(frozen=True, slots=True)
class Graph:
    """Switches by name, links by the names of their ends."""

    # names; the first is s1, the second s2, and so on
    switches: Annotated[tuple[str, ...], MinLen(1)] = field(metadata={"wanted": "a list of names such as [a, b]"})
    # pairs of names; a pair that is listed n times is n parallel links
    links: tuple[tuple[str, str], ...] = field(
        default=(), metadata={"wanted": "a list such as [[a, b], [b, c]]", "entry": "two switches such as [a, b]"}
    )
    # number of hosts of each switch that has any; without it every switch has `hosts_per_switch`
    hosts: dict[str, Annotated[int, Ge(0)]] | None = field(
        default=None, metadata={"wanted": "a block of switches and numbers such as {a: 2, b: 2}"}
    )
    hosts_per_switch: Annotated[int, Ge(0)] | None = None  # 1 where neither is given

    @property
    def hosts_on(self) -> list[int]:
        """(S,) number of hosts of each switch."""
        if self.hosts is None:
            return [1 if self.hosts_per_switch is None else self.hosts_per_switch] * len(self.switches)
        return [self.hosts.get(name, 0) for name in self.switches]

    def extent(self) -> Extent:
        """Count switches, links and hosts."""
        return Extent(len(self.switches), len(self.links), sum(self.hosts_on))


def check_graph(spec: Graph) -> list[Problem]:
    """Name what keeps the lists from being one fabric."""
    return shorten_problems(_name_problems(spec)) or _division(spec)


def graph(spec: Graph) -> Topology:
    """Build a graph without problems; its names become the labels of the switches."""
    number = {name: switch for switch, name in enumerate(spec.switches)}
    neighbours, count = count_pairs((number[a], number[b]) for a, b in spec.links)
    return make_topology(
        "graph",
        neighbours,
        spec.hosts_on,
        on_circle(len(spec.switches)),
        parallel_links=count,
        switch_labels=spec.switches,
    )


def shorten_problems(problems: Iterable[Problem]) -> list[Problem]:
    """The first problems, and a word where there are more."""
    found = list(islice(problems, _MAX_PROBLEMS + 1))
    if len(found) > _MAX_PROBLEMS:
        found[-1] = Problem("", f"there is more wrong than these {_MAX_PROBLEMS}")
    return found


def name_problem(name: str) -> str | None:
    """Say why a name cannot be a switch's, or None."""
    return None if name.isprintable() and name.strip() else "should be a name of printable characters"


def suggest_name(name: str, known: Collection[str]) -> str:
    """Return ` Did you mean "x"?` for a near miss, unless there are too many names to compare them all."""
    return did_you_mean(name, filter(str.isprintable, known)) if len(known) <= _MAX_COMPARED else ""


def quote_name(name: str) -> str:
    """Return a name in quotes, fit for a message whatever it holds."""
    text = name if len(name) <= _MAX_NAME_LENGTH else f"{name[:_MAX_NAME_LENGTH]}…"
    return json.dumps(text, ensure_ascii=not text.isprintable())


def _name_problems(spec: Graph) -> Iterator[Problem]:
    first: dict[str, int] = {}
    for place, name in enumerate(spec.switches):
        wrong = name_problem(name)
        if wrong:
            yield Problem(f"switches.{place}", wrong)
        elif name in first:
            yield Problem(
                f"switches.{place}", f"the name {quote_name(name)} is listed at switches.{first[name]} already"
            )
        first.setdefault(name, place)
    for place, ends in enumerate(spec.links):
        unknown = [name for name in dict.fromkeys(ends) if name not in first]
        for name in unknown:
            yield Problem(f"links.{place}", f"there is no switch {quote_name(name)}.{suggest_name(name, first)}")
        if not unknown and ends[0] == ends[1]:
            yield Problem(f"links.{place}", f"joins {quote_name(ends[0])} to itself")
    if spec.hosts is not None and spec.hosts_per_switch is not None:
        yield Problem("hosts_per_switch", "says what hosts says too; remove one of them")
    for name in spec.hosts or ():
        if name not in first:
            yield Problem(f"hosts.{name}", f"there is no such switch.{suggest_name(name, first)}")


def _division(spec: Graph) -> list[Problem]:
    number = {name: switch for switch, name in enumerate(spec.switches)}
    links = np.array([(number[a], number[b]) for a, b in spec.links], dtype=np.int32).reshape(-1, 2)
    part, _ = components(len(spec.switches), links)
    parts = np.unique(part)
    if len(parts) == 1:
        return []
    shown = [
        f"{quote_name(spec.switches[first])} ({count_noun(int((part == first).sum()), 'switch', 'es')})"
        for first in parts[:_MAX_PARTS].tolist()
    ]
    more = f" and {len(parts) - _MAX_PARTS} more" if len(parts) > _MAX_PARTS else ""
    sentence = f"is in {len(parts)} parts that no path joins, those of {', '.join(shown)}{more}"
    return [Problem("links", f"{sentence}; a fabric must be connected")]
