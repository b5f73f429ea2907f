"""An MPI job, each rank on its host, with the proof that its bytes crossed the fabric."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from testbed.base.errors import InputError, Problem, WorkloadError
from testbed.base.messages import SHARED, Process
from testbed.base.model import Sample
from testbed.dataplane.predict import transport
from testbed.engines.lab.hosts import build_mpi_jobs
from testbed.engines.lab.hosts.build_mpi_jobs import npb_job
from testbed.engines.lab.hosts.seccomp import guard
from testbed.experiments.run.checks.fidelity import Finding, Verdict, judge_machine, judge_prediction
from testbed.experiments.run.checks.wire_bounds import (
    MOSTLY_UNHELD,
    add_wire_bound,
    behind_bounds,
    judge_goodput,
    read_unheld_share,
)
from testbed.experiments.run.loads.context import Context, FrameLedger, LoadOutcome, LoadResult
from testbed.experiments.run.loads.member_loads import member_use
from testbed.experiments.run.loads.mpi_bounds import mpi_bound, payload_bits
from testbed.fabric.traffic import flows
from testbed.planning import Plan
from testbed.planning.rates import fair_rates, logical_ways, time_limit_factor, wires_of
from testbed.scenario.workloads import mpi, mpi_trace, npb
from testbed.scenario.workloads.mpi_machines import said_by_ranks
from testbed.scenario.workloads.mpi_output import JobOutputError
from testbed.scenario.workloads.mpi_placement import Ranks, place_ranks
from testbed.scenario.workloads.spec import Mpi, Npb

# Rates of single messages, which are left out where the lab's ports do not hold them.
_SINGLE_MESSAGES = (
    "mpi_bandwidth", "mpi_pingping_bandwidth", "mpi_multi_pingping_bandwidth", "mpi_sendrecv_bandwidth",
    "mpi_exchange_bandwidth",
)  # fmt: skip
# Headers of Ethernet, IPv4 and TCP without options: what each frame has at least beside payload.
_HEADERS = 54
# Time of links, slowed down, and of processors, not slowed down; no factor makes it real-world time.
_LABORATORY = (
    "hpl_lab_time", "hpl_lab_rate", "npb_lab_time", "npb_lab_rate", "npb_lab_computation_time",
    "npb_lab_communication_time",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Prepared:
    """A job that is built and can be run on a plan."""

    job: mpi.MpiJob  # with the scenario's arguments and time limit
    ranks: Ranks  # where its ranks run
    pairs: tuple[tuple[int, int], ...] | None  # (sender, receiver) ranks of the scenario's pattern, or None
    trace: bool  # whether what ranks send each other is recorded


def prepare_mpi(plan: Plan, spec: Mpi | Npb, place: str = "") -> Prepared:
    """Read a job, check what the scenario asks of it, and build it; needs no lab.

    Args:
        plan: with a placement that fits its hosts.
        spec: the workload.
        place: key of the workload, for messages.

    Raises:
        InputError: there is no such job, its file is wrong, or its arguments are.
        CapabilityError: it cannot be built here.
    """
    source = plan.scenario.source
    if isinstance(spec, Npb):
        job, spec = npb_job(spec), npb.as_mpi(spec, plan.topology.host_count)
    else:
        job = build_mpi_jobs.read_job(spec.job, f"{place}.job", Path(source).resolve().parent, source)
    job = replace(
        job,
        args=job.args if spec.args is None else spec.args,
        time_limit=job.time_limit if spec.time_limit is None else spec.time_limit,
    )
    ranks, pairs = place_ranks(spec, plan.topology), None
    if spec.pattern is not None:
        rank_of = {host: rank for rank, host in enumerate(ranks.hosts)}
        between = flows(spec.pattern, plan.topology, plan.scenario.lab.seed)
        pairs = tuple((rank_of[source], rank_of[destination]) for source, destination in between)
    problems = mpi.argument_problems(job, len(ranks), pairs)
    if problems:
        raise InputError([Problem(f"{place}.{key}", sentence, source) for key, sentence in problems])
    build_mpi_jobs.build_job(job)
    trace = spec.trace or job.trace
    if trace:
        build_mpi_jobs.build_tracer()
    return Prepared(job, ranks, pairs, trace)


def run_mpi(context: Context, spec: Mpi | Npb) -> LoadOutcome:
    """Build and run a job.

    Raises:
        WorkloadError: it failed, its output is not that of a success, or its bytes did not cross the fabric.
    """
    outcome = LoadOutcome()
    context.progress("building it")
    prepared = prepare_mpi(context.plan, spec)
    job, ranks = prepared.job, prepared.ranks
    start = _launch(context, prepared)
    ledger = FrameLedger(context)
    # A number in the scenario counts as it is.
    limit = job.time_limit * (time_limit_factor(context.plan) if spec.time_limit is None else 1.0)
    context.progress(f"{job.name} on {len(ranks)} ranks, at most {limit:.4g} s by the lab's clock")
    process, *proxies = _processes(context, prepared, start)
    result = context.run(
        [process, *proxies], limit, watched=True, failure=lambda text: mpi.failure(job, said_by_ranks(text))
    )
    outcome.add_recording(result)
    text = said_by_ranks(result.outputs[process.id].stdout)
    context.keep_raw("output.txt", text)
    if result.outputs[process.id].stderr:
        context.keep_raw("errors.txt", result.outputs[process.id].stderr)
    try:
        parsed = mpi.check(job, text, ranks)
        trace = _read_trace(context, prepared)
    except JobOutputError as error:
        raise WorkloadError(str(error)) from error
    moved = max(parsed.fabric_bytes, trace.least_between_hosts(ranks.hosts) if trace is not None else 0)
    sent, frames = _bytes_from_hosts(result)
    _prove_crossing(context, prepared, moved, sent)
    outcome.samples.append(context.sample("mpi_bytes_moved", moved, "B", {}))
    outcome.samples.append(context.sample("mpi_bytes_crossed", sum(sent.values()), "B", {}))
    outcome.samples.append(context.sample("mpi_frames_crossed", frames, "count", {}))
    # As a program is timed from outside: the parts of links and of processors are not told apart.
    seconds = max(result.outputs[one.id].seconds for one in (proxies or [process]))
    outcome.samples.append(context.laboratory("mpi_lab_time", seconds, "s", {}))
    fair = _fair(context, prepared)
    samples = [_convert_sample(context, prepared, sample, fair) for sample in parsed.samples]
    outcome.samples += [
        sample
        for sample in samples
        if sample.metric not in _SINGLE_MESSAGES or read_unheld_share(sample) <= MOSTLY_UNHELD
    ]
    outcome.findings += _judge_pattern(context, prepared, samples)
    if trace is not None:
        _store_trace(context, prepared, trace, outcome)
    outcome.samples += [*context.machine(result), *context.link_use(result, {}), *context.queues(result)]
    if context.plan.bundles is not None:
        outcome.samples += member_use(context, context.plan.bundles, result)[0]
    lost = ledger.close()
    confirmed = not lost and _as_predicted([sample for sample in outcome.samples if sample.metric == "goodput"])
    behind, lone = (
        None if lost else behind_bounds(samples),
        any(read_unheld_share(one) > MOSTLY_UNHELD for one in samples),
    )
    computing = parsed.computing if parsed.computing is not None or trace is None else trace.computing
    outcome.findings += judge_machine(
        [result], confirmed=confirmed, behind=behind, lone=lone, computing=computing or 0.0
    )
    outcome.findings += lost
    return outcome


def _processes(context: Context, prepared: Prepared, start: mpi.Launch) -> list[Process]:
    """What starts the ranks; over several machines followed by its proxies, which call when it waits for them."""
    first = Process(prepared.job.name, None, start.argv, start.port, start.env, only_env=True, to_hosts=True)
    name = context.plan.topology.host_name
    return [
        first,
        *(
            replace(
                first, id=f"{first.id}-ranks-from-{proxy.rank}", argv=proxy.argv, server_port=None,
                beside=name(prepared.ranks.hosts[proxy.rank]),
            )
            for proxy in start.proxies
        ),
    ]  # fmt: skip


def _as_predicted(goodput: Sequence[Sample]) -> bool:
    """Whether there are pairs with a prediction and all of them meet it.

    Missing it is no fault: messages under way are limited, so a pair over several full links gets less than its fair
    share. Meeting it shows that the lab kept up.
    """
    predicted = [sample.predicted for sample in goodput if sample.predicted is not None]
    measured = [sample.value for sample in goodput if sample.predicted is not None]
    return bool(predicted) and not judge_prediction("tcp", measured, predicted)


def _launch(context: Context, prepared: Prepared) -> mpi.Launch:
    topology, facts = context.plan.topology, context.lab.facts
    names = [topology.host_name(host) for host in range(topology.host_count)]
    mpiexec = build_mpi_jobs.mpi_program("mpiexec")
    libraries = [build_mpi_jobs.shim_path(), *([build_mpi_jobs.tracer_path()] if prepared.trace else [])]
    shim, *tracer = [context.lab.copy(path) for path in libraries]
    context.lab.share_folder(Path(prepared.job.folder))
    context.lab.pop_file(f"{SHARED}/{mpi.TRACE_FILE}")  # of a load before this one, should that have failed
    try:
        start = mpi.launch(
            prepared.job,
            prepared.ranks,
            mpiexec=str(mpiexec),
            libraries=str(build_mpi_jobs.mpi_libraries()),
            shim=shim,
            tracer=tracer[0] if tracer else None,
            folder=facts.folder,
            shared=SHARED,
            guard=guard(facts.host_access),
            interface=facts.interface,
            host_pids=[facts.holders[name] for name in names],
            groups=[facts.groups[name] for name in names] if facts.groups else (),
            pairs=prepared.pairs,
            machines=[facts.machines[name] for name in names] if facts.machines else (),
            slowness=time_limit_factor(context.plan),
        )
    except ValueError as error:
        raise WorkloadError(str(error)) from error
    for name, text in start.files.items():
        context.lab.write(name, text, mode=0o755 if name.endswith(".sh") else 0o644)
    return start


def _read_trace(context: Context, prepared: Prepared) -> mpi_trace.Trace | None:
    """What the ranks have sent each other; its file is kept. None where it was not to be recorded."""
    if not prepared.trace:
        return None
    text = context.lab.pop_file(f"{SHARED}/{mpi.TRACE_FILE}")
    if text:
        context.keep_raw(mpi.TRACE_FILE, text)
    return mpi_trace.parse(text, len(prepared.ranks))


def _store_trace(context: Context, prepared: Prepared, trace: mpi_trace.Trace, outcome: LoadOutcome) -> None:
    """Samples of the traffic between hosts."""
    if trace.not_counted:
        names = ", ".join(trace.not_counted)
        outcome.findings.append((Verdict.WARN, f"the trace is not whole: {names} moved data that is not counted"))
    topology = context.plan.topology
    sent = trace.between_hosts(prepared.ranks.hosts, topology.host_count)
    for source, destination in zip(*sent.nonzero(), strict=True):
        if source != destination:
            labels = {"src": topology.host_name(int(source)), "dst": topology.host_name(int(destination))}
            outcome.samples.append(context.sample("mpi_bytes_sent", int(sent[source, destination]), "B", labels))


def _bytes_from_hosts(result: LoadResult) -> tuple[dict[int, int], int]:
    """Bytes each host sent into the fabric between the snapshots, without the headers that every frame has; frames."""
    sent, frames = {}, 0
    for host, (old, new) in enumerate(zip(result.before.hosts, result.after.hosts, strict=True)):
        sent[host] = new.bytes - old.bytes - _HEADERS * (new.frames - old.frames)
        frames += new.frames - old.frames
    return sent, frames


def _prove_crossing(context: Context, prepared: Prepared, moved: int, sent: Mapping[int, int]) -> None:
    """Let only those jobs pass whose messages were seen on the hosts' links."""
    crossed = sum(sent.values())
    if crossed < moved:
        raise WorkloadError(
            f"the job moved at least {moved} bytes between hosts, but only {crossed} crossed the fabric; "
            "its ranks used another way, so its figures say nothing about the network"
        )
    silent = sorted({host for host in prepared.ranks.hosts if sent[host] == 0})
    if silent:
        names = ", ".join(context.plan.topology.host_name(host) for host in silent[:5])
        raise WorkloadError(
            f"{names}{' and others' if len(silent) > 5 else ''} sent nothing while the job ran; its ranks used another "
            "way or no message passing at all, so its figures say nothing about the network"
        )


