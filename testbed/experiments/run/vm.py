"""A run in the virtual machine: planned and proved here, measured inside, stored here in the same form."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypedDict

from testbed.base.errors import (
    CapabilityError,
    InputError,
    LabError,
    Problem,
    StorageError,
    TestbedError,
    VerificationError,
    setting,
)
from testbed.base.files import remove_folder
from testbed.base.units import format_estimate
from testbed.dataplane.kernels.packets_state import PacketModel
from testbed.engines.vm.boot import Report, run_job
from testbed.engines.vm.image import Image, qemu_version, require_image
from testbed.engines.vm.kvm import why_no_kvm
from testbed.engines.vm.machine import NEEDED_BY_TESTS, VirtualMachine, free_memory, needed_memory, require_memory
from testbed.engines.vm.modelled import compile_model, compiler_versions, require_python
from testbed.engines.vm.project import LAB_PARTS
from testbed.engines.vm.speed import keep_speed, read_speed
from testbed.experiments.run.checks.fidelity import Judgement, Verdict
from testbed.experiments.run.dilation.estimate import run_instructions
from testbed.experiments.run.dilation.virtual_time import dilation_in_virtual_time, refuse_translated
from testbed.experiments.run.engine import Engine, MeasuredRun, Prerequisites, Progress
from testbed.experiments.run.vm_guest import job_text
from testbed.planning import Plan
from testbed.planning.rates import at_dilation
from testbed.planning.store import plan_to_json
from testbed.results import ResultFolder, load_run
from testbed.scenario.engines import VmOptions
from testbed.scenario.workloads import WORKLOADS

CONSOLE = "console.log"
_SLEEP = 1.0  # s that clocks of a machine that does not sleep are apart at most
_ERRORS = {kind.__name__: kind for kind in (CapabilityError, LabError, StorageError, VerificationError)}


def choose_machine(image: Image, options: VmOptions, progress: Progress, seed: int = 1) -> tuple[VirtualMachine, str]:
    """Return the machine to start, and why it has no KVM where it could have had it; else an empty text.

    `seed` is of the random numbers in virtual time.
    """
    # One processor: QEMU counts the instructions of all in turn, so more would only share it.
    virtual = VirtualMachine("icount", 1, options.memory, options.shift, seed)
    if options.virtual_time is True:
        return virtual, ""
    progress("trying whether KVM boots here")
    why_not = why_no_kvm(image)
    if not why_not:
        return VirtualMachine("kvm", os.cpu_count() or 1, options.memory), ""
    if options.virtual_time == "auto":
        return virtual, why_not
    return VirtualMachine("tcg", os.cpu_count() or 1, options.memory), why_not


def run_tests_in_vm(
    arguments: Sequence[str],
    options: VmOptions,
    console: Path,
    progress: Progress,
    line: Callable[[str], None],
) -> int:
    """Run the tests marked `vm` in a virtual machine, with the kernel's Open vSwitch, and return the exit code.

    `arguments` are for pytest, none = all that are marked; `console` gets what the machine's console shows; `line` is
    called with each line that pytest prints.

    Raises:
        CapabilityError: there is no image, no QEMU, or too little memory.
        LabError: the machine broke.
    """
    qemu_version()
    image = require_image()
    require_memory("a lab of the tests", NEEDED_BY_TESTS, options.memory, free_memory())
    machine, _ = choose_machine(image, options, progress)
    progress(_describe_boot(machine, ""))
    job = {"job.json": job_text("tests", arguments=["-m", "vm", *arguments])}
    report = run_job(machine, image, job, None, console, progress, options.limit, line)
    raise_reported(report)
    return int(report.said["code"])


class _Raised(TypedDict, total=False):
    kind: str
    sentence: str  # or several, a line each
    problems: list[tuple[str, str]]  # of an InputError


def raise_reported(report: Report) -> None:
    """Raise what was raised inside, as if it had been raised here."""
    error: _Raised | None = report.said.get("error")
    if error is None:
        return
    if error["kind"] == InputError.__name__:
        raise InputError([Problem(*problem) for problem in error["problems"]])
    lines = error["sentence"].split("\n")
    if error["kind"] == VerificationError.__name__:
        raise VerificationError(lines[0], details=[line.strip() for line in lines[1:]])
    kind: type[TestbedError] = _ERRORS.get(error["kind"], LabError)
    raise kind(lines)


def instruction_seconds(machine: VirtualMachine) -> float:
    """What an instruction takes in virtual time."""
    return 1e-9 * float(1 << machine.shift)


def _work(plan: Plan, instruction: float) -> float:
    """Instructions of a run in virtual time, about."""
    if plan.scenario.lab.dilation == "auto":
        plan = at_dilation(plan, dilation_in_virtual_time(plan, instruction, None).dilation)
    return run_instructions(plan)


def _takes(work: float | None, speed: float | None, limit: float) -> str:
    """How long so many instructions take on a quiet machine, in words; `limit`: s until the virtual one is ended."""
    if work is None:
        return ""
    if speed is None:
        return "how long it takes is said once it is up"
    seconds = work / speed
    beyond = (
        ""
        if seconds < limit
        else f", but it is ended after {limit:g} s; {setting('vm.limit', _suggest_limit(seconds))} gives it more"
    )
    return f"{format_estimate(seconds)} on a quiet machine{beyond}"


def _suggest_limit(seconds: float) -> int:
    """Whole minutes, in s, that are surely enough."""
    return 60 * math.ceil(2 * seconds / 60)


_CLOCKS = {
    "kvm": "in real time, on this machine's processors (KVM)",
    "tcg": "in real time, its instructions translated",
    "icount": "in virtual time",
}


def _describe_boot(machine: VirtualMachine, no_kvm: str, takes: str = "") -> str:
    """What is booted, in which time and why, and how long that takes."""
    why = ", since KVM does not boot here" if no_kvm else ""
    more = [f"KVM says: {no_kvm}"] if no_kvm else []
    if machine.accelerator == "icount":
        more.insert(0, "its clock counts instructions, so that figures do not depend on how fast this machine is")
    what = f"booting the virtual machine, {machine.memory} MiB, {_CLOCKS[machine.accelerator]}{why}"
    return f"{what}{f'; {takes}' if takes else ''}{': ' if more else ''}{'; '.join(more)}"


def _memory(plan: Plan) -> int:
    wiring = plan.wiring
    ranks = [WORKLOADS[load.kind].ranks(load.spec, plan.topology) for load in plan.scenario.workloads]
    return needed_memory(wiring.host_count, 2 * wiring.link_count + wiring.host_count, max(ranks))


def _settings(plan: Plan) -> None:
    """Raise InputError where what a scenario says of modelled switches is not sound."""
    from testbed.engines.simulate.switch_model import live_settings  # noqa: PLC0415 - only where they are asked for

    live_settings(plan)


def _model(plan: Plan) -> PacketModel:
    from testbed.engines.simulate.switch_model import live_model  # noqa: PLC0415 - likewise

    return live_model(plan)


class VirtualMachineEngine(Engine):
    """A virtual machine, in which a lab runs."""

    def find_missing(self, plan: Plan, progress: Progress) -> Prerequisites:
        """What scenario or machine lack for a lab in the virtual machine.

        It sees the project and nothing else of this machine; what it lacks inside it says itself.
        """
        del progress
        problems = [
            Problem(
                f"workloads.{number}.{problem.key}".removesuffix("."),
                f"{problem.sentence}, for the virtual machine sees only the project; or set engine: ovs",
                plan.scenario.source,
            )
            for number, load in enumerate(plan.scenario.workloads)
            for problem in WORKLOADS[load.kind].outside(load.spec, os.environ)
        ]
        if plan.scenario.plugins:
            sentence = "the virtual machine sees only the project, and no plug-ins; set engine: ovs"
            problems.append(Problem("plugins", sentence, plan.scenario.source))
        lacking: list[str] = []
        modelled = plan.scenario.carrier == "realtime"
        if modelled:
            try:
                _settings(plan)
            except InputError as error:
                problems += error.problems
        for check in (
            qemu_version,
            require_image,
            require_python if modelled else lambda: None,
            lambda: require_memory(plan.scenario.source, _memory(plan), plan.scenario.vm.memory, free_memory()),
        ):
            try:
                check()
            except CapabilityError as error:
                lacking += error.lines
                break
        return Prerequisites(tuple(problems), tuple(lacking))

    def measure(self, plan: Plan, results: Path, progress: Progress) -> MeasuredRun:
        """Run the loads in a virtual machine, and store all but the report; see Engine."""
        version, image, options = qemu_version(), require_image(), plan.scenario.vm
        machine, no_kvm = choose_machine(image, options, progress, plan.scenario.lab.seed)
        modelled = plan.scenario.carrier == "realtime"
        if machine.accelerator == "tcg" and not modelled:
            refuse_translated(plan)
        code = compile_model(_model(plan), plan.scenario.links.mtu, progress) if modelled else {}
        folder = ResultFolder(results, plan)
        virtual = machine.accelerator == "icount"
        instruction = instruction_seconds(machine)
        job = {
            "job.json": job_text(
                "measure",
                instruction_seconds=instruction if virtual else None,
                compiled_by=compiler_versions() if modelled else None,
            ),
            "plan.json": plan_to_json(plan),
        }
        work = _work(plan, instruction) if virtual else None
        known = read_speed(version) if work else None
        progress(_describe_boot(machine, no_kvm, _takes(work, known, options.limit)))

        def keep_boot_speed(busy: float, used: float) -> None:
            """Learn how fast this machine is, and say what is left to do."""
            if work and busy > 0 and used > 0:
                speed = busy / instruction / used
                keep_speed(version, speed)
                progress(f"the machine is up, {_takes(work - busy / instruction, speed, options.limit)} to go")

        begun = time.time()
        try:
            report = run_job(
                machine, image, job, folder.path, folder.path / CONSOLE, progress, options.limit, parts=LAB_PARTS,
                more=code, booted=keep_boot_speed,
            )  # fmt: skip
            raise_reported(report)
            if report.slept_seconds > _SLEEP and not virtual:
                raise LabError(
                    f"this machine slept for {report.slept_seconds:.0f} s while the virtual one ran by its clock, so "
                    "the figures are void; run it again, or let it count instructions (vm.virtual_time: true), "
                    "which sleep does not touch"
                )
        except (InputError, CapabilityError, VerificationError):
            remove_folder(folder.path)
            raise
        except LabError as error:
            raise LabError(error.lines, folder.path) from error
        facts = {
            "accelerator": machine.accelerator,
            "virtual_time": virtual,
            **({"shift": machine.shift} if virtual else {}),
            **({"why_not_kvm": no_kvm} if no_kvm else {}),
            "processors": machine.processors,
            "memory": machine.memory,
            "qemu": version,
            "image": image.folder.name,
            **report.said["facts"],
            "wall_seconds": round(report.wall_seconds, 3),
            "processor_seconds": round(report.processor_seconds, 3),
        }
        run = load_run(folder.path, unfinished=True)
        folder.write_json("environment.json", {**run.environment, "vm": facts})
        # The guest's date is another one in virtual time.
        times = {
            name: time.strftime("%Y-%m-%dT%H:%M:%S%z", time.localtime(at))
            for name, at in (("started", begun), ("finished", time.time()))
        }
        folder.write_json("manifest.json", {**run.manifest, **times, "vm": facts})
        verdict = Verdict[str(run.manifest["verdict"]).upper()]
        return MeasuredRun(folder, Judgement(verdict, tuple(run.manifest["reasons"])), run.samples)
