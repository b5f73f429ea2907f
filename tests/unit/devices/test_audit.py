"""Networks without a plan: what was exported has the verdict of its plan, and whatever is broken is found."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from testbed.base.errors import InputError
from testbed.base.model import host_mac
from testbed.devices import DIALECTS, Options, export_plan
from testbed.devices.audit import Audit, audit, network_of
from testbed.devices.audit.read_folder import read_network
from testbed.devices.bridge import BROADCAST, Bridge, BridgePort, Walker, Wiring
from testbed.devices.compare import planned_bridges
from testbed.devices.port_names import port_names
from testbed.devices.settings import settings_of
from testbed.devices.walks import wiring_of
from testbed.planning import Plan, make_plan
from testbed.ui.cli import audit_command, export_commands  # noqa: F401 - they add their commands
from testbed.ui.cli.app import app
from tests.fabrics import scenario_of

PLANS = {
    "torus": "topology: {kind: torus, sizes: [3, 3]}",
    "ring": "topology: {kind: ring, switches: 5, hosts_per_switch: 2}",
    "mesh": "topology: {kind: mesh, sizes: [3, 2]}",
    "renamed": "topology: {kind: mesh, sizes: [3, 2]}\nassignment: {kind: renamed}",
    "static": "topology: {kind: mesh, sizes: [2, 2]}\nassignment: {kind: static}",
    "tree": "topology: {kind: tree, switches: 4}",
    "stp": "topology: {kind: ring, switches: 4}\nrouting: {kind: stp}",
    "deadlock": "topology: {kind: ring, switches: 5}\nrouting: {ring: shortest}\nexpect: deadlock",
}
ONE_VLAN = ("tree", "stp")
TRIPS = [
    (plan, dialect)
    for plan in PLANS
    for dialect, entry in DIALECTS.items()
    if (dialect not in ("cisco-ios", "sonic") or plan in ONE_VLAN)
    and (entry.floods_by_port or plan not in ("renamed", "static"))
]


def plan_called(name: str) -> Plan:
    return make_plan(scenario_of(PLANS[name]))


def audited(files: dict[str, str]) -> Audit:
    return audit(read_network(files))


def files_of(name: str, dialect: str) -> dict[str, str]:
    plan = plan_called(name)
    pauses = "keep" if dialect == "sonic" else "on" if plan.deadlock_free else "off"
    return export_plan(plan, Options(dialect, flow_control=pauses)).files  # type: ignore[arg-type]


@pytest.mark.parametrize(("name", "dialect"), TRIPS)
def test_what_was_exported_has_the_verdict_of_its_plan(name, dialect):
    plan, found = plan_called(name), audited(files_of(name, dialect))
    hosts = plan.topology.host_count
    assert (found.delivered, found.pairs, found.looping_vlans) == (hosts * (hosts - 1),) * 2 + ((),)
    assert found.deadlock_free == plan.deadlock_free
    assert [finding.kind for finding in found.findings] == ([] if plan.deadlock_free else ["deadlock"])
    if not plan.deadlock_free:
        (finding,) = found.findings
        witness = plan.violations[0].witness
        assert len(finding.witness) == len(witness)
        assert {place.split(":")[0] for place in finding.witness} == {channel.split("→")[0] for channel in witness}
    assert audit(found.network, pauses=False).has_passed


FAULTS = {  # what is done to the settings of a 3×3 torus, and what must be found
    "a PVID of another VLAN": ("s1", "swp1", {"pvid": 4000, "members": {4000}, "untagged": {4000}}, {"doubt"}),
    "a tagged host port": ("s1", "swp1", {"untagged": set()}, {"cut", "broadcast"}),
    "a trunk without one VLAN": ("s1", "swp2", {"less": 10}, {"cut", "broadcast"}),
    "a trunk with a VLAN too many at both ends": ("s1", "swp3", {"every": True}, {"loop", "broadcast"}),
    "a port that is shut": ("s2", "swp3", None, {"cut", "broadcast"}),
    "a host's port that is shut": ("s2", "swp1", None, {"doubt"}),
    "an entry to the wrong port": ("s1", "entry", "swp1", {"doubt", "cut"}),
    "an entry that points back": ("s1", "entry", "swp2", {"cut"}),
    "an entry to a port that leads nowhere": ("s1", "entry", "swp9", {"cut"}),
    "a switch whose entries are gone": ("s3", "entries", None, {"doubt"}),
    "a switch that filters nothing": ("s4", "filtering", None, {"doubt"}),
    "a trunk that leaves VLANs untagged": ("s1", "swp2", {"untag": True}, {"cut"}),
    "a trunk that floods nothing": ("s1", "swp2", {"bcast_flood": False}, {"broadcast"}),
}


def broken(bridges: dict[str, Bridge], switch: str, what: str, change: object) -> dict[str, Bridge]:
    bridge = bridges[switch]
    ports, fdb = dict(bridge.ports), dict(bridge.fdb)
    if what == "entry":
        key = next(key for key in sorted(fdb) if fdb[key] == "swp3")
        fdb[key] = str(change)
    elif what == "entries":
        fdb = {}
    elif what == "filtering":
        return {**bridges, switch: replace(bridge, vlan_filtering=False)}
    elif change is None:
        del ports[what]
    else:
        assert isinstance(change, dict)
        port = ports[what]
        if "every" in change:
            vlans = frozenset(vlan for one in bridge.ports.values() for vlan in one.members)
            return {name: with_all(one, vlans) for name, one in bridges.items()}
        if "less" in change:
            port = replace(port, members=port.members - {min(port.members)})
        elif "untag" in change:
            port = replace(port, untagged=port.members)
        else:
            sets: dict[str, Any] = {
                key: frozenset(value) if isinstance(value, set) else value for key, value in change.items()
            }
            port = replace(port, **sets)
        ports[what] = port
    return {**bridges, switch: replace(bridge, ports=ports, fdb=fdb)}


def with_all(bridge: Bridge, vlans: frozenset[int]) -> Bridge:
    """Every trunk a member of every VLAN: what a network looks like whose VLANs were not pruned."""
    ports = {name: port if port.pvid else replace(port, members=vlans) for name, port in bridge.ports.items()}
    return replace(bridge, ports=ports)


def bridges_of(plan: Plan) -> tuple[dict[str, Bridge], Wiring]:
    ports = port_names("swp{}")
    macs = [host_mac(host) for host in range(plan.topology.host_count)]
    return planned_bridges(settings_of(plan), ports, macs), wiring_of(plan.topology, ports)


@pytest.mark.parametrize("what", FAULTS)
def test_a_planted_fault_is_found_with_its_witness(what):
    bridges, wiring = bridges_of(plan_called("torus"))
    switch, where, change, kinds = FAULTS[what]
    found = audit(network_of(broken(bridges, switch, where, change), wiring.cables, wiring.hosts))
    assert kinds <= {finding.kind for finding in found.findings}
    assert all(finding.sentence for finding in found.findings)
    assert all(finding.witness for finding in found.findings if finding.kind != "doubt")


def test_hosts_that_get_frames_with_a_tag_are_named():
    bridges, wiring = bridges_of(plan_called("torus"))
    found = audit(network_of(broken(bridges, "s5", "swp1", {"untagged": set()}), wiring.cables, wiring.hosts))
    others = {f"h{number}→h5" for number in range(1, 10) if number != 5}
    sentences = [finding.sentence for finding in found.findings]
    pairs = [pair for finding in found.findings if finding.kind == "cut" for pair in finding.witness if "→" in pair]
    assert set(pairs) == others
    assert all("a frame arrives with a tag" in text for text in sentences[:-1])
    assert sentences[-1].startswith("broadcasts arrive with a tag: 8 pairs h1→h5, h2→h5, ")
    assert not found.broadcasts[:, 4].any()
    assert (np.delete(found.broadcasts, 4, axis=1) == np.delete(1 - np.eye(9), 4, axis=1)).all()


@pytest.mark.parametrize("seed", range(12))
def test_pairs_and_broadcasts_go_as_the_other_walk_says(seed):
    """Bridges with settings changed by chance: each pair and broadcast against the walk that check uses."""
    draw = np.random.default_rng(seed)
    bridges, wiring = bridges_of(plan_called(["torus", "renamed", "ring"][seed % 3]))
    names, macs = list(wiring.hosts), {}
    for name, bridge in bridges.items():
        ports, fdb = dict(bridge.ports), dict(bridge.fdb)
        for port, said in bridge.ports.items():
            if draw.random() < 0.08:
                members = frozenset(vlan for vlan in said.members if draw.random() < 0.7)
                ports[port] = replace(said, members=members, untagged=said.untagged & members)
        for key in bridge.fdb:
            if draw.random() < 0.05:
                fdb[key] = str(draw.choice(list(bridge.ports)))
            elif draw.random() < 0.05:
                del fdb[key]
        bridges[name] = replace(bridge, ports=ports, fdb=fdb)
    network = network_of(bridges, wiring.cables, wiring.hosts)
    found = audit(network)
    macs = dict(zip(network.hosts, network.macs, strict=True))
    walker = Walker(bridges, wiring)
    arrive = 0
    for end in names:
        for source in names:
            if source == end:
                continue
            walk = walker.walk(source, macs[end] or "02:ff:ff:ff:ff:ff")
            arrive += walk.received.get(end) == 1 and not walk.endless
    assert found.delivered == arrive
    for row, source in enumerate(names):
        walk = walker.walk(source, BROADCAST)
        heard = [walk.received.get(end, 0) for end in names]
        circulates = [
            finding for finding in found.findings if source in finding.witness and "circulate" in finding.sentence
        ]
        assert bool(circulates) == walk.endless
        if not walk.endless:
            assert found.broadcasts[row].tolist() == heard


def plain(ports: dict[str, tuple[int | None, set[int], set[int]]], name: str) -> Bridge:
    made = {
        port: BridgePort(pvid, frozenset(tagged | untagged), frozenset(untagged))
        for port, (pvid, tagged, untagged) in ports.items()
    }
    return Bridge(name, vlan_filtering=True, stp=False, ports=made, fdb={})


def triangle(**trunks: set[int]) -> Audit:
    """Switches that learn, in a triangle, hosts in VLAN 10 (a, b) and 20 (c); VLANs of the link from each switch."""
    hosts = {"a": ("s1", "h"), "b": ("s2", "h"), "c": ("s3", "h")}
    cables = {("s1", "x"): ("s2", "y"), ("s2", "x"): ("s3", "y"), ("s3", "x"): ("s1", "y")}
    links = list(cables.items())
    cables |= {other: one for one, other in links}
    pvid = {"s1": 10, "s2": 10, "s3": 20}
    vlans = {end: trunks[one[0]] for one, other in links for end in (one, other)}
    bridges = {
        name: plain({"h": (own, set(), {own}), **{port: (None, vlans[name, port], set()) for port in "xy"}}, name)
        for name, own in pvid.items()
    }
    return audit(network_of(bridges, cables, hosts))


def test_a_broadcast_crosses_a_first_switch_that_has_no_host():
    trunk: tuple[int | None, set[int], set[int]] = (None, {10}, set())
    host: tuple[int | None, set[int], set[int]] = (10, set(), {10})
    ports = {"s1": {"x": trunk, "y": trunk}, "s2": {"h": host, "x": trunk}, "s3": {"h": host, "x": trunk}}
    cables = {("s1", "x"): ("s2", "x"), ("s1", "y"): ("s3", "x")}
    cables |= {other: one for one, other in cables.items()}
    bridges = {name: plain(some, name) for name, some in ports.items()}
    found = audit(network_of(bridges, cables, {"a": ("s2", "h"), "b": ("s3", "h")}))
    assert found.broadcasts.tolist() == [[0, 1], [1, 0]]


def test_switches_that_learn_and_hosts_of_two_vlans():
    found = triangle(s1={10, 20}, s2={20}, s3={20})
    assert (found.pairs, found.delivered, found.apart) == (2, 2, 4)
    assert found.looping_vlans == (20,)
    (loop,) = (finding for finding in found.findings if finding.kind == "loop")
    assert loop.sentence.startswith("VLAN 20: a broadcast, multicast or unknown unicast circulates for ever by ")
    assert loop.remedy.startswith("take VLAN 20 from one of these ports, such as s")
    without = triangle(s1={10, 20}, s2={20}, s3=set())
    assert [finding.sentence for finding in without.findings] == ["c shares a VLAN with no other host"]
    assert without.notes[-1].startswith("3 of 3 hosts are registered nowhere: ")
    cut = triangle(s1={20}, s2={20}, s3=set())
    assert "a→b" in next(finding for finding in cut.findings if finding.kind == "cut").witness


def test_remedies_of_a_loop_of_several_vlans_name_them_all():
    every = {10, 20}
    found = triangle(s1=every, s2=every, s3=every)
    (loop,) = (finding for finding in found.findings if finding.kind == "loop")
    assert loop.sentence.startswith("VLANs 10,20: ")
    assert loop.remedy.startswith("take these VLANs from one of these ports, such as s")
    (remedy,) = {finding.remedy for finding in found.findings if finding.kind == "cut"}
    assert remedy == "no entry says where these hosts are, so switches flood the frame into the loops above; open those"


LLDPCTL = {
    "lldp": {
        "interface": [
            {"swp2": {"chassis": {"s2": {}}, "port": {"id": {"type": "ifname", "value": "swp2"}}}},
            {"swp3": {"chassis": {"s3.example": {}}, "port": {"id": {"type": "ifname", "value": "swp2"}}}},
        ]
    }
}
IOS = """Capability codes:
    (R) Router, (B) Bridge

