"""The steps from one plan to the next (Koibuchi et al. 2011, section 3.6).

The paths change host by host, by the PVID of its port, while the VLANs of both plans are installed: no frame meets a
switch that does not know its VLAN.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Literal

from testbed.model import Rule, Topology, VlanPlan
from testbed.pipeline.compile import compile_rules

Action = Literal["links on", "add", "move", "drain", "remove", "links off"]


@dataclass(frozen=True, slots=True)
class Step:
    """One step; its rules may go to the switches in any order, and the next step waits for all of them.

    Attributes:
        action: `links on` and `links off` change links; `add` and `remove` rules that no frame meets then; `move`
            changes PVIDs, each of which moves the paths of one host; `drain` waits for the frames under way.
        rules: what is added, removed, or takes the place of the rule with the same match.
        links: what is switched on or off.
        replaced: of `move`, the rules whose places are taken.
    """

    action: Action
    rules: tuple[Rule, ...] = ()
    links: tuple[int, ...] = ()
    replaced: tuple[Rule, ...] = ()

    def sentence(self, topology: Topology) -> str:
        """What happens, in words."""
        names = ", ".join(topology.channel_name(2 * link).replace("→", "–") for link in self.links)
        switches = len({rule.switch for rule in self.rules})
        rules = f"{len(self.rules)} rules on {switches} switches"
        return {
            "links on": f"switch on {names} and wait until they are up",
            "add": f"add {rules}; no frame meets them yet",
            "move": f"change the PVID of {len(self.rules)} host ports",
            "drain": "wait until the frames on the old paths have arrived",
            "remove": f"remove {rules}; no frame meets them any more",
            "links off": f"switch off {names}; no path takes them any more",
        }[self.action]


@dataclass(frozen=True, slots=True, eq=False)
class Transition:
    """From one plan of a fabric to another.

    Attributes:
        old: VLANs before.
        new: VLANs afterwards, with identifiers of their own where they differ.
        steps: in order.
    """

    old: VlanPlan
    new: VlanPlan
    steps: tuple[Step, ...]

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
    "add": "remove",
    "remove": "add",
    "move": "move",
}


def make_transition(
    topology: Topology, old: VlanPlan, new: VlanPlan, *, on: tuple[int, ...] = (), off: tuple[int, ...] = ()
) -> Transition:
    """Work out the steps from `old` to `new` (see successor()), links `on` first and `off` last.

    On to off (section 3.6, 1): paths that avoid the link, then the link. Off to on (2): the link, then paths.
    A change of speed (3) is the one after the other.
    """
    before, after = set(compile_rules(topology, old)), set(compile_rules(topology, new))
    added, removed = after - before, before - after
    place_of = {place(rule): rule for rule in removed}
    # A rule with the match of an old one takes its place; between VLANs of one plan's making these are PVIDs.
    moves = [(rule, place_of[place(rule)]) for rule in _ordered(added) if place(rule) in place_of]
    now, then = tuple(rule for rule, _ in moves), tuple(rule for _, rule in moves)
    steps = [
        Step("links on", links=on),
        Step("add", _ordered(added.difference(now))),
        Step("move", now, replaced=then),
        Step("drain"),
        Step("remove", _ordered(removed.difference(then))),
        Step("links off", links=off),
    ]
    return Transition(old, new, tuple(step for step in steps if step.rules or step.links or _drains(step, moves)))


def _drains(step: Step, moves: Collection[object]) -> bool:
    return step.action == "drain" and bool(moves)


def place(rule: Rule) -> tuple[object, ...]:
    """What makes two rules the same place in the tables of a switch."""
    return (rule.switch, rule.table, rule.priority, rule.match)


def _ordered(rules: Iterable[Rule]) -> tuple[Rule, ...]:
    return tuple(sorted(rules, key=lambda rule: (rule.switch, rule.table, -rule.priority, str(rule.match))))
