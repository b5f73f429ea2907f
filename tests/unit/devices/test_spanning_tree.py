"""Computed spanning trees: beside bridges that exchange BPDUs until nothing changes, and in whole networks."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import permutations
from random import Random

import pytest

from testbed.base.errors import InputError
from testbed.devices.audit import Audit, audit
from testbed.devices.audit.read_folder import read_network
from testbed.devices.audit.tree import Order, TreeBridge, TreePort, compute_tree, list_orders
from testbed.devices.audit.what_if import list_links, require_known_states, take_away
from testbed.devices.stp_settings import cost_by_speed, speed_of
from testbed.devices.vlan_set import VlanSet


@dataclass
class Drawn:
    """A random network: bridges, their addresses, and ports on segments."""

    bridges: dict[str, TreeBridge]
    macs: dict[str, str]
    ports: list[TreePort]
    numbers: dict[tuple[str, str], int]


def draw(chance: Random, *, regions: bool) -> Drawn:
    names = [f"b{number}" for number in range(chance.randint(1, 7))]
    kinds = ["A", "B", None] if regions else [None]
    bridges = {
        name: TreeBridge(chance.choice((4096, 32768, 32768)), chance.choice(kinds) or f"own {name}") for name in names
    }
    addresses = chance.sample(range(1000), len(names))
    macs = {name: f"{address:012x}" for name, address in zip(names, addresses, strict=True)}
    ports: list[TreePort] = []
    for segment in range(chance.randint(0, 12)):
        members = 2 if regions or chance.random() < 0.9 else 3  # a switch that only passes BPDUs on joins three
        for name in chance.choices(names, k=members):
            place = (name, f"p{len(ports)}")
            ports.append(TreePort(place, segment, chance.choice((1, 2, 4, 19)), chance.choice((128, 128, 64))))
    return Drawn(bridges, macs, ports, {port.place: number for number, port in enumerate(ports)})


def exchange(net: Drawn) -> tuple[dict[str, str], dict[str, tuple[str, str]], set[tuple[str, str]]]:
    """Let every bridge send its BPDU on every port until no one learns anything: roots, root ports, blocked ports.

    Every bridge begins as its own root. A round takes what the round before has sent, and forgets all else, so that
    nothing wrong is remembered. Vectors are those of 802.1Q: root, external cost, regional root, internal cost, bridge,
    port.
    """
    me = {name: (bridge.priority, net.macs[name]) for name, bridge in net.bridges.items()}
    vector = {name: (me[name], 0, me[name], 0) for name in me}
    port_id = {port.place: (port.priority, net.numbers[port.place]) for port in net.ports}
    root_port: dict[str, tuple[str, str]] = {}
    for _ in range(4 * len(me) + 4):
        sent = {port.place: (*vector[port.place[0]], me[port.place[0]], port_id[port.place]) for port in net.ports}
        after, ways = {}, {}
        for name, own in me.items():
            best = (own, 0, own, 0, own, (0, 0), (0, 0))
            for port in (one for one in net.ports if one.place[0] == name):
                for other in net.ports:
                    if other.segment != port.segment or other.place[0] == name:
                        continue
                    root, outer, region_root, inner, bridge, number = sent[other.place]
                    if net.bridges[other.place[0]].region == net.bridges[name].region:
                        heard = (root, outer, region_root, inner + port.cost, bridge, number, port_id[port.place])
                    else:
                        heard = (root, outer + port.cost, own, 0, bridge, number, port_id[port.place])
                    if heard < best:
                        best, ways[name] = heard, port.place
            after[name] = best[:4]
        vector, root_port = after, ways
    blocked = set()
    for port in net.ports:
        rivals = [
            (*vector[other.place[0]], me[other.place[0]], port_id[other.place])
            for other in net.ports
            if other.segment == port.segment
        ]
        mine = (*vector[port.place[0]], me[port.place[0]], port_id[port.place])
        if mine != min(rivals) and root_port.get(port.place[0]) != port.place:
            blocked.add(port.place)
    named = {identity: name for name, identity in me.items()}
    return {name: named[vector[name][0]] for name in me}, root_port, blocked


@pytest.mark.parametrize("regions", [False, True])
def test_the_computed_tree_is_what_exchanged_bpdus_agree_on(regions):
    """A thousand random networks in all, some with MST regions."""
    seen = 0
    for number in range(500):
        net = draw(Random(f"tree {regions} {number}"), regions=regions)
        tree = compute_tree(net.ports, net.bridges, Order(net.macs, net.numbers))
        roots, root_ports, blocked = exchange(net)
        assert [{**tree.roots}, {**tree.root_ports}, {*tree.blocked}] == [roots, root_ports, blocked], (
            f"network {number}"
        )
        seen += bool(blocked)
    assert seen > 200


def test_every_tree_that_some_addresses_make_is_listed():
    """Of unknown addresses each order is a case: those of all permutations, and no others."""
    for number in range(60):
        net = draw(Random(f"unknown {number}"), regions=number % 2 == 1)
        if len(net.bridges) > 5:
            continue
        compute = partial(compute_tree, net.ports, net.bridges)
        listed = {tree.blocked for _, tree in list_orders(compute, {}, net.numbers)}
        wanted = set()
        for order in permutations(net.bridges):
            macs = {name: f"{place:012x}" for place, name in enumerate(order)}
            wanted.add(compute_tree(net.ports, net.bridges, Order(macs, net.numbers)).blocked)
        assert listed == wanted, f"network {number}"


GI = "GigabitEthernet1/0/"
TRUNK = ["switchport mode trunk"]


def access(vlan: int) -> list[str]:
    return ["switchport mode access", f"switchport access vlan {vlan}", "spanning-tree portfast"]


def ios(ports: Mapping[int, Sequence[str]], *lines: str) -> str:
    """A Catalyst's configuration, with the spanning tree protocol as it comes."""
    text = ["spanning-tree mode rapid-pvst", *lines]
    for number, said in ports.items():
        text += [f"interface {GI}{number}", *(f" {line}" for line in said), "!"]
    return "\n".join([*text, "end", ""])


