"""Modelled switches in the virtual machine: their machine code is made here, and taken there.

There a compiler's instructions are translated, which takes twenty times as long. What numba keeps is found by the
versions of Python and of itself, the name of the processor, and the content of the sources: all the same in both.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

from testbed.base import python_isolation
from testbed.base.errors import CapabilityError, LabError, setting
from testbed.base.python_isolation import clean_environment, make_module_command
from testbed.base.resources import CACHE
from testbed.dataplane.kernels.packets_state import PacketModel
from testbed.engines.realtime.shared_memory import write
from testbed.engines.realtime.taps import new_doors
from testbed.engines.vm.stream import lines, run_program

# Code for every processor of x86-64, and so also for the one that QEMU translates.
_PROCESSOR = {"NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": ""}
_PYTHON = (3, 11)  # of Debian 12, and so of the image
_KEPT = "vm-kernels"
_LIMIT = 900.0  # s
# Taps, and netfilter, which holds what hosts send until their modelled network card has room.
_MODULES = ("tun", "nfnetlink_queue", "xt_NFQUEUE")
_PACKAGE = Path(python_isolation.__file__).absolute().parents[1]


def require_python() -> None:
    """Raise CapabilityError unless machine code of this Python is that of the machine's."""
    if sys.version_info[:2] != _PYTHON:
        here, there = (".".join(map(str, one)) for one in (sys.version_info[:2], _PYTHON))
        raise CapabilityError(
            f"this Python is {here}, and for modelled switches in the virtual machine Python {there} must compile, "
            f"that of Debian 12; {setting('vm.engine', 'ovs')} does without"
        )


def compile_model(model: PacketModel, mtu: int, progress: Callable[[str], None]) -> dict[str, Path]:
    """Compile what computes a model, unless it is kept: where each file belongs in the project → the file here.

    Raises:
        CapabilityError: no folder can keep it.
        LabError: it could not be compiled.
    """
    kept = _require_folder()
    progress("compiling the modelled switches for the virtual machine, unless they are")
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryFile() as errors:
        files = (Path(folder, "model"), Path(folder, "doors"))
        write(files[0], model)
        write(files[1], new_doors(model.fabric.hosts, len(model.fabric.place), mtu))
        environment = {**clean_environment(), **_PROCESSOR, "NUMBA_CACHE_DIR": str(kept), "NUMBA_DISABLE_JIT": "0"}
        command = make_module_command("testbed.engines.realtime.load", *map(str, files))
        with run_program(command, errors, Path(python_isolation.FOLDER), environment) as process:
            try:
                list(lines(process, until=time.monotonic() + _LIMIT))
            except TimeoutError as error:
                raise LabError(f"the modelled switches were not compiled in {_LIMIT:g} s") from error
            code = process.wait()
        errors.seek(0)
        said = errors.read().decode(errors="replace").strip().splitlines()
    if code:
        raise LabError(["the modelled switches cannot be compiled:", *said[-1:]])
    found = _list_machine_code(kept)
    if not found:
        raise LabError(["machine code of the modelled switches was not kept:", *said[-1:]])
    return found


def _require_folder() -> Path:
    """A folder of this user's for machine code."""
    homes = (CACHE, Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "testbed")
    for home in homes:
        try:
            (home / _KEPT).mkdir(parents=True, exist_ok=True)
        except OSError:
            continue
        if os.access(home / _KEPT, os.W_OK):
            return home / _KEPT
    raise CapabilityError(
        f"machine code for the virtual machine cannot be kept: neither {homes[0]} nor {homes[1]} can be written; make "
        "one of them writable, or name another with XDG_CACHE_HOME"
    )


def _list_machine_code(kept: Path) -> dict[str, Path]:
    """What numba keeps of the project in a folder of its own, by where it looks for it beside the sources."""
    found: dict[str, Path] = {}
    for folder in (place for place in _PACKAGE.rglob("*") if place.is_dir() and place.name != "__pycache__"):
        # As numba names it: after the folder of the source, with a digest of its whole path.
        there = kept / f"{folder.name}_{hashlib.sha1(str(folder).encode()).hexdigest()}"
        beside = folder.relative_to(_PACKAGE.parent) / "__pycache__"
        found |= {str(beside / file.name): file for file in there.glob("*.nb[ic]")}
    return found


def compiler_versions() -> dict[str, str]:
    """What machine code is only good for: versions of Python and numba."""
    return {"Python": ".".join(map(str, sys.version_info[:2])), "numba": version("numba")}


def prepare_for_model(compiled_by: dict[str, str]) -> None:
    """In the machine: make ready for modelled switches, whose machine code was compiled by what has these versions.

    Raises:
        CapabilityError: it is no good here, or the kernel has no taps.
    """
    for name, found in compiler_versions().items():
        if compiled_by[name] != found:
            raise CapabilityError(
                f"the virtual machine has {name} {found}, and its modelled switches were compiled by "
                f"{compiled_by[name]}; install the project's own versions (make setup), or choose vm.engine: ovs"
            )
    os.environ |= _PROCESSOR
    try:
        subprocess.run(["modprobe", "-a", *_MODULES], check=True, capture_output=True, text=True)
    except (OSError, subprocess.CalledProcessError) as error:
        said = error.stderr.strip() if isinstance(error, subprocess.CalledProcessError) else error
        raise CapabilityError(f"the virtual machine's kernel has not what modelled switches need: {said}") from error
