"""The way from the speeds of one plan's links to those of another (Koibuchi et al. 2011, section 3.6, 3).

A link that changes its speed is gone for seconds. So paths go round it first, and come back when it is up again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from testbed.base.errors import InputError
from testbed.base.model import Bools, Floats, Ints, Routes
from testbed.dataplane.predict.wire_overhead import transport
from testbed.experiments.regulate.choose_links import kept_links, routing_of, with_routes
from testbed.fabric.power import SPEEDS, PowerModel
from testbed.fabric.power.select import subfabric_without
from testbed.fabric.routing.paths import traffic_load
from testbed.planning import Plan

_NAMES = {share: name for name, share in SPEEDS.items()}
# What the datagrams that watch a change may take of the slowest link.
_WATCHED_SHARE = 0.2


@dataclass(frozen=True, slots=True, eq=False)
class RateChange:
    """Links whose speed changes at once."""

    plan: Plan  # none of its paths takes these links
    speeds: dict[int, float]  # share of the full rate afterwards, by the link's number
    before: dict[int, float]  # likewise before

    @property
    def links(self) -> tuple[int, ...]:
        """Numbers of the links."""
        return tuple(self.speeds)

    def seconds(self, model: PowerModel) -> float:
        """Seconds for which switches of a model have no use of these links (Table 6)."""
        return max(model.speed_change[_NAMES[self.before[link]], _NAMES[to]] for link, to in self.speeds.items())


def speeds_of(plan: Plan) -> Floats:
    """(L,) share of its rate at which each link of a plan runs."""
    return np.ones(plan.wiring.link_count) if plan.speeds is None else plan.speeds


def list_rate_changes(now: Plan, goal: Plan, whole: Plan) -> tuple[list[RateChange], Plan]:
    """The steps from a plan that is installed to one whose links have other speeds.

    As many links change at once as the fabric can do without together.

    The lab goes back to `whole`, with all links on, in the end.

    Returns:
        the steps, and the goal, with identifiers of VLANs beside those of the last step's plan.

    Raises:
        InputError: nothing goes round one of the links (see list_unavoidable()).
        VerificationError: a plan on the way breaks an invariant.
    """
    speeds, wanted = speeds_of(now).copy(), speeds_of(goal)
    left = np.flatnonzero(speeds != wanted).tolist()
    found: list[RateChange] = []
    installed = now
    while left:
        off: Bools = np.zeros(now.topology.link_count, dtype=bool)
        routes = None
        for link in left:
            off[link] = True
            round_it = _routes_round(whole, off)
            if round_it is None:
                off[link] = False
            else:
                routes = round_it
        if routes is None:
            raise InputError.one(now.scenario.source, f"no paths go round {now.topology.channel_name(2 * left[0])}")
        plan = replace(with_routes(installed, routes, whole, keep=kept_links(whole)), speeds=speeds.copy())
        links = np.flatnonzero(off).tolist()
        found.append(RateChange(plan, {k: float(wanted[k]) for k in links}, {k: float(speeds[k]) for k in links}))
        speeds[links] = wanted[links]
        left = [link for link in left if not off[link]]
        installed = plan
    if not found or goal is whole:
        return found, goal
    return found, replace(with_routes(installed, goal.routes, whole, keep=kept_links(whole)), speeds=goal.speeds)


def list_unavoidable(plan: Plan, links: Sequence[int]) -> list[int]:
    """Those of some links that no paths of the plan's routing go round, so that their speed cannot be changed."""
    every = np.arange(plan.topology.link_count)
    return [link for link in links if _routes_round(plan, every == link) is None]


def _routes_round(plan: Plan, off: Bools) -> Routes | None:
    part, keep = subfabric_without(plan.topology, off), kept_links(plan)
    if part is None or (keep is not None and (off & keep).any()):
        return None
    try:
        return part.to_whole(routing_of(plan)(part.topology))
    except InputError:
        return None


def watching_rate(plans: Sequence[Plan], pairs: Sequence[tuple[int, int]], size: int, most: float) -> float:
    """Datagrams a real-world second that each of some pairs can send without filling the slowest link of a plan.

    `size`: bytes in a datagram; `most`: datagrams a real-world second, wherever links are quick enough.
    """
    wire = transport("udp", size)
    ends: Ints = np.array(pairs, dtype=np.int32)
    found = most
    for plan in plans:
        traffic = np.zeros((plan.topology.host_count, plan.topology.host_count))
        np.add.at(traffic, (ends[:, 0], ends[:, 1]), 1.0)
        bits = 8 * size * wire.cost(tagged=plan.vlans.tagged_trunks) * traffic_load(plan.topology, plan.routes, traffic)
        # A hash may send all that a bundle carries by one of its links.
        speeds = speeds_of(plan) if plan.bundles is None else np.ones(plan.topology.link_count)
        rates = plan.scenario.links.rate * np.repeat(speeds, 2)
        used = bits > 0
        if used.any():
            found = min(found, _WATCHED_SHARE * float((rates[used] / bits[used]).min()))
    return found
