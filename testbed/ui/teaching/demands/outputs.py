"""What commands have printed or stored: a storm, a simulated exchange, a run with its measured figures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from testbed.base.errors import InputError
from testbed.results import load_run
from testbed.results.read_run import UNFAITHFUL
from testbed.ui.teaching.student_folder import Work

_NEWEST = 20  # runs of a folder that are looked at


@dataclass(frozen=True, slots=True)
class StormSeen:
    """What `testbed storm --format json` prints of a storm."""

    file: str
    switches: int


def judge_storm_seen(work: Work, demand: StormSeen) -> str | None:
    """See that it circulated without VLANs and did not with them."""
    found = work.json(demand.file)
    command = f"sudo testbed storm --switches {demand.switches} --format json > {demand.file}"
    if "without_vlans" not in found or "problems" not in found:
        return f"{demand.file}: is not of `testbed storm`; make it with: {command}"
    if found.get("switches") != demand.switches:
        return f"{demand.file}: is of {found.get('switches')} switches, not {demand.switches}; make it with: {command}"
    if found["problems"]:
        return f"{demand.file}: that was no storm: {found['problems'][0]}; repeat it: {command}"
    return None


@dataclass(frozen=True, slots=True)
class Simulated:
    """What `testbed simulate FILE --pattern all_to_all --message N --format json` prints of a scenario given."""

    output: str
    file: str
    bytes: int


def judge_simulated(work: Work, demand: Simulated) -> str | None:
    """See that it is of this fabric, these messages, and came to an end."""
    found = work.json(demand.output)
    command = (
        f"testbed simulate {demand.file} --pattern all_to_all --message {demand.bytes} --format json > {demand.output}"
    )
    plan = work.given_plan(demand.file)
    if "seconds" not in found or "digest" not in found:
        return f"{demand.output}: is not of `testbed simulate`; make it with: {command}"
    if found["digest"] != plan.digest:
        return f"{demand.output}: is of {found.get('scenario')}, not of {demand.file}; make it with: {command}"
    hosts = plan.topology.host_count
    if found.get("bytes") != demand.bytes * hosts * (hosts - 1):
        return (
            f"{demand.output}: messages are not of {demand.bytes} bytes, or not all with all; make it with: {command}"
        )
    if found.get("deadlock") is not None:
        return f"{demand.output}: it came to no end, since it deadlocked"
    return None


@dataclass(frozen=True, slots=True)
class RunDemand:
    """A finished run of a scenario given, in a result folder that the answer names."""

    key: str  # in answers.yaml: path of the folder, or of that which holds it, from the student's
    file: str
    metric: str = "goodput"


def judge_run(work: Work, demand: RunDemand) -> str | None:
    """See that some run is of this plan, that its figures can be used, and that it measured what is asked for."""
    found = [_judge_one(work, demand, folder) for folder in _runs(work.folder / str(work.answer(demand.key)))]
    return None if None in found else found[0]


def _judge_one(work: Work, demand: RunDemand, folder: Path) -> str | None:
    try:
        run = load_run(folder)
    except InputError as error:
        return f"answers.yaml: {demand.key}: {folder.name}: {error.problems[0].sentence}"
    plan = work.given_plan(demand.file)
    if run.plan.digest != plan.digest:
        return f"{demand.key}: {folder.name} is a run of {run.plan.scenario.name}, not of {demand.file} as it was given"
    bad = [load for load in _loads(run.manifest) if load.get("verdict") in UNFAITHFUL]
    if bad:
        reason = (list(bad[0].get("reasons") or ()) or ["its verdict is not pass"])[0]
        return (
            f"{demand.key}: figures of {folder.name} cannot be used: {reason}. Run it again while the machine is idle"
        )
    if not any(sample.metric == demand.metric for sample in run.samples):
        return f"{demand.key}: {folder.name} has measured no {demand.metric}; run {demand.file} with all its workloads"
    return None


def _runs(folder: Path) -> list[Path]:
    """The folder itself, or the runs that it holds, the last first; their names begin with the time."""
    runs = (
        sorted((file.parent for file in folder.glob("*/manifest.json")), reverse=True)[:_NEWEST]
        if folder.is_dir()
        else []
    )
    return [folder] if not runs or (folder / "manifest.json").exists() else runs


def _loads(manifest: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    listed = manifest.get("loads")
    return [one for one in listed if isinstance(one, Mapping)] if isinstance(listed, list) else []
