"""One plan, three carriers: our rules in the kernel's and in the userspace Open vSwitch, and Linux bridges.

Every pair's frame and every broadcast must leave by the same ports with the same tags.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass

import pytest

from testbed.base.messages import LoadRequest, Process
from testbed.base.model import host_mac
from testbed.engines.lab.control.build import build_lab
from testbed.engines.lab.control.client import LabClient
from testbed.planning import Plan, make_plan
from testbed.scenario import parse_scenario
from tests.lab.conftest import mended

from .bridges import Bridges, bridges
from .observe import EVERYBODY, Crossings, lab_network, observe, planned_crossings, without_tags

_DATAPATHS = ("kernel", "userspace")
_TORUS = "topology: {kind: torus, sizes: [4, 2]}"
_PLANS = {
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


_PLANS |= {f"random {seed}": _random_text(seed) for seed in (1, 2)}  # renamed, fixed


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


def _agree(plan: Plan, seen: Mapping[str, Crossings]) -> None:
    """The three send every frame alike, and as planned."""
    planned = planned_crossings(plan)
    unicast = without_tags({pair: seen["kernel"][pair] for pair in planned})
    assert _differences(unicast, planned) == []
    assert _differences(seen["userspace"], seen["kernel"]) == []
    assert _differences(seen["bridge"], seen["kernel"]) == []
    assert all(seen["kernel"].values()), "a frame that left by no port was never sent"


@pytest.mark.parametrize("text", _PLANS.values(), ids=_PLANS)
def test_three_implementations_send_frames_over_the_same_links(text):
    plan = _plan(text)
    seen: dict[str, Crossings] = {}
    for datapath in _DATAPATHS:
        with build_lab(_plan(text, datapath)) as lab:
            assert lab.facts.datapath == datapath
            seen[datapath] = observe(plan, lab_network(plan, lab))
    with bridges(plan) as standing:
        seen["bridge"] = observe(plan, standing.network)
    _agree(plan, seen)


# --- one fabric that all three keep, for faults ----------------------------------------------------------------------

_together = pytest.mark.xdist_group("differential torus")


@dataclass(frozen=True)
class Torus:
    """A torus carried out by all three, and what its frames do where nothing is wrong."""

    plan: Plan
    labs: dict[str, LabClient]
    bridges: Bridges
    seen: dict[str, Crossings]


@pytest.fixture(scope="module")
def torus() -> Iterator[Torus]:
    plan = _plan(_TORUS)
    with ExitStack() as stack:
        labs = {datapath: stack.enter_context(build_lab(_plan(_TORUS, datapath))) for datapath in _DATAPATHS}
        standing = stack.enter_context(bridges(plan))
        networks = {**{name: lab_network(plan, lab) for name, lab in labs.items()}, "bridge": standing.network}
        yield Torus(plan, labs, standing, {name: observe(plan, network) for name, network in networks.items()})


@_together
def test_three_implementations_of_a_torus_agree_on_every_link(torus):
    assert {name: lab.facts.datapath for name, lab in torus.labs.items()} == {name: name for name in _DATAPATHS}
    assert "h1→h2" in _to_h2_by_s1(torus.seen["kernel"], _vlan_of_h1(torus.plan))
    _agree(torus.plan, torus.seen)


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


@_together
@pytest.mark.parametrize("datapath", _DATAPATHS)
def test_a_fault_planted_in_open_vswitch_is_found(datapath, torus):
    plan, lab, right = torus.plan, torus.labs[datapath], torus.seen["kernel"]
    with mended(plan, lab, 0):
        _mislead(lab, plan)
        found = _differences(observe(plan, lab_network(plan, lab)), right)
    assert [line.split(":")[0] for line in found] == _to_h2_by_s1(right, _vlan_of_h1(plan))


def _entry_to_another_port(standing: Bridges, vlan: int, port: int) -> int:
    """Returns the port that it led to before."""
    address = host_mac(1)
    shown = standing.run(0, "bridge", "fdb", "show", "br", "br0")
    (old,) = (line for line in shown.splitlines() if line.startswith(address) and f"vlan {vlan} " in line)
    assert f"dev swp{port} " not in old
    standing.run(0, "bridge", "fdb", "replace", address, "dev", f"swp{port}", "master", "static", "vlan", str(vlan))
    return int(old.partition(" dev swp")[2].split()[0])


@_together
def test_a_wrong_entry_planted_in_a_linux_bridge_is_found(torus):
    plan, right, vlan = torus.plan, torus.seen["kernel"], _vlan_of_h1(torus.plan)
    before = _entry_to_another_port(torus.bridges, vlan, 3)
    found = _differences(observe(plan, torus.bridges.network), right)
    assert _entry_to_another_port(torus.bridges, vlan, before) == 3
    assert [line.split(":")[0] for line in found] == _to_h2_by_s1(right, vlan)


@_together
def test_a_missing_member_planted_in_a_linux_bridge_is_found(torus):
    plan, right, vlan = torus.plan, torus.seen["kernel"], _vlan_of_h1(torus.plan)
    first = next(port for (switch, port, tag) in right[0, 1] if switch == 0 and tag == vlan)
    torus.bridges.run(0, "bridge", "vlan", "del", "dev", f"swp{first}", "vid", str(vlan))
    found = {line.split(":")[0] for line in _differences(observe(plan, torus.bridges.network), right)}
    torus.bridges.run(0, "bridge", "vlan", "add", "dev", f"swp{first}", "vid", str(vlan))
    assert {*_to_h2_by_s1(right, vlan), "h1→everybody"} <= found
