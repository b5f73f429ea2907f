"""A replay of a plan: checked, run, and its folder."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from testbed.base.errors import InputError, Problem
from testbed.base.files import write_whole
from testbed.base.model import Floats, Longs, Sample
from testbed.base.untrusted_text import csv_text
from testbed.engines.simulate.flit_network import Network
from testbed.engines.simulate.flit_settings import Settings, settings_problems
from testbed.engines.simulate.replay import Demand, Replayed, least_clocks, replay
from testbed.engines.simulate.run_points import bundle_problems
from testbed.engines.simulate.single_run import store_run, tell_share
from testbed.engines.simulate.traffic_matrices import WIRE, Recorded
from testbed.planning import Plan
from testbed.planning.speeds import alike_problems
from testbed.results.store import dated_folder

PAIRS = "pairs.csv"
SCHEMA_VERSION = 1
COLUMNS = ("source", "destination", "bytes", "packets", "clocks", "seconds")
MAX_PAIRS = 1 << 20
MAX_MESSAGES = 1 << 22  # of a collective


@dataclass(frozen=True, slots=True, eq=False)
class Replay:
    """A replay that has come to its end."""

    plan: Plan  # what was simulated
    settings: Settings  # of the switches
    recorded: Recorded  # what was sent
    demand: Demand  # the same as packets
    outcome: Replayed  # what came of it
    least: int  # cycles that no order of packets gets below
    because: str  # what takes so long at least
    folder: Path  # of its results

    @property
    def clock(self) -> float:
        """Seconds of a clock: a packet represents a full frame on a link of the scenario's rate."""
        return 8 * WIRE / self.plan.scenario.links.rate / self.settings.packet

    @property
    def pair_seconds(self) -> Floats:
        """(H, H) s until all had arrived from host (row) to host (column); 0 for pairs that send nothing."""
        hosts = self.plan.topology.host_count
        found: Floats = np.zeros((hosts, hosts))
        times = self.outcome.finished * self.clock
        np.maximum.at(found, (self.demand.source, self.demand.destination), times)
        return found

    def as_object(self) -> dict[str, object]:
        """What is told of it, for programs and its record."""
        outcome, fullest = self.outcome, int(self.outcome.channel_flits.max(initial=0))
        return {
            "schema_version": SCHEMA_VERSION,
            "scenario": self.plan.scenario.name,
            "digest": self.plan.digest,
            "expect": self.plan.scenario.expect,
            "origin": self.recorded.origin,
            **{key: getattr(self.settings, key) for key in ("packet", "buffer", "header")},
            "carried_bytes": self.demand.carried,
            "bytes": int(self.demand.size.sum()),
            "packets": int(self.demand.packets.sum()),
            "pairs": len(self.demand.source),
            "clocks": None if outcome.cycle else outcome.clocks,
            "seconds": None if outcome.cycle else outcome.clocks * self.clock,
            "clock_seconds": self.clock,
            "least_clocks": self.least,
            "least_because": self.because,
            "fullest_use": None if outcome.cycle else fullest / outcome.clocks,
            "deadlock": {"clock": outcome.clocks, "cycle": outcome.cycle} if outcome.cycle else None,
            "took_seconds": outcome.seconds,
        }


def replay_plan(
    plan: Plan, settings: Settings, recorded: Recorded, results: Path, progress: Callable[[str], None]
) -> Replay:
    """Send all that was recorded over a plan and write down when it arrived.

    Pattern, clocks and warm-up of the settings play no part.

    Raises:
        InputError: settings that do not fit each other or the fabric, or too many pairs.
        VerificationError: the plan breaks an invariant it does not declare.
    """
    plan.require_proof()
    problems = alike_problems(plan.scenario, "the simulator")
    if problems:
        raise InputError(problems)
    problems = [*bundle_problems(plan), *settings_problems(settings, 1)]
    pairs = np.count_nonzero(recorded.matrix) - np.count_nonzero(np.diagonal(recorded.matrix))
    pairs = pairs if recorded.steps is None else len(recorded.steps.step)
    what, most = ("pairs of hosts", MAX_PAIRS) if recorded.steps is None else ("messages", MAX_MESSAGES)
    if pairs > most:
        sentence = f"has {pairs:,} {what} and a replay takes {most:,}; take a fabric with fewer hosts"
        problems.append(Problem(recorded.origin, sentence))
    if problems:
        raise InputError(problems)
    network = Network.from_routes(plan.topology, plan.routes, settings, plan.scenario.lab.seed)
    if recorded.steps is None:
        demand = Demand.from_matrix(recorded.matrix, recorded.carried)
    else:
        demand = Demand.from_steps(recorded.steps, recorded.carried)
    progress("loading the simulator; compiling it, the first time, takes half a minute")
    least, because = least_clocks(network, demand)
    outcome = replay(network, demand, tell_share(progress, "packets"))
    assert outcome is not None  # nobody gives up
    folder = dated_folder(results, f"replay-{plan.scenario.name}", ".")
    found = Replay(plan, settings, recorded, demand, outcome, least, because, folder)
    write_whole(folder / PAIRS, _pairs_csv(found).encode())
    _store(found)
    return found


def _store(found: Replay) -> None:
    """Write what every result folder has."""
    plan, outcome = found.plan, found.outcome
    labels = {"load": "replay", "kind": "replay"}
    samples = []
    if not outcome.cycle:
        seconds, least = outcome.clocks * found.clock, found.least * found.clock
        samples = [Sample("completion_time", seconds, "s", labels, least)]
        samples += [
            Sample(
                "link_use", flits / outcome.clocks, "ratio", {**labels, "channel": plan.topology.channel_name(channel)}
            )
            for channel, flits in enumerate(outcome.channel_flits.tolist())
        ]
    store_run(
        found.folder, plan, "replay", found.recorded.origin, asdict(found.settings), samples, found.as_object(),
        outcome.cycle, f"at cycle {outcome.clocks:,}",
    )  # fmt: skip


def _pairs_csv(found: Replay) -> str:
    """One line a pair of hosts, all its messages together; no times of what has not arrived."""
    demand, name = found.demand, found.plan.topology.host_name
    first, of_pair = _find_pairs(found)
    size = np.bincount(of_pair, demand.size, len(first)).astype(np.int64)
    packets = np.bincount(of_pair, demand.packets, len(first)).astype(np.int64)
    finished = np.zeros(len(first), dtype=np.int64)
    np.maximum.at(finished, of_pair, found.outcome.finished)
    columns = (demand.source[first], demand.destination[first], size, packets, finished)
    cycle = found.outcome.cycle
    rows = (
        (name(source), name(destination), size, packets, *(("", "") if cycle else (clock, clock * found.clock)))
        for source, destination, size, packets, clock in zip(*(column.tolist() for column in columns), strict=True)
    )
    return csv_text(COLUMNS, rows)


def _find_pairs(found: Replay) -> tuple[Longs, Longs]:
    """(P,) first message of each pair, in the order of messages; (M,) the pair of each message."""
    demand, hosts = found.demand, found.plan.topology.host_count
    number = demand.source.astype(np.int64) * hosts + demand.destination
    _, first, of_number = np.unique(number, return_index=True, return_inverse=True)
    order = np.argsort(first, kind="stable")
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    return first[order].astype(np.int64), place[of_number]
