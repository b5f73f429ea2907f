"""The JSON schema of scenario files, generated from the tables, for editors and other programs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from testbed.base.units import format_rate
from testbed.fabric.routing import ROUTINGS
from testbed.fabric.topologies.faults import Faults
from testbed.fabric.verify.limits import SWITCH_MODELS
from testbed.fabric.vlans import ASSIGNMENTS
from testbed.scenario import load_traffic, paths_file
from testbed.scenario.engines import ENGINES, Simulator, VmOptions
from testbed.scenario.fabric_file import TOPOLOGY_BLOCKS
from testbed.scenario.parameter_models import model_of
from testbed.scenario.spec import EXPECTATIONS, KEYS, LabSettings, Links
from testbed.scenario.workloads import WORKLOADS


def schema() -> dict[str, object]:
    """Return the schema; what it cannot say, such as a routing that does not fit, loading still refuses."""
    properties = {
        "name": {"type": "string", "description": "letters, digits, - and _; without it the file's name"},
        "description": {"type": "string", "description": "one line for lists and reports"},
        "plugins": {
            "type": "array",
            "items": {"type": "string"},
            "description": "Python files with kinds of one's own, seen from the scenario",
        },
        "topology": _kinds(TOPOLOGY_BLOCKS, "spec", required=True),
        "faults": _block(Faults),
        "routing": _kinds(ROUTINGS, "options", required=False),
        "assignment": _kinds(ASSIGNMENTS, "options", required=False),
        "switch_model": {"enum": [*SWITCH_MODELS, None], "description": "a switch whose limits must hold"},
        "expect": {"enum": list(EXPECTATIONS), "description": "what verification must find"},
        "links": _block(Links),
        "engine": {"enum": list(ENGINES), "description": _engines()},
        "lab": _block(LabSettings),
        "vm": _block(VmOptions),
        "simulator": _block(Simulator),
        "workloads": {"type": "array", "items": _kinds(WORKLOADS, "spec", required=True)},
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Scenario",
        "type": "object",
        "properties": {key: properties[key] for key in KEYS},
        "required": ["topology"],
        "additionalProperties": False,
    }


def schema_text() -> str:
    """Return the content of `scenarios/schema.json`."""
    return json.dumps(schema(), indent=1, ensure_ascii=False) + "\n"


def _engines() -> str:
    return "; ".join(f"{name}: {engine.summary}" for name, engine in ENGINES.items())


def _kinds(table: Mapping[str, Any], part: str, *, required: bool) -> dict[str, object]:
    """One schema a kind; a block that may leave its kind out may fit several."""
    kinds = []
    for kind, entry in table.items():
        block = _block(getattr(entry, part))
        block["description"] = entry.summary
        block["properties"] = {"kind": {"const": kind}, **block["properties"]}
        if table is ROUTINGS and kind == "paths":
            block["properties"] |= paths_file.SCHEMA
            block.pop("required", None)
        if table is WORKLOADS and "pattern" in block["properties"]:
            block["properties"] |= load_traffic.SCHEMA
        if required:
            block["required"] = ["kind", *block.get("required", [])]
        kinds.append(block)
    if required:
        return {"oneOf": kinds}
    return {"anyOf": [{"enum": [*table], "description": "a kind with its defaults"}, *kinds]}


def _block(spec: type[Any]) -> dict[str, Any]:
    """Schema of a block of parameters, without the titles that only repeat the keys."""
    block = model_of(spec).model_json_schema()
    del block["title"]
    for key in block["properties"].values():
        key.pop("title", None)
        if key.get("type") == "string" and isinstance(key.get("default"), float):
            key["default"] = format_rate(key["default"])
    return block
