"""What tasks can demand, as one table that can be read.

A judge looks at a student's work and returns None where the demand is met, else a sentence that says what is not so
and, where that can be known, why. InputError says that there is nothing to judge.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from testbed.ui.teaching.demands import answers, by_hand, links, outputs, plans
from testbed.ui.teaching.work import Work


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
    "no_storm": DemandKind(by_hand.File, by_hand.judge_no_storm, own=True),
    "every_pair": DemandKind(by_hand.File, by_hand.judge_every_pair, own=True),
    "vlans": DemandKind(by_hand.Vlans, by_hand.judge_vlans, own=True),
    "own_pvids": DemandKind(by_hand.File, by_hand.judge_own_pvids, own=True),
    "shortest": DemandKind(by_hand.File, by_hand.judge_shortest, own=True),
    "links_used": DemandKind(by_hand.LinksUsed, by_hand.judge_links_used, own=True),
    "goodput": DemandKind(by_hand.Goodput, by_hand.judge_goodput, own=True),
    "survives": DemandKind(by_hand.Survives, by_hand.judge_survives, own=True),
    "pvid_of": DemandKind(by_hand.PvidOf, by_hand.judge_pvid_of, own=True),
    "blocked": DemandKind(links.Blocked, links.judge_blocked),
    "best_root": DemandKind(links.BestRoot, links.judge_best_root),
    "cycle": DemandKind(links.Cycle, links.judge_cycle),
    "spared": DemandKind(links.Spared, links.judge_spared),
    "plan": DemandKind(plans.PlanDemand, plans.judge_plan, own=True),
    "storm_seen": DemandKind(outputs.StormSeen, outputs.judge_storm_seen),
    "simulated": DemandKind(outputs.Simulated, outputs.judge_simulated),
    "run": DemandKind(outputs.RunDemand, outputs.judge_run),
}
