"""All flows of a pattern at once, by iperf3."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from testbed.errors import WorkloadError
from testbed.model import Floats, host_ip
from testbed.predict import Transport, fair_goodput, transport
from testbed.routing.paths import path
from testbed.run.context import Context, FrameLedger, LoadOutcome
from testbed.run.fidelity import judge_prediction
from testbed.traffic import flows
from testbed.workloads import iperf3
from testbed.workloads.process import OutputError
from testbed.workloads.spec import Iperf3

# Beyond the load itself: starting and ending hundreds of processes.
_SPARE_SECONDS = 20.0
_SECONDS_A_FLOW = 0.1


def run_iperf3(context: Context, spec: Iperf3) -> LoadOutcome:
    """Run the load `spec.repeats` times and judge every repeat.

    Raises:
        WorkloadError: a flow failed or printed something else than results.
    """
    topology, links = context.plan.topology, context.plan.scenario.links
    pairs = flows(spec.pattern, topology, context.plan.scenario.lab.seed)
    wire = transport(spec.protocol, spec.payload)
    predicted = fair_goodput(topology, context.plan.routes, pairs, wire, links.rate, links.edge_rate)
    ledger, outcome = FrameLedger(context.lab), LoadOutcome()
    for repeat in range(1, spec.repeats + 1):
        context.progress(f"{len(pairs)} flows, repeat {repeat} of {spec.repeats}")
        _repeat(context, spec, pairs, wire, predicted, str(repeat), outcome)
    outcome.findings += ledger.close()
    return outcome


def _repeat(
    context: Context,
    spec: Iperf3,
    pairs: Sequence[tuple[int, int]],
    wire: Transport,
    predicted: Floats,
    repeat: str,
    outcome: LoadOutcome,
) -> None:
    topology = context.plan.topology
    offered = [context.scale.lab_rate(float(p)) * spec.offered for p in predicted]
    names = [(topology.host_name(s), topology.host_name(d), host_ip(d)) for s, d in pairs]
    servers, clients = iperf3.commands(spec, names, offered)
    limit = spec.omit + spec.seconds + _SPARE_SECONDS + _SECONDS_A_FLOW * len(pairs)
    # Counters over the counted seconds, a little inside so that no flow has stopped yet.
    window = (spec.omit + 0.25, spec.omit + spec.seconds - 0.25)
    result = context.run([*servers, *clients], limit, window)
    measured = []
    for (source, destination, _), server, client, expected in zip(names, servers, clients, predicted, strict=True):
        received, sent = result.outputs[server.id]["stdout"], result.outputs[client.id]["stdout"]
        context.keep_raw(f"repeat{repeat}/{source}-{destination}-server.json", received)
        context.keep_raw(f"repeat{repeat}/{source}-{destination}-client.json", sent)
        try:
            flow = iperf3.parse(received, sent)
        except OutputError as error:
            raise WorkloadError(f"{source}→{destination}: {error}") from error
        labels = {"repeat": repeat, "src": source, "dst": destination}
        goal = float(expected) * (min(1.0, spec.offered) if spec.protocol == "udp" else 1.0)
        outcome.samples.append(context.sample("goodput", flow.goodput, "bit/s", labels, goal))
        measured.append(context.scale.to_real(flow.goodput, "bit/s"))
        if flow.loss is not None and flow.jitter is not None:
            outcome.samples.append(context.sample("loss", flow.loss, "ratio", labels))
            outcome.samples.append(context.sample("jitter", flow.jitter, "s", labels))
        if flow.retransmits is not None:
            outcome.samples.append(context.sample("retransmits", flow.retransmits, "", labels))
    shares = _channel_shares(context, pairs, wire, predicted * (spec.offered if spec.protocol == "udp" else 1.0))
    outcome.samples += context.link_use(result, shares, repeat=repeat)
    samples, findings = context.machine(result, repeat=repeat)
    outcome.samples += samples
    goals = [float(p) * (min(1.0, spec.offered) if spec.protocol == "udp" else 1.0) for p in predicted]
    outcome.findings += [*findings, *judge_prediction(spec.protocol, measured, goals)]


def _channel_shares(
    context: Context, pairs: Sequence[tuple[int, int]], wire: Transport, goodput: Floats
) -> Mapping[int, float]:
    """Predicted use of each channel, acknowledgements included."""
    topology, routes = context.plan.topology, context.plan.routes
    share = np.zeros(len(topology.channel_source))
    for (source, destination), rate in zip(pairs, goodput, strict=True):
        share[list(path(topology, routes, source, destination))] += rate * wire.cost(tagged=True)
        share[list(path(topology, routes, destination, source))] += rate * wire.reverse_cost(tagged=True)
    return dict(enumerate(np.minimum(share / context.plan.scenario.links.rate, 1.0).tolist()))
