"""A lab whose switches are shared by several daemons is the same lab."""

from __future__ import annotations

import json
import socket
from pathlib import Path

import pytest

from testbed.base.errors import LabError
from testbed.base.model import host_mac
from testbed.engines.lab.control.build import build_lab
from testbed.engines.lab.control.client import LabClient
from testbed.engines.ovs.check_paths import installed_problems
from testbed.engines.ovs.switch_daemon import take_sockets
from testbed.fabric.openflow.rule_text import parse_rule

from .conftest import daemon_of, execute, plan_of, sharing

_SOL_PACKET, _PACKET_IGNORE_OUTGOING = 263, 23
_TWO = "torus of two daemons"
_TORUS = "topology: {{kind: torus, sizes: [4, 2]}}\nlab: {{datapath: userspace, switch_daemons: {count}}}"


def _daemons(lab: LabClient) -> list[int]:
    """Pids, as the machine counts them, of the ovs-vswitchd in a lab."""
    namespace = Path(f"/proc/{lab.namespaces.init}/ns/pid").readlink()
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if (entry / "comm").read_text() == "ovs-vswitchd\n" and (entry / "ns/pid").readlink() == namespace:
                    found.append(int(entry.name))
            except OSError:
                continue
    return found


@pytest.mark.parametrize("count", [1, 3, 8])
def test_several_daemons_carry_out_the_plan(count, untouched):
    plan = plan_of(_TORUS.format(count=count))
    with build_lab(plan) as lab:
        assert len(lab.facts.switch_daemons) == len(_daemons(lab)) == count
        dumped = lab.flows()
        assert list(dumped) == [f"s{number}" for number in range(1, 9)]
        installed = {parse_rule(number, line) for number, switch in enumerate(dumped) for line in dumped[switch]}
        assert installed == set(plan.rules)
        assert installed_problems(plan, dumped) == []
        assert lab.reach() == []
        assert lab.shaping_problems() == []
        frames = lab.frames()
        # Each daemon's switches forwarded pings, and each port's frames are found.
        assert all(frames.admitted)
        assert (len(frames.to_hosts), len(frames.channels)) == (8, 2 * plan.topology.link_count)
        assert all(count > 0 for count in (*frames.to_hosts, *frames.channels))


@sharing(_TWO)
def test_each_daemon_answers_for_its_switches(standing):
    lab = standing(plan_of(_TORUS.format(count=2)))
    assert lab.facts.switch_daemons == (("s1", "s2", "s3", "s4"), ("s5", "s6", "s7", "s8"))
    for suffix, bridges in (("", {"s1", "s2", "s3", "s4"}), ("-2", {"s5", "s6", "s7", "s8"})):
        database = f"--db=unix:/run/lab/ovs/db{suffix}.sock"
        columns = "--columns=name,stp_enable,rstp_enable,fail_mode"
        rows = json.loads(execute(lab, "ovs-vsctl", database, "--format=json", columns, "list", "bridge"))["data"]
        assert {row[0] for row in rows} == bridges
        assert all(row[1:] == [False, False, "secure"] for row in rows)
    flow = f"in_port=1,dl_src={host_mac(4)},dl_dst={host_mac(5)}"
    traced = execute(lab, "ovs-appctl", "-t", daemon_of(lab, 4), "ofproto/trace", "s5", flow)
    assert "Datapath actions" in traced


@pytest.mark.parametrize("suffix", ["", "-2"])
def test_the_death_of_either_is_noticed(suffix, untouched):
    with build_lab(plan_of(_TORUS.format(count=2))) as lab:
        with pytest.raises(LabError, match=f"ovs-vswitchd{suffix} was killed by signal 9; the lab's switches are gone"):
            execute(lab, "sh", "-c", f"kill -9 $(cat /run/lab/ovs/ovs-vswitchd{suffix}.pid); sleep 5")
        with pytest.raises(LabError, match="switches are gone"):
            lab.reach()


@sharing(_TWO)
def test_a_switch_has_no_device_of_its_own(standing):
    """A bridge's own port would be one more to poll, and one more thing that a frame could come from."""
    lab = standing(plan_of(_TORUS.format(count=2)))
    links = json.loads(execute(lab, "ip", "-j", "link", "show"))
    assert {link["ifname"].partition("-")[0] for link in links} == {"lo", *(f"s{n}" for n in range(1, 9))}
    assert all("-eth" in link["ifname"] for link in links if link["ifname"] != "lo")


@sharing(_TWO)
def test_packet_sockets_of_every_daemon_are_prepared(standing):
    plan = plan_of(_TORUS.format(count=2))
    lab = standing(plan)
    packet_sockets = 0
    for pid in _daemons(lab):
        for number in take_sockets(pid):
            with socket.socket(fileno=number) as one:
                if one.family == socket.AF_PACKET:
                    packet_sockets += 1
                    assert one.getsockopt(_SOL_PACKET, _PACKET_IGNORE_OUTGOING) == 1
                    assert one.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF) >= 4 << 20
                    assert one.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF) >= 4 << 20
    # One a port, and one for sending a daemon.
    assert packet_sockets == 8 + 2 * plan.topology.link_count + 2
