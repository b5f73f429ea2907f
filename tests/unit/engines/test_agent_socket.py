"""Whatever is sent to a lab's agent is answered by a sentence, and keeps nobody else from being answered."""

from __future__ import annotations

import json
import resource
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from testbed.base.errors import LabError
from testbed.engines.lab.control import agent_socket
from testbed.engines.lab.control.agent import Agent
from testbed.engines.lab.control.operation import OPERATIONS

_SHORT = 100_000


@pytest.fixture
def agent() -> Agent:
    """One that has built nothing, of which no long request is taken."""
    made = Agent()
    made.lab.max_request = _SHORT
    return made


@pytest.fixture
def client(agent: Agent) -> Iterator[socket.socket]:
    here, there = socket.socketpair()
    serving = threading.Thread(target=agent_socket.serve, args=(agent, there))
    serving.start()
    here.settimeout(20)
    yield here
    with suppress(OSError):
        here.shutdown(socket.SHUT_RDWR)
    here.close()
    serving.join(20)
    assert not serving.is_alive()


def answer(client: socket.socket) -> str:
    """The next answer, which is a sentence."""
    said = bytearray()
    while not said.endswith(b"\n"):
        heard = client.recv(65536)
        assert heard, "the agent has hung up without a word"
        said += heard
    found = json.loads(said)
    assert found.keys() == {"error"}
    assert "Traceback" not in found["error"]
    assert len(found["error"]) < 1000
    return str(found["error"])


def asked(name: object, request: object) -> bytes:
    return json.dumps({"op": name, "request": request}).encode()


_NO_JSON = "a request should be a line of JSON, and this is none: "
_NO_REQUEST = 'a request should be {"op": the name of an operation, "request": {its fields}}'


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        (b"", _NO_JSON),
        (b"\0", _NO_JSON),
        (b"{", _NO_JSON),
        (b"\xff\xfe", _NO_JSON),
        (b'{"op": "status", "request": {}} more', _NO_JSON),
        (b"[" * 50_000, _NO_JSON),
        (b"[" * 70 + b"]" * 70, _NO_JSON),
        (b"9" * 10_000, _NO_JSON),
        (b'"\\ud800"', _NO_JSON),
        (b"GET / HTTP/1.1\r", _NO_JSON),
        (b"null", _NO_REQUEST),
        (b"[]", _NO_REQUEST),
        (b"7", _NO_REQUEST),
        (b"{}", _NO_REQUEST),
        (b'{"op": "status"}', _NO_REQUEST),
        (b'{"request": {}}', _NO_REQUEST),
        (b'{"op": "status", "request": {}, "more": 1}', _NO_REQUEST),
        (asked("statu", {}), "there is no operation 'statu'. Did you mean \"status\"?"),
        (asked(None, {}), "there is no operation 'None'."),
        (asked([], {}), "there is no operation '[]'."),
        (asked({}, {}), "there is no operation '{}'."),
        (asked("x" * 50_000, {}), "there is no operation 'xxxx"),
        (asked("status", None), "'None' came where the lab's agent and its client pass GetStatus"),
        (asked("status", [1]), "'[1]' came where"),
        (asked("status", {"more": 1}), "came where the lab's agent and its client pass GetStatus"),
        (asked("speeds", {"speeds": {"a link": 1.0}}), "speeds: invalid literal for int()"),
        (asked("speeds", {"speeds": {"9" * 5000: 1.0}}), "speeds: "),
        (asked("speeds", {"speeds": []}), "'[]' came where"),
        (asked("speeds", {}), "SetSpeeds came without speeds"),
        (asked("rates", {"link_rate": "1", "host_rate": 1, "cpu_share": None, "dilation": 1}), "'1' came where"),
        (asked("write", {"file": "\ud800", "text": ""}), _NO_JSON),
        (asked("take", {"file": "a\0b"}), "the lab's agent failed at that: ValueError: "),
        (asked("build", {"order": {}}), "BuildOrder came without name, hosts"),
        (asked("flows", {}), "the lab is not built yet"),
        (asked("take", {"file": "x" * 5_000}), "File name too long"),
    ],
    ids=lambda value: value[:30].decode("latin-1").replace("\0", "NUL") if isinstance(value, bytes) else "",
)
def test_each_malformed_message_is_answered_and_the_next_heard(client, capfd, line, sentence):
    client.sendall(line + b"\n" + asked("status", {}) + b"\n")
    reader = client.makefile("rb")
    found = json.loads(reader.readline())
    assert found.keys() == {"error"}
    assert sentence in found["error"]
    assert len(found["error"]) < 1000
    assert json.loads(reader.readline())["result"]["doing"] in ("starting", "idle")
    reader.close()


