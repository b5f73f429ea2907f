"""A plan without the links that its traffic can do without, or without one on the path of a pair of hosts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from testbed.base.errors import InputError, Problem, argument, did_you_mean
from testbed.base.model import Bools, LocalPlan, Routes, Topology, VlanPlan
from testbed.experiments.regulate.traffic import Traffic
from testbed.fabric.power import SPEEDS, Selection, select_ladder, select_links
from testbed.fabric.power.select import subfabric_without
from testbed.fabric.routing import ROUTINGS
from testbed.fabric.routing.paths import path
from testbed.fabric.topologies.faults import link_called
from testbed.fabric.transition import local_successor, successor, transition_deadlock
from testbed.fabric.vlans import ASSIGNMENTS
from testbed.planning import Plan
from testbed.planning.proof import digest_of, prove


@dataclass(frozen=True, slots=True, eq=False)
class LinkChoice:
    """Links that one kind of traffic can do without, and the plan of what stays on."""

    traffic: Traffic  # what the fabric has to carry
    selection: Selection  # physical links that are off
    plan: Plan  # of the same fabric, none of whose paths takes a link that is off, at the speeds selected; proved

    @property
    def off_links(self) -> tuple[int, ...]:
        """Physical links that are off."""
        return tuple(np.flatnonzero(self.selection.off).tolist())

    @property
    def slowed_links(self) -> tuple[int, ...]:
        """Physical links that stay on at less than their full speed."""
        return tuple(link for link, speed in enumerate(self.selection.speeds) if 0 < SPEEDS[speed] < 1)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the links that are off, such as `s1–s2`, or `s1–s2#1` of parallel ones."""
        return tuple(link_called(self.plan.wiring, link) for link in self.off_links)


def choose_links(
    plan: Plan,
    traffic: Traffic,
    *,
    slower: bool = False,
    keep: Bools | None = None,
    progress: Callable[[int, int], None] = lambda done, all_of_them: None,
) -> LinkChoice:
    """Select links by traffic and plan the fabric without them.

    With `slower` links stay on at a lower speed where that is enough; `keep` is that of with_routes(). `progress` is
    told the links decided on, and all.

    Raises:
        InputError: the plan's routing needs all links.
        VerificationError: the smaller plan breaks an invariant.
    """
    try:
        selection = select_links(
            plan.topology, routing_of(plan), traffic.matrix,
            bundles=plan.bundles, slower=slower, keep=keep, progress=progress,
        )  # fmt: skip
    except InputError as error:
        raise InputError([p.in_file(plan.scenario.source) for p in error.problems]) from error
    made = with_spared(with_routes(plan, selection.routes, keep=keep), selection.off)
    return LinkChoice(traffic, selection, at_speeds(made, selection.speeds))


def list_power_levels(plan: Plan, traffic: Traffic) -> list[LinkChoice]:
    """Plans with fewer and fewer links, from all on to the fewest; from each the lab can be moved to any other.

    With flow control, those are left out whose frames could close a cycle together with those of another one.

    Raises:
        InputError: no link can be spared, or a plan may deadlock.
        VerificationError: a smaller plan breaks an invariant.
    """
    source, topology = plan.scenario.source, plan.topology
    if not plan.deadlock_free:
        raise InputError.one(source, "its paths can deadlock, and links go off and on only between plans that cannot")
    try:
        keep = kept_links(plan)
        selections = select_ladder(topology, routing_of(plan), traffic.matrix, bundles=plan.bundles, keep=keep)
    except InputError as error:
        raise InputError([p.in_file(source) for p in error.problems]) from error
    found = [LinkChoice(traffic, selections[0], plan)]
    for selection in selections[1:]:
        made = with_routes(plan, selection.routes, *(rung.plan for rung in found), keep=keep)
        made = with_spared(made, selection.off)
        if plan.scenario.simulator.flow_control == "none" or not any(_cycles(rung.plan, made) for rung in found):
            found.append(LinkChoice(traffic, selection, made))
    if len(found) == 1:
        why = (
            "without any link some switches have no path to others"
            if len(selections) == 1
            else "frames on old and new paths together could deadlock under flow control"
        )
        raise InputError.one(source, f"no link can be spared: {why}; give it more, such as topology.parallel_links: 2")
    return found


def with_spared(plan: Plan, off: Bools) -> Plan:
    """The plan with the (physical L,) links `off` off, as far as they are in bundles some of whose links are on."""
    if plan.bundles is None:
        return plan
    first, sizes = plan.bundles.start[:-1], plan.bundles.sizes
    spared = off & np.repeat(~np.logical_and.reduceat(off, first), sizes)
    return replace(plan, powered_off=spared if spared.any() else None)


def _cycles(one: Plan, other: Plan) -> bool:
    """Whether frames on the paths of two plans could wait for each other for ever."""
    return bool(transition_deadlock(one.topology, (one.routes, one.vlans), (other.routes, other.vlans)))


def keep_full_speed(choice: LinkChoice, links: Sequence[int]) -> LinkChoice:
    """The choice with some links at their full speed."""
    if not links:
        return choice
    speeds = tuple("1G" if link in links else speed for link, speed in enumerate(choice.selection.speeds))
    return replace(choice, selection=replace(choice.selection, speeds=speeds), plan=at_speeds(choice.plan, speeds))


def at_speeds(plan: Plan, speeds: Sequence[str]) -> Plan:
    """The plan with links at other speeds: keys of SPEEDS; those that are off are off by the plan's paths."""
    shares = np.array([SPEEDS[speed] or 1.0 for speed in speeds], dtype=np.float64)
    return replace(plan, speeds=None if (shares == 1).all() else shares)


