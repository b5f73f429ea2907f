"""A lab that runs already: links that its traffic of now does not need go off, and on again."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass

from testbed.base.errors import InputError, LabError, argument
from testbed.base.model import Floats
from testbed.engines.session import Session
from testbed.experiments.regulate.choose_links import choose_links, kept_links
from testbed.experiments.regulate.plan_changes import PlanMover
from testbed.experiments.regulate.power import power_of
from testbed.experiments.regulate.run import require_regulable
from testbed.experiments.regulate.traffic import Traffic, bytes_between, read_pairs
from testbed.fabric.power import PowerModel, fabric_watts
from testbed.planning import Plan
from testbed.planning.store import plan_from_json, plan_to_json

# In the lab's folder, while links are off: the plan that is installed, and those links.
_FILE = "regulated.json"
_LOOK = 0.1  # sampling interval, s at whether to go on


@dataclass(frozen=True, slots=True)
class RunningResult:
    """What became of a running lab."""

    off: tuple[str, ...]  # names of links that are off now
    links: int  # how many there are
    model: str  # of the switches
    watts_before: float  # of all of them, with all links on
    watts_after: float  # likewise, as it is now
    seconds: float  # laboratory s that the change of plans took


def why_not(lab: Session, plan: Plan) -> str:
    """Why links of a lab cannot be switched off under traffic; empty where they can."""
    try:
        require_regulable(plan)
    except InputError as error:
        return error.problems[0].sentence
    wanted = "switch_tagged" if plan.scenario.engine == "ovs" and plan.bundles is None else None
    found = lab.facts.controller
    if found == wanted:
        return ""
    if wanted is None:
        return f"{found} decides on paths itself; build the lab with lab.controller=none"
    return "needs a controller that changes plans under traffic; build the lab with lab.controller=switch_tagged"


def off_now(lab: Session) -> list[int]:
    """Links that are off by switch_off()."""
    installed = _read_installed(lab)
    return [] if installed is None else installed[1]


def switch_off(
    lab: Session,
    plan: Plan,
    model: PowerModel,
    seconds: float,
    progress: Callable[[str], None],
    *,
    goes_on: Callable[[], bool] = lambda: True,
) -> RunningResult:
    """Watch the traffic for so many laboratory seconds, and switch off the links that it can do without.

    `plan` is what the lab was built from; where `goes_on()` ends first, nothing is changed.

    Raises:
        InputError: the lab cannot be regulated, or is so already.
        LabError: no traffic, or the change was refused.
    """
    _require(lab, plan)
    if _read_installed(lab) is not None:
        both = f"{argument('running', value=True)} {argument('all_on', value=True)}"
        raise InputError.one("", f"some of its links are off already; switch all on first ({both})")
    progress(f"watching the traffic for {seconds:g} s")
    matrix = _traffic(lab, plan, seconds, goes_on)
    progress("choosing links by the traffic")
    traffic = Traffic("the traffic of now", matrix, "bytes between hosts, all links on")
    choice = choose_links(plan, traffic, keep=kept_links(plan))
    if not choice.off_links:
        raise LabError("the traffic needs all links, so none went off")
    progress(f"moving paths off {len(choice.off_links)} links")
    mover = PlanMover(lab, model.off_on)
    change = mover.move(lab, "links off", choice.plan, choice.off_links)
    lab.write(_FILE, json.dumps({"plan": plan_to_json(choice.plan), "off": list(choice.off_links)}))
    _require_whole(change.problems)
    power = power_of(plan, choice, model)
    watts = float(power.before.sum()), float(power.after.sum())
    return RunningResult(choice.names, plan.wiring.link_count, model.name, *watts, round(change.seconds, 3))


def restore_links(lab: Session, plan: Plan, model: PowerModel, progress: Callable[[str], None]) -> RunningResult:
    """Switch all links on again, and put the lab's own plan in force.

    Raises:
        InputError: the lab cannot be regulated, or all are on.
        LabError: the change was refused.
    """
    _require(lab, plan)
    installed = _read_installed(lab)
    if installed is None:
        raise InputError.one("", "all links are on already, as far as traffic decides on them")
    progress("waking links and moving paths back")
    mover = PlanMover(lab, model.off_on, installed[1], installed[0])
    change = mover.move(lab, "links on", plan, [])
    lab.write(_FILE, "{}")
    _require_whole(change.problems)
    watts = float(fabric_watts(plan.wiring, model, ["1G"] * plan.wiring.link_count).sum())
    return RunningResult((), plan.wiring.link_count, model.name, watts, watts, round(change.seconds, 3))


def describe_result(found: RunningResult) -> str:
    """What became of it, in words."""
    if not found.off:
        return f"all {found.links} links are on, in {found.seconds:.1f} s"
    return (
        f"{len(found.off)} of {found.links} links are off: {' '.join(found.off)}; switches of model {found.model} take "
        f"{found.watts_after:.1f} W in place of {found.watts_before:.1f} W; changed in {found.seconds:.1f} s"
    )


def _require(lab: Session, plan: Plan) -> None:
    reason = why_not(lab, plan)
    if reason:
        raise InputError.one(argument("running"), reason)


def _require_whole(problems: tuple[str, ...]) -> None:
    if problems:
        raise LabError(f"after the change the switches differ from the plan: {problems[0]} ({len(problems)})")


def _read_installed(lab: Session) -> tuple[Plan, list[int]] | None:
    if not lab.count_files(_FILE):
        return None
    said = json.loads(lab.read(_FILE))
    return (plan_from_json(said["plan"]), [int(link) for link in said["off"]]) if said else None


def _traffic(lab: Session, plan: Plan, seconds: float, goes_on: Callable[[], bool]) -> Floats:
    """(H, H) bytes between hosts in so many s from now."""
    first, until = read_pairs(lab), time.monotonic() + seconds
    while time.monotonic() < until:
        if not goes_on():
            raise LabError("stopped; no link was switched off")
        time.sleep(min(_LOOK, max(0.0, until - time.monotonic())))
    matrix = bytes_between(first, read_pairs(lab), plan.topology.host_count)
    if not matrix.any():
        raise LabError(f"no host has sent another anything in {seconds:g} s, so no link can be chosen; start a load")
    return matrix
