"""Valiant's routing: every frame goes by way of a switch that is drawn, so that no pattern is worse than another."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Literal

import numpy as np
from annotated_types import Ge, Le

from testbed.base.model import AllowedTurns, Routes, Topology
from testbed.fabric.routing.channel_lookup import explicit_routes, host_switches
from testbed.fabric.routing.given_paths import paths_of
from testbed.fabric.routing.next_hop_sets import mix
from testbed.fabric.routing.turns import all_turns, graph_of
from testbed.fabric.routing.updown import UpDownOptions, route_updown


@dataclass(frozen=True, slots=True)
class ValiantOptions:
    """Which switches are drawn."""

    seed: Annotated[int, Ge(0), Le(2**32 - 1)] = 1  # of the drawing
    # for what a switch is drawn. `destination`: all frames for it go by the same one, and a table of in-port, priority
    # and destination holds the paths. `pair`: each pair of switches for itself, as in the paper; only the model does it
    drawn_for: Literal["destination", "pair"] = "destination"


def route_valiant(topology: Topology, options: ValiantOptions) -> Routes:
    """Go by up*/down* in layer 0 to the drawn switch, and on from there in layer 1 (Valiant and Brebner 1981).

    Neither layer has a cycle, nothing comes back from layer 1, so no choice of switches can deadlock: the graph of all
    turns, which is proved, has the turns of both layers and all those from layer 0 to 1.
    """
    one = route_updown(topology, UpDownOptions())
    paths, allowed, ends = one.paths, one.allowed, host_switches(topology).tolist()
    assert paths is not None
    assert allowed is not None
    channels, count = len(topology.channel_source), len(ends)
    place = {switch: number for number, switch in enumerate(ends)}
    numbers = np.arange(count * count, dtype=np.uint64)
    key = numbers if options.drawn_for == "pair" else numbers % np.uint64(max(count, 1))
    by = (mix(np.full(len(key), options.seed, dtype=np.uint64), key) % np.uint64(max(count, 1))).astype(np.int64)

    def part(a: int, b: int) -> list[int]:
        return paths.hop[paths.start[a * count + b] : paths.start[a * count + b + 1]].tolist()  # type: ignore[no-any-return]

    def way(source: int, goal: int) -> list[int]:
        a, b = place[source], place[goal]
        middle = int(by[a * count + b])
        there, on = part(a, middle), part(middle, b)
        while there and on and there[-1] == on[0] ^ 1:  # it would go back by the link it came by
            there, on = there[:-1], on[1:]
        return [*there, *(channels + hop for hop in on)]

    made = explicit_routes(topology, paths_of(topology, way), None, layers=2)
    return replace(made, allowed=_both_layers(topology, allowed))


def _both_layers(topology: Topology, one: AllowedTurns) -> AllowedTurns:
    """The turns of up*/down* in each layer, and every turn from layer 0 to layer 1."""
    channels = len(topology.channel_source)
    before = np.repeat(np.arange(channels, dtype=np.int32), np.diff(one.start))
    first, second = all_turns(topology)
    return graph_of(
        2 * channels,
        np.concatenate([before, before + channels, first]).astype(np.int32),
        np.concatenate([one.following, one.following + channels, second + channels]).astype(np.int32),
        np.tile(one.entry, 2),
    )
