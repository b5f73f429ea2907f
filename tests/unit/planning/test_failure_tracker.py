"""What ports that are down and switches that are gone leave dead."""

from __future__ import annotations

from dataclasses import dataclass

from controllers.segments import is_down
from testbed.planning.failover.failed_elements import failed_elements
from testbed.planning.failover.failure_tracker import FailureTracker
from tests.fabrics import plan_of


@dataclass
class Port:
    state: int = 0
    config: int = 0


TOPOLOGY = plan_of("torus", sizes=[4, 4]).topology


def end_of(channel: int) -> tuple[int, int]:
    return int(TOPOLOGY.channel_source[channel]), int(TOPOLOGY.out_port[channel])


def test_a_link_is_dead_while_one_of_its_ends_is_down():
    tracker = FailureTracker(TOPOLOGY)
    for channel in (14, 15):
        tracker.port_changed(*end_of(channel), down=True)
        assert tracker.failed_elements().same_as(failed_elements(TOPOLOGY, [7]))
    tracker.port_changed(*end_of(14), down=False)
    assert tracker.failed_elements().same_as(failed_elements(TOPOLOGY, [7]))
    tracker.port_changed(*end_of(15), down=False)
    assert tracker.failed_elements().same_as(failed_elements(TOPOLOGY))


def test_a_switch_that_connects_is_alive_with_all_ports_known():
    tracker = FailureTracker(TOPOLOGY)
    host_end = (int(TOPOLOGY.host_switch[2]), int(TOPOLOGY.host_port[2]))
    switch, port = end_of(14)
    assert switch != host_end[0]
    tracker.port_changed(*host_end, down=True)
    tracker.port_changed(switch, port, down=True)
    tracker.dead.add(switch)
    assert tracker.failed_elements().same_as(failed_elements(TOPOLOGY, [], [2], [switch]))
    tracker.switch_connected(switch, [])
    assert tracker.failed_elements().same_as(failed_elements(TOPOLOGY, [], [2]))
    tracker.switch_connected(switch, [port])
    assert tracker.failed_elements().same_as(failed_elements(TOPOLOGY, [7], [2]))


def test_a_port_with_nothing_behind_it_is_of_no_concern():
    tracker = FailureTracker(TOPOLOGY)
    local = 0xFFFFFFFE  # of every bridge, down unless somebody raises it
    assert not tracker.has_neighbour(0, local)
    tracker.switch_connected(0, [local])
    assert tracker.down == set()


def test_a_port_is_down_without_carrier_and_when_shut():
    assert is_down(Port(state=1))
    assert is_down(Port(config=1))
    assert not is_down(Port(state=4))  # OFPPS_LIVE
