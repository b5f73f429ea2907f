"""Between two plans: what running switches do with every pair, whatever host has moved already.

As in pathcheck, rules come back from Open vSwitch as text and are walked by an oracle that knows no plan.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from testbed.pipeline.oracle import Delivery, Oracle
from testbed.plan import Plan
from testbed.routing.paths import path
from testbed.run.pathcheck import dumped_rules


def state_problems(plans: Sequence[Plan], dumped: Mapping[str, Sequence[str]], off: Collection[int] = ()) -> list[str]:
    """What is wrong with a state in which each host's paths are those of any one of some plans.

    Args:
        plans: of one fabric, without aggregated links.
        dumped: switch name → lines of `ovs-ofctl --no-stats --no-names dump-flows`.
        off: links that carry nothing now.

    Returns:
        one sentence for each pair that is not delivered once by its path in one of the plans, for each broadcast
        that does not reach every other host once, and for what would take a link that is off.
    """
    topology = plans[0].topology
    rules, problems = dumped_rules(topology, dumped)
    oracle = Oracle(topology, rules)
    everyone = set(range(topology.host_count))
    for source in range(topology.host_count):
        for destination in sorted(everyone - {source}):
            pair = f"{topology.host_name(source)}→{topology.host_name(destination)}"
            found = oracle.unicast(source, destination)
            paths = {path(topology, plan.routes, source, destination) for plan in plans}
            if found.received != {destination: 1} or found.tagged or found.channels not in paths:
                problems.append(f"{pair} takes none of its paths")
            problems += _off(plans[0], pair, found, off)
        flood, name = oracle.broadcast(source), f"a broadcast of {topology.host_name(source)}"
        if flood.endless or flood.tagged or flood.received != dict.fromkeys(everyone - {source}, 1):
            problems.append(f"{name} {'circulates' if flood.endless else 'does not reach every other host once'}")
        problems += _off(plans[0], name, flood, off)
    return problems


def _off(plan: Plan, what: str, found: Delivery, off: Collection[int]) -> list[str]:
    used = [channel for channel in found.channels if channel // 2 in off]
    return [f"{what} takes {plan.topology.channel_name(used[0])}, which is off"] if used else []
