import json
from pathlib import Path

import pytest

from testbed.scenario.workloads import iperf3
from testbed.scenario.workloads.pairs import OutputError
from testbed.scenario.workloads.spec import Iperf3

_DATA = Path(__file__).parents[2] / "data" / "iperf3"
UDP = Iperf3("udp", seconds=5, omit=2)
TCP = Iperf3("tcp", seconds=10, omit=5)


def captured(protocol: str, end: str) -> str:
    return (_DATA / f"{protocol}-{end}.json").read_text()


def test_each_flow_gets_a_server_and_a_port_of_its_own():
    flows = [("h1", "h3", "10.0.0.3"), ("h2", "h3", "10.0.0.3"), ("h3", "h1", "10.0.0.1")]
    servers, clients = iperf3.commands(UDP, flows, [1e6, 2e6, 3e6])
    assert [(s.host, s.server_port) for s in servers] == [("h3", 5201), ("h3", 5202), ("h1", 5201)]
    assert [c.host for c in clients] == ["h1", "h2", "h3"]
    assert clients[1].argv == (
        *("iperf3", "-c", "10.0.0.3", "-p", "5202", "-J", "-t", "7"),
        *("-u", "-b", "2000000", "-l", "1470", "--pacing-timer", "2940"),
    )


def test_tcp_names_its_congestion_control_and_no_rate():
    _, (client,) = iperf3.commands(TCP, [("h1", "h2", "10.0.0.2")], [1e6])
    assert client.argv[-2:] == ("-C", "reno")
    assert "-b" not in client.argv


@pytest.mark.parametrize(("spec", "protocol"), [(UDP, "udp"), (TCP, "tcp")])
def test_goodput_is_the_mean_of_the_counted_seconds(spec, protocol):
    result = iperf3.parse(spec, captured(protocol, "server"), captured(protocol, "client"))
    seconds = json.loads(captured(protocol, "server"))["intervals"][spec.omit : spec.omit + spec.seconds]
    rates = [interval["sum"]["bits_per_second"] for interval in seconds]
    assert result.goodput == pytest.approx(sum(rates) / len(rates), rel=0.01)
    assert 8e6 < result.goodput < 1e7


def test_udp_has_loss_and_jitter_and_tcp_has_retransmits():
    udp = iperf3.parse(UDP, captured("udp", "server"), captured("udp", "client"))
    assert udp.retransmits is None
    assert udp.loss is not None
    assert 0 <= udp.loss < 0.1
    assert udp.jitter is not None
    assert 0 < udp.jitter < 0.1
    tcp = iperf3.parse(TCP, captured("tcp", "server"), captured("tcp", "client"))
    assert (tcp.loss, tcp.jitter) == (None, None)
    assert tcp.retransmits is not None


@pytest.mark.parametrize(("spec", "protocol"), [(UDP, "udp"), (TCP, "tcp")])
def test_the_warm_up_is_told_apart(spec, protocol):
    server = json.loads(captured(protocol, "server"))
    for interval in server["intervals"][: spec.omit]:
        interval["sum"]["bytes"] = interval["sum"]["seconds"] * 1000
    result = iperf3.parse(spec, json.dumps(server), captured(protocol, "client"))
    assert result.warmup == pytest.approx(8000)
    assert result.goodput > 8e6


def test_without_a_warm_up_there_is_no_figure_of_it():
    spec = Iperf3("udp", seconds=5, omit=0)
    assert iperf3.parse(spec, captured("udp", "server"), captured("udp", "client")).warmup is None


def test_jitter_is_that_of_the_counted_seconds():
    server = json.loads(captured("udp", "server"))
    for number, interval in enumerate(server["intervals"]):
        interval["sum"]["jitter_ms"] = 2.0 if 2 <= number < 7 else 50.0
    assert iperf3.parse(UDP, json.dumps(server), captured("udp", "client")).jitter == pytest.approx(0.002)


def test_lost_datagrams_count():
    server = json.loads(captured("udp", "server"))
    for interval in server["intervals"]:
        interval["sum"]["packets"], interval["sum"]["lost_packets"] = 100, 25
    assert iperf3.parse(UDP, json.dumps(server), captured("udp", "client")).loss == 0.25


def test_a_datagram_counted_as_lost_and_then_as_late_is_neither():
    server = json.loads(captured("udp", "server"))
    for number, interval in enumerate(server["intervals"]):
        interval["sum"]["packets"], interval["sum"]["lost_packets"] = 100, 2**64 - 1 if number % 2 else 1
    loss = iperf3.parse(UDP, json.dumps(server), captured("udp", "client")).loss
    assert loss is not None
    assert 0 <= loss <= 0.01


def test_a_flow_that_stopped_early_is_an_error():
    server = json.loads(captured("udp", "server"))
    server["intervals"] = server["intervals"][:3]
    with pytest.raises(OutputError, match=r"saw 1.0 of 5 s of the flow"):
        iperf3.parse(UDP, json.dumps(server), captured("udp", "client"))


@pytest.mark.parametrize(
    ("server", "sentence"),
    [
        ("", "the iperf3 server printed no JSON: nothing"),
        ("iperf3: error - x", "the iperf3 server printed no JSON: iperf3: error - x"),
        ('{"error": "unable to connect"}', "the iperf3 server says: unable to connect"),
        ("{}", "iperf3 printed JSON without 'intervals'"),
    ],
)
def test_garbage_is_a_sentence(server, sentence):
    with pytest.raises(OutputError) as caught:
        iperf3.parse(UDP, server, captured("udp", "client"))
    assert str(caught.value) == sentence
