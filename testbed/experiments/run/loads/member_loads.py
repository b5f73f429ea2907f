"""Aggregated links: what the members that flows take let one expect, and what the members carried."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from testbed.base.model import Bundles, Floats, Sample
from testbed.dataplane.predict import TcpLoad, Transport, Ways, fair_goodput, tcp_goodput
from testbed.dataplane.predict.members import Spread, expected_spread
from testbed.experiments.run.checks.fidelity import Finding, Verdict
from testbed.experiments.run.loads.context import Context, LoadResult
from testbed.planning import Plan
from testbed.planning.rates import logical_ways, member_wires

# Beside the flows, a member carries what iperf3 says of them; more than this share of its rate is a flow.
_NOTHING, _SOMETHING = 0.01, 0.05


def goodput_by_members(
    plan: Plan, pairs: Sequence[tuple[int, int]], ways: Ways, wire: Transport, tcp: TcpLoad | None = None
) -> Floats:
    """(F,) real-world goodput of flows on the members they take: max-min fair, or what TCP makes of it."""
    wires = member_wires(plan, wire)
    return fair_goodput(wires, pairs, ways) if tcp is None else tcp_goodput(wires, pairs, ways, tcp)


def likely_spread(
    plan: Plan, bundles: Bundles, pairs: Sequence[tuple[int, int]], even: Floats, wire: Transport
) -> Spread:
    """What a hash can be expected to make of a load; `even` is its goodput if bundles were single links."""
    ways, seed = logical_ways(plan, pairs), plan.scenario.lab.seed
    return expected_spread(bundles, member_wires(plan, wire), pairs, ways, even, seed=seed)


def member_use(
    context: Context, bundles: Bundles, result: LoadResult, predicted: Floats | None = None, **labels: str
) -> tuple[list[Sample], list[Finding]]:
    """How the load was spread over the members of each bundle.

    Args:
        context: the load.
        bundles: the members.
        result: of Context.run().
        predicted: (physical C,) predicted share of each member's rate, where there is a prediction.
        labels: further labels.

    Returns:
        `member_use`, the share of its rate that each member carried, and `bundle_imbalance`, the busiest member's load
        as a multiple of the mean of its bundle, for bundles that carried anything to speak of; and a finding where a
        member carried flows that should be elsewhere.
    """
    topology, wiring = context.plan.topology, bundles.wiring
    rate = context.scale.lab_rate(context.plan.scenario.links.rate)
    samples: list[Sample] = []
    stray: list[str] = []
    for channel in range(len(topology.channel_source)):
        members = bundles.channels(channel)
        if len(members) < 2:
            continue
        used = np.array([result.wire_rate(member, context.tag) / rate for member in members])
        wanted = None if predicted is None else predicted[list(members)]
        name = {**labels, "channel": topology.channel_name(channel)}
        for number, share in enumerate(used.tolist()):
            goal = None if wanted is None else float(wanted[number])
            samples.append(context.sample("member_use", share, "ratio", {**name, "member": str(number)}, goal))
            if goal is not None and goal < _NOTHING and share > _SOMETHING:
                stray.append(wiring.channel_name(members[number]))
        if used.max() > _SOMETHING:
            goal = _imbalance(wanted) if wanted is not None and wanted.any() else None
            samples.append(context.sample("bundle_imbalance", _imbalance(used), "ratio", name, goal))
    if not stray:
        return samples, []
    shown = f"{', '.join(stray[:3])}{' …' if len(stray) > 3 else ''}"
    count = f"{len(stray)} member{'s' if len(stray) > 1 else ''}"
    sentence = f"{count} carried flows that the switches said they would send by another: {shown}"
    return samples, [(Verdict.WARN, sentence)]


def _imbalance(shares: Floats) -> float:
    return float(shares.max() / shares.mean())


def logical_shares(bundles: Bundles, physical: Floats) -> Mapping[int, float]:
    """Predicted share of each logical channel's rate, from those of its members."""
    channels = range(2 * len(bundles.sizes))
    return {channel: float(physical[list(bundles.channels(channel))].mean()) for channel in channels}
