"""Routing on Ethernet fabrics that contain loops: plan, prove, build, measure.

    import testbed as tb

    plan = tb.plan("torus4x4", {"routing.kind": "updown"})
    plan.path("h1", "h9")

docs/python.md tells of all names here. What a function needs is imported when it is called, so that `import testbed`
takes no time. The classes of what they return are in `testbed.ui.python`, checks for routings of one's own in
`testbed.ui.testing`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from testbed.base.errors import (
    CapabilityError,
    InputError,
    LabError,
    TestbedError,
    VerificationError,
    WorkloadError,
)
from testbed.base.version import __version__

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path
    from typing import Any, Literal

    from testbed.ui.python import FinishedRun, PlannedFabric, RunningLab, Simulation

__all__ = [
    "CapabilityError",
    "InputError",
    "LabError",
    "TestbedError",
    "VerificationError",
    "WorkloadError",
    "__version__",
    "lab",
    "load",
    "plan",
    "run",
    "scenarios",
    "simulate",
]


def plan(
    scenario: str | Path | Mapping[str, Any], settings: Mapping[str, Any] | None = None, *, trust: bool = False
) -> PlannedFabric:
    """Plan a fabric and prove it; nothing is built.

    Args:
        scenario: a name in scenarios/, a file, or the blocks of a scenario such as
            `{"topology": {"kind": "torus", "sizes": [4, 4]}}`.
        settings: keys and the values that replace the scenario's, such as `{"routing.kind": "updown"}`.
        trust: whether plug-ins that it names may run: they are programs. Without it only those do whose content was
            trusted on the command line before.

    Raises:
        InputError: everything that is wrong with it, and which plug-ins would have to be trusted.
        CapabilityError: there is not enough memory for it.
    """
    from testbed.ui.python.plans import plan_fabric

    return plan_fabric(scenario, settings, trust=trust)


def scenarios() -> dict[str, Path]:
    """Names that plan() takes, each with its file."""
    from testbed.scenario import scenario_names

    return scenario_names()


def simulate(
    plan: PlannedFabric,
    loads: Sequence[float] = (0.1, 0.2, 0.3, 0.4, 0.5),
    *,
    level: Literal["flit", "packet"] = "flit",
    pattern: str = "uniform",
    seeds: int = 1,
    results: str | Path = "results",
    progress: Callable[[str], None] | None = None,
    **settings: Any,
) -> Simulation:
    """Simulate lossless switches, or lossy ones, on a plan, as `testbed simulate` does.

    Args:
        plan: as tb.plan() made it.
        loads: flits per host and cycle; at packet level shares of a host's link.
        level: `flit`, virtual cut-through by flits, or `packet`, whole packets and PAUSE frames.
        pattern: `uniform`, a destination drawn for each packet, or a pattern that gives each host one destination.
        seeds: runs of each load, with the seeds 1, 2, ….
        results: folder in which its own folder is made.
        progress: called with each step; None = steps on standard error.
        **settings: of the switches, as the options of the command have them.
            At flit level, in cycles and flits: `cycles` of a run (200,000), `warm_up` of them that are not measured
            (50,000), `packet` (128), `buffer` of a virtual channel (256), `header`, cycles of a header from switch to
            switch (3), `channels`, copies of each virtual channel (1), `buffer_gap` between packets of a buffer
            (header - 2), `output_gap` between packets of a virtual channel (0).
            At packet level, in ms, bytes and µs: `duration` of a run (200), `warm_up` of it (50), `flow_control`:
            none, pause or pfc (pause), `frame` (1522), `buffer` of each port and priority (65,536), `xoff` at which a
            sender is paused (as late as loses none), `xon` at which it resumes (half of xoff), `shared`: whether the
            ports of a switch share their memory (no), `delay` of cable and switch a hop (1), `tie_orders`: other orders
            of simultaneous events that each run is repeated in (0).

    Raises:
        InputError: everything that is wrong with these.
        VerificationError: the plan breaks an invariant that it does not declare.
    """
    from testbed.ui.python.simulations import simulate_fabric

    return simulate_fabric(
        plan, loads, level=level, pattern=pattern, seeds=seeds, results=results, progress=progress, settings=settings
    )


def run(
    plan: PlannedFabric,
    results: str | Path = "results",
    progress: Callable[[str], None] | None = None,
    *,
    trust: bool = False,
) -> FinishedRun:
    """Run the loads of a plan by its scenario's engine, as `testbed run` does.

    Args:
        plan: as tb.plan() made it.
        results: folder in which the run's own folder is made.
        progress: called with each step; None = steps on standard error.
        trust: whether MPI jobs that the scenario names by a path may be built: a Makefile is a program. Without it only
            those are whose content was trusted on the command line before.

    Raises:
        InputError, VerificationError, CapabilityError: nothing was measured and nothing is left.
        LabError: the lab broke; its folder stays, marked incomplete.
    """
    from testbed.ui.python.runs import run_loads

    return run_loads(plan, results, progress, trust=trust)


def load(folder: str | Path) -> FinishedRun:
    """Read the results of a run or a simulation.

    Args:
        folder: as `testbed run` and `testbed simulate` write it.

    Raises:
        InputError: it is no result folder, incomplete, damaged, or of another version; names the file.
    """
    from testbed.ui.python.runs import read_run

    return read_run(folder)


def lab(plan: PlannedFabric, progress: Callable[[str], None] | None = None) -> AbstractContextManager[RunningLab]:
    """Build a plan's lab and check every path; it ends with the block, however that ends. It needs root.

    Args:
        plan: as tb.plan() made it.
        progress: called with each step; None = steps on standard error.

    Raises:
        VerificationError, CapabilityError: nothing was started.
        LabError: the lab broke, or is not what the plan says; nothing is left.
    """
    from testbed.ui.python.labs import open_lab

    return open_lab(plan, progress)
