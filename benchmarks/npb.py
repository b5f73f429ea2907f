"""NPB: time of one rank, class W, and bytes on the wire of 16 ranks, class S, beside NASA's own program."""

from __future__ import annotations

import os
import statistics
import subprocess

from benchmarks.command import testbed
from benchmarks.table import Figure, median_text, progress
from testbed.engines.lab.hosts.build_mpi_jobs import build_job, mpi_program, npb_job
from testbed.scenario.workloads.mpi_placement import Ranks
from testbed.scenario.workloads.npb import VARIABLE, parse
from testbed.scenario.workloads.spec import Kernel, Npb

_SCENARIO = "npb-torus4x4"
_KERNELS: tuple[Kernel, ...] = ("IS", "EP", "CG", "MG", "FT", "LU", "SP", "BT")
# Sent by 16 ranks of NPB 3.4 over TCP, class S, MB; headers and start included, of which EP has hardly anything else.
_REFERENCE = {"IS": 4.7, "EP": 0.3, "CG": 59, "MG": 6, "FT": 32, "LU": 14, "SP": 53, "BT": 58}
# Of a frame: what mpi_bytes_crossed leaves out.
_HEADERS = 54


def npb(runs: int) -> list[Figure]:
    """Measure both; with NPB_DIR in the environment also the official program's times, and the ratio."""
    return [*_times(runs), *_bytes()]


def _times(runs: int) -> list[Figure]:
    official = os.environ.get(VARIABLE, "")
    figures = []
    for kernel in _KERNELS:
        progress(f"{kernel} class W, one rank, {runs} times")
        own = [_seconds(kernel, "") for _ in range(runs)]
        text = median_text(own, "s")
        if official:
            theirs = [_seconds(kernel, official) for _ in range(runs)]
            ratio = statistics.median(own) / statistics.median(theirs)
            text += f"; official {median_text(theirs, 's')}; ratio {ratio:.2f}"
        figures.append(Figure(f"{kernel} class W, one rank", text))
    return figures


def _seconds(kernel: Kernel, official: str) -> float:
    os.environ[VARIABLE] = official
    job = npb_job(Npb(kernel, "W"))
    build_job(job)
    done = subprocess.run(
        [str(mpi_program("mpiexec")), "-n", "1", job.binary, *([] if official else ["W"])],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    parsed = parse(done.stdout, Ranks((0,)))
    return next(sample.value for sample in parsed.samples if sample.metric == "npb_lab_time")


def _bytes() -> list[Figure]:
    os.environ.pop(VARIABLE, None)
    told = testbed("run", _SCENARIO)
    of_kernel: dict[str, dict[str, float]] = {}
    for sample in told["samples"]:
        if sample["metric"] in ("mpi_bytes_crossed", "mpi_frames_crossed"):
            of_kernel.setdefault(sample["labels"]["kernel"], {})[sample["metric"]] = sample["value"]
    figures = []
    for kernel, reference in _REFERENCE.items():
        if kernel not in of_kernel:
            figures.append(Figure(f"{kernel} class S, bytes of 16 ranks", "failed"))
            continue
        found = of_kernel[kernel]
        sent = (found["mpi_bytes_crossed"] + _HEADERS * found["mpi_frames_crossed"]) / 1e6
        text = f"{sent:.3g} MB on the wire; NPB 3.4 {reference:g} MB; {100 * (sent / reference - 1):+.0f} %"
        figures.append(Figure(f"{kernel} class S, bytes of 16 ranks", text))
    return figures
