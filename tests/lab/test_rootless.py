"""Labs of a user who is not root: they work, leave nothing, and are nobody else's.

Figures are not judged: a busy machine makes them worse.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator

import pytest

from tests.lab.ordinary_user import OrdinaryUser, ordinary_user

from .conftest import sharing

pytestmark = sharing("rootless")

SMALL = """
topology: {kind: ring, switches: 3}
lab: {dilation: 200}
workloads: [{kind: ping, pattern: neighbour, count: 300}]
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
JUDGED = (0, 1, 3)
REALTIME = ("--engine", "realtime")
_GONE = 20.0  # s
_OF_RECORDS = ("/testbed", "/.lock")


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


def nothing_is_left(user: OrdinaryUser) -> None:
    """No process, so that no namespace and no mount is, either; and no file but those of results."""
    wait_for(lambda: user.processes() == {}, _GONE)
    assert [file for file in user.files() if not file.endswith(_OF_RECORDS)] == []


def init_of(user: OrdinaryUser) -> int:
    """Process 1 of the user's lab, as the machine counts."""
    found = [pid for pid, words in user.processes().items() if ".agent " in words and "unshare " not in words]
    assert len(found) == 1, user.processes()
    return found[0]


# These find no lab but their own: the one that the tests behind them share is built later.


def test_pauses_of_an_mpi_job_close_a_deadlock(user):
    done = user.testbed("run", "deadlock.yaml", "--json")
    assert done.returncode in JUDGED, done.stderr
    assert "the declared deadlock formed: " in done.stdout
    nothing_is_left(user)


def test_on_open_vswitch_a_link_fails_and_frames_are_captured(user):
    done = user.testbed("up", "small.yaml", "--name", "bridges")
    assert done.returncode == 0, done.stderr
    try:
        assert user.testbed("link", "bridges", "s1-s2", "--down").stdout.startswith("s1-s2: down")
        script = "p=$1; $p -m testbed capture bridges h1 --count 1 --file - | wc -c & for i in $(seq 200); do "
        script += "$p -m testbed exec bridges h1 -- ping -c 1 -W 1 10.0.0.3; kill -0 $! || break; done >&2"
        done = user.run("sh", "-c", script, "sh", sys.executable)
        assert int(done.stdout) > 100, done.stderr
    finally:
        done = user.testbed("down", "bridges")
    assert done.returncode == 0, done.stderr
    nothing_is_left(user)


def test_with_write_a_host_may_what_its_user_may(user):
    done = user.testbed("up", "small.yaml", "--name", "open", "--set", "lab.host_access=write")
    assert done.returncode == 0, done.stderr
    script = f"id -u; touch {user.home}/made; touch /etc/made"
    try:
        done = user.testbed("exec", "open", "h1", "--", "sh", "-c", script)
        assert done.stdout == "0\n"
        assert "touch: cannot touch '/etc/made': Permission denied" in done.stderr
        assert (user.home / "made").stat().st_uid == user.uid
    finally:
        user.testbed("down", "open")


def test_nothing_is_left_of_a_killed_run(user):
    run = [sys.executable, "-m", "testbed", "run", "small.yaml"]
    with subprocess.Popen(user.command(*run), env=user.environment, stderr=subprocess.DEVNULL) as started:
        wait_for(lambda: any("ping" in words.split() for words in user.processes().values()))
        os.kill(started.pid, signal.SIGKILL)  # what started it has become the program itself
    nothing_is_left(user)


def test_nothing_is_left_of_a_killed_lab(user):
    assert user.testbed("up", "small.yaml").returncode == 0
    os.kill(init_of(user), signal.SIGKILL)
    wait_for(lambda: user.processes() == {}, _GONE)
    assert user.testbed("status").stdout == "no lab is running\n"
    nothing_is_left(user)


def test_a_closed_device_of_taps_is_named(user):
    done = user.testbed("up", "small.yaml", *REALTIME, tun="0600")
    assert done.returncode == 2
    assert "taps: /dev/net/tun is closed to you" in done.stderr
    assert "sudo chmod 0666 /dev/net/tun, as udev has it" in done.stderr
    assert user.processes() == {}


def test_shares_of_the_processors_need_a_group(user):
    done = user.testbed("up", "small.yaml", "--set", "lab.cpu_share=0.1")
    assert done.returncode == 2
    assert "processor shares: " in done.stderr
    assert "without root in a group that is given to you, as systemd-run makes one" in done.stderr


