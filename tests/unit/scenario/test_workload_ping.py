from pathlib import Path

import pytest

from testbed.scenario.workloads import ping
from testbed.scenario.workloads.pairs import OutputError
from testbed.scenario.workloads.spec import Ping

_CAPTURED = (Path(__file__).parents[2] / "data" / "ping" / "ten.txt").read_text()


def test_command():
    process = ping.command(Ping(count=3, size=1000), "h1", "10.0.0.16")
    assert process.host == "h1"
    assert process.argv[-5:] == ("-s", "1000", "-W", "2", "10.0.0.16")
    assert process.argv[process.argv.index("-c") + 1] == "3"


def test_times_are_seconds():
    result = ping.parse(_CAPTURED)
    assert (result.sent, result.received) == (10, 10)
    assert (result.rtt_min, result.rtt_mean, result.rtt_max) == pytest.approx((2.204e-3, 2.644e-3, 3.283e-3))


def test_nothing_came_back():
    result = ping.parse("5 packets transmitted, 0 received, 100% packet loss, time 80ms\n")
    assert (result.sent, result.received, result.rtt_min) == (5, 0, None)


def test_garbage_is_a_sentence():
    with pytest.raises(OutputError, match="ping printed no statistics: ping: connect: Network is unreachable"):
        ping.parse("ping: connect: Network is unreachable\n")
