"""Who connects to the live page and sends nothing, or half a request, keeps nobody from being served."""

from __future__ import annotations

import json
import socket
import time
from contextlib import ExitStack, closing
from urllib.parse import urlsplit

import pytest

from testbed.ui.live import connections
from tests.unit.ui.test_live_page import ask, events, lab, open_page, source  # noqa: F401 - fixtures

HALF = b"GET /x HTTP/1.1\r\nHost: "


def half_requests(address: str, count: int, kept: ExitStack) -> list[socket.socket]:
    """So many connections on each of which half a request was sent."""
    made = []
    for _ in range(count):
        one = kept.enter_context(closing(socket.create_connection(("127.0.0.1", int(urlsplit(address).port or 0)), 10)))
        one.sendall(HALF)
        made.append(one)
    return made


def ended(one: socket.socket) -> bool:
    """Whether the other side has closed a connection; waits for a while."""
    one.settimeout(10)
    try:
        while one.recv(4096):
            pass
        return True
    except ConnectionResetError:
        return True
    except TimeoutError:
        return False


def test_half_sent_requests_keep_nobody_from_being_served(source):  # noqa: F811
    with open_page(source) as (_, address), events(address) as stream, ExitStack() as kept:
        next(stream)
        half_requests(address, 300, kept)
        for _ in range(5):
            assert ask(address, "fabric")[0] == 200
            half_requests(address, 20, kept)
        assert "reading" in next(stream)  # the viewer that was there before them is still served


def test_of_too_many_without_the_token_the_oldest_is_closed(source):  # noqa: F811
    with open_page(source) as (_, address), ExitStack() as kept:
        first, *_, last = half_requests(address, connections.MAX_UNAUTHENTICATED + 1, kept)
        assert ended(first)
        last.sendall(b"127.0.0.1\r\n\r\n")
        assert last.recv(4096).startswith(b"HTTP/1.1 403 ")


def test_without_the_token_a_connection_ends_and_with_it_stays(source, monkeypatch):  # noqa: F811
    monkeypatch.setattr(connections, "HEADER_LIMIT", 0.4)
    with open_page(source) as (_, address), events(address) as stream, ExitStack() as kept:
        (half,) = half_requests(address, 1, kept)
        where = urlsplit(address)
        refused = kept.enter_context(closing(socket.create_connection(("127.0.0.1", int(where.port or 0)), 10)))
        refused.sendall(f"GET /x/events HTTP/1.1\r\nHost: {where.netloc}\r\n\r\n".encode())
        assert refused.recv(4096).startswith(b"HTTP/1.1 403 ")
        assert ended(half)
        assert ended(refused)
        until = time.monotonic() + 1
        while time.monotonic() < until:  # longer than the limit
            assert "reading" in next(stream)


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("[" * 4000, "it is nested too deeply"),
        ('{"do": ' + "[" * 900 + "]" * 900 + "}", "it is nested too deeply"),
        ('{"do":"down","link":"\\ud800"}', "half a character"),
        ('{"do":"\\udfff"}', "half a character"),
        ('{"\\ud800": 1}', "half a character"),
        ("{", "Expecting"),
        (b"\xff\xfe", "utf-8"),
        ("[]", "should be a JSON object"),
        ('{"do":' + "9" * 4000 + "}", "do: should be"),
    ],
    ids=["deep", "deep and closed", "half a character", "low half", "a key", "cut off", "bytes", "a list", "long"],
)
def test_a_button_sends_what_is_no_request(source, body, why):  # noqa: F811
    with open_page(source) as (_, address):
        code, text = ask(address, "do", "POST", body, **{"Content-Type": "application/json"})
    assert (code, why in json.loads(text)["problem"]) == (400, True), text
