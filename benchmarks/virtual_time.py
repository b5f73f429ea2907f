"""What virtual time is worth: figures beside predictions, two runs beside each other, and on a machine kept busy."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from benchmarks.command import ROOT, testbed
from benchmarks.engines import median_figures
from benchmarks.flows import flow_ratios, ratio_text
from benchmarks.same_runs import SCENARIOS, same_runs
from benchmarks.table import Figure, progress
from testbed.results import load_run
from testbed.results.read_run import Run

PARTS = ("flows", "patterns", "shift", "engines", "engines-torus4x4", *SCENARIOS)
# Sixteen flows at once, one a host, by UDP and by TCP.
_FLOWS = (
    "{kind: iperf3, protocol: udp, pattern: neighbour, omit: 3, seconds: 8, repeats: 1}, "
    "{kind: iperf3, protocol: tcp, pattern: neighbour, omit: 5, seconds: 20, repeats: 1}"
)
_TOPOLOGIES = ("mesh4x2", "torus4x2", "myri-clos", "mtree4x4", "mesh4x4", "torus4x4", "fattree14")
# A tenth of the bottleneck stays free for iperf3's own control messages, which take the same links.
_PATTERNS = ", ".join(
    f"{{kind: iperf3, protocol: udp, pattern: {pattern}, offered_load: 0.9, omit: 3, seconds: 8, repeats: 1}}"
    for pattern in ("all_to_all", "bit_reversal", "transpose")
)
_SHIFTS = (0, 1, 2)
_INSIDE = {"ovs": "Open vSwitch", "realtime": "modelled switches"}
_VIRTUAL = ("--engine", "vm", "--virtual-time")


def virtual_time(part: str, runs: int) -> list[Figure]:
    """Measure one of them.

    Args:
        part: `flows`: 16 flows on a 4×4 torus, twice, on a busy machine, and with the other engines; `patterns`: three
            patterns on seven topologies; `shift`: the same 16 flows with quicker and slower processors; `engines`
            and `engines-torus4x4`: a small scenario and the main job on each of what carries frames in the machine;
            `same` and `same-torus4x4`: pairs of these two, compared file by file.
        runs: pairs of these.
    """
    if part in SCENARIOS:
        return same_runs(part, runs)
    if part.startswith("engines"):
        return _engines(SCENARIOS[part.replace("engines", "same")])
    return {"flows": _flows, "patterns": _patterns, "shift": _shift}[part]()


def _flows() -> list[Figure]:
    load = ("torus4x4", "--set", f"workloads=[{_FLOWS}]")
    slowed = (*load, "--set", "lab.dilation=200")
    virtual = (*slowed, *_VIRTUAL)
    (first, figures), (again, more) = _at_once({"virtual time": virtual, "virtual time, again": virtual})
    figures += more
    with _busy_machine():
        busy, more = _run("virtual time, busy machine", *virtual)
    figures += more
    for name, run in (("again", again), ("busy machine", busy)):
        figures += [
            Figure(f"virtual time, {name}, against the first: {load['title']}", _apart(first, run, load["load"]))
            for load in first.manifest["loads"]
        ]
    # In real time a translated machine is slow: its own pilot finds the dilation.
    for name, words in (("this machine", slowed), ("virtual machine in real time", (*load, "--engine", "vm"))):
        figures += _run(name, *words)[1]
    return figures


def _patterns() -> list[Figure]:
    settings = ("--set", "lab.dilation=400", "--set", f"workloads=[{_PATTERNS}]", *_VIRTUAL)
    found = _at_once({name: (name, *settings) for name in _TOPOLOGIES})
    return [figure for _, figures in found for figure in figures]


def _shift() -> list[Figure]:
    settings = ("torus4x4", "--set", "lab.dilation=200", "--set", f"workloads=[{_FLOWS}]", *_VIRTUAL)
    found = _at_once({f"{2**shift} ns an instruction": (*settings, "--shift", str(shift)) for shift in _SHIFTS})
    return [figure for _, figures in found for figure in figures]


def _engines(settings: Sequence[str]) -> list[Figure]:
    """A scenario on what can carry frames in the machine, one after the other: loads, verdicts, seconds, medians."""
    found: dict[str, list[str]] = {}
    for inside, name in _INSIDE.items():
        progress(name)
        told = testbed("run", "torus4x4", *_VIRTUAL, "--set", f"vm.engine={inside}", *settings)
        run = load_run(ROOT / told["results"])
        machine = run.manifest["vm"]
        rows = {
            "whole run": f"{name}: {run.manifest['verdict']} at dilation {run.dilation:g}",
            **{load["title"]: f"{load['verdict']}, {load['seconds']:.1f} s" for load in run.manifest["loads"]},
            "by the machine's clock": f"{machine['guest_seconds']:.0f} s",
            "processor time of this machine": f"{machine['processor_seconds']:.0f} s",
            **median_figures(run.samples),
        }
        for what, text in rows.items():
            found.setdefault(what, []).append(text)
    return [Figure(what, "; ".join(texts)) for what, texts in found.items()]


def _at_once(runs: Mapping[str, Sequence[str]]) -> list[tuple[Run, list[Figure]]]:
    """Runs in virtual time, one a processor at once, since none of them notices the others."""
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        return list(pool.map(lambda name: _run(name, *runs[name]), runs))


def _apart(one: Run, other: Run, load: str) -> str:
    """How far the flows of two runs are from each other."""
    ratios, others = flow_ratios(one, load), flow_ratios(other, load)
    if not ratios or ratios.keys() != others.keys():
        return "one of the two did not measure every flow"
    differences = [abs(others[pair] / ratio - 1) for pair, ratio in ratios.items()]
    mean = sum(others.values()) / sum(ratios.values()) - 1
    return f"no flow farther apart than {100 * max(differences):.3f} %, their mean {100 * mean:+.3f} % (0.5 % wanted)"


@contextmanager
def _busy_machine() -> Iterator[None]:
    """A process on each processor that does nothing but use it."""
    command = [sys.executable, "-c", "while True: pass"]
    processes = [subprocess.Popen(command) for _ in range(os.cpu_count() or 1)]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


def _run(name: str, *words: str) -> tuple[Run, list[Figure]]:
    """Run a scenario; what its loads and the run as a whole say."""
    progress(name)
    begun = time.monotonic()
    told = testbed("run", *words)
    seconds = time.monotonic() - begun
    run = load_run(ROOT / told["results"])
    verdict = "; ".join([run.manifest["verdict"], *run.manifest["reasons"]])
    whole = f"{seconds:.0f} s at dilation {run.dilation:g}, {verdict}"
    machine = run.manifest.get("vm")
    if machine:
        whole += (
            f"; {machine['guest_seconds']:.0f} s by the guest's clock, {machine['boot_seconds']:.1f} of them to boot"
        )
    figures = [
        Figure(f"{name}: {load['title']} ({load['verdict']})", ratio_text(run, load["load"]))
        for load in run.manifest["loads"]
    ]
    return run, [*figures, Figure(f"{name}: whole run", whole)]
