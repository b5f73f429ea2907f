"""What follows from a network's settings and cables: loops, cuts, copies, broadcasts, deadlock; each with a remedy."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace

import numpy as np

from testbed.base.model import Bools, Codes, Floats, Ints
from testbed.base.units import count_noun
from testbed.devices.audit.assumptions import defaults_of, notes_of, shorten_names
from testbed.devices.audit.network import Network
from testbed.devices.defaults import DEFAULTS
from testbed.devices.port_names import format_ranges
from testbed.devices.vlan_set import VlanSet
from testbed.fabric.verify.deadlock import adjacency, shortest_cycle

# Frames that switches flood, each by ports of its own on some of them.
FLOODS = ("broadcast", "multicast", "unknown unicast")


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that is wrong."""

    kind: str  # `loop`, `cut`, `copies`, `broadcast`, `multicast`, `leak`, `deadlock` or `doubt`
    sentence: str  # what is wrong
    witness: tuple[str, ...]  # the cycle, the pairs, the ports: whole
    remedy: str  # what would be right, empty where nobody can say
    after: str = ""  # port, as switch:port, behind which frames end; empty where they end at their own switch

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
    circulating: Mapping[str, VlanSet]  # kind of flooded frame, one of FLOODS → VLANs in which it circulates for ever
    broadcasts: Floats  # (H, H) copies of a broadcast of one host at each other
    multicasts: Floats  # (H, H) likewise of a multicast to a group that no switch knows
    relied_on: Mapping[str, tuple[str, ...]]  # key of DEFAULTS → ports, as switch:port, that are set by it

    @property
    def looping_vlans(self) -> tuple[int, ...]:
        """VLANs in which a flooded frame of any kind can circulate for ever."""
        return tuple(sorted({vlan for vlans in self.circulating.values() for vlan in vlans}))

    @property
    def why_not_audited(self) -> str:
        """Why nothing was audited; empty where something was."""
        network = self.network
        if not network.alike:
            return "no port that leads anywhere is in a VLAN, so no frame was followed"
        if self.pairs:
            return ""
        if len(network.hosts) < 2:
            return (
                f"there is {count_noun(len(network.hosts), 'host')}, so there is no pair whose frames could be followed"
            )
        return "no two hosts share a VLAN, so there is no pair whose frames should arrive"

    @property
    def has_passed(self) -> bool:
        """Whether something was audited, all of it was understood, and nothing is wrong."""
        return self.verdict == "pass"

    @property
    def verdict(self) -> str:
        """`pass`, `fail`, `not understood`, or `nothing audited`."""
        if self.why_not_audited:
            return "nothing audited"
        if self.findings:
            return "fail"
        return "not understood" if self.network.unclear else "pass"

    def as_object(self) -> dict[str, object]:
        """With whole lists."""
        network = self.network
        return {
            "passed": self.has_passed,
            "verdict": self.verdict,
            "nothing_audited": self.why_not_audited,
            "not_understood": list(network.unclear),
            "switches": len(network.switches),
            "links": network.links,
            "hosts": len(network.hosts),
            "vlans": list(network.vlans),
            "pairs": self.pairs,
            "delivered": self.delivered,
            "apart": self.apart,
            "deadlock_free": self.deadlock_free,
            "looping_vlans": list(self.looping_vlans),
            "circulating": {kind: list(vlans) for kind, vlans in self.circulating.items()},
            "defaults": [{**asdict(DEFAULTS[key]), "ports": list(ports)} for key, ports in self.relied_on.items()],
            "spanning_trees": [case.as_object() for case in network.trees.cases if case.trees],
            "findings": [asdict(finding) for finding in self.findings],
            "notes": list(self.notes),
        }


def audit(network: Network, *, pauses: bool = True) -> Audit:
    """Follow every pair and every broadcast, and look for cycles, in each case that the spanning tree protocol leaves.

    `pauses`: whether links may pause (802.3x or PFC); without, nothing can deadlock, and a cycle of dependencies is no
    finding.
    """
    found = [_audit_case(one, pauses=pauses) for one in (network, *network.others)]
    return found[0] if len(found) == 1 else _merge_cases(found)


