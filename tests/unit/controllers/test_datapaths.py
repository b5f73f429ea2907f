"""How a controller has Open vSwitch's daemons take out the flows of their datapaths."""

from __future__ import annotations

import json
import socket
import threading
from pathlib import Path
from typing import Any

import pytest

from controllers import kernel_flows
from controllers.kernel_flows import forget_flows


def listen(path: Path) -> socket.socket:
    one = socket.socket(socket.AF_UNIX)
    one.bind(str(path))
    one.listen()
    return one


def serve(path: Path, answer: bytes | None) -> list[Any]:
    """A daemon that answers one request, byte by byte, or never; returns what it was asked, once it was."""
    asked: list[Any] = []
    at = listen(path)

    def once() -> None:
        with at, at.accept()[0] as one:
            asked.append(json.loads(one.recv(4096)))
            for byte in answer or b"":
                one.sendall(bytes([byte]))
            one.recv(1)  # until the other side has gone

    threading.Thread(target=once, daemon=True).start()
    return asked


DONE = b'{"error":null,"id":0,"result":""}'
PURGE = {"id": 0, "method": "revalidator/purge", "params": []}


def test_all_daemons_are_asked_and_those_ended_passed_over(tmp_path):
    listen(tmp_path / "ovs-vswitchd.7.ctl").close()  # its socket stays
    asked = [serve(tmp_path / name, DONE) for name in ("ovs-vswitchd.8.ctl", "ovs-vswitchd-2.ctl")]
    others = serve(tmp_path / "ovsdb-server.6.ctl", DONE)
    assert forget_flows(tmp_path)
    assert (asked, others) == ([[PURGE], [PURGE]], [])


@pytest.mark.parametrize("answer", [None, b'{"error":"no such command","id":0,"result":null}', b"]", b"[]"])
def test_a_daemon_that_does_not_say_that_it_has_done_so_has_not(tmp_path, monkeypatch, answer):
    monkeypatch.setattr(kernel_flows, "_LIMIT", 0.1)
    serve(tmp_path / "ovs-vswitchd.8.ctl", answer)
    assert not forget_flows(tmp_path)
