"""What bridges show, as iproute2 6.1 printed it on Debian 12's kernel 6.1 after the exported scripts had run there."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from testbed.devices import Comparison, Options, compare_files, export_plan
from testbed.devices.read_running import COMMANDS, read_running
from testbed.planning import Plan, make_plan
from tests.fabrics import scenario_of

SHOWN = Path(__file__).parents[2] / "data" / "bridge"
PLANS: dict[str, dict[str, Any]] = {
    "ring3": {"topology": {"kind": "ring", "switches": 3}},
    "mesh2x2-renamed": {"topology": {"kind": "mesh", "sizes": [2, 2]}, "assignment": {"kind": "renamed"}},
}


def plan_called(name: str) -> Plan:
    return make_plan(scenario_of(PLANS[name]))


def shown(name: str) -> dict[str, str]:
    folder = SHOWN / name
    return {str(file.relative_to(folder)): file.read_text() for file in folder.rglob("*.json")}


def compared(name: str, files: dict[str, str]) -> Comparison:
    plan = plan_called(name)
    return compare_files(plan, export_plan(plan, Options("linux-bridge-iproute2")).manifest, files, running=True)


@pytest.mark.parametrize("name", PLANS)
def test_what_the_kernel_made_of_scripts_carries_out_the_plan(name):
    found = compared(name, shown(name))
    assert (found.unread, found.settings, found.walks) == ((), (), ())


@pytest.mark.parametrize(
    ("file", "before", "after", "told"),
    [
        ("s2/vlan.json", '"PVID",', "", "s2 swp1: the PVID is none, expected 11"),
        ("s2/fdb.json", '"static"', '"permanent"', "s2: the entry of 02:00:00:00:00:0"),
        ("s3/link.json", '"learning":false', '"learning":true', "learning is on, expected off"),
        ("s3/link.json", '"bcast_flood":true', '"bcast_flood":false', "flooding of broadcasts is off, expected on"),
        (
            "s3/link.json",
            '"state":"forwarding"',
            '"state":"blocking"',
            "s3 swp3: the port is not in the bridge, since it is blocking, by its state in link.json, expected in it",
        ),
        (
            "s2/link.json",
            '"UP","LOWER_UP"',
            '"LOWER_UP"',
            ": the port is not in the bridge, since it is down, expected in it",
        ),
        ("s1/bridge.json", '"vlan_filtering":1', '"vlan_filtering":0', "s1: VLAN filtering is off, expected on"),
        ("s1/bridge.json", '"stp_state":0', '"stp_state":1', "s1: the spanning tree protocol is on, expected off"),
    ],
)
def test_what_has_changed_since_is_found(file, before, after, told):
    files = shown("ring3")
    assert before in files[file]
    files[file] = files[file].replace(before, after, 1)
    assert any(told in str(difference) for difference in compared("ring3", files).settings)


def test_what_is_missing_or_damaged_is_told():
    files = {**shown("ring3"), "s1/fdb.json": "{", "s2/bridge.json": "[]"}
    del files["s1/vlan.json"]
    told = [str(problem) for problem in compared("ring3", files).unread]
    assert told[0] == "s1/vlan.json: is not there; it is the output of bridge -j vlan show"
    assert told[1].startswith("s1/fdb.json: is not what bridge -j fdb show prints: ")
    assert told[2] == "s2/bridge.json: shows 0 bridges and one is expected"


def test_other_bridges_ports_and_learned_addresses_are_left_out():
    link = {
        "ifname": "swp1", "master": "br0", "learning": True, "flood": True, "bcast_flood": True, "mcast_flood": False,
    }  # fmt: skip
    bridge = {"ifname": "br0", "linkinfo": {"info_data": {"vlan_filtering": 1, "stp_state": 0}}}
    entry = {"ifname": "swp1", "vlan": 10, "master": "br0"}
    said: dict[str, list[dict[str, Any]]] = {
        "link.json": [link, {**link, "ifname": "other", "master": "br1"}],
        "vlan.json": [
            {"ifname": "swp1", "vlans": [{"vlan": 10, "vlanEnd": 12}, {"vlan": 13, "flags": ["PVID"]}]},
            {"ifname": "other", "vlans": [{"vlan": 99}]},
        ],
        "fdb.json": [
            {**entry, "mac": "02:00:00:00:00:01", "state": "static"},
            {**entry, "mac": "02:00:00:00:00:02", "state": ""},
            {**entry, "mac": "02:00:00:00:00:03", "state": "permanent"},
            {**entry, "mac": "02:00:00:00:00:04", "state": "static", "ifname": "other"},
        ],
        "bridge.json": [bridge, {}],
    }
    found, problems = read_running("s1", {f"s1/{file}": json.dumps(said[file]) for file in COMMANDS})
    assert problems == []
    assert found.fdb == {(10, "02:00:00:00:00:01"): "swp1"}
    (port,) = found.ports.values()
    assert (port.pvid, sorted(port.members), sorted(port.untagged)) == (13, [10, 11, 12, 13], [])
    assert (port.learning, port.mcast_flood) == (True, False)