def _merge_cases(cases: Sequence[Audit]) -> Audit:
    """What holds in every case; what is wrong in some of them, with what makes them so."""
    said: dict[tuple[str, str], list[Audit]] = defaultdict(list)
    first: dict[tuple[str, str], Finding] = {}
    for case in cases:
        for finding in case.findings:
            key = finding.kind, finding.sentence
            first.setdefault(key, finding)
            said[key].append(case)
    findings = [
        first[key]
        if len(there) == len(cases)
        else replace(first[key], sentence=f"{first[key].sentence}, if {there[0].network.case}")
        for key, there in said.items()
    ]
    arrives = np.logical_and.reduce([case.arrives for case in cases])
    shared = _find_sharing_pairs(cases[0].network)
    circulating = {
        kind: VlanSet.from_ids({vlan for case in cases for vlan in case.circulating[kind]}) for kind in FLOODS
    }
    return replace(
        cases[0],
        findings=tuple(findings),
        notes=tuple(dict.fromkeys(note for case in cases for note in case.notes)),
        arrives=arrives,
        delivered=int((arrives & shared).sum()),
        apart=max(case.apart for case in cases),
        deadlock_free=all(case.deadlock_free for case in cases),
        circulating=circulating,
    )


def _audit_case(network: Network, *, pauses: bool) -> Audit:
    from testbed.devices.audit import follow_kernel as kernels

    turns = np.zeros((len(network.places), network.degree), dtype=bool)
    beside = np.zeros_like(turns)  # of broadcasts and multicasts, which are few and dropped first
    broadcast = kernels.floods(network.host_port, beside, network.by_port(network.broadcasts))
    multicast = broadcast
    if not np.array_equal(network.broadcasts, network.multicasts):
        multicast = kernels.floods(network.host_port, beside, network.by_port(network.multicasts))
    unknown = np.diff(network.entry_start) == 0
    ports = network.by_port(network.floods)
    flooded = kernels.floods(network.host_port, turns, ports) if unknown.any() else broadcast
    status, last = kernels.pairs(
        network.host_port, network.entry_start, network.entry_switch, network.entry_vlan, network.entry_port, turns,
        ports, *flooded,
    )  # fmt: skip
    shared = _find_sharing_pairs(network)
    loops, circulating = _loops(network)
    deadlock = _deadlock(network, turns)
    other = ~np.eye(len(network.hosts), dtype=bool)
    delivered = (status == kernels.DELIVERED) & other
    findings = [
        *(Finding("doubt", sentence, (), "") for sentence in network.doubts),
        *_find_lone_hosts(network, shared & other),
        *loops,
        *_pairs(network, status, last, shared & other, unknown),
        *_find_leaks(network, (delivered | (status == kernels.TWICE)) & other & ~shared),
        *_broadcasts(network, *broadcast, shared & other),
        *(_multicasts(network, *multicast) if multicast is not broadcast else ()),
        *(deadlock if pauses else []),
    ]
    return Audit(
        network=network,
        findings=tuple(findings),
        notes=tuple(_notes(network, broadcast[0], multicast[0], unknown, deadlock, pauses=pauses)),
        arrives=delivered,
        delivered=int((delivered & shared).sum()),
        pairs=int((shared & other).sum()),
        apart=int((~shared & other & ~delivered).sum()),
        deadlock_free=not deadlock,
        circulating=circulating,
        broadcasts=broadcast[0],
        multicasts=multicast[0],
        relied_on=defaults_of(network),
    )


def _find_sharing_pairs(network: Network) -> Bools:
    """(H, H) whether two hosts' ports have an untagged VLAN in common, so that they are meant to reach each other."""
    at = network.host_port
    vlans = network.untagged[at].copy()
    pvid = network.pvid[at]
    vlans[np.flatnonzero(pvid >= 0), pvid[pvid >= 0]] = True
    wide = vlans.astype(np.float32)
    found: Bools = wide @ wide.T > 0
    return found


def _find_lone_hosts(network: Network, wanted: Bools) -> Iterator[Finding]:
    """Hosts that are in a VLAN by themselves."""
    alone = ~wanted.any(axis=1) & (network.stands_for == 1)
    names = tuple(network.hosts[host] for host in np.flatnonzero(alone).tolist())
    if names and len(network.hosts) > 1:
        sentence = f"{shorten_names(names)} {'shares' if len(names) == 1 else 'share'} a VLAN with no other host"
        yield Finding("doubt", sentence, names, "compare the PVID of the port with those of other hosts")


def _place(network: Network, port: int) -> str:
    return ":".join(network.places[port])