def plan_without(plan: Plan, off: Bools) -> Plan:
    """The plan of a fabric without some of its links (L,), whatever the traffic.

    Raises:
        InputError: that leaves switches without a path, or broadcasts or the routing need these links.
        VerificationError: the smaller plan breaks an invariant.
    """
    part, keep = subfabric_without(plan.topology, off), kept_links(plan)
    if part is None:
        names = ", ".join(link_called(plan.topology, link) for link in np.flatnonzero(off).tolist())
        raise InputError.one(plan.scenario.source, f"without {names} some switches have no path to others")
    if keep is not None and (off & keep).any():
        names = ", ".join(link_called(plan.topology, link) for link in np.flatnonzero(off & keep).tolist())
        sentence = f"{names} carries broadcasts, which no tag between switches keeps apart, so it cannot go off"
        raise InputError.one(plan.scenario.source, f"{sentence}; name another pair, or set assignment.kind=fixed")
    return with_routes(plan, part.to_whole(routing_of(plan)(part.topology)), keep=keep)


def kept_links(plan: Plan) -> Bools | None:
    """(L,) links that stay on in a lab that moves between plans; None where any may go off.

    Where VLANs mean something inside one switch only, those that carry broadcasts do: these have no tag between
    switches, so that no order of changes moves them to another tree without one that is lost or comes twice.
    """
    if not isinstance(plan.vlans, LocalPlan):
        return None
    none = np.zeros(plan.topology.link_count, dtype=bool)
    return none if plan.vlans.flood_links is None else plan.vlans.flood_links


def with_routes(plan: Plan, routes: Routes, *others: Plan, keep: Bools | None = None) -> Plan:
    """The plan of the same fabric on other paths; VLANs of the whole fabric get identifiers beside the old ones.

    Identifiers are also beside those of `others`, which may be installed before or afterwards. VLANs of one switch get
    such only with `keep`, the (L,) links that carry broadcasts before and afterwards; see kept_links().

    Raises:
        InputError: the assignment cannot carry these paths.
        VerificationError: it breaks an invariant.
    """
    scenario, topology = plan.scenario, plan.topology
    vlans = ASSIGNMENTS[scenario.assignment_kind].assign(topology, routes, scenario.assignment)
    if isinstance(vlans, VlanPlan) and isinstance(plan.vlans, VlanPlan):
        vlans = successor(plan.vlans, vlans, *(one.vlans for one in others if isinstance(one.vlans, VlanPlan)))
    if isinstance(vlans, LocalPlan) and isinstance(plan.vlans, LocalPlan) and keep is not None:
        vlans = replace(vlans, flood_links=plan.vlans.flood_links)
        beside = (one.vlans for one in others if isinstance(one.vlans, LocalPlan))
        vlans = local_successor(topology, plan.vlans, vlans, *beside)
    parts = (topology, routes, vlans) if plan.bundles is None else (topology, routes, vlans, plan.bundles)
    violations = prove(scenario, topology, routes, vlans, plan.bundles)
    made = replace(plan, routes=routes, vlans=vlans, violations=violations, digest=digest_of(*parts))
    made.require_proof()
    return made


def routing_of(plan: Plan) -> Callable[[Topology], Routes]:
    """How a plan's fabric is routed, with some of its links or with all."""
    scenario = plan.scenario
    return lambda topology: ROUTINGS[scenario.routing_kind].route(topology, scenario.routing)


def links_behind(plan: Plan, link: int) -> tuple[int, ...]:
    """The physical links of one of the plan's topology."""
    return (link,) if plan.bundles is None else tuple(one // 2 for one in plan.bundles.channels(2 * link))


@dataclass(frozen=True, slots=True)
class Detour:
    """A pair of hosts with two ways."""

    source: int  # host
    destination: int  # host
    link: int  # the first link of its path, which the second way does without
    plan: Plan  # of the second way


def find_detour(plan: Plan, pair: str | None) -> Detour:
    """A second way for a pair of hosts; without a name for the first host and the one half the fabric on.

    Raises:
        InputError: there are no such hosts, or no second way.
        VerificationError: the second plan breaks an invariant.
    """
    topology = plan.topology
    source, destination = _hosts(plan, pair)
    channels = path(topology, plan.routes, source, destination)
    if not channels:
        names = f"{topology.host_name(source)} and {topology.host_name(destination)}"
        raise InputError.one(argument("pair"), f"{names} hang on one switch, so there is no path to change")
    link = channels[0] // 2
    off = np.zeros(topology.link_count, dtype=bool)
    off[link] = True
    return Detour(source, destination, link, plan_without(plan, off))


def _hosts(plan: Plan, pair: str | None) -> tuple[int, int]:
    topology = plan.topology
    names = [topology.host_name(host) for host in range(topology.host_count)]
    if pair is None:
        return 0, topology.host_count // 2
    given = [name.strip() for name in pair.split(",")]
    if len(given) != 2 or given[0] == given[1]:
        raise InputError.one(argument("pair"), f'should be two hosts such as {names[0]},{names[-1]}, not "{pair}"')
    problems = [
        Problem(
            argument("pair"), f'there is no host "{name}", only {names[0]} to {names[-1]}.{did_you_mean(name, names)}'
        )
        for name in given
        if name not in names
    ]
    if problems:
        raise InputError(problems)
    return names.index(given[0]), names.index(given[1])
