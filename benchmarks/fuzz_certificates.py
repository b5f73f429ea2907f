"""False certificates: a proved plan's rules, groups, cables or certificate with one thing changed; none may pass.

What is refused needs no judge. What `certificate_check.check()` accepts is judged by an interpreter of its own
(openflow.py), and must be true there. Kinds whose change nothing alters must be accepted.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from random import Random
from typing import Any

from benchmarks.certificates import blocks, certified
from benchmarks.fuzz_certificate_kinds import KINDS, SAME
from benchmarks.fuzz_certificate_plans import Base
from benchmarks.openflow import UnknownError, is_true
from testbed.base.errors import InputError
from testbed.planning import make_plan
from testbed.planning.certificate_check import check
from testbed.planning.store import plan_to_json
from testbed.scenario.read_scenario import scenario_of_blocks

# One plan of each form: every kind applies to one of them. Others are drawn.
_FORMS: tuple[dict[str, Any], ...] = (
    {"topology": {"kind": "mesh", "sizes": [3, 2], "hosts_per_switch": 1}},
    {"topology": {"kind": "complete", "switches": 3, "parallel_links": 2, "hosts_per_switch": 1},
     "links": {"aggregate": True}},
    {"topology": {"kind": "ring", "switches": 4, "hosts_per_switch": 2}, "assignment": {"kind": "renamed"}},
    {"topology": {"kind": "torus", "sizes": [3], "hosts_per_switch": 1}, "assignment": {"kind": "openflow"}},
    {"topology": {"kind": "tree", "switches": 5, "hosts_per_switch": 1}, "assignment": {"kind": "static"}},
    {"topology": {"kind": "mesh", "sizes": [2, 2], "parallel_links": 2, "hosts_per_switch": 1},
     "links": {"aggregate": True}},
)  # fmt: skip
_MANY = 400  # changes after which another plan is drawn
_MOST = 12  # hosts of a drawn plan: a larger one takes its time, and shows no more
_POOL = 12  # drawn plans that are changed at a time
_JUDGED = 25  # one of so many that are refused is judged as well, to see that changes do make certificates false
_NONSENSE = (KeyError, TypeError, ValueError, IndexError, AttributeError)  # for which the program says: no plan


def base_of(raw: dict[str, Any]) -> Base | None:
    """A proved plan with its certificate; None where there is none."""
    try:
        plan = make_plan(scenario_of_blocks({"name": "drawn", **raw}, "drawn.yaml"))
    except InputError:
        return None
    if plan.violations:
        return None
    return Base.of(json.loads(plan_to_json(plan)), certified(plan))


@cache
def forms() -> tuple[Base, ...]:
    """A plan of each form."""
    found = tuple(base_of(raw) for raw in _FORMS)
    assert None not in found
    return found  # type: ignore[return-value]


def refused(plan: Any, certificate: Any) -> bool:
    """Whether the checker refuses it, or says that this is no plan."""
    try:
        return bool(check(plan, certificate))
    except _NONSENSE:
        return True


def truth(plan: Any, certificate: Any) -> str:
    """`true`, `false` or `unknown`."""
    try:
        return "true" if is_true(plan, certificate) else "false"
    except (UnknownError, *_NONSENSE):
        return "unknown"


@dataclass
class Outcome:
    """What came of many changes.

    Attributes:
        counts: kind → how many there were.
        refused: kind → how many of them were.
        judged: kind and truth → how many of those that were judged.
        wrong: what was accepted and is not true, or refused and is the same; kind, plan and certificate.
    """

    counts: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    judged: Counter[tuple[str, str]] = field(default_factory=Counter)
    wrong: list[tuple[str, Any, Any]] = field(default_factory=list)

    def add(self, kind: str, plan: Any, certificate: Any, *, judge: bool) -> None:
        """Check one."""
        self.counts[kind] += 1
        no = refused(plan, certificate)
        self.refused[kind] += no
        if judge or not no:
            found = truth(plan, certificate)
            self.judged[kind, found] += 1
            if not no and found != "true":
                self.wrong.append((kind, plan, certificate))
        if no and kind in SAME:
            self.wrong.append((kind, plan, certificate))


def drawn(seed: int) -> Iterator[Base]:
    """Plans without end, those of each form first."""
    yield from forms()
    draw = Random(f"{seed} plans")
    while True:
        base = base_of(blocks(draw))
        if base is not None and base.used and len(base.certificate["walks"]) <= _MOST:
            yield base


def feed_certificates(count: int, seed: int, until: float = float("inf")) -> Outcome:
    """Check so many changed plans and certificates, or until a time."""
    found, bases, names = Outcome(), drawn(seed), sorted(KINDS)
    pool = [next(bases) for _ in forms()]
    number = 0
    while sum(found.counts.values()) < count and time.monotonic() < until:
        draw = Random(f"{seed} certificate {number}")
        if number % _MANY == _MANY - 1:
            pool.append(next(bases))
        kind = names[number % len(names)]
        number += 1
        changed = None
        for _ in range(4):  # not every kind fits every plan
            changed = KINDS[kind](draw.choice(pool[-_POOL:]) if draw.random() < 0.7 else draw.choice(forms()), draw)
            if changed is not None:
                break
        if changed is not None:
            found.add(kind, *changed, judge=number % _JUDGED == 0)
    return found
