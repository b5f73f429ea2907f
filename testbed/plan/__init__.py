"""The one interface between planning and everything else: compose the layers, prove, number the content."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from testbed.errors import InputError, Problem, VerificationError
from testbed.model import Routes, Rule, Topology, Violation, VlanPlan
from testbed.pipeline.compile import compile_rules
from testbed.pipeline.text import format_rule
from testbed.plan.loads import load_problems
from testbed.routing import ROUTINGS
from testbed.scenario import Scenario
from testbed.topologies import TOPOLOGIES
from testbed.verify import DEADLOCK, verify
from testbed.verify.limits import SWITCH_MODELS
from testbed.vlans import ASSIGNMENTS


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """Everything a fabric needs, and what verification found.

    Attributes:
        scenario: what it was made from.
        topology: switches, hosts, links, ports.
        routes: a path for every ordered pair.
        vlans: 802.1Q intent.
        rules: OpenFlow 1.3 rules of all switches.
        violations: what verification found.
        digest: of topology, routes, VLANs and rules; equal digests are equal fabrics.
    """

    scenario: Scenario
    topology: Topology
    routes: Routes
    vlans: VlanPlan
    rules: tuple[Rule, ...]
    violations: tuple[Violation, ...]
    digest: str

    @property
    def deadlock_free(self) -> bool:
        """Whether the channel dependency graph is acyclic."""
        return all(violation.invariant != DEADLOCK for violation in self.violations)

    @property
    def proved(self) -> bool:
        """Whether verification found what the scenario expects: nothing, or exactly the declared deadlock."""
        return not self._broken and self.deadlock_free == (self.scenario.expect != "deadlock")

    @property
    def _broken(self) -> list[Violation]:
        """Violations that the scenario does not declare."""
        declared = DEADLOCK if self.scenario.expect == "deadlock" else None
        return [violation for violation in self.violations if violation.invariant != declared]

    def require_proof(self) -> None:
        """Let only proved plans pass.

        Raises:
            VerificationError: an invariant is broken, or a declared deadlock is not there.
        """
        if self._broken:
            lines = "\n".join(f"  {violation.invariant}: {violation.sentence}" for violation in self._broken)
            if self.scenario.expect != "deadlock" and not self.deadlock_free:
                lines += "\n  A scenario that has such a cycle on purpose declares it with expect: deadlock"
            raise VerificationError(f"{self.scenario.source}: verification failed, nothing was built\n{lines}")
        if not self.proved:
            raise VerificationError(
                f"{self.scenario.source}: expect: deadlock, but the channel dependency graph has no cycle; "
                "nothing was built. Leave expect: out"
            )


def make_plan(scenario: Scenario) -> Plan:
    """Plan and verify; pure, deterministic.

    Raises:
        InputError: the parts of the scenario do not go together, each problem with the scenario's file.
    """
    topology = TOPOLOGIES[scenario.topology_kind].build(scenario.topology)
    problems = load_problems(scenario, topology)
    try:
        if topology.host_count == 0:
            raise InputError.one("topology", "has no host, so there is nothing to route; give it some")
        routes = ROUTINGS[scenario.routing_kind].route(topology, scenario.routing)
        vlans = ASSIGNMENTS[scenario.assignment_kind].assign(topology, routes, scenario.assignment)
    except InputError as error:
        problems = [*error.problems, *problems]
    if problems:
        raise InputError([Problem(f"{scenario.source}: {p.place}", p.sentence) for p in problems])
    rules = compile_rules(topology, vlans)
    model = SWITCH_MODELS[scenario.switch_model] if scenario.switch_model else None
    violations = verify(topology, routes, vlans, model)
    return Plan(scenario, topology, routes, vlans, rules, violations, _digest(topology, routes, vlans, rules))


def _digest(topology: Topology, routes: Routes, vlans: VlanPlan, rules: tuple[Rule, ...]) -> str:
    content = hashlib.blake2b(digest_size=8)
    for part in (
        topology.links, topology.host_switch, routes.parent_channel, routes.host_tree, routes.next_channel,
        vlans.vlan_ids, vlans.pvid, vlans.tagged_links, vlans.untagged_hosts,
    ):  # fmt: skip
        content.update(f"{part.shape}{part.dtype}".encode())
        content.update(part.tobytes())
    for rule in rules:
        content.update(f"{rule.switch} {format_rule(rule)}\n".encode())
    return content.hexdigest()
