"""A run in the virtual machine: planned and proved here, measured inside, stored here in the same form."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from testbed.emulate.npb import VARIABLE
from testbed.emulate.vm.boot import Report, run_job
from testbed.emulate.vm.image import Image, qemu_version, require_image
from testbed.emulate.vm.kvm import why_no_kvm
from testbed.emulate.vm.machine import DEFAULT_SHIFT, Machine
from testbed.emulate.vm.memory import DEFAULT_MEMORY, NEEDED_BY_TESTS, free_memory, needed_memory, require_memory
from testbed.emulate.vm.project import LAB_PARTS
from testbed.errors import CapabilityError, InputError, LabError, Problem, StorageError, TestbedError, VerificationError
from testbed.model import Topology
from testbed.plan import Plan
from testbed.plan.store import plan_to_json
from testbed.results import ResultFolder, load_run
from testbed.run.fidelity import Verdict
from testbed.run.guest import job_text
from testbed.run.run import Outcome, finish, require_loads
from testbed.scenario import Workload
from testbed.workloads import npb
from testbed.workloads.mpi_placement import place_ranks
from testbed.workloads.spec import Mpi, Npb

CONSOLE = "console.log"
DEFAULT_LIMIT = 7200.0
# What is told of a folder inside says nothing here; the folder here is told in its place.
_STORED_INSIDE = re.compile(r"[;\s]*what was stored until then: \S+")
_ERRORS = {kind.__name__: kind for kind in (CapabilityError, LabError, StorageError, VerificationError)}


@dataclass(frozen=True, slots=True)
class Wish:
    """What the user wants of the virtual machine.

    Attributes:
        virtual_time: whether the guest's clock follows its instructions.
        memory: MiB.
        limit: s after which the machine is ended.
        shift: in virtual time one instruction takes 2^shift ns.
    """

    virtual_time: bool = False
    memory: int = DEFAULT_MEMORY
    limit: float = DEFAULT_LIMIT
    shift: int = DEFAULT_SHIFT


def choose_machine(image: Image, wish: Wish, progress: Callable[[str], None]) -> tuple[Machine, str]:
    """Return the machine to start, and why it has no KVM where it could have had it; else an empty text."""
    if wish.virtual_time:
        # One processor: QEMU counts the instructions of all in turn, so more would only share it.
        return Machine("icount", 1, wish.memory, wish.shift), ""
    progress("trying whether KVM boots here")
    why_not = why_no_kvm(image)
    return Machine("tcg" if why_not else "kvm", os.cpu_count() or 1, wish.memory), why_not


def run_in_vm(plan: Plan, results: Path, wish: Wish, progress: Callable[[str], None]) -> Outcome:
    """Run a scenario in a virtual machine and store everything as run_scenario() does.

    Args:
        plan: proved or not; nothing is started without proof.
        results: folder that gets the run's folder.
        wish: what the machine shall be like.
        progress: called with one line on what is going on.

    Raises:
        InputError, VerificationError, CapabilityError: nothing was measured and nothing is left.
        LabError: the lab or the machine broke; the folder stays with the machine's console, marked incomplete.
    """
    require_loads(plan)
    _require_inside(plan)
    version = qemu_version()
    image = require_image()
    require_memory(plan.scenario.source, _memory(plan), wish.memory, free_memory())
    machine, no_kvm = choose_machine(image, wish, progress)
    folder = ResultFolder(results, plan)
    job = {"job.json": job_text("measure"), "plan.json": plan_to_json(plan)}
    progress(f"booting the virtual machine ({machine.accelerator}, {machine.memory} MiB)")
    try:
        report = run_job(machine, image, job, folder.path, folder.path / CONSOLE, progress, wish.limit, parts=LAB_PARTS)
        raise_reported(report)
    except (InputError, CapabilityError, VerificationError):
        shutil.rmtree(folder.path)
        raise
    except LabError as error:
        raise LabError(f"{error}\nwhat was stored until then: {folder.path}") from error
    facts = {
        "accelerator": machine.accelerator,
        "virtual_time": wish.virtual_time,
        **({"shift": machine.shift} if wish.virtual_time else {}),
        **({"why_not_kvm": no_kvm} if no_kvm else {}),
        "processors": machine.processors,
        "memory": machine.memory,
        "qemu": version,
        "image": image.folder.name,
        **report.said["facts"],
        "wall_seconds": round(report.wall_seconds, 3),
    }
    _note(folder, facts)
    run = load_run(folder.path, unfinished=True)
    verdict = Verdict[str(run.manifest["verdict"]).upper()]
    return finish(folder, verdict, tuple(run.manifest["reasons"]), run.samples, progress)


def test_in_vm(
    arguments: Sequence[str],
    wish: Wish,
    console: Path,
    progress: Callable[[str], None],
    line: Callable[[str], None],
) -> int:
    """Run the tests marked `vm` in a virtual machine, with the kernel's Open vSwitch, and return the exit code.

    Args:
        arguments: for pytest; none = all that are marked.
        wish: what the machine shall be like.
        console: file that gets what its console shows.
        progress: called with what is going on.
        line: called with each line that pytest prints.

    Raises:
        CapabilityError: there is no image, no QEMU, or too little memory.
        LabError: the machine broke.
    """
    qemu_version()
    image = require_image()
    require_memory("a lab of the tests", NEEDED_BY_TESTS, wish.memory, free_memory())
    machine, _ = choose_machine(image, wish, progress)
    progress(f"booting the virtual machine ({machine.accelerator}, {machine.memory} MiB)")
    job = {"job.json": job_text("tests", arguments=["-m", "vm", *arguments])}
    report = run_job(machine, image, job, None, console, progress, wish.limit, line)
    raise_reported(report)
    return int(report.said["code"])


def raise_reported(report: Report) -> None:
    """Raise what was raised inside, as if it had been raised here."""
    error: dict[str, Any] | None = report.said.get("error")
    if error is None:
        return
    if error["kind"] == InputError.__name__:
        raise InputError([Problem(place, sentence) for place, sentence in error["problems"]])
    kind: type[TestbedError] = _ERRORS.get(error["kind"], LabError)
    raise kind(_STORED_INSIDE.sub("", error["sentence"]))


def _note(folder: ResultFolder, facts: dict[str, Any]) -> None:
    run = load_run(folder.path, unfinished=True)
    folder.write_json("environment.json", {**run.environment, "engine": "vm", "vm": facts})
    folder.write_json("manifest.json", {**run.manifest, "engine": "vm", "vm": facts})


def _require_inside(plan: Plan) -> None:
    """Raise InputError for what the machine cannot have, since it sees the project and nothing else of this one."""
    problems = []
    for number, load in enumerate(plan.scenario.workloads):
        place = f"{plan.scenario.source}: workloads.{number}"
        if isinstance(load.spec, Mpi) and "/" in load.spec.job:
            sentence = f'"{load.spec.job}" is outside the project, and the virtual machine sees only the project'
            problems.append(Problem(f"{place}.job", f"{sentence}; put the job into mpi_jobs/, or use --engine native"))
        if isinstance(load.spec, Npb) and os.environ.get(VARIABLE):
            sentence = f"{VARIABLE} names a folder that the virtual machine does not see"
            problems.append(Problem(place, f"{sentence}; unset it, or use --engine native"))
    if problems:
        raise InputError(problems)


def _memory(plan: Plan) -> int:
    wiring = plan.wiring
    ranks = [_ranks(load, plan.topology) for load in plan.scenario.workloads]
    return needed_memory(wiring.host_count, 2 * wiring.link_count + wiring.host_count, max(ranks))


def _ranks(load: Workload, topology: Topology) -> int:
    if isinstance(load.spec, Npb):
        return len(place_ranks(npb.as_mpi(load.spec, topology.host_count), topology))
    return len(place_ranks(load.spec, topology)) if isinstance(load.spec, Mpi) else 0
