"""Valiant-like routing: every frame goes by way of a switch that is drawn for its destination.

The way there is in layer 0 and the way on in layer 1, both by up*/down*. Neither layer has a cycle and no frame comes
back from layer 1, so the whole has none; and a switch knows the next hop by layer, in-port and destination.
"""

import random
from dataclasses import dataclass

from testbed.base.model import Routes, Topology
from testbed.fabric.routing import RoutingKind
from testbed.fabric.routing.channel_lookup import explicit_routes, host_switches
from testbed.fabric.routing.given_paths import paths_of
from testbed.fabric.routing.updown import UpDownOptions, route_updown


@dataclass(frozen=True, slots=True)
class ValiantOptions:
    seed: int = 1  # of the drawing


def route(topology: Topology, options: ValiantOptions) -> Routes:
    paths, ends = route_updown(topology, UpDownOptions()).paths, host_switches(topology).tolist()
    draw, layer = random.Random(options.seed), len(topology.channel_source)
    by = {goal: draw.choice(ends) for goal in ends}

    def way(source: int, goal: int) -> list[int]:
        there, on = (list(part(source, by[goal])), list(part(by[goal], goal)))
        while there and on and there[-1] == on[0] ^ 1:  # it would go back by the link it came by
            there, on = there[:-1], on[1:]
        return [*there, *(layer + hop for hop in on)]

    def part(source: int, goal: int) -> list[int]:
        pair = ends.index(source) * len(ends) + ends.index(goal)
        return paths.hop[paths.start[pair] : paths.start[pair + 1]].tolist()

    return explicit_routes(topology, paths_of(topology, way), None, layers=2)


ROUTINGS = {"by_way": RoutingKind(ValiantOptions, route, "by way of a drawn switch", True, "openflow")}
