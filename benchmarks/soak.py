"""Keep a lab of 64 hosts busy for a while with loads, failures and repairs, and see whether anything grows.

    make soak                              # 20 minutes
    make soak ARGS="--seconds 3600"
    make soak ARGS="--seconds 40 --size 2"

In each round pairs of hosts send by TCP, a link fails under them and is mended, and then rules, memory, descriptors and
processes are counted. The first rounds, in which every link fails and every host has its turn, are left out; of the
others the medians of the first and the last third are compared. Exit code 1 where something is more than 2 % larger
(and 0.5 MB), or goodput changed by more than 2 % and by more than chance does (Mann and Whitney's test, one in a
thousand), for which fewer than 24 rounds are too few.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import json
import os
import random
import secrets
import statistics
import sys
import time
from pathlib import Path

from testbed.base.messages import Disturbance, LoadRequest, Process
from testbed.base.model import host_ip
from testbed.engines.lab.control.build import build_lab
from testbed.engines.lab.control.client import LabClient
from testbed.planning import Plan, make_plan
from testbed.scenario import parse_scenario

_GROWTH = 0.02
_ROOM = 0.5  # MB that do not count as growth
_CHANCE = 0.001  # that goodput which does not change is said to
_ENOUGH = 8  # rounds on either side; of fewer, the test calls nothing rarer than one in a thousand
_WARM_UP = 8  # rounds, in which programs make what they keep of each host and link
_SECONDS = 2  # of a load
_PAIRS = 8
_PORT = 5201
_KINDS = {"testbed.engines.lab.control.agent": "agent", "ovs-vswitchd": "switches", "ovsdb-server": "database"}


def main() -> None:
    """Run rounds until the time is up, and judge."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=1200.0)
    parser.add_argument("--size", type=int, default=8, help="of the torus; 8 has 64 hosts")
    parser.add_argument("--seed", type=int, default=secrets.randbelow(1 << 32))
    asked = parser.parse_args()
    sys.stdout.write(f"the seed is {asked.seed}; the same failures again: --seed {asked.seed}\n")
    chance = random.Random(asked.seed)
    kind = "torus" if asked.size > 2 else "mesh"
    text = f"topology: {{kind: {kind}, sizes: [{asked.size}, {asked.size}]}}\nlab: {{dilation: 200}}\n"
    plan = make_plan(parse_scenario(text, "soak.yaml"))
    seen: list[dict[str, float]] = []
    began = time.monotonic()
    with build_lab(plan) as lab:
        while time.monotonic() - began < asked.seconds or len(seen) < _WARM_UP + 3:
            seen.append(_round(plan, lab, *_drawn(plan, chance, len(seen))))
            passed = time.monotonic() - began
            shown = ", ".join(f"{name} {value:.4g}" for name, value in seen[-1].items())
            sys.stderr.write(f"round {len(seen)}, {passed:.0f} s: {shown}\n")
        init = lab.namespaces.init
    left = [] if not Path(f"/proc/{init}").exists() else [f"process {init} is still there"]
    bad = left + judged(seen[_WARM_UP:])
    sys.stdout.write(f"{len(seen)} rounds in {time.monotonic() - began:.0f} s; {len(bad)} things grew or changed\n")
    sys.exit(1 if bad else 0)


