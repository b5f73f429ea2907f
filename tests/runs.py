"""Made-up runs for tests: plans from scenario texts, figures as asked for."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from testbed.base.model import Sample
from testbed.planning import Plan, make_plan
from testbed.results import ResultFolder, Run
from testbed.results.store import LoadEntry
from testbed.scenario import parse_scenario

UDP = "{kind: iperf3, protocol: udp, pattern: transpose}"
ENVIRONMENT = {"kernel": "Linux 6.1", "datapath": "kernel", "processors": 2}


@cache
def plan_of_text(text: str, name: str) -> Plan:
    return make_plan(parse_scenario(text, f"{name}.yaml"))


def text_of(topology: str, *loads: str, dilation: float = 200, more: str = "") -> str:
    return f"topology: {topology}\nlab: {{dilation: {dilation}}}\nworkloads: [{', '.join(loads)}]\n{more}"


def goodput(*of_repeats: float, load: int = 1, flows: int = 2, predicted: float | None = 1e9) -> list[Sample]:
    """Flows that differ by 2 Mbit/s around the mean of each repeat."""
    return [
        Sample(
            "goodput",
            mean + 2e6 * (flow - (flows - 1) / 2),
            "bit/s",
            {"load": str(load), "repeat": str(repeat), "src": f"h{flow + 1}", "dst": f"h{flow + 2}"},
            predicted,
        )
        for repeat, mean in enumerate(of_repeats, 1)
        for flow in range(flows)
    ]


def head(load: int = 1, title: str = "iperf3 udp transpose", verdict: str = "pass", *reasons: str) -> LoadEntry:
    return {
        "load": str(load),
        "title": title,
        "kind": title.partition(" ")[0],
        "verdict": verdict,
        "reasons": list(reasons),
    }


def run_of(
    text: str,
    samples: Iterable[Sample],
    loads: Sequence[LoadEntry] = (),
    *,
    name: str = "made",
    folder: str = "",
    verdict: str = "",
    reasons: Sequence[str] = (),
    environment: dict[str, Any] | None = None,
) -> Run:
    plan = plan_of_text(text, name)
    order = ["pass", "warn", "invalid", "fail"]
    worst = verdict or max((load["verdict"] for load in loads or [head()]), key=order.index)
    manifest = {
        "scenario": name, "digest": plan.digest, "verdict": worst, "reasons": list(reasons),
        "loads": list(loads or [head()]), "dilation": plan.scenario.lab.dilation, "seconds": 1.0,
    }  # fmt: skip
    return Run(Path(folder or f"results/{name}"), manifest, environment or ENVIRONMENT, plan, tuple(samples))


def stored(root: Path, run: Run) -> Path:
    """Write a run as a result folder; returns it."""
    folder = ResultFolder(root, run.plan)
    folder.write_plan(run.environment)
    folder.write_samples(run.samples)
    folder.write_manifest(run.manifest["verdict"], run.manifest["reasons"], run.manifest["loads"])
    return folder.finish()
