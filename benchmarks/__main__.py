"""`python -m benchmarks [WHAT] [--runs N] …`; `--help` lists what there is.

Without a name: planning and lab.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

from benchmarks import failures, machine, realtime, regulate, scaling, virtual_time
from benchmarks.cluster import cluster
from benchmarks.data_plane import data_plane
from benchmarks.engines import PARTS as ENGINE_PARTS
from benchmarks.engines import engines
from benchmarks.first_run import first_run
from benchmarks.interrupts import TRIES, interrupts
from benchmarks.lab_speed import lab_speed
from benchmarks.live import live
from benchmarks.npb import npb
from benchmarks.packets import packet_simulator
from benchmarks.patterns import patterns
from benchmarks.planning import planning
from benchmarks.power import power
from benchmarks.routes import routes
from benchmarks.simulate import simulator
from benchmarks.table import Figure, as_markdown, progress
from benchmarks.telemetry import telemetry
from benchmarks.two_machines import over_two_machines

Chosen = argparse.Namespace


def _planning_and_lab(chosen: Chosen) -> list[Figure]:
    return [*planning(chosen.runs or 3), *_lab(chosen)]


def _lab(chosen: Chosen) -> list[Figure]:
    return [figure for size in chosen.size or (4, 8) for figure in lab_speed(size, chosen.runs or 3)]


def _data_plane(chosen: Chosen) -> list[Figure]:
    return [figure for size in chosen.size or (None,) for figure in data_plane(chosen.runs or 3, size)]


def _regulate(chosen: Chosen) -> list[Figure]:
    return [figure for part in _parts(chosen) for figure in regulate.regulation(part, chosen.runs or 3)]


def _virtual_time(chosen: Chosen) -> list[Figure]:
    return [figure for part in _parts(chosen) for figure in virtual_time.virtual_time(part, chosen.runs or 1)]


def _machine(chosen: Chosen) -> list[Figure]:
    return [figure for part in _parts(chosen) for figure in machine.machine(part, chosen.runs or 3)]


def _realtime(chosen: Chosen) -> list[Figure]:
    return [figure for part in _parts(chosen) for figure in realtime.in_real_time(part, chosen.runs or 3)]


def _engines(chosen: Chosen) -> list[Figure]:
    return [figure for part in _parts(chosen) for figure in engines(part, chosen.runs or 1)]


def _failures(chosen: Chosen) -> list[Figure]:
    sizes = chosen.size or failures.SIZES
    return [figure for part in _parts(chosen) for size in sizes for figure in failures.failures(part, size)]


def _scaling(chosen: Chosen) -> list[Figure]:
    return [figure for part in _parts(chosen) for figure in scaling.scaling(part)]


def _parts(chosen: Chosen) -> list[str]:
    return list(chosen.part or PARTS[chosen.what])


PARTS = {
    "regulate": regulate.PARTS,
    "virtual-time": virtual_time.PARTS,
    "vm": machine.PARTS,
    "realtime": realtime.PARTS,
    "engines": ENGINE_PARTS,
    "failures": failures.PARTS,
    "scaling": scaling.PARTS,
}
# Minutes that a run of each part takes on two cores, about.
TAKES: dict[str, dict[str, float]] = {
    "realtime": {
        "udp": 1.5, "tcp": 1.5, "latency": 0.5, "auto": 10.0, "shared": 2.0, "start": 0.2, "same": 2.0, "hops": 0.3,
        "whole": 1.5,
    },
    "engines": {"torus4x4": 4.0, "fig7": 14.0, "fig8": 5.0, "fig10": 20.0},
    "data-plane": {"": 5.0},
    "lab": {"": 1.5},
}  # fmt: skip
RUNS = {"engines": 1}
BENCHMARKS: dict[str, Callable[[Chosen], list[Figure]]] = {
    "planning": lambda chosen: planning(chosen.runs or 3),
    "lab": _lab,
    "telemetry": lambda chosen: telemetry(chosen.runs or 3),
    "live": lambda chosen: live(chosen.runs or 3),
    "patterns": lambda chosen: patterns(),
    "npb": lambda chosen: npb(chosen.runs or 3),
    "data-plane": _data_plane,
    "simulate": lambda chosen: simulator(chosen.runs or 3),
    "simulate-packets": lambda chosen: packet_simulator(chosen.runs or 3),
    "regulate": _regulate,
    "virtual-time": _virtual_time,
    "vm": _machine,
    "realtime": _realtime,
    "engines": _engines,
    "power": lambda chosen: power(),
    "failures": _failures,
    "cluster": lambda chosen: cluster(chosen.runs or 3),
    "machines": lambda chosen: over_two_machines(chosen.runs or 3),
    "scaling": _scaling,
    "first-run": lambda chosen: first_run(chosen.runs or 1),
    "routes": lambda chosen: routes(chosen.runs or 3),
    "interrupts": lambda chosen: interrupts(chosen.runs or TRIES),
}


def asked(words: list[str] | None = None) -> Chosen:
    """What the words ask for; None = those of the command line. Exits where that is not there."""
    parser = argparse.ArgumentParser(prog="benchmarks", description="Figures this project claims, measured here.")
    parser.add_argument("what", nargs="?", choices=BENCHMARKS, help="default: planning and lab")
    parser.add_argument(
        "--runs",
        type=int,
        help="runs of each; default 3, engines and first-run: 1, interrupts: 200, pairs of virtual-time: 1",
    )
    parser.add_argument(
        "--size", type=int, action="append", help="torus size k of failures, lab and data-plane; default 4 and 8"
    )
    every = [part for parts in PARTS.values() for part in parts]
    parser.add_argument(
        "--part",
        action="append",
        choices=every,
        help="of engines, failures, realtime, regulate, scaling, virtual-time, vm; default all",
    )
    parser.add_argument("--markdown", action="store_true", help="print a table for the documents")
    chosen = parser.parse_args(words)
    wrong = [part for part in chosen.part or () if part not in PARTS.get(chosen.what, ())]
    if wrong:
        parser.error(f"{chosen.what or 'without a name: it'} has no part {', '.join(wrong)}")
    return chosen


def main() -> None:
    """Measure and print a table."""
    chosen = asked()
    if chosen.what in TAKES:
        parts, runs = _parts(chosen) if chosen.what in PARTS else [""], chosen.runs or RUNS.get(chosen.what, 3)
        once = sum(TAKES[chosen.what].get(part, 0.0) for part in parts)
        progress(f"about {runs * once:.0f} min on two cores: {runs} of some {once:.0f} min; fewer with --runs")
    figures = (BENCHMARKS[chosen.what] if chosen.what else _planning_and_lab)(chosen)
    if chosen.markdown:
        print(as_markdown(figures))
        return
    width = max(len(figure.name) for figure in figures)
    for figure in figures:
        print(f"{figure.name:<{width}}  {figure.text}")


if __name__ == "__main__":
    main()
