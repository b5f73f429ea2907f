"""Random plans: certificate and checker against the verifier, and against planted faults.

    .venv/bin/python benchmarks/certificates.py --count 10000 --seed 1

Each plan is drawn, proved, written and certified. The stand-alone checker must accept it exactly if the verifier does,
and must refuse it with a fault in the rules or the certificate that changes what a frame does. Ends with 1 at the first
plan on which they do not agree, and shows it.
"""

from __future__ import annotations

import argparse
import copy
import json
import random
import sys
import time
from typing import Any

from testbed.base.errors import InputError
from testbed.planning import Plan, make_plan
from testbed.planning.certificate import channel_order, walks_of
from testbed.planning.certificate_check import check
from testbed.planning.store import plan_to_json
from testbed.scenario.read_scenario import scenario_of_blocks


def blocks(draw: random.Random) -> dict[str, Any]:
    """A small scenario."""
    hosts = draw.choice([1, 1, 1, 2])
    kind = draw.choice(["ring", "mesh", "torus", "tree", "complete", "random"])
    topology: dict[str, Any] = {"kind": kind, "hosts_per_switch": hosts}
    if kind in ("mesh", "torus"):
        topology["sizes"] = [draw.randint(2, 4) for _ in range(draw.choice([1, 2, 2]))]
    elif kind == "random":
        topology |= {"switches": draw.choice([6, 8, 10]), "degree": 3, "seed": draw.randrange(1000)}
    else:
        topology["switches"] = draw.randint(3, 7)
    found: dict[str, Any] = {"name": "drawn", "topology": topology}
    if draw.random() < 0.2 and kind in ("ring", "mesh", "complete"):
        topology["parallel_links"] = 2
        found["links"] = {"aggregate": draw.random() < 0.7}
    routing: dict[str, Any] = {}
    if draw.random() < 0.35:
        routing["kind"] = draw.choice(["updown", "stp", "sr", "lturn", "dl"])
    elif kind in ("ring", "torus") and draw.random() < 0.5:
        routing["ring"] = "shortest"
    assignment = draw.choice(
        [{}, {}, {"kind": "renamed"}, {"kind": "static"}, {"kind": "openflow"}, {"entries": "all"}]
    )
    return found | ({"routing": routing} if routing else {}) | ({"assignment": assignment} if assignment else {})


def certified(plan: Plan) -> dict[str, Any]:
    """A certificate, whether the plan deserves it or not."""
    found = {"digest": plan.digest, "order": channel_order(plan), "walks": walks_of(plan)}
    return dict(json.loads(json.dumps(found)))


def faults(plan: dict[str, Any], certificate: dict[str, Any], draw: random.Random) -> dict[str, tuple[Any, Any]]:
    """Changed plans and certificates, each of which lies about the way of some frame."""
    hosts = len(certificate["walks"])
    used = [(a, b) for a in range(hosts) for b in range(hosts) if certificate["walks"][a][b]]
    found: dict[str, tuple[Any, Any]] = {}
    if used:
        a, b = draw.choice(used)
        found["a walk by another port"] = (plan, copy.deepcopy(certificate))
        walk = found["a walk by another port"][1]["walks"][a][b]
        found["a walk by another port"][1]["walks"][a][b] = walk + ".1"
        switch, dst = plan["topology"]["host_switch"]["values"][a], f"02:00:00:00:00:{b + 1:02x}"
        found["no rule for a pair"] = (copy.deepcopy(plan), certificate)
        rules = found["no rule for a pair"][0]["rules"]
        rules[switch] = [rule for rule in rules[switch] if f"dl_dst={dst}" not in rule and "priority=100," not in rule]
        found["a rule twice"] = (copy.deepcopy(plan), certificate)
        rules = found["a rule twice"][0]["rules"]
        one = next(rule for rule in rules[switch] if f"dl_dst={dst}" in rule)
        rules[switch].append(one.replace("priority=200", "priority=201").replace("output:", "output:9"))
        first = [channel for channel in certificate["order"] if channel[0] == switch]
        found["a channel that the order lacks"] = (plan, copy.deepcopy(certificate))
        port = int(walk.split(".")[0])
        order = found["a channel that the order lacks"][1]["order"]
        order[:] = [channel for channel in order if channel[:2] != [switch, port]]
        assert first
    if any("." in walk for row in certificate["walks"] for walk in row):
        found["the order turned round"] = (plan, certificate | {"order": certificate["order"][::-1]})
    found["another plan's digest"] = (plan, certificate | {"digest": "0" * 16})
    return found


def judge(draw: random.Random) -> str:
    """One plan: `refused`, `proved` or `unproved`.

    Raises:
        AssertionError: verifier and checker do not agree.
    """
    raw = blocks(draw)
    try:
        plan = make_plan(scenario_of_blocks(raw, "drawn.yaml"))
    except InputError:
        return "refused"
    stored, certificate = json.loads(plan_to_json(plan)), certified(plan)
    said = check(stored, certificate)
    assert (not said) == (not plan.violations), f"{raw}: verifier {plan.violations[:2]}, checker {said[:2]}"
    if said:
        return "unproved"
    for what, (changed, claimed) in faults(stored, certificate, draw).items():
        assert check(changed, claimed), f"{raw}: {what} is not found"
    return "proved"


def main() -> int:
    """Draw plans until one shows a difference, or there are enough."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=1000, help="plans that are judged")
    parser.add_argument("--seed", type=int, default=1, help="what they are drawn by")
    options = parser.parse_args()
    draw, started = random.Random(options.seed), time.monotonic()
    counts = dict.fromkeys(("proved", "unproved", "refused"), 0)
    while counts["proved"] + counts["unproved"] < options.count:
        try:
            counts[judge(draw)] += 1
        except AssertionError as error:
            print(f"seed {options.seed}, after {counts}: {error}")
            return 1
        done = counts["proved"] + counts["unproved"]
        if done % 100 == 0 and sys.stderr.isatty():
            print(f"\r{done} of {options.count}", end="", file=sys.stderr, flush=True)
    print(f"seed {options.seed}: {counts}, {time.monotonic() - started:.0f} s; verifier and checker agree on all")
    return 0


if __name__ == "__main__":
    sys.exit(main())
