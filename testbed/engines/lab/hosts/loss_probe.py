"""A program for a host: numbered datagrams at a steady rate, and a TCP connection, to see what a change of paths loses.

Each host sends to one peer and hears of any number of them. It begins when its peer listens, ends when a file appears,
and prints one JSON object when those that send to it have told how many datagrams they sent. It needs nothing but the
standard library. One-way times compare monotonic clocks, which all namespaces of a machine share.
"""

from __future__ import annotations

import argparse
import json
import selectors
import socket
import statistics
import struct
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

_NUMBER = struct.Struct("!Qq")  # number and ns of a datagram; number and ns of an echo that is asked for
_ECHO_EVERY = 0.1
_LOOK_EVERY = 0.05
# s after the last sender has ended in which datagrams may still come, and for all of it to take.
_LINGER, _END_LIMIT = 1.0, 30.0
_CONNECT_LIMIT = 20.0
_MAX_TOLD = 200
# Of Linux, beyond what programs get otherwise; a program that gets no processor for a while must lose nothing by it.
_SO_RCVBUFFORCE, _RECEIVE_BUFFER = 33, 8 << 20


class PeerStats:
    """What has come from one peer."""

    def __init__(self) -> None:
        self.seen = bytearray()
        self.duplicates = 0
        self.disordered = 0
        self.last = -1
        self.latest = 0
        self.longest_gap = 0
        self.one_way: list[int] = []

    def add_datagram(self, number: int, sent: int, now: int) -> None:
        """A datagram has come."""
        if number >= len(self.seen):
            self.seen.extend(bytes(number + 1 - len(self.seen)))
        if self.seen[number]:
            self.duplicates += 1
            return
        self.seen[number] = 1
        self.disordered += number < self.last
        self.last = max(self.last, number)
        if self.latest:
            self.longest_gap = max(self.longest_gap, now - self.latest)
        self.latest = now
        self.one_way.append(now - sent)

    def as_object(self, sent: int) -> dict[str, Any]:
        """Figures of a peer that sent so many; s."""
        lost = [number for number in range(sent) if number >= len(self.seen) or not self.seen[number]]
        times = sorted(self.one_way)
        figures = {}
        if times:
            figures = {
                "min": times[0] / 1e9,
                "mean": statistics.fmean(times) / 1e9,
                "p99": times[int(0.99 * (len(times) - 1))] / 1e9,
                "max": times[-1] / 1e9,
            }
        return {
            "sent": sent,
            "received": len(times),
            "lost": lost[:_MAX_TOLD],
            "lost_count": len(lost),
            "duplicates": self.duplicates,
            "disordered": self.disordered,
            "longest_gap": self.longest_gap / 1e9,
            "one_way": figures,
        }


