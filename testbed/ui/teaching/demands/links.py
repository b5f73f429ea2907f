"""Lists of links in answers.yaml: which a spanning tree blocks, which close a cycle, which can be spared."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from testbed.base.errors import InputError, Problem, did_you_mean
from testbed.base.model import Bools, Topology
from testbed.experiments.regulate.choose_links import choose_links, routing_of
from testbed.experiments.regulate.traffic import of_pattern
from testbed.fabric.power import POWER_MODELS, fabric_watts
from testbed.fabric.power.select import subfabric_without
from testbed.fabric.routing.paths import hops, mean_switches_on_path, traffic_load
from testbed.fabric.routing.stp import StpOptions, route_stp, spanning_tree
from testbed.fabric.topologies.build_topology import components
from testbed.scenario.parameter_models import format_value
from testbed.ui.teaching.student_folder import Work


def read_names(work: Work, key: str) -> list[str]:
    """An answer that is a list of names.

    Raises:
        InputError: it is none.
    """
    given = work.answer(key)
    if not isinstance(given, Sequence) or isinstance(given, str) or not all(isinstance(one, str) for one in given):
        raise InputError.one(key, f"should be a list such as [s1-s2, s2-s3], not {format_value(given)}", "answers.yaml")
    return [str(one) for one in given]


def _name(topology: Topology, link: int) -> str:
    return topology.channel_name(2 * link).replace("→", "-")


def links_named(topology: Topology, names: Sequence[str], key: str) -> list[int]:
    """Links by their names, `s1-s2` or `s2-s1`, with `#1` for the second of parallel ones.

    Raises:
        InputError: each that there is not, or that is listed twice.
    """
    known = {
        topology.channel_name(channel).replace("→", "-"): channel // 2 for channel in range(2 * topology.link_count)
    }
    found, problems = [], []
    for name in names:
        link = known.get(name.replace("–", "-").replace("→", "-"))
        if link is None:
            problems.append(Problem(key, f'there is no link "{name}".{_meant(name, known)}', "answers.yaml"))
        elif link in found:
            problems.append(Problem(key, f"{name} is listed twice", "answers.yaml"))
        else:
            found.append(link)
    if problems:
        raise InputError(problems)
    return found


def _meant(name: str, known: Collection[str]) -> str:
    """What may have been meant: of a switch that there is, the links that it has."""
    first = name.replace("–", "-").replace("→", "-").partition("-")[0]
    mine = [link for link in known if link.startswith(f"{first}-")]
    return f" {first} has {', '.join(mine)}" if mine else did_you_mean(name, known)


@dataclass(frozen=True, slots=True)
class Blocked:
    """The links that spanning tree takes out of use, the bridge of the lowest number being the root."""

    key: str
    wiring: str


def judge_blocked(work: Work, demand: Blocked) -> str | None:
    """Compare, and say what is wrong with what would be left."""
    topology = work.wiring(demand.wiring)
    given = set(links_named(topology, read_names(work, demand.key), demand.key))
    tree = spanning_tree(topology, 0)
    right = set(range(topology.link_count)) - {int(channel) // 2 for channel in tree if channel >= 0}
    if given == right:
        return None
    left = [link for link in range(topology.link_count) if link not in given]
    parts = components(topology.switch_count, topology.links[left])[0]
    if len(set(parts.tolist())) > 1:
        cut = topology.switch_name(int(np.flatnonzero(parts != parts[0])[0]))
        return f"{demand.key}: without these links {cut} is cut off from s1; spanning tree cuts nobody off"
    if len(left) > topology.switch_count - 1:
        count = len(left) - topology.switch_count + 1
        return f"{demand.key}: {count} more must be blocked; the links that are left still close a loop"
    wrong = min(given - right)
    a, b = topology.links[wrong].tolist()
    return (
        f"{demand.key}: the links that are left are a tree, but not the one the protocol takes. "
        f"{_name(topology, wrong)} is not blocked: {topology.switch_name(b if int(tree[b]) // 2 == wrong else a)} "
        "reaches the root by it in the fewest hops, and of several such neighbours the one of the lowest number wins"
    )


@dataclass(frozen=True, slots=True)
class BestRoot:
    """A root for which paths on the spanning tree are shortest on average."""

    key: str
    wiring: str


def judge_best_root(work: Work, demand: BestRoot) -> str | None:
    """Compare its mean with the least of all."""
    topology = work.wiring(demand.wiring)
    names = [topology.switch_name(switch) for switch in range(topology.switch_count)]
    given = str(work.answer(demand.key))
    if given not in names:
        raise InputError.one(demand.key, f'there is no switch "{given}".{did_you_mean(given, names)}', "answers.yaml")
    means = {name: mean_switches_on_path(topology, route_stp(topology, StpOptions(root=name))) for name in names}
    if means[given] <= min(means.values()) + 1e-9:
        return None
    return (
        f"{demand.key}: with {given} as root a path has {means[given]:.3f} switches on average; another root gives "
        f"{min(means.values()):.3f}"
    )


@dataclass(frozen=True, slots=True)
class Cycle:
    """Channels of a scenario of the student's, each of which waits for the next, and the last for the first."""

    key: str
    file: str


