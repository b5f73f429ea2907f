"""A run of a sweep on a worker: the result folder is made there, and put into the sweep's by the program that asked."""

from __future__ import annotations

import io
import secrets
import tempfile
import time
import traceback
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from testbed.base.errors import LabError, TestbedError
from testbed.base.files import make_folder, make_new_folder, remove_folder, rename, write_whole
from testbed.engines.lab.hosts.available_memory import require_room
from testbed.experiments.run.advice import Invocation
from testbed.experiments.run.engine import RunOutcome
from testbed.experiments.run.engines import run_scenario
from testbed.planning import Plan, make_plan
from testbed.results import INCOMPLETE
from testbed.scenario import Scenario
from testbed.scenario.pickle_plugins import Pickled


@dataclass(frozen=True, slots=True)
class RemoteResult:
    """What came of a run elsewhere."""

    name: str  # of its result folder; empty where it has none
    content: bytes  # of that folder, as a zip file
    verdict: str  # of a run that came to its end
    reasons: tuple[str, ...]  # of the verdict
    advice: str  # what to type where the lab was too slow
    seconds: float  # that it took
    error: str = ""  # why it broke; empty where it did not


Runner = Callable[[Plan, Path, Callable[[str], None], Invocation], RunOutcome]


def run_remote(asked: Pickled, settings: Sequence[str], digest: str, runner: Runner = run_scenario) -> RemoteResult:
    """Run a scenario in a folder of its own that ends with this call.

    `asked`: the scenario; `digest`: of its plan, where the sweep was prepared. What goes wrong is part of what is
    returned: exceptions of a worker say nothing to whoever reads a sweep.
    """
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="testbed-run-") as place:
        results = Path(place)
        try:
            scenario: Scenario = asked.load()
            plan = make_plan(scenario, require_room)
            if plan.digest != digest:
                raise LabError(f"the plan is another one on this worker: {plan.digest} instead of {digest}")
            outcome = runner(plan, results, lambda text: None, Invocation.from_scenario(scenario, settings))
        except Exception as error:
            reasons: tuple[str, ...] = ()
            text = str(error) if isinstance(error, TestbedError) else traceback.format_exc()
            (name, content), verdict, advice = _pack_folder(results), "", ""
        else:
            text, verdict, reasons, advice = "", outcome.verdict.word, outcome.reasons, outcome.advice
            name, content = _pack_folder(results)
    return RemoteResult(name, content, verdict, reasons, advice, round(time.monotonic() - started, 3), text)


def _pack_folder(results: Path) -> tuple[str, bytes]:
    """Name and content of the folder there."""
    folders = sorted(path for path in results.iterdir() if path.is_dir())
    if not folders:
        return "", b""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as whole:
        for file in sorted(folders[0].rglob("*")):
            whole.write(file, file.relative_to(folders[0]))
    return folders[0].name, packed.getvalue()


def unpack(carried: RemoteResult, runs: Path) -> Path | None:
    """Put the result folder of a run elsewhere among others; returns it, None where there is none.

    It is there whole or not at all, and owned by whoever owns `runs`.
    """
    if not carried.name:
        return None
    make_folder(runs)
    folder = runs.parent / f".arriving-{secrets.token_hex(8)}"
    make_new_folder(folder)
    try:
        with zipfile.ZipFile(io.BytesIO(carried.content)) as whole:
            for entry in whole.infolist():
                if not entry.is_dir():
                    make_folder((folder / entry.filename).parent, folder)
                    write_whole(folder / entry.filename, whole.read(entry), below=folder)
        ending = INCOMPLETE if carried.name.endswith(INCOMPLETE) else ""
        stem = carried.name.removesuffix(INCOMPLETE)
        final, number = runs / carried.name, 1
        while final.exists():
            number += 1
            final = runs / f"{stem}-{number}{ending}"
        rename(folder, final)
        return final
    finally:
        remove_folder(folder)
