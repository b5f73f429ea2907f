"""Numbered datagrams and a TCP connection of each pair of hosts: commands, and what a change of paths has lost."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from testbed.base.messages import Process
from testbed.scenario.workloads.pairs import OutputError

PORT = 7001
SIZE = 64


@dataclass(frozen=True, slots=True)
class PairLoss:
    """What happened between two hosts, in laboratory units."""

    source: str  # name of the host that sends
    destination: str  # name of the host that receives
    sent: int  # datagrams
    received: int  # of those, how many came, each counted once
    duplicates: int  # further copies
    disordered: int  # datagrams that a later one had overtaken
    # `min`, `mean`, `p99` and `max` of the time from program to program; s. Empty if none came.
    one_way: dict[str, float]
    longest_gap: float  # s between two arrivals
    lost_at: tuple[float, ...]  # s from the sender's start, of the first datagrams that were lost
    echoes: int  # that came back over the TCP connection
    longest_echo: float  # s
    broken: str  # why that connection is no more; empty if it lasted

    @property
    def lost_count(self) -> int:
        """Datagrams that never came."""
        return self.sent - self.received


def commands(
    pairs: Sequence[tuple[str, str, str]], a_second: float, program: Sequence[str], stop: str
) -> list[Process]:
    """One process a host.

    `pairs`: (source host, destination host, destination's address), each host sends to one; `program`: its command,
    without arguments; `stop`: file in the hosts whose appearance ends it.
    """
    hears = [destination for _, destination, _ in pairs]
    return [
        Process(
            f"loss-probe-{source}",
            source,
            (
                *program, "--peer", address, "--port", str(PORT), "--interval", f"{1 / a_second:.9g}",
                "--size", str(SIZE), "--stop", stop, "--senders", str(hears.count(source)),
            ),
            server_port=PORT,
        )
        for source, _, address in pairs
    ]  # fmt: skip


def parse(pairs: Sequence[tuple[str, str, str]], a_second: float, outputs: dict[str, str]) -> list[PairLoss]:
    """Read what the processes printed.

    `outputs`: process id → standard output; the others are as for commands().

    Raises:
        OutputError: one did not print its figures, or did not hear that its sender had ended.
    """
    try:
        said = {host: json.loads(outputs[f"loss-probe-{host}"]) for host, _, _ in pairs}
        address = {host: where for _, host, where in pairs}
        found = []
        for source, destination, _ in pairs:
            own = said[source]
            heard = said[destination]["heard"].get(address[source])
            if heard is None:
                raise OutputError(f"{destination} never heard how much {source} had sent")
            found.append(
                PairLoss(
                    source, destination, own["sent"], heard["received"], heard["duplicates"], heard["disordered"],
                    heard["one_way"], heard["longest_gap"],
                    tuple(number / a_second for number in heard["lost"]), own["echoes"], own["longest_echo"],
                    own["broken"],
                )
            )  # fmt: skip
    except (ValueError, KeyError, TypeError) as error:
        if isinstance(error, OutputError):
            raise
        raise OutputError(f"a program that counts frames did not print its figures: {error!r}") from error
    return found
