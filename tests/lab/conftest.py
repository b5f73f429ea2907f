"""Labs on real Open vSwitch. Where that is impossible the tests are skipped, or fail with TESTBED_REQUIRE_LAB=1."""

from __future__ import annotations

import itertools
import json
import os
import sys
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from testbed.base.messages import SHARED, LoadRequest, Process
from testbed.base.model import host_ip, host_mac
from testbed.engines.lab.control.build import build_lab, build_order
from testbed.engines.lab.control.client import LabClient
from testbed.engines.local_machine.probe import capabilities
from testbed.experiments.run.loads.context import Context
from testbed.planning import Plan, make_plan
from testbed.scenario import find_scenario, load_scenario, parse_scenario

from .leftovers import MARK, Outside, leftovers

# It reads pages that the virtual machine has not, and is run by `make docs-run` alone.
collect_ignore = ["test_docs_minutes.py"] if os.environ.get("TESTBED_IN_VM") else []

# Quiet, then 45 % of the rate of a 1 Gbit/s link, then quiet again; 1,470 bytes take 1,538 on the wire.
PHASES = """#!/usr/bin/env python3
import os, socket, sys, time
door = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
rate = 0.45 * 1e9 / float(os.environ["TESTBED_DILATION"])
time.sleep(3)
start = time.monotonic()
for number in range(int(3 * rate / (1538 * 8))):
    time.sleep(max(0.0, start + number * 1538 * 8 / rate - time.monotonic()))
    door.sendto(bytes(1470), (sys.argv[1], 9))
time.sleep(4)
"""

_STANDING = 3  # labs that a process keeps for the next test


@pytest.fixture(autouse=True, scope="session")
def lab_is_possible() -> None:
    missing = [f"{c.name} ({c.detail})" for c in capabilities() if c.needed and not c.present]
    if missing:
        reason = f"no lab can be built here: {', '.join(missing)}"
        if os.environ.get("TESTBED_REQUIRE_LAB") == "1":
            pytest.fail(reason)
        pytest.skip(reason)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The kernel's module, which switches in the virtual machine have, never has a fast path under it."""
    if os.environ.get("TESTBED_IN_VM") == "1":
        items[:] = [item for item in items if not item.get_closest_marker("userspace")]