def cabling(*rows: str) -> str:
    return "\n".join(["switch,port,peer,peer_port", *rows, ""])


def ring(count: int = 3) -> str:
    """Port 1 of each leads to port 2 of the next, port 3 to a host."""
    rows = [f"s{n},{GI}1,s{n % count + 1},{GI}2" for n in range(1, count + 1)]
    return cabling(*rows, *(f"s{n},{GI}3,h{n}," for n in range(1, count + 1)))


def found_in(texts: Sequence[str], cables: str | None = None, **more: str) -> Audit:
    files = {f"s{n}.txt": text for n, text in enumerate(texts, 1)}
    files |= {name.replace("_", "."): text for name, text in more.items()}
    return audit(read_network({**files, "cabling.csv": cables or ring(len(texts))}))


def blocked_in(found: Audit, case: int = 0) -> dict[str, str]:
    """Port → VLANs in which it is blocked."""
    vlans = found.network.trees.cases[case].vlans
    return {
        f"{switch}:{port.removeprefix(GI)}": str(VlanSet.from_ids(there)) for (switch, port), there in vlans.items()
    }


def notes_with(found: Audit, words: str) -> list[str]:
    return [note for note in found.notes if words in note]


def test_a_redundant_network_with_a_spanning_tree_is_sound():
    """Which Catalyst is root is not known, and makes no difference: all links carry all VLANs."""
    found = found_in([ios({1: TRUNK, 2: TRUNK, 3: access(10)}, "vlan 10")] * 3)
    assert (found.verdict, found.delivered, found.looping_vlans) == ("pass", 6, ())
    assert notes_with(found, "any tree would carry the same frames")


def test_priorities_and_costs_decide_what_is_blocked():
    """s2 is root in VLAN 10, s3 in VLAN 20; in VLAN 10 s3 avoids its dear port."""
    common = {1: TRUNK, 2: TRUNK, 3: access(10)}
    dear = {**common, 2: [*TRUNK, "spanning-tree vlan 10 cost 100"]}
    found = found_in([
        ios(common, "vlan 10,20", "spanning-tree vlan 1 priority 4096"),
        ios(common, "vlan 10,20", "spanning-tree vlan 10 priority 4096"),
        ios(dear, "vlan 10,20", "spanning-tree vlan 20 root primary"),
    ])  # fmt: skip
    roots = {str(tree.vlans): tree.roots for tree in found.network.trees.cases[0].trees}
    assert roots == {"VlanSet({1})": ("s1",), "VlanSet({10})": ("s2",), "VlanSet({20})": ("s3",)}
    # s3's port 2 leads to s2; in VLAN 1 s2 and s3 are as far from the root, and either may be designated
    assert "10" in blocked_in(found)["s3:2"]
    assert found.verdict == "pass"


