"""A simulation of flows on a plan: checked, run, and its folder."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from math import isnan
from pathlib import Path

import numpy as np

from testbed.base.errors import InputError
from testbed.base.files import write_whole
from testbed.base.model import Bools, Floats, Sample
from testbed.base.untrusted_text import csv_text
from testbed.engines.simulate.detail_levels import packet_network
from testbed.engines.simulate.flit_settings import UNIFORM, pattern_problems
from testbed.engines.simulate.flow_settings import FlowSettings, flow_problems, seed_problems
from testbed.engines.simulate.flow_sizes import find_sizes
from testbed.engines.simulate.flows import FlowResult, choice_problems, has_percentile, memory_problems, simulate_flows
from testbed.engines.simulate.packet_settings import fabric_problems
from testbed.engines.simulate.run_points import bundle_problems
from testbed.engines.simulate.single_run import store_run, tell_share
from testbed.planning import Plan
from testbed.planning.speeds import alike_problems
from testbed.results.store import dated_folder

FLOWS = "flows.csv"
SCHEMA_VERSION = 1
COLUMNS = ("source", "destination", "bytes", "begin_seconds", "seconds", "seconds_alone", "slowdown")
# Upper ends of the sizes that flows are told apart by, in bytes.
SIZES = (10_000, 100_000, 1_000_000, None)
PERCENTILES = (50, 95, 99)


@dataclass(frozen=True, slots=True)
class SizeClass:
    """Flows of about one size."""

    at_least: int  # bytes, those above this
    at_most: int | None  # bytes; None = the largest
    flows: int  # that arrived
    # of their completion times as multiples of those on idle links, by percentile; of one that so few flows do not
    # have (the 99th of fewer than 100) None, and None without flows
    slowdown: dict[str, float | None] | None
    seconds: dict[str, float | None] | None  # of the times themselves


@dataclass(frozen=True, slots=True, eq=False)
class FlowOutcome:
    """A simulation of flows that has come to its end."""

    plan: Plan  # what was simulated
    settings: FlowSettings  # of the flows and the switches
    result: FlowResult  # what became of them
    folder: Path  # of its results

    @property
    def classes(self) -> tuple[SizeClass, ...]:
        """Flows by size, then all of them."""
        found, above, size = [], 0, self.result.flows.size
        for most in SIZES:
            inside = (size > above) if most is None else (size > above) & (size <= most)
            found.append(self._class_of(inside, above, most))
            above = above if most is None else most
        return (*found, self._class_of(size > 0, 0, None))

    def _class_of(self, inside: Bools, above: int, most: int | None) -> SizeClass:
        done = inside & (self.result.finished >= 0)
        if not done.any():
            return SizeClass(above, most, 0, None, None)
        slowdown, times = self.result.slowdown[done], self.result.times[done]
        return SizeClass(
            above,
            most,
            int(done.sum()),
            _percentiles(slowdown),
            _percentiles(times),
        )

    def as_object(self) -> dict[str, object]:
        """What is told of it, for programs and its record."""
        result, settings = self.result, self.settings
        switches = dataclasses.asdict(settings.switches)
        for key in ("warm_up", "tie_orders"):
            del switches[key]
        return {
            "schema_version": SCHEMA_VERSION,
            "scenario": self.plan.scenario.name,
            "digest": self.plan.digest,
            "expect": self.plan.scenario.expect,
            "settings": {**dataclasses.asdict(settings), "switches": switches},
            "sizes_from": find_sizes(settings.sizes).source,
            "flows": len(result.flows.source),
            "bytes": int(result.flows.size.sum()),
            "frames": result.frames,
            "seconds": None if result.cycle else result.end / 1e12,
            "classes": [dataclasses.asdict(one) for one in self.classes],
            "marked": result.marked,
            "notified": result.notified,
            "pauses": result.pauses,
            "channels_paused": result.channels_paused,
            "hosts_paused": result.hosts_paused,
            "longest_queue": result.longest_queue,
            "fullest_use": float(result.channel_use.max(initial=0)),
            "deadlock": {"seconds": result.end / 1e12, "cycle": result.cycle} if result.cycle else None,
            "took_seconds": result.seconds,
        }


def _percentiles(values: Floats) -> dict[str, float | None]:
    return {
        f"p{one}": float(np.percentile(values, one)) if has_percentile(len(values), one) else None
        for one in PERCENTILES
    }


def simulate_flows_of_plan(
    plan: Plan, settings: FlowSettings, seed: int, results: Path, progress: Callable[[str], None]
) -> FlowOutcome:
    """Let flows begin on a plan and write down when each of them had arrived.

    Raises:
        InputError: settings that do not fit each other or the fabric, no flows, or too many.
        VerificationError: the plan breaks an invariant it does not declare.
    """
    plan.require_proof()
    problems = alike_problems(plan.scenario, "the simulator")
    if problems:
        raise InputError(problems)
    switches, links = settings.switches, plan.scenario.links
    problems = [*bundle_problems(plan), *flow_problems(settings), *seed_problems(seed)]
    problems += pattern_problems(switches.pattern, plan.topology, plan.scenario.lab.seed)
    if not problems:
        problems = fabric_problems(switches, plan.routes, links.rate, links.edge_rate)
    if problems:
        raise InputError(problems)
    network = packet_network(plan, switches)
    problems = [*memory_problems(network, settings), *choice_problems(network, settings)]
    if problems:
        raise InputError(problems)
    progress("loading the simulator; compiling it, the first time, takes half a minute")
    result = simulate_flows(network, settings, seed, tell_share(progress, "frames"))
    assert result is not None  # nobody gives up
    outcome = FlowOutcome(plan, settings, result, dated_folder(results, f"flows-{plan.scenario.name}", "."))
    write_whole(outcome.folder / FLOWS, _flows_csv(outcome).encode())
    _store(outcome)
    return outcome


def describe_traffic(settings: FlowSettings) -> str:
    """What is sent, in a few words."""
    where = "to hosts drawn at random" if settings.switches.pattern == UNIFORM else settings.switches.pattern
    if settings.load is None:
        return f"flows of {settings.sizes}, {where}, all at once"
    return f"flows of {settings.sizes}, {where}, load {settings.load:g}"


def _store(outcome: FlowOutcome) -> None:
    """Write what every result folder has."""
    plan, result = outcome.plan, outcome.result
    labels = {"load": "flows", "kind": "flows"}
    samples = []
    if not result.cycle:
        samples = [Sample("completion_time", result.end / 1e12, "s", labels)]
        for one in outcome.classes[:-1]:
            size = f"{one.at_least}-{'' if one.at_most is None else one.at_most}"
            samples += [
                Sample("slowdown", value, "ratio", {**labels, "bytes": size, "percentile": name})
                for name, value in (one.slowdown or {}).items()
                if value is not None
            ]
        samples += [
            Sample("link_use", use, "ratio", {**labels, "channel": plan.topology.channel_name(channel)})
            for channel, use in enumerate(result.channel_use.tolist())
        ]
    store_run(
        outcome.folder, plan, "flows", describe_traffic(outcome.settings), dataclasses.asdict(outcome.settings),
        samples, outcome.as_object(), result.cycle, f"after {result.end / 1e12:.6f} s",
    )  # fmt: skip


def _flows_csv(outcome: FlowOutcome) -> str:
    """One line a flow; no times of what has not arrived."""
    result, name = outcome.result, outcome.plan.topology.host_name
    flows = result.flows
    columns = (flows.source, flows.goal, flows.size, flows.begin / 1e12, result.times, result.alone / 1e12)
    rows = (
        (name(source), name(goal), size, begin, *(("",) * 3 if isnan(time) else (time, alone, time / alone)))
        for source, goal, size, begin, time, alone in zip(*(column.tolist() for column in columns), strict=True)
    )
    return csv_text(COLUMNS, rows)
