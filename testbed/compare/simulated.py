"""A simulation beside runs of the same plan in a lab, where both measure the same.

Loads of the lab that give the fabric all it can carry stand beside the simulated hosts that send all they can: load 1,
the same pattern. What a simulated flit is on the wire, the lab's frames are; so goodput follows from accepted traffic
by the bytes of a frame. Latencies are not compared: the lab's are those of a software switch.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from testbed.errors import InputError
from testbed.model import Sample
from testbed.plan import Plan
from testbed.predict.frames import transport
from testbed.results import Run
from testbed.simulate.folder import RECORD, read_points, read_record
from testbed.simulate.point import Point
from testbed.simulate.settings import UNIFORM
from testbed.workloads.spec import Iperf3

_ALL = 1.0  # flits a host and clock


def is_simulation(folder: Path) -> bool:
    """Whether a folder is that of a simulation."""
    return (folder / RECORD).is_file()


def simulated_run(folder: Path, runs: Sequence[Run]) -> Run:
    """Read a simulation as a run of the loads that it shares with one of a lab.

    Args:
        folder: of the simulation.
        runs: of labs, one of them of the same plan.

    Returns:
        goodput and use of the links, a repeat for each seed, called after the scenario with ` (simulated)`.

    Raises:
        InputError: no such run, no such load, or a damaged folder.
    """
    record = read_record(folder)
    same = next((run for run in runs if run.plan.digest == record["digest"]), None)
    if same is None:
        sentence = f"simulates {record['scenario']} with plan {record['digest']}; give a run of the same plan with it"
        raise InputError.one(str(folder), sentence)
    points = [point for point in read_points(folder) if point.load == _ALL and not point.cycle]
    pattern = str(record["pattern"])
    loads = [
        (number, load.spec)
        for number, load in enumerate(same.plan.scenario.workloads, 1)
        if isinstance(load.spec, Iperf3) and load.spec.pattern == pattern != UNIFORM
        if load.spec.protocol == "tcp" or load.spec.offered >= 1
    ]
    if not loads or not points:
        raise InputError.one(str(folder), _nothing_common(same, pattern, points))
    samples = [
        sample for number, spec in loads for point in points for sample in _samples(same.plan, str(number), spec, point)
    ]
    numbers = {str(number) for number, _ in loads}
    kept = [{**entry, "verdict": "pass", "reasons": []} for entry in same.manifest["loads"] if entry["load"] in numbers]
    scenario = dataclasses.replace(same.plan.scenario, name=f"{same.plan.scenario.name} (simulated)")
    manifest: dict[str, Any] = {**same.manifest, "verdict": "pass", "reasons": [], "loads": kept}
    return Run(folder, manifest, same.environment, dataclasses.replace(same.plan, scenario=scenario), tuple(samples))


def _nothing_common(run: Run, pattern: str, points: Sequence[Point]) -> str:
    known = dict.fromkeys(
        load.spec.pattern
        for load in run.plan.scenario.workloads
        if isinstance(load.spec, Iperf3) and load.spec.pattern not in (UNIFORM, "all_to_all")
    )
    if pattern in known and not points:
        return f"has no run at load 1 that did not stand still; simulate with --pattern {pattern} --loads 1"
    advice = (
        f"simulate with --pattern {next(iter(known))} --loads 1" if known else "no load of the run has one of these"
    )
    return f"sends {pattern} and {run.path} has no iperf3 load of that pattern that fills the fabric; {advice}"


def _samples(plan: Plan, load: str, spec: Iperf3, point: Point) -> list[Sample]:
    """Goodput of the mean flow, and use of each channel."""
    assert point.accepted is not None
    links = plan.scenario.links
    labels = {"load": load, "repeat": str(point.seed)}
    cost = transport(spec.protocol, spec.payload).cost(tagged=False)
    # A flit's clock is that of the slower link; frames have a rate of their own on each.
    rate = min(links.rate, links.edge_rate) if point.links is None else links.edge_rate
    goodput = point.accepted * rate / cost
    use = point.channel_use
    names = [plan.topology.channel_name(channel) for channel in range(len(use))]
    return [
        Sample("goodput", goodput, "bit/s", labels),
        *(
            Sample("link_use", share, "ratio", {**labels, "channel": name})
            for name, share in zip(names, use, strict=True)
        ),
    ]