def test_one_tree_for_all_cuts_a_vlan_that_trunks_are_pruned_of():
    """MSTP with one instance blocks a link for all VLANs: VLAN 20, which the others do not carry, is cut."""
    one = {1: TRUNK, 2: TRUNK, 3: access(20)}
    pruned = [*TRUNK, "switchport trunk allowed vlan 1,10"]
    texts = [
        ios({1: [*TRUNK, "switchport trunk allowed vlan 1,10,20"], 2: pruned, 3: access(20)}, "vlan 10,20"),
        ios({**one, 1: pruned}, "vlan 10,20"),
        ios({1: pruned, 2: pruned, 3: access(10)}, "vlan 10,20", "spanning-tree vlan 1-4094 priority 0",
            "spanning-tree mst 0 priority 0"),
    ]  # fmt: skip
    assert found_in(texts).delivered == 2
    common = found_in([text.replace("rapid-pvst", "mst") for text in texts])
    assert (common.delivered, common.verdict) == (0, "fail")
    assert blocked_in(common)


def test_every_case_is_followed_until_addresses_are_given():
    """Only the link from s1 to s2 carries VLAN 20, and the root of the common tree decides whether it is blocked."""
    pruned = [*TRUNK, "switchport trunk allowed vlan 1,10"]
    whole = [*TRUNK, "switchport trunk allowed vlan 1,10,20"]
    texts = [
        ios({1: whole, 2: pruned, 3: access(20)}, "vlan 10,20"),
        ios({1: pruned, 2: whole, 3: access(20)}, "vlan 10,20"),
        ios({1: pruned, 2: pruned, 3: access(20)}, "vlan 10,20"),
    ]
    texts = [text.replace("rapid-pvst", "mst") for text in texts]
    cables = ring(3).replace(f"s3,{GI}3,h3,\n", "")
    found = found_in(texts, cables)
    cut = [finding for finding in found.findings if finding.kind == "cut"]
    assert found.verdict == "fail"
    assert all("if the address of s3 is lower than" in finding.sentence for finding in cut)
    assert notes_with(found, "trees are possible")
    macs = "switch,mac\ns1,02:00:00:00:00:01\ns2,02:00:00:00:00:02\ns3,02:00:00:00:00:03\n"
    assert found_in(texts, cables, bridges_csv=macs).verdict == "pass"
    last = macs.replace(":03", ":00")
    assert found_in(texts, cables, bridges_csv=last).delivered == 0


def test_a_vlan_without_a_tree_loops_and_the_others_do_not():
    text = ios({1: TRUNK, 2: TRUNK, 3: access(10)}, "vlan 10,20", "no spanning-tree vlan 20")
    assert found_in([text] * 3).looping_vlans == (20,)


def test_a_switch_without_the_protocol_passes_bpdus_on():
    """One of three switches without it: the other two still hear each other through it, and cut the ring."""
    ports = {1: TRUNK, 2: TRUNK, 3: access(10)}
    off = ios(ports, "vlan 10", "no spanning-tree vlan 1-4094")
    on = ios(ports, "vlan 10")
    assert found_in([on, on, off]).verdict == "pass"
    assert found_in([off, off, off]).looping_vlans == (1, 10)


def test_a_filter_of_bpdus_between_switches_lets_the_ring_loop():
    ports = {1: [*TRUNK, "spanning-tree bpdufilter enable"], 2: TRUNK, 3: access(10)}
    on = ios({**ports, 1: TRUNK}, "vlan 10")
    found = found_in([ios(ports, "vlan 10"), on, on])
    assert found.looping_vlans == (1, 10)
    assert any("BPDU filter hides" in finding.sentence for finding in found.findings)


@pytest.mark.parametrize(
    ("port", "switch"),
    [
        (["spanning-tree bpduguard enable"], []),
        (["spanning-tree portfast trunk"], ["spanning-tree portfast bpduguard default"]),
    ],
)
def test_bpdu_guard_shuts_a_port_between_switches(port, switch):
    ports = {1: [*TRUNK, *port], 2: TRUNK, 3: access(10)}
    found = found_in([ios(ports, "vlan 10", *switch), *[ios({**ports, 1: TRUNK}, "vlan 10")] * 2])
    assert any("BPDU guard shuts s1 GigabitEthernet1/0/1" in finding.sentence for finding in found.findings)
    assert (found.delivered, found.looping_vlans) == (6, ())  # the ring is a line now
    pair = cabling(f"s1,{GI}1,s2,{GI}2", f"s1,{GI}3,h1,", f"s2,{GI}3,h2,")
    texts = [ios(ports, "vlan 10", *switch), ios({**ports, 1: TRUNK}, "vlan 10")]
    assert found_in(texts, pair).delivered == 0


