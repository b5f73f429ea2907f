"""The program that counts frames between hosts, run over the loopback, and what is read of its output."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from testbed.engines.lab.hosts import loss_probe as probe_program
from testbed.engines.lab.hosts.loss_probe import LossProbe, PeerStats
from testbed.scenario.workloads import loss_probe
from testbed.scenario.workloads.pairs import OutputError

PAIRS = [("h1", "h2", "127.0.0.2"), ("h2", "h1", "127.0.0.1")]


def until(holds: Callable[[], bool]) -> None:
    """Wait, and no longer than a minute: what then does not hold fails the test."""
    end = time.monotonic() + 60
    while not holds() and time.monotonic() < end:
        time.sleep(0.01)


@pytest.fixture
def port():
    """One that nobody uses."""
    with socket.create_server(("127.0.0.1", 0)) as one:
        return one.getsockname()[1]


@pytest.fixture
def force(monkeypatch):
    """Without root a socket's buffer cannot be forced; an ordinary one will do here, which a long stall may fill."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        try:
            one.setsockopt(socket.SOL_SOCKET, probe_program._SO_RCVBUFFORCE, 8 << 20)
        except PermissionError:
            monkeypatch.setattr(probe_program, "_SO_RCVBUFFORCE", socket.SO_RCVBUF)


@pytest.mark.slow
def test_two_hosts_count_what_they_hear(force, port, tmp_path):
    stop = tmp_path / "stop"
    probes = {
        source: LossProbe(peer, port, 0.001, 64, stop, 1, own="127.0.0.1" if source == "h1" else "127.0.0.2")
        for source, _, peer in PAIRS
    }
    # One datagram is lost on the way, another comes twice.
    once = probes["h1"].send

    def faulty() -> None:
        if probes["h1"].sent == 100:
            probes["h1"].sent += 1
        once()
        if probes["h1"].sent == 200:
            probes["h1"].sent -= 1
            once()

    probes["h1"].send = faulty  # type: ignore[method-assign]
    with ThreadPoolExecutor(2) as pool:
        running = {source: pool.submit(one.run) for source, one in probes.items()}
        until(lambda: all(one.sent > 300 for one in probes.values()) and probes["h1"].echoes >= 3)
        stop.touch()
        outputs = {f"loss-probe-{source}": json.dumps(future.result(60)) for source, future in running.items()}
    for one in probes.values():
        one.close()
    there, back = loss_probe.parse(PAIRS, 1000, outputs)
    assert there.sent > 250
    assert (there.lost_count, there.duplicates, there.broken) == (1, 1, "")
    assert there.lost_at == (0.1,)
    assert (back.lost_count, back.duplicates, back.disordered) == (0, 0, 0)
    assert back.received == back.sent
    assert 0 < back.one_way["min"] <= back.one_way["mean"] <= back.one_way["max"]
    assert there.echoes >= 3


@pytest.mark.slow
def test_a_peer_that_is_gone_breaks_the_connection(force, port, tmp_path):
    stop = tmp_path / "stop"
    own = LossProbe("127.0.0.2", port, 0.01, 64, stop, 0, own="127.0.0.1")
    peer = LossProbe("127.0.0.1", port, 0.01, 64, stop, 1, own="127.0.0.2")

    def asked_in_vain() -> bool:
        return bool(own.broken) or (own.own not in own.ready.get_map() and not own.asked)

    def vanish() -> None:
        end = time.monotonic() + 60
        while own.echoes <= 3 and time.monotonic() < end:
            peer.receive(0.05)
        peer.close()
        until(asked_in_vain)
        stop.touch()

    gone = threading.Thread(target=vanish)
    gone.start()
    found = own.run()
    gone.join()
    own.close()
    assert found["broken"]
    assert found["echoes"] > 3


def test_overtaken_and_missing_numbers():
    heard = PeerStats()
    for number in (0, 2, 1, 5, 5):
        heard.add_datagram(number, 1000, 2000 + number)
    found = heard.as_object(7)
    assert (found["received"], found["lost"], found["duplicates"], found["disordered"]) == (4, [3, 4, 6], 1, 1)
    assert found["one_way"]["min"] == pytest.approx(1e-6)
    assert PeerStats().as_object(2)["lost"] == [0, 1]


def test_each_host_runs_one_process_that_knows_its_senders():
    one, other = loss_probe.commands(PAIRS, 1000, ("python3", "loss_probe.py"), "/run/lab/stop")
    assert one.argv == (
        "python3", "loss_probe.py", "--peer", "127.0.0.2", "--port", "7001", "--interval", "0.001", "--size", "64",
        "--stop", "/run/lab/stop", "--senders", "1",
    )  # fmt: skip
    assert (one.id, one.host, one.server_port, other.host) == ("loss-probe-h1", "h1", loss_probe.PORT, "h2")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("Traceback", "did not print its figures"),
        ('{"heard": {}, "sent": 3}', "h2 never heard how much h1 had sent"),
        ('{"heard": {"127.0.0.1": {}}, "sent": 3}', "did not print its figures"),
    ],
)
def test_output_that_is_no_figures(text, told):
    with pytest.raises(OutputError, match=told):
        loss_probe.parse(PAIRS, 1000, {"loss-probe-h1": text, "loss-probe-h2": text})


def test_the_program_needs_nothing_but_the_standard_library():
    text = (Path(loss_probe.__file__).parents[2] / "engines/lab/hosts/loss_probe.py").read_text()
    assert "testbed" not in text
    assert "numpy" not in text
