"""The steps from one plan to the next (Koibuchi et al. 2011, section 3.6).

The paths change host by host, by the PVID of its port, while the VLANs of both plans are installed: no frame meets a
switch that does not know its VLAN. Where both plans have VLANs, the new ones get identifiers that do not clash.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from testbed.base.errors import InputError
from testbed.base.ethernet import MAX_WIRE_FRAME
from testbed.base.model import Bools, Bundles, Floats, LocalPlan, Routes, Rule, Topology, VlanPlan
from testbed.fabric.openflow.compile import compile_rules
from testbed.fabric.routing.paths import all_paths, hop_counts
from testbed.fabric.vlans.fixed import LAST_VLAN_ID

TRANSITION = "transition"
Action = Literal["links on", "members in", "add", "move", "drain", "remove", "members out", "links off"]


@dataclass(frozen=True, slots=True)
class Step:
    """One step; its rules may go to the switches in any order, and the next step waits for all of them."""

    # `links on` and `links off` change links; `add` and `remove` rules that no frame meets then; `move` changes PVIDs,
    # each of which moves the paths of one host, or with VLANs of one switch those through one port; `drain` waits for
    # the frames under way; `members in` and `members out` let the hash of a bundle choose links, or choose them no more
    action: Action
    rules: tuple[Rule, ...] = ()  # what is added, removed, or takes the place of the rule with the same match
    links: tuple[int, ...] = ()  # what is switched on or off, in or out; physical links where links are aggregated
    replaced: tuple[Rule, ...] = ()  # of `move`, the rules whose places are taken

    def carried_out(self, rules: dict[tuple[object, ...], Rule], off: set[int]) -> None:
        """Change the rules, each at its place(), and the set of links that are off, as the step does."""
        if self.action == "links on":
            off -= set(self.links)
        elif self.action == "links off":
            off |= set(self.links)
        elif self.action == "remove":
            for rule in self.rules:
                rules.pop(place(rule), None)
        else:
            rules |= {place(rule): rule for rule in self.rules}

    def sentence(self, topology: Topology) -> str:
        """What happens, in words; `topology` is the wiring where links are aggregated."""
        names = ", ".join(topology.channel_name(2 * link).replace("→", "–") for link in self.links)
        switches = len({rule.switch for rule in self.rules})
        rules = f"{len(self.rules)} rules on {switches} switches"
        hosts = set(zip(topology.host_switch.tolist(), topology.host_port.tolist(), strict=True))
        of_hosts = all((rule.switch, dict(rule.match)["in_port"]) in hosts for rule in self.rules if self.replaced)
        return {
            "links on": f"switch on {names} and wait until they are up",
            "members in": f"spread frames over {names} again",
            "add": f"add {rules}; no frame meets them yet",
            "move": f"change the PVID of {len(self.rules)} {'host ports' if of_hosts else 'ports'}",
            "drain": "wait until the frames on the old paths have arrived",
            "remove": f"remove {rules}; no frame meets them any more",
            "members out": f"spread frames over the other links beside {names}",
            "links off": f"switch off {names}; no path takes them any more",
        }[self.action]


@dataclass(frozen=True, slots=True, eq=False)
class Transition:
    """From one plan of a fabric to another."""

    old: VlanPlan | LocalPlan  # VLANs before
    new: VlanPlan | LocalPlan  # VLANs afterwards, with identifiers of their own where they differ
    steps: tuple[Step, ...]  # in order

    def undo(self, count: int) -> tuple[Step, ...]:
        """What undoes the first `count` steps, so that nothing is left half applied."""
        undone: list[Step] = []
        for step in reversed(self.steps[:count]):
            if step.action == "drain":
                continue
            undone.append(Step(_OPPOSITE[step.action], step.replaced or step.rules, step.links, step.rules))
            if step.action == "move":
                undone.append(Step("drain"))
        return tuple(undone)


_OPPOSITE: dict[Action, Action] = {
    "links on": "links off",
    "links off": "links on",
    "members in": "members out",
    "members out": "members in",
    "add": "remove",
    "remove": "add",
    "move": "move",
}


def make_transition(
    topology: Topology,
    old: VlanPlan,
    new: VlanPlan,
    *,
    bundles: Bundles | None = None,
    on: tuple[int, ...] = (),
    off: tuple[int, ...] = (),
) -> Transition:
    """Work out the steps from `old` to `new` (see successor()), links `on` first and `off` last.

    On to off (section 3.6, 1): paths that avoid the link, then the link. Off to on (2): the link, then paths.
    A change of speed (3) is the one after the other.
    """
    before, after = set(compile_rules(topology, old, bundles)), set(compile_rules(topology, new, bundles))
    added, removed = after - before, before - after
    place_of = {place(rule): rule for rule in removed}
    # A rule with the match of an old one takes its place; between VLANs of one plan's making these are PVIDs.
    moves = [(rule, place_of[place(rule)]) for rule in sort_rules(added) if place(rule) in place_of]
    now, then = tuple(rule for rule, _ in moves), tuple(rule for _, rule in moves)
    steps = [
        Step("links on", links=on),
        Step("add", sort_rules(added.difference(now))),
        Step("move", now, replaced=then),
        Step("drain"),
        Step("remove", sort_rules(removed.difference(then))),
        Step("links off", links=off),
    ]
    return Transition(old, new, tuple(step for step in steps if step.rules or step.links or _drains(step, moves)))


def _drains(step: Step, moves: Collection[object]) -> bool:
    return step.action == "drain" and bool(moves)


def place(rule: Rule) -> tuple[object, ...]:
    """What makes two rules the same place in the tables of a switch."""
    return (rule.switch, rule.table, rule.priority, rule.match)


def sort_rules(rules: Iterable[Rule]) -> tuple[Rule, ...]:
    """Rules by switch, table and priority."""
    return tuple(sorted(rules, key=lambda rule: (rule.switch, rule.table, -rule.priority, str(rule.match))))


def successor(old: VlanPlan, new: VlanPlan, *others: VlanPlan) -> VlanPlan:
    """The new VLANs with identifiers that do not clash with the old ones.

    A VLAN with the links and hosts of an old one is that VLAN, and keeps its identifier: its frames take the same
    ways before and after. All others get the lowest identifiers free, from the lowest old one on; those of `others`,
    which may be installed before or afterwards, are not free either.

    Raises:
        InputError: old and new together need more identifiers than 802.1Q has.
    """
    known = {_key(old, vlan): int(old.vlan_ids[vlan]) for vlan in range(old.vlan_count)}
    first = int(min(old.vlan_ids.min(), new.vlan_ids.min()))
    taken = set(old.vlan_ids.tolist()).union(*(one.vlan_ids.tolist() for one in others))
    free = (number for number in range(first, LAST_VLAN_ID + 1) if number not in taken)
    ids = []
    for vlan in range(new.vlan_count):
        identifier = known.pop(_key(new, vlan), None)
        if identifier is None:
            identifier = next(free, None)
        if identifier is None:
            raise InputError.one(
                "assignment.first_vlan",
                f"old and new paths together need more VLANs than there are from {first} to {LAST_VLAN_ID}; "
                "start lower",
            )
        ids.append(identifier)
    return replace(new, vlan_ids=np.array(ids, dtype=np.int32))


def same_vlan(old: VlanPlan, number: int, new: VlanPlan, vlan: int) -> bool:
    """Whether VLAN `number` of one plan has the links and hosts of VLAN `vlan` of another, as in successor()."""
    return _key(old, number) == _key(new, vlan)


def _key(plan: VlanPlan, vlan: int) -> tuple[bytes, bytes]:
    members: Bools = plan.untagged_hosts[vlan]
    return plan.tagged_links[vlan].tobytes(), np.broadcast_to(members, plan.pvid.shape).tobytes()


_MARGIN = 1.1


def drain_seconds(
    topology: Topology, routes: Routes, rate: float, queue_frames: int, speeds: Floats | None = None
) -> float:
    """Seconds after which every frame that was on its way has arrived, if every queue was full.

    `rate`: bit/s of a link, hosts' links being no slower; `speeds`: (L,) share of it at which each link runs.
    """
    a_queue = _MARGIN * (queue_frames + 1) * MAX_WIRE_FRAME * 8 / rate
    if speeds is None:
        return a_queue * (int(hop_counts(topology, routes).max(initial=0)) + 1)
    paths = all_paths(topology, routes)
    slowness = np.concatenate([[0.0], np.cumsum(1 / speeds[paths.hop % len(topology.channel_source) // 2])])
    return a_queue * (float((slowness[paths.start[1:]] - slowness[paths.start[:-1]]).max(initial=0.0)) + 1)
