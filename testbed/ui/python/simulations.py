"""Simulate a plan from Python."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from testbed.base.errors import InputError, Problem, did_you_mean
from testbed.ui.python.optional_libraries import PrintedSteps, Progress, library
from testbed.ui.python.plans import PlannedFabric

if TYPE_CHECKING:
    import pandas

    from testbed.engines.simulate import SimulationOutcome

# What the command uses, too.
_CYCLES, _WARM_UP = 200_000, 50_000


def simulate_fabric(
    plan: PlannedFabric,
    loads: Sequence[float],
    *,
    level: Literal["flit", "packet"],
    pattern: str,
    seeds: int,
    results: str | Path,
    progress: Progress | None,
    settings: Mapping[str, Any],
) -> Simulation:
    """Simulate switches on a plan, as `testbed.simulate` says."""
    from dataclasses import fields

    from testbed.engines.simulate import PacketSettings, Settings, simulate_plan
    from testbed.engines.simulate.flit_settings import parse_loads, settings_problems
    from testbed.engines.simulate.packet_settings import packet_problems

    if level not in ("flit", "packet"):
        raise InputError.one("level", f'should be flit or packet, not "{level}"')
    kind: type[Settings] | type[PacketSettings] = PacketSettings if level == "packet" else Settings
    called = {"clocks": "cycles"}
    known = [called.get(field.name, field.name) for field in fields(kind) if field.name != "pattern"]
    problems = [
        Problem(key, f"is no setting at {level} level.{did_you_mean(key, known)} Known: {', '.join(known)}")
        for key in settings
        if key not in known
    ]
    if problems:
        raise InputError(problems)
    given = {key: value for key, value in settings.items() if key != "cycles"}
    if kind is Settings:
        given = {"clocks": settings.get("cycles", _CYCLES), "warm_up": _WARM_UP, **given}
    asked = kind(pattern=pattern, **given)
    rates = parse_loads(",".join(map(repr, map(float, loads))))
    wrong = packet_problems(asked, seeds) if isinstance(asked, PacketSettings) else settings_problems(asked, seeds)
    if wrong:
        raise InputError(wrong)
    return Simulation(simulate_plan(plan.core, asked, rates, seeds, Path(results), progress or PrintedSteps()))


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Simulation:
    """A simulation that has come to its end, as tb.simulate() returns it; tb.load() reads its folder as well."""

    core: SimulationOutcome  # every run in it

    @property
    def path(self) -> Path:
        """The folder of its results."""
        return self.core.folder

    @property
    def throughput(self) -> float | None:
        """The most that was accepted, in the unit of the loads; None where all runs deadlocked."""
        highest = self.core.highest
        return None if highest is None or highest.accepted is None else highest.accepted.mean

    @property
    def deadlock(self) -> tuple[str, ...]:
        """Virtual channels that wait for each other in the first run that deadlocked; empty where none did."""
        point = self.core.deadlock
        return () if point is None else point.cycle

    def frame(self) -> pandas.DataFrame:
        """A row a run: load, seed, accepted, packets, latency_mean, latency_p50, latency_p99, latency_max, deadlock.

        Latencies are in cycles, at packet level in seconds.
        """
        made = library("pandas", "frame()")
        rows = []
        for point in self.core.points:
            latency = point.latency
            times = (None,) * 4 if latency is None else (latency.mean, latency.p50, latency.p99, latency.most)
            row = (point.load, point.seed, point.accepted, point.packets, *times, point.fullest, point.fullest_use)
            rows.append((*row, bool(point.cycle)))
        columns = (
            "load", "seed", "accepted", "packets", "latency_mean", "latency_p50", "latency_p99", "latency_max",
            "fullest", "fullest_use", "deadlock",
        )  # fmt: skip
        return made.DataFrame(rows, columns=columns)

    def __repr__(self) -> str:
        """One line."""
        most = "" if self.throughput is None else f", accepts up to {self.throughput:.4g}"
        deadlock = f"; deadlock: {' → '.join(self.deadlock)}" if self.deadlock else ""
        return f"<simulation of {self.core.plan.scenario.name}: {len(self.core.points)} runs{most}{deadlock}>"