def _loops(network: Network) -> tuple[list[Finding], dict[str, VlanSet]]:
    """A shortest loop of each VLAN in which a kind of flooded frame circulates, and these VLANs by kind."""
    found: dict[tuple[str, ...], dict[str, VlanSet]] = {}
    circulating: dict[str, VlanSet] = {}
    for kind, sends in zip(FLOODS, (network.broadcasts, network.multicasts, network.floods), strict=True):
        circulating[kind] = VlanSet()
        for places, vlans in _loops_of(network, sends):
            kinds = found.setdefault(places, {})
            kinds[kind] = kinds.get(kind, VlanSet()) | vlans
            circulating[kind] |= vlans
    findings = []
    for places, kinds in found.items():
        for vlans in dict.fromkeys(kinds.values()):
            names = [kind for kind in kinds if kinds[kind] == vlans]
            for blocks, some_vlans in _by_blocks(network, places, vlans).items():
                findings.append(_loop(places, names, some_vlans, blocks))
    return findings, circulating


def _by_blocks(network: Network, places: tuple[str, ...], vlans: VlanSet) -> dict[tuple[str, ...], VlanSet]:
    """VLANs by the switches of a loop on which the spanning tree protocol may block a port in them."""
    on = [name for name in dict.fromkeys(place.split(":", 1)[0] for place in places) if name in network.stp]
    found: dict[tuple[str, ...], VlanSet] = {}
    for same in network.alike:
        if same & vlans:
            blocks = tuple(name for name in on if min(same) not in network.bridges[name].without_stp)
            found[blocks] = found.get(blocks, VlanSet()) | (same & vlans)
    return found


def _loop(places: tuple[str, ...], kinds: Sequence[str], vlans: VlanSet, blocks: Sequence[str]) -> Finding:
    frames = kinds[0] if len(kinds) == 1 else f"{', '.join(kinds[:-1])} or {kinds[-1]}"
    several = "s" if len(vlans) > 1 else ""
    article = "an" if frames.startswith("u") else "a"
    sentence = f"VLAN{several} {format_ranges(vlans)}: {article} {frames} circulates for ever by {' '.join(places)}"
    taken = "these VLANs" if several else f"VLAN {min(vlans)}"
    remedy = f"take {taken} from one of these ports, such as {places[-1]}"
    if blocks:
        remedy += f"; the spanning tree protocol of {shorten_names(blocks)} may block one, and then paths are others"
    return Finding("loop", sentence, places, remedy)


def _loops_of(network: Network, sends: Bools) -> Iterator[tuple[tuple[str, ...], VlanSet]]:
    """Ports of a shortest loop of each VLAN in which frames circulate that leave by these ports; and the VLANs."""
    from testbed.devices.audit import follow_kernel as kernels
    from testbed.fabric.kernels import cycles

    start, following, states = kernels.flood_graph(network.by_port(sends))
    if not len(following):
        return
    inside = cycles.on_cycles(start, following)
    left = inside.copy()  # arrivals in VLANs of which no loop is known
    while left.any():
        cycle = cycles.shortest_cycle(start, following, left)
        if not len(cycle):  # a loop may lead through VLANs of other loops, where links change the VLAN
            cycle = cycles.cycle_through(start, following, inside, left)
        if not len(cycle):
            return
        ports, columns = np.divmod(states[cycle], network.member.shape[1])
        vlans = VlanSet()
        for column in set(columns.tolist()):
            vlans |= network.alike[column]
        left[np.isin(states % network.member.shape[1], columns)] = False
        yield tuple(_place(network, int(network.peer[port])) for port in ports.tolist()), vlans


