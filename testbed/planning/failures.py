"""What the failures that a plan's loads ask for leave of its fabric."""

from __future__ import annotations

from typing import TYPE_CHECKING

from testbed.base.model import VlanPlan
from testbed.planning import Plan
from testbed.planning.failover.events import Change, changes_of
from testbed.scenario.workloads.spec import events_of

if TYPE_CHECKING:
    from testbed.planning.failover.failure_effects import Outlook
    from testbed.planning.failover.tables import Tables


def changes_of_load(plan: Plan, number: int) -> list[Change]:
    """The events of a load, by its number from 0, in the plan's numbers; a plan has none that are wrong."""
    return changes_of(plan.topology, events_of(plan.scenario.workloads[number].spec), "")[0]


def failures_of_load(plan: Plan, number: int) -> list[Change]:
    """Those of them by which something dies or comes back."""
    return [change for change in changes_of_load(plan, number) if change.fails]


def killed_switches(plan: Plan) -> list[int]:
    """Switches that some load kills."""
    loads = range(len(plan.scenario.workloads))
    return sorted({switch for load in loads for change in changes_of_load(plan, load) for switch in change.switches})


def first_tables(plan: Plan) -> Tables | None:
    """What the plan's segment manager has installed while nothing is dead; None where it has none."""
    if plan.scenario.lab.controller != "segment_manager" or not isinstance(plan.vlans, VlanPlan):
        return None
    # Most plans are there sooner without what the managers of failures need.
    from testbed.planning.failover.tables import whole_tables

    return whole_tables(plan.topology, plan.routes, plan.vlans, plan.scenario.routing_kind)


def prepare_controller(plan: Plan) -> None:
    """Have on disk what the plan's controller would else compile while the lab waits for it."""
    whole = first_tables(plan)
    if whole is not None:
        from testbed.planning.failover.tables import compile_ahead, routings

        ways = routings(plan.topology, plan.scenario.routing_kind, plan.scenario.routing)
        compile_ahead(plan.topology, whole, ways)


def links_pause(plan: Plan) -> bool:
    """Whether links have flow control, without which switches drop and nothing deadlocks."""
    return plan.scenario.simulator.flow_control != "none"


def shared_cycle_sentences(plan: Plan) -> list[str]:
    """Each cycle that tables in use together around an event could close, with the load and the event.

    Raises:
        InputError: no tables can be made for what is left.
    """
    return [
        f"load {number + 1}, {outlook.change.event}: {cycle.sentence}"
        for number, of in failure_outlooks(plan).items()
        for outlook in of
        for cycle in outlook.cycles
    ]


def failure_outlooks(plan: Plan) -> dict[int, list[Outlook]]:
    """Number of each load with failures → what every event leaves.

    Raises:
        InputError: no tables can be made for what is left.
    """
    found = {}
    for number in range(len(plan.scenario.workloads)):
        changes = failures_of_load(plan, number)
        if changes and isinstance(plan.vlans, VlanPlan):
            from testbed.planning.failover.failure_effects import outlooks

            routing = (plan.scenario.routing_kind, plan.scenario.routing)
            found[number] = outlooks(plan.topology, plan.routes, plan.vlans, routing, changes)
    return found
