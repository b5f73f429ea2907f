"""Boot the virtual machine with a job, hear what it reports, and say what went wrong where it ends without a result."""

from __future__ import annotations

import json
import os
import re
import resource
import shutil
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from testbed.base.errors import CapabilityError, LabError
from testbed.base.files import write_whole
from testbed.engines.vm.image import Image
from testbed.engines.vm.machine import VirtualMachine, qemu_command
from testbed.engines.vm.project import ALL_PARTS, pack_project, unpack_results
from testbed.engines.vm.stream import lines, run_program, starved_seconds

_DISKS = Path("/var/tmp")
_NEEDED_BYTES = 256 << 20  # for these; results rarely take more than a few megabytes
RESULTS_BYTES = 2 << 30  # of memory for results; the file is sparse
_MEMORY_UNIT = 128 << 20  # the kernel takes memory that is plugged in by as many bytes
_BOOT_LIMIT = 180.0
_PANIC = re.compile(r"Kernel panic - not syncing: (.*)")
_SHOWN_LINES = 8


@dataclass(frozen=True, slots=True)
class Report:
    """What the guest said at its end."""

    said: Mapping[str, Any]  # `code`, or `error` with what was raised; and facts about the guest
    wall_seconds: float  # from QEMU's start to its end
    processor_seconds: float = 0.0  # that QEMU used of this machine
    slept_seconds: float = 0.0  # that this machine slept meanwhile


def run_job(
    machine: VirtualMachine,
    image: Image,
    job: Mapping[str, str],
    target: Path | None,
    console: Path,
    progress: Callable[[str], None],
    limit: float,
    line: Callable[[str], None] = lambda text: None,
    parts: Sequence[str] = ALL_PARTS,
    more: Mapping[str, Path] | None = None,
    booted: Callable[[float, float], None] = lambda busy, used: None,
) -> Report:
    """Run a job in a virtual machine of its own, which ends with this call, however that ends.

    `job` is name → text of the files that experiments/run/vm_guest.py reads; `parts` of the project go in, and `more`
    files, see pack_project(); `target` gets the results, None = there are none; `console` gets what the machine's
    console shows; after `limit` s the machine is ended; `line` is called with each line of a job's own output; `booted`
    once the machine is up, with the seconds that its processor was busy until then by its own clock, and the seconds
    that QEMU used of this machine's processors for it.

    Raises:
        CapabilityError: there is no room for the machine's disks; nothing was started.
        LabError: the machine did not boot, panicked, hung, or ended without a result; the console is kept.
    """
    free = shutil.disk_usage(_DISKS).free
    if free < _NEEDED_BYTES:
        raise CapabilityError(
            f"the project and the results of a virtual machine take up to {_NEEDED_BYTES >> 20} MB in {_DISKS}, which "
            f"has {free >> 20} MB left; nothing was started; make room and repeat"
        )
    with tempfile.TemporaryDirectory(prefix="testbed-vm-", dir=_DISKS) as folder:
        project, results, errors, shown = (
            Path(folder, name) for name in ("project.tar", "results", "errors", "console")
        )
        pack_project(project, job, parts, more=more)
        os.truncate(project, -(-project.stat().st_size // _MEMORY_UNIT) * _MEMORY_UNIT)  # zeros follow an archive
        with results.open("wb") as file:
            file.truncate(RESULTS_BYTES)
        begun, slept_before, used_before = time.monotonic(), _measure_sleep(), _used_by_children()
        command = qemu_command(machine, image, project, results, shown)
        last: dict[str, Any] = {}
        try:
            with errors.open("wb") as sink, run_program(command, sink) as process:
                for text in lines(process, begun + limit, _BOOT_LIMIT, starved=partial(starved_seconds, process.pid)):
                    said = _parse_answer(text)
                    if "progress" in said:
                        progress(f"[VM] {said['progress']}")
                    if "line" in said:
                        line(said["line"])
                    if "busy" in said:
                        booted(said["busy"], _used_by(process.pid))
                    if "code" in said or "error" in said:
                        last = said
                process.wait()
        except TimeoutError as error:
            raise LabError(_failure(f"the virtual machine was ended: {error}", shown, errors)) from error
        finally:
            if shown.exists():
                write_whole(console, shown.read_bytes())
        if "code" not in last and "error" not in last:
            raise LabError(_failure("the virtual machine ended without a result", shown, errors))
        if target is not None:
            progress("bringing the results back")
            unpack_results(results, target)
        used, slept = _used_by_children() - used_before, _measure_sleep() - slept_before
        return Report(last, time.monotonic() - begun, used, slept)


def _measure_sleep() -> float:
    """Seconds that this machine has slept since it started: one of its clocks goes on then, and the other does not."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) - time.clock_gettime(time.CLOCK_MONOTONIC)


def _used_by_children() -> float:
    """Processor seconds of all programs that this one started and that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _used_by(pid: int) -> float:
    """Processor seconds of a running program."""
    words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


def _parse_answer(text: str) -> dict[str, Any]:
    try:
        said = json.loads(text)
    except ValueError:
        return {}  # torn by the machine's end, which the result's absence then shows
    return said if isinstance(said, dict) else {}


def _failure(what: str, console: Path, errors: Path) -> list[str]:
    shown = console.read_text(errors="replace") if console.exists() else ""
    panic = _PANIC.search(shown)
    if panic:
        what = f"the kernel of the virtual machine panicked: {panic.group(1).strip()}"
    said = errors.read_text(errors="replace").strip().splitlines()[-_SHOWN_LINES:]
    tail = [text for text in shown.splitlines() if text.strip()][-_SHOWN_LINES:]
    return [what, *(f"  QEMU: {text}" for text in said), *(f"  console: {text}" for text in tail)]
