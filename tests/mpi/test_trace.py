"""What the tracer of mpi_jobs/trace records of programs whose traffic is known."""

from __future__ import annotations

import json
import subprocess

import numpy as np
import pytest

from testbed.scenario.workloads import mpi_trace
from tests.mpi.programs import BIN, ROOT, make, mpirun, needs_compiler

pytestmark = needs_compiler
JOBS = ROOT / "mpi_jobs"
TRACER = JOBS / "trace" / "build" / "trace.so"


@pytest.fixture(scope="module", autouse=True)
def built():
    make(JOBS / "trace")


@pytest.fixture(scope="module")
def known(tmp_path_factory):
    program = tmp_path_factory.mktemp("known") / "known"
    source = ROOT / "tests" / "data" / "mpi_trace" / "known.c"
    subprocess.run([BIN / "mpicc", "-Wall", "-Werror", "-o", program, source], check=True)
    return str(program)


@pytest.fixture
def traced(tmp_path):
    """Run a program with the tracer; gives its output and the trace."""

    def run(ranks, *command):
        file = tmp_path / "trace.json"
        done = mpirun(ranks, "env", f"LD_PRELOAD={TRACER}", *command, TESTBED_TRACE=str(file))
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout, mpi_trace.parse(file.read_text(), ranks)

    return run


def test_single_messages_are_counted_in_the_world(traced, known):
    _, trace = traced(4, known)
    assert trace.message_bytes.tolist() == [[0, 12, 35, 0], [0, 0, 0, 35], [35, 0, 0, 0], [50, 35, 0, 0]]
    assert trace.message_count.tolist() == [[0, 1, 5, 0], [0, 0, 0, 5], [5, 0, 0, 0], [1, 5, 0, 0]]
    assert not trace.collective_bytes.any()
    assert trace.not_counted == ()
    assert all(0 < inside <= whole for inside, whole in zip(trace.seconds_in_mpi, trace.seconds, strict=True))


def test_collective_operations_are_counted_by_their_meaning(traced, known):
    _, trace = traced(4, known, "collectives")
    assert not trace.message_bytes.any()
    alltoallv = np.array([[10 * (to + 1) * (to != source) for to in range(4)] for source in range(4)])
    bcast, reduce, gathered, allreduce = (np.zeros((4, 4), dtype=int) for _ in range(4))
    bcast[1, [0, 2, 3]] = 1000
    reduce[[0, 1, 3], 2] = 8
    for one, other in ((0, 2), (1, 3)):  # halves of the world
        gathered[one, other] = gathered[other, one] = 100
        allreduce[one, other] = allreduce[other, one] = 8
    assert trace.collective_bytes.tolist() == (alltoallv + bcast + reduce + gathered + allreduce).tolist()


def test_what_is_not_counted_is_named(traced, known):
    _, trace = traced(4, known, "uncounted")
    assert trace.not_counted == ("MPI_Ibcast",)


@pytest.mark.slow
def test_the_pattern_job_sends_what_it_says(traced):
    make(JOBS / "pattern")
    arguments = ("--pairs", "0-1,1-2,2-0", "--bytes", "5000", "--seconds", "3", "--omit", "0")
    output, trace = traced(3, str(JOBS / "pattern" / "build" / "pattern"), *arguments)
    said = {(line["from"], line["to"]): line for line in map(json.loads, output.splitlines()) if line["test"] != "end"}
    assert set(said) == {(0, 1), (1, 2), (2, 0)}
    for (source, destination), line in said.items():
        whole = trace.message_bytes[source, destination]
        assert whole >= line["messages"] * 5000  # what arrived in the counted seconds
        assert whole % 5000 == 0
    assert trace.message_bytes.sum() == sum(trace.message_bytes[pair] for pair in said)


def test_an_all_to_all_of_known_size(traced):
    make(JOBS / "collectives")
    arguments = ("--tests", "Alltoall", "--sizes", "3000", "--repeats", "4", "--warmup", "1")
    _, trace = traced(4, str(JOBS / "collectives" / "build" / "collectives"), *arguments)
    # Whatever small things the program tells itself beside.
    rest = trace.collective_bytes - 5 * 3000 * (1 - np.eye(4, dtype=int))
    assert rest.min() >= 0
    assert rest.max() < 3000


def test_a_program_in_python_is_traced_too(traced):
    script = (
        "from mpi4py import MPI; c = MPI.COMM_WORLD; c.Send(bytes(700), 1) if c.rank == 0 else c.Recv(bytearray(700))"
    )
    _, trace = traced(2, str(BIN / "python"), "-c", script)
    assert trace.message_bytes.tolist() == [[0, 700], [0, 0]]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("env", "sentence"),
    [
        ({}, "TESTBED_TRACE should name the file"),
        ({"TESTBED_TRACE": "/nonexistent/trace.json"}, "/nonexistent/trace.json: No such file or directory"),
        ({"TESTBED_TRACE": "/" + 5000 * "x"}, "The name of the file TESTBED_TRACE is too long"),
    ],
)
def test_a_trace_without_a_place_is_a_failure(known, env, sentence):
    done = mpirun(4, "env", f"LD_PRELOAD={TRACER}", known, **env)
    assert done.returncode == 3
    assert sentence in done.stderr
