"""The fast path under the userspace datapath: what it carries, that it keeps in step, and when there is none."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from testbed.base.errors import LabError
from testbed.base.messages import Disturbance
from testbed.base.model import host_mac
from testbed.engines.lab.control.build import build_order
from testbed.engines.lab.control.client import LabClient
from testbed.engines.lab.control.launch import start_namespaces
from testbed.engines.local_machine import probe
from testbed.engines.ovs import bpf, fast_path
from testbed.engines.ovs.fast_path import open_fast_path
from testbed.engines.ovs.fast_programs import encode_entry
from testbed.experiments.run.open_vswitch import OpenVSwitchEngine
from testbed.fabric.openflow.flow_cache_entry import Entry

from .conftest import answers, execute, mended, plan_of, sharing

_ELSEWHERE = "TESTBED_NO_FAST_PATH"
_LAB = "lab: {dilation: 50, datapath: userspace, switch_daemons: 2}"
_MESH = f"topology: {{kind: mesh, sizes: [2, 2]}}\n{_LAB}"
# Frames from h1 to h2, one a millisecond, for as long as the switches' rules are changed; how many left by a port.
_CHANGES = """
import subprocess, sys, time
from pathlib import Path

holder, port, frame, away, back = sys.argv[1:]
send = (
    "import socket, time\\ns = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)\\ns.bind(('eth0', 0))\\n"
    "while True:\\n    s.send(bytes.fromhex('" + frame + "'))\\n    time.sleep(0.001)\\n"
)
count = lambda: int(Path(f"/sys/class/net/{port}/statistics/tx_packets").read_text())
change = lambda text: subprocess.run(
    ["ovs-ofctl", "-O", "OpenFlow13", "--strict", "mod-flows", "s1", text], check=True
)
sender = subprocess.Popen(["nsenter", f"--net=/proc/{holder}/ns/net", sys.executable, "-c", send])
try:
    begun = count()
    while count() < begun + 100:
        time.sleep(0.01)
    for _ in range(5):
        change(away)
        time.sleep(0.02)
        before = count()
        time.sleep(0.3)
        print(count() - before)
        change(back)
        time.sleep(0.3)
        print(count() - before)
finally:
    sender.kill()
"""


@pytest.fixture(autouse=True)
def wherever_there_may_be_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(_ELSEWHERE, raising=False)


@pytest.fixture
def mesh(standing):
    plan = plan_of(_MESH)
    lab = standing(plan)
    assert lab.facts.fast_path, lab.facts.why_slow
    return plan, lab


def _entry(plan, lab):
    """The entry by which h1's frames for h2 leave s1."""
    lines = map(Entry.read, lab.short_cuts().entries["s1"])
    port = int(plan.topology.host_port[0])
    return next(e for e in lines if (e.in_port, e.destination) == (port, host_mac(1)))


@sharing(_MESH)
def test_frames_take_it_and_none_is_lost_from_the_ledger(mesh):
    plan, lab = mesh
    assert lab.verify(plan) == []
    before, seen = lab.frames(), _seen(lab, "s1")
    execute(lab, "ping", "-c", "50", "-i", "0.01", "10.0.0.2", host="h1")
    after = lab.frames()
    assert sum(after.admitted) - sum(before.admitted) == after.arrived - before.arrived >= 200
    assert after.lost == before.lost
    assert _seen(lab, "s1") == seen  # by Open vSwitch


@sharing(_MESH)
def test_a_wrong_and_a_stale_entry_are_found(mesh):
    plan, lab = mesh
    right = _entry(plan, lab)
    entries = bpf.map_by_id(lab.short_cuts().map_id)
    content = bpf.content(entries, 16, 8, 1 << 18)
    # Its generation and interface as the kernel has them: those of an entry with its tag and address.
    key, value = next(
        (k, v)
        for k, v in content.items()
        if k[4:] == encode_entry(right, 0, 0)[0][4:] and _planted(plan, lab, entries, k, v, right)
    )
    assert lab.walk(plan) == []
    stale = key[:8] + bytes.fromhex(host_mac(77).replace(":", "")) + key[14:]
    bpf.update(entries, {stale: value})
    assert any(host_mac(77) in problem for problem in lab.walk(plan))
    bpf.delete(entries, [stale])
    assert lab.walk(plan) == []
    os.close(entries)


