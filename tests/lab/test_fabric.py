"""The running lab is the plan: rules, paths, pings, broadcasts, shaping, no spanning tree."""

from __future__ import annotations

import json
import re
from collections import Counter

import pytest

from testbed.base.model import host_mac
from testbed.engines.lab.control.build import build_lab
from testbed.engines.ovs.check_paths import installed_problems
from testbed.fabric.openflow.rule_text import parse_rule
from testbed.fabric.routing.paths import path

from .conftest import both_ways, broadcasts_seen, daemon_of, each, execute, named_plan, plan_of, sharing

pytestmark = pytest.mark.vm

_FABRICS = {
    "mesh4x2, two hosts a switch": "topology: {kind: mesh, sizes: [4, 2], hosts_per_switch: 2}",
    "torus of 5 with two links": "topology: {kind: torus, sizes: [5, 2], parallel_links: 2}",
    "complete": "topology: {kind: complete, switches: 5, parallel_links: 2}",
    "flat": "topology: {kind: flat, hosts: 4}",
    "all entries": "topology: {kind: ring, switches: 6}\nassignment: {entries: all}",
}


@pytest.mark.parametrize("name", each(["torus4x4", "fattree14", *_FABRICS], userspace=["torus4x4 lab.fast_path=off"]))
def test_running_switches_carry_out_the_plan(name, standing):
    plan = plan_of(_FABRICS[name]) if name in _FABRICS else named_plan(*name.split())
    lab = standing(plan)
    dumped = lab.flows()
    installed = {parse_rule(number, line) for number, switch in enumerate(dumped) for line in dumped[switch]}
    assert installed == set(plan.rules)
    assert installed_problems(plan, dumped) == []
    assert lab.reach() == []
    assert lab.shaping_problems() == []


@sharing("torus4x4")
def test_spanning_tree_is_off_as_read_back(standing):
    lab = standing(named_plan("torus4x4"))
    rows = []
    for number in range(len(lab.facts.switch_daemons)):
        database = f"--db=unix:/run/lab/ovs/db{f'-{number + 1}' if number else ''}.sock"
        ask = ("--format=json", "--columns=stp_enable,rstp_enable", "list", "bridge")
        rows += json.loads(execute(lab, "ovs-vsctl", database, *ask))["data"]
    assert rows == [[False, False]] * 16


@pytest.mark.parametrize("name", each(["torus4x4", "fattree14", "myri-clos"], userspace=["torus4x4 lab.fast_path=off"]))
def test_a_broadcast_reaches_every_other_host_exactly_once(name, standing):
    plan = named_plan(*name.split())
    hosts = range(plan.topology.host_count)
    captures = broadcasts_seen(plan, standing(plan))
    for receiver, seen in enumerate(captures):
        lines = seen.splitlines()
        lines = [line for line in lines if " > " in line]  # the others are a dump of the payload
        assert all("ff:ff:ff:ff:ff:ff" in line and "802.1Q" not in line for line in lines)
        senders = Counter(match.group(1) for line in lines if (match := re.search(r"(\S+) > ff:ff", line)))
        assert senders == {host_mac(sender): 1 for sender in hosts if sender != receiver}


@sharing("torus4x4")
def test_ofproto_trace_takes_the_planned_path(standing):
    plan = named_plan("torus4x4")
    topology = plan.topology
    lab = standing(plan)
    for source, destination in [(0, 15), (5, 10), (3, 12), (7, 1)]:
        switch, in_port = topology.host_switch[source], topology.host_port[source]
        tag = ""
        taken = []
        while True:
            flow = f"in_port={in_port},dl_src={host_mac(source)},dl_dst={host_mac(destination)}{tag}"
            text = execute(lab, "ovs-appctl", "-t", daemon_of(lab, switch), "ofproto/trace", f"s{switch + 1}", flow)
            (port,) = {int(found) for found in re.findall(r"^ +output:(\d+)$", text, re.MULTILINE)}
            leaving = [
                c
                for c in range(len(topology.out_port))
                if topology.channel_source[c] == switch and topology.out_port[c] == port
            ]
            if not leaving:
                assert (switch, port) == (topology.host_switch[destination], topology.host_port[destination])
                assert "pop_vlan" in text
                break
            taken.append(leaving[0])
            switch, in_port = topology.channel_target[leaving[0]], topology.out_port[leaving[0] ^ 1]
            tag = f",dl_vlan={plan.vlans.vlan_ids[plan.vlans.pvid[source]]}"
        assert tuple(taken) == path(topology, plan.routes, source, destination)


def test_arp_by_broadcast_in_the_vlan_tree(untouched):
    plan = plan_of("topology: {kind: torus, sizes: [4, 2]}\nlab: {arp: broadcast}")
    with build_lab(plan) as lab:
        assert execute(lab, "ip", "neigh", "show", host="h1") == ""
        assert lab.reach() == []
        assert "h" not in execute(lab, "ip", "neigh", "show", "nud", "failed", host="h1")
        assert "10.0.0.8" in execute(lab, "ip", "neigh", "show", host="h1")


@both_ways
def test_queues_and_rates_are_the_dilated_ones(untouched, fast_path):
    plan = plan_of(
        "topology: {kind: mesh, sizes: [2]}\nlinks: {rate: 1 Gbit/s, queue_frames: 50}\n"
        f"lab: {{dilation: 50, fast_path: {fast_path}}}"
    )
    with build_lab(plan) as lab:
        shown = execute(lab, "tc", "-d", "class", "show", "dev", "s1-eth2")
        assert "rate 20Mbit" in shown
        # Linux does not count the tag of what is forwarded in the kernel.
        in_kernel = lab.facts.datapath == "kernel" or lab.facts.fast_path
        assert f"overhead {28 if in_kernel else 24} " in shown
        assert "limit 50p" in execute(lab, "tc", "qdisc", "show", "dev", "s1-eth2")
        assert "limit 1000p" in execute(lab, "tc", "qdisc", "show", "dev", "eth0", host="h1")  # as Linux's own


def test_a_port_makes_up_for_eight_frames_unseen_by_hosts(untouched):
    plan = plan_of("topology: {kind: mesh, sizes: [2]}\nlab: {dilation: 200}")
    with build_lab(plan) as lab:
        shown = execute(lab, "tc", "-d", "class", "show", "dev", "s1-eth2")
        assert int(re.search(r" burst (\d+)b", shown).group(1)) == pytest.approx(8 * 1542, rel=0.01)
        assert execute(lab, "cat", "/proc/sys/net/ipv4/tcp_no_metrics_save", host="h1") == "1\n"
