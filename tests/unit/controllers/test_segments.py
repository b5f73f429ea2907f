"""The segment manager on switches made of dictionaries: what it does when links, ports and switches die."""

from __future__ import annotations

import math
import tempfile
import threading
import time
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from os_ken.ofproto import ofproto_v1_3
from os_ken.ofproto.ofproto_protocol import ProtocolDesc

from controllers import segments
from controllers.election import Election
from controllers.lldp import packet_out, read
from controllers.openflow_bytes import add_bytes, remove_bytes
from controllers.openflow_messages import Content, add_message, place, remove_message, vlans_of
from controllers.segments import SegmentReconciler
from controllers.switches import SwitchError
from controllers.unsupported import RefusedError
from testbed.base.model import Rule
from testbed.fabric.openflow.admission import lldp_rules
from testbed.fabric.openflow.oracle import Oracle
from testbed.planning import Plan
from testbed.planning.failover.failed_elements import FailedElements, cut_off, failed_elements
from testbed.planning.failover.lldp_topology import CollectedTopology
from testbed.planning.failover.rules import sets_pvid
from tests.fabrics import plan_of

DATAPATH = ProtocolDesc(ofproto_v1_3.OFP_VERSION)


@pytest.fixture(autouse=True)
def at_once(monkeypatch):
    """Switches of dictionaries go by their rules at once."""
    monkeypatch.setattr(segments, "TAKEN_OVER", 0.0)


def buffer(message: Any, transaction: int) -> bytes:
    message.set_xid(transaction)
    message.serialize()
    return bytes(message.buf)


@pytest.mark.parametrize(
    ("kind", "routing", "sizes"),
    [("torus", "dor", [4, 4]), ("torus", "dl", [3, 3]), ("mesh", "updown", [3, 3])],
)
def test_rules_have_the_bytes_that_the_framework_gives_them(kind: str, routing: str, sizes: list[int]):
    drop = Rule(0, 1, 200, (("dl_vlan", 12), ("dl_dst", "02:00:00:00:00:09")), ())
    rules = [drop, *lldp_rules(1), *plan_of(kind, {"kind": routing}, sizes=sizes).rules]
    for rule in rules:
        assert add_bytes([rule], 77) == buffer(add_message(DATAPATH, rule), 77)
        assert remove_bytes([rule], 78) == buffer(remove_message(DATAPATH, rule), 78)
    assert len(add_bytes(rules, 1)) == sum(len(add_bytes([rule], 1)) for rule in rules)


@dataclass
class Port:
    state: int = 0
    config: int = 0


