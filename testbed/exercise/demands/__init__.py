"""What tasks can demand, as one table that can be read.

A judge looks at a student's work and returns None where the demand is met, else a sentence that says what is not so
and, where that can be known, why. InputError says that there is nothing to judge.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from testbed.exercise.demands import answers, by_hand, links, outputs, plans
from testbed.exercise.work import Work


@dataclass(frozen=True, slots=True)
class DemandKind:
    """One entry of the table."""

    parameters: type[Any]  # dataclass of its parameters
    judge: Callable[[Work, Any], str | None]


DEMANDS: dict[str, DemandKind] = {
    "number": DemandKind(answers.Number, answers.judge_number),
    "choice": DemandKind(answers.Choice, answers.judge_choice),
    "shares": DemandKind(answers.Shares, answers.judge_shares),
    "order": DemandKind(answers.Order, answers.judge_order),
    "no_storm": DemandKind(by_hand.File, by_hand.judge_no_storm),
    "every_pair": DemandKind(by_hand.File, by_hand.judge_every_pair),
    "vlans": DemandKind(by_hand.Vlans, by_hand.judge_vlans),
    "own_pvids": DemandKind(by_hand.File, by_hand.judge_own_pvids),
    "shortest": DemandKind(by_hand.File, by_hand.judge_shortest),
    "links_used": DemandKind(by_hand.LinksUsed, by_hand.judge_links_used),
    "goodput": DemandKind(by_hand.Goodput, by_hand.judge_goodput),
    "survives": DemandKind(by_hand.File, by_hand.judge_survives),
    "pvid_of": DemandKind(by_hand.PvidOf, by_hand.judge_pvid_of),
    "blocked": DemandKind(links.Blocked, links.judge_blocked),
    "best_root": DemandKind(links.BestRoot, links.judge_best_root),
    "cycle": DemandKind(links.Cycle, links.judge_cycle),
    "spared": DemandKind(links.Spared, links.judge_spared),
    "plan": DemandKind(plans.PlanDemand, plans.judge_plan),
    "storm_seen": DemandKind(outputs.StormSeen, outputs.judge_storm_seen),
    "simulated": DemandKind(outputs.Simulated, outputs.judge_simulated),
    "run": DemandKind(outputs.RunDemand, outputs.judge_run),
}
