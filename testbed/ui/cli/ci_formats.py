"""What was found of each plan, in the forms that systems of continuous integration read."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

from testbed.base.errors import EXIT_FAIL, EXIT_NOTHING_RAN, EXIT_PASS
from testbed.base.untrusted_text import escape_controls, escape_line

if TYPE_CHECKING:
    from testbed.base.model import Violation
    from testbed.fabric.verify.next_hop_choices import ChoiceProof
    from testbed.planning import Plan

_SUITE = "testbed verify"
_MAX_WITNESS = 200
_NOT_THERE = "expect: deadlock, but the channel dependency graph has no cycle; leave expect: out"
_NO_XML = re.compile("[^\\t\\n\\r -\\ud7ff\\ue000-\\ufffd\\U00010000-\\U0010ffff]")


@dataclass(frozen=True, slots=True)
class ReadForwarding:
    """Forwarding of a file, and what was found of it on a fabric."""

    file: str  # as it was given
    proof: ChoiceProof  # what was found
    switches: int  # of the fabric
    layers: int  # that its frames are in
    deadlock_expected: bool = False  # whether the scenario declares it


@dataclass(frozen=True, slots=True)
class CommandVerdict:
    """Of one scenario or plan file."""

    name: str  # as it was given
    seconds: float  # it took
    plan: Plan | None = None  # None where there is none
    problems: tuple[tuple[str, str], ...] = ()  # place and sentence of what keeps it from being planned
    changed: tuple[str, ...] = ()  # why a stored plan is refused: a sentence, and lines below it
    # cycles that tables in use together around a failure or repair of its loads could close: they fail no plan
    shared_cycles: tuple[str, ...] = ()
    forwarding: ReadForwarding | None = None  # of a file, in place of a plan
    routes: str = ""  # the file of forwarding that was to be proved; empty where a plan was

    @property
    def has_passed(self) -> bool:
        """Whether everything holds that the scenario expects."""
        if self.forwarding is not None:
            expected = self.forwarding.deadlock_expected
            others = [found for found in self.invariants_broken if found.invariant != "deadlock"]
            return not others and self.forwarding.proof.deadlock_free != expected
        return self.plan is not None and self.plan.is_proved

    def taking(self, started: float) -> CommandVerdict:
        """The same verdict, with the seconds since a time of the clock."""
        return replace(self, seconds=time.monotonic() - started)

    @property
    def file(self) -> str:
        """The scenario's file, or that of the forwarding."""
        if self.forwarding is not None:
            return self.forwarding.file
        return self.plan.scenario.source if self.plan is not None else self.name

    @property
    def invariants_broken(self) -> tuple[Violation, ...]:
        """What does not hold of the plan or the forwarding."""
        if self.forwarding is not None:
            return self.forwarding.proof.violations
        return self.plan.violations if self.plan is not None else ()

    @property
    def violations(self) -> list[tuple[str, str]]:
        """Invariant and sentence of everything that does not hold; what the sentence quotes ends no line of it."""
        if self.forwarding is not None:
            listed = [(violation.invariant, escape_line(violation.sentence)) for violation in self.invariants_broken]
            return listed or ([] if self.has_passed else [("deadlock", _NOT_THERE)])
        if self.plan is None:
            return [("stored plan", "\n".join(map(escape_line, self.changed)))] if self.changed else []
        found = [(violation.invariant, escape_line(violation.sentence)) for violation in self.plan.violations]
        if not found and not self.plan.is_proved:
            found = [("deadlock", _NOT_THERE)]
        return found

    @property
    def line(self) -> str:
        """The verdict in a line."""
        if self.forwarding is not None:
            return _forwarding_line(self.name, self.forwarding, passed=self.has_passed)
        if self.plan is None:
            without = f"{self.routes} could not be proved" if self.routes else "could not be planned"
            return f"{self.name}: {'FAILED: the file does not hold' if self.changed else without}"
        plan = self.plan
        hosts = plan.topology.host_count
        vlans = _vlans(plan)
        free = "deadlock free" if plan.deadlock_free else "can deadlock"
        expected = " as expected" if self.has_passed and not plan.deadlock_free else ""
        word = "passed" if self.has_passed else "FAILED"
        return f"{self.name}: {word}: {hosts * (hosts - 1)} pairs, {vlans}, {free}{expected}"

    def as_object(self) -> dict[str, object]:
        """What `--format json` has of it."""
        found: dict[str, object] = {"name": self.name, "passed": self.has_passed, "seconds": round(self.seconds, 3)}
        if self.forwarding is not None:
            proof = self.forwarding.proof
            return {
                **found,
                "routes": self.forwarding.file,
                "switches": self.forwarding.switches,
                "layers": self.forwarding.layers,
                "pairs": proof.pairs,
                "delivered": proof.delivered,
                "looping": proof.looping,
                "deadlock_free": proof.deadlock_free,
                "problems": [],
                "violations": self._objects(),
            }
        if self.plan is None:
            problems = [{"place": place, "sentence": sentence} for place, sentence in self.problems]
            return {**found, "problems": problems, "violations": self._objects()}
        plan = self.plan
        return {
            **found,
            "scenario": plan.scenario.name,
            "digest": plan.digest,
            "deadlock_free": plan.deadlock_free,
            "expect": plan.scenario.expect,
            "shared_cycles": list(self.shared_cycles),
            "problems": [],
            "violations": self._objects(),
        }

    def _objects(self) -> list[dict[str, object]]:
        witness = {escape_line(v.sentence): list(v.witness) for v in self.invariants_broken}
        return [
            {"invariant": invariant, "sentence": sentence, "witness": witness.get(sentence, [])}
            for invariant, sentence in self.violations
        ]


