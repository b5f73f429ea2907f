"""All flows of a pattern at once, by iperf3."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from testbed.errors import WorkloadError
from testbed.model import Floats, host_ip
from testbed.predict import Transport, fair_goodput, transport
from testbed.predict.maxmin import Ways
from testbed.predict.members import Spread
from testbed.run.bundles import (
    Flow,
    channel_rates,
    fair_by_members,
    likely_spread,
    logical_shares,
    logical_ways,
    member_use,
    shares_by_members,
    taken_members,
)
from testbed.run.context import Context, FrameLedger, LoadOutcome, LoadResult
from testbed.run.fidelity import judge_prediction, judge_processor, processor
from testbed.traffic import flows
from testbed.workloads import iperf3
from testbed.workloads.process import OutputError
from testbed.workloads.spec import Iperf3

# Beyond the load itself: starting and ending hundreds of processes.
_SPARE_SECONDS = 20.0
_SECONDS_A_FLOW = 0.1
# iperf3's control messages take the same links as its datagrams.
_ROOM_FOR_CONTROL = 0.9
_CONTROL_HINT = "(offered: 0.9 leaves room for iperf3's own control messages on links that are full)"


def run_iperf3(context: Context, spec: Iperf3) -> LoadOutcome:
    """Run the load `spec.repeats` times; judge each flow's median and the busiest repeat.

    Raises:
        WorkloadError: a flow failed or printed something else than results.
    """
    plan = context.plan
    pairs = flows(spec.pattern, plan.topology, plan.scenario.lab.seed)
    wire, links = transport(spec.protocol, spec.payload), plan.scenario.links
    even = fair_goodput(
        plan.topology, plan.routes, pairs, wire, channel_rates(plan), links.edge_rate, tagged=plan.vlans.tagged_trunks
    )
    spread = None if plan.bundles is None else likely_spread(plan, plan.bundles, pairs, even, wire)
    load = _Load(context, spec, pairs, wire, even, spread)
    ledger, outcome = FrameLedger(context.lab), LoadOutcome()
    measured, goals, machine = [], [], []
    for repeat in range(1, spec.repeats + 1):
        context.progress(f"{len(pairs)} flows, repeat {repeat} of {spec.repeats}")
        result, goodput, wanted = load.run(repeat, outcome)
        measured.append(goodput)
        goals.append(wanted)
        machine.append(processor(result.before, result.after))
    # Where links are aggregated, a flow may have another prediction in each repeat.
    reached = np.median(np.array(measured) / np.array(goals), axis=0)
    outcome.findings += [*judge_prediction(spec.protocol, reached, np.ones(len(pairs))), *ledger.close()]
    pressures = [pressure for _, pressure in machine if pressure is not None]
    idle, confirmed = min(idle for idle, _ in machine), not outcome.findings
    outcome.findings += judge_processor(idle, max(pressures, default=None), confirmed=confirmed)
    return outcome


@dataclass(frozen=True, slots=True)
class _Load:
    """What all repeats of a load share."""

    context: Context
    spec: Iperf3
    pairs: Sequence[tuple[int, int]]
    wire: Transport
    even: Floats
    spread: Spread | None

    def run(self, turn: int, outcome: LoadOutcome) -> tuple[LoadResult, list[float], Floats]:
        """Run once, add the samples, return the counters, and real-world goodput of each flow and what it should be."""
        context, spec, topology, repeat = self.context, self.spec, self.context.plan.topology, str(turn)
        ports, ways = self._members(turn)
        predicted = self.even if ways is None else fair_by_members(context.plan, self.pairs, ways, self.wire)
        # A UDP sender cannot get through more than it offers.
        goals = predicted * (min(1.0, spec.offered) if spec.protocol == "udp" else 1.0)
        offered = [context.scale.lab_rate(float(rate)) * spec.offered for rate in predicted]
        names = [(topology.host_name(s), topology.host_name(d), host_ip(d)) for s, d in self.pairs]
        servers, clients = iperf3.commands(spec, names, offered, ports)
        limit = spec.omit + spec.seconds + _SPARE_SECONDS + _SECONDS_A_FLOW * len(names)
        # Counters over the counted seconds, a little inside so that no flow has stopped yet.
        window = (spec.omit + 0.25, spec.omit + spec.seconds - 0.25)
        try:
            result = context.run([*servers, *clients], limit, window)
        except WorkloadError as error:
            if spec.protocol == "udp" and spec.offered > _ROOM_FOR_CONTROL:
                raise WorkloadError(f"{error} {_CONTROL_HINT}") from error
            raise
        goodput = []
        for (source, destination, _), server, client, goal in zip(names, servers, clients, goals, strict=True):
            received, sent = result.outputs[server.id]["stdout"], result.outputs[client.id]["stdout"]
            context.keep_raw(f"repeat{repeat}/{source}-{destination}-server.json", received)
            context.keep_raw(f"repeat{repeat}/{source}-{destination}-client.json", sent)
            try:
                flow = iperf3.parse(spec, received, sent)
            except OutputError as error:
                raise WorkloadError(f"{source}→{destination}: {error}") from error
            labels = {"repeat": repeat, "src": source, "dst": destination}
            sample = context.sample("goodput", flow.goodput, "bit/s", labels, float(goal))
            goodput.append(sample.value)
            outcome.samples.append(sample)
            if flow.loss is not None and flow.jitter is not None:
                outcome.samples.append(context.sample("loss", flow.loss, "ratio", labels))
                outcome.samples.append(context.sample("jitter", flow.jitter, "s", labels))
            if flow.retransmits is not None:
                outcome.samples.append(context.sample("retransmits", flow.retransmits, "", labels))
        self._links(result, goals, ways, repeat, outcome)
        outcome.samples += context.machine(result, repeat=repeat)
        return result, goodput, goals

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
        return ports, taken_members(self.context, bundles, found)

    def _links(self, result: LoadResult, goals: Floats, ways: Ways | None, repeat: str, outcome: LoadOutcome) -> None:
        """Add what links and members of bundles carried."""
        context, plan = self.context, self.context.plan
        if plan.bundles is None or ways is None:
            shares = shares_by_members(plan, logical_ways(plan, self.pairs), goals, self.wire)
            outcome.samples += context.link_use(result, dict(enumerate(shares.tolist())), repeat=repeat)
            return
        shares = shares_by_members(plan, ways, goals, self.wire)
        outcome.samples += context.link_use(result, logical_shares(plan.bundles, shares), repeat=repeat)
        used, stray = member_use(context, plan.bundles, result, shares, repeat=repeat)
        outcome.samples += used
        outcome.findings += stray
        if self.spread is not None:
            offered = min(1.0, self.spec.offered) if self.spec.protocol == "udp" else 1.0
            kept = float(goals.mean() / (self.even.mean() * offered))
            likely = {"low": f"{self.spread.low:.3f}", "high": f"{self.spread.high:.3f}"}
            outcome.samples.append(
                context.sample("hash_share", kept, "ratio", {"repeat": repeat, **likely}, self.spread.mean)
            )
