"""The one interface between planning and everything else: compose the layers, prove, number the content."""

from __future__ import annotations

from dataclasses import dataclass

from testbed.errors import InputError, Problem, VerificationError
from testbed.model import LocalPlan, Routes, Rule, Topology, Violation, VlanPlan
from testbed.pipeline.compile import compile_rules
from testbed.plan.digest import digest_of
from testbed.plan.fabric import build_fabric
from testbed.plan.loads import address_problems, load_problems
from testbed.routing import ROUTINGS
from testbed.scenario import Scenario
from testbed.verify import DEADLOCK, verify
from testbed.verify.limits import SWITCH_MODELS, check_ports
from testbed.vlans import ASSIGNMENTS


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """Everything a fabric needs, and what verification found.

    Attributes:
        scenario: what it was made from.
        topology: switches, hosts, links, ports.
        routes: a path for every ordered pair.
        vlans: what switches are told: VLANs of the whole fabric, or of each switch.
        violations: what verification found.
        digest: of topology, routes and VLANs; equal digests are equal fabrics.
    """

    scenario: Scenario
    topology: Topology
    routes: Routes
    vlans: VlanPlan | LocalPlan
    violations: tuple[Violation, ...]
    digest: str

    @property
    def rules(self) -> tuple[Rule, ...]:
        """OpenFlow 1.3 rules of all switches, compiled when asked for: a large fabric has many millions."""
        return compile_rules(self.topology, self.vlans)

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
    topology = build_fabric(scenario)
    model = SWITCH_MODELS[scenario.switch_model] if scenario.switch_model else None
    problems = [*load_problems(scenario, topology), *address_problems(scenario)]
    if model is not None:
        problems += [Problem("switch_model", violation.sentence) for violation in check_ports(topology, model)]
    try:
        if topology.host_count == 0:
            raise InputError.one("topology", "has no host, so there is nothing to route; give it some")
        routes = ROUTINGS[scenario.routing_kind].route(topology, scenario.routing)
        vlans = ASSIGNMENTS[scenario.assignment_kind].assign(topology, routes, scenario.assignment)
    except InputError as error:
        problems = [*error.problems, *problems]
    if problems:
        raise InputError([Problem(f"{scenario.source}: {p.place}", p.sentence) for p in problems])
    violations = verify(topology, routes, vlans, model)
    return Plan(scenario, topology, routes, vlans, violations, digest_of(topology, routes, vlans))