def _forwarding_line(name: str, found: ReadForwarding, *, passed: bool) -> str:
    proof = found.proof
    free = "deadlock free" if proof.deadlock_free else "can deadlock"
    expected = " as expected" if passed and not proof.deadlock_free else ""
    layers = f", {found.layers} layers" if found.layers > 1 else ""
    loops = f", {proof.looping:,} can loop" if proof.looping else ""
    pairs = f"{proof.delivered:,} of {proof.pairs:,} pairs delivered{loops}"
    return f"{name}: {found.file}: {'passed' if passed else 'FAILED'}: {pairs}{layers}, {free}{expected}"


def _vlans(plan: Plan) -> str:
    from testbed.base.model import VlanPlan
    from testbed.base.units import count_noun
    from testbed.fabric.vlans.local_vlans import vlan_count

    count = (
        plan.vlans.vlan_count
        if isinstance(plan.vlans, VlanPlan)
        else int(vlan_count(plan.topology, plan.vlans).max(initial=0))
    )
    return count_noun(count, "VLAN")


def exit_code(verdicts: Sequence[CommandVerdict]) -> int:
    """2 if something cannot be planned, else 1 if an invariant does not hold, else 0."""
    if any(verdict.problems for verdict in verdicts):
        return EXIT_NOTHING_RAN
    return EXIT_PASS if all(verdict.has_passed for verdict in verdicts) else EXIT_FAIL


def junit_text(verdicts: Sequence[CommandVerdict]) -> str:
    """One test case a plan: a failure with every violation and its witness, an error where there is no plan."""
    suite = ET.Element(
        "testsuite",
        name=_SUITE,
        tests=str(len(verdicts)),
        failures=str(sum(not v.has_passed and not v.problems for v in verdicts)),
        errors=str(sum(bool(v.problems) for v in verdicts)),
        skipped="0",
        time=f"{sum(v.seconds for v in verdicts):.3f}",
    )
    for verdict in verdicts:
        case = ET.SubElement(
            suite, "testcase", classname=_SUITE, name=_clean(verdict.name), file=_clean(verdict.file),
            time=f"{verdict.seconds:.3f}",
        )  # fmt: skip
        if verdict.problems:
            lines = [f"{place}: {sentence}" for place, sentence in verdict.problems]
            ET.SubElement(case, "error", type="input", message=_clean(lines[0])).text = _clean(*lines)
        elif not verdict.has_passed:
            first = verdict.violations[0]
            failure = ET.SubElement(case, "failure", type=first[0], message=_clean(first[1]))
            failure.text = _clean(
                *"\n".join(f"{invariant}: {sentence}" for invariant, sentence in verdict.violations).split("\n")
            )
            failure.text += "".join(_witnesses(verdict))
        else:
            ET.SubElement(case, "system-out").text = _clean(*verdict.shared_cycles, verdict.line)
    root = ET.Element("testsuites", name=_SUITE)
    root.append(suite)
    ET.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(root, encoding="unicode")


def _witnesses(verdict: CommandVerdict) -> Iterator[str]:
    for violation in verdict.invariants_broken:
        if violation.witness:
            shown = violation.witness[:_MAX_WITNESS]
            more = f" … and {len(violation.witness) - _MAX_WITNESS} more" * (len(violation.witness) > _MAX_WITNESS)
            yield "\n" + _clean(f"witness of {violation.invariant}: {' '.join(shown)}{more}")


def _clean(*lines: str) -> str:
    """Lines without what XML 1.0 cannot hold."""
    return _NO_XML.sub("", "\n".join(map(escape_line, lines)))


def github_lines(verdicts: Sequence[CommandVerdict]) -> Iterator[str]:
    """Annotations as GitHub Actions reads them from a step's output, and a line for each plan."""
    for verdict in verdicts:
        for place, sentence in verdict.problems:
            key = place.removeprefix(f"{verdict.name}: ")
            yield _command(
                "error", verdict.file, "cannot be planned", sentence if key == verdict.name else f"{key}: {sentence}"
            )
        if not verdict.has_passed:
            for invariant, sentence in verdict.violations:
                yield _command("error", verdict.file, invariant, sentence)
        for sentence in verdict.shared_cycles:
            yield _command("warning", verdict.file, "tables in use together", sentence)
        line = escape_line(verdict.line).replace("##[", "## [")
        yield f"./{line}" if line.lstrip().startswith("::") else line  # a file of that name, and no command


def _command(level: str, file: str, title: str, text: str) -> str:
    """`::error file=…,title=…::text`, escaped as the runner's own toolkit does."""
    said = ",".join(f"{key}={_escape_value(value, ':,')}" for key, value in (("file", file), ("title", title)))
    return f"::{level} {said}::{_escape_value(text)}"


def _escape_value(text: str, more: str = "") -> str:
    """Percent signs, ends of lines and the signs of `more` as `%25`."""
    return "".join(f"%{ord(sign):02X}" if sign in "%\n" + more else sign for sign in escape_controls(text))
