"""Which member of each bundle the flows of a load take, what that predicts, and what the members carried."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from testbed.errors import WorkloadError
from testbed.model import Bundles, Floats, Sample, host_ip, host_mac
from testbed.pipeline.oracle import Oracle
from testbed.pipeline.tables import UNTAGGED
from testbed.plan import Plan
from testbed.plan.rates import logical_ways, member_wires
from testbed.predict import TcpLoad, Transport, Ways, fair_goodput, tcp_goodput
from testbed.predict.members import Spread, expected_spread
from testbed.routing.paths import path
from testbed.run.context import Context, LoadResult
from testbed.run.fidelity import Finding, Verdict

_OUTPUT = re.compile(r"^ +output:(\d+)$", re.MULTILINE)
# Beside the flows, a member carries what iperf3 says of them; more than this share of its rate is a flow.
_NOTHING, _SOMETHING = 0.01, 0.05


@dataclass(frozen=True, slots=True)
class Flow:
    """One flow of a load: hosts, protocol (`tcp` or `udp`), and the ports its data come from and go to."""

    source: int
    destination: int
    protocol: str
    source_port: int
    destination_port: int


def taken_members(context: Context, bundles: Bundles, flows: Sequence[Flow]) -> Ways:
    """Ask the running switches for the physical channels of each flow and, for TCP, of its acknowledgements.

    Raises:
        WorkloadError: a switch would send a flow elsewhere than by one member of the bundle on its path.
    """
    plan, oracle = context.plan, Oracle(context.plan.topology, context.plan.rules, bundles, context.plan.groups)
    asked: list[tuple[str, str]] = []
    for flow in flows:
        asked += _questions(plan, oracle, flow, flow.source, flow.destination)
        if flow.protocol == "tcp":
            asked += _questions(plan, oracle, flow, flow.destination, flow.source)
    answers = iter(zip(asked, context.lab.trace(asked), strict=True))

    def taken(start: int, end: int) -> tuple[int, ...]:
        channels = []
        for channel in path(plan.topology, plan.routes, start, end):
            (switch, frame), text = next(answers)
            ports = {int(port) for port in _OUTPUT.findall(text)}
            members = {int(bundles.wiring.out_port[member]): member for member in bundles.channels(channel)}
            if len(ports) != 1 or not ports <= members.keys():
                shown = " and ".join(map(str, sorted(ports))) or "none"
                wanted = " or ".join(map(str, members))
                raise WorkloadError(f"{switch} sends {frame} by port {shown} instead of {wanted}")
            channels.append(members[ports.pop()])
        return tuple(channels)

    return [
        (
            taken(flow.source, flow.destination),
            taken(flow.destination, flow.source) if flow.protocol == "tcp" else (),
        )
        for flow in flows
    ]


def _questions(plan: Plan, oracle: Oracle, flow: Flow, start: int, end: int) -> list[tuple[str, str]]:
    """Switch and frame for each hop of a path; the member it arrives by makes no difference."""
    topology = plan.topology
    ports = (flow.source_port, flow.destination_port)
    come_from, go_to = ports if start == flow.source else ports[::-1]
    frame = (
        f"{flow.protocol},dl_src={host_mac(start)},dl_dst={host_mac(end)},nw_src={host_ip(start)},nw_dst={host_ip(end)},"
        f"{flow.protocol}_src={come_from},{flow.protocol}_dst={go_to}"
    )
    in_port, tag = int(topology.host_port[start]), ""
    questions = []
    walked = oracle.unicast(start, end)
    for channel, (vlan, priority) in zip(walked.channels, walked.tags, strict=True):
        switch = topology.switch_name(int(topology.channel_source[channel]))
        questions.append((switch, f"in_port={in_port},{frame}{tag}"))
        in_port = int(topology.out_port[channel ^ 1])
        tag = "" if vlan == UNTAGGED else f",dl_vlan={vlan},dl_vlan_pcp={priority}"
    return questions


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
        `member_use`, the share of its rate that each member carried, and `bundle_imbalance`, the fullest member's load
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
        used = np.array([result.wire_rate(member) / rate for member in members])
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
