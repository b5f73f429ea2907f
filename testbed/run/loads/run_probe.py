"""What failures cost, seen by datagrams between pairs of hosts that they hit; nothing else is on the links."""

from __future__ import annotations

from testbed.run.checks.fidelity import judge_clock
from testbed.run.loads.context import Context, LoadOutcome
from testbed.run.loads.failure_watch import FailureWatch
from testbed.workloads.spec import Probe

_SPARE_SECONDS = 15.0


def run_probe(context: Context, spec: Probe) -> LoadOutcome:
    """Let the events of a load happen while datagrams are sent, and add up what was lost."""
    outcome = LoadOutcome()
    watch = FailureWatch.of(context, spec.seconds, spec.pairs, spec.rate)
    context.progress(f"{len(watch.pairs)} pairs watched, {len(watch.changes)} events in {spec.seconds} s")
    result = context.run(watch.processes(), spec.seconds + _SPARE_SECONDS, watched=True, timeline=watch.timeline())
    outcome.watched(result)
    watch.close(result, outcome)
    outcome.samples += context.machine(result)
    outcome.findings += judge_clock(result.before, result.after)
    return outcome
