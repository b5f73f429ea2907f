"""One plan, three carriers: our rules in the kernel's and in the userspace Open vSwitch, and Linux bridges.

Every pair's frame and every broadcast must leave by the same ports with the same tags.
"""

from __future__ import annotations

import random

import pytest

from testbed.emulate.build import build_lab
from testbed.emulate.client import LabClient
from testbed.messages import LoadRequest, Process
from testbed.model import host_mac
from testbed.plan import Plan, make_plan
from testbed.scenario import parse_scenario

from .bridges import Bridges, bridges
from .observe import EVERYBODY, Crossings, lab_network, observe, planned_crossings, without_tags

_PLANS = {
    "torus, fixed": "topology: {kind: torus, sizes: [4, 2]}",
    "fat tree, fixed": "topology: {kind: fat_tree_14}",
    "mesh, two hosts a switch": "topology: {kind: mesh, sizes: [3, 2], hosts_per_switch: 2}",
    "all entries": "topology: {kind: ring, switches: 6}\nassignment: {entries: all}",
    "mesh, renamed": "topology: {kind: mesh, sizes: [3, 3]}\nassignment: {kind: renamed}",
}
# The fixed assignment carries only paths that are one tree a source.
_SELECTION = {"fixed": "tree", "renamed": "balanced"}


def _random_text(seed: int) -> str:
    """A fabric drawn at random: size, links, hosts, root, and which assignment carries it."""
    draw = random.Random(seed)
    switches, degree = draw.choice([(5, 2), (6, 3), (7, 4), (8, 3)])
    assignment = ["fixed", "renamed"][seed % 2]
    return (
        f"topology: {{kind: random, switches: {switches}, degree: {degree}, seed: {draw.randrange(1000)}, "
        f"hosts_per_switch: {draw.choice([1, 1, 2])}}}\n"
        f"routing: {{kind: updown, root: s{draw.randint(1, switches)}, selection: {_SELECTION[assignment]}}}\n"
        f"assignment: {{kind: {assignment}}}"
    )


_PLANS |= {f"random {seed}": _random_text(seed) for seed in (1, 2, 3, 4)}


def _plan(text: str, datapath: str = "auto") -> Plan:
    return make_plan(parse_scenario(f"{text}\nlab: {{dilation: 1, datapath: {datapath}}}", "test.yaml"))


def _differences(found: Crossings, expected: Crossings) -> list[str]:
    return [
        f"h{source + 1}→{'everybody' if destination == EVERYBODY else f'h{destination + 1}'}: {dict(found[pair])} "
        f"instead of {dict(expected[pair])}"
        for pair in expected
        for source, destination in [pair]
        if found[pair] != expected[pair]
    ]


@pytest.mark.parametrize("text", _PLANS.values(), ids=_PLANS)
def test_three_implementations_send_every_frame_over_the_same_links(text):
    plan = _plan(text)
    seen: dict[str, Crossings] = {}
    for datapath in ("kernel", "userspace"):
        with build_lab(_plan(text, datapath)) as lab:
            assert lab.facts.datapath == datapath
            seen[datapath] = observe(plan, lab_network(plan, lab))
    with bridges(plan) as standing:
        seen["bridge"] = observe(plan, standing.network)
    planned = planned_crossings(plan)
    unicast = without_tags({pair: seen["kernel"][pair] for pair in planned})
    assert _differences(unicast, planned) == []
    assert _differences(seen["userspace"], seen["kernel"]) == []
    assert _differences(seen["bridge"], seen["kernel"]) == []
    assert all(seen["kernel"].values()), "a frame that left by no port was never sent"


@pytest.fixture(scope="module")
def torus() -> tuple[Plan, Crossings]:
    """A torus, and what its frames do where nothing is wrong."""
    plan = _plan(_PLANS["torus, fixed"])
    with build_lab(plan) as lab:
        right = observe(plan, lab_network(plan, lab))
    assert "h1→h2" in _to_h2_by_s1(right, _vlan_of_h1(plan))
    return plan, right


def _vlan_of_h1(plan: Plan) -> int:
    return int(plan.vlans.vlan_ids[plan.vlans.pvid[0]])


def _to_h2_by_s1(right: Crossings, vlan: int) -> list[str]:
    """What an entry for h2 on s1 in a VLAN leads, in the words of _differences()."""
    return [
        f"h{source + 1}→h2"
        for (source, destination), left in right.items()
        if destination == 1 and any((switch, tag) == (0, vlan) for switch, _, tag in left)
    ]


def _mislead(lab: LabClient, plan: Plan) -> None:
    """s1 sends frames for h2 in the VLAN of h1 into another link."""
    vlan = _vlan_of_h1(plan)
    entry = f"table=1,priority=200,dl_vlan={vlan},dl_dst={host_mac(1)},actions=output:3"
    argv = ("ovs-ofctl", "-O", "OpenFlow13", "--strict", "mod-flows", "s1", entry)
    output = lab.run_load(LoadRequest((Process("it", None, argv),), limit=30)).outputs["it"]
    assert output.code == 0, output


@pytest.mark.parametrize("datapath", ["kernel", "userspace"])
def test_a_fault_planted_in_open_vswitch_is_found(datapath, torus):
    plan, right = torus
    with build_lab(_plan(_PLANS["torus, fixed"], datapath)) as lab:
        _mislead(lab, plan)
        found = _differences(observe(plan, lab_network(plan, lab)), right)
    assert [line.split(":")[0] for line in found] == _to_h2_by_s1(right, _vlan_of_h1(plan))


def _entry_to_another_port(standing: Bridges, vlan: int, port: int) -> None:
    address = host_mac(1)
    shown = standing.run(0, "bridge", "fdb", "show", "br", "br0")
    (old,) = (line for line in shown.splitlines() if line.startswith(address) and f"vlan {vlan} " in line)
    assert f"dev swp{port} " not in old
    standing.run(0, "bridge", "fdb", "replace", address, "dev", f"swp{port}", "master", "static", "vlan", str(vlan))


def test_a_wrong_entry_planted_in_a_linux_bridge_is_found(torus):
    plan, right = torus
    with bridges(plan) as standing:
        _entry_to_another_port(standing, _vlan_of_h1(plan), 3)
        found = _differences(observe(plan, standing.network), right)
    assert [line.split(":")[0] for line in found] == _to_h2_by_s1(right, _vlan_of_h1(plan))


def test_a_missing_member_planted_in_a_linux_bridge_is_found(torus):
    plan, right = torus
    vlan = _vlan_of_h1(plan)
    first = next(port for (switch, port, tag) in right[0, 1] if switch == 0 and tag == vlan)
    with bridges(plan) as standing:
        standing.run(0, "bridge", "vlan", "del", "dev", f"swp{first}", "vid", str(vlan))
        found = {line.split(":")[0] for line in _differences(observe(plan, standing.network), right)}
    assert {*_to_h2_by_s1(right, vlan), "h1→everybody"} <= found
