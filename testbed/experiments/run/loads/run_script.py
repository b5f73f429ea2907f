"""A program of one's own in some hosts at once, with the time it takes."""

from __future__ import annotations

import os
from pathlib import Path

from testbed.base.errors import InputError
from testbed.experiments.run.checks.fidelity import judge_machine
from testbed.experiments.run.loads.context import Context, FrameLedger, LoadOutcome, LoadResult
from testbed.planning import Plan
from testbed.scenario.workloads.script import Script, commands, hosts_of


def script_file(plan: Plan, spec: Script, place: str = "run") -> Path:
    """The file that is run, seen from the scenario's folder.

    Raises:
        InputError: there is none, or it cannot be executed.
    """
    source = plan.scenario.source
    file = (Path(source).resolve().parent / spec.run).resolve()
    if not file.is_file():
        raise InputError.one(place, f'there is no file "{spec.run}": {file} is none', source)
    if not os.access(file, os.X_OK):
        raise InputError.one(place, f'"{spec.run}" cannot be executed; type: chmod +x {file}', source)
    if not file.read_bytes()[:4].startswith((b"#!", b"\x7fELF")):
        raise InputError.one(place, f'"{spec.run}" should begin with a line such as #!/bin/sh, or be a program', source)
    return file


def prepare_script(plan: Plan, spec: Script, place: str) -> None:
    """Find the file; see script_file()."""
    script_file(plan, spec, f"{place}.run")


def run_script(context: Context, spec: Script) -> LoadOutcome:
    """Run it in its hosts, all at once.

    Its time has parts of links, which are slower in the lab, and of processors, which are not: no factor makes it time
    of the real world, so it stays laboratory time. It is known to a fiftieth of a second.

    Raises:
        WorkloadError: it failed in a host, or took too long.
    """
    plan, topology, outcome = context.plan, context.plan.topology, LoadOutcome()
    source = script_file(plan, spec)
    context.lab.share_folder(source.resolve().parent)  # what it reads beside itself
    file = context.lab.copy(source)
    processes = commands(spec, file, topology, context.scale.dilation)
    ledger, results = FrameLedger(context), []
    for repeat in range(1, spec.repeats + 1):
        labels = {"repeat": str(repeat)}
        context.progress(f"{len(processes)} hosts, at most {spec.time_limit:g} s, repeat {repeat} of {spec.repeats}")
        result = context.run(processes, spec.time_limit, watched=True)
        outcome.add_recording(result)
        results.append(result)
        for process in processes:
            output = result.outputs[process.id]
            context.keep_raw(f"repeat{repeat}/{process.id}.txt", output.stdout)
            if output.stderr:
                context.keep_raw(f"repeat{repeat}/{process.id}-errors.txt", output.stderr)
        times = {process.id: result.outputs[process.id].seconds for process in processes}
        # Laboratory time, which Context.sample() would take for time to be converted.
        outcome.samples.append(context.laboratory("script_lab_time", max(times.values()), "s", labels))
        outcome.samples += [
            context.laboratory("script_lab_host_time", seconds, "s", {**labels, "host": name})
            for name, seconds in times.items()
        ]
        sent = _bytes_sent(result, hosts_of(spec, topology))
        outcome.samples.append(context.sample("script_bytes_crossed", sent, "B", labels))
        outcome.samples += [*context.machine(result, **labels), *context.link_use(result, {}, **labels)]
        outcome.samples += context.queues(result, **labels)
    lost = ledger.close()
    outcome.findings += [*judge_machine(results), *lost]
    return outcome


def _bytes_sent(result: LoadResult, hosts: list[int]) -> int:
    """Bytes that some hosts sent into the fabric, with Ethernet headers."""
    return sum(result.after.hosts[host].bytes - result.before.hosts[host].bytes for host in hosts)
