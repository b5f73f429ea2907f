"""The programs of the NAS Parallel Benchmarks: those of mpi_jobs/npb, or NASA's own from the folder NPB_DIR names."""

from __future__ import annotations

from testbed.emulate.jobs import FOLDER
from testbed.workloads import mpi_npb, npb
from testbed.workloads.mpi import MpiJob
from testbed.workloads.spec import Npb


def npb_job(spec: Npb) -> MpiJob:
    """Return the job of a kernel."""
    folder, kernel = FOLDER / "npb", spec.kernel.lower()
    return MpiJob(
        f"npb-{kernel}", str(folder / "build" / kernel), mpi_npb.SUCCESS, time_limit=npb.TIME_LIMIT, output="npb",
        folder=str(folder), target=f"build/{kernel}",
    )  # fmt: skip
