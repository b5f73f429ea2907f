"""Round-trip times, one pair after the other."""

from __future__ import annotations

from testbed.model import host_ip
from testbed.run.context import Context, LoadOutcome
from testbed.run.fidelity import Verdict
from testbed.traffic import flows
from testbed.workloads import ping
from testbed.workloads.spec import Ping

_SPARE_SECONDS = 10.0
_LONGEST_GAP = 2.0


def run_ping(context: Context, spec: Ping) -> LoadOutcome:
    """Ping the pairs of a pattern; the first echo of each pair, which sets up the switches, is made beforehand."""
    topology, outcome = context.plan.topology, LoadOutcome()
    pairs = flows(spec.pattern, topology, context.plan.scenario.lab.seed)
    limit = _SPARE_SECONDS + spec.count * _LONGEST_GAP
    for number, (source, destination) in enumerate(pairs, 1):
        names = {"src": topology.host_name(source), "dst": topology.host_name(destination)}
        context.progress(f"{names['src']}→{names['dst']} ({number} of {len(pairs)})")
        process = ping.command(spec, names["src"], host_ip(destination))
        result = context.run([process], limit)
        text = result.outputs[process.id].stdout
        context.keep_raw(f"{names['src']}-{names['dst']}.txt", text)
        parsed = ping.parse(text)
        for metric, value in (("rtt_min", parsed.rtt_min), ("rtt_mean", parsed.rtt_mean), ("rtt_max", parsed.rtt_max)):
            if value is not None:
                outcome.samples.append(context.sample(metric, value, "s", names))
        loss = 1 - parsed.received / parsed.sent
        outcome.samples.append(context.sample("ping_loss", loss, "ratio", names))
        if loss > 0:
            outcome.findings.append(
                (Verdict.WARN, f"{names['src']}→{names['dst']} lost {100 * loss:.0f} % of its echoes")
            )
    return outcome
