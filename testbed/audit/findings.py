"""What follows from a network's settings and cables: loops, cuts, copies, broadcasts, deadlock; each with a remedy."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass

import numpy as np

from testbed.audit.network import Network
from testbed.model import Bools, Codes, Floats, Ints
from testbed.units import counted
from testbed.verify.deadlock import adjacency, shortest_cycle

_SHOWN = 6


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that is wrong."""

    kind: str  # `loop`, `cut`, `copies`, `broadcast`, `leak`, `deadlock` or `doubt`
    sentence: str  # what is wrong
    witness: tuple[str, ...]  # the cycle, the pairs, the ports: whole
    remedy: str  # what would be right, empty where nobody can say

    def __str__(self) -> str:
        """One sentence, and the remedy."""
        return f"{self.kind}: {self.sentence}{f'; {self.remedy}' if self.remedy else ''}"


@dataclass(frozen=True, slots=True, eq=False)
class Audit:
    """Everything that was found of a network."""

    network: Network  # what was audited
    findings: tuple[Finding, ...]  # what is wrong
    notes: tuple[str, ...]  # what a reader must know besides
    arrives: Bools  # (H, H) whether a frame of one host arrives at another, once and without a tag
    delivered: int  # ordered pairs of hosts whose frames arrive once
    pairs: int  # ordered pairs of hosts that share a VLAN
    apart: int  # ordered pairs that share none, and do not reach each other
    deadlock_free: bool  # whether the dependencies of channels have no cycle
    looping: tuple[int, ...]  # VLANs in which a flooded frame can circulate for ever
    broadcasts: Floats  # (H, H) copies of a broadcast of one host at each other

    @property
    def passed(self) -> bool:
        """Whether nothing is wrong."""
        return not self.findings

    def as_object(self) -> dict[str, object]:
        """With whole lists."""
        network = self.network
        return {
            "passed": self.passed,
            "switches": len(network.switches),
            "links": network.links,
            "hosts": len(network.hosts),
            "vlans": list(network.vlans),
            "pairs": self.pairs,
            "delivered": self.delivered,
            "apart": self.apart,
            "deadlock_free": self.deadlock_free,
            "looping_vlans": list(self.looping),
            "findings": [asdict(finding) for finding in self.findings],
            "notes": list(self.notes),
        }


def audit(network: Network, *, pauses: bool = True) -> Audit:
    """Follow every pair and every broadcast, and look for cycles.

    `pauses`: whether links may pause (802.3x or PFC); without, nothing can deadlock, and a cycle of dependencies is no
    finding.
    """
    from testbed.kernels import audit as kernels

    turns = np.zeros((len(network.places), network.degree), dtype=bool)
    beside = np.zeros_like(turns)  # of broadcasts, which are few and dropped first
    received, tagged, endless = kernels.floods(network.host_port, beside, network.by_port(network.broadcasts))
    unknown = np.diff(network.entry_start) == 0
    ports = network.by_port(network.floods)
    flooded = kernels.floods(network.host_port, turns, ports) if unknown.any() else (received, tagged, endless)
    status, last = kernels.pairs(
        network.host_port, network.entry_start, network.entry_switch, network.entry_vlan, network.entry_port, turns,
        ports, *flooded,
    )  # fmt: skip
    shared = _shared(network)
    loops = list(_loops(network))
    deadlock = _deadlock(network, turns)
    other = ~np.eye(len(network.hosts), dtype=bool)
    delivered = (status == kernels.DELIVERED) & other
    findings = [
        *(Finding("doubt", sentence, (), "") for sentence in network.doubts),
        *_alone(network, shared & other),
        *(finding for finding, _ in loops),
        *_pairs(network, status, last, shared & other, unknown),
        *_leaks(network, (delivered | (status == kernels.TWICE)) & other & ~shared),
        *_broadcasts(network, received, tagged, endless, shared & other),
        *(deadlock if pauses else []),
    ]
    return Audit(
        network=network,
        findings=tuple(findings),
        notes=tuple(_notes(network, received, unknown, deadlock, pauses=pauses)),
        arrives=delivered,
        delivered=int((delivered & shared).sum()),
        pairs=int((shared & other).sum()),
        apart=int((~shared & other & ~delivered).sum()),
        deadlock_free=not deadlock,
        looping=tuple(sorted({vlan for _, vlans in loops for vlan in vlans})),
        broadcasts=received,
    )


