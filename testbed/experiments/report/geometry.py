"""Where switches, links and hosts are drawn. Lengths are in units of the least distance of two switches."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from testbed.base.model import Bools, Floats, Topology

BOX_WIDTH = 0.46
BOX_HEIGHT = 0.30
_CLEARANCE = 0.25  # a line that passes another switch closer than this becomes an arc
_FLATTEST, _TALLEST = 0.45, 0.7  # height/width of a drawing in rows
_MIN_ROW = 1.2
_ARC_RISE = 0.40  # of an arc above the switches it passes
_ARC_SPREAD = 0.09  # more for the longest arcs
_ARC_START = 0.3
_ARC_POINTS = np.linspace(0, 1, 25)[:, None]
_MARGIN = 0.12
_HOSTS_IN_CORNER, _HOSTS_IN_ROW, _HOSTS_IN_ROWS, _HOSTS_AROUND = 9, 6, 24, 256
_CROWD_LABEL = 0.3
_DOWN = -math.pi / 2
_CLEAR_ANGLE = math.radians(40)
# Positions of other topologies are drawn as they are.
_IN_ROWS = ("fat_tree", "fat_tree_14", "myrinet_clos", "tree", "m_tree")


@dataclass(frozen=True, slots=True, eq=False)
class Layout:
    """A topology in units; x to the right, y upward, all of it inside (0, 0) to (width, height)."""

    switches: Floats  # (S, 2) centres
    lines: tuple[Floats, ...]  # one polyline a link, from `links[l, 0]` to `links[l, 1]`, parallel links on one line
    hosts: Floats  # (H, 2) places; the hosts of a crowd share one
    crowds: tuple[int, ...]  # switches with more hosts than are drawn one by one
    width: float  # of everything
    height: float  # of everything


def layout(topology: Topology) -> Layout:
    """Place everything; deterministic."""
    switches = _normalise_positions(topology)
    lines = _lines(topology, switches)
    hosts, crowds = _hosts(topology, switches)
    half = np.array([BOX_WIDTH, BOX_HEIGHT]) / 2
    labels = hosts[np.isin(topology.host_switch, crowds)] - (0, _CROWD_LABEL)
    everything = np.concatenate([switches - half, switches + half, hosts, labels, *lines])
    low, high = everything.min(axis=0) - _MARGIN, everything.max(axis=0) + _MARGIN
    return Layout(switches - low, tuple(line - low for line in lines), hosts - low, crowds, *map(float, high - low))


def offset_line(line: Floats, distance: float) -> Floats:
    """A polyline moved to the right of its direction by a distance."""
    step = np.gradient(line, axis=0)
    normal = np.stack([step[:, 1], -step[:, 0]], axis=1)
    moved: Floats = line + distance * normal / np.linalg.norm(normal, axis=1, keepdims=True)
    return moved


def lane_width(topology: Topology) -> float:
    """Distance of lines that run side by side, two for each parallel link."""
    return min(0.09, BOX_HEIGHT / max(2 * topology.parallel_links, 1))


def link_line(topology: Topology, place: Layout, link: int) -> Floats:
    """Polyline of a link, parallel links side by side."""
    planes = _planes(topology, link)
    return offset_line(place.lines[link], (topology.plane[link] - (planes - 1) / 2) * lane_width(topology))


def channel_line(topology: Topology, place: Layout, channel: int) -> Floats:
    """Polyline of a channel in its direction, on the right-hand side of its link."""
    link, backward = divmod(channel, 2)
    line = place.lines[link][::-1] if backward else place.lines[link]
    return offset_line(line, (float(topology.plane[link]) + 0.5) * lane_width(topology))


def _planes(topology: Topology, link: int) -> int:
    last = link
    while last + 1 < topology.link_count and topology.plane[last + 1] > topology.plane[last]:
        last += 1
    return int(topology.plane[last]) + 1


def _normalise_positions(topology: Topology) -> Floats:
    switches = topology.positions.astype(np.float64)
    if len(switches) < 2:  # nothing to compare
        return switches
    apart = np.linalg.norm(switches[:, None] - switches[None], axis=2)
    np.fill_diagonal(apart, np.inf)
    switches = switches / (apart.min() or 1.0)
    width, height = np.ptp(switches, axis=0)
    if topology.kind not in _IN_ROWS or height == 0:
        return switches
    row = np.diff(np.unique(switches[:, 1].round(6))).min()
    factor = max(_TALLEST * width / height, _MIN_ROW / row) if height > _TALLEST * width else 1.0
    factor = max(factor, _FLATTEST * width / height)
    stretched: Floats = switches * np.array([1.0, factor])
    return stretched


def _lines(topology: Topology, switches: Floats) -> list[Floats]:
    """Straight where that passes no other switch, else an arc, longer ones further out."""
    start, end = switches[topology.links[:, 0]], switches[topology.links[:, 1]]
    along = end - start
    length = np.linalg.norm(along, axis=1)
    spans = np.unique(length.round(6))
    found = []
    for link in range(topology.link_count):
        unit = along[link] / length[link]
        normal = np.array([-unit[1], unit[0]])
        if normal @ (0.5, 1) < 0:  # rows bulge upward, columns to the right
            normal = -normal
        ahead = (switches - start[link]) @ unit
        aside = (switches - start[link]) @ normal
        near = (ahead > _CLEARANCE) & (ahead < length[link] - _CLEARANCE) & (abs(aside) < _CLEARANCE)
        if not near.any():
            found.append(np.stack([start[link], end[link]]))
            continue
        passed = float(aside[near].mean())
        if passed > 0.02:  # not merely rounding
            normal = -normal
        rank = np.searchsorted(spans, length[link].round(6)) / max(len(spans) - 1, 1)
        rise = max(_ARC_RISE - abs(passed), 0.0) + _ARC_SPREAD * rank
        height = normal * rise / 0.75  # a cubic curve rises to three quarters of its inner points
        first, second = start[link] + _ARC_START * unit + height, end[link] - _ARC_START * unit + height
        t = _ARC_POINTS
        found.append(
            (1 - t) ** 3 * start[link] + 3 * (1 - t) ** 2 * t * first + 3 * (1 - t) * t**2 * second + t**3 * end[link]
        )
    return found


def _hosts(topology: Topology, switches: Floats) -> tuple[Floats, tuple[int, ...]]:
    places = np.zeros((topology.host_count, 2))
    crowds = []
    linked = np.unique(topology.links)
    corner = len(topology.sizes) > 1
    for switch in np.unique(topology.host_switch).tolist():
        hosts = np.flatnonzero(topology.host_switch == switch)
        number = np.arange(len(hosts))
        if switch not in linked:
            limit, spread = _HOSTS_AROUND, _place_on_circle(len(hosts))
        elif corner:
            limit, side = _HOSTS_IN_CORNER, math.ceil(math.sqrt(len(hosts)))
            spread = np.stack([-0.32 - 0.12 * (number % side), -0.27 - 0.12 * (number // side)], axis=1)
        else:
            limit = _HOSTS_IN_ROWS
            spread = _rows(len(hosts), _free_direction(topology, switches, switch))
        if len(hosts) > limit:
            crowds.append(switch)
            spread = np.repeat(spread[:1], len(hosts), axis=0)
        places[hosts] = switches[switch] + spread
    return places, tuple(crowds)


def _place_on_circle(count: int) -> Floats:
    angle = math.pi / 2 - 2 * math.pi * np.arange(count) / count
    return max(0.45, 0.13 * count / (2 * math.pi)) * np.stack([np.cos(angle), np.sin(angle)], axis=1)


def _rows(count: int, direction: float) -> Floats:
    """Rows across a direction, each at most six wide."""
    number = np.arange(count)
    row, place = number // _HOSTS_IN_ROW, number % _HOSTS_IN_ROW
    width = np.minimum(count - row * _HOSTS_IN_ROW, _HOSTS_IN_ROW)
    away, across = 0.36 + 0.13 * row, (place - (width - 1) / 2) * 0.14
    cosine, sine = math.cos(direction), math.sin(direction)
    return np.stack([away * cosine - across * sine, away * sine + across * cosine], axis=1)


def _all_on_circle(switches: Floats) -> bool:
    away = np.linalg.norm(switches - switches.mean(axis=0), axis=1)
    return len(switches) > 4 and bool(np.allclose(away, away[0]))


def _free_direction(topology: Topology, switches: Floats, switch: int) -> float:
    """Where no link leaves a switch: outward on a circle, else the freest of down, up, right and left."""
    here = switches[switch]
    outward = here - switches.mean(axis=0)
    if topology.kind in ("ring", "complete") or (not topology.sizes and _all_on_circle(switches)):
        return math.atan2(outward[1], outward[0])
    touching: Bools = (topology.links == switch).any(axis=1)
    others = topology.links[touching].sum(axis=1) - switch
    angles = np.unique(np.arctan2(*(switches[others] - here).T[::-1]).round(6))
    straight = np.array([_DOWN, -_DOWN, 0.0, math.pi])
    free = abs(np.angle(np.exp(1j * (angles[None] - straight[:, None])))).min(axis=1).round(6)
    if free.max() > _CLEAR_ANGLE:
        return float(straight[free.argmax()])
    gaps = np.diff(np.append(angles, angles[0] + 2 * math.pi))
    widest = int(gaps.argmax())
    return float(angles[widest] + gaps[widest] / 2)
