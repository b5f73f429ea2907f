"""What tasks can demand, as one table that can be read.

A judge looks at a student's work and returns None where the demand is met, else a sentence that says what is not so
and, where that can be known, why. InputError says that there is nothing to judge.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from testbed.ui.teaching.demands import answers, configured_switches, links, outputs, plans
from testbed.ui.teaching.student_folder import Work


@dataclass(frozen=True, slots=True)
class DemandKind:
    """One entry of the table."""

    parameters: type[Any]  # dataclass of its parameters
    judge: Callable[[Work, Any], str | None]
    own: bool = False  # whether `file` of the parameters is to be changed; as it was given it meets no demand


DEMANDS: dict[str, DemandKind] = {
    "number": DemandKind(answers.Number, answers.judge_number),
    "choice": DemandKind(answers.Choice, answers.judge_choice),
    "shares": DemandKind(answers.Shares, answers.judge_shares),
    "order": DemandKind(answers.Order, answers.judge_order),
    "no_storm": DemandKind(configured_switches.File, configured_switches.judge_no_storm, own=True),
    "every_pair": DemandKind(configured_switches.File, configured_switches.judge_every_pair, own=True),
    "vlans": DemandKind(configured_switches.Vlans, configured_switches.judge_vlans, own=True),
    "own_pvids": DemandKind(configured_switches.File, configured_switches.judge_own_pvids, own=True),
    "shortest": DemandKind(configured_switches.File, configured_switches.judge_shortest, own=True),
    "links_used": DemandKind(configured_switches.LinksUsed, configured_switches.judge_links_used, own=True),
    "goodput": DemandKind(configured_switches.Goodput, configured_switches.judge_goodput, own=True),
    "survives": DemandKind(configured_switches.Survives, configured_switches.judge_survives, own=True),
    "pvid_of": DemandKind(configured_switches.PvidOf, configured_switches.judge_pvid_of, own=True),
    "blocked": DemandKind(links.Blocked, links.judge_blocked),
    "best_root": DemandKind(links.BestRoot, links.judge_best_root),
    "cycle": DemandKind(links.Cycle, links.judge_cycle),
    "spared": DemandKind(links.Spared, links.judge_spared),
    "plan": DemandKind(plans.PlanDemand, plans.judge_plan, own=True),
    "storm_seen": DemandKind(outputs.StormSeen, outputs.judge_storm_seen),
    "simulated": DemandKind(outputs.Simulated, outputs.judge_simulated),
    "run": DemandKind(outputs.RunDemand, outputs.judge_run),
}
