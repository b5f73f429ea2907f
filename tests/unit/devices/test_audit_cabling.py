"""What cabling leaves out or names loosely is never a pass for a network that loops; nor are bridges without VLANs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from typer.testing import CliRunner

from testbed.base.errors import InputError
from testbed.devices.audit import Audit, audit
from testbed.devices.audit.read_folder import read_network
from testbed.devices.read_tables import read_sonic
from testbed.ui.cli import audit_command  # noqa: F401 - it adds its command
from testbed.ui.cli.app import app

GI = "GigabitEthernet1/0/"
ACCESS = ("switchport mode access", "switchport access vlan 10")
LINE = (f"s1,{GI}1,s2,{GI}1", f"s2,{GI}2,s3,{GI}1", f"s1,{GI}3,h1,", f"s2,{GI}3,h2,", f"s3,{GI}3,h3,")


def ios(**ports: Sequence[str]) -> str:
    text = ["no spanning-tree vlan 1-4094", "vlan 10", "!"]
    for name, lines in ports.items():
        called = name.replace("gi", f"interface {GI}").replace("po", "interface Port-channel")
        text += [called, *(f" {line}" for line in lines), "!"]
    return "\n".join([*text, "end", ""])


def cabling(*rows: str) -> str:
    return "\n".join(["switch,port,peer,peer_port", *rows, ""])


THREE = {f"s{n}.txt": ios(gi1=ACCESS, gi2=ACCESS, gi3=ACCESS) for n in (1, 2, 3)}


def found_in(files: dict[str, str]) -> Audit:
    return audit(read_network(files), pauses=False)


@pytest.mark.parametrize("peer", ["s1", "S1", "s1.example.com"])
def test_a_cable_to_a_switch_without_the_port_is_no_host(peer):
    with pytest.raises(InputError) as caught:
        read_network({**THREE, "cabling.csv": cabling(*LINE, f"s3,{GI}2,{peer},")})
    assert str(caught.value) == (
        "cabling.csv line 7: leads to s1, which has a configuration here, and does not say to which port of it"
    )


def test_neighbours_are_the_switches_of_their_names_in_any_case():
    heading = "Device ID           Local Intf     Hold-time  Capability      Port ID\n"
    tables = {
        f"s{n}.lldp.txt": heading + f"S{n % 3 + 1}                  Gi1/0/1        120        B               Gi1/0/2\n"
        for n in (1, 2, 3)
    }
    found = found_in({**THREE, **tables})
    assert [sorted(vlans) for vlans in found.circulating.values()] == [[10]] * 3


def test_a_switch_plugged_into_nothing_is_not_passed_over():
    found = found_in({**THREE, "s4.txt": THREE["s1.txt"], "cabling.csv": cabling(*LINE)})
    assert found.verdict == "not understood"
    assert found.network.unclear == ("s4 has a configuration, and nothing says what it is plugged into",)


MEMBER = ("switchport mode trunk", "channel-group 1 mode active")
OFF = (*MEMBER, "shutdown")


@pytest.mark.parametrize(
    ("first", "second", "delivered"),
    [
        ((MEMBER, MEMBER), (MEMBER, MEMBER), 2),
        ((OFF, MEMBER), (MEMBER, MEMBER), 2),
        ((OFF, MEMBER), (OFF, MEMBER), 2),
        ((OFF, MEMBER), (MEMBER, OFF), 0),
        ((OFF, OFF), (MEMBER, MEMBER), 0),
    ],
)
def test_a_port_channel_is_what_is_up_at_both_ends_of_its_cables(first, second, delivered):
    files = {
        f"s{n}.txt": ios(po1=["switchport mode trunk"], gi1=members[0], gi2=members[1], gi3=ACCESS)
        for n, members in ((1, first), (2, second))
    }
    cables = cabling(f"s1,{GI}1,s2,{GI}1", f"s1,{GI}2,s2,{GI}2", f"s1,{GI}3,h1,", f"s2,{GI}3,h2,")
    found = found_in({**files, "cabling.csv": cables})
    assert (found.delivered, found.looping_vlans) == (delivered, ())
    assert found.has_passed == (delivered == 2)


def test_a_mark_of_byte_order_is_no_part_of_the_text(tmp_path: Path):
    for file, text in {**THREE, "cabling.csv": cabling(*LINE)}.items():
        (tmp_path / file).write_text(text, "utf-8-sig")
    ran = CliRunner().invoke(app, ["audit", str(tmp_path)])
    assert ran.exit_code == 0, ran.output


PORTS = ("swp1", "swp2", "swp3")
HOSTS = ("s1,swp3,h1,", "s2,swp3,h2,", "s3,swp3,h3,")


def shown(switch: str, *, vlans: bool) -> dict[str, str]:
    """What a running bridge that does not filter VLANs shows: those of its ports decide nothing."""
    tables = {
        "bridge": [{"ifname": "br0", "linkinfo": {"info_data": {"vlan_filtering": 0, "stp_state": 0}}}],
        "link": [{"ifname": p, "master": "br0", "flags": ["UP"], "state": "forwarding"} for p in PORTS],
        "vlan": [
            {"ifname": port, "vlans": [{"vlan": 10 + n, "flags": ["PVID", "Egress Untagged"]}] if vlans else []}
            for n, port in enumerate(PORTS)
        ],
        "fdb": [],
    }
    return {f"{switch}/{name}.json": json.dumps(table) for name, table in tables.items()}


def script(switch: str) -> dict[str, str]:
    lines = ["ip link add br0 type bridge", "ip link set br0 up"]
    for port in PORTS:
        lines += [f"ip link set dev {port} master br0", f"ip link set {port} up"]
    return {f"{switch}.sh": "\n".join([*lines, ""])}


@pytest.mark.parametrize("bridge", [lambda s: shown(s, vlans=True), lambda s: shown(s, vlans=False), script])
def test_bridges_that_filter_no_vlans_carry_every_frame(bridge):
    files = {file: text for switch in ("s1", "s2", "s3") for file, text in bridge(switch).items()}
    line = cabling("s1,swp1,s2,swp1", "s2,swp2,s3,swp1", *HOSTS)
    ring = cabling("s1,swp1,s2,swp1", "s2,swp2,s3,swp1", "s3,swp2,s1,swp2", *HOSTS)
    found = found_in({**files, "cabling.csv": line})
    assert (found.delivered, found.pairs, found.looping_vlans) == (6, 6, ())
    assert {finding.kind for finding in found.findings} == {"doubt"}
    assert found_in({**files, "cabling.csv": ring}).looping_vlans


@pytest.mark.parametrize(
    ("tables", "told"),
    [
        ({"INTERFACE": {"Ethernet0": {}}}, ["Ethernet0 is routed and in a VLAN, which SONiC refuses"]),
        (
            {"PORTCHANNEL": {"PortChannel1": {"admin_status": "up", "min_links": "2"}}},
            ["min_links is 2, and 1 port of PortChannel1 is up, so it may be down; not understood"],
        ),
        ({"PORTCHANNEL": {"PortChannel1": {"admin_status": "up", "min_links": "1"}}}, []),
    ],
)
def test_ports_of_sonic_that_may_carry_nothing_are_told(tables, told):
    up = {"admin_status": "up"}
    members = {f"Vlan10|{port}": {"tagging_mode": "tagged"} for port in ("Ethernet0", "PortChannel1")}
    said = {
        "PORT": {"Ethernet0": up, "Ethernet4": up},
        "PORTCHANNEL": {"PortChannel1": up},
        "PORTCHANNEL_MEMBER": {"PortChannel1|Ethernet4": {}},
        "VLAN": {"Vlan10": {}},
        "VLAN_MEMBER": members,
        **tables,
    }
    bridge, problems = read_sonic("s1", {"s1/config_db.json": json.dumps(said)})
    assert (problems, [problem.sentence for problem in bridge.reading.unclear]) == ([], told)


LLDP = """Device ID           Local Intf     Hold-time  Capability      Port ID
{}Gi1/0/1        120        B               Gi1/0/1

Total entries displayed: 1
"""


def cut_pair(*others: str) -> dict[str, str]:
    """Two Catalysts with long names, the first of which hears the second with its name cut off."""
    text = f"no spanning-tree vlan 1-4094\nvlan 10\n!\ninterface {GI}1\n switchport mode trunk\n!\n"
    text += f"interface {GI}2\n switchport access vlan 10\n switchport mode access\n!\nend\n"
    names = ["distribution-hall-7-north", *others]
    files = {f"{name}.txt": text for name in ("s1", *names)}
    return {**files, "s1.lldp.txt": LLDP.format("distribution-hall-7-")}


def test_a_name_that_a_column_cuts_off_is_matched():
    network = read_network(cut_pair())
    assert network.links == 1
    assert {place[0] for place in network.places} == {"s1", "distribution-hall-7-north"}


def test_a_name_that_is_cut_off_and_may_be_two_is_refused():
    with pytest.raises(InputError) as refused:
        read_network(cut_pair("distribution-hall-7-south"))
    (problem,) = refused.value.problems
    assert problem.key == "s1.lldp.txt line 2"
    assert "may be distribution-hall-7-north or distribution-hall-7-south" in problem.sentence
