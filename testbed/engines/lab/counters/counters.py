"""What the machine counts: bytes, frames and drops of every port, processor time, pressure.

What comes out is by channel and host of the plan; which interface and rule counts for which, only this module and the
fabric know.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import closing

from testbed.base.errors import LabError
from testbed.base.messages import Count, FrameCounts, Snapshot
from testbed.engines.lab.build_order import BuildOrder
from testbed.engines.lab.counters import procfs
from testbed.engines.lab.hosts.commands import run
from testbed.engines.lab.hosts.interface_names import channel_ports, host_ports, port_interface
from testbed.fabric.openflow.tables import FORWARDING, Priority

BUSY = 0.1  # idle share below which a machine is too busy for answers in time
_PRESSURE = "/proc/pressure/cpu"
_TICKS_A_SECOND = os.sysconf("SC_CLK_TCK")
_TOTAL = re.compile(r"^some .*\btotal=(\d+)", re.MULTILINE)
_FLOOD = re.compile(rf"table={FORWARDING.number}, n_packets=(\d+),.* priority={Priority.FLOOD:d}[, ]")
_LLDP = re.compile(rf"n_packets=(\d+).* priority={Priority.LLDP:d}[, ]")
# Time for one reading between two rounds of LLDP frames, which come a second apart; s.
_READ_WITHIN = 60.0
_FLOW = re.compile(r"n_packets=(\d+).*\bin_port=(\d+)")


def read_carried(order: BuildOrder) -> tuple[tuple[Count, ...], tuple[Count, ...], float]:
    """What each channel has carried, and each host has sent, and when; s, monotonic.

    Rates are differences of these over the time between them, which a process that is started to ask would blur.
    """
    from testbed.engines.lab.counters.rtnetlink import LINK_FIGURES, PortCounters  # noqa: PLC0415 - imports numpy; labs start without it

    channels, hosts = channel_ports(order), host_ports(order)
    with closing(PortCounters([*channels, *hosts])) as counters:
        ports, at = counters.read_at()

    def read_direction(way: str) -> tuple[Count, ...]:
        columns = [LINK_FIGURES.index(f"{way}_bytes"), LINK_FIGURES.index(f"{way}_packets")]
        return tuple(Count(size, frames) for size, frames in ports[:, columns].tolist())

    return read_direction("tx")[: len(channels)], read_direction("rx")[len(channels) :], at


def snapshot(
    channels: tuple[Count, ...], hosts: tuple[Count, ...], at: float | None = None, daemons: Sequence[int] = ()
) -> Snapshot:
    """Counters of all processors, and clocks, now; cheap enough to take while a load runs.

    Args:
        channels: as in Snapshot.
        hosts: likewise.
        at: when these were counted; s, monotonic. None = now.
        daemons: pids of the switches' daemons.
    """
    idle, network, total = processor_ticks()
    return Snapshot(
        time=time.monotonic(),
        wall=time.time(),
        channels=channels,
        hosts=hosts,
        idle=idle,
        network=network,
        total=total,
        pressure=_pressure(),
        processes=process_seconds(daemons),
        counted=() if at is None else (at,) * len(channels),
    )


def _port_counters() -> dict[str, dict[str, int]]:
    """Interface → received and sent bytes, packets and drops."""
    ports = {}
    for link in json.loads(run(["ip", "-s", "-j", "link", "show"])):
        stats = link.get("stats64")
        if stats and link["ifname"] != "lo":
            ports[link["ifname"]] = {
                f"{way}_{what}": int(stats[way][what])
                for way in ("rx", "tx")
                for what in ("bytes", "packets", "dropped")
            }
    return ports


def frame_counts(
    order: BuildOrder,
    holders: Mapping[str, int],
    dump: Callable[[], Mapping[str, Sequence[str]]],
    short_cuts: Mapping[str, int],
) -> FrameCounts:
    """Counts frames along their way; what one counter has and the next has not was lost outside a queue.

    `holders`: host → pid; `dump` returns the rules of all running switches with their counters, by switch;
    `short_cuts`: switch → frames that it took in and sent without Open vSwitch.
    """
    channels, hosts = channel_ports(order), host_ports(order)
    ports, rules, told = _counters(dump, tells=order.collects_links)

    def total(what: str) -> int:
        return sum(ports[name][what] for name in (*channels, *hosts))

    admitted = tuple(_admitted(rules.get(switch, ())) + short_cuts.get(switch, 0) for switch in order.switches)
    arrived, taken_in = total("rx_packets") - told, sum(admitted)
    # A unicast frame that is admitted is sent once; a broadcast more often, which only hides losses here.
    sent = total("tx_packets") + _queue_drops({*channels, *hosts}) - told
    cut = [ports[port_interface(one.switch, one.port)] for one in order.far]
    # Of one machine this is what its tunnels have carried more one way than the other; of all together what they lost.
    between = {"between machines": sum(port["tx_packets"] - port["rx_packets"] for port in cut)} if cut else {}
    return FrameCounts(
        arrived=arrived,
        lost={
            "before a switch took them in": arrived - taken_in,
            "in a switch": taken_in - sent,
            "at a port": total("rx_dropped") + total("tx_dropped"),
            "in a receiving program's socket": socket_drops(holders),
            **between,
        },
        flooded=sum(flooded_frames(lines) for lines in rules.values()),
        channels=tuple(ports[name]["tx_packets"] for name in channels),
        to_hosts=tuple(ports[name]["tx_packets"] for name in hosts),
        admitted=admitted,
    )


def _counters(
    dump: Callable[[], Mapping[str, Sequence[str]]], *, tells: bool
) -> tuple[dict[str, dict[str, int]], Mapping[str, Sequence[str]], int]:
    """Counters of ports, rules with theirs, and how many frames in both are LLDP, if the lab's controller `tells`.

    Those enter the fabric in one switch and leave it in the next, and are no host's. All is read while none is on its
    way: a controller of this lab sends none meanwhile, one on another machine sends them once a second, all at a time.
    Then a busy machine needs several attempts until none has come between the first reading and the last.

    Raises:
        LabError: no attempt succeeded, so that LLDP frames cannot be told from those of hosts.
    """
    told = _count_lldp(dump()) if tells else 0
    give_up = time.monotonic() + _READ_WITHIN
    while True:
        ports, rules = _port_counters(), dump()
        before, told = told, _count_lldp(rules)
        if told == before:
            return ports, rules, told
        if time.monotonic() > give_up:
            raise LabError(
                f"for {_READ_WITHIN:.0f} s LLDP frames came while counters were read, so that hosts' frames "
                "cannot be counted; the machine is too busy"
            )


def _count_lldp(rules: Mapping[str, Sequence[str]]) -> int:
    """LLDP frames that switches have handed to a controller, from the counters of their dumped rules."""
    return sum(int(count) for lines in rules.values() for line in lines for count in _LLDP.findall(line))


def processor_ticks() -> tuple[int, int, int]:
    """Ticks of all processors since the machine started: idle, in interrupts of the network and others, all."""
    ticks = [int(word) for word in procfs.read_kernel_file("/proc/stat").split("\n", 1)[0].split()[1:9]]
    return ticks[3] + ticks[4], ticks[5] + ticks[6], sum(ticks)


def idle_share(before: tuple[int, int, int], after: tuple[int, int, int]) -> float:
    """Share of all processors' time that was idle between two calls of processor_ticks()."""
    return (after[0] - before[0]) / max(1, after[2] - before[2])


