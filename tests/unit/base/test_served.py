"""A controller's status server: what is no request gets a sentence and the code 400, and the next one an answer."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from contextlib import closing

import pytest

from testbed.base import limits
from testbed.base.http_status import serve_status


@pytest.fixture
def port() -> Iterator[int]:
    server = serve_status(
        ("127.0.0.1", 0), {("POST", "/plan"): lambda asked: {"got": asked}, ("GET", "/"): lambda _: {}}, {}
    )
    yield server.server_address[1]
    server.shutdown()
    server.server_close()


def post(port: int, body: bytes, length: object = None) -> tuple[int, dict[str, object]]:
    with closing(socket.create_connection(("127.0.0.1", port), 10)) as connection:
        told = len(body) if length is None else length
        connection.sendall(f"POST /plan HTTP/1.0\r\nContent-Length: {told}\r\n\r\n".encode() + body)
        answer = b""
        while part := connection.recv(65536):
            answer += part
    head, _, text = answer.partition(b"\r\n\r\n")
    return int(head.split()[1]), json.loads(text)


@pytest.mark.parametrize(
    ("body", "length", "why"),
    [
        (b"[" * 4000, None, "it is nested too deeply: 64"),
        (b'{"plan": ' + b"[" * 500 + b"]" * 500 + b"}", None, "it is nested too deeply: 64"),
        (b'{"plan": "\\ud800"}', None, "an escape is half a character"),
        (b"\xff", None, "utf-8"),
        (b"{", None, "Expecting property name"),
        (b"[1]", None, "it should be a JSON object"),
        (b"{}", -1, "a body of -1 bytes; 1,073,741,824 bytes are the most that is read"),
        (b"{}", 1 << 40, "a body of 1,099,511,627,776 bytes; 1,073,741,824 bytes are the most"),
        (b"{}", "two", "invalid literal"),
    ],
    ids=["deep", "deep, closed", "half a character", "bytes", "cut off", "a list", "negative", "huge", "no number"],
)
def test_what_is_no_request_gets_a_sentence(port, body, length, why):
    code, answer = post(port, body, length)
    assert code == 400
    assert str(answer["error"]).startswith("not a request: ")
    assert why in str(answer["error"])
    assert post(port, b'{"plan": 1}') == (200, {"got": {"plan": 1}})


def test_a_request_with_too_many_values(port, monkeypatch):
    monkeypatch.setattr("testbed.base.http_status.PLAN_VALUES", 1000)
    code, answer = post(port, b'{"plan": [' + b"0," * 2000 + b"0]}")
    assert (code, answer) == (400, {"error": "not a request: has about 2,002 values; 1,000 values are the most that is "
                                    "read; TESTBED_LIMITS=10 in the environment is ten times as much"})  # fmt: skip
    monkeypatch.setenv(limits.VARIABLE, "10")
    assert post(port, b'{"plan": [' + b"0," * 2000 + b"0]}")[0] == 200
