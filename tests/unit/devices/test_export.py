"""Exports: what is refused and how, names of ports, addresses of hosts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from testbed.base.errors import InputError, VerificationError
from testbed.devices import Options, compare_files, export_plan
from testbed.devices.export import DIALECTS
from testbed.devices.port_names import format_ranges, port_names
from testbed.devices.reserved_vlans import RESERVED
from testbed.devices.settings import settings_of
from testbed.planning import Plan, make_plan
from tests.fabrics import plan_of, scenario_of


def plan(assignment: str | dict[str, Any] = "fixed", routing: dict[str, Any] | None = None, **topology: Any) -> Plan:
    kind = assignment if isinstance(assignment, dict) else {"kind": assignment}
    blocks = {"topology": topology or {"kind": "ring", "switches": 3}, "assignment": kind, "routing": routing or {}}
    return make_plan(scenario_of(blocks))


def refusal(made: Plan, dialect: str, **options: Any) -> list[str]:
    with pytest.raises(InputError) as caught:
        export_plan(made, Options(dialect, **options))
    return [str(problem) for problem in caught.value.problems]


def test_ios_says_which_port_and_why():
    sentence = "and an IOS port leaves one VLAN untagged, its access VLAN or the native VLAN of its trunk"
    assert refusal(plan(), "cisco-ios") == [
        f"s{n} GigabitEthernet1/0/1 (to h{n}): is an untagged member of 3 VLANs with PVID {pvid} ({other} is one of "
        f"them), {sentence}"
        for n, pvid, other in ((1, 10, 11), (2, 11, 10), (3, 12, 10))
    ]


def test_learned_addresses_are_not_exported_as_registered_ones():
    told = refusal(plan({"kind": "fixed", "registration": "learning"}), "linux-bridge-iproute2")
    assert len(told) == 1
    assert told[0].endswith(
        "assignment.registration: lets switches learn addresses, and exports register them; use registration: static"
    )


def test_only_some_ports_are_named_where_many_are_refused():
    told = refusal(plan_of("torus", sizes=[4, 4]), "sonic", flow_control="keep")
    assert len(told) == 9
    assert told[0] == (
        "s1 Ethernet0 (to h1): is an untagged member of 8 VLANs with PVID 10 (11 is one of them), and SONiC has no "
        "PVID of its own, a port's one untagged VLAN is its PVID"
    )
    assert told[-1] == "dialect: 8 more that sonic cannot express; nothing was written"


def test_sonic_has_no_802_3x():
    assert refusal(plan_of("tree", switches=3), "sonic") == [
        'flow_control: "on" cannot be expressed: SONiC\'s configuration has priority flow control (PFC) and no '
        "802.3x pauses; use keep"
    ]


def one_vlan(vlan: int) -> Plan:
    tree = {"topology": {"kind": "flat", "hosts": 2}, "assignment": {"kind": "fixed", "first_vlan": vlan}}
    return make_plan(scenario_of(tree))


@pytest.mark.parametrize(("dialect", "vlan", "sentence"), [
    ("cisco-ios", 1002, "is in VLAN 1002; IOS reserves 1002 to 1005, so choose another first_vlan"),
    ("cisco-ios", 1005, "is in VLAN 1005; IOS reserves 1002 to 1005, so choose another first_vlan"),
    ("powerconnect-6200", 4094, "is in VLAN 4094; this family reserves 4094, so choose another first_vlan"),
    ("sonic", 1, "is in VLAN 1; SONiC reserves 1, so choose another first_vlan"),
])  # fmt: skip
def test_vlans_that_switches_keep_for_themselves_are_refused(dialect: str, vlan: int, sentence: str):
    told = refusal(one_vlan(vlan), dialect, flow_control="keep")
    assert [text.partition(": ")[2] for text in told] == [sentence] * 2
    for beside in (kept := RESERVED[dialect]).first - 1, kept.last + 1:
        if 1 <= beside <= 4094:
            assert export_plan(one_vlan(beside), Options(dialect, flow_control="keep")).files


@pytest.mark.parametrize("dialect", sorted({*DIALECTS} - {*RESERVED}))
def test_other_dialects_take_every_vlan_of_802_1q(dialect: str):
    for vlan in (2, 1002, 4094):
        assert export_plan(one_vlan(vlan), Options(dialect, flow_control="keep")).files


def test_the_page_has_the_reserved_vlans_with_their_sources():
    page = (Path(__file__).parents[3] / "docs" / "real-switches.md").read_text(encoding="utf-8")
    for dialect, kept in RESERVED.items():
        assert f"| `{dialect}` | {kept.text} | {kept.source} |" in page


def test_the_default_vlan_of_a_powerconnect_is_not_tagged():
    told = refusal(plan({"kind": "fixed", "first_vlan": 1}), "powerconnect-5300")
    assert told[0] == (
        "s1 g2 (to s2): is a tagged member of VLAN 1, the default VLAN, which these switches do not tag; set "
        "assignment.first_vlan: 2 or higher"
    )


def test_a_switch_without_ports_enough():
    crowd: dict[str, Any] = {"kind": "flat", "hosts": 30}
    made = plan(**crowd)
    assert refusal(made, "powerconnect-5300") == [
        "dialect='powerconnect-5300': s1 needs 30 ports and a PC5324 has 24; PC6248 would do"
    ]
    assert "for a PC6248." in export_plan(made, Options("powerconnect-6200")).files["README.md"]
    assert (
        export_plan(plan(**{**crowd, "hosts": 24}), Options("powerconnect-5300"))
        .files["README.md"]
        .count("All 24 ports are taken: manage the switches through their serial consoles.")
    )


def test_the_switch_model_of_the_scenario_must_speak_the_dialect():
    blocks = {"topology": {"kind": "ring", "switches": 3}, "switch_model": "PC6224"}
    made = make_plan(scenario_of(blocks))
    assert refusal(made, "powerconnect-5300") == [
        "test.yaml: switch_model: is PC6224, which does not speak powerconnect-5300; use dialect='powerconnect-6200', "
        "or another model"
    ]
    assert "for a PC6224." in export_plan(made, Options("powerconnect-6200")).files["README.md"]
    other = make_plan(scenario_of({**blocks, "switch_model": "SF-420"}))
    assert refusal(other, "powerconnect-6200")[0].endswith("use dialect='csv', or another model")


def test_pauses_need_a_plan_that_cannot_deadlock():
    blocks = {"topology": {"kind": "ring", "switches": 6}, "routing": {"ring": "shortest"}, "expect": "deadlock"}
    made = make_plan(scenario_of(blocks))
    assert refusal(made, "linux-bridge-iproute2") == [
        "flow_control: with pauses this plan can deadlock, since its channel dependencies have a cycle; use off, or "
        "a routing without one"
    ]
    assert (
        "ethtool -A swp1 rx off tx off"
        in export_plan(made, Options("linux-bridge-iproute2", flow_control="off")).files["s1.sh"]
    )
    with pytest.raises(VerificationError):
        export_plan(make_plan(scenario_of({**blocks, "expect": "deadlock_free"})), Options("csv"))


def test_openflow_and_aggregated_links_are_no_vlans():
    assert refusal(plan("openflow"), "csv") == [
        "test.yaml: the assignment openflow decides by in-port and priority, which no VLAN or MAC table holds; use "
        "fixed, renamed or static"
    ]
    blocks = {"topology": {"kind": "ring", "switches": 4, "parallel_links": 2}, "links": {"aggregate": True}}
    assert refusal(make_plan(scenario_of(blocks)), "linux-networkd") == [
        "test.yaml: port 2 of s1 is one of 2 aggregated links, and no dialect writes link aggregation yet; leave "
        "links.aggregate out"
    ]


def test_switches_that_flood_to_all_members():
    torus: dict[str, Any] = {"kind": "torus", "sizes": [5, 5], "parallel_links": 2}
    told = refusal(plan("renamed", **torus), "powerconnect-5300")
    assert told == [
        "dialect='powerconnect-5300': the plan sends broadcasts along a tree, and these switches flood them to all "
        "members of a local VLAN: 3.24 copies of each at a switch on average, 4 at most. Accept that with "
        "floods='members', or use a dialect that can keep floods from a port (linux-bridge-iproute2, linux-networkd, "
        "ifupdown2)"
    ]
    accepted = export_plan(plan("renamed", **torus), Options("powerconnect-5300", floods="members"))
    assert accepted.manifest["floods"] == "members"
    endless = plan("static", {"kind": "dor"}, kind="mesh", sizes=[3, 3])
    for floods in ("plan", "members"):
        assert "would circulate forever" in refusal(endless, "powerconnect-5300", floods=floods)[0]
    assert "would circulate forever" in refusal(endless, "linux-bridge-iproute2", floods="members")[0]
    silent = plan({"kind": "renamed", "flood": "none"}, kind="mesh", sizes=[3, 3])
    assert "the plan drops broadcasts" in refusal(silent, "powerconnect-6200")[0]


def test_members_are_those_of_the_paths_where_switches_flood():
    """Without floods confined to ports, members that only broadcasts need would let these into loops."""
    made = plan("renamed", kind="mesh", sizes=[3, 3])
    exported = export_plan(made, Options("powerconnect-5300"))
    middle = next(switch for switch in settings_of(made, "members") if switch.name == "s5")
    for port in middle.ports:
        assert (
            f"switchport general allowed vlan add {format_ranges(port.untagged)} untagged" in exported.files["s5.txt"]
        )
    assert settings_of(made, "members") != settings_of(made)


def test_an_unknown_dialect():
    assert refusal(plan(), "linux-bridge")[0].startswith(
        'dialect: "linux-bridge" is none of linux-bridge-iproute2, linux-networkd, ifupdown2'
    )


def test_a_plan_of_too_many_entries():
    """Counted, not listed."""
    told = refusal(plan_of("torus", {"kind": "dor"}, sizes=[40, 40]), "linux-bridge-iproute2")
    assert told[0].startswith("test.yaml: has ")
    assert told[0].endswith("MAC entries and up to 3,000,000 are written down; export a smaller fabric")


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("swp{}", ["swp1", "swp2", "swp3"]),
        ("Gi0/{0}", ["Gi0/0", "Gi0/1", "Gi0/2"]),
        ("Ethernet{0+4}", ["Ethernet0", "Ethernet4", "Ethernet8"]),
        ("sw1p{5+1}s0", ["sw1p5s0", "sw1p6s0", "sw1p7s0"]),
    ],
)
def test_names_of_ports(pattern, names):
    assert [port_names(pattern).name_port(port) for port in (1, 2, 3)] == names


@pytest.mark.parametrize("pattern", ["swp", "swp{}{}", "swp{x}", "swp {}", "swp{0+0}", "swp{};reboot", "$(id){}"])
def test_what_is_no_pattern_of_names(pattern):
    with pytest.raises(InputError, match=r"ports: should be a name with one number in braces, such as swp\{\}"):
        port_names(pattern)


def test_linux_knows_names_of_fifteen_letters():
    assert refusal(plan(), "linux-bridge-iproute2", ports="TenGigabitEther{}") == [
        'ports: "TenGigabitEther1" has 16 characters and Linux takes names of up to 15; shorten it'
    ]


def test_addresses_of_ones_own():
    made = plan()
    macs = {"h1": "aa:00:00:00:00:01", "h2": "aa:00:00:00:00:02", "h3": "aa:00:00:00:00:03"}
    exported = export_plan(made, Options("linux-bridge-iproute2", macs=macs))
    assert "fdb add aa:00:00:00:00:03 dev swp3 master static vlan 10" in exported.files["s1.sh"]
    assert "02:00:00:00" not in "".join(exported.files.values())
    assert compare_files(made, exported.manifest, exported.files).is_same
    wrong = {"h1": "aa:00:00:00:00:01", "h2": "aa:00:00:00:00:01", "h4": "ab:00:00:00:00:04", "h5": "aa-00"}
    assert refusal(made, "csv", macs=wrong) == [
        'macs: names h4, which is not a host of test. Did you mean "h3"?',
        'macs: names h5, which is not a host of test. Did you mean "h3"?',
        "macs: lacks h3",
        "macs: h2 and h1 have the same address aa:00:00:00:00:01",
        "macs: h4 has ab:00:00:00:00:04, a group address; a host needs a unicast one",
        'macs: h5 has "aa-00", which is not an address like 02:00:00:00:00:01',
    ]


def test_a_link_that_no_path_takes_is_shut():
    made = make_plan(scenario_of({"topology": {"kind": "ring", "switches": 4}, "routing": {"kind": "stp"}}))
    files = {
        dialect: export_plan(made, Options(dialect)).files
        for dialect in ("linux-bridge-iproute2", "powerconnect-5300", "cisco-ios", "linux-networkd")
    }
    idle = next((switch.name, port.number) for switch in settings_of(made) for port in switch.ports if not port.used)
    name, port = idle
    assert f"link set dev swp{port} down" in files["linux-bridge-iproute2"][f"{name}.sh"]
    assert f"link set dev swp{port} master" not in files["linux-bridge-iproute2"][f"{name}.sh"]
    assert "ActivationPolicy=always-down" in files["linux-networkd"][f"{name}/20-swp{port}.network"]
    opened = files["powerconnect-5300"][f"{name}.txt"].split("interface range ethernet ")[-1]
    assert str(port) not in opened.splitlines()[0].replace(f"g(1-{port - 1})", "")
    block = files["cisco-ios"][f"{name}.txt"].split(f"interface GigabitEthernet1/0/{port}\n")[-1].split("exit")[0]
    assert "no shutdown" not in block
    assert ",no\n" in files["linux-bridge-iproute2"]["cabling.csv"]


ONE_WAY: dict[str, Any] = {"kind": "myrinet_clos", "leaves": 2, "roots": 2, "hosts_per_leaf": 1}


def test_ports_where_only_broadcasts_arrive_get_a_vlan():
    """Two leaves send to each other over different roots, and broadcasts take one of these both ways."""
    made = plan("renamed", **ONE_WAY)
    wide, narrow = settings_of(made), settings_of(made, "members")
    added = [set(one.vlans) - set(other.vlans) for one, other in zip(wide, narrow, strict=True)]
    assert sorted(map(len, added)) == [0, 0, 1, 1]
    for switch, vlans in zip(wide, added, strict=True):
        assert {port.pvid for port in switch.ports} >= vlans
        assert not vlans & set(switch.table.vlan.tolist())
    exported = export_plan(made, Options("linux-bridge-iproute2"))
    assert compare_files(made, exported.manifest, exported.files).is_same


def test_no_identifier_left_for_that_vlan():
    last = max(vlan for switch in settings_of(plan("renamed", **ONE_WAY), "members") for vlan in switch.vlans)
    made = plan({"kind": "renamed", "first_vlan": 4094 - (last - 10)}, **ONE_WAY)
    (told,) = refusal(made, "linux-bridge-iproute2")
    assert told.startswith("assignment.first_vlan: s")
    assert told.endswith(
        "needs one more local VLAN, for ports by which only broadcasts arrive, and 802.1Q has identifiers up to 4094; "
        "start lower, or use flood: none"
    )
