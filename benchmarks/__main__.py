"""`python -m benchmarks [planning|lab|telemetry|patterns|npb|data-plane] [--runs N] [--size K]`.

Without a name: planning and lab.
"""

from __future__ import annotations

import argparse

from benchmarks.data_plane import data_plane
from benchmarks.lab_speed import lab_speed
from benchmarks.npb import npb
from benchmarks.patterns import patterns
from benchmarks.planning import planning
from benchmarks.table import Figure
from benchmarks.telemetry import telemetry


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(prog="benchmarks", description="Figures this project claims, measured here.")
    parser.add_argument(
        "what",
        nargs="?",
        choices=("planning", "lab", "telemetry", "patterns", "npb", "data-plane"),
        help="default: planning and lab",
    )
    parser.add_argument("--runs", type=int, default=3, help="runs of each; default 3")
    parser.add_argument("--size", type=int, action="append", help="torus size k of lab and data-plane; default 4 and 8")
    chosen = parser.parse_args()
    figures: list[Figure] = []
    if chosen.what in (None, "planning"):
        figures += planning(chosen.runs)
    if chosen.what in (None, "lab"):
        for size in chosen.size or (4, 8):
            figures += lab_speed(size, chosen.runs)
    if chosen.what == "telemetry":
        figures += telemetry(chosen.runs)
    if chosen.what == "patterns":
        figures += patterns()
    if chosen.what == "npb":
        figures += npb(chosen.runs)
    if chosen.what == "data-plane":
        for size in chosen.size or (None,):
            figures += data_plane(chosen.runs, size)
    width = max(len(figure.name) for figure in figures)
    for figure in figures:
        print(f"{figure.name:<{width}}  {figure.text}")


if __name__ == "__main__":
    main()
