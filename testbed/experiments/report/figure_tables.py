"""The figures behind a drawing as a table, for who does not see it, and for who wants the numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from testbed.base.model import Floats, Topology, VlanPlan
from testbed.base.units import Scale, format_quantity
from testbed.results.samples import Arrivals

MOST = 256  # rows; of more the caption says so


@dataclass(frozen=True, slots=True)
class Sheet:
    """A table."""

    title: str  # what it is of
    head: tuple[str, ...]  # of the columns, each with its unit
    rows: tuple[tuple[str, ...], ...]  # the first cell names the row
    left_out: int = 0  # further rows


class ValueSpread(Protocol):
    """A figure of several values."""

    @property
    def name(self) -> str:
        """Of what it is."""

    @property
    def median(self) -> float:
        """In the unit of samples."""

    @property
    def min(self) -> float:
        """Likewise."""

    @property
    def max(self) -> float:
        """Likewise."""

    @property
    def predicted(self) -> float | None:
        """Likewise; None where there is no prediction."""


def sheet(title: str, head: Sequence[str], rows: Iterable[Sequence[str]]) -> Sheet:
    """A table of the first rows."""
    found = [tuple(row) for row in rows]
    return Sheet(title, tuple(head), tuple(found[:MOST]), max(0, len(found) - MOST))


def spreads(title: str, what: str, scale: Scale, found: Iterable[ValueSpread], predicted: str = "predicted") -> Sheet:
    """Median, min and max of each, and its prediction."""
    unit = f" ({scale.name})"

    def text(value: float | None) -> str:
        return "" if value is None else scale.text(value)

    rows = [(one.name, text(one.median), text(one.min), text(one.max), text(one.predicted)) for one in found]
    return sheet(title, (what, f"median{unit}", f"min{unit}", f"max{unit}", f"{predicted}{unit}"), rows)


def arrivals(pairs: Iterable[Arrivals]) -> Sheet:
    """Datagrams of watched pairs."""
    rows = []
    for pair in pairs:
        sent, arrived = sum(pair["sent"]), sum(pair["arrived"])
        rows.append((f"{pair['src']}→{pair['dst']}", f"{sent}", f"{arrived}", f"{sent - arrived}"))
    return sheet("Datagrams of each pair", ("pair", "sent", "arrived", "lost"), rows)


def over_time(title: str, what: str, names: Sequence[str], values: Floats, text: Callable[[float], str]) -> Sheet:
    """(R, C) values of R rows over time: mean and most."""
    rows = [(name, text(float(row.mean())), text(float(row.max()))) for name, row in zip(names, values, strict=True)]
    return sheet(title, (what, "mean", "max"), rows)


def matrix(title: str, names: Sequence[str], values: Floats, text: Callable[[float], str]) -> Sheet:
    """(H, H) from row to column: the pairs with most first."""
    sources, ends = np.nonzero(values)
    order = np.argsort(-values[sources, ends], kind="stable")
    rows = [(names[sources[at]], names[ends[at]], text(float(values[sources[at], ends[at]]))) for at in order]
    return sheet(title, ("from", "to", "sent"), rows)


class Use(Protocol):
    """Use of a direction of a link, as a share of its rate."""

    @property
    def measured(self) -> float:
        """As a share."""

    @property
    def predicted(self) -> float | None:
        """Likewise; None where there is no prediction."""


def link_uses(topology: Topology, uses: Mapping[int, Use]) -> Sheet:
    """Use of each direction of each link."""
    rows = [
        (
            topology.channel_name(channel),
            format_quantity(use.measured, "ratio"),
            "" if use.predicted is None else format_quantity(use.predicted, "ratio"),
        )
        for channel, use in uses.items()
    ]
    return sheet("Utilisation of each direction", ("direction", "measured", "predicted"), rows)


def links(topology: Topology) -> Sheet:
    """Switches, their hosts and their neighbours."""
    near: dict[int, list[str]] = {}
    for one, other in topology.links.tolist():
        for switch, end in ((one, other), (other, one)):
            near.setdefault(switch, []).append(topology.switch_name(end))
    hosts: dict[int, list[str]] = {}
    for host, switch in enumerate(topology.host_switch.tolist()):
        hosts.setdefault(switch, []).append(topology.host_name(host))
    rows = [
        (topology.switch_name(switch), ", ".join(hosts.get(switch, [])), ", ".join(near.get(switch, [])))
        for switch in range(topology.switch_count)
    ]
    return sheet("Switches", ("switch", "hosts", "links to"), rows)


def trees(topology: Topology, vlans: VlanPlan) -> Sheet:
    """Links and hosts of each VLAN."""
    rows = []
    for number, vlan in enumerate(vlans.vlan_ids.tolist()):
        hosts = [topology.host_name(int(host)) for host in np.flatnonzero(vlans.sending_hosts(number))]
        members = np.flatnonzero(vlans.tagged_links[number]).tolist()
        names = [topology.channel_name(2 * link).replace("→", "–") for link in members]
        rows.append((f"{vlan}", ", ".join(hosts), ", ".join(names)))
    return sheet("VLANs", ("VLAN", "hosts that send in it", "links of its tree"), rows)
