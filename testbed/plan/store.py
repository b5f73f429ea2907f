"""A plan as JSON and back: equal digest, equal arrays, equal rules."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import numpy as np
import numpy.typing as npt
import yaml

from testbed.errors import InputError
from testbed.model import Routes, Rule, Topology, Violation, VlanPlan
from testbed.pipeline.text import format_rule, parse_rule
from testbed.plan import Plan
from testbed.scenario import parse_scenario
from testbed.scenario.load import as_dict

SCHEMA_VERSION = 1


def plan_to_json(plan: Plan) -> str:
    """Return the whole plan as JSON text."""
    rules: list[list[str]] = [[] for _ in range(plan.topology.switch_count)]
    for rule in plan.rules:
        rules[rule.switch].append(format_rule(rule))
    return json.dumps(
        {
            "schema_version": SCHEMA_VERSION,
            "digest": plan.digest,
            "source": plan.scenario.source,
            "scenario": as_dict(plan.scenario),
            "topology": _pack(plan.topology),
            "routes": _pack(plan.routes),
            "vlans": _pack(plan.vlans),
            "rules": rules,
            "violations": [dataclasses.asdict(violation) for violation in plan.violations],
        }
    )


def plan_from_json(text: str) -> Plan:
    """Return the plan of a JSON text.

    Raises:
        InputError: it was written by another version.
    """
    raw = json.loads(text)
    if raw.get("schema_version") != SCHEMA_VERSION:
        raise InputError.one(
            "plan.json",
            f"has schema version {raw.get('schema_version')}; this program reads {SCHEMA_VERSION}",
        )
    rules: list[Rule] = [parse_rule(switch, line) for switch, lines in enumerate(raw["rules"]) for line in lines]
    return Plan(
        scenario=parse_scenario(yaml.safe_dump(raw["scenario"]), raw["source"]),
        topology=_unpack(Topology, raw["topology"]),
        routes=_unpack(Routes, raw["routes"]),
        vlans=_unpack(VlanPlan, raw["vlans"]),
        rules=tuple(rules),
        violations=tuple(Violation(v["invariant"], v["sentence"], tuple(v["witness"])) for v in raw["violations"]),
        digest=raw["digest"],
    )


def _pack(value: Any) -> dict[str, Any]:
    return {field.name: _plain(getattr(value, field.name)) for field in dataclasses.fields(value)}


def _plain(value: Any) -> Any:
    if not isinstance(value, np.ndarray):
        return value
    plain = value.astype(np.int8) if value.dtype == np.bool_ else value
    return {"dtype": str(value.dtype), "shape": value.shape, "values": plain.reshape(-1).tolist()}


def _unpack(kind: type[Any], raw: dict[str, Any]) -> Any:
    return kind(**{name: _array(value) for name, value in raw.items()})


def _array(value: Any) -> Any:
    if isinstance(value, dict):
        array: npt.NDArray[Any] = np.asarray(value["values"], dtype=value["dtype"]).reshape(value["shape"])
        return array
    return tuple(value) if isinstance(value, list) else value
