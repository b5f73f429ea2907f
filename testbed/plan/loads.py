"""Whether the loads of a scenario can run on its topology, before anything is built."""

from __future__ import annotations

from testbed.errors import Problem
from testbed.model import Topology
from testbed.scenario import Scenario
from testbed.traffic import PatternError, flows


def load_problems(scenario: Scenario, topology: Topology) -> list[Problem]:
    """Every load whose pattern does not exist for this number of hosts, or gives no flow."""
    if topology.host_count < 2:
        hosts = "1 host" if topology.host_count else "no host"
        sentence = f"a load needs two hosts or more and this topology has {hosts}"
        return [Problem("workloads", sentence)] if scenario.workloads else []
    found = []
    for number, load in enumerate(scenario.workloads):
        pattern = getattr(load.spec, "pattern", None)
        if pattern is None:
            continue
        place = f"workloads.{number}.pattern"
        try:
            if not flows(pattern, topology, scenario.lab.seed):
                count = topology.host_count
                found.append(Problem(place, f'"{pattern}" maps each of {count} hosts to itself; use another pattern'))
        except PatternError as error:
            found.append(Problem(place, str(error)))
    return found
