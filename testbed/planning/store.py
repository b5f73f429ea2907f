"""A plan as JSON and back: equal digest, equal arrays. The rules are in it for other programs to read."""

from __future__ import annotations

import dataclasses
import json
import re
from typing import Any

import numpy as np
import numpy.typing as npt

from testbed.base.errors import InputError
from testbed.base.limits import PLAN_VALUES, parse_json
from testbed.base.model import (
    AllowedTurns,
    Bundles,
    Entries,
    HostTaggedPlan,
    LearningPlan,
    LocalPlan,
    NextHops,
    PairTrees,
    Paths,
    Routes,
    Topology,
    Violation,
    VlanPlan,
)
from testbed.fabric.openflow.compile import count_rules
from testbed.fabric.openflow.rule_text import format_group, format_rule
from testbed.planning import Plan
from testbed.scenario.read_scenario import as_dict, scenario_of_blocks

SCHEMA_VERSION = 2
MAX_RULES = 3_000_000  # some 300 MB of text
# numpy understands more, as a program's text.
_DTYPE = re.compile(r"[a-z]{3,9}[0-9]{0,3}")
_TYPES = {
    kind.__name__: kind
    for kind in (
        Topology,
        Bundles,
        Routes,
        Paths,
        AllowedTurns,
        NextHops,
        PairTrees,
        VlanPlan,
        HostTaggedPlan,
        LearningPlan,
        Entries,
        LocalPlan,
    )
}


def plan_to_json(plan: Plan) -> str:
    """Return the whole plan as JSON text.

    Raises:
        InputError: the fabric has too many rules to write them down.
    """
    count = count_rules(plan.topology, plan.vlans, plan.bundles)
    if count > MAX_RULES:
        raise InputError.one(
            plan.scenario.source,
            f"has {count:,} rules and a plan file lists up to {MAX_RULES:,}; plan a smaller fabric, or do not write it",
        )
    rules: list[list[str]] = [[] for _ in range(plan.topology.switch_count)]
    for rule in plan.rules:
        rules[rule.switch].append(format_rule(rule))
    groups: list[list[str]] = [[] for _ in rules]
    for group in plan.groups:
        groups[group.switch].append(format_group(group))
    return json.dumps(
        {
            "schema_version": SCHEMA_VERSION,
            "digest": plan.digest,
            "source": plan.scenario.source,
            "scenario": as_dict(plan.scenario),
            "topology": _pack(plan.topology),
            "routes": _pack(plan.routes),
            "vlans": _pack(plan.vlans),
            "bundles": _pack(plan.bundles),
            **({} if plan.speeds is None else {"speeds": _pack(plan.speeds)}),
            "rules": rules,
            "groups": groups,
            "violations": [dataclasses.asdict(violation) for violation in plan.violations],
        }
    )


def plan_from_json(text: str) -> Plan:
    """Return the plan of a JSON text.

    Raises:
        InputError: it was written by another version.
    """
    raw = parse_json(text, most=PLAN_VALUES)
    if raw.get("schema_version") != SCHEMA_VERSION:
        raise InputError.one(
            "plan.json",
            f"has schema version {raw.get('schema_version')}; this program reads {SCHEMA_VERSION}",
        )
    for key in ("scenario", "topology", "routes", "vlans"):
        if not isinstance(raw[key], dict):
            raise TypeError(f"its {key} is not an object")
    return Plan(
        scenario=scenario_of_blocks(raw["scenario"], raw["source"], stored=True),
        topology=_unpack(raw["topology"]),
        routes=_unpack(raw["routes"]),
        vlans=_unpack(raw["vlans"]),
        violations=tuple(Violation(v["invariant"], v["sentence"], tuple(v["witness"])) for v in raw["violations"]),
        digest=raw["digest"],
        bundles=_unpack(raw.get("bundles")),
        speeds=_unpack(raw.get("speeds")),
    )


def _pack(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        plain = value.astype(np.int8) if value.dtype == np.bool_ else value
        return {"dtype": str(value.dtype), "shape": value.shape, "values": plain.reshape(-1).tolist()}
    if dataclasses.is_dataclass(value):
        fields = {field.name: _pack(getattr(value, field.name)) for field in dataclasses.fields(value)}
        return {"type": type(value).__name__, **fields}
    return value


def _unpack(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(value)
    if not isinstance(value, dict):
        return value
    if "type" in value:
        return _TYPES[value["type"]](**{name: _unpack(part) for name, part in value.items() if name != "type"})
    if not isinstance(value["dtype"], str) or not _DTYPE.fullmatch(value["dtype"]):
        raise ValueError(f"{str(value['dtype'])[:20]!r} is no type of numbers")
    array: npt.NDArray[Any] = np.asarray(value["values"], dtype=value["dtype"]).reshape(value["shape"])
    return array