def judge_cycle(work: Work, demand: Cycle) -> str | None:
    """See that some path takes each two in a row."""
    plan = work.plan(demand.file)
    topology = plan.topology
    given = [name.replace("-", "→").replace("–", "→") for name in read_names(work, demand.key)]
    known = [topology.channel_name(channel) for channel in range(2 * topology.link_count)]
    for name in given:
        if name not in known:
            near = did_you_mean(name, known)
            raise InputError.one(demand.key, f'there is no channel "{name}" here.{near}', "answers.yaml")
    if len(given) < 2 or len(set(given)) < len(given):
        return f"{demand.key}: a cycle is two channels or more, each once; the last waits for the first"
    taken = set()
    hosts = range(topology.host_count)
    for source in hosts:
        for end in hosts:
            way = hops(topology, plan.routes, source, end) if source != end else ()
            taken |= set(pairwise(way))
    channels = len(topology.channel_source)
    turns = {(known[a % channels], known[b % channels]) for a, b in taken}
    for one, other in zip(given, [*given[1:], given[0]], strict=True):
        if (one, other) not in turns:
            meets = one.split("→")[1].split("#")[0] == other.split("→")[0]
            why = "no path takes one after the other" if meets else f"{other} does not begin where {one} ends"
            return f"{demand.key}: {one} does not wait for {other}: {why}"
    return None


@dataclass(frozen=True, slots=True)
class Spared:
    """Links to switch off, such that nothing is busier than it was and nearly as much is saved as can be."""

    key: str
    file: str  # a scenario that the exercise gives
    pattern: str
    model: str  # of switch; key of POWER_MODELS
    share: float = 0.9  # of what the tool's own selection saves


def judge_spared(work: Work, demand: Spared) -> str | None:
    """Route what is left, and compare loads and watts."""
    plan = work.given_plan(demand.file)
    topology = plan.topology
    off = np.zeros(topology.link_count, dtype=bool)
    off[links_named(topology, read_names(work, demand.key), demand.key)] = True
    traffic = of_pattern(demand.pattern, topology, plan.scenario.lab.seed)
    before = float(traffic_load(topology, plan.routes, traffic.matrix).max())
    bare = _neighbours_without_link(topology, off)
    try:
        part = subfabric_without(topology, off)
        routes = None if part is None else part.to_whole(routing_of(plan)(part.topology))
    except InputError as error:
        routing = plan.scenario.routing_kind
        if bare:
            return f"{demand.key}: no link is left between {bare}; {routing}, the routing here, needs one"
        return f"{demand.key}: what is left cannot be routed by {routing}: {error.problems[0].sentence}"
    if routes is None:
        return f"{demand.key}: what is left is not connected; traffic or not, every host must be reached"
    load = traffic_load(topology, routes, traffic.matrix)
    if load.max() > before * (1 + 1e-9):
        name = topology.channel_name(int(np.argmax(load)))
        return (
            f"{demand.key}: {name} then carries {load.max():g} flows, and with all links on none carried more than "
            f"{before:g}"
        )
    best = choose_links(plan, traffic).selection.off
    saved, most = (_compute_saving(topology, one, demand.model) for one in (off, best))
    if saved < demand.share * most:
        return (
            f"{demand.key}: saves {saved:.1f} W of {most:.1f} W that can be; more links carry nothing that others "
            "could not"
        )
    return None


def _neighbours_without_link(topology: Topology, off: Bools) -> str:
    """The first two neighbours whose links are all off, `s1 and s2`; empty where there are none."""
    left = {tuple(sorted(pair)) for pair in topology.links[~off].tolist()}
    for a, b in topology.links[off].tolist():
        if tuple(sorted((a, b))) not in left:
            return f"{topology.switch_name(a)} and {topology.switch_name(b)}"
    return ""


def _compute_saving(topology: Topology, off: Bools, model: str) -> float:
    on = ["1G"] * topology.link_count
    then = ["off" if gone else "1G" for gone in off.tolist()]
    watts = [fabric_watts(topology, POWER_MODELS[model], speeds).sum() for speeds in (on, then)]
    return float(watts[0] - watts[1])
