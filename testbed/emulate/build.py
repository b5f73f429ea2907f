"""From a proved plan to a running lab."""

from __future__ import annotations

from contextlib import ExitStack

from testbed.emulate.client import LabClient, Progress, quiet
from testbed.emulate.launch import start_namespaces
from testbed.emulate.names import PLAN
from testbed.emulate.order import build_order
from testbed.plan import Plan
from testbed.plan.failures import prepare_controller
from testbed.plan.store import plan_to_json


def build_lab(plan: Plan, *, keep: bool = False, progress: Progress = quiet) -> LabClient:
    """Build the lab of a proved plan.

    Where the scenario leaves the dilation to the machine, `facts.dilation` is a guess.

    Args:
        plan: without verification's blessing nothing is started.
        keep: let the lab outlive this process.
        progress: called with the name of each step.

    Raises:
        VerificationError: the plan is not proved.
        CapabilityError: this machine cannot run a lab.
        LabError: building failed; nothing is left.
    """
    order = build_order(plan)
    prepare_controller(plan)
    namespaces = start_namespaces(keep=keep)
    with ExitStack() as undo:
        undo.callback(namespaces.end)
        lab = LabClient(namespaces)
        undo.callback(lab.close)
        if order.controller is not None:
            lab.write(PLAN, plan_to_json(plan))
        lab.build(order, progress)
        undo.pop_all()
    return lab
