"""What switches save, read as the switches themselves would: their own words, spellings, defaults and damage."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from testbed.devices import DIALECTS
from testbed.devices.bridge import Bridge, BridgePort
from testbed.devices.check import OPEN_VSWITCH, recognise_dialect
from testbed.devices.read_ios import port_of, read_ios
from testbed.devices.read_lines import LineError, mac_of, vlans_of
from testbed.devices.read_open_vswitch import read_open_vswitch
from testbed.devices.read_powerconnect import ports_of, read_powerconnect
from testbed.devices.read_tables import read_csv, read_sonic
from testbed.devices.vlan_set import VLAN_0

SAVED = Path(__file__).parents[2] / "data" / "saved"
NONE: frozenset[int] = frozenset()


def port(pvid: int | None, tagged: set[int], untagged: set[int], *, filters: bool = True) -> BridgePort:
    return BridgePort(pvid, frozenset(tagged | untagged), frozenset(untagged), filters=filters)


def test_what_a_powerconnect_prints():
    text = (SAVED / "powerconnect-6248.txt").read_text()
    bridge, problems = read_powerconnect("s1", {"s1.txt": text})
    assert problems == []
    assert bridge == Bridge(
        "s1", vlan_filtering=True, stp=False,
        ports={
            "1/g1": port(10, set(), {10, 11}),
            "1/g2": port(None, {10, 11}, set()),
            "1/g3": port(None, {10}, set()),
        },
        fdb={(10, "02:00:00:00:00:01"): "1/g1", (10, "02:00:00:00:00:02"): "1/g2"},
    )  # fmt: skip


def test_what_a_catalyst_prints():
    bridge, problems = read_ios("s1", {"s1.cfg": (SAVED / "catalyst-2960.txt").read_text()})
    assert problems == []
    assert bridge == Bridge(
        "s1", vlan_filtering=True, stp=False,
        ports={
            "GigabitEthernet0/1": port(10, set(), {10}),
            "GigabitEthernet0/2": port(None, {10, 20}, set()),  # VLAN 99 was not made
            "GigabitEthernet0/3": port(20, {1, 10, 30}, {20}),
        },
        fdb={(10, "02:00:00:00:00:01"): "GigabitEthernet0/1"},
    )  # fmt: skip


def test_spanning_tree_is_on_until_it_is_switched_off():
    text = (SAVED / "powerconnect-6248.txt").read_text().replace("no spanning-tree\n", "")
    assert read_powerconnect("s1", {"s1.txt": text})[0].stp
    text = (SAVED / "catalyst-2960.txt").read_text()
    assert read_ios("s1", {"s1.txt": text.replace("vlan 1-4094", "vlan 1-29")})[0].stp


def test_spellings_of_addresses_vlans_and_ports():
    assert {mac_of(text) for text in ("0200.0000.0001", "02:00:00:00:00:01", "02-00-00-00-00-01")} == {
        "02:00:00:00:00:01"
    }
    assert set(vlans_of("10-12, 20")) == {10, 11, 12, 20}
    assert ports_of("1/g1-1/g3,1/g7") == ["1/g1", "1/g2", "1/g3", "1/g7"]
    assert ports_of("1/g1-3") == ["1/g1", "1/g2", "1/g3"]
    assert ports_of("g(1-2,5)") == ["g1", "g2", "g5"]
    assert port_of("Gi1/0/2") == port_of("GigabitEthernet 1/0/2") == "GigabitEthernet1/0/2"
    assert port_of("Te1/1/1") == "TenGigabitEthernet1/1/1"
    for wrong in ("0", "4095", "9-3", "a", "", "1-", "10,,11", "²"):
        with pytest.raises(LineError):
            vlans_of(wrong)
    for wrong in ("swp1", "1/g1-2/g3", "g(1-x)", "g()", ""):
        with pytest.raises(LineError):
            ports_of(wrong)
    for wrong in ("swp1", "G1/0/1", "Serial0/1"):
        with pytest.raises(LineError):
            port_of(wrong)
    with pytest.raises(LineError, match='"12:34" is not a MAC address'):
        mac_of("12:34")


def first_changed(text: str, changed: str) -> int:
    """Number of the first line that is not as it was."""
    lines = zip(text.splitlines(), changed.splitlines(), strict=False)
    return next(number for number, (one, other) in enumerate(lines, 1) if one != other)


POWERCONNECT_FAULTS = [
    ("switchport general pvid 10", "switchport general pvid", "\"switchport general pvid\" is not a known"),
    ("switchport general pvid 10", "switchport general pvid 5000", "\"5000\" is not a range of VLANs"),
    ("add 10-11\n", "add 10-12\n", "1/g1 is in VLAN 12, which the VLAN database does not have"),
    ("switchport mode trunk", "switchport mode trnk", "\"switchport mode trnk\" is not a known setting"),
    ("permanent ethernet 1/g2", "ethernet 1/g2 delete-on-reset", "the entry of 0200.0000.0002 is not permanent"),
    ("0200.0000.0002", "0200.0000.0001", "VLAN 10 has an entry of 02:00:00:00:00:01 already"),
    ("0200.0000.0002", "0200.0000.00", "\"0200.0000.00\" is not a MAC address"),
    ("interface ethernet 1/g3", "interface ethernet Gi3", "\"gi3\" is not the name of a port"),
    ("interface ethernet 1/g3", "interface range ethernet 1/g4-1/g3", "\"1/g4-1/g3\" runs backwards, from 4 to 3"),
    ("interface ethernet 1/g3", "interface range ethernet 1/g(4-3)", "\"1/g(4-3)\" runs backwards, from 4 to 3"),
    ("interface ethernet 1/g3", "interface port-channel x", "\"x\" is not the number of a port channel"),
    ("exit\n!\ninterface ethernet 1/g3", "--More-- or (q)uit\nexit\n!\ninterface ethernet 1/g3", "the terminal"),
]  # fmt: skip


@pytest.mark.parametrize(("before", "after", "told"), POWERCONNECT_FAULTS)
def test_a_damaged_line_of_a_powerconnect_is_told_by_number(before, after, told):
    text = (SAVED / "powerconnect-6248.txt").read_text()
    assert before in text
    changed = text.replace(before, after, 1)
    _, problems = read_powerconnect("s1", {"s1.txt": changed})
    assert any(told in str(problem) for problem in problems), problems
    if "database" not in told:
        assert any(f"line {first_changed(text, changed)}: " in str(problem) for problem in problems), problems


IOS_FAULTS = [
    ("access vlan 10", "access vlan ten", "\"ten\" is not a list of VLANs"),
    ("mode trunk\n!\ninterface GigabitEthernet0/3", "mode dynamic\n!\ninterface GigabitEthernet0/3",
     "\"switchport mode dynamic\" is not a known setting of a port"),
    ("0200.0000.0001", "0200.0000", "\"0200.0000\" is not a MAC address"),
    ("vlan 10 interface GigabitEthernet0/1", "vlan 10 drop", "an entry should be mac address-table static"),
    (" shutdown", " no", "\"no\" of what? The rest of the line is missing"),
    (" shutdown", " channel-group 1", "a port should join a port channel by channel-group NUMBER mode MODE"),
    (" shutdown", " switchport trunk allowed vlan", "\"switchport trunk allowed vlan \" is not a list of VLANs"),
]  # fmt: skip


@pytest.mark.parametrize(("before", "after", "told"), IOS_FAULTS)
def test_a_damaged_line_of_a_catalyst_is_told_with_its_number(before, after, told):
    text = (SAVED / "catalyst-2960.txt").read_text()
    assert before in text
    changed = text.replace(before, after, 1)
    _, problems = read_ios("s1", {"s1.txt": changed})
    assert any(told in str(problem) for problem in problems), problems
    if "database" not in told:
        assert any(f"line {first_changed(text, changed)}: " in str(problem) for problem in problems), problems


@pytest.mark.parametrize(
    ("file", "read"), [("powerconnect-6248.txt", read_powerconnect), ("catalyst-2960.txt", read_ios)]
)
def test_a_file_cut_off_says_so_or_lacks_lines_of_no_port(file, read):
    lines = (SAVED / file).read_text().splitlines(keepends=True)
    whole = read("s1", {"s1.txt": "".join(lines)})[0]
    for count in range(len(lines)):
        bridge, problems = read("s1", {"s1.txt": "".join(lines[:count])})
        told = [*problems, *bridge.reading.unclear]
        assert told or bridge.ports == whole.ports or bridge.fdb != whole.fdb
    bridge, problems = read("s1", {"s1.txt": "".join(lines[:26])})
    assert any("cut off" in str(problem) for problem in (*problems, *bridge.reading.unclear))


def test_a_file_of_something_else():
    for read in (read_powerconnect, read_ios):
        for text in ("", "hello\n", "\x00\x01", (Path(__file__)).read_text()):
            problems = read("s1", {"s1.txt": text})[1]
            assert any("is it another switch's?" in str(problem) for problem in problems)
        assert "is not there, so s1 cannot be checked" in str(read("s1", {})[1][0])


SONIC = {
    "PORT": {
        "Ethernet0": {"admin_status": "up"},
        "Ethernet4": {"admin_status": "up"},
        "Ethernet8": {"admin_status": "down"},
    },
    "VLAN": {"Vlan10": {"vlanid": "10"}, "Vlan20": {"vlanid": "20"}},
    "VLAN_MEMBER": {
        "Vlan10|Ethernet0": {"tagging_mode": "untagged"},
        "Vlan20|Ethernet0": {"tagging_mode": "tagged"},
        "Vlan20|Ethernet4": {"tagging_mode": "tagged"},
        "Vlan20|Ethernet8": {"tagging_mode": "tagged"},
    },
}
FDB = [{"FDB_TABLE:Vlan10:02-00-00-00-00-01": {"port": "Ethernet0", "type": "static"}, "OP": "SET"}]


def sonic(config: object, fdb: object = FDB) -> tuple[Bridge, list[str]]:
    files = {"s1/config_db.json": json.dumps(config), "s1/fdb.json": json.dumps(fdb)}
    bridge, problems = read_sonic("s1", files)
    return bridge, [str(problem) for problem in problems]


def test_what_sonic_saves():
    assert sonic({**SONIC, "DEVICE_METADATA": {"localhost": {"hwsku": "x"}}}) == (
        Bridge(
            "s1", vlan_filtering=True, stp=False,
            ports={"Ethernet0": port(10, {20}, {10}), "Ethernet4": port(None, {20}, set())},
            fdb={(10, "02:00:00:00:00:01"): "Ethernet0"},
        ),
        [],
    )  # fmt: skip
    assert sonic({**SONIC, "STP": {"GLOBAL": {"mode": "pvst"}}})[0].stp


@pytest.mark.parametrize(
    ("table", "key", "row", "told"),
    [
        ("VLAN_MEMBER", "Vlan99|Ethernet0", {"tagging_mode": "tagged"}, "names Vlan99, which is not in the table VLAN"),
        ("VLAN_MEMBER", "Vlan20|Ethernet9", {"tagging_mode": "tagged"},
         "names Ethernet9, which is not in the table PORT"),
        ("VLAN_MEMBER", "Vlanx|Ethernet0", {"tagging_mode": "tagged"}, '"Vlanx" is not a VLAN such as Vlan10'),
        ("VLAN_MEMBER", "Vlan10|Ethernet4", {}, "tagging_mode is None and should be tagged or untagged"),
        ("VLAN_MEMBER", "Vlan20|Ethernet0", {"tagging_mode": "untagged"}, "is an untagged member of several VLANs"),
        ("VLAN_MEMBER", "Vlan20|Ethernet0", "tagged", "VLAN_MEMBER is no table of keys and settings"),
    ],
)  # fmt: skip
def test_what_is_wrong_in_sonic(table, key, row, told):
    changed = {**SONIC, table: {**SONIC[table], key: row}}
    assert any(told in problem for problem in sonic(changed)[1])


def test_json_that_is_cut_off_or_something_else():
    text = json.dumps(SONIC, indent=1)
    problems = [str(read_sonic("s1", {"s1.json": text[:-40]})[1][0]), sonic([])[1][0], sonic({"PORT": {}})[1][0]]
    assert problems[0].startswith("s1.json line ")
    assert "the file may be cut off" in problems[0]
    assert problems[1] == "s1/config_db.json: should hold an object"
    assert problems[2] == "s1/config_db.json: has no table VLAN_MEMBER, so it is no config_db.json of a SONiC switch"
    assert "is not static" in sonic(SONIC, [{"FDB_TABLE:Vlan10:02-00-00-00-00-01": {"type": "dynamic"}}])[1][0]
    assert "should have a port" in sonic(SONIC, [{"FDB_TABLE:Vlan10:02-00-00-00-00-01": 1}])[1][0]


def test_tables_that_are_cut_off():
    ports = "switch,port,peer,peer_port,pvid,tagged,untagged,floods,stp,flow_control\n"
    rows = "s1,1,h1,,10,,10-11,yes,off,on\ns1,2,s2,1,,10-11,,yes,off,on\n"
    entries = "switch,vlan,mac,host,port\ns1,10,02:00:00:00:00:01,h1,1\n"
    bridge, problems = read_csv("s1", {"ports.csv": ports + rows, "mac-entries.csv": entries})
    assert (problems, bridge.ports["1"].pvid) == ([], 10)
    assert bridge.ports["2"].members == frozenset({10, 11})
    _, problems = read_csv("s1", {"ports.csv": ports + rows[:-20], "mac-entries.csv": entries})
    assert str(problems[0]) == "ports.csv line 3: has too few cells; the file may be cut off"
    _, problems = read_csv("s1", {"ports.csv": rows})
    assert [str(problem).split(" ")[0:4] for problem in problems] == [
        ["ports.csv", "line", "1:", "lacks"],
        ["mac-entries.csv:", "is", "not", "there,"],
    ]


def test_every_dialect_is_read():
    assert all(callable(dialect.read) for dialect in DIALECTS.values())


def ovs(change: tuple[str, str] = ("", ""), fdb: str = "") -> tuple[Bridge, list[str]]:
    text = (SAVED / "open-vswitch.json").read_text()
    assert change[0] in text
    bridge, problems = read_open_vswitch("s1", {"s1/ovsdb.json": text.replace(*change), "s1/fdb.txt": fdb})
    return bridge, [str(problem) for problem in problems]


def test_what_open_vswitch_has_in_its_database():
    bridge, problems = ovs(fdb=" port  VLAN  MAC                Age\n    7    10  02:00:00:00:00:01  static\n")
    assert problems == []
    assert (bridge.vlan_filtering, bridge.stp, bridge.fdb) == (True, True, {})  # port 7 is of no interface there
    every = set(range(1, VLAN_0 + 1))
    assert bridge.ports == {
        "swp1": port(10, set(), {10}),
        "swp2": port(None, {10, 20}, set()),
        "swp3": port(20, {10}, {20}),
        "bond0": port(None, {10}, set()),
        "swp6": port(VLAN_0, every - {VLAN_0}, {VLAN_0}),
        "swp7": port(30, every, set()),
    }
    assert bridge.channels == {"swp4": "bond0", "swp5": "bond0"}
    assert recognise_dialect({"s1/ovsdb.json": (SAVED / "open-vswitch.json").read_text()}) == OPEN_VSWITCH


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (('"native-tagged"', '"dot1q-tunnel"'), 'swp7 has the VLAN mode "dot1q-tunnel", which is not read'),
        (("", ""), "br0 has flood_vlans"),
        (("Port table", "Prot table"), "lacks the table Port; the file may be cut off"),
        (('{"caption":"sFlow', '{"caption"sFlow'), "s1/ovsdb.json line 19: is not JSON"),
        (('"headings":["_uuid","bond', '"headings":["bond'), "is not what ovsdb-client --format=json dump prints"),
    ],
)
def test_what_is_wrong_in_open_vswitch(change, told):
    if "flood_vlans" in told:
        tables = [json.loads(line) for line in (SAVED / "open-vswitch.json").read_text().splitlines()]
        table = next(one for one in tables if one["caption"] == "Bridge table")
        table["data"][0][table["headings"].index("flood_vlans")] = 5
        text = "\n".join(map(json.dumps, tables))
        problems = [str(problem) for problem in read_open_vswitch("s1", {"s1.json": text})[1]]
    else:
        problems = ovs(change)[1]
    assert any(told in problem for problem in problems), problems


def test_a_bridge_that_mirrors_frames_is_not_understood():
    tables = [json.loads(line) for line in (SAVED / "open-vswitch.json").read_text().splitlines()]
    table = next(one for one in tables if one["caption"] == "Bridge table")
    table["data"][0][table["headings"].index("mirrors")] = ["uuid", "one"]
    text = "\n".join(map(json.dumps, tables))
    told = [str(one) for one in read_open_vswitch("s1", {"s1.json": text})[0].reading.unclear]
    assert told == ["s1.json: br0 mirrors frames: what the port still carries that they go to is not understood"]


def test_a_bridge_whose_rules_come_from_elsewhere_is_no_switch():
    tables = [json.loads(line) for line in (SAVED / "open-vswitch.json").read_text().splitlines()]
    table = next(one for one in tables if one["caption"] == "Bridge table")
    row = table["data"][0]
    row[table["headings"].index("fail_mode")] = "secure"
    text = "\n".join(map(json.dumps, tables))
    assert "takes its rules from a controller" in str(read_open_vswitch("s1", {"s1.json": text})[1][0])
    row[table["headings"].index("fail_mode")] = ["set", []]
    other = [*row]
    other[table["headings"].index("name")] = "br1"
    other[table["headings"].index("_uuid")] = ["uuid", "another"]
    table["data"] = [row, other]
    text = "\n".join(map(json.dumps, tables))
    assert "should have one bridge, or one that is called s1, and has br0, br1" in str(
        read_open_vswitch("s1", {"s1.json": text})[1][0]
    )
    assert read_open_vswitch("br1", {"br1.json": text})[1] == []
