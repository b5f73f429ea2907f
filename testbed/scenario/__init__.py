"""YAML → Scenario. The only place where raw dictionaries exist."""

from testbed.scenario.fabric_file import TOPOLOGY_BLOCKS
from testbed.scenario.read_blocks import find_scenario, scenario_names
from testbed.scenario.read_scenario import load_scenario, parse_loads, parse_scenario, scenario_of_blocks
from testbed.scenario.spec import LabSettings, Links, Scenario, Workload

__all__ = [
    "TOPOLOGY_BLOCKS",
    "LabSettings",
    "Links",
    "Scenario",
    "Workload",
    "find_scenario",
    "load_scenario",
    "parse_loads",
    "parse_scenario",
    "scenario_names",
    "scenario_of_blocks",
]
