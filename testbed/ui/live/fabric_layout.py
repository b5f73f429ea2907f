"""What does not change of a fabric, as the page draws it: places, names, rates, VLANs."""

from __future__ import annotations

from typing import TypedDict

import numpy as np

from testbed.base.errors import InputError
from testbed.base.model import Floats, LocalPlan, VlanPlan, host_ip, host_mac
from testbed.experiments.report.geometry import BOX_HEIGHT, BOX_WIDTH, channel_line, layout
from testbed.planning import Plan
from testbed.planning.rates import wire_rates

MAX_SWITCHES = 400


class _Switch(TypedDict):
    name: str
    at: list[float]


class _Host(_Switch):
    switch: int
    port: int
    ip: str
    mac: str
    vlan: int | None


class _Link(TypedDict):
    name: str
    ends: list[int]
    ports: list[int]
    vlans: list[int]


class Picture(TypedDict):
    """What does not change of a fabric, for the page."""

    scenario: str
    kind: str
    routing: str
    assignment: str
    engine: str
    digest: str
    width: float
    height: float
    box: list[float]
    switches: list[_Switch]
    hosts: list[_Host]
    links: list[_Link]
    channels: list[str]
    lines: list[list[list[float]]]
    rates: list[float]  # real-world bit/s
    edge_rate: float


class LabPicture(Picture):
    """Likewise of a lab, or of a run in one."""

    lab: str


def picture(plan: Plan) -> Picture:
    """The fabric in units of the least distance of two switches, x to the right and y downward.

    Directions of links are numbered as in messages.LinkReadings; links and channels are the physical ones.

    Raises:
        InputError: it is too large to be looked at.
    """
    topology = plan.wiring
    if topology.switch_count > MAX_SWITCHES:
        sentence = f"has {topology.switch_count} switches, and the page draws up to {MAX_SWITCHES}"
        raise InputError.one(plan.scenario.name, sentence)
    place = layout(topology)
    channels = range(2 * topology.link_count)

    def flip_vertically(points: Floats) -> list[list[float]]:
        found: list[list[float]] = (np.array([0, place.height]) + points * (1, -1)).round(3).tolist()
        return found

    return {
        "scenario": plan.scenario.name,
        "kind": topology.kind,
        "routing": plan.scenario.routing_kind,
        "assignment": plan.scenario.assignment_kind,
        "engine": plan.scenario.engine,
        "digest": plan.digest,
        "width": round(place.width, 3),
        "height": round(place.height, 3),
        "box": [BOX_WIDTH, BOX_HEIGHT],
        "switches": [
            {"name": topology.switch_name(switch), "at": at}
            for switch, at in enumerate(flip_vertically(place.switches))
        ],
        "hosts": [
            {
                "name": topology.host_name(host),
                "at": at,
                "switch": int(topology.host_switch[host]),
                "port": int(topology.host_port[host]),
                "ip": host_ip(host),
                "mac": host_mac(host),
                "vlan": _pvid(plan, host),
            }
            for host, at in enumerate(flip_vertically(place.hosts))
        ],
        "links": [
            {
                "name": topology.channel_name(2 * link).replace("→", "-"),
                "ends": topology.links[link].tolist(),
                "ports": topology.out_port[2 * link : 2 * link + 2].tolist(),
                "vlans": vlans,
            }
            for link, vlans in enumerate(_vlans(plan))
        ],
        "channels": [topology.channel_name(channel) for channel in channels],
        "lines": [flip_vertically(channel_line(topology, place, channel)) for channel in channels],
        "rates": np.broadcast_to(np.asarray(wire_rates(plan)), len(channels)).tolist(),
        "edge_rate": plan.scenario.links.edge_rate,
    }


def _pvid(plan: Plan, host: int) -> int | None:
    """Identifier of the PVID of a host's port; None where ports of hosts have none that means anything beyond it."""
    vlans = plan.vlans
    if isinstance(vlans, VlanPlan):
        return None if vlans.takes_tags(host) else int(vlans.vlan_ids[vlans.pvid[host]])
    local = int(vlans.host_vlan[host])
    return int(vlans.vlan_id[local]) if local >= 0 else None


def _vlans(plan: Plan) -> list[list[int]]:
    """For each physical link the VLANs whose tagged member it is; none where VLANs end at each switch."""
    links = plan.wiring.link_count
    if isinstance(plan.vlans, LocalPlan):
        return [[]] * links
    logical = np.arange(links) if plan.bundles is None else plan.bundles.of_channel[::2] // 2
    tagged = plan.vlans.tagged_links[:, logical].T
    return [plan.vlans.vlan_ids[row].tolist() for row in tagged]