@pytest.fixture(autouse=True)
def as_the_test_says(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a test runs with and without the fast path, nothing else turns it off."""
    if "fast_path" in request.fixturenames:
        monkeypatch.delenv("TESTBED_NO_FAST_PATH", raising=False)


@cache
def plan_of(text: str) -> Plan:
    return make_plan(parse_scenario(text, "test.yaml"))


@cache
def named_plan(name: str, *settings: str) -> Plan:
    return make_plan(load_scenario(find_scenario(name), settings))


def nothing_left(mark: str, before: Outside) -> None:
    until = time.monotonic() + 20
    while left := leftovers(mark, before):
        assert time.monotonic() < until, left
        time.sleep(0.1)


@pytest.fixture
def untouched(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Within seconds after the test nothing may be left of all that it made; gives the mark of what it starts."""
    mark, before = uuid4().hex, Outside.now()
    monkeypatch.setenv(MARK, mark)
    yield mark
    nothing_left(mark, before)


def daemon_of(lab: LabClient, switch: int) -> str:
    """What `ovs-appctl -t` calls the daemon of a switch, in the lab's own folder."""
    number = next(n for n, share in enumerate(lab.facts.switch_daemons) if f"s{switch + 1}" in share)
    return f"/run/lab/ovs/ovs-vswitchd-{number + 1}.ctl" if number else "ovs-vswitchd"


def pid_file(lab: LabClient, switch: int) -> str:
    """Where the daemon of a switch has its process number, as the lab counts processes."""
    name = Path(daemon_of(lab, switch)).stem
    return f"/run/lab/ovs/{name}.pid"


def execute(lab: LabClient, *argv: str, host: str | None = None, limit: float = 30) -> str:
    """Run one command in a host, or beside the switches, and return what it printed."""
    output = lab.run_load(LoadRequest((Process("it", host, argv),), limit)).outputs["it"]
    assert output.code == 0, output
    return output.stdout


def answers(lab: LabClient, source: str, destination: int) -> bool:
    """Whether a host, by its number, answers one ping; `reach` asks with patience where the machine is busy."""
    ping = ("ping", "-n", "-c", "1", "-W", "2", host_ip(destination))
    output = lab.run_load(LoadRequest((Process("it", source, ping),), 20)).outputs["it"]
    assert output.code in (0, 1), output
    return output.code == 0


# Keeps what tcpdump says apart from what it sees. By a pipe, since AppArmor lets it write into no file of ours.
_CAPTURE = 'exec 3>&1; { tcpdump "$@" 2>&1 >&3 & echo $! >"$0.pid"; wait; } | cat >"$0"'
# Runs beside the switches: waits until all captures listen, does what it is told, and ends them when what came of it
# has passed, that is when no port has counted a frame for two seconds. tcpdump takes up to one to see a frame.
_MEANWHILE = """
import json, os, signal, sys, time
from pathlib import Path
from typing import Any
from uuid import uuid4

folder, names, program = Path(sys.argv[1]), json.loads(sys.argv[2]), sys.argv[3]
while not all((folder / name).exists() and "listening on" in (folder / name).read_text() for name in names):
    time.sleep(0.05)
try:
    exec(program)
    counted = ""
    for _ in range(5):
        before, counted = counted, Path("/proc/net/dev").read_text()
        if counted == before:
            break
        time.sleep(2)
finally:
    for name in names:
        os.kill(int((folder / f"{name}.pid").read_text()), signal.SIGTERM)
"""
_NUMBERS = itertools.count(1)


def captured(lab: LabClient, captures: Mapping[str, tuple[str | None, Sequence[str]]], program: str) -> dict[str, str]:
    """Let tcpdump capture while something happens.

    Args:
        lab: the lab.
        captures: name → host, None = beside the switches, and arguments of tcpdump.
        program: in Python, run beside the switches when all captures listen.

    Returns:
        name → what tcpdump printed; `meanwhile` → what the program did.
    """
    folder = lab.write(f"{SHARED}/captures-{next(_NUMBERS)}/names", json.dumps(list(captures))).parent
    processes = [
        Process(name, host, ("sh", "-c", _CAPTURE, str(folder / name), *arguments))
        for name, (host, arguments) in captures.items()
    ]
    argv = (sys.executable, "-c", _MEANWHILE, str(folder), json.dumps(list(captures)), program)
    processes.append(Process("meanwhile", None, argv))
    outputs = lab.run_load(LoadRequest(tuple(processes), 120)).outputs
    assert {name: output.code for name, output in outputs.items()} == dict.fromkeys(outputs, 0), outputs["meanwhile"]
    return {name: output.stdout for name, output in outputs.items()}


def broadcasts_seen(plan: Plan, lab: LabClient) -> list[str]:
    """Let every host send one broadcast; what tcpdump prints at each host of those that come in."""
    holders, hosts = lab.facts.holders, range(plan.topology.host_count)
    # Of an experimental Ethernet type; nothing else on the machine sends it.
    arguments = ("-i", "eth0", "-Q", "in", "-e", "-n", "-l", "ether", "proto", "0x88b5")
    senders = [(holders[plan.topology.host_name(host)], host_mac(host)) for host in hosts]
    program = (
        f"from testbed.engines.lab.hosts.probe_frames import send_from\nfor sender in {senders}: send_from(*sender)"
    )
    names = [plan.topology.host_name(host) for host in hosts]
    seen = captured(lab, {name: (name, arguments) for name in names}, program)
    return [seen[name] for name in names]


def sharing(name: str) -> pytest.MarkDecorator:
    """Tests that use the same lab run one after the other in the same process."""
    return pytest.mark.xdist_group(f"lab of {name}")


# Frames take the fast path where it works, and never: for tests of what differs between the two.
both_ways = pytest.mark.parametrize("fast_path", ["auto", pytest.param("off", marks=pytest.mark.userspace)])


def each(names: Iterable[str], userspace: Iterable[str] = ()) -> list[Any]:
    """Parameters of a test, each with a lab that other tests use, too; `userspace`: those that are marked so."""
    marked = [pytest.param(name, marks=[sharing(name), pytest.mark.userspace]) for name in userspace]
    return [*(pytest.param(name, marks=sharing(name)) for name in names), *marked]


@pytest.fixture(scope="session")
def standing() -> Iterator[Callable[[Plan], LabClient]]:
    """Labs for tests that only read, or put back what they change: the last few stay for the next test."""
    labs: OrderedDict[str, LabClient] = OrderedDict()
    mark, before = uuid4().hex, Outside.now()

    def lab_of(plan: Plan) -> LabClient:
        key = f"{os.environ.get('TESTBED_NO_FAST_PATH')} {build_order(plan)!r}"
        if key not in labs:
            if len(labs) == _STANDING:
                labs.popitem(last=False)[1].end()
            with pytest.MonkeyPatch.context() as patch:
                patch.setenv(MARK, mark)  # it is not the test's own
                labs[key] = build_lab(plan)
        labs.move_to_end(key)
        return labs[key]

    try:
        yield lab_of
    finally:
        for one in labs.values():
            one.end()
    nothing_left(mark, before)


@contextmanager
def mended(plan: Plan, lab: LabClient, *switches: int) -> Iterator[None]:
    """Whatever happens to the rules and groups of switches in the block, afterwards they are the plan's."""
    order = build_order(plan)
    try:
        yield
    finally:
        for name in map(plan.topology.switch_name, switches):
            if order.groups[name]:
                execute(lab, "ovs-ofctl", "-O", "OpenFlow15", "del-groups", name)
                file = lab.write(f"groups-of-{name}", "\n".join(order.groups[name]))
                execute(lab, "ovs-ofctl", "-O", "OpenFlow15", "add-groups", name, str(file))
            file = lab.write(f"rules-of-{name}", "\n".join(order.rules[name]))
            execute(lab, "ovs-ofctl", "-O", "OpenFlow13", "replace-flows", name, str(file))
    assert lab.walk(plan) == []


@pytest.fixture
def lab(standing: Callable[[Plan], LabClient], request: pytest.FixtureRequest) -> tuple[Plan, LabClient]:
    """A small lab that stands; with `fast_path` as the test has it, if it is one that runs both ways."""
    path = f", fast_path: {request.getfixturevalue('fast_path')}" if "fast_path" in request.fixturenames else ""
    plan = plan_of(f"topology: {{kind: mesh, sizes: [2, 2]}}\nlab: {{dilation: 50{path}}}")
    return plan, standing(plan)


@pytest.fixture
def kept() -> dict[str, str]:
    """Raw output that a load has kept: file name → text."""
    return {}


@pytest.fixture
def context(lab: tuple[Plan, LabClient], kept: dict[str, str]) -> Context:
    """One load in the small lab."""
    return Context(*lab, {"load": "1"}, kept.__setitem__, lambda text: None)
