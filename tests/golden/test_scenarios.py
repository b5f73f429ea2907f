"""Every scenario file: loads, is proved, fits the schema, says what it is."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from jsonschema import Draft202012Validator

from testbed.fabric.topologies import TOPOLOGIES
from testbed.planning import make_plan
from testbed.scenario import find_scenario, load_scenario, parse_scenario, scenario_names
from testbed.scenario.read_scenario import as_dict
from testbed.scenario.schema import schema, schema_text

FOLDER = Path(__file__).parents[2] / "scenarios"
FILES = sorted(FOLDER.glob("*.yaml"))
VALIDATOR = Draft202012Validator(schema())


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_scenario(file):
    scenario = load_scenario(file)
    make_plan(scenario).require_proof()
    assert scenario.name == file.stem
    assert scenario.description
    assert "\n" not in scenario.description
    assert VALIDATOR.is_valid(yaml.safe_load(file.read_text(encoding="utf-8")))
    resolved = as_dict(scenario)
    assert VALIDATOR.is_valid(json.loads(json.dumps(resolved)))
    assert parse_scenario(yaml.safe_dump(resolved), scenario.source) == scenario


def test_every_topology_has_a_scenario():
    assert {load_scenario(file).topology_kind for file in FILES} == set(TOPOLOGIES)


def test_every_file_can_be_found_by_its_name():
    for file in FILES:
        assert find_scenario(file.stem).resolve() == file
    assert "schema" not in scenario_names()


def test_schema_is_itself_a_schema():
    Draft202012Validator.check_schema(schema())


def test_schema_file_is_current():
    assert (FOLDER / "schema.json").read_text(encoding="utf-8") == schema_text()


@pytest.mark.parametrize(
    "name",
    [
        "unknown-topology", "unknown-routing", "unknown-assignment", "unknown-workload", "unknown-keys",
        "unknown-choices", "missing-topology", "missing-values", "no-blocks", "workloads-no-blocks",
        "sizes-not-positive", "sizes-not-whole", "sizes-as-text", "sizes-empty", "ring-of-two", "too-many-dimensions",
        "rate-without-unit", "rate-unknown-unit", "rate-no-rate", "rate-empty", "queue-out-of-range",
        "dilation-below-one", "first-vlan-no-identifier", "load-numbers", "list", "text", "several-problems",
    ],
)  # fmt: skip
def test_what_the_schema_can_say_it_refuses(name):
    assert not VALIDATOR.is_valid(yaml.safe_load((FOLDER / "invalid" / f"{name}.yaml").read_text(encoding="utf-8")))
