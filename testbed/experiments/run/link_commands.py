"""What is to become of a link of a running lab, from the words in which it is asked for."""

from __future__ import annotations

from collections.abc import Mapping

from testbed.base.errors import InputError, Problem
from testbed.base.messages import Disturbance, LinkChange, LinkState
from testbed.base.units import format_rate
from testbed.engines.local_machine.probe import require_netem
from testbed.engines.session import Session
from testbed.planning import Plan
from testbed.planning.check_loads import too_slow
from testbed.scenario.workloads.link_settings import READERS, format_conditions

LOST = "frames that take it are lost, since no lab.controller: segment_manager moves paths away"


def read_words(texts: Mapping[str, str | None], place: str = "") -> dict[str, float]:
    """Read what rate, delay and loss are to be; `place` stands before their names in messages, such as -- of options.

    Raises:
        InputError: all that cannot be read.
    """
    problems, found = [], {}
    for word, text in texts.items():
        if text is not None:
            try:
                found[word] = READERS[word](text)
            except ValueError as error:
                problems.append(Problem(f"{place}{word}", str(error)))
    if problems:
        raise InputError(problems)
    return found


def list_disturbances(
    lab: Session,
    number: int,
    words: Mapping[str, float],
    *,
    down: bool = False,
    up: bool = False,
    reset: bool = False,
    place: str = "",
) -> list[Disturbance]:
    """What is to happen to a link, in order.

    Args:
        lab: the link is in it.
        number: of the physical link.
        words: `rate`, `delay` and `loss`, as read_words() gives them.
        down: let it carry nothing.
        up: let it carry frames again.
        reset: all three as planned first.
        place: as of read_words().

    Raises:
        InputError: the lab cannot be as slow as that.
        CapabilityError: this machine cannot do it.
    """
    slow = too_slow(words["rate"], lab.facts.dilation) if "rate" in words else ""
    if slow:
        raise InputError.one(f"{place}rate", slow)
    if (words.get("delay") or words.get("loss")) and not lab.facts.pace:  # a model needs no kernel for that
        require_netem()
    found = []
    if words or reset:
        found.append(Disturbance(up=True, links=(LinkChange(number, **words, reset=reset),)))
    if down or up:
        found.append(Disturbance(up=up, channels=(2 * number, 2 * number + 1)))
    return found


def planned_rate(plan: Plan, number: int) -> float:
    """Real-world bit/s of a physical link by the plan."""
    share = 1.0 if plan.speeds is None else float(plan.speeds[number])
    return plan.scenario.links.rate * share


def describe_link(plan: Plan, number: int, state: LinkState) -> str:
    """How a link is, in words."""
    planned = planned_rate(plan, number)
    words = format_conditions(planned if state.rate is None else state.rate, state.delay, state.loss)
    words[0] += " (as planned)" if state.rate is None else f" ({format_rate(planned)} planned)"
    return ", ".join(["up" if state.up else "down", *words])
