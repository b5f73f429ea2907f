"""Whether this machine can run the virtual one on its own processors, found out by booting."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import time
from contextlib import suppress
from pathlib import Path

from testbed.base.files import make_folder, write_whole
from testbed.engines.lab.control.registry import FOLDER, OTHER_RECORDS
from testbed.engines.vm.image import Image
from testbed.engines.vm.machine import VirtualMachine, kernel_command
from testbed.engines.vm.stream import run_program

_DEVICE = Path("/dev/kvm")
_LIMIT = 15.0
# Without a disk a kernel that boots gets as far as this, and then panics.
_BOOTED = "Unable to mount root fs"
_STEP = 0.05


def why_no_kvm(image: Image) -> str:
    """Return why KVM does not boot the image's kernel here; empty where it does. Remembered until the next boot."""
    remembered = FOLDER / f"{OTHER_RECORDS}{image.folder.name}.json"
    with suppress(OSError, ValueError, KeyError):
        return str(json.loads(remembered.read_text())["why_not"])
    why_not = _probe(image)
    with suppress(OSError):  # a memory that cannot be written costs the next program the probe
        make_folder(FOLDER)
        write_whole(remembered, json.dumps({"why_not": why_not}).encode())
    return why_not


def _probe(image: Image) -> str:
    if not _DEVICE.exists():
        return f"{_DEVICE} is not there"
    if not os.access(_DEVICE, os.R_OK | os.W_OK):
        return f"{_DEVICE} may not be used by this user"
    with tempfile.TemporaryDirectory() as folder:
        console = Path(folder, "console")
        machine = VirtualMachine("kvm", 1, 512)
        # `rdinit` names no program, so that the kernel looks for a disk and says that it has none.
        command = kernel_command(machine, image, console, "console=ttyS0 panic=-1 rdinit=/none root=/dev/none")
        with tempfile.TemporaryFile() as errors, run_program(command, errors) as process:
            until = time.monotonic() + _LIMIT
            while not _has_booted(console) and process.poll() is None and time.monotonic() < until:
                time.sleep(_STEP)
            with suppress(subprocess.TimeoutExpired):
                process.wait(0.2)
            errors.seek(0)
            said = errors.read().decode(errors="replace").strip().splitlines()
        if _has_booted(console):
            return ""
        return said[0] if said else f"a kernel does not boot with it in {_LIMIT:g} s"


def _has_booted(console: Path) -> bool:
    return console.exists() and _BOOTED in console.read_text(errors="replace")
