"""A pytest plugin: tests of fabrics, plans or saved configurations, whose failures show the witness.

def test_the_hall(fabric):
    hall = fabric("torus4x4")          # a scenario, a plan.json, or a folder for testbed audit
    assert_delivered(hall)
    assert_deadlock_free(hall)

The assertions are imported from here; `fabric` and `lab` are fixtures.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from testbed.base.untrusted_text import escape_line

if TYPE_CHECKING:
    from testbed.devices.audit import Audit
    from testbed.planning import Plan
    from testbed.ui.python.labs import RunningLab

_SHOWN = 10
_LOOPS = ("tree", "flood")  # invariants that fail where a flooded frame could circulate


@dataclass(frozen=True, slots=True, eq=False)
class TestedFabric:
    """What tests ask about: a plan, or a network that was audited."""

    name: str  # as it was given
    plan: Plan | None  # None for a network
    audit: Audit | None  # None for a plan

    @property
    def hosts(self) -> tuple[str, ...]:
        """Names of all hosts."""
        if self.audit is not None:
            return self.audit.network.hosts
        assert self.plan is not None
        return tuple(self.plan.topology.host_name(host) for host in range(self.plan.topology.host_count))

    @property
    def unaudited(self) -> tuple[str, ...]:
        """Why no question about a network can be answered: nothing of it was audited, or some was not understood."""
        if self.audit is None:
            return ()
        nothing = self.audit.why_not_audited
        return (*([nothing] if nothing else []), *self.audit.network.unclear)

    @property
    def loops(self) -> list[tuple[str, tuple[str, ...]]]:
        """VLANs in which floods circulate: sentence and ports."""
        if self.audit is not None:
            return [(str(one), one.witness) for one in self.audit.findings if one.kind == "loop"]
        assert self.plan is not None
        return [(v.sentence, v.witness) for v in self.plan.violations if v.invariant in _LOOPS]

    @property
    def vlans(self) -> frozenset[int]:
        """Identifiers of all VLANs."""
        if self.audit is not None:
            return frozenset(self.audit.network.vlans)
        assert self.plan is not None
        vlans = self.plan.vlans
        return frozenset((vlans.vlan_ids if hasattr(vlans, "vlan_ids") else vlans.vlan_id).tolist())

    @property
    def deadlock(self) -> tuple[str, tuple[str, ...]] | None:
        """A circle of channels that wait for each other, in words and one by one; None if there is none."""
        found: list[Any]
        if self.audit is not None:
            found = [finding for finding in self.audit.findings if finding.kind == "deadlock"]
        else:
            assert self.plan is not None
            found = [violation for violation in self.plan.violations if violation.invariant == "deadlock"]
        return (found[0].sentence, found[0].witness) if found else None

    def list_violations(self) -> list[tuple[str, tuple[str, ...]]]:
        """Everything but a deadlock that is wrong: sentence and witness."""
        if self.audit is not None:
            return [(str(one), one.witness) for one in self.audit.findings if one.kind != "deadlock"]
        assert self.plan is not None
        return [(v.sentence, v.witness) for v in self.plan.violations if v.invariant != "deadlock"]

    def reaches(self, source: str, end: str) -> bool:
        """Whether a frame of one host arrives at another, once and without a tag."""
        for name in (source, end):
            if name not in self.hosts:
                pytest.fail(f"{self.name} has no host {name}", pytrace=False)
        if self.audit is not None:
            hosts = self.audit.network.hosts
            return bool(self.audit.arrives[hosts.index(source), hosts.index(end)])
        assert self.plan is not None
        lost = {pair for v in self.plan.violations if v.invariant == "delivery" for pair in v.witness}
        return f"{source}→{end}" not in lost


def assert_delivered(fabric: TestedFabric, *pairs: tuple[str, str]) -> None:
    """Each of these ordered pairs of hosts is delivered; without pairs nothing but a deadlock may be wrong."""
    __tracebackhide__ = True
    _require_audit(fabric)
    lost = [f"{source}→{end}" for source, end in pairs if not fabric.reaches(source, end)]
    if lost:
        why = [
            line
            for sentence, witness in fabric.list_violations()
            if set(lost) & set(witness)
            for line in _lines(sentence, ())
        ]
        _fail(fabric, f"not delivered: {_format_names(lost)}", why)
    broken = fabric.list_violations() if not pairs else []
    if broken:
        _fail(fabric, "not delivered as it should be", [line for one in broken for line in _lines(*one)])


def assert_isolated(fabric: TestedFabric, some: Collection[str], others: Collection[str]) -> None:
    """No host of one group reaches one of the other, nor the other way."""
    __tracebackhide__ = True
    _require_audit(fabric, hosts=[*some, *others])
    both = [(a, b) for a in some for b in others] + [(b, a) for a in some for b in others]
    through = [f"{a}→{b}" for a, b in both if a != b and fabric.reaches(a, b)]
    if through:
        _fail(fabric, f"not isolated: {_format_names(through)}", [])


def assert_deadlock_free(fabric: TestedFabric) -> None:
    """No circle of channels waits for itself, so that links which pause cannot stop for ever."""
    __tracebackhide__ = True
    _require_audit(fabric)
    if fabric.deadlock is not None:
        _fail(fabric, "can deadlock", _lines(*fabric.deadlock))


def assert_loop_free(fabric: TestedFabric) -> None:
    """No frame that switches flood circulates for ever, in any VLAN."""
    __tracebackhide__ = True
    _require_audit(fabric)
    if fabric.loops:
        _fail(fabric, "floods circulate", [line for one in fabric.loops for line in _lines(*one)])


def assert_vlans(fabric: TestedFabric, vlans: Collection[int] | None = None, *, at_most: int | None = None) -> None:
    """The fabric has exactly these VLANs, or no more than a number of them."""
    __tracebackhide__ = True
    _require_audit(fabric)
    if vlans is not None and set(vlans) != fabric.vlans:
        missing, more = sorted(set(vlans) - fabric.vlans), sorted(fabric.vlans - set(vlans))
        _fail(fabric, f"other VLANs than expected: missing {missing or 'none'}, besides {more or 'none'}", [])
    if at_most is not None and len(fabric.vlans) > at_most:
        _fail(fabric, f"{len(fabric.vlans)} VLANs, and {at_most} are allowed: {sorted(fabric.vlans)}", [])


def _require_audit(fabric: TestedFabric, hosts: Collection[str] | None = None) -> None:
    """Fail where nothing was audited, or not all was understood: that is no proof of anything.

    Hosts that share no VLAN with any other are apart, if their ports are in one: `hosts` are those.
    """
    __tracebackhide__ = True
    audit, why = fabric.audit, list(fabric.unaudited)
    if audit is not None and hosts is not None:
        network = audit.network
        off = [host for host in hosts if host in network.hosts and not network.carries(host)]
        why = [f"the port of {host} carries nothing" for host in off] + list(network.unclear)
    if why:
        _fail(fabric, "nothing is proved", why)


def _lines(sentence: str, witness: tuple[str, ...]) -> list[str]:
    return [sentence, *([f"  witness: {_format_names(witness)}"] if witness else [])]


def _format_names(names: Collection[str]) -> str:
    shown = list(names)
    return ", ".join(shown[:_SHOWN]) + (f" and {len(shown) - _SHOWN} more" if len(shown) > _SHOWN else "")


def _fail(fabric: TestedFabric, what: str, lines: list[str]) -> None:
    __tracebackhide__ = True
    pytest.fail("\n".join(map(escape_line, [f"{fabric.name}: {what}", *lines])), pytrace=False)


def _load_fabric(name: str | Path, settings: Mapping[str, Any] | None, *, trust: bool) -> TestedFabric:
    from testbed import plan as planned
    from testbed.base.errors import InputError, VerificationError
    from testbed.devices.audit import audit
    from testbed.devices.audit.read_folder import read_network
    from testbed.planning.prove_stored import read_stored
    from testbed.ui.cli.check_command import texts_of

    try:
        if Path(name).is_dir():
            return TestedFabric(str(name), None, audit(read_network(texts_of(Path(name)))))
        if str(name).endswith(".json"):
            return TestedFabric(str(name), read_stored(Path(name)), None)
        return TestedFabric(str(name), planned(name, settings, trust=trust).core, None)
    except (InputError, VerificationError) as error:
        pytest.fail(str(error), pytrace=False)


@pytest.fixture(scope="session")
def fabric() -> Callable[..., TestedFabric]:
    """Plan and prove a scenario, prove a stored plan, or audit a folder.

    `fabric("torus4x4", {"routing.kind": "stp"})`; what was asked for once is kept for all tests. `trust=True` lets
    plug-ins run that the scenario names.
    """
    known: dict[str, TestedFabric] = {}

    def get(name: str | Path, settings: Mapping[str, Any] | None = None, *, trust: bool = False) -> TestedFabric:
        key = f"{name} {sorted((settings or {}).items())!r} {trust}"
        if key not in known:
            known[key] = _load_fabric(name, settings, trust=trust)
        return known[key]

    return get


@pytest.fixture
def lab() -> Iterator[Callable[..., RunningLab]]:
    """Build the lab of a scenario; it ends with the test. Skipped, with the reason, where the machine cannot.

    `trust=True` lets plug-ins run that the scenario names. With TESTBED_REQUIRE_LAB=1 that is a failure.
    """
    from testbed import lab as standing
    from testbed import plan as planned
    from testbed.base.errors import CapabilityError

    with ExitStack() as labs:

        def build(name: str | Path, settings: Mapping[str, Any] | None = None, *, trust: bool = False) -> RunningLab:
            try:
                made = planned(name, settings, trust=trust)
                running: RunningLab = labs.enter_context(standing(made, lambda step: None))
            except CapabilityError as error:
                if os.environ.get("TESTBED_REQUIRE_LAB") == "1":
                    pytest.fail(str(error), pytrace=False)
                pytest.skip(str(error))
            return running

        yield build
