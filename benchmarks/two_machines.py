"""A 4×4 torus over two machines beside the same on one: in turn, every host sending to its neighbour.

The machines are namespaces of this one, joined by a cable; so both share its processors, and ratios tell what cutting
costs, not what a second machine gives.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks.table import Figure, progress
from testbed.base.model import Sample
from testbed.results import load_run
from tests.machines import ROOT, two_machines

_TORUS = """
topology: {kind: torus, sizes: [4, 4]}
links: {rate: 1 Gbit/s}
lab: {dilation: 100, telemetry: 0}
workloads:
  - {kind: ping, pattern: complement, count: 10}
  - {kind: iperf3, protocol: udp, pattern: neighbour, offered_load: 0.9, seconds: 4, omit: 1, repeats: 1}
"""


def over_two_machines(runs: int) -> list[Figure]:
    """Goodput beside its prediction and round trips of both, run by run."""
    found: dict[str, list[dict[str, float]]] = {"two machines": [], "one machine": []}
    verdicts: dict[str, list[str]] = {name: [] for name in found}
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        (folder / "torus.yaml").write_text(_TORUS)
        with two_machines(folder) as pair:
            for number in range(1, runs + 1):
                for name, options in (("two machines", pair.options), ("one machine", ())):
                    progress(f"run {number} of {runs}: {name}")
                    words = ("run", str(folder / "torus.yaml"), "--results", str(folder), "--format", "json", *options)
                    if options:
                        done = pair.testbed(*words)
                    else:
                        command = [sys.executable, "-m", "testbed", *words]
                        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
                    if not done.stdout:
                        raise SystemExit(f"{name}: {done.stderr}")
                    outcome = json.loads(done.stdout)
                    verdicts[name].append(outcome["verdict"])
                    found[name].append(_figures(load_run(Path(outcome["results"])).samples))
    figures = []
    for name, rows in found.items():
        for what in rows[0]:
            values = [row[what] for row in rows]
            text = f"{statistics.median(values):.4g}  ({min(values):.4g} – {max(values):.4g}, {len(values)} runs)"
            figures.append(Figure(f"4×4 torus, {name}: {what}", text))
        figures.append(Figure(f"4×4 torus, {name}: verdicts", ", ".join(verdicts[name])))
    return figures


def _figures(samples: Sequence[Sample]) -> dict[str, float]:
    ratios = [one.value / one.predicted for one in samples if one.metric == "goodput" and one.predicted]
    trips = [one.value for one in samples if one.metric == "rtt_mean"]
    return {
        "UDP goodput over its prediction, mean": statistics.mean(ratios),
        "UDP goodput over its prediction, worst flow": min(ratios),
        "ping, mean over pairs [µs, real-world]": 1e6 * statistics.mean(trips),
    }