def test_a_long_message_is_passed_over_and_takes_no_memory(client):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    piece = b"x" * (1 << 20)
    for _ in range(200):
        client.sendall(piece)
    client.sendall(b"\n")
    assert answer(client) == f"a request of {200 << 20:,} bytes; {_SHORT:,} are the most in this lab"
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50_000  # kB
    client.sendall(b" " * (_SHORT + 1) + b"\n")
    assert answer(client) == f"a request of {_SHORT + 1:,} bytes; {_SHORT:,} are the most in this lab"


def test_a_message_without_an_end_is_given_up(client, monkeypatch):
    monkeypatch.setattr(agent_socket, "PATIENCE", 0.3)
    client.sendall(asked("status", {}) + b"\n")
    assert b"starting" in client.recv(65536)
    time.sleep(0.5)  # between two requests a client may take its time
    client.sendall(b'{"op": "sta')
    assert answer(client) == "a request was not sent to its end in 0.3 s"
    assert client.recv(1) == b""


def test_a_message_that_comes_in_drops_is_given_up(client, monkeypatch):
    monkeypatch.setattr(agent_socket, "PATIENCE", 0.3)

    def drip() -> None:
        with suppress(OSError):
            while True:
                client.send(b" ")
                time.sleep(0.05)

    dripping = threading.Thread(target=drip)
    dripping.start()
    assert answer(client) == "a request was not sent to its end in 0.3 s"
    dripping.join(20)


def test_a_message_that_ends_without_a_line_feed_is_answered(client):
    client.sendall(asked("status", {}))
    client.shutdown(socket.SHUT_WR)
    assert answer(client) == "a request ends with a line feed, and this one ended without"


def test_half_messages_keep_nobody_from_being_answered(agent, tmp_path, monkeypatch):
    """As many as can be connected at once; those beyond are told so, until those in the way are given up."""
    monkeypatch.setattr(agent_socket, "PATIENCE", 1.0)
    monkeypatch.setattr(agent_socket, "CLIENTS", 20)
    place = tmp_path / "agent.sock"
    threading.Thread(target=agent_socket.listen, args=(place, agent), daemon=True).start()
    while not place.exists():
        time.sleep(0.01)
    held = [connected(place) for _ in range(20)]
    for one in held:
        one.sendall(b'{"op": ')
    told = connected(place)
    assert answer(told) == "20 programs are connected to the lab already; end some of them"
    for one in (*held, told):
        if one is not told:
            assert "not sent to its end" in answer(one)
        one.close()
    until = time.monotonic() + 20
    while True:  # the last of those may be just ending
        with connected(place) as one:
            one.sendall(asked("status", {}) + b"\n")
            if b"result" in one.recv(65536):
                break
        assert time.monotonic() < until
        time.sleep(0.05)


def connected(place: Path) -> socket.socket:
    made = socket.socket(socket.AF_UNIX)
    made.settimeout(20)
    made.connect(str(place))
    return made


def test_every_operation_can_be_named():
    for name, kind in OPERATIONS.items():
        with suppress(LabError):
            found = agent_socket.parse_request(asked(name, {}))
            assert (found.name, type(found)) == (name, kind)
