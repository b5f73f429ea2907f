"""What the switches carry: one Open vSwitch daemon as installed against this lab's, in turn, on the same fabric.

A hop-packet is a frame that one switch has forwarded; of frames lost on their way none is counted. Flows go from every
host to its right-hand neighbour on a torus, so a frame passes two switches, or to the host that is farthest. Links of
1 Gbit/s never limit; slow ones show what is left where each host's frames are paced. All variants get the large socket
buffers without which frames vanish. The fast path is what scenarios get with `lab.fast_path: auto`; the other variants
are without. Frames are sent and received by one process a processor: the kernel forwards on the processor of whoever
sent.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import tempfile
from collections import defaultdict
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks.table import Figure, median_text, progress
from testbed.base.messages import SHARED, LoadRequest, Process, Snapshot
from testbed.base.model import host_ip
from testbed.engines.lab.control.build import build_order
from testbed.engines.lab.control.client import LabClient
from testbed.engines.lab.control.launch import start_namespaces
from testbed.planning import Plan, make_plan
from testbed.scenario import parse_scenario

_PUMP = Path(__file__).with_name("frame_pump.c")
_OMIT, _SECONDS = 0.5, 1.5
_FULL, _SMALL = 1470, 18  # payload of a full frame and of the shortest


@dataclass(frozen=True)
class Load:
    """Frames of a payload, so many of each flow on the way; `flows` of them, 0 = from every host; to whom."""

    name: str
    payload: int
    window: int
    flows: int = 0
    far: bool = False

    def switches(self, size: int) -> int:
        """That a frame passes on a torus of a size."""
        return 2 * (size // 2) + 1 if self.far else 2


@dataclass(frozen=True)
class Case:
    """A torus with links of a rate, and the loads put on it."""

    size: int
    rate: str
    loads: tuple[Load, ...]


_NEAR, _FAR = Load("full frames", _FULL, 16), Load("full frames to the farthest host", _FULL, 16, far=True)
_SATURATED = (
    _NEAR,
    Load("shortest frames", _SMALL, 16),
    _FAR,
    Load("shortest frames to the farthest host", _SMALL, 16, far=True),
)
CASES = (
    Case(4, "1 Gbit/s", (*_SATURATED, Load("one frame at a time", _SMALL, 1, flows=1))),
    Case(8, "1 Gbit/s", (*_SATURATED, Load("one frame at a time", _SMALL, 1, flows=1))),
    Case(4, "60 Mbit/s", (_NEAR, _FAR)),
    Case(8, "10 Mbit/s", (_NEAR, _FAR)),
)


def variants() -> dict[str, dict[str, Any]]:
    """Changes to the order of a lab, by name; the first is what the others are compared with."""
    processors = len(os.sched_getaffinity(0))
    tuned = {f"{count} daemon{'s' if count > 1 else ''}": count for count in sorted({1, processors, 2 * processors})}
    return {
        "stock": {"switch_daemons": 1, "stock": True, "fast_path": "off"},
        **{name: {"switch_daemons": count, "fast_path": "off"} for name, count in tuned.items()},
        "fast path": {"fast_path": "auto"},
    }


def data_plane(runs: int, size: int | None = None) -> list[Figure]:
    """Measure every variant in turn, `runs` times."""
    found: dict[tuple[str, str], list[dict[str, float]]] = defaultdict(list)
    cases = [case for case in CASES if size in (None, case.size)]
    with tempfile.TemporaryDirectory() as folder:
        pump = Path(folder) / "frame_pump"
        subprocess.run(["gcc", "-O2", "-std=gnu11", "-o", str(pump), str(_PUMP)], check=True)
        for number in range(1, runs + 1):
            for case in cases:
                plan = _plan(case)
                for name, changes in variants().items():
                    progress(f"run {number} of {runs}: {case.size}×{case.size}, {case.rate}, {name}")
                    for title, measured in _measure(plan, case, changes, pump).items():
                        found[title, name].append(measured)
    return [figure for title in dict.fromkeys(title for title, _ in found) for figure in _figures(title, found)]


def _plan(case: Case) -> Plan:
    text = (
        f"topology: {{kind: torus, sizes: [{case.size}, {case.size}]}}\n"
        f"links: {{rate: {case.rate}}}\nlab: {{dilation: 1, datapath: userspace}}\n"
    )
    return make_plan(parse_scenario(text, "benchmark"))


def _measure(plan: Plan, case: Case, changes: dict[str, Any], pump: Path) -> dict[str, dict[str, float]]:
    """Build the lab of a variant once and put all loads of a case on it."""
    namespaces = start_namespaces(keep=False)
    try:
        lab = LabClient(namespaces)
    except BaseException:
        namespaces.end()
        raise
    with lab:
        holders = list(lab.build(replace(build_order(plan), **changes)).holders.values())
        lab.copy(pump)
        found = {}
        for load in case.loads:
            title = f"{case.size}×{case.size}, links of {case.rate}, {load.name}"
            found[title] = _pump(lab, load, _flows(case.size, load, holders), load.switches(case.size))
        return found


def _flows(size: int, load: Load, holders: list[int]) -> list[str]:
    """A line a flow: where it starts, where it ends, and that host's address."""
    flows = []
    for host, holder in enumerate(holders):
        row, column = divmod(host, size)
        if load.far:
            row, column = (row + size // 2) % size, (column + size // 2) % size
        else:
            column = (column + 1) % size
        target = row * size + column
        flows.append(f"{holder} {holders[target]} {host_ip(target)}\n")
    return flows[: load.flows or None]


def _pump(lab: LabClient, load: Load, flows: list[str], switches: int) -> dict[str, float]:
    pumps = []
    for number in range(min(len(os.sched_getaffinity(0)), len(flows))):
        file = lab.write(f"{SHARED}/flows-{number}", "".join(flows[number :: len(os.sched_getaffinity(0))]))
        command = f"exec {file.parent}/frame_pump {load.payload} {load.window} {_OMIT} {_SECONDS} <{file}"
        pumps.append(Process(f"pump-{number}", None, ("sh", "-c", command)))
    done = lab.run_load(LoadRequest(tuple(pumps), 10 * (_OMIT + _SECONDS)))
    before, after = done.before, done.after
    printed = []
    for pump in pumps:
        output = done.outputs[pump.id]
        if output.code != 0:
            raise RuntimeError(f"frame_pump failed: {output.stderr.strip()}")
        printed.append(json.loads(output.stdout))
    return {
        "rate": switches * sum(one["arrived"] / one["seconds"] for one in printed),
        "latency": printed[0]["median_us"] / switches,
        "idle": (after.idle - before.idle) / (after.total - before.total),
        "work": _work(before, after, switches),
    }


def _work(before: Snapshot, after: Snapshot, switches: int) -> float:
    """Processor s a frame that a switch sent, those of the hosts and of whatever else ran included."""
    busy = (after.total - before.total) - (after.idle - before.idle)
    sent = sum(b.frames - a.frames for a, b in zip(before.channels, after.channels, strict=True))
    # Each frame is sent into a channel by all switches but the last one, which sends it to its host.
    hops = sent * switches / (switches - 1)
    return busy / os.sysconf("SC_CLK_TCK") / max(hops, 1)


def _figures(title: str, found: dict[tuple[str, str], list[dict[str, float]]]) -> list[Figure]:
    """Of a load that waits for each frame the time a hop, of the others the rate; each beside stock, run by run."""
    names = [name for named, name in found if named == title]
    latency = title.endswith("one frame at a time")
    key, unit, scale = ("latency", "µs a hop", 1.0) if latency else ("rate", "thousand hop-packets/s", 1e-3)
    figures = []
    stock = [run[key] for run in found[title, names[0]]]
    for name in names:
        values = [run[key] for run in found[title, name]]
        text = median_text([scale * value for value in values], unit)
        if name != names[0]:
            ratios = [value / of_stock for value, of_stock in zip(values, stock, strict=True)]
            text += f"; {statistics.median(ratios):.2f} of {names[0]} ({min(ratios):.2f} – {max(ratios):.2f})"
        if not latency:
            idle = statistics.median(run["idle"] for run in found[title, name])
            work = statistics.median(run["work"] for run in found[title, name])
            text += f"; {100 * idle:.0f} % idle; {1e6 * work:.1f} µs of processor a hop, hosts' included"
        figures.append(Figure(f"{title}: {name}", text))
    return figures
