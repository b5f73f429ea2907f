"""Simulate a plan from Python."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from testbed.api.extras import Progress, Steps, library
from testbed.api.plans import PlannedFabric
from testbed.errors import InputError, Problem, did_you_mean

if TYPE_CHECKING:
    import pandas

    from testbed.simulate import Outcome

# What the command uses, too.
_CYCLES, _WARM_UP = 200_000, 50_000


def simulate(
    plan: PlannedFabric,
    loads: Sequence[float] = (0.1, 0.2, 0.3, 0.4, 0.5),
    *,
    level: Literal["flit", "packet"] = "flit",
    pattern: str = "uniform",
    seeds: int = 1,
    results: str | Path = "results",
    progress: Progress | None = None,
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
    from dataclasses import fields

    from testbed.simulate import PacketSettings, Settings, simulate_plan
    from testbed.simulate.packet_settings import packet_problems
    from testbed.simulate.settings import parse_loads, settings_problems

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
    return Simulation(simulate_plan(plan.core, asked, rates, seeds, Path(results), progress or Steps()))


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Simulation:
    """A simulation that has come to its end, as tb.simulate() returns it; tb.load() reads its folder as well."""

    core: Outcome  # every run in it

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
