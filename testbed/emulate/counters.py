"""What the machine counts while a load runs: bytes and drops of every port, processor time, pressure."""

from __future__ import annotations

import json
import os
import re
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from testbed.emulate.commands import run
from testbed.pipeline.tables import FORWARDING, Priority

_PRESSURE = Path("/proc/pressure/cpu")
_TICKS_A_SECOND = os.sysconf("SC_CLK_TCK")
_TOTAL = re.compile(r"^some .*\btotal=(\d+)", re.MULTILINE)
_FLOOD = re.compile(rf"table={FORWARDING.number}, n_packets=(\d+),.* priority={Priority.FLOOD:d}[, ]")
_FLOW = re.compile(r"n_packets=(\d+).*\bin_port=(\d+)")


def snapshot(daemons: Sequence[int] = ()) -> dict[str, Any]:
    """Ports, processors, pressure and clocks now; cheap enough to take while a load runs.

    Args:
        daemons: pids of the switches' daemons.

    Returns:
        `time` in s and `wall` in s by the clock of the day, `ports` interface → rx/tx bytes, packets and drops,
        `idle`, `network` (in interrupts) and `total` processor time in ticks, `pressure` in µs that some task waited
        for a processor (None where the kernel does not count it), `processes` as of process_seconds().
    """
    ports = {}
    for link in json.loads(run(["ip", "-s", "-j", "link", "show"])):
        stats = link.get("stats64")
        if stats and link["ifname"] != "lo":
            ports[link["ifname"]] = {
                f"{way}_{what}": stats[way][what] for way in ("rx", "tx") for what in ("bytes", "packets", "dropped")
            }
    idle, network, total = processor_ticks()
    return {
        "time": time.monotonic(),
        "wall": time.time(),
        "ports": ports,
        "idle": idle,
        "network": network,
        "total": total,
        "pressure": _pressure(),
        "processes": process_seconds(daemons),
    }


def processor_ticks() -> tuple[int, int, int]:
    """Ticks of all processors since the machine started: idle, in interrupts of the network and others, all."""
    ticks = [int(word) for word in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
    return ticks[3] + ticks[4], ticks[5] + ticks[6], sum(ticks)


def process_seconds(daemons: Sequence[int]) -> dict[str, list[float]]:
    """Processor seconds of the lab's processes, those that have ended included.

    Args:
        daemons: pids of the switches' daemons.

    Returns:
        `switches`: of each daemon, `agent`: of this process, `programs`: of everything else, which is the load.
    """
    own, programs = 0, 0
    switches = dict.fromkeys(daemons, 0)
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            words = (entry / "stat").read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue  # it has just ended; its parent has its time
        itself, ended, pid = int(words[11]) + int(words[12]), int(words[13]) + int(words[14]), int(entry.name)
        if pid in switches:
            switches[pid] = itself
        elif pid == os.getpid():
            own, programs = itself, programs + ended
        else:
            programs += itself + ended
    return {
        "switches": [ticks / _TICKS_A_SECOND for ticks in switches.values()],
        "agent": [own / _TICKS_A_SECOND],
        "programs": [programs / _TICKS_A_SECOND],
    }


def _pressure() -> int | None:
    try:
        match = _TOTAL.search(_PRESSURE.read_text())
    except OSError:
        return None
    return int(match.group(1)) if match else None


def port_drops() -> dict[str, int]:
    """Frames that found the queue of a switch port full, by interface."""
    shown = json.loads(run(["tc", "-s", "-j", "qdisc", "show"]) or "[]")
    return {qdisc["dev"]: int(qdisc.get("drops", 0)) for qdisc in shown if qdisc.get("root")}


def admitted_frames(dumped: Mapping[str, Sequence[str]]) -> dict[str, int]:
    """Frames each switch took in by each port (`s1-eth2`), from the counters of table 0 of dumped flows.

    What came by a further member of a bundle counts at the first, whose rule admits it.
    """
    frames: dict[str, int] = defaultdict(int)
    for switch, lines in dumped.items():
        for line in lines:
            match = _FLOW.search(line)
            if match and "table=0," in line and "->in_port" not in line:
                frames[f"{switch}-eth{match.group(2)}"] += int(match.group(1))
    return dict(frames)


def flooded_frames(dumped: Mapping[str, Sequence[str]]) -> dict[str, int]:
    """Frames that each switch sent along the tree of a VLAN, from the counters of dumped flows.

    They are broadcasts, and what is for an address that the switch does not know.
    """
    frames = dict.fromkeys(dumped, 0)
    for switch, lines in dumped.items():
        for line in lines:
            match = _FLOOD.search(line)
            if match:
                frames[switch] += int(match.group(1))
    return frames


def socket_drops(holders: Mapping[str, int]) -> dict[str, int]:
    """Datagrams each host received but had to drop because the program did not fetch them in time."""
    drops = {}
    for name, pid in holders.items():
        lines = Path(f"/proc/{pid}/net/snmp").read_text().splitlines()
        names, values = (line.split() for line in lines if line.startswith("Udp:"))
        drops[name] = int(values[names.index("RcvbufErrors")])
    return drops
