"""An MPI job, one rank a host, with the proof that its bytes crossed the fabric."""

from __future__ import annotations

from dataclasses import replace

from testbed.emulate import jobs
from testbed.emulate.names import port_interface
from testbed.errors import WorkloadError
from testbed.model import Sample
from testbed.predict import alltoall_bound, transport
from testbed.run.context import Context, FrameLedger, LoadOutcome, LoadResult
from testbed.run.fidelity import Verdict, judge_processor, processor
from testbed.workloads import mpi
from testbed.workloads.process import Process
from testbed.workloads.spec import Mpi

# A job cannot beat the fullest channel; a little is clock and rounding.
_FASTER_THAN_POSSIBLE = 0.98
# A shaped port lets two frames pass at once after a pause, so rates of shorter messages say nothing about the link.
_SMOOTHED_BYTES = 32 * 1024


def run_mpi(context: Context, spec: Mpi) -> LoadOutcome:
    """Build and run a job.

    Raises:
        WorkloadError: it failed, its output is not that of a success, or its bytes did not cross the fabric.
    """
    topology, outcome = context.plan.topology, LoadOutcome()
    job = jobs.read_job(spec.job, "job")
    job = replace(
        job,
        args=job.args if spec.args is None else spec.args,
        time_limit=job.time_limit if spec.time_limit is None else spec.time_limit,
    )
    context.progress(f"building {job.name}")
    jobs.build_job(job.name)
    holders = context.lab.built["holders"]
    wrapper_path = "/run/lab/rank.sh"
    try:
        start = mpi.launch(
            job,
            topology.host_count,
            mpiexec=str(jobs.mpi_program("mpiexec")),
            shim=context.lab.ask("copy", source=str(jobs.shim_path()), name=jobs.shim_path().name),
            wrapper_path=wrapper_path,
            host_pids=[holders[topology.host_name(host)] for host in range(topology.host_count)],
        )
    except ValueError as error:
        raise WorkloadError(str(error)) from error
    context.lab.write("rank.sh", start.wrapper, mode=0o755)
    ledger = FrameLedger(context.lab)
    context.progress(f"{job.name} on {topology.host_count} ranks, at most {job.time_limit:g} s")
    process = Process(job.name, None, start.argv, env=start.env, only_env=True)
    result = context.run([process], job.time_limit)
    text = result.outputs[process.id]["stdout"]
    context.keep_raw("output.txt", text)
    try:
        parsed = mpi.check(job, text)
    except mpi.JobOutputError as error:
        raise WorkloadError(str(error)) from error
    crossed = _bytes_from_hosts(context, result)
    if crossed < parsed.fabric_bytes:
        raise WorkloadError(
            f"the job moved at least {parsed.fabric_bytes} bytes between hosts, but only {crossed} crossed the fabric; "
            "its ranks used another way, so its figures say nothing about the network"
        )
    outcome.samples.append(context.sample("mpi_bytes_moved", parsed.fabric_bytes, "B", {}))
    outcome.samples.append(context.sample("mpi_bytes_crossed", crossed, "B", {}))
    for sample in parsed.samples:
        if sample.metric == "mpi_bandwidth" and int(sample.labels["bytes"]) < _SMOOTHED_BYTES:
            continue
        outcome.samples.append(_with_bound(context, context.real_world(sample, job=job.name), outcome))
    outcome.samples += [*context.machine(result), *context.link_use(result, {})]
    outcome.findings += [*judge_processor(*processor(result.before, result.after)), *ledger.close()]
    return outcome


def _bytes_from_hosts(context: Context, result: LoadResult) -> int:
    """Bytes all hosts sent into the fabric between the snapshots."""
    topology = context.plan.topology
    total = 0
    for host in range(topology.host_count):
        name = port_interface(topology.switch_name(int(topology.host_switch[host])), topology.host_port[host])
        total += result.after["ports"][name]["rx_bytes"] - result.before["ports"][name]["rx_bytes"]
    return total


def _with_bound(context: Context, sample: Sample, outcome: LoadOutcome) -> Sample:
    """Put the least possible time beside an all-to-all, and distrust what is faster."""
    if sample.metric != "mpi_alltoall_time":
        return sample
    plan, links = context.plan, context.plan.scenario.links
    bound = alltoall_bound(
        plan.topology, plan.routes, float(sample.labels["bytes"]), transport("tcp", 0), links.rate, links.edge_rate
    )
    if sample.value < bound * _FASTER_THAN_POSSIBLE:
        outcome.findings.append((Verdict.INVALID, "an all-to-all was faster than the fullest channel allows"))
    return replace(sample, predicted=bound)
