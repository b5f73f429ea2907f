"""Power saved by switching links off, by NPB kernel, beside the paper's Fig. 12 and 13."""

from __future__ import annotations

import os
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from benchmarks.table import Figure, progress
from testbed.engines.lab.hosts.build_mpi_jobs import (
    build_job,
    build_tracer,
    mpi_libraries,
    mpi_program,
    npb_job,
    shim_path,
    tracer_path,
)
from testbed.experiments.regulate.choose_links import choose_links
from testbed.experiments.regulate.power import power_of
from testbed.experiments.regulate.traffic import Traffic
from testbed.fabric.power import POWER_MODELS
from testbed.planning import Plan, make_plan
from testbed.scenario import parse_scenario
from testbed.scenario.workloads import mpi_trace
from testbed.scenario.workloads.spec import Kernel, Npb, ProblemClass

# The smallest class of each kernel that so many ranks can share. FT takes class B for 128 ranks and LU class A, too
# much for 128 processes on the processors of one machine.
_KERNELS: dict[int, tuple[tuple[Kernel, ProblemClass], ...]] = {
    64: (("IS", "S"), ("CG", "S"), ("MG", "S"), ("FT", "S"), ("LU", "W")),
    128: (("IS", "S"), ("CG", "S"), ("MG", "S")),
}
_LIMIT = 900.0


@dataclass(frozen=True)
class _Fabric:
    """A fabric of the paper and what the paper says of it."""

    name: str
    topology: str
    model: str
    paper: str
    ranks: int = 64


_TORUS = "{{kind: torus, sizes: [4, 2], hosts_per_switch: {hosts}, parallel_links: 5}}"
_COMPLETE = "{{kind: complete, switches: 6, hosts_per_switch: 11, parallel_links: {links}}}"
# 23 ports of a switch are 8 for hosts and 15 for three neighbours (section 5.4.2). By Table 2 six switches cannot save
# 20 % on fewer than four links a pair; Fig. 11b has two.
_FABRICS = (
    _Fabric("torus 4×2 of 5 links, 8 hosts a switch", _TORUS.format(hosts=8), "PC5324", "up to 25 %, Fig. 13"),
    _Fabric("torus 4×2 of 5 links, 16 hosts a switch", _TORUS.format(hosts=16), "PC6248", "up to 19 %, Fig. 12", 128),
    _Fabric("6 switches, all linked by 4, 11 hosts each", _COMPLETE.format(links=4), "PC6248", "up to 20 %, Fig. 12"),
    _Fabric("6 switches, all linked by 2, 11 hosts each", _COMPLETE.format(links=2), "PC6248", "up to 20 %, Fig. 12"),
    _Fabric(
        "torus 4×4 of 3 links, 4 hosts a switch",
        "{kind: torus, sizes: [4, 4], hosts_per_switch: 4, parallel_links: 3}", "PC5324", "no such fabric",
    ),
)  # fmt: skip


def power() -> list[Figure]:
    """Trace each kernel as plain processes, and select links of the paper's fabrics by what they send."""
    build_tracer()
    sent = {
        ranks: {f"{kernel} {letter}": _trace(kernel, letter, ranks) for kernel, letter in kernels}
        for ranks, kernels in _KERNELS.items()
    }
    figures = []
    for fabric in _FABRICS:
        for aggregate, how in (("false", "channels of their own"), ("true", "aggregated")):
            text = f"topology: {fabric.topology}\nlinks: {{aggregate: {aggregate}}}\n"
            plan = make_plan(parse_scenario(text, "fabric.yaml"))
            saved = [f"{name} {_saved(plan, fabric, name, trace)}" for name, trace in sent[fabric.ranks].items()]
            text = f"{', '.join(saved)}; the paper: {fabric.paper}"
            figures.append(Figure(f"{fabric.name}, {how}, {fabric.model}", text))
    return figures


def _saved(plan: Plan, fabric: _Fabric, name: str, trace: mpi_trace.Trace) -> str:
    hosts = plan.topology.host_count
    matrix = trace.between_hosts(range(fabric.ranks), hosts).astype(float)
    choice = choose_links(plan, Traffic(name, matrix, "bytes that MPI sent"))
    share = 100 * power_of(plan, choice, POWER_MODELS[fabric.model]).saving
    return f"{share:.1f} % ({len(choice.off_links)} of {plan.wiring.link_count} off)"


def _trace(kernel: Kernel, letter: ProblemClass, ranks: int) -> mpi_trace.Trace:
    progress(f"{kernel} class {letter}, {ranks} ranks")
    job = npb_job(Npb(kernel, letter))
    build_job(job)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "trace.json"
        environment = {
            **os.environ, "TESTBED_TRACE": str(file), "LD_LIBRARY_PATH": str(mpi_libraries()),
            "MPIR_CVAR_CH4_NETMOD": "ofi", "FI_PROVIDER": "tcp", "FI_TCP_IFACE": "lo", "MPIR_CVAR_NOLOCAL": "1",
        }  # fmt: skip
        preload = f"LD_PRELOAD={shim_path()}:{tracer_path()}"
        subprocess.run(
            [str(mpi_program("mpiexec")), "-n", str(ranks), "env", preload, job.binary, letter],
            check=True, stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL, env=environment, timeout=_LIMIT,
        )  # fmt: skip
        return mpi_trace.parse(file.read_text(), ranks)
