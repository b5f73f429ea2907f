"""Which links traffic can do without: the static selection of Koibuchi et al. 2011, section 5.4.2.

Step 1 puts the traffic on the paths of the whole fabric and notes the maximum channel load. Step 2 takes links out as
long as no channel carries more than that. The paper leaves the order open; here the link with the least traffic is
tried next, counted anew after each one taken out; the lowest number wins a tie.

Of aggregated links a member is a link of its own: each is taken to carry its share of the bundle's traffic, and while
one is left the paths stay as they are. Parallel links that are not aggregated are channels like any other.

A link that is off keeps its ports: what is left is routed as a fabric of its own, and its routes are carried back to
the numbers of the whole.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from testbed.base.errors import InputError
from testbed.base.model import AllowedTurns, Bools, Bundles, Floats, Ints, Longs, Paths, Routes, Topology
from testbed.fabric.power.models import SPEEDS
from testbed.fabric.routing.paths import traffic_load
from testbed.fabric.topologies.build_topology import find_disconnected_pair
from testbed.fabric.topologies.faults import find_surviving_part, link_called

_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True, eq=False)
class Selection:
    """What stays on, and how fast.

    P physical links, which are the L links of the topology where none are aggregated.
    """

    off: Bools  # (P,) True for links that are taken out; of a bundle the last members
    speeds: tuple[str, ...]  # of each physical link: a key of SPEEDS, `off` where it is taken out
    routes: Routes  # paths of what is left, in channels of the whole fabric
    # (C,) traffic of each channel with all links on, in the unit of the traffic matrix; of a bundle that of the average
    # member
    before: Floats
    after: Floats  # (C,) likewise without those taken out

    @property
    def bound(self) -> float:
        """Maximum channel load with all links on, which no channel exceeds afterwards."""
        return float(self.before.max(initial=0.0))


@dataclass(frozen=True, slots=True, eq=False)
class _SelectionState:
    """A fabric some of whose links are out: (L,) physical links of each that are on, paths, (C,) traffic on them."""

    on: Longs
    routes: Routes
    load: Floats

    @property
    def member_traffic(self) -> Floats:
        """(C,) traffic of the average member of each channel."""
        share: Floats = self.load / np.maximum(np.repeat(self.on, 2), 1)
        return share


def select_links(
    topology: Topology,
    route: Callable[[Topology], Routes],
    traffic: Floats,
    *,
    bundles: Bundles | None = None,
    slower: bool = False,
    keep: Bools | None = None,
    progress: Callable[[int, int], None] = lambda done, all_of_them: None,
) -> Selection:
    """Take out the links that the traffic can do without.

    Args:
        topology: the whole fabric; links that are aggregated are one link.
        route: routes a fabric some of whose links may be missing; raises InputError where it cannot.
        traffic: (H, H) bytes, or any other measure, from each host to each.
        bundles: the physical links behind those of the topology.
        slower: let links stay on at the lowest speed at which they are used no more than the busiest was.
        keep: (L,) True for links that stay on whatever they carry.
        progress: called with the physical links decided on, and all of them.

    Raises:
        InputError: the routing needs all links.
    """
    size = np.ones(topology.link_count, dtype=np.int64) if bundles is None else bundles.sizes
    state = _state(topology, size, route(topology), traffic)
    before = state.member_traffic
    state, _ = _take_out(topology, route, traffic, state, float(before.max(initial=0.0)), keep, progress)
    return _selection(size, state, before, slower=slower)


def select_ladder(
    topology: Topology,
    route: Callable[[Topology], Routes],
    traffic: Floats,
    *,
    bundles: Bundles | None = None,
    keep: Bools | None = None,
) -> list[Selection]:
    """Selections that are nested: all links on, then those that the traffic can do without, and so on to the fewest.

    Each lets the busiest channel carry twice as much as the one before; those that take out no more are left out.
    Arguments and errors are those of select_links().
    """
    size = np.ones(topology.link_count, dtype=np.int64) if bundles is None else bundles.sizes
    state = _state(topology, size, route(topology), traffic)
    before, found, wider = state.member_traffic, [_selection(size, state, state.member_traffic)], True
    bound = float(before.max(initial=0.0))
    while wider:
        fewer, wider = _take_out(topology, route, traffic, state, bound, keep)
        if fewer is not state:
            found.append(_selection(size, fewer, before))
        state, bound = fewer, 2 * bound
    return found


def _state(topology: Topology, on: Longs, routes: Routes, traffic: Floats) -> _SelectionState:
    return _SelectionState(on, routes, traffic_load(topology, routes, traffic))


def _take_out(
    topology: Topology,
    route: Callable[[Topology], Routes],
    traffic: Floats,
    state: _SelectionState,
    bound: float,
    keep: Bools | None,
    progress: Callable[[int, int], None] = lambda done, all_of_them: None,
) -> tuple[_SelectionState, bool]:
    """Take links out as long as no channel carries more than `bound`; tells also whether more would go beyond it.

    Raises:
        InputError: the routing needs all links.
    """
    start, bound = state, bound * (1 + _ROUNDING)
    undecided = start.on > 0 if keep is None else (start.on > 0) & ~keep
    tried = int(undecided.sum())
    refusals: list[InputError] = []
    wider = False
    while undecided.any():
        decided = (start.on - state.on).sum() + state.on[~undecided].sum()
        progress(int(decided), int(start.on.sum()))
        of_link = np.where(undecided, state.member_traffic.reshape(-1, 2).sum(axis=1), np.inf)
        link = int(of_link.argmin())
        found = None
        try:
            found = _remove_link(topology, route, traffic, state, link)
        except InputError as error:
            refusals.append(error)
        if found is not None and found.member_traffic.max(initial=0.0) <= bound:
            state = found
            undecided[link] = state.on[link] > 0
        else:
            # A link that is needed once stays on: so there are no more routings than links.
            undecided[link] = False
            wider = wider or found is not None
    if refusals and len(refusals) == tried and state is start:
        raise refusals[0]
    return state, wider


def _selection(size: Longs, state: _SelectionState, before: Floats, *, slower: bool = False) -> Selection:
    place = np.concatenate([np.arange(members) for members in size.tolist()]) if len(size) else size
    off = place >= np.repeat(state.on, size)
    bound = float(before.max(initial=0.0)) * (1 + _ROUNDING)
    speeds = _speeds(np.repeat(state.member_traffic.reshape(-1, 2).max(axis=1, initial=0.0), size), off, bound, slower)
    return Selection(off, speeds, state.routes, before, state.member_traffic)


def _remove_link(
    topology: Topology, route: Callable[[Topology], Routes], traffic: Floats, state: _SelectionState, link: int
) -> _SelectionState | None:
    """The state with one physical link less; None where that divides the fabric."""
    fewer = state.on.copy()
    fewer[link] -= 1
    if fewer[link]:
        return _SelectionState(fewer, state.routes, state.load)
    part = subfabric_without(topology, fewer == 0)
    if part is None:
        return None
    return _state(topology, fewer, part.to_whole(route(part.topology)), traffic)


def _speeds(busiest: Floats, off: Bools, bound: float, slower: bool) -> tuple[str, ...]:
    """The lowest speed of each link at which neither direction, `busiest`, carries more than `bound` at full speed."""
    rising = sorted((share, name) for name, share in SPEEDS.items() if share) if slower else [(1.0, "1G")]
    return tuple(
        "off" if gone else next(name for share, name in rising if load <= bound * share or share == 1)
        for load, gone in zip(busiest.tolist(), off.tolist(), strict=True)
    )


@dataclass(frozen=True, slots=True, eq=False)
class Subfabric:
    """A fabric without some of its links."""

    topology: Topology  # with links, ports and planes numbered anew
    channel: Ints  # (C of the part,) channel of the whole that each channel of the part is
    channels: int  # C of the whole

    def to_whole(self, routes: Routes) -> Routes:
        """Routes of the part, in channels of the whole."""
        tree = np.where(routes.tree_channel < 0, -1, self.channel[routes.tree_channel]).astype(np.int32)
        return replace(
            routes,
            tree_channel=tree if routes.tree_channel.size else routes.tree_channel,
            paths=self._paths(routes.paths),
            backup=self._paths(routes.backup),
            allowed=self._turns(routes.allowed, routes.layers),
        )

    def _paths(self, paths: Paths | None) -> Paths | None:
        return None if paths is None else Paths(paths.start, self._hops(paths.hop))

    def _hops(self, hop: Ints) -> Ints:
        layer, channel = np.divmod(hop, max(len(self.channel), 1))
        hops: Ints = (layer * self.channels + self.channel[channel]).astype(np.int32)
        return hops

    def _turns(self, allowed: AllowedTurns | None, layers: int) -> AllowedTurns | None:
        if allowed is None:
            return None
        place = self._hops(np.arange(layers * len(self.channel), dtype=np.int32))
        degree = np.zeros(layers * self.channels, dtype=np.int64)
        degree[place] = np.diff(allowed.start)
        entry = np.zeros(layers * self.channels, dtype=bool)
        entry[place] = allowed.entry
        # Channels keep their order, so the rows stand as they stood.
        return AllowedTurns(np.concatenate([[0], np.cumsum(degree)]), self._hops(allowed.following), entry)


def subfabric_without(topology: Topology, off: Bools) -> Subfabric | None:
    """The fabric without the links `off` (L,); None where that leaves switches apart."""
    if find_disconnected_pair(topology.switch_count, topology.links[~off]) is not None:
        return None
    links = np.flatnonzero(~off)
    channel = np.stack([2 * links, 2 * links + 1], axis=1).reshape(-1).astype(np.int32)
    every = np.ones(topology.switch_count, dtype=bool)
    words = [f"link {link_called(topology, link)}" for link in np.flatnonzero(off).tolist()]
    return Subfabric(find_surviving_part(topology, every, ~off, words), channel, len(topology.channel_source))
