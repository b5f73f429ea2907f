"""All flows of a pattern at once, by iperf3."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from testbed.errors import WorkloadError
from testbed.model import Floats, host_ip
from testbed.predict import Transport, fair_goodput, transport
from testbed.routing.paths import path
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
    topology, links = context.plan.topology, context.plan.scenario.links
    pairs = flows(spec.pattern, topology, context.plan.scenario.lab.seed)
    wire = transport(spec.protocol, spec.payload)
    tagged = context.plan.vlans.tagged_trunks
    predicted = fair_goodput(topology, context.plan.routes, pairs, wire, links.rate, links.edge_rate, tagged=tagged)
    # A UDP sender cannot get through more than it offers.
    goals = predicted * (min(1.0, spec.offered) if spec.protocol == "udp" else 1.0)
    load = _Load(context, spec, pairs, wire, predicted, goals)
    ledger, outcome = FrameLedger(context.lab), LoadOutcome()
    measured, machine = [], []
    for repeat in range(1, spec.repeats + 1):
        context.progress(f"{len(pairs)} flows, repeat {repeat} of {spec.repeats}")
        result, goodput = load.run(str(repeat), outcome)
        measured.append(goodput)
        machine.append(processor(result.before, result.after))
    outcome.findings += [*judge_prediction(spec.protocol, np.median(measured, axis=0), goals), *ledger.close()]
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
    predicted: Floats
    goals: Floats

    def run(self, repeat: str, outcome: LoadOutcome) -> tuple[LoadResult, list[float]]:
        """Run once, add the samples, return the counters and the real-world goodput of each flow."""
        context, spec, topology = self.context, self.spec, self.context.plan.topology
        offered = [context.scale.lab_rate(float(rate)) * spec.offered for rate in self.predicted]
        names = [(topology.host_name(s), topology.host_name(d), host_ip(d)) for s, d in self.pairs]
        servers, clients = iperf3.commands(spec, names, offered)
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
        for (source, destination, _), server, client, goal in zip(names, servers, clients, self.goals, strict=True):
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
        outcome.samples += context.link_use(result, self.channel_shares(), repeat=repeat)
        outcome.samples += context.machine(result, repeat=repeat)
        return result, goodput

    def channel_shares(self) -> Mapping[int, float]:
        """Predicted use of each channel, acknowledgements included."""
        topology, routes = self.context.plan.topology, self.context.plan.routes
        tagged = self.context.plan.vlans.tagged_trunks
        share = np.zeros(len(topology.channel_source))
        for (source, destination), rate in zip(self.pairs, self.goals, strict=True):
            share[list(path(topology, routes, source, destination))] += rate * self.wire.cost(tagged=tagged)
            share[list(path(topology, routes, destination, source))] += rate * self.wire.reverse_cost(tagged=tagged)
        return dict(enumerate((share / self.context.plan.scenario.links.rate).tolist()))