def test_portfast_at_a_trunk_does_nothing_unless_it_says_trunk():
    ports = {1: [*TRUNK, "spanning-tree portfast"], 2: TRUNK, 3: access(10)}
    texts = [
        ios(ports, "vlan 10", "spanning-tree portfast bpduguard default"),
        *[ios({**ports, 1: TRUNK}, "vlan 10")] * 2,
    ]
    assert found_in(texts).verdict == "pass"
    told = [text.replace("portfast\n!", "portfast trunk\n!") for text in texts]
    assert notes_with(found_in([told[0].replace("bpduguard default", "bpdufilter default"), *told[1:]]), "one to hosts")


def test_native_vlans_that_differ_are_blocked_by_pvst():
    ports = {1: [*TRUNK, "switchport trunk native vlan 10"], 2: TRUNK, 3: access(10)}
    found = found_in([ios(ports, "vlan 10"), *[ios({**ports, 1: TRUNK}, "vlan 10")] * 2])
    assert any("PVST+ blocks both VLANs there" in finding.sentence for finding in found.findings)
    assert found.delivered == 6  # the other way round is left


def test_root_guard_keeps_a_better_root_away():
    pair = cabling(f"s1,{GI}1,s2,{GI}1", f"s1,{GI}3,h1,", f"s2,{GI}3,h2,")
    texts = [
        ios({1: [*TRUNK, "spanning-tree guard root"], 3: access(10)}, "vlan 10"),
        ios({1: TRUNK, 3: access(10)}, "vlan 10", "spanning-tree vlan 1-4094 priority 0"),
    ]
    assert found_in(texts, pair).delivered == 0
    texts[1] = texts[1].replace("priority 0", "priority 61440")
    assert found_in(texts, pair).delivered == 2


def test_trees_are_computed_again_without_a_link_or_a_switch():
    text = ios({1: TRUNK, 2: TRUNK, 3: access(10)}, "vlan 10")
    network = read_network({**{f"s{n}.txt": text for n in range(1, 5)}, "cabling.csv": ring(4)})
    for place in list_links(network):
        left = audit(take_away(network, place))
        assert (left.delivered, left.looping_vlans, left.verdict) == (12, (), "pass")
    assert audit(take_away(network, ("s2", ""))).delivered == 6


def test_mst_instances_have_trees_of_their_own():
    region = ["spanning-tree mst configuration", " name hall", " instance 1 vlan 10", " instance 2 vlan 20"]
    ports = {1: TRUNK, 2: TRUNK, 3: access(10)}
    texts = [ios(ports, "vlan 10,20", *region, "!", f"spanning-tree mst {n - 1} priority 4096") for n in (1, 2, 3)]
    found = found_in([text.replace("rapid-pvst", "mst") for text in texts])
    trees = [(str(tree.vlans), tree.roots) for tree in found.network.trees.cases[0].trees]
    assert trees[1:] == [("VlanSet({10})", ("s2",)), ("VlanSet({20})", ("s3",))]
    assert trees[0][1] == ("s1",)
    assert found.verdict == "pass"


def test_regions_that_differ_meet_in_the_common_tree():
    """Two switches of one region and one of another: instance 1 follows the common tree at the border."""
    region = ["spanning-tree mst configuration", " name hall", " instance 1 vlan 10", "!"]
    other = [line.replace("hall", "yard") for line in region]
    ports = {1: TRUNK, 2: TRUNK, 3: access(10)}
    texts = [ios(ports, "vlan 10", *region), ios(ports, "vlan 10", *region), ios(ports, "vlan 10", *other)]
    found = found_in([text.replace("rapid-pvst", "mst") for text in texts])
    assert (found.verdict, found.delivered) == ("pass", 6)


def test_protocols_that_are_not_computed_together_are_told():
    ports = {1: TRUNK, 2: TRUNK, 3: access(10)}
    texts = [ios(ports, "vlan 10")] * 3
    texts[2] = texts[2].replace("rapid-pvst", "mst")
    found = found_in(texts)
    assert any("meet on a circle of cables" in sentence for sentence in found.network.unclear)
    assert not found.has_passed


