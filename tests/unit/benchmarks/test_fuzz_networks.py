"""Random networks, and the model that judges what an audit says of them: no wrong reader or kernel goes unseen."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from benchmarks.fuzz_networks import DIALECTS, Network, differences, draw_network, judge_networks, store_network
from benchmarks.fuzz_networks_model import Net, Port
from testbed.devices import read_lines, trunking
from testbed.devices.audit import network as network_module
from testbed.devices.vlan_set import ALL_VLANS


@pytest.mark.parametrize("dialect", DIALECTS)
def test_audits_say_what_the_model_says(dialect):
    for number in range(12):
        drawn = draw_network(1, number, dialect)
        assert drawn.dialect == dialect
        assert differences(drawn) == []


def test_the_same_seed_draws_the_same_networks():
    one, other = (draw_network(3, 5) for _ in range(2))
    assert one == other
    assert one != draw_network(3, 6)
    (*_, found) = judge_networks(5, 3)
    assert (found.done, found.wrong) == (5, [])


def faulty(dialect: str, most: int = 60) -> list[str]:
    """What is found in the first networks of a dialect that differ."""
    for number in range(most):
        said = differences(draw_network(2, number, dialect))
        if said:
            return said
    return []


def test_planted_faults_of_readers_are_found(monkeypatch):
    """Each of the faults that audits once had, put back."""
    with monkeypatch.context() as patch:
        patch.setattr(trunking, "_is_trunk", lambda own, other: False)
        assert faulty("cisco-ios")
    with monkeypatch.context() as patch:
        patch.setattr(read_lines.SwitchLines, "active_vlans", property(lambda self: ALL_VLANS))
        assert faulty("powerconnect-6200")
    with monkeypatch.context() as patch:
        patch.setattr(read_lines.SwitchLines, "not_understood", lambda self, number, sentence: None)
        assert "a line that nobody can know is not told" in faulty("cisco-ios")
    with monkeypatch.context() as patch:
        patch.setattr(network_module, "_silent_hosts", lambda bridges, taken: ({}, {}))
        assert faulty("running-bridge")


def test_ports_that_are_down_followed_as_if_up_are_found():
    def with_all_up(drawn: Network) -> Network:
        ports = {place: replace(port, up=True) for place, port in drawn.net.ports.items()}
        return replace(drawn, net=replace(drawn.net, ports=ports))

    assert any(differences(with_all_up(draw_network(2, number, "running-bridge"))) for number in range(40))


def test_an_unnamed_port_is_not_expected_to_lead_to_a_host():
    """The only other port is shut; a catalyst's file may leave out a port with its defaults, and LLDP a silent host."""
    drawn = draw_network(3932457988, 3282)
    assert drawn.hidden == {"h2"}
    assert differences(drawn) == []
    assert "is cabled to a switch, is down, or has no PVID" in differences(replace(drawn, hidden=set()))[0]


def test_the_model_itself():
    """Two switches and two cables between them: what the standard says, by hand."""
    trunk: dict[str, Any] = {"pvid": 0, "members": {10, 20}}
    host: dict[str, Any] = {"pvid": 10, "members": {10}, "untagged": {10}}
    ports = {
        (1, 1): Port(**trunk), (2, 1): Port(**trunk), (1, 2): Port(**trunk), (2, 2): Port(**trunk),
        (1, 3): Port(**host), (2, 3): Port(**host),
    }  # fmt: skip
    cables = {(1, 1): (2, 1), (2, 1): (1, 1), (1, 2): (2, 2), (2, 2): (1, 2)}
    net = Net(ports, cables, {"a": (1, 3), "b": (2, 3)}, {}, (1, 10, 20))
    assert net.loops("broadcast") == {10, 20}
    assert net.copies("a", "broadcast") is None
    ports[1, 2].stops = {"broadcast"}
    assert net.loops("multicast") == {10, 20}
    assert net.loops("broadcast") == {10, 20}  # from the other switch it still goes round by the other cable
    ports[2, 2].members = {20}
    assert net.loops("broadcast") == {20}
    assert net.copies("a", "broadcast") == {"b": 1}
    ports[2, 1].up = False
    assert net.copies("a", "broadcast") == {}
    assert (net.loops("broadcast"), net.meant("a", "b")) == (set(), True)
    net.entries[1, 10, "b"] = 3
    assert net.copies("a", "unknown unicast", "b") == {}


def test_what_differs_is_stored_for_testbed_audit(tmp_path):
    folder = store_network(draw_network(1, 2, "sonic"), tmp_path / "x", ["a difference"])
    assert (folder / "s1" / "config_db.json").is_file()
    assert (tmp_path / "x.txt").read_text() == "a difference\n"
