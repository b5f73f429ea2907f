"""All flows of a pattern at once, by iperf3."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace

import numpy as np

from testbed.base.messages import Flow
from testbed.base.model import Floats, Sample, host_ip
from testbed.dataplane.predict import TcpLoad, Transport, Ways, tcp_goodput, transport
from testbed.dataplane.predict.members import Spread
from testbed.experiments.run.checks.fidelity import (
    Finding,
    Verdict,
    judge_clock,
    judge_departures,
    judge_machine,
    judge_overload,
    judge_prediction,
)
from testbed.experiments.run.checks.telemetry_samples import departure_errors
from testbed.experiments.run.checks.wire_bounds import judge_goodput
from testbed.experiments.run.loads.context import Context, FrameLedger, LoadOutcome, LoadResult
from testbed.experiments.run.loads.failure_watch import FailureWatch, timeline
from testbed.experiments.run.loads.link_changes import LinkWatch
from testbed.experiments.run.loads.member_loads import (
    goodput_by_members,
    likely_spread,
    logical_shares,
    member_use,
)
from testbed.fabric.traffic import flows
from testbed.planning.failover.events import Change
from testbed.planning.failures import changes_of_load
from testbed.planning.rates import logical_ways, member_wires, offered_rates, time_limit_factor, timed, wires_of
from testbed.scenario.workloads import iperf3
from testbed.scenario.workloads.pairs import OutputError
from testbed.scenario.workloads.spec import Iperf3, events_of, load_seconds, times

# Beyond the load itself: starting and ending hundreds of processes.
_SPARE_SECONDS = 20.0
_SECONDS_A_FLOW = 0.1
# iperf3's control messages take the same links as its datagrams.
_ROOM_FOR_CONTROL = 0.9
_SHOWN_FAILURES = 3
_CONTROL_HINT = "(offered_load: 0.9 leaves room for iperf3's own control messages on links that are full)"


def run_iperf3(context: Context, spec: Iperf3) -> LoadOutcome:
    """Run the load `spec.repeats` times; judge each flow's median and the busiest repeat.

    A flow that fails makes the load fail; the figures of the others are kept.
    """
    plan = context.plan
    spec = timed(plan, spec)
    pairs = flows(spec.pattern, plan.topology, plan.scenario.lab.seed, amounts=True)
    wire = transport(spec.protocol, spec.payload, plan.scenario.links.mtu)
    even = fair = offered_rates(plan, spec.pattern, pairs, wire)
    tcp = _tcp_load(context, spec)
    if tcp is not None:
        context.progress("simulating what TCP should give")
        even = tcp_goodput(wires_of(plan, wire), pairs, logical_ways(plan, pairs), tcp)
    spread = None
    if plan.bundles is not None and plan.powered_off is None:
        spread = likely_spread(plan, plan.bundles, pairs, fair, wire)
    events = changes_of_load(plan, int(context.labels["load"]) - 1) if events_of(spec) else []
    fails, alters = (any(change.fails is which for change in events) for which in (True, False))
    watch = FailureWatch.from_load(context, load_seconds(spec), busy=True) if fails else None
    links = LinkWatch(context, events) if alters else None
    load = _Load(context, spec, pairs, wire, fair, even, tcp, spread, events, watch, links)
    ledger, outcome = FrameLedger(context), LoadOutcome(times=times(spec))
    reached, results = [], []
    for repeat in range(1, spec.repeats + 1):
        context.progress(f"{len(pairs)} flows, repeat {repeat} of {spec.repeats}")
        result, goodput, goals = load.run(repeat, outcome)
        # Where links are aggregated, a flow may have another prediction in each repeat.
        reached.append(goodput / goals)
        results.append(result)
        if np.isnan(goodput).all():
            break  # nothing works; that need not be shown again
    if events:
        # What dies, or gets slower, takes frames and goodput with it; that was asked for, and is no fault of the lab.
        outcome.findings += [finding for result in results for finding in judge_clock(result.before, result.after)]
        return outcome
    there = ~np.isnan(reached).all(axis=0)
    behind: list[Finding] = []
    if there.any():
        medians = np.nanmedian(np.array(reached)[:, there], axis=0).tolist()
        behind += judge_overload(results, medians)
        behind += judge_prediction(spec.protocol, medians, [1.0] * len(medians))
    # Links that are off make no lab too slow; flows that get as much as with all on show that it kept up.
    outcome.findings += [*([] if context.moving else behind), *ledger.close()]
    confirmed = not outcome.findings and not behind
    outcome.findings += judge_machine(results, confirmed=confirmed)
    for number, part in enumerate(outcome.telemetry, 1):
        outcome.findings += judge_departures(departure_errors(part, 0, context.tag).tolist(), confirmed=confirmed)
        outcome.samples += context.departures(part, repeat=str(number))
    return outcome


def _tcp_load(context: Context, spec: Iperf3) -> TcpLoad | None:
    """What TCP's windows meet; None without TCP, and where switches pause senders: none closes, and shares are fair."""
    if spec.protocol != "tcp" or context.plan.scenario.simulator.flow_control != "none":
        return None
    head_drop = context.lab.facts.head_drop
    return TcpLoad(*times(spec), context.scale.dilation, context.plan.scenario.links.queue_frames, head_drop=head_drop)