def test_a_folder_of_results_that_is_closed_is_told(user):
    done = user.testbed("run", "small.yaml", "--results", "/usr/results")
    assert done.returncode == 2
    assert "/usr/results" in done.stderr
    assert "Permission denied" in done.stderr
    assert "building the lab" not in done.stderr


def test_records_that_others_can_write_are_not_believed(user):
    places = user.base / "open"
    places.mkdir(mode=0o777)
    places.chmod(0o777)
    done = user.testbed("status", XDG_RUNTIME_DIR=str(places))  # root's, so that another place is taken
    assert done.stdout == "no lab is running\n"
    own = user.base / "own"
    for folder, mode in ((own, 0o700), (own / "testbed", 0o777)):
        folder.mkdir()
        os.chown(folder, user.uid, user.uid)
        folder.chmod(mode)
    done = user.testbed("status", XDG_RUNTIME_DIR=str(own))
    shutil.rmtree(own)
    assert done.returncode == 2
    assert "is not a folder that only you can write to" in done.stderr
    assert "set XDG_RUNTIME_DIR to a folder of your own" in done.stderr


@pytest.fixture(scope="module")
def lab(user: OrdinaryUser) -> Iterator[str]:
    """Of modelled switches; `up` has walked its tables and pinged all pairs."""
    done = user.testbed("up", "small.yaml", *REALTIME, "--name", "model", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["lab"] == "model"
    assert done.stderr.count("a lab without root: ") == 1
    yield "model"
    done = user.testbed("down", "model")
    assert done.returncode == 0, done.stderr
    nothing_is_left(user)


def test_a_ping_and_a_file_reach_a_host(user, lab):
    done = user.run(
        "sh", "-c", f"{sys.executable} -m testbed exec {lab} h1 -- sh -c 'cat; ping -c 1 10.0.0.3' <small.yaml"
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(SMALL)
    assert "1 received" in done.stdout


@pytest.mark.parametrize("protocol", ["udp", "tcp"])
def test_iperf3_is_measured(protocol, user, lab):
    words = ("iperf3", f"protocol={protocol}", "seconds=1", "pattern=neighbour", "repeats=1")
    done = user.testbed("load", lab, *words, "--json")
    assert done.returncode in JUDGED, done.stderr
    assert [sample for sample in json.loads(done.stdout)["samples"] if sample["metric"] == "goodput"], done.stderr


def test_an_mpi_job_crosses_the_fabric(user, lab):
    done = user.testbed("load", lab, "mpi", "job=fabric_bench", "args=[--tests,barrier,--repeats,'1']", "--json")
    assert done.returncode in JUDGED, done.stderr
    assert [sample for sample in json.loads(done.stdout)["samples"] if sample["labels"].get("job")], done.stderr


def test_a_host_changes_no_file_of_its_user(user, lab):
    script = f"echo x >>{user.home}/small.yaml; ls /proc | grep -c {init_of(user)}; cat {user.home}/small.yaml"
    done = user.testbed("exec", lab, "h1", "--", "sh", "-c", script)
    assert "Read-only file system" in done.stderr
    assert done.stdout == "0\n" + SMALL


def test_the_machine_s_network_is_out_of_reach(user, lab):
    """Process 1 is root over the lab alone."""
    entering = ["nsenter", "--target", str(init_of(user)), "--user", "--preserve-credentials"]
    for told in (
        ["ip", "link", "add", "testbed0", "type", "dummy"],
        ["renice", "-n", "-5", "1"],
        ["cat", "/etc/shadow"],
    ):
        done = user.run(*entering, *told)
        assert done.returncode != 0
        assert re.search("not permitted|denied", done.stderr), done.stderr


def test_two_users_have_labs_of_one_name(user, lab):
    init = init_of(user)
    with ordinary_user(1) as other:
        other.write("small.yaml", SMALL)
        assert other.testbed("status").stdout == "no lab is running\n"
        done = other.testbed("up", "small.yaml", "--name", lab)
        assert done.returncode == 0, done.stderr
        try:
            assert f"process {init}," not in other.testbed("status").stdout
            assert f"process {init}," in user.testbed("status").stdout
            done = other.run("nsenter", "--target", str(init), "--user", "--preserve-credentials", "true")
            assert "Permission denied" in done.stderr
            done = other.run("ls", f"/proc/{init}/root/run/lab")
            assert "Permission denied" in done.stderr
        finally:
            done = other.testbed("down", "--all")
        assert done.stdout.startswith(f"{lab} ended"), done.stderr
        nothing_is_left(other)
    assert f"process {init}," in user.testbed("status").stdout
