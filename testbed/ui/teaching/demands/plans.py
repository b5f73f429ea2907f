"""Scenarios of the student's: the fabric that was given, and figures of the plan within bounds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from testbed.base.model import Topology
from testbed.fabric.verify import DEADLOCK
from testbed.planning.scenario_fabric import build_fabric
from testbed.planning.summary import summary
from testbed.ui.teaching.expected_figures import number_of
from testbed.ui.teaching.student_folder import Work

_WORDS = {
    "vlans": "VLANs",
    "layers": "layers",
    "mean_switches_on_path": "switches on a path, on average",
    "max_channel_load": "paths on the busiest channel",
}


@dataclass(frozen=True, slots=True)
class PlanDemand:
    """A plan on a fabric, with figures no larger, or no smaller, than these."""

    file: str
    wiring: str  # a scenario of the exercise that has the same fabric
    dead_links: int = 0  # how many of its links the student takes out by faults:, exactly
    assignment: str = ""  # the kind of VLAN assignment that it must have; empty where any will do
    deadlock: bool = False  # whether it must be able to deadlock; else it must not
    # keys of `testbed plan --format json` and their limits
    most: dict[str, float | int] | None = field(default=None, metadata={"wanted": "a block such as {vlans: 8}"})
    least: dict[str, float | int] | None = field(default=None, metadata={"wanted": "a block such as {layers: 2}"})
    why: dict[str, str] | None = field(default=None, metadata={"wanted": "a block of keys and sentences"})


def judge_plan(work: Work, demand: PlanDemand) -> str | None:
    """Compare fabric, proof and figures, in this order; the first that is wrong is told."""
    found = next(_list_faults(work, demand), None)
    return None if found is None else f"{demand.file}: {found}"


def _list_faults(work: Work, demand: PlanDemand) -> Iterator[str]:
    given, wanted = work.scenario(demand.file), work.wiring(demand.wiring)
    yield from _wrong_fabric(build_fabric(given), wanted, demand.dead_links)
    if demand.assignment and given.assignment_kind != demand.assignment:
        yield (
            f"its VLAN assignment is {given.assignment_kind}, and this task is about {demand.assignment}; write "
            f"assignment: {{kind: {demand.assignment}}}"
        )
    plan = work.plan(demand.file)
    figures = summary(plan)
    for violation in plan.violations:
        if violation.invariant != DEADLOCK:
            yield f"the plan does not hold: {violation.sentence}"
        elif not demand.deadlock:
            yield f"it can deadlock: {violation.sentence}"
    if demand.deadlock and figures["deadlock_free"]:
        yield "it cannot deadlock: no channels wait for each other in a circle. Here such a circle is wanted"
    if demand.deadlock and not plan.is_proved:
        yield "it can deadlock, as is wanted, and does not declare it; add the line expect: deadlock"
    if not plan.is_proved:
        yield f"has expect: {given.expect}, which is not what the plan is; leave that line out"
    for limits, sign, word in ((demand.most, 1, "at most"), (demand.least, -1, "at least")):
        for key, limit in (limits or {}).items():
            value = number_of(figures, key)
            if sign * (value - limit) > 1e-9:
                more = (demand.why or {}).get(key, "")
                what = f"{value:.4g} {_WORDS.get(key, key)}, and {word} {limit:g} is asked for"
                yield f"{what}. {more}".rstrip()


def _wrong_fabric(found: Topology, wanted: Topology, dead_links: int) -> Iterator[str]:
    if (found.switch_count, found.host_count) != (wanted.switch_count, wanted.host_count):
        yield (
            f"has {found.switch_count} switches and {found.host_count} hosts, and the fabric of this task "
            f"{wanted.switch_count} and {wanted.host_count}; leave topology: as it was"
        )
    if wanted.link_count - found.link_count != dead_links:
        wish = f"exactly {dead_links} of its links" if dead_links else "none of its links"
        yield f"the fabric has {found.link_count} links of {wanted.link_count}; {wish} may be missing"
    if not _part_of(found, wanted):
        yield "its links are not those of the fabric of this task; leave topology: as it was"


def _part_of(found: Topology, wanted: Topology) -> bool:
    """Whether all links of one fabric are of another."""

    def pairs(topology: Topology) -> set[tuple[int, ...]]:
        return {tuple(sorted(pair)) for pair in np.asarray(topology.links).tolist()}

    return pairs(found) <= pairs(wanted)
