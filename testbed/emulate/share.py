"""Whether the shares of processors that a scenario gives its hosts leave enough for the switches."""

from __future__ import annotations

import os

from testbed.errors import CapabilityError
from testbed.plan import Plan

# The rest is for the switches, which in a software lab cost as much as what sends through them.
_FOR_HOSTS = 0.5


def most_share(hosts: int, processors: int) -> float:
    """Largest share of a host, in processors, that leaves the switches enough."""
    return _FOR_HOSTS * processors / hosts


def require_shares(plan: Plan) -> None:
    """Refuse shares that all hosts together could not get without starving the switches.

    Raises:
        CapabilityError: with what would be possible on this machine.
    """
    lab, hosts = plan.scenario.lab, plan.topology.host_count
    share, processors = lab.processors_a_host, len(os.sched_getaffinity(0))
    if share is None or share <= most_share(hosts, processors):
        return
    most = most_share(hosts, processors)
    remedy = f"use lab.dilation {1 / most:.4g} or more" if lab.cpu_share == "auto" else f"use {most:.4g} or less"
    raise CapabilityError(
        f"{plan.scenario.source}: lab.cpu_share: {hosts} hosts with {share:.4g} of a processor each would take "
        f"{hosts * share:.4g} of this machine's {processors}, and half of them must be left for the switches; {remedy}"
    )