def _shared(network: Network) -> Bools:
    """(H, H) whether two hosts' ports have an untagged VLAN in common, so that they are meant to reach each other."""
    at = network.host_port
    vlans = network.untagged[at].copy()
    pvid = network.pvid[at]
    vlans[np.flatnonzero(pvid >= 0), pvid[pvid >= 0]] = True
    wide = vlans.astype(np.float32)
    found: Bools = wide @ wide.T > 0
    return found


def _alone(network: Network, wanted: Bools) -> Iterator[Finding]:
    """Hosts that are in a VLAN by themselves."""
    names = tuple(network.hosts[host] for host in np.flatnonzero(~wanted.any(axis=1)).tolist())
    if names and len(network.hosts) > 1:
        sentence = f"{_some(names)} {'shares' if len(names) == 1 else 'share'} a VLAN with no other host"
        yield Finding("doubt", sentence, names, "compare the PVID of the port with those of other hosts")


def _place(network: Network, port: int) -> str:
    return ":".join(network.places[port])


def _loops(network: Network) -> Iterator[tuple[Finding, tuple[int, ...]]]:
    """A shortest loop of each VLAN in which floods circulate."""
    from testbed.kernels import audit as kernels
    from testbed.kernels import cycles

    start, following, states = kernels.flood_graph(network.by_port(network.broadcasts | network.floods))
    if not len(following):
        return
    left = cycles.on_cycles(start, following)
    while left.any():
        cycle = cycles.shortest_cycle(start, following, left)
        if not len(cycle):
            return
        ports, vlans = np.divmod(states[cycle], network.member.shape[1])
        numbers = tuple(sorted({network.vlans[vlan] for vlan in vlans.tolist()}))
        left[np.isin(states % network.member.shape[1], vlans)] = False
        places = tuple(_place(network, int(network.peer[port])) for port in ports.tolist())
        names = ", ".join(map(str, numbers))
        blocks = [network.places[port][0] for port in ports.tolist() if network.places[port][0] in network.stp]
        several = "s" if len(numbers) > 1 else ""
        remedy = f"take VLAN {numbers[0]} from one of these ports, such as {places[-1]}"
        if blocks:
            remedy += f"; the spanning tree protocol of {_some(blocks)} may block one, and then paths are others"
        sentence = f"VLAN{several} {names}: a broadcast circulates for ever by {' '.join(places)}"
        yield Finding("loop", sentence, places, remedy), numbers


_WORDS = {
    1: "is dropped",
    2: "circulates for ever",
    3: "arrives with a tag",
    4: "ends at another host",
    5: "arrives more than once",
}


def _pairs(network: Network, status: Codes, last: Ints, wanted: Bools, unknown: Bools) -> Iterator[Finding]:
    """What becomes of frames of pairs that do not arrive once, by where they end."""
    for code, words in _WORDS.items():
        rows = np.argwhere((status == code) & wanted)
        groups: dict[str, list[str]] = defaultdict(list)
        for source, end in rows.tolist():
            port = int(last[source, end])
            at = f"after {_place(network, port)}" if port >= 0 else f"at {network.places[network.host_port[source]][0]}"
            groups[at].append(f"{network.hosts[source]}→{network.hosts[end]}")
        for at, pairs in sorted(groups.items(), key=lambda item: -len(item[1])):
            ends = {pair.split("→")[1] for pair in pairs}
            sentence = f"{counted(len(pairs), 'pair')} {_some(pairs)}: a frame {words} {at}"
            kind = "copies" if code == 5 else "cut"
            yield Finding(kind, sentence, tuple(pairs), _remedy(network, code, ends, unknown))


