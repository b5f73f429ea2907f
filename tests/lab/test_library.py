"""A lab from Python: its hosts run commands, and it ends with the block."""

from __future__ import annotations

import time

import pytest

import testbed as tb


def test_hosts_of_a_lab_run_commands_until_the_block_ends(untouched):
    plan = tb.plan({"topology": {"kind": "mesh", "sizes": [3]}, "lab": {"dilation": 100}})
    said: list[str] = []
    with pytest.raises(ZeroDivisionError), tb.lab(plan, said.append) as lab:  # noqa: PT012 - it ends however the block does
        h1, h3 = lab.host("h1"), lab.host("h3")
        ping = h1.run(["ping", "-c", "1", "h3"])
        assert (ping.exit_code, f"from {h3.ip}" in ping.stdout) == (0, True)
        assert (h1.run(["sh", "-c", "echo no >&2; exit 4"]).exit_code, lab.unreachable()) == (4, [])
        with h3.start(["iperf3", "-s", "-1"]):
            until = time.monotonic() + 20
            while h3.run(["sh", "-c", "cat /proc/net/tcp /proc/net/tcp6"]).stdout.count(":1451 ") == 0:
                assert time.monotonic() < until  # the server does not listen at once
            sent = h1.run(["iperf3", "-c", "h3", "-t", "1", "--connect-timeout", "5000"])
        assert "receiver" in sent.stdout, sent
        with pytest.raises(tb.WorkloadError, match=r"sleep 30 … did not end in 0.5 s"):
            h1.run(["sleep", "30"], timeout=0.5)
        with pytest.raises(tb.WorkloadError, match=r"/no/such is not installed"):
            h1.run(["/no/such"])
        with pytest.raises(tb.InputError, match=r'should be a list of words such as .*, not "ping h2"'):
            h1.run("ping h2")
        with pytest.raises(tb.InputError, match=r'the lab has no host "h4"\. Did you mean "h'):
            lab.host("h4")
        assert repr(lab) == f"<lab python: 3 switches, 3 hosts, {lab.core.facts.datapath} datapath, dilation 100>"
        1 / 0  # noqa: B018
    assert said[-1] == "checking the path of every pair"
