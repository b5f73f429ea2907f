"""Send or receive numbered datagrams; run as a program in a host, so it imports nothing of the testbed.

    probe_program.py send ADDRESS PORT RATE SECONDS
    probe_program.py receive PORT SECONDS

Both print one JSON object; times are seconds of the monotonic clock, which all hosts of a machine share.
"""

import contextlib
import json
import socket
import struct
import sys
import time

_NUMBER = struct.Struct("!I")
_PAYLOAD = 64
# A sender that is late by as much does not make up for it: a burst would fill queues that no steady rate fills. It may
# then take so much longer, and a receiver waits longer still; s.
_LATE, _OVERTIME, _GRACE = 0.02, 1.0, 2.0
# Of Linux, beyond what programs get otherwise; a receiver that gets no processor for a while must lose nothing by it.
_SO_RCVBUFFORCE, _RECEIVE_BUFFER = 33, 8 << 20


def send(address: str, port: int, rate: int, seconds: float) -> None:
    """Send datagrams at a steady rate; the time of number n is at index n."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        start, sent, number = time.monotonic(), [], 0
        last = start + seconds + _OVERTIME
        filling = bytes(_PAYLOAD - _NUMBER.size)
        while number < rate * seconds and time.monotonic() < last:
            late = time.monotonic() - start - number / rate
            if late > _LATE:
                start += late
            time.sleep(max(0.0, start + number / rate - time.monotonic()))
            sent.append(round(time.monotonic(), 6))
            one.sendto(_NUMBER.pack(number) + filling, (address, port))
            number += 1
    json.dump({"sent": sent}, sys.stdout)


def receive(port: int, seconds: float) -> None:
    """Receive for a time, and print number and time of each datagram."""
    until = time.monotonic() + seconds + _GRACE
    numbers, times = [], []
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        with contextlib.suppress(PermissionError):  # only root may
            one.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, _RECEIVE_BUFFER)
        one.bind(("", port))
        while (left := until - time.monotonic()) > 0:
            one.settimeout(left)
            try:
                content = one.recv(2048)
            except TimeoutError:
                break
            times.append(round(time.monotonic(), 6))
            numbers.append(_NUMBER.unpack_from(content)[0])
    json.dump({"number": numbers, "received": times}, sys.stdout)


if __name__ == "__main__":
    what, *words = sys.argv[1:]
    if what == "send":
        send(words[0], int(words[1]), int(words[2]), float(words[3]))
    else:
        receive(int(words[0]), float(words[1]))
