"""The tracer's file as a traffic matrix."""

import json
from typing import Any

import numpy as np
import pytest

from testbed.scenario.workloads import mpi_trace
from testbed.scenario.workloads.mpi_output import JobOutputError

RAW: dict[str, Any] = {
    "form": "testbed-mpi-trace",
    "version": 1,
    "ranks": 3,
    "seconds": [2.0, 2.0, 4.0],
    "seconds_in_mpi": [1.5, 0.5, 1.0],
    "messages": {"bytes": [[0, 10, 20], [1, 0, 2], [0, 0, 0]], "count": [[0, 1, 1], [1, 0, 1], [0, 0, 0]]},
    "collectives": {"bytes": [[0, 100, 100], [0, 0, 0], [0, 0, 0]], "count": [[0, 1, 1], [0, 0, 0], [0, 0, 0]]},
    "not_counted": ["MPI_Put", "MPI_Get"],
}


def parse(**changed):
    return mpi_trace.parse(json.dumps({**RAW, **changed}), 3)


def test_what_the_file_says():
    trace = parse()
    assert trace.message_bytes.tolist() == RAW["messages"]["bytes"]
    assert trace.message_count.sum() == 4
    assert trace.collective_bytes.sum() == 200
    assert trace.collective_count.sum() == 2
    assert trace.not_counted == ("MPI_Get", "MPI_Put")
    assert trace.computing == pytest.approx(0.75)


def test_ranks_become_hosts():
    assert parse().between_hosts((2, 0, 2), 4).tolist() == [[0, 0, 3, 0], [0, 0, 0, 0], [110, 0, 120, 0], [0, 0, 0, 0]]
    one_each = parse().between_hosts((0, 1, 2), 3)
    assert np.array_equal(one_each, parse().message_bytes + parse().collective_bytes)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "The job has left no trace; it ended without MPI_Finalize, or it is not an MPI program."),
        ("{", "The trace is damaged"),
        ("[]", "The trace is damaged"),
        (json.dumps({**RAW, "version": 2}), "The trace is of the form testbed-mpi-trace 2, not testbed-mpi-trace 1."),
        (json.dumps({**RAW, "ranks": 4}), "The trace is of 4 ranks, and the job had 3."),
        (json.dumps({**RAW, "seconds": [1.0]}), "The trace is damaged"),
        (json.dumps({**RAW, "messages": {"bytes": [[0]], "count": [[0]]}}), "The trace is damaged"),
        (json.dumps({**RAW, "messages": {"bytes": [[2**70] * 3] * 3, "count": [[0] * 3] * 3}}), "The trace is damaged"),
        (json.dumps({key: value for key, value in RAW.items() if key != "collectives"}), "The trace is damaged"),
    ],
)
def test_a_trace_that_is_none_is_refused(text, sentence):
    with pytest.raises(JobOutputError) as caught:
        mpi_trace.parse(text, 3)
    assert str(caught.value).startswith(sentence)