Device ID           Local Intf     Hold-time  Capability      Port ID
s2                  Gi1/0/2        120        B               Gi1/0/1

Total entries displayed: 1
"""
POWERCONNECT = """LLDP Remote Device Summary

Local Port  RemID   Chassis ID           Port ID            System Name
----------  ------- -------------------- ------------------ -----------------
1/g2        1       00:1E:C9:00:00:02    1/g2               s2
"""
SONIC = """LocalPort    RemoteDevice    RemotePortID    Capability    RemotePortDescr
-----------  --------------  --------------  ------------  -----------------
Ethernet4    s2              Ethernet4       BR            s1
--------------------------------------------------
Total entries displayed:  1
"""


@pytest.mark.parametrize(
    ("name", "dialect", "text", "local"),
    [
        ("ring", "linux-bridge-iproute2", json.dumps(LLDPCTL), "swp2"),
        ("tree", "cisco-ios", IOS, "GigabitEthernet1/0/2"),
        ("ring", "powerconnect-6200", POWERCONNECT, "1/g2"),
        ("tree", "sonic", SONIC, "Ethernet4"),
    ],
)
def test_cabling_by_neighbours_that_switches_have_heard(name, dialect, text, local):
    files = {file: text for file, text in files_of(name, dialect).items() if file != "cabling.csv"}
    network = read_network({**files, "s1.lldp.txt": text})
    peers = {network.places[port]: network.places[peer] for port, peer in enumerate(network.peer.tolist()) if peer >= 0}
    assert peers["s1", local][0] == "s2"


def test_hosts_are_where_no_neighbour_is():
    """LLDP tables of all switches in place of cabling.csv: the same network, whose hosts have the names of ports."""
    files = files_of("torus", "linux-bridge-iproute2")
    rows = [line.split(",") for line in files["cabling.csv"].splitlines()[1:]]
    neighbours: dict[str, list[object]] = {}
    for switch, port, peer, peer_port, _ in rows:
        if peer_port:
            neighbours.setdefault(switch, []).append(
                {port: {"chassis": {peer: {}}, "port": {"id": {"value": peer_port}}}}
            )
    heard = {f"{name}-lldp.json": json.dumps({"lldp": {"interface": rows}}) for name, rows in neighbours.items()}
    found = audited({**{file: text for file, text in files.items() if file != "cabling.csv"}, **heard})
    assert (found.has_passed, found.pairs, found.network.hosts[0]) == (True, 72, "s1:swp1")


def problems_of(files: dict[str, str]) -> list[str]:
    with pytest.raises(InputError) as caught:
        read_network(files)
    return [str(problem) for problem in caught.value.problems]


CABLING_FAULTS = [
    ("s1,swp3,s3,swp3,yes\n", "s1,swp3,s2,swp3,yes\n", "leads to"),
    ("s1,swp1,h1,,yes\n", "s1,swp1,h1,,yes\ns1,swp2,h1,,yes\n", "h1 is at s1 swp2 and at s1 swp1 as well"),
    ("s1,swp1,h1,,yes\n", "s1,swp1,h1,,yes\ns1,swp1,h9,,yes\n", "s1 swp1 leads to h1 and to h9"),
    ("s1,swp1,h1,,yes\n", "s1,swp2,h1,,yes\n", "s1 swp2 leads to a switch and to h1"),
    ("s1,swp1,h1,,yes\n", "s9,swp1,h1,,yes\n", "cabling.csv line 2: s9 has no configuration here"),
    ("s1,swp1,h1,,yes\n", "s1,swp1\n", "cabling.csv line 2: has too few cells; the file may be cut off"),
    ("s1,swp2,s2,swp2,yes\n", "s1,swp2,s1,swp2,yes\n", "s1 swp2 leads to itself"),
    ("s1,swp2,s2,swp2,yes\n", "s1,swp2,s7,swp2,yes\n", "s7 has no configuration here"),
    ("switch,port", "switch,prot", "cabling.csv line 1: lacks the columns port"),
]


@pytest.mark.parametrize(("before", "after", "told"), CABLING_FAULTS)
def test_cabling_that_contradicts_itself(before, after, told):
    files = files_of("ring3" if "ring3" in PLANS else "mesh", "linux-bridge-iproute2")
    text = files["cabling.csv"]
    if before not in text:
        before, after = (part.replace("s3,swp3", "s4,swp2") for part in (before, after))
    assert before in text
    assert any(told in problem for problem in problems_of({**files, "cabling.csv": text.replace(before, after, 1)}))


def test_files_that_tell_nothing():
    files = files_of("mesh", "linux-bridge-iproute2")
    scripts = {file: text for file, text in files.items() if file.endswith(".sh")}
    assert problems_of(scripts)[0].startswith("cabling: there is none: add cabling.csv")
    assert problems_of({"cabling.csv": files["cabling.csv"]}) == ["configurations: there are none, only cabling"]
    for text in ('{"lldp": 1}', "{", "nothing\n"):
        assert problems_of({**scripts, "s1.lldp.txt": text})[0].startswith("s1.lldp.txt")
    assert problems_of({**scripts, "s1.lldp.txt": IOS.replace("\nTotal", "torn lin\nTotal")})[0].startswith(
        "s1.lldp.txt"
    )
    broken_line = {**files, "s1.sh": files["s1.sh"].replace("vid 10 pvid", "vid 10 pvidd", 1)}
    assert problems_of(broken_line)[0].startswith("s1.sh line ")


def typed(*words: object) -> tuple[int, str]:
    found = CliRunner().invoke(app, [str(word) for word in words], catch_exceptions=False)
    return found.exit_code, found.stdout


def test_the_command(tmp_path: Path):
    scenario = tmp_path / "ring.yaml"
    scenario.write_text(PLANS["deadlock"])
    folder = tmp_path / "saved"
    assert typed("export", scenario, "-d", "powerconnect-6200", "-o", folder, "--flow-control", "off")[0] == 0
    code, text = typed("audit", folder)
    assert code == 1
    assert text.startswith("deadlock: with PAUSE or PFC these paths can deadlock: s1:1/g2 waits for ")
    flat = text.replace("\n", " ")
    assert "saved: 1 finding: 5 switches, 5 links, 5 hosts, " in flat
    assert "20 of 20 pairs arrive once, no VLANs loop, can deadlock" in flat
    assert typed("audit", folder, "--no-pauses")[0] == 0
    found = json.loads(typed("audit", folder, "--format", "json")[1])
    assert (found["schema_version"], found["delivered"], found["findings"][0]["kind"]) == (1, 20, "deadlock")
    shutil.rmtree(folder)
    with pytest.raises(InputError, match="is not a folder"):
        typed("audit", folder)


CHANNELS = {
    "cisco-ios": """no spanning-tree vlan 1-4094