class LossProbe:
    """One host's part.

    Args:
        peer: address it sends to.
        port: UDP and TCP port on all hosts.
        interval: s between two datagrams.
        size: payload bytes of a datagram.
        stop: file whose appearance ends the sending.
        senders: hosts that will send to this one.
        own: address it has; empty where it has but one.
    """

    def __init__(
        self, peer: str, port: int, interval: float, size: int, stop: Path, senders: int, own: str = ""
    ) -> None:
        self.address = own
        self.peer, self.interval, self.stop, self.senders = (peer, port), interval, stop, senders
        self.padding = bytes(max(size - _NUMBER.size, 0))
        self.sent = 0
        self.heard: dict[str, PeerStats] = {}
        self.ended: dict[str, int] = {}
        self.echoes = 0
        self.longest_echo = 0.0
        self.broken = ""
        self.asked = True
        self.ready = selectors.DefaultSelector()
        self.datagrams = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.datagrams.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _RECEIVE_BUFFER)
        with suppress(PermissionError):  # only root outside of user namespaces may
            self.datagrams.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, _RECEIVE_BUFFER)
        self.datagrams.bind((own, port))
        self.listener = socket.create_server((own, port))
        for one in (self.datagrams, self.listener):
            one.setblocking(False)
            self.ready.register(one, selectors.EVENT_READ)
        self.own: socket.socket | None = None
        self.answers = b""
        self.questions: dict[socket.socket, bytes] = {}

    def run(self) -> dict[str, Any]:
        """Send until the file is there; returns what was seen."""
        self.connect()
        assert self.own is not None
        # Whoever waits for all hosts to send counts these files.
        self.stop.with_name(f"{self.stop.name}.{self.own.getsockname()[0]}").touch()
        start = time.monotonic()
        due = next_echo = next_look = end = start
        sending = True
        while True:
            now = time.monotonic()
            if sending and now >= next_look:
                next_look = now + _LOOK_EVERY
                if self.stop.exists():
                    sending = False
                    self.tell_end()
                    end = now + _END_LIMIT
            if sending:
                if now >= due:
                    self.send()
                    # What was sent late is not made up for: a burst would fill queues that no steady rate fills.
                    due = max(due + self.interval, now)
                if now >= next_echo and self.asked:
                    next_echo = now + max(_ECHO_EVERY, self.interval)
                    self.ask()
            elif len(self.ended) >= self.senders and not self.waiting():
                end = min(end, now + _LINGER)
                self.senders = 1 << 30  # the time to linger begins once
            if not sending and now >= end:
                self.receive(0.0)  # what came while this program got no processor
                break
            self.receive(max((due if sending else now + _LOOK_EVERY) - time.monotonic(), 0.0))
        heard = {name: self.heard.get(name, PeerStats()).as_object(sent) for name, sent in self.ended.items()}
        return {
            "sent": self.sent, "start": start, "heard": heard, "echoes": self.echoes,
            "longest_echo": self.longest_echo, "broken": self.broken,
        }  # fmt: skip

    def close(self) -> None:
        """Close all sockets."""
        for one in (self.datagrams, self.listener, self.own, *self.questions):
            if one is not None:
                one.close()
        self.ready.close()

    def waiting(self) -> bool:
        """Whether an echo of this host is still to come."""
        return not self.asked and not self.broken

    def connect(self) -> None:
        """Connect to the peer, answering others meanwhile, until it listens."""
        until = time.monotonic() + _CONNECT_LIMIT
        while self.own is None:
            try:
                self.own = socket.create_connection(self.peer, 0.2, (self.address, 0))
            except OSError:
                if time.monotonic() > until:
                    raise
                self.receive(0.05)
        self.own.setblocking(False)
        self.own.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.ready.register(self.own, selectors.EVENT_READ)

    def send(self) -> None:
        """Send the next datagram; one that the host itself cannot take yet counts as sent."""
        with suppress(BlockingIOError):
            self.datagrams.sendto(_NUMBER.pack(self.sent, time.monotonic_ns()) + self.padding, self.peer)
        self.sent += 1

    def ask(self) -> None:
        """Ask the peer for an echo."""
        self.asked = False
        self.send_text(_NUMBER.pack(0, time.monotonic_ns()))

    def tell_end(self) -> None:
        """Tell the peer how many datagrams there were."""
        self.send_text(_NUMBER.pack(self.sent + 1, 0))

    def send_text(self, text: bytes) -> None:
        """Send over the connection; a failure is that of the connection."""
        if self.own is None or self.broken:
            return
        try:
            self.own.sendall(text)
        except OSError as error:
            self.broken = str(error)

    def receive(self, seconds: float) -> None:
        """Take what has come, for at most so long."""
        for key, _ in self.ready.select(seconds):
            if key.fileobj is self.datagrams:
                self.take_datagrams()
            elif key.fileobj is self.listener:
                connection, _ = self.listener.accept()
                self.questions[connection] = b""
                self.ready.register(connection, selectors.EVENT_READ)
            elif key.fileobj is self.own:
                self.take_answers()
            else:
                self.answer(key.fileobj)  # type: ignore[arg-type]

    def take_datagrams(self) -> None:
        """Note all datagrams that wait."""
        while True:
            try:
                text, (name, _) = self.datagrams.recvfrom(2048)
            except BlockingIOError:
                return
            now = time.monotonic_ns()
            number, sent = _NUMBER.unpack_from(text)
            self.heard.setdefault(name, PeerStats()).add_datagram(number, sent, now)

    def take_answers(self) -> None:
        """Note echoes of the peer, or that the connection is gone."""
        assert self.own is not None
        try:
            text = self.own.recv(4096)
        except OSError as error:
            text, self.broken = b"", str(error)
        if not text:
            self.ready.unregister(self.own)
            # A peer that has ended hangs up.
            if self.asked is False:
                self.broken = self.broken or "the peer hung up"
            return
        self.answers += text
        while len(self.answers) >= _NUMBER.size:
            number, sent = _NUMBER.unpack_from(self.answers)
            self.answers = self.answers[_NUMBER.size :]
            if number == 0:
                self.echoes += 1
                self.asked = True
                self.longest_echo = max(self.longest_echo, (time.monotonic_ns() - sent) / 1e9)

    def answer(self, connection: socket.socket) -> None:
        """Echo what a peer asks, and note that it has ended."""
        try:
            text = connection.recv(4096)
            name = connection.getpeername()[0]
            connection.sendall(text)
        except OSError:
            text = b""
        if not text:
            self.ready.unregister(connection)
            return
        self.questions[connection] += text
        while len(self.questions[connection]) >= _NUMBER.size:
            number, _ = _NUMBER.unpack_from(self.questions[connection])
            self.questions[connection] = self.questions[connection][_NUMBER.size :]
            if number:
                self.ended[name] = number - 1


def main() -> None:
    """Read the arguments, run, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peer", required=True)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--interval", type=float, required=True)
    parser.add_argument("--size", type=int, required=True)
    parser.add_argument("--stop", type=Path, required=True)
    parser.add_argument("--senders", type=int, required=True)
    given = parser.parse_args()
    probe = LossProbe(given.peer, given.port, given.interval, given.size, given.stop, given.senders)
    print(json.dumps(probe.run()))
    probe.close()


if __name__ == "__main__":
    main()
