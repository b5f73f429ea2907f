"""Each kind of false certificate that `make fuzz` makes is refused, and the judge of them knows a false one."""

from __future__ import annotations

from functools import cache
from random import Random

import pytest

from benchmarks.fuzz_certificate_kinds import EQUAL, KINDS, SAME
from benchmarks.fuzz_certificates import Outcome, feed_certificates, forms, refused, truth

_TRIES = 8


@cache
def judged(kind: str) -> Outcome:
    """Changes of plans of every form, until one makes a certificate that is not true."""
    found = Outcome()
    for number in range(_TRIES):
        for base in forms():
            changed = KINDS[kind](base, Random(f"{kind} {number}"))
            if changed is not None:
                found.add(kind, *changed, judge=True)
        if found.judged[kind, "false"] or (kind in SAME | EQUAL and found.counts[kind]):
            break
    return found


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_no_false_certificate_is_accepted(kind: str):
    found = judged(kind)
    assert found.counts[kind]
    assert not found.wrong
    if kind in SAME:
        assert not found.refused[kind]
    elif kind not in EQUAL:
        assert found.judged[kind, "false"] + found.judged[kind, "unknown"]
        assert found.refused[kind]


def test_a_hundred_kinds_are_false_by_a_knowing_interpreter():
    # Of the others it cannot tell, so nobody may say that they are true.
    assert sum(judged(kind).judged[kind, "false"] > 0 for kind in KINDS) >= 100


def test_the_slice_of_certificates_counts_and_finds_nothing():
    found = feed_certificates(300, seed=5)
    assert sum(found.counts.values()) == 300
    assert not found.wrong
    assert 150 < sum(found.refused.values()) < 300


def test_what_is_accepted_and_false_is_a_finding(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("benchmarks.fuzz_certificates.check", lambda plan, certificate: [])
    found = feed_certificates(300, seed=5)
    assert len(found.wrong) > 150
    kind, plan, certificate = found.wrong[0]
    assert not refused(plan, certificate)
    assert truth(plan, certificate) != "true"
    assert kind not in SAME
