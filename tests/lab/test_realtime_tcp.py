"""TCP on modelled switches: what PAUSE makes of it, and in which pieces hosts hand it over."""

from __future__ import annotations

import json

import pytest

from testbed.base.messages import LoadRequest, Process
from testbed.experiments.run import realtime
from testbed.experiments.run.engines import run_scenario
from testbed.planning import make_plan
from testbed.scenario import parse_scenario


@pytest.mark.quiet(seat=1)
def test_where_switches_pause_tcp_loses_nothing_and_is_fair(tmp_path, untouched):
    load = "{kind: iperf3, protocol: tcp, pattern: complement, omit: 1, seconds: 3, repeats: 1}"
    text = (
        "topology: {kind: mesh, sizes: [2], hosts_per_switch: 2}\nengine: realtime\nlab: {dilation: 50}\n"
        f"simulator: {{flow_control: pause}}\nworkloads: [{load}]"
    )
    outcome = run_scenario(make_plan(parse_scenario(text, "test")), tmp_path, lambda text: None)
    goodput = [sample for sample in outcome.samples if sample.metric == "goodput"]
    # Two flows each way over a link, on which acknowledgements of the other two come back.
    share = 1e9 / 2 * 1448 / (1538 + 4 + (84 + 4) / 2)
    assert [sample.predicted for sample in goodput] == pytest.approx([share] * 4, rel=0.01)
    assert [sample.value for sample in outcome.samples if sample.metric == "retransmits"] == [0] * 4
    assert sum(sample.value for sample in goodput) == pytest.approx(4 * share, rel=0.1)


@pytest.mark.parametrize("tso", ["auto", "off"])
def test_hosts_hand_segments_over_whole_or_frame_by_frame(tso, untouched):
    text = f"topology: {{kind: mesh, sizes: [2]}}\nengine: realtime\nlab: {{dilation: 50, tso: {tso}}}"
    plan = make_plan(parse_scenario(text, "test"))
    with realtime.RealtimeEngine().build(plan, lambda text: None) as running:
        server = Process("s", "h2", ("iperf3", "-s", "-1"), 5201)
        client = Process("c", "h1", ("iperf3", "-c", "10.0.0.2", "-t", "2", "--json"))
        seen = running.run_load(LoadRequest((server, client), 60.0))
        assert json.loads(seen.outputs["c"].stdout)["end"]["sum_received"]["bits_per_second"] > 0.8 * 1e9 / 50
        told = running.run_load(LoadRequest((Process("snmp", "h1", ("cat", "/proc/net/snmp")),), 60.0))
    # Segments of a frame each, and packets that left the kernel.
    lines = [line.split() for line in told.outputs["snmp"].stdout.splitlines()]
    count = {
        f"{words[0]}{name}": int(number)
        for words, numbers in zip(lines[::2], lines[1::2], strict=True)
        for name, number in zip(words[1:], numbers[1:], strict=True)
    }
    a_packet = count["Tcp:OutSegs"] / count["Ip:OutRequests"]
    assert a_packet == pytest.approx(1, abs=0.02) if tso == "off" else a_packet > 2
