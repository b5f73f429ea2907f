"""`testbed run --dry-run`: what a run would build, how long it would take, and what it lacks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from testbed.base.units import count_noun, format_estimate
from testbed.ui.cli.output import print_lines

if TYPE_CHECKING:
    from testbed.experiments.run.engine import Engine, Progress
    from testbed.planning import Plan


def dry_run(plan: Plan, progress: Progress, engine: Engine | None = None) -> None:
    """Print it; builds no lab, but the MPI programs of its loads.

    Raises:
        InputError, VerificationError, CapabilityError: all that is missing.
    """
    from testbed.experiments.run.engines import prepare_engine

    print_lines(_describe(plan))
    prepare_engine(plan, progress, engine)
    print_lines("nothing is missing")


def _describe(plan: Plan) -> list[str]:
    from testbed.experiments.run.loads.one_load import load_labels, title_of
    from testbed.experiments.run.run_duration import expected_seconds
    from testbed.scenario.engines import ENGINES, LABS

    scenario, topology = plan.scenario, plan.topology
    parts = [
        count_noun(topology.switch_count, "switch", "es"),
        f"{count_noun(topology.link_count, 'link')} between them",
        count_noun(topology.host_count, "host"),
    ]
    dilation = scenario.lab.dilation
    in_lab = scenario.engine in LABS
    slowed = "that a short trial finds" if dilation == "auto" else f"{dilation:g}"
    seconds = expected_seconds(plan) if in_lab else None
    return [
        f"{scenario.name}: {', '.join(parts)}",
        f"engine {scenario.engine}: {ENGINES[scenario.engine].summary}"
        + (f", at the dilation {slowed}" if in_lab else ""),
        *(
            f"load {number}: {title_of(load.kind, load_labels(load))}"
            for number, load in enumerate(scenario.workloads, 1)
        ),
        *([f"the run would take {format_estimate(seconds)}"] if seconds is not None else []),
        *(["how long it takes is decided by the programs of its loads"] if in_lab and seconds is None else []),
    ]