@dataclass(frozen=True, slots=True)
class _Load:
    """What all repeats of a load share."""

    context: Context  # the load
    spec: Iperf3  # what is asked for
    pairs: Sequence[tuple[int, int]]  # hosts of each flow
    wire: Transport  # cost of its payload
    fair: Floats  # (F,) max-min fair goodput, each bundle of links taken for one; real-world bit/s
    even: Floats  # (F,) likewise what the protocol makes of it
    tcp: TcpLoad | None  # what TCP's windows meet, if they count
    spread: Spread | None  # what a hash can be expected to make of it, where links are aggregated
    events: Sequence[Change] = ()  # what happens meanwhile
    watch: FailureWatch | None = None  # the failures, where there are some
    links: LinkWatch | None = None  # the links that change, likewise

    def run(self, turn: int, outcome: LoadOutcome) -> tuple[LoadResult, Floats, Floats]:
        """Run once, add the samples, return the counters, and real-world goodput of each flow and what it should be.

        The goodput of a flow that failed is NaN.
        """
        context, spec, topology, repeat = self.context, self.spec, self.context.plan.topology, str(turn)
        ports, ways = self._members(turn)
        predicted = self.even
        if ways is not None:
            predicted = goodput_by_members(context.plan, self.pairs, ways, self.wire, self.tcp)
        # A UDP sender cannot get through more than it offers.
        goals = predicted * (min(1.0, spec.offered_load) if spec.protocol == "udp" else 1.0)
        offered = [context.scale.lab_rate(float(rate)) * spec.offered_load for rate in predicted]
        names = [(topology.host_name(s), topology.host_name(d), host_ip(d)) for s, d in self.pairs]
        servers, clients = iperf3.commands(spec, names, offered, ports)
        omit, seconds = times(spec)
        spare = _SPARE_SECONDS * time_limit_factor(context.plan)  # what fills queues at the end has to leave them
        limit = omit + seconds + spare + _SECONDS_A_FLOW * len(names)
        # Counters over the counted seconds, a little inside so that no flow has stopped yet.
        window = (omit + 0.25, omit + seconds - 0.25)
        probes = [] if self.watch is None else self.watch.processes()
        with nullcontext() if self.watch is None else self.watch.repair_on_error():
            result = context.run(
                [*servers, *clients, *probes], limit, window, watched=True,
                departures=None if self.events else window[0], partial=True,
                timeline=timeline(topology, self.events),
            )  # fmt: skip
        outcome.add_recording(result)
        if self.links is not None:
            self.links.close(result, outcome, repeat=repeat)
        if self.watch is not None:
            done = [done for event, done in zip(self.events, result.disturbed, strict=False) if event.fails]
            self.watch.close(replace(result, disturbed=done), outcome, repeat=repeat)
        goodput = np.full(len(names), np.nan)
        failures: list[str] = []
        for flow, ((source, destination, _), server, client) in enumerate(zip(names, servers, clients, strict=True)):
            received, sent = result.outputs[server.id].stdout, result.outputs[client.id].stdout
            context.keep_raw(f"repeat{repeat}/{source}-{destination}-server.json", received)
            context.keep_raw(f"repeat{repeat}/{source}-{destination}-client.json", sent)
            # What the sender says of a failure is nearer to its cause.
            how = result.failed.get(client.id) or result.failed.get(server.id)
            try:
                if how is not None:
                    raise OutputError(_cause(sent) or how)
                found = iperf3.parse(spec, received, sent)
            except OutputError as error:
                if self.watch is None or not self.watch.cuts_off(self.pairs[flow]):
                    failures.append(f"{source}→{destination}: {error}")
                continue
            samples = self._samples(found, {"repeat": repeat, "src": source, "dst": destination}, float(goals[flow]))
            goodput[flow] = samples[0].value
            outcome.samples += samples
        if failures:
            outcome.findings.append((Verdict.FAIL, self._describe_failed(failures, repeat)))
        outcome.samples += self._mean(goodput, goals, repeat)
        if self.links is None and not context.moving:
            outcome.findings += judge_goodput(
                wires_of(context.plan, self.wire), self.pairs, logical_ways(context.plan, self.pairs), goodput
            )
        self._links(result, goals, ways, repeat, outcome)
        outcome.samples += context.queues(result, repeat=repeat)
        outcome.samples += context.machine(result, repeat=repeat)
        return result, goodput, goals

    def _samples(self, found: iperf3.FlowResult, labels: Mapping[str, str], goal: float) -> list[Sample]:
        """What one flow measured; its goodput first."""
        sample = self.context.sample
        samples = [sample("goodput", found.goodput, "bit/s", labels, goal)]
        if found.warmup is not None:
            samples.append(sample("goodput_warmup", found.warmup, "bit/s", labels))
        if found.loss is not None and found.jitter is not None:
            samples.append(sample("loss", found.loss, "ratio", labels))
            samples.append(sample("jitter", found.jitter, "s", labels))
        if found.retransmits is not None:
            samples.append(sample("retransmits", found.retransmits, "", labels))
        return samples

    def _mean(self, goodput: Floats, goals: Floats, repeat: str) -> list[Sample]:
        """The mean over the flows of a repeat; its spread over repeats is that of the whole load."""
        there = ~np.isnan(goodput)
        if not there.any():
            return []
        mean, goal = float(goodput[there].mean()), float(goals[there].mean())
        return [Sample("goodput_mean", mean, "bit/s", {**self.context.labels, "repeat": repeat}, goal)]

    def _describe_failed(self, failures: Sequence[str], repeat: str) -> str:
        """A sentence on the flows that failed in a repeat."""
        more = f" and {len(failures) - _SHOWN_FAILURES} more" if len(failures) > _SHOWN_FAILURES else ""
        full = self.spec.protocol == "udp" and self.spec.offered_load > _ROOM_FOR_CONTROL
        return (
            f"{len(failures)} of {len(self.pairs)} flows failed in repeat {repeat}: "
            f"{'; '.join(failures[:_SHOWN_FAILURES])}{more}{f' {_CONTROL_HINT}' if full else ''}"
        )

    def _members(self, turn: int) -> tuple[list[int] | None, Ways | None]:
        """Where links are aggregated: the client's port of each flow, and the members that it then takes."""
        plan, bundles = self.context.plan, self.context.plan.bundles
        if bundles is None:
            return None, None
        source, end = ([plan.topology.host_name(pair[side]) for pair in self.pairs] for side in (0, 1))
        load = int(self.context.labels["load"])
        ports = iperf3.client_ports(source, plan.scenario.lab.seed, iperf3.TURNS_APART * load + turn)
        sent = zip(self.pairs, ports, iperf3.server_ports(end), strict=True)
        found = [Flow(*pair, self.spec.protocol, port, to) for pair, port, to in sent]
        return ports, self.context.lab.taken_channels(plan, found)

    def _links(self, result: LoadResult, goals: Floats, ways: Ways | None, repeat: str, outcome: LoadOutcome) -> None:
        """Add what links and members of bundles carried."""
        context, plan = self.context, self.context.plan
        if plan.bundles is None or ways is None:
            shares = wires_of(plan, self.wire).channel_shares(logical_ways(plan, self.pairs), goals)
            outcome.samples += context.link_use(result, dict(enumerate(shares.tolist())), repeat=repeat)
            return
        shares = member_wires(plan, self.wire).channel_shares(ways, goals)
        outcome.samples += context.link_use(result, logical_shares(plan.bundles, shares), repeat=repeat)
        used, stray = member_use(context, plan.bundles, result, shares, repeat=repeat)
        outcome.samples += used
        # While links go off and on, flows change theirs.
        outcome.findings += [] if context.moving else stray
        if self.spread is not None:
            # Max-min fair shares, of which the expectation is made too.
            kept = float(goodput_by_members(plan, self.pairs, ways, self.wire).mean() / self.fair.mean())
            likely = {"low": f"{self.spread.low:.3f}", "high": f"{self.spread.high:.3f}"}
            outcome.samples.append(
                context.sample("hash_share", kept, "ratio", {"repeat": repeat, **likely}, self.spread.mean)
            )


def _cause(client: str) -> str:
    """What iperf3's client gives as the reason of its failure; empty where it gives none."""
    try:
        document = json.loads(client)
    except ValueError:
        return ""
    said = document.get("error", "") if isinstance(document, dict) else ""
    return f"iperf3 says: {said}" if said else ""
