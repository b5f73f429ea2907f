"""What identifies a plan, everything that is proved of it, and the refusal of plans that are not proved."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from testbed.base.errors import VerificationError
from testbed.base.model import Bundles, LocalPlan, Routes, Topology, Violation, VlanPlan
from testbed.fabric.openflow.compile import bundle_rules, compile_groups
from testbed.fabric.verify import DEADLOCK, verify
from testbed.fabric.verify.bundles import check_bundles
from testbed.fabric.verify.limits import SWITCH_MODELS
from testbed.scenario import Scenario


def prove(
    scenario: Scenario, topology: Topology, routes: Routes, vlans: VlanPlan | LocalPlan, bundles: Bundles | None
) -> tuple[Violation, ...]:
    """Check every invariant; an empty tuple means that all hold.

    What holds of the logical links holds of their members as well: each frame of a logical channel takes one physical
    channel of that bundle, so a cycle of physical channels would be one of logical channels.
    """
    model = SWITCH_MODELS[scenario.switch_model] if scenario.switch_model else None
    found = verify(topology, routes, vlans, model)
    if bundles is None:
        return found
    return (*found, *check_bundles(topology, bundles, compile_groups(bundles), bundle_rules(bundles)))


def list_unexpected_violations(scenario: Scenario, violations: tuple[Violation, ...]) -> list[Violation]:
    """Violations that the scenario does not declare."""
    declared = DEADLOCK if scenario.expect == "deadlock" else None
    return [violation for violation in violations if violation.invariant != declared]


DECLARED = "the declared deadlock formed"


def deadlock_word(scenario: Scenario) -> str:
    """What a deadlock that has formed is called: the one that a scenario declares is what it was run for."""
    return DECLARED if scenario.expect == "deadlock" else "deadlock"


def find_declared_deadlock(reasons: Sequence[str]) -> str:
    """What a verdict says of a declared deadlock that formed, with a channel it holds; empty without one."""
    for reason in reasons:
        _, formed, rest = reason.partition(DECLARED)
        if formed:
            cycle = rest.partition(": ")[2]
            first = cycle.replace(" → ", " waits for ").split(" waits for ")[0].strip()
            return f"{DECLARED} at {first}" if first else DECLARED
    return ""


def require_proof(scenario: Scenario, violations: tuple[Violation, ...]) -> None:
    """Let only proved plans pass.

    Raises:
        VerificationError: an invariant is broken, or a declared deadlock is not there.
    """
    broken = list_unexpected_violations(scenario, violations)
    deadlock = any(violation.invariant == DEADLOCK for violation in violations)
    if broken:
        lines = [f"{violation.invariant}: {violation.sentence}" for violation in broken]
        if scenario.expect != "deadlock" and deadlock:
            lines.append("A scenario that has such a cycle on purpose declares it with expect: deadlock")
        raise VerificationError("verification failed, nothing was built", scenario.source, lines)
    if scenario.expect == "deadlock" and not deadlock:
        raise VerificationError(
            "expect: deadlock, but the channel dependency graph has no cycle; nothing was built. Leave expect: out",
            scenario.source,
        )


def digest_of(*parts: Any) -> str:
    """Digest of dataclasses of arrays; equal digests are equal content."""
    content = hashlib.blake2b(digest_size=8)
    for part in parts:
        _add(content, part)
    return content.hexdigest()


_LATER = ("choices", "trees")


def _add(content: hashlib.blake2b, value: Any) -> None:
    """Feed every field of a dataclass, in the order they are declared, except the notes."""
    if isinstance(value, np.ndarray):
        content.update(f"{value.shape}{value.dtype}".encode())
        content.update(np.ascontiguousarray(value).data)
    elif dataclasses.is_dataclass(value):
        for field in dataclasses.fields(value):
            # Digests of routes without choices or trees are those of versions that knew none.
            if field.name != "notes" and not (field.name in _LATER and getattr(value, field.name) is None):
                content.update(field.name.encode())
                _add(content, getattr(value, field.name))
    else:
        content.update(repr(value).encode())
