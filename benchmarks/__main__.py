"""`python -m benchmarks [WHAT] [--runs N] …`; `--help` lists what there is.

Without a name: planning and lab.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

from benchmarks import dl_figures, dl_table5, machine, realtime, regulate, sr_figures, virtual_time
from benchmarks.curves import Effort
from benchmarks.data_plane import data_plane
from benchmarks.dl_table6 import SIZES, TRAFFIC, dl_table6
from benchmarks.dl_table7 import dl_table7
from benchmarks.failures import failures
from benchmarks.interrupts import TRIES, interrupts
from benchmarks.lab_speed import lab_speed
from benchmarks.npb import npb
from benchmarks.packets import packet_simulator
from benchmarks.patterns import patterns
from benchmarks.planning import planning
from benchmarks.power import power
from benchmarks.simulate import simulator
from benchmarks.table import Figure
from benchmarks.telemetry import telemetry

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
    return [figure for part in _parts(chosen) for figure in virtual_time.virtual_time(part)]


def _machine(chosen: Chosen) -> list[Figure]:
    return [figure for part in _parts(chosen) for figure in machine.machine(part, chosen.runs or 3)]


def _realtime(chosen: Chosen) -> list[Figure]:
    return [figure for part in _parts(chosen) for figure in realtime.in_real_time(part, chosen.runs or 3)]


def _parts(chosen: Chosen) -> list[str]:
    return list(chosen.part or PARTS[chosen.what])


def _table6(chosen: Chosen) -> list[Figure]:
    sizes, traffic = chosen.switches or SIZES, chosen.pattern or TRAFFIC
    return dl_table6(chosen.runs or 3, chosen.clocks or 1_000_000, chosen.buffer, sizes, traffic)


def _effort(chosen: Chosen, documented: Effort, full: Effort) -> Effort:
    whole = full if chosen.full else documented
    return Effort(chosen.clocks or whole.clocks, chosen.runs or whole.drawings)


def _dl_table5(chosen: Chosen) -> list[Figure]:
    return dl_table5.dl_table5(_effort(chosen, dl_table5.DOCUMENTED, dl_table5.FULL), chosen.buffer)


def _dl_figure(draw: Callable[[Effort, int], list[Figure]]) -> Callable[[Chosen], list[Figure]]:
    return lambda chosen: draw(_effort(chosen, dl_figures.DOCUMENTED, dl_figures.FULL), chosen.buffer)


def _sr_figure(name: str) -> Callable[[Chosen], list[Figure]]:
    return lambda chosen: sr_figures.sr_figure(name, _effort(chosen, sr_figures.DOCUMENTED, sr_figures.FULL))


PARTS = {
    "regulate": regulate.PARTS,
    "virtual-time": virtual_time.PARTS,
    "vm": machine.PARTS,
    "realtime": realtime.PARTS,
}
BENCHMARKS: dict[str, Callable[[Chosen], list[Figure]]] = {
    "planning": lambda chosen: planning(chosen.runs or 3),
    "lab": _lab,
    "telemetry": lambda chosen: telemetry(chosen.runs or 3),
    "patterns": lambda chosen: patterns(),
    "npb": lambda chosen: npb(chosen.runs or 3),
    "data-plane": _data_plane,
    "simulate": lambda chosen: simulator(chosen.runs or 3),
    "simulate-packets": lambda chosen: packet_simulator(chosen.runs or 3),
    "regulate": _regulate,
    "virtual-time": _virtual_time,
    "vm": _machine,
    "realtime": _realtime,
    "power": lambda chosen: power(),
    "failures": lambda chosen: failures(),
    "interrupts": lambda chosen: interrupts(chosen.runs or TRIES),
    "dl-table5": _dl_table5,
    "dl-table6": _table6,
    "dl-table7": lambda chosen: dl_table7(chosen.runs or 10),
    "dl-fig6": _dl_figure(dl_figures.dl_fig6),
    "dl-fig7": _dl_figure(dl_figures.dl_fig7),
    "sr-fig3": _sr_figure("sr-fig3"),
    "sr-fig4": _sr_figure("sr-fig4"),
}


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(prog="benchmarks", description="Figures this project claims, measured here.")
    parser.add_argument("what", nargs="?", choices=BENCHMARKS, help="default: planning and lab")
    parser.add_argument(
        "--runs", type=int, help="runs of each, or networks drawn at random; default 3, dl-table7: 10, interrupts: 200"
    )
    parser.add_argument("--size", type=int, action="append", help="torus size k of lab and data-plane; default 4 and 8")
    papers = parser.add_argument_group("figures of papers: dl-…, sr-…")
    papers.add_argument("--full", action="store_true", help="as long and as often as in the paper; minutes")
    papers.add_argument("--clocks", type=int, help="of a run, the warm-up included")
    papers.add_argument("--buffer", type=int, default=256, help="flits, of dl-…; the paper does not say")
    table = parser.add_argument_group("dl-table6, a million clocks by default")
    table.add_argument("--switches", type=int, action="append", choices=SIZES, help="default both")
    table.add_argument("--pattern", action="append", choices=TRAFFIC, help="default both")
    every = [part for parts in PARTS.values() for part in parts]
    parser.add_argument(
        "--part", action="append", choices=every, help="of realtime, regulate, virtual-time, vm; default all"
    )
    chosen = parser.parse_args()
    wrong = [part for part in chosen.part or () if part not in PARTS.get(chosen.what, ())]
    if wrong:
        parser.error(f"{chosen.what or 'without a name: it'} has no part {', '.join(wrong)}")
    figures = (BENCHMARKS[chosen.what] if chosen.what else _planning_and_lab)(chosen)
    width = max(len(figure.name) for figure in figures)
    for figure in figures:
        print(f"{figure.name:<{width}}  {figure.text}")


if __name__ == "__main__":
    main()