def process_seconds(daemons: Sequence[int]) -> dict[str, tuple[float, ...]]:
    """Processor seconds of the lab's processes, those that have ended included.

    `daemons`: their pids.

    Returns:
        `switches`: of each daemon, `agent`: of this process, `programs`: of everything else, which is the load.
    """
    own, programs = 0, 0
    switches = dict.fromkeys(daemons, 0)
    for pid in procfs.processes():
        try:
            words = procfs.read_kernel_file(f"/proc/{pid}/stat").rsplit(")", 1)[1].split()
        except OSError:
            continue  # it has just ended; its parent has its time
        itself, ended = int(words[11]) + int(words[12]), int(words[13]) + int(words[14])
        if pid in switches:
            switches[pid] = itself
        elif pid == os.getpid():
            own, programs = itself, programs + ended
        else:
            programs += itself + ended
    return {
        "switches": tuple(ticks / _TICKS_A_SECOND for ticks in switches.values()),
        "agent": (own / _TICKS_A_SECOND,),
        "programs": (programs / _TICKS_A_SECOND,),
    }


def _pressure() -> int | None:
    try:
        match = _TOTAL.search(procfs.read_kernel_file(_PRESSURE))
    except OSError:
        return None
    return int(match.group(1)) if match else None


def _queue_drops(ports: Collection[str]) -> int:
    """Frames that found the queue of one of some ports full."""
    shown = json.loads(run(["tc", "-s", "-j", "qdisc", "show"]) or "[]")
    return sum(int(qdisc.get("drops", 0)) for qdisc in shown if qdisc.get("root") and qdisc["dev"] in ports)


def _admitted(lines: Sequence[str]) -> int:
    """Frames that a switch took in, from the counters of table 0 of its dumped rules.

    What came by a further member of a bundle counts at the first, whose rule admits it.
    """
    taken = (line for line in lines if "table=0," in line and "->in_port" not in line)
    return sum(int(match.group(1)) for line in taken if (match := _FLOW.search(line)))


def flooded_frames(lines: Sequence[str]) -> int:
    """Frames that a switch sent along the tree of a VLAN, from the counters of its dumped rules.

    They are broadcasts, and what is for an address that the switch does not know.
    """
    return sum(int(match.group(1)) for line in lines if (match := _FLOOD.search(line)))


def socket_drops(holders: Mapping[str, int]) -> int:
    """Datagrams that hosts received but had to drop because the program did not fetch them in time."""
    drops = 0
    for pid in holders.values():
        lines = procfs.read_kernel_file(f"/proc/{pid}/net/snmp").splitlines()
        names, values = (line.split() for line in lines if line.startswith("Udp:"))
        drops += int(values[names.index("RcvbufErrors")])
    return drops
