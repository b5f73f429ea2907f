"""What a controller does not do, and why."""

from __future__ import annotations

from testbed.base.model import LearningPlan
from testbed.planning import Plan


class RefusedError(Exception):
    """What was asked for is not done, and nothing has changed; the text says why."""


def refuse_plan(plan: Plan, *, learning: bool = False) -> None:
    """Let only plans pass whose rules a controller can install and recognise.

    Args:
        plan: what it would keep.
        learning: for the controller whose switches learn, else for one that gives them every entry.

    Raises:
        RefusedError: links are aggregated, which takes groups of a later OpenFlow; or it is the other kind of plan.
    """
    learns = isinstance(plan.vlans, LearningPlan)
    if learns and not learning:
        raise RefusedError(
            "in this plan switches learn addresses, which changes their rules; use the controller learning, or "
            "assignment.registration: static"
        )
    if learning and not learns:
        raise RefusedError(
            "in this plan switches do not learn; use the controller switch_tagged, or assignment.registration: learning"
        )
    if plan.bundles is not None:
        raise RefusedError(
            "this plan aggregates links, and hashing groups need OpenFlow 1.5; use links.aggregate: false, or "
            "`testbed up`, which installs them by itself"
        )


def same_fabric(one: Plan, other: Plan) -> bool:
    """Whether two plans are of the same switches, hosts, links and ports."""
    a, b = one.topology, other.topology
    return (
        a.switch_count == b.switch_count
        and all(
            (x.shape == y.shape) and bool((x == y).all())
            for x, y in ((a.links, b.links), (a.out_port, b.out_port), (a.host_switch, b.host_switch),
                         (a.host_port, b.host_port))
        )
    )  # fmt: skip
