"""Datagrams that show what a failure costs: the programs, and what became of each datagram."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from testbed.base.messages import Process
from testbed.base.model import Floats
from testbed.base.python_isolation import make_code_command, make_file_command
from testbed.scenario.workloads.pairs import OutputError

PROGRAM = Path(__file__).with_name("probe_program.py")
FIRST_PORT = 6001
# Senders begin when receivers surely listen, and go on until receivers have heard of the last event; s.
_HEAD_START = 0.5


@dataclass(frozen=True, slots=True, eq=False)
class Passage:
    """What became of the datagrams of a pair."""

    sent: Floats  # (N,) s, monotonic
    received: Floats  # (N,) likewise, NaN for those that did not arrive

    def sent_between(self, start: float, end: float) -> Passage:
        """Those that were sent in a time."""
        chosen = (self.sent >= start) & (self.sent < end)
        return Passage(self.sent[chosen], self.received[chosen])

    @property
    def lost_count(self) -> int:
        """How many did not arrive."""
        return int(np.isnan(self.received).sum())

    @property
    def all_lost(self) -> bool:
        """Whether some were sent and none arrived."""
        return len(self.sent) > 0 and self.lost_count == len(self.sent)

    @property
    def outage(self) -> float:
        """Seconds from the first to the last of those sent after the last one that arrived."""
        arrived = np.flatnonzero(~np.isnan(self.received))
        tail = self.sent[arrived[-1] + 1 :] if len(arrived) else self.sent
        return float(tail[-1] - tail[0]) if len(tail) else 0.0

    def back_after(self, death: float, over: float) -> float | None:
        """Seconds from a death until the first datagram arrives that was sent when all that died was dead.

        Beside other loads datagrams are lost at full queues as well, before the death and long after it, so that no
        run of lost ones tells its end. None where none was lost, or none arrived any more.

        Both are s: `death` when it began, `over` when all that it takes was dead.
        """
        later = self.received[self.sent >= over]
        later = later[~np.isnan(later)]
        return float(later.min()) - death if self.lost_count and len(later) else None


def commands(names: list[tuple[str, str, str]], rate: int, seconds: float) -> tuple[list[Process], list[Process]]:
    """Receivers and senders, one of each a pair.

    `names`: (source host, destination host, destination address) of each pair; `rate`: datagrams a second; `seconds`:
    laboratory seconds that the load takes.
    """
    receivers, senders = [], []
    wait = f"import runpy,sys,time; time.sleep({_HEAD_START}); sys.argv = sys.argv[1:]; "
    wait += "runpy.run_path(sys.argv[0], run_name='__main__')"
    for number, (source, end, address) in enumerate(names):
        port = FIRST_PORT + number
        receivers.append(
            Process(
                f"probe-receiver-{number}", end,
                make_file_command(PROGRAM, "receive", str(port), f"{seconds + _HEAD_START:g}"),
            )
        )  # fmt: skip
        senders.append(
            Process(
                f"probe-sender-{number}", source,
                make_code_command(
                    wait, str(PROGRAM), "send", address, str(port), str(rate),
                    f"{max(seconds - _HEAD_START, 0.1):g}",
                ),
            )
        )  # fmt: skip
    return receivers, senders


def parse(sender: str, receiver: str, ahead: tuple[float, float] = (0.0, 0.0)) -> Passage:
    """What the two programs of a pair printed; `ahead`: s that the clock of each is ahead of the lab's.

    Raises:
        OutputError: it is not what they print.
    """
    try:
        sent = np.asarray(json.loads(sender)["sent"], dtype=np.float64)
        heard = json.loads(receiver)
        numbers, times = np.asarray(heard["number"], dtype=np.int64), np.asarray(heard["received"], dtype=np.float64)
    except (ValueError, KeyError, TypeError) as error:
        raise OutputError(f"a probe did not print its datagrams: {error}") from error
    received = np.full(len(sent), np.nan)
    known = numbers < len(sent)
    # The first copy counts.
    received[numbers[known][::-1]] = times[known][::-1]
    return Passage(sent - ahead[0], received - ahead[1])
