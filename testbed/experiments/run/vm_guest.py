"""Inside the virtual machine: do the job that the project's disk brought, and report through the serial port.

    python -m testbed.experiments.run.vm_guest JOB RESULTS

A report is a line of JSON: `progress`, `line`, nothing but a sign of life, and at the end `code` or `error`.
"""

from __future__ import annotations

import json
import os
import platform
import sys
import threading
import traceback
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from testbed.base.errors import InputError, TestbedError
from testbed.engines.vm.suite import run_tests
from testbed.experiments.run.dilation.choose import choose_dilation
from testbed.experiments.run.dilation.virtual_time import choose_in_virtual_time
from testbed.experiments.run.open_vswitch import OpenVSwitchEngine
from testbed.planning.store import plan_from_json

if TYPE_CHECKING:
    from testbed.experiments.run.realtime import RealtimeEngine

_SIGN_OF_LIFE = 1.0  # s by this clock, which may be a virtual one and slow


def job_text(kind: str, **further: Any) -> str:
    """Return the file job.json of a job.

    `kind`: `measure`, which also needs a plan.json, with `instruction_seconds`: what an instruction takes in virtual
    time, None in real time, and `compiled_by`: versions of what compiled the modelled switches, None where there are
    none; or `tests`, with `arguments` for pytest.
    """
    return json.dumps({"kind": kind, **further})


class Port:
    """The way out of the machine. `file` is the serial port's device."""

    def __init__(self, file: Path) -> None:
        self._file = file.open("w", encoding="utf-8")
        self._lock = threading.Lock()

    def say(self, **said: Any) -> None:
        """Send one line."""
        with self._lock:
            self._file.write(json.dumps(said) + "\n")
            self._file.flush()


class Watch(threading.Thread):
    """Gives a sign of life now and then, and notes the most memory in use.

    Attributes:
        memory: MiB.
    """

    def __init__(self, port: Port) -> None:
        super().__init__(daemon=True)
        self.memory = 0
        self._port = port
        self._ended = threading.Event()

    def run(self) -> None:
        """Do so until stop()."""
        while True:
            self.memory = max(self.memory, _memory_in_use())
            self._port.say()
            if self._ended.wait(_SIGN_OF_LIFE):
                return

    def stop(self) -> None:
        """End."""
        self._ended.set()
        self.join()


def main(job: Path, results: Path) -> int:
    """Do the job; returns the exit code, which is only for the console."""
    booted = _uptime()
    port = Port(next(iter(sorted(Path("/dev").glob("vport*p1")))))
    watch = Watch(port)
    watch.start()
    port.say(progress="the machine is up", busy=_busy())
    last: dict[str, object]
    try:
        last = {"code": _JOBS[json.loads((job / "job.json").read_text())["kind"]](job, results, port)}
    except TestbedError as error:
        problems = [[p.key, p.sentence, p.file] for p in error.problems] if isinstance(error, InputError) else []
        last = {"error": {"kind": type(error).__name__, "sentence": error.sentence, "problems": problems}}
    except BaseException as error:
        traceback.print_exc()
        last = {"error": {"kind": "LabError", "sentence": f"{error!r} inside the virtual machine", "problems": []}}
    watch.stop()
    facts = {
        "guest_kernel": platform.release(),
        "guest_seconds": round(_uptime(), 3),
        "busy_seconds": round(_busy(), 3),
        "boot_seconds": round(booted, 3),
        "guest_memory": watch.memory,
    }
    port.say(**last, facts=facts)
    return 0 if last.get("code") == 0 else 1


def _measure(job: Path, results: Path, port: Port) -> int:
    plan = plan_from_json((job / "plan.json").read_text())

    def say(text: str) -> None:
        port.say(progress=text)

    told = json.loads((job / "job.json").read_text())
    taken, compiled_by = told["instruction_seconds"], told["compiled_by"]
    choose = choose_dilation if taken is None else partial(choose_in_virtual_time, instruction_seconds=taken)
    engine = OpenVSwitchEngine() if compiled_by is None else _modelled_switches(compiled_by)
    engine.find_missing(plan, say, tries=taken is None).raise_if_missing()
    engine.measure(plan, results, say, choose)
    return 0


def _modelled_switches(compiled_by: dict[str, str]) -> RealtimeEngine:
    from testbed.engines.vm.modelled import prepare_for_model  # noqa: PLC0415 - takes 1 s here, for few runs
    from testbed.experiments.run.realtime import RealtimeEngine  # noqa: PLC0415 - likewise

    prepare_for_model(compiled_by)
    return RealtimeEngine()


def _tests(job: Path, results: Path, port: Port) -> int:
    del results
    arguments = json.loads((job / "job.json").read_text())["arguments"]
    return run_tests(arguments, lambda text: port.say(line=text))


_JOBS = {"measure": _measure, "tests": _tests}


def _uptime() -> float:
    return float(Path("/proc/uptime").read_text().split()[0])


def _busy() -> float:
    """Seconds that processors were not idle since power-on, of all together."""
    up, idle = map(float, Path("/proc/uptime").read_text().split())
    return (os.cpu_count() or 1) * up - idle


def _memory_in_use() -> int:
    rows: Mapping[str, str] = dict(line.split(":") for line in Path("/proc/meminfo").read_text().splitlines())
    total, free = (int(rows[name].split()[0]) for name in ("MemTotal", "MemAvailable"))
    return (total - free) // 1024


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2])))
