"""LASH, layered shortest paths (Skeie, Lysne, Theiss 2002)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from annotated_types import Ge, Le

from testbed.model import Routes, Topology
from testbed.routing.layers import MOST_LAYERS, check_need, minimal_paths, routes_in_layers, turns_on


@dataclass(frozen=True, slots=True)
class LashOptions:
    """How many layers there may be, and which minimal paths are put into them.

    Attributes:
        layers: the most that may be used, each an 802.1Q priority; no more are taken than needed.
        paths: `balanced`: those of SSSP routing. `low_port`: the lowest port at every switch; loads are higher, and of
            parallel links only the first is used, but grids then need far fewer layers.
    """

    layers: Annotated[int, Ge(1), Le(MOST_LAYERS)] = MOST_LAYERS
    paths: Literal["balanced", "low_port"] = "balanced"


def route_lash(topology: Topology, options: LashOptions) -> Routes:
    """Minimal paths, each put whole into the first layer in which it closes no cycle.

    Ordered pairs of switches are taken by source, then destination. LASH leaves the choice among minimal paths open;
    here they are one tree a destination, so the next hop depends on destination and layer alone. What LASH may do at
    the end, moving paths until the layers are equally full, is left out.

    Raises:
        InputError: more layers are needed than may be used.
    """
    from testbed.kernels import layers

    balanced = options.paths == "balanced"
    paths = minimal_paths(topology, balanced=balanced)
    offset, turns, before, after = turns_on(topology, paths)
    layer = layers.first_fit(offset, turns, len(topology.channel_source), before, after)
    needed = int(layer.max(initial=0)) + 1
    check_need("lash", needed, options.layers, "paths: low_port may need fewer" if balanced else "")
    note = f"minimal paths without a cycle took {needed} of {options.layers} layers"
    return routes_in_layers(topology, paths, layer, needed, (note,))
