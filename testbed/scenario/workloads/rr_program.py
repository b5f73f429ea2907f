"""Ask and answer, one request after the other; run as a program in a host, so it imports nothing of the testbed.

Debian 12 has no netperf in `main`; the responses of sockperf always have the size of the request, and qperf gives
averages only. The interpreter is part of each transaction: some 17 µs over the loopback interface, which a lab divides
by its dilation.

    rr_program.py answer tcp|udp PORT REQUEST RESPONSE
    rr_program.py ask tcp|udp ADDRESS PORT REQUEST RESPONSE SECONDS

Sizes are bytes of payload. Who answers listens for a TCP connection; over UDP it carries nothing and tells, by its end,
that all was asked. Who asks prints one JSON object: how many transactions there were in how many seconds, how many
requests got no response in time, and the shortest, mean and longest transaction and three percentiles in seconds.
"""

import json
import math
import select
import socket
import struct
import sys
import time

_NUMBER = struct.Struct("!I")
# Before those that count: addresses, routes and caches are then as they stay.
_WARM_UP = 10
# Of a request over UDP, and of a connection that says nothing; s.
_LOST, _SILENT = 2.0, 30.0


def _receive(one: socket.socket, size: int) -> bool:
    """Take so many bytes; False where the other end closed the connection."""
    while size > 0:
        part = one.recv(min(size, 1 << 16))
        if not part:
            return False
        size -= len(part)
    return True


def answer(protocol: str, port: int, request: int, response: int) -> None:
    """Answer the requests of one connection."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as datagrams:
        datagrams.bind(("", port))  # before the other port is open, which is what who asks is started after
        with socket.create_server(("", port)) as server:
            one, _ = server.accept()
        with one:
            one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if protocol == "tcp":
                content = bytes(response)
                while _receive(one, request):
                    one.sendall(content)
                return
            filling = bytes(response - _NUMBER.size)
            while True:
                ready, _, _ = select.select([one, datagrams], [], [])
                if datagrams in ready:
                    asked, sender = datagrams.recvfrom(1 << 16)
                    datagrams.sendto(asked[: _NUMBER.size] + filling, sender)
                elif not one.recv(1):
                    return


def ask(protocol: str, address: str, port: int, request: int, response: int, seconds: float) -> None:
    """Ask for some seconds, and print what came of it."""
    with (
        socket.create_connection((address, port), timeout=_SILENT) as one,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as datagrams,
    ):
        one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        datagrams.connect((address, port))
        content, number, lost, times = bytes(request), 0, 0, []
        start, end = 0.0, math.inf
        while time.monotonic() < end:
            if number == _WARM_UP:
                start = time.monotonic()
                end = start + seconds
            sent = time.monotonic()
            if protocol == "tcp":
                one.sendall(content)
                if not _receive(one, response):
                    sys.exit(f"{address} closed the connection")
                there = True
            else:
                there = _exchange(datagrams, _NUMBER.pack(number) + content[_NUMBER.size :])
            taken = time.monotonic() - sent
            if number >= _WARM_UP:
                lost += not there
                times += [taken] if there else []
            elif not there and number == 0:
                sys.exit(f"{address} did not answer in {_LOST:g} s")
            number += 1
        _report(times, time.monotonic() - start, lost)


def _exchange(datagrams: socket.socket, request: bytes) -> bool:
    """Whether a request is answered in time; answers to earlier ones are passed over."""
    datagrams.send(request)
    until = time.monotonic() + _LOST
    while (left := until - time.monotonic()) > 0:
        datagrams.settimeout(left)
        try:
            if datagrams.recv(1 << 16)[: _NUMBER.size] == request[: _NUMBER.size]:
                return True
        except TimeoutError:
            break
    return False


def _report(times: list[float], seconds: float, lost: int) -> None:
    times.sort()
    found: dict[str, float] = {}
    if times:
        found = {"min": times[0], "mean": sum(times) / len(times), "max": times[-1]}
        # Nearest rank: the smallest that so many do not exceed.
        found |= {f"p{share}": times[math.ceil(len(times) * share / 100) - 1] for share in (50, 90, 99)}
    print(json.dumps({"transactions": len(times), "seconds": seconds, "lost": lost, **found}))


if __name__ == "__main__":
    what, over, *words = sys.argv[1:]
    if what == "answer":
        answer(over, *map(int, words))
    else:
        ask(over, words[0], int(words[1]), int(words[2]), int(words[3]), float(words[4]))
