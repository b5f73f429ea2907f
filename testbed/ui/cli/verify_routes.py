"""What `testbed verify --routes` does: a fabric, forwarding of a file, and what holds of both."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from testbed.base.errors import InputError, reading
from testbed.ui.cli.ci_formats import ReadForwarding

if TYPE_CHECKING:
    from testbed.base.model import Topology

_SCENARIO_ENDS = (".yaml", ".yml")


def prove_routes(name: str, settings: Sequence[str], routes: Path) -> ReadForwarding:
    """Read a fabric and forwarding, and prove it.

    Raises:
        InputError: one of them cannot be read, or is wrong.
    """
    from testbed.fabric.verify.listed_paths import ListedPaths, check_listed_paths
    from testbed.fabric.verify.next_hop_choices import check_choices
    from testbed.scenario.routes_file import read_routes

    topology, expected = read_topology(name, settings)
    if topology.switch_labels:  # who has named the switches knows them by these names
        topology = replace(topology, switch_names=topology.switch_labels)
    found = read_routes(routes, topology)
    proof = check_listed_paths(topology, found) if isinstance(found, ListedPaths) else check_choices(topology, found)
    if not proof.pairs:
        raise InputError.one(name, "has hosts on fewer than two switches, so there is no pair to deliver")
    return ReadForwarding(str(routes), proof, topology.switch_count, found.layers, expected)


def read_topology(name: str, settings: Sequence[str]) -> tuple[Topology, bool]:
    """The fabric of a scenario, or of a file in one of the formats of fabrics; and whether a deadlock is declared.

    Raises:
        InputError: there is none, or it is wrong.
    """
    from testbed.base.files import read_text
    from testbed.base.limits import FABRIC_FILE
    from testbed.fabric.topologies import size_problem
    from testbed.fabric.topologies.any_graph import graph
    from testbed.planning.scenario_fabric import logical_fabric
    from testbed.scenario import find_scenario, load_scenario
    from testbed.scenario.fabric_file import read_fabric

    file = Path(name)
    if name.endswith(_SCENARIO_ENDS) or not file.suffix or not file.is_file():
        scenario = load_scenario(find_scenario(name), settings)
        return logical_fabric(scenario)[0], scenario.expect == "deadlock"
    if settings:
        raise InputError.one("--set", f"changes scenarios, and {name} is a file of a fabric")
    with reading(file):
        text = read_text(file, most=FABRIC_FILE)
    try:
        spec = read_fabric(text, name, "auto", None)
        too_large = size_problem(spec)
        if too_large:
            raise InputError.one("", too_large)
    except InputError as error:
        raise InputError([problem.in_file(name) for problem in error.problems]) from error
    return graph(spec), False
