"""Link rates and queues: HTB on every sending port, counted as on a real wire, and read back."""

from __future__ import annotations

import re
from collections.abc import Iterable

# Preamble, frame check sequence and gap, which Linux does not count; and the shortest frame with them.
WIRE_OVERHEAD = 24
SHORTEST_ON_WIRE = 84
VLAN_TAG = 4
_LONGEST_ON_WIRE = 1542
_BURST_FRAMES = 2
# tc prints rates above 1 Mbit/s in whole kbit/s.
_PRINTED_PRECISION = 1e-3

_RATE_FACTORS = {"": 1.0, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
_RATE = re.compile(r"\brate (\d+)([KMGT]?)bit\b")
_OVERHEAD = re.compile(r"\boverhead (\d+)\b")
_LIMIT = re.compile(r"^qdisc pfifo .*\blimit (\d+)p\b")


def shaping_commands(interface: str, rate: float, queue_frames: int, overhead: int = WIRE_OVERHEAD) -> str:
    """Lines for `tc -batch` that shape one sending port.

    Args:
        interface: its name.
        rate: bit/s on the wire, gaps included.
        queue_frames: frames that wait before the next is lost.
        overhead: bytes on the wire beyond what Linux counts in a frame.
    """
    burst = max(_BURST_FRAMES * _LONGEST_ON_WIRE, int(rate / 8 * 1e-3))
    return (
        f"qdisc replace dev {interface} root handle 1: htb default 1\n"
        f"class replace dev {interface} parent 1: classid 1:1 htb rate {rate:.0f}bit ceil {rate:.0f}bit "
        f"burst {burst} cburst {burst} quantum {_LONGEST_ON_WIRE} overhead {overhead} mpu {SHORTEST_ON_WIRE}\n"
        f"qdisc replace dev {interface} parent 1:1 handle 10: pfifo limit {queue_frames}\n"
    )


def read_back_commands(interfaces: Iterable[str]) -> str:
    """Lines for `tc -d -batch` whose output shaping_problems reads."""
    return "".join(f"qdisc show dev {name}\nclass show dev {name}\n" for name in interfaces)


def shaping_problems(wanted: dict[str, tuple[float, int]], queue_frames: int, shown: str) -> list[str]:
    """Compare what was asked with what the kernel has; one sentence a difference.

    Args:
        wanted: interface → (bit/s, overhead), in the order of read_back_commands.
        queue_frames: of every port.
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
    problems = []
    for (interface, (rate, overhead)), block in zip(wanted.items(), blocks, strict=True):
        text = next((line for line in block if line.startswith("class htb")), "")
        found, extra = _RATE.search(text), _OVERHEAD.search(text)
        got = float(found.group(1)) * _RATE_FACTORS[found.group(2)] if found else 0.0
        if abs(got - rate) > max(1.0, rate * _PRINTED_PRECISION):
            problems.append(f"{interface}: asked for {rate:.0f} bit/s, the kernel has {got:.0f} bit/s")
        if not extra or int(extra.group(1)) != overhead:
            problems.append(f"{interface}: frames are not counted as on the wire ({overhead} bytes more)")
        limits = [int(match.group(1)) for line in block if (match := _LIMIT.match(line))]
        if limits != [queue_frames]:
            problems.append(f"{interface}: asked for a queue of {queue_frames} frames, the kernel has {limits}")
    return problems
