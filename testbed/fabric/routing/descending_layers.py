"""Descending layers routing (Koibuchi et al. 2003, section 3)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
from annotated_types import Ge, Le

from testbed.base.model import AllowedTurns, Bools, Ints, Routes, Topology
from testbed.fabric.routing.channel_lookup import explicit_routes, switch_named
from testbed.fabric.routing.layers import MAX_LAYERS
from testbed.fabric.routing.lturn import left_first_turns
from testbed.fabric.routing.selection import SelectionOptions, select_paths
from testbed.fabric.routing.turns import all_turns, graph_of
from testbed.fabric.routing.updown import upward_channels

Variant = Literal["ud", "ud_du", "ud_below_du", "lturn"]


@dataclass(frozen=True, slots=True)
class DlOptions(SelectionOptions):
    """What a path may do without changing its layer, and how many layers there are."""

    # `ud`, the paper's (UD)*: no turn from down to up in any layer. `ud_du`, (UD-DU)*: none from down to up in layers
    # 0, 2, …, none from up to down in layers 1, 3, …. `ud_below_du`, UD-(DU)*: none from down to up in layer 0, none
    # from up to down in those above. `lturn`, (L-turn)*: in all layers the turns of the routing `lturn`, a
    # reconstruction.
    variant: Variant = "ud"
    # number of layers, each an 802.1Q priority; the paper's figures are those of 3
    layers: Annotated[int, Ge(1), Le(MAX_LAYERS)] = 2
    root: str | None = None  # of up and down, a switch such as s5; without one the first


def route_dl(topology: Topology, options: DlOptions) -> Routes:
    """Shortest paths that descend one layer at every turn their layer forbids, and only there.

    Every virtual channel may begin a path. That gives exactly the candidates of the paper's Steps 1–3: a path that is
    legal from a start layer is legal from any higher one, because of two walks along the same channels the one that
    starts higher never comes below the other. So none is shorter than the shortest from the highest layer, and once a
    start layer has no path of that length no lower one has.

    Raises:
        InputError: the root is not a switch of the fabric, or the options of the selection do not fit each other.
    """
    turns = descending_turns(topology, options.variant, options.layers, switch_named(topology, options.root, "root"))
    return explicit_routes(topology, select_paths(topology, turns, options), turns, options.layers)


def descending_turns(topology: Topology, variant: Variant, layers: int, root: int = 0) -> AllowedTurns:
    """Graph of the virtual channels that may follow each other.

    It has no cycle: there is none within a layer, and no way up from one layer to the next.
    """
    before, after = all_turns(topology)
    channels = len(topology.channel_source)
    earlier, later = [], []
    for layer, forbidden in enumerate(_find_forbidden_turns(topology, variant, layers, root, before, after)):
        here, below = layer * channels, (layer - 1) * channels
        earlier.append(here + before[~forbidden])
        later.append(here + after[~forbidden])
        if layer > 0:
            earlier.append(here + before[forbidden])
            later.append(below + after[forbidden])
    entry = np.ones(layers * channels, dtype=bool)
    return graph_of(layers * channels, np.concatenate(earlier), np.concatenate(later), entry)


def _find_forbidden_turns(
    topology: Topology, variant: Variant, layers: int, root: int, before: Ints, after: Ints
) -> list[Bools]:  # fmt: skip
    """(A,) True for the turns that each layer forbids, layer 0 first."""
    if variant == "lturn":
        return [~left_first_turns(topology, root)] * layers
    up = upward_channels(topology, root)
    down_up: Bools = ~up[before] & up[after]
    up_down: Bools = up[before] & ~up[after]
    forbids_up_down = {"ud": (), "ud_du": range(1, layers, 2), "ud_below_du": range(1, layers)}[variant]
    return [up_down if layer in forbids_up_down else down_up for layer in range(layers)]
