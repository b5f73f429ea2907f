"""Which links traffic can do without: the static selection of Koibuchi et al. 2011, section 5.4.2.

Step 1 puts the traffic on the paths of the whole fabric and notes the fullest channel. Step 2 takes links out as long
as no channel carries more than that one did. The paper leaves the order open; here the link with the least traffic
is tried next, counted anew after each one taken out; the lowest number wins a tie.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from testbed.errors import InputError
from testbed.model import Bools, Floats, Routes, Topology
from testbed.power.models import SPEEDS
from testbed.power.part import part_of
from testbed.routing.paths import traffic_load

_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True, eq=False)
class Selection:
    """What stays on, and how fast.

    Attributes:
        off: (L,) True for links that are taken out.
        speeds: of each link: a key of SPEEDS, `off` where it is taken out.
        routes: paths of what is left, in channels of the whole fabric.
        before: (C,) traffic of each channel with all links on, in the unit of the traffic matrix.
        after: (C,) likewise without those taken out.
    """

    off: Bools
    speeds: tuple[str, ...]
    routes: Routes
    before: Floats
    after: Floats

    @property
    def bound(self) -> float:
        """Traffic of the fullest channel with all links on, which none exceeds afterwards."""
        return float(self.before.max(initial=0.0))


def select_links(
    topology: Topology,
    route: Callable[[Topology], Routes],
    traffic: Floats,
    *,
    slower: bool = False,
    progress: Callable[[int, int], None] = lambda done, all_of_them: None,
) -> Selection:
    """Take out the links that the traffic can do without.

    Args:
        topology: the whole fabric.
        route: routes a fabric some of whose links may be missing; raises InputError where it cannot.
        traffic: (H, H) bytes, or any other measure, from each host to each.
        slower: let links stay on at the lowest speed at which they are no fuller than the fullest was.
        progress: called with the links decided on, and all links.

    Raises:
        InputError: the routing needs all links.
    """
    routes = route(topology)
    before = traffic_load(topology, routes, traffic)
    bound = float(before.max(initial=0.0)) * (1 + _ROUNDING)
    off, undecided = np.zeros(topology.link_count, dtype=bool), np.ones(topology.link_count, dtype=bool)
    load = before
    refusals: list[InputError] = []
    for decided in range(topology.link_count):
        progress(decided, topology.link_count)
        of_link = np.where(undecided, load.reshape(-1, 2).sum(axis=1), np.inf)
        link = int(of_link.argmin())
        # A link that is needed once stays on: so there are no more routings than links.
        undecided[link] = False
        try:
            found = _without(topology, route, traffic, off, link, bound)
        except InputError as error:
            refusals.append(error)
            continue
        if found is not None:
            off[link] = True
            routes, load = found
    if refusals and len(refusals) == topology.link_count:
        raise refusals[0]
    return Selection(off, _speeds(load, off, bound, slower), routes, before, load)


def _without(
    topology: Topology, route: Callable[[Topology], Routes], traffic: Floats, off: Bools, link: int, bound: float
) -> tuple[Routes, Floats] | None:
    """Paths and channel traffic without one more link; None where that divides the fabric or fills a channel."""
    fewer = off.copy()
    fewer[link] = True
    part = part_of(topology, fewer)
    if part is None:
        return None
    routes = part.carry_back(route(part.topology))
    load = traffic_load(topology, routes, traffic)
    return (routes, load) if load.max(initial=0.0) <= bound else None


def _speeds(load: Floats, off: Bools, bound: float, slower: bool) -> tuple[str, ...]:
    """The lowest speed of each link at which neither direction is fuller than `bound` at full speed."""
    fullest = load.reshape(-1, 2).max(axis=1, initial=0.0)
    rising = sorted((share, name) for name, share in SPEEDS.items() if share) if slower else [(1.0, "1G")]
    return tuple(
        "off" if gone else next(name for share, name in rising if most <= bound * share or share == 1)
        for most, gone in zip(fullest.tolist(), off.tolist(), strict=True)
    )
