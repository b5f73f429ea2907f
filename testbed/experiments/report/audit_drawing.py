"""An audited network drawn: links that loop, behind which frames end, that a spanning tree blocks, or that are down."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

import numpy as np

from testbed.base.errors import InputError, argument
from testbed.base.model import Topology
from testbed.devices.audit import Audit, Network
from testbed.devices.audit.follow_kernel import arrival
from testbed.devices.port_names import format_ranges
from testbed.experiments.report.drawing import CYCLE, MAX_SWITCHES, fabric_panel
from testbed.experiments.report.fabric_drawing import ReportFabric, Stroke
from testbed.experiments.report.geometry import layout
from testbed.experiments.report.palette import LINK, MEASURED, MUTED, PREDICTED
from testbed.experiments.report.panels import Block, Picture
from testbed.experiments.report.render import write
from testbed.fabric.topologies.build_topology import count_pairs, make_topology, on_circle

_SIDE = 560.0  # pixels
_LONGEST_NAME = 11
# Kind of link → its colour, width and dashes, in the order in which they are drawn.
_STYLES: Mapping[str, tuple[str, float, object]] = {
    "carries frames": (MEASURED, 2.0, "-"),
    "blocked by the spanning tree protocol": (LINK, 1.6, (0, (5, 3))),
    "blocked in some VLANs": (MEASURED, 1.6, (0, (5, 2))),
    "carries nothing": (MUTED, 1.2, (0, (1.5, 2.5))),
    "VLANs of one end alone": (PREDICTED, 3.2, (0, (5, 2))),
    "frames end behind it": (PREDICTED, 3.2, "-"),
    "loops": (CYCLE, 3.2, "-"),
}


def draw_audit(title: str, found: Audit, form: str) -> bytes:
    """Draw the network in a form of files, such as `svg`.

    Raises:
        InputError: it has more switches than are drawn.
    """
    network = found.network
    if len(network.switches) > MAX_SWITCHES:
        sentence = f"has {len(network.switches)} switches, and up to {MAX_SWITCHES} are drawn"
        raise InputError.one(argument("output"), sentence)
    topology, ports = _build_topology(network)
    kinds = _list_kinds(found, ports)
    strokes = [
        Stroke([link for link, one in enumerate(kinds) if one == kind], *style, name=_name_kind(kind, found))  # type: ignore[arg-type]
        for kind, style in _STYLES.items()
        if kind in kinds
    ]
    everyone = np.ones(topology.host_count, dtype=bool)
    place = layout(topology)
    fabric = ReportFabric(
        topology, _SIDE / max(place.width, place.height), strokes, hosts=[(everyone, MUTED, 6.0)], crowds=everyone,
    )  # fmt: skip
    counts = Counter(finding.kind for finding in found.findings)
    told = ", ".join(f"{count} {kind}" for kind, count in counts.items())
    words = f"{title}: {found.verdict}{f' ({told})' if told else ''}"
    return write(Picture([Block([fabric_panel(fabric)])], words), form)


def _build_topology(network: Network) -> tuple[Topology, list[tuple[int, int]]]:
    """The switches on a circle, and the two ports of each link in the order of the links."""
    number = {name: place for place, name in enumerate(network.switches)}
    between: dict[tuple[int, int], list[tuple[int, int]]] = defaultdict(list)
    for port, peer in enumerate(network.peer.tolist()):
        if peer > port:
            ends = tuple(sorted(number[network.places[one][0]] for one in (port, peer)))
            if ends[0] != ends[1]:
                between[ends[0], ends[1]].append((port, peer))
    pairs, counts = count_pairs([ends for ends, there in between.items() for _ in there])
    of_hosts = Counter(network.switch_of[network.host_port].tolist())
    topology = make_topology(
        "graph", pairs, [of_hosts[switch] for switch in range(len(number))], on_circle(len(number)),
        parallel_links=counts, switch_names=[_shorten_name(name) for name in network.switches],
    )  # fmt: skip
    return topology, [ports for ends in pairs for ports in between[min(ends), max(ends)]]


def _shorten_name(name: str) -> str:
    return name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 4]}…{name[-3:]}"


def _list_kinds(found: Audit, links: Sequence[tuple[int, int]]) -> list[str]:
    network = found.network
    loops = {place for finding in found.findings if finding.kind == "loop" for place in finding.witness}
    ends = {finding.after for finding in found.findings if finding.after}
    cut = any(finding.kind in ("cut", "broadcast") for finding in found.findings)
    kinds = []
    for ports in links:
        places = [network.places[port] for port in ports]
        names = {":".join(place) for place in places}
        blocked = [network.trees.cases[0].vlans.get(place) for place in places]
        dead = [place for place in places if place[1] not in network.bridges[place[0]].ports]
        if names & loops:
            kinds.append("loops")
        elif names & ends:
            kinds.append("frames end behind it")
        elif any(blocked) and dead:
            kinds.append("blocked by the spanning tree protocol")
        elif dead:
            kinds.append("carries nothing")
        elif any(blocked):
            kinds.append("blocked in some VLANs")
        elif cut and _drops_vlans(network, ports):
            kinds.append("VLANs of one end alone")
        else:
            kinds.append("carries frames")
    return kinds


def _drops_vlans(network: Network, ports: tuple[int, int]) -> bool:
    """Whether what one end sends in some VLAN is dropped at the other."""
    at = network.by_port(network.floods)
    return any(arrival(port, vlan, at) < 0 for port in ports for vlan in np.flatnonzero(network.member[port]).tolist())


def _name_kind(kind: str, found: Audit) -> str:
    if kind == "loops":
        return f"loops, in VLAN{'s' * (len(found.looping_vlans) > 1)} {format_ranges(found.looping_vlans)}"
    return kind
