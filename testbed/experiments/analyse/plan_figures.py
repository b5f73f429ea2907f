"""All figures of one plan that need no traffic to be sent."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from testbed.base.errors import InputError, Problem, argument
from testbed.base.model import LocalPlan, Routes, Topology
from testbed.experiments.analyse.capacity import Fit, fit_of, needs_of
from testbed.experiments.analyse.channel_load import ALL_TO_ALL, ChannelLoad, Hops, hops_of, load_of, pattern_problem
from testbed.fabric.openflow.compile import count_rules
from testbed.fabric.routing.paths import hop_counts, key_switches
from testbed.fabric.routing.relation import Conflict, Relation, relations
from testbed.fabric.routing.turns import prohibited_turns
from testbed.fabric.traffic import is_pattern, no_pattern
from testbed.fabric.verify.flooding import multiplication
from testbed.fabric.verify.limits import SWITCH_MODELS
from testbed.fabric.vlans.vlan_lower_bound import Bounds, fewest_fixed, fewest_renamed
from testbed.planning import Plan
from testbed.planning.summary import shown_multiplication, shown_violations

# Relations are tried on all hops at once: a 32×32 torus has 17 million, which takes a second; 64×64 has 537 million.
MAX_HOPS = 20_000_000
MAX_NEXT_HOPS = 100_000_000


@dataclass(frozen=True, slots=True, eq=False)
class Analysis:
    """Figures of one plan."""

    plan: Plan  # what they are of
    hops: Hops  # lengths of paths
    loads: tuple[ChannelLoad, ...]  # channel load of each pattern
    bisection: int | None  # links between two halves of a grid; None where that is not known
    # turns that no path may take in any layer, of how many; None for a routing without such a rule
    prohibited_turns: tuple[int, int] | None
    vlans: int  # VLANs on the switch that has most: local ones where the assignment is by the port of arrival
    vlans_total: int  # VLANs of the fabric; the local ones of all switches together
    # copies of one flooded frame that a switch takes in if switches flood to all members of a local VLAN, mean and
    # most; infinite where copies circulate. None where VLANs are not local.
    multiplication: tuple[float, float] | None
    # how few VLANs any fixed assignment of these paths needs, or why none carries them
    fewest_fixed: Bounds | Conflict | None
    # how few local VLANs a switch needs by forwarding entries alone, or why none carries the paths; None where it was
    # not tried, as the fabric is too large, or the routes have layers
    fewest_renamed: Bounds | Conflict | None
    # the first conflict of each routing relation that does not hold; None where none was tried
    relations: dict[Relation, Conflict | None] | None
    mac_entries: int  # static entries, maximum per switch
    rules: int  # OpenFlow rules of the fabric
    fits: tuple[Fit, ...]  # each switch model; empty where no table of VLANs carries the plan


def check_patterns(patterns: Sequence[str]) -> list[Problem]:
    """Every name that is not a pattern."""
    return [Problem(argument("pattern"), no_pattern(name)) for name in dict.fromkeys(patterns) if not is_pattern(name)]


def analyse(plan: Plan, patterns: Sequence[str] = (ALL_TO_ALL,)) -> Analysis:
    """Count the figures of a plan.

    Random patterns are drawn by the scenario's lab.seed.

    Raises:
        InputError: patterns that do not exist, or not for this number of hosts, each with the scenario's file.
    """
    topology, routes, seed = plan.topology, plan.routes, plan.scenario.lab.seed
    known = [name for name in dict.fromkeys(patterns) if is_pattern(name)]
    found = (pattern_problem(topology, name, seed) for name in known)
    problems = [*check_patterns(patterns), *(problem for problem in found if problem is not None)]
    if problems:
        raise InputError([p.in_file(plan.scenario.source) for p in problems])
    hops = hops_of(topology, routes)
    members = None if plan.bundles is None else np.repeat(plan.bundles.sizes, 2)
    links = plan.scenario.links
    small = _small(topology, routes)
    layered = routes.layers > 1
    local = isinstance(plan.vlans, LocalPlan)
    needs = needs_of(topology, plan.vlans)
    return Analysis(
        plan=plan,
        hops=hops,
        loads=tuple(
            load_of(topology, routes, name, seed, members, host_link=links.edge_rate / links.rate, expected=True)
            for name in known
        ),
        bisection=bisection_links(plan.wiring),
        prohibited_turns=None if routes.allowed is None else prohibited_turns(topology, routes.allowed),
        vlans=int(needs.vlans.max(initial=0)),
        vlans_total=needs.total_vlans,
        multiplication=multiplication(topology, plan.vlans) if isinstance(plan.vlans, LocalPlan) else None,
        fewest_fixed=fewest_fixed(topology, routes) if not layered and (small or not local) else None,
        fewest_renamed=fewest_renamed(topology, routes) if not layered and small else None,
        relations=relations(topology, routes) if small else None,
        mac_entries=int(needs.entries.max(initial=0)),
        rules=count_rules(topology, plan.vlans, plan.bundles),
        fits=() if _beyond_vlans(plan) else tuple(fit_of(needs, model) for model in SWITCH_MODELS.values()),
    )


def _small(topology: Topology, routes: Routes) -> bool:
    """Whether the hops of all paths, and a table of next hops by port of arrival, fit into memory with ease."""
    sources, ends = (len(switches) for switches in key_switches(routes))
    rows = routes.layers * len(topology.channel_source) + sources
    return rows * ends <= MAX_NEXT_HOPS and int(np.maximum(hop_counts(topology, routes), 0).sum()) <= MAX_HOPS


def _beyond_vlans(plan: Plan) -> bool:
    return isinstance(plan.vlans, LocalPlan) and plan.vlans.kind in ("openflow", "model")


def as_object(analysis: Analysis) -> dict[str, object]:
    """Return the object that `testbed analyse --format json` prints for a scenario.

    Distributions are lists of [value, how often].
    """
    plan, hops = analysis.plan, analysis.hops
    turns = analysis.prohibited_turns
    return {
        "scenario": plan.scenario.name,
        "topology": plan.scenario.topology_kind,
        "routing": plan.scenario.routing_kind,
        "assignment": plan.scenario.assignment_kind,
        "switches": plan.topology.switch_count,
        "switch_links": plan.wiring.link_count,
        "hosts": plan.topology.host_count,
        "bisection_links": analysis.bisection,
        "mean_hops": hops.mean,
        "max_hops": hops.longest,
        "mean_shortest_hops": hops.mean_shortest,
        "diameter": hops.diameter,
        "host_pairs": hops.pairs,
        "longer_pairs": hops.longer_pairs,
        "mean_switches_on_path": hops.mean_switches,
        "max_switches_on_path": hops.max_switches,
        "hop_distribution": [[value, count] for value, count in enumerate(hops.distribution)],
        "patterns": {
            load.pattern: {
                "max_channel_load": load.max,
                "mean_channel_load": load.mean,
                "unused_channels": load.idle_channels,
                "saturation": load.saturation,
                "channel_load_distribution": _distribution(load),
            }
            for load in analysis.loads
        },
        "turns": None if turns is None else {"prohibited": turns[0], "total": turns[1]},
        "layers": plan.routes.layers,
        "relations": None
        if analysis.relations is None
        else {name: _conflict(plan, found) for name, found in analysis.relations.items()},
        "vlans": analysis.vlans,
        "vlans_total": analysis.vlans_total,
        "multiplication": shown_multiplication(analysis.multiplication),
        "fewest_vlans_fixed": _bounds(plan, analysis.fewest_fixed),
        "fewest_vlans_renamed": _bounds(plan, analysis.fewest_renamed),
        "max_mac_entries": analysis.mac_entries,
        "rules": analysis.rules,
        "switch_models": {
            fit.model: {
                "fits": not fit.short_of,
                "short_of": list(fit.short_of),
                "hosts_estimated": fit.hosts_estimated,
                "hosts_counted": fit.hosts_counted,
            }
            for fit in analysis.fits
        },
        "deadlock_free": plan.deadlock_free,
        "proved": plan.is_proved,
        "violations": shown_violations(plan),
        "notes": list(plan.routes.notes),
        "digest": plan.digest,
    }


def _distribution(load: ChannelLoad) -> list[list[float]]:
    flows = np.round(load.flows, 6) if load.expected else load.flows.astype(np.int64)
    values, counts = np.unique(flows, return_counts=True)
    return [[value, int(count)] for value, count in zip(values.tolist(), counts, strict=True)]


def _conflict(plan: Plan, found: Conflict | None) -> dict[str, object]:
    return {"holds": found is None, "conflict": None if found is None else found.sentence(plan.topology)}


def _bounds(plan: Plan, found: Bounds | Conflict | None) -> dict[str, object] | None:
    if isinstance(found, Bounds):
        return {"lower": found.lower, "upper": found.upper, "exact": found.exact, "conflict": None}
    if found is None:
        return None
    return {"lower": None, "upper": None, "exact": False, "conflict": found.sentence(plan.topology)}


def bisection_links(topology: Topology) -> int | None:
    """Fewest links whose cut leaves two halves of the switches, one more in one half where their number is odd.

    Exact for a mesh of any sizes and for a torus without dimensions of size 2, whose rings are no rings (Aroca and
    Fernández Anta 2014, *Bisection (Band)Width of Product Networks*, section 4: the sum over the dimensions, largest
    first, up to the first of even size, of the product of all smaller ones; twice that for rings). None for any other
    fabric, where it is a hard problem, and for one with faults.
    """
    sizes = sorted((size for size in topology.sizes if size > 1), reverse=True)
    rings = topology.kind in ("torus", "ring") and any(size > 2 for size in sizes)
    if not topology.sizes or topology.faults or (rings and 2 in sizes):
        return None
    links = 0
    for place, size in enumerate(sizes):
        links += math.prod(sizes[place + 1 :])
        if size % 2 == 0:
            break
    return links * (2 if rings else 1) * topology.parallel_links
