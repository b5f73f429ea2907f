"""Switches of Open vSwitch without a controller carried over to another plan, where links are aggregated.

Controllers here speak OpenFlow 1.3, and groups that hash are of 1.5. So rules and groups are changed by `ovs-ofctl`, as
they were installed; each command takes effect in a switch as a whole.
"""

from __future__ import annotations

import json
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence

from testbed.base.errors import LabError
from testbed.base.messages import Disturbance, PlanMove, PlanStep
from testbed.base.model import Rule, Topology, VlanPlan
from testbed.engines.ovs.running_switches import RunningSwitches
from testbed.fabric.openflow.compile import groups_without
from testbed.fabric.openflow.rule_text import format_group, format_removal, format_rule
from testbed.fabric.transition import (
    Step,
    Transition,
    make_member_transition,
    make_transition,
    member_transition_problems,
    transition_deadlock,
    transition_problems,
)
from testbed.fabric.transition.steps import drain_seconds
from testbed.planning import Plan
from testbed.planning.store import plan_from_json

_INSTALLED = "installed"  # file with the plan that a change has brought, and links that are off since


def installed_plan(lab: RunningSwitches) -> tuple[Plan, list[int]]:
    """The plan that is in force in a lab without a controller, and the links that are off under it."""
    if not lab.count_files(_INSTALLED):
        return lab.plan(), []
    said = json.loads(lab.read(_INSTALLED))
    return plan_from_json(said["plan"]), said["off"]


def note_installed(lab: RunningSwitches, plan: str, off: Sequence[int]) -> None:
    """Store what a change has brought; see installed_plan()."""
    lab.write(_INSTALLED, json.dumps({"plan": plan, "off": list(off)}))


def move_lab(
    lab: RunningSwitches, plan: str, off: Sequence[int], limit: float, wake_up: float, pause: float
) -> PlanMove:
    """Carry a lab with aggregated links over to another plan; see Session.move_to.

    Raises:
        LabError: the change is refused, or a step failed and all were undone; nothing has changed then.
    """
    (old, were_off), new = installed_plan(lab), plan_from_json(plan)
    made = _exchange_plans(lab, (old, set(were_off)), (new, set(off)), limit, wake_up, pause)
    note_installed(lab, plan, off)
    return made


def _exchange_plans(
    lab: RunningSwitches, before: tuple[Plan, set[int]], after: tuple[Plan, set[int]],
    limit: float, wake_up: float, pause: float,
) -> PlanMove:  # fmt: skip
    (old, were_off), (new, _) = before, after
    if lab.facts.fast_path:
        raise LabError("the fast path sends frames by what rules were until then; build the lab with lab.fast_path=off")
    refuse_another(old, new)
    # Those that learn are VlanPlans too, and have no entries that could be exchanged.
    if type(old.vlans) is not VlanPlan or type(new.vlans) is not VlanPlan:
        raise LabError(
            "a change of plans without loss needs VLANs of the whole fabric with static entries (assignment fixed), "
            "where links are aggregated"
        )
    transition, cycles = way_to(before, after)
    steps = _Steps(lab, old, were_off, _bound_drain_time(lab, (old, new)), wake_up)
    until, done = time.monotonic() + limit, []
    for count, step in enumerate(transition.steps, 1):
        started = time.monotonic()
        try:
            if started > until:
                raise LabError(f"the change has not ended in {limit:g} s")
            steps.run_step(step)
        except LabError:
            for back in transition.undo(count):
                steps.run_step(back)
            raise
        done.append(PlanStep(step.action, step.sentence(old.wiring), round(time.monotonic() - started, 4)))
        time.sleep(pause)
    return PlanMove(tuple(done), cycles)