def _remedy(network: Network, code: int, ends: set[str], unknown: Bools) -> str:
    silent = [host for host, none in zip(network.hosts, unknown.tolist(), strict=True) if none and host in ends]
    if silent and len(silent) < len(network.hosts):
        return f"{_some(silent)} is registered nowhere: give every switch an entry for it"
    return {
        1: "compare the VLANs of both ends of the next link, and the entry of the switch after it",
        2: "an entry of the circle points back; compare the entries of its switches",
        3: "make the host's port an untagged member of that VLAN",
        4: "an entry points to the wrong port of the last switch",
        5: "two ways lead there, and switches flood to both: register the address, or take the VLAN from one way",
    }[code]


def _leaks(network: Network, leaks: Bools) -> Iterator[Finding]:
    pairs = tuple(f"{network.hosts[a]}→{network.hosts[b]}" for a, b in np.argwhere(leaks).tolist())
    if pairs:
        sentence = f"{counted(len(pairs), 'pair')} {_some(pairs)} of different VLANs reach each other"
        remedy = "an untagged link joins two VLANs; give both its ends the same PVID, or tag it"
        yield Finding("leak", sentence, pairs, remedy)


def _broadcasts(network: Network, received: Floats, tagged: Floats, endless: Bools, wanted: Bools) -> Iterator[Finding]:
    """Broadcasts that miss hosts they should reach, or reach them more than once."""
    if not received.any() and not endless.any() and not tagged.any():
        return
    circulating = tuple(host for host, wrong in zip(network.hosts, endless.tolist(), strict=True) if wrong)
    if circulating:
        sentence = f"broadcasts of {_some(circulating)} circulate for ever"
        yield Finding("broadcast", sentence, circulating, "see the loops above")
    calm = ~endless[:, None]
    for wrong, words, remedy in (
        ((received > 1) & calm, "arrive more than once", "two ways lead there; keep floods from one of them"),
        ((received < 1) & (tagged == 0) & wanted & calm, "do not arrive", "compare the VLANs along the way"),
        ((tagged > 0) & wanted & calm, "arrive with a tag", "make the host's port an untagged member"),
    ):
        pairs = tuple(f"{network.hosts[a]}→{network.hosts[b]}" for a, b in np.argwhere(wrong).tolist())
        if pairs:
            most = f", up to {received[wrong].max():.4g} times" if "once" in words else ""
            sentence = f"broadcasts {words}{most}: {counted(len(pairs), 'pair')} {_some(pairs)}"
            yield Finding("broadcast", sentence, pairs, remedy)


def _deadlock(network: Network, turns: Bools) -> list[Finding]:
    """A shortest cycle of channels, each waiting for the next."""
    before, rank = np.nonzero(turns)
    if not len(before):
        return []
    there = network.switch_of[network.peer[before]]
    after = network.port_start[there] + rank
    cycle = shortest_cycle(*adjacency(len(network.places), np.stack([before, after], axis=1).astype(np.int32)))
    if not cycle:
        return []
    places = tuple(_place(network, port) for port in cycle)
    sentence = f"with PAUSE or PFC these paths can deadlock: {' waits for '.join((*places, places[0]))}"
    remedy = "switch pauses off, or route so that no such circle closes (testbed list routings)"
    return [Finding("deadlock", sentence, places, remedy)]


def _notes(
    network: Network, received: Floats, unknown: Bools, deadlock: Sequence[Finding], *, pauses: bool
) -> Iterator[str]:
    if network.stp:
        yield (
            f"the spanning tree protocol runs on {counted(len(network.stp), 'switch', 'es')}; what it blocks is in no "
            "configuration, so paths are followed as if it blocked nothing"
        )
    if not received.any():
        yield "broadcasts reach nobody: hosts need static ARP entries"
    if unknown.any():
        yield (
            f"{int(unknown.sum())} of {len(unknown)} hosts are registered nowhere: frames to them are followed as "
            "switches flood them that have not learned yet"
        )
    if deadlock and not pauses:
        yield f"links that pause would make it deadlock: {deadlock[0].sentence}"


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more
