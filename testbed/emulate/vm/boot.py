"""Boot the virtual machine with a job, hear what it reports, and say what went wrong where it ends without a result."""

from __future__ import annotations

import json
import os
import re
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from testbed.emulate.vm.image import Image
from testbed.emulate.vm.machine import Machine, qemu_command
from testbed.emulate.vm.project import ALL_PARTS, pack_project, unpack_results
from testbed.emulate.vm.stream import lines, started
from testbed.errors import LabError
from testbed.files import write_whole

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


def run_job(
    machine: Machine,
    image: Image,
    job: Mapping[str, str],
    target: Path | None,
    console: Path,
    progress: Callable[[str], None],
    limit: float,
    line: Callable[[str], None] = lambda text: None,
    parts: Sequence[str] = ALL_PARTS,
) -> Report:
    """Run a job in a virtual machine of its own, which ends with this call, however that ends.

    `job` is name → text of the files that testbed.run.guest reads; `target` gets the results, None = there are none;
    `console` gets what the machine's console shows; after `limit` s the machine is ended; `line` is called with each
    line of a job's own output.

    Raises:
        LabError: the machine did not boot, panicked, hung, or ended without a result; the console is kept.
    """
    with tempfile.TemporaryDirectory(prefix="testbed-vm-", dir="/var/tmp") as folder:
        project, results, errors, shown = (
            Path(folder, name) for name in ("project.tar", "results", "errors", "console")
        )
        pack_project(project, job, parts)
        os.truncate(project, -(-project.stat().st_size // _MEMORY_UNIT) * _MEMORY_UNIT)  # zeros follow an archive
        with results.open("wb") as file:
            file.truncate(RESULTS_BYTES)
        begun = time.monotonic()
        command = qemu_command(machine, image, project, results, shown)
        last: dict[str, object] = {}
        try:
            with errors.open("wb") as sink, started(command, sink) as process:
                for text in lines(process, until=begun + limit, silence=_BOOT_LIMIT):
                    last = _hear(text, last, progress, line)
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
        return Report(last, time.monotonic() - begun)


def _hear(
    text: str, last: dict[str, object], progress: Callable[[str], None], line: Callable[[str], None]
) -> dict[str, object]:
    try:
        said = json.loads(text)
    except ValueError:
        return last  # torn by the machine's end, which the result's absence then shows
    if "progress" in said:
        progress(f"[VM] {said['progress']}")
    if "line" in said:
        line(said["line"])
    return said if "code" in said or "error" in said else last


def _failure(what: str, console: Path, errors: Path) -> list[str]:
    shown = console.read_text(errors="replace") if console.exists() else ""
    panic = _PANIC.search(shown)
    if panic:
        what = f"the kernel of the virtual machine panicked: {panic.group(1).strip()}"
    said = errors.read_text(errors="replace").strip().splitlines()[-_SHOWN_LINES:]
    tail = [text for text in shown.splitlines() if text.strip()][-_SHOWN_LINES:]
    return [what, *(f"  QEMU: {text}" for text in said), *(f"  console: {text}" for text in tail)]
