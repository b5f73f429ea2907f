"""Whether the shares of processors that a scenario gives its hosts leave enough for the switches."""

from __future__ import annotations

import os

from testbed.errors import CapabilityError
from testbed.plan import Plan
from testbed.scenario.spec import largest_dilation

# The rest is for the switches, which in a software lab cost as much as what sends through them.
_FOR_HOSTS = 0.5


def most_share(hosts: int) -> float:
    """Largest share of a host, in processors, that leaves the switches enough on this machine."""
    return _FOR_HOSTS * _processors() / hosts


def least_dilation(plan: Plan) -> float:
    """Smallest dilation that may be chosen for a scenario; above 1 where hosts' shares follow from it."""
    if plan.scenario.lab.cpu_share != "auto":
        return 1.0
    return max(1.0, 1 / most_share(plan.topology.host_count))


def require_shares(plan: Plan) -> None:
    """Refuse shares that all hosts together could not get without starving the switches.

    Raises:
        CapabilityError: with what would be possible on this machine.
    """
    lab, hosts = plan.scenario.lab, plan.topology.host_count
    most = most_share(max(hosts, 1))
    if lab.dilation == "auto" and lab.cpu_share == "auto":
        share = 1 / largest_dilation(plan.scenario.links, lab)
        remedy = f"lab.dilation can be no more than {1 / share:.4g} here; use fewer hosts"
    else:
        wanted = lab.processors_a_host
        if wanted is None:
            return
        share = wanted
        remedy = f"use lab.dilation {1 / most:.4g} or more" if lab.cpu_share == "auto" else f"use {most:.4g} or less"
    if share <= most:
        return
    raise CapabilityError(
        f"{plan.scenario.source}: lab.cpu_share: {hosts} hosts with {share:.4g} of a processor each would take "
        f"{hosts * share:.4g} of this machine's {_processors()}, and half of them must be left for the switches; "
        f"{remedy}"
    )


def _processors() -> int:
    return len(os.sched_getaffinity(0))