class _Steps:
    """Takes steps in a lab.

    Args:
        lab: whose switches are changed.
        plan: of its fabric.
        out: physical links that no hash chooses now.
        drain: s after which frames that were under way have arrived.
        wake_up: s from a link's being switched on until it carries frames.
    """

    def __init__(self, lab: RunningSwitches, plan: Plan, out: Collection[int], drain: float, wake_up: float) -> None:
        self._lab, self._plan, self._out = lab, plan, set(out)
        self._drain, self._wake_up = drain, wake_up

    def run_step(self, step: Step) -> None:
        """Take one, and return when it is in force."""
        if step.action in ("links on", "links off"):
            channels = tuple(2 * link + way for link in step.links for way in (0, 1))
            self._lab.disturb(Disturbance(up=step.action == "links on", channels=channels))
            if step.action == "links on":
                time.sleep(self._wake_up)
        elif step.action == "members in":
            self._out -= set(step.links)
            self._set_groups()
        elif step.action == "members out":
            self._out |= set(step.links)
            self._set_groups()
        elif step.action == "drain":
            time.sleep(self._drain)
        else:
            line = format_removal if step.action == "remove" else format_rule
            self._lab.change_switches(_by_name(self._plan.topology, step.rules, line), {})

    def _set_groups(self) -> None:
        bundles = self._plan.bundles
        assert bundles is not None
        found: dict[str, list[str]] = defaultdict(list)
        for group in groups_without(bundles, self._out):
            found[self._plan.topology.switch_name(group.switch)].append(f"modify {format_group(group)}")
        self._lab.change_switches({}, found)


def _by_name(topology: Topology, rules: Iterable[Rule], line: Callable[[Rule], str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = defaultdict(list)
    for rule in rules:
        found[topology.switch_name(rule.switch)].append(line(rule))
    return found


def refuse_another(old: Plan, new: Plan) -> None:
    """Refuse a plan of another fabric, or without a proof.

    Raises:
        LabError: with the reason.
    """
    if _describe_build(old) != _describe_build(new):
        raise LabError("this is a plan for another topology; switches, hosts and links must be the same")
    if not new.is_proved:
        raise LabError("this plan is not proved: " + "; ".join(violation.sentence for violation in new.violations[:3]))


def way_to(before: tuple[Plan, set[int]], after: tuple[Plan, set[int]]) -> tuple[Transition, tuple[str, ...]]:
    """The steps from a plan and the links that are off under it to others, all of them walked.

    Returns:
        The steps, and a sentence for each cycle in which frames of both plans could wait for each other.

    Raises:
        LabError: a step is not safe.
    """
    (old, were_off), (new, off) = before, after
    topology, bundles = old.topology, old.bundles
    assert isinstance(old.vlans, VlanPlan)
    assert isinstance(new.vlans, VlanPlan)
    on, gone = tuple(sorted(were_off - off)), tuple(sorted(off - were_off))
    if bundles is None:
        transition = make_transition(topology, old.vlans, new.vlans, on=on, off=gone)
        problems = transition_problems(topology, transition, old.routes, new.routes, were_off)
    else:
        transition = make_member_transition(topology, bundles, old.vlans, new.vlans, on=on, off=gone)
        problems = member_transition_problems(topology, bundles, transition, old.routes, new.routes, were_off)
    if problems:
        raise LabError(f"the way to this plan is not safe: {problems[0].sentence}")
    cycles = transition_deadlock(topology, (old.routes, old.vlans), (new.routes, new.vlans))
    return transition, tuple(violation.sentence for violation in cycles)


def _describe_build(plan: Plan) -> tuple[object, ...]:
    """What is built, as far as a change of plans leaves it."""
    sizes = None if plan.bundles is None else plan.bundles.sizes.tolist()
    return plan.topology.links.tolist(), plan.topology.host_count, sizes


def _bound_drain_time(lab: RunningSwitches, plans: Sequence[Plan]) -> float:
    """Laboratory s after which frames on the paths of plans have arrived, as links are now."""
    rate, dilation, states = lab.status().link_rate, lab.facts.dilation, lab.link_states().values()
    assert rate is not None
    slowest = min([rate, *(state.rate / dilation for state in states if state.rate is not None)])
    longer = max((state.delay for state in states), default=0.0) * dilation
    found = []
    for plan in plans:
        hops = plan.topology.switch_count
        queue = plan.scenario.links.queue_frames
        found.append(drain_seconds(plan.topology, plan.routes, slowest, queue) + hops * longer)
    return max(found)
