"""The one interface between planning and everything else: compose the layers, prove, number the content."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from testbed.base.errors import InputError
from testbed.base.model import Bools, Bundles, Floats, Group, LocalPlan, Routes, Rule, Topology, Violation, VlanPlan
from testbed.fabric.openflow.compile import compile_groups, compile_rules
from testbed.fabric.routing import ROUTINGS
from testbed.fabric.verify import DEADLOCK
from testbed.fabric.vlans import ASSIGNMENTS
from testbed.planning.check_loads import lab_problems
from testbed.planning.proof import digest_of, list_unexpected_violations, prove, require_proof
from testbed.planning.scenario_fabric import logical_fabric
from testbed.planning.size import Size, size_of
from testbed.planning.speeds import link_speeds
from testbed.scenario import Scenario

_NO_TABLES = (
    '"model" has no tables that switches could hold, so nothing is built of it; set engine: simulate, use testbed '
    "simulate or analyse, or a routing that tables carry, such as updown"
)


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """Everything a fabric needs, and what verification found."""

    scenario: Scenario  # what it was made from
    topology: Topology  # switches, hosts, links, ports; links that are aggregated are one link
    routes: Routes  # a path for every ordered pair
    vlans: VlanPlan | LocalPlan  # what switches are told: VLANs of the whole fabric, or of each switch
    violations: tuple[Violation, ...]  # what verification found
    digest: str  # of topology, routes, VLANs and bundles; equal digests are equal fabrics
    bundles: Bundles | None = None  # the physical links behind the topology's, where links are aggregated
    speeds: Floats | None = None  # (physical L,) share of the full rate at which each link runs; None = all of it
    # (physical L,) links of bundles that are off under these paths, beside others that are on; not stored with a plan
    powered_off: Bools | None = None

    @property
    def wiring(self) -> Topology:
        """The physical topology: every link and port to build."""
        return self.topology if self.bundles is None else self.bundles.wiring

    @property
    def rules(self) -> tuple[Rule, ...]:
        """OpenFlow 1.3 rules of all switches, compiled when asked for: a large fabric has many millions."""
        return compile_rules(self.topology, self.vlans, self.bundles)

    @property
    def groups(self) -> tuple[Group, ...]:
        """Select groups that spread frames over the members of bundles."""
        return compile_groups(self.bundles)

    @property
    def deadlock_free(self) -> bool:
        """Whether the channel dependency graph is acyclic."""
        return all(violation.invariant != DEADLOCK for violation in self.violations)

    @property
    def is_proved(self) -> bool:
        """Whether verification found what the scenario expects: nothing, or exactly the declared deadlock."""
        return not list_unexpected_violations(self.scenario, self.violations) and self.deadlock_free == (
            self.scenario.expect != "deadlock"
        )

    def require_proof(self) -> None:
        """Let only proved plans pass.

        Raises:
            VerificationError: an invariant is broken, or a declared deadlock is not there.
        """
        require_proof(self.scenario, self.violations)

    def require_tables(self) -> None:
        """Let only plans pass that switches can carry out.

        Raises:
            InputError: the assignment is `model`: no tables hold these paths.
        """
        if isinstance(self.vlans, LocalPlan) and self.vlans.kind == "model":
            raise InputError.one("assignment.kind", _NO_TABLES, self.scenario.source)


def make_plan(scenario: Scenario, foretold: Callable[[Size], None] | None = None) -> Plan:
    """Plan and verify; pure, deterministic. `foretold` is called with what that will take, and may refuse it.

    Raises:
        InputError: the parts of the scenario do not go together, each problem with the scenario's file.
    """
    topology, bundles = logical_fabric(scenario)
    if foretold is not None:
        foretold(size_of(scenario, topology))
    speeds, problems = link_speeds(scenario, topology if bundles is None else bundles.wiring)
    problems += lab_problems(scenario, topology)
    try:
        if topology.host_count == 0:
            raise InputError.one("topology", "has no host, so there is nothing to route; give it some")
        routes = ROUTINGS[scenario.routing_kind].route(topology, scenario.routing)
        vlans = ASSIGNMENTS[scenario.assignment_kind].assign(topology, routes, scenario.assignment)
    except InputError as error:
        problems = [*error.problems, *problems]
    if problems:
        raise InputError([p.in_file(scenario.source) for p in problems])
    parts = (topology, routes, vlans) if bundles is None else (topology, routes, vlans, bundles)
    violations = prove(scenario, topology, routes, vlans, bundles)
    return Plan(scenario, topology, routes, vlans, violations, digest_of(*parts), bundles, speeds)
