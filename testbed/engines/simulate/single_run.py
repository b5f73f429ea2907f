"""What simulations of one run have in common: how they tell their progress, and what their folders hold."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from testbed.base.model import Sample
from testbed.base.units import format_eta
from testbed.engines.simulate.result_folder import environment
from testbed.planning import Plan
from testbed.planning.proof import deadlock_word
from testbed.results import SIMULATION, ResultFolder
from testbed.results.store import LoadEntry

_SAY_EVERY = 2.0  # s


def tell_share(progress: Callable[[str], None], noun: str) -> Callable[[int, int], bool]:
    """What a simulation calls with how many of all are done, to tell the share and the time left; it never gives up."""
    said = started = time.monotonic()

    def tell(done: int, total: int) -> bool:
        nonlocal said
        now = time.monotonic()
        if done and now - said > _SAY_EVERY:
            said = now
            progress(f"{done / total:.0%} of {total:,} {noun}, {format_eta((now - started) * (total - done) / done)}")
        return False

    return tell


def store_run(
    folder: Path, plan: Plan, kind: str, title: str, settings: Mapping[str, object], samples: Sequence[Sample],
    told: Mapping[str, object], cycle: Sequence[str], when: str,
) -> None:  # fmt: skip
    """Write what every result folder has.

    Args:
        folder: of the results.
        plan: what was simulated.
        kind: of the simulation, the name of its one load.
        title: what was sent.
        settings: of the simulator.
        samples: what was measured.
        told: what programs are told of it.
        cycle: what waits for each other; empty without a deadlock.
        when: the deadlock was found.
    """
    reasons = [f"{deadlock_word(plan.scenario)} {when}: {' → '.join(cycle)}"] if cycle else []
    verdict = "fail" if cycle and plan.scenario.expect != "deadlock" else "pass"
    load: LoadEntry = {"load": kind, "kind": kind, "title": title, "verdict": verdict, "reasons": reasons}
    result = ResultFolder.open_existing(folder, plan)
    result.write_plan(environment(simulator=dict(settings)))
    result.write_samples(list(samples))
    about = {"dilation": 1.0, "engine": "simulate", "kind": SIMULATION, kind: dict(told)}
    result.write_manifest(verdict, reasons, [load], about)
