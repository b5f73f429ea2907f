"""NASA's own NPB by NPB_DIR, with a stand-in for its folder: it is built in a copy and run as it would be."""

from __future__ import annotations

import os
import shutil

import pytest

from testbed.base.errors import CapabilityError, InputError
from testbed.engines.lab.hosts import build_mpi_jobs
from testbed.engines.lab.hosts.build_mpi_jobs import npb_job
from testbed.scenario.workloads import npb
from testbed.scenario.workloads.mpi_output import JobOutputError
from testbed.scenario.workloads.mpi_placement import Ranks
from testbed.scenario.workloads.spec import Npb
from tests.mpi.programs import ROOT, mpirun, needs_compiler

STAND_IN = ROOT / "tests" / "data" / "npb_official"
needs_fortran = pytest.mark.skipif(shutil.which("gfortran") is None, reason="gfortran is not installed")


@pytest.fixture
def sources(tmp_path, monkeypatch):
    """A copy of the stand-in that nobody may write to, named by the environment."""
    folder = tmp_path / "NPB3.4-MPI"
    shutil.copytree(STAND_IN, folder)
    monkeypatch.setenv("NPB_DIR", str(folder))
    return folder


def files(folder):
    return sorted((path, path.stat().st_mtime_ns) for path in folder.rglob("*"))


@needs_compiler
def test_it_is_built_in_a_copy_and_its_output_is_read(sources):
    before = files(sources)
    job = npb_job(Npb("IS", "S"))
    build_mpi_jobs.build_job(job)
    assert files(sources) == before
    done = mpirun(4, job.binary)
    parsed = npb.parse(done.stdout, Ranks((0, 1, 2, 3)))
    assert [sample.value for sample in parsed.samples] == [0.25, 2.62e6]
    assert {sample.labels["code"] for sample in parsed.samples} == {"NPB 3.4.99"}


@needs_compiler
def test_a_wrong_result_is_seen_although_the_program_ends_well(sources):
    job = npb_job(Npb("IS", "W"))
    build_mpi_jobs.build_job(job)
    done = mpirun(2, job.binary)
    assert done.returncode == 0
    with pytest.raises(JobOutputError, match="UNSUCCESSFUL"):
        npb.parse(done.stdout, Ranks((0, 1)))


@needs_compiler
def test_a_changed_source_is_built_again(sources):
    job = npb_job(Npb("IS"))
    build_mpi_jobs.build_job(job)
    source = sources / "IS" / "is.c"
    source.write_text(source.read_text().replace("2.62", "7.77"))
    # What the folder's owner has built knows another MPI library.
    (sources / "IS" / "is.o").write_text("not for here")
    build_mpi_jobs.build_job(job)
    assert "7.77" in mpirun(1, job.binary).stdout


@needs_compiler
@needs_fortran
@pytest.mark.parametrize(("class_", "verified"), [("S", True), ("W", False)])
@pytest.mark.usefixtures("sources")
def test_fortran_finds_its_names_for_mpi(class_, verified):
    job = npb_job(Npb("FT", class_))
    build_mpi_jobs.build_job(job)
    done = mpirun(3, job.binary)
    assert done.returncode == 0, done.stderr
    assert npb.failure(done.stdout) == ("" if verified else "its result is wrong: Verification = UNSUCCESSFUL")
    if verified:
        assert npb.parse(done.stdout, Ranks((0, 1, 2))).samples[1].value == 17.5e6


@needs_compiler
def test_a_source_that_does_not_compile_says_why(sources):
    (sources / "IS" / "is.c").write_text("#error oops\n")
    with pytest.raises(CapabilityError, match=r"the MPI job npb-is does not build: is.c:1:2: error: #error oops"):
        build_mpi_jobs.build_job(npb_job(Npb("IS")))


def test_without_gfortran_it_says_so(sources, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(CapabilityError) as caught:
        npb_job(Npb("FT"))
    assert str(caught.value) == (
        f"gfortran is not installed, so the official FT in {sources} cannot be compiled; run `apt-get install "
        "gfortran`, or unset NPB_DIR to run the kernels of mpi_jobs/npb"
    )
    assert npb_job(Npb("IS")).binary.endswith("bin/is.S.x")  # which is in C


def refusal():
    with pytest.raises(InputError) as caught:
        npb_job(Npb("MG"))
    return str(caught.value)


def test_a_folder_that_is_no_npb_says_what_is_missing(tmp_path, monkeypatch):
    monkeypatch.setenv("NPB_DIR", str(tmp_path))
    wanted = (
        "it should be the folder NPB3.4-MPI of NASA's unpacked NPB, or be left out to run the kernels of mpi_jobs/npb"
    )
    assert refusal() == f"NPB_DIR: {tmp_path} has no Makefile and no sys and no config and no MG; {wanted}"
    (tmp_path / "NPB3.4-MPI").mkdir()
    assert refusal().endswith(f'{wanted}. Did you mean "{tmp_path}/NPB3.4-MPI"?')
    monkeypatch.setenv("NPB_DIR", str(STAND_IN))
    assert refusal() == f"NPB_DIR: {STAND_IN} has no MG; {wanted}"
    monkeypatch.setenv("NPB_DIR", "/nonexistent")
    assert refusal().startswith("NPB_DIR: /nonexistent has no Makefile")


def test_a_path_that_make_cannot_take_is_refused(tmp_path, monkeypatch):
    shutil.copytree(STAND_IN, tmp_path / "my npb")
    (tmp_path / "my npb" / "MG").mkdir()
    monkeypatch.setenv("NPB_DIR", str(tmp_path / "my npb"))
    assert "make cannot take it" in refusal()


def test_without_the_variable_it_is_the_kernels_of_this_project(monkeypatch):
    for value in ("", None):
        if value is None:
            monkeypatch.delenv("NPB_DIR", raising=False)
        else:
            monkeypatch.setenv("NPB_DIR", value)
        job = npb_job(Npb("FT"))
        assert (job.binary, job.make) == (f"{build_mpi_jobs.FOLDER}/npb/build/ft", ("build/ft",))
    assert os.environ.get("NPB_DIR") is None