_ROUND = 2
_WORDS = {
    1: "is dropped",
    _ROUND: "circulates for ever",
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
            sentence = f"{count_noun(len(pairs), 'pair')} {shorten_names(pairs)}: a frame {words} {at}"
            kind = "copies" if code == 5 else "cut"
            after = at.removeprefix("after ") if at.startswith("after ") else ""
            yield Finding(kind, sentence, tuple(pairs), _remedy(network, code, ends, unknown), after)


def _remedy(network: Network, code: int, ends: set[str], unknown: Bools) -> str:
    silent = [host for host, none in zip(network.hosts, unknown.tolist(), strict=True) if none and host in ends]
    if silent and not unknown.all():
        several = len(silent) > 1
        return (
            f"{shorten_names(silent)} {'are' if several else 'is'} registered nowhere: give every switch an entry for "
            f"{'each of them' if several else 'it'}"
        )
    if code == _ROUND and len(silent) == len(ends):
        return "no entry says where these hosts are, so switches flood the frame into the loops above; open those"
    return {
        1: "compare the VLANs of both ends of the next link, and the entry of the switch after it",
        _ROUND: "an entry of the circle points back; compare the entries of its switches",
        3: "make the host's port an untagged member of that VLAN",
        4: "an entry points to the wrong port of the last switch",
        5: "two ways lead there, and switches flood to both: register the address, or take the VLAN from one way",
    }[code]


def _find_leaks(network: Network, leaks: Bools) -> Iterator[Finding]:
    pairs = tuple(f"{network.hosts[a]}→{network.hosts[b]}" for a, b in np.argwhere(leaks).tolist())
    if pairs:
        reach = "reaches the other" if len(pairs) == 1 else "reach each other"
        sentence = f"{count_noun(len(pairs), 'pair')} {shorten_names(pairs)} of different VLANs {reach}"
        remedy = "an untagged link joins two VLANs; give both its ends the same PVID, or tag it"
        yield Finding("leak", sentence, pairs, remedy)


def _broadcasts(network: Network, received: Floats, tagged: Floats, endless: Bools, wanted: Bools) -> Iterator[Finding]:
    """Broadcasts that miss hosts they should reach, or reach them more than once."""
    if not received.any() and not endless.any() and not tagged.any():
        return
    circulating = tuple(host for host, wrong in zip(network.hosts, endless.tolist(), strict=True) if wrong)
    if circulating:
        sentence = f"broadcasts of {shorten_names(circulating)} circulate for ever"
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
            sentence = f"broadcasts {words}{most}: {count_noun(len(pairs), 'pair')} {shorten_names(pairs)}"
            yield Finding("broadcast", sentence, pairs, remedy)


def _multicasts(network: Network, received: Floats, tagged: Floats, endless: Bools) -> Iterator[Finding]:
    """Multicasts that circulate or are doubled. That they miss hosts is no fault: groups have entries of their own."""
    del tagged
    circulating = tuple(host for host, wrong in zip(network.hosts, endless.tolist(), strict=True) if wrong)
    if circulating:
        sentence = f"multicasts of {shorten_names(circulating)} circulate for ever"
        yield Finding("multicast", sentence, circulating, "see the loops above")
    doubled = (received > 1) & ~endless[:, None]
    pairs = tuple(f"{network.hosts[a]}→{network.hosts[b]}" for a, b in np.argwhere(doubled).tolist())
    if pairs:
        most = f"{received[doubled].max():.4g} times"
        sentence = (
            f"multicasts arrive more than once, up to {most}: {count_noun(len(pairs), 'pair')} {shorten_names(pairs)}"
        )
        yield Finding("multicast", sentence, pairs, "two ways lead there; keep floods from one of them")


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
    network: Network, received: Floats, multicasts: Floats, unknown: Bools, deadlock: Sequence[Finding], *, pauses: bool
) -> Iterator[str]:
    yield from notes_of(network)
    if network.stp:
        yield (
            f"the spanning tree protocol runs on {count_noun(len(network.stp), 'switch', 'es')}, and what it blocks is "
            "not computed there, so paths are followed as if it blocked nothing"
        )
    snapshot = [name for name, bridge in network.bridges.items() if bridge.stp and bridge.reading.shows_states]
    if snapshot:
        yield (
            f"the spanning tree protocol runs on {count_noun(len(snapshot), 'switch', 'es')} and blocks ports as their "
            "files show; after a failure it may block others"
        )
    if not received.any():
        yield "broadcasts reach nobody: hosts need static ARP entries"
    missed = int(((multicasts < 1) & (received >= 1)).sum())
    if missed:
        yield f"multicasts of {count_noun(missed, 'pair')} do not arrive, whose broadcasts do: some ports flood none"
    if unknown.any():
        count = int(unknown.sum())
        yield (
            f"{count} of {count_noun(len(unknown), 'host')} {'is' if count == 1 else 'are'} registered nowhere: frames "
            f"to {'it' if count == 1 else 'them'} are followed as switches flood them that have not learned yet"
        )
    if deadlock and not pauses:
        yield f"links that pause would make it deadlock: {deadlock[0].sentence}"