vlan 10,20
interface GigabitEthernet1/0/1
 switchport mode access
 switchport access vlan {own}
interface GigabitEthernet1/0/2
 switchport mode trunk
 channel-group 1 mode active
interface GigabitEthernet1/0/3
 switchport mode trunk
 channel-group 1 mode active
interface Port-channel1
 switchport mode trunk
 switchport trunk allowed vlan {vlans}
end
""",
    "powerconnect-6200": """vlan database
vlan 10,20
exit
no spanning-tree
interface ethernet 1/g1
switchport mode access
switchport access vlan {own}
exit
interface ethernet 1/g2
channel-group 1 mode auto
exit
interface ethernet 1/g3
channel-group 1 mode auto
exit
interface port-channel 1
switchport mode trunk
switchport trunk allowed vlan add {vlans}
exit
""",
}
PORTS = {"cisco-ios": "GigabitEthernet1/0/{}", "powerconnect-6200": "1/g{}"}


def two_switches(dialect: str, vlans: str = "10,20", crossed: str = "s2") -> dict[str, str]:
    """Two switches by two cables, which are one port channel; a host on each."""
    port = PORTS[dialect].format
    rows = [("s1", 1, "h1", ""), ("s2", 1, "h2", ""), ("s1", 2, "s2", port(2)), ("s1", 3, crossed, port(3))]
    cables = "".join(f"{switch},{port(number)},{peer},{end}\n" for switch, number, peer, end in rows)
    text = CHANNELS[dialect]
    files = {
        f"{name}.txt": text.format(own=10, vlans=vlans if name == "s1" else "10,20") for name in ("s1", "s2", "s3")
    }
    if crossed == "s2":
        del files["s3.txt"]
    return {**files, "cabling.csv": f"switch,port,peer,peer_port\n{cables}"}


@pytest.mark.parametrize("dialect", CHANNELS)
def test_a_port_channel_is_one_link(dialect):
    """Two cables would be a loop; as one channel they are none, and a VLAN that it lacks cuts the hosts."""
    found = audited(two_switches(dialect))
    assert (found.has_passed, found.pairs, found.looping_vlans) == (True, 2, ())
    assert len(found.network.places) == 4  # a host's port and a channel on each
    without = audited(two_switches(dialect, vlans="20"))
    assert "cut" in {finding.kind for finding in without.findings}
    apart = {file: text.replace("channel-group 1 mode", "!") for file, text in two_switches(dialect).items()}
    if dialect == "cisco-ios":
        assert audited(apart).looping_vlans == (1, 10, 20)
    problems = problems_of(two_switches(dialect, crossed="s3"))
    assert any("leads to s3" in problem and "one of them is wrong" in problem for problem in problems)


def test_a_channel_of_which_nothing_is_said_is_a_problem():
    files = two_switches("cisco-ios")
    cut = files["s1.txt"].replace("interface Port-channel1\n switchport mode trunk\n", "interface Vlan1\n")
    cut = cut.replace(" switchport trunk allowed vlan 10,20\n", "")
    assert problems_of({**files, "s1.txt": cut})[0].startswith(
        "s1.txt: GigabitEthernet1/0/2 is part of Port-channel1, of which nothing is said"
    )


def test_a_port_channel_of_sonic():
    tables: dict[str, dict[str, dict[str, str]]] = {
        "PORT": {f"Ethernet{number}": {"admin_status": "up"} for number in (0, 4, 8)},
        "PORTCHANNEL": {"PortChannel01": {"admin_status": "up"}},
        "PORTCHANNEL_MEMBER": {"PortChannel01|Ethernet4": {}, "PortChannel01|Ethernet8": {}},
        "VLAN": {"Vlan10": {"vlanid": "10"}},
        "VLAN_MEMBER": {
            "Vlan10|Ethernet0": {"tagging_mode": "untagged"}, "Vlan10|PortChannel01": {"tagging_mode": "tagged"},
        },
    }  # fmt: skip
    rows = ["s1,Ethernet0,h1,", "s2,Ethernet0,h2,", "s1,Ethernet4,s2,Ethernet8", "s1,Ethernet8,s2,Ethernet4"]
    files = {f"{name}/config_db.json": json.dumps(tables) for name in ("s1", "s2")}
    found = audited({**files, "cabling.csv": "\n".join(["switch,port,peer,peer_port", *rows, ""])})
    assert (found.has_passed, found.pairs, len(found.network.places)) == (True, 2, 4)
    tables["PORTCHANNEL_MEMBER"]["PortChannel02|Ethernet0"] = {}
    broken = {**files, "s1/config_db.json": json.dumps(tables), "cabling.csv": "switch,port,peer,peer_port\n"}
    assert "names a port or port channel that is not there" in problems_of(broken)[0]
