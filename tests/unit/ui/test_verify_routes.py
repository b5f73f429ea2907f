"""`testbed verify --routes`: forwarding that was computed elsewhere, as it is written, and what is wrong with it."""

from __future__ import annotations

import json

import pytest

from testbed.base.errors import InputError
from tests.hostile_files import NASTY, SET
from tests.json_formats import conforms
from tests.unit.ui.test_verify_command import typed

GRAPHML = """<graphml><graph edgedefault="undirected"><node id="New York"/><node id="Rome"/><node id="Oslo"/>
<edge source="New York" target="Rome"/><edge source="Rome" target="Oslo"/></graph></graphml>"""
ROUND = "switch,destination,next_hop\ns1,*,s2\ns2,*,s3\ns3,*,s4\ns4,*,s1\n"


def proved(tmp_path, text: str, fabric: object = "ring4", *more: str, name: str = "routes.csv"):
    file = tmp_path / name
    file.write_text(text)
    return typed("verify", fabric, "--routes", file, *more)


def rows(*lines: str) -> str:
    return "\n".join(["switch,destination,next_hop", *lines, ""])


def test_delivered_and_deadlock_free(tmp_path):
    code, text, _ = proved(tmp_path, rows("s1,*,s2", "s2,s1,s1", "s2,*,s3", "s3,s4,s4", "s3,*,s2", "s4,*,s3"))
    assert code == 0
    assert text.endswith("routes.csv: passed: 12 of 12 pairs delivered, deadlock free\n")


def test_a_cycle_is_named_with_its_channels(tmp_path):
    code, text, _ = proved(tmp_path, ROUND)
    assert code == 1
    assert text.startswith("deadlock: the channel dependency graph has a cycle: s1→s2 waits for s2→s3 waits for s3→s4")
    assert text.endswith("FAILED: 12 of 12 pairs delivered, can deadlock\n")


def test_a_declared_deadlock_passes_and_a_missing_one_fails(tmp_path):
    expects = ("--set", "expect=deadlock")
    assert proved(tmp_path, ROUND, "ring4", *expects)[0] == 0
    line = tmp_path / "line.yaml"
    line.write_text("topology: {kind: graph, switches: [a, b], links: [[a, b]]}\n")
    code, text, _ = proved(tmp_path, rows("a,b,b", "b,a,a"), line, *expects)
    assert (code, "expect: deadlock, but the channel dependency graph has no cycle" in text) == (1, True)


def test_sets_in_one_row_and_in_several_are_the_same(tmp_path):
    one = proved(tmp_path, rows("s1,s3,s2;s4", "s1,s2,s2", "s1,s4,s4", "s2,*,s3", "s3,*,s4", "s4,*,s1"))
    several = proved(tmp_path, rows("s1,s3,s2", "s1,s3,s4", "s1,s2,s2", "s1,s4,s4", "s2,*,s3", "s3,*,s4", "s4,*,s1"))
    assert one == several
    assert "frames of" in one[1]  # s1 may send to s4, which sends back to s1
    assert "s1→s3 by s1 → s4 → s1" in one[1]


def test_an_entry_that_is_missing(tmp_path):
    code, text, _ = proved(tmp_path, rows("s1,s2,s2", "s1,s3,s2", "s2,s1,s1"))
    assert code == 1
    assert text.startswith("delivery: 10 of 12 pairs are not delivered: s1→s3, s1→s4, s2→s3")


def test_layers_part_what_vlans_do_not(tmp_path):
    head = "switch,destination,next_hop,vlan,layer\n"
    ring = [(f"s{a}", f"s{a % 4 + 1}") for a in (1, 2, 3, 4)]
    by_vlan = head + "".join(f"{a},*,{b},{10 + number},\n" for number in range(2) for a, b in ring)
    assert "s4→s1 waits for s1→s2" in proved(tmp_path, by_vlan)[1]
    # Frames change to layer 1 where they leave s4 and cannot come back to it there: datelines.
    dateline = head + "s1,*,s2,,0\ns2,*,s3,,0\ns3,*,s4,,0\ns4,*,s1@1,,0\n" + "s1,s2;s3,s2,,1\ns2,s3,s3,,1\n"
    code, text, _ = proved(tmp_path, dateline)
    assert (code, "2 layers, deadlock free" in text) == (0, True)