def _convert_sample(
    context: Context, prepared: Prepared, sample: Sample, fair: Mapping[tuple[str, str], float]
) -> Sample:
    """Return a job's sample in real-world units, with hosts for ranks, and its prediction or bound."""
    least = mpi_bound(context.plan, prepared.ranks.hosts, sample, exact=context.lab.facts.shapes_idle_ports)
    names = {
        key: prepared.ranks.name(int(sample.labels[key]), context.plan.topology)
        for key in ("src", "dst")
        if key in sample.labels
    }
    sample = replace(sample, labels={**sample.labels, **names})
    if sample.metric in _LABORATORY:
        return replace(sample, labels={**context.labels, **sample.labels, "job": prepared.job.name})
    sample = context.real_world(sample, job=prepared.job.name)
    if sample.metric == "goodput":
        return replace(sample, predicted=fair.get((names["src"], names["dst"])))
    return sample if least is None else add_wire_bound(sample, least, payload_bits(sample))


def _judge_pattern(context: Context, prepared: Prepared, samples: Sequence[Sample]) -> list[Finding]:
    """Whether the pairs of a pattern got more through than the links carry."""
    goodput = [sample.value for sample in samples if sample.metric == "goodput"]
    if prepared.pairs is None or len(goodput) != len(prepared.pairs):
        return []
    plan, hosts = context.plan, prepared.ranks.hosts
    pairs = [(hosts[source], hosts[target]) for source, target in prepared.pairs]
    apart = [number for number, (source, target) in enumerate(pairs) if source != target]
    flows = [pairs[number] for number in apart]
    return judge_goodput(
        wires_of(plan, transport("tcp", 0, plan.scenario.links.mtu)),
        flows,
        logical_ways(plan, flows),
        np.array([goodput[n] for n in apart]),
    )


def _fair(context: Context, prepared: Prepared) -> dict[tuple[str, str], float]:
    """Max-min fair goodput of each pair of a pattern, by the hosts' names; real-world bit/s.

    None over aggregated links: which member a connection of MPI takes is not known beforehand.
    """
    plan = context.plan
    if prepared.pairs is None or plan.bundles is not None:
        return {}
    pairs = [(prepared.ranks.hosts[source], prepared.ranks.hosts[target]) for source, target in prepared.pairs]
    goodput = fair_rates(plan, pairs, transport("tcp", 0, plan.scenario.links.mtu))
    name = plan.topology.host_name
    return {(name(source), name(target)): float(rate) for (source, target), rate in zip(pairs, goodput, strict=True)}
