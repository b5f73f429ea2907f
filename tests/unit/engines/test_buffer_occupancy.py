"""How a deadlock came about: the same run once more, and its drawings."""

from __future__ import annotations

import io
from xml.etree import ElementTree

import numpy as np
import pytest
from PIL import Image, ImageSequence

from testbed.engines.simulate import Network, PacketSettings, Settings, simulate, simulate_packets
from testbed.engines.simulate.buffer_occupancy import MAX_SNAPSHOTS, snapshots_of
from testbed.engines.simulate.detail_levels import packet_network
from testbed.experiments.report.drawing import CYCLE, animate_occupancy, draw_occupancy
from tests.fabrics import plan_of

FLITS = Settings(clocks=1_000_000, warm_up=0, packet=16, buffer=16)
PACKETS = PacketSettings(duration=5000, warm_up=0, buffer=4 * 1522)


def ring():
    return plan_of("ring", {"kind": "dor", "ring": "shortest"}, switches=6, hosts_per_switch=2)


@pytest.mark.parametrize("settings", [FLITS, PACKETS], ids=["flit", "packet"])
def test_the_ring_fills_and_the_last_moment_shows_the_cycle(settings):
    plan = ring()
    if isinstance(settings, PacketSettings):
        point = simulate_packets(packet_network(plan, settings), 1.0, 1)
    else:
        point = simulate(Network.from_routes(plan.topology, plan.routes, settings, 1), 1.0, 1)
    assert point is not None
    moments = snapshots_of(plan, settings, point)
    assert 3 <= len(moments) <= MAX_SNAPSHOTS
    assert moments[0].fill.max() == 0
    assert all(moment.cycle == () for moment in moments[:-1])
    last = moments[-1]
    assert tuple(plan.topology.channel_name(channel) for channel in last.cycle) == point.cycle
    # Room that is promised is gone before the flits have come.
    assert last.fill[list(last.cycle)].min() > 0
    assert all(moment.fill.max() <= 1 for moment in moments)


def panels():
    plan = ring()
    fill = np.linspace(0, 1, len(plan.topology.channel_source))
    return plan.topology, [("0.00 ms", 0 * fill, ()), ("1.00 ms", fill, ()), ("2.00 ms", fill, (0, 2, 4, 6, 8, 10))]


def test_moments_stand_side_by_side_with_the_cycle_in_red():
    topology, moments = panels()
    drawn = draw_occupancy(topology, moments)
    text = "".join(ElementTree.fromstring(drawn.decode()).itertext())
    assert "0.00 ms" in text
    assert "2.00 ms: deadlock" in text
    # Line, arrow head of each channel of the cycle, and the title.
    assert drawn.count(CYCLE.encode()) >= 6
    assert CYCLE.encode() not in draw_occupancy(topology, moments[:2])
    assert drawn == draw_occupancy(topology, moments)


def test_the_animation_has_a_frame_a_moment_and_the_last_stays():
    topology, moments = panels()
    with Image.open(io.BytesIO(animate_occupancy(topology, moments))) as image:
        assert image.format == "GIF"
        shown = [frame.info["duration"] for frame in ImageSequence.Iterator(image)]
    assert len(shown) >= 3
    assert sum(shown) == 6000