def test_an_entry_of_a_host_goes_before_its_switchs_and_alls(tmp_path):
    fabric = tmp_path / "fabric.yaml"
    fabric.write_text("topology: {kind: graph, switches: [a, b], links: [[a, b], [a, b]], hosts: {a: 2, b: 2}}\n")
    found = proved(tmp_path, rows("a,h3,b#1", "a,b,b#0", "b,*,a"), fabric, "--json")
    plan = conforms("verify", found[1])["plans"][0]
    assert (found[0], plan["pairs"], plan["delivered"], plan["deadlock_free"]) == (0, 3, 3, True)
    assert proved(tmp_path, rows("a,h3;h4,b", "b,h1;h2,a"), fabric)[0] == 0
    found = proved(tmp_path, rows("a,*,b", "b,h2,a"), fabric)
    assert (found[0], "1 of 3 pairs are not delivered: b→a" in found[1]) == (1, True)


def test_paths_with_layers_and_with_hosts_at_their_ends(tmp_path):
    pairs = [(a, b) for a in range(4) for b in range(4) if a != b]
    way = {(a, b): [(a + step) % 4 for step in range((b - a) % 4 + 1)] for a, b in pairs}
    one_layer = {"paths": [[f"s{s + 1}" for s in path] for path in way.values()]}
    code, text, _ = proved(tmp_path, json.dumps(one_layer), name="paths.json")
    assert (code, "s4→s1 waits for s1→s2" in text) == (1, True)
    crossing = []
    for path in way.values():
        layer = ["@1" if 0 in path[1 : place + 1] else "" for place in range(len(path))]
        crossing.append(
            ";".join([f"h{path[0] + 1}", *(f"s{s + 1}{part}" for s, part in zip(path, layer, strict=True))])
        )
    code, text, _ = proved(tmp_path, "path\n" + "\n".join(crossing) + "\n")
    assert (code, "12 of 12 pairs delivered, 2 layers, deadlock free" in text) == (0, True), text


def test_a_path_that_comes_back_and_a_pair_without_one(tmp_path):
    code, text, _ = proved(tmp_path, "path\ns1;s2;s1;s4\n")
    assert code == 1
    assert "11 of 12 pairs have no path: s1→s2, s1→s3" in text
    assert "loop: paths of 1 pairs pass a switch twice, such as s1 → s2 → s1 → s4" in text


def test_a_fabric_file_with_names_of_its_own(tmp_path):
    fabric = tmp_path / "net.graphml"
    fabric.write_text(GRAPHML)
    assert (
        proved(tmp_path, rows("New York,*,Rome", "Rome,New York,New York", "Rome,Oslo,Oslo", "Oslo,*,s2"), fabric)[0]
        == 0
    )
    _, _, errors = proved(tmp_path, rows("New Yrok,*,Rome"), fabric)
    assert 'line 2: there is no switch "New Yrok". Did you mean "New York"?' in errors
    code, _, errors = proved(tmp_path, ROUND, fabric, "--set", "expect=deadlock")
    assert (code, "--set: changes scenarios" in errors) == (2, True)


WRONG = [
    ("", "it is empty"),
    ("switch,destination\ns1,s2\n", "there is no column next_hop; write switch, destination, next_hop"),
    ("swich,destination,next_hop\ns1,s2,s2\n", 'there is no column "swich". Did you mean "switch"?'),
    ("switch;destination;next_hop\n", "columns are separated by commas"),
    ("switch,destination,next_hop,switch\n", "the column switch is there twice"),
    ("path,vlan\n", "VLANs"),
    ("switch,destination,next_hop\n", "lists no next hop and no path"),
    (rows("s1,s2"), "line 2 has 2 cells, and its columns are 3"),
    (rows('"s1,s2,s3'), "is damaged"),
    (rows("s9,s2,s2"), 'line 2: there is no switch "s9". Did you mean'),
    (rows("s1,s8,s2"), 'line 2: there is no switch and no host "s8". Did you mean'),
    (rows("s1,,s2"), 'names no destination; write "*"'),
    (rows("s1,s2,"), "names no next hop"),
    (rows("s1,s3,s3"), 's1 and "s3" have no link'),
    (rows("s1,s2,s2#1"), 's1 and "s2" have no link of plane 1'),
    (rows("s1,s2,s2@8"), "the layer 8 is none: Ethernet has the priorities 0 to 7"),
    (rows("s1,s2,h1"), 'sends frames for "s2" to a host of s1'),
    (rows("s1,s2,h2"), 'the host "h2" is not at s1'),
    (rows("s1,s1,h1;s2"), "a destination is at one place"),
    ("switch,destination,next_hop,vlan\ns1,s2,s2,4095\n", 'vlan should be a number from 1 to 4094, not "4095"'),
    ("switch,destination,next_hop,layer\ns1,s2,s2,x\n", 'layer should be a number from 0 to 7, not "x"'),
    ("path\ns1\n", "should have two switches or more, such as s1;s2"),
    ("path\ns1;s3\n", "s1 and s3 have no link"),
    ("path\ns1;s9\n", 'there is no switch "s9". Did you mean'),
    ('{"next_hop": []}', 'should have next_hops or paths. Did you mean "next_hops"?'),
    ('{"paths": {}}', "paths should be a list, not"),
    ('{"paths": [1]}', "paths.0 should be an object with path, layer"),
    ('{"next_hops": [{"switch": "s1"}]}', "next_hops.0: there is no key destination and no next_hop"),
    ('{"next_hops": [{"switch": "s1", "destination": "s2", "next_hop": {}}]}', "next_hops.0.next_hop should be a name"),
    ('{"next_hops": [', "is damaged"),
    ('{"paths": [["s1", "s9"]]}', 'paths.0: there is no switch "s9"'),
]


