"""Loads that measure pairs of hosts by programs in both, one pair after the other or all at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from testbed.base.model import host_ip
from testbed.base.units import format_number
from testbed.dataplane.predict import Least
from testbed.dataplane.predict.round_trip import frame_sizes, round_trips
from testbed.experiments.run.checks.fidelity import Verdict, judge_lateness
from testbed.experiments.run.checks.wire_bounds import add_wire_bound, mark_unheld
from testbed.experiments.run.loads.context import Context, LoadOutcome
from testbed.fabric.traffic import flows
from testbed.planning import Plan
from testbed.planning.rates import logical_ways, time_limit_factor
from testbed.planning.wire_time import message_wires
from testbed.scenario.workloads import WORKLOADS
from testbed.scenario.workloads.pairs import Ends, Messages, PairTool

# Beyond the time of the programs: starting and ending hundreds of them.
_SECONDS_A_PAIR = 0.2
# What is told beside the time that links need.
_BOUND = ("transactions", "rtt_min", "rtt_mean")
# What is made of the same times, and so of the same software where ports do not hold a lone frame.
_ROUND_TRIP = "rtt_"


def run_pairs(context: Context, spec: Any) -> LoadOutcome:
    """Measure the pairs of the load's pattern."""
    plan, outcome = context.plan, LoadOutcome()
    tool = WORKLOADS[context.labels["kind"]].pairs
    if tool is None:
        raise ValueError(f"{context.labels['kind']} is not a load that measures pairs")
    pairs = flows(spec.pattern, plan.topology, plan.scenario.lab.seed)
    predicted = predicted_trips(plan, pairs, tool.messages(spec), exact=context.lab.facts.shapes_idle_ports)
    name = plan.topology.host_name
    ends = [Ends(number, name(one), name(other), host_ip(other)) for number, (one, other) in enumerate(pairs)]
    for repeat in range(1, (tool.repeats(spec) if tool.repeats else 1) + 1):
        labels = {"repeat": str(repeat)} if tool.repeats else {}
        if tool.at_once(spec):
            context.progress(" ".join([f"{len(ends)} pairs at once", *_turn(labels)]))
            _measure(context, spec, tool, outcome, ends, predicted, labels)
            continue
        for end, time in zip(ends, predicted, strict=True):
            title = f"{end.source}→{end.destination} ({end.number + 1} of {len(ends)})"
            context.progress(" ".join([title, *_turn(labels)]))
            _measure(context, spec, tool, outcome, [end], [time], labels)
    return outcome


def predicted_trips(plan: Plan, pairs: Sequence[tuple[int, int]], messages: Messages, *, exact: bool) -> list[Least]:
    """Real-world time of a request and its response of each pair at zero load; of a bundle the fastest member counts.

    `exact`: whether ports hold every frame for its time on the wire.
    """
    mtu = plan.scenario.links.mtu
    sizes = [frame_sizes(messages.protocol, size, mtu) for size in (messages.request, messages.response)]
    wires, ways = message_wires(plan), logical_ways(plan, pairs)
    whole = round_trips(wires, pairs, ways, *sizes)
    held = whole if exact else round_trips(wires, pairs, ways, *sizes, held=False)
    return [Least(*map(float, times)) for times in zip(whole, held, strict=True)]


def _turn(labels: dict[str, str]) -> list[str]:
    return [f"repeat {labels['repeat']}"] if labels else []


def _measure(
    context: Context,
    spec: Any,
    tool: PairTool,
    outcome: LoadOutcome,
    ends: Sequence[Ends],
    predicted: Sequence[Least],
    labels: dict[str, str],
) -> None:
    """Run the programs of some pairs at the same time, and add what they measured."""
    commands = [tool.commands(spec, end) for end in ends]
    limit = tool.limit(spec) * time_limit_factor(context.plan) + _SECONDS_A_PAIR * len(ends)
    result = context.run([process for programs in commands for process in programs], limit)
    alone = len(ends) == 1
    outcome.findings += judge_lateness([result])
    for end, programs, least in zip(ends, commands, predicted, strict=True):
        text = result.outputs[programs[-1].id].stdout
        before = f"repeat{labels['repeat']}/" if labels else ""
        context.keep_raw(f"{before}{end.source}-{end.destination}.txt", text)
        figures = tool.parse(text)
        of_pair = {**labels, "src": end.source, "dst": end.destination}
        for metric, value, unit in figures.values:
            sample = context.sample(metric, value, unit, of_pair)
            # Among others a pair waits for them as well; its shortest time can still be without a wait.
            if metric in _BOUND and (alone or metric == "rtt_min"):
                sample = add_wire_bound(sample, least)
            elif alone and metric.startswith(_ROUND_TRIP):
                sample = mark_unheld(sample, least)
            outcome.samples.append(sample)
        if figures.lost > 0:
            lost = f"{end.source}→{end.destination} lost {format_number(100 * figures.lost, 2)} % of its {tool.what}"
            outcome.findings.append((Verdict.WARN, lost))
