"""What `testbed simulate` does with a traffic matrix: replay it to its end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from testbed.base.errors import InputError, Problem
from testbed.base.units import format_seconds
from testbed.ui.cli.deadlock_output import choose_exit_code, print_deadlock
from testbed.ui.cli.output import Format, plan_scenario, print_json, print_lines, steps

if TYPE_CHECKING:
    from testbed.base.model import Topology
    from testbed.engines.simulate import Replay, Settings
    from testbed.engines.simulate.traffic_matrices import Recorded
    from testbed.fabric.schedules import Schedule

ALL_TO_ALL = "all_to_all"
_MAX_RANKS = 64
CHANNELS, PAIRS = "channels.svg", "pairs.svg"
# What has a meaning only where hosts send forever.
_ENDLESS = ("loads", "seeds", "cycles", "warm_up", "resume", "jobs")


@dataclass(frozen=True, slots=True)
class ReplayOptions:
    """Options that ask for a replay."""

    pattern: str | None  # of --pattern, or None where it was not given
    matrix: Path | None  # a file
    trace: Path | None  # a result folder
    load: str | None  # of that folder
    schedule: Path | None  # a file of messages and what they wait for
    loggops: str | None  # parameters of the model that also says what it takes
    message: int | None  # bytes from each host to each other one, or None where it was not given

    @property
    def has_messages(self) -> bool:
        """Whether the pattern is one of messages: all to all, or a collective."""
        from testbed.fabric.collectives import COLLECTIVES

        return self.pattern == ALL_TO_ALL or self.pattern in COLLECTIVES

    @property
    def is_replay(self) -> bool:
        """Whether it is a replay."""
        return self.has_messages or any((self.matrix, self.trace, self.schedule))

    def problems(self, given: Sequence[str]) -> list[Problem]:
        """Options that exclude each other. `given` are names of parameters."""
        sources = [
            name
            for name, there in (
                (f"--pattern {self.pattern}", self.pattern is not None),
                ("--matrix", self.matrix is not None),
                ("--trace", self.trace is not None),
                ("--schedule", self.schedule is not None),
            )
            if there
        ]
        found = []
        if len(sources) > 1 and self.is_replay:
            found.append(Problem(sources[1], f"says what is sent, and so does {sources[0]}; give one of them"))
        if self.message is not None and not self.has_messages:
            found.append(
                Problem("--message", f"is a size for --pattern {ALL_TO_ALL} or a collective, which is not asked for")
            )
        elif self.message is not None and not 1 <= self.message < 1 << 40:
            found.append(Problem("--message", f"should be from 1 to 2^40 bytes, not {self.message:,}"))
        if self.loggops is not None and self.schedule is None:
            found.append(Problem("--loggops", "says what messages of a --schedule cost, which is not given"))
        if self.load is not None and self.trace is None:
            found.append(Problem("--trace-load", "is a load of the run that --trace names, which is not given"))
        if self.is_replay:
            sentence = "has no effect on a replay, which ends when everything has arrived; leave it out"
            found += [Problem(f"--{name.replace('_', '-')}", sentence) for name in _ENDLESS if name in given]
        return found

    def read_traffic(self, topology: Topology) -> Recorded:
        """What is sent."""
        from testbed.engines.simulate.traffic_matrices import (
            make_all_to_all,
            make_collective,
            read_matrix,
            read_run,
            take_schedule,
        )

        if self.schedule is not None:
            return take_schedule(self.schedule, self.read_schedule(), topology)
        if self.matrix is not None:
            return read_matrix(self.matrix, topology)
        if self.trace is not None:
            return read_run(self.trace, self.load, topology)
        if self.pattern is not None and self.pattern != ALL_TO_ALL:
            return make_collective(topology, self.pattern, self.message or 1 << 20)
        return make_all_to_all(topology, self.message or 1 << 16)

    def read_schedule(self) -> Schedule:
        """The schedule of the file."""
        from testbed.scenario.schedule_files.formats import read_schedule

        assert self.schedule is not None
        return read_schedule(self.schedule)

    def cost_ranks(self) -> list[int] | None:
        """When each rank of the schedule is done by the LogGOPS model, ns; None where it is not asked for."""
        from testbed.fabric.loggops import cost_schedule, read_loggops

        if self.loggops is None or self.schedule is None:
            return None
        model = read_loggops(self.loggops, "--loggops")
        schedule = self.read_schedule()
        try:
            return cost_schedule(schedule, model)
        except InputError as error:
            raise InputError([problem.in_file(str(self.schedule)) for problem in error.problems]) from error


def run_replay(
    name: str, overrides: Sequence[str], asked: ReplayOptions, settings: Settings, folder: Path, form: Format
) -> int:
    """Replay and print; returns the exit code."""
    from testbed.engines.simulate import replay_plan
    from testbed.engines.simulate.flit_settings import settings_problems

    problems = settings_problems(settings, 1)
    if problems:
        raise InputError(problems)
    cost = asked.cost_ranks()
    with steps() as progress:
        progress("planning and proving")
        plan = plan_scenario(name, overrides)
        found = replay_plan(plan, settings, asked.read_traffic(plan.topology), folder, progress)
        figures = _draw(found)
    if form is Format.json:
        modelled = {} if cost is None else {"loggops_ns": cost}
        print_json(
            {**found.as_object(), **modelled, "results": str(found.folder), "figures": [str(file) for file in figures]}
        )
    else:
        _print(found, figures)
        if cost is not None:
            print_lines(f"LogGOPS model, without a fabric: {max(cost):,} ns; ranks end at {_list_times(cost)}")
    return choose_exit_code(found.plan, found.outcome.cycle)


def _list_times(cost: Sequence[int]) -> str:
    more = f" and {len(cost) - _MAX_RANKS} more" if len(cost) > _MAX_RANKS else ""
    return f"{', '.join(map(str, cost[:_MAX_RANKS]))}{more} ns"


def _draw(found: Replay) -> list[Path]:
    """Use of the channels over time, and when each pair was done; nothing of a deadlock."""
    import numpy as np

    from testbed.base.files import write_whole
    from testbed.base.units import scale_for
    from testbed.experiments.report.heatmaps import draw_channel_use, draw_pair_times

    if found.outcome.cycle:
        return []
    topology, files = found.plan.topology, []
    if len(found.outcome.channel_flits):
        over_time = found.outcome.over_time
        edges = over_time.clock.astype(np.float64) * found.clock
        scale = scale_for("s", float(edges[-1]))
        drawn = draw_channel_use(topology, over_time.use, edges / scale.factor, f"Time ({scale.name})")
        write_whole(found.folder / CHANNELS, drawn)
        files.append(found.folder / CHANNELS)
    write_whole(found.folder / PAIRS, draw_pair_times(topology, found.pair_seconds))
    return [*files, found.folder / PAIRS]


def _print(found: Replay, figures: Sequence[Path]) -> None:
    import numpy as np

    from testbed.engines.simulate.run_replay import PAIRS as PAIR_TIMES

    settings, demand, outcome = found.settings, found.demand, found.outcome
    print_lines(f"{found.plan.scenario.name}: {found.recorded.origin}")
    for note in found.recorded.notes:
        print_lines(f"note: {note}")
    what = "pairs of hosts" if demand.steps is None else "messages"
    print_lines(
        f"{int(demand.size.sum()):,} bytes of {len(demand.source):,} {what} in {int(demand.packets.sum()):,} "
        f"packets of up to {demand.carried:,} bytes; {settings.packet} flits a packet, buffers of {settings.buffer}"
    )
    if outcome.cycle:
        print_deadlock(found.plan, outcome.cycle, f"by cycle {outcome.clocks:,}")
    else:
        times = np.sort(outcome.finished) * found.clock
        print_lines(f"completion time: {outcome.clocks:,} cycles, {format_seconds(outcome.clocks * found.clock)}")
        share = found.least / outcome.clocks
        print_lines(f"lower bound: {found.least:,} cycles, {share:.0%} of that, by {found.because}")
        whose = "a pair of hosts" if demand.steps is None else "a message"
        print_lines(
            f"completion time of {whose}: min {format_seconds(times[0])}, median "
            f"{format_seconds(times[(len(times) - 1) // 2])}, max {format_seconds(times[-1])}"
        )
    for file in figures:
        print_lines(f"figure: {file}")
    print_lines(f"data: {found.folder / PAIR_TIMES}")
    print_lines(f"results: {found.folder}")