def _drawn(plan: Plan, chance: random.Random, number: int) -> tuple[list[int], list[int]]:
    """Hosts, of which every other one sends to the next, and links that fail, of one round.

    In the rounds that are left out all are used.
    """
    hosts, links = range(plan.topology.host_count), range(plan.topology.link_count)
    count = min(2 * _PAIRS, len(hosts) // 2 * 2)
    if number < _WARM_UP:
        turn = [(number * count + one) % len(hosts) for one in range(count)]
        return turn, list(links[number % len(links) :: _WARM_UP])
    return chance.sample(hosts, count), [chance.randrange(len(links))]


def _round(plan: Plan, lab: LabClient, hosts: list[int], links: list[int]) -> dict[str, float]:
    """One load with a failure and a repair; what there is afterwards."""
    topology = plan.topology
    pairs = list(zip(hosts[::2], hosts[1::2], strict=True))
    both = tuple(channel for link in links for channel in (2 * link, 2 * link + 1))
    processes = []
    for source, target in pairs:
        server = ("iperf3", "--server", "--one-off", "--port", str(_PORT))
        client = ("iperf3", "--client", host_ip(target), "--port", str(_PORT), "--time", str(_SECONDS), "--json")
        processes += [
            Process(f"server {target}", topology.host_name(target), server, server_port=_PORT),
            Process(f"client {source}", topology.host_name(source), client),
        ]
    timeline = (Disturbance(up=False, channels=both, at=0.5), Disturbance(up=True, channels=both, at=0.8))
    found = lab.run_load(LoadRequest(tuple(processes), 60.0, timeline=timeline))
    errors = [event.error for event in found.disturbed if event.error]
    rates = []
    for name, output in found.outputs.items():
        if output.code != 0:
            errors.append(f"{name}: {output.stderr or output.stdout[-200:]}")
        elif name.startswith("client"):
            rates.append(json.loads(output.stdout)["end"]["sum_received"]["bits_per_second"])
    wrong = lab.deviations(plan)
    if errors or wrong:
        raise SystemExit(f"a round failed: {[*errors, *wrong][:3]}")
    rules = sum(map(len, lab.flows().values()))
    return {"goodput": statistics.median(rates) / 1e6, "rules": rules, **_counted(lab)}


def _counted(lab: LabClient) -> dict[str, float]:
    """Processes of the lab; of those that stay, and of this program, MB in memory and open files."""
    found: dict[str, float] = {"processes": 0}
    for entry in lab.namespaces.proc.iterdir():
        if not entry.name.isdigit():
            continue
        try:
            command = (entry / "cmdline").read_bytes().decode(errors="replace")
            figures = _memory(entry), float(len(list((entry / "fd").iterdir())))
        except OSError:
            continue  # it has ended meanwhile
        found["processes"] += 1
        for word, name in _KINDS.items():
            if word in command.split("\0"):
                found[f"{name} MB"] = found.get(f"{name} MB", 0) + figures[0]
                found[f"{name} files"] = found.get(f"{name} files", 0) + figures[1]
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)  # of itself, the C library keeps what the largest answer of the lab has taken
    own = Path(f"/proc/{os.getpid()}")
    return {**found, "client MB": _memory(own), "client files": float(len(list((own / "fd").iterdir())))}


def _memory(entry: Path) -> float:
    """MB that are no file's: who else maps the same libraries changes what of them is a process's own."""
    rows = dict(line.split(":", 1) for line in (entry / "smaps_rollup").read_text().splitlines()[1:])
    return int(rows["Anonymous"].split()[0]) / 1000


def judged(seen: list[dict[str, float]]) -> list[str]:
    """What is larger at the end, or was goodput's change; all is printed."""
    third = max(1, len(seen) // 3)
    bad = []
    for name in seen[0]:
        first, last = ([one[name] for one in part] for part in (seen[:third], seen[-third:]))
        before, after = statistics.median(first), statistics.median(last)
        change = (after - before) / before if before else 0.0
        grown = change > _GROWTH and after - before > (_ROOM if name.endswith("MB") else 0)
        said = "TOO MUCH" if grown else ""
        if name == "goodput":
            said = "TOO MUCH" if abs(change) > _GROWTH and by_chance(first, last) < _CHANCE else ""
            said = said if third >= _ENOUGH else "too few rounds to judge"
        sys.stdout.write(f"{name:16} {before:10.4g} → {after:10.4g} ({change:+.1%})  {said}".rstrip() + "\n")
        bad += [name] * (said == "TOO MUCH")
    return bad


def by_chance(first: list[float], second: list[float]) -> float:
    """How probable it is that samples of one distribution differ as much as these (Mann and Whitney, both sides).

    By the normal approximation, which holds from eight values on either side on.
    """
    above = sum((one > other) + (one == other) / 2 for one in first for other in second)
    pairs = len(first) * len(second)
    spread = (pairs * (len(first) + len(second) + 1) / 12) ** 0.5
    return 2 * statistics.NormalDist().cdf(-abs(above - pairs / 2) / spread)


if __name__ == "__main__":
    main()
