"""Link rates and queues: HTB on every sending port, counted as on a real wire, and read back."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from testbed.base.errors import LabError
from testbed.base.ethernet import MAX_WIRE_FRAME, WIRE_OVERHEAD, wire_bytes
from testbed.base.units import LATE_AT_ONCE, LATE_FRAMES, LATE_RATE, LATE_SECONDS
from testbed.engines.ovs.netem import Netem

# Frames that wait at a host's own interface before one is lost, unless switches hold more: Linux's own.
HOST_QUEUE = 1000
TAIL_DROP = "pfifo"
# Drops the frame at the head of a full queue, and tells the sender of the new frame nothing of it. The userspace
# datapath sends batches and silently discards the rest of a batch when it is told of a drop.
HEAD_DROP = "pfifo_head_drop"
# tc prints rates above 1 Mbit/s in whole kbit/s.
_PRINTED_PRECISION = 1e-3

_RATE_FACTORS = {"": 1.0, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
_RATE = re.compile(r"\brate (\d+)([KMGT]?)bit\b")
_CEIL = re.compile(r"\bceil (\d+)([KMGT]?)bit\b")
_OVERHEAD = re.compile(r"\boverhead (\d+)\b")
_SHORTEST = re.compile(r"\bmpu (\d+)b?\b")
_QUEUE = re.compile(r"^qdisc (pfifo\w*) .*\blimit (\d+)p\b")


@dataclass(frozen=True, slots=True)
class Shaping:
    """How one sending port is shaped."""

    rate: float  # bit/s on the wire, gaps included
    queue_frames: int  # frames that wait before the next is lost
    overhead: int = WIRE_OVERHEAD  # bytes on the wire beyond what Linux counts in a frame
    queue: str = TAIL_DROP  # TAIL_DROP or HEAD_DROP
    netem: Netem | None = None  # what the link does to frames before that, if anything
    tag: int = 0  # bytes of the tag that frames have on this link, whether or not Linux counts it

    @property
    def shortest(self) -> int:
        """Bytes on the wire of the shortest frame, as which the port counts what hosts of a lab have not filled up."""
        return wire_bytes(0, self.tag)

    def commands(self, interface: str) -> str:
        """Lines for `tc -batch`."""
        above = "" if self.netem is None else self.netem.command(interface)
        parent = "root" if self.netem is None else f"parent {self.netem.child}"
        return (
            f"{above}qdisc replace dev {interface} {parent} handle 1: htb default 1\n"
            f"{self.change(interface)}"
            f"qdisc replace dev {interface} parent 1:1 handle 10: {self.queue} limit {self.queue_frames}\n"
        )

    def change(self, interface: str) -> str:
        """The line for `tc -batch` that sets the rate alone, also of a port that carries frames already."""
        late = max(LATE_FRAMES * MAX_WIRE_FRAME, int(self.rate / 8 * LATE_SECONDS))
        return (
            f"class replace dev {interface} parent 1: classid 1:1 htb rate {self.rate:.0f}bit "
            f"ceil {self.rate * LATE_RATE:.0f}bit burst {late} cburst {int(LATE_AT_ONCE * MAX_WIRE_FRAME)} "
            f"quantum {MAX_WIRE_FRAME} overhead {self.overhead} mpu {self.shortest}\n"
        )

    def instead_of(self, before: Shaping, interface: str) -> str:
        """Lines for `tc -batch` that change a port, which goes on carrying frames, as far as that is possible."""
        if (self.netem is None) == (before.netem is None):
            return ("" if self.netem is None else self.netem.command(interface)) + self.change(interface)
        # A new root takes the place of the queue, and what waits in it is lost.
        return ("" if before.netem is None else f"qdisc del dev {interface} root\n") + self.commands(interface)

    def problems(self, interface: str, shown: Iterable[str]) -> list[str]:
        """Differences from what `tc -d` shows of the interface; one sentence each."""
        shown = list(shown)
        text = next((line for line in shown if line.startswith("class htb")), "")
        extra, problems = _OVERHEAD.search(text), Netem.problems(self.netem, interface, shown)
        for pattern, asked, when in ((_RATE, self.rate, ""), (_CEIL, self.rate * LATE_RATE, " when late")):
            found = pattern.search(text)
            got = float(found.group(1)) * _RATE_FACTORS[found.group(2)] if found else 0.0
            if abs(got - asked) > max(1.0, asked * _PRINTED_PRECISION):
                problems.append(f"{interface}: asked for {asked:.0f} bit/s{when}, the kernel has {got:.0f} bit/s")
        if not extra or int(extra.group(1)) != self.overhead:
            problems.append(f"{interface}: frames are not counted as on the wire ({self.overhead} bytes more)")
        least = _SHORTEST.search(text)
        if not least or int(least.group(1)) != self.shortest:
            problems.append(
                f"{interface}: short frames are not counted as on the wire ({self.shortest} bytes at least)"
            )
        queues = [(match.group(1), int(match.group(2))) for line in shown if (match := _QUEUE.match(line))]
        if queues != [(self.queue, self.queue_frames)]:
            got_queue = ", ".join(f"{kind} of {frames}" for kind, frames in queues) or "none"
            problems.append(
                f"{interface}: asked for a queue {self.queue} of {self.queue_frames} frames, the kernel has {got_queue}"
            )
        return problems


def read_back_commands(interfaces: Iterable[str]) -> str:
    """Lines for `tc -d -batch` whose output shaping_problems reads."""
    return "".join(f"qdisc show dev {name}\nclass show dev {name}\n" for name in interfaces)


def shaping_problems(wanted: Mapping[str, Shaping], shown: str) -> list[str]:
    """Compare what was asked with what the kernel has; one sentence a difference.

    Args:
        wanted: shaping of each interface, in the order of read_back_commands.
        shown: output of `tc -d -batch`.
    """
    blocks: list[list[str]] = []
    for line in shown.splitlines():
        if line.startswith("qdisc") and " root" in line:
            blocks.append([])
        if blocks and line.strip():
            blocks[-1].append(line)
    if len(blocks) != len(wanted):
        return [f"asked for shaping on {len(wanted)} ports, the kernel shows {len(blocks)}"]
    return [
        problem
        for (interface, shaping), block in zip(wanted.items(), blocks, strict=True)
        for problem in shaping.problems(interface, block)
    ]


def require_speeds(speeds: Mapping[int, float], links: int) -> None:
    """Let only speeds pass that links between switches can have.

    Args:
        speeds: share of the rate by the link's number.
        links: how many there are.

    Raises:
        LabError: there is no such link, or no such speed.
    """
    for link, share in speeds.items():
        if not (0 <= link < links and 0 < share <= 1):
            raise LabError(
                f"cannot change the speed of link {link} to {share:g}: links have the numbers 0 to {links - 1}, and a "
                "speed is a share of their rate, more than 0 and up to 1"
            )
