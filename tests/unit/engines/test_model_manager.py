"""The segment manager on tables of a model: what it does when links, ports and switches of it die."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from testbed.dataplane.kernels.packets_state import ASKED, DISCARD, FREE, TAKEN, PacketModel
from testbed.engines.lab.control.build import build_order
from testbed.engines.lab.hosts.interface_names import MODEL
from testbed.engines.realtime.change_plan import tables_now
from testbed.engines.realtime.check_paths import walk
from testbed.engines.realtime.installer import ModelInstaller, table_differences
from testbed.engines.realtime.manager_program import ModelManager
from testbed.engines.realtime.port_state import Ports
from testbed.engines.realtime.shared_memory import attach, write
from testbed.engines.simulate.switch_model import live_model
from testbed.planning import Plan, make_plan
from testbed.planning.failover.failed_elements import FailedElements, cut_off, failed_elements
from testbed.planning.failover.model_tables import all_tables
from testbed.planning.failover.tables import whole_tables
from testbed.planning.failures import first_tables
from testbed.scenario import parse_scenario

_MANAGED = "\nengine: realtime\nlab: {controller: segment_manager, dilation: 20}"
_RING = "topology: {kind: ring, switches: 4, hosts_per_switch: 2}"


def _plan(text: str = _RING) -> Plan:
    return make_plan(parse_scenario(f"{text}{_MANAGED}", "test"))


class Lab:
    """The files of a lab, and somebody who takes other tables as the model's process does."""

    def __init__(self, plan: Plan, folder: Path) -> None:
        self.plan, self.folder = plan, folder
        write(folder / MODEL, live_model(plan))
        self.model = attach(folder / MODEL, PacketModel)
        self.ports = Ports(build_order(plan), folder)
        self.takes, self._ended = threading.Event(), threading.Event()
        self.takes.set()
        self._thread = threading.Thread(target=self._take, daemon=True)
        self._thread.start()

    def _take(self) -> None:
        while not self._ended.is_set():
            if self.takes.wait(0.01):
                self.model.live.edition[TAKEN] = self.model.live.edition[ASKED]
            time.sleep(0.001)

    def end(self) -> None:
        self._ended.set()
        self._thread.join()

    def manager(self) -> ModelManager:
        return ModelManager(self.plan, self.folder, self.folder / "state", 20)

    def set(self, manager: ModelManager, *links: int, up: bool) -> None:
        """As `testbed link` does: both ends."""
        self.ports.set([2 * link + end for link in links for end in (0, 1)], [], up=up)
        self.look(manager)

    def look(self, manager: ModelManager) -> None:
        self.model.live.down[:] = self.ports.dead_links()
        manager.look()

    def undelivered(self, failed: FailedElements) -> list[tuple[int, int]]:
        """Pairs that something connects, and whose frames would not arrive over what is alive."""
        topology, tables = self.plan.topology, tables_now(self.folder, self.model)
        cut = cut_off(topology, failed)
        lost = []
        for source, end in zip(*(~cut).nonzero(), strict=True):
            taken, arrives = walk(tables, topology, int(source), int(end))
            if source != end and (arrives != end or any(failed.links[channel // 2] for channel in taken)):
                lost.append((int(source), int(end)))
        return lost


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    found = Lab(_plan(), tmp_path)
    yield found
    found.end()


def _until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + 120  # kernels may have to be compiled first
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.01)


def _settled(manager: ModelManager) -> bool:
    return str(manager.status()["phase"]).startswith("steady")


def test_backups_are_there_from_the_start_and_no_host_uses_them(lab: Lab) -> None:
    whole = first_tables(lab.plan)
    assert whole is not None
    tables = lab.model.live.tables
    assert set(tables.vlan_id.tolist()) == {*whole.vlans.vlan_ids.tolist(), *whole.backups.vlan_ids.tolist()}
    sent_in = tables.vlan_id[tables.host_class // tables.switches]
    assert set(sent_in.tolist()) <= set(whole.vlans.vlan_ids.tolist())
    assert lab.manager().status()["phase"] == "steady"
    assert lab.model.live.edition.tolist() == [0, 0]


def test_a_link_dies_and_comes_back(lab: Lab) -> None:
    manager = lab.manager()
    for link in (0, 2):
        failed = failed_elements(lab.plan.topology, [link])
        lab.takes.clear()
        lab.set(manager, link, up=False)
        # At once, before any other tables are in force.
        assert lab.undelivered(failed) == []
        assert manager.status()["diverted"]
        lab.takes.set()
        _until(lambda: _settled(manager))
        assert manager.status()["phase"] == "steady, damaged"
        assert lab.undelivered(failed) == []
        lab.set(manager, link, up=True)
        _until(lambda: manager.status()["phase"] == "steady")
        assert lab.undelivered(failed_elements(lab.plan.topology)) == []
        wanted = all_tables(lab.plan.topology, manager.manager.whole)
        assert table_differences(wanted, tables_now(lab.folder, lab.model)) == 0
    died = manager.status()["events"][0]
    assert died["down"] == ["link s1–s2"]
    recovered, settled = died["recovered"], died["settled"]
    assert recovered is not None
    assert settled is not None
    assert died["detected"] <= died["diverted"] <= recovered <= settled
    assert died["hosts_moved"] > 0
    assert len(manager.status()["events"]) == 4


def test_what_dies_while_tables_are_awaited_goes_into_both(lab: Lab) -> None:
    manager = lab.manager()
    topology = lab.plan.topology
    lab.takes.clear()
    lab.set(manager, 0, up=False)
    _until(lambda: lab.model.live.edition[ASKED] > lab.model.live.edition[TAKEN])
    number = int(lab.model.live.edition[ASKED])
    lab.ports.set([], [5], up=False)
    lab.set(manager, 0, 1, up=False)
    lab.takes.set()
    _until(lambda: lab.model.live.edition[TAKEN] > number)  # what was asked for before is gone
    _until(lambda: _settled(manager))
    assert lab.undelivered(failed_elements(topology, [0, 1], [5])) == []
    assert len(manager.status()["events"]) == 2


def test_a_switch_dies_and_is_called_dead(lab: Lab) -> None:
    manager = lab.manager()
    lab.ports.kill(1, up=False)
    lab.look(manager)
    _until(lambda: _settled(manager))
    told = manager.status()
    assert told["down"] == ["switch s2"]
    assert (told["in_step"], told["switches"]["s2"]["state"]) == (3, "gone")
    assert lab.undelivered(failed_elements(lab.plan.topology, switches=[1])) == []
    # A link that was taken down meanwhile does not come back with the switch.
    lab.ports.set([0], [], up=False)
    lab.ports.kill(1, up=True)
    lab.look(manager)
    _until(lambda: manager.status()["phase"] == "steady, damaged" and manager.status()["in_step"] == 4)
    assert manager.status()["down"] == ["link s1–s2"]
    assert lab.undelivered(failed_elements(lab.plan.topology, [0])) == []


def test_hosts_beyond_reach_are_not_flooded(tmp_path: Path) -> None:
    lab = Lab(_plan("topology: {kind: tree, switches: 7, arity: 2}"), tmp_path)
    manager = lab.manager()
    lab.set(manager, 0, up=False)
    _until(lambda: _settled(manager))
    topology, failed = lab.plan.topology, failed_elements(lab.plan.topology, [0])
    assert lab.undelivered(failed) == []
    assert manager.status()["cut_off"] == int(cut_off(topology, failed).sum()) > 0
    tables = tables_now(lab.folder, lab.model)
    for source, end in zip(*cut_off(topology, failed).nonzero(), strict=True):
        assert tables.next_hop[tables.host_class[source], end] == DISCARD
    lab.end()


def test_frames_on_old_paths_are_waited_for(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("testbed.engines.realtime.installer._HELD", 0.02)
    manager = lab.manager()
    # A frame that is under way, in a VLAN that the dead link ends.
    state, live = lab.model.state, lab.model.live
    state.counts[FREE] -= 1
    (hit,) = np.flatnonzero(manager.manager.whole.vlans.tagged_links[:, 0])[:1]
    live.tag[state.free[state.counts[FREE]]] = manager.manager.whole.vlans.vlan_ids[hit]
    lab.set(manager, 0, up=False)
    _until(lambda: manager.status()["events"][0]["recovered"] is not None)
    _until(lambda: "does a pause hold them?" in manager.status()["problem"])
    assert manager.status()["phase"] == "new tables"
    # Another death is more urgent.
    lab.set(manager, 0, 2, up=False)
    _until(lambda: manager.status()["events"][1]["recovered"] is not None)
    state.counts[FREE] += 1
    _until(lambda: _settled(manager))
    assert manager.status()["problem"] == ""


def test_a_restart_touches_no_table(lab: Lab) -> None:
    manager = lab.manager()
    lab.set(manager, 3, up=False)
    _until(lambda: _settled(manager))
    _until((lab.folder / "state").exists)
    edition = lab.model.live.edition.tolist()
    again = lab.manager()
    again.look()
    assert again.status()["events"] == manager.status()["events"]
    assert again.status()["down"] == manager.status()["down"]
    assert lab.model.live.edition.tolist() == edition
    # Tables that are not those it left are replaced.
    tables_now(lab.folder, lab.model).next_hop[:] = DISCARD
    lab.manager()
    assert lab.undelivered(failed_elements(lab.plan.topology, [3])) == []


def test_a_pvid_has_its_vlan(lab: Lab) -> None:
    tables = whole_tables(lab.plan.topology, lab.plan.routes, lab.plan.vlans, "updown")  # type: ignore[arg-type]
    installer = ModelInstaller(lab.folder, lab.model, lab.plan.topology, tables)
    hosts = np.arange(2, dtype=np.int32)
    installer.divert(hosts, np.zeros(2, dtype=np.int32))
    live = lab.model.live.tables
    assert (live.vlan_id[live.host_class[:2] // live.switches] == tables.backups.vlan_ids[0]).all()
    assert (live.host_class % live.switches == lab.plan.topology.host_switch).all()