def _planted(plan, lab, entries, key, value, right):
    """Whether this is the entry: if so it was wrong for a moment, and the path check has said so."""
    other = next(v for k, v in bpf.content(entries, 16, 8, 1 << 18).items() if v[:4] != value[:4])
    bpf.update(entries, {key: other[:4] + value[4:]})
    problems = lab.walk(plan)
    bpf.update(entries, {key: value})
    assert problems
    return any("the fast path of s1 sends" in p and f"come by port {right.in_port}, untagged" in p for p in problems)


@sharing(_MESH)
def test_a_change_of_rules_holds_for_frames_under_way(mesh):
    plan, lab = mesh
    entry = _entry(plan, lab)
    vlan = plan.vlans.vlan_ids[plan.vlans.pvid[0]]
    match = f"table=1,priority=200,dl_vlan={vlan},dl_dst={host_mac(1)}"
    frame = (host_mac(1) + host_mac(0)).replace(":", "") + "88b5" + "00" * 46
    arguments = (
        lab.facts.holders["h1"], f"s1-eth{entry.out_port}", frame,
        f"{match},actions=drop", f"{match},actions=output:{entry.out_port}",
    )  # fmt: skip
    with mended(plan, lab, 0):
        printed = execute(lab, sys.executable, "-c", _CHANGES, *map(str, arguments))
    counts = list(map(int, printed.split()))
    assert counts[::2] == [0] * 5
    assert min(counts[1::2]) > 50


@sharing(_MESH)
def test_rules_beyond_entries_put_that_switch_off_only(mesh):
    plan, lab = mesh
    with mended(plan, lab, 0):
        execute(
            lab, "ovs-ofctl", "-O", "OpenFlow13", "add-flow", "s1", "table=1,priority=9,ip,nw_src=1.2.3.4,actions=drop"
        )
        found = lab.short_cuts()
        assert "s1" not in found.entries
        assert "unexpected match" in found.off["s1"]
        assert len(found.entries) == 3
        assert lab.reach() == []
    assert lab.short_cuts().off == {}


@sharing(_MESH)
def test_it_comes_back_where_open_vswitch_takes_it_off(mesh):
    plan, lab = mesh
    execute(lab, "tc", "qdisc", "del", "dev", f"s1-eth{plan.topology.host_port[0]}", "ingress")
    assert lab.reach() == []
    assert lab.short_cuts().off == {}
    before, seen = lab.frames(), _seen(lab, "s1")
    execute(lab, "ping", "-c", "50", "-i", "0.01", "10.0.0.2", host="h1")
    after = lab.frames()
    assert sum(after.admitted) - sum(before.admitted) == after.arrived - before.arrived >= 200
    assert _seen(lab, "s1") - seen < 20  # the others by the fast path


def _seen(lab, switch):
    """Frames that Open vSwitch has forwarded by entries since its rules were installed."""
    rules = execute(lab, "ovs-ofctl", "-O", "OpenFlow13", "dump-flows", switch, "table=1,dl_dst=" + host_mac(1))
    return sum(int(line.split("n_packets=")[1].split(",")[0]) for line in rules.splitlines() if "n_packets" in line)


@sharing(_MESH)
def test_a_port_that_shall_not_forward_puts_its_switch_off(mesh):
    plan, lab = mesh
    port = str(_entry(plan, lab).out_port)
    execute(lab, "ovs-ofctl", "-O", "OpenFlow13", "mod-port", "s1", port, "no-forward")
    assert "configured not to forward" in lab.short_cuts().off["s1"]
    assert not answers(lab, "h1", 1)
    execute(lab, "ovs-ofctl", "-O", "OpenFlow13", "mod-port", "s1", port, "forward")
    assert lab.short_cuts().off == {}
    assert lab.reach() == []


