"""The fabric of a scenario, without what of it is dead."""

from __future__ import annotations

from testbed.errors import InputError, Problem
from testbed.model import Topology
from testbed.scenario import Scenario
from testbed.topologies import TOPOLOGIES
from testbed.topologies.faults import apply_faults


def build_fabric(scenario: Scenario) -> Topology:
    """Build the topology and take out what is dead.

    Raises:
        InputError: the faults do not fit the topology, each problem with the scenario's file.
    """
    topology = TOPOLOGIES[scenario.topology_kind].build(scenario.topology)
    try:
        return apply_faults(topology, scenario.faults)
    except InputError as error:
        raise InputError([Problem(f"{scenario.source}: {p.place}", p.sentence) for p in error.problems]) from error
