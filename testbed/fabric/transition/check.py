"""Proof that no state between two plans loses a pair, floods a loop or uses a link that is off.

A frame's way depends on the PVID it got when it entered and on rules that do not change while it travels (of VLANs of
one switch it does not: see local_transition.py): so it is enough to walk every pair twice, in its old VLAN and in its
new one, on the rules that are there while both may be used. That covers every order in which PVIDs change, and every
subset of hosts that has moved, as long as no VLAN that frames are in changes its rules: see vlan_identifiers.py.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection

import numpy as np

from testbed.base.model import Bundles, Ints, LocalPlan, Routes, Rule, Topology, Violation, VlanPlan
from testbed.fabric.openflow.compile import compile_groups, compile_rules
from testbed.fabric.openflow.oracle import Oracle
from testbed.fabric.routing.paths import path
from testbed.fabric.transition.local_transition import local_transition_problems
from testbed.fabric.transition.steps import TRANSITION, Transition, place
from testbed.fabric.transition.vlan_identifiers import identifier_problems
from testbed.fabric.verify.deadlock import DEADLOCK, find_deadlock
from testbed.fabric.verify.delivery import check_tree_delivery

_MAX_SHOWN = 5


def transition_problems(
    topology: Topology,
    transition: Transition,
    old: Routes,
    new: Routes,
    down: Collection[int] = (),
    bundles: Bundles | None = None,
) -> list[Violation]:
    """Walk every state of a transition. Links `down` are off when it begins; those of `bundles` are one link each."""
    if isinstance(transition.old, LocalPlan) or isinstance(transition.new, LocalPlan):
        return identifier_problems(topology, transition) + local_transition_problems(topology, transition, down)
    found = identifier_problems(topology, transition, bundles)
    rules = {place(rule): rule for rule in compile_rules(topology, transition.old, bundles)}
    off = set(down)
    phase = [(old, transition.old)]
    for number, step in enumerate(transition.steps, 1):
        where = f"step {number}, {step.action}"
        step.carried_out(rules, off)
        if step.action == "move":
            phase = [(old, transition.old), (new, transition.new)]
        elif step.action == "drain":
            phase = [(new, transition.new)]
        for routes, vlans in phase:
            found += _walk(topology, [*rules.values()], routes, vlans, off, where, bundles)
    return found


def _walk(
    topology: Topology,
    rules: list[Rule],
    routes: Routes,
    vlans: VlanPlan,
    off: Collection[int],
    where: str,
    bundles: Bundles | None,
) -> list[Violation]:
    """Every pair and every broadcast with the PVIDs of one plan, on the rules of a state."""
    pvid_rules = {place(rule): rule for rule in compile_rules(topology, vlans, bundles) if _tags(rule)}
    now = [pvid_rules.get(place(rule), rule) for rule in rules]
    oracle = Oracle(topology, now, bundles, compile_groups(bundles))
    found = []
    everyone = set(range(topology.host_count))
    for source in everyone:
        for destination in everyone - {source}:
            way = oracle.unicast(source, destination)
            wanted = path(topology, routes, source, destination)
            pair = f"{topology.host_name(source)}→{topology.host_name(destination)}"
            if way.received != {destination: 1} or way.channels != wanted:
                found.append(_violation(f"{where}: a frame {pair} does not take its path", pair))
            else:
                found += _on_dead_links(topology, way.channels, off, f"{where}: a frame {pair}", pair)
        flood = oracle.broadcast(source)
        name = topology.host_name(source)
        if flood.endless or flood.received != dict.fromkeys(everyone - {source}, 1):
            found.append(_violation(f"{where}: a broadcast of {name} does not reach every other host once", name))
        else:
            found += _on_dead_links(topology, flood.channels, off, f"{where}: a broadcast of {name}", name)
    return found[:_MAX_SHOWN]


def _on_dead_links(
    topology: Topology, channels: tuple[int, ...], off: Collection[int], what: str, witness: str
) -> list[Violation]:
    used = [channel for channel in channels if channel // 2 in off]
    if not used:
        return []
    return [_violation(f"{what} takes {topology.channel_name(used[0])}, which is off", witness)]


def transition_deadlock(
    topology: Topology, old: tuple[Routes, VlanPlan | LocalPlan], new: tuple[Routes, VlanPlan | LocalPlan]
) -> list[Violation]:
    """A cycle of channels that frames on old and on new paths could close together, or nothing.

    With link-level flow control such a cycle can deadlock while both kinds of frames are under way (section 4.4 of
    the paper, which is why it measured without). It is no fault of either plan.
    """
    taken = [_dependencies(topology, *one) for one in (old, new)]
    both = np.unique(np.concatenate(taken), axis=0)
    return [
        Violation(DEADLOCK, f"frames on old and new paths together: {violation.sentence}", violation.witness)
        for violation in find_deadlock(topology, both)
    ]


def _dependencies(topology: Topology, routes: Routes, vlans: VlanPlan | LocalPlan) -> Ints:
    """(D, 2) channels that some path takes one after the other."""
    if isinstance(vlans, VlanPlan):
        return check_tree_delivery(topology, routes, vlans)[1]
    hosts = range(topology.host_count)
    ways = (path(topology, routes, a, b) for a in hosts for b in hosts if a != b)
    pairs = sorted({pair for way in ways for pair in itertools.pairwise(way)})
    return np.array(pairs, dtype=np.int32).reshape(-1, 2)


def _violation(sentence: str, witness: str) -> Violation:
    return Violation(TRANSITION, sentence, (witness,))


def _tags(rule: Rule) -> bool:
    return any(action == "push_vlan" for action, _ in rule.actions)