class Fakes:
    """Switches that keep rules in dictionaries; each may be gone, and all may be made to wait."""

    def __init__(self, plan: Plan) -> None:
        self.topology = plan.topology
        self.names = tuple(plan.topology.switch_name(n) for n in range(plan.topology.switch_count))
        self.tables: list[dict[Any, Rule]] = [{} for _ in self.names]
        self.gone: set[int] = set()
        self.down: set[tuple[int, int]] = set()
        self.sent = 0
        self.cables = dict(CollectedTopology(plan.topology, 1).planned)  # port → the port at the other end
        self.mute: set[tuple[int, int]] = set()  # ports by which nothing gets out
        self.frames: dict[tuple[int, int], int] = {}  # that have come in by a port
        self.roles: list[tuple[int, int | str]] = []
        self.listener: SegmentReconciler | None = None
        self.go_on = threading.Event()
        self.go_on.set()

    def need(self, number: int) -> None:
        if number in self.gone:
            raise SwitchError(f"{self.names[number]} is not connected")

    def list_connected(self) -> set[int]:
        return set(range(len(self.names))) - self.gone

    def become_master(self, number: int, generation: int) -> None:
        self.need(number)
        self.roles.append((number, generation))

    def become_slave(self, number: int) -> None:
        self.need(number)
        self.roles.append((number, "slave"))

    def rules(self, number: int, learnable: Collection[Content] = ()) -> tuple[list[Rule], list[Any]]:
        assert not learnable
        self.need(number)
        return list(self.tables[number].values()), []

    def ports(self, number: int) -> dict[int, Port]:
        self.need(number)
        count = int(self.topology.port_count[number])
        return {port: Port(state=(number, port) in self.down) for port in range(1, count + 1)}

    def read_received(self, number: int) -> dict[int, int]:
        self.need(number)
        return {port: self.frames.get((number, port), 0) for port in self.ports(number)}

    def announce(self, number: int, ports: Iterable[int], lasts: int) -> None:
        self.need(number)
        for port in ports:
            here, there = (number, port), self.cables.get((number, port))
            arrives = there is not None and there[0] not in self.gone and not {here, there} & self.down
            if there is not None and arrives and here not in self.mute and self.listener is not None:
                self.listener.heard_from(*there, here)

    def send(self, number: int, add: Iterable[Rule] = (), remove: Iterable[Rule] = ()) -> None:
        self.need(number)
        for rule in remove:
            del self.tables[number][place(rule)]
            self.sent += 1
        for rule in add:
            assert rule.switch == number
            self.tables[number][place(rule)] = rule
            self.sent += 1

    def confirm(self, number: int) -> None:
        self.need(number)
        assert self.go_on.wait(100)

    def all_rules(self) -> list[Rule]:
        # Each table is taken at one stroke: another thread may be writing.
        tables = [list(table.values()) for number, table in enumerate(self.tables) if number not in self.gone]
        return [rule for table in tables for rule in table]

    def undelivered(self, failed: FailedElements) -> int:
        """Pairs whose frame does not arrive over what is alive, besides those that nothing connects; loops fail."""
        oracle, lost = Oracle(self.topology, self.all_rules()), 0
        cut = cut_off(self.topology, failed)
        for source, end in zip(*(~cut).nonzero(), strict=True):
            if source != end:
                way = oracle.unicast(int(source), int(end))
                assert not way.endless
                dead = any(failed.links[channel // 2] for channel in way.channels)
                lost += way.received != {int(end): 1} or dead
            assert not oracle.broadcast(int(source)).endless
        return lost


def started(
    plan: Plan, memory: Path | None = None, fakes: Fakes | None = None, election: Election | None = None,
    forget_flows: Callable[[], bool] = lambda: False,
) -> tuple[SegmentReconciler, Fakes]:  # fmt: skip
    """A controller to which all switches have connected, once they are in step."""
    fakes = fakes or Fakes(plan)
    there, fakes.gone = fakes.list_connected(), {*range(len(fakes.names))}
    switches: Any = fakes
    reconciler = fakes.listener = SegmentReconciler(plan, switches, math.inf, memory, election, forget_flows)
    for number in sorted(there):
        fakes.gone.remove(number)
        reconciler.bring_in_step(number)
    reconciler.send_lldp()
    until(lambda: bool(reconciler.status()["in_step"] == len(there)))
    return reconciler, fakes


def until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + 120  # kernels may have to be compiled first
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.01)


def settled(reconciler: SegmentReconciler) -> bool:
    return str(reconciler.status()["phase"]).startswith("steady")


def fail(reconciler: SegmentReconciler, plan: Plan, link: int, *, down: bool = True) -> None:
    topology = plan.topology
    for channel in (2 * link, 2 * link + 1):
        reconciler.port_changed(int(topology.channel_source[channel]), int(topology.out_port[channel]), down=down)


@pytest.mark.slow
def test_a_link_dies_and_comes_back():
    plan = plan_of("torus", sizes=[4, 4])
    reconciler, fakes = started(plan)
    first = set(fakes.all_rules())
    assert first > set(plan.rules)
    for link in (5, 20):
        failed = failed_elements(plan.topology, [link])
        fakes.go_on.clear()
        fail(reconciler, plan, link)
        assert fakes.undelivered(failed) == 0
        assert reconciler.status()["diverted"]
        fakes.go_on.set()
        until(lambda: settled(reconciler))
        assert fakes.undelivered(failed) == 0
        fail(reconciler, plan, link, down=False)
        until(lambda: settled(reconciler))
        assert fakes.undelivered(failed_elements(plan.topology)) == 0
        assert set(fakes.all_rules()) == first
    died = reconciler.status()["events"][0]
    assert died["down"] == ["link " + plan.topology.channel_name(10).replace("→", "–")]
    assert died["detected"] <= died["diverted"] <= died["recovered"] <= died["settled"]
    assert died["without_backup"] == died["cut_off"] == []


class Caches:
    """Flows that switches keep of rules that were removed, by switch and place in its tables: they say "drop"."""

    def __init__(self, *, reached: bool) -> None:
        self.reached, self.forgotten, self.drops = reached, 0, set[tuple[int, Content]]()

    def forget(self) -> bool:
        self.forgotten += 1
        if self.reached:
            self.drops.clear()
        return self.reached


@pytest.mark.parametrize("reached", [True, False])
def test_flows_are_forgotten_only_before_vlans_come_back(monkeypatch, reached):
    """Where they cannot be, the switches get time to look at them."""
    plan = plan_of("ring", switches=4)
    caches, waits = Caches(reached=reached), list[float]()
    reconciler, fakes = started(plan, forget_flows=caches.forget)
    monkeypatch.setattr(segments, "TAKEN_OVER", 0.001)
    sleep, send, met = time.sleep, fakes.send, set[int]()

    def waited(seconds: float) -> None:
        if seconds == 0.001:
            waits.append(seconds)
            caches.drops.clear()
        sleep(seconds)

    def sent(number: int, add: Iterable[Rule] = (), remove: Iterable[Rule] = ()) -> None:
        add, remove = list(add), list(remove)
        caches.drops.update((number, place(rule)) for rule in remove)
        begins = vlans_of(rule for rule in add if sets_pvid(rule))
        back = [fakes.tables[there][where] for there, where in caches.drops.copy() if where in fakes.tables[there]]
        met.update(begins & vlans_of(back))  # frames that go by rules which are there, and meet what is kept
        send(number, add, remove)

    monkeypatch.setattr("controllers.segments.time.sleep", waited)
    monkeypatch.setattr(fakes, "send", sent)
    fail(reconciler, plan, 1)
    until(lambda: settled(reconciler))
    assert caches.drops
    assert (caches.forgotten, waits) == (0, [])
    fail(reconciler, plan, 1, down=False)
    until(lambda: settled(reconciler))
    assert met == set()
    assert caches.forgotten >= 1
    assert bool(waits) != reached


@pytest.mark.slow
def test_what_dies_while_new_tables_are_made_is_overcome_too():
    plan = plan_of("torus", sizes=[4, 4])
    reconciler, fakes = started(plan)
    fakes.go_on.clear()
    fail(reconciler, plan, 3)
    until(lambda: reconciler.status()["phase"] == "new tables")
    fail(reconciler, plan, 17)
    failed = failed_elements(plan.topology, [3, 17])
    fakes.go_on.set()
    until(lambda: settled(reconciler))
    assert fakes.undelivered(failed) == 0
    assert len(reconciler.status()["events"]) == 2
    fail(reconciler, plan, 3, down=False)
    fail(reconciler, plan, 17, down=False)
    until(lambda: settled(reconciler))
    assert set(fakes.all_rules()) == set(started(plan)[1].all_rules())


def test_a_switch_that_hangs_up_is_dead_later_and_alive_again(monkeypatch):
    monkeypatch.setattr(segments, "HANG_UP_GRACE", 0.05)
    plan = plan_of("torus", sizes=[4, 4])
    reconciler, fakes = started(plan)
    fakes.gone.add(5)
    reconciler.switch_disconnected(5)
    until(lambda: reconciler.status()["down"] == ["switch s6"] and settled(reconciler))
    assert fakes.undelivered(failed_elements(plan.topology, switches=[5])) == 0
    assert reconciler.status()["cut_off"] == 30
    fakes.gone.clear()
    fakes.tables[5].clear()
    reconciler.bring_in_step(5)
    until(lambda: reconciler.status()["down"] == [] and settled(reconciler))
    assert fakes.undelivered(failed_elements(plan.topology)) == 0


def test_a_switch_that_is_back_at_once_was_not_dead(monkeypatch):
    monkeypatch.setattr(segments, "HANG_UP_GRACE", 0.05)
    plan = plan_of("torus", sizes=[4, 4])
    reconciler, _ = started(plan)
    reconciler.switch_disconnected(5)
    time.sleep(0.1)
    assert reconciler.status()["events"] == []


def test_a_dead_bridge_divides_the_fabric_and_the_rest_goes_on():
    plan = plan_of("tree", switches=7, arity=2)
    reconciler, fakes = started(plan)
    fail(reconciler, plan, 0)
    until(lambda: settled(reconciler))
    failed = failed_elements(plan.topology, [0])
    assert fakes.undelivered(failed) == 0
    told = reconciler.status()
    assert told["cut_off"] == int(cut_off(plan.topology, failed).sum())
    assert len(told["events"][0]["cut_off"]) == told["cut_off"] > 0
    for source, end in zip(*cut_off(plan.topology, failed).nonzero(), strict=True):
        assert Oracle(plan.topology, fakes.all_rules()).unicast(int(source), int(end)).received == {}
    fail(reconciler, plan, 0, down=False)
    until(lambda: settled(reconciler))
    assert fakes.undelivered(failed_elements(plan.topology)) == 0


def test_a_hosts_port_that_dies_moves_nothing():
    plan = plan_of("torus", sizes=[4, 4])
    reconciler, fakes = started(plan)
    before = set(fakes.all_rules())
    reconciler.port_changed(int(plan.topology.host_switch[2]), int(plan.topology.host_port[2]), down=True)
    until(lambda: settled(reconciler))
    assert set(fakes.all_rules()) == before
    assert reconciler.status()["down"] == ["port of h3"]
    assert reconciler.status()["cut_off"] == 30


def test_a_restart_touches_no_rule(tmp_path):
    plan = plan_of("torus", sizes=[4, 4])
    memory = tmp_path / "state"
    reconciler, fakes = started(plan, memory)
    fail(reconciler, plan, 7)
    ends = [(int(plan.topology.channel_source[c]), int(plan.topology.out_port[c])) for c in (14, 15)]
    fakes.down.update(ends)
    until(lambda: settled(reconciler))
    sent = fakes.sent
    again, _ = started(plan, memory, fakes)
    assert fakes.sent == sent
    assert again.status()["down"] == reconciler.status()["down"]
    assert again.status()["events"] == reconciler.status()["events"]
    fakes.down.clear()
    fail(again, plan, 7, down=False)
    until(lambda: again.status()["phase"] == "steady" and len(again.status()["events"]) == 2)
    assert fakes.undelivered(failed_elements(plan.topology)) == 0


def test_a_failure_while_it_was_away_is_found_when_it_starts(tmp_path):
    plan = plan_of("torus", sizes=[4, 4])
    _, fakes = started(plan, tmp_path / "state")
    fakes.down.add((int(plan.topology.channel_source[14]), int(plan.topology.out_port[14])))
    again, _ = started(plan, tmp_path / "state", fakes)
    until(lambda: settled(again) and bool(again.status()["down"]))
    assert fakes.undelivered(failed_elements(plan.topology, [7])) == 0


@pytest.mark.slow
def test_what_it_cannot_keep_going_is_refused():
    plan = plan_of("torus", sizes=[4, 4])
    reconciler, _ = started(plan)
    with pytest.raises(RefusedError, match="makes its own tables"):
        reconciler.move_to(plan, [])
    local = plan_of("mesh", {"kind": "updown"}, sizes=[3, 3])
    with pytest.raises(RefusedError, match=r"takes VLANs of the whole fabric \(assignment fixed\), not renamed"):
        SegmentReconciler(local, Fakes(local), math.inf)  # type: ignore[arg-type]


def test_what_dies_while_old_paths_drain_does_not_wait_for_them():
    plan = plan_of("torus", sizes=[4, 4])
    reconciler, fakes = started(plan)
    first = set(fakes.all_rules())
    reconciler.rate = 1e5  # frames take minutes to arrive
    fail(reconciler, plan, 3)
    until(lambda: reconciler.status()["events"][0]["recovered"] is not None)
    fail(reconciler, plan, 17)
    until(lambda: len(reconciler.status()["events"]) == 2 and reconciler.status()["events"][1]["recovered"] is not None)
    assert fakes.undelivered(failed_elements(plan.topology, [3, 17])) == 0
    reconciler.rate = math.inf
    fail(reconciler, plan, 3, down=False)
    fail(reconciler, plan, 17, down=False)
    until(lambda: settled(reconciler))
    assert reconciler.status()["problem"] == ""
    assert set(fakes.all_rules()) == first


# --------------------------------------------------------------------------------------------------------- collection


def end_of(plan: Plan, channel: int) -> tuple[int, int]:
    return int(plan.topology.channel_source[channel]), int(plan.topology.out_port[channel])


def ends_of(plan: Plan, link: int) -> tuple[tuple[int, int], tuple[int, int]]:
    return end_of(plan, 2 * link), end_of(plan, 2 * link + 1)


def swapped(plan: Plan, *links: int) -> Fakes:
    """Two links whose cables are swapped at the second end of each."""
    fakes = Fakes(plan)
    (a, b), (c, d) = (ends_of(plan, link) for link in links)
    fakes.cables |= {a: d, d: a, c: b, b: c}
    return fakes


def test_an_lldp_frame_is_read_as_it_was_sent_and_no_other():
    secret = b"of this manager"
    message = packet_out(DATAPATH, 6, 3, secret, 4)
    frame = message[message.index(bytes.fromhex("0180c200000e")) :]
    assert read(frame, secret) == (6, 3)
    assert read(frame, b"of another one") is None
    for at in range(12, len(frame)):
        assert read(frame[:at], secret) in (None, (6, 3))
        changed = frame[:at] + bytes([frame[at] ^ 1]) + frame[at + 1 :]
        assert read(changed, secret) in (None, (6, 3))
    other = packet_out(DATAPATH, 6, 4, secret, 4)
    token = other[other.index(b"\x02\x00\x00\x01") + 4 :][:8]
    mine = frame[frame.index(b"\x02\x00\x00\x01") + 4 :][:8]
    assert token != mine
    assert read(frame.replace(mine, token), secret) is None


def test_what_is_wired_as_planned_agrees():
    plan = plan_of("torus", sizes=[4, 4])
    reconciler, fakes = started(plan)
    told = reconciler.status()
    assert told["wiring"] == []
    assert len(told["links"]) == plan.topology.link_count
    assert told["links"][0] == "s1-eth2 – s2-eth2"
    assert set(fakes.all_rules()) >= {*plan.rules, *lldp_rules(16)}


def test_nothing_is_installed_before_it_is_known_what_is_joined():
    plan = plan_of("torus", sizes=[4, 4])
    fakes = Fakes(plan)
    fakes.gone = {15}
    reconciler = fakes.listener = SegmentReconciler(plan, fakes, math.inf)  # type: ignore[arg-type]
    for number in range(15):
        reconciler.bring_in_step(number)
    assert set(fakes.all_rules()) == set(lldp_rules(15))
    assert reconciler.status()["phase"] == "collecting"
    assert reconciler.status()["switches"]["s1"]["state"] == "collecting"
    fakes.gone = set()
    reconciler.bring_in_step(15)
    until(lambda: bool(reconciler.status()["in_step"] == 16))
    assert fakes.undelivered(failed_elements(plan.topology)) == 0


def test_a_switch_that_does_not_come_is_not_waited_for_long():
    plan = plan_of("torus", sizes=[4, 4])
    fakes = Fakes(plan)
    fakes.gone = {5}
    reconciler = fakes.listener = SegmentReconciler(plan, fakes, math.inf)  # type: ignore[arg-type]
    for number in sorted(fakes.list_connected()):
        reconciler.bring_in_step(number)
    for _ in range(3):
        reconciler.send_lldp()
    assert reconciler.status()["phase"] == "collecting"
    reconciler.send_lldp()
    until(lambda: bool(reconciler.status()["in_step"] == 15) and settled(reconciler))
    told = reconciler.status()
    assert told["down"] == [f"link s6–s{n}" if n > 6 else f"link s{n}–s6" for n in (2, 5, 7, 10)]
    assert told["wiring"][0] == "s2-eth4 is not joined to s6-eth2"
    fakes.gone = set()
    reconciler.bring_in_step(5)
    until(lambda: bool(reconciler.status()["phase"] == "steady" and reconciler.status()["in_step"] == 16))
    assert reconciler.status()["wiring"] == []
    assert fakes.undelivered(failed_elements(plan.topology)) == 0


def test_swapped_cables_are_named_and_get_no_tables_until_right():
    plan = plan_of("torus", sizes=[4, 4])
    fakes = swapped(plan, 3, 17)
    reconciler, _ = started(plan, fakes=fakes)
    until(lambda: settled(reconciler))
    told = reconciler.status()
    assert len(told["wiring"]) == 2
    assert all(" is joined to " in sentence for sentence in told["wiring"])
    assert len(told["down"]) == 2
    assert fakes.undelivered(failed_elements(plan.topology, [3, 17])) == 0
    ports = {end for link in (3, 17) for end in ends_of(plan, link)}
    used = {(rule.switch, value) for rule in fakes.all_rules() for name, value in (*rule.match, *rule.actions)
            if name in ("output", "in_port")}  # fmt: skip
    assert not ports & used
    fakes.cables = Fakes(plan).cables
    reconciler.send_lldp()
    until(lambda: reconciler.status()["phase"] == "steady")
    assert reconciler.status()["wiring"] == reconciler.status()["down"] == []
    assert set(fakes.all_rules()) == set(started(plan)[1].all_rules())


def test_a_one_way_link_is_dead_and_one_with_a_full_queue_is_not():
    plan = plan_of("torus", sizes=[4, 4])
    reconciler, fakes = started(plan)
    deaf, full = ends_of(plan, 7), ends_of(plan, 9)
    fakes.mute = {deaf[0], full[0]}  # the other direction is heard
    for count in range(8):
        fakes.frames[full[1]] = count  # other frames arrive by it
        reconciler.send_lldp()
    until(lambda: settled(reconciler) and bool(reconciler.status()["down"]))
    assert reconciler.status()["down"] == ["link " + plan.topology.channel_name(14).replace("→", "–")]
    (sentence,) = reconciler.status()["wiring"]
    assert sentence.endswith("which hears it")
    assert fakes.undelivered(failed_elements(plan.topology, [7])) == 0
    fakes.mute = set()
    reconciler.send_lldp()
    until(lambda: reconciler.status()["phase"] == "steady" and not reconciler.status()["down"])


# ----------------------------------------------------------------------------------------------------------- election


def standing_by(plan: Plan, fakes: Fakes, folder: Path) -> SegmentReconciler:
    """A manager to which all switches have connected while another one steers."""
    fakes.roles.clear()
    second = SegmentReconciler(plan, fakes, math.inf, folder / "state", Election(folder / "lock"))  # type: ignore[arg-type]
    for number in range(len(fakes.names)):
        second.bring_in_step(number)
    assert second.status()["role"] == second.status()["phase"] == "standby"
    assert fakes.roles == [(number, "slave") for number in range(len(fakes.names))]
    return second


def until_steering(reconciler: SegmentReconciler) -> None:
    until(lambda: bool(reconciler.status()["in_step"] == 16) and settled(reconciler))


def test_a_manager_that_takes_over_touches_no_rule(tmp_path):
    plan = plan_of("torus", sizes=[4, 4])
    steers = Election(tmp_path / "lock")
    first, fakes = started(plan, tmp_path / "state", election=steers)
    fail(first, plan, 7)
    fakes.down.update(ends_of(plan, 7))
    until(lambda: settled(first) and bool(first.status()["down"]))
    sent = fakes.sent
    second = fakes.listener = standing_by(plan, fakes, tmp_path)
    second.send_lldp()
    second.check(3)
    assert fakes.sent == sent
    fakes.roles.clear()
    before = time.monotonic()
    steers.release_lock()
    until_steering(second)
    told = second.status()
    assert told["role"] == "master"
    assert before <= told["master_since"] <= time.monotonic()
    assert {number for number, _ in fakes.roles} == set(range(16))
    assert all(isinstance(one, int) and one > first._generation for _, one in fakes.roles)
    assert fakes.sent == sent
    assert (told["down"], told["events"]) == (first.status()["down"], first.status()["events"])


@pytest.mark.slow
def test_what_dies_while_nobody_steers_is_overcome_by_the_next(tmp_path):
    plan = plan_of("torus", sizes=[4, 4])
    steers = Election(tmp_path / "lock")
    first, fakes = started(plan, tmp_path / "state", election=steers)
    until((tmp_path / "state").exists)
    second = fakes.listener = standing_by(plan, fakes, tmp_path)
    before = set(fakes.all_rules())
    fail(second, plan, 12)
    fakes.down.update(ends_of(plan, 12))
    assert set(fakes.all_rules()) == before
    fakes.go_on.clear()
    steers.release_lock()
    # Before it asks any switch for its rules, hosts are on their backups.
    failed = failed_elements(plan.topology, [12])
    until(lambda: bool(second.status()["diverted"]) and fakes.undelivered(failed) == 0)
    fakes.go_on.set()
    until_steering(second)
    assert fakes.undelivered(failed) == 0
    assert [event["down"] for event in second.status()["events"]] == [second.status()["down"]]
    assert first.status()["events"] == []


def test_a_manager_that_finds_no_state_collects_first(tmp_path):
    plan = plan_of("torus", sizes=[4, 4])
    steers = Election(tmp_path / "lock")
    assert steers.try_acquire()
    fakes = Fakes(plan)
    second = fakes.listener = standing_by(plan, fakes, tmp_path)
    assert fakes.all_rules() == []
    steers.release_lock()
    until_steering(second)
    assert fakes.undelivered(failed_elements(plan.topology)) == 0


@given(st.lists(st.integers(0, 4), max_size=20))
@settings(max_examples=20, deadline=None)
def test_of_those_that_live_exactly_one_leads(dies: list[int]):
    """Each number is a manager that dies, and comes back as the last of the queue."""
    with tempfile.TemporaryDirectory() as folder:
        file, leads = Path(folder) / "lock", set[Election]()

        def stand() -> Election:
            one = Election(file)
            if one.try_acquire():
                leads.add(one)
            else:
                threading.Thread(target=wait, args=(one,), daemon=True).start()
            return one

        def wait(one: Election) -> None:
            one.wait()
            leads.add(one)

        managers = [stand() for _ in range(5)]
        for number in dies:
            gone = managers[number]
            if gone not in leads:  # who waits in the kernel cannot be withdrawn from here
                continue
            leads.remove(gone)
            managers[number] = stand()
            gone.release_lock()
            until(lambda: len(leads) == 1)
            assert not leads & {gone}
        time.sleep(0.01)
        assert len(leads) == 1


def test_slow_switches_are_waited_for_and_then_not(tmp_path):
    plan = plan_of("torus", sizes=[4, 4])
    _, fakes = started(plan, tmp_path / "state")
    until((tmp_path / "state").exists)
    before = set(fakes.all_rules())
    fakes.gone = {5}
    reconciler = fakes.listener = SegmentReconciler(plan, fakes, math.inf, tmp_path / "state")  # type: ignore[arg-type]
    for _ in range(15):
        reconciler.send_lldp()
    assert reconciler.status()["down"] == []
    for _ in range(5):
        reconciler.send_lldp()
    until(lambda: len(reconciler.status()["down"]) == 4 and settled(reconciler))
    fakes.gone = set()
    reconciler.bring_in_step(5)
    until(lambda: reconciler.status()["phase"] == "steady" and not reconciler.status()["down"])
    assert set(fakes.all_rules()) == before