def test_a_switch_that_is_killed_forwards_nothing(untouched):
    plan = plan_of(f"topology: {{kind: mesh, sizes: [2, 2]}}\n{_LAB}")
    with LabClient(start_namespaces(keep=False)) as lab:
        lab.build(replace(build_order(plan), alone=("s2",)))
        assert lab.reach() == []
        lab.disturb(Disturbance(switches=(1,), up=False))
        assert not answers(lab, "h1", 1)
        lab.disturb(Disturbance(switches=(1,), up=True))
        assert not answers(lab, "h1", 1)  # it has no rules yet
        file = lab.write("rules", "\n".join(build_order(plan).rules["s2"]))
        execute(lab, "ovs-ofctl", "-O", "OpenFlow13", "replace-flows", "s2", str(file))
        assert lab.verify(plan) == []
        assert "s2" in lab.short_cuts().entries


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("lab: {dilation: 50, datapath: userspace, fast_path: off}", ""),
        (
            "assignment: {kind: fixed, registration: learning}\nlab: {dilation: 50, datapath: userspace}",
            "must see every frame",
        ),
        (
            "lab: {dilation: 50, datapath: userspace, controller: switch_tagged}",
            "the controller switch_tagged changes rules",
        ),
    ],
)
def test_there_is_none_where_it_would_not_hold(untouched, text, why):
    plan = plan_of(f"topology: {{kind: mesh, sizes: [2, 1]}}\n{text}")
    told: list[str] = []
    with OpenVSwitchEngine().build(plan, told.append) as lab:
        assert lab.facts.fast_path is False
        assert why in lab.facts.why_slow
        assert bool(why) is bool(lab.facts.why_slow)
        assert lab.verify(plan) == []
    once = [f"no fast path under Open vSwitch: {lab.facts.why_slow}"] if why else []
    assert [line for line in told if "no fast path" in line] == once


# What a kernel may lack, and what the lab then says of it; the last one as the kernel's verifier says it.
_LACKING = {
    "lockdown": ("_call", OSError(errno.EPERM, "Operation not permitted"), "Operation not permitted"),
    "another architecture": ("_call", OSError(errno.ENOSYS, "Function not implemented"), "Function not implemented"),
    "no bpf file system": ("run", LabError("mount: unknown filesystem type 'bpf'"), "unknown filesystem type 'bpf'"),
    "no cls_bpf": ("run", LabError("tc: Error: TC classifier not found."), "TC classifier not found"),
}


@pytest.mark.parametrize("what", _LACKING)
def test_what_a_kernel_lacks_is_said_and_is_no_error(what, monkeypatch):
    name, error, said = _LACKING[what]

    def refuse(*arguments):
        raise error

    monkeypatch.setattr(bpf, name, refuse)
    order = build_order(plan_of(_MESH))
    found, why = open_fast_path(order, "userspace", [("s1", "lo", 1)])
    assert found is None
    assert said in why
    if name == "_call":
        assert why == f"the kernel refuses it: {said}"
        row = probe._fast_path()
        assert (row.present, row.needed, row.detail) == (False, False, said)
        assert row.consequence == (
            "the userspace datapath passes on every frame, at a larger dilation (lab.fast_path); on the kernel's TCP "
            "loses too few frames, since hosts' sockets wait for queues of switches, too"
        )


def test_a_program_the_verifier_refuses_is_said_in_its_words(monkeypatch):
    # It reads a register that nobody has set.
    monkeypatch.setattr(
        fast_path, "make_socket_filter", lambda maps: bpf.instruction(0xBF, 0, 3) + bpf.instruction(0x95)
    )
    order = build_order(plan_of(_MESH))
    found, why = open_fast_path(order, "userspace", [("s1", "lo", 1)])
    assert found is None
    assert why.startswith("the kernel refuses it: Permission denied: ")
    assert probe._fast_path().detail in why


# Whether the lab of a scenario with these words has a fast path.
_BUILDS = """
import sys
from testbed.engines.lab.control.build import build_lab
from testbed.planning import make_plan
from testbed.scenario import parse_scenario

text = "topology: {kind: mesh, sizes: [2, 1]}\\nlab: {dilation: 50, datapath: userspace" + sys.argv[1] + "}"
with build_lab(make_plan(parse_scenario(text, "test"))) as lab:
    print(lab.facts.fast_path, lab.facts.why_slow)
"""


@pytest.mark.parametrize(
    ("switch", "said", "found"),
    [
        (None, "", "True "),
        ("0", "", "True "),
        ("1", "", "False TESTBED_NO_FAST_PATH=1 is set"),
        ("1", ", fast_path: off", "False "),
        (None, ", fast_path: off", "False "),
    ],
)
def test_the_environment_turns_it_off_and_the_lab_says_so(untouched, monkeypatch, switch, said, found):
    if switch is not None:
        monkeypatch.setenv(_ELSEWHERE, switch)
    argv = (sys.executable, "-c", _BUILDS, said)
    seen = subprocess.run(argv, cwd=Path(__file__).parents[2], capture_output=True, text=True, timeout=120, check=True)
    assert seen.stdout == f"{found}\n"