def test_costs_that_nothing_tells_are_told_where_they_decide():
    """Arista's names tell no speed; trunks that carry different VLANs make the tree matter."""

    def eos(first: str, second: str) -> str:
        trunk = "   switchport mode trunk\n   switchport trunk allowed vlan "
        return (
            f"! device: x (DCS-7050, EOS-4.28)\nvlan 10,20\ninterface Ethernet1\n{trunk}{first}\n"
            f"interface Ethernet2\n{trunk}{second}\ninterface Ethernet3\n   switchport access vlan 10\nend\n"
        )

    cables = ring(3).replace(GI, "Ethernet")
    alike = found_in([eos("10,20", "10,20")] * 3, cables)
    assert alike.verdict == "pass"
    found = found_in([eos("10,20", "10"), eos("10", "10,20"), eos("10", "10")], cables)
    assert any("the path cost of" in sentence for sentence in found.network.unclear)
    assert found.verdict != "pass"


def running(name: str, number: int, blocked: str = "") -> dict[str, str]:
    """What a Linux bridge of a ring prints, with what its spanning tree has made of its ports."""
    flags = dict.fromkeys(("learning", "flood", "mcast_flood", "bcast_flood"), True)
    about = {"stp_state": 1, "vlan_filtering": 1, "priority": 32768, "bridge_id": f"8000.2:0:0:0:0:{number}"}
    ports = ["swp1", "swp2", "swp3"]
    links = [
        {"ifname": port, "flags": ["UP"], "master": "br0", "cost": 4, "priority": 32, "no": f"0x{place}",
         "state": "blocking" if port == blocked else "forwarding", **flags}
        for place, port in enumerate(ports, 1)
    ]  # fmt: skip
    said = {
        "bridge": [{"ifname": "br0", "linkinfo": {"info_data": about}}],
        "link": links,
        "vlan": [{"ifname": port, "vlans": [{"vlan": 1, "flags": ["PVID", "Egress Untagged"]}]} for port in ports],
        "fdb": [],
    }
    return {f"{name}/{file}.json": json.dumps(content) for file, content in said.items()}


def test_a_running_bridge_opens_its_blocked_port_without_a_link():
    cables = ring(3).replace(GI, "swp")
    files = {**running("s1", 1), **running("s2", 2), **running("s3", 3, "swp2"), "cabling.csv": cables}
    network = read_network(files)
    assert (audit(network).verdict, audit(network).delivered) == ("pass", 6)
    require_known_states(network, "each_link")
    for place in list_links(network):
        left = audit(take_away(network, place))
        assert (left.delivered, left.looping_vlans) == (6, ())
    # what is computed from all that is shown is what the bridges have made of it
    whole = audit(take_away(network, ("s1", "swp3")))  # a host less, and all links
    assert set(blocked_in(whole)) == {"s3:swp2"}
    assert whole.delivered == 2


@pytest.mark.parametrize(
    "line",
    ["spanning-tree uplinkfast", "spanning-tree vlan 10 forget", " spanning-tree wonder 4", "spanning-tree mode x"],
)
def test_a_spanning_tree_line_that_is_not_understood_is_told(line):
    text = ios({1: TRUNK, 2: TRUNK, 3: access(10)}, "vlan 10").replace("end\n", f"interface {GI}9\n{line}\nend\n")
    found = found_in([text] * 3)
    assert any(line.strip() in sentence for sentence in found.network.unclear)


def test_a_table_of_addresses_that_does_not_fit_is_refused():
    text = ios({1: TRUNK, 2: TRUNK, 3: access(10)}, "vlan 10")
    with pytest.raises(InputError) as refused:
        found_in([text] * 3, bridges_csv="switch,mac\ns1,02:00:00:00:00:01\ns2,02:00:00:00:00:01\ns9,x\ns3,x\n")
    sentences = [problem.sentence for problem in refused.value.problems]
    assert "is the address of s1 already" in sentences[0]
    assert "has no configuration here" in sentences[1]
    assert '"x" is not a MAC address' in sentences[2]


def test_costs_by_speed_are_those_of_the_standards():
    short = {10: 100, 100: 19, 1000: 4, 10_000: 2, 2000: 3, 100_000: 1}
    long = {10: 2_000_000, 100: 200_000, 1000: 20_000, 10_000: 2000, 100_000: 200, 40_000: 500}
    assert {speed: cost_by_speed(speed, long=False) for speed in short} == short
    assert {speed: cost_by_speed(speed, long=True) for speed in long} == long
    assert speed_of("TenGigabitEthernet1/1/1") == 10_000
    assert (speed_of("1/xg3"), speed_of("ge-0/0/1"), speed_of("swp1"), speed_of("g4")) == (10_000, 1000, None, 1000)
