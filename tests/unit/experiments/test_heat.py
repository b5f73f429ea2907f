"""Heat maps and the drawings of telemetry."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from testbed.experiments.report.heatmaps import MAX_COLUMNS, MAX_ROWS, heat_panel, telemetry_charts
from testbed.experiments.report.marks import Heat
from testbed.experiments.report.palette import HEAT
from testbed.experiments.report.panels import Axis, Block, Picture
from testbed.experiments.report.render import for_page
from testbed.planning import make_plan
from testbed.results.telemetry import Telemetry
from testbed.scenario import parse_scenario

PLAN = make_plan(parse_scenario("topology: {kind: torus, sizes: [4, 4]}\nlab: {dilation: 200}", "made-up.yaml"))
LARGE = make_plan(
    parse_scenario("topology: {kind: torus, sizes: [8, 8], parallel_links: 2}\nlab: {dilation: 200}", "made-up.yaml")
)


def drawn(values, full=1.0, **options):
    values = np.array(values, dtype=float)
    edges = np.arange(values.shape[1] + 1, dtype=float)
    rows = [f"row {number}" for number in range(len(values))]
    panel = heat_panel(Heat(values, edges, full, ["0", "1"], "bar"), rows, Axis("below"), **options)
    return for_page(Picture([Block([panel])]), "h", "x")


def colours(svg):
    """How many outlines each colour of the scale has in the map itself (the bar has one of each)."""
    return {colour: svg.count(colour) - 1 for colour in HEAT if svg.count(colour) > 1}


def test_colours_go_with_the_values():
    assert set(colours(drawn([[0.0, 0.01, 1.0]], row=20))) == {HEAT[0], HEAT[-1]}
    assert set(colours(drawn([[5.0, 0.5]], full=1.0, row=20))) == {HEAT[-1], HEAT[6]}


def test_nothing_is_the_background():
    assert colours(drawn([[0.0, 0.0]], row=20)) == {}


def test_neighbours_of_a_colour_are_one_rectangle():
    whole, striped = (drawn([row], row=20) for row in ([0.5] * 60, [0.5, 0.0] * 30))
    assert len(striped) > len(whole) + 1000


def test_many_rows_are_named_only_in_part():
    svg = drawn(np.ones((200, 3)), row=2)
    assert 30 < len(re.findall(r">row \d+</text>", svg)) < 80


def made(plan, readings=40, repeats=1, hosts=None):
    """Every port sends at 45 % of its rate; host 0 sends to host 1 alone."""
    topology = plan.topology
    channels, count = len(topology.channel_source), topology.host_count
    ports = channels + count
    rate = plan.scenario.links.rate / plan.scenario.lab.dilation
    time = np.tile(np.arange(readings) * 0.1, repeats)
    frames = np.full((len(time), ports), 5, dtype=np.int64)
    sent = np.full((len(time), ports), int(0.45 * rate * 0.1 / 8) - 24 * 5, dtype=np.int64)
    zeros = np.zeros_like(sent)
    traffic = np.zeros((repeats, count, count), dtype=np.int64)
    traffic[:, 0, 1] = 4_000_000
    return Telemetry(
        ports=np.array([f"p{n}" for n in range(ports)]),
        hosts=np.array([topology.host_name(n) for n in range(count)]),
        port_rate=np.full(ports, rate),
        port_channel=np.append(np.arange(channels), [-1] * count).astype(np.int32),
        port_host=np.append([-1] * channels, np.arange(count)).astype(np.int32),
        window=np.array([[1.0, 3.0]] * repeats),
        repeat=np.repeat(np.arange(repeats), readings).astype(np.int32),
        time=time,
        sent_bytes=sent, sent_frames=frames, received_bytes=sent, received_frames=frames,
        port_drops=zeros, queue_drops=zeros, queue_frames=zeros, queue_bytes=zeros,
        processors=np.zeros((len(time), 3), dtype=np.int64),
        coarse_repeat=np.arange(repeats, dtype=np.int32), coarse_time=np.zeros(repeats),
        host_sent_bytes=np.zeros((repeats, count), dtype=np.int64),
        host_queue_drops=np.zeros((repeats, count), dtype=np.int64),
        host_queue_frames=np.zeros((repeats, count), dtype=np.int64),
        traffic_bytes=traffic, traffic_frames=traffic // 1500,
        departures=np.zeros((0, 4), dtype=np.int64), looks=np.zeros((0, 4), dtype=np.int64),
    )  # fmt: skip


def test_links_of_one_use_have_one_colour_all_the_time():
    use, traffic = telemetry_charts(PLAN, made(PLAN), "t")
    # The full scale is 50 %, of which 45 % is in the eleventh of twelve colours.
    assert set(colours(use.svg)) == {HEAT[10]}
    assert "all 64" in use.caption
    assert ">50 %</text>" in use.svg
    assert "Time since the start (ms)" in use.svg
    assert "4 MB in all" in traffic.caption


@pytest.mark.slow
def test_times_are_those_of_the_real_world():
    use = telemetry_charts(PLAN, made(PLAN), "t")[0]
    # 3.9 s in a lab that runs 200 times slower.
    assert ">15.0</text>" in use.svg or ">15</text>" in use.svg
    assert ">20.0</text>" not in use.svg


def test_queues_are_shown_where_frames_waited():
    waiting = np.zeros_like(made(PLAN).queue_frames)
    waiting[:, 3] = 40
    waiting[:, 66] = 90
    found = telemetry_charts(PLAN, replace(made(PLAN), queue_frames=waiting, queue_drops=waiting), "t")
    queues = found[1]
    assert [PLAN.topology.channel_name(3) in queues.svg, "s3→h3" in queues.svg] == [True, True]
    assert "Tail drops of switches in the whole load: 5,200 frames" in queues.caption


@pytest.mark.slow
def test_a_large_fabric_and_a_long_load_are_cut_down():
    use, traffic = telemetry_charts(LARGE, made(LARGE, readings=1000), "t")
    assert f"the {MAX_ROWS} busiest of 512" in use.caption
    assert MAX_COLUMNS < 1000
    assert len(use.svg) < 200_000
    assert "in all" in traffic.caption


def test_of_repeats_the_first_is_shown_and_all_counted():
    use, traffic = telemetry_charts(PLAN, made(PLAN, repeats=3), "t")
    assert "in the first repeat" in use.caption
    assert "12 MB in all" in traffic.caption


@pytest.mark.parametrize("readings", [1, 2])
def test_a_load_that_ended_at_once(readings):
    assert len(telemetry_charts(PLAN, made(PLAN, readings=readings), "t")) == (1 if readings == 1 else 2)


def test_without_counted_pairs_there_is_no_matrix():
    telemetry = made(PLAN)
    none = replace(telemetry, traffic_bytes=telemetry.traffic_bytes[:0], traffic_frames=telemetry.traffic_frames[:0])
    assert len(telemetry_charts(PLAN, none, "t")) == 1
