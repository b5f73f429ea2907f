"""The segment manager on switches made of dictionaries: what it does when links, ports and switches die."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from os_ken.ofproto import ofproto_v1_3
from os_ken.ofproto.ofproto_protocol import ProtocolDesc

from controllers import segments
from controllers.encode import add_bytes, remove_bytes
from controllers.refused import RefusedError
from controllers.segments import SegmentReconciler
from controllers.switches import SwitchError
from controllers.wire import Content, add_message, place, remove_message
from testbed.failover.failed import FailedElements, cut_off, failed_elements
from testbed.model import Rule
from testbed.pipeline.oracle import Oracle
from testbed.plan import Plan
from tests.fabrics import plan_of

DATAPATH = ProtocolDesc(ofproto_v1_3.OFP_VERSION)


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
    rules = [drop, *plan_of(kind, {"kind": routing}, sizes=sizes).rules]
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
        self.go_on = threading.Event()
        self.go_on.set()

    def need(self, number: int) -> None:
        if number in self.gone:
            raise SwitchError(f"{self.names[number]} is not connected")

    def connected(self) -> set[int]:
        return set(range(len(self.names))) - self.gone

    def become_master(self, number: int, generation: int) -> None:
        self.need(number)

    def rules(self, number: int, learnable: Collection[Content] = ()) -> tuple[list[Rule], list[Any]]:
        assert not learnable
        self.need(number)
        return list(self.tables[number].values()), []

    def ports(self, number: int) -> dict[int, Port]:
        self.need(number)
        count = int(self.topology.port_count[number])
        return {port: Port(state=(number, port) in self.down) for port in range(1, count + 1)}

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


def started(plan: Plan, memory: Path | None = None, fakes: Fakes | None = None) -> tuple[SegmentReconciler, Fakes]:
    fakes = fakes or Fakes(plan)
    reconciler = SegmentReconciler(plan, fakes, math.inf, memory)  # type: ignore[arg-type]
    for number in sorted(fakes.connected()):
        reconciler.bring_in_step(number)
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


def test_a_switch_that_hangs_up_is_dead_after_a_while_and_alive_when_it_is_back(monkeypatch):
    monkeypatch.setattr(segments, "HANG_UP_GRACE", 0.05)
    plan = plan_of("torus", sizes=[4, 4])
    reconciler, fakes = started(plan)
    fakes.gone.add(5)
    reconciler.gone(5)
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
    reconciler.gone(5)
    time.sleep(0.1)
    assert reconciler.status()["events"] == []


def test_a_bridge_that_dies_divides_the_fabric_and_the_rest_goes_on():
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
    until(memory.exists)
    sent = fakes.sent
    again, _ = started(plan, memory, fakes)
    assert fakes.sent == sent
    assert again.status()["down"] == reconciler.status()["down"]
    assert again.status()["events"] == []
    fakes.down.clear()
    fail(again, plan, 7, down=False)
    until(lambda: again.status()["phase"] == "steady" and bool(again.status()["events"]))
    assert fakes.undelivered(failed_elements(plan.topology)) == 0


def test_a_failure_while_the_controller_was_away_is_found_when_it_starts(tmp_path):
    plan = plan_of("torus", sizes=[4, 4])
    _, fakes = started(plan, tmp_path / "state")
    fakes.down.add((int(plan.topology.channel_source[14]), int(plan.topology.out_port[14])))
    again, _ = started(plan, tmp_path / "state", fakes)
    until(lambda: settled(again) and bool(again.status()["down"]))
    assert fakes.undelivered(failed_elements(plan.topology, [7])) == 0


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
