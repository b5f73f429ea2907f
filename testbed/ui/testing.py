"""A suite of properties for authors of routings; call it in a test of your own.

def test_my_routing():
check_routing("my_routing.py")
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from testbed.base.errors import InputError, did_you_mean
from testbed.base.model import host_mac
from testbed.fabric.openflow.oracle import Oracle
from testbed.fabric.openflow.tables import UNTAGGED
from testbed.fabric.routing import ROUTINGS
from testbed.fabric.routing.paths import path
from testbed.planning import Plan, make_plan
from testbed.planning.store import plan_from_json, plan_to_json
from testbed.scenario.named_files import EVERY_KEY
from testbed.scenario.plugins import load_file, load_installed
from testbed.scenario.read_scenario import scenario_of_blocks

# Small, and each with something that a routing can stumble on.
FABRICS: dict[str, Mapping[str, Any]] = {
    "two switches": {"kind": "mesh", "sizes": [2]},
    "mesh": {"kind": "mesh", "sizes": [3, 3]},
    "torus": {"kind": "torus", "sizes": [4, 4]},
    "odd ring": {"kind": "ring", "switches": 5},
    "hypercube": {"kind": "hypercube", "dimensions": 3},
    "completely connected": {"kind": "complete", "switches": 4},
    "parallel links": {"kind": "torus", "sizes": [3, 3], "parallel_links": 2},
    "several hosts on a switch": {"kind": "mesh", "sizes": [3, 2], "hosts_per_switch": 2},
    "switches without hosts": {"kind": "fat_tree", "up": 2, "down": 2, "rounds": 2},
    "irregular": {"kind": "random", "switches": 10, "degree": 3, "seed": 1},
    "a tail": {
        "kind": "graph",
        "switches": ["a", "b", "c", "d"],
        "links": [["a", "b"], ["b", "c"], ["c", "a"], ["c", "d"]],
    },
}


_SHOWN = 12  # channels of a witness


@dataclass(frozen=True, slots=True)
class Checked:
    """What a suite came to, where nothing failed."""

    passed: tuple[str, ...]  # fabrics that the routing took
    refused: Mapping[str, str]  # those that it said it does not take, each with the sentence


def check_routing(
    routing: str | Path,
    options: Mapping[str, Any] | None = None,
    fabrics: Mapping[str, Mapping[str, Any]] = FABRICS,
    **blocks: Any,
) -> Checked:
    """Plan fabrics by a routing and check all that must hold.

    Of each fabric that it takes: the same plan twice; every invariant that `testbed verify` proves, deadlock freedom
    among them; every pair's frames, followed through the rules of the switches, arrive by the path that the routes say;
    the plan survives being stored. A routing for any topology takes every fabric.

    Args:
        routing: a plug-in's Python file, which offers one, or the name of a routing.
        options: of the routing.
        fabrics: name → topology block.
        **blocks: further blocks of the scenario, such as assignment={"kind": "fixed"}.

    Raises:
        InputError: there is no such routing, or the file cannot be taken.
        AssertionError: what does not hold, with the fabric and the witness.
    """
    name, plugins = _named(routing)
    passed, refused = [], {}
    for fabric, topology in fabrics.items():
        of_routing = {"kind": name, **(options or {})}
        scenario = {"plugins": plugins, "topology": dict(topology), "routing": of_routing, **blocks}
        try:
            plans = [
                make_plan(scenario_of_blocks(dict(scenario), "check", trust=True, named=[EVERY_KEY])) for _ in range(2)
            ]
        except InputError as error:
            refused[fabric] = str(error)
            continue
        wrong = next(_list_faults(*plans), "")
        assert not wrong, f"{name} on {fabric} {dict(topology)}: {wrong}"
        passed.append(fabric)
    first = next(iter(refused.items()), ("", ""))
    assert passed, f"{name} takes none of the {len(fabrics)} fabrics; of {first[0]} it says: {first[1]}"
    any_topology = ROUTINGS[name].any_topology
    assert not (any_topology and refused), f"{name} says that it takes any topology, and not {first[0]}: {first[1]}"
    return Checked(tuple(passed), refused)


def _named(routing: str | Path) -> tuple[str, list[str]]:
    """The name of a routing and the plug-ins that it takes.

    Raises:
        InputError: there is none, or the file offers none or several.
    """
    if str(routing).endswith(".py"):
        offered = load_file(Path(routing).resolve()).get("routings", [])
        if len(offered) != 1:
            sentence = f"offers {len(offered)} routings; give the name of one after it was loaded, or a file with one"
            raise InputError.one(str(routing), sentence)
        return offered[0], [str(Path(routing).resolve())]
    load_installed()
    if routing not in ROUTINGS:
        raise InputError.one(str(routing), f"there is no such routing.{did_you_mean(str(routing), ROUTINGS)}")
    return str(routing), []


def _list_faults(one: Plan, other: Plan) -> Iterator[str]:
    if one.digest != other.digest:
        yield "two plans of the same scenario differ; what is drawn must come from a seed of the options"
    for violation in one.violations:
        witness = f" [{' '.join(violation.witness[:_SHOWN])}]" if violation.witness else ""
        yield f"{violation.invariant}: {violation.sentence}{witness}"
    topology, oracle = one.topology, Oracle(one.topology, one.rules)
    for source in range(topology.host_count):
        for goal in range(topology.host_count):
            if source != goal:
                yield from _astray(one, oracle, source, goal)
    if plan_from_json(plan_to_json(one)).digest != one.digest:
        yield "the plan is another after it was stored"


def _astray(plan: Plan, oracle: Oracle, source: int, goal: int) -> Iterator[str]:
    topology = plan.topology
    tag = plan.vlans.host_tag(source, goal)
    found = oracle.send(source, host_mac(goal), UNTAGGED if tag is None else tag)
    wanted = path(topology, plan.routes, source, goal)
    pair = f"{topology.host_name(source)}→{topology.host_name(goal)}"
    if found.received != {goal: 1}:
        yield f"by the rules of the switches a frame of {pair} does not arrive, once and there alone"
    elif found.channels != wanted:
        taken, said = (" ".join(map(topology.channel_name, ways)) for ways in (found.channels, wanted))
        yield f"by the rules of the switches {pair} takes {taken}, and the routes say {said}"
