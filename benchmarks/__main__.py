"""`python -m benchmarks [WHAT] [--runs N] …`; `--help` lists what there is.

Without a name: planning and lab.
"""

from __future__ import annotations

import argparse

from benchmarks.data_plane import data_plane
from benchmarks.dl_table6 import SIZES, TRAFFIC, dl_table6
from benchmarks.failures import failures
from benchmarks.lab_speed import lab_speed
from benchmarks.npb import npb
from benchmarks.patterns import patterns
from benchmarks.planning import planning
from benchmarks.power import power
from benchmarks.regulate import PARTS, regulation
from benchmarks.simulate import simulator
from benchmarks.table import Figure
from benchmarks.telemetry import telemetry


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(prog="benchmarks", description="Figures this project claims, measured here.")
    names = (
        "planning",
        "lab",
        "telemetry",
        "patterns",
        "npb",
        "data-plane",
        "simulate",
        "dl-table6",
        "regulate",
        "power",
        "failures",
    )
    parser.add_argument("what", nargs="?", choices=names, help="default: planning and lab")
    parser.add_argument("--runs", type=int, default=3, help="runs of each, topologies of dl-table6; default 3")
    parser.add_argument("--size", type=int, action="append", help="torus size k of lab and data-plane; default 4 and 8")
    table = parser.add_argument_group("dl-table6")
    table.add_argument("--switches", type=int, action="append", choices=SIZES, help="default both")
    table.add_argument("--pattern", action="append", choices=TRAFFIC, help="default both")
    table.add_argument("--clocks", type=int, default=1_000_000, help="of a run, a twentieth of it warm-up")
    table.add_argument("--buffer", type=int, default=256, help="flits; the paper does not say")
    parser.add_argument("--part", action="append", choices=PARTS, help="of regulate; default both")
    chosen = parser.parse_args()
    of_runs = {"telemetry": telemetry, "simulate": simulator, "npb": npb}
    without = {"patterns": patterns, "power": power, "failures": failures}
    figures: list[Figure] = []
    if chosen.what in of_runs:
        figures += of_runs[chosen.what](chosen.runs)
    if chosen.what in without:
        figures += without[chosen.what]()
    if chosen.what in (None, "planning"):
        figures += planning(chosen.runs)
    if chosen.what in (None, "lab"):
        for size in chosen.size or (4, 8):
            figures += lab_speed(size, chosen.runs)
    if chosen.what == "dl-table6":
        sizes, traffic = chosen.switches or SIZES, chosen.pattern or TRAFFIC
        figures += dl_table6(chosen.runs, chosen.clocks, chosen.buffer, sizes, traffic)
    if chosen.what == "data-plane":
        for size in chosen.size or (None,):
            figures += data_plane(chosen.runs, size)
    if chosen.what == "regulate":
        for part in chosen.part or PARTS:
            figures += regulation(part, chosen.runs)
    width = max(len(figure.name) for figure in figures)
    for figure in figures:
        print(f"{figure.name:<{width}}  {figure.text}")


if __name__ == "__main__":
    main()
