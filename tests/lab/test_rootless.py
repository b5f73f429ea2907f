"""Labs of a user who is not root: they work, leave nothing, and are nobody else's."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator

import pytest

from tests.lab.ordinary_user import OrdinaryUser, ordinary_user

from .conftest import sharing

pytestmark = sharing("rootless")

SMALL = """
topology: {kind: ring, switches: 3}
lab: {dilation: 200}
workloads: [{kind: iperf3, protocol: udp, pattern: neighbour, seconds: 2}]
"""
DEADLOCK = """
topology: {kind: ring, switches: 5, hosts_per_switch: 2}
routing: {kind: dor, ring: shortest}
expect: deadlock
simulator: {flow_control: pause, buffer: 20000}
lab: {dilation: 40}
engine: realtime
workloads: [{kind: mpi, job: collectives}]
"""
_GONE = 20.0  # s


@pytest.fixture(scope="module")
def user() -> Iterator[OrdinaryUser]:
    with ordinary_user() as made:
        made.write("small.yaml", SMALL)
        made.write("deadlock.yaml", DEADLOCK)
        yield made
        assert made.processes() == {}


def wait_for(found: Callable[[], object], seconds: float = 100.0) -> None:
    until = time.monotonic() + seconds
    while not found():
        assert time.monotonic() < until
        time.sleep(0.05)


def ended(user: OrdinaryUser) -> bool:
    return user.processes() == {}


@pytest.fixture(scope="module")
def lab(user: OrdinaryUser) -> Iterator[str]:
    """Of modelled switches; `up` has walked its tables and pinged all pairs."""
    done = user.testbed("up", "small.yaml", "--engine", "realtime", "--name", "model", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["lab"] == "model"
    yield "model"
    done = user.testbed("down", "model")
    assert done.returncode == 0, done.stderr
    wait_for(lambda: ended(user), _GONE)
    assert [file for file in user.files() if not file.endswith(("/testbed", "/.lock"))] == []


def test_all_paths_were_checked_and_a_ping_of_a_host_is_answered(user, lab):
    done = user.testbed("exec", lab, "h1", "--", "ping", "-c", "1", "h3")
    assert done.returncode == 0, done.stderr
    assert "1 received" in done.stdout


@pytest.mark.parametrize("protocol", ["udp", "tcp"])
def test_iperf3_is_measured(protocol, user, lab):
    words = ("iperf3", f"protocol={protocol}", "seconds=1", "pattern=neighbour", "repeats=1")
    done = user.testbed("load", lab, *words, "--json")
    assert done.returncode in (0, 1, 3), done.stderr  # a busy machine makes figures worse
    assert [sample for sample in json.loads(done.stdout)["samples"] if sample["metric"] == "goodput"], done.stderr


def test_an_mpi_job_crosses_the_fabric(user, lab):
    args = "args=[--tests,barrier,--repeats,'1']"
    done = user.testbed("load", lab, "mpi", "job=fabric_bench", args, "--json")
    assert done.returncode in (0, 1, 3), done.stderr
    assert [sample for sample in json.loads(done.stdout)["samples"] if sample["labels"].get("job")], done.stderr
