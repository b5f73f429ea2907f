"""Answers in answers.yaml: numbers, choices, shares of flows, an order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from testbed.base.errors import InputError, did_you_mean
from testbed.scenario.parameter_models import format_value
from testbed.ui.teaching.expected_figures import fair_shares, figure
from testbed.ui.teaching.student_folder import Work

_BLOCK = {"wanted": "a block such as {figure: plan, file: ring.yaml, key: vlans}"}


@dataclass(frozen=True, slots=True)
class Number:
    """An answer that equals a figure."""

    key: str  # in answers.yaml
    expect: dict[str, str] = field(metadata=_BLOCK)
    within: float = 0.0  # share by which it may be off
    unit: str = ""
    # a wrong answer → what its author may have thought; several figures' answers may be alike, the first holds
    wrong: dict[str, str] | None = field(default=None, metadata={"wanted": "a block of answers and sentences"})
    why: str = ""  # said of every other wrong answer


def judge_number(work: Work, demand: Number) -> str | None:
    """Compare, and say of known mistakes what they are."""
    given = _number(work, demand.key)
    expected = figure(work, demand.expect)
    if abs(given - expected) <= max(demand.within * abs(expected), 1e-9):
        return None
    known = next(
        (says for text, says in (demand.wrong or {}).items() if _is_near(given, float(text), demand.within)), ""
    )
    direction = "too large" if given > expected else "too small"
    unit = f" {demand.unit}" if demand.unit else ""
    return f"{demand.key}: {given:g}{unit} is {direction}. {known or demand.why}".rstrip()


def _is_near(given: float, known: float, within: float) -> bool:
    return abs(given - known) <= max(within * abs(known), 1e-9)


def _number(work: Work, key: str) -> float:
    given = work.answer(key)
    if isinstance(given, bool) or not isinstance(given, int | float):
        sentence = f"should be a number, with a point and without a unit, such as 2.5, not {format_value(given)}"
        raise InputError.one(key, sentence, "answers.yaml")
    return float(given)


@dataclass(frozen=True, slots=True)
class Choice:
    """One of several statements; the sentence of the right one is empty."""

    key: str
    options: dict[str, str] = field(metadata={"wanted": "a block of options and what is wrong with each"})


def judge_choice(work: Work, demand: Choice) -> str | None:
    """Look what the option's sentence says."""
    given = str(work.answer(demand.key)).strip().lower()
    if given not in demand.options:
        sentence = f"should be one of {', '.join(demand.options)}, not {format_value(given)}"
        raise InputError.one(demand.key, sentence, "answers.yaml")
    says = demand.options[given]
    return f"{demand.key}: {given} is not it. {says}" if says else None


@dataclass(frozen=True, slots=True)
class Shares:
    """What each flow of a pattern gets, in Mbit/s, under max–min fairness."""

    key: str
    file: str  # a scenario that the exercise gives
    pattern: str
    within: float = 0.06  # headers and gaps take 4 % of a link, so shares of the bare link rate are right, too


def judge_shares(work: Work, demand: Shares) -> str | None:
    """Compare each, and name the first that is wrong."""
    expected = fair_shares(work, demand.file, demand.pattern)
    given = work.answer(demand.key)
    if not isinstance(given, dict):
        example = next(iter(expected))
        sentence = f"should be a block of flows such as {{{example}: 500}}, not {format_value(given)}"
        raise InputError.one(demand.key, sentence, "answers.yaml")
    for flow in given:
        if flow not in expected:
            near = did_you_mean(str(flow), expected)
            raise InputError.one(demand.key, f'there is no flow "{flow}" here.{near}', "answers.yaml")
    missing = [flow for flow in expected if not isinstance(given.get(flow), int | float)]
    if missing:
        return f"{demand.key}: {', '.join(missing)} {'has' if len(missing) == 1 else 'have'} no number yet"
    wrong = [flow for flow, rate in expected.items() if abs(given[flow] - rate) > demand.within * rate]
    if not wrong:
        return None
    flow = wrong[0]
    more, right = given[flow] > expected[flow], len(expected) - len(wrong)
    if more and _is_overfull(given, expected):
        why = "together with the flows it meets it would need more than a link has"
    elif more:
        why = "it would take from a flow that has less, which max–min fairness does not let it"
    else:
        why = (
            "a link on its way has room left: after the fullest link's flows are frozen, the others go on rising, also "
            "beyond an equal share"
        )
    direction = "too much" if more else "too little"
    return f"{demand.key}: {right} of {len(expected)} flows are right. {flow} gets {direction}: {why}"


def _is_overfull(given: dict[str, float], expected: dict[str, float]) -> bool:
    return sum(given.values()) > sum(expected.values())


@dataclass(frozen=True, slots=True)
class Order:
    """Names sorted by a figure, the smallest first; those that are equal in any order."""

    key: str
    by: dict[str, dict[str, str]] = field(metadata={"wanted": "a block of names, each with a figure"})
    what: str = "the figure"


def judge_order(work: Work, demand: Order) -> str | None:
    """Name the first two that stand the wrong way round."""
    given = work.answer(demand.key)
    if not isinstance(given, Sequence) or isinstance(given, str) or sorted(map(str, given)) != sorted(demand.by):
        sentence = f"should be a list of all of {', '.join(demand.by)}, each once, not {format_value(given)}"
        raise InputError.one(demand.key, sentence, "answers.yaml")
    names = [str(name) for name in given]
    values = [figure(work, demand.by[name]) for name in names]
    for (one, first), (other, second) in zip(
        zip(names, values, strict=True), list(zip(names, values, strict=True))[1:], strict=False
    ):
        if first > second * (1 + 1e-9):
            return f"{demand.key}: {other} stands behind {one}, and {demand.what} of {other} is smaller"
    return None