@pytest.mark.parametrize(("text", "sentence"), WRONG, ids=[sentence[:40] for _, sentence in WRONG])
def test_what_is_wrong_with_a_file_is_a_sentence(tmp_path, text, sentence):
    code, _, errors = proved(tmp_path, text)
    assert code == 2
    assert "routes.csv: " in errors
    assert sentence in errors


def test_all_that_is_wrong_is_said_at_once_up_to_twenty(tmp_path):
    _, _, errors = proved(tmp_path, rows("s9,s2,s2", "s1,s8,s2", "s1,s3,s3"))
    assert [f"line {number}" in errors for number in (2, 3, 4)] == [True] * 3
    _, _, errors = proved(tmp_path, rows(*["s9,s2,s2"] * 50))
    assert errors.count("there is no switch") == 20
    assert "there is more wrong than these 20" in errors


def test_files_that_are_none(tmp_path):
    assert "cannot be read: No such file" in typed("verify", "ring4", "--routes", tmp_path / "absent.csv")[2]
    assert "cannot be read: Is a directory" in typed("verify", "ring4", "--routes", tmp_path)[2]
    (tmp_path / "latin.csv").write_bytes(b"switch,destination,next_hop\n\xff,s1,s1\n")
    assert "is not UTF-8 text" in typed("verify", "ring4", "--routes", tmp_path / "latin.csv")[2]


@pytest.mark.parametrize("form", ["text", "json", "junit", "github"])
def test_what_others_have_written_steers_no_terminal(tmp_path, form):
    cell = NASTY.replace('"', "").replace(",", "")
    for text in (
        rows(f'"{cell}",s1,s2'),
        json.dumps({NASTY: 1}),
        f"{cell},x\n",
        json.dumps({"paths": [[NASTY, "s1"]]}),
    ):
        code, out, errors = proved(tmp_path, text, "ring4", "--format", form)
        assert code == 2
        assert not set(out + errors) & set(SET)


def test_what_does_not_go_with_it(tmp_path):
    (tmp_path / "r.csv").write_text(ROUND)
    for words, sentence in (
        (["ring4", "ring8"], "--routes: is for one fabric, and 2 are named"),
        (["ring4", "--certificate", tmp_path / "c.json"], "--certificate: is of a plan"),
    ):
        with pytest.raises(InputError, match=sentence):
            typed("verify", *words, "--routes", tmp_path / "r.csv")


def test_tables_beyond_the_limit_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("testbed.scenario.routes_tables.ROUTE_ENTRIES", 10)
    code, _, errors = proved(tmp_path, ROUND)
    assert (code, "makes tables of 16 entries" in errors) == (2, True)


def test_the_forms_of_continuous_integration(tmp_path):
    assert "witness of deadlock: s1→s2 s2→s3" in proved(tmp_path, ROUND, "ring4", "--format", "junit")[1]
    assert "::error file=" in proved(tmp_path, ROUND, "ring4", "--format", "github")[1]
    found = conforms("verify", proved(tmp_path, ROUND, "ring4", "--json")[1])
    assert found["plans"][0]["violations"][0]["witness"] == ["s1→s2", "s2→s3", "s3→s4", "s4→s1"]
