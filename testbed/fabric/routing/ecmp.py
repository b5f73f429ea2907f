"""Equal-cost multipath: every next hop on a shortest path, one of them by a hash of the flow (RFC 2992)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated

from annotated_types import Ge, Le

from testbed.base.model import Routes, Topology
from testbed.fabric.routing.channel_lookup import explicit_routes
from testbed.fabric.routing.next_hop_sets import hash_flows, hashed_paths, shortest_next_hops


@dataclass(frozen=True, slots=True)
class EcmpOptions:
    """What the hash depends on beside the addresses of a flow and the switch."""

    seed: Annotated[int, Ge(0), Le(2**32 - 1)] = 1  # of the hash
    source_port: Annotated[int, Ge(0), Le(65535)] = 49152  # of the flows, which RoCEv2 varies to get other paths


def route_ecmp(topology: Topology, options: EcmpOptions) -> Routes:
    """Take all shortest next hops as choices, and as the path of each pair of switches what the hash picks.

    What is proved, and the load that analyse expects, is of all choices; what is simulated is the drawn path.
    """
    hops = shortest_next_hops(topology)
    paths = hashed_paths(topology, hops, hash_flows(topology, options.seed, options.source_port))
    alone = int((hops.table >= 0).sum()) == int(
        (hops.start[1:] - hops.start[:-1] == 1)[hops.table[hops.table >= 0]].sum()
    )
    notes = ("no switch has two next hops for a destination here, so this is one path a pair",) if alone else ()
    return replace(explicit_routes(topology, paths, None, notes=notes), choices=hops)
