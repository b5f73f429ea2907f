"""How fast paths move when a link dies: links at their real rate, and nothing on them but 1,000 datagrams a second."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Literal

import numpy as np

from benchmarks.table import Figure, median_text, progress
from testbed.experiments.run.engines import run_scenario
from testbed.planning import make_plan
from testbed.results.samples import Failure, load_failures
from testbed.scenario import parse_scenario

SIZES = (4, 8)
PARTS = ("ovs", "realtime")  # engines
_DEATHS, _LARGE_DEATHS = 20, 5
_AFTER, _SECONDS, _LARGE_SECONDS = 0.8, 2, 4


def failures(engine: str, size: int) -> list[Figure]:
    """Take-over and new tables on a torus, for links spread over the fabric."""
    small = size == SIZES[0]
    found = _events(engine, size, _DEATHS if small else _LARGE_DEATHS, _SECONDS if small else _LARGE_SECONDS)
    return _figures(f"{engine}, {size}×{size} torus", found)


def _events(engine: str, size: int, deaths: int, seconds: int) -> list[Failure]:
    """What each link's death cost; a load for each, after which all is repaired."""
    torus = (
        f"topology: {{kind: torus, sizes: [{size}, {size}]}}\nengine: {engine}\n"
        "lab: {dilation: 1, controller: segment_manager}\n"
    )
    topology = make_plan(parse_scenario(torus, "failures")).topology
    links = np.linspace(0, topology.link_count, deaths, endpoint=False).astype(int)
    loads = "".join(
        f"- {{kind: probe, seconds: {seconds}, pairs: 1, failures: ['at {_AFTER}s: down {name}']}}\n"
        for name in (topology.channel_name(2 * int(link)).replace("→", "-") for link in links)
    )
    plan = make_plan(parse_scenario(f"{torus}workloads:\n{loads}", "failures"))
    with tempfile.TemporaryDirectory() as folder:
        outcome = run_scenario(plan, Path(folder), progress)
        if outcome.exit_code not in (0, 3):
            raise SystemExit(f"{size}×{size}: " + "; ".join(outcome.reasons))
        return [load_failures(outcome.folder, str(number + 1))[0]["events"][0] for number in range(deaths)]


def _figures(name: str, events: list[Failure]) -> list[Figure]:
    def of(key: Literal["detection", "diverted", "takeover", "recovery", "settled"]) -> list[float]:
        return [1000 * after for event in events if (after := event[key]) is not None]

    figures = [
        Figure(f"{name}: noticed", median_text(of("detection"), "ms")),
        Figure(f"{name}: hosts moved to backup VLANs", median_text(of("diverted"), "ms")),
    ]
    if of("takeover"):
        figures.append(Figure(f"{name}: first datagram on the backup path", median_text(of("takeover"), "ms")))
    lost = [float(event["frames_lost"]) for event in events]
    return [
        *figures,
        Figure(f"{name}: datagrams lost of 1,000 a second", median_text(lost, "")),
        Figure(f"{name}: new tables computed and in", median_text(of("recovery"), "ms")),
        Figure(f"{name}: new backups in as well", median_text(of("settled"), "ms")),
    ]
