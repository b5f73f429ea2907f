"""A stored plan is proved when it is read: what the file says of itself is computed again from its tables."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from testbed.base.errors import InputError, VerificationError
from testbed.base.files import read_text
from testbed.base.limits import PLAN_VALUES, parse_json
from testbed.fabric.openflow.rule_text import format_group, format_rule
from testbed.fabric.verify import DEADLOCK
from testbed.planning import Plan
from testbed.planning.proof import digest_of, prove
from testbed.planning.store import plan_from_json
from testbed.planning.validate_arrays import validate_arrays

_REMEDY = "testbed plan NAME --output FILE writes one"


def read_stored(file: Path) -> Plan:
    """Read and prove a plan file; see proved_plan().

    Raises:
        InputError: it cannot be read, or is no plan.
        VerificationError: it is a plan that was changed.
    """
    try:
        text = read_text(file)
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise InputError.one(str(file), f"cannot be read: {reason}; {_REMEDY}") from error
    return proved_plan(text, str(file))


def proved_plan(text: str, place: str) -> Plan:
    """Return the plan of a JSON text with what verification finds of its tables now, whatever the text says of them.

    Args:
        text: what plan_to_json() has returned.
        place: name of the file, for messages.

    Raises:
        InputError: it is no plan.
        VerificationError: digest, rules or violations in it are not those of its tables.
    """
    try:
        raw = parse_json(text, most=PLAN_VALUES)
        plan = plan_from_json(text)
        wrong = validate_arrays(plan.topology, plan.routes, plan.vlans, plan.bundles)
    except InputError as error:
        raise InputError([replace(problem, file=place) for problem in error.problems]) from error
    except (ValueError, TypeError, LookupError, AttributeError, OverflowError, RecursionError) as error:
        shown = str(error) if isinstance(error, ValueError) else repr(error)
        raise InputError.one(place, f"is not a plan: {shown}; {_REMEDY}") from error
    if wrong:
        raise InputError.one(place, f"is damaged: {wrong[0]}; {_REMEDY}")
    digest = digest_of(*(part for part in (plan.topology, plan.routes, plan.vlans, plan.bundles) if part is not None))
    if digest != plan.digest:
        sentence = f"says that its digest is {plan.digest} and its tables have {digest}: they were changed; {_REMEDY}"
        raise VerificationError(sentence, place)
    found = prove(plan.scenario, plan.topology, plan.routes, plan.vlans, plan.bundles)
    if found != plan.violations:
        sentence = (
            f"says that {_describe_count(len(plan.violations))} and {_describe_count(len(found))} when its tables are "
            f"verified; it was changed, or another version wrote it; {_REMEDY}"
        )
        raise VerificationError(sentence, place, [f"{v.invariant}: {v.sentence}" for v in found])
    _compare_rules(plan, raw, place)
    return plan


def _describe_count(violations: int) -> str:
    if violations == 0:
        return "no invariant is broken"
    return "1 invariant is broken" if violations == 1 else f"{violations} invariants are broken"


def _compare_rules(plan: Plan, raw: dict[str, object], place: str) -> None:
    """The rules in the file are for other programs: they must be those of its tables."""
    if any(violation.invariant != DEADLOCK for violation in plan.violations):
        return  # nobody installs them
    rules: list[list[str]] = [[] for _ in range(plan.topology.switch_count)]
    groups: list[list[str]] = [[] for _ in rules]
    for rule in plan.rules:
        rules[rule.switch].append(format_rule(rule))
    for group in plan.groups:
        groups[group.switch].append(format_group(group))
    for name, wanted in (("rules", rules), ("groups", groups)):
        there = raw.get(name)
        if there != wanted:
            same = isinstance(there, list) and len(there) == len(wanted)
            first = next((s for s in range(len(wanted)) if there[s] != wanted[s]), 0) if same else None  # type: ignore[index]
            where = "" if first is None else f" of {plan.topology.switch_name(first)}"
            sentence = f"lists {name}{where} that do not follow from its tables: they were changed; {_REMEDY}"
            raise VerificationError(sentence, place)
